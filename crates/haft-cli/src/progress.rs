//! The line that says what is going on, on a terminal, for whatever takes longer than a second.

use super::{show, words};
use haft::{Event, EventPayload};
use haft_core::text::one_line;
use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Quicker than this, nobody asks what is going on.
const PATIENCE: Duration = Duration::from_secs(1);
/// Clears the line that the cursor is on.
const CLEAR: &str = "\r\x1b[2K";

/// Says something for the last time, in place of the line that may be there.
pub(super) fn last_words(text: &str) {
    let mut stderr = io::stderr().lock();
    let clear = if stderr.is_terminal() { CLEAR } else { "" };
    let _ = writeln!(stderr, "{clear}{text}").and_then(|()| stderr.flush());
}

/// What is known about the calls on their way.
pub(super) struct Progress {
    /// Tool and id of each call, in call order.
    calls: Vec<(String, String)>,
    /// When each call began and ended, as time since all of them came in.
    spans: Vec<(Option<Duration>, Option<Duration>)>,
    begun: Instant,
    current: Option<String>,
    doing: String,
    done: usize,
    frame: usize,
    is_on: bool,
    is_drawn: bool,
    stopping: bool,
}

impl Progress {
    /// For these calls; on where standard error is a terminal that can move its cursor.
    pub(super) fn new(calls: Vec<(String, String)>, wanted: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        Progress {
            spans: vec![(None, None); calls.len()],
            calls,
            begun: Instant::now(),
            current: None,
            doing: String::new(),
            done: 0,
            frame: 0,
            is_on: wanted && !is_dumb && io::stderr().is_terminal(),
            is_drawn: false,
            stopping: false,
        }
    }

    /// Takes note of an event.
    pub(super) fn see(&mut self, event: &Event) {
        let index = event.batch_index.map_or(0, |index| index as usize);
        if let Some((start, end)) = self.spans.get_mut(index).filter(|_| event.execution_id.is_some()) {
            match &event.payload {
                EventPayload::Running => *start = Some(event.elapsed),
                payload if payload.is_terminal() => *end = Some(event.elapsed),
                _ => {}
            }
        }
        match &event.payload {
            EventPayload::Running => {
                let id = self.calls.get(index).map_or("", |(_, id)| id);
                self.current = Some(show::label(&event.tool, id));
                self.doing.clear();
            }
            EventPayload::InProgress { percent, message } => {
                let percent = percent.map(|percent| format!("{percent}% ")).unwrap_or_default();
                self.doing = format!("{percent}{}", one_line(message.as_deref().unwrap_or_default(), 80));
            }
            EventPayload::Output { chunk, .. } => {
                if let Some(line) = chunk.lines().rev().find(|line| !line.trim().is_empty()) {
                    self.doing = one_line(line.trim(), 80);
                }
            }
            payload if payload.is_terminal() => self.done += 1,
            _ => {}
        }
    }

    /// How long each call ran.
    pub(super) fn into_times(self) -> Vec<Option<Duration>> {
        self.spans.into_iter().map(|(start, end)| Some(end?.saturating_sub(start?))).collect()
    }

    /// From now on the calls are being stopped.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Draws the line again.
    pub(super) fn draw(&mut self) {
        if !self.is_on || self.begun.elapsed() < PATIENCE {
            return;
        }
        let width =
            terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
        self.frame = (self.frame + 1) % FRAMES.len();
        let sign = FRAMES[self.frame];
        let mut text = words::duration(self.begun.elapsed());
        if self.calls.len() > 1 {
            text = format!("{text}  {} of {} done", self.done, self.calls.len());
        }
        if let Some(current) = &self.current {
            text = format!("{text}  {current}  {}", self.doing);
        }
        if self.stopping {
            text = format!("stopping  {text}");
        }
        let text = one_line(text.trim_end(), width.saturating_sub(3).max(8));
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{CLEAR}{sign} {text}").and_then(|()| stderr.flush());
        self.is_drawn = true;
    }

    /// Takes the line away, so that something else can be said.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "{CLEAR}").and_then(|()| stderr.flush());
        }
    }
}
