//! What an answer comes to: pure.

use super::ApprovalError;
use haft_core::{
    ApprovalRequest, Arguments, Channel, Decision, GrantOffer, OutputHandle, check_reason,
    port::{ApprovalState, StoredApproval, StoredGrant},
};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// The longest time for which a grant can be given; without an end is another matter.
pub const LONGEST_GRANT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What a person says to an approval.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The call may run, this once; with what is to be remembered, so that haft does not ask again.
    Approve {
        /// Nothing, where it is this once only.
        remember: Option<Remember>,
    },
    /// The call may not run.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
    /// Not like this: haft plans the call with these arguments and asks again.
    Edit {
        /// All arguments, as they should be.
        arguments: Arguments,
    },
}

impl Reply {
    /// Yes, this once.
    pub fn approve() -> Reply {
        Reply::Approve { remember: None }
    }

    /// What an approver decided; `None` where it left the approval open.
    ///
    /// ```
    /// use haft_core::Decision;
    /// use haft_engine::Reply;
    /// assert_eq!(Reply::of(Decision::Approve), Some(Reply::approve()));
    /// assert_eq!(Reply::of(Decision::Unanswered), None);
    /// ```
    pub fn of(decision: Decision) -> Option<Reply> {
        match decision {
            Decision::Approve => Some(Reply::approve()),
            Decision::Deny { reason } => Some(Reply::Deny { reason }),
            Decision::Edit { arguments } => Some(Reply::Edit { arguments }),
            Decision::Unanswered | Decision::Expired => None,
        }
    }
}

/// What is to be remembered of a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    /// One of the offers of the approval.
    pub offer: WhichOffer,
    /// For how long.
    pub lasts: GrantTime,
}

/// One of the offers of an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichOffer {
    /// The first one of that kind, such as `exact_call`.
    Kind(String),
    /// The one at that place, from 0.
    Place(usize),
}

/// How long a grant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantTime {
    /// Until it is revoked.
    Always,
    /// While the session of the call goes on.
    Session,
    /// For so long: at most [`LONGEST_GRANT`].
    For(Duration),
}

impl GrantTime {
    /// Whether a grant can be given for so long.
    pub fn is_possible(self) -> bool {
        match self {
            GrantTime::Always | GrantTime::Session => true,
            GrantTime::For(time) => !time.is_zero() && time <= LONGEST_GRANT,
        }
    }
}

/// What an answer comes to: the decision, and the grant that is kept with it.
pub(super) fn decide(
    approval: &StoredApproval,
    reply: &Reply,
    (by, from): (&str, Channel),
    now: Timestamp,
) -> Result<(Decision, Option<StoredGrant>), ApprovalError> {
    if approval.state != ApprovalState::Open {
        return Err(ApprovalError::NotOpen(Box::new(approval.clone())));
    }
    let request = &approval.request;
    Ok(match reply {
        Reply::Approve { remember: None } => (Decision::Approve, None),
        Reply::Approve { remember: Some(remember) } => {
            (Decision::Approve, Some(granted(request, remember, (by, from), now)?))
        }
        Reply::Deny { reason } => {
            (Decision::Deny { reason: reason.as_deref().map(check_reason).transpose()? }, None)
        }
        Reply::Edit { arguments } => {
            check_edit(request, arguments)?;
            (Decision::Edit { arguments: arguments.clone() }, None)
        }
    })
}

/// Refuses a change of arguments that cannot be meant.
fn check_edit(request: &ApprovalRequest, after: &Arguments) -> Result<(), ApprovalError> {
    if !request.can_edit() {
        return Err(ApprovalError::Hidden);
    }
    let after = after.parse().map_err(|problem| ApprovalError::BadArguments(problem.to_string()))?;
    match request.arguments.parse() {
        Ok(before) if before == after => Err(ApprovalError::Unchanged),
        _ => Ok(()),
    }
}

/// The grant that a yes gives.
fn granted(
    request: &ApprovalRequest,
    remember: &Remember,
    (by, from): (&str, Channel),
    now: Timestamp,
) -> Result<StoredGrant, ApprovalError> {
    let offers = &request.offers;
    let offer = match &remember.offer {
        WhichOffer::Kind(kind) => offers.iter().find(|offer| offer.kind() == kind),
        WhichOffer::Place(place) => offers.get(*place),
    };
    let none = || {
        let mut kinds: Vec<String> = offers.iter().map(|offer| offer.kind().to_owned()).collect();
        kinds.dedup();
        ApprovalError::NoOffer { kinds }
    };
    from_offer(request, offer.ok_or_else(none)?, remember.lasts, (by, from), now)
}

/// What an offer becomes when somebody takes it.
fn from_offer(
    request: &ApprovalRequest,
    offer: &GrantOffer,
    lasts: GrantTime,
    (by, from): (&str, Channel),
    now: Timestamp,
) -> Result<StoredGrant, ApprovalError> {
    let asker = &request.asker;
    // Stores keep microseconds: what is given back is what is kept.
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let (session, expires_at, words) = match lasts {
        GrantTime::Always => (None, None, "until it is revoked".to_owned()),
        GrantTime::Session => {
            let session = asker.session.as_ref().ok_or(ApprovalError::NoSession)?;
            (Some(session.to_string()), None, "while this session goes on".to_owned())
        }
        lasts if !lasts.is_possible() => return Err(ApprovalError::BadTime),
        GrantTime::For(time) => {
            let end = grant_end(time, now)?;
            (None, Some(end), format!("until {end}"))
        }
    };
    let user = asker.user.as_ref().map(ToString::to_string);
    Ok(StoredGrant {
        id: format!("grant_{}", &OutputHandle::random().as_str()[4..20]),
        tool: request.tool.to_string(),
        agent: user.is_none().then(|| asker.agent.to_string()),
        user,
        session,
        covers: offer.covers.to_string(),
        shown: format!("{}, {words}", offer.words),
        granted_by: by.to_owned(),
        granted_from: Some(from),
        granted_at: now,
        expires_at,
        revoked_at: None,
    })
}

fn grant_end(time: Duration, now: Timestamp) -> Result<Timestamp, ApprovalError> {
    let end = SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
    end.ok_or(ApprovalError::BadTime)
}
