//! `haft runs`: what ran, and what runs.

use super::{
    Memory,
    args::{Page, RunsCommand},
    filter::{self, Id},
    prefix::{self, Which},
    record, recover,
    table::{Side, table},
    tasks, tenant_or_own, watching,
};
use crate::{
    console::{Console, QUIET, STRONG},
    failure::Failure,
    layout,
    live_runs::{self, Running},
    words,
};
use haft::{
    ResultMetadata, TaskQuery,
    port::{AuditPage, AuditQuery, ChangesStep, StoredRun, TenantStore as _},
};
use haft_core::{
    id_prefix::{self, IdMatch},
    text::people_text,
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) async fn run(
    command: &RunsCommand,
    memory: &Memory,
    console: &mut Console,
) -> Result<u8, Failure> {
    match command {
        RunsCommand::List { running: true, json, .. } => list_running(memory, *json, console)?,
        RunsCommand::List { filter, page, json, .. } => {
            let tenant = memory.store.tenant(&tenant_or_own(filter.tenant.as_deref()));
            let found = tenant.audit_page(filter.query(Some(page))).await?;
            list("runs", &found, page, *json, console)?;
        }
        RunsCommand::Tasks { state, open, tool, tenant, limit, after, json } => {
            let query = TaskQuery {
                state: *state,
                open_only: *open,
                tool: tool.clone(),
                after: after.clone(),
                limit: *limit,
                ..TaskQuery::default()
            };
            tasks::list(memory, &tenant_or_own(tenant.as_deref()), query, *json, console).await?;
        }
        RunsCommand::Show { id, tenant, json } if tasks::is_id(id) => {
            let tenant = tenant_or_own(tenant.as_deref());
            let id = tasks::whole_id(memory, &tenant, id).await?;
            tasks::show(memory, &tenant, &id, *json, console).await?;
        }
        RunsCommand::Show { id, tenant, json } => {
            let tenant = tenant_or_own(tenant.as_deref());
            let wanted = wanted(memory, &tenant, id).await?;
            match found(memory, &tenant, wanted).await? {
                Some(found) => found.print(*json, console)?,
                None => return Err(missing(memory, &wanted.call.to_string())),
            }
        }
        RunsCommand::Watch { id, tenant, timeout, json } => {
            let tenant = tenant_or_own(tenant.as_deref());
            if tasks::is_id(id) {
                let id = tasks::whole_id(memory, &tenant, id).await?;
                return tasks::watch(memory, &tenant, &id, *timeout, *json, console).await;
            }
            let wanted = wanted(memory, &tenant, id).await?;
            return watching::watch(memory, &tenant, wanted, *timeout, *json, console).await;
        }
        RunsCommand::Cancel { id, json } if tasks::is_id(id) => {
            let tenant = tenant_or_own(None);
            let id = tasks::whole_id(memory, &tenant, id).await?;
            tasks::cancel(memory, &tenant, &id, *json, console).await?;
        }
        RunsCommand::Cancel { id, json } => cancel(memory, running_id(memory, id)?, *json, console)?,
        RunsCommand::Stats { filter, json } => {
            let tenant = memory.store.tenant(&tenant_or_own(filter.tenant.as_deref()));
            let numbers = tenant.statistics(filter.query(None)).await?;
            stats(&numbers, *json, console)?;
        }
    }
    Ok(0)
}

/// A page of records, with how to go on.
pub(super) fn list(
    what: &str,
    found: &AuditPage,
    page: &Page,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    if json {
        return console.print_json(&record::page_json(what, found));
    }
    if found.records.is_empty() {
        return console.print("no calls match\n");
    }
    let mut text = record::page_table(found, Timestamp::now(), console.width());
    if let Some(next) = found.next {
        text.push_str(&format!(
            "{QUIET}more than these {} match; the next page: --after {next}{QUIET:#}\n",
            page.limit.min(found.records.len())
        ));
    }
    console.print(text)
}

fn list_running(memory: &Memory, json: bool, console: &mut Console) -> Result<(), Failure> {
    let found = running_now(memory)?;
    if json {
        return console.print_json(&json!({"running": found}));
    }
    if found.is_empty() {
        return console.print("no call runs now\n");
    }
    let heading = [("id", Side::Left), ("UTC", Side::Left), ("process", Side::Right), ("tools", Side::Left)];
    let now = Timestamp::now();
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|running| {
            let tools: Vec<String> = running.tools.iter().map(|tool| words::name(tool)).collect();
            let tools = tools.join(", ");
            let what = if running.is_batch { format!("batch: {tools}") } else { tools };
            vec![
                words::name(&running.id),
                record::moment(running.since, now),
                running.process.to_string(),
                what,
            ]
        })
        .collect();
    console.print(table(&heading, &rows, console.width()))
}

pub(super) fn running_now(memory: &Memory) -> Result<Vec<Running>, Failure> {
    let path = memory.state.join("running");
    live_runs::list(&memory.state).map_err(|reason| Failure::Unreadable { name: words::path(&path), reason })
}

