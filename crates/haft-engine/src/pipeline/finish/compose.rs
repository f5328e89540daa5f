//! The content of a result: what the tool gave, or why it gave nothing, cut to size and without secrets.

use crate::{
    pipeline::types::{CallRecord, OutputClaim, RunOutcome},
    ports::Ports,
    redaction::{Levels, Redaction},
};
use haft_core::{
    ContentPart, ErrorCode, ErrorInfo, OutputHandle, SideEffect, Status, ToolError, ToolOutput, ToolResult,
    ToolsMode, json_fit, port::BoxFuture, text,
};
use serde_json::Value;
use std::borrow::Cow;

/// What a result holds beside the facts.
pub(super) struct Content {
    pub(super) status: Status,
    pub(super) output: Option<Value>,
    pub(super) parts: Vec<ContentPart>,
    pub(super) error: Option<Box<ErrorInfo>>,
    pub(super) diagnostics: Option<Box<str>>,
    pub(super) side_effects: Vec<SideEffect>,
    pub(super) size: u64,
    pub(super) truncated: bool,
    pub(super) handle: Option<OutputHandle>,
    /// Bytes of its batch that its text took.
    pub(super) claimed: usize,
    pub(super) as_kept: AsKept,
}

/// Texts that were cut, as they are kept. A secret may be known only by what stands before it, and the cut may have
/// taken that away: so what is kept is redacted before it is cut, and not after.
#[derive(Default)]
pub(super) struct AsKept {
    /// In place of the first text.
    pub(super) text: Option<String>,
    /// In place of the error's words.
    pub(super) message: Option<String>,
    /// In place of the value. Boxed, because it is rare and would make every result larger to move.
    pub(super) output: Option<Box<Option<Value>>>,
}

impl AsKept {
    /// A text that is cut for a model to `limit`, as it is kept; `None` where that is no other.
    fn cut(
        ports: &Ports,
        kept: &Redaction,
        raw: &str,
        limit: usize,
        handle: Option<&OutputHandle>,
    ) -> Option<String> {
        if ports.redaction_levels.is_one || raw.len() <= limit {
            return None;
        }
        let shown = kept.model_string(raw.to_owned());
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
            claimed: 0,
            as_kept: AsKept::default(),
        }
    }
}

/// A value fits the tool's schema, and so do words where there is no value.
fn check_output(ports: &Ports, call: &CallRecord, output: &ToolOutput) -> Result<(), ToolError> {
    let Some(registered) = call.registered.get() else { return Ok(()) };
    match &output.structured {
        Some(structured) => registered.output.check(&registered.definition, structured),
        // What somebody supplies in place of the tool may be words.
        None if ports.settings.mode == ToolsMode::ParseOnly => Ok(()),
        None if registered.definition.output_schema.is_some() => {
            registered.output.check_text(&registered.definition, output.text.as_deref().unwrap_or_default())
        }
        None => Ok(()),
    }
}

/// The content of a call that was decided about here, and runs elsewhere.
const HANDED_OVER: &str = "Allowed. haft did not run it: the program that asked runs it";

/// Bytes that a note about a value that was cut may have.
const NOTE: usize = 160;

/// Shares the room of a result between its text and its value: each has half, and what the other leaves.
fn share(limit: usize, text: usize, value: usize) -> (usize, usize) {
    let half = limit / 2;
    match (text, value) {
        _ if text.saturating_add(value) <= limit => (limit - value, value),
        (_, value) if value <= half => (limit - value, value),
        (text, _) if text <= half => (text, (limit - text).saturating_sub(NOTE)),
        _ => (limit - half, half),
    }
}

/// The content of a result, or how to get it. Nearly always it is there at once, so that is not a future.
pub(super) enum Composed<'a> {
    Now(Content),
    Later(BoxFuture<'a, Content>),
}

