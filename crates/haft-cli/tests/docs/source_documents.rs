//! docs/source-documents.md names files and tests that exist, and its open rows only get fewer.

use crate::{fence::root, page::is_a_test};
use libtest_mimic::{Failed, Trial};
use std::fs;

/// So many requirements are not met, or no test shows that they are. It is there to be lowered.
const MAY_BE_OPEN: usize = 26;
/// One table for each document.
const TABLES: usize = 5;

const HEADING: &str = "| id or section | asks | met | test |";
const OPEN: &str = "open";
const DIFFERS: &str = "differs: ";

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("what_the_page_about_source_documents_names_exists", names_exist),
        Trial::test("requirements_that_are_open_get_fewer", few_are_open),
        Trial::test("a_wrong_row_about_a_requirement_is_noticed", wrong_rows_are_noticed),
    ]
}

fn page() -> String {
    fs::read_to_string(root().join("docs/source-documents.md")).expect("docs/source-documents.md")
}

/// A requirement, how it is met, and the tests that show it.
struct Row<'a> {
    id: &'a str,
    met: &'a str,
    tests: &'a str,
}

fn is_row(line: &&str) -> bool {
    line.starts_with("| ") && *line != HEADING
}

fn row(line: &str) -> Result<Row<'_>, String> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    match cells[..] {
        [id, asks, met, tests] if [id, asks, met, tests].iter().all(|cell| !cell.is_empty()) => {
            Ok(Row { id, met, tests })
        }
        _ => Err(format!("a row has four cells: {line}")),
    }
}

fn rows(page: &str) -> Result<Vec<Row<'_>>, String> {
    page.lines().filter(is_row).map(row).collect()
}

/// What stands between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What is wrong with a row.
fn wrong(row: &Row<'_>) -> Vec<String> {
    let has_tests = quoted(row.tests).next().is_some();
    let mut wrong: Vec<String> = quoted(row.tests).filter_map(|name| is_a_test(name).err()).collect();
    let missing = quoted(row.met).filter(|path| !root().join(path).exists());
    wrong.extend(missing.map(|path| format!("there is no file {path}")));
    if !has_tests && row.tests != "–" {
        wrong.push(format!("`{}` names no test", row.tests));
    }
    if row.met == OPEN {
        wrong.extend(has_tests.then(|| "what a test shows is not open".to_owned()));
    } else if !row.met.starts_with(DIFFERS) {
        wrong.extend((!has_tests).then(|| "no test shows it".to_owned()));
        wrong.extend(quoted(row.met).next().is_none().then(|| "it names no file".to_owned()));
    }
    wrong.into_iter().map(|problem| format!("{}: {problem}", row.id)).collect()
}

fn names_exist() -> Result<(), Failed> {
    let page = page();
    let tables = page.lines().filter(|line| *line == HEADING).count();
    assert_eq!(tables, TABLES, "one table for each document");
    let wrong: Vec<String> = rows(&page)?.iter().flat_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

fn few_are_open() -> Result<(), Failed> {
    let page = page();
    let rows = rows(&page)?;
    let open: Vec<&str> = rows.iter().filter(|row| row.met == OPEN).map(|row| row.id).collect();
    let said = format!("{} requirements are open, {MAY_BE_OPEN} may be:\n{}", open.len(), open.join("\n"));
    println!("{said}");
    match open.len() <= MAY_BE_OPEN {
        true => Ok(()),
        false => Err(said.into()),
    }
}

fn wrong_rows_are_noticed() -> Result<(), Failed> {
    let planted = [
        ("| A-1 | asks | `README.md` | `no_such_test_is_there` |", 1),
        ("| A-2 | asks | `docs/no-such-page.md` | `names_exist` |", 1),
        ("| A-3 | asks | `README.md` | – |", 1),
        ("| A-4 | asks | somewhere | `names_exist` |", 1),
        ("| A-5 | asks | open | `names_exist` |", 1),
        ("| A-6 | asks | `README.md` | names_exist |", 2),
        ("| A-7 | asks | `README.md` | `names_exist` |", 0),
        ("| A-8 | asks | differs: haft is in Rust | – |", 0),
        ("| A-9 | asks | open | – |", 0),
    ];
    for (line, count) in planted {
        let found = wrong(&row(line)?);
        assert_eq!(found.len(), count, "{line}: {found:?}");
    }
    for line in ["| A-1 | asks | open |", "| A-1 | | open | – |", "| A-1 | a | b | open | – |"] {
        assert!(row(line).is_err(), "{line}");
    }
    Ok(())
}
