//! Approvals, asked through the client.

use super::client::Client;
use haft_core::{
    ApprovalRequest, Channel, Decision,
    port::{Approver, BoxFuture, GuardError},
    text,
};
use rmcp::{
    model::{ElicitResult, ElicitationAction, InputRequest},
    service::ServiceError,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Who approves what needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    /// The engine's own approver. The client only hears that the call waits, and by which id.
    #[default]
    Elsewhere,
    /// The person before the client, through a form of haft's; where the client has no forms, as
    /// [`Elsewhere`](Self::Elsewhere).
    ThroughClient,
    /// The client's own program: it asks its user before each call, and that counts. What is denied stays denied.
    Host,
}

/// From where answers through MCP come, as `tools.approval.accept_from` has it.
pub(super) const CHANNEL: Channel = Channel::Mcp;
/// The name of the question about a call.
const QUESTION: &str = "haft_approval";
/// The two answers of a form. None is chosen before a person chooses: a box that is empty by itself would be a no that
/// nobody said.
const APPROVE: &str = "approve";
const DENY: &str = "deny";
/// How many characters a form has room for. What a client does with more is not known: it may cut it, and then a person
/// would agree to what they have not seen.
const MOST_SHOWN: usize = 4000;

/// Whom a call of this client asks; `None` for whom the engine asks.
pub(super) fn approver(approvals: Approvals, client: &Client) -> Option<Arc<dyn Approver>> {
    match approvals {
        Approvals::Host => Some(Arc::new(HostAsked)),
        Approvals::ThroughClient if client.has_forms() => Some(Arc::new(Form(client.clone()))),
        Approvals::ThroughClient | Approvals::Elsewhere => None,
    }
}

/// The host asked its user before it sent the call.
struct HostAsked;

impl Approver for HostAsked {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move { Ok(vec![Decision::Approve; requests.len()]) })
    }

    fn channel(&self) -> Channel {
        CHANNEL
    }
}

/// A form of haft's, which the client puts before a person.
struct Form(Client);

impl Approver for Form {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            let mut decisions = Vec::with_capacity(requests.len());
            for request in requests {
                let question = form(request).map_err(|error| GuardError(error.message))?;
                let decision = match (question, self.0.is_stateless()) {
                    // It stays on the list, where everything can be seen.
                    (None, _) => Decision::Unanswered,
                    (Some(question), false) => self.ask_now(question).await,
                    (Some(question), true) => self.ask_between_rounds(request, question),
                };
                if decision == Decision::Approve {
                    self.0.approved(&request.fingerprint);
                }
                decisions.push(decision);
            }
            Ok(decisions)
        })
    }

    fn channel(&self) -> Channel {
        CHANNEL
    }
}

impl Form {
    async fn ask_now(&self, question: InputRequest) -> Decision {
        let patience = self.0.server().0.patience;
        match self.0.send(question, Some(patience)).await {
            Ok(answer) => decision(answer),
            Err(error) => {
                // A client that said it could and cannot, one that is gone, one that took too long: nobody answered.
                if !matches!(error, ServiceError::Timeout { .. }) {
                    tracing::warn!(%error, "a client was asked about a call and did not answer");
                }
                Decision::Unanswered
            }
        }
    }

    /// The answer, if this round brought one to this very question; else the question is put.
    fn ask_between_rounds(&self, request: &ApprovalRequest, question: InputRequest) -> Decision {
        if self.0.take_agreement(&request.fingerprint) {
            return Decision::Approve;
        }
        if let Some(answer) = self.0.take_answer(QUESTION, &request.fingerprint) {
            return decision(answer);
        }
        self.0.put(QUESTION, question, &request.fingerprint);
        Decision::Unanswered
    }
}

/// What an answer means. Only a clear yes is one.
pub(super) fn decision(answer: Value) -> Decision {
    let Ok(answer) = serde_json::from_value::<ElicitResult>(answer) else {
        return Decision::Unanswered;
    };
    let content = answer.content.unwrap_or_default();
    let reason = content.get("reason").and_then(Value::as_str).map(str::trim).filter(|said| !said.is_empty());
    let reason = reason.map(|said| text::one_line(said, 500));
    match answer.action {
        ElicitationAction::Accept => match content.get("decision").and_then(Value::as_str) {
            Some(APPROVE) => Decision::Approve,
            Some(DENY) => Decision::Deny { reason },
            _ => Decision::Unanswered,
        },
        ElicitationAction::Decline => Decision::Deny { reason },
        _ => Decision::Unanswered,
    }
}

