//! Requests with tools that were really sent, and really answered: all of them are imported, and exported again they are
//! what they were.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::Rules;
use haft_dialect::{Change, Dialect, export, import};
use haft_testkit::{not_run, shared_data};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// One recorded request with tools.
struct Request {
    provider: String,
    endpoint: String,
    dialect: Dialect,
    file: PathBuf,
    tools: Value,
}

/// The recorded requests below a folder. The files are YAML of one kind only: the path and the body of a request each
/// take one line, the body in single quotes.
fn requests(folder: &Path) -> Vec<Request> {
    let mut found = Vec::new();
    for file in files(folder) {
        let provider = file.strip_prefix(folder).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let (mut in_request, mut endpoint) = (false, String::new());
        for line in text.lines() {
            match line {
                "when:" => in_request = true,
                "then:" | "---" => in_request = false,
                _ if !in_request => {}
                line => {
                    if let Some(path) = line.strip_prefix("  path: ") {
                        endpoint = path.rsplit(['/', ':']).next().unwrap().to_owned();
                    }
                    let quoted = line.strip_prefix("  body: '").and_then(|rest| rest.strip_suffix('\''));
                    let Some(body) = quoted else { continue };
                    let body: Value = serde_json::from_str(&body.replace("''", "'")).unwrap();
                    let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) else { continue };
                    found.push(Request {
                        dialect: dialect_of(&provider, &endpoint),
                        provider: provider.clone(),
                        endpoint: endpoint.clone(),
                        file: file.clone(),
                        tools: tools.clone(),
                    });
                }
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn dialect_of(provider: &str, endpoint: &str) -> Dialect {
    match (provider, endpoint) {
        ("anthropic", _) => Dialect::Anthropic,
        // Gemini's newer interface has tools in the shape of Responses.
        (_, "responses" | "interactions") => Dialect::OpenAiResponses,
        ("gemini", _) => Dialect::Gemini,
        (_, "completions") => Dialect::OpenAiChat,
        other => panic!("{other:?} is new"),
    }
}

/// The functions in what stands under `tools`, by name: without what the provider runs itself.
fn functions(dialect: Dialect, tools: &Value) -> BTreeMap<String, Value> {
    let list = tools.as_array().unwrap().iter();
    let functions: Vec<&Value> = match dialect {
        Dialect::Gemini => list.flat_map(|tool| tool["functionDeclarations"].as_array().unwrap()).collect(),
        Dialect::OpenAiChat => list.map(|tool| &tool["function"]).collect(),
        Dialect::OpenAiResponses => list.filter(|tool| tool["type"] == "function").collect(),
        Dialect::Anthropic | Dialect::Mcp => list.filter(|tool| tool.get("input_schema").is_some()).collect(),
    };
    functions.into_iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect()
}

/// What is different, by kind: `required removed`, `strict true is false`.
fn differences(key: &str, recorded: &Value, exported: &Value, found: &mut BTreeSet<String>) {
    match (recorded, exported) {
        (Value::Object(recorded), Value::Object(exported)) => {
            for (key, value) in recorded {
                match exported.get(key) {
                    Some(other) => differences(key, value, other, found),
                    None => drop(found.insert(format!("{key} removed"))),
                }
            }
            for (key, value) in exported.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
                found.insert(format!("{key} {value} added"));
            }
        }
        _ if recorded == exported => {}
        _ => drop(found.insert(format!("{key} {recorded} is {exported}"))),
    }
}

#[derive(Default)]
struct Count {
    requests: usize,
    tools: usize,
    left_out: usize,
    the_same: usize,
    not_quite: BTreeMap<String, usize>,
    remarks: BTreeMap<String, usize>,
}

#[test]
fn recorded_requests_are_imported_and_exported_as_they_were() {
    const NAME: &str = "recorded_requests_are_imported_and_exported_as_they_were";
    let Some(folder) = shared_data("llm_cassettes_rig") else {
        return not_run(NAME, "the folder llm_cassettes_rig is not in the test data");
    };
    let rules = Dialect::ALL.map(|dialect| (dialect, Rules::of(dialect)));
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for request in requests(&folder) {
        let Request { provider, endpoint, dialect, file, tools } = request;
        let file = file.strip_prefix(&folder).unwrap().display().to_string();
        let count = counts.entry(format!("{provider} {endpoint} ({dialect})")).or_default();
        count.requests += 1;

        let import = import(&tools).unwrap_or_else(|error| panic!("{file}: {error}"));
        let recorded = functions(dialect, &tools);
        assert_eq!(import.definitions.len(), recorded.len(), "{file}");
        for definition in &import.definitions {
            assert_eq!(definition.check(), [], "{file}");
        }
        count.tools += recorded.len();
        count.left_out += import.remarks.iter().filter(|remark| remark.change == Change::LeftOut).count();

        let again = export(dialect, &import.definitions);
        assert_eq!(again.tools.len(), recorded.len(), "{file}");
        let (_, rules) = rules.iter().find(|(of, _)| *of == dialect).unwrap();
        rules.check(&again);
        // What was answered cannot have broken a rule.
        assert_eq!(rules.broken_by(&as_recorded(dialect, &tools)), Vec::<String>::new(), "{file}");

        let exported = functions(dialect, &again.to_value());
        for remark in import.remarks.iter().chain(&again.remarks) {
            let kind = format!("{}: {}", remark.change.name(), remark.what);
            *count.remarks.entry(kind).or_default() += 1;
        }
        for (name, recorded) in &recorded {
            let mut found = BTreeSet::new();
            differences("", recorded, &exported[name], &mut found);
            if found.is_empty() {
                count.the_same += 1;
            }
            for difference in found {
                *count.not_quite.entry(difference).or_default() += 1;
            }
        }
    }
    for (from, count) in &counts {
        println!(
            "{from}: {} requests, {} tools ({} of the provider's own left out), {} the same",
            count.requests, count.tools, count.left_out, count.the_same,
        );
        for (kind, number) in &count.not_quite {
            println!("    differs in {number}: {kind}");
        }
        for (kind, number) in &count.remarks {
            println!("    remark on {number}: {kind}");
        }
    }
    let requests: usize = counts.values().map(|count| count.requests).sum();
    let tools: usize = counts.values().map(|count| count.tools).sum();
    println!("{requests} requests with {tools} tools");
    assert!(requests >= 700 && tools >= 1000, "{requests} {tools}");

    // Every difference has a name here: Responses need to be told that a tool is not strict, and what belongs to a request
    // rather than to a tool is not kept, which a remark says.
    let differences: BTreeSet<&str> =
        counts.values().flat_map(|count| count.not_quite.keys()).map(String::as_str).collect();
    let expected = ["cache_control removed", "strict false added", "strict removed", "strict true is false"];
    assert_eq!(differences, BTreeSet::from(expected));
}

/// The recorded tools as the rules know them: without what the provider runs itself, and not strict where nothing is said.
fn as_recorded(dialect: Dialect, tools: &Value) -> Value {
    let mut tools = tools.clone();
    let list = tools.as_array_mut().unwrap();
    match dialect {
        Dialect::OpenAiResponses => {
            list.retain(|tool| tool["type"] == "function");
            for tool in list {
                tool.as_object_mut().unwrap().entry("strict").or_insert(Value::Bool(false));
            }
        }
        Dialect::Anthropic => list.retain(|tool| tool.get("input_schema").is_some()),
        Dialect::OpenAiChat | Dialect::Gemini | Dialect::Mcp => {}
    }
    tools
}
