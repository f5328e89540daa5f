//! One call.

use crate::{
    extract::{Json as Taken, Who, idempotency_key},
    problem::Problem,
    requests::{Invoke, unused},
    schema,
    server::App,
    sse,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use haft_core::{CallOptions, Task, ToolResult, port::Right};
use haft_engine::{BatchRequest, Engine, Plan, Request};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Make one call, and wait for its result
///
/// With `Accept: text/event-stream` the answer is a stream: every event of the call, then an event `result`. With
/// `Accept: text/plain` the result of a call that ran is the block of text for a model's context. With
/// `options.detached` the answer is a task. `options.executionId` names the call; an id that was used before is refused
/// with 409. Closing the connection cancels a call that is not detached.
#[utoipa::path(
    post, path = "/v1/invoke", tag = "calls", request_body = Invoke,
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]*[!-~][ -~]*$", description = "Calls with the same key have their effect once")),
    responses(
        (status = 200, description = "It ran: the result says how it ended", content(
            (schema::ToolResult = "application/json"),
            (schema::StreamEvent = "text/event-stream"),
            (String = "text/plain"),
        )),
        (status = 202, description = "A person has to approve it first, or it was taken as a task", body = schema::Accepted),
    )
)]
pub(crate) async fn invoke(
    State(app): State<App>,
    Who(who): Who,
    headers: HeaderMap,
    Taken(invoke): Taken<Invoke>,
) -> Result<Response, Problem> {
    who.needs(Right::Invoke)?;
    let request = invoke.of(&who, &app, idempotency_key(&headers)?)?;
    if request.options.detached {
        return detach(&app.engine, request).await;
    }
    if let Some(id) = request.options.execution_id {
        unused(id, &who, &app).await?;
    }
    if sse::accepts(&headers, "text/plain") {
        return in_words(app.engine.execute(request).await);
    }
    if !sse::wants_events(&headers) {
        return answered(app.engine.execute(request).await);
    }
    let (observer, call) = app.engine.execute_watched(request);
    // The end of the call ends it: a server that is to stop lets calls end for a while, then cancels them.
    let call = async move { sse::result_event(&call.await) };
    Ok(sse::answer(sse::events_and_result(observer, call), CancellationToken::new()))
}

/// A result with the status of the error table.
pub(crate) fn answered(result: ToolResult) -> Result<Response, Problem> {
    let result = Problem::of_result(result)?;
    let status = match result.error_code().map(haft_core::ErrorCode::http) {
        Some(202) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    Ok((status, Json(result)).into_response())
}

/// A result as the block of text for a model's context, where the call was run.
fn in_words(result: ToolResult) -> Result<Response, Problem> {
    let text = result.for_context();
    let response = answered(result)?;
    Ok(if response.status() == StatusCode::OK { text.into_response() } else { response })
}

/// Takes a call as a task.
pub(crate) async fn detach(engine: &Engine, request: Request) -> Result<Response, Problem> {
    let task = engine.submit(request, Default::default()).await?;
    let place = HeaderValue::try_from(format!("/v1/tasks/{}", task.id)).ok();
    let mut response = (StatusCode::ACCEPTED, Json(task_json(&task))).into_response();
    if let Some(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// A call that goes on without its caller.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Task")]
pub(crate) struct SentTask<'a> {
    #[serde(flatten)]
    task: &'a Task,
    /// Milliseconds to wait before asking again; absent where it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_after_ms: Option<u64>,
}

/// A task, with when to ask again.
pub(crate) fn sent_task(task: &Task) -> SentTask<'_> {
    let wait = task.poll_after(jiff::Timestamp::now());
    SentTask { task, poll_after_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)) }
}

/// A task as JSON.
pub(crate) fn task_json(task: &Task) -> Value {
    serde_json::to_value(sent_task(task)).unwrap_or_else(|_| json!({}))
}

/// Say what would happen to a call, and run nothing
#[utoipa::path(
    post, path = "/v1/plan", tag = "calls", request_body = Invoke, responses((status = 200, body = schema::Plan))
)]
pub(crate) async fn plan(
    State(app): State<App>,
    Who(who): Who,
    Taken(invoke): Taken<Invoke>,
) -> Result<Json<Plan>, Problem> {
    who.needs(Right::Invoke)?;
    let Request { call, context, options, approver } = invoke.of(&who, &app, None)?;
    let mut request = BatchRequest::from(vec![call.clone()]).context(context);
    request.options.call = CallOptions::clone(&options);
    request.approver = approver;
    let preview = app.engine.plan(request).await.into_iter().next();
    preview.map(|preview| Json(Plan::new(&call, &preview))).ok_or_else(|| Problem::not_found("call"))
}
