//! Approvals and grants, as they are sent.

use haft_core::{GrantOffer, port};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A call that waits for a person, or waited.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Approval {
    /// By which it is answered.
    pub(crate) id: String,
    /// `open`, `approved`, `denied`, `expired`, `used` or `edited`.
    pub(crate) state: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it would do.
    pub(crate) summary: String,
    /// Why somebody is asked.
    pub(crate) reason: String,
    /// How risky the tool is.
    pub(crate) risk: String,
    /// With what, without secrets.
    #[schema(value_type = Object)]
    pub(crate) arguments: Value,
    /// What would change, such as a diff, as the tool says it: it may hold control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preview: Option<String>,
    /// Everything that a yes covers, line by line: tool, arguments, isolation, change. Control characters are written
    /// out and no two calls look the same. Show this to the person who answers.
    pub(crate) view: String,
    /// The agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The execution that asked.
    pub(crate) execution_id: String,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) asked_at: Timestamp,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
    /// What could be remembered of a yes, narrowest first. Each would have made this approval unnecessary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) offers: Vec<Offer>,
    /// The approval whose arguments a person changed: this is the changed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answered_by: Option<String>,
    /// In whose words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer_reason: Option<String>,
}

/// What could be remembered of a yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Offer {
    /// By which it is chosen, such as `exact_call`.
    pub(crate) kind: String,
    /// What it would cover, in words.
    pub(crate) covers: String,
}

/// A confirmation that was given ahead of time.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    /// By which it is taken back.
    pub(crate) id: String,
    /// The tool.
    pub(crate) tool: String,
    /// What it covers, as the person was shown.
    pub(crate) shown: String,
    /// Only for this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Only for this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Only in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Who gave it.
    pub(crate) granted_by: String,
    /// When the grant was given.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) granted_at: Timestamp,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
}

impl From<port::StoredApproval> for Approval {
    fn from(found: port::StoredApproval) -> Self {
        let asked = found.request;
        Approval {
            view: asked.view().to_string(),
            id: asked.id.to_string(),
            state: found.state.as_str().to_owned(),
            tool: asked.tool.to_string(),
            summary: asked.summary,
            reason: asked.reason,
            risk: format!("{:?}", asked.risk).to_lowercase(),
            arguments: asked.arguments.parse().map_or(Value::Null, Value::Object),
            preview: asked.preview,
            agent: Some(asked.asker.agent.to_string()),
            execution_id: asked.execution_id.to_string(),
            asked_at: found.asked_at,
            expires_at: asked.expires_at,
            offers: asked.offers.iter().map(Offer::from).collect(),
            replaces: asked.replaces.map(|id| id.to_string()),
            answered_by: found.answered_by,
            answer_reason: found.answer_reason,
        }
    }
}

impl From<&GrantOffer> for Offer {
    fn from(offer: &GrantOffer) -> Self {
        Offer { kind: offer.kind().to_owned(), covers: offer.words.clone() }
    }
}

impl From<port::StoredGrant> for Grant {
    fn from(grant: port::StoredGrant) -> Self {
        Grant {
            id: grant.id,
            tool: grant.tool,
            shown: grant.shown,
            agent: grant.agent,
            user: grant.user,
            session: grant.session,
            granted_by: grant.granted_by,
            granted_at: grant.granted_at,
            expires_at: grant.expires_at,
        }
    }
}
