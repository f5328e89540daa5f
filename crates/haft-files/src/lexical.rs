//! What a path must look like, before anything is looked up. Pure: no file is touched.

use super::error::PathError;

/// The longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;
/// The longest name of one file or folder, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// A path that is well formed: no `..`, no empty names, no `.`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lexical<'a> {
    /// Whether it starts at the top of the file system.
    pub(crate) is_absolute: bool,
    /// The part of it that names a drive or a share, on systems that have them.
    pub(crate) prefix: &'a str,
    /// The names on the way.
    pub(crate) names: Vec<&'a str>,
}

/// Reads a path as a caller wrote it.
pub(crate) fn read(path: &str) -> Result<Lexical<'_>, PathError> {
    if path.trim().is_empty() {
        return Err(PathError::malformed(path, "path must not be empty"));
    }
    if path.len() > MAX_PATH_BYTES {
        let text = format!("path is too long: {} bytes, and {MAX_PATH_BYTES} is the most", path.len());
        return Err(PathError::malformed(path, text));
    }
    if !path.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && let Some(bad) = path.chars().find(|c| is_forbidden(*c))
    {
        let text =
            format!("path contains invalid control characters (U+{:04X}); leave them out", u32::from(bad));
        return Err(PathError::malformed(path, text));
    }
    // Both kinds of slashes, on every system: `..\..\x` is never meant as the name of one file.
    if path.split(['/', '\\']).any(|name| name == "..") {
        return Err(PathError::outside(path, None));
    }
    let (prefix, rest) = drive(path);
    let is_absolute = !prefix.is_empty() || rest.starts_with(is_separator);
    let names: Vec<_> = rest.split(is_separator).filter(|name| !name.is_empty() && *name != ".").collect();
    for name in &names {
        if name.len() > MAX_NAME_BYTES {
            let text = format!(
                "a name in the path is too long: {} bytes, and {MAX_NAME_BYTES} is the most",
                name.len()
            );
            return Err(PathError::malformed(path, text));
        }
        if cfg!(windows)
            && let Some(problem) = windows_name_problem(name)
        {
            return Err(PathError::malformed(path, problem));
        }
    }
    Ok(Lexical { is_absolute, prefix, names })
}

/// Control characters, and those that change the direction of text: a person could not see what is meant.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_separator(c: char) -> bool {
    c == '/' || (cfg!(windows) && c == '\\')
}

/// `C:` and `\\server\share` on Windows; elsewhere there is no such thing.
fn drive(path: &str) -> (&str, &str) {
    if !cfg!(windows) {
        return ("", path);
    }
    let bytes = path.as_bytes();
    if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return path.split_at(2);
    }
    match path.strip_prefix(r"\\").or_else(|| path.strip_prefix("//")) {
        // A share: everything up to the second separator after the server.
        Some(rest) => {
            let end = rest.match_indices(['/', '\\']).nth(1).map_or(path.len(), |(at, _)| at + 2);
            path.split_at(end)
        }
        None => ("", path),
    }
}

/// Names that Windows takes for something else than a file of that name.
fn windows_name_problem(name: &str) -> Option<&'static str> {
    const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let is_port = (stem.starts_with("com") || stem.starts_with("lpt")) && stem.chars().count() == 4;
    match () {
        () if name.contains(':') => Some("path names an alternate stream; name the file itself"),
        () if DEVICES.contains(&&*stem) || is_port => Some("path names a device, not a file"),
        () if name.ends_with(['.', ' ']) => Some("a name in the path ends with a dot or a space"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_sbx_01_parents_are_refused_in_every_spelling() {
        for path in ["..", "../x", "a/../b", "a/..", "/..", r"..\x", r"a\..\b", "./../x", "a//../b"] {
            assert!(matches!(read(path), Err(PathError::Outside { .. })), "{path}");
        }
        for path in ["...", "..a", "a..", "a/..b/c", ". .", "%2e%2e/x"] {
            assert!(read(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn names_are_taken_apart() {
        let names = |path| read(path).map(|lexical| (lexical.is_absolute, lexical.names.join("|"))).unwrap();
        assert_eq!(names("a//b/./c/"), (false, "a|b|c".into()));
        assert_eq!(names("."), (false, String::new()));
        assert_eq!(names("/"), (true, String::new()));
        assert_eq!(names("/etc/passwd"), (true, "etc|passwd".into()));
    }

    #[test]
    fn what_a_person_could_not_see_is_refused() {
        for c in [
            '\0', '\n', '\u{1b}', '\u{7f}', '\u{85}', '\u{61c}', '\u{200e}', '\u{202e}', '\u{2066}',
            '\u{2069}',
        ] {
            let error = read(&format!("a{c}b")).unwrap_err();
            assert!(error.to_string().contains("invalid control characters"), "{c:?}: {error}");
        }
        assert!(read("grüße/日本/🙂").is_ok());
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(read(&"a/".repeat(2048)).is_ok());
        assert!(read(&"a/".repeat(2049)).unwrap_err().to_string().contains("too long"));
        assert!(read(&"a".repeat(255)).is_ok());
        assert!(read(&"a".repeat(256)).unwrap_err().to_string().contains("too long"));
        assert!(read("  ").unwrap_err().to_string().contains("must not be empty"));
    }

    #[test]
    fn windows_takes_some_names_for_other_things() {
        for name in ["nul", "NUL.txt", "com1", "LPT9.log", "a:b", "file.txt::$DATA", "a.", "a "] {
            assert!(windows_name_problem(name).is_some(), "{name}");
        }
        for name in ["null", "com", "comma", "a.b", ".env"] {
            assert!(windows_name_problem(name).is_none(), "{name}");
        }
    }
}