/// The call or batch that was named, whole or by a prefix of its id.
async fn wanted(memory: &Memory, tenant: &str, typed: &str) -> Result<Id, Failure> {
    prefix::run_id(&memory.store, &running_now(memory)?, tenant, typed, Which::CallsAndBatches).await
}

/// Looks for the id among calls that run now.
fn running_id(memory: &Memory, typed: &str) -> Result<Id, Failure> {
    if let Ok(whole) = filter::id(typed) {
        return Ok(whole);
    }
    let digits = id_prefix::digits(typed).ok_or_else(|| Failure::NotAnId { id: typed.to_owned() })?;
    let fitting = running_now(memory)?.into_iter().filter(|running| id_prefix::begins(&running.id, &digits));
    let fitting: Vec<_> =
        fitting.map(|running| IdMatch { id: running.id, what: running.tools.join(", ") }).collect();
    let id = id_prefix::only(typed, &fitting)?.ok_or_else(|| Failure::NotRunning { id: typed.to_owned() })?;
    filter::id(id)
}

/// What is known under an id.
pub(super) enum Found {
    /// With how far it came with what its command changed, where its record does not say.
    Call(Box<StoredRun>, Option<ChangesStep>),
    Batch(AuditPage),
}

/// The call of that id, or the calls of the batch of that id.
pub(super) async fn found(memory: &Memory, tenant: &str, id: Id) -> Result<Option<Found>, Failure> {
    let tenant = memory.store.tenant(tenant);
    if let Some(run) = tenant.run(id.call).await? {
        let changes = tenant.changes(id.call).await?;
        return Ok(Some(Found::Call(Box::new(run), changes)));
    }
    let query = AuditQuery { batch: Some(id.batch), limit: 1000, ..AuditQuery::default() };
    let mut page = tenant.audit_page(query).await?;
    page.records.sort_by_key(|(seq, record)| (record.metadata.batch_index, *seq));
    Ok((!page.records.is_empty()).then_some(Found::Batch(page)))
}

/// Why nothing is known under an id.
fn missing(memory: &Memory, id: &str) -> Failure {
    let runs = running_now(memory).unwrap_or_default();
    match runs.iter().any(|running| running.id == id.trim()) {
        true => Failure::StillRunning { id: id.to_owned() },
        false => Failure::NoRun { id: id.to_owned() },
    }
}

impl Found {
    pub(super) fn print(&self, json: bool, console: &mut Console) -> Result<(), Failure> {
        match (self, json) {
            (Found::Call(run, changes), true) => console.print_json(&run_json(run, *changes)),
            (Found::Call(run, changes), false) => {
                let text = run_text(run, *changes, console.width());
                console.print(text)
            }
            (Found::Batch(page), true) => console.print_json(&record::page_json("runs", page)),
            (Found::Batch(page), false) => {
                let text = record::page_table(page, Timestamp::now(), console.width());
                console.print(text)
            }
        }
    }

    /// The exit code that it had, or would have had.
    pub(super) fn exit(&self) -> u8 {
        match self {
            Found::Call(run, _) => run.record.code.map_or(0, haft::ErrorCode::exit),
            Found::Batch(page) => {
                page.records.iter().find_map(|(_, record)| record.code).map_or(0, haft::ErrorCode::exit)
            }
        }
    }
}

fn run_json(run: &StoredRun, changes: Option<ChangesStep>) -> Value {
    let mut value = record::to_json(0, &run.record);
    if let Some(changes) = changes {
        value["changes"] = recover::changes_json(changes);
    }
    if let Some(value) = value.as_object_mut() {
        value.remove("seq");
    }
    value["arguments"] = run.arguments.as_ref().map_or(Value::Null, |arguments| {
        serde_json::from_str(arguments.as_str())
            .unwrap_or_else(|_| Value::String(arguments.as_str().to_owned()))
    });
    value["result"] = json!(run.result);
    value
}

/// What became of what a command changed: as its record says, unless somebody decided later or its haft was killed.
fn changes_text(facts: &ResultMetadata, changes: Option<ChangesStep>) -> Option<String> {
    let settled = facts.changes.as_ref();
    let step = changes.or(settled.map(|settled| ChangesStep::Settled(settled.state)))?;
    let summary = settled.filter(|settled| !settled.summary.is_empty());
    let summary = summary.map(|settled| format!(" ({})", settled.summary)).unwrap_or_default();
    Some(format!("{}{summary}", step.in_words()))
}

