//! The diffs that people see before they say yes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

use haft_patch::{ChangeKind, MAX_DIFF_BYTES, apply, diff, parse};

#[test]
fn three_lines_of_context() {
    let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let after = before.replace("\n10\n", "\nten\n");
    assert_eq!(
        diff(Some(before.as_bytes()), Some(after.as_bytes()), "n.txt", "n.txt"),
        "diff --git a/n.txt b/n.txt\n--- a/n.txt\n+++ b/n.txt\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    );
}

#[test]
fn new_deleted_moved_and_equal() {
    for (before, after, from, to, expected) in [
        (
            None,
            Some("x\n"),
            "a",
            "a",
            "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n",
        ),
        (None, Some(""), "a", "a", "diff --git a/a b/a\nnew file mode 100644\n"),
        (
            Some("x"),
            None,
            "a",
            "a",
            "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
        ),
        (Some("x\n"), Some("x\n"), "a", "b c", "diff --git a/a b/b c\nrename from a\nrename to b c\n"),
        (Some("x\n"), Some("x\n"), "a", "a", ""),
        (None, None, "a", "b", ""),
    ] {
        assert_eq!(diff(before.map(str::as_bytes), after.map(str::as_bytes), from, to), expected);
    }
}

#[test]
fn what_cannot_be_compared_is_stated() {
    let binary = diff(Some(b"\xff\xfe"), Some(b"x"), "a", "a");
    assert_eq!(binary, "diff --git a/a b/a\nBinary files differ: 2 bytes before, 1 bytes after\n");
    let large = "line\n".repeat(MAX_DIFF_BYTES / 5 + 1);
    let stated = diff(Some(large.as_bytes()), Some(b"x\n"), "a", "a");
    assert!(
        stated.contains("Too large to compare: 838861 lines (4194305 bytes) before, 1 lines (2 bytes) after"),
        "{stated}"
    );
    assert!(parse(&stated).is_err(), "a statement must not pass for a patch");
    assert!(parse(&binary).is_err());
}

/// Two texts without anything in common are the slowest to compare.
#[test]
fn the_worst_case_takes_seconds_at_most_and_is_right() {
    let before: String = (0..60_000).map(|n| format!("{n}\n")).collect();
    let after: String = (0..60_000).rev().map(|n| format!("{n}\n")).collect();
    let start = std::time::Instant::now();
    let text = diff(Some(before.as_bytes()), Some(after.as_bytes()), "a", "a");
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    let patch = parse(&text).unwrap();
    let changes = apply(&patch, &mut |_: &str| Ok::<_, String>(Some(before.clone().into_bytes()))).unwrap();
    assert!(changes[0].after.as_deref() == Some(after.as_bytes()));
}

#[test]
fn a_change_shows_its_own_diff() {
    let patch =
        parse("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End Patch\n").unwrap();
    let changes =
        apply(&patch, &mut |path: &str| Ok::<_, String>((path == "a").then(|| b"x\n".to_vec()))).unwrap();
    assert_eq!(changes[0].kind(), ChangeKind::Moved);
    assert_eq!(
        changes[0].diff(),
        "diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n"
    );
}
