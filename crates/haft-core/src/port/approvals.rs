//! Questions to people and confirmations given ahead of time, as a store keeps them.

use crate::{ApprovalId, ApprovalRequest, Arguments, Channel, Decision, ExecutionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered.
    Open,
    /// Yes, and the call has not started yet.
    Approved,
    /// No.
    Denied,
    /// It stayed open for too long, or its answer unused.
    Expired,
    /// Yes, and the call was started.
    Used,
    /// Not as it is: a person changed the arguments, and is asked about the changed call.
    Edited,
}

impl ApprovalState {
    /// In a word.
    ///
    /// ```
    /// assert_eq!(haft_core::port::ApprovalState::Open.as_str(), "open");
    /// ```
    pub const fn as_str(self) -> &'static str {
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

/// A question, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredApproval {
    /// What is asked.
    #[serde(flatten)]
    pub request: ApprovalRequest,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// From where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_from: Option<Channel>,
    /// In whose words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reason: Option<String>,
    /// What the arguments were changed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<Arguments>,
    /// The call that took the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_by: Option<ExecutionId>,
}

/// Which questions. Everything that is set must be so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// In this state.
    pub state: Option<ApprovalState>,
    /// About this tool.
    pub tool: Option<String>,
    /// The changed call that took this one's place.
    pub replaces: Option<ApprovalId>,
    /// The newest so many.
    pub limit: usize,
}

impl Default for ApprovalFilter {
    fn default() -> Self {
        ApprovalFilter { state: None, tool: None, replaces: None, limit: 1000 }
    }
}

/// An answer, with whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub decision: Decision,
    /// Who gave it.
    pub by: String,
    /// By which way.
    pub from: Channel,
}

/// What came of taking an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenAnswer {
    /// There is none yet.
    Open,
    /// It is too late for one.
    Expired,
    /// Another call has taken it, or there is no such question.
    Gone,
    /// There was an answer, and this call has taken it.
    Answered(Answer),
}

/// From where answers count.
///
/// ```
/// use haft_core::{Channel, port::AcceptAnswers};
/// assert!(AcceptAnswers::default().counts(Channel::CommandLine));
/// let only_here = AcceptAnswers::only([Channel::Terminal]);
/// assert!(only_here.counts(Channel::Terminal) && !only_here.counts(Channel::CommandLine));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptAnswers(Option<Vec<Channel>>);

impl AcceptAnswers {
    /// From every channel.
    pub fn from_any() -> &'static Self {
        static ANY: AcceptAnswers = AcceptAnswers(None);
        &ANY
    }

    /// From these channels, and from no other.
    pub fn only(channels: impl IntoIterator<Item = Channel>) -> Self {
        AcceptAnswers(Some(channels.into_iter().collect()))
    }

    /// Whether an answer from there counts. What the program itself asks always does.
    pub fn counts(&self, channel: Channel) -> bool {
        channel == Channel::Program || self.0.as_ref().is_none_or(|accepted| accepted.contains(&channel))
    }
}

/// A confirmation that a person gave ahead of time, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredGrant {
    /// By which it is revoked.
    pub id: String,
    /// The tool's canonical name.
    pub tool: String,
    /// Only for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only for this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it covers, as a document that the guard understands.
    pub covers: String,
    /// What the person was shown.
    pub shown: String,
    /// Who gave it.
    pub granted_by: String,
    /// By which way the answer came that gave it; `None` where that is not known. Such a grant covers nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_from: Option<Channel>,
    /// When the grant was given.
    pub granted_at: Timestamp,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}
