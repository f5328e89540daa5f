//! Chain, parallel, DAG, conditional; what is passed on, and what is given.

use super::*;
use common::{Count, house};
use std::time::Duration;

#[tokio::test]
async fn a_chain_passes_values_on_with_their_types() {
    let house = house([echo()]);
    let flow = flow_with(json!({
        "shape": "chain",
        "parameters": [{"name": "n", "description": "A number", "type": "Integer", "default": 3}],
        "nodes": [
            {"name": "one", "tool": "echo", "arguments": {"n": "${input.n}", "list": [1, {"a": null}]}},
            {"name": "two", "tool": "echo", "arguments": {"n": "${one.output.n}", "all": "${one.output}"}},
            {"name": "three", "tool": "echo", "arguments": {"text": "n is ${two.output.n}, ${two.output.all.list}"}},
        ],
    }));
    let result = run(&house, flow, json!({})).await;
    assert_eq!(statuses(&result), "one success, two success, three success");
    assert_eq!(result.output, Some(json!({"text": "n is 3, [1,{\"a\":null}]"})));
    assert_eq!(result.nodes[1].result.as_ref().unwrap().output.as_ref().unwrap()["n"], 3);
    assert_eq!(result.exit_code(), 0);
}

#[tokio::test]
async fn a_chain_runs_in_order_without_references() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let step = tool("step", move |args, _| {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock().unwrap().push(args.value["n"].as_u64().unwrap());
            Ok("done")
        }
    });
    let nodes: Vec<Value> =
        (0..20).map(|n| json!({"name": format!("n{n}"), "tool": "step", "arguments": {"n": n}})).collect();
    let result = run(&house([step]), flow_with(json!({"shape": "chain", "nodes": nodes})), json!({})).await;
    assert!(result.is_success());
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!(result.summary.overlapped, 0);
}

