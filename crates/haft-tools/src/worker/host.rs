//! The side outside of the jail: starts the worker, answers what it asks, takes what it found.

use super::{
    inside::MARK,
    wire::{self, Answer, Failure, Job, MOST_LINE, Purpose, Said},
};
use haft_core::{
    ErrorCode, IsolationLevel, OutputStream, ToolError, ToolOutput,
    port::{GuestControl, GuestEnd, GuestSpec, GuestStdin, OutputSink, Preset},
};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{ChangeSet, Changed, Reader},
};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// What of a worker's complaints is kept.
const MOST_SAID: usize = 4 * 1024;

/// A call, as a worker takes it.
pub(super) fn job<T: TypedTool + Serialize>(
    tool: &T,
    args: &T::Args,
    cx: &ToolCtx,
    purpose: Purpose,
) -> Result<Job, ToolError>
where
    T::Args: Serialize,
{
    let json = |error: serde_json::Error| wire::unreadable(&error);
    Ok(Job {
        tool: T::NAME.to_owned(),
        settings: serde_json::to_value(tool).map_err(json)?,
        arguments: serde_json::to_value(args).map_err(json)?,
        purpose,
        files: cx.workspace().for_worker()?,
        execution_id: cx.execution_id(),
        attempt: cx.attempt(),
        timeout: cx.timeout(),
        output_limit: cx.output_limit(),
        capacity: cx.capacity(),
        limits: cx.file_limits(),
    })
}

/// This program again, in a jail that shows it the roots and nothing else, read-only.
fn spec(cx: &ToolCtx) -> Result<GuestSpec, ToolError> {
    let own = std::env::current_exe().ok().filter(|path| path.is_file());
    let own = own.as_ref().and_then(|path| path.to_str()).ok_or_else(|| {
        let text =
            "the program of haft is not where it was started from, so no worker can be started: restart haft";
        ToolError::new(ErrorCode::SandboxCreationFailed, text)
    })?;
    let template = cx.commands().template();
    Ok(GuestSpec {
        argv: vec![own.to_owned(), MARK.to_owned()],
        stdin: GuestStdin::Stream,
        readable: template.readable.iter().chain(&template.writable).cloned().collect(),
        working_dir: template.working_dir.clone(),
        denied: template.denied.clone(),
        presets: vec![Preset::Worker],
        limits: template.limits.clone(),
        grace: template.grace,
        level: IsolationLevel::None,
        ..GuestSpec::default()
    })
}

/// Runs a job in a worker of its own.
pub(super) async fn run(job: Job, cx: &ToolCtx) -> Result<ToolOutput, ToolError> {
    let first = wire::line(&job)?;
    let mut guest = cx.start_worker(spec(cx)?).await?;
    let (sandbox, by, control) =
        (guest.sandbox_id().to_owned(), guest.enforcement().clone(), guest.control());
    let (heard, mut lines) = mpsc::channel(1);
    let said = Arc::new(Mutex::new(Vec::new()));
    let mut ending = guest.wait(sink(heard, Arc::clone(&said), Arc::clone(&control)));
    let mut done = None;
    let mut changed = Vec::new();
    let mut next = Some(first);
    let end = loop {
        let answers = next.is_some();
        let line = next.take().unwrap_or_default();
        tokio::select! {
            biased;
            end = &mut ending => break end,
            _ = cx.cancelled() => {
                control.stop();
                break ending.await;
            }
            written = control.write(&line), if answers => drop(written),
            // What is said after the end is not listened to.
            Some(line) = lines.recv(), if !answers && done.is_none() => match answer(&line, cx).await? {
                Reply::Answer(answer) => {
                    next = Some(wire::line(&answer)?);
                    if let Answer::Changed(more) = answer {
                        changed.extend(more);
                    }
                }
                Reply::Done(result) => {
                    done = Some(result);
                    control.close_stdin();
                }
            },
        }
    }?;
    cx.note_end(&sandbox, &by, &end);
    // Its last word may have come together with its end.
    if let (None, Ok(line)) = (&done, lines.try_recv()) {
        done = last_word(&line);
    }
    let output = outcome(done, &end, &said.lock().unwrap_or_else(PoisonError::into_inner))?;
    Ok(believable(output, &changed, cx.capacity()))
}

