use super::*;
use serde_json::json;

fn fill(template: &Value) -> Value {
    let known = json!({
        "input": {"name": "ada", "n": 3, "none": null},
        "read": {"output": {"list": [1, {"a b": true}], "text": "x", "}": 1}},
    });
    let template = Template::read(template).unwrap();
    let mut find = |path: &Path| {
        let root = known.get(&path.root).ok_or_else(|| path.to_string())?;
        Path::follow(&path.steps, root).cloned().ok_or_else(|| path.to_string())
    };
    template.fill(&mut find).unwrap_or_else(|path| json!({"missing": path}))
}

#[test]
fn a_whole_reference_keeps_its_type_and_one_inside_a_text_is_written_in() {
    for (template, expected) in [
        (json!("${input.n}"), json!(3)),
        (json!("n is ${input.n}"), json!("n is 3")),
        (json!("${input.name}"), json!("ada")),
        (json!("${input.name}/${input.name}.txt"), json!("ada/ada.txt")),
        (json!("${input.none}"), json!(null)),
        (json!("<${input.none}>"), json!("<null>")),
        (json!("${read.output.list}"), json!([1, {"a b": true}])),
        (json!("${read.output.list[0]}"), json!(1)),
        (json!("${read.output.list.0}"), json!(1)),
        (json!("${read.output.list[1][\"a b\"]}"), json!(true)),
        (json!("${read.output[\"}\"]}"), json!(1)),
        (json!("list: ${read.output.list}"), json!("list: [1,{\"a b\":true}]")),
        (json!("${ input.n }"), json!(3)),
        (json!("${input.missing ?? input.n}"), json!(3)),
        (json!("${gone.output.x ?? \"none\"}"), json!("none")),
        (json!("${gone.output.x ?? null}"), json!(null)),
        (json!("${gone.output.x ?? [1, 2]}!"), json!("[1,2]!")),
        (json!("${gone.output.x ?? input.gone}"), json!({"missing": "input.gone"})),
        (json!("$${input.n} costs $5 and ${input.n}$"), json!("${input.n} costs $5 and 3$")),
        (json!("$${a}"), json!("${a}")),
        (json!(["$${a}", {"b": "$${c}"}]), json!(["${a}", {"b": "${c}"}])),
        (
            json!({"a": ["${input.n}", 5], "b": {"c": "${input.name}"}}),
            json!({"a": [3, 5], "b": {"c": "ada"}}),
        ),
        (json!("plain $ { }"), json!("plain $ { }")),
        (json!(5), json!(5)),
    ] {
        assert_eq!(fill(&template), expected, "{template}");
    }
}

#[test]
fn what_cannot_be_read_has_a_place() {
    for (text, offset, problem) in [
        ("a ${input.x", 2, "has no end"),
        ("${}", 2, "refers to nothing"),
        ("${ }", 3, "refers to nothing"),
        ("${input.}", 7, "a name is missing"),
        ("${input..x}", 7, "a name is missing"),
        ("${input[x]}", 7, "write a place in a list"),
        ("${input[-1]}", 7, "write a place in a list"),
        ("${input.x | upper}", 10, "not part of a reference"),
        ("${input.x ??}", 12, "refers to nothing"),
        ("${$x}", 2, "refers to nothing"),
    ] {
        let bad = Template::read(&json!({"a": [text]})).unwrap_err();
        assert_eq!((bad[0].offset, &*bad[0].pointer), (offset, "/a/0"), "{text}: {bad:?}");
        assert!(bad[0].problem.contains(problem), "{text}: {bad:?}");
    }
}

#[test]
fn constants_are_known_before_anything_runs() {
    assert!(Template::read(&json!({"a": [1, "b"], "c": "$${d}"})).unwrap().is_constant());
    assert!(!Template::read(&json!({"a": [1, "${b.text}"]})).unwrap().is_constant());
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(Template::read(&deep).unwrap_err()[0].problem.contains("64 levels"));
}
