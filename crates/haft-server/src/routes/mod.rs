//! The routes: one file for each kind of thing.

mod approvals;
mod audit;
mod batches;
mod changes;
mod definitions;
mod events;
mod executions;
mod health;
mod invoke;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
mod outputs;
mod policy;
mod sandboxes;
mod server;
mod tasks;
mod tool_invoke;
mod tools;

pub(crate) use approvals::RememberBody;
pub(crate) use batches::Results;
pub(crate) use executions::Running;
pub(crate) use tasks::TaskPage;
pub(crate) use tools::CategoryName;

use crate::{extract::Who, problem::Problem, server::App};
use axum::http::{StatusCode, Uri};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Routes for known callers.
pub(crate) fn known() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(server::me))
        .routes(routes!(server::openapi))
        .routes(routes!(server::stats))
        .routes(routes!(server::doctor))
        .routes(routes!(server::metrics))
        .routes(routes!(tools::list))
        .routes(routes!(tools::show))
        .routes(routes!(tools::search))
        .routes(routes!(definitions::list))
        .routes(routes!(tool_invoke::invoke))
        .routes(routes!(tool_invoke::invoke_named))
        .routes(routes!(invoke::invoke))
        .routes(routes!(invoke::plan))
        .routes(routes!(batches::run))
        .routes(routes!(batches::flow))
        .routes(routes!(batches::events))
        .routes(routes!(batches::cancel))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::show, tasks::cancel))
        .routes(routes!(tasks::events))
        .routes(routes!(events::all))
        .routes(routes!(executions::list))
        .routes(routes!(executions::running))
        .routes(routes!(executions::show))
        .routes(routes!(executions::events))
        .routes(routes!(executions::cancel))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show, approvals::answer))
        .routes(routes!(approvals::grants))
        .routes(routes!(approvals::revoke))
        .routes(routes!(changes::list))
        .routes(routes!(changes::show))
        .routes(routes!(changes::apply))
        .routes(routes!(changes::discard))
        .routes(routes!(policy::explain))
        .routes(routes!(audit::list))
        .routes(routes!(audit::statistics))
        .routes(routes!(audit::events))
        .routes(routes!(outputs::read))
        .routes(routes!(outputs::lines))
        .routes(routes!(sandboxes::list, sandboxes::create))
        .routes(routes!(sandboxes::show, sandboxes::destroy))
}

/// Routes for anybody.
pub(crate) fn public() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::protected_resource))
        .routes(routes!(health::protected_mcp))
}

pub(crate) async fn nothing_here(Who(_): Who, uri: Uri) -> Problem {
    let path = haft_core::text::one_line(uri.path(), 200);
    Problem::new(haft_core::ErrorCode::NotFound, format!("There is nothing at {path}; see /v1/openapi.json"))
}

pub(crate) async fn no_such_method() -> Problem {
    Problem::bad_request("There is no such method here; see /v1/openapi.json")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
}
