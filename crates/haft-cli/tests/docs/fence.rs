//! The fenced examples of a page. The first word after the three backquotes is the kind, what follows says more:
//!
//! | kind | is |
//! |---|---|
//! | `sh` | commands; each succeeds, unless a comment ends its line with `exit 5` or the like |
//! | `console` | commands after `$ `, each with its output below it; where none is shown, none is compared |
//! | `toml` | a configuration, which the program reads; with `file=`, whatever the name says |
//! | `json` | JSON; with `schema=NAME`, every line or the whole fits that schema of `docs/openapi.json` |
//! | `python` | parsed |
//! | `rust` | is in a test or an example of `crates/haft`, which the compiler sees, up to white space |
//! | `text`, `lp1`, `envelope`, `diff` | needs one of the words below |
//!
//! `file=NAME` writes the text there first. `run-by=TEST` names the test elsewhere that runs the example. `needs=jail`
//! and `needs=curl` end the page as not run where the machine has none. `no-run=REASON` says why nothing runs the
//! example: there are at most [`MAY_NOT_RUN`] of those.

use libtest_mimic::{Failed, Trial};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// So many examples are not run by any test. It is there to be lowered.
const MAY_NOT_RUN: usize = 4;

const KINDS: &[&str] =
    &["console", "diff", "envelope", "json", "lp1", "python", "rust", "sh", "text", "toml"];
const WORDS: &[&str] = &["file", "needs", "no-run", "run-by", "schema"];

/// One fenced example.
pub struct Fence {
    /// The line of its beginning, counted from 1.
    pub line: usize,
    pub kind: String,
    words: Vec<(String, String)>,
    pub text: String,
}

impl Fence {
    pub fn word(&self, name: &str) -> Option<&str> {
        self.words.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and every page of `docs/`.
pub fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(root().join("docs"))
        .expect("docs/")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The fences of a page, or what is wrong with one of them.
pub fn fences(page: &str) -> Result<Vec<Fence>, String> {
    let mut fences = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let at = |problem: &str| format!("line {}: {problem}", index + 1);
        let mut text = String::new();
        loop {
            let (_, line) = lines.next().ok_or_else(|| at("the fence has no end"))?;
            if line.trim() == "```" {
                break;
            }
            text.push_str(line.get(indent..).unwrap_or_default());
            text.push('\n');
        }
        fences.push(fence(index + 1, info, text).map_err(|problem| at(&problem))?);
    }
    Ok(fences)
}

fn fence(line: usize, info: &str, text: String) -> Result<Fence, String> {
    let mut info = info.split_whitespace();
    let kind = info.next().unwrap_or_default();
    if !KINDS.contains(&kind) {
        return Err(format!("a fence of kind `{kind}`: write one of {}", KINDS.join(", ")));
    }
    let mut words = Vec::new();
    for word in info {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=VALUE"))?;
        if !WORDS.contains(&name) {
            return Err(format!("`{name}=` is not one of {}", WORDS.join(", ")));
        }
        words.push((name.to_owned(), value.to_owned()));
    }
    let fence = Fence { line, kind: kind.to_owned(), words, text };
    let needs_a_word = matches!(kind, "diff" | "envelope" | "lp1" | "text");
    match needs_a_word && fence.words.is_empty() {
        true => Err(format!("`{kind}` needs file=, run-by= or no-run=")),
        false => Ok(fence),
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("few_examples_are_not_run", few_are_not_run),
        Trial::test("a_fence_that_nothing_checks_is_noticed", unchecked_are_noticed),
    ]
}

fn few_are_not_run() -> Result<(), Failed> {
    let mut all = Vec::new();
    for path in pages() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for fence in fences(&fs::read_to_string(&path).unwrap())? {
            let reason = fence.word("no-run").map(|reason| format!("{name}:{}: {reason}", fence.line));
            all.extend(reason);
        }
    }
    println!("{} examples are not run:\n{}", all.len(), all.join("\n"));
    match all.len() <= MAY_NOT_RUN {
        true => Ok(()),
        false => {
            Err(format!("{} examples are not run, {MAY_NOT_RUN} may be:\n{}", all.len(), all.join("\n"))
                .into())
        }
    }
}

fn unchecked_are_noticed() -> Result<(), Failed> {
    let unchecked =
        ["```\na\n```", "```shell\na\n```", "```text\na\n```", "```sh norun=x\na\n```", "```sh\na\n"];
    for page in unchecked {
        assert!(fences(page).is_err(), "{page}");
    }
    let found = fences("a\n  ```sh no-run=systemd\n  one\n   two\n  ```\nb\n```toml\n```\n").unwrap();
    assert_eq!(found.iter().map(|fence| fence.line).collect::<Vec<_>>(), [2, 7]);
    assert_eq!((&*found[0].text, found[0].word("no-run")), ("one\n two\n", Some("systemd")));
    Ok(())
}
