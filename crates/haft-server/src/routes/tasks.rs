//! Calls that go on without their callers.

use crate::{
    extract::{Named, QueryParams, Who},
    problem::Problem,
    schema,
    server::App,
    sse,
};
use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response, sse::Event},
};
use futures_util::{Stream, stream};
use haft_core::{ExecutionId, Task, TaskId, TaskQuery, TaskState, port::Right};
use haft_engine::{Engine, Observer, Tasks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use utoipa::IntoParams;

use super::{
    invoke::{SentTask, sent_task, task_json},
    tools::limit,
};

/// How long an answer may be waited for.
const LONGEST_WAIT: u16 = 60;

/// Which tasks. Everything that is set must be so.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// In this state.
    #[param(value_type = Option<schema::TaskState>)]
    state: Option<TaskState>,
    /// Whether those that are over are left out.
    open: Option<bool>,
    /// Of this tool, as it was asked for.
    #[param(pattern = "^[^\\u0000]*$")]
    tool: Option<String>,
    /// Of this agent.
    #[param(pattern = "^[^\\u0000]*$")]
    agent: Option<String>,
    /// Of this session.
    #[param(pattern = "^[^\\u0000]*$")]
    session: Option<String>,
    /// Where the page begins: `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}-tsk_[^\\u0000]*$")]
    after: Option<String>,
    /// Length of the list.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

/// Tasks, newest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TaskPage<'a> {
    tasks: Vec<SentTask<'a>>,
    /// Where the next page begins: the parameter `after`.
    next: Option<String>,
}

/// Tasks, newest first
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", params(Which), responses((status = 200, body = schema::TaskPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Response, Problem> {
    let words = [&which.tool, &which.agent, &which.session, &which.after];
    if words.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(Problem::bad_request("No task has a NUL character in it"));
    }
    let after = which.after.map(|key| key.parse()).transpose();
    let query = TaskQuery {
        state: which.state,
        open_only: which.open.unwrap_or_default(),
        tool: which.tool,
        agent: which.agent,
        session: which.session,
        user: None,
        after: after.map_err(|_| Problem::bad_request("`after` is not one"))?,
        limit: limit(which.limit, 50, TaskQuery::MOST)?,
    };
    let page = app.engine.tasks(who.tenant()).list(query).await?;
    let tasks = page.tasks.iter().map(sent_task).collect();
    Ok(Json(TaskPage { tasks, next: page.next.map(|key| key.to_string()) }).into_response())
}

/// How to wait.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Seconds to wait until it is over, or waits for a person. Then it is given as it stands.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u16>,
}

/// One task as it stands, with its result once it has one
#[utoipa::path(
    get, path = "/v1/tasks/{id}", tag = "tasks", params(("id" = String, Path), Wait),
    responses((status = 200, body = schema::Task))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
    QueryParams(Wait { wait }): QueryParams<Wait>,
) -> Result<Json<Value>, Problem> {
    let (tasks, id) = (app.engine.tasks(who.tenant()), TaskId::from_text(id));
    let task = match wait {
        None | Some(0) => tasks.get(&id).await?,
        Some(seconds) if seconds <= LONGEST_WAIT => {
            tokio::select! {
                task = tasks.wait(&id, Some(Duration::from_secs(seconds.into()))) => task?,
                () = app.stop.cancelled() => tasks.get(&id).await?,
            }
        }
        Some(_) => return Err(Problem::bad_request(format!("`wait` must be {LONGEST_WAIT} at most"))),
    };
    Ok(Json(task_json(&task)))
}

/// End a task
#[utoipa::path(
    delete, path = "/v1/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = schema::Task))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<Value>, Problem> {
    who.needs(Right::Invoke)?;
    let note = format!("Cancelled by {}", who.name());
    let task = app.engine.tasks(who.tenant()).cancel(&TaskId::from_text(id), Some(&note)).await?;
    Ok(Json(task_json(&task)))
}

/// How long a task that runs here may take from the end of its execution to its own, which is recorded between.
const RECORDED: Duration = Duration::from_secs(5);
/// How often it is asked whether a task has begun.
const BEGUN: Duration = Duration::from_millis(100);
/// How many of those pass between two looks into the store, while a task waits for a person.
const PATIENCE: u32 = 10;

/// The last event of a task that a client has seen. A task that waited for a person has more than one execution, and
/// each counts its events from the beginning: so an id names both.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    walk: Option<ExecutionId>,
    seq: u64,
}

