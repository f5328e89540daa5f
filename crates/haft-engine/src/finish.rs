//! Finish: check the output, fit it to size, write the record, send the last event. Here and nowhere else.

use crate::{engine::Inner, frame::Frame, plan::Exit, ports::Ports, redaction::Redaction, telemetry};
use haft_core::{
    ContentPart, ErrorCode, ErrorInfo, EventPayload, OutputHandle, ResultMetadata, Status, ToolError,
    ToolOutput, ToolResult, ToolsMode, Violation,
    port::{AuditRecord, BoxFuture, Outcome, Settlement, StoreError},
    text,
};
use serde_json::Value;
use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
};

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
    let content = match compose(&engine.ports, frame, raw) {
        Composed::Now(content) => content,
        Composed::Later(content) => content.await,
    };
    let content = say_edited(&engine.ports, frame, content);
    // From here to the store nothing waits. So whoever drops this future drops it before the call has ended, or
    // after, and then `Last` still sends the last event.
    let (recorded, last) = record(engine, frame, content);
    last.end(recorded.await)
}

/// A model that does not know that a person changed its call goes on from what it sent.
fn say_edited(ports: &Ports, frame: &Frame, mut content: Content) -> Content {
    if let Some(edited) = frame.edited_arguments() {
        let edited = ports.redaction.arguments(&edited);
        let said = format!("A person changed the arguments of this call to {}", edited.as_str());
        content.parts.push(ContentPart::text(text::truncate(&said, 4096, None).text.into_owned()));
    }
    content
}

/// Files that a sandbox moved away after the programs ended: neither the model nor a person sees that in what they put out.
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
    engine: &'a Inner,
    frame: &'a Frame,
    content: Content,
) -> (BoxFuture<'a, Result<(), StoreError>>, Last<'a>) {
    frame.finished.store(true, Ordering::Release);
    if engine.ports.settings.mode == ToolsMode::ParseOnly {
        engine.parked.forget(frame.id);
    }
    let mut facts = std::mem::take(&mut *frame.facts());
    let code = content.error.as_ref().map(|error| error.code);
    let attempts = facts.take_attempts(code);
    let mut parts = content.parts;
    parts.extend(say_restricted(&engine.ports, &attempts.violations));
    let audit = AuditRecord {
        context: Arc::clone(&frame.context),
        call_id: Arc::clone(&frame.call.id),
        tool: Arc::clone(frame.tool_name()),
        status: content.status,
        code,
        rule: facts.rule,
        approval: facts.approval,
        input_size: frame.arguments().len() as u64,
        diagnostics: content.diagnostics.clone(),
        metadata: Arc::new(ResultMetadata {
            side_effects: content.side_effects,
            output_size: content.size,
            output_truncated: content.truncated,
            output_handle: content.handle,
            attempts: facts.attempts,
            attempt_records: attempts.records,
            enforcement: facts.enforcement,
            sandbox_id: attempts.sandbox,
            metrics: attempts.metrics,
            violations: attempts.violations,
            coercions: facts.coercions,
            scheduling: facts.scheduling,
            ..frame.metadata()
        }),
        hashes: None,
    };
    let as_kept = content.as_kept;
    let result = ToolResult {
        call_id: Arc::clone(&audit.call_id),
        tool: Arc::clone(&audit.tool),
        status: content.status,
        output: content.output,
        content: parts,
        error: content.error,
        diagnostics: content.diagnostics,
        metadata: Arc::clone(&audit.metadata),
    };
    let settles = facts.claim.map(|claim| (*claim, settlement(&engine.ports, &result)));
    let wants = engine.ports.wants;
    // A store that keeps results gets its own; the caller's may still change if this cannot be recorded.
    // Whatever the licence keeps: the record has their hashes.
    let to_keep = || Arc::new(kept(&engine.ports, &result, &as_kept));
    let kept = wants.results.then(to_keep);
    let arguments = wants.results.then(|| engine.ports.redaction.arguments(&frame.arguments()));
    let had_intent = facts.had_intent;
    // A task has its result from the store alone, whatever else is kept.
    let task = frame.task.as_ref().map(|task| (task.id.clone(), kept.clone().unwrap_or_else(to_keep)));
    let outcome = Outcome { audit, arguments, had_intent, result: kept, settles, task };
    let recorded = engine.ports.store.outcome(outcome);
    (recorded, Last { engine, frame, result: Some(result), message: as_kept.message })
}

