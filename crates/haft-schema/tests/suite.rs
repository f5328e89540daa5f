//! The JSON Schema test suite through haft's own entries: draft 2020-12, and older drafts that are converted to it. The documents that it refers to are given
//! beforehand; nothing is fetched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_schema::{Checker, Documents, Formats, Options, Schema};
use haft_testkit::{not_run, shared_data};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};

/// Where the suite says that its documents are.
const BASE: &str = "http://localhost:1234/";

/// Cases that are right and wrong, and the first few of the latter.
#[derive(Default)]
struct Tally {
    right: usize,
    wrong: BTreeMap<String, usize>,
    first: Vec<String>,
}

impl Tally {
    fn total(&self) -> usize {
        self.right + self.wrong.values().sum::<usize>()
    }

    fn add(&mut self, file: &str, case: String, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.right += 1,
            Err(why) => {
                *self.wrong.entry(file.to_owned()).or_default() += 1;
                self.first.push(format!("{file}: {case}: {why}"));
            }
        }
    }
}

fn json_files(folder: &Path) -> Vec<(String, Value)> {
    let mut files: Vec<(String, Value)> = fs::read_dir(folder)
        .expect("a readable folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_slice(&fs::read(&path).unwrap()).expect("a suite is JSON"))
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

/// Adds all that is below `folder`, under the addresses that the suite has for it.
fn documents(folder: &Path, below: &Path, documents: &mut Documents) {
    for entry in fs::read_dir(folder.join(below)).expect("a readable folder") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            self::documents(folder, &path, documents);
        } else {
            let contents = serde_json::from_slice(&fs::read(folder.join(&path)).unwrap()).expect("JSON");
            documents.add(&format!("{BASE}{}", path.display()), contents).expect("a usable document");
        }
    }
}

/// The outcome of one case, by both entries.
fn outcome(checker: &Checker, schema: &Schema, test: &Value) -> Result<(), String> {
    let expected = test["valid"].as_bool().expect("valid");
    let checked = checker.check(&test["data"]).map_err(|error| error.to_string())?;
    for problem in &checked.problems {
        if problem.rule.is_empty() || problem.message.is_empty() || problem.message.len() > 2000 {
            return Err(format!("badly worded: {problem:?}"));
        }
    }
    if (checked.total == 0) != expected {
        return Err(format!("expected {expected}: {:?}", checked.problems));
    }
    if schema.is_valid(&test["data"]) != expected {
        return Err(format!("expected {expected} of the schema, too"));
    }
    Ok(())
}

fn run(folder: &Path, options: &Options) -> Tally {
    run_in(folder, None, options)
}

/// Runs cases whose schemas are in `draft`, also where they do not name it.
fn run_in(folder: &Path, draft: Option<&str>, options: &Options) -> Tally {
    let mut tally = Tally::default();
    for (file, groups) in json_files(folder) {
        for group in groups.as_array().expect("groups") {
            let tests = group["tests"].as_array().expect("tests");
            let mut source = group["schema"].clone();
            if let (Some(draft), Value::Object(object)) = (draft, &mut source) {
                object.entry("$schema").or_insert_with(|| draft.into());
            }
            let checker = Checker::with_options(&source, options);
            let schema = Schema::compile_with(&source, options);
            assert_eq!(checker.as_ref().err(), schema.as_ref().err(), "both take the same schemas");
            for test in tests {
                let case = format!("{}: {}", group["description"], test["description"]);
                let outcome = match (&checker, &schema) {
                    (Ok(checker), Ok(schema)) => outcome(checker, schema, test),
                    (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
                };
                tally.add(&file, case, outcome);
            }
        }
    }
    tally
}

/// How many cases the suite has (required, optional and formats), and how many host names of other scripts are not
/// taken: of the suite itself, and of the copy in a package.
const EDITIONS: [((usize, usize, usize), usize); 2] = [((1299, 162, 764), 54), ((1257, 158, 491), 34)];

#[test]
fn all_required_cases_of_draft_2020_12() {
    let Some(folder) = shared_data("jsonschema") else {
        return not_run(
            "all_required_cases_of_draft_2020_12",
            "the folder jsonschema is not in the test data",
        );
    };
    let mut known = Documents::new();
    documents(&folder.join("remotes"), Path::new(""), &mut known);
    let given = Options { documents: known, ..Options::default() };
    let checked = Options { formats: Formats::Checked, ..given.clone() };
    let tests = folder.join("tests/draft2020-12");
    let required = run(&tests, &given);
    let optional = run(&tests.join("optional"), &given);
    let formats = run(&tests.join("optional/format"), &checked);
    for (name, tally) in [("required", &required), ("optional", &optional), ("formats", &formats)] {
        println!("{name}: {} of {}; wrong: {:?}", tally.right, tally.total(), tally.wrong);
    }
    assert_eq!(required.first, Vec::<String>::new());
    assert_eq!(optional.first, Vec::<String>::new());
    let totals = (required.total(), optional.total(), formats.total());
    let edition = EDITIONS.iter().find(|(edition, _)| *edition == totals);
    let (_, host_names) = edition.unwrap_or_else(|| panic!("an edition that is not known: {totals:?}"));
    // Names in other scripts take a library that haft does without.
    let without = [("idn-email.json".to_owned(), 2), ("idn-hostname.json".to_owned(), *host_names)];
    assert_eq!(formats.wrong, BTreeMap::from(without), "{:#?}", formats.first);
}

/// The older drafts: the folder of the suite, and the address of the draft.
const OLDER: [(&str, &str); 4] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
];

#[test]
fn all_required_cases_of_older_drafts_through_the_conversion() {
    const NAME: &str = "all_required_cases_of_older_drafts_through_the_conversion";
    let Some(folder) =
        shared_data("jsonschema/tests/draft7").and_then(|tests| Some(tests.parent()?.parent()?.to_owned()))
    else {
        return not_run(NAME, "the folder jsonschema/tests/draft7 is not in the test data");
    };
    let mut known = Documents::new();
    documents(&folder.join("remotes"), Path::new(""), &mut known);
    let given = Options { documents: known, ..Options::default() };
    for (draft, address) in OLDER {
        let tally = run_in(&folder.join("tests").join(draft), Some(address), &given);
        println!("{draft}: {} of {}; wrong: {:?}", tally.right, tally.total(), tally.wrong);
        // A schema of an older draft cannot refer to that draft's meta-schema, which is not in 2020-12.
        let refused = |problem: &&String| problem.contains("to the meta-schema of another draft");
        let wrong: Vec<&String> = tally.first.iter().filter(|problem| !refused(problem)).collect();
        assert_eq!(wrong, Vec::<&String>::new(), "{draft}");
        let of_definitions = if draft == "draft2019-09" { "defs.json" } else { "definitions.json" };
        let files = [(of_definitions.to_owned(), 2), ("ref.json".to_owned(), 2)];
        assert_eq!(tally.wrong, BTreeMap::from(files), "{draft}");
        assert!(tally.right > 600, "{draft}: {}", tally.right);
    }
}
