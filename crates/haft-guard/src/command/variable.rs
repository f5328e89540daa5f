//! Variables that a call may set for its commands, in the line or beside it: those that change how a program prints,
//! and nothing that it runs.

use super::word::Word;

/// Names of variables that no program takes for a path, a program, code or options of its own.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "CARGO_INCREMENTAL", "CARGO_NET_OFFLINE", "CARGO_TERM_COLOR", "CARGO_TERM_PROGRESS_WHEN", "CARGO_TERM_QUIET",
    "CARGO_TERM_VERBOSE", "CGO_ENABLED", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "DEBUG", "FORCE_COLOR",
    "LINES", "NODE_ENV", "NO_COLOR", "PROPTEST_CASES", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED",
    "RUST_BACKTRACE", "RUST_LIB_BACKTRACE", "RUST_LOG", "RUST_LOG_STYLE", "RUST_TEST_THREADS", "TERM", "TZ",
];

/// Whether setting a variable to this changes nothing about what runs. The value is known and has no `/`: some programs
/// look for files by the name of a terminal, a time zone or a language.
pub(super) fn is_tame(name: &str, value: &Word) -> bool {
    value.exact().is_some_and(|value| is_tame_value(name, value))
}

/// The same for a value that is known, such as one beside the line.
pub(crate) fn is_tame_value(name: &str, value: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_.,:=+@-".contains(letter);
    if !value.chars().all(is_plain) || value.starts_with(':') || value.contains("..") {
        return false;
    }
    NAMES.contains(&name) || (is_language(name) && is_known_encoding(value))
}

fn is_language(name: &str) -> bool {
    let of = name.strip_prefix("LC_").unwrap_or_default();
    name == "LANG" || (!of.is_empty() && of.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Encodings in which a shell reads the rest of the line as it is read here. In others a `\` or a `|` may be the second
/// half of a letter: after `LC_ALL=zh_CN.GBK`, the `\` in `"字\"; rm x; "` no longer guards the quote.
fn is_known_encoding(value: &str) -> bool {
    let encoding = value.split_once('.').map(|(_, encoding)| encoding.to_ascii_lowercase());
    match encoding.as_deref() {
        Some(encoding) => matches!(encoding, "utf-8" | "utf8"),
        None => matches!(value, "" | "C" | "POSIX"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_nothing_about_what_runs() {
        let cases = [
            ("RUST_BACKTRACE", "1", true),
            ("RUST_BACKTRACE", "full", true),
            ("RUST_LOG", "haft=debug,info", true),
            ("RUST_LOG", "/x", false),
            ("NO_COLOR", "", true),
            ("TERM", "xterm-256color", true),
            ("TERM", "../x", false),
            ("TZ", "UTC", true),
            ("TZ", ":x", false),
            ("TZ", "Europe/Berlin", false),
            ("LANG", "C", true),
            ("LANG", "C.UTF-8", true),
            ("LC_ALL", "en_US.utf8", true),
            ("LC_ALL", "POSIX", true),
            ("LC_ALL", "zh_CN.GBK", false),
            ("LC_ALL", "ja_JP", false),
            ("LC_ALL", "ja_JP.SJIS@UTF-8", false),
            ("LC_", "C", false),
            ("LC_all", "C", false),
            ("LANGUAGE", "de", false),
            ("LOCPATH", "x", false),
            ("PATH", "x", false),
            ("path", "x", false),
            ("rust_log", "x", false),
            ("LD_PRELOAD", "x.so", false),
            ("GIT_PAGER", "cat", false),
            ("PAGER", "cat", false),
            ("RUSTC_WRAPPER", "x", false),
            ("RUSTFLAGS", "x", false),
            ("IFS", "x", false),
            ("ENV", "x", false),
            ("BASH_ENV", "x", false),
            ("CDPATH", "x", false),
            ("NODE_OPTIONS", "x", false),
            ("PYTHONPATH", "x", false),
            ("PYTHONSTARTUP", "x", false),
        ];
        for (name, value, expected) in cases {
            assert_eq!(is_tame(name, &Word::Exact(value.to_owned())), expected, "{name}={value}");
        }
        assert!(!is_tame("RUST_LOG", &Word::Any));
    }
}
