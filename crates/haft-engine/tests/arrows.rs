//! Which module of the engine may import which: only one that is lower in [`LOWEST_FIRST`]. The test reads the sources,
//! so that an import in the wrong direction fails here and not in a reader's head.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Every module, lowest first. A module that is listed with its parent counts by itself; one that is not counts as its
/// parent.
const LOWEST_FIRST: &[&str] = &[
    // Knows nothing of calls.
    "panic_guard",
    "redaction",
    "stats",
    "adaptive",
    "schema",
    "settings",
    "request",
    "events",
    "registry",
    "sandboxes",
    "ports",
    "approvals",
    // What travels.
    "pipeline::types::batch",
    "pipeline::types::facts",
    "pipeline::types::call",
    "pipeline::types::cancelled",
    "pipeline::types::record",
    "pipeline::types::containment",
    "pipeline::types::planned",
    "pipeline::types::attempt",
    "pipeline::types",
    // What is written down about it.
    "telemetry",
    "metrics",
    "live_calls",
    "pipeline::awaiting",
    "pipeline::journal",
    // The stages.
    "pipeline::plan",
    "pipeline::approve",
    "pipeline::preview",
    "pipeline::recheck",
    "pipeline::run",
    "pipeline::settle",
    "pipeline::finish",
    "pipeline::schedule",
    "task_table",
    // The picture, and what puts calls into it.
    "inner",
    "pipeline::executor",
    "pipeline::hand_over",
    "pipeline::intake",
    "view",
    "flows",
    "tasks",
    "engine",
];

/// What a module is given as a function or a value, although it is lower: the one does not import the other.
const GIVEN: &[(&str, &str)] =
    &[("pipeline::schedule", "pipeline::run"), ("pipeline::schedule", "pipeline::finish")];

/// Modules that only say which modules they have.
const ONLY_DECLARE: &[&str] = &["", "pipeline"];

#[test]
fn a_module_imports_only_what_is_lower() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&src);
    assert!(files.len() > 40, "the sources are elsewhere: {} files in {}", files.len(), src.display());
    let mut wrong = Vec::new();
    let mut seen = vec![false; LOWEST_FIRST.len()];
    for file in files {
        let module = module_of(file.strip_prefix(&src).unwrap());
        let text = fs::read_to_string(&file).unwrap();
        if let Some(place) = place_of(&module) {
            seen[place] = true;
        }
        wrong.extend(wrong_arrows(&module, &text));
    }
    assert!(wrong.is_empty(), "{} arrows are wrong:\n{}", wrong.len(), wrong.join("\n"));
    let gone: Vec<_> =
        LOWEST_FIRST.iter().zip(seen).filter(|(_, seen)| !seen).map(|(name, _)| name).collect();
    assert!(gone.is_empty(), "these are in the list and not in the sources: {gone:?}");
}

#[test]
fn the_page_for_readers_has_the_same_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page
        .split("```modules\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a block `modules`");
    let listed: Vec<&str> = block.split_whitespace().collect();
    assert_eq!(listed, LOWEST_FIRST);
}

