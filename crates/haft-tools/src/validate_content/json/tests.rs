use super::super::{Args, Problem, validate};

/// The problems of `content`, as `line:column pointer rule: message | hint`.
fn problems(content: &str) -> Vec<String> {
    let report = validate(&Args::json(content)).expect("no schema");
    assert_eq!(report.valid, report.problems.is_empty());
    let line = |problem: &Problem| {
        let Problem { line, column, pointer, rule, message, hint, .. } = problem;
        let pointer = pointer.as_deref().unwrap_or("?");
        let hint = hint.as_deref().map_or(String::new(), |hint| format!(" | {hint}"));
        format!("{line}:{column} {pointer} {rule}: {message}{hint}")
    };
    report.problems.iter().map(line).collect()
}

#[test]
fn words_for_each_mistake() {
    let table: &[(&str, &[&str])] = &[
        ("", &["1:1  unexpected_end: expected a JSON value, got the end of the content"]),
        (" \n ", &["2:2  unexpected_end: expected a JSON value, got the end of the content"]),
        // Commas.
        (
            "{\"a\": 1,}",
            &["1:8  trailing_comma: expected a key after the comma, got `}` | remove the comma before `}`"],
        ),
        (
            "{\"a\": [1,\n2,\n]}",
            &[
                "2:2 /a trailing_comma: expected a value after the comma, got `]` | remove the comma before `]`",
            ],
        ),
        ("[1,,2]", &["1:4  extra_comma: expected a value, got a comma | remove this comma"]),
        ("[,1]", &["1:2  extra_comma: expected a value, got a comma | remove this comma"]),
        ("{,}", &["1:2  extra_comma: expected a key, got a comma | remove this comma"]),
        ("[1 2]", &["1:4  missing_comma: expected `,` or `]`, got `2` | put a comma before it"]),
        (
            "{\"a\": 1\n \"b\": 2}",
            &["2:2  missing_comma: expected `,` or `}`, got `\"` | put a comma before it"],
        ),
        // Keys.
        (
            "{\"a\": 1, \"b\": 2,\n \"a\": 3}",
            &[
                "2:2 /a duplicate_key: expected each key once, got \"a\" again: it is first at line 1, column 2 | \
               keep one of the two: most readers take the last",
            ],
        ),
        (
            "[{\"x\": 1, \"\\u0078\": 2}]",
            &[
                "1:11 /0/x duplicate_key: expected each key once, got \"x\" again: it is first at line 1, column 3 | \
               keep one of the two: most readers take the last",
            ],
        ),
        ("{a: 1}", &["1:2  unquoted_key: expected a key in double quotes, got `a` | write \"a\""]),
        ("{1: 1}", &["1:2  syntax: expected a key in double quotes or `}`, got `1`"]),
        ("{\"a\" 1}", &["1:6  syntax: expected `:` after the key \"a\", got `1`"]),
        (
            "{\"a\" = 1}",
            &["1:6  syntax: expected `:` after the key \"a\", got `=` | write `:` instead of `=`"],
        ),
        ("{\"a\":}", &["1:6 /a syntax: expected a value for the key \"a\", got `}`"]),
        // Brackets.
        (
            "{\"a\": [1, 2",
            &["1:12 /a unexpected_end: expected `,` or `]`, got the end of the content | \
               close the array that starts at line 1, column 7 with `]`"],
        ),
        (
            "[\n  {\n    \"a\": 1\n  ]",
            &[
                "4:3 /0 syntax: expected `,` or `}`, got `]` | close the object that starts at line 2, column 3 with `}`",
            ],
        ),
        (
            "[1,",
            &["1:4  unexpected_end: expected a value or `]`, got the end of the content | \
                   close the array that starts at line 1, column 1 with `]`"],
        ),
        (
            "{",
            &["1:2  unexpected_end: expected a key or `}`, got the end of the content | \
                 close the object that starts at line 1, column 1 with `}`"],
        ),
        (
            "[1]]",
            &[
                "1:4  trailing_data: expected the end of the content, got `]` | remove it: nothing is open here",
            ],
        ),
        (
            "{}\n{}",
            &[
                "2:1  trailing_data: expected the end of the content, got `{` | JSON is one value: put several into an array",
            ],
        ),
        ("(1)", &["1:1  syntax: expected a JSON value, got `(` | use `[` and `]` for lists"]),
        // Comments and blanks.
        (
            "// a\n[1, /* b */ 2] # c",
            &[
                "1:1  comment: expected JSON, which has no comments, got `//` | remove the comment",
                "2:5  comment: expected JSON, which has no comments, got `/*` | remove the comment",
                "2:16  comment: expected JSON, which has no comments, got `#` | remove the comment",
            ],
        ),
        (
            "[1 /* b",
            &[
                "1:4  comment: expected JSON, which has no comments, got `/*` | remove the comment; it is not closed",
            ],
        ),
        (
            "\u{feff}{}",
            &["1:1  byte_order_mark: expected a JSON value, got a byte order mark (U+FEFF) | \
               remove the first character, which is invisible"],
        ),
        (
            "[1,\u{a0}2]",
            &["1:4  blank: expected a space, a tab or a line break, got a no-break space (U+00A0) | \
               replace it by a plain space, or remove it"],
        ),
        (
            "```json\n{}\n```",
            &[
                "1:1  syntax: expected a JSON value, got a Markdown fence | give what is between the fences, without them",
            ],
        ),
        // Strings.
        (
            "['it\\'s', \"b\"]",
            &["1:2 /0 quotes: expected double quotes around the string, got single quotes | write \"it's\""],
        ),
        ("[“a”]", &["1:2 /0 syntax: expected a value or `]`, got `“` | use plain double quotes: `\"`"]),
        (
            "[\"abc",
            &[
                "1:2 /0 unterminated_string: expected `\"` at the end of the string that starts here, got the end of \
               the content | close the string with `\"`",
            ],
        ),
        (
            "{\"a\": \"b\n}",
            &[
                "1:7 /a unterminated_string: expected `\"` at the end of the string that starts here, got a line break | \
               close the string with `\"`, or write the line break in it as `\\n`",
            ],
        ),
        (
            "[\"a\tb\tc\", \"\u{1}\"]",
            &[
                "1:4 /0 control_character: expected `\\t` in the string, got a tab | write it as `\\t`",
                "1:12 /1 control_character: expected `\\u0001` in the string, got the character U+0001 | \
                 write it as `\\u0001`",
            ],
        ),
        (
            "[\"C:\\dir\"]",
            &["1:5 /0 escape: expected an escape such as `\\n`, `\\\"` or `\\u00e9`, got `\\d` | \
               write a backslash itself as `\\\\`"],
        ),
        (
            "[\"\\u12g4\"]",
            &["1:3 /0 escape: expected four hexadecimal digits after `\\u`, got \"12\" | \
               write `\\u` and four digits, as in `\\u00e9`"],
        ),
        (
            "[\"ab\\ud800\"]",
            &[
                "1:5 /0 surrogate: expected a pair of surrogates, got `\\ud800` alone, which is no character | \
               write the character itself, or both halves, as in `\\ud83d\\ude00`",
            ],
        ),
        (
            "[\"\\udc00\\ud800\"]",
            &[
                "1:3 /0 surrogate: expected a pair of surrogates, got `\\udc00` alone, which is no character | \
                 write the character itself, or both halves, as in `\\ud83d\\ude00`",
                "1:9 /0 surrogate: expected a pair of surrogates, got `\\ud800` alone, which is no character | \
                 write the character itself, or both halves, as in `\\ud83d\\ude00`",
            ],
        ),
        // Words.
        (
            "[True, None, NaN, tru, hello]",
            &[
                "1:2 /0 literal: expected a JSON value, got `True` | write `true`",
                "1:8 /1 literal: expected a JSON value, got `None` | write `null`",
                "1:14 /2 literal: expected a JSON value, got `NaN` | JSON has neither NaN nor infinity: write null, or a string",
                "1:19 /3 literal: expected a JSON value, got `tru` | write `true`",
                "1:24 /4 literal: expected a JSON value, got `hello` | put a string in double quotes: \"hello\"",
            ],
        ),
        // Numbers.
        (
            "[01, +1, .5, 1., 0x1f, 1_000, -Infinity, -, 1e]",
            &[
                "1:2 /0 number: expected a number without leading zeros, got `01` | write 1, or \"01\" if the zeros matter",
                "1:6 /1 number: expected a number without `+` before it, got `+1` | write 1",
                "1:10 /2 number: expected a digit before the point, got `.5` | write 0.5",
                "1:14 /3 number: expected a digit after the point, got `1.` | write 1.0",
                "1:18 /4 number: expected a decimal number, got `0x1f` | write 31",
                "1:24 /5 number: expected a number without `_`, got `1_000` | write 1000",
                "1:31 /6 number: expected a number, got `-Infinity` | JSON has neither NaN nor infinity: write null, or a string",
                "1:42 /7 number: expected digits after the sign, got `-` | \
                 write a number such as 12, -0.5 or 1e9, or put text in double quotes",
                "1:45 /8 number: expected a number, got `1e` | \
                 write a number such as 12, -0.5 or 1e9, or put text in double quotes",
            ],
        ),
        // Columns are characters.
        (
            "{\"ä€😀\": 1,}",
            &["1:10  trailing_comma: expected a key after the comma, got `}` | remove the comma before `}`"],
        ),
    ];
    for (content, expected) in table {
        assert_eq!(problems(content), *expected, "content: {content}");
    }
}

