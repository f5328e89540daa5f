//! Public test suites.

use std::fs;
use std::path::Path;

use haft_testkit::{not_run, shared_data};
use serde_json::Value;

use super::super::{Args, validate};

/// JSONTestSuite: `y_` must be accepted, `n_` rejected, `i_` may be either. Nothing may panic.
#[test]
fn agrees_with_jsontestsuite() {
    let Some(folder) = shared_data("jsontestsuite/test_parsing") else {
        return not_run("agrees_with_jsontestsuite", "the folder jsontestsuite is not in the test data");
    };
    // Keys twice are allowed by the RFC and are a problem here.
    let stricter = ["y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"];
    let (mut read, mut not_text) = (0, 0);
    for (name, bytes) in files(&folder) {
        // Content arrives as text: what is not UTF-8 fails before it gets here, as it must for `n_`.
        let Ok(content) = String::from_utf8(bytes) else {
            assert!(!name.starts_with("y_"), "{name} is not UTF-8");
            not_text += 1;
            continue;
        };
        read += 1;
        let report = validate(&Args::json(content)).expect("no schema");
        match name.split('_').next() {
            Some("y") if stricter.contains(&name.as_str()) => {
                let rules: Vec<_> = report.problems.iter().map(|problem| problem.rule.as_str()).collect();
                assert_eq!(rules, ["duplicate_key"], "{name}");
            }
            Some("y") => assert!(report.valid, "{name}: {report}"),
            Some("n") => assert!(!report.valid, "{name}"),
            _ => {}
        }
    }
    assert_eq!((read, not_text), (293, 25), "files that are UTF-8, and that are not");
}

/// The JSON Schema test suite: the bounds around the validator change no outcome.
#[test]
fn agrees_with_the_json_schema_suite() {
    let Some(folder) = shared_data("jsonschema/tests/draft2020-12") else {
        return not_run("agrees_with_the_json_schema_suite", "the folder jsonschema is not in the test data");
    };
    let (mut run, mut elsewhere) = (0, 0);
    for (name, bytes) in files(&folder) {
        let groups: Vec<Value> = serde_json::from_slice(&bytes).expect("a suite is JSON");
        for group in &groups {
            let tests = group["tests"].as_array().expect("tests");
            let checker = match haft_schema::Checker::new(&group["schema"]) {
                Ok(checker) => checker,
                // Cases that need documents to be fetched.
                Err(error) => {
                    assert!(
                        error.message.contains("not fetched") || error.pointer == "/$schema",
                        "{name}: {group}: {error}"
                    );
                    elsewhere += tests.len();
                    continue;
                }
            };
            for test in tests {
                let checked = checker.check(&test["data"]).expect("within bounds");
                let valid = test["valid"].as_bool().expect("valid");
                let case = format!("{name}: {}: {}", group["description"], test["description"]);
                assert_eq!(checked.total == 0, valid, "{case}: {:?}", checked.problems);
                for problem in &checked.problems {
                    assert!(problem.message.len() < 2000, "{case}: {problem}");
                    assert!(!problem.rule.is_empty(), "{case}: {problem}");
                }
                run += 1;
            }
        }
    }
    // Of the suite itself, and of the copy in a package.
    let editions = [(1250, 49), (1208, 49)];
    let counted = (run, elsewhere);
    assert!(editions.contains(&counted), "{counted:?} cases that were run, and that need other documents");
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a readable folder").map(|entry| entry.expect("an entry"));
    let mut files: Vec<_> = entries
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
        .map(|entry| {
            let name = entry.file_name().into_string().expect("a UTF-8 name");
            (name, fs::read(entry.path()).expect("a readable file"))
        })
        .collect();
    files.sort();
    files
}
