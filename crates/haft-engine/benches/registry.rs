//! Ten thousand tools: what looking one up, ranking all of them and adding one costs, and what each holds in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use haft_core::{CallContext, IsolationLevel, Parameters, Tier, ToolDefinition, ToolError};
use haft_engine::Engine;
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{Args, Prepared, Tool};
use haft_store::MemoryStore;
use serde_json::json;
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

/// What this process holds in memory, in KiB, with what the allocator needs for itself.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this measures on Linux");
    let pages: f64 =
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("resident pages");
    pages * 4.0
}

const TOOLS: usize = 10_000;
const VERBS: [&str; 10] =
    ["read", "write", "list", "search", "delete", "create", "update", "send", "fetch", "validate"];
const NOUNS: [&str; 10] =
    ["invoice", "customer", "message", "file", "branch", "ticket", "calendar", "payment", "report", "image"];

struct Described(Arc<ToolDefinition>);

impl Tool for Described {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn prepare(&self, _args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Err(ToolError::failed("described only"))
    }
}

fn described(number: usize) -> Described {
    let (verb, noun) = (VERBS[number % 10], NOUNS[number / 10 % 10]);
    let description = format!("{verb} one {noun} of the system number {number}, by its id or its name");
    let mut definition = ToolDefinition::new(format!("{verb}_{noun}_{number}"), description);
    definition.constraints.required_isolation = IsolationLevel::None;
    definition.parameters = Parameters::Schema(json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1, "description": format!("Which {noun}")},
            "name": {"type": "string", "maxLength": 200, "description": "Its name, where the id is not known"},
            "fields": {"type": "array", "items": {"type": "string"}, "description": "What to give back"},
            "dry_run": {"type": "boolean", "default": false, "description": "Change nothing"},
        },
        "additionalProperties": false,
    }));
    Described(Arc::new(definition))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let tools = if quick { 500 } else { TOOLS };
    let store = Arc::new(MemoryStore::new());
    let engine =
        Engine::builder(Arc::new(ListPolicy::default()), Arc::new(PermissionStrings), store).build().unwrap();
    engine.register(described(tools + 1)).unwrap();

    let before = resident();
    let mut registering = Vec::new();
    let mut compiling = Vec::new();
    for number in 0..tools {
        let tool = described(number);
        let schema = tool.0.parameters.to_schema();
        let start = Instant::now();
        black_box(haft_schema::Schema::compile(&schema).unwrap());
        compiling.push(start.elapsed());
        let start = Instant::now();
        engine.register(tool).unwrap();
        registering.push(start.elapsed());
    }
    let held = (resident() - before) / tools as f64;

    let names: Vec<String> = (0..tools).map(|number| described(number).0.name.clone()).collect();
    let start = Instant::now();
    for name in &names {
        black_box(engine.definition(name).unwrap());
    }
    let lookup = start.elapsed() / u32::try_from(tools).unwrap();

    let questions =
        ["send a message", "find the invoice of a customer", "validate", "which branch is it", "zebra"];
    let owner = CallContext::owner();
    let _ = black_box(engine.tools().rank("warm", 10, owner.tier));
    let mut ranking = Vec::new();
    for question in questions.iter().cycle().take(if quick { 10 } else { 200 }) {
        let start = Instant::now();
        let _ = black_box(engine.tools().rank(question, 10, Tier::Enterprise));
        ranking.push(start.elapsed());
    }

    let last = tools / 10;
    let (register, compile) =
        (median(registering.split_off(tools - last)), median(compiling.split_off(tools - last)));
    let ranking = median(ranking);
    println!("{tools} tools");
    println!("  lookup          {:>9.3} µs   goal 1 µs", lookup.as_nanos() as f64 / 1e3);
    println!("  ranked search   {:>9.3} ms   goal 5 ms", ranking.as_micros() as f64 / 1e3);
    println!(
        "  registration    {:>9.3} µs   goal 50 µs beyond the {:.1} µs that compiling its schema takes",
        register.saturating_sub(compile).as_nanos() as f64 / 1e3,
        compile.as_nanos() as f64 / 1e3
    );
    println!("  memory          {held:>9.3} KiB  goal 8 KiB a tool");
    let met = lookup < Duration::from_micros(1)
        && ranking < Duration::from_millis(5)
        && register.saturating_sub(compile) < Duration::from_micros(50)
        && held < 8.0;
    println!("{}", if met { "goals met" } else { "a goal was missed" });
}
