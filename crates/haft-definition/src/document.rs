//! A text with the place of everything in it, for other kinds of files than definitions.

use haft_schema::Checker;
use serde_json::Value;

use crate::error::{Position, ReadError, ReadErrors};
use crate::tree::Node;
use crate::{Format, read};

/// A JSON or TOML text as a value that knows where its parts are. Places are named by JSON pointers.
///
/// ```
/// use haft_definition::{Document, Format, Position};
/// let document = Document::parse("a = 1\nb = { c = ['x'] }", Format::Toml)?;
/// assert_eq!(document.value(), serde_json::json!({"a": 1, "b": {"c": ["x"]}}));
/// assert_eq!(document.value_at("/b/c/0"), Position { line: 2, column: 12 });
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[derive(Debug)]
pub struct Document {
    text: String,
    format: Format,
    tree: Node,
}

impl Document {
    /// Reads a text. Strict: no name is there twice.
    ///
    /// # Errors
    ///
    /// When it is not JSON or TOML.
    pub fn parse(text: &str, format: Format) -> Result<Self, ReadErrors> {
        Ok(Document { text: text.to_owned(), format, tree: read::parse(text, format)? })
    }

    /// The value without the places.
    #[must_use]
    pub fn value(&self) -> Value {
        self.tree.to_value()
    }

    /// Where a value begins; where there is none, where the nearest thing around it begins.
    #[must_use]
    pub fn value_at(&self, pointer: &str) -> Position {
        Position::of(&self.text, self.tree.value_at(&read::steps(pointer)))
    }

    /// Where the name of a value begins.
    #[must_use]
    pub fn key_at(&self, pointer: &str) -> Position {
        Position::of(&self.text, self.tree.key_at(&read::steps(pointer)))
    }

    /// Where a field is, given its place as problems of definitions name it, such as `parameters[0].default`.
    #[must_use]
    pub fn locate(&self, place: &str) -> Position {
        Position::of(&self.text, self.tree.value_at(&crate::check::steps(place)))
    }

    /// Where a byte of a text value is. Where the value is not written letter by letter, where it begins.
    ///
    /// ```
    /// use haft_definition::{Document, Format, Position};
    /// let document = Document::parse("when = 'a + * b'", Format::Toml)?;
    /// assert_eq!(document.inside("/when", "a + * b", 4), Position { line: 1, column: 13 });
    /// # Ok::<(), haft_definition::ReadErrors>(())
    /// ```
    #[must_use]
    pub fn inside(&self, pointer: &str, value: &str, offset: usize) -> Position {
        let at = self.tree.value_at(&read::steps(pointer));
        let rest = self.text.get(at..).unwrap_or_default();
        // One quote, or three of them and the line end that TOML leaves out.
        let begins = ["\"\"\"\n", "'''\n", "\"\"\"", "'''", "\"", "'"];
        let quote = begins.iter().find(|quote| {
            rest.strip_prefix(**quote).is_some_and(|inner| inner.starts_with(value)) && !value.is_empty()
        });
        Position::of(&self.text, quote.map_or(at, |quote| at + quote.len() + offset.min(value.len())))
    }

    /// What a schema of such files finds: unknown fields with what was probably meant, missing ones, and values of
    /// another kind, each with its place.
    #[must_use]
    pub fn shape(&self, checker: &Checker) -> Vec<ReadError> {
        read::shape_of(checker, &self.tree, &self.value(), &self.text, self.format)
    }
}