#[test]
fn a_planted_arrow_upwards_is_noticed() {
    let planted = [
        ("pipeline::plan", "use crate::pipeline::run::run;"),
        ("pipeline::plan", "use crate::{ports::Ports, pipeline::{types::CallState, executor::walk}};"),
        ("pipeline::plan", "fn f() { crate::pipeline::finish::finish() }"),
        ("pipeline::plan", "fn f(state: &super::executor::PendingCalls) {}"),
        ("pipeline::schedule::cache", "use super::super::executor::walk;"),
        ("pipeline::schedule::attempts", "use crate::pipeline::run::Runner;"),
        ("pipeline::types::call", "pub(crate) use super::CallState as Other;"),
        ("pipeline::types", "use planned::Ready; use crate::engine as below;"),
        ("events::log", "const A: char = '\"'; use crate::engine::Engine; const B: char = '\"';"),
        ("redaction", "/* a /* nested */ remark */ use crate::engine::Engine;"),
        ("flows::gate", "#[cfg(test)] mod tests { use crate::engine::Engine; } use crate::tasks::Tasks;"),
        // Not in the list: the module itself, what it imports, and what only the root re-exports.
        ("somewhere", "use crate::redaction::Redaction;"),
        ("engine", "use crate::somewhere::Thing;"),
        ("engine", "use crate::Settings;"),
        ("engine", "use crate::*;"),
        ("pipeline", "pub(crate) use crate::pipeline::plan::plan;"),
    ];
    for (module, text) in planted {
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        assert_eq!(wrong_arrows(&module, text).len(), 1, "{text}");
    }
    let right = [
        (
            "pipeline::run",
            "use super::plan::plan; use crate::{ports::Ports, pipeline::types::{CallState, Ready}};",
        ),
        ("pipeline::plan::limits", "use super::listed; fn f() { super::super::types::call::f() }"),
        ("pipeline::plan", "pub(crate) struct A { pub(super) b: u8 } // use crate::engine::Engine;"),
        (
            "pipeline::plan",
            "/// [`Engine`](crate::engine::Engine)\nconst TEXT: &str = \"crate::engine::Engine\";",
        ),
        ("pipeline::plan", "const TEXT: &str = r#\"\" crate::engine::Engine\"#;"),
        (
            "pipeline::plan",
            "fn f<'a>(a: &'a str) -> char { 'a' } #[cfg(test)] mod tests { use crate::engine::Engine; }",
        ),
        ("pipeline::plan", "#[cfg(test)]\nmod tests; fn f() { std::mem::take(&mut self.b) }"),
    ];
    for (module, text) in right {
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        assert_eq!(wrong_arrows(&module, text), Vec::<String>::new(), "{text}");
    }
}

/// All files of Rust but those that hold only tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The module that a file is.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The place in the list that counts for a path: that of the longest entry which the path begins with.
fn place_of(path: &[String]) -> Option<usize> {
    (1..=path.len()).rev().find_map(|length| {
        let name = path[..length].join("::");
        LOWEST_FIRST.iter().position(|entry| *entry == name)
    })
}

