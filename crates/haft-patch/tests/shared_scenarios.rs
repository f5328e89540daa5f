//! What the authors of the `*** Begin Patch` format promise: cases of our own for each promise and, where the test data
//! has them, the scenarios that they publish.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::{fs, path::Path};

use support::{Tree, read_tree, run};

/// Those that must fail; what is left of the input is what is expected.
const REFUSED: [(&str, &str); 8] = [
    ("005_rejects_empty_patch", "The patch changes no file"),
    ("006_rejects_missing_context", "Match not found"),
    ("007_rejects_missing_file_delete", "File does not exist"),
    ("008_rejects_empty_update_hunk", "The update has no changes"),
    ("009_requires_existing_file_for_update", "File does not exist"),
    ("012_delete_directory_fails", support::IS_A_FOLDER),
    ("013_rejects_invalid_hunk_header", "Expected a file header"),
    ("015_failure_after_partial_success_leaves_changes", "File does not exist"),
];

/// The one scenario that haft answers differently: there, the file that was added before the failure stays; haft
/// applies all of a patch or nothing.
///
/// No other one differs. 014 is called `…_appends_trailing_newline`; its input, as published, ends with a newline, and
/// so does what is expected. haft keeps what a file had, so a file without a final newline would stay so:
/// `scenarios/envelope/003_final_newline_is_kept`.
const ATOMIC: &str = "015_failure_after_partial_success_leaves_changes";

/// A promise of the format: the files that are there, the lines between the marks of a patch, and the files after it or
/// what the refusal says.
type Case = (Files, &'static str, Result<Files, &'static str>);
/// Each with its name and its text.
type Files = &'static [(&'static str, &'static str)];

const OURS: [Case; 23] = [
    (&[], "*** Add File: notes.md\n+Buy bread\n", Ok(&[("notes.md", "Buy bread\n")])),
    (
        &[("gone.txt", "rust\n"), ("kept.txt", "red\ngreen\n")],
        "*** Add File: deep/er.txt\n+born\n*** Delete File: gone.txt\n*** Update File: kept.txt\n@@\n-green\n+blue\n",
        Ok(&[("deep/er.txt", "born\n"), ("kept.txt", "red\nblue\n")]),
    ),
    (
        &[("four.txt", "a\nb\nc\nd\n")],
        "*** Update File: four.txt\n@@\n-b\n+B\n@@\n-d\n+D\n",
        Ok(&[("four.txt", "a\nB\nc\nD\n")]),
    ),
    (
        &[("here/x", "old\n"), ("here/y", "stays\n")],
        "*** Update File: here/x\n*** Move to: there/far/x\n@@\n-old\n+new\n",
        Ok(&[("here/y", "stays\n"), ("there/far/x", "new\n")]),
    ),
    (
        &[("from", "old\n"), ("onto", "lost\n")],
        "*** Update File: from\n*** Move to: onto\n@@\n-old\n+new\n",
        Ok(&[("onto", "new\n")]),
    ),
    (&[("x", "old\n")], "*** Add File: x\n+new\n", Ok(&[("x", "new\n")])),
    (&[("x", "one\n")], "*** Update File: x\n@@\n-one\n+1\n+2\n", Ok(&[("x", "1\n2\n")])),
    (
        &[("x", "one\ntwo\n")],
        "*** Update File: x\n@@\n+three\n+four\n",
        Ok(&[("x", "one\ntwo\nthree\nfour\n")]),
    ),
    (&[("x", "one\n")], "  *** Update File: x\n@@\n-one\n+two\n", Ok(&[("x", "two\n")])),
    (
        &[("x", "a\nZoë naïf\nb\n")],
        "*** Update File: x\n@@\n a\n-Zoë naïf\n+Zoë naïf 🦀\n",
        Ok(&[("x", "a\nZoë naïf 🦀\nb\n")]),
    ),
    (&[("x", "x\n"), ("y", "y\n")], "*** Delete File: x\n", Ok(&[("y", "y\n")])),
    (&[("x", "a\nb\nc\n")], "*** Update File: x\n@@\n a\n-b\n c\n", Ok(&[("x", "a\nc\n")])),
    (
        &[("x", "a\nb\n")],
        "*** Update File: x\n@@\n a\n-b\n+last\n*** End of File\n",
        Ok(&[("x", "a\nlast\n")]),
    ),
    (
        &[("x", "a\r\nb\r\nc\r\n")],
        "*** Update File: x\n@@\n-a\n+A\n b\n+and\n c\n",
        Ok(&[("x", "A\r\nb\r\nand\r\nc\r\n")]),
    ),
    (&[("x", "a\r\nb\nc\r\n")], "*** Update File: x\n@@\n a\n-b\n+B\n c\n", Ok(&[("x", "a\r\nB\r\nc\r\n")])),
    (&[("x", "x\n")], "", Err("The patch changes no file")),
    (&[("x", "x\n")], "*** Update File: x\n@@\n-no such line\n+y\n", Err("Match not found")),
    (&[("x", "x\n")], "*** Delete File: y\n", Err("File does not exist")),
    (&[("x", "x\n")], "*** Update File: x\n", Err("The update has no changes")),
    (&[("x", "x\n")], "*** Update File: y\n@@\n-x\n+y\n", Err("File does not exist")),
    (&[("in/x", "x\n")], "*** Delete File: in\n", Err(support::IS_A_FOLDER)),
    (&[("x", "x\n")], "*** Paint File: x\n", Err("Expected a file header")),
    // All or nothing: what was added before the failure is not there.
    (&[], "*** Add File: x\n+x\n*** Update File: y\n@@\n-x\n+y\n", Err("File does not exist")),
];

#[test]
fn all_scenarios_of_the_envelope() {
    every_promise();
    // No package carries these.
    if let Some(folder) = haft_testkit::shared_data("apply_patch_scenarios") {
        published(&folder);
    }
}

fn every_promise() {
    let tree = |files: Files| -> Tree {
        files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    };
    // Spaces around the marks of a patch change nothing.
    let marks = [("", ""), (" ", ""), ("", " "), ("  ", "  ")];
    for (before, lines, expected) in OURS {
        for (left, right) in marks {
            let patch = format!("{left}*** Begin Patch{right}\n{lines}{left}*** End Patch{right}\n");
            match (run(&tree(before), &patch), expected) {
                (Ok(after), Ok(expected)) => assert_eq!(after, tree(expected), "{patch}"),
                (Err(error), Err(message)) => assert!(error.to_string().contains(message), "{patch}{error}"),
                (result, _) => panic!("{patch}{result:?}"),
            }
        }
    }
}

fn published(folder: &Path) {
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert_eq!(cases.len(), 25);
    let mut refused = 0;
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let input = read_tree(&case.join("input"));
        let mut expected = read_tree(&case.join("expected"));
        let result = run(&input, &fs::read_to_string(case.join("patch.txt")).unwrap());
        match REFUSED.iter().find(|(refused, _)| *refused == name) {
            Some((_, message)) => {
                refused += 1;
                let error = result.expect_err(&name).to_string();
                assert!(error.contains(message), "{name}: {error}");
                if name == ATOMIC {
                    assert!(expected.remove("created.txt").is_some());
                }
                assert_eq!(input, expected, "{name}");
            }
            None => assert_eq!(result.expect(&name), expected, "{name}"),
        }
    }
    assert_eq!(refused, REFUSED.len());
}
