//! Finish: check the output, fit it to size, write the record, send the last event. Here and nowhere else.

use crate::{
    engine::Inner,
    frame::{Facts, Frame},
    plan::Exit,
    ports::Ports,
};
use haft_core::{
    ContentPart, ErrorCode, ErrorInfo, EventPayload, OutputHandle, ResultMetadata, Status, ToolError,
    ToolOutput, ToolResult,
    port::{AuditRecord, Outcome, Settlement},
    text,
};
use haft_sdk::Host;
use jiff::SignedDuration;
use serde_json::Value;
use std::sync::{Arc, atomic::Ordering};

/// How a call ended, before it has the form of a result.
pub(crate) enum Raw {
    /// The tool returned.
    Returned(ToolOutput),
    /// It did not succeed.
    Error(ToolError),
    /// The same call had this result before.
    Replay(Arc<ToolResult>),
}

impl From<Result<ToolOutput, ToolError>> for Raw {
    fn from(outcome: Result<ToolOutput, ToolError>) -> Self {
        outcome.map_or_else(Raw::Error, Raw::Returned)
    }
}

impl From<ToolError> for Raw {
    fn from(error: ToolError) -> Self {
        Raw::Error(error)
    }
}

impl From<Exit> for Raw {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Error(error) => Raw::Error(error),
            Exit::Replay(result) => Raw::Replay(result),
        }
    }
}

/// Ends a call: once, whatever happened.
pub(crate) async fn finish(engine: &Inner, frame: &Frame, raw: Raw) -> ToolResult {
    let ports = &*engine.ports;
    let content = match raw {
        Raw::Returned(output) => match check_output(frame, &output) {
            Ok(()) => success(ports, frame, output).await,
            Err(error) => failure(ports, frame, error).await,
        },
        Raw::Error(error) => failure(ports, frame, error).await,
        Raw::Replay(result) => Content::of(&result),
    };
    // From here to the store nothing waits, so whoever drops this future drops it before the call has ended or
    // after; and in the second case `Last` still sends the last event.
    frame.finished.store(true, Ordering::Release);
    let facts = std::mem::take(&mut *frame.facts());
    let elapsed = frame.arrived.elapsed();
    let audit = audit_record(frame, &facts, &content, elapsed);
    let claim = facts.claim.clone();
    let mut last = Last {
        engine,
        frame,
        result: Some(result(frame, facts, content, &audit)),
    };
    let settles = claim.zip(last.result.as_ref().map(settlement));
    if let Err(error) = ports.store.outcome(Outcome { audit, settles }).await
        && let Some(result) = &mut last.result
    {
        unrecorded(result, &error.to_string());
    }
    last.end()
}

/// Sends the last event, when it is asked to or when it is dropped, whichever comes first.
struct Last<'a> {
    engine: &'a Inner,
    frame: &'a Frame,
    result: Option<ToolResult>,
}

impl Last<'_> {
    fn end(mut self) -> ToolResult {
        // It was put there when this was made, and only this takes it.
        let Some(result) = self.result.take() else {
            unreachable!("a call ends once")
        };
        self.close(&result);
        result
    }

    fn close(&self, result: &ToolResult) {
        let frame = self.frame;
        if let Some((batch, _)) = &frame.batch {
            let used = result.text().len();
            let less = |capacity: usize| (capacity != usize::MAX).then(|| capacity.saturating_sub(used));
            let _ = batch
                .capacity
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        }
        if let Some(registered) = frame.registered.get() {
            registered.stats.record(result.status, result.metadata.duration);
        }
        frame.emit_at(result.metadata.duration, last_event(frame, result));
        self.engine.executions.end(frame);
    }
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        if let Some(result) = self.result.take() {
            self.close(&result);
        }
    }
}

/// What a result holds beside the facts.
struct Content {
    status: Status,
    output: Option<Value>,
    parts: Vec<ContentPart>,
    error: Option<Box<ErrorInfo>>,
    diagnostics: Option<Box<str>>,
    side_effects: Vec<haft_core::SideEffect>,
    size: u64,
    truncated: bool,
    handle: Option<OutputHandle>,
}

impl Content {
    fn of(result: &ToolResult) -> Self {
        Content {
            status: result.status,
            output: result.output.clone(),
            parts: result.content.clone(),
            error: result.error.clone(),
            diagnostics: result.diagnostics.clone(),
            side_effects: result.metadata.side_effects.clone(),
            size: result.metadata.output_size,
            truncated: result.metadata.output_truncated,
            handle: result.metadata.output_handle.clone(),
        }
    }
}

