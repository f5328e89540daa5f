//! What it costs that a crash loses nothing, beside what the disk itself costs, in one run.
//!
//! `--quick` for a short look; `--rows N` for another number of records in the last part.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures; where it cannot, it stops"
)]

use haft_core::{
    ApprovalMode, ExecutionId, Status, ToolCall,
    port::{AuditQuery, Store},
};
use haft_engine::{Engine, Request};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::tool_fn;
use haft_store::{DurableStore, MemoryStore, Options};
use rusqlite::{Connection, params};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// Makes a note.
#[derive(Deserialize, schemars::JsonSchema)]
struct Note {
    /// What to note.
    text: String,
}

async fn note(note: Note, _cx: haft_sdk::ToolCtx) -> Result<String, haft_core::ToolError> {
    Ok(note.text)
}

fn engine(store: Arc<dyn Store>) -> Engine {
    let policy = Arc::new(ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() });
    Engine::builder(policy, Arc::new(PermissionStrings), store)
        .tool(tool_fn("write", note))
        .tool(tool_fn("read", note).read_only())
        .build()
        .unwrap()
}

fn call(tool: &str) -> ToolCall {
    ToolCall::new(tool, json!({"text": "a note of some length, as one makes them"}))
}

async fn make(engine: &Engine, tool: &str) {
    let result = engine.execute(Request::new(call(tool))).await;
    assert!(result.is_success(), "{result:?}");
}

/// A database as bare as it can be: a table for intents and one for outcomes, committed one by one.
struct Bare(Connection);

const BODY: usize = 700;

impl Bare {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 4096).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE intents (id TEXT PRIMARY KEY, body TEXT); \
                 CREATE TABLE outcomes (seq INTEGER PRIMARY KEY, id TEXT, body TEXT); \
                 CREATE TABLE audit (seq INTEGER PRIMARY KEY, body TEXT, mac BLOB); \
                 CREATE TABLE head (id INTEGER PRIMARY KEY, seq INTEGER, mac BLOB, key BLOB); \
                 INSERT INTO head VALUES (1, 0, zeroblob(32), zeroblob(32))",
            )
            .unwrap();
        Bare(connection)
    }

    /// Its intent and its outcome, with an audit record or without.
    fn call(&self, audited: bool) {
        let id = ExecutionId::at(jiff::Timestamp::now()).to_string();
        let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
            self.0.prepare_cached(sql).unwrap().execute(parameters).unwrap()
        };
        run("BEGIN IMMEDIATE", &[]);
        run("INSERT INTO intents VALUES (?1, ?2)", &[&id, &"i".repeat(400)]);
        run("COMMIT", &[]);
        run("BEGIN IMMEDIATE", &[]);
        run("DELETE FROM intents WHERE id = ?1", &[&id]);
        run("INSERT INTO outcomes (id, body) VALUES (?1, ?2)", &[&id, &"o".repeat(BODY)]);
        if audited {
            let (seq, mac, key): (i64, Vec<u8>, Vec<u8>) = self
                .0
                .prepare_cached("SELECT seq, mac, key FROM head")
                .unwrap()
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .unwrap();
            let body = "a".repeat(BODY);
            // As many rounds of the hash as two keyed ones and a digest have.
            let mut hash = Sha256::digest(&body).to_vec();
            for part in [&mac, &key, &mac, &key] {
                hash = Sha256::digest([&hash[..], part].concat()).to_vec();
            }
            run("INSERT INTO audit VALUES (?1, ?2, ?3)", &[&(seq + 1), &body, &hash]);
            run("UPDATE head SET seq = ?1, mac = ?2, key = ?3", &[&(seq + 1), &hash, &hash]);
        }
        run("COMMIT", &[]);
    }
}