fn run_text(run: &StoredRun, changes: Option<ChangesStep>, width: Option<usize>) -> String {
    let (record, facts) = (&run.record, &run.record.metadata);
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
    row("execution", facts.execution_id.to_string());
    row("tool", words::name(&record.tool));
    let code = record.code.map(|code| format!(", {code}")).unwrap_or_default();
    row("status", format!("{} {}{code}", record::mark(record.status), record.status));
    row("started", format!("{} (UTC)", facts.started_at));
    // The process that knew more was killed.
    let is_unknown = record.code == Some(haft::ErrorCode::OutcomeUnknown);
    let or_unknown = |text: String| if is_unknown { "not known".to_owned() } else { text };
    row("took", or_unknown(words::duration(facts.duration)));
    let user = record.context.user.as_deref().map(|user| format!(", user {}", words::name(user)));
    row(
        "by",
        format!(
            "{} of {}{}",
            words::name(&record.context.agent),
            words::name(&record.context.tenant),
            user.unwrap_or_default()
        ),
    );
    if let (Some(batch), Some(index)) = (facts.batch_id, facts.batch_index) {
        let name = match &*record.call_id {
            "" => String::new(),
            id => format!(" ({})", words::name(id)),
        };
        row("batch", format!("{batch}, call {}{name}", index + 1));
    }
    row(
        "rule",
        record
            .rule
            .as_deref()
            .map_or_else(|| or_unknown("none reached".to_owned()), |rule| record::line(rule, 200)),
    );
    if let Some(approval) = &record.approval {
        row("approval", approval.to_string());
    }
    let held = facts.enforcement.as_ref();
    row(
        "isolation",
        held.map_or_else(
            || or_unknown("not started".to_owned()),
            |held| format!("{}, level {}", held.jail, format!("{:?}", held.level).to_lowercase()),
        ),
    );
    attempt_lines(facts).into_iter().for_each(|(name, text)| row(&name, text));
    if let Some(text) = changes_text(facts, changes) {
        row("changes", text);
    }
    for violation in &facts.violations {
        row("sandbox", record::line(&violation.description, 500));
    }
    row("sizes", format!("{} bytes in, {} bytes out", record.input_size, facts.output_size));
    if let Some(handle) = &facts.output_handle {
        row("output", format!("haft call read_output handle={handle}"));
    }
    if let Some(diagnostics) = &record.diagnostics {
        row("operator", record::line(diagnostics, 2000));
    }
    let mut text = layout::list(&rows, width);
    let mut part = |title: &str, body: Option<String>| {
        let body = body.unwrap_or_else(|| format!("{QUIET}no longer stored{QUIET:#}"));
        text.push_str(&format!("\n{STRONG}{title}{STRONG:#}\n{}\n", body.trim_end()));
    };
    part("arguments", run.arguments.as_ref().map(|arguments| people_text(arguments.as_str()).into_owned()));
    part("result", run.result.as_ref().map(|result| people_text(result.text()).into_owned()));
    text
}

/// A line for each attempt at a call that took several: how it ended, and the wait after it.
fn attempt_lines(facts: &ResultMetadata) -> Vec<(String, String)> {
    let tries = facts.scheduling.as_ref().map_or(&[][..], |around| &around.failed_tries);
    let total = facts.attempts.max(u32::try_from(tries.len()).unwrap_or(u32::MAX));
    if tries.is_empty() {
        return Vec::new();
    }
    let failed = tries.iter().zip(1_u32..).map(|(failed, number)| {
        let wait = words::duration(failed.delay);
        (format!("attempt {number}"), format!("{}, retried after {wait}", failed.code))
    });
    let last = facts.attempt_records.last().and_then(|record| record.code);
    let ended = last.map_or_else(|| "succeeded".to_owned(), |code| code.to_string());
    failed.chain((facts.attempts > 1).then(|| (format!("attempt {total}"), ended))).collect()
}

fn cancel(memory: &Memory, id: Id, json: bool, console: &mut Console) -> Result<(), Failure> {
    let id = id.call.to_string();
    let asked = live_runs::ask_to_stop(&memory.state, &id)
        .map_err(|reason| Failure::CannotWrite { path: memory.state.join("running"), reason })?;
    if !asked {
        return Err(Failure::NotRunning { id });
    }
    if json {
        return console.print_json(&json!({"id": id, "asked": true}));
    }
    console.print(format!("cancelling; `haft runs watch {id}` waits for the result\n"))
}

fn stats(numbers: &[haft::port::ToolStatistics], json: bool, console: &mut Console) -> Result<(), Failure> {
    if json {
        let tools: Vec<Value> = numbers
            .iter()
            .map(|tool| {
                json!({
                    "tool": tool.tool,
                    "count": tool.count,
                    "succeeded": tool.succeeded,
                    "successRate": tool.success_rate(),
                    "p50Ms": tool.p50_ms,
                    "p95Ms": tool.p95_ms,
                    "p99Ms": tool.p99_ms,
                })
            })
            .collect();
        return console.print_json(&json!({"tools": tools}));
    }
    if numbers.is_empty() {
        return console.print("no calls match\n");
    }
    let heading = [
        ("calls", Side::Right),
        ("ok", Side::Right),
        ("p50 ms", Side::Right),
        ("p95 ms", Side::Right),
        ("p99 ms", Side::Right),
        ("tool", Side::Left),
    ];
    let rows: Vec<Vec<String>> = numbers
        .iter()
        .map(|tool| {
            let ms = |ms: f64| format!("{ms:.1}");
            vec![
                tool.count.to_string(),
                format!("{:.0} %", tool.success_rate() * 100.0),
                ms(tool.p50_ms),
                ms(tool.p95_ms),
                ms(tool.p99_ms),
                words::name(&tool.tool),
            ]
        })
        .collect();
    console.print(table(&heading, &rows, console.width()))
}