#[tokio::test(start_paused = true)]
async fn independent_nodes_overlap_up_to_the_limit() {
    let running = Count::default();
    let most = Arc::new(std::sync::Mutex::new(0));
    let (now, peak) = (running.clone(), Arc::clone(&most));
    let slow = tool("slow", move |_, _| {
        let (now, peak) = (now.clone(), Arc::clone(&peak));
        async move {
            let _held = now.alive();
            {
                let mut peak = peak.lock().unwrap();
                *peak = (*peak).max(now.get());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok("done")
        }
    });
    let nodes: Vec<Value> = (0..9).map(|n| json!({"name": format!("n{n}"), "tool": "slow"})).collect();
    let flow = flow_with(json!({"shape": "parallel", "max_parallelism": 3, "nodes": nodes}));
    let result = run(&house([slow]), flow, json!({})).await;
    assert!(result.is_success());
    assert_eq!(*most.lock().unwrap(), 3);
    assert_eq!(result.summary.overlapped, 9);
}

#[tokio::test]
async fn a_shared_dependency_runs_once() {
    let count = Count::default();
    let counted = count.clone();
    let once = tool("once", move |_, _| {
        counted.up();
        async { Ok(ToolOutput::structured(json!({"v": 1}))) }
    });
    let flow = flow(json!([
        {"name": "join", "tool": "echo", "arguments": {"a": "${left.output.v}", "b": "${right.output.v}"}},
        {"name": "left", "tool": "echo", "arguments": {"v": "${base.output.v}"}},
        {"name": "right", "tool": "echo", "arguments": {"v": "${base.output.v}"}},
        {"name": "base", "tool": "once"},
    ]));
    let result = run(&house([echo(), once]), flow, json!({})).await;
    assert_eq!(result.output, Some(json!({"a": 1, "b": 1})));
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_touch_the_same_never_overlap() {
    let running = Count::default();
    let now = running.clone();
    let write = tool("write", move |_, _| {
        let now = now.clone();
        async move {
            let _held = now.alive();
            assert_eq!(now.get(), 1, "two at once");
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok("done")
        }
    })
    .writes("/a");
    let nodes: Vec<Value> = (0..8).map(|n| json!({"name": format!("n{n}"), "tool": "write"})).collect();
    let result = run(&house([write]), flow(Value::Array(nodes)), json!({})).await;
    assert_eq!((result.summary.succeeded, result.summary.overlapped), (8, 0));
}

#[tokio::test]
async fn a_condition_chooses_and_both_ways_join() {
    let house = house([echo()]);
    let choose = |n: u32| {
        flow_with(json!({
            "parameters": [{"name": "n", "description": "A number", "type": "Integer", "required": true}],
            "nodes": [
                {"name": "start", "tool": "echo", "arguments": {"n": "${input.n}"}},
                {"name": "many", "tool": "echo", "arguments": {"said": "many"}, "when": "start.output.n > 5"},
                {"name": "few", "tool": "echo", "arguments": {"said": "few"}, "when": "!(start.output.n > 5)"},
                {"name": "after_many", "tool": "echo", "arguments": {"said": "${many.output.said}"}},
                {"name": "join", "tool": "echo", "arguments": {"said": "${many.output.said ?? few.output.said}"}},
                {"name": "anyway", "tool": "echo", "after": ["many", "few"]},
                {"name": "told", "tool": "echo", "when": "many.status == 'skipped' && has(few.output)"},
            ],
            "output": {"said": "${join.output.said}", "n": n},
        }))
    };
    let result = run(&house, choose(9), json!({"n": 9})).await;
    let expected = "start success, many success, few skipped, after_many success, join success, anyway success, told skipped";
    assert_eq!(statuses(&result), expected);
    assert_eq!(result.output, Some(json!({"said": "many", "n": 9})));
    let result = run(&house, choose(1), json!({"n": 1})).await;
    let expected = "start success, many skipped, few success, after_many skipped, join success, anyway success, told success";
    assert_eq!(statuses(&result), expected);
    assert_eq!(result.output, Some(json!({"said": "few", "n": 1})));
    assert!(result.is_success(), "what is skipped has not failed");
    assert_eq!(reason(&result, "many"), "its condition does not hold: start.output.n > 5");
    assert_eq!(reason(&result, "after_many"), "it takes something from `many`, which was skipped");
}

#[tokio::test]
async fn without_an_output_the_last_nodes_give_it() {
    let house = house([echo(), tool("words", |_, _| async { Ok("just words") })]);
    let two = flow(json!([
        {"name": "a", "tool": "echo", "arguments": {"v": 1}}, {"name": "b", "tool": "words"},
    ]));
    let result = run(&house, two, json!({})).await;
    assert_eq!(result.output, Some(json!({"a": {"v": 1}, "b": "just words"})));
    let one = flow(json!([
        {"name": "a", "tool": "words"},
        {"name": "b", "tool": "echo", "arguments": {"said": "${a.text}!", "status": "${a.status}"}},
    ]));
    let result = run(&house, one, json!({})).await;
    assert_eq!(result.output, Some(json!({"said": "just words!", "status": "success"})));
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_anything_runs() {
    let count = Count::default();
    let counted = count.clone();
    let typed = tool("typed", move |_, _| {
        counted.up();
        async { Ok(ToolOutput::structured(json!({"total": 1, "name": "x"}))) }
    })
    .takes(json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
                  "required": ["n"], "additionalProperties": false}))
    .gives(
        json!({"type": "object", "properties": {"total": {"type": "integer"}, "name": {"type": "string"}}}),
    );
    let effects = tool("effects", |_, _| async { Ok("x") }).effects();
    let house = house([echo(), typed, effects]);
    let first = json!({"name": "a", "tool": "typed", "arguments": {"n": 1}});
    let second = |node: Value| {
        let mut node = node;
        node["name"] = json!("b");
        flow(json!([first, node]))
    };
    for (node, expected) in [
        (json!({"tool": "tpyed", "arguments": {"n": 1}}), "there is no tool `tpyed`"),
        (json!({"tool": "typed", "arguments": {"n": "x"}}), "/n: expected an integer, got the string \"x\""),
        (json!({"tool": "typed", "arguments": {"m": 1, "n": 1}}), "\"m\" is not a known property"),
        (json!({"tool": "typed"}), "missing required property \"n\""),
        (json!({"tool": "typed", "arguments": {"s": "${a.output.name}"}}), "missing required property \"n\""),
        (json!({"tool": "typed", "arguments": {"n": "${a.output.totl}"}}), "did you mean `total`?"),
        (
            json!({"tool": "typed", "arguments": {"n": "${a.output.name}"}}),
            "/n takes a whole number, and `a.output.name` is a string",
        ),
        (json!({"tool": "typed", "arguments": {"n": "${a.text}"}}), "and `a.text` is a string"),
        (
            json!({"tool": "typed", "arguments": {"n": "x${a.output.total}"}}),
            "a text with references in it is a string",
        ),
        (json!({"tool": "echo", "when": "a.output.totals > 1"}), "did you mean `total`?"),
        (json!({"tool": "echo", "timeout": "PT20M"}), "may take at most 600 s"),
        (json!({"tool": "effects", "retry": {"max_retries": 2}}), "so it is never tried again"),
    ] {
        let said = refused(&house, second(node.clone()), json!({}));
        assert!(said.contains(expected), "{node}: {said}");
        assert!(said.contains("at line 1, column "), "{said}");
    }
    assert_eq!(count.get(), 0, "nothing ran");
    let fine =
        second(json!({"tool": "typed", "arguments": {"n": "${a.output.total}", "s": "n ${a.output.total}"}}));
    assert!(run(&house, fine, json!({})).await.is_success());
}

#[tokio::test]
async fn an_input_that_does_not_fit_is_refused_before_anything_runs() {
    let house = house([echo()]);
    let flow = flow_with(json!({
        "parameters": [{"name": "n", "description": "A number", "type": "Integer", "required": true}],
        "nodes": [{"name": "a", "tool": "echo", "arguments": {"n": "${input.n}"}}],
    }));
    let said = refused(&house, Arc::clone(&flow), json!({}));
    assert_eq!(
        said,
        "VALIDATION_FAILED: The input does not fit the flow `a_flow`: missing required property \"n\""
    );
    assert!(refused(&house, Arc::clone(&flow), json!({"n": "x"})).contains("expected an integer"));
    assert!(house.audit().await.is_empty());
}

#[tokio::test]
async fn a_tier_bounds_flows_as_it_bounds_batches() {
    let house = house([echo()]);
    let nodes: Vec<Value> = (0..6).map(|n| json!({"name": format!("n{n}"), "tool": "echo"})).collect();
    let mut request = FlowRequest::new(flow(Value::Array(nodes)), Map::new());
    let mut context = haft_core::CallContext::clone(&request.context);
    context.tier = haft_core::Tier::Core;
    request.context = Arc::new(context);
    match house.engine.run_flow(request) {
        Err(FlowError::Refused(error)) => assert_eq!(error.code, haft_core::ErrorCode::LimitExceeded),
        _ => panic!("it was taken"),
    };
}
