use super::*;
use serde_json::json;

fn holds(text: &str, variables: &Value) -> Result<bool, NoAnswer> {
    Condition::compile(text).unwrap_or_else(|bad| panic!("{text}: {bad}")).holds(variables)
}

#[test]
fn conditions_look_at_values() {
    let variables = json!({
        "input": {"n": 3, "name": "ada", "big": u64::MAX, "half": 0.5, "none": null, "list": [1, 2, 3]},
        "read": {"status": "success", "output": {"total": 7, "files": [{"size": 1}, {"size": 9}]}},
    });
    for (text, expected) in [
        ("input.n > 2", true),
        ("input.n + 1 == 4", true),
        ("input.name == 'ada' && read.status == 'success'", true),
        ("input.name.startsWith('b')", false),
        ("has(input.missing)", false),
        ("has(read.output.total)", true),
        ("read.output.files.exists(file, file.size > 5)", true),
        ("read.output.files.all(file, file.size > 5)", false),
        ("size(read.output.files.filter(file, file.size > 5)) == 1", true),
        ("input.list.map(x, x * 2) == [2, 4, 6]", true),
        ("2 in input.list ? input.half < 1.0 : false", true),
        ("input.none == null", true),
        ("input.big > 5u", true),
        ("input.name.matches('^a.a$')", true),
        ("input['name'] == \"ada\"", true),
        ("type(input.n) == int", true),
    ] {
        assert_eq!(holds(text, &variables), Ok(expected), "{text}");
    }
}

#[test]
fn what_gives_no_answer_says_why() {
    let variables = json!({"input": {"n": 3, "name": "ada", "list": [1]}});
    for (text, expected) in [
        ("input.n", "it is to give true or false, and gave a number"),
        ("input.missing > 1", "there is no `missing`; ask for it with has(…) first"),
        ("input.n / 0 == 1", "it divides by zero"),
        ("input.list[5] == 1", "a list has no such place"),
        ("other.n == 1", "there is no `other`"),
    ] {
        let said = holds(text, &variables).unwrap_err().to_string();
        assert_eq!(said, expected, "{text}");
    }
    assert!(holds("input.n + input.name == 3", &variables).is_err());
}

#[test]
fn what_is_no_condition_is_refused() {
    let deep = format!("{}1{} == 1", "(".repeat(17), ")".repeat(17));
    let long = format!("input.x == '{}'", "x".repeat(1100));
    let chain = format!("1{} == 1", "+1".repeat(300));
    let nots = format!("{}true", "!".repeat(500));
    let minus = format!("{}1 == 1", "-".repeat(900));
    let ternaries = format!("{}true", "true?true:".repeat(90));
    let fields = format!("input{} == 1", ".a".repeat(300));
    for (text, expected) in [
        ("", "the condition is empty"),
        ("  ", "the condition is empty"),
        ("input.x = 3", "this is not CEL"),
        ("input.x >", "this is not CEL"),
        ("input.x > 1 and input.y", "this is not CEL"),
        ("'open", "this is not CEL"),
        ("}{", "this is not CEL"),
        ("input.x > ${a}", "this is not CEL"),
        ("lenght(input.x) > 1", "there is no function `lenght`"),
        ("input.x.foo()", "there is no function `foo`"),
        (&deep, "brackets nest at most 16 levels deep"),
        (&long, "a condition has at most 1024 bytes, and this one has 1113"),
        (&chain, ""),
        (&nots, ""),
        (&minus, ""),
        (&ternaries, ""),
        (&fields, ""),
    ] {
        match Condition::compile(text) {
            Err(bad) => assert!(bad.problem.contains(expected), "{text}: {bad}"),
            // Signs may be counted together by the parser; then nothing is deep.
            Ok(fine) => {
                assert!(text == nots || text == minus, "{text}");
                let _ = fine.holds(&json!({"input": {}}));
            }
        }
    }
    let bad = Condition::compile("a == 1 &&\n b == @").unwrap_err();
    assert_eq!(&"a == 1 &&\n b == @"[bad.offset..], "@", "{bad:?}");
}

#[test]
fn what_nests_as_deep_as_it_may_is_worked_out() {
    let deep = format!("{}1{} == 1", "(".repeat(16), ")".repeat(16));
    assert_eq!(holds(&deep, &json!({})), Ok(true));
    let lists = format!("{}1{} != 1", "[".repeat(16), "]".repeat(16));
    assert_eq!(holds(&lists, &json!({})), Ok(true));
}

#[test]
fn what_runs_away_is_stopped() {
    let list: Vec<u32> = (0..2000).collect();
    let variables = json!({"input": {"list": list}});
    let begun = Instant::now();
    for text in [
        "input.list.all(a, input.list.all(b, input.list.all(c, a + b + c >= 0)))",
        "input.list.exists(a, input.list.exists(b, a + b < 0)) || true",
        "size(input.list.map(a, input.list.map(b, input.list.map(c, c)))) > 0",
        "size(input.list.filter(a, input.list.filter(b, true).size() > 0)) > 0",
        "[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, [1,2,3,4,5,6,7,8].all(c, [1,2,3,4,5,6,7,8].all(d, \
         [1,2,3,4,5,6,7,8].all(e, [1,2,3,4,5,6,7,8].all(f, [1,2,3,4,5,6,7,8].all(g, true)))))))",
    ] {
        assert_eq!(holds(text, &variables), Err(NoAnswer::RanAway), "{text}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(holds("input.list.all(a, a >= 0)", &variables), Ok(true), "one loop is fine");
}

#[test]
fn names_of_loops_are_not_looked_up() {
    let condition =
        Condition::compile("a.output.list.all(x, x.size > b.output.y) && has(c.text) && int(d.status) == 1")
            .unwrap();
    assert_eq!(condition.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let c = condition.paths().iter().find(|path| path.name == "c").unwrap();
    assert!(c.is_test && c.fields == ["text"]);
}
