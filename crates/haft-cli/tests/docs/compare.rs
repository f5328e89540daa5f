//! Whether a program put out what a page shows. Ids, hashes, times and durations are free, runs of spaces count as one,
//! and `…` stands for anything: for a part of a line, or by itself in a line for any number of lines.

use libtest_mimic::{Failed, Trial};
use regex::Regex;
use std::sync::LazyLock;

/// What differs from one run to the next: timestamps, durations, ids with and without a prefix, hashes.
static FREE: LazyLock<Regex> = LazyLock::new(|| {
    let time = r"\b(\d{4}-\d{2}-\d{2}[T ])?\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|\+00:00)?";
    let duration = r"\b\d+(\.\d+)? ?(µs|ms|s|min|h)\b";
    let id = r"\b(apr|tsk|grant|out|bat|key|snd|exe)_[0-9a-zA-Z]{4,}\b";
    let hex = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32,64}\b";
    let key = r"\bed25519:[A-Za-z0-9+/=]{40,}";
    Regex::new(&[time, duration, id, hex, key].join("|")).expect("an expression")
});

/// The ids and the like in a text.
pub fn free_parts(text: &str) -> Vec<&str> {
    FREE.find_iter(text).map(|found| found.as_str()).collect()
}

/// A line without what may differ.
fn steady(line: &str) -> String {
    let line = FREE.replace_all(line, "␟");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is as shown.
fn fits(shown: &str, line: &str) -> bool {
    let (shown, line) = (steady(shown), steady(line));
    let parts: Vec<String> = shown.split('…').map(regex::escape).collect();
    Regex::new(&format!("^{}$", parts.join(".*"))).is_ok_and(|expression| expression.is_match(&line))
}

/// The pairs of lines, as shown and as put out; or the first line that is shown and was not put out.
pub fn pairs<'a>(shown: &[&'a str], out: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, String> {
    let Some((first, rest)) = shown.split_first() else {
        return match out.iter().find(|line| !line.trim().is_empty()) {
            None => Ok(Vec::new()),
            Some(more) => Err(format!("the page does not show: {more}")),
        };
    };
    if first.trim() == "…" {
        let mut tails = (0..=out.len()).map(|skipped| pairs(rest, &out[skipped..]));
        return tails.find_map(Result::ok).ok_or_else(|| format!("nothing is put out as after … : {rest:?}"));
    }
    match out.split_first() {
        Some((line, others)) if fits(first, line) => {
            let mut all = vec![(*first, *line)];
            all.extend(pairs(rest, others)?);
            Ok(all)
        }
        Some((line, _)) => Err(format!("the page shows: {first}\nput out was:    {line}")),
        None => Err(format!("the page shows, and nothing more was put out: {first}")),
    }
}

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("ids_and_times_are_free_and_words_are_not", words_count)]
}

fn words_count() -> Result<(), Failed> {
    let same = [
        ("✓ a  1    0.1 ms  valid", "✓ a  1    12.3 ms  valid"),
        ("approve apr_5d41402abc4b2a76b9719d911017c592", "approve apr_00000000000000000000000000000000"),
        ("at 2026-11-15T10:48:11.984Z", "at 2027-01-02T03:04:05Z"),
        ("error: a person …", "error: a person must approve it"),
    ];
    for (shown, line) in same {
        assert!(fits(shown, line), "{shown} / {line}");
    }
    let other = [
        ("valid JSON", "valid TOML"),
        ("3 records", "4 records"),
        ("approve apr_5d41402abc4b2a76b9719d911017c592", "approve tool"),
        ("valid", "valid JSON"),
        ("a.c", "abc"),
    ];
    for (shown, line) in other {
        assert!(!fits(shown, line), "{shown} / {line}");
    }
    assert_eq!(pairs(&["a", "…", "d"], &["a", "b", "c", "d"]).unwrap(), [("a", "a"), ("d", "d")]);
    assert!(pairs(&["a"], &["a", "b"]).is_err() && pairs(&["a", "b"], &["a"]).is_err());
    Ok(())
}
