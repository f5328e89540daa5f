//! Ordinary text stays as it is: sources, documents and lock files of the crates that this workspace is built from.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::port::Redactor;
use haft_guard::{KnownSecrets, Secrets};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// As much text is looked at.
const MOST: usize = 64 << 20;
/// So many marks a megabyte are put up with in results. Measured: see docs/policy.md.
const MOST_A_MEGABYTE: f64 = 0.3;

/// Where the texts are: `HAFT_TEXTS`, or what cargo keeps.
fn registry() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("HAFT_TEXTS") {
        return Some(folder.into());
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let folder = home.join("registry/src");
    folder.is_dir().then_some(folder)
}

fn texts(folder: &Path, taken: &mut usize, each: &mut dyn FnMut(&Path, &[u8])) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if *taken > MOST {
            return;
        }
        if path.is_dir() {
            texts(&path, taken, each);
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_text =
            ["rs", "md", "toml", "lock", "json", "txt", "yml", "yaml", "sh", "html", "js", "py", "c", "h"];
        if is_text.contains(&ending)
            && let Ok(bytes) = std::fs::read(&path)
        {
            // A generated file of ten megabytes would be most of the measure.
            let bytes = &bytes[..bytes.len().min(512 << 10)];
            *taken += bytes.len();
            each(&path, bytes);
        }
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let Some(folder) = registry() else {
        return haft_testkit::not_run("ordinary_text_stays_as_it_is", "cargo keeps no sources here");
    };
    let results = Secrets::results(KnownSecrets::default());
    let mut taken = 0;
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    texts(&folder, &mut taken, &mut |path, bytes| {
        let shown = results.redact(bytes);
        let std::borrow::Cow::Owned(shown) = shown else { return };
        for line in String::from_utf8_lossy(&shown).lines() {
            for mark in line.split("[redacted:").skip(1) {
                let kind = mark.split(']').next().unwrap_or_default().to_owned();
                let entry = found.entry(kind).or_insert_with(|| {
                    (0, format!("{}: {}", path.display(), line.trim().chars().take(200).collect::<String>()))
                });
                entry.0 += 1;
            }
        }
    });
    let megabytes = taken as f64 / 1e6;
    if megabytes < 20.0 {
        return haft_testkit::not_run("ordinary_text_stays_as_it_is", "cargo keeps too few sources here");
    }
    let all: usize = found.values().map(|(count, _)| count).sum();
    let mut kinds: Vec<_> = found.iter().collect();
    kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (kind, (count, example)) in &kinds {
        println!("{count:5} {kind}: {example}");
    }
    let rate = all as f64 / megabytes;
    println!("{all} marks in {megabytes:.0} MB: {rate:.2} a megabyte");
    assert!(rate < MOST_A_MEGABYTE, "{rate:.2} marks a megabyte");
}
