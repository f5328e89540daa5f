//! The client that the public conformance suite of MCP drives: `cargo xtask conformance` does.
//!
//! It gets the address of a server as its last argument, and does with it what haft does with any server: asks what it
//! has, accepts that, and calls every tool through the whole engine. Its exit code says whether that could be done.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example says what it does")]

use haft::{ApprovalMode, CallContext, Folders, Haft, ListPolicy, McpSource, Request, ToolCall, config};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().next_back().filter(|url| url.starts_with("http")).ok_or("name a server")?;
    let place = std::env::temp_dir().join(format!("haft-conformance-{}", std::process::id()));
    std::fs::create_dir_all(place.join("work"))?;
    let asked = speak(&url, &place).await;
    std::fs::remove_dir_all(&place)?;
    asked
}

async fn speak(url: &str, place: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut server = McpSource::new("suite", "");
    server.url = Some(url.to_owned());
    let host = server.host().ok_or("the address names no host")?;
    let config = config::parse(&format!("[tools.http]\nprivate_hosts = [{host:?}]\n"))?;
    let haft = Haft::builder()
        .config(&config)
        .files(Folders::new(place.join("work"), place.join("state")))
        .policy(ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() })
        .build()?;
    let listing = haft.upstreams().discover(&server).await?;
    for unusable in &listing.unusable {
        println!("left out: {unusable}");
    }
    let owner = CallContext::owner();
    let wanted = wanted();
    for definition in listing.tools.into_values() {
        let schema = definition.parameters.to_schema();
        let name = definition.name.clone();
        let theirs = definition.mcp.as_ref().map(|source| source.tool.clone()).unwrap_or_default();
        let tool = haft.upstreams().tool(definition).map_err(|problem| problem.to_string())?;
        // One that cannot be used takes nothing from the others.
        if let Err(problem) = haft.tools().add(tool, &owner).await {
            println!("left out: {problem}");
            continue;
        }
        let mut calls: Vec<Value> = wanted
            .iter()
            .filter(|call| call["name"] == theirs.as_str())
            .map(|call| given(&call["arguments"]))
            .collect();
        if calls.is_empty() {
            calls.push(Value::Object(arguments(&schema)));
        }
        for arguments in calls {
            let call = ToolCall::new(name.as_str(), arguments);
            let result = haft.execute(Request::new(call).context(owner.clone())).await;
            println!("{name}: {:?} {}", result.status, result.text());
        }
    }
    haft.shutdown().await;
    Ok(())
}

/// Without what is null: the schema allows that for none of them, so haft would refuse the call before it is sent.
fn given(arguments: &Value) -> Value {
    let mut arguments = arguments.as_object().cloned().unwrap_or_default();
    arguments.retain(|_, value| !value.is_null());
    Value::Object(arguments)
}

/// The calls that the suite wants to see in some scenarios.
fn wanted() -> Vec<Value> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    context["toolCalls"].as_array().cloned().unwrap_or_default()
}

/// Something of the right kind for every parameter.
fn arguments(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let given = properties.into_iter().map(|(name, property)| {
        let first = property.get("enum").and_then(|values| values.get(0)).cloned();
        let value = first.or_else(|| property.get("default").cloned()).unwrap_or_else(|| {
            match property.get("type").and_then(Value::as_str) {
                Some("number" | "integer") => json!(5),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                Some("null") => Value::Null,
                _ => json!("hello"),
            }
        });
        (name, value)
    });
    given.collect()
}
