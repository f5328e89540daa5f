//! What the whole pipeline costs, as a multiple of what no tool executor can do without.
//!
//! *floor*: hash lookup, `serde_json` parse, `jsonschema` validation, typed arguments, one boxed async call.
//! *floor+*: the same in a task of its own, with a timeout and a semaphore.
//! *haft*: plan, approve, schedule, run and finish, with audit record, events, statistics, panic safety, deadline and
//! cancellation, on the in-memory store.
//!
//! All three take turns in many short rounds of one run, because machines are noisy; a ratio is the median over
//! rounds of the ratio within a round.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use futures_util::{StreamExt, stream};
use haft_core::{Arguments, ToolCall};
use haft_engine::Engine;
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{ToolCtx, ToolError, tool_fn};
use haft_store::MemoryStore;
use std::{
    collections::HashMap,
    future::Future,
    hint::black_box,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

/// Arguments as a model sends them to edit a few lines of a file.
const ARGUMENTS: &str = r#"{
  "path": "crates/parser/src/scanner.rs",
  "old_text": "    let next = self.bytes.get(self.place);\n    if next.is_none() {\n        return Err(Error::End);\n    }",
  "new_text": "    let Some(next) = self.bytes.get(self.place) else {\n        return Err(Error::End);\n    };",
  "occurrence": 1,
  "options": {"create_backup": false, "dry_run": false}
}"#;

/// Edits a file.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Edit {
    /// The file.
    path: String,
    /// What is there.
    old_text: String,
    /// What shall be there.
    new_text: String,
    /// Which of several places.
    occurrence: u32,
    /// The rest.
    options: EditOptions,
}

/// Options of an edit.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EditOptions {
    /// Whether to keep the old file.
    create_backup: bool,
    /// Whether to change nothing.
    dry_run: bool,
}

fn answer(args: &Edit) -> String {
    let trivial = !args.options.create_backup && !args.options.dry_run && args.occurrence == 1;
    if trivial && args.old_text != args.new_text { args.path.clone() } else { String::new() }
}

async fn edit(args: Edit, _cx: ToolCtx) -> Result<String, ToolError> {
    Ok(answer(&args))
}

type Boxed = Pin<Box<dyn Future<Output = String> + Send>>;
type Handler = Box<dyn Fn(serde_json::Value) -> Boxed + Send + Sync>;

struct Floor {
    tools: HashMap<String, (jsonschema::Validator, Handler)>,
    permits: tokio::sync::Semaphore,
}

impl Floor {
    fn new(schema: &serde_json::Value) -> Self {
        let validator = jsonschema::validator_for(schema).unwrap();
        let handler: Handler = Box::new(|value| {
            Box::pin(async move {
                let args: Edit = serde_json::from_value(value).unwrap();
                answer(&args)
            })
        });
        Floor {
            tools: HashMap::from([("edit".to_owned(), (validator, handler))]),
            permits: tokio::sync::Semaphore::new(64),
        }
    }

    async fn call(&self, name: &str, arguments: &str) -> String {
        let (validator, handler) = self.tools.get(name).unwrap();
        let value: serde_json::Value = serde_json::from_str(arguments).unwrap();
        assert!(validator.is_valid(&value));
        handler(value).await
    }

    async fn call_plus(self: Arc<Self>, name: &'static str, arguments: &'static str) -> String {
        tokio::spawn(async move {
            let _permit = self.permits.acquire().await.unwrap();
            tokio::time::timeout(Duration::from_secs(30), self.call(name, arguments)).await.unwrap()
        })
        .await
        .unwrap()
    }
}

/// Nanoseconds a call, with so many in flight. Each lane is a task of its own, as in a server.
async fn time<L, F, Fut>(calls: usize, in_flight: usize, lane: L) -> f64
where
    L: Fn() -> F,
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = String> + Send,
{
    let start = Instant::now();
    let lanes = (0..in_flight).map(|_| {
        let make = lane();
        let lane = async move {
            for _ in 0..calls / in_flight {
                black_box(make().await);
            }
        };
        tokio::spawn(lane)
    });
    stream::iter(lanes.collect::<Vec<_>>())
        .for_each_concurrent(None, |lane| async { lane.await.unwrap() })
        .await;
    start.elapsed().as_nanos() as f64 / calls as f64
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let (rounds, calls) = if quick { (5, 2_000) } else { (41, 40_000) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tool = tool_fn("edit", edit).read_only();
    let schema = haft_sdk::Tool::definition(&tool).parameters.to_schema();
    let floor = Arc::new(Floor::new(&schema));
    let policy = Arc::new(ListPolicy::default());
    let engine = Engine::builder(policy, Arc::new(PermissionStrings), Arc::new(MemoryStore::new()))
        .tool(tool)
        .build()
        .unwrap();
    println!(
        "{:>10}  {:>9}  {:>9}  {:>9}  {:>12}  {:>12}",
        "in flight", "floor", "floor+", "haft", "haft/floor", "haft/floor+"
    );
    let mut missed = Vec::new();
    for in_flight in [1, 8, 64] {
        let (mut bare, mut plus, mut haft) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=rounds {
            let a = runtime.block_on(time(calls, in_flight, || {
                let floor = Arc::clone(&floor);
                move || {
                    let floor = Arc::clone(&floor);
                    async move { floor.call("edit", ARGUMENTS).await }
                }
            }));
            let b = runtime.block_on(time(calls, in_flight, || {
                let floor = Arc::clone(&floor);
                move || Arc::clone(&floor).call_plus("edit", ARGUMENTS)
            }));
            let c = runtime.block_on(time(calls, in_flight, || {
                // Each lane has a call of its own; its arguments are text that is parsed every time.
                let call = ToolCall::new("edit", Arguments::from_text(ARGUMENTS)).with_id("call_1");
                let engine = engine.clone();
                move || {
                    let result = engine.execute(call.clone());
                    async move {
                        let result = result.await;
                        assert!(result.is_success());
                        result.text().to_owned()
                    }
                }
            }));
            if round > 0 {
                bare.push(a);
                plus.push(b);
                haft.push(c);
            }
        }
        let ratio = |of: &[f64]| median(haft.iter().zip(of).map(|(haft, of)| haft / of).collect());
        let (to_floor, to_plus) = (ratio(&bare), ratio(&plus));
        println!(
            "{in_flight:>10}  {:>6.2} µs  {:>6.2} µs  {:>6.2} µs  {to_floor:>11.2}×  {to_plus:>11.2}×",
            median(bare) / 1e3,
            median(plus) / 1e3,
            median(haft) / 1e3,
        );
        if in_flight == 1 && to_floor > 3.0 {
            missed.push(format!("{to_floor:.2}× the floor at 1 in flight, and the goal is 3×"));
        }
        if in_flight == 64 && to_plus > 2.0 {
            missed.push(format!("{to_plus:.2}× floor+ at 64 in flight, and the goal is 2×"));
        }
    }
    match missed.as_slice() {
        [] => println!("goals met: at most 3× the floor at 1 in flight, at most 2× floor+ at 64"),
        missed => missed.iter().for_each(|missed| println!("goal missed: {missed}")),
    }
}
