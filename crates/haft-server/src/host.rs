//! What the engine does not know, from whoever puts the server together.

use haft_core::{ErrorCode, Tier, ToolError, port::BoxFuture};
use haft_engine::Request;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::future::ready;
use utoipa::ToSchema;

fn refused<'a, T: Send + 'a>(what: &str) -> BoxFuture<'a, Result<T, ToolError>> {
    let text = format!("This server does not offer {what}");
    Box::pin(ready(Err(ToolError::new(ErrorCode::NotSupported, text))))
}

/// What stands behind a server besides the engine.
pub trait Host: Send + Sync {
    /// The licence tier of a tenant now.
    fn tier(&self, _tenant: &str) -> Tier {
        Tier::Core
    }

    /// Why policy decides about a call as it does.
    fn explain<'a>(&'a self, _request: Request) -> BoxFuture<'a, Result<Value, ToolError>> {
        refused("explanations of policy")
    }

    /// What the jails of this machine enforce.
    fn doctor<'a>(&'a self) -> BoxFuture<'a, Result<Value, ToolError>> {
        refused("a look at its jails")
    }

    /// Where questions to people are answered.
    fn desk(&self) -> Option<&dyn Desk> {
        None
    }
}

/// Nothing but the engine: everybody is on the lowest tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// By which it is answered.
    pub id: String,
    /// `open`, `approved`, `denied`, `expired`, `used` or `edited`.
    pub state: String,
    /// The tool.
    pub tool: String,
    /// What it would do.
    pub summary: String,
    /// Why somebody is asked.
    pub reason: String,
    /// How risky the tool is.
    pub risk: String,
    /// With what, without secrets.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// What would change, such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The walk that asked.
    pub execution_id: String,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub asked_at: Timestamp,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// In whose words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reason: Option<String>,
}

/// A confirmation that was given ahead of time.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// By which it is taken back.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it covers, as the person was shown.
    pub shown: String,
    /// Only for this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only for this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Only in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Who gave it.
    pub granted_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub granted_at: Timestamp,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// Yes or no.
    pub approve: bool,
    /// Why, in words that the model gets to read.
    pub reason: Option<String>,
    /// Who answers.
    pub by: String,
}

/// What came of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It counts.
    Counts,
    /// The question was answered before, or it is too late.
    TooLate,
    /// There is no such question.
    Unknown,
}

/// Where questions to people are kept and answered. Everything is one tenant's.
pub trait Desk: Send + Sync {
    /// The questions in that state, or all, oldest first.
    fn questions<'a>(
        &'a self,
        tenant: &'a str,
        state: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Question>, ToolError>>;

    /// One question.
    fn question<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>>;

    /// Answers one.
    fn answer<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
        answer: GivenAnswer,
    ) -> BoxFuture<'a, Result<Answered, ToolError>>;

    /// The grants that hold now.
    fn grants<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<Vec<Grant>, ToolError>>;

    /// Takes a grant back. False where there is none of that id.
    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, ToolError>>;
}