fn last_seen(headers: &HeaderMap) -> Result<Option<Seen>, Problem> {
    let Some(text) = sse::last_event_text(headers)? else { return Ok(None) };
    let (walk, seq) = text.rsplit_once('/').map_or((None, text), |(walk, seq)| (Some(walk), seq));
    let walk = walk.map(str::parse).transpose().map_err(|_| sse::wrong())?;
    Ok(Some(Seen { walk, seq: sse::number(seq)? }))
}

/// One who watches a task.
struct Watch {
    engine: Engine,
    tasks: Tasks,
    tenant: String,
    id: TaskId,
    last: Option<Seen>,
    /// The execution that was followed last.
    followed: Option<ExecutionId>,
    /// Whether it was said that a person is waited for.
    is_told: bool,
    stage: Stage,
}

/// How far they are.
enum Stage {
    /// There may be an execution to follow.
    Looking,
    /// It runs.
    Walk(Observer),
    /// The execution is over, and the task is about to be.
    Ending,
    /// There is nothing more to say.
    Over,
}

fn as_it_stands(task: &Task) -> Event {
    Event::default().event("task").data(task_json(task).to_string())
}

impl Watch {
    /// What happens next; `None` after the last.
    async fn next(&mut self) -> Option<Event> {
        loop {
            match &mut self.stage {
                Stage::Looking => {
                    let task = self.tasks.get(&self.id).await.ok()?;
                    if let Some(event) = self.look(&task) {
                        return Some(event);
                    }
                    if matches!(self.stage, Stage::Looking) {
                        self.pause(&task).await;
                    }
                }
                Stage::Walk(observer) => match observer.next().await {
                    Some(happened) => {
                        let walk = self.followed.map(|walk| format!("{walk}/")).unwrap_or_default();
                        return Some(sse::event(&happened, &walk));
                    }
                    None => self.stage = Stage::Ending,
                },
                Stage::Ending => {
                    let task = self.tasks.wait(&self.id, Some(RECORDED)).await.ok()?;
                    self.is_told = !task.state.is_over();
                    self.stage = if self.is_told { Stage::Looking } else { Stage::Over };
                    return Some(as_it_stands(&task));
                }
                Stage::Over => return None,
            }
        }
    }

    /// Follows the execution of a task, where there is one that was not followed; else says how it stands, if that is
    /// news.
    fn look(&mut self, task: &Task) -> Option<Event> {
        let walk = task.execution_id;
        if self.followed != Some(walk)
            && self.engine.is_of(walk, &self.tenant)
            && let Some(observer) = self.engine.observe(walk)
        {
            let seen = self.last.filter(|last| last.walk.is_none_or(|seen| seen == walk));
            self.stage = Stage::Walk(seen.map(|seen| seen.seq).into_iter().fold(observer, Observer::after));
            (self.followed, self.is_told) = (Some(walk), false);
            return None;
        }
        let is_over = task.state.is_over();
        if is_over {
            self.stage = Stage::Over;
        } else if task.state != TaskState::AwaitingApproval || self.is_told {
            return None;
        }
        self.is_told = true;
        Some(as_it_stands(task))
    }

    /// Waits until it is worth to look again.
    async fn pause(&self, task: &Task) {
        match task.state {
            // The process that runs it goes on once it is answered; most likely this one.
            TaskState::AwaitingApproval => {
                for _ in 0..PATIENCE {
                    tokio::time::sleep(BEGUN).await;
                    if self.tasks.observe(&self.id).is_some() {
                        return;
                    }
                }
            }
            TaskState::Running => {
                let wait = task.poll_after(jiff::Timestamp::now());
                tokio::time::sleep(wait.unwrap_or(BEGUN)).await;
            }
            _ => tokio::time::sleep(BEGUN).await,
        }
    }
}

/// Everything that happens in a task, until it is over.
fn watch(watch: Watch) -> impl Stream<Item = Event> + Send {
    stream::unfold(watch, async |mut watch| {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

/// What happens in a task: events, resumable with `Last-Event-ID`
///
/// An event `task` says how it stands: when it waits for a person, and at the end, which is the last one. Of a task
/// that was over long ago, or runs elsewhere, that is all there is.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/events", tag = "tasks",
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header, pattern = "^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/)?[0-9]{1,18}$")),
    responses((status = 200, body = schema::StreamEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = last_seen(&headers)?;
    let (tasks, id) = (app.engine.tasks(who.tenant()), TaskId::from_text(id));
    // Asked in any case: whether it is there is the store's to say.
    tasks.get(&id).await?;
    let watching = Watch {
        engine: app.engine.clone(),
        tasks,
        tenant: who.tenant().to_owned(),
        id,
        last,
        followed: None,
        is_told: false,
        stage: Stage::Looking,
    };
    Ok(sse::answer(watch(watching), app.stop.clone()))
}