/// Sends the last event, when it is asked to or when it is dropped, whichever comes first.
struct Last<'a> {
    engine: &'a Inner,
    frame: &'a Frame,
    result: Option<ToolResult>,
    /// The error's words as they are kept, where they are others.
    message: Option<String>,
}

impl Last<'_> {
    fn end(mut self, recorded: Result<(), StoreError>) -> ToolResult {
        // It was put there when this was made, and only this takes it.
        let Some(mut result) = self.result.take() else { unreachable!("a call ends once") };
        match recorded {
            Ok(()) if self.engine.ports.wants.results => self.engine.counters.stored(),
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
        let frame = self.frame;
        frame.settle_output(result.text().len());
        if let Some(registered) = frame.registered.get() {
            let facts = &result.metadata;
            registered.count(&frame.context.tenant, result.status, facts.duration, facts.output_size);
        }
        self.engine.counters.call(result);
        telemetry::ended(&self.engine.ports.redaction, frame, result);
        frame.emit_at(
            frame.waited() + result.metadata.duration,
            last_event(&self.engine.ports, frame, result, self.message.as_ref()),
        );
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
    as_kept: AsKept,
}

/// Texts that were cut, as they are kept. A secret may be known only by what stands before it, and the cut may have taken that
/// away: so what is kept is redacted before it is cut, and not after.
#[derive(Default)]
struct AsKept {
    /// In place of the first text.
    text: Option<String>,
    /// In place of the error's words.
    message: Option<String>,
}

impl AsKept {
    /// A text that is cut for a model to `limit`, as it is kept; `None` where that is no other.
    fn cut(ports: &Ports, raw: &str, limit: usize, handle: Option<&OutputHandle>) -> Option<String> {
        if ports.strengths.is_one || raw.len() <= limit {
            return None;
        }
        let shown = ports.redaction.model_string(raw.to_owned());
        Some(text::truncate(&shown, limit, handle.map(OutputHandle::as_str)).text.into_owned())
    }
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
            as_kept: AsKept::default(),
        }
    }
}

/// Words alone are an answer, too: the schema speaks about the structured value.
fn check_output(frame: &Frame, output: &ToolOutput) -> Result<(), ToolError> {
    match (frame.registered.get(), &output.structured) {
        (Some(registered), Some(structured)) => registered.output.check(&registered.definition, structured),
        _ => Ok(()),
    }
}

/// The content of a result, or how to get it. Nearly always it is there at once, so that is not a future.
enum Composed<'a> {
    Now(Content),
    Later(BoxFuture<'a, Content>),
}

fn compose<'a>(ports: &'a Ports, frame: &'a Frame, raw: Raw) -> Composed<'a> {
    match raw {
        Raw::Returned(output) => match check_output(frame, &output) {
            Ok(()) => success(ports, frame, output),
            Err(error) => Composed::Later(Box::pin(failure(ports, frame, error))),
        },
        Raw::Error(error) => Composed::Later(Box::pin(failure(ports, frame, error))),
        Raw::Replay(result) => Composed::Now(Content::of(&result)),
    }
}

