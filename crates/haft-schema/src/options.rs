//! How a schema is compiled.

use crate::Documents;

/// How a schema is compiled. The default is what tools get: no other documents, formats as the draft has them.
///
/// ```
/// use haft_schema::{Checker, Formats, Options};
/// use serde_json::json;
///
/// let options = Options { formats: Formats::Checked, ..Options::default() };
/// let checker = Checker::with_options(&json!({"format": "ipv4"}), &options)?;
/// assert_eq!(checker.check(&json!("127.0.0.256"))?.total, 1);
/// # Ok::<(), haft_schema::BadSchema>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The documents that it may refer to.
    pub documents: Documents,
    /// What `format` does.
    pub formats: Formats,
}

/// What the keyword `format` does.
///
/// ```
/// assert_eq!(haft_schema::Formats::default(), haft_schema::Formats::OfTheDraft);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Formats {
    /// From draft 2019-09 on it is a note; in a schema that names an older draft it is checked.
    #[default]
    OfTheDraft,
    /// It is checked, where the format is known.
    Checked,
}
