//! Finish: check the output, fit it to size, write the record, send the last event. Here and nowhere else.

mod changes;
mod compose;

use super::types::{CallRecord, CallState, RunOutcome, shutting_down};
use crate::{
    live_calls::LiveCalls,
    ports::Ports,
    redaction::{Levels, Once, Redaction},
    telemetry,
};
use compose::{AsKept, Composed, Content, compose};
use haft_core::{
    ContentPart, ErrorCode, ErrorInfo, EventPayload, ResultMetadata, Status, ToolResult, ToolsMode,
    Violation,
    port::{AuditRecord, BoxFuture, CallEnd, Settlement, StoreError},
    text,
};
use haft_sdk::CancelReason;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Ends a call: once, whatever happened.
pub(crate) async fn finish(
    ports: &Ports,
    live: &LiveCalls,
    call: &mut CallRecord,
    outcome: RunOutcome,
) -> ToolResult {
    call.announce();
    let outcome = unless_never_started(call, outcome);
    let once = once(ports, call, &outcome);
    let content = match compose(ports, call, outcome, levels(ports, once.as_deref())) {
        Composed::Now(content) => content,
        Composed::Later(content) => content.await,
    };
    let content = say_edited(ports, call, content);
    // From here to the store nothing waits. So a caller who drops this future drops it before the call has ended, or
    // after, and then `Last` still sends the last event.
    let (recorded, last) = record(ports, live, call, content, levels(ports, once.as_deref()).kept);
    last.end(recorded.await)
}

fn levels<'a>(ports: &'a Ports, once: Option<&'a Once>) -> Levels<'a> {
    once.map_or_else(|| ports.levels(), Once::levels)
}

/// A long text stands in a result several times, and is looked at once. Boxed, because it is rare and would make every
/// call larger to move.
fn once(ports: &Ports, call: &CallRecord, outcome: &RunOutcome) -> Option<Box<Once>> {
    let RunOutcome::Returned(output) = outcome else { return None };
    let is_kept = ports.wants.results || call.task.is_some();
    let new = || Box::new(Once::new(&ports.redaction, &ports.redaction_levels, is_kept));
    Once::is_worth_it(output).then(new)
}

/// A call that a shutdown caught before its tool was started has done nothing: it can be sent again.
fn unless_never_started(call: &CallRecord, outcome: RunOutcome) -> RunOutcome {
    match &outcome {
        RunOutcome::Error(error)
            if error.code == ErrorCode::Cancelled
                && call.facts.attempts == 0
                && call.cancel.reason() == Some(CancelReason::Shutdown) =>
        {
            RunOutcome::Error(shutting_down())
        }
        _ => outcome,
    }
}

/// A model that does not know that a person changed its call goes on from what it sent.
fn say_edited(ports: &Ports, call: &CallRecord, mut content: Content) -> Content {
    if let Some(edited) = &call.facts.edited {
        let edited = ports.redaction.arguments(edited);
        let said = format!("A person changed the arguments of this call to {}", edited.as_str());
        content.parts.push(ContentPart::text(text::truncate(&said, 4096, None).text.into_owned()));
    }
    content
}

/// Files that a sandbox moved away after the programs ended: neither the model nor a person sees that in what they put
/// out.
fn say_restricted(ports: &Ports, violations: &[Violation]) -> Option<ContentPart> {
    let lines = restricted_lines(violations);
    (!lines.is_empty()).then(|| ContentPart::text(ports.redaction.model_string(lines.join("\n"))))
}

/// A line for each, and how many there are more.
fn restricted_lines(violations: &[Violation]) -> Vec<String> {
    const SAID: usize = 10;
    let all = || violations.iter().filter(|violation| violation.is_restricted());
    let line = |violation: &Violation| format!("haft: {}", text::one_line(&violation.description, 2000));
    let mut lines: Vec<String> = all().take(SAID).map(line).collect();
    let more = all().count().saturating_sub(SAID);
    if more > 0 {
        lines.push(format!("haft: {more} more, in metadata.violations"));
    }
    lines
}

