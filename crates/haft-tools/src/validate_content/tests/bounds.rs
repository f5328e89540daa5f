//! Schemas and contents made to exhaust time, memory or the stack.

use serde_json::{Map, Value, json};

use super::super::{Args, BadSchema, validate};
use haft_schema::{Checked, Checker};

/// A compiled schema can be kept and used from any thread.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Checker>();
};

fn check(schema: &Value, value: &Value) -> Result<Checked, BadSchema> {
    Checker::new(schema)?.check(value)
}

/// `levels` objects inside each other, under `a`.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!({"a": value}))
}

/// Definitions that refer to each other twice, `levels` times.
fn doubling(levels: usize, last: Value) -> Map<String, Value> {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    defs.insert(format!("d{levels}"), last);
    defs
}

#[test]
fn references_to_itself_are_fine_where_they_go_deeper() {
    let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    assert_eq!(check(&tree, &json!({"a": {"a": {}}})).map(|checked| checked.total), Ok(0));
    assert_eq!(check(&tree, &nested(127)).map(|checked| checked.total), Ok(1));
    // And as text, at the greatest depth.
    let content = "{\"a\":".repeat(128) + "1" + &"}".repeat(128);
    let report = validate(&Args { schema: Some(tree), ..Args::json(content) }).expect("a schema");
    assert_eq!(report.total, 1);
    assert_eq!(report.problems[0].message, "expected an object, got the number 1");
}

#[test]
fn references_to_itself_that_stay_are_refused() {
    let error = check(&json!({"allOf": [{"$ref": "#"}]}), &json!(1)).expect_err("endless");
    assert_eq!(error.message, "refers back to itself for the same value, so checking it would never end");
}

#[test]
fn schemas_that_unfold_without_end_are_refused() {
    for last in [json!({"type": "integer"}), json!({"type": "string"}), json!({}), json!(true)] {
        let schema = json!({"$ref": "#/$defs/d0", "$defs": doubling(60, last)});
        let error = check(&schema, &json!(1)).expect_err("too many checks");
        assert_eq!(
            error.message,
            "its references and alternatives unfold into too many checks of one value: combine fewer"
        );
    }
    let schema =
        json!({"$ref": "#/$defs/d0", "unevaluatedProperties": false, "$defs": doubling(20, json!({}))});
    assert!(check(&schema, &json!({"a": 1})).is_err());
    // Few for one value, too many for all.
    let schema = json!({"items": {"$ref": "#/$defs/d0"}, "$defs": doubling(12, json!({}))});
    let error = check(&schema, &json!(vec![1; 10_000])).expect_err("too many checks");
    assert_eq!(error.message, "checking the content against it takes too long: simplify it");
}

#[test]
fn work_that_doubles_at_each_level_is_ended() {
    let again = json!({"$ref": "#"});
    for union in ["allOf", "anyOf", "oneOf"] {
        let schema = json!({"type": "object", "properties": {"a": {union: [again, again]}}});
        let error = check(&schema, &nested(127)).expect_err("too long");
        assert_eq!(error.message, "checking the content against it takes too long: simplify it", "{union}");
    }
}