fn success<'a>(ports: &'a Ports, frame: &'a Frame, output: ToolOutput) -> Composed<'a> {
    let ToolOutput { text, mut structured, mut parts, mut side_effects, keep_whole, repeats_stream } = output;
    let redaction = &ports.strengths.results;
    if let Some(structured) = &mut structured {
        redaction.value(structured);
    }
    parts.iter_mut().for_each(|part| redaction.part(part));
    if !frame.context.tier.records_side_effects() {
        side_effects.clear();
    }
    // They are on the record, too.
    side_effects.iter_mut().for_each(|effect| ports.redaction.side_effect(effect));
    let spooled = frame.take_spool();
    let streamed = spooled.as_ref().map_or(0, |(_, total)| *total);
    let (raw, returned) = match (text, &structured, spooled) {
        (Some(text), _, _) => (redaction.string(text), true),
        (None, Some(structured), _) => (structured.to_string(), true),
        (None, None, Some((bytes, _))) => (String::from_utf8_lossy(&bytes).into_owned(), false),
        (None, None, None) => (String::new(), true),
    };
    let size = match (returned, repeats_stream) {
        (true, false) => raw.len() as u64 + streamed,
        (true, true) => streamed.max(raw.len() as u64),
        (false, _) => streamed,
    };
    let limit = if keep_whole { usize::MAX } else { frame.claim_output(raw.len()) };
    let content = move |text: String, handle, truncated, output, as_kept| {
        let mut content = Vec::with_capacity(1 + parts.len());
        if !text.is_empty() || parts.is_empty() {
            content.push(ContentPart::Text { text });
        }
        content.extend(parts);
        Content {
            status: Status::Success,
            output,
            parts: content,
            error: None,
            diagnostics: None,
            side_effects,
            size,
            truncated,
            handle,
            as_kept,
        }
    };
    match fits(redaction, raw, limit) {
        Ok(text) => Composed::Now(content(text, None, false, structured, AsKept::default())),
        Err(raw) => Composed::Later(Box::pin(async move {
            let (text, kept, handle) = cut(ports, frame, raw, limit).await;
            // A value that a model could not take is not sent to one; the whole is behind the handle.
            let structured = structured.filter(|_| frame.capacity() == usize::MAX);
            content(text, handle, true, structured, AsKept { text: kept, message: None })
        })),
    }
}

/// The text for a model, if it is within the limit; else the text as it was.
fn fits(redaction: &Redaction, raw: String, limit: usize) -> Result<String, String> {
    match text::model_str(&raw) {
        Cow::Borrowed(_) if raw.len() <= limit => Ok(raw),
        Cow::Owned(shown) if shown.len() <= limit => Ok(redaction.string(shown)),
        Cow::Borrowed(_) | Cow::Owned(_) => Err(raw),
    }
}

/// The text for a model, cut to the limit, and the same as it is kept. The whole is kept in the store, raw but for redaction.
async fn cut(
    ports: &Ports,
    frame: &Frame,
    raw: String,
    limit: usize,
) -> (String, Option<String>, Option<OutputHandle>) {
    let shown = ports.strengths.results.string(text::model_str(&raw).into_owned());
    // Without a handle the result is still right; it only cannot be read on.
    let handle = keep(ports, frame, stored(ports, raw.clone())).await;
    let kept = AsKept::cut(ports, &raw, limit, handle.as_ref());
    let cut = text::truncate(&shown, limit, handle.as_ref().map(OutputHandle::as_str));
    (cut.text.into_owned(), kept, handle)
}

/// Keeps the whole of an output that is cut, where the caller's tier includes that.
async fn keep(ports: &Ports, frame: &Frame, whole: String) -> Option<OutputHandle> {
    match frame.context.tier.keeps_whole_outputs() {
        true => ports.store.keep_output(&frame.context.tenant, whole.into_bytes()).await.ok(),
        false => None,
    }
}

/// A text of a result as it is stored.
fn stored(ports: &Ports, text: String) -> String {
    // Where results are redacted, this one was.
    match ports.strengths.results.0 {
        Some(_) => text,
        None => ports.strengths.stored.string(text),
    }
}

