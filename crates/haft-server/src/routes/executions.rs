//! Calls that were made, and those that run.

use crate::{
    extract::{Json as Taken, Named, QueryParams, Who},
    identity::Identity,
    problem::Problem,
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
use futures_util::{StreamExt as _, stream};
use haft_core::{
    Arguments, ExecutionId, ToolResult, check_reason,
    port::{Right, StoredRun},
};
use haft_engine::{Executing, Target};
use haft_sdk::CancelReason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

use super::audit::{Record, RecordPage, Which, page};

pub(super) fn id(text: &str) -> Result<ExecutionId, Problem> {
    text.parse().map_err(|_| Problem::not_found("execution"))
}

/// Calls that were made, newest first
#[utoipa::path(get, path = "/v1/executions", tag = "executions", params(Which), responses((status = 200, body = RecordPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<RecordPage>, Problem> {
    page(&app, &who, which).await
}

/// The calls that run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunningCalls")]
pub(crate) struct Running {
    executions: Vec<Executing>,
}

/// Calls that have no result yet, oldest first
#[utoipa::path(
    get, path = "/v1/executions/running", tag = "executions", responses((status = 200, body = schema::RunningCalls))
)]
pub(crate) async fn running(State(app): State<App>, Who(who): Who) -> Response {
    Json(Running { executions: app.engine.executing(who.tenant()) }).into_response()
}

/// One call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Execution {
    /// The execution.
    #[schema(value_type = String, format = "uuid")]
    execution_id: ExecutionId,
    /// `running` or `ended`.
    state: &'static str,
    /// Its record, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Record>,
    /// With what, without secrets, where that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    arguments: Option<Arguments>,
    /// Its result, where it is still kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::ToolResult>)]
    result: Option<Arc<ToolResult>>,
}

async fn stored(app: &App, who: &Identity, id: ExecutionId) -> Result<Option<StoredRun>, Problem> {
    Ok(app.engine.store().for_tenant(who.tenant()).run(id).await?)
}

/// One call: its record and its result
#[utoipa::path(
    get, path = "/v1/executions/{id}", tag = "executions", params(("id" = String, Path)),
    responses((status = 200, body = Execution))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
) -> Result<Json<Execution>, Problem> {
    let id = id(&text)?;
    if app.engine.is_of(id, who.tenant()) && app.engine.is_executing(id) {
        let state = "running";
        return Ok(Json(Execution { execution_id: id, state, record: None, arguments: None, result: None }));
    }
    let run = stored(&app, &who, id).await?.ok_or_else(|| Problem::not_found("execution"))?;
    Ok(Json(Execution {
        execution_id: id,
        state: "ended",
        record: Some(Record::new(None, &run.record)),
        arguments: run.arguments,
        result: run.result,
    }))
}

/// What happens in a call: events, resumable with `Last-Event-ID`
///
/// First what has happened, then what happens, until the end. Of a call that ended long ago only the result is left, as
/// an event `result`.
#[utoipa::path(
    get, path = "/v1/executions/{id}/events", tag = "executions",
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
    if app.engine.is_of(id, who.tenant())
        && let Some(observer) = app.engine.observe(id)
    {
        let observer = last.into_iter().fold(observer, haft_engine::Observer::after);
        return Ok(sse::answer(sse::events(observer), app.stop.clone()));
    }
    let run = stored(&app, &who, id).await?.ok_or_else(|| Problem::not_found("execution"))?;
    let result = run.result.map(|result| sse::result_event(&result));
    Ok(sse::answer(stream::iter(result).boxed(), app.stop.clone()))
}

/// Why something is to end.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelBody {
    /// In words that are shown with the result.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl CancelBody {
    fn check(&self) -> Result<(), Problem> {
        self.reason.as_deref().map_or(Ok(()), |reason| check_reason(reason).map(drop))?;
        Ok(())
    }
}

/// What came of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cancelled {
    /// Whether anything was still running.
    cancelled: bool,
}

/// Ends an execution of this tenant. Another tenant's executions answer 404.
pub(crate) fn cancel_known(
    app: &App,
    who: &Identity,
    target: Target,
    body: &CancelBody,
    what: &'static str,
) -> Result<Json<Cancelled>, Problem> {
    if !app.engine.is_of(target, who.tenant()) {
        return Err(Problem::not_found(what));
    }
    body.check()?;
    let reason = body.reason.as_deref().map(|reason| haft_core::text::one_line(reason, 1000));
    Ok(Json(Cancelled { cancelled: app.engine.cancel(target, CancelReason::User, reason.as_deref()) }))
}

/// End a call
#[utoipa::path(
    post, path = "/v1/executions/{id}/cancel", tag = "executions", params(("id" = String, Path)),
    request_body = CancelBody, responses((status = 200, body = Cancelled))
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
    Taken(body): Taken<CancelBody>,
) -> Result<Json<Cancelled>, Problem> {
    who.needs(Right::Invoke)?;
    let id = id(&text)?;
    body.check()?;
    match cancel_known(&app, &who, id.into(), &body, "execution") {
        // It ended long ago: there is nothing to cancel, and that is no mystery to its own tenant.
        Err(_) if stored(&app, &who, id).await?.is_some() => Ok(Json(Cancelled { cancelled: false })),
        answer => answer,
    }
}
