//! Who decides: permission, policy, a person.

use super::{AcceptAnswers, BoxFuture};
use crate::{
    ApprovalId, ApprovalRequest, CallContext, Channel, Decision, Footprint, GrantOffer, Tier, ToolDefinition,
};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What a rule is called, on verdicts and in records: `denylist`, or the name that its author gave it.
pub type RuleName = Cow<'static, str>;

/// A guard could not decide. The call is denied, and the operator is told why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GuardError(pub String);

/// What permissions say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorisation {
    /// The caller may.
    Granted,
    /// The caller may not.
    Denied {
        /// The permission that is missing.
        missing: String,
        /// Why it is: who denies it, or that nobody grants it.
        reason: String,
    },
    /// The definition of the agent that calls does not list the tool.
    NotListed {
        /// The agent.
        agent: String,
    },
    /// The licence of the caller does not include how it would be decided.
    Unlicensed {
        /// What it does not include, as the beginning of a sentence.
        what: String,
        /// The lowest tier that does.
        needed: Tier,
    },
}

/// Whether a caller has the permissions that a tool requires.
pub trait Authoriser: Send + Sync {
    /// Decides for one call.
    fn authorise<'a>(
        &'a self,
        context: &'a CallContext,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>>;
}

/// What policy decides about: a call whose arguments are known to be valid.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Who calls.
    pub context: &'a CallContext,
    /// What tool.
    pub definition: &'a ToolDefinition,
    /// With what.
    pub arguments: &'a Map<String, Value>,
    /// What it would read and write, with paths as they were resolved.
    pub footprint: &'a Footprint,
    /// The folder in which its programs start, resolved; empty where it has none. What a command does depends on it.
    pub folder: &'a str,
    /// Why the tool itself wants a person to agree to this very call, where it does.
    pub confirm: Option<&'a str>,
    /// Whose answers count here: a grant that came another way covers nothing.
    pub accepts: &'a AcceptAnswers,
    /// When it is decided: some confirmations hold only until a time.
    pub now: Timestamp,
}

/// What policy says, with the rule that said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Allow {
        /// The rule.
        rule: RuleName,
        /// Whether a person agreed to it earlier. Only then does a tool that itself wants this call confirmed
        /// run without asking.
        confirmed: bool,
    },
    /// Ask a person first.
    Ask {
        /// The rule.
        rule: RuleName,
        /// Why, in words for that person.
        reason: String,
    },
    /// Do not run it.
    Deny {
        /// The rule.
        rule: RuleName,
        /// Why, in words that name the next step.
        reason: String,
    },
}

/// What may run, what must be asked, what must not. Pure: it looks at nothing but its arguments.
pub trait Policy: Send + Sync {
    /// Whether anything may run at all.
    fn is_enabled(&self) -> bool;

    /// Whether the tool is denied by its name alone, before its arguments are looked at.
    fn denies(
        &self,
        context: &CallContext,
        definition: &ToolDefinition,
    ) -> Result<Option<String>, GuardError>;

    /// Decides about one call.
    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError>;

    /// What could be remembered of a person's yes to a call, narrowest first: only what would have spared the
    /// question. `summary` says what the call does.
    fn offers(&self, _subject: &Subject<'_>, _summary: &str) -> Vec<GrantOffer> {
        Vec::new()
    }
}

/// Asks a person, or whatever stands for one.
pub trait Approver: Send + Sync {
    /// Asks all questions of a batch at once. An answer that is missing counts as unanswered.
    fn ask<'a>(&'a self, requests: &'a [ApprovalRequest])
    -> BoxFuture<'a, Result<Vec<Decision>, GuardError>>;

    /// By which way its answers come, as they are recorded.
    fn channel(&self) -> Channel {
        Channel::Program
    }

    /// One of the questions that it is being asked was answered elsewhere; its own answer would come too late.
    fn answered_elsewhere(&self, _question: &ApprovalId, _decision: &Decision) {}
}

/// Nobody is there: every question stays open, and nothing runs.
///
/// ```
/// use haft_core::port::{Approver, NobodyToAsk};
/// let _: &dyn Approver = &NobodyToAsk;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyToAsk;

impl Approver for NobodyToAsk {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move { Ok(requests.iter().map(|_| Decision::Unanswered).collect()) })
    }
}
