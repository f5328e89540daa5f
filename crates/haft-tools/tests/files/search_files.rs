use crate::common::{House, failure, pipe, text};
use haft_core::ErrorCode;
use haft_sdk::CancelReason;
use serde_json::{Value, json};

fn tree() -> House {
    House::new(&[
        ("a.rs", b"fn main() {\n    let Foo = 1;\n}\n"),
        ("b/b.rs", b"one\r\nfoo bar\r\nthree\r\nfoo again"),
        ("b/c.md", b"foo in words\n"),
        (".hidden.rs", b"foo\n"),
        ("target/t.rs", b"foo\n"),
        (".gitignore", b"target\n"),
        ("x.bin", b"foo\n\0foo\n"),
        (".env", b"foo=secret\n"),
        ("wide.txt", "f\u{0}o\u{0}o\u{0}".as_bytes()),
    ])
}

fn found(house: &House, args: Value) -> String {
    text(house.call("search_files", args))
}

#[test]
fn lines_are_found_in_order_of_path() {
    let house = tree();
    assert_eq!(
        found(&house, json!({"pattern": "foo"})),
        "a.rs:2:    let Foo = 1;\nb/b.rs:2:foo bar\nb/b.rs:4:foo again\nb/c.md:1:foo in words"
    );
    assert_eq!(
        found(&house, json!({"pattern": "Foo"})),
        "a.rs:2:    let Foo = 1;",
        "a capital letter matters"
    );
    assert_eq!(
        found(&house, json!({"pattern": "foo", "case": "sensitive", "include": ["*.md"]})),
        "b/c.md:1:foo in words"
    );
    assert_eq!(found(&house, json!({"pattern": "FOO in", "case": "insensitive"})), "b/c.md:1:foo in words");
    assert_eq!(found(&house, json!({"pattern": "main()", "literal": true})), "a.rs:1:fn main() {");
    assert_eq!(
        found(&house, json!({"pattern": "foo", "path": "b", "exclude": ["*.rs"]})),
        "c.md:1:foo in words\n[paths are below b]"
    );
    assert_eq!(
        found(&house, json!({"pattern": "in words", "path": "b/c.md"})),
        "c.md:1:foo in words\n[paths are below b/c.md]"
    );
    let all = found(&house, json!({"pattern": "^foo$", "hidden": true, "no_ignore": true}));
    assert_eq!(all, ".hidden.rs:1:foo\ntarget/t.rs:1:foo", "and never .env, nor what is not text");
}

#[test]
fn context_is_shown_once() {
    let house = House::new(&[("a", b"1\n2\nhit\n4\nhit\n6\n7\n8\n9\nhit\n")]);
    let args = json!({"pattern": "hit", "before": 1, "after": 1});
    let output = house.call("search_files", args).unwrap();
    assert_eq!(output.text.unwrap(), "a-2-2\na:3:hit\na-4-4\na:5:hit\na-6-6\n--\na-9-9\na:10:hit");
    let value = output.structured.unwrap();
    assert_eq!(
        value["matches"][0],
        json!({"path": "a", "line": 3, "text": "hit", "before": ["2"], "after": ["4"]})
    );
    assert_eq!(value["matches"][1], json!({"path": "a", "line": 5, "text": "hit", "after": ["6"]}));
    let (code, _) = failure(house.call("search_files", json!({"pattern": "hit", "before": 51})));
    assert_eq!(code, ErrorCode::ValidationFailed);
}

#[test]
fn matches_over_several_lines_are_found_when_asked_for() {
    let house = House::new(&[("a", b"x\nbegin\nend\ny\n")]);
    let args = json!({"pattern": "begin\\nend", "multiline": true});
    assert_eq!(found(&house, args), "a:2:begin\na:3:end");
    let (_, message) = failure(house.call("search_files", json!({"pattern": "begin\\nend"})));
    assert!(message.contains("multiline: true"), "{message}");
}

