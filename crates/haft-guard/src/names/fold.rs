//! Names as file systems that ignore case see them.

use std::{borrow::Cow, path::Path};

/// A path as text with forward slashes.
pub(super) fn slashed(path: &Path) -> Cow<'_, str> {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/").into() } else { text }
}

/// Text as file systems that ignore case see it: the long s is an s, the Kelvin sign a k, and what Unicode says may
/// be left out is not there, so that `.e<U+200C>nv` names the same file as `.env`.
pub(super) fn fold(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    let fold = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    Cow::Owned(text.chars().filter(|c| !is_ignorable(*c)).flat_map(fold).collect())
}

/// Unicode's `Default_Ignorable_Code_Point`: file systems that ignore case ignore these as well.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}