pub(super) fn compose<'a>(
    ports: &'a Ports,
    call: &'a CallRecord,
    outcome: RunOutcome,
    levels: Levels<'a>,
) -> Composed<'a> {
    match outcome {
        RunOutcome::Returned(output) => match check_output(ports, call, &output) {
            Ok(()) => success(ports, call, output, levels),
            Err(error) => Composed::Later(Box::pin(failure(ports, call, error))),
        },
        RunOutcome::Error(error) => Composed::Later(Box::pin(failure(ports, call, error))),
        RunOutcome::Replay(result) => Composed::Now(Content::of(&result)),
        // It has no output, so there is none to fit the tool's schema.
        RunOutcome::HandedOver => success(ports, call, ToolOutput::text(HANDED_OVER), levels),
    }
}

fn success<'a>(
    ports: &'a Ports,
    call: &'a CallRecord,
    output: ToolOutput,
    levels: Levels<'a>,
) -> Composed<'a> {
    let ToolOutput { text, mut structured, mut parts, mut side_effects, keep_whole, repeats_stream } = output;
    let redaction = levels.results;
    if let Some(structured) = &mut structured {
        redaction.value(structured);
    }
    parts.iter_mut().for_each(|part| redaction.part(part));
    if !call.context.tier.records_side_effects() {
        side_effects.clear();
    }
    // They are on the record, too.
    side_effects.iter_mut().for_each(|effect| ports.redaction.side_effect(effect));
    let spooled = call.take_spool();
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
    let value_size = structured.as_ref().map_or(0, json_fit::size);
    let OutputClaim { limit, claimed } = match keep_whole {
        true => OutputClaim { limit: usize::MAX, claimed: 0 },
        false => call.claim_output(call.output_bound(), raw.len().saturating_add(value_size)),
    };
    let (text_room, value_room) = share(limit, raw.len(), value_size);
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
            claimed,
            as_kept,
        }
    };
    let fitting = fits(redaction, raw, text_room);
    match (fitting, structured) {
        (Ok(text), structured) if value_size <= value_room => {
            Composed::Now(content(text, None, false, structured, AsKept::default()))
        }
        (Ok(text), structured) => Composed::Later(Box::pin(async move {
            let whole = structured.as_ref().map(Value::to_string).unwrap_or_default();
            let handle = keep(ports, call, stored(ports, whole)).await;
            let place =
                handle.as_ref().map_or_else(String::new, |handle| format!("; read_output {handle} has it"));
            let text = format!("{text}\n... [structured output truncated: it has {value_size} bytes{place}]");
            let (structured, output) = short(ports, call, levels.kept, structured, value_room);
            content(text, handle, true, structured, AsKept { output, ..AsKept::default() })
        })),
        (Err(raw), structured) => Composed::Later(Box::pin(async move {
            let (text, kept, handle) = cut(ports, call, levels, raw, text_room).await;
            let (structured, output) = short(ports, call, levels.kept, structured, value_room);
            content(text, handle, true, structured, AsKept { text: kept, message: None, output })
        })),
    }
}

/// The value in at most so many bytes, and the same as it is kept, where that is another; nothing, where it would no
/// longer be what the tool's schema describes.
fn short(
    ports: &Ports,
    call: &CallRecord,
    redaction: &Redaction,
    value: Option<Value>,
    room: usize,
) -> (Option<Value>, Option<Box<Option<Value>>>) {
    let Some((mut value, registered)) = value.zip(call.registered.get()) else { return (None, None) };
    // What is not cut is redacted later, as it is.
    if json_fit::size(&value) <= room {
        return (Some(value), None);
    }
    let fit = |value: &Value| {
        let short = json_fit::fit(value, room)?;
        registered.output.check(&registered.definition, &short).is_ok().then_some(short)
    };
    let sent = fit(&value);
    if ports.redaction_levels.is_one {
        return (sent, None);
    }
    redaction.value(&mut value);
    let kept = fit(&value);
    (sent, Some(Box::new(kept)))
}

/// The text for a model, if it is within the limit; else the text as it was.
fn fits(redaction: &Redaction, raw: String, limit: usize) -> Result<String, String> {
    match text::model_str(&raw) {
        Cow::Borrowed(_) if raw.len() <= limit => Ok(raw),
        Cow::Owned(shown) if shown.len() <= limit => Ok(redaction.string(shown)),
        Cow::Borrowed(_) | Cow::Owned(_) => Err(raw),
    }
}

