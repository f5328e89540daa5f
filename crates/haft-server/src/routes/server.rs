//! The server itself: who one is, the document, numbers of all tenants.

use crate::{document, extract::Who, problem::Problem, server::App};
use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use haft_core::port::Right;
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use utoipa::ToSchema;

/// Who asks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    /// The tenant: everything that is seen here is its.
    #[schema(value_type = String)]
    tenant: Arc<str>,
    /// The agent that calls are made for, unless a request names one.
    #[schema(value_type = String)]
    agent: Arc<str>,
    /// The person who makes the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user: Option<Arc<str>>,
    /// Roles, which decide about tools.
    roles: Vec<String>,
    /// `invoke`, `approve`, `operate`.
    #[schema(value_type = Vec<String>)]
    rights: Vec<Right>,
}

/// Who I am here, and what I may
#[utoipa::path(get, path = "/v1/me", tag = "server", responses((status = 200, body = Me)))]
pub(crate) async fn me(Who(who): Who) -> Json<Me> {
    let base = who.base();
    Json(Me {
        tenant: Arc::clone(&base.tenant),
        agent: Arc::clone(&base.agent),
        user: base.user.clone(),
        roles: base.roles.clone(),
        rights: who.rights().to_vec(),
    })
}

/// This document
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "server",
    responses((status = 200, description = "The OpenAPI document", body = Object))
)]
pub(crate) async fn openapi() -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| serde_json::to_string(&document::document()).unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// The engine in numbers, over all tenants. Needs the right `operate`
#[utoipa::path(
    get, path = "/v1/stats", tag = "server",
    responses((status = 200, description = "The engine in numbers", body = Object))
)]
pub(crate) async fn stats(State(app): State<App>, Who(who): Who) -> Result<Response, Problem> {
    who.needs(Right::Operate)?;
    Ok(Json(app.engine.stats()).into_response())
}

/// What the jails of this machine enforce, found out by trying. Needs the right `operate`
#[utoipa::path(
    get, path = "/v1/doctor", tag = "server",
    responses((status = 200, description = "What each jail enforces, and what it lacks", body = Object))
)]
pub(crate) async fn doctor(State(app): State<App>, Who(who): Who) -> Result<Json<Value>, Problem> {
    who.needs(Right::Operate)?;
    Ok(Json(app.backend.doctor().await?))
}

/// Counters and durations, in the text format of Prometheus. Needs the right `operate`
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(app): State<App>, Who(who): Who) -> Result<Response, Problem> {
    who.needs(Right::Operate)?;
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, app.engine.metrics_text()).into_response())
}