#[test]
fn long_chains_get_the_stack_they_need_or_are_refused() {
    let chain = |links: usize, keyword: &str| {
        let inner = (0..links).fold(json!({"$ref": "#"}), |schema, _| match keyword {
            "not" | "if" => json!({keyword: schema}),
            "oneOf" => json!({keyword: [schema, false]}),
            _ => json!({keyword: [schema]}),
        });
        json!({"type": "object", "properties": {"a": inner}})
    };
    for keyword in ["allOf", "anyOf", "oneOf", "not", "if"] {
        assert!(check(&chain(28, keyword), &nested(127)).is_ok(), "{keyword}");
        let error = check(&chain(40, keyword), &nested(127)).expect_err("too deep");
        assert!(
            error.message.starts_with("its references and alternatives form chains"),
            "{keyword}: {error}"
        );
    }
    let mut defs = Map::new();
    for link in 0..20_000 {
        defs.insert(format!("d{link}"), json!({"$ref": format!("#/$defs/d{}", link + 1)}));
    }
    defs.insert("d20000".to_owned(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/d17000", "$defs": defs});
    assert_eq!(check(&schema, &json!(1)).map(|checked| checked.total), Ok(1));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": schema["$defs"]});
    assert!(check(&schema, &json!(1)).is_err());
}

#[test]
fn many_errors_are_counted_but_cost_little() {
    let names: Vec<String> = (0..10_000).map(|number| format!("name{number}")).collect();
    let objects = json!(vec![json!({}); 30_000]);
    assert!(check(&json!({"items": {"required": names}}), &objects).is_err());
    let some = check(&json!({"items": {"required": ["a", "b"]}}), &objects).expect("within bounds");
    assert_eq!((some.problems.len(), some.total), (1000, 60_000));
    // Each branch fails in a hundred ways, and each failure would hold a copy of the content.
    let branches: Vec<Value> = names.chunks(100).map(|names| json!({"required": names})).collect();
    let large = json!({"large": vec![1; 50_000]});
    let checked = check(&json!({"anyOf": branches}), &large).expect("within bounds");
    assert_eq!(checked.total, 1);
    // A list of values is not tried one by one for each of the words.
    let many = check(&json!({"items": {"enum": names}}), &json!(vec!["x"; 5000])).expect("within bounds");
    assert_eq!(many.total, 5000);
}

#[test]
fn patterns_cannot_run_away() {
    let value = json!([format!("{}b", "a".repeat(5000))]);
    assert_eq!(check(&json!({"items": {"pattern": "^(a+)+$"}}), &value).map(|checked| checked.total), Ok(1));
    // This one needs to step back; it gives up.
    let strings = json!(vec!["a".repeat(60); 100]);
    let checked = check(&json!({"items": {"pattern": "^(a*)*\\1b$"}}), &strings).expect("within bounds");
    assert_eq!(checked.problems[0].rule, "pattern");
    assert!(checked.problems[0].message.starts_with("the pattern takes too long to match against"));
    let unions =
        json!({"additionalItems": false, "anyOf": [{"items": {"pattern": "^(a*)*\\1b$"}}, {"maxItems": 1}]});
    assert!(check(&unions, &strings).is_ok_and(|checked| checked.total > 0));
    assert!(Checker::new(&json!({"pattern": "(((a{100}){100}){100})"})).is_err());
    for usual in ["^[\\w.-]{1,255}$", "^\\p{L}{1,64}$", "^(?=.*[A-Z])(?=.*\\d).{8,72}$", "^\\S+@\\S+$"] {
        assert!(Checker::new(&json!({"pattern": usual})).is_ok(), "{usual}");
    }
}

#[test]
fn schemas_and_values_that_are_too_deep_are_refused() {
    // Built by hand: text this deep is not read at all.
    let schema = (0..70).fold(json!({}), |schema, _| json!({"allOf": [schema]}));
    assert!(Checker::new(&schema).expect_err("too deep").message.contains("at most 128 arrays and objects"));
    let error = check(&json!({}), &nested(129)).expect_err("too deep");
    assert_eq!(error.message, "expected a value at most 128 levels deep to check, got 129");
}

#[test]
fn a_long_line_full_of_mistakes_is_read_once() {
    let many = |piece: &str| piece.repeat(400_000 / piece.len());
    for piece in ["\"a\":1,", "'a':1,", "a:1,", "\"a\":01,", "/**/", "//", ",", "\"\\x\":1,", "\u{a0}"] {
        let report = validate(&Args::json(format!("{{{}", many(piece)))).expect("no schema");
        assert!(report.total > 0, "{piece}");
    }
    for piece in [
        "a = 1\n",
        "a = x\n",
        "a = {a = 1, a = 2}\n",
        "[a]\n",
        "[[a]]\n",
        "a",
        "=",
        "\"",
        "[",
        "a.",
        "a = [",
        "\u{1}",
    ] {
        let report = validate(&Args::toml(many(piece))).expect("no schema");
        assert_eq!(report.valid, piece == "[[a]]\n", "{piece}: {report}");
    }
}