/// Hands the record to the store.
fn record<'a>(
    ports: &'a Ports,
    live: &'a LiveCalls,
    call: &'a mut CallRecord,
    content: Content,
    redaction: &Redaction,
) -> (BoxFuture<'a, Result<(), StoreError>>, Last<'a>) {
    call.finished.store(true, Ordering::Release);
    if ports.settings.mode == ToolsMode::ParseOnly {
        live.awaiting.forget(call.id);
    }
    let (metadata, timeout, waited) = (call.metadata(), call.timeout(), call.facts.waited);
    let (call, facts) = call.parts();
    let mut facts = std::mem::take(facts);
    let edited = facts.edited.take();
    let arguments = edited.as_ref().unwrap_or(&call.tool_call.arguments);
    let shown = ports.redaction.arguments(arguments);
    let code = content.error.as_ref().map(|error| error.code);
    let attempts = facts.take_attempts(code);
    let mut parts = content.parts;
    parts.extend(say_restricted(ports, &attempts.violations));
    let changes = facts.staging.take().and_then(|staging| staging.settled).map(Box::new);
    parts.extend(changes.as_deref().and_then(changes::say));
    let audit = AuditRecord {
        context: Arc::clone(&call.context),
        call_id: Arc::clone(&call.tool_call.id),
        tool: Arc::clone(call.tool_name()),
        status: content.status,
        code,
        error: content.error.as_deref().map(|error| recorded(ports, error, content.as_kept.message.as_ref())),
        rule: facts.rule,
        approval: facts.approval,
        input_size: arguments.len() as u64,
        // What the store keeps of them it gets below.
        input: None,
        diagnostics: content.diagnostics.clone(),
        metadata: Arc::new(ResultMetadata {
            side_effects: content.side_effects,
            output_size: content.size,
            output_truncated: content.truncated,
            output_handle: content.handle,
            attempts: facts.attempts,
            attempt_records: attempts.records,
            enforcement: attempts.enforcement,
            sandbox_id: attempts.sandbox,
            metrics: attempts.metrics,
            violations: attempts.violations,
            changes,
            coercions: facts.coercions,
            scheduling: facts.scheduling,
            ..metadata
        }),
        hashes: None,
    };
    let (as_kept, claimed) = (content.as_kept, content.claimed);
    let result = ToolResult {
        call_id: Arc::clone(&audit.call_id),
        tool: Arc::clone(&audit.tool),
        status: content.status,
        input: Some(shown.within(ToolResult::INPUT_BYTES)),
        output: content.output,
        content: parts,
        error: content.error,
        diagnostics: content.diagnostics,
        metadata: Arc::clone(&audit.metadata),
    };
    let settles = facts.claim.map(|claim| (*claim, settlement(ports, &result)));
    let wants = ports.wants;
    // A store that keeps results gets its own; the caller's may still change if this cannot be recorded.
    // Whatever the licence keeps: the record has their hashes.
    let to_keep = || Arc::new(kept(ports, &result, &as_kept, redaction));
    let kept = wants.results.then(to_keep);
    let arguments = wants.results.then_some(shown);
    let had_intent = facts.had_intent;
    // A task has its result from the store alone, whatever else is kept.
    let task = call.task.as_ref().map(|task| (task.id.clone(), kept.clone().unwrap_or_else(to_keep)));
    let outcome = CallEnd { audit, arguments, had_intent, result: kept, settles, task };
    let recorded = ports.store.outcome(outcome);
    (
        recorded,
        Last { ports, live, call, result: Some(result), message: as_kept.message, claimed, timeout, waited },
    )
}

/// An error's words as they are on record.
#[cold]
fn recorded(ports: &Ports, error: &ErrorInfo, as_kept: Option<&String>) -> Box<str> {
    let message = ports.redaction.string(as_kept.unwrap_or(&error.message).clone());
    text::truncate(&message, AuditRecord::ERROR_MESSAGE, None).text.into()
}

/// Sends the last event, when it is asked to or when it is dropped, whichever comes first.
struct Last<'a> {
    ports: &'a Ports,
    live: &'a LiveCalls,
    call: &'a CallState,
    result: Option<ToolResult>,
    /// The error's words as they are kept, where they are others.
    message: Option<String>,
    /// Bytes of its batch that its text and its value took.
    claimed: usize,
    timeout: Duration,
    waited: Duration,
}

