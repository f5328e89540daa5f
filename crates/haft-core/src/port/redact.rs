//! Secrets do not leave.

use std::borrow::Cow;

/// Finds secrets in bytes and puts a mark in their place.
///
/// Output comes in chunks, and a secret may be cut between two. So the code that feeds a redactor lets go only of the
/// bytes that are [`decided`](Redactor::decided), and holds the rest until more have come or the stream ends.
pub trait Redactor: Send + Sync {
    /// The bytes without secrets. Borrowed where there are none.
    fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]>;

    /// How many bytes from the start are settled: no secret begins in them that may go on beyond the last byte.
    /// Redacting piece by piece, cut there, gives the same as redacting the whole.
    fn decided(&self, bytes: &[u8]) -> usize;

    /// How many bytes are settled, and those without secrets. The same as [`decided`](Redactor::decided) and then
    /// [`redact`](Redactor::redact) on so many; for those who can answer both with one look.
    fn let_go<'a>(&self, bytes: &'a [u8]) -> (usize, Cow<'a, [u8]>) {
        let decided = self.decided(bytes).min(bytes.len());
        (decided, self.redact(&bytes[..decided]))
    }

    /// Whether the value of a member of that name is a secret, whatever it looks like: `password`, say.
    fn hides_member(&self, name: &str) -> bool;

    /// Whether this one finds something wherever `other` does: bytes that are clean to this one are then not shown to
    /// the other. `false` where that is not known for certain.
    fn finds_all_of(&self, other: &dyn Redactor) -> bool {
        let _ = other;
        false
    }

    /// Itself, for [`finds_all_of`](Redactor::finds_all_of) of a redactor of the same type.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

/// Knows no secrets.
///
/// ```
/// use haft_core::port::{NoRedaction, Redactor};
/// assert_eq!(&*NoRedaction.redact(b"as it is"), b"as it is");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRedaction;

impl Redactor for NoRedaction {
    fn hides_member(&self, _name: &str) -> bool {
        false
    }

    fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }

    fn decided(&self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}
