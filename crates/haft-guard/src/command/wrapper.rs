//! Programs that run others, and commands that do nothing.

use super::{
    line::Unread,
    option::does_more,
    place,
    program::{is_wrapper, program_name, stem},
    word::Word,
};
use std::borrow::Cow;

/// What a command is, besides itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role<'a> {
    /// A program that a rule must allow.
    Plain,
    /// It touches nothing: `true`, `echo`, `cd src`.
    Harmless,
    /// It runs these words and changes nothing about them: `timeout 60 cargo test`.
    Passes(Cow<'a, [Word]>),
    /// It runs something that is not known, or changes how it runs, or writes a file; what can be seen of it.
    Hides(Unread, Vec<Seen<'a>>),
}

/// What can be seen of a command within another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// These words.
    Words(&'a [Word]),
    /// A line of shell.
    Line(String),
}

/// How the arguments of a program that runs another one are laid out.
struct Layout {
    /// Options that take the next word.
    values: &'static [&'static str],
    /// Options that take none, of those whose command runs as it would by itself.
    flags: &'static [&'static str],
    /// Words between the options and the command.
    before: usize,
    /// Whether the command runs as it would by itself.
    passes: bool,
}

const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "rbash", "sh", "tcsh", "yash", "zsh",
];

/// What a command is.
pub(super) fn role(words: &[Word]) -> Role<'_> {
    let Some(first) = words.first().and_then(Word::exact) else {
        return Role::Hides(Unread::Wrapper, Vec::new());
    };
    let rest = &words[1..];
    // Only the word itself is the shell's own command; `./echo` is a file in the workspace.
    if is_harmless(first, rest) {
        return Role::Harmless;
    }
    let name = program_name(first).to_ascii_lowercase();
    let stem = stem(&name);
    if stem == "find" {
        return find(rest);
    }
    if !is_wrapper(first) {
        return does_more(&name, rest).map_or(Role::Plain, |seen| Role::Hides(Unread::Option, seen));
    }
    let takes_a_line = SHELLS.contains(&stem) || matches!(stem, "su" | "script" | "flock");
    if takes_a_line && let Some(line) = text_of(rest) {
        return Role::Hides(Unread::Wrapper, vec![Seen::Line(line)]);
    }
    if matches!(stem, "eval" | "watch") {
        return Role::Hides(Unread::Wrapper, joined(rest).map(Seen::Line).into_iter().collect());
    }
    let layout = layout(stem);
    match command_of(rest, &layout) {
        Some((command, true)) if first == stem && stem == "xargs" => {
            // What it reads becomes words of the command.
            Role::Passes(command.iter().cloned().chain([Word::Any]).collect())
        }
        Some((command, true)) if first == stem => Role::Passes(Cow::Borrowed(command)),
        Some((command, _)) => Role::Hides(Unread::Wrapper, vec![Seen::Words(command)]),
        None => Role::Hides(Unread::Wrapper, Vec::new()),
    }
}

#[rustfmt::skip]
fn layout(name: &str) -> Layout {
    type Options = &'static [&'static str];
    let (values, flags, before, passes): (Options, Options, usize, bool) = match name {
        "timeout" => (
            &["-s", "--signal", "-k", "--kill-after"],
            &["-f", "--foreground", "-p", "--preserve-status", "-v", "--verbose"], 1, true,
        ),
        "nice" => (&["-n", "--adjustment"], &[], 0, true),
        "xargs" => (
            &["-n", "--max-args", "-P", "--max-procs", "-L", "-s", "--max-chars", "-d", "--delimiter", "-a", "-E", "-I"],
            &["-0", "--null", "-r", "--no-run-if-empty", "-t", "--verbose", "-x", "--exit"], 0, true,
        ),
        "time" => (&["-f", "-o", "--format", "--output"], &[], 0, false),
        "env" => (&["-u", "--unset", "-C", "--chdir", "-S", "--split-string"], &[], 0, false),
        "sudo" => (&["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R"], &[], 0, false),
        "doas" | "runuser" => (&["-u", "-C"], &[], 0, false),
        "ionice" => (&["-c", "-n", "-p"], &[], 0, false),
        "stdbuf" => (&["-i", "-o", "-e"], &[], 0, false),
        "strace" | "ltrace" => (&["-e", "-o", "-p", "-s", "-u", "-E"], &[], 0, false),
        "exec" => (&["-a"], &[], 0, false),
        "chroot" | "chrt" | "taskset" | "flock" | "setarch" | "gosu" | "su-exec" => (&[], &[], 1, false),
        _ => (&[], &[], 0, false),
    };
    Layout { values, flags, before, passes }
}

