//! Results in words.

use super::{
    console::{BAD, GOOD, QUIET, STRONG, UNSURE},
    layout, words,
};
use anstyle::Style;
use haft::{BatchSummary, ContentPart, Preview, Status, ToolCall, ToolResult};
use haft_core::text::{one_line, people_text};
use std::{borrow::Cow, time::Duration};

/// How many lines of a result are shown on a terminal.
const SHOWN_LINES: usize = 8;
/// Wider columns than this are not made for one long name.
const WIDEST: usize = 28;

/// Which call is meant, for a person: `slow (c2)`.
pub(super) fn label(tool: &str, id: &str) -> String {
    match id {
        "" => words::name(tool),
        id => format!("{} ({})", words::name(tool), words::name(id)),
    }
}

/// What a result says: its text, and what else is in it, by name.
pub(super) fn text(result: &ToolResult) -> String {
    let parts = result.content.iter().map(|part| match part {
        ContentPart::Text { text } => people_text(text),
        ContentPart::Image { data, mime_type } => aside("image", mime_type, data.len()),
        ContentPart::Audio { data, mime_type } => aside("audio", mime_type, data.len()),
        ContentPart::Resource { text: Some(text), .. } => people_text(text),
        ContentPart::Resource { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or(uri);
            aside("document", kind, blob.as_ref().map_or(0, String::len))
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// What a sandbox stopped and the text does not say, a line each.
pub(super) fn violations(result: &ToolResult) -> Vec<String> {
    let unsaid = result.metadata.violations.iter().filter(|violation| !violation.is_restricted());
    unsaid.map(|violation| format!("sandbox: {}", one_line(&violation.description, 500))).collect()
}

fn aside(what: &str, kind: &str, base64: usize) -> Cow<'static, str> {
    format!("[{what}, {}, {} bytes; --json has it]", one_line(kind, 80), base64 / 4 * 3).into()
}

/// What a failed call had put out before it failed, without the error itself.
pub(super) fn output_before_failure(result: &ToolResult) -> String {
    let text = text(result);
    let message =
        result.error.as_ref().map(|error| people_text(&error.message).into_owned()).unwrap_or_default();
    text.strip_prefix(&message).unwrap_or(&text).trim_start_matches('\n').to_owned()
}

fn mark(status: Status) -> (&'static str, Style) {
    match status {
        Status::Success => ("✓", GOOD),
        Status::Failed | Status::SandboxError | Status::ValidationError => ("✗", BAD),
        Status::Timeout => ("⏱", BAD),
        Status::Cancelled | Status::PermissionDenied => ("⊘", BAD),
        Status::RequiresConfirmation => ("?", UNSURE),
    }
}

/// The line about a call that stands above or beside its text.
pub(super) fn headline(result: &ToolResult) -> String {
    let (sign, style) = mark(result.status);
    let label = label(&result.tool, &result.call_id);
    let time = words::duration(result.metadata.duration);
    format!("{style}{sign}{style:#} {label}  {QUIET}{time}{QUIET:#}")
}

/// A sheet with one block for each call.
pub(super) struct Sheet {
    tool: usize,
    id: usize,
    count: usize,
    width: Option<usize>,
    lines: usize,
}

impl Sheet {
    /// For these calls, on a terminal of that width; in a pipe, or where all is wanted, nothing is cut.
    pub(super) fn new(calls: &[ToolCall], width: Option<usize>, full: bool) -> Self {
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).min(WIDEST);
        let is_narrow = layout::is_narrow(width);
        let column = |lengths: &mut dyn Iterator<Item = usize>| if is_narrow { 0 } else { widest(lengths) };
        Sheet {
            tool: column(&mut calls.iter().map(|call| words::name(&call.name).chars().count())),
            id: column(
                &mut calls
                    .iter()
                    .enumerate()
                    .map(|(index, call)| id(&call.id, index, calls.len()).chars().count()),
            ),
            count: calls.len(),
            width,
            lines: if full || width.is_none() { usize::MAX } else { SHOWN_LINES },
        }
    }

    /// The block about one call, with the time that it ran.
    pub(super) fn result(
        &self,
        result: &ToolResult,
        index: usize,
        time: Option<Duration>,
        help: Option<&str>,
    ) -> String {
        let time = time.map(words::duration).unwrap_or_default();
        let all = text(result);
        let said = if all.trim().is_empty() { "no output" } else { all.trim_end() };
        let all = [vec![said.to_owned()], violations(result)].concat().join("\n");
        self.block(
            result.status,
            &result.tool,
            &id(&result.call_id, index, self.count),
            Some(&time),
            &all,
            help,
        )
    }

    /// The block about a call that would be made.
    pub(super) fn preview(
        &self,
        call: &ToolCall,
        index: usize,
        preview: &Preview,
        help: Option<&str>,
    ) -> String {
        let (status, text) = match preview {
            Preview::Ready { summary, change, .. } => {
                (Status::Success, format!("would run: {}{}", people_text(summary), below(change.as_ref())))
            }
            Preview::NeedsApproval { summary, reason, change, .. } => {
                let (reason, summary) = (people_text(reason), people_text(summary));
                let text = format!("would ask, because {reason}: {summary}{}", below(change.as_ref()));
                (Status::RequiresConfirmation, text)
            }
            Preview::Pending { .. } => {
                (Status::RequiresConfirmation, "would wait until somebody supplies its result".to_owned())
            }
            Preview::Refused(error) => (
                error.code.status().unwrap_or(Status::Failed),
                format!("would be refused: {}", people_text(&error.message)),
            ),
        };
        self.block(status, &call.name, &id(&call.id, index, self.count), None, &text, help)
    }

    fn block(
        &self,
        status: Status,
        tool: &str,
        id: &str,
        time: Option<&str>,
        text: &str,
        help: Option<&str>,
    ) -> String {
        let (sign, style) = mark(status);
        let (tool_width, id_width) = (self.tool, self.id);
        let mut plain = format!("{:tool_width$}", words::name(tool));
        if !id.is_empty() || id_width > 0 {
            plain.push_str(&format!("  {id:id_width$}"));
        }
        if let Some(time) = time {
            plain.push_str(&if self.tool == 0 { format!("  {time}") } else { format!("  {time:>8}") });
        }
        let mut lines = text.lines();
        let first = lines.clone().next().unwrap_or_default();
        let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(plain.chars().count() + 4));
        let mut head = format!("{style}{sign}{style:#} {plain}");
        if first.chars().count() <= room {
            lines.next();
            head.push_str(&format!("  {STRONG}{first}{STRONG:#}"));
        }
        let rest: Vec<&str> = lines.collect();
        let mut out = format!("{}\n", head.trim_end());
        for line in rest.iter().take(self.lines) {
            out.push_str(&layout::indented(line, 4, self.width));
        }
        let left = rest.len().saturating_sub(self.lines);
        if left > 0 {
            let count = words::count(left, "more line");
            out.push_str(&format!("    {QUIET}… {count}; --full shows all of it{QUIET:#}\n"));
        }
        for line in help.into_iter().flat_map(str::lines) {
            out.push_str(&layout::indented(&format!("help: {line}"), 4, self.width));
        }
        out
    }
}

/// A call's own id, or its place among several where it has none.
fn id(id: &str, index: usize, count: usize) -> String {
    match id {
        "" if count > 1 => format!("#{}", index + 1),
        id => words::name(id),
    }
}

/// The last line: how many succeeded.
pub(super) fn summary(summary: &BatchSummary) -> String {
    let BatchSummary { total, succeeded, duration, .. } = summary;
    if *total == 0 {
        return "no calls, nothing to do\n".to_owned();
    }
    let style = if succeeded == total { GOOD } else { BAD };
    format!("{style}{succeeded} of {total} succeeded{style:#} in {}\n", words::duration(*duration))
}

/// What was stopped, and what never started because of that: a line each.
pub(super) fn stopped(results: &[ToolResult], after: Duration) -> Vec<String> {
    let names = |started: bool| -> Vec<String> {
        results
            .iter()
            .filter(|result| result.status == Status::Cancelled && (result.metadata.attempts > 0) == started)
            .map(|result| label(&result.tool, &result.call_id))
            .collect()
    };
    let mut lines = Vec::new();
    let (stopped, not_started) = (names(true), names(false));
    if !stopped.is_empty() {
        lines.push(format!("stopped: {} after {}", stopped.join(", "), words::duration(after)));
    }
    if !not_started.is_empty() {
        lines.push(format!("not started: {}", not_started.join(", ")));
    }
    lines
}

/// What would change, below the line that says what would be done.
fn below(change: Option<&String>) -> String {
    change.map(|change| format!("\n{}", people_text(change.trim_end()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft::prelude::*;

    /// Says a lot.
    #[derive(Deserialize, JsonSchema)]
    struct Long {
        /// How many lines.
        lines: usize,
    }

    async fn shown(lines: usize, width: Option<usize>, full: bool) -> String {
        let long = tool_fn("long", async |args: Long, _: ToolCtx| -> Result<String, ToolError> {
            Ok((1..=args.lines).map(|line| format!("this is line {line}\n")).collect())
        });
        let haft = Haft::builder().tool(long.read_only()).build().unwrap();
        let call = ToolCall::new("long", json!({"lines": lines})).with_id("c1");
        let result = haft.execute(call.clone()).await;
        let block =
            Sheet::new(&[call], width, full).result(&result, 0, Some(Duration::from_millis(12)), None);
        anstream::adapter::strip_str(&block).to_string()
    }

    #[tokio::test]
    async fn on_a_terminal_a_long_text_is_cut_and_says_so() {
        let block = shown(50, Some(80), false).await;
        assert_eq!(block.lines().next(), Some("✓ long  c1     12 ms  this is line 1"));
        assert_eq!(block.lines().last(), Some("    … 41 more lines; --full shows all of it"));
        assert_eq!(block.lines().count(), 1 + SHOWN_LINES + 1);
        assert_eq!(shown(50, Some(80), true).await.lines().count(), 50);
        assert_eq!(shown(50, None, false).await.lines().count(), 50, "in a pipe nothing is cut");
    }

    #[tokio::test]
    async fn forty_columns_are_enough() {
        let block = shown(2, Some(24), false).await;
        assert_eq!(block, "✓ long  c1  12 ms\n    this is line 1\n    this is line 2\n");
        assert_eq!(shown(0, Some(40), false).await, "✓ long  c1  12 ms  no output\n");
    }
}
