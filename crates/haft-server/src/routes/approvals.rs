//! ApprovalList to people, and what they agreed to ahead of time.

mod wire;

use crate::{
    extract::{Json as Taken, Named, QueryParams, Who, some_integer, some_object},
    identity::Identity,
    problem::Problem,
    schema,
    server::App,
};
use axum::{Json, extract::State};
use haft_core::{
    ApprovalId, Arguments, Channel,
    port::{self, ApprovalFilter, Right},
};
use haft_engine::{Approvals, GrantTime, Remember, Reply, WhichOffer};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use wire::{Approval, Grant};

/// By which way answers come here.
const CHANNEL: Channel = Channel::Http;

fn approvals(app: &App, who: &Identity) -> Approvals {
    app.engine.approvals(who.tenant())
}

/// Where an approval stands.
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

impl From<ApprovalState> for port::ApprovalState {
    fn from(state: ApprovalState) -> Self {
        match state {
            ApprovalState::Open => port::ApprovalState::Open,
            ApprovalState::Approved => port::ApprovalState::Approved,
            ApprovalState::Denied => port::ApprovalState::Denied,
            ApprovalState::Expired => port::ApprovalState::Expired,
            ApprovalState::Used => port::ApprovalState::Used,
            ApprovalState::Edited => port::ApprovalState::Edited,
        }
    }
}

/// Which approvals.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// In this state; those that are open where absent.
    #[param(inline)]
    state: Option<ApprovalState>,
}

/// Approvals, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<Approval>,
}

/// What waits for an answer
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals", params(Which), responses((status = 200, body = ApprovalList)))]
pub(crate) async fn list(
    State(app): State<App>,
    Who(who): Who,
    QueryParams(which): QueryParams<Which>,
) -> Result<Json<ApprovalList>, Problem> {
    let state = Some(which.state.unwrap_or(ApprovalState::Open).into());
    let found = approvals(&app, &who).list(ApprovalFilter { state, ..ApprovalFilter::default() }).await?;
    Ok(Json(ApprovalList { approvals: found.into_iter().map(Approval::from).collect() }))
}

/// One approval
#[utoipa::path(
    get, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path)),
    responses((status = 200, body = Approval))
)]
pub(crate) async fn show(
    State(app): State<App>,
    Who(who): Who,
    Named(id): Named,
) -> Result<Json<Approval>, Problem> {
    Ok(Json(approvals(&app, &who).get(&ApprovalId::from_text(id)).await?.into()))
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
    /// The `kind` of one of the approval's offers.
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

impl AnswerBody {
    /// What is said. Whether it fits is the engine's to check.
    fn reply(self) -> Result<Reply, Problem> {
        let of = |what: &str, decision: &str| {
            Problem::bad_request(format!("`{what}` belongs to the decision `{decision}`"))
        };
        match (self.decision, self.reason, self.arguments, self.remember) {
            (Wanted::Approve, None, None, remember) => {
                Ok(Reply::Approve { remember: remember.map(RememberBody::remember) })
            }
            (Wanted::Deny, reason, None, None) => Ok(Reply::Deny { reason }),
            (Wanted::Edit, None, Some(arguments), None) => Ok(Reply::Edit { arguments }),
            (Wanted::Edit, None, None, None) => {
                Err(Problem::bad_request("The decision `edit` needs `arguments`"))
            }
            (Wanted::Approve | Wanted::Edit, Some(_), ..) => Err(of("reason", "deny")),
            (Wanted::Approve | Wanted::Deny, _, Some(_), _) => Err(of("arguments", "edit")),
            (Wanted::Deny | Wanted::Edit, .., Some(_)) => Err(of("remember", "approve")),
        }
    }
}

impl RememberBody {
    fn remember(self) -> Remember {
        let lasts = match (self.lasts, self.seconds) {
            (_, Some(seconds)) => GrantTime::For(Duration::from_secs(seconds)),
            (Lasts::Always, None) => GrantTime::Always,
            (Lasts::Session, None) => GrantTime::Session,
        };
        Remember { offer: WhichOffer::Kind(self.kind), lasts }
    }
}

/// An answered approval.
#[derive(Serialize, ToSchema)]
pub(crate) struct AnsweredBody {
    #[serde(flatten)]
    approval: Approval,
    /// What is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<Grant>,
}

/// Answer an approval, once. Needs the right `approve`
///
/// An answer runs nothing: send the call again, or its task goes on. After `edit`, haft asks about the call with the
/// changed arguments: that approval has this one in `replaces`.
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
    let id = ApprovalId::from_text(id);
    let answered = approvals(&app, &who).answer(&id, body.reply()?, who.name(), CHANNEL).await?;
    Ok(Json(AnsweredBody { approval: answered.approval.into(), grant: answered.grant.map(Grant::from) }))
}

/// Grants, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct Grants {
    grants: Vec<Grant>,
}

/// What people agreed to ahead of time, and still holds
#[utoipa::path(get, path = "/v1/grants", tag = "approvals", responses((status = 200, body = Grants)))]
pub(crate) async fn grants(State(app): State<App>, Who(who): Who) -> Result<Json<Grants>, Problem> {
    let grants = approvals(&app, &who).grants(false).await?;
    Ok(Json(Grants { grants: grants.into_iter().map(Grant::from).collect() }))
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
    match approvals(&app, &who).revoke(&id, who.name()).await? {
        true => Ok(Json(Revoked { revoked: true })),
        false => Err(Problem::not_found("grant")),
    }
}
