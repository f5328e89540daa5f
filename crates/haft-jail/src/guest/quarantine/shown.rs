//! Paths for people: to be read, and as a word of a shell.

use std::{fmt::Write as _, os::unix::ffi::OsStrExt as _, path::Path};

/// What a person is shown of a path: nothing in it moves a cursor or breaks a line.
pub(super) fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().fold(String::new(), |mut all, c| {
        match is_unseen(c) {
            true => all.extend(c.escape_unicode()),
            false => all.push(c),
        }
        all
    })
}

fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The command that puts something back.
pub(super) fn undo(from: &Path, to: &Path) -> String {
    format!("mv -- {} {}", quoted(from), quoted(to))
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    match str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_unseen) => format!("'{}'", text.replace('\'', "'\\''")),
        _ => {
            let mut all = String::from("$'");
            for byte in bytes {
                let _ = match byte {
                    b'\'' | b'\\' => write!(all, "\\{}", char::from(*byte)),
                    b' '..=b'~' => write!(all, "{}", char::from(*byte)),
                    // Always three digits, so that what follows is not taken for one.
                    byte => write!(all, "\\{byte:03o}"),
                };
            }
            all.push('\'');
            all
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf, process::Command};

    #[test]
    fn a_path_is_one_word_of_a_shell_and_moves_no_cursor() {
        for bytes in [
            &b"/plain"[..],
            b"/it's; touch x; '",
            b"/a\x1b[2J\nfake line\n7",
            b"/\xff'\\n $HOME `id`",
            "/a\u{202e}b".as_bytes(),
            "/gr\u{fc}n".as_bytes(),
        ] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let word = quoted(&path);
            assert!(!word.chars().any(is_unseen) && !shown(&path).chars().any(is_unseen), "{word}");
            let said = Command::new("bash").args(["-c", &format!("printf %s {word}")]).output().unwrap();
            assert_eq!(said.stdout, bytes, "{word}");
        }
    }
}
