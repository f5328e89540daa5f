//! One piece of work, so many times, for a program that counts instructions: `cargo xtask counts`.
//!
//! `counts WORK TIMES`. Whoever counts subtracts what one time takes from what several take: what is left is the work
//! itself, without the start of this program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a program that is counted; where it cannot work, it stops"
)]

use haft::{ApprovalMode, BatchRequest, CallContext, ListPolicy, StoreOptions, prelude::*};
use haft_core::{
    Category, Footprint, Resource, ToolDefinition,
    port::{AcceptAnswers, Policy as _, Redactor as _, Subject},
};
use haft_guard::{KnownSecrets, PolicySet, Secrets, policy::read_rules};
use std::hint::black_box;

/// A small edit.
#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// Which file.
    path: String,
    /// What is there.
    old: String,
    /// What is to be there.
    new: String,
}

async fn edit(args: Edit, _: ToolCtx) -> Result<String, ToolError> {
    Ok(format!("{}: {} to {}", args.path, args.old.len(), args.new.len()))
}

fn call() -> ToolCall {
    let old = "fn before() {\n    old();\n}\n";
    ToolCall::new("edit", json!({"path": "src/main.rs", "old": old, "new": old.replace("old", "new")}))
}

fn builder() -> haft::Builder {
    let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
    Haft::builder().without_builtins().policy(policy)
}

fn decide(times: usize) {
    let rules: String = (0..100)
        .map(|number| {
            let condition = match number % 3 {
                0 => format!("path = 'secret_{number}/**'"),
                1 => format!("command = 'program_{number} run'"),
                _ => format!("host = '*.host-{number}.example'"),
            };
            format!("[[rules]]\nname = 'r{number}'\neffect = 'deny'\n{condition}\n")
        })
        .collect();
    let lists = ListPolicy { mode: ApprovalMode::Auto, denylist: [].into(), ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(&rules, "/work").unwrap()).unwrap();
    let (context, mut definition) = (CallContext::owner(), ToolDefinition::new("run_command", "Runs"));
    definition.category = Category::CodeExecution;
    let arguments = json!({"command": "cargo test -p haft-guard && git status"}).as_object().unwrap().clone();
    let footprint = Footprint::writes([Resource::path("/work/src/main.rs")]);
    for _ in 0..times {
        let subject = Subject {
            context: &context,
            definition: &definition,
            arguments: &arguments,
            footprint: &footprint,
            folder: "/work",
            confirm: None,
            accepts: AcceptAnswers::from_any(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        black_box(policy.decide(black_box(&subject)).unwrap());
    }
}

fn redact(times: usize) {
    let secrets = Secrets::full(KnownSecrets::new([("API_TOKEN", "hunter2-hunter2")]));
    let line = "let answer = service.call(&request).await?; // with key: value and a token_count = 17\n";
    let text = line.repeat(100) + "password = hunter2-hunter2\n";
    for _ in 0..times {
        assert!(matches!(secrets.redact(black_box(text.as_bytes())), std::borrow::Cow::Owned(_)));
    }
}

async fn calls(haft: Haft, times: usize) {
    for _ in 0..times {
        assert!(haft.execute(call()).await.is_success());
    }
}

async fn work(name: &str, times: usize) {
    match name {
        "dispatch" => {
            calls(builder().tool(tool_fn("edit", edit).read_only()).build().unwrap(), times).await;
        }
        "plan" => {
            let haft = builder().tool(tool_fn("edit", edit).read_only()).build().unwrap();
            for _ in 0..times {
                assert_eq!(haft.plan(BatchRequest::from(vec![call()])).await.len(), 1);
            }
        }
        // The same call, and what is written about it before and after it runs.
        "record" => {
            let folder = tempfile::tempdir().unwrap();
            let haft = builder().durable(folder.path(), StoreOptions::default());
            calls(haft.tool(tool_fn("edit", edit)).build().unwrap(), times).await;
        }
        "decide" => decide(times),
        "redact" => redact(times),
        other => panic!("there is no work `{other}`"),
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let (name, times) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(&name, times));
}
