//! Calls that go on without their callers.

use crate::{
    problem::Problem,
    schema,
    server::App,
    sse,
    take::{Asked, Named, Who},
};
use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{Response, sse::Event},
};
use futures_util::{Stream, stream};
use haft_core::{Task, TaskId, TaskQuery, TaskState, port::Right};
use haft_engine::{Observer, Tasks};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::IntoParams;

use super::{invoke::task_json, tools::limit};

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
    tool: Option<String>,
    /// Of this agent.
    agent: Option<String>,
    /// Of this session.
    session: Option<String>,
    /// Where the page begins: `next` of the page before.
    after: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u16>,
}

/// Tasks, newest first
#[utoipa::path(get, path = "/v1/tasks", tag = "tasks", params(Which), responses((status = 200, body = schema::TaskPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    Asked(which): Asked<Which>,
) -> Result<Json<Value>, Problem> {
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
    let tasks: Vec<Value> = page.tasks.iter().map(task_json).collect();
    Ok(Json(json!({"tasks": tasks, "next": page.next.map(|key| key.to_string())})))
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
    Asked(Wait { wait }): Asked<Wait>,
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

/// How long a task that runs here may take from the end of its walk to its own, which is recorded between.
const RECORDED: Duration = Duration::from_secs(5);
/// How often it is asked whether a task has begun.
const BEGUN: Duration = Duration::from_millis(100);

/// One who watches a task.
enum Watching {
    /// It has not begun here.
    Waiting,
    /// It is on its walk.
    Walk(Observer),
    /// Its walk is over.
    Ending,
    /// There is nothing more to say.
    Over,
}

fn as_it_stands(task: &Task) -> Event {
    Event::default().event("task").data(task_json(task).to_string())
}

/// Everything that happens in a task, then how it stands.
fn watch(tasks: Tasks, id: TaskId, last: Option<u64>) -> impl Stream<Item = Event> + Send {
    stream::unfold(Watching::Waiting, move |mut watching| {
        let (tasks, id) = (tasks.clone(), id.clone());
        async move {
            loop {
                watching = match watching {
                    Watching::Waiting => match tasks.observe(&id) {
                        Some(observer) => Watching::Walk(last.into_iter().fold(observer, Observer::after)),
                        None => {
                            let task = tasks.get(&id).await.ok()?;
                            if task.state.is_over() || task.state == TaskState::AwaitingApproval {
                                return Some((as_it_stands(&task), Watching::Over));
                            }
                            let runs_elsewhere = task.state == TaskState::Running;
                            let wait = task.poll_after(jiff::Timestamp::now()).filter(|_| runs_elsewhere);
                            tokio::time::sleep(wait.unwrap_or(BEGUN)).await;
                            Watching::Waiting
                        }
                    },
                    Watching::Walk(mut observer) => match observer.next().await {
                        Some(happened) => return Some((sse::event(&happened), Watching::Walk(observer))),
                        None => Watching::Ending,
                    },
                    Watching::Ending => {
                        let task = tasks.wait(&id, Some(RECORDED)).await.ok()?;
                        return Some((as_it_stands(&task), Watching::Over));
                    }
                    Watching::Over => return None,
                };
            }
        }
    })
}

/// What happens in a task: events, resumable with `Last-Event-ID`
///
/// The last one is an event `task`: how it stands, over or waiting for a person. Of a task that is over, or runs elsewhere, that is
/// all there is.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/events", tag = "tasks",
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, body = String, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = sse::last_event_id(&headers)?;
    let (tasks, id) = (app.engine.tasks(who.tenant()), TaskId::from_text(id));
    // Asked in any case: whether it is there is the store's to say.
    tasks.get(&id).await?;
    Ok(sse::answer(watch(tasks, id, last), app.stop.clone()))
}