impl Last<'_> {
    fn end(mut self, recorded: Result<(), StoreError>) -> ToolResult {
        // It was put there when this was made, and only this takes it.
        let Some(mut result) = self.result.take() else { unreachable!("a call ends once") };
        match recorded {
            Ok(()) if self.ports.wants.results => self.live.counters.stored(),
            Ok(()) => {}
            Err(error) => {
                unrecorded(&mut result, &error.to_string());
                self.message = None;
            }
        }
        self.close(&result);
        result
    }

    fn close(&self, result: &ToolResult) {
        let call = self.call;
        call.settle_output(self.claimed, || {
            result.text().len() + result.output.as_ref().map_or(0, haft_core::json_fit::size)
        });
        if let Some(registered) = call.registered.get() {
            let facts = &result.metadata;
            registered.count(&call.context.tenant, result.status, facts.duration, facts.output_size);
        } else {
            self.live.counters.refused(result);
        }
        self.live.counters.call(result);
        telemetry::ended(&self.ports.redaction, call, self.timeout, result);
        call.emit_at(
            self.waited + result.metadata.duration,
            last_event(self.ports, self.timeout, result, self.message.as_ref()),
        );
        self.live.executions.end(call);
    }
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        if let Some(result) = self.result.take() {
            self.close(&result);
        }
    }
}

/// A result as it is kept.
fn kept(ports: &Ports, result: &ToolResult, as_kept: &AsKept, redaction: &Redaction) -> ToolResult {
    let mut kept = result.clone();
    if ports.redaction_levels.is_one {
        return kept;
    }
    if let (Some(text), Some(ContentPart::Text { text: cut })) = (&as_kept.text, kept.content.first_mut()) {
        cut.clone_from(text);
    }
    if let Some(output) = &as_kept.output {
        kept.output.clone_from(&**output);
    }
    if let (Some(message), Some(error)) = (&as_kept.message, &mut kept.error) {
        error.message.clone_from(message);
    }
    redaction.result(kept)
}

/// What a repetition of a call with an idempotency key gets.
fn settlement(ports: &Ports, result: &ToolResult) -> Settlement {
    let approval = || result.error.as_ref()?.data.as_ref()?.get("approvalId")?.as_str().map(str::to_owned);
    if result.metadata.attempts > 0 {
        // It is what the first caller got, unless that went out as it is.
        Settlement::Result(Arc::new(match ports.redaction_levels.results.0 {
            Some(_) => result.clone(),
            None => ports.redaction_levels.stored.result(result.clone()),
        }))
    } else if let (Status::RequiresConfirmation, Some(approval)) = (result.status, approval()) {
        Settlement::Waiting(haft_core::ApprovalId::from_text(approval))
    } else {
        Settlement::Released
    }
}

/// A result that nothing remembers must not look like one that something does.
fn unrecorded(result: &mut ToolResult, error: &str) {
    let code = ErrorCode::StoreUnavailable;
    let message = match result.metadata.attempts {
        0 => code.model_text().to_owned(),
        _ => format!("The call ran and ended with {}, but that could not be recorded", result.status),
    };
    let old = result.diagnostics.take().map(|old| format!("{old}; ")).unwrap_or_default();
    result.diagnostics = Some(format!("{old}{error}").into());
    result.status = Status::Failed;
    result.output = None;
    result.content = vec![ContentPart::text(&message)];
    result.error = Some(Box::new(ErrorInfo {
        code,
        number: None,
        message,
        retryable: code.is_retryable(),
        problems: Vec::new(),
        data: None,
    }));
}

fn last_event(
    ports: &Ports,
    timeout: Duration,
    result: &ToolResult,
    as_kept: Option<&String>,
) -> EventPayload {
    let duration = result.metadata.duration;
    let Some(error) = &result.error else {
        return EventPayload::Completed { duration };
    };
    let message = || ports.redaction.string(as_kept.unwrap_or(&error.message).clone());
    match result.status {
        Status::Timeout => EventPayload::Timeout { timeout },
        Status::Cancelled => EventPayload::Cancelled { code: error.code, message: message() },
        status => EventPayload::Failed { status, code: error.code, message: message(), duration },
    }
}
