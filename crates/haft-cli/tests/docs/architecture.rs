//! ARCHITECTURE.md is short, and every file and test that it names exists.

use crate::{fence::root, page::is_a_test};
use libtest_mimic::{Failed, Trial};
use std::fs;

/// About four printed pages.
const MOST_LINES: usize = 210;
const WIDEST: usize = 120;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("the_architecture_is_four_pages", short),
        Trial::test("what_the_architecture_names_exists", names_exist),
        Trial::test("a_name_of_nothing_is_noticed", missing_names_are_noticed),
    ]
}

fn page() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md")
}

fn short() -> Result<(), Failed> {
    let page = page();
    assert!(page.lines().count() <= MOST_LINES, "{} lines", page.lines().count());
    let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > WIDEST).collect();
    assert!(wide.is_empty(), "wider than {WIDEST} columns: {wide:#?}");
    Ok(())
}

/// What is wrong with the names in a page: words in backquotes that look like a file or like a test.
fn wrong(page: &str) -> Vec<String> {
    let is_name = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let names = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let mut wrong = Vec::new();
    for name in names {
        if name.contains('/') && !name.contains(' ') {
            let exists = ["", "crates", "crates/haft-engine/src", "crates/haft-engine/src/pipeline"];
            if !exists.iter().any(|folder| root().join(folder).join(name).exists()) {
                wrong.push(format!("there is no file {name}"));
            }
        } else if is_name(name) && name.matches('_').count() >= 2 {
            wrong.extend(is_a_test(name).err());
        }
    }
    wrong
}

fn names_exist() -> Result<(), Failed> {
    let wrong = wrong(&page());
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

fn missing_names_are_noticed() -> Result<(), Failed> {
    let planted =
        "`haft-engine/tests/no_such_file.rs`, `no_such_test_is_there`, `haft-engine/tests/property.rs`";
    assert_eq!(wrong(planted).len(), 2, "{:?}", wrong(planted));
    Ok(())
}