fn micros(start: Instant, count: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

struct Report {
    missed: Vec<String>,
}

impl Report {
    fn line(&mut self, what: &str, measured: f64, unit: &str, goal: &str, is_met: bool) {
        let mark = if is_met { "" } else { "  MISSED" };
        println!("{what:<58} {measured:>10.2} {unit:<9} goal {goal}{mark}");
        if !is_met {
            self.missed.push(what.to_owned());
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let quick = arguments.iter().any(|argument| argument == "--quick" || argument == "--test");
    let after = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<i64>().ok()
    };
    let rows = after("--rows").unwrap_or(if quick { 100_000 } else { 10_000_000 });
    let (rounds, calls) = if quick { (3, 100) } else { (15, 400) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut report = Report { missed: Vec::new() };
    // Beside the programs: a folder of temporary files may be memory, where nothing costs anything.
    let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let bare = Bare::open(&folder.path().join("bare.db"));
    let store = DurableStore::open_sqlite(&folder.path().join("state"), Options::default()).unwrap();
    let durable = engine(Arc::new(store.clone()));
    let memory = engine(Arc::new(MemoryStore::new()));

    let (mut bare_us, mut audited_us, mut one_us, mut many_us, mut extra_us, mut sustained_us) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    let mut ratios: [Vec<f64>; 3] = Default::default();
    for round in 0..=rounds {
        let time = |audited| {
            let start = Instant::now();
            (0..calls).for_each(|_| bare.call(audited));
            micros(start, calls)
        };
        let (a, b) = (time(false), time(true));
        let start = Instant::now();
        runtime.block_on(async {
            for _ in 0..calls {
                make(&durable, "write").await;
            }
        });
        let c = micros(start, calls);
        let many = calls * 16;
        let start = Instant::now();
        runtime.block_on(async {
            let lanes: Vec<_> = (0..64)
                .map(|_| {
                    let durable = durable.clone();
                    tokio::spawn(async move {
                        for _ in 0..many / 64 {
                            make(&durable, "write").await;
                        }
                    })
                })
                .collect();
            for lane in lanes {
                lane.await.unwrap();
            }
        });
        let d = micros(start, many / 64 * 64);
        let burst = |engine: &Engine, count: usize| {
            let start = Instant::now();
            runtime.block_on(async {
                for _ in 0..count {
                    make(engine, "read").await;
                }
            });
            micros(start, count)
        };
        let reads = 4_000;
        let (with, without) = (burst(&durable, reads), burst(&memory, reads));
        runtime.block_on(store.flush()).unwrap();
        let sustained = burst(&durable, 40_000) - without;
        runtime.block_on(store.flush()).unwrap();
        // The first round warms up.
        if round > 0 {
            bare_us.push(a);
            audited_us.push(b);
            one_us.push(c);
            many_us.push(d);
            extra_us.push(with - without);
            sustained_us.push(sustained);
            ratios[0].push(c / a);
            ratios[1].push(c / d);
            ratios[2].push((b / a - 1.0) * 100.0);
        }
    }
    println!("{:<58} {:>10.1} µs", "two bare SQLite FULL commits", median(bare_us));
    println!("{:<58} {:>10.1} µs", "the same with an audit record", median(audited_us));
    println!("{:<58} {:>10.1} µs", "a durable call with side effects, one producer", median(one_us));
    println!("{:<58} {:>10.1} µs", "the same, 64 producers", median(many_us));
    println!("{:<58} {:>10.1} µs", "a read-only call, as many as the writer takes", median(sustained_us));
    let [ratio, gain, audit] = ratios.map(median);
    report.line("one producer, against two bare commits", ratio, "×", "1.2", ratio <= 1.2);
    report.line("64 producers, calls a second against one", gain, "×", "8", gain >= 8.0);
    report.line("an audit record adds", audit, "%", "15", audit <= 15.0);
    let extra = median(extra_us);
    report.line("a read-only call, over the store in memory", extra, "µs", "5", extra <= 5.0);
    drop((durable, store, bare));

    let state = folder.path().join("large");
    fill(&state, rows);
    let store =
        DurableStore::open_sqlite(&state, Options { check: Duration::ZERO, ..Options::default() }).unwrap();
    let tenant = store.for_tenant("local");
    let begin = jiff::Timestamp::from_microsecond(BEGIN).unwrap();
    let at = |part: i64| jiff::Timestamp::from_microsecond(BEGIN + rows / 100 * part * STEP).unwrap();
    let query = |refine: fn(&mut AuditQuery)| {
        let mut query = AuditQuery { from: Some(at(30)), until: Some(at(60)), ..AuditQuery::default() };
        refine(&mut query);
        query
    };
    let queries = [
        query(|_| ()),
        query(|query| query.tool = Some("tool_7".into())),
        query(|query| query.agent = Some("agent-3".into())),
        query(|query| query.status = Some(Status::Failed)),
        query(|query| {
            query.tool = Some("tool_7".into());
            query.status = Some(Status::Failed);
        }),
    ];
    let (mut worst, mut pages): (f64, u32) = (0.0, 0);
    for query in queries {
        let mut query = query;
        for _ in 0..20 {
            let start = Instant::now();
            let page = runtime.block_on(tenant.audit_page(query.clone())).unwrap();
            worst = worst.max(micros(start, 1) / 1000.0);
            assert!(!page.records.is_empty(), "{query:?}");
            pages += 1;
            assert!(page.records.iter().all(|(_, record)| record.metadata.started_at >= begin));
            query.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
    }
    let what = format!("the slowest of {pages} filtered pages of {rows} records");
    report.line(&what, worst, "ms", "50", worst <= 50.0);
    if report.missed.is_empty() {
        println!("every goal was met");
    } else {
        println!("missed: {}", report.missed.join("; "));
        std::process::exit(1);
    }
}

const BEGIN: i64 = 1_700_000_000_000_000;
const STEP: i64 = 1_000;

/// A database of that many records. Written past the store, which would take hours over it; what is measured is
/// reading.
fn fill(state: &Path, rows: i64) {
    drop(DurableStore::open_sqlite(state, Options::default()).unwrap());
    let mut connection = Connection::open(state.join("haft.db")).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    // Nothing of it is lost but time, and a log would hold everything a second time.
    connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(())).unwrap();
    let indexes: Vec<(String, String)> = connection
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'tool_executions' AND sql IS NOT NULL")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, _) in &indexes {
        connection.execute_batch(&format!("DROP INDEX {name}")).unwrap();
    }
    let transaction = connection.transaction().unwrap();
    {
        let mut log = transaction
            .prepare("INSERT INTO audit_log (seq, body, digest, mac) VALUES (?1, ?2, NULL, zeroblob(32))")
            .unwrap();
        let mut executions = transaction
            .prepare(
                "INSERT INTO tool_executions (seq, execution_id, tenant, call_id, tool_name, status, error_code, \
                 started_at, completed_at, duration_ms, output_size_bytes, output_truncated, agent_id) \
                 VALUES (?1, ?2, 'local', '', ?3, ?4, NULL, ?5, ?5, 1.0, 0, 0, ?6)",
            )
            .unwrap();
        for seq in 1..=rows {
            let micros = BEGIN + seq * STEP;
            let time = jiff::Timestamp::from_microsecond(micros).unwrap();
            let id = ExecutionId::at(time).to_string();
            let (tool, agent) = (format!("tool_{}", seq * 7 % 50), format!("agent-{}", seq * 3 % 20));
            let (status, number) = if seq % 11 == 0 { ("Failed", 30) } else { ("Success", 0) };
            let body = format!(
                r#"{{"form":1,"event":"call","context":{{"tenant":"local","agent":"{agent}"}},"callId":"","tool":"{tool}","status":"{status}","inputSize":7,"inputSha256":"","metadata":{{"executionId":"{id}","startedAt":"{time}","completedAt":"{time}","durationMs":1.0,"attempts":1,"outputSize":0,"outputTruncated":false}}}}"#
            );
            log.execute(params![seq, body]).unwrap();
            executions.execute(params![seq, id, tool, number, micros, agent]).unwrap();
        }
        transaction.execute("UPDATE audit_head SET seq = ?1, projected = ?1", [rows]).unwrap();
    }
    transaction.commit().unwrap();
    for (_, sql) in &indexes {
        connection.execute_batch(sql).unwrap();
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
}