#[test]
fn valid_content_has_no_problems() {
    for content in [
        "0",
        "-0",
        "1e400",
        "-1E+400",
        "1e-400",
        "123456789012345678901234567890",
        "\"\"",
        "[]",
        " { } ",
        "[1,2 , 3]\r\n",
        "{\"a\":{\"b\":[null,true,false]}}",
        "\"\\ud83d\\ude00 \\/ \u{7f} \u{2028}\"",
        "{\"\": 0, \" \": 0, \"~/\": 0}",
    ] {
        assert_eq!(problems(content), [""; 0], "content: {content}");
    }
}

#[test]
fn depth_is_limited_and_never_overflows() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(problems(&nested(128)), [""; 0]);
    let too_deep = "1:129 /0/0/0";
    let found = problems(&nested(129));
    assert!(found[0].starts_with(too_deep), "{found:?}");
    assert!(found[0].ends_with("depth: expected at most 128 arrays and objects inside each other, got more"));
    for bomb in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "[{\"a\":".repeat(100_000)] {
        assert_eq!(problems(&bomb).len(), 1);
    }
}

#[test]
fn long_pieces_are_cut() {
    let word = "x".repeat(500);
    let found = problems(&format!("[{word}]"));
    assert!(found[0].chars().count() < 200, "{}", found[0]);
}

#[test]
fn many_problems_are_counted_and_listed_up_to_the_limit() {
    let content = format!("[{}1]", "01,".repeat(5000));
    let report = validate(&Args { max_problems: Some(5000), ..Args::json(&content) }).expect("no schema");
    assert_eq!((report.problems.len(), report.total), (1000, 5000));
    let report = validate(&Args { max_problems: Some(0), ..Args::json(&content) }).expect("no schema");
    assert_eq!((report.problems.len(), report.total), (1, 5000));
    assert_eq!(validate(&Args::json(&content)).expect("no schema").problems.len(), 20);
}
