//! The question that a person is asked, and the answer.

use crate::{ApprovalDetail, ApprovalId, Arguments, BatchId, CallContext, ExecutionId, Footprint, Risk};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One question to a person: may this call run?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// By which it is answered.
    pub id: ApprovalId,
    /// The call's execution.
    pub execution_id: ExecutionId,
    /// The caller's own name for the call.
    pub call_id: Arc<str>,
    /// The tool's canonical name.
    pub tool: Arc<str>,
    /// What it would do, in one line of at most 200 characters that is safe to show. It is a heading:
    /// [`view`](Self::view) has everything that a yes covers.
    pub summary: String,
    /// How bad it can get.
    pub risk: Risk,
    /// Why somebody is asked.
    pub reason: String,
    /// The arguments as they were sent.
    pub arguments: Arguments,
    /// What would change, such as a diff, where the tool can say: whole, and as the tool says it. Show it through
    /// [`view`](Self::view), which writes control characters out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// SHA-256, in hex, over everything that the approval covers.
    pub fingerprint: String,
    /// What it does in full, and what it runs in.
    #[serde(default)]
    pub detail: ApprovalDetail,
    /// Who wants to make the call.
    #[serde(default)]
    pub asker: Asker,
    /// The batch that it is part of: its questions are asked together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<BatchId>,
    /// What it would read and write, with paths as they were resolved.
    #[serde(default)]
    pub footprint: Footprint,
    /// What could be remembered of a yes, narrowest first. Each would have spared this question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<GrantOffer>,
    /// The question whose arguments a person changed: this is the changed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ApprovalId>,
    /// Until when it can be answered, and the answer be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl ApprovalRequest {
    /// Whether a person can change the arguments: they were shown whole. Where secrets were taken out of them, a
    /// changed copy would have marks in the place of the secrets.
    ///
    /// ```
    /// # use haft_core::ApprovalRequest;
    /// # fn keys(request: &ApprovalRequest) -> &'static str {
    /// if request.can_edit() { "y n e" } else { "y n" }
    /// # }
    /// ```
    pub fn can_edit(&self) -> bool {
        self.detail.hidden.is_none()
    }
}

/// Who wants to make a call, as far as a person who is asked, and a grant, must know.
///
/// ```
/// use haft_core::{Asker, CallContext};
/// assert_eq!(Asker::of(&CallContext::new("acme", "helper")).principal(), "helper");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asker {
    /// Whose calls and grants these are.
    pub tenant: Arc<str>,
    /// The agent.
    pub agent: Arc<str>,
    /// The user that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
}

impl Asker {
    /// The caller of that context.
    pub fn of(context: &CallContext) -> Self {
        Asker {
            tenant: Arc::clone(&context.tenant),
            agent: Arc::clone(&context.agent),
            user: context.user.clone(),
            session: context.session.clone(),
        }
    }

    /// To whom a confirmation is given: the user, else the agent.
    pub fn principal(&self) -> &str {
        self.user.as_ref().unwrap_or(&self.agent)
    }
}

/// Something that could be remembered of a person's yes.
///
/// ```
/// use haft_core::GrantOffer;
/// let offer = GrantOffer { covers: serde_json::json!({"kind": "host"}), words: "this host".into() };
/// assert_eq!(offer.kind(), "host");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantOffer {
    /// What it covers, as a document that the guard understands.
    pub covers: Value,
    /// What the grant covers, in words.
    pub words: String,
}

impl GrantOffer {
    /// What kind of offer it is, such as `exact_call` or `commands`; empty where the document does not say.
    pub fn kind(&self) -> &str {
        self.covers.get("kind").and_then(Value::as_str).unwrap_or_default()
    }
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
    /// It may not run as it is; with these arguments it is planned and asked about again.
    Edit {
        /// All arguments, as they should be.
        #[serde(deserialize_with = "arguments")]
        arguments: Arguments,
    },
    /// Nobody is there now; the question stays open.
    Unanswered,
    /// It stayed open for too long.
    Expired,
}

/// Through a value: a document that names its variant by a member is read twice, and the text as it was is gone by
/// then.
fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
    Value::deserialize(deserializer).map(Arguments::from)
}
