//! Several calls at once: batches and flows.

use crate::{
    extract::{Json as Taken, Named, Who, idempotency_key},
    problem::Problem,
    requests::{Batch, Flow, unused},
    schema,
    server::App,
    sse,
};
use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse as _, Response},
};
use haft_core::{BatchId, BatchSummary, ErrorCode, Problem as Single, ToolResult, port::Right};
use haft_definition::{Format, ReadErrors};
use haft_engine::{BatchRequest, FlowError, FlowRequest, FlowResult};
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::executions::{CancelBody, Cancelled, cancel_known};

/// What came of a batch: one result for each call, in call order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BatchResult")]
pub(crate) struct Results {
    results: Vec<ToolResult>,
    summary: BatchSummary,
}

/// Run several calls as one batch; results come in call order
///
/// One result each, whatever happens. With `Accept: text/event-stream` the answer is a stream: every event of the batch,
/// then an event `result` with what would have been the answer. With the header `Idempotency-Key` each call that has no
/// key of its own gets one from it and its place. Closing the connection cancels what has not ended.
#[utoipa::path(
    post, path = "/v1/batch", tag = "calls", request_body = Batch,
    params(("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[ -~]*[!-~][ -~]*$")),
    responses((status = 200, description = "One result for each call, in call order", content(
        (schema::BatchResult = "application/json"),
        (schema::StreamEvent = "text/event-stream"),
    )))
)]
pub(crate) async fn run(
    State(app): State<App>,
    Who(who): Who,
    headers: HeaderMap,
    Taken(batch): Taken<Batch>,
) -> Result<Response, Problem> {
    who.needs(Right::Invoke)?;
    let key = idempotency_key(&headers)?;
    if !(1..=1000).contains(&batch.calls.len()) {
        return Err(Problem::bad_request("`calls` must be 1 to 1000"));
    }
    let options = batch.options()?;
    if let Some(id) = batch.batch_id {
        unused(id, &who, &app).await?;
    }
    let context = batch.context.of(&who, &app)?;
    let mut calls = Vec::with_capacity(batch.calls.len());
    for (place, call) in batch.calls.into_iter().enumerate() {
        let mut call = call.of(None)?;
        if let (None, Some(key)) = (&call.idempotency_key, &key) {
            call.idempotency_key = Some(format!("{key}/{place}").into());
        }
        calls.push(call);
    }
    let request = BatchRequest::from(calls).context(context).options(options);
    if !sse::wants_events(&headers) {
        let (results, summary) = app.engine.execute_batch(request).await;
        return Ok(Json(Results { results, summary }).into_response());
    }
    let (observer, running) = app.engine.execute_batch_watched(request);
    let running = async move {
        let (results, summary) = running.await;
        sse::result_event(&Results { results, summary })
    };
    // The end of its calls ends it, as with a single one.
    Ok(sse::answer(sse::events_and_result(observer, running), CancellationToken::new()))
}

fn bad_flow(errors: &ReadErrors) -> Problem {
    let single = |error: &haft_definition::ReadError| Single::new("", "flow", error.to_string());
    Problem::new(ErrorCode::BadDefinition, "The flow cannot be used; see `problems`")
        .with_problems(errors.errors().iter().map(single).collect())
}

/// Run a flow: calls of tools that belong together
#[utoipa::path(post, path = "/v1/flow", tag = "calls", request_body = Flow, responses((status = 200, body = schema::FlowResult)))]
pub(crate) async fn flow(
    State(app): State<App>,
    Who(who): Who,
    Taken(asked): Taken<Flow>,
) -> Result<Json<FlowResult>, Problem> {
    who.needs(Right::Invoke)?;
    let options = asked.options()?;
    if let Some(id) = asked.batch_id {
        unused(id, &who, &app).await?;
    }
    let flow = haft_flow::read(asked.flow.get(), Format::Json).map_err(|errors| bad_flow(&errors))?;
    let context = asked.context.of(&who, &app)?;
    let request = FlowRequest::new(flow, asked.input).context(context).options(options);
    let running = app.engine.run_flow(request).map_err(|error| match error {
        FlowError::Bad(errors) => bad_flow(&errors),
        FlowError::Refused(error) => error.into(),
    })?;
    Ok(Json(running.await))
}

fn id(text: &str) -> Result<BatchId, Problem> {
    text.parse().map_err(|_| Problem::not_found("batch"))
}

/// What happens in a batch or a flow: events, resumable with `Last-Event-ID`
#[utoipa::path(
    get, path = "/v1/batches/{id}/events", tag = "calls",
    params(("id" = String, Path), ("Last-Event-ID" = Option<u64>, Header)),
    responses((status = 200, body = schema::StreamEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn events(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id(&text)?;
    let last = sse::last_event_id(&headers)?;
    let observer = app.engine.is_of(id, who.tenant()).then(|| app.engine.observe(id)).flatten();
    let observer = observer.ok_or_else(|| Problem::not_found("batch"))?;
    let observer = last.into_iter().fold(observer, haft_engine::Observer::after);
    Ok(sse::answer(sse::events(observer), app.stop.clone()))
}

/// End a batch or a flow, with all its calls
#[utoipa::path(
    post, path = "/v1/batches/{id}/cancel", tag = "calls", params(("id" = String, Path)), request_body = CancelBody,
    responses((status = 200, body = Cancelled))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
    Taken(body): Taken<CancelBody>,
) -> Result<Json<Cancelled>, Problem> {
    who.needs(Right::Invoke)?;
    cancel_known(&app, &who, id(&text)?.into(), &body, "batch")
}
