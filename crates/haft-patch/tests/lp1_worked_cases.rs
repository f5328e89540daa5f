//! Cases of LP1 that were worked out by hand from its rules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use haft_patch::{ApplyError, PatchError, PatchErrorKind};
use support::{Tree, run};

/// The file after the operations, which stand between `F` and `END`.
fn file_after(before: &[u8], operations: &str) -> Result<String, PatchError> {
    let tree = Tree::from([("f".to_owned(), before.to_vec())]);
    match run(&tree, &format!("LP1\nF f\n{operations}END\n")) {
        Ok(after) => Ok(String::from_utf8(after["f"].clone()).unwrap()),
        Err(ApplyError::Patch(error)) => Err(error),
        Err(ApplyError::Read { .. }) => panic!("the tree can be read"),
    }
}

fn refused(before: &[u8], operations: &str) -> PatchErrorKind {
    let error = file_after(before, operations).unwrap_err();
    assert!(error.line.is_some() && error.help.is_some(), "{error}");
    error.kind
}

#[test]
fn a_find_that_occurs_twice_is_not_unique() {
    assert_eq!(refused(b"a\nb\na\n", "R\na\n.\nx\n.\n"), PatchErrorKind::NotUnique);
}

#[test]
fn the_second_occurrence_is_replaced() {
    assert_eq!(file_after(b"a\nb\na\n", "R 2\na\n.\nx\n.\n").unwrap(), "a\nb\nx\n");
}

#[test]
fn the_third_of_two_is_out_of_range() {
    assert_eq!(refused(b"a\nb\na\n", "R 3\na\n.\nx\n.\n"), PatchErrorKind::OutOfRange);
}

#[test]
fn inserted_lines_get_the_line_ends_of_the_file() {
    assert_eq!(file_after(b"a\r\nb\r\n", "I\na\n.\nn\n.\n").unwrap(), "a\r\nn\r\nb\r\n");
}

#[test]
fn appending_keeps_the_missing_final_newline() {
    assert_eq!(file_after(b"a", "T\nb\n.\n").unwrap(), "a\nb");
}

#[test]
fn appending_and_n_plus_ends_with_a_newline() {
    assert_eq!(file_after(b"a", "T\nb\n.\nN +\n").unwrap(), "a\nb\n");
}

#[test]
fn appending_to_an_empty_file_adds_no_final_newline() {
    assert_eq!(file_after(b"", "T\nb\n.\n").unwrap(), "b");
}

#[test]
fn n_plus_makes_an_empty_file_one_empty_line() {
    assert_eq!(file_after(b"", "N +\n").unwrap(), "\n");
}

#[test]
fn n_minus_makes_one_empty_line_an_empty_file() {
    assert_eq!(file_after(b"\n", "N -\n").unwrap(), "");
}

#[test]
fn erasing_everything_leaves_an_empty_file() {
    assert_eq!(file_after(b"a\n", "E\na\n.\n").unwrap(), "");
}

#[test]
fn overlapping_matches_count() {
    assert_eq!(file_after(b"a\na\na\n", "R 2\na\na\n.\nx\n.\n").unwrap(), "a\nx\n");
}

#[test]
fn mixed_line_ends_are_refused() {
    assert_eq!(refused(b"a\nb\r\n", "T\nx\n.\n"), PatchErrorKind::LineEnds);
}

#[test]
fn a_bare_carriage_return_is_refused() {
    assert_eq!(refused(b"a\rb", "T\nx\n.\n"), PatchErrorKind::LineEnds);
}

#[test]
fn an_empty_find_with_an_occurrence_is_a_position() {
    assert_eq!(file_after(b"a\n", "P 1\n.\nz\n.\n").unwrap(), "z\na\n");
    assert_eq!(file_after(b"a\n", "I 2\n.\nz\n.\n").unwrap(), "a\nz\n");
    assert_eq!(file_after(b"a\n", "R 1\n.\nz\n.\n").unwrap(), "z\na\n");
    assert_eq!(file_after(b"a\n", "E 2\n.\n").unwrap(), "a\n");
    assert_eq!(refused(b"a\n", "P 3\n.\nz\n.\n"), PatchErrorKind::OutOfRange);
    assert_eq!(refused(b"a\n", "P\n.\nz\n.\n"), PatchErrorKind::Syntax);
}

#[test]
fn a_find_block_longer_than_the_file_is_not_found() {
    assert_eq!(refused(b"a\n", "E\na\nb\nc\n.\n"), PatchErrorKind::NoMatch);
    assert_eq!(refused(b"", "E\na\n.\n"), PatchErrorKind::NoMatch);
}

