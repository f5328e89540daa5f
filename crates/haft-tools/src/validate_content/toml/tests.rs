use serde_json::json;

use super::super::{Args, Problem, validate};
use super::*;

/// The problems of `content`, as `line:column rule: message | hint`.
fn problems(content: &str) -> Vec<String> {
    let report = validate(&Args::toml(content)).expect("no schema");
    let line = |problem: &Problem| {
        let Problem { line, column, rule, message, hint, .. } = problem;
        let hint = hint.as_deref().map_or(String::new(), |hint| format!(" | {hint}"));
        format!("{line}:{column} {rule}: {message}{hint}")
    };
    report.problems.iter().map(line).collect()
}

#[test]
fn words_for_each_mistake() {
    let table: &[(&str, &[&str])] = &[
        ("a = ", &["1:5 syntax: expected a value, got the end of the content"]),
        ("a = hello", &["1:5 syntax: expected a value, got `hello` | put a string in quotes: \"hello\""]),
        ("a = True", &["1:5 syntax: invalid boolean: expected `true`, got `True` | write `true`"]),
        ("a = null", &["1:5 syntax: expected a value, got `null` | TOML has no null: leave the key out"]),
        (
            "a: 1",
            &["1:2 syntax: invalid unquoted key: expected letters, numbers, `-`, `_`, got `:` | \
               write `=` between key and value"],
        ),
        (
            "// c\na = 1",
            &["1:1 syntax: invalid unquoted key: expected letters, numbers, `-`, `_`, got `//` | \
               comments start with `#`"],
        ),
        (
            "ok = 1\n\na b = 1",
            &["3:3 syntax: key with no value: expected `=`, got `b` | \
               write `key = value`, and put a key with spaces in quotes"],
        ),
        (
            "x = 1\n[y]\nx = 2\nx = 3\n",
            &["4:1 duplicate_key: expected each key once, got `x` again: it is first at line 3, column 1 | \
               keep one of the two"],
        ),
        (
            "[t]\nx = 1\n[t]\n",
            &["3:2 duplicate_key: expected each key once, got `t` again | keep one of the two"],
        ),
        (
            "a = [1, 2",
            &[
                "1:10 syntax: unclosed array: expected `]`, got the end of the content | close the array with `]`",
            ],
        ),
        (
            "a = \"ä\nb = 1",
            &["1:7 syntax: invalid basic string: expected `\"`, got a line break | \
               close the string with `\"`, or use `\"\"\"` for several lines"],
        ),
        (
            "a = 'x",
            &["1:7 syntax: invalid literal string: expected `'`, got the end of the content | \
               close the string with `'`, or use `'''` for several lines"],
        ),
        (
            "a = '\u{1}'",
            &["1:6 syntax: invalid literal string: expected non-single-quote visible characters, \
               got the character U+0001"],
        ),
        ("a = 01", &["1:5 syntax: unexpected leading zero, got `0`"]),
        ("a = 2020-13-01", &["1:5 syntax: invalid date: expected month between 01 and 12, got `2020-13-01`"]),
        ("a = 1\na.b = 2", &["2:1 syntax: cannot extend value of type integer with a dotted key, got `a`"]),
        (
            "{\"a\": 1}",
            &[
                "1:1 syntax: invalid key-value pair: expected key, got `{` | this looks like JSON: say so with `format`",
            ],
        ),
        (
            "a = 99999999999999999999",
            &["1:5 number: expected an integer from -2^63 to 2^63-1, got `99999999999999999999`"],
        ),
        ("a = 1e999", &["1:5 number: expected a number that fits into 64 bits, got `1e999`"]),
        // Two mistakes on two lines.
        (
            "a = x\nb = 1\nc = y",
            &[
                "1:5 syntax: expected a value, got `x` | put a string in quotes: \"x\"",
                "3:5 syntax: expected a value, got `y` | put a string in quotes: \"y\"",
            ],
        ),
    ];
    for (content, expected) in table {
        assert_eq!(problems(content), *expected, "content: {content}");
    }
}

#[test]
fn depth_is_limited_and_never_overflows() {
    for bomb in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        let found = problems(&bomb);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].ends_with("depth: expected at most 80 levels of arrays and tables, got more"),
            "{found:?}"
        );
    }
    // Each within what the parser allows, but not together.
    let path = ["a"; 70].join(".");
    let deep = format!("[{path}]\n{path} = {}{}", "[".repeat(70), "]".repeat(70));
    let found = problems(&deep);
    assert!(
        found[0].ends_with("expected at most 128 arrays and tables inside each other, got more"),
        "{found:?}"
    );
}

#[test]
fn the_content_as_json_and_its_places() {
    let content = "title = \"x\"\nday = 2024-02-29\nn = [1, -0.5, inf, nan]\n\n[owner]\nname.first = \"a\"\n\n\
                   [[list]]\nk = 0x1F\n[[list]]\nk = true\n";
    let mut findings = Findings::default();
    let scan = scan(content, &Lines::new(content), &mut findings);
    let value = json!({
        "title": "x", "day": "2024-02-29", "n": [1, -0.5, "inf", "nan"],
        "owner": {"name": {"first": "a"}}, "list": [{"k": 31}, {"k": true}],
    });
    assert_eq!(scan.value, Some(value));
    let at = |pointer: &str| scan.places.value_at(pointer).map(|node| &content[node.span.clone()]);
    for (pointer, text) in [
        ("/title", "\"x\""),
        ("/day", "2024-02-29"),
        ("/n", "[1, -0.5, inf, nan]"),
        ("/n/1", "-0.5"),
        ("/owner", "[owner]"),
        ("/owner/name/first", "\"a\""),
        ("/list/0", "[[list]]"),
        ("/list/1/k", "true"),
    ] {
        assert_eq!(at(pointer), Some(text), "{pointer}");
    }
    let key = scan.places.key_at("/owner/name/first").expect("a key");
    assert_eq!(&content[key], "first");
}
