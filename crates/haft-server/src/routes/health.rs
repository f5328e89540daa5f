//! Whether the server is there, and how to become known to it.

use crate::{problem::Problem, server::App};
use axum::{Json, extract::State, http::StatusCode};
use haft_core::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

/// That it is there.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// The process is there
#[utoipa::path(get, path = "/health", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// It takes calls, and can record them
#[utoipa::path(get, path = "/ready", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.stop.is_cancelled() {
        let stopping = Problem::new(ErrorCode::StoreUnavailable, "The server is about to stop");
        return Err(stopping.with_status(StatusCode::SERVICE_UNAVAILABLE));
    }
    app.engine.store().flush().await?;
    Ok(Json(Health { status: "ok" }))
}

/// Where tokens for this server come from (RFC 9728).
#[derive(Serialize, ToSchema)]
pub(crate) struct ProtectedResource {
    /// This server.
    resource: String,
    /// Who gives tokens for it.
    authorization_servers: Vec<String>,
    /// What a token may be for.
    scopes_supported: Vec<&'static str>,
    /// How a token is sent.
    bearer_methods_supported: Vec<&'static str>,
}

/// Where tokens for this server come from (RFC 9728)
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", tag = "server", responses((status = 200, body = ProtectedResource)))]
pub(crate) async fn protected_resource(State(app): State<App>) -> Result<Json<ProtectedResource>, Problem> {
    metadata(&app, "")
}

/// Where tokens for the MCP server at `/mcp` come from (RFC 9728): the same
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp", tag = "server", responses((status = 200, body = ProtectedResource)))]
pub(crate) async fn protected_mcp(State(app): State<App>) -> Result<Json<ProtectedResource>, Problem> {
    metadata(&app, "/mcp")
}

fn metadata(app: &App, below: &str) -> Result<Json<ProtectedResource>, Problem> {
    let tokens = app.identifier.token_options().ok_or_else(|| Problem::not_found("thing"))?;
    let resource = tokens.resource(below).ok_or_else(|| Problem::not_found("thing"))?;
    Ok(Json(ProtectedResource {
        resource,
        authorization_servers: vec![tokens.issuer.clone()],
        scopes_supported: vec!["haft:invoke", "haft:approve", "haft:operate"],
        bearer_methods_supported: vec!["header"],
    }))
}