/// The question about a call, with everything that a yes covers, for the person before the client. `None` where a form
/// has no room for all of it: then it cannot be agreed to here.
pub(super) fn form(request: &ApprovalRequest) -> Result<Option<InputRequest>, haft_core::ToolError> {
    let tool = text::spelled_line(&request.tool);
    let message = format!("May {tool} run?\n{}\n\n{}", text::one_line(&request.summary, 200), request.view());
    if message.chars().count() > MOST_SHOWN {
        return Ok(None);
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Run it, this once?", "enum": [APPROVE, DENY]},
            "reason": {"type": "string", "title": "If not, why", "maxLength": 500},
        },
        "required": ["decision"],
    });
    Client::form(message, schema).map(Some)
}

/// Whether a form shows all of the question, so that a yes to it counts.
pub(super) fn can_be_shown(request: &ApprovalRequest) -> bool {
    form(request).is_ok_and(|question| question.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str) -> ApprovalRequest {
        let request = json!({
            "id": "apr_1", "executionId": haft_core::ExecutionId::at(jiff::Timestamp::UNIX_EPOCH), "callId": "c",
            "tool": "run_command", "summary": "Run command", "risk": "high", "reason": "it always asks",
            "arguments": {"command": command, "env": {"PATH": "./bin"}, "stdin": "x"}, "fingerprint": "00",
        });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn a_form_shows_everything_or_there_is_none() {
        let short =
            serde_json::to_value(form(&asked("echo \u{1b}]0;touch X;\u{7}")).unwrap().unwrap()).unwrap();
        let message = short.pointer("/params/message").and_then(Value::as_str).unwrap();
        for seen in ["│ echo ⟨ESC⟩]0;touch X;⟨BEL⟩\n", "  env.PATH   │ ./bin\n", "  stdin      │ x\n"]
        {
            assert!(message.contains(seen), "{seen}: {message}");
        }
        let long = asked(&format!("echo {}; touch X", "hello ".repeat(1000)));
        assert!(form(&long).unwrap().is_none() && !can_be_shown(&long));
        assert!(can_be_shown(&asked("echo hello")));
    }

    /// A summary comes spelled out from where it is made.
    #[test]
    fn a_summary_is_spelled_once() {
        let mut request = asked("ls \u{1b}[2J");
        request.detail.does = "Run ls \u{1b}[2J".into();
        request.summary = text::spelled_summary(&request.detail.does, 200);
        let form = serde_json::to_value(form(&request).unwrap().unwrap()).unwrap();
        let message = form.pointer("/params/message").and_then(Value::as_str).unwrap();
        assert!(message.starts_with("May run_command run?\nRun ls ⟨ESC⟩[2J\n"), "{message}");
        assert!(!message.contains("⟨U+27E8⟩"), "{message}");
    }

    /// A yes to what no form showed is none; a no is one.
    #[test]
    fn a_task_takes_no_yes_to_what_was_not_shown() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let answered = |request: ApprovalRequest, approve: bool| {
            let task = super::super::tasks::TaskNow {
                id: "tsk_1".into(),
                created_at: now,
                updated_at: now,
                ttl: None,
                poll: std::time::Duration::ZERO,
                message: None,
                asks: Some(request),
                result: None,
            };
            let answer = json!({"action": "accept", "content": {"decision": if approve { "approve" } else { "deny" }}});
            let answers = [("haft_approval_apr_1".to_owned(), answer)].into_iter().collect();
            task.answered(&answers).map(|(_, decision)| decision)
        };
        let long = || asked(&"echo hello; ".repeat(1000));
        assert_eq!(answered(asked("ls"), true), Some(Decision::Approve), "the control");
        assert_eq!(answered(long(), true), None);
        assert_eq!(answered(long(), false), Some(Decision::Deny { reason: None }));
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let denied = |reason: Option<&str>| Decision::Deny { reason: reason.map(str::to_owned) };
        for (answer, expected) in [
            (json!({"action": "accept", "content": {"decision": "approve"}}), Decision::Approve),
            (json!({"action": "accept", "content": {"decision": "deny"}}), denied(None)),
            (
                json!({"action": "accept", "content": {"decision": "deny", "reason": " no "}}),
                denied(Some("no")),
            ),
            (json!({"action": "accept", "content": {"decision": true}}), Decision::Unanswered),
            (json!({"action": "accept", "content": {}}), Decision::Unanswered),
            (json!({"action": "accept"}), Decision::Unanswered),
            (json!({"action": "decline"}), denied(None)),
            (json!({"action": "decline", "content": {"decision": "approve"}}), denied(None)),
            (json!({"action": "cancel", "content": {"decision": "approve"}}), Decision::Unanswered),
            (json!({"action": "yes"}), Decision::Unanswered),
            (json!(true), Decision::Unanswered),
            (json!(null), Decision::Unanswered),
        ] {
            assert_eq!(decision(answer.clone()), expected, "{answer}");
        }
    }
}
