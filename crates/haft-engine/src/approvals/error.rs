//! Why an approval is not answered, in the words that every face uses.

use haft_core::{
    BadOption, Channel, ErrorCode, ToolError,
    id_prefix::AmbiguousId,
    port::{ApprovalState, StoreError, StoredApproval},
    text,
};

/// Why an approval is not answered, or not found. Nothing was changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApprovalError {
    /// There is none of that id, or another tenant has it.
    #[error("there is no approval `{}`", text::one_line(id, 80))]
    NotFound {
        /// As it was typed.
        id: String,
    },
    /// Several ids begin so.
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousId),
    /// It was answered already, or it is too late. The first answer is final.
    #[error("`{}` already has an answer: {}", .0.request.id, standing(.0))]
    NotOpen(Box<StoredApproval>),
    /// Answers from there are not accepted.
    #[error("haft does not accept answers from `{from}` here")]
    NotAccepted {
        /// By which way it came.
        from: Channel,
    },
    /// The arguments were not shown whole, so a changed copy would have marks in the place of secrets.
    #[error("the arguments cannot be changed: they hold secrets that are not shown")]
    Hidden,
    /// The arguments are the same as before.
    #[error("the arguments cannot be changed to what they are: they did not change")]
    Unchanged,
    /// The changed arguments are no JSON object.
    #[error("the arguments cannot be changed to that: {0}")]
    BadArguments(String),
    /// The approval does not offer to remember that.
    #[error("{}", no_offer(kinds))]
    NoOffer {
        /// What it offers.
        kinds: Vec<String>,
    },
    /// A grant for the session of a call that has none.
    #[error("the call belongs to no session")]
    NoSession,
    /// A grant for no time, or for too long.
    #[error("a grant must last longer than 0 seconds and 365 days at most")]
    BadTime,
    /// The reason is too long.
    #[error("{0}")]
    LongReason(#[from] BadOption),
    /// The store could not be reached.
    #[error("the list of approvals could not be reached: {0}")]
    Store(#[from] StoreError),
}

/// Where an approval stands, who answered it, and in whose words.
pub fn standing(approval: &StoredApproval) -> String {
    let name = |said: &str| text::one_line(said, 80);
    let mut said = match (approval.state, approval.used_by) {
        (ApprovalState::Approved, Some(_)) => "approved, and taken by the call".to_owned(),
        (state, _) => state.as_str().to_owned(),
    };
    if let Some(by) = &approval.answered_by {
        said.push_str(&format!(" by {}", name(by)));
    }
    if let Some(from) = approval.answered_from {
        said.push_str(&format!(" ({from})"));
    }
    if let Some(reason) = &approval.answer_reason {
        said.push_str(&format!(": {}", text::one_line(reason, 200)));
    }
    said
}

fn no_offer(kinds: &[String]) -> String {
    match kinds.is_empty() {
        true => "haft can remember nothing of this call: it asks every time".to_owned(),
        false => format!("haft can remember only this of the call: {}", kinds.join(", ")),
    }
}

impl ApprovalError {
    /// Its row of the error table.
    pub fn code(&self) -> ErrorCode {
        match self {
            ApprovalError::NotFound { .. } => ErrorCode::NotFound,
            ApprovalError::NotOpen(_) => ErrorCode::AlreadyAnswered,
            ApprovalError::NotAccepted { .. } => ErrorCode::PermissionDenied,
            ApprovalError::Hidden
            | ApprovalError::Unchanged
            | ApprovalError::NoOffer { .. }
            | ApprovalError::NoSession => ErrorCode::ValidationFailed,
            ApprovalError::Ambiguous(_)
            | ApprovalError::BadArguments(_)
            | ApprovalError::BadTime
            | ApprovalError::LongReason(_) => ErrorCode::BadRequest,
            ApprovalError::Store(_) => ErrorCode::StoreUnavailable,
        }
    }
}

impl From<ApprovalError> for ToolError {
    fn from(error: ApprovalError) -> Self {
        if let ApprovalError::Store(error) = error {
            let text = "The list of approvals could not be reached. Try again later";
            return ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error);
        }
        let mut said = error.to_string();
        if let ApprovalError::NotAccepted { from } = &error {
            said.push_str(&format!(": add \"{from}\" to accept_from under [tools.approval]"));
        }
        let mut letters = said.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        ToolError::new(error.code(), first + letters.as_str())
    }
}
