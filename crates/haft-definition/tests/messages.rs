//! What an author reads when a file is wrong. A changed snapshot is a changed message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_definition::{Format, read, read_checked};
use std::fmt::Write as _;

const START: &str = "{\n  \"name\": \"ping\",\n  \"description\": \"Answers at once\",\n  ";

fn json(rest: &str) -> (Format, String) {
    (Format::Json, format!("{START}{rest}\n}}\n"))
}

fn toml(rest: &str) -> (Format, String) {
    (Format::Toml, format!("name = \"ping\"\ndescription = \"Answers at once\"\n{rest}\n"))
}

fn files() -> Vec<(&'static str, (Format, String))> {
    let parameter = "[[parameters]]\nname = \"a\"\ndescription = \"A\"\ntype = \"String\"\n";
    vec![
        ("an unknown field", json("\"paramters\": []")),
        ("one that is near to none", json("\"colour\": 1")),
        ("one in another case", json("\"OutputSchema\": {}")),
        ("a field twice", json("\"tier\": \"Core\", \"tier\": \"Teams\"")),
        ("a field in two spellings", json("\"outputSchema\": {}, \"output_schema\": {}")),
        ("a comma at the end", json("\"tier\": \"Core\",")),
        ("not an object", (Format::Json, "[1, 2]".into())),
        ("nothing", (Format::Json, String::new())),
        ("no name", (Format::Json, "{\"description\": \"x\"}".into())),
        ("a misspelt name", (Format::Json, "{\"nmae\": \"x\", \"description\": \"x\"}".into())),
        ("a word of another kind", json("\"category\": \"Filesystem\"")),
        ("a word of no kind", json("\"tier\": \"Gold\"")),
        ("a number for a text", json("\"version\": 1.0")),
        ("a text for a flag", json("\"idempotent\": \"yes\"")),
        ("a text for a list", json("\"aliases\": \"Ping\"")),
        (
            "a parameter type in lower case",
            json("\"parameters\": [{\"name\": \"a\", \"description\": \"A\", \"type\": \"string\"}]"),
        ),
        ("a parameter without a type", json("\"parameters\": [{\"name\": \"a\", \"description\": \"A\"}]")),
        (
            "a parameter with an unknown field",
            json(
                "\"parameters\": [\n    {\"name\": \"a\", \"description\": \"A\", \"type\": \"String\", \"defualt\": 1}\n  ]",
            ),
        ),
        ("parameters that are neither", json("\"parameters\": \"path\"")),
        ("a duration in words", json("\"constraints\": {\"maxExecutionTime\": \"half a minute\"}")),
        ("a duration as a number", json("\"constraints\": {\"maxExecutionTime\": 30}")),
        ("a negative duration", json("\"constraints\": {\"defaultTimeout\": \"-PT5S\"}")),
        ("a size in words", json("\"constraints\": {\"maxOutputSize\": \"10MB\"}")),
        ("a negative size", json("\"constraints\": {\"maxOutputSize\": -1}")),
        ("a size with an exponent", json("\"constraints\": {\"maxOutputSize\": 1e6}")),
        (
            "an unknown constraint",
            json("\"constraints\": {\"maxTime\": \"PT5S\", \"allow_side_effects\": false}"),
        ),
        ("an unknown hint", json("\"annotations\": {\"destructiveHint\": true}")),
        ("rules that are broken", json("\"version\": \"1\", \"aliases\": [\"ping\"]")),
        ("TOML: an unknown field", toml("paramters = []")),
        ("TOML: an unknown field in a section", toml("[constraints]\nmax_excution_time = \"PT5S\"")),
        (
            "TOML: a field in two spellings",
            toml("[constraints]\nmaxOutputSize = 5000\nmax_output_size = 6000"),
        ),
        ("TOML: a field twice", toml("tier = \"Core\"\ntier = \"Teams\"")),
        ("TOML: no quotes", toml("category = Network")),
        ("TOML: a date", toml("[metadata]\nsince = 2024-01-01")),
        ("TOML: no name", (Format::Toml, "description = \"x\"\n".into())),
        ("TOML: a parameter without a description", toml("[[parameters]]\nname = \"a\"\ntype = \"String\"")),
        (
            "TOML: rules that are broken",
            toml(&format!("{parameter}\n{parameter}default = 5\n[parameters.schema]\nminLength = \"1\"")),
        ),
        (
            "TOML: a default that its schema refuses",
            toml(&format!("{parameter}default = \"\"\nschema = {{ minLength = 1 }}")),
        ),
        (
            "TOML: several things",
            toml("tier = \"Gold\"\nidempotent = 1\n[constraints]\nmaxOutputSize = \"x\"\nmaxTime = 1"),
        ),
    ]
}

#[test]
fn what_an_author_reads() {
    let mut all = String::new();
    for (name, (format, text)) in files() {
        let errors =
            read_checked(&text, format).map(|definition| panic!("{name}: {definition:?}")).unwrap_err();
        writeln!(all, "# {name}\n{}\n{errors}\n", text.trim_start_matches(START).trim_end()).unwrap();
    }
    insta::assert_snapshot!("what_an_author_reads", all);
}

#[test]
fn the_form_of_a_message() {
    let text = "name = 'ping'\ndescription = 'x'\n\nparamters = []";
    assert_eq!(
        read(text, Format::Toml).unwrap_err().to_string(),
        "error: unknown field `paramters` at line 4, column 1\n  help: did you mean `parameters`?"
    );
}

#[test]
fn many_mistakes_are_counted_and_long_ones_cut() {
    let many: String = (0..500).map(|n| format!("unknown_{n} = {n}\n")).collect();
    let errors = read(&format!("name = 'a'\ndescription = 'b'\n{many}"), Format::Toml).unwrap_err();
    assert_eq!(errors.errors().len(), 500);
    let text = errors.to_string();
    assert!(text.ends_with("\nand 480 more") && text.len() < 10_000, "{}", text.len());
    let long = format!("{{\"name\": \"a\", \"description\": \"b\", \"{}\": 1}}", "x".repeat(100_000));
    assert!(read(&long, Format::Json).unwrap_err().to_string().len() < 1000);
}