#[test]
fn later_operations_see_earlier_ones_and_the_last_n_wins() {
    assert_eq!(file_after(b"a\n", "R\na\n.\nb\n.\nI\nb\n.\nc\n.\nN -\nN +\nN -\n").unwrap(), "b\nc");
}

#[test]
fn blank_lines_comments_and_padding_outside_of_blocks() {
    let patch = "\n# before\n \tLP1\t \n\n# words\n  F  f \n\t# more\n  R \t2 \na\n. \t\n..\n .\n.\n \tEND \n\n# after\n";
    let after = run(&Tree::from([("f".into(), b"a\na\n".to_vec())]), patch).unwrap();
    assert_eq!(after["f"], b"a\n.\n .\n");
}

#[test]
fn quoted_paths_have_two_escapes() {
    let patch = haft_patch::lp1::parse("LP1\nF \"a \\\"b\\\" \\\\ c\"\t\nEND\n").unwrap();
    assert_eq!(patch.paths()[0].path, r#"a "b" \ c"#);
}

/// Where parsers are known to be loose, this one is not.
#[test]
fn what_the_parser_refuses_and_where() {
    for (patch, line, message) in [
        ("", 1, "Missing LP1 header"),
        ("LP2\nEND\n", 1, "Invalid LP1 header: expected `LP1`, found `LP2`"),
        ("LP1\n", 1, "Missing END footer"),
        ("LP1\nF a\n", 2, "Missing END footer"),
        ("LP1\nT\nx\n.\nEND\n", 2, "Expected file section (F <path>), found `T`"),
        ("LP1\nFoo\nEND\n", 2, "Expected file section (F <path>), found `Foo`"),
        ("LP1\nF a\nFoo\nEND\n", 3, "Unknown LP1 operation `Foo`"),
        ("LP1\nF\nEND\n", 2, "Missing file path"),
        ("LP1\nF \"\"\nEND\n", 2, "Missing file path"),
        ("LP1\nF a b\nEND\n", 2, "Expected nothing after the path, found `b`"),
        ("LP1\nF \"a\" b\nEND\n", 2, "Expected nothing after the path, found `b`"),
        ("LP1\nF a\"b\nEND\n", 2, "Invalid quoted path: `\"` within a bare path"),
        ("LP1\nF \"a\\n\"\nEND\n", 2, "Invalid escape in quoted path"),
        ("LP1\nF \"a\nEND\n", 2, "Unterminated quoted path"),
        ("LP1\nF a\nX\nEND\n", 3, "Unknown LP1 operation `X`"),
        ("LP1\nF a\nR2\na\n.\nb\n.\nEND\n", 3, "Unknown LP1 operation `R2`"),
        ("LP1\nF a\nR +2\na\n.\nb\n.\nEND\n", 3, "Invalid occurrence `+2`"),
        ("LP1\nF a\nR 02\na\n.\nb\n.\nEND\n", 3, "Invalid occurrence `02`"),
        ("LP1\nF a\nR 1 2\na\n.\nb\n.\nEND\n", 3, "Invalid occurrence `1 2`"),
        ("LP1\nF a\nE 99999999999999999999\na\n.\nEND\n", 3, "Invalid occurrence `99999999999999999999`"),
        ("LP1\nF a\nR 0\na\n.\nb\n.\nEND\n", 3, "Occurrence must be >= 1"),
        ("LP1\nF a\nT x\ny\n.\nEND\n", 3, "`T` takes no argument, found `x`"),
        ("LP1\nF a\nN\nEND\n", 3, "Invalid N flag; expected + or -, found ``"),
        ("LP1\nF a\nN+\nEND\n", 3, "Unknown LP1 operation `N+`"),
        ("LP1\nF a\nT\n.env\n.\nEND\n", 4, "Dot-stuffed line must start with '..', found `.env`"),
        ("LP1\nF a\nT\nx\nEND\n", 3, "Unterminated LP1 block: the new block of this operation has no end"),
        ("LP1\nF a\nT\nx\ry\n.\nEND\n", 4, "Carriage return within a line of a block"),
        ("LP1\nF a\nEND x\n", 3, "Unknown LP1 operation `END`"),
        ("LP1\nEND\nwords\n", 3, "Expected nothing after END, found `words`"),
    ] {
        let error = haft_patch::lp1::parse(patch).expect_err(patch);
        assert_eq!((error.line, error.message.as_str()), (Some(line), message), "{patch:?}");
        assert!(error.help.is_some(), "{patch:?}");
    }
}

#[test]
fn empty_sections_and_empty_patches_are_fine() {
    assert!(haft_patch::lp1::parse("LP1\nEND").unwrap().paths().is_empty());
    let nothing = support::changes(&Tree::new(), "LP1\nF not/there\nEND\n").unwrap();
    assert_eq!(nothing, []);
}
