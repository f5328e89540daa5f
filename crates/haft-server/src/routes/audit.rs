//! The record of what happened.

use crate::{
    extract::{QueryParams, Who},
    identity::Identity,
    problem::Problem,
    schema,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{
    Arguments, ErrorCode, ResultMetadata, Status,
    port::{AuditQuery, AuditRecord, Right, ToolStatistics},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

use super::tools::limit;

/// Which records. Everything that is set must be so.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Calls that came in then or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Calls that came in before then.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Of this tool, by its canonical name.
    #[param(pattern = "^[^\\u0000]*$")]
    tool: Option<String>,
    /// Of this agent.
    #[param(pattern = "^[^\\u0000]*$")]
    agent: Option<String>,
    /// Of this batch.
    #[param(format = "uuid")]
    batch: Option<String>,
    /// That ended so.
    #[param(value_type = Option<schema::Status>)]
    status: Option<Status>,
    /// With this code of the error table.
    #[param(value_type = Option<schema::Code>)]
    code: Option<String>,
    /// With this text in the record.
    #[param(pattern = "^[^\\u0000]*$")]
    text: Option<String>,
    /// Where the page begins: `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,18}-[0-9]{1,18}$")]
    after: Option<String>,
    /// Length of the list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

impl Which {
    fn query(self) -> Result<AuditQuery, Problem> {
        let words = [&self.tool, &self.agent, &self.text];
        if words.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err(Problem::bad_request("No record has a NUL character in it"));
        }
        let wrong = |what: &'static str| Problem::bad_request(format!("`{what}` is not one"));
        Ok(AuditQuery {
            from: self.from,
            until: self.until,
            tool: self.tool,
            agent: self.agent,
            batch: self.batch.map(|id| id.parse()).transpose().map_err(|_| wrong("batch"))?,
            status: self.status,
            code: self.code.map(|code| code.parse()).transpose().map_err(|_| wrong("code"))?,
            text: self.text,
            after: self.after.map(|key| key.parse()).transpose().map_err(|_| wrong("after"))?,
            limit: limit(self.limit, 100, 1000)?,
        })
    }
}

/// One exit of one call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// Its number in the audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<i64>,
    /// The caller's own name for the call.
    #[schema(value_type = String)]
    call_id: Arc<str>,
    /// The tool's canonical name, or what was asked for.
    #[schema(value_type = String)]
    tool: Arc<str>,
    /// How it ended.
    #[schema(value_type = schema::Status)]
    status: Status,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    code: Option<ErrorCode>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    error_message: Option<Box<str>>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The approval that it ran under.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    /// The agent that called.
    #[schema(value_type = String)]
    agent: Arc<str>,
    /// The person who made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user: Option<Arc<str>>,
    /// The run of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    session: Option<Arc<str>>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    conversation: Option<Arc<str>>,
    /// Bytes of the arguments.
    input_size: u64,
    /// The arguments without secrets, where the audit keeps them; long texts are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    arguments: Option<Arguments>,
    /// SHA-256 of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<String>,
    /// SHA-256 of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_sha256: Option<String>,
    /// Ids, times, sizes, attempts, enforcement.
    #[schema(value_type = schema::ResultMetadata)]
    metadata: Arc<ResultMetadata>,
}

impl Record {
    pub(crate) fn new(seq: Option<i64>, record: &AuditRecord) -> Self {
        let context = &record.context;
        Record {
            seq,
            call_id: Arc::clone(&record.call_id),
            tool: Arc::clone(&record.tool),
            status: record.status,
            code: record.code,
            error_message: record.error.clone(),
            rule: record.rule.as_ref().map(ToString::to_string),
            approval: record.approval.as_ref().map(ToString::to_string),
            agent: Arc::clone(&context.agent),
            user: context.user.clone(),
            session: context.session.clone(),
            conversation: context.conversation.clone(),
            input_size: record.input_size,
            arguments: record.input.clone(),
            input_sha256: record.hashes.as_ref().map(|hashes| hashes.input.clone()),
            output_sha256: record.hashes.as_ref().and_then(|hashes| hashes.output.clone()),
            metadata: Arc::clone(&record.metadata),
        }
    }
}

/// Records, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordPage {
    records: Vec<Record>,
    /// Where the next page begins: the parameter `after`.
    #[schema(required = true)]
    next: Option<String>,
}

pub(crate) async fn page(app: &App, who: &Identity, which: Which) -> Result<Json<RecordPage>, Problem> {
    let page = app.engine.store().for_tenant(who.tenant()).audit_page(which.query()?).await?;
    Ok(Json(RecordPage {
        records: page.records.iter().map(|(seq, record)| Record::new(Some(*seq), record)).collect(),
        next: page.next.map(|key| key.to_string()),
    }))
}

/// The audit, newest first
#[utoipa::path(get, path = "/v1/audit", tag = "audit", params(Which), responses((status = 200, body = RecordPage)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<RecordPage>, Problem> {
    page(&app, &who, which).await
}

/// How many.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HowMany {
    /// Length of the list.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
}

/// What happened besides calls, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Events {
    /// Each with `seq`, `at`, `event` and what is known of it.
    #[schema(value_type = Vec<Object>)]
    events: Vec<serde_json::Value>,
}

/// What happened besides calls, over all tenants, newest first. Needs the right `operate`
///
/// Keys that were made (`keyCreated`) and revoked (`keyRevoked`), requests that were not let in (`refused`), records
/// that were archived (`retention`), decisions after a crash (`recovery`).
#[utoipa::path(get, path = "/v1/audit/events", tag = "audit", params(HowMany), responses((status = 200, body = Events)))]
pub(crate) async fn events(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(asked): QueryParams<HowMany>,
) -> Result<Json<Events>, Problem> {
    who.needs(Right::Operate)?;
    let limit = limit(asked.limit, 100, 1000)?;
    Ok(Json(Events { events: app.backend.happenings(limit).await? }))
}

/// One tool in numbers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbers {
    tool: String,
    count: u64,
    succeeded: u64,
    /// From 0 to 1.
    success_rate: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
}

impl From<ToolStatistics> for Numbers {
    fn from(numbers: ToolStatistics) -> Self {
        Numbers {
            success_rate: numbers.success_rate(),
            tool: numbers.tool,
            count: numbers.count,
            succeeded: numbers.succeeded,
            p50_ms: numbers.p50_ms,
            p95_ms: numbers.p95_ms,
            p99_ms: numbers.p99_ms,
        }
    }
}

/// Tools in numbers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Statistics {
    tools: Vec<Numbers>,
}

/// My tenant's calls in numbers, by tool
#[utoipa::path(get, path = "/v1/audit/statistics", tag = "audit", params(Which), responses((status = 200, body = Statistics)))]
pub(crate) async fn statistics(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<Statistics>, Problem> {
    let numbers = app.engine.store().for_tenant(who.tenant()).statistics(which.query()?).await?;
    Ok(Json(Statistics { tools: numbers.into_iter().map(Numbers::from).collect() }))
}
