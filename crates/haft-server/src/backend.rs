//! What the engine does not know, from the program that puts the server together.

use haft_core::{Arguments, ErrorCode, Tier, ToolError, port::BoxFuture};
use haft_engine::Request;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::{collections::BTreeMap, future::ready, time::Duration};
use utoipa::ToSchema;

fn refused<'a, T: Send + 'a>(what: &str) -> BoxFuture<'a, Result<T, ToolError>> {
    let text = format!("This server does not offer {what}");
    Box::pin(ready(Err(ToolError::new(ErrorCode::NotSupported, text))))
}

/// What stands behind a server besides the engine.
pub trait ServerBackend: Send + Sync {
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

    /// Keeps a record that somebody was not let in. At most one a minute; without a place for it, it is not kept.
    fn refused<'a>(&'a self, _refused: Refused) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(ready(Ok(())))
    }

    /// What happened besides calls, over all tenants, newest first: keys that were made and revoked, who was not let in.
    fn happenings<'a>(&'a self, _limit: usize) -> BoxFuture<'a, Result<Vec<Value>, ToolError>> {
        refused("a record of what happened besides calls")
    }

    /// Where questions to people are answered.
    fn desk(&self) -> Option<&dyn Desk> {
        None
    }
}

/// Nothing but the engine: everybody is on the lowest tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBackend;

impl ServerBackend for NoBackend {}

/// Who was not let in since the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Requests without a key or token.
    pub without: u64,
    /// Requests with one that does not count.
    pub unknown: u64,
    /// From where, for the first few addresses, and how often.
    pub addresses: BTreeMap<String, u64>,
    /// How often from other addresses.
    pub others: u64,
}

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
    /// What would change, such as a diff, as the tool says it: it may hold control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Everything that a yes covers, line by line: tool, arguments, isolation, change. Control characters are written out
    /// and no two calls look the same. Show this to the person who answers.
    pub view: String,
    /// The agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The execution that asked.
    pub execution_id: String,
    /// When it was asked.
    #[schema(value_type = String, format = DateTime)]
    pub asked_at: Timestamp,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// What could be remembered of a yes, narrowest first. Each would have spared this question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub offers: Vec<Offer>,
    /// The question whose arguments a person changed: this is the changed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// In whose words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reason: Option<String>,
}

/// What could be remembered of a yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Offer {
    /// By which it is chosen, such as `exact_call`.
    pub kind: String,
    /// What it would cover, in words.
    pub covers: String,
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
#[derive(Clone, Debug, PartialEq)]
pub struct GivenAnswer {
    /// What is to be done.
    pub verdict: Verdict,
    /// Who answers.
    pub by: String,
}

/// What is to be done about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may run, this once; and what is like it, where that is to be remembered.
    Approve(Option<Remember>),
    /// It may not, for a reason that the model reads.
    Deny(Option<String>),
    /// Not like this: haft plans the call with these arguments and asks again.
    Edit(Arguments),
}

/// What is to be remembered of a yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    /// The kind of one of the question's [offers](Offer).
    pub kind: String,
    /// For how long.
    pub lasts: Lasting,
}

/// How long a grant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// Until it is revoked.
    Always,
    /// While the session of the call goes on.
    Session,
    /// For so long.
    For(Duration),
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// It is accepted; with the grant that came of it.
    Counts(Option<Box<Grant>>),
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
