//! Requests with tools, in the shapes that providers are sent: all of them are imported, and exported again they are
//! what they were. They are made here; where the test data has requests that were really sent, and really answered,
//! those take their turn as well.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::Rules;
use haft_dialect::{Change, Dialect, export, import};
use haft_testkit::shared_data;
use serde_json::{Map, Value, json};
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

/// Numbers by chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A schema of an object. What is strict requires every member, and takes no others.
fn object(chance: &mut Chance, depth: usize, is_strict: bool) -> Value {
    const MEMBERS: [&str; 6] = ["city", "x", "unit", "steps", "is_urgent", "size"];
    let members = &MEMBERS[..=chance.below(MEMBERS.len())];
    let mut properties = Map::new();
    for member in members {
        let mut schema = match chance.below(if depth == 0 { 5 } else { 7 }) {
            0 => json!({"type": "string"}),
            1 => json!({"type": "number"}),
            2 => json!({"type": "integer"}),
            3 => json!({"type": "boolean"}),
            4 => json!({"type": "string", "enum": ["one", "it's two", "\u{1f980}"]}),
            5 => json!({"type": "array", "items": object(chance, depth - 1, is_strict)}),
            _ => object(chance, depth - 1, is_strict),
        };
        if chance.below(2) == 0 {
            schema["description"] = format!("What {member} is, in \"words\"").into();
        }
        properties.insert((*member).to_owned(), schema);
    }
    let required: Vec<&&str> = members.iter().filter(|_| is_strict || chance.below(3) > 0).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if is_strict {
        schema["additionalProperties"] = false.into();
    }
    schema
}

/// As many requests as were recorded, in every shape that was.
fn made() -> Vec<Request> {
    let shapes = [
        ("anthropic", "messages"),
        ("openai", "responses"),
        ("openai", "completions"),
        ("gemini", "generateContent"),
        ("gemini", "interactions"),
    ];
    let mut chance = Chance(8);
    let request = |number: usize| {
        let (provider, endpoint) = shapes[number % shapes.len()];
        let dialect = dialect_of(provider, endpoint);
        let functions: Vec<Value> = (0..=chance.below(4))
            .map(|tool| {
                let is_strict = dialect != Dialect::Gemini && chance.below(4) == 0;
                let schema = object(&mut chance, 2, is_strict);
                let (name, description) = (format!("tool_{tool}"), format!("Does {tool} things; it's safe"));
                let mut function = match dialect {
                    Dialect::Anthropic | Dialect::Mcp => json!({"input_schema": schema}),
                    Dialect::OpenAiResponses => json!({"type": "function", "parameters": schema}),
                    Dialect::OpenAiChat | Dialect::Gemini => json!({"parameters": schema}),
                };
                function["name"] = name.into();
                function["description"] = description.into();
                if is_strict {
                    function["strict"] = true.into();
                } else if dialect == Dialect::Anthropic && chance.below(4) == 0 {
                    function["cache_control"] = json!({"type": "ephemeral"});
                }
                function
            })
            .collect();
        let mut tools = match dialect {
            Dialect::Gemini => json!([{"functionDeclarations": functions, "codeExecution": null}]),
            Dialect::OpenAiChat => {
                functions.into_iter().map(|tool| json!({"type": "function", "function": tool})).collect()
            }
            _ => Value::Array(functions),
        };
        // What a provider runs itself is left out.
        match dialect {
            Dialect::OpenAiResponses if provider == "openai" && number.is_multiple_of(3) => {
                tools.as_array_mut().unwrap().push(json!({"type": "web_search"}));
            }
            Dialect::Anthropic if number.is_multiple_of(3) => {
                let own = json!({"type": "web_search_20250305", "name": "web_search"});
                tools.as_array_mut().unwrap().push(own);
            }
            _ => {}
        }
        let (provider, endpoint) = (provider.to_owned(), endpoint.to_owned());
        Request { provider, endpoint, dialect, file: format!("made/{number}").into(), tools }
    };
    (0..750).map(request).collect()
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
fn requests_are_imported_and_exported_as_they_were() {
    check_all(made(), Path::new(""));
    // No package carries these.
    if let Some(folder) = shared_data("llm_cassettes_rig") {
        check_all(requests(&folder), &folder);
    }
}

fn check_all(all: Vec<Request>, folder: &Path) {
    let rules = Dialect::ALL.map(|dialect| (dialect, Rules::of(dialect)));
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for request in all {
        let Request { provider, endpoint, dialect, file, tools } = request;
        let file = file.strip_prefix(folder).unwrap().display().to_string();
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

    // Every difference has a name here: Responses need to be told that a tool is not strict, and what belongs to a
    // request rather than to a tool is not kept, which a remark says.
    let differences: BTreeSet<&str> =
        counts.values().flat_map(|count| count.not_quite.keys()).map(String::as_str).collect();
    let expected = ["cache_control removed", "strict false added", "strict removed", "strict true is false"];
    assert_eq!(differences, BTreeSet::from(expected));
}

/// The recorded tools as the rules know them: without what the provider runs itself, and not strict where nothing is
/// said.
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