/// An output without what a worker cannot know better than haft: what was changed, and how much reaches the caller.
fn believable(mut output: ToolOutput, changed: &[Changed], capacity: usize) -> ToolOutput {
    output.side_effects.retain(|effect| changed.iter().any(|changed| changed.place.path == effect.resource));
    output.keep_whole &= output.text.as_ref().is_none_or(|text| text.len() <= capacity);
    output
}

/// What a worker came to. One that a limit ended, or that ended without a word, came to nothing.
fn outcome(
    done: Option<Result<ToolOutput, ToolError>>,
    end: &GuestEnd,
    said: &[u8],
) -> Result<ToolOutput, ToolError> {
    match (done, &end.exceeded) {
        (Some(result), None) => result,
        (_, Some(over)) => Err(over.error()),
        (None, None) => {
            let text = "The worker in a jail ended before the tool did";
            let how = format!(
                "exit {:?}, signal {:?}: {}",
                end.exit_code,
                end.signal,
                String::from_utf8_lossy(said)
            );
            Err(ToolError::new(ErrorCode::SandboxCrashed, text).with_diagnostics(how))
        }
    }
}

/// Takes lines. A worker that talks out of turn, or without end, is ended: it is not what was started.
fn sink(
    heard: mpsc::Sender<Vec<u8>>,
    said: Arc<Mutex<Vec<u8>>>,
    control: Arc<dyn GuestControl>,
) -> OutputSink {
    let begun = Mutex::new(Vec::new());
    Arc::new(move |stream, bytes| {
        if stream == OutputStream::Stderr {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_SAID.saturating_sub(said.len()).min(bytes.len());
            said.extend_from_slice(&bytes[..room]);
            return;
        }
        let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(piece);
            let is_whole = piece.ends_with(b"\n");
            if begun.len() > MOST_LINE || (is_whole && heard.try_send(std::mem::take(&mut *begun)).is_err()) {
                begun.clear();
                control.kill();
                return;
            }
        }
    })
}

enum Reply {
    Answer(Answer),
    Done(Result<ToolOutput, ToolError>),
}

/// What a worker said before it ended, where that was its result: a question is not answered any more.
fn last_word(line: &[u8]) -> Option<Result<ToolOutput, ToolError>> {
    match serde_json::from_slice(line) {
        Ok(Said::Done(result)) => Some(result.map(ToolOutput::from).map_err(ToolError::from)),
        _ => None,
    }
}

/// Does what a worker asks for, in the name of the call and of nobody else.
async fn answer(line: &[u8], cx: &ToolCtx) -> Result<Reply, ToolError> {
    let said: Said = serde_json::from_slice(line).map_err(|error| wire::unreadable(&error))?;
    let reader = Reader::of(cx.context());
    let answered = match said {
        Said::Done(result) => {
            return Ok(Reply::Done(result.map(ToolOutput::from).map_err(ToolError::from)));
        }
        Said::LastRead(place) => {
            cx.blocking(move |cx| cx.workspace().last_read(&reader, &place)).await.map(Answer::LastRead)
        }
        Said::Remember { place, sha256 } => {
            let remembered = cx.blocking(move |cx| cx.workspace().remember(&reader, &place, &sha256)).await;
            remembered.map(|()| Answer::Remembered)
        }
        Said::Change { summary, changes } => {
            // The last moment at which stopping leaves everything as it was.
            cx.check_cancelled()?;
            let set = ChangeSet { by: cx.execution_id(), reader, summary, changes };
            cx.blocking(move |cx| cx.workspace().change(set)).await.map(Answer::Changed)
        }
        Said::WithoutSecrets(bytes) => Ok(Answer::Bytes(cx.without_secrets(bytes))),
    };
    Ok(Reply::Answer(answered.unwrap_or_else(|error| Answer::Refused(Failure::from(error)))))
}
