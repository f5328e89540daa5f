use crate::common::{House, failure, text};
use haft_core::ErrorCode;
use haft_sdk::CancelReason;
use serde_json::{Value, json};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

fn tree() -> House {
    House::new(&[
        ("main.rs", b""),
        ("src/lib.rs", b""),
        ("src/a/b.rs", b""),
        ("src/a/c.toml", b""),
        ("src/.dot/d.rs", b""),
        ("target/out.rs", b""),
        (".gitignore", b"target/\n"),
        (".git/config", b""),
        (".env", b""),
    ])
}

fn found(house: &House, args: Value) -> String {
    text(house.call("glob", args))
}

#[test]
fn patterns_find_files_in_order() {
    let house = tree();
    assert_eq!(found(&house, json!({"pattern": "**/*.rs"})), "main.rs\nsrc/a/b.rs\nsrc/lib.rs");
    assert_eq!(found(&house, json!({"pattern": "*.rs"})), "main.rs");
    assert_eq!(
        found(&house, json!({"pattern": "src/**/*.{rs,toml}"})),
        "src/a/b.rs\nsrc/a/c.toml\nsrc/lib.rs"
    );
    assert_eq!(found(&house, json!({"pattern": "a/*.rs", "path": "src"})), "a/b.rs\n[paths are below src]");
    assert_eq!(
        found(&house, json!({"pattern": "**/*.rs", "hidden": true, "no_ignore": true})),
        "main.rs\nsrc/.dot/d.rs\nsrc/a/b.rs\nsrc/lib.rs\ntarget/out.rs"
    );
    let everything = found(&house, json!({"pattern": "**", "hidden": true, "no_ignore": true}));
    assert!(!everything.contains(".env") && !everything.contains(".git/"), "{everything}");
}

#[test]
fn what_is_left_out_is_said() {
    let mut house = tree();
    let output = house.call("glob", json!({"pattern": "**/*.rs", "max_results": 2})).unwrap();
    assert_eq!(
        output.text.unwrap(),
        "main.rs\nsrc/a/b.rs\n[truncated at 2 matches of 3; use a narrower pattern or path, or max_results]"
    );
    assert_eq!(
        output.structured.unwrap(),
        json!({"paths": ["main.rs", "src/a/b.rs"], "total": 3, "truncated": true})
    );
    for args in [json!({"pattern": "*", "max_results": 10_001}), json!({"pattern": "*", "max_results": 0})] {
        assert_eq!(failure(house.call("glob", args)).0, ErrorCode::ValidationFailed);
    }
    house.settings.glob.default_results = 1;
    assert!(found(&house, json!({"pattern": "**"})).starts_with("main.rs\n[truncated at 1 matches of 4"));
}

#[test]
fn the_first_of_very_many_are_kept() {
    let house = House::new(&[]);
    for number in 0..9000 {
        house.write(&format!("d{}/f{number:05}", number % 7), b"");
    }
    let output = house.call("glob", json!({"pattern": "**", "max_results": 10})).unwrap();
    let value = output.structured.unwrap();
    assert_eq!(value["total"], 9000);
    let expected: Vec<_> = (0..10).map(|n| format!("d0/f{:05}", n * 7)).collect();
    assert_eq!(value["paths"], json!(expected));
}

#[test]
fn nothing_found_comes_with_what_to_try() {
    let house = tree();
    assert_eq!(
        found(&house, json!({"pattern": "lib.rs"})),
        "No files match pattern: lib.rs\n[`**/lib.rs` looks in every folder; hidden: true adds names that begin with \
         a dot; no_ignore: true adds what .gitignore leaves out]"
    );
    let all = json!({"pattern": "**/*.none", "hidden": true, "no_ignore": true});
    assert_eq!(found(&house, all), "No files match pattern: **/*.none");
}

#[test]
fn bad_patterns_and_places_are_refused() {
    let house = tree();
    for pattern in ["", "../*", "/etc/*", "a{b", "[a"] {
        let (code, message) = failure(house.call("glob", json!({"pattern": pattern})));
        assert_eq!(code, ErrorCode::ValidationFailed, "{pattern}: {message}");
    }
    house.link("out", "..");
    for path in ["..", "out", "/etc"] {
        let (code, _) = failure(house.call("glob", json!({"pattern": "**", "path": path})));
        assert_eq!(code, ErrorCode::FilesystemPolicyViolation);
    }
    assert!(house.call("glob", json!({"pattern": "**", "path": "missing"})).is_err());
}

#[test]
fn links_are_not_followed_and_names_that_are_not_text_are_marked() {
    let house = tree();
    house.link("src/to_outside", "../..");
    house.link("src/file_link", "lib.rs");
    std::fs::write(house.path(OsStr::from_bytes(b"bad\xff.x")), "").unwrap();
    assert_eq!(found(&house, json!({"pattern": "src/*"})), "src/lib.rs");
    assert_eq!(found(&house, json!({"pattern": "*.x"})), "bad\u{fffd}.x");
    assert_eq!(
        found(&house, json!({"pattern": "**", "path": "main.rs"})),
        "main.rs\n[paths are below main.rs]"
    );
}

#[test]
fn a_call_that_was_ended_stops() {
    let house = tree();
    let host = house.host();
    host.cancel().cancel(CancelReason::User, None);
    let (code, _) = failure(house.call_on(&host, "glob", json!({"pattern": "**"})));
    assert_eq!(code, ErrorCode::Cancelled);
}
