//! The two forms of a file.

use std::path::Path;

/// The form of a definition file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `x.tool.json`
    Json,
    /// `x.tool.toml`
    Toml,
}

/// The form that the name of a file tells, by its extension.
///
/// ```
/// use haft_definition::{Format, read_file_name_format};
/// assert_eq!(read_file_name_format("tools/word_count.tool.toml"), Some(Format::Toml));
/// assert_eq!(read_file_name_format("word_count.JSON"), Some(Format::Json));
/// assert_eq!(read_file_name_format("word_count.yaml"), None);
/// ```
pub fn read_file_name_format(path: impl AsRef<Path>) -> Option<Format> {
    let extension = path.as_ref().extension()?;
    if extension.eq_ignore_ascii_case("json") {
        Some(Format::Json)
    } else if extension.eq_ignore_ascii_case("toml") {
        Some(Format::Toml)
    } else {
        None
    }
}
