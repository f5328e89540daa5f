//! What the documentation says about the error table is what the table says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use haft_core::ErrorCode;

#[test]
fn every_row_of_the_error_table_is_documented_as_it_is() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results-and-errors.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| code | number"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let actual: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let number = code.e_number().unwrap_or("–");
            let status = code.status().map_or("–", haft_core::Status::as_str);
            let retry = if code.is_retryable() { "yes" } else { "–" };
            format!("| {code} | {number} | {status} | {retry} | {} | {} |", code.http(), code.exit())
        })
        .collect();
    assert_eq!(documented, actual);
}
