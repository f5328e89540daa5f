//! Sandboxes: several calls that share limits, paths and hosts, and one end.

use crate::{
    extract::{Json as Taken, Named, Who, object_of_objects},
    problem::Problem,
    schema,
    server::App,
};
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use haft_core::{ErrorCode, port::Right};
use haft_engine::{SandboxSpec, SandboxStatus};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Sandboxes, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Sandboxes {
    #[schema(value_type = Vec<schema::Sandbox>)]
    sandboxes: Vec<SandboxStatus>,
}

/// The sandboxes that there are
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes", responses((status = 200, body = Sandboxes)))]
pub(crate) async fn list(State(app): State<App>, Who(who): Who) -> Json<Sandboxes> {
    Json(Sandboxes { sandboxes: app.engine.sandboxes().list(who.tenant()) })
}

/// What the caller asks for. Its `limits` must be an object.
pub(crate) struct Spec(SandboxSpec);

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object_of_objects(deserializer).map(Spec)
    }
}

/// Make a sandbox
#[utoipa::path(
    post, path = "/v1/sandboxes", tag = "sandboxes", request_body = schema::SandboxSpec,
    responses((status = 201, body = schema::Sandbox))
)]
pub(crate) async fn create(
    State(app): State<App>,
    Who(who): Who,
    Taken(Spec(spec)): Taken<Spec>,
) -> Result<Response, Problem> {
    who.needs(Right::Invoke)?;
    spec.limits.check()?;
    if spec.id.as_ref().is_some_and(|id| app.engine.sandboxes().status(who.tenant(), id).is_ok()) {
        let text = "There is a sandbox of that id already";
        return Err(Problem::new(ErrorCode::SandboxCreationFailed, text).with_status(StatusCode::CONFLICT));
    }
    let made = app.engine.sandboxes().create(who.base(), spec).await.map_err(|error| {
        // Asking for what this machine does not have is no failure of the server.
        let is_unavailable = error.data.as_ref().is_some_and(|data| data["unavailable"] == true);
        let problem = Problem::from(error);
        if is_unavailable { problem.with_status(StatusCode::UNPROCESSABLE_ENTITY) } else { problem }
    })?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

fn unknown<E>(_: E) -> Problem {
    Problem::not_found("sandbox")
}

/// One sandbox, with what was used in it
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path)),
    responses((status = 200, body = schema::Sandbox))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<SandboxStatus>, Problem> {
    app.engine.sandboxes().status(who.tenant(), &id).map(Json).map_err(unknown)
}

/// End a sandbox, with everything in it
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path)),
    responses((status = 200, body = schema::Sandbox))
)]
pub(crate) async fn destroy(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<SandboxStatus>, Problem> {
    who.needs(Right::Invoke)?;
    let sandboxes = app.engine.sandboxes();
    sandboxes.status(who.tenant(), &id).map_err(unknown)?;
    Ok(Json(sandboxes.destroy(who.tenant(), &id).await?))
}