/// A value that does not fit the tool's own schema is not passed on.
fn check_output(frame: &Frame, output: &ToolOutput) -> Result<(), ToolError> {
    let Some(schema) = frame
        .registered
        .get()
        .and_then(|registered| registered.output.as_ref())
    else {
        return Ok(());
    };
    let Some(structured) = &output.structured else {
        // Words alone are an answer, too: the schema speaks about the structured value.
        return Ok(());
    };
    schema.check(structured).map_err(|(sentence, problems)| {
        ToolError::new(
            ErrorCode::OutputValidationFailed,
            format!("The tool's output does not fit its own output schema: {sentence}"),
        )
        .with_problems(problems)
    })
}

async fn success(ports: &Ports, frame: &Frame, output: ToolOutput) -> Content {
    let ToolOutput {
        text,
        mut structured,
        parts,
        side_effects,
        keep_whole,
    } = output;
    if let Some(structured) = &mut structured {
        ports.redact_value(structured);
    }
    let spooled = frame.take_spool();
    let streamed = spooled.as_ref().map_or(0, |(_, total)| *total);
    let (raw, returned) = match (text, &structured, spooled) {
        (Some(text), _, _) => (redacted(ports, text), true),
        (None, Some(structured), _) => (structured.to_string(), true),
        (None, None, Some((bytes, _))) => (String::from_utf8_lossy(&bytes).into_owned(), false),
        (None, None, None) => (String::new(), true),
    };
    let size = if returned {
        raw.len() as u64 + streamed
    } else {
        streamed
    };
    let limit = if keep_whole {
        usize::MAX
    } else {
        frame.output_limit()
    };
    let (text, handle, truncated) = fit(ports, frame, raw, limit).await;
    // A value that a model could not take is not sent to one; the whole is behind the handle.
    if truncated && frame.capacity() != usize::MAX {
        structured = None;
    }
    let mut content = Vec::with_capacity(1 + parts.len());
    if !text.is_empty() || parts.is_empty() {
        content.push(ContentPart::Text { text });
    }
    content.extend(parts);
    Content {
        status: Status::Success,
        output: structured,
        parts: content,
        error: None,
        diagnostics: None,
        side_effects,
        size,
        truncated,
        handle,
    }
}

fn redacted(ports: &Ports, text: String) -> String {
    match ports.redact(text.as_bytes()) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// The text for a model within the limit. Where something must be left out, the whole is kept in the store, raw but
/// for redaction.
async fn fit(
    ports: &Ports,
    frame: &Frame,
    raw: String,
    limit: usize,
) -> (String, Option<OutputHandle>, bool) {
    let shown = match text::model_str(&raw) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(shown) => Some(shown),
    };
    if shown.as_ref().unwrap_or(&raw).len() <= limit {
        return (shown.unwrap_or(raw), None, false);
    }
    let shown = shown.unwrap_or_else(|| raw.clone());
    // Without a handle the result is still right; it only cannot be read on.
    let handle = ports
        .store
        .keep_output(&frame.context.tenant, raw.into_bytes())
        .await
        .ok();
    let cut = text::truncate(&shown, limit, handle.as_ref().map(OutputHandle::as_str));
    (cut.text.into_owned(), handle, true)
}

async fn failure(ports: &Ports, frame: &Frame, error: ToolError) -> Content {
    let spooled = frame.take_spool();
    let size = spooled.as_ref().map_or(0, |(_, total)| *total);
    let ToolError {
        code,
        message,
        diagnostics,
        mut problems,
        mut data,
    } = error;
    for problem in &mut problems {
        problem.message = ports.safe_text(&problem.message);
    }
    if let Some(data) = &mut data {
        ports.redact_value(data);
    }
    let limit = frame.output_limit();
    let passes = code == ErrorCode::ExecutionFailed && is_json_object(&message);
    let (message, shown, handle, truncated) = if passes {
        pass_through(ports, frame, redacted(ports, message), limit).await
    } else {
        let message = match code {
            ErrorCode::ExecutionFailed => format!("{} failed: {message}", frame.tool_name()),
            _ => message,
        };
        let message = text::truncate(&ports.safe_string(message), limit, None)
            .text
            .into_owned();
        // What a program said before it failed is the most useful part of its failure.
        let shown = match spooled {
            Some((bytes, _)) if !bytes.is_empty() => {
                format!("{message}\n\n{}", String::from_utf8_lossy(&bytes))
            }
            _ => message.clone(),
        };
        let (shown, handle, truncated) = fit(ports, frame, shown, limit).await;
        (message, shown, handle, truncated)
    };
    Content {
        status: code.status().unwrap_or(Status::Failed),
        output: None,
        parts: vec![ContentPart::text(shown)],
        error: Some(Box::new(ErrorInfo {
            code,
            number: code.e_number().map(str::to_owned),
            message,
            retryable: code.is_retryable(),
            problems,
            data,
        })),
        diagnostics: diagnostics
            .map(|diagnostics| String::from_utf8_lossy(&ports.redact(diagnostics.as_bytes())).into()),
        side_effects: Vec::new(),
        size,
        truncated,
        handle,
    }
}

fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
}

/// A tool's own JSON error reaches the model byte for byte; one that is too long is kept, and a handle given.
async fn pass_through(
    ports: &Ports,
    frame: &Frame,
    json: String,
    limit: usize,
) -> (String, String, Option<OutputHandle>, bool) {
    if json.len() <= limit {
        return (json.clone(), json, None, false);
    }
    let length = json.len();
    let handle = ports
        .store
        .keep_output(&frame.context.tenant, json.into_bytes())
        .await
        .ok();
    let place = handle.as_ref().map_or_else(String::new, |handle| {
        format!("; read it with read_output {handle}")
    });
    let text = format!(
        "{} failed with a JSON error of {length} bytes{place}",
        frame.tool_name()
    );
    let text = text::truncate(&text, limit, None).text.into_owned();
    (text.clone(), text, handle, true)
}

fn audit_record(
    frame: &Frame,
    facts: &Facts,
    content: &Content,
    elapsed: std::time::Duration,
) -> AuditRecord {
    let duration = SignedDuration::try_from(elapsed).unwrap_or_default();
    AuditRecord {
        execution_id: frame.id,
        batch: frame.batch_place(),
        context: Arc::clone(&frame.context),
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        status: content.status,
        code: content.error.as_ref().map(|error| error.code),
        rule: facts.rule,
        approval: facts.approval.clone(),
        started_at: frame.arrived_at,
        completed_at: frame.arrived_at.checked_add(duration).unwrap_or(frame.arrived_at),
        duration: elapsed,
        attempts: facts.attempts,
        input_size: frame.call.arguments.len() as u64,
        output_size: content.size,
        enforcement: facts.enforcement.clone(),
        diagnostics: content.diagnostics.clone(),
    }
}

fn result(frame: &Frame, facts: Facts, content: Content, audit: &AuditRecord) -> ToolResult {
    ToolResult {
        call_id: Arc::clone(&audit.call_id),
        tool: Arc::clone(&audit.tool),
        status: content.status,
        output: content.output,
        content: content.parts,
        error: content.error,
        diagnostics: content.diagnostics,
        metadata: ResultMetadata {
            execution_id: frame.id,
            batch_id: audit.batch.map(|(id, _)| id),
            batch_index: audit.batch.map(|(_, index)| index),
            started_at: audit.started_at,
            completed_at: audit.completed_at,
            duration: audit.duration,
            attempts: facts.attempts,
            output_size: content.size,
            output_truncated: content.truncated,
            output_handle: content.handle,
            sandbox_id: None,
            enforcement: facts.enforcement,
            metrics: None,
            violations: Vec::new(),
            side_effects: content.side_effects,
            coercions: facts.coercions,
            correlation_id: frame.context.correlation_id.clone(),
        },
    }
}

/// What a repetition of a call with an idempotency key gets.
fn settlement(result: &ToolResult) -> Settlement {
    let approval = || {
        result
            .error
            .as_ref()?
            .data
            .as_ref()?
            .get("approvalId")?
            .as_str()
            .map(str::to_owned)
    };
    if result.metadata.attempts > 0 {
        Settlement::Result(Arc::new(result.clone()))
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
        _ => format!(
            "The call ran and ended with {}, but that could not be recorded",
            result.status
        ),
    };
    let old = result
        .diagnostics
        .take()
        .map(|old| format!("{old}; "))
        .unwrap_or_default();
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

fn last_event(frame: &Frame, result: &ToolResult) -> EventPayload {
    let duration = result.metadata.duration;
    let Some(error) = &result.error else {
        return EventPayload::Completed { duration };
    };
    match result.status {
        Status::Timeout => EventPayload::Timeout {
            timeout: frame.timeout(),
        },
        Status::Cancelled => EventPayload::Cancelled {
            code: error.code,
            message: error.message.clone(),
        },
        status => EventPayload::Failed {
            status,
            code: error.code,
            message: error.message.clone(),
            duration,
        },
    }
}