async fn failure(ports: &Ports, frame: &Frame, error: ToolError) -> Content {
    let spooled = frame.take_spool();
    let size = spooled.as_ref().map_or(0, |(_, total)| *total);
    let ToolError { code, message, diagnostics, mut problems, mut data } = error;
    let redaction = &ports.strengths.results;
    problems.iter_mut().for_each(|problem| redaction.problem(problem));
    if let Some(data) = &mut data {
        redaction.value(data);
    }
    let kept = spooled.as_ref().map_or(0, |(bytes, _)| bytes.len());
    // With room for the tool's name and the words around it.
    let limit = frame.claim_output(shown_length(message.len() + kept) + frame.tool_name().len() + 64);
    let passes = code == ErrorCode::ExecutionFailed && is_json_object(&message);
    let mut as_kept = AsKept::default();
    let (message, shown, handle, truncated) = if passes {
        pass_through(ports, frame, redaction.string(message), limit).await
    } else {
        let message = match code {
            ErrorCode::ExecutionFailed => format!("{} failed: {message}", frame.tool_name()),
            _ => message,
        };
        as_kept.message = AsKept::cut(ports, &message, limit, None);
        let message = text::truncate(&redaction.model_string(message), limit, None).text.into_owned();
        // What a program said before it failed is the most useful part of its failure.
        let shown = match spooled {
            Some((bytes, _)) if !bytes.is_empty() => {
                format!("{message}\n\n{}", String::from_utf8_lossy(&bytes))
            }
            _ => message.clone(),
        };
        let (shown, handle, truncated) = match fits(redaction, shown, limit) {
            Ok(shown) => (shown, None, false),
            Err(raw) => {
                let (shown, kept, handle) = cut(ports, frame, raw, limit).await;
                as_kept.text = kept;
                (shown, handle, true)
            }
        };
        // Without output, the words of the error are all there is.
        as_kept.text = as_kept.text.or_else(|| as_kept.message.clone());
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
        diagnostics: diagnostics.map(|said| ports.redaction.string(said).into()),
        side_effects: Vec::new(),
        size,
        truncated,
        handle,
        as_kept,
    }
}

/// The most bytes that so many become: one that is no text is shown by a character of three.
fn shown_length(bytes: usize) -> usize {
    bytes.saturating_mul(3)
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
    let handle = keep(ports, frame, stored(ports, json)).await;
    let place =
        handle.as_ref().map_or_else(String::new, |handle| format!("; read it with read_output {handle}"));
    let text = format!("{} failed with a JSON error of {length} bytes{place}", frame.tool_name());
    let text = text::truncate(&text, limit, None).text.into_owned();
    (text.clone(), text, handle, true)
}

/// A result as it is kept.
fn kept(ports: &Ports, result: &ToolResult, as_kept: &AsKept) -> ToolResult {
    let mut kept = result.clone();
    if ports.strengths.is_one {
        return kept;
    }
    if let (Some(text), Some(ContentPart::Text { text: cut })) = (&as_kept.text, kept.content.first_mut()) {
        cut.clone_from(text);
    }
    if let (Some(message), Some(error)) = (&as_kept.message, &mut kept.error) {
        error.message.clone_from(message);
    }
    ports.redaction.result(kept)
}

/// What a repetition of a call with an idempotency key gets.
fn settlement(ports: &Ports, result: &ToolResult) -> Settlement {
    let approval = || result.error.as_ref()?.data.as_ref()?.get("approvalId")?.as_str().map(str::to_owned);
    if result.metadata.attempts > 0 {
        // It is what the first caller got, unless that went out as it is.
        Settlement::Result(Arc::new(match ports.strengths.results.0 {
            Some(_) => result.clone(),
            None => ports.strengths.stored.result(result.clone()),
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

fn last_event(ports: &Ports, frame: &Frame, result: &ToolResult, as_kept: Option<&String>) -> EventPayload {
    let duration = result.metadata.duration;
    let Some(error) = &result.error else {
        return EventPayload::Completed { duration };
    };
    let message = || ports.redaction.string(as_kept.unwrap_or(&error.message).clone());
    match result.status {
        Status::Timeout => EventPayload::Timeout { timeout: frame.timeout() },
        Status::Cancelled => EventPayload::Cancelled { code: error.code, message: message() },
        status => EventPayload::Failed { status, code: error.code, message: message(), duration },
    }
}
