//! `haft flow`: run, check, graph; and flows that are tools.

use crate::support::Place;

const FLOW: &str = r#"name = "check_json"
description = "Finds JSON files, and says whether the first of them is valid"

[[parameters]]
name = "pattern"
description = "Which files"
type = "String"
default = "*.json"

[[nodes]]
name = "find"
tool = "glob"
arguments = { pattern = "${input.pattern}" }

[[nodes]]
name = "read"
tool = "read_file"
arguments = { path = "${find.output.paths[0]}" }
when = "size(find.output.paths) > 0"

[[nodes]]
name = "validate"
tool = "validate_content"
arguments = { content = "${read.output.content}", format = "json" }

[output]
file = "${find.output.paths[0] ?? null}"
valid = "${validate.output.valid ?? false}"
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("check.flow.toml", FLOW);
    place.write("a.json", "{\"a\": 1}");
    place
}

#[test]
fn a_flow_runs_and_gives_what_it_says() {
    let place = place();
    let said = place.haft(&["flow", "run", "check.flow.toml"]);
    insta::assert_snapshot!("flow_run", said.shown());
    let said = place.haft(&["flow", "run", "check.flow.toml", "pattern=none*", "--json"]);
    let result = said.json();
    assert_eq!((said.code, &result["status"]), (0, &"success".into()), "{said:?}");
    assert_eq!(result["output"], serde_json::json!({"file": null, "valid": false}));
    assert_eq!(result["summary"]["skipped"], 2);
    assert_eq!(result["nodes"][1]["reason"], "its condition does not hold: size(find.output.paths) > 0");
}

#[test]
fn what_would_run_is_said() {
    let place = place();
    let said = place.haft(&["flow", "run", "check.flow.toml", "pattern=*.json", "--dry-run"]);
    insta::assert_snapshot!("flow_dry_run", said.shown());
    let plan =
        place.haft(&["flow", "run", "check.flow.toml", "pattern=*.json", "--dry-run", "--json"]).json();
    assert_eq!(plan["nodes"][0]["plan"]["decision"], "ready");
    assert!(plan["nodes"][1]["plan"].is_null());
    assert!(place.haft(&["runs", "list", "--json"]).json()["runs"].as_array().unwrap().is_empty());
}

#[test]
fn every_problem_has_its_place_and_nothing_runs() {
    let place = place();
    place.write(
        "bad.flow.toml",
        FLOW.replace("glob", "golb").replace("read.output.content", "read.output.contnet"),
    );
    let said = place.haft(&["flow", "check", "check.flow.toml", "bad.flow.toml"]);
    insta::assert_snapshot!("flow_check", said.shown());
    let checked = place.haft(&["flow", "check", "bad.flow.toml", "--json"]).json();
    assert_eq!(checked["files"][0]["problems"][0]["line"], 12);
    let said = place.haft(&["flow", "run", "bad.flow.toml"]);
    insta::assert_snapshot!("flow_run_bad", said.shown());
    place.write(
        "round.flow.toml",
        "name = 'round'\ndescription = 'x'\n[[nodes]]\nname = 'a'\ntool = 'round'\n",
    );
    assert_eq!(place.haft(&["tools", "add", "round.flow.toml"]).code, 2);
    let said = place.haft(&["flow", "run", "check.flow.toml", "patern=x"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.stderr.contains("\"patern\" is not a known property"), "{said:?}");
}

#[test]
fn pictures() {
    let place = place();
    insta::assert_snapshot!("flow_graph", place.haft(&["flow", "graph", "check.flow.toml"]).shown());
    insta::assert_snapshot!(
        "flow_mermaid",
        place.haft(&["flow", "graph", "check.flow.toml", "--format", "mermaid"]).shown()
    );
    let graph = place.haft(&["flow", "graph", "check.flow.toml", "--json"]).json();
    assert_eq!(graph["nodes"][2]["dependsOn"], serde_json::json!(["read"]));
}

#[test]
fn a_flow_is_added_as_a_tool_and_its_calls_are_on_record() {
    let place = place();
    let said = place.haft(&["tools", "add", "check.flow.toml"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "added `check_json`\n"), "{said:?}");
    let result = place.haft(&["call", "check_json", "pattern=a*", "--json"]).json();
    assert_eq!(result["output"], serde_json::json!({"file": "a.json", "valid": true}));
    let id = result["metadata"]["executionId"].as_str().unwrap();
    let runs = place.haft(&["runs", "list", "--json"]).json();
    let inside: Vec<&str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["batchId"] == id)
        .map(|run| run["callId"].as_str().unwrap())
        .collect();
    assert_eq!(inside.len(), 3, "{runs}");
    assert!(["find", "read", "validate"].iter().all(|name| inside.contains(name)));
    assert!(place.haft(&["runs", "list"]).stdout.contains("glob (find)"));
    assert_eq!(place.haft(&["tools", "remove", "check_json"]).code, 0);
}

#[test]
fn a_flow_may_have_as_many_nodes_as_is_configured() {
    let place = place();
    place.own_config("[tools.flows]\nmax_nodes = 2\n");
    let said = place.haft(&["flow", "check", "check.flow.toml"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stdout.contains("a flow has at most 2 nodes, and this one has 3"), "{said:?}");
}

#[test]
fn what_fails_has_the_exit_code_of_its_node() {
    let place = place();
    let flow = "name = 'writes'\ndescription = 'Writes'\n[[nodes]]\nname = 'w'\ntool = 'write_file'\n\
                arguments = { path = 'x.txt', content = 'x' }\n[[nodes]]\nname = 'r'\ntool = 'read_file'\n\
                arguments = { path = 'x.txt' }\nafter = ['w']\n";
    place.write("writes.flow.toml", flow);
    let said = place.haft(&["flow", "run", "writes.flow.toml"]);
    insta::assert_snapshot!("flow_run_unapproved", said.shown());
    place.own_config("[tools.approval]\nallowlist = ['write_file', 'read_file']\n");
    let said = place.haft(&["flow", "run", "writes.flow.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(std::fs::read_to_string(place.work().join("x.txt")).unwrap(), "x");
}