/// The words of the command behind options, settings of variables and other words, and whether it runs as it would by
/// itself. Options end at `--` and at the first word that is none: what comes then is the program, whatever it is
/// called.
fn command_of<'a>(words: &'a [Word], layout: &Layout) -> Option<(&'a [Word], bool)> {
    let mut rest = words;
    let mut before = layout.before;
    let mut passes = layout.passes;
    let mut has_options = true;
    loop {
        let word = rest.first()?.exact()?;
        let skipped = match word {
            "--" if has_options => {
                has_options = false;
                1
            }
            _ if has_options && word.starts_with('-') && word.len() > 1 => {
                passes &= layout.is_tame(word);
                if layout.takes_next(word) { 2 } else { 1 }
            }
            _ if !layout.passes && is_assignment(word) => 1,
            _ if before > 0 => {
                has_options = false;
                before -= 1;
                1
            }
            _ => return Some((rest, passes)),
        };
        rest = rest.get(skipped..)?;
    }
}

/// Options of `xargs` that put what it reads anywhere, or read from elsewhere.
const PLACES: [&str; 3] = ["-I", "-a", "-E"];

impl Layout {
    /// Whether the value of an option is the next word. Abbreviations of long options count.
    fn takes_next(&self, option: &str) -> bool {
        self.values.contains(&option)
            || (is_long(option) && self.values.iter().any(|long| long.starts_with(option)))
    }

    /// Whether an option is known to change nothing about the command.
    fn is_tame(&self, option: &str) -> bool {
        let (name, value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let glued = || {
            let letter = option.get(..2).unwrap_or(option);
            option.len() > 2 && self.values.contains(&letter) && !PLACES.contains(&letter)
        };
        // `nice -5`, `xargs -0rn1`.
        let digits = || option[1..].bytes().all(|byte| byte.is_ascii_digit()) && self.flags.is_empty();
        match value {
            _ if is_long(name) => {
                let many = self.values.iter().chain(self.flags).filter(|long| long.starts_with(name)).count();
                many == 1 && (value.is_none() || self.takes_next(name))
            }
            _ => {
                !PLACES.contains(&option)
                    && (self.values.contains(&option) || self.flags.contains(&option) || digits() || glued())
            }
        }
    }
}

fn is_long(option: &str) -> bool {
    option.starts_with("--") && option.len() > 2
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The line behind an option with a `c` in it: `sh -c '…'`, `bash -lc '…'`.
fn text_of(words: &[Word]) -> Option<String> {
    let is_option = |word: &Word| {
        word.exact().is_some_and(|word| {
            word == "--command" || (word.starts_with('-') && !word.starts_with("--") && word.contains('c'))
        })
    };
    let place = words.iter().position(is_option)?;
    words.get(place + 1)?.exact().map(str::to_owned)
}

fn joined(words: &[Word]) -> Option<String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::exact).collect();
    texts.map(|texts| texts.join(" "))
}

/// What `find` does with what it found.
fn find(words: &[Word]) -> Role<'_> {
    const RUN: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    const CHANGE: [&str; 6] = ["-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"];
    let may_be = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word.may_be(name)));
    let is_run = |word: &Word| RUN.iter().any(|name| word.may_be(name));
    let runs = words.iter().enumerate().filter(|(_, word)| is_run(word));
    let seen = runs.filter_map(|(place, _)| words.get(place + 1..).filter(|rest| !rest.is_empty()));
    match (may_be(&RUN), may_be(&CHANGE)) {
        (true, _) => Role::Hides(Unread::Wrapper, seen.map(Seen::Words).collect()),
        (false, true) => Role::Hides(Unread::Option, Vec::new()),
        (false, false) => Role::Plain,
    }
}

/// Commands of the shell's own that touch nothing and change nothing for the commands behind them.
fn is_harmless(name: &str, rest: &[Word]) -> bool {
    let exact: Option<Vec<&str>> = rest.iter().map(Word::exact).collect();
    match (name, exact.as_deref()) {
        (":" | "true" | "false" | "echo" | "pwd", _) => true,
        // `printf -v` sets a variable.
        ("printf", Some([format, ..])) => !format.starts_with('-'),
        // `-v` and `-R` take names, in which a shell may find something to run.
        ("test" | "[", _) => !rest.iter().any(|word| word.may_be("-v") || word.may_be("-R")),
        ("sleep", Some([time])) => time.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'),
        ("exit" | "return" | "break" | "continue", _) => rest.len() <= 1,
        ("wait", Some([])) => true,
        ("command", Some(["-v" | "-V", _])) => true,
        ("set", Some(flags)) => !flags.is_empty() && flags.iter().all(|flag| is_tame_flag(flag)),
        // Where it leads is followed by the walk.
        ("cd", Some([folder])) => place::is_named(folder),
        _ => false,
    }
}

fn is_tame_flag(flag: &str) -> bool {
    matches!(flag, "pipefail" | "errexit" | "nounset" | "xtrace")
        || flag.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|byte| matches!(byte, b'e' | b'u' | b'x' | b'o'))
        })
}
