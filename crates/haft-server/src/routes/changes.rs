//! What staged commands changed: what waits for a decision, and the decision.

use super::executions::id;
use crate::{
    extract::{Named, Who},
    identity::Identity,
    problem::Problem,
    schema,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{
    ApprovalRequest, Decision, ExecutionId, ToolCall, ToolResult,
    port::{Approver, BoxFuture, ChangeSets, GuardError, Right},
};
use haft_engine::Request;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// Changes that nobody applied or discarded, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct WaitingChanges {
    changes: Vec<WaitingSet>,
}

/// What one call changed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingSet {
    execution_id: String,
    tool: String,
    summary: String,
    /// Why it was not applied.
    reason: String,
    /// When its call ended.
    since: String,
    /// Whether it can be applied; else it can only be discarded.
    can_apply: bool,
}

/// What applying the changes of a call would do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeSetView {
    execution_id: String,
    /// Files and links that it makes.
    created: u64,
    /// Files and links that it changes.
    modified: u64,
    /// Files and links that it deletes.
    deleted: u64,
    /// Why it cannot be applied.
    violations: Vec<String>,
    /// What somebody else changed meanwhile; with one of them it cannot be applied.
    conflicts: Vec<String>,
    /// What is asked about.
    asks: Vec<String>,
    /// A unified diff, at most about a mebibyte, without secrets.
    diff: String,
}

const MOST_DIFF: usize = 1 << 20;

fn sets(app: &App) -> Result<Arc<dyn ChangeSets>, Problem> {
    app.engine.change_sets().ok_or_else(|| Problem::not_found("change set"))
}

/// The changes of staged commands that wait for a decision
#[utoipa::path(get, path = "/v1/changes", tag = "changes", responses((status = 200, body = WaitingChanges)))]
pub(crate) async fn list(State(app): State<App>, Who(who): Who) -> Result<Json<WaitingChanges>, Problem> {
    let kept = match app.engine.change_sets() {
        Some(sets) => sets.list(who.tenant()).await?,
        None => Vec::new(),
    };
    let changes = kept.into_iter().map(|kept| WaitingSet {
        execution_id: kept.call.execution_id.to_string(),
        tool: kept.call.tool,
        summary: kept.call.summary,
        reason: kept.why,
        since: kept.since.to_string(),
        can_apply: kept.can_apply,
    });
    Ok(Json(WaitingChanges { changes: changes.collect() }))
}

/// What a staged command changed, with a diff
#[utoipa::path(
    get, path = "/v1/changes/{id}", tag = "changes", params(("id" = String, Path)),
    responses((status = 200, body = ChangeSetView))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
) -> Result<Json<ChangeSetView>, Problem> {
    let id = waiting(&app, &who, &text).await?;
    let found = sets(&app)?.look(who.tenant(), id).await?;
    let diff = app.engine.diff_of_changes(who.tenant(), id, MOST_DIFF).await?;
    Ok(Json(ChangeSetView {
        execution_id: id.to_string(),
        created: found.summary.created,
        modified: found.summary.modified,
        deleted: found.summary.deleted,
        violations: found.violations,
        conflicts: found.conflicts,
        asks: found.asks,
        diff,
    }))
}

/// Apply what a staged command changed. Needs the right `approve`
#[utoipa::path(
    post, path = "/v1/changes/{id}/apply", tag = "changes", params(("id" = String, Path)),
    responses((status = 200, body = schema::ToolResult))
)]
pub(crate) async fn apply(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
) -> Result<Json<ToolResult>, Problem> {
    decide(&app, &who, &text, "apply_changes").await
}

/// Throw away what a staged command changed. Needs the right `approve`
#[utoipa::path(
    post, path = "/v1/changes/{id}/discard", tag = "changes", params(("id" = String, Path)),
    responses((status = 200, body = schema::ToolResult))
)]
pub(crate) async fn discard(
    State(app): State<App>,
    Who(who): Who,
    Named(text): Named,
) -> Result<Json<ToolResult>, Problem> {
    decide(&app, &who, &text, "discard_changes").await
}

/// An ordinary call, so that the decision is checked and recorded.
async fn decide(app: &App, who: &Identity, text: &str, tool: &str) -> Result<Json<ToolResult>, Problem> {
    who.needs(Right::Approve)?;
    let id = waiting(app, who, text).await?;
    let call = ToolCall::new(tool, json!({"execution_id": id}));
    let request = Request::new(call).context(Arc::clone(who.base())).approver(Arc::new(Agreed));
    Problem::of_result(app.engine.execute(request).await).map(Json)
}

/// The call of the tenant whose changes wait; what is another tenant's is not there.
async fn waiting(app: &App, who: &Identity, text: &str) -> Result<ExecutionId, Problem> {
    let id = id(text)?;
    let kept = sets(app)?.list(who.tenant()).await?;
    let is_there = kept.iter().any(|kept| kept.call.execution_id == id);
    is_there.then_some(id).ok_or_else(|| Problem::not_found("change set"))
}

/// The caller who decides is the person who would be asked.
struct Agreed;

impl Approver for Agreed {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move { Ok(requests.iter().map(|_| Decision::Approve).collect()) })
    }
}
