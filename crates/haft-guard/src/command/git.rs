//! Git: its commands, and which of their options run another program or write a file.

use super::{
    option::{Risky, line_of},
    word::Word,
    wrapper::Seen,
};

/// Commands of git that are known: what of their options runs or writes is below. Any other may be there to run
/// something (`for-each-repo`, `filter-branch`), to write files wherever it is told to, or be another name for
/// something.
#[rustfmt::skip]
const GIT_KNOWN: &[&str] = &[
    "apply", "archive", "bisect", "blame", "bundle", "check-attr", "check-ignore", "check-mailmap", "check-ref-format",
    "checkout-index", "cherry", "cherry-pick", "clone", "column", "commit-tree", "config", "count-objects", "diff",
    "diff-files", "diff-index", "diff-tree", "fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "help",
    "init", "log", "ls-remote", "ls-tree", "merge-base", "merge-tree", "mktag", "mktree", "name-rev", "notes", "patch-id", "prune",
    "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "rev-list", "revert", "shortlog", "show", "show-branch",
    "show-index", "show-ref", "sparse-checkout", "stage", "stash", "stripspace", "submodule", "symbolic-ref", "update-index",
    "update-ref", "var", "verify-commit", "verify-pack", "verify-tag", "version", "whatchanged", "worktree", "write-tree",
];

/// Commands of git of which no option runs or writes, so that a word that only the shell knows may stand there.
#[rustfmt::skip]
const GIT_TAME: &[&str] = &[
    "add", "branch", "cat-file", "checkout", "clean", "commit", "describe", "ls-files", "merge", "mv",
    "remote", "reset", "restore", "rev-parse", "rm", "status", "switch", "tag",
];

/// Options of git before its command that run nothing, and take nothing.
#[rustfmt::skip]
const GIT_GLOBAL: &[&str] = &[
    "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs",
    "--icase-pathspecs", "--no-replace-objects", "--no-lazy-fetch", "--no-advice", "--version", "-v", "--help", "-h",
    "--html-path", "--man-path", "--info-path",
];

/// What can be seen of what git runs besides itself, where it runs something or writes a file.
pub(super) fn git(words: &[Word]) -> Option<Vec<Seen<'_>>> {
    let mut rest = words;
    loop {
        let first = rest.first()?;
        // A variable here may be any of its options.
        let Some(word) = first.exact() else { return Some(settings(rest)) };
        let value = rest.get(1).and_then(Word::exact);
        let skipped = match word {
            "-c" if value.is_some_and(is_tame_setting) => 2,
            "-C" if value.is_some() => 2,
            _ if GIT_GLOBAL.contains(&word) => 1,
            // What an option takes that is not known here is not known either.
            _ if word.starts_with('-') => return Some(settings(rest)),
            _ => return git_command(word, &rest[1..]),
        };
        rest = rest.get(skipped..)?;
    }
}

/// What the settings among some words would run.
pub(super) fn settings(words: &[Word]) -> Vec<Seen<'_>> {
    let values = words.iter().filter_map(Word::exact).filter_map(|word| word.split_once('='));
    values.map(|(_, value)| line_of(value)).collect()
}

fn git_command<'a>(name: &str, rest: &'a [Word]) -> Option<Vec<Seen<'a>>> {
    if !GIT_KNOWN.contains(&name) && !GIT_TAME.contains(&name) {
        return Some(settings(rest));
    }
    let has = |text: &str| rest.iter().position(|word| word.may_be(text));
    match name {
        "bisect" => {
            if let Some(place) = has("run") {
                let runs = rest.get(place + 1..).filter(|run| !run.is_empty());
                return Some(runs.map(Seen::Words).into_iter().collect());
            }
            if has("visualize").or_else(|| has("view")).is_some() {
                return Some(Vec::new());
            }
        }
        "submodule" => {
            if let Some(place) = has("foreach") {
                let words: Vec<&str> = rest[place + 1..].iter().filter_map(Word::exact).collect();
                let words: Vec<&str> = words.into_iter().skip_while(|word| word.starts_with('-')).collect();
                return Some(vec![Seen::Line(words.join(" "))]);
            }
        }
        "config" if !reads_config(rest) => {
            // The value is the last word, as a rule: `git config alias.x '!rm x'`.
            return Some(rest.last().and_then(Word::exact).map(line_of).into_iter().collect());
        }
        // Without it, every commit becomes a file.
        "format-patch" if !has_flag(rest, "--stdout") => return Some(Vec::new()),
        "bundle" if !matches!(rest.first().and_then(Word::exact), Some("verify" | "list-heads")) => {
            return Some(Vec::new());
        }
        _ => {}
    }
    let (runs, writes, takes) = match name {
        "archive" | "format-patch" => ("", "o", ""),
        // It opens a browser.
        "help" => ("", "w", ""),
        "grep" => ("O", "", "efABCm"),
        "rebase" => ("x", "", "sX"),
        "clone" => ("u", "c", "boj"),
        "ls-remote" => ("u", "", ""),
        _ => ("", "", ""),
    };
    let risky = Risky {
        runs,
        writes,
        takes,
        run: &[
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--open-files-in-pager",
            "--ext-diff",
            "--extcmd",
        ],
        write: match name {
            "clone" | "init" => &["--config", "--template", "--separate-git-dir"],
            "checkout-index" => &["--prefix"],
            "help" => &["--web"],
            _ => &[
                "--output",
                "--output-directory",
                "--export-marks",
                "--index-output",
                "--in-place",
                "--unsafe-paths",
                "--build-fake-ancestor",
            ],
        },
        goes_on: false,
    };
    risky.find(rest, !GIT_TAME.contains(&name))
}

/// Whether an option stands where it is one: before `--`, and not as the value of another option.
fn has_flag(words: &[Word], flag: &str) -> bool {
    let options = words.iter().take_while(|word| !word.may_be("--"));
    let takes_nothing = |before: &Word| {
        before.exact().is_some_and(|before| {
            !before.starts_with('-')
                || before.contains('=')
                || before[1..].bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    options.enumerate().any(|(place, word)| {
        let before = place.checked_sub(1).and_then(|before| words.get(before));
        word.exact() == Some(flag) && before.is_none_or(takes_nothing)
    })
}

/// Whether `git config` only shows something.
fn reads_config(words: &[Word]) -> bool {
    const READS: [&str; 14] = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--list",
        "-l",
        "--show-origin",
        "--show-scope",
        "--name-only",
        "-z",
        "--null",
        "--local",
        "--global",
        "--system",
    ];
    let Some(words) = words.iter().map(Word::exact).collect::<Option<Vec<&str>>>() else { return false };
    let is_asked = words.iter().any(|word| word.starts_with("--get") || matches!(*word, "--list" | "-l"));
    let (options, names): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with('-'));
    options.iter().all(|option| READS.contains(option))
        && match names.first() {
            Some(&"list") => names.len() == 1,
            Some(&"get") => names.len() == 2,
            _ => is_asked || names.len() == 1,
        }
}

/// Settings of git that run nothing.
fn is_tame_setting(setting: &str) -> bool {
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
