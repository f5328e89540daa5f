//! `haft runs` for tasks: detached calls, whichever process runs them.

use super::{
    Memory, record,
    table::{Side, table},
};
use crate::{
    console::{BAD, Console, GOOD, QUIET, STRONG, UNSURE},
    failure::Failure,
    layout, show, words,
};
use anstyle::Style;
use haft::{
    ErrorCode, Task, TaskId, TaskPage, TaskQuery, TaskState, ToolError, ToolResult,
    port::{TaskCancel, TaskStore as _},
};
use haft_core::{
    id_prefix::{self, IdMatch},
    text::people_text,
};
use jiff::Timestamp;
use serde_json::json;
use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

/// How often a task of another process is asked about.
const POLL: Duration = Duration::from_millis(200);

/// What ids of tasks begin with.
const KIND: &str = "tsk_";

/// Whether something typed is the id of a task, or a prefix of one.
pub(super) fn is_id(typed: &str) -> bool {
    typed.trim().starts_with(KIND)
}

/// The id of the task that was named, whole or by a prefix.
pub(super) async fn whole_id(memory: &Memory, tenant: &str, typed: &str) -> Result<TaskId, Failure> {
    let id = TaskId::from_text(typed.trim());
    if memory.store.find(tenant, &id).await?.is_some() || !id_prefix::is_prefix(typed, KIND) {
        return Ok(id);
    }
    let mut fitting = Vec::new();
    let mut query = TaskQuery { limit: 100, ..TaskQuery::default() };
    loop {
        let TaskPage { tasks, next } = memory.store.list(tenant, query.clone()).await?;
        let tasks = tasks.into_iter().filter(|task| task.id.as_str().starts_with(id.as_str()));
        fitting.extend(
            tasks.map(|task| IdMatch {
                id: task.id.to_string(),
                what: format!("{} {}", task.tool, task.state),
            }),
        );
        match next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    Ok(id_prefix::only(typed, &fitting)?.map_or(id, TaskId::from_text))
}

fn not_found(id: &TaskId) -> Failure {
    let text = format!("there is no task `{}`", words::name(id.as_str()));
    Failure::Task(ToolError::new(ErrorCode::TaskNotFound, text))
}

async fn find(memory: &Memory, tenant: &str, id: &TaskId) -> Result<Task, Failure> {
    memory.store.find(tenant, id).await?.ok_or_else(|| not_found(id))
}

pub(super) async fn list(
    memory: &Memory,
    tenant: &str,
    query: TaskQuery,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let TaskPage { tasks, next } = memory.store.list(tenant, query).await?;
    if json {
        return console.print_json(&json!({"tasks": tasks, "next": next.map(|next| next.to_string())}));
    }
    if tasks.is_empty() {
        return console.print("no tasks match\n");
    }
    let heading = [("task", Side::Left), ("UTC", Side::Left), ("state", Side::Left), ("tool", Side::Left)];
    let now = Timestamp::now();
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .map(|task| {
            let percent = task.progress.percent.filter(|_| task.state == TaskState::Running);
            let percent = percent.map(|percent| format!(" {percent} %")).unwrap_or_default();
            vec![
                task.id.to_string(),
                record::moment(task.created_at, now),
                format!("{} {}{percent}", sign(task.state).1, task.state),
                words::name(&task.tool),
            ]
        })
        .collect();
    let mut text = table(&heading, &rows, console.width());
    if let Some(next) = next {
        text.push_str(&format!("{QUIET}more tasks match; the next page: --after {next}{QUIET:#}\n"));
    }
    console.print(text)
}

fn sign(state: TaskState) -> (Style, &'static str) {
    match state {
        TaskState::Pending => (QUIET, "·"),
        TaskState::Running => (STRONG, "▸"),
        TaskState::AwaitingApproval => (UNSURE, "?"),
        TaskState::Completed => (GOOD, "✓"),
        TaskState::Failed => (BAD, "✗"),
        TaskState::Cancelled => (UNSURE, "⊘"),
    }
}

fn mark(state: TaskState) -> String {
    let (style, sign) = sign(state);
    format!("{style}{sign}{style:#}")
}

pub(super) async fn show(
    memory: &Memory,
    tenant: &str,
    id: &TaskId,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let task = find(memory, tenant, id).await?;
    if json {
        return console.print_json(&task);
    }
    let text = text(&task, console.width());
    console.print(text)
}

fn text(task: &Task, width: Option<usize>) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, text: String| rows.push((name.to_owned(), text));
    row("task", task.id.to_string());
    row("state", format!("{} {}", mark(task.state), task.state));
    row("tool", words::name(&task.tool));
    row("execution", task.execution_id.to_string());
    row("taken", format!("{} (UTC)", task.created_at));
    if let Some(at) = task.finished_at {
        row("ended", format!("{at} (UTC)"));
    }
    if let Some(at) = task.expires_at {
        row("kept until", format!("{at} (UTC)"));
    }
    if !task.state.is_over() {
        row("now", record::line(&task.status_message(), 400));
        if let Some(percent) = task.progress.percent {
            row("progress", format!("{percent} %"));
        }
    }
    if task.state == TaskState::Running && task.cancel_requested {
        row("cancel", "requested".to_owned());
    }
    if let Some(approval) = &task.approval_id {
        row("approval", record::line(approval.as_str(), 80));
    }
    let mut text = layout::list(&rows, width);
    let mut part = |title: &str, body: &str| {
        text.push_str(&format!("\n{STRONG}{title}{STRONG:#}\n{}\n", people_text(body).trim_end()));
    };
    match &task.result {
        Some(result) => part("result", result.text()),
        None if !task.progress.output_tail.is_empty() => part("output so far", &task.progress.output_tail),
        None => {}
    }
    text
}

