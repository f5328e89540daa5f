//! `read_output`: what did not fit into a result, by bytes, by lines, or by what matches.

use crate::{harmless, worded::Worded};
use grep_regex::RegexMatcherBuilder;
use haft_core::{
    Footprint, OutputHandle, ToolDefinition, ToolError,
    port::{FoundLines, OutputRange, OutputSearch, StoredPart},
    text::one_line,
};
use haft_sdk::{ToolCtx, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Bytes that are given where the caller does not say.
const USUAL_BYTES: u64 = 64 << 10;
/// Lines that are given where the caller does not say.
const USUAL_LINES: u64 = 200;
/// The most lines of one answer.
const MOST_LINES: u64 = 10_000;
/// What a compiled expression may take.
const REGEX_BYTES: usize = 1 << 20;
/// Room for the words around the text.
const WORDS: usize = 200;

/// Reads a stored output: a range of its bytes, some of its lines, or those that match.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// assert_eq!(typed(haft_tools::ReadOutput).definition().aliases, ["GetArtifact"]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOutput;

/// Which part of which output.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadOutputArgs {
    /// The handle that stands on a result that was cut, such as out_3f9c….
    pub handle: String,
    /// The first byte, from 0. With `length` it reads bytes; without both and without lines, from the beginning.
    #[serde(default)]
    pub offset: Option<u64>,
    /// At most so many bytes; 65536 when left out.
    #[serde(default)]
    pub length: Option<u64>,
    /// The first line, from 1. It reads whole lines, with their numbers.
    #[serde(default)]
    pub from_line: Option<u64>,
    /// At most so many lines; 200 when left out.
    #[serde(default)]
    pub max_lines: Option<u64>,
    /// Only lines that match this regular expression.
    #[serde(default)]
    pub pattern: Option<String>,
}

impl ReadOutputArgs {
    fn is_about_lines(&self) -> bool {
        self.from_line.is_some() || self.max_lines.is_some() || self.pattern.is_some()
    }
}

/// A part of an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputPart {
    /// The handle.
    pub handle: String,
    /// Bytes of the whole output.
    pub total_bytes: u64,
    /// The first byte that was read, where bytes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Where to go on; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The bytes as text. What is no text is replaced by U+FFFD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The lines, where lines were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<Line>>,
    /// The line to go on with; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_line: Option<u64>,
}

/// A line of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Without its line end.
    pub text: String,
}

impl TypedTool for ReadOutput {
    const NAME: &'static str = "read_output";
    type Args = ReadOutputArgs;
    type Output = Worded<OutputPart>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Read a stored output",
            "Reads on in the output of an earlier call that was too long for its result: a range of bytes (offset, \
             length), lines by number (from_line, max_lines), or the lines that match a regular expression (pattern).",
        );
        definition.aliases = vec!["GetArtifact".to_owned()];
    }

    fn footprint(&self, _args: &ReadOutputArgs) -> Option<Footprint> {
        Some(Footprint::default())
    }

    fn summary(&self, args: &ReadOutputArgs) -> Option<String> {
        Some(format!("Read output {}", args.handle))
    }

    fn check(&self, args: &ReadOutputArgs) -> Result<(), ToolError> {
        if args.is_about_lines() && (args.offset.is_some() || args.length.is_some()) {
            return Err(ToolError::bad_args(
                "offset and length read bytes; from_line, max_lines and pattern read lines. Give one kind",
            ));
        }
        if args.from_line == Some(0) {
            return Err(ToolError::bad_args("from_line: lines are numbered from 1"));
        }
        if args.max_lines == Some(0) || args.length == Some(0) {
            return Err(ToolError::bad_args("max_lines and length must be at least 1"));
        }
        if let Some(pattern) = &args.pattern {
            RegexMatcherBuilder::new()
                .size_limit(REGEX_BYTES)
                .build(pattern)
                .map_err(|error| ToolError::bad_args(format!("pattern: {error}")))?;
        }
        Ok(())
    }

    async fn call(&self, args: ReadOutputArgs, cx: ToolCtx) -> Result<Worded<OutputPart>, ToolError> {
        let handle = OutputHandle::from_text(args.handle.trim());
        let tenant = &cx.context().tenant;
        // The answer must fit, or it would be cut and kept as an output of its own.
        let room = cx.output_limit().saturating_sub(WORDS).max(WORDS);
        if args.is_about_lines() {
            let max_lines = args.max_lines.unwrap_or(USUAL_LINES).min(MOST_LINES);
            let search = OutputSearch {
                from_line: args.from_line.unwrap_or(1),
                pattern: args.pattern.clone(),
                max_lines: usize::try_from(max_lines).unwrap_or(usize::MAX),
                // Half of it: each line has a number before it, and may be short.
                max_bytes: room / 2,
            };
            let found = cx.outputs().search(tenant, &handle, search).await?;
            return Ok(in_lines(&args.handle, found.ok_or_else(|| missing(&args.handle))?, room));
        }
        let offset = args.offset.unwrap_or(0);
        let length = args.length.unwrap_or(USUAL_BYTES).min(room as u64);
        let part = cx.outputs().read(tenant, &handle, OutputRange { offset, length }).await?;
        Ok(in_bytes(&args.handle, offset, part.ok_or_else(|| missing(&args.handle))?))
    }
}

fn missing(handle: &str) -> ToolError {
    ToolError::failed(format!(
        "there is no output `{}`: it was never kept, or was let go because it was too old. Make the call again",
        one_line(handle, 60)
    ))
}

fn in_bytes(handle: &str, offset: u64, (mut bytes, total): StoredPart) -> Worded<OutputPart> {
    // A character that is cut at the end comes whole with the next part.
    if offset + (bytes.len() as u64) < total {
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
            Ok(_) | Err(_) => bytes.len(),
        };
        bytes.truncate(whole);
    }
    let end = offset.saturating_add(bytes.len() as u64);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let next = (end < total && !bytes.is_empty()).then_some(end);
    let note = match (bytes.is_empty(), next) {
        (true, _) => format!("[nothing there: the output has {total} bytes]"),
        (false, Some(next)) => format!("[bytes {offset} to {end} of {total}; go on with offset {next}]"),
        (false, None) => format!("[bytes {offset} to {end} of {total}: the end]"),
    };
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Worded {
        text: format!("{text}{gap}{note}"),
        value: OutputPart {
            handle: handle.to_owned(),
            total_bytes: total,
            offset: Some(offset),
            next_offset: next,
            text: Some(text),
            ..OutputPart::default()
        },
    }
}

fn in_lines(handle: &str, found: FoundLines, room: usize) -> Worded<OutputPart> {
    let FoundLines { lines, mut next_line, total } = found;
    let mut text = String::new();
    let mut kept = Vec::with_capacity(lines.len());
    for (number, bytes) in lines {
        let line = String::from_utf8_lossy(&bytes).into_owned();
        if !kept.is_empty() && text.len() + line.len() + 24 > room {
            next_line = Some(number);
            break;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number}: {line}");
        kept.push(Line { number, text: line });
    }
    let note = match (kept.is_empty(), next_line) {
        (true, _) => format!("[no line fits; the output has {total} bytes]"),
        (false, Some(next)) => format!("[there are more; go on with from_line {next}]"),
        (false, None) => "[no more lines]".to_owned(),
    };
    Worded {
        text: format!("{text}{note}"),
        value: OutputPart {
            handle: handle.to_owned(),
            total_bytes: total,
            lines: Some(kept),
            next_line,
            ..OutputPart::default()
        },
    }
}
