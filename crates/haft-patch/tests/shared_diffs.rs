//! Diffs of many tools, from the shared test data: each is read, and carried out on a file made up to fit it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::fs;
use std::path::PathBuf;

use haft_patch::{PathAction, PathUse, parse};
use support::{Tree, run};

/// What each sample touches. `+` is created, `-` deleted, `>` moved, and without a sign changed.
const READ: [(&str, &str); 17] = [
    ("bzr.diff", "+added_file modified_file -removed_file"),
    ("git.diff", "+added_file modified_file -removed_file"),
    ("git_cr.diff", "+src/test/org/apache/commons/math/util/ExpandableDoubleArrayTest.java"),
    ("git_delete.diff", "-somefile.c"),
    ("git_filenames_with_spaces.diff", "+has_spaces/t.sql"),
    ("git_filenames_with_spaces_prefix.diff", "+foo_bar/baz"),
    ("git_no_prefix.diff", "-file1 file2 +file3"),
    ("git_quoted_filename.diff", "+A_â_B.py"),
    ("git_quoted_filename_with_spaces.diff", "docs/develop/Bug_排查.md"),
    ("git_rename.diff", "added>moved oldfile>newfile onefile>otherfile"),
    ("hg.diff", "+added_file modified_file -removed_file"),
    ("sample0.diff", "/path/to/new +/path/to/another_new -/path/to/existing"),
    ("sample2.diff", "content/base/src/nsContentUtils.cpp js/src/jsfriendapi.cpp"),
    ("sample3.diff", "+added_file modified_file -removed_file"),
    ("sample4.diff", "+added_file modified_file -removed_file"),
    ("sample5.diff", "modified_file1 modified_file2"),
    // Nothing but its hunk tells that the second one is deleted, so it is left empty.
    ("svn.diff", "modified_file removed_file +added_file"),
];

/// What is refused, and why.
const REFUSED: [(&str, usize, &str); 8] = [
    ("binary.diff", 14, "Binary patches are not supported"),
    ("debdiff.diff", 6, "Binary patches are not supported"),
    ("git_symlink.diff", 2, "A symbolic link is not supported"),
    ("sample1.diff", 13, "The hunk's header says 16 old and 13 new lines, but 16 old and 10 new ones follow"),
    // The last line is missing in the data; see below for the whole.
    ("sample2.diff", 30, "The hunk's header says 16 old and 24 new lines, but 15 old and 23 new ones follow"),
    ("sample6.diff", 13, "The hunk's header says 16 old and 13 new lines, but 19 old and 17 new ones follow"),
    ("sample7.diff", 13, "The hunk's header says 16 old and 13 new lines, but 14 old and 10 new ones follow"),
    ("sample8.diff", 1, "The content of the file is not in the diff, as with a binary file"),
];

fn shown(paths: &[PathUse]) -> String {
    let shown: Vec<String> = paths
        .iter()
        .map(|path| match &path.action {
            PathAction::Create => format!("+{}", path.path),
            PathAction::Delete => format!("-{}", path.path),
            PathAction::Modify => path.path.clone(),
            PathAction::Move { to } => format!("{}>{to}", path.path),
            PathAction::ModifyOrCreate => panic!("only LP1 has that"),
        })
        .map(|path| path.replace(' ', "_"))
        .collect();
    shown.join(" ")
}

/// The old and the new text of each file of a diff, by the simplest reading there is: its hunks at their stated lines,
/// and made-up lines between them.
fn texts(diff: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    let mut files: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        next += 1;
        if line.starts_with("+++ ") {
            files.push(Default::default());
        }
        let Some(header) = line.strip_prefix("@@ -") else { continue };
        let numbers: Vec<usize> = header
            .split(" @@")
            .next()
            .unwrap()
            .split(" +")
            .flat_map(|range| {
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                [start.parse::<usize>().unwrap(), count.parse::<usize>().unwrap()]
            })
            .collect();
        let (mut old_left, mut new_left) = (numbers[1], numbers[3]);
        let (old, new) = files.last_mut().unwrap();
        let above = if old_left == 0 { numbers[0] } else { numbers[0] - 1 };
        while old.len() < above {
            old.push(format!("made up {}\n", old.len()));
            new.push(old.last().unwrap().clone());
        }
        while old_left + new_left > 0 || lines.get(next).is_some_and(|line| line.starts_with('\\')) {
            let line = lines[next];
            next += 1;
            let text = || format!("{}\n", line[1..].strip_suffix('\n').unwrap_or(&line[1..]));
            match &line[..1] {
                "-" => (old_left -= 1, old.push(text())).1,
                "+" => (new_left -= 1, new.push(text())).1,
                "\\" => {
                    // It is about the line before it, which may be on either side.
                    let before = lines[next - 2];
                    if !before.starts_with('+') {
                        assert_eq!(old.last_mut().unwrap().pop(), Some('\n'));
                    }
                    if !before.starts_with('-') {
                        assert_eq!(new.last_mut().unwrap().pop(), Some('\n'));
                    }
                }
                sign => {
                    let text = if sign == " " { text() } else { line.to_owned() };
                    (old_left, new_left) = (old_left - 1, new_left - 1);
                    old.push(text.clone());
                    new.push(text);
                }
            }
        }
    }
    files.into_iter().map(|(old, new)| (old.concat(), new.concat())).collect()
}

fn samples() -> Option<PathBuf> {
    haft_testkit::shared_data("unified_diff/tests/samples")
}

#[test]
fn diffs_of_many_tools_are_read_and_carried_out() {
    let Some(folder) = samples() else {
        return haft_testkit::not_run(
            "diffs_of_many_tools_are_read_and_carried_out",
            "the folder unified_diff is not in the test data",
        );
    };
    for (name, paths) in READ {
        let mut diff = fs::read_to_string(folder.join(name)).unwrap();
        if name == "sample2.diff" {
            diff.push_str("\n the line that is missing\n");
        }
        let patch = parse(&diff).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(shown(&patch.paths()), paths, "{name}");
        let (mut input, mut expected) = (Tree::new(), Tree::new());
        let mut texts = texts(&diff).into_iter();
        for path in patch.paths() {
            // The last file of git_rename.diff has no hunks.
            let (old, new) = texts.next().unwrap_or(("as it is".into(), "as it is".into()));
            let (old, new) = (old.into_bytes(), new.into_bytes());
            match path.action {
                PathAction::Create => drop(expected.insert(path.path, new)),
                PathAction::Delete => drop(input.insert(path.path, old)),
                PathAction::Move { to } => {
                    input.insert(path.path, old);
                    expected.insert(to, new);
                }
                PathAction::Modify | PathAction::ModifyOrCreate => {
                    input.insert(path.path.clone(), old);
                    expected.insert(path.path, new);
                }
            }
        }
        assert_eq!(texts.next(), None, "{name}");
        assert_eq!(run(&input, &diff).unwrap_or_else(|error| panic!("{name}: {error}")), expected, "{name}");
    }
}

#[test]
fn diffs_that_are_refused_say_why() {
    let Some(folder) = samples() else {
        return haft_testkit::not_run(
            "diffs_that_are_refused_say_why",
            "the folder unified_diff is not in the test data",
        );
    };
    for (name, line, message) in REFUSED {
        let error = parse(&fs::read_to_string(folder.join(name)).unwrap()).expect_err(name);
        assert_eq!((error.line, error.message.as_str()), (Some(line), message), "{name}");
    }
    // Every sample is in one of the two lists; sample2.diff is in both.
    assert_eq!(fs::read_dir(folder).unwrap().count(), READ.len() + REFUSED.len() - 1);
}
