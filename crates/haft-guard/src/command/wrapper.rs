//! Programs that run others, and commands that do nothing.

use super::{
    program::{is_wrapper, program_name},
    word::Word,
};

/// What a command is, besides itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role<'a> {
    /// A program that a rule must allow.
    Plain,
    /// It touches nothing: `true`, `echo`, `cd src`.
    Harmless,
    /// It runs these words and changes nothing about them: `timeout 60 cargo test`.
    Passes(&'a [Word]),
    /// It runs something that is not known, or changes how it runs; what can be seen of it.
    Hides(Seen<'a>),
}

/// What can be seen of a command within another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// Nothing.
    Nothing,
    /// These words.
    Words(&'a [Word]),
    /// A line of shell.
    Line(String),
}

/// How the arguments of a program that runs another one are laid out.
struct Layout {
    /// Options that take the next word.
    values: &'static [&'static str],
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
    let Some(first) = words.first().and_then(Word::exact) else { return Role::Hides(Seen::Nothing) };
    let rest = &words[1..];
    // Only the word itself is the shell's own command; `./echo` is a file in the workspace.
    if is_harmless(first, rest) {
        return Role::Harmless;
    }
    let name = program_name(first).to_ascii_lowercase();
    if name == "git" {
        return if git_runs_another(rest) { Role::Hides(Seen::Nothing) } else { Role::Plain };
    }
    if name == "find" {
        return find(rest);
    }
    if !is_wrapper(first) {
        return Role::Plain;
    }
    let takes_a_line = SHELLS.contains(&name.as_str()) || matches!(name.as_str(), "su" | "script" | "flock");
    if takes_a_line && let Some(line) = text_of(rest) {
        return Role::Hides(Seen::Line(line));
    }
    if matches!(name.as_str(), "eval" | "watch") {
        return Role::Hides(joined(rest).map_or(Seen::Nothing, Seen::Line));
    }
    let layout = layout(&name);
    match command_of(rest, &layout) {
        Some(command) if layout.passes && first == name => Role::Passes(command),
        Some(command) => Role::Hides(Seen::Words(command)),
        None => Role::Hides(Seen::Nothing),
    }
}

fn layout(name: &str) -> Layout {
    let (values, before, passes): (&'static [&'static str], usize, bool) = match name {
        "timeout" => (&["-s", "--signal", "-k", "--kill-after"], 1, true),
        "nice" => (&["-n", "--adjustment"], 0, true),
        "time" => (&["-f", "-o", "--format", "--output"], 0, false),
        "env" => (&["-u", "--unset", "-C", "--chdir", "-S", "--split-string"], 0, false),
        "sudo" => (&["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R"], 0, false),
        "doas" | "runuser" => (&["-u", "-C"], 0, false),
        "xargs" => (&["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"], 0, false),
        "ionice" => (&["-c", "-n", "-p"], 0, false),
        "stdbuf" => (&["-i", "-o", "-e"], 0, false),
        "strace" | "ltrace" => (&["-e", "-o", "-p", "-s", "-u", "-E"], 0, false),
        "exec" => (&["-a"], 0, false),
        "chroot" | "chrt" | "taskset" | "flock" | "setarch" | "gosu" | "su-exec" => (&[], 1, false),
        _ => (&[], 0, false),
    };
    Layout { values, before, passes }
}

/// The words of the command behind options, settings of variables and other words.
fn command_of<'a>(words: &'a [Word], layout: &Layout) -> Option<&'a [Word]> {
    let mut rest = words;
    let mut before = layout.before;
    loop {
        let word = rest.first()?.exact()?;
        let skipped = match word {
            "--" => 1,
            _ if layout.values.contains(&word) => 2,
            _ if word.starts_with('-') && word.len() > 1 => 1,
            _ if !layout.passes && is_assignment(word) => 1,
            _ if before > 0 => {
                before -= 1;
                1
            }
            _ => return Some(rest),
        };
        rest = rest.get(skipped..)?;
    }
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
    let may_be = |names: &[&str]| words.iter().position(|word| names.iter().any(|name| word.may_be(name)));
    match (may_be(&RUN), may_be(&CHANGE)) {
        (Some(place), _) => {
            let runs = words.get(place + 1..).filter(|rest| !rest.is_empty());
            Role::Hides(runs.map_or(Seen::Nothing, Seen::Words))
        }
        (None, Some(_)) => Role::Hides(Seen::Nothing),
        (None, None) => Role::Plain,
    }
}

/// Whether git is told by its own options where its programs are, or what they are.
fn git_runs_another(words: &[Word]) -> bool {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        // A variable here may be any of its options.
        let Some(word) = word.exact() else { return true };
        match word {
            "-c" => match rest.next().and_then(Word::exact) {
                Some(setting) if is_tame(setting) => {}
                _ => return true,
            },
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => drop(rest.next()),
            _ if word.starts_with("--exec-path") || word.starts_with("--config-env") => return true,
            _ if word.starts_with("-c") && !word.starts_with("--") => return true,
            _ if word.starts_with('-') => {}
            _ => return false,
        }
    }
    false
}

/// Settings of git that run nothing.
fn is_tame(setting: &str) -> bool {
    const KEYS: [&str; 8] = [
        "core.abbrev",
        "core.quotepath",
        "core.pager=cat",
        "diff.context",
        "user.name",
        "user.email",
        "commit.gpgsign=false",
        "init.defaultbranch",
    ];
    let setting = setting.to_ascii_lowercase();
    let (key, _) = setting.split_once('=').unwrap_or((&setting, ""));
    key.starts_with("color.")
        || key.starts_with("advice.")
        || KEYS.contains(&key)
        || KEYS.contains(&&*setting)
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
        ("cd", Some([folder])) => leads_down(folder),
        _ => false,
    }
}

fn is_tame_flag(flag: &str) -> bool {
    matches!(flag, "pipefail" | "errexit" | "nounset" | "xtrace")
        || flag.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|byte| matches!(byte, b'e' | b'u' | b'x' | b'o'))
        })
}

/// Whether a folder is below the one that the command starts in, as far as its name says.
fn leads_down(folder: &str) -> bool {
    !folder.is_empty() && !folder.starts_with(['/', '-', '~']) && !folder.split('/').any(|part| part == "..")
}
