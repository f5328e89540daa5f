//! Questions to people, and what they agreed to ahead of time.

use crate::{
    backend::{Answered, Desk, GivenAnswer, Grant, Lasting, Question, Remember, Verdict},
    extract::{Asked, Json as Taken, Named, Who, some_integer, some_object},
    problem::Problem,
    schema,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{Arguments, ErrorCode, port::Right};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

fn desk(app: &App) -> Result<&dyn Desk, Problem> {
    app.backend.desk().ok_or_else(|| Problem::not_supported("questions to people"))
}

/// Where a question stands.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalState {
    Open,
    Approved,
    Denied,
    Expired,
    Used,
    Edited,
}

impl ApprovalState {
    const fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Open => "open",
            ApprovalState::Approved => "approved",
            ApprovalState::Denied => "denied",
            ApprovalState::Expired => "expired",
            ApprovalState::Used => "used",
            ApprovalState::Edited => "edited",
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
    state: Option<ApprovalState>,
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
    let state = which.state.unwrap_or(ApprovalState::Open).as_str();
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

/// What is to be done.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    Approve,
    Deny,
    Edit,
}

/// How long a yes is remembered.
#[derive(Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lasts {
    #[default]
    Always,
    Session,
}

/// What is to be remembered of a yes.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct RememberBody {
    /// The `kind` of one of the question's offers.
    #[schema(min_length = 1, max_length = 100)]
    kind: String,
    /// Until it is revoked, or while the session of the call goes on.
    #[serde(default)]
    #[schema(required = false)]
    lasts: Lasts,
    /// In place of that: for this many seconds.
    #[serde(default, deserialize_with = "some_integer")]
    #[schema(minimum = 1, maximum = 31536000)]
    seconds: Option<u64>,
}

/// An answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// Yes, no, or not like this.
    decision: Wanted,
    /// The reason for a no, which the model reads.
    reason: Option<String>,
    /// With `edit`: all arguments, as they should be. haft plans the call with them and asks again.
    arguments: Option<Arguments>,
    /// With `approve`: what haft remembers, so that it does not ask again.
    #[serde(default, deserialize_with = "some_object")]
    remember: Option<RememberBody>,
}

/// A year.
const LONGEST: u64 = 365 * 24 * 60 * 60;

impl AnswerBody {
    fn verdict(self) -> Result<Verdict, Problem> {
        let of = |what: &str, decision: &str| {
            Problem::bad_request(format!("`{what}` belongs to the decision `{decision}`"))
        };
        if self.reason.as_ref().is_some_and(|reason| reason.chars().count() > 1000) {
            return Err(Problem::bad_request("`reason` must have 1000 characters at most"));
        }
        match (self.decision, self.reason, self.arguments, self.remember) {
            (Wanted::Approve, None, None, None) => Ok(Verdict::Approve(None)),
            (Wanted::Approve, None, None, Some(RememberBody { kind, lasts, seconds })) => {
                let lasts = match (lasts, seconds) {
                    (_, Some(seconds)) if (1..=LONGEST).contains(&seconds) => {
                        Lasting::For(Duration::from_secs(seconds))
                    }
                    (_, Some(_)) => {
                        return Err(Problem::bad_request(format!("`seconds` must be 1 to {LONGEST}")));
                    }
                    (Lasts::Always, None) => Lasting::Always,
                    (Lasts::Session, None) => Lasting::Session,
                };
                Ok(Verdict::Approve(Some(Remember { kind, lasts })))
            }
            (Wanted::Deny, reason, None, None) => {
                Ok(Verdict::Deny(reason.map(|reason| haft_core::text::one_line(&reason, 1000))))
            }
            (Wanted::Edit, None, Some(arguments), None) => match arguments.parse() {
                Ok(_) => Ok(Verdict::Edit(arguments)),
                Err(problem) => Err(Problem::bad_request(format!("`arguments`: {problem}"))),
            },
            (Wanted::Edit, None, None, None) => {
                Err(Problem::bad_request("The decision `edit` needs `arguments`"))
            }
            (Wanted::Approve | Wanted::Edit, Some(_), ..) => Err(of("reason", "deny")),
            (Wanted::Approve | Wanted::Deny, _, Some(_), _) => Err(of("arguments", "edit")),
            (Wanted::Deny | Wanted::Edit, .., Some(_)) => Err(of("remember", "approve")),
        }
    }
}

/// An answered question.
#[derive(Serialize, ToSchema)]
pub(crate) struct AnsweredBody {
    #[serde(flatten)]
    question: Question,
    /// What is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
}

/// Answer a question, once. Needs the right `approve`
///
/// An answer runs nothing: send the call again, or its task goes on. After `edit`, haft asks about the call with the changed
/// arguments: that question has this one in `replaces`.
#[utoipa::path(
    post, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path)), request_body = schema::Answer,
    responses((status = 200, body = AnsweredBody))
)]
pub(crate) async fn answer(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
    Taken(body): Taken<AnswerBody>,
) -> Result<Json<AnsweredBody>, Problem> {
    who.needs(Right::Approve)?;
    let desk = desk(&app)?;
    let given = GivenAnswer { verdict: body.verdict()?, by: who.name().to_owned() };
    let grant = match desk.answer(who.tenant(), &id, given).await? {
        Answered::Counts(grant) => grant.map(|grant| *grant),
        Answered::TooLate => {
            return Err(Problem::new(ErrorCode::AlreadyAnswered, ErrorCode::AlreadyAnswered.model_text()));
        }
        Answered::Unknown => return Err(Problem::not_found("question")),
    };
    let question = desk.question(who.tenant(), &id).await?;
    let question = question.ok_or_else(|| Problem::not_found("question"))?;
    Ok(Json(AnsweredBody { question, grant }))
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