/// The text for a model, cut to the limit, and the same as it is kept. The whole is kept in the store, raw but for
/// redaction.
async fn cut(
    ports: &Ports,
    call: &CallRecord,
    levels: Levels<'_>,
    raw: String,
    limit: usize,
) -> (String, Option<String>, Option<OutputHandle>) {
    let shown = levels.results.string(text::model_str(&raw).into_owned());
    // Without a handle the result is still right; it only cannot be read on.
    let handle = keep(ports, call, stored(ports, raw.clone())).await;
    let kept = AsKept::cut(ports, levels.kept, &raw, limit, handle.as_ref());
    let cut = text::truncate(&shown, limit, handle.as_ref().map(OutputHandle::as_str));
    (cut.text.into_owned(), kept, handle)
}

/// Keeps the whole of an output that is cut, where the caller's tier includes that.
async fn keep(ports: &Ports, call: &CallRecord, whole: String) -> Option<OutputHandle> {
    match call.context.tier.keeps_whole_outputs() {
        true => ports.store.keep_output(&call.context.tenant, whole.into_bytes()).await.ok(),
        false => None,
    }
}

/// A text of a result as it is stored.
fn stored(ports: &Ports, text: String) -> String {
    // Where results are redacted, this one was.
    match ports.redaction_levels.results.0 {
        Some(_) => text,
        None => ports.redaction_levels.stored.string(text),
    }
}

/// Facts that a kind of error always has, for programs that do not read its words.
fn with_facts(call: &CallRecord, error: ToolError) -> ToolError {
    let elapsed = || call.metadata().duration.as_millis() as u64;
    match error.code {
        ErrorCode::Timeout => error.with_fact("tool", &**call.tool_name()).with_fact("elapsedMs", elapsed()),
        ErrorCode::ExecutionFailed | ErrorCode::ToolNotFound => error.with_fact("tool", &**call.tool_name()),
        _ => error,
    }
}

async fn failure(ports: &Ports, call: &CallRecord, error: ToolError) -> Content {
    let error = with_facts(call, error);
    let spooled = call.take_spool();
    let size = spooled.as_ref().map_or(0, |(_, total)| *total);
    let ToolError { code, message, diagnostics, mut problems, mut data } = error;
    let redaction = &ports.redaction_levels.results;
    problems.iter_mut().for_each(|problem| redaction.problem(problem));
    if let Some(data) = &mut data {
        redaction.value(data);
    }
    let kept = spooled.as_ref().map_or(0, |(bytes, _)| bytes.len());
    // With room for the tool's name and the words around it.
    let wanted = shown_length(message.len() + kept) + call.tool_name().len() + 64;
    let OutputClaim { limit, claimed } = call.claim_output(call.output_bound(), wanted);
    // The tool's own words, or those of the service behind it.
    let is_said =
        matches!(code, ErrorCode::ExecutionFailed | ErrorCode::UpstreamUnavailable | ErrorCode::RateLimited);
    let passes = is_said && is_json_object(&message);
    let mut as_kept = AsKept::default();
    let (message, shown, handle, truncated) = if passes {
        pass_through(ports, call, redaction.string(message), limit).await
    } else {
        let message = match code {
            ErrorCode::ExecutionFailed => format!("{} failed: {message}", call.tool_name()),
            _ => message,
        };
        as_kept.message = AsKept::cut(ports, &ports.redaction, &message, limit, None);
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
                let (shown, kept, handle) = cut(ports, call, ports.levels(), raw, limit).await;
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
        claimed,
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
    call: &CallRecord,
    json: String,
    limit: usize,
) -> (String, String, Option<OutputHandle>, bool) {
    if json.len() <= limit {
        return (json.clone(), json, None, false);
    }
    let length = json.len();
    let handle = keep(ports, call, stored(ports, json)).await;
    let place =
        handle.as_ref().map_or_else(String::new, |handle| format!("; read it with read_output {handle}"));
    let text = format!("{} failed with a JSON error of {length} bytes{place}", call.tool_name());
    let text = text::truncate(&text, limit, None).text.into_owned();
    (text.clone(), text, handle, true)
}
