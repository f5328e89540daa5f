//! The forms of names and versions.

const RESERVED: [&str; 4] = ["execute", "run", "call", "invoke"];
/// Characters of a name that a problem shows.
const SHOWN: usize = 80;

/// Whether a tool cannot be called that.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Lower case letters, digits and underscores, with a letter first.
pub(super) fn is_snake_case(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A name in that form that is near to `name`, and not reserved.
pub(super) fn snake_case(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        match c {
            'A'..='Z' => {
                if before.is_ascii_lowercase() || before.is_ascii_digit() {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => out.push(c),
            _ if out.is_empty() || out.ends_with('_') => {}
            _ => out.push('_'),
        }
        before = c;
        if out.len() > SHOWN {
            break;
        }
    }
    let start = out.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    let cut: String = start.chars().take(super::NAME_CHARACTERS).collect();
    match cut.trim_end_matches('_') {
        "" => "my_name".to_owned(),
        reserved if is_reserved(reserved) => format!("{reserved}_report"),
        name => name.to_owned(),
    }
}

/// A name as a problem shows it: its start, with control characters spelled out.
pub(super) fn shown_name(name: &str) -> String {
    let mut shown = String::new();
    for (index, c) in name.chars().enumerate() {
        if index == SHOWN {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Whether it is a version as <https://semver.org> has it.
pub(super) fn is_semver(version: &str) -> bool {
    let (version, build) = version.split_once('+').map_or((version, None), |(v, b)| (v, Some(b)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(v, p)| (v, Some(p)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str| digits(text) && (text == "0" || !text.starts_with('0'));
    let label = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| number(part))
        && pre.is_none_or(|pre| pre.split('.').all(|part| label(part) && (!digits(part) || number(part))))
        && build.is_none_or(|build| build.split('.').all(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_semver_2() {
        for version in
            ["0.0.0", "1.2.3", "1.0.0-alpha.1", "1.0.0-0", "1.0.0-x-y", "1.0.0+build.007", "1.0.0-a+b"]
        {
            assert!(is_semver(version), "{version}");
        }
        for version in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "v1.0.0",
            "01.0.0",
            "1.0.0-",
            "1.0.0-01",
            "1.0.0-a..b",
            "1.0.0+",
            "1.0.x",
        ] {
            assert!(!is_semver(version), "{version}");
        }
    }

    #[test]
    fn examples_are_names_themselves() {
        for (name, example) in [
            ("Run Me", "run_me"),
            ("readFile", "read_file"),
            ("HTTPGet2Url", "httpget2_url"),
            ("9lives", "lives"),
            ("_private", "private"),
            ("Run", "run_report"),
            ("日本", "my_name"),
            ("a--b", "a_b"),
        ] {
            assert_eq!(snake_case(name), example);
            assert!(is_snake_case(example) && !is_reserved(example));
        }
        assert_eq!(snake_case(&"Ab".repeat(5000)).len(), 64);
    }

    #[test]
    fn names_are_shown_on_one_short_line() {
        assert_eq!(shown_name("a\nb\u{1b}c"), "a\\nb\\u{1b}c");
        assert_eq!(shown_name(&"x".repeat(5000)).chars().count(), 81);
    }
}
