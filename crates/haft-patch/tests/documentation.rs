//! The examples of `docs/patches.md` do what the page says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use support::{Tree, run};

/// The fenced blocks of the page, with their languages.
fn blocks() -> Vec<(String, String)> {
    let page = include_str!("../../../docs/patches.md");
    let mut blocks = Vec::new();
    let mut parts = page.split("```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, text) = block.split_once('\n').unwrap();
        // The language is the first word; others are for the test that runs all pages.
        let language = language.split_whitespace().next().unwrap_or_default();
        blocks.push((language.to_owned(), text.to_owned()));
    }
    blocks
}

#[test]
fn the_examples_do_what_the_page_says() {
    let blocks = blocks();
    let languages: Vec<&str> = blocks.iter().map(|(language, _)| language.as_str()).collect();
    assert_eq!(languages, ["text", "lp1", "text", "envelope", "text", "diff", "text"]);
    let input = Tree::from([("greet.py".to_owned(), blocks[0].1.clone().into_bytes())]);
    for (patch, after, name) in [(1, 2, "greet.py"), (3, 4, "hello.py"), (5, 6, "greet.py")] {
        let tree = run(&input, &blocks[patch].1).unwrap();
        assert_eq!(std::str::from_utf8(&tree[name]).unwrap(), blocks[after].1);
        if name == "hello.py" {
            assert_eq!(tree.len(), 2);
            assert_eq!(tree["README"], b"Greets people.\n");
        }
    }
}
