//! Every way in which a flow can be wrong: refused with the place in the file, and never with a panic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_definition::Format;
use haft_flow::{Tools, read, read_within};
use proptest::{prelude::*, test_runner::Config};
use std::sync::Arc;

/// A flow of which only the nodes are of interest: they begin at line 3.
fn said(nodes: &str) -> String {
    let text = format!("name = 'a_flow'\ndescription = 'A flow'\n{nodes}");
    match read(&text, Format::Toml) {
        Ok(_) => "fine".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

fn node(name: &str, rest: &str) -> String {
    format!("[[nodes]]\nname = '{name}'\ntool = 'ping'\n{rest}\n")
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let two = |first: &str, second: &str| node("a", first) + &node("b", second);
    let deep = format!("when = '{}1{} == 1'", "(".repeat(17), ")".repeat(17));
    let long = format!("when = 'input.x == \"{}\"'", "x".repeat(1100));
    for (nodes, expected) in [
        // Circles.
        (
            two("after = ['b']", "after = ['a']"),
            "these nodes wait for each other: a → b → a at line 4, column 8",
        ),
        (
            two("arguments = { v = '${b.text}' }", "arguments = { v = '${a.text}' }"),
            "a → b → a at line 4, column 8",
        ),
        (two("when = 'b.status == \"success\"'", "after = ['a']"), "a → b → a at line 4, column 8"),
        (two("", "after = ['b']"), "`b` waits for itself at line 8, column 8"),
        ("shape = 'chain'\n".to_owned() + &two("after = ['b']", ""), "a → b → a at line 5, column 8"),
        // Names that lead nowhere.
        (two("", "after = ['aa']"), "there is no node `aa` at line 10, column 10"),
        (
            two("", "arguments = { v = 'x ${c.text}' }"),
            "`c.text`: there is no node `c` at line 10, column 22",
        ),
        (two("", "arguments = { v = ['${a.outptu.x}'] }"), "did you mean `a.output`?"),
        (
            two("", "arguments = { v = '${a}' }"),
            "a node has `output`, `text`, `status` and `error` at line 10",
        ),
        (two("", "arguments = { v = '${input.x}' }"), "the flow's input has no `x` at line 10, column 20"),
        (two("", "when = 'c.text == \"\"'"), "there is no node `c` at line 10, column 9"),
        (two("", "when = 'a.outputs.x == 1'"), "did you mean `a.output`?"),
        (
            "output = { v = '${z.text}' }\n".to_owned() + &node("a", ""),
            "there is no node `z` at line 3, column 17",
        ),
        // References that cannot be read.
        (node("a", "arguments = { v = 'a ${input.x' }"), "this reference has no end: a `}` is missing"),
        (node("a", "arguments = { v = '${}' }"), "this refers to nothing: name what is meant"),
        // Conditions.
        (node("a", "when = 'input.x >'"), "this is not CEL: mismatched input the end at line 6"),
        (node("a", "when = 'foo(1)'"), "there is no function `foo` at line 6, column 9"),
        (node("a", "when = ''"), "the condition is empty at line 6"),
        (node("a", &deep), "brackets nest at most 16 levels deep at line 6, column 25"),
        (node("a", &long), "a condition has at most 1024 bytes, and this one has 1113 at line 6, column 9"),
        // Numbers and times.
        ("max_parallelism = -1\n".to_owned() + &node("a", ""), "at line 3, column 19"),
        ("max_parallelism = 0\n".to_owned() + &node("a", ""), "at line 3, column 19"),
        (node("a", "retry = { max_retries = -2 }"), "at line 6, column 25"),
        (node("a", "retry = { max_retries = 1000000 }"), "at line 6, column 25"),
        (
            node("a", "retry = { max_retries = 1, base = '5' }"),
            "`5` is not a length of time at line 6, column 35",
        ),
        (node("a", "timeout = '-PT5S'"), "`-PT5S` is not a length of time at line 6, column 11"),
        (node("a", "timeout = 'PT0S'"), "`PT0S` is not a length of time at line 6, column 11"),
        (
            "timeout = 'soon'\n".to_owned() + &node("a", ""),
            "`soon` is not a length of time at line 3, column 11",
        ),
        // Names of nodes.
        (
            node("a", "") + &node("a", ""),
            "there are two nodes of the name `a`: the first is at line 4, column 8 at line 8, column 8",
        ),
        (node("A b", ""), "`A b` cannot be the name of a node at line 4, column 8"),
        (node("input", ""), "`input` is a reserved word at line 4, column 8"),
        (node("map", ""), "`map` is a reserved word at line 4, column 8"),
        // Kinds and fields.
        (
            node("a", "arguments = 5"),
            "`nodes[0].arguments`: expected an object, got the number 5 at line 6, column 13",
        ),
        (node("a", "after = 'b'"), "expected an array"),
        (node("a", "aftr = []"), "unknown field `aftr` at line 6, column 1\n  help: did you mean `after`?"),
        (node("a", "continueOnFailure = true"), "did you mean `continue_on_failure`?"),
        ("[[nodes]]\nname = 'a'".to_owned(), "missing field `tool` in `nodes[0]`"),
        ("nodes = []".to_owned(), "a flow has at least one node at line 3, column 9"),
        ("shape = 'tree'\n".to_owned() + &node("a", ""), "at line 3, column 9"),
        (
            "shape = 'parallel'\n".to_owned() + &two("", "after = ['a']"),
            "nodes of a parallel flow wait for none",
        ),
        (String::new(), "missing field `nodes`"),
        ("nodes = [".to_owned(), "this is not TOML"),
        (
            "[[parameters]]\nname = 'x'\ndescription = 'X'\ntype = 'Strin'\n".to_owned() + &node("a", ""),
            "at line 6, column 8",
        ),
        ("output_schema = { type = 'text' }\n".to_owned() + &node("a", ""), "`output_schema.type`"),
    ] {
        let said = said(&nodes);
        assert!(said.contains(expected), "{nodes}\n--- {said}\n--- wanted: {expected}");
    }
    let bad_name = read("name = 'run'\ndescription = 'x'\n[[nodes]]\nname = 'a'\ntool = 'b'", Format::Toml);
    assert!(
        bad_name.unwrap_err().to_string().contains("`name`: `run` is a reserved word at line 1, column 8")
    );
}

#[test]
fn a_flow_has_so_many_nodes_and_no_more() {
    let nodes = |count: usize| (0..count).map(|n| node(&format!("n{n}"), "")).collect::<String>();
    assert_eq!(said(&nodes(100)), "fine");
    let too_many = said(&nodes(101));
    assert!(
        too_many.starts_with("error: a flow has at most 100 nodes, and this one has 101 at line "),
        "{too_many}"
    );
    let text = format!("name = 'a_flow'\ndescription = 'A flow'\n{}", nodes(101));
    assert!(read_within(&text, Format::Toml, 101).is_ok());
    assert!(
        read(&" ".repeat(2 << 20), Format::Toml).unwrap_err().to_string().contains("at most 1048576 bytes")
    );
}

#[test]
fn json_has_places_too() {
    let text = "{\"name\": \"a\", \"description\": \"A\", \"nodes\": [\n {\"name\": \"x\", \"tool\": \"t\", \"after\": [\"y\"]}]}";
    let errors = read(text, Format::Json).unwrap_err();
    assert_eq!(
        errors.errors()[0].to_string(),
        "error: there is no node `y` at line 2, column 39\n  help: there are `x`"
    );
}

struct NoTools;

impl Tools for NoTools {
    fn definition(&self, _name: &str) -> Option<Arc<haft_core::ToolDefinition>> {
        None
    }

    fn nearest(&self, _name: &str) -> Option<String> {
        None
    }
}

#[test]
fn a_flow_that_is_no_tool_yet_cannot_call_itself_either() {
    let text = "name = 'round'\ndescription = 'x'\n[[nodes]]\nname = 'a'\ntool = 'round'";
    let errors = haft_flow::check(&read(text, Format::Toml).unwrap(), &NoTools).unwrap_err();
    assert!(
        errors
            .to_string()
            .starts_with("error: the flow would call itself: round → round at line 5, column 8")
    );
}

#[test]
fn pictures_fit_and_show_every_node() {
    let text = |count: usize| {
        let each = (0..count).map(|n| {
            let after: Vec<String> = [n.wrapping_sub(2), n.wrapping_sub(5)]
                .into_iter()
                .filter(|earlier| *earlier < n)
                .map(|earlier| format!("'n{earlier}'"))
                .collect();
            node(&format!("n{n}"), &format!("after = [{}]", after.join(", ")))
        });
        format!("name = 'a_flow'\ndescription = 'A flow'\n{}", each.collect::<String>())
    };
    for count in [1, 2, 7, 60] {
        let flow = read(&text(count), Format::Toml).unwrap();
        for width in [20, 40, 80, 200] {
            let picture = haft_flow::picture(&flow, width);
            assert_eq!(picture.lines().count(), count);
            assert!(picture.lines().all(|line| line.chars().count() <= width), "{width}\n{picture}");
        }
        assert_eq!(haft_flow::mermaid(&flow).matches("[\"n").count(), count);
    }
    insta::assert_snapshot!(haft_flow::picture(&read(&text(8), Format::Toml).unwrap(), 80));
}

proptest! {
    #![proptest_config(Config {
        cases: std::env::var("HAFT_PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(128),
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn any_text_is_read_or_refused(reference in "[${}.a-z\\[\\]\"?0-9 ]{0,24}", when in "[a-z.()\\[\\]'<>=&|!+*0-9 ]{0,40}") {
        let value = serde_json::json!({
            "name": "a_flow", "description": "A", "nodes": [
                {"name": "a", "tool": "t", "arguments": {"v": reference}},
                {"name": "b", "tool": "t", "when": when},
            ],
        });
        if let Ok(flow) = read(&value.to_string(), Format::Json) {
            let again = read(&flow.to_value().to_string(), Format::Json).unwrap();
            prop_assert_eq!(again.to_value(), flow.to_value());
            if let Some(condition) = &flow.nodes[1].when {
                let _ = condition.holds(&serde_json::json!({"input": {}}));
            }
        }
    }
}