#[test]
fn the_first_matches_by_path_are_kept_whoever_is_first() {
    let mut house = House::new(&[]);
    for number in 0..500 {
        house.write(&format!("d{}/f{number:03}", number % 5), b"hit\nhit\nhit\n");
    }
    house.settings.search_files.threads = 4;
    let args = json!({"pattern": "hit", "max_results": 7});
    let first = house.call("search_files", args.clone()).unwrap();
    let text = first.text.unwrap();
    assert!(text.starts_with("d0/f000:1:hit\nd0/f000:2:hit\nd0/f000:3:hit\nd0/f005:1:hit"), "{text}");
    assert!(text.contains("d0/f010:1:hit\n[truncated at 7 matches; narrow"), "{text}");
    for _ in 0..20 {
        let again = house.call("search_files", args.clone()).unwrap().structured.unwrap();
        assert_eq!(again["matches"], first.structured.as_ref().unwrap()["matches"]);
        assert_eq!(again["truncated"], true);
    }
    let exact = house.call("search_files", json!({"pattern": "hit", "max_results": 1500})).unwrap();
    let value = exact.structured.unwrap();
    assert_eq!((&value["truncated"], &value["files_searched"]), (&json!(false), &json!(500)));
}

#[test]
fn a_bad_expression_says_where_and_what_to_do() {
    let house = tree();
    let (code, message) = failure(house.call("search_files", json!({"pattern": "foo(bar"})));
    assert_eq!(code, ErrorCode::ValidationFailed);
    assert!(message.contains("unclosed group") && message.contains('^'), "{message}");
    assert!(message.ends_with("To search for the text itself set literal: true"), "{message}");
    assert!(house.call("search_files", json!({"pattern": "foo(bar", "literal": true})).is_ok());
    for args in [
        json!({"pattern": ""}),
        json!({"pattern": "a".repeat(20_000)}),
        json!({"pattern": "(a{1000}){1000}"}),
        json!({"pattern": "a", "include": ["["]}),
        json!({"pattern": "a", "exclude": ["../x"]}),
        json!({"pattern": "a", "max_results": 0}),
    ] {
        let (code, message) = failure(house.call("search_files", args));
        assert_eq!(code, ErrorCode::ValidationFailed, "{message}");
    }
}

#[test]
fn long_lines_are_cut_around_the_match_with_their_length() {
    let line = format!("{}needle{}", "x".repeat(5000), "y".repeat(5000));
    let house = House::new(&[("min.js", line.as_bytes())]);
    let text = found(&house, json!({"pattern": "needle"}));
    assert!(text.len() < 600 && text.contains("xneedley"), "{text}");
    assert!(text.ends_with("… [500 of 10006 bytes]"), "{text}");
}

#[test]
fn nothing_found_comes_with_what_to_try() {
    let house = House::new(&[("a", b"x"), ("b", b"y")]);
    assert_eq!(
        found(&house, json!({"pattern": "fn main()", "hidden": true, "no_ignore": true})),
        "No matches for pattern: fn main() (2 files were searched)\n[literal: true searches for the text itself]"
    );
}

#[test]
fn links_pipes_and_the_outside_are_not_searched() {
    let house = tree();
    house.link("out", "../outside.txt");
    house.link("outdir", "..");
    house.link("to_env", ".env");
    pipe(&house.path("pipe"));
    let text = found(&house, json!({"pattern": "canary|secret", "hidden": true, "no_ignore": true}));
    assert!(text.starts_with("No matches"), "{text}");
    for path in ["out", "outdir", "to_env", ".env", "../outside.txt"] {
        let (code, message) = failure(house.call("search_files", json!({"pattern": "a", "path": path})));
        assert_eq!(code, ErrorCode::FilesystemPolicyViolation, "{path}: {message}");
    }
    let (_, message) = failure(house.call("search_files", json!({"pattern": "a", "path": "pipe"})));
    assert!(message.contains("not a regular file"), "{message}");
    // The control: outside the jail it would have been found.
    let outside = House::new(&[("outside.txt", b"canary\n")]);
    assert_eq!(found(&outside, json!({"pattern": "canary|secret"})), "outside.txt:1:canary");
}

#[test]
fn utf_16_with_a_mark_is_searched_as_text() {
    let bytes: Vec<u8> = "\u{feff}grüße\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let house = House::new(&[("a.txt", &bytes)]);
    assert_eq!(found(&house, json!({"pattern": "grüße"})), "a.txt:1:grüße");
}

#[test]
fn a_call_that_was_ended_stops() {
    let house = tree();
    let host = house.host();
    host.cancel().cancel(CancelReason::User, None);
    let (code, _) = failure(house.call_on(&host, "search_files", json!({"pattern": "foo"})));
    assert_eq!(code, ErrorCode::Cancelled);
}
