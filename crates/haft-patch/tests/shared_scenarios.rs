//! The scenarios that the authors of the `*** Begin Patch` format publish, from the shared test data.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use std::fs;

use support::{read_tree, run};

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

/// The one scenario that haft answers differently: there, the file that was added before the failure stays; haft applies
/// all of a patch or nothing.
///
/// No other one differs. 014 is called `…_appends_trailing_newline`; its input, as published, ends with a newline, and so
/// does what is expected. haft keeps what a file had, so a file without a final newline would stay so:
/// `scenarios/envelope/003_final_newline_is_kept`.
const ATOMIC: &str = "015_failure_after_partial_success_leaves_changes";

#[test]
fn all_scenarios_of_the_envelope() {
    let Some(folder) = haft_testkit::shared_data("apply_patch_scenarios") else {
        return haft_testkit::not_run(
            "all_scenarios_of_the_envelope",
            "the folder apply_patch_scenarios is not in the test data",
        );
    };
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
