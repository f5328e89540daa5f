//! What one kind of secret looks like.

/// What may follow a secret. A shape that could go on is not one of fixed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Anything.
    Free,
    /// No letter, digit or underscore.
    Word,
    /// Nothing that could belong to a value.
    Value,
    /// A quote, white space, `;`, a backslash, or the end.
    Strict,
    /// White space, or what ends an item of a list or of a query.
    Item,
    /// This one.
    Byte(u8),
}

impl End {
    pub(super) fn allows(self, next: Option<u8>) -> bool {
        let Some(next) = next else { return !matches!(self, End::Byte(_)) };
        match self {
            End::Free => true,
            End::Word => !is_word(next),
            End::Value => !(is_word(next) || matches!(next, b'-' | b'+' | b'/' | b'=' | b'.' | b'%' | b'~')),
            End::Strict => next.is_ascii_whitespace() || matches!(next, b'`' | b'\'' | b'"' | b';' | b'\\'),
            End::Item => {
                next.is_ascii_whitespace()
                    || matches!(next, b',' | b';' | b'&' | b'"' | b'\'' | b'`' | b'}' | b')' | b']' | b'\\')
            }
            End::Byte(wanted) => next == wanted,
        }
    }
}

/// Letters, digits and the underscore.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What stands between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Nothing: the secret begins where the literal does, or some bytes before it.
    None,
    /// An assignment, in whatever language.
    Assignment,
    /// This, after a name: quotes and spaces, then `=` or `:`.
    Name(&'static str),
    /// This, after the literal.
    After(&'static str),
}

/// What one kind of secret looks like, and how to find it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The rule of the collection that says so.
    pub(super) id: &'static str,
    /// What is put in its place: `[redacted:kind]`.
    pub(super) kind: &'static str,
    /// Lower case texts one of which is in every such secret, or in front of it.
    pub(super) literals: &'static [&'static str],
    pub(super) frame: Frame,
    /// The secret itself.
    pub(super) value: &'static str,
    pub(super) end: End,
    /// Whether no letter, digit or underscore may stand before it.
    pub(super) boundary: bool,
    /// How many bytes before the literal it begins.
    pub(super) back: usize,
    /// Whether there must be a digit in it.
    pub(super) digit: bool,
    /// Shannon's entropy that it has at least, in bits a byte.
    pub(super) entropy: f32,
    /// Whether it is certain enough to be taken out of results.
    pub(super) in_results: bool,
}

impl Shape {
    pub(super) const fn token(
        id: &'static str,
        kind: &'static str,
        literals: &'static [&'static str],
        value: &'static str,
        end: End,
    ) -> Shape {
        Shape {
            id,
            kind,
            literals,
            frame: Frame::None,
            value,
            end,
            boundary: false,
            back: 0,
            digit: false,
            entropy: 0.0,
            in_results: true,
        }
    }

    pub(super) const fn assigned(
        id: &'static str,
        literals: &'static [&'static str],
        value: &'static str,
    ) -> Shape {
        Shape::framed(id, id, literals, Frame::Assignment, value, End::Value)
    }

    pub(super) const fn framed(
        id: &'static str,
        kind: &'static str,
        literals: &'static [&'static str],
        frame: Frame,
        value: &'static str,
        end: End,
    ) -> Shape {
        Shape { frame, in_results: false, ..Shape::token(id, kind, literals, value, end) }
    }

    pub(super) const fn at_boundary(self) -> Shape {
        Shape { boundary: true, ..self }
    }

    pub(super) const fn back(self, back: usize) -> Shape {
        Shape { back, ..self }
    }

    pub(super) const fn with_digit(self) -> Shape {
        Shape { digit: true, ..self }
    }

    pub(super) const fn entropy(self, entropy: f32) -> Shape {
        Shape { entropy, ..self }
    }

    pub(super) const fn also_in_results(self) -> Shape {
        Shape { in_results: true, ..self }
    }

    pub(super) const fn not_in_results(self) -> Shape {
        Shape { in_results: false, ..self }
    }

    /// Whether bytes of this look are a secret after all: a placeholder is none.
    pub(super) fn is_secret(&self, value: &[u8]) -> bool {
        if self.digit && !value.iter().any(u8::is_ascii_digit) {
            return false;
        }
        if self.entropy > 0.0 && super::entropy::bits(value) < self.entropy {
            return false;
        }
        // What was redacted before stays as it is.
        self.frame == Frame::None || !is_placeholder(value)
    }
}

/// What stands for a value that is somewhere else, or was taken out already.
fn is_placeholder(value: &[u8]) -> bool {
    let starts = [&b"[redacted"[..], b"${", b"$(", b"{{", b"<", b"%("];
    let whole = [&b"true"[..], b"false", b"null", b"none", b"undefined", b"string", b"password", b"required"];
    value.iter().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X'))
        || starts.iter().any(|start| value.starts_with(start))
        || whole.iter().any(|word| value.eq_ignore_ascii_case(word))
}
