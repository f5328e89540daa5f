//! The question that a person is asked, and the answer.

use crate::{ApprovalId, Arguments, ExecutionId, Risk};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One question to a person: may this call run?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// By which it is answered.
    pub id: ApprovalId,
    /// The call's walk.
    pub execution_id: ExecutionId,
    /// The caller's own name for the call.
    pub call_id: Arc<str>,
    /// The tool's canonical name.
    pub tool: Arc<str>,
    /// What it would do, in one line that is safe to show.
    pub summary: String,
    /// How bad it can get.
    pub risk: Risk,
    /// Why somebody is asked.
    pub reason: String,
    /// The arguments as they were sent.
    pub arguments: Arguments,
    /// What would change, such as a diff, where the tool can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// SHA-256, in hex, over everything that the approval covers.
    pub fingerprint: String,
}

/// The answer to one question.
///
/// ```
/// use haft_core::Decision;
/// assert_eq!(serde_json::to_string(&Decision::Approve).unwrap(), r#"{"decision":"approve"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum Decision {
    /// It may run, this once.
    Approve,
    /// It may not.
    Deny {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody is there now; the question stays open.
    Unanswered,
    /// It stayed open for too long.
    Expired,
}
