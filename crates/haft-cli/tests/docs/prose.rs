//! What the pages say between their examples: links lead somewhere, and commands and flags exist.

use crate::fence::{pages, root};
use libtest_mimic::{Failed, Trial};
use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("links_lead_somewhere", links),
        Trial::test("commands_and_flags_in_the_text_exist", commands),
    ]
}

/// Every page of the project: those with examples, the others beside README.md, and the READMEs of the crates.
fn all_pages() -> Vec<PathBuf> {
    let mut all = pages();
    all.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let crates = fs::read_dir(root().join("crates")).expect("crates/");
    all.extend(
        crates.map(|entry| entry.expect("an entry").path().join("README.md")).filter(|path| path.exists()),
    );
    all
}

/// A page without its fences.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut is_fence = false;
    let lines = text.lines().filter(|line| {
        let is_edge = line.trim_start().starts_with("```");
        is_fence ^= is_edge;
        !is_fence && !is_edge
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The anchors of a page, as GitHub makes them of headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let kept = |sign: &char| sign.is_alphanumeric() || matches!(sign, ' ' | '-' | '_');
    headings
        .map(|text| text.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

fn links() -> Result<(), Failed> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("an expression");
    let mut wrong = Vec::new();
    for path in all_pages() {
        let text = prose(&path);
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let place = if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            if !place.exists() {
                wrong.push(format!("{}: {target} does not exist", path.display()));
            } else if !anchor.is_empty() && place.is_file() && !anchors(&prose(&place)).contains(anchor) {
                wrong.push(format!("{}: {target} is no heading", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// The help of a command, or `None` where there is no such command.
fn help(words: &[&str]) -> Option<String> {
    let said =
        Command::new(env!("CARGO_BIN_EXE_haft")).args(words).arg("--help").output().expect("haft starts");
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}

/// The commands and flags in the text of a page that do not exist. `known` keeps what haft said about commands before.
fn wrong_commands(text: &str, known: &mut BTreeMap<String, Option<String>>) -> Vec<String> {
    let code = Regex::new(r"`haft ([a-z][^`]*)`").expect("an expression");
    let flag = Regex::new(r"(?:^|[\s\[])(--[a-z][a-z-]*)").expect("an expression");
    let is_word = |word: &&str| {
        !word.starts_with('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let mut wrong = Vec::new();
    for found in code.captures_iter(text) {
        let line = found[1].replace('\n', " ");
        let words: Vec<&str> = line.split_whitespace().take_while(is_word).take(2).collect();
        let mut look = |words: &[&str]| known.entry(words.join(" ")).or_insert_with(|| help(words)).clone();
        // The second word may be an argument, of a command that has no commands below it.
        let said = match look(&words) {
            None if words.len() > 1 => look(&words[..1]).filter(|said| !said.contains("\nCommands:")),
            said => said,
        };
        let Some(said) = said else {
            wrong.push(format!("there is no `haft {line}`"));
            continue;
        };
        // What follows `--` belongs to another program.
        let own = line.split(" -- ").next().unwrap_or_default();
        let flags = flag.captures_iter(own).filter(|found| !said.contains(&found[1]));
        wrong.extend(flags.map(|found| format!("`haft {line}`: there is no {}", &found[1])));
    }
    wrong
}

fn commands() -> Result<(), Failed> {
    let mut known = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in all_pages() {
        let found = wrong_commands(&prose(&path), &mut known);
        wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", path.display())));
    }
    assert!(known.len() > 30, "the text names {} commands", known.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let planted =
        "`haft tools lst`, `haft runs list --sinse 2h`, `haft frobnicate`, `haft call read_file path=a`";
    assert_eq!(wrong_commands(planted, &mut known).len(), 3);
    Ok(())
}