/// What is wrong with the imports of a module, in words.
fn wrong_arrows(module: &[String], text: &str) -> Vec<String> {
    let name = module.join("::");
    let only_declares = ONLY_DECLARE.contains(&&*name);
    let from = place_of(module);
    if from.is_none() && !only_declares {
        return vec![format!("`{name}` is not in the list")];
    }
    let mut wrong = Vec::new();
    for path in paths(module, &without_tests(tokens(text))) {
        let target = path.join("::");
        match (from, place_of(&path)) {
            (None, _) => wrong.push(format!("`{name}` only declares modules, and imports `{target}`")),
            (Some(_), None) => {
                wrong.push(format!("`{name}` imports `{target}`, which is in no listed module"))
            }
            (Some(from), Some(to)) if to > from => {
                wrong.push(format!("`{name}` imports `{target}`: `{}` is above it", LOWEST_FIRST[to]));
            }
            (Some(from), Some(to)) if GIVEN.contains(&(LOWEST_FIRST[from], LOWEST_FIRST[to])) => {
                wrong.push(format!("`{name}` imports `{target}`, which it is given"));
            }
            (Some(_), Some(_)) => {}
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// Names, `::`, and every other sign by itself; without remarks, strings, characters and lifetimes.
fn tokens(text: &str) -> Vec<String> {
    let signs: Vec<char> = text.chars().collect();
    let at = |place: usize| signs.get(place).copied().unwrap_or('\0');
    let (mut tokens, mut here) = (Vec::new(), 0);
    while here < signs.len() {
        match (at(here), at(here + 1)) {
            ('/', '/') => {
                while here < signs.len() && at(here) != '\n' {
                    here += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                loop {
                    match (at(here), at(here + 1)) {
                        ('/', '*') => (depth, here) = (depth + 1, here + 2),
                        ('*', '/') => (depth, here) = (depth - 1, here + 2),
                        _ => here += 1,
                    }
                    if depth == 0 || here >= signs.len() {
                        break;
                    }
                }
            }
            ('"', _) => here = after_string(&signs, here + 1),
            ('r', '"' | '#') if here == 0 || !is_word(at(here - 1)) => {
                let hashes = signs[here + 1..].iter().take_while(|sign| **sign == '#').count();
                if at(here + 1 + hashes) == '"' {
                    let end: String = format!("\"{}", "#".repeat(hashes));
                    let rest: String = signs[here + 2 + hashes..].iter().collect();
                    let length =
                        rest.find(&end).map_or(rest.chars().count(), |byte| rest[..byte].chars().count());
                    here += 2 + hashes + length + end.len();
                } else {
                    // A raw name, such as `r#type`.
                    here += 1 + hashes;
                }
            }
            ('\'', '\\') => {
                here += 3;
                while here < signs.len() && at(here) != '\'' {
                    here += 1;
                }
                here += 1;
            }
            ('\'', _) if at(here + 2) == '\'' => here += 3,
            (':', ':') => {
                tokens.push("::".to_owned());
                here += 2;
            }
            (sign, _) if is_word(sign) => {
                let word: String = signs[here..].iter().take_while(|sign| is_word(**sign)).collect();
                here += word.chars().count();
                tokens.push(word);
            }
            (sign, _) => {
                if !sign.is_whitespace() {
                    tokens.push(sign.to_string());
                }
                here += 1;
            }
        }
    }
    tokens
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

fn after_string(signs: &[char], mut here: usize) -> usize {
    while here < signs.len() && signs[here] != '"' {
        here += if signs[here] == '\\' { 2 } else { 1 };
    }
    here + 1
}

/// Without what is compiled for tests only.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let (mut kept, mut here) = (Vec::new(), 0);
    while here < tokens.len() {
        if tokens[here..].iter().take(mark.len()).eq(mark.iter()) {
            // The module's name, and a body or none.
            here += mark.len() + 1;
            let mut depth = 0;
            while here < tokens.len() {
                match &*tokens[here] {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    _ => {}
                }
                here += 1;
                if depth == 0 {
                    break;
                }
            }
        } else {
            kept.push(tokens[here].clone());
            here += 1;
        }
    }
    kept
}

/// Every path of this crate that stands there, from the root.
fn paths(module: &[String], tokens: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (here, token) in tokens.iter().enumerate() {
        let is_start = here == 0 || tokens[here - 1] != "::";
        let is_path = tokens.get(here + 1).is_some_and(|next| next == "::");
        if !is_start || !is_path {
            continue;
        }
        let start = match &**token {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len().saturating_sub(1)].to_vec(),
            _ => continue,
        };
        tree(tokens, here + 2, start, &mut all);
    }
    all
}

/// Reads what follows `::`: a name and more, or a group of those. Gives where it ends.
fn tree(tokens: &[String], mut here: usize, mut path: Vec<String>, all: &mut Vec<Vec<String>>) -> usize {
    let at = |place: usize| tokens.get(place).map(String::as_str).unwrap_or_default();
    loop {
        match at(here) {
            "{" => {
                here += 1;
                while !matches!(at(here), "}" | "") {
                    here = tree(tokens, here, path.clone(), all);
                    while !matches!(at(here), "," | "}" | "") {
                        here += 1;
                    }
                    here += usize::from(at(here) == ",");
                }
                return here + 1;
            }
            "self" => {
                all.push(path);
                return here + 1;
            }
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
        here += 1;
        if at(here) != "::" {
            all.push(path);
            return here;
        }
        here += 1;
        if at(here) == "<" {
            all.push(path);
            return here;
        }
    }
}
