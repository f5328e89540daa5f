//! Questions to people, and what they agreed to ahead of time.

use crate::{
    host::{Answered, Desk, GivenAnswer, Grant, Question},
    problem::Problem,
    server::App,
    take::{Asked, Json as Taken, Named, Who},
};
use axum::{Json, extract::State};
use haft_core::{ErrorCode, port::Right};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

fn desk(app: &App) -> Result<&dyn Desk, Problem> {
    app.host.desk().ok_or_else(|| Problem::not_supported("questions to people"))
}

/// Where a question stands.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuestionState {
    Open,
    Approved,
    Denied,
    Expired,
    Used,
    Edited,
}

impl QuestionState {
    const fn as_str(self) -> &'static str {
        match self {
            QuestionState::Open => "open",
            QuestionState::Approved => "approved",
            QuestionState::Denied => "denied",
            QuestionState::Expired => "expired",
            QuestionState::Used => "used",
            QuestionState::Edited => "edited",
        }
    }
}

/// Which questions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// In this state; those that are open where absent.
    #[param(inline)]
    state: Option<QuestionState>,
}

/// Questions, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Questions {
    questions: Vec<Question>,
}

/// What waits for an answer
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals", params(Which), responses((status = 200, body = Questions)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    Asked(which): Asked<Which>,
) -> Result<Json<Questions>, Problem> {
    let state = which.state.unwrap_or(QuestionState::Open).as_str();
    Ok(Json(Questions { questions: desk(&app)?.questions(who.tenant(), Some(state)).await? }))
}

/// One question
#[utoipa::path(
    get, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path)),
    responses((status = 200, body = Question))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<Question>, Problem> {
    let question = desk(&app)?.question(who.tenant(), &id).await?;
    question.map(Json).ok_or_else(|| Problem::not_found("question"))
}

/// Yes or no.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Approve,
    Deny,
}

/// An answer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// Yes or no.
    decision: Verdict,
    /// Why, in words that the model gets to read.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Answer a question, once. Needs the right `approve`
///
/// Answering runs nothing by itself: the call is sent again, or its task goes on.
#[utoipa::path(
    post, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path)), request_body = AnswerBody,
    responses((status = 200, body = Question))
)]
pub(crate) async fn answer(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
    Taken(body): Taken<AnswerBody>,
) -> Result<Json<Question>, Problem> {
    who.needs(Right::Approve)?;
    let desk = desk(&app)?;
    let given = GivenAnswer {
        approve: matches!(body.decision, Verdict::Approve),
        reason: body.reason.map(|reason| haft_core::text::one_line(&reason, 1000)),
        by: who.name().to_owned(),
    };
    match desk.answer(who.tenant(), &id, given).await? {
        Answered::Counts => {}
        Answered::TooLate => {
            return Err(Problem::new(ErrorCode::AlreadyAnswered, ErrorCode::AlreadyAnswered.model_text()));
        }
        Answered::Unknown => return Err(Problem::not_found("question")),
    }
    let question = desk.question(who.tenant(), &id).await?;
    question.map(Json).ok_or_else(|| Problem::not_found("question"))
}

/// Grants, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Grants {
    grants: Vec<Grant>,
}

/// What people agreed to ahead of time, and still holds
#[utoipa::path(get, path = "/v1/grants", tag = "approvals", responses((status = 200, body = Grants)))]
pub(crate) async fn grants(State(app): State<App>, Who(who): Who) -> Result<Json<Grants>, Problem> {
    Ok(Json(Grants { grants: desk(&app)?.grants(who.tenant()).await? }))
}

/// That it does not hold any more.
#[derive(Serialize, ToSchema)]
pub(crate) struct Revoked {
    revoked: bool,
}

/// Take a grant back. Needs the right `approve`
#[utoipa::path(
    delete, path = "/v1/grants/{id}", tag = "approvals", params(("id" = String, Path)),
    responses((status = 200, body = Revoked))
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<Revoked>, Problem> {
    who.needs(Right::Approve)?;
    match desk(&app)?.revoke(who.tenant(), &id, who.name()).await? {
        true => Ok(Json(Revoked { revoked: true })),
        false => Err(Problem::not_found("grant")),
    }
}
