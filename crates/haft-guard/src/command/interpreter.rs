//! Programs that run a file of code, or text that they are given: Python, Node, Ruby and others.
//!
//! What they run must be in a file that the line names. So everything before that file must be known: an option that
//! is not in the lists here may run text, or take the next word, so that the file is another one or the input. The
//! lists are of what is allowed; whatever else there is asks.

use super::{module, word::Word};

/// Whether the value of an option is one that neither runs nor loads anything.
type Tame = fn(&str) -> bool;

/// The options of an interpreter that are known to run nothing and to load nothing.
#[derive(Default)]
struct Options {
    /// Letters that take nothing.
    flags: &'static str,
    /// Whether such letters may stand in a row: `-Bu`.
    rows: bool,
    /// Letters with a value: the rest of the word, or the next word.
    values: &'static [(char, Tame)],
    /// Long options that take nothing, and words that begin with one dash and are taken as a whole.
    longs: &'static [&'static str],
    /// Long options with a value, behind `=` or in the next word.
    long_values: &'static [(&'static str, Tame)],
    /// Long options with a value behind `=`, to which the next word is none.
    joined_values: &'static [(&'static str, Tame)],
    /// Options that, alone, make the program say something about itself and end.
    tells: &'static [&'static str],
    /// Words in the place of the file that are none.
    commands: &'static [&'static str],
    /// Whether `_` is `-` in the name of a long option.
    has_underscores: bool,
    /// Whether `-m` names what is run.
    has_modules: bool,
}

/// What an interpreter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs<'a> {
    /// Nothing: it says its version.
    Nothing,
    /// This file, with these arguments.
    File(&'a str, &'a [Word]),
    /// This module, with these arguments.
    Module(&'a str, &'a [Word]),
    /// Text, its input, or something that is not known.
    Unknown,
}

/// What stands behind an option.
enum Behind<'a> {
    /// These words, of which the first is an option or the file.
    Words(&'a [Word]),
    /// A module and its arguments.
    Module(&'a str, &'a [Word]),
}

/// Whether an interpreter of this name, with these arguments, runs nothing but a file that they name; `None` where
/// this is no interpreter.
pub(super) fn runs_a_file(stem: &str, words: &[Word]) -> Option<bool> {
    let options = options(stem)?;
    Some(match runs(words, &options) {
        Runs::Nothing => true,
        Runs::File(file, rest) => {
            let is_test = words.iter().any(|word| word.exact() == Some("--test"));
            is_file(file)
                && !options.commands.contains(&file)
                // The test runner of Node runs all of them.
                && (!is_test || rest.iter().all(|word| word.exact().is_some_and(is_file)))
        }
        Runs::Module(module, rest) => module::is_tame(module, rest),
        Runs::Unknown => false,
    })
}

/// Whether a program, by its name without the version, is one whose work is said by the file that it runs.
pub(crate) fn is_interpreter(stem: &str) -> bool {
    options(stem).is_some()
}

/// The file that an interpreter runs, where one is named.
pub(super) fn file_of<'a>(stem: &str, words: &'a [Word]) -> Option<&'a str> {
    match runs(words, &options(stem)?) {
        Runs::File(file, _) => Some(file),
        Runs::Nothing | Runs::Module(..) | Runs::Unknown => None,
    }
}

fn runs<'a>(words: &'a [Word], options: &Options) -> Runs<'a> {
    if let [only] = words
        && only.exact().is_some_and(|only| options.tells.contains(&only))
    {
        return Runs::Nothing;
    }
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = match word.exact() {
            Some(text) if text.starts_with('-') => match options.behind(text, behind) {
                Some(Behind::Words(words)) => words,
                Some(Behind::Module(module, words)) => return Runs::Module(module, words),
                None => return Runs::Unknown,
            },
            Some(file) => return Runs::File(file, behind),
            None => return Runs::Unknown,
        };
    }
    // Without a file it runs its input.
    Runs::Unknown
}

impl Options {
    /// What stands behind an option and its value; `None` where it is not known.
    fn behind<'a>(&self, option: &'a str, rest: &'a [Word]) -> Option<Behind<'a>> {
        if self.longs.contains(&option) {
            return Some(Behind::Words(rest));
        }
        if option.starts_with("--") {
            return self.behind_long(option, rest).map(Behind::Words);
        }
        let letters = option.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        for (at, letter) in letters.char_indices() {
            let glued = &letters[at + letter.len_utf8()..];
            if letter == 'm' && self.has_modules {
                return match glued {
                    "" => next(rest).map(|(module, rest)| Behind::Module(module, rest)),
                    module => Some(Behind::Module(module, rest)),
                };
            }
            if let Some((_, tame)) = self.values.iter().find(|(value, _)| *value == letter) {
                let (value, rest) = if glued.is_empty() { next(rest)? } else { (glued, rest) };
                return tame(value).then_some(Behind::Words(rest));
            }
            if !self.flags.contains(letter) || (at > 0 && !self.rows) {
                return None;
            }
        }
        Some(Behind::Words(rest))
    }

