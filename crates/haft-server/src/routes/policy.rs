//! Why policy decides as it does.

use crate::{
    extract::{Json as Taken, Who},
    problem::Problem,
    requests::Invoke,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::port::Right;
use serde_json::Value;

/// Say what policy decides about a call, by which rule, and what would change it; nothing is run
#[utoipa::path(
    post, path = "/v1/policy/explain", tag = "policy", request_body = Invoke,
    responses((status = 200, description = "The decision, with the rules behind it", body = Object))
)]
pub(crate) async fn explain(
    State(app): State<App>,
    Who(who): Who,
    Taken(invoke): Taken<Invoke>,
) -> Result<Json<Value>, Problem> {
    who.needs(Right::Invoke)?;
    let request = invoke.of(&who, &app, None)?;
    Ok(Json(app.backend.explain(request).await?))
}