/// Waits for a task, says what happens to it meanwhile, and prints its result as `haft call` would have.
pub(super) async fn watch(
    memory: &Memory,
    tenant: &str,
    id: &TaskId,
    timeout: Option<Duration>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let begun = Instant::now();
    let mut last = None;
    loop {
        let task = find(memory, tenant, id).await?;
        if let (true, Some(result)) = (task.state.is_over(), &task.result) {
            if json {
                console.print_json(&task)?;
            } else {
                print(result, console)?;
            }
            return Ok(result.exit_code());
        }
        let now = task.status_message();
        let now = match task.progress.percent.filter(|_| task.state == TaskState::Running) {
            Some(percent) => format!("{percent} % {now}"),
            None => now,
        };
        if !json && last.as_ref() != Some(&now) {
            console.say(format!("{} {}", mark(task.state), record::line(&now, 400)));
            last = Some(now);
        }
        if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            return Err(Failure::StillRunning { id: id.to_string() });
        }
        tokio::time::sleep(POLL).await;
    }
}

fn print(result: &ToolResult, console: &mut Console) -> Result<(), Failure> {
    let text = match &result.error {
        None => show::text(result),
        Some(_) => show::output_before_failure(result),
    };
    let text = text.trim_end();
    if !text.is_empty() {
        console.print(format!("{text}\n"))?;
    }
    match &result.error {
        None if std::io::stderr().is_terminal() => console.say(show::headline(result)),
        None => {}
        Some(error) => console.error(&people_text(&error.message), None),
    }
    Ok(())
}

pub(super) async fn cancel(
    memory: &Memory,
    tenant: &str,
    id: &TaskId,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    match memory.store.cancel(tenant, id).await? {
        TaskCancel::Unknown => Err(not_found(id)),
        TaskCancel::Over => {
            let text = format!("the task {id} has already ended");
            Err(Failure::Task(ToolError::new(ErrorCode::TaskFinished, text)))
        }
        TaskCancel::Ended if json => console.print_json(&json!({"taskId": id, "cancelled": true})),
        TaskCancel::Ended => console.print("cancelled before it started\n"),
        TaskCancel::Asked if json => console.print_json(&json!({"taskId": id, "asked": true})),
        TaskCancel::Asked => {
            console.print(format!("cancelling; `haft runs watch {id}` waits for the result\n"))
        }
    }
}
