//! Every folder of `tests/scenarios` is a case: `input/`, `patch.txt`, and `expected/` or `expected_error.txt`.
//!
//! A folder that is missing is an empty one. `HAFT_UPDATE_SCENARIOS=1` writes the errors that are expected.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use haft_patch::Format;
use support::{Tree, read_tree, run};

fn cases(format: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(format);
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn check(case: &Path, format: Format) {
    let text = fs::read_to_string(case.join("patch.txt")).unwrap();
    assert_eq!(haft_patch::recognise(&text), Some(format), "{}", case.display());
    let input = read_tree(&case.join("input"));
    let error_file = case.join("expected_error.txt");
    match run(&input, &text) {
        Ok(after) => {
            assert!(!error_file.exists(), "{}: expected an error, got {after:?}", case.display());
            assert_eq!(after, read_tree(&case.join("expected")), "{}", case.display());
        }
        Err(error) => {
            assert!(error_file.exists(), "{}: {error}", case.display());
            if std::env::var_os("HAFT_UPDATE_SCENARIOS").is_some() {
                fs::write(&error_file, format!("{error}\n")).unwrap();
            }
            assert_eq!(format!("{error}\n"), fs::read_to_string(&error_file).unwrap(), "{}", case.display());
        }
    }
}

#[test]
fn lp1() {
    let cases = cases("lp1");
    assert!(cases.len() >= 12);
    cases.iter().for_each(|case| check(case, Format::Lp1));
}

#[test]
fn envelope() {
    let cases = cases("envelope");
    assert!(cases.len() >= 10);
    cases.iter().for_each(|case| check(case, Format::Envelope));
}

#[test]
fn unified() {
    let cases = cases("unified");
    assert!(cases.len() >= 10);
    cases.iter().for_each(|case| check(case, Format::Unified));
}

/// What is not carried out is said: with the change where there is one, with the patch in any case.
#[test]
fn remarks_and_notes() {
    let text = |case: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(case);
        (fs::read_to_string(folder.join("patch.txt")).unwrap(), read_tree(&folder.join("input")))
    };
    let (patch, _) = text("unified/012_mode_only");
    let patch = haft_patch::parse(&patch).unwrap();
    assert_eq!(patch.remarks().len(), 1);
    assert_eq!(
        patch.remarks()[0].text,
        "the mode stays as it is; the patch would change it from 100644 to 100755"
    );
    assert_eq!(patch.paths(), []);

    let (patch, input) = text("unified/002_offset");
    let changes = support::changes(&input, &patch).unwrap();
    assert_eq!(changes[0].notes, ["hunk 1 (patch line 3) applied at line 3, 2 lines below the stated one"]);

    let mut empty = Tree::new();
    let changes = support::changes(&empty, "LP1\nF a\nT\nx\n.\nEND\n").unwrap();
    assert_eq!(changes[0].notes, ["the new file has no newline at its end; add `N +` for one"]);
    empty.insert("a".into(), b"x".to_vec());
    let changes = support::changes(&empty, "*** Begin Patch\n*** Add File: a\n+y\n*** End Patch").unwrap();
    assert_eq!(changes[0].notes, ["replaces a file that was there"]);
}