    fn behind_long<'a>(&self, option: &'a str, rest: &'a [Word]) -> Option<&'a [Word]> {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = if self.has_underscores { name.replace('_', "-") } else { name.to_owned() };
        let tame = |list: &[(&str, Tame)]| list.iter().find(|(long, _)| *long == name).map(|(_, tame)| *tame);
        match value {
            None if self.longs.contains(&name.as_str()) => Some(rest),
            None => {
                let tame = tame(self.long_values)?;
                let (value, rest) = next(rest)?;
                tame(value).then_some(rest)
            }
            Some(value) => {
                let tame = tame(self.long_values).or_else(|| tame(self.joined_values))?;
                tame(value).then_some(rest)
            }
        }
    }
}

fn next(words: &[Word]) -> Option<(&str, &[Word])> {
    let (first, rest) = words.split_first()?;
    first.exact().map(|first| (first, rest))
}

/// Whether a word names a file, and not the input or an address by another spelling.
pub(super) fn is_file(path: &str) -> bool {
    // `php://stdin`, `data:…`; on Windows a drive has one.
    let is_drive = path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path[1..].starts_with(':');
    let body = if is_drive { &path[2..] } else { path };
    !body.is_empty() && !body.contains(':') && !may_be_input(path)
}

/// Whether a path may lead to what the program is fed: below `/dev` or `/proc`, however it gets there. Where a path
/// that goes up ends is not known, as some of its names may be links.
pub(super) fn may_be_input(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let is_system = |name: &&str| ["dev", "proc"].iter().any(|system| name.eq_ignore_ascii_case(system));
    let goes_up = |names: &[&str]| names.iter().position(|name| *name == "..");
    let is_named = match &names[..] {
        [.., last] if last.eq_ignore_ascii_case("stdin") => true,
        [.., folder, last] => {
            folder.eq_ignore_ascii_case("fd") && last.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    };
    is_named
        || if path.starts_with('/') {
            names.first().is_some_and(is_system) || goes_up(&names).is_some()
        } else {
            goes_up(&names).is_some_and(|at| names[at..].iter().any(is_system))
        }
}

/// A value that is a name or a number: no path, no address, no option.
fn is_plain(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=' | b',');
    !value.is_empty() && !value.starts_with('-') && value.bytes().all(is_plain)
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// `ignore`, `error::DeprecationWarning`. With a dot in it, Python imports the module before that.
fn is_warning(value: &str) -> bool {
    const ACTIONS: [&str; 7] = ["all", "always", "default", "error", "ignore", "module", "once"];
    let action = value.split(':').next().unwrap_or(value);
    ACTIONS.contains(&action)
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_".contains(&byte))
}

/// What `-X` of Python switches. Others name files, or modules that are loaded.
fn is_switch(value: &str) -> bool {
    const NAMES: [&str; 12] = [
        "context_aware_warnings",
        "cpu_count",
        "dev",
        "faulthandler",
        "frozen_modules",
        "gil",
        "importtime",
        "int_max_str_digits",
        "no_debug_ranges",
        "tracemalloc",
        "utf8",
        "warn_default_encoding",
    ];
    let (name, value) = value.split_once('=').unwrap_or((value, "1"));
    NAMES.contains(&name) && (is_number(value) || matches!(value, "on" | "off"))
}

/// Reporters that are a part of Node. Any other is a module that is loaded.
fn is_reporter(value: &str) -> bool {
    matches!(value, "dot" | "junit" | "lcov" | "spec" | "tap")
}

fn is_stream(value: &str) -> bool {
    matches!(value, "stdout" | "stderr")
}

const VERSION: &[&str] = &["--version", "--help"];

#[rustfmt::skip]
fn options(stem: &str) -> Option<Options> {
    Some(match stem {
        "python" | "pythonw" | "pypy" => Options {
            flags: "BbdEIOPqsSuvx",
            rows: true,
            values: &[('W', is_warning), ('X', is_switch)],
            tells: &["--version", "-V", "-VV", "--help", "-h", "-?"],
            has_modules: true,
            ..Options::default()
        },
        "node" | "nodejs" => Options {
            flags: "c",
            values: &[('C', is_plain)],
            longs: &[
                "--check", "--enable-source-maps", "--experimental-detect-module", "--experimental-import-meta-resolve",
                "--experimental-permission", "--experimental-require-module", "--experimental-sqlite",
                "--experimental-strip-types", "--experimental-test-coverage", "--experimental-test-module-mocks",
                "--experimental-transform-types", "--experimental-vm-modules", "--experimental-wasm-modules",
                "--experimental-websocket", "--expose-gc", "--frozen-intrinsics", "--harmony", "--jitless",
                "--no-addons", "--no-deprecation", "--no-experimental-fetch", "--no-experimental-require-module",
                "--no-experimental-strip-types", "--no-warnings", "--pending-deprecation", "--permission",
                "--preserve-symlinks", "--preserve-symlinks-main", "--test", "--test-force-exit", "--test-only",
                "--throw-deprecation", "--trace-deprecation", "--trace-exit", "--trace-sigint", "--trace-uncaught",
                "--trace-warnings", "--use-strict", "--use-system-ca", "--watch",
            ],
            long_values: &[
                ("--conditions", is_plain), ("--disable-proto", is_plain), ("--disable-warning", is_plain),
                ("--dns-result-order", is_plain), ("--experimental-default-type", is_plain),
                ("--max-http-header-size", is_number), ("--test-concurrency", is_number),
                ("--test-name-pattern", is_plain), ("--test-reporter", is_reporter),
                ("--test-reporter-destination", is_stream), ("--test-timeout", is_number), ("--title", is_plain),
                ("--unhandled-rejections", is_plain),
            ],
            // These are V8's: Node takes the next word for the file.
            joined_values: &[
                ("--max-old-space-size", is_number), ("--max-semi-space-size", is_number), ("--stack-size", is_number),
                ("--stack-trace-limit", is_number),
            ],
            tells: &["--version", "-v", "--help", "-h"],
            // A debugger, which takes commands from its input.
            commands: &["debug", "inspect"],
            has_underscores: true,
            ..Options::default()
        },
        "ruby" => Options {
            flags: "cUvw",
            rows: true,
            values: &[('E', is_plain)],
            longs: &[
                "-W", "-W0", "-W1", "-W2", "-W:no-deprecated", "-W:no-experimental", "-W:no-performance",
                "--disable-gems", "--disable=gems", "--yjit", "--jit", "--verbose",
            ],
            tells: &["--version", "-v", "--help", "-h", "--copyright"],
            ..Options::default()
        },
        "php" => Options {
            flags: "CHlnqsw",
            rows: true,
            longs: &["--no-php-ini", "--syntax-check"],
            tells: &["--version", "-v", "--help", "-h", "--info", "-i", "--modules", "-m", "--ini"],
            ..Options::default()
        },
        "lua" | "luajit" | "luau" => Options { longs: &["-E", "-W"], tells: &["-v"], ..Options::default() },
        // Of these no option is known.
        "bpython" | "elixir" | "esno" | "gjs" | "groovy" | "guile" | "ipython" | "jruby" | "julia" | "jython"
        | "micropython" | "osascript" | "py" | "qjs" | "racket" | "raku" | "rscript" | "tclsh" | "ts-node" | "tsx"
        | "wish" => Options {
            tells: VERSION,
            commands: &["history", "kernel", "profile", "repl", "watch"],
            ..Options::default()
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_known_by_every_spelling() {
        for path in [
            "/dev/stdin",
            "//dev/stdin",
            "/./dev/stdin",
            "/.//dev/./stdin",
            "/DEV/stdin",
            "/dev/fd/0",
            "/proc/self/fd/0",
            "/usr/../dev/stdin",
            "../../dev/stdin",
            "a/../../dev/tty",
            "./../dev/x",
            "link/../dev/x",
            "/host/dev/stdin",
            "fd/0",
        ] {
            assert!(may_be_input(path), "{path}");
        }
        for path in [
            "x.py",
            "./x.py",
            "dev/x.py",
            "proc/x.py",
            "/home/u/dev/x.py",
            "/opt/x.py",
            "../x.py",
            "sub/../x.py",
            "fd/x.py",
        ] {
            assert!(!may_be_input(path), "{path}");
            assert!(is_file(path), "{path}");
        }
        for path in ["", "php://stdin", "data:text/javascript,1", "file:///x", "http://a/b"] {
            assert!(!is_file(path), "{path}");
        }
        assert!(is_file("C:x.py"));
    }
}
