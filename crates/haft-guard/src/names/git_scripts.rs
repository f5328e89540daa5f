//! Files that a command hands to an interpreter: `sh clean` runs the file `clean`, and nothing about its name says so.

/// Shells: what follows `-c` is text.
const SHELLS: &[&str] = &[
    "sh",
    "ash",
    "bash",
    "dash",
    "fish",
    "ksh",
    "mksh",
    "zsh",
    "busybox",
    "pwsh",
    "powershell",
    "source",
    ".",
];
/// Other interpreters, with the letters of options that are followed by text.
const INTERPRETERS: &[(&str, &str)] = &[
    ("python", "cm"),
    ("pypy", "cm"),
    ("perl", "eE"),
    ("ruby", "e"),
    ("node", "ep"),
    ("nodejs", "ep"),
    ("bun", "e"),
    ("deno", ""),
    ("tsx", "e"),
    ("ts-node", "e"),
    ("php", "r"),
    ("lua", "e"),
    ("luajit", "e"),
    ("julia", "eE"),
    ("Rscript", "e"),
    ("tclsh", ""),
    ("osascript", "e"),
];
/// Programs that run what is in the file that `-f` names.
const BY_OPTION: &[&str] = &["awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake"];

/// What a program of a command does with the words behind it.
#[derive(Clone, Copy)]
enum Runs {
    /// Its first word is a file that it runs; options with these letters are followed by text instead.
    File { code: &'static str, may_be_value: bool },
    /// The word behind `-f` is.
    ByOption { is_next: bool },
    /// None, or none any more.
    Nothing,
}

/// The words of a command that an interpreter would take for a file to run. Where a word may be the value of an option,
/// it and the next one are.
pub(super) fn scripts(value: &str, into: &mut Vec<String>) {
    for command in value.split([';', '&', '|', '(', ')', '{', '}', '`', '\n']) {
        let mut runs = Runs::Nothing;
        let is_between = |letter: char| letter.is_whitespace() || "\"'<!\\".contains(letter);
        for word in command.split(is_between).filter(|word| !word.is_empty()) {
            if let Some(started) = started_by(word) {
                runs = started;
                continue;
            }
            let is_script;
            (is_script, runs) = next(runs, word);
            if is_script && !into.iter().any(|known| known == word) {
                into.push(word.to_owned());
            }
        }
    }
}

/// What a word starts, where it is a program that runs files.
fn started_by(word: &str) -> Option<Runs> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if BY_OPTION.contains(&name) {
        return Some(Runs::ByOption { is_next: false });
    }
    if SHELLS.contains(&name) || SHELLS.contains(&plain) {
        return Some(Runs::File { code: "c", may_be_value: false });
    }
    let found = INTERPRETERS.iter().find(|(known, _)| *known == name || *known == plain);
    found.map(|(_, code)| Runs::File { code, may_be_value: false })
}

/// Whether a word is a file that is run, and how it goes on behind it.
fn next(runs: Runs, word: &str) -> (bool, Runs) {
    match runs {
        Runs::Nothing => (false, runs),
        Runs::ByOption { is_next: true } => (true, Runs::ByOption { is_next: false }),
        Runs::ByOption { .. } => {
            (false, Runs::ByOption { is_next: matches!(word, "-f" | "--file" | "--makefile") })
        }
        Runs::File { code, may_be_value } => match word.strip_prefix('-') {
            Some(long) if long.starts_with('-') => {
                let is_code = matches!(long, "-eval" | "-print" | "-command" | "-module");
                (false, if is_code { Runs::Nothing } else { Runs::File { code, may_be_value: true } })
            }
            Some(letters) if letters.ends_with(|letter| code.contains(letter)) => (false, Runs::Nothing),
            Some(_) => (false, Runs::File { code, may_be_value: true }),
            // A subcommand: `deno run x`.
            None if word == "run" => (false, runs),
            None if may_be_value => (true, Runs::File { code, may_be_value: false }),
            None => (true, Runs::Nothing),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_an_interpreter_runs_is_found_without_path_and_ending() {
        let cases: &[(&str, &[&str])] = &[
            ("sh clean", &["clean"]),
            ("sh clean %f", &["clean"]),
            ("/usr/bin/env bash clean", &["clean"]),
            ("/bin/sh -e clean", &["clean"]),
            ("sh -eu clean", &["clean"]),
            ("bash -o pipefail clean", &["pipefail", "clean"]),
            ("bash --norc clean x", &["clean", "x"]),
            ("'sh' \"clean\"", &["clean"]),
            ("!sh clean", &["clean"]),
            ("! bash clean", &["clean"]),
            ("cat %f | sh clean", &["clean"]),
            ("true;sh clean;false", &["clean"]),
            ("sh < clean", &["clean"]),
            ("sh <clean", &["clean"]),
            ("f() { . clean; }; f", &["clean"]),
            ("source clean", &["clean"]),
            ("busybox sh clean", &["clean"]),
            ("python3 clean", &["clean"]),
            ("python3.12 -u clean", &["clean"]),
            ("python -X dev clean", &["dev", "clean"]),
            ("perl -w clean", &["clean"]),
            ("node clean", &["clean"]),
            ("deno run clean", &["clean"]),
            ("ruby clean", &["clean"]),
            ("env X=1 php clean", &["clean"]),
            ("awk -f clean", &["clean"]),
            ("make -f clean all", &["clean"]),
            ("sh -c 'bash clean'", &["clean"]),
            ("exec sh tools/clean.sh", &["tools/clean.sh"]),
            // Text, other programs, and nothing at all.
            ("sh -c 'make clean'", &[]),
            ("bash -lc clean", &[]),
            ("python3 -c clean", &[]),
            ("python3 -m clean", &[]),
            ("perl -pe s/a/b/", &[]),
            ("node --eval clean", &[]),
            ("awk clean", &[]),
            ("make clean", &[]),
            ("git-lfs clean -- %f", &[]),
            ("less", &[]),
            ("sh", &[]),
            ("", &[]),
        ];
        for (value, expected) in cases {
            let mut found = Vec::new();
            scripts(value, &mut found);
            assert_eq!(found, *expected, "{value}");
        }
    }
}
