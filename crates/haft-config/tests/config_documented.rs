//! What the documentation says about configuration keys is what the key table says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[test]
fn every_key_is_documented_with_its_default() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    for key in haft_config::keys() {
        let row = format!("| `{}` | `{}` |", key.path(), key.default_value());
        assert!(page.contains(&row), "docs/configuration.md has no row that begins with: {row}");
    }
}
