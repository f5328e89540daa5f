//! `read_file`: the text of a file, or of some of its lines; of other files, their bytes in base64.

use super::{
    Told,
    encoding::{Decoded, Encoding, SNIFFED_BYTES, decode, looks_binary},
    line_range::{LineScan, ScanLimits, ScanTrouble},
    output::IntoValue,
    reading,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_core::{Footprint, Resource, ToolDefinition, ToolError};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{FileReader, Reader},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{
    fmt::Write as _,
    io::{self, Read as _},
};

/// The largest file whose hash is taken. What has no hash cannot be edited: nobody would notice that it changed.
const MAX_HASHED_BYTES: u64 = 64 << 20;
const PIECE_BYTES: usize = 128 * 1024;
const BINARY: &str = "[binary:base64]";
const BINARY_CUT: &str = "[binary:base64][truncated]";

/// Reads a file.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let tool = typed(haft_tools::ReadFile::default());
/// assert_eq!(tool.definition().aliases, ["ReadFile", "Read"]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadFile {
    /// The most bytes that are given back at once.
    pub max_file_read_bytes: usize,
    /// The most bytes that are looked at to find lines.
    pub max_scan_bytes: usize,
}

impl Default for ReadFile {
    fn default() -> Self {
        ReadFile { max_file_read_bytes: 200 * 1024, max_scan_bytes: 2 * 1024 * 1024 }
    }
}

/// What to read.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFileArgs {
    /// The file, relative to the working folder.
    pub path: String,
    /// The first line to read, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub start_line: Option<u32>,
    /// The last line to read.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub end_line: Option<u32>,
    /// How its text is written. When left out, UTF-8 text is recognised, and anything else is given in base64.
    #[serde(default)]
    pub encoding: Option<Encoding>,
    /// Whether each line begins with its number.
    #[serde(default)]
    pub show_line_numbers: bool,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// Its text, or its bytes in base64.
    pub content: String,
    /// How many bytes the whole file has.
    pub size: u64,
    /// `utf-8`, `ascii`, `utf-16`, or `base64` for what is not text.
    pub encoding: String,
    /// SHA-256 of the whole file, for `expected_sha256` of the tools that change files. Not taken of very large files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Which lines these are, where lines were asked for and there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// Whether there is more: of bytes in base64, only the first ones may be there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Whether some bytes were not of the encoding; U+FFFD stands for each.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
}

/// Lines, from 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineRange {
    /// The first one.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl IntoValue for FileContent {
    fn into_value(mut self) -> serde_json::Result<Value> {
        let content = std::mem::take(&mut self.content);
        let mut value = serde_json::to_value(self)?;
        value["content"] = Value::String(content);
        Ok(value)
    }
}

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    type Args = ReadFileArgs;
    type Output = Told<FileContent>;

    fn define(&self, definition: &mut ToolDefinition) {
        reading(
            definition,
            "Read file",
            "Reads a file, or the lines start_line to end_line of it, as it is. What is not text is given in base64. \
             A file has to be read before it can be edited.",
            &["ReadFile", "Read"],
        );
    }

    fn footprint(&self, args: &ReadFileArgs) -> Option<Footprint> {
        Some(Footprint::reads([Resource::path(args.path.as_str())]))
    }

    fn summary(&self, args: &ReadFileArgs) -> Option<String> {
        let lines = match (args.start_line, args.end_line) {
            (None, None) => String::new(),
            (first, None) => format!(" [lines {}-]", first.unwrap_or(1)),
            (first, Some(last)) => format!(" [lines {}-{last}]", first.unwrap_or(1)),
        };
        Some(format!("Read {}{lines}", args.path))
    }

    async fn call(&self, args: ReadFileArgs, cx: ToolCtx) -> Result<Told<FileContent>, ToolError> {
        let tool = self.clone();
        cx.blocking(move |cx| tool.read(&args, cx)).await
    }
}

/// What was read of a file.
struct Read {
    content: FileContent,
    is_binary: bool,
    /// How many lines the file has, where none of those that were asked for is there.
    only_lines: Option<u64>,
    /// The first line of the private key that the lines begin within.
    open_key: Option<String>,
}

impl ReadFile {
    fn read(&self, args: &ReadFileArgs, cx: &ToolCtx) -> Result<Told<FileContent>, ToolError> {
        check(args)?;
        let open = cx.workspace().open(&args.path)?;
        let mut source = Source { file: open.file, hash: Hash::default(), cx };
        let read = match (args.start_line, args.end_line) {
            (None, None) => self.whole(&mut source, open.len, args.encoding)?,
            (first, last) => {
                self.lines(&mut source, u64::from(first.unwrap_or(1)), last.map(u64::from), args.encoding)?
            }
        };
        let Read { mut content, is_binary, only_lines, open_key } = read;
        content.size = source.hash.total.max(open.len);
        if let Some(sha256) = source.hash.finish() {
            content.size = sha256.1;
            cx.workspace().remember(&Reader::of(cx.context()), &open.place, &sha256.0)?;
            content.sha256 = Some(sha256.0);
        }
        let mut text = told(args, &content, is_binary, only_lines);
        // Lines of a key are known by its first one: with that before them they are taken out with it.
        if let Some(head) = open_key {
            text.insert_str(0, &format!("{head}\n"));
            content.content.insert_str(0, &format!("{head}\n"));
        }
        // Its own limit is in place of the general one. Numbers before the lines may make it longer than a model can take.
        let keep_whole = is_binary || text.len() <= cx.capacity();
        Ok(Told { value: content, text, keep_whole })
    }

    fn limit(&self, cx: &ToolCtx) -> usize {
        self.max_file_read_bytes.min(cx.capacity())
    }

    fn whole(
        &self,
        source: &mut Source<'_>,
        len: u64,
        encoding: Option<Encoding>,
    ) -> Result<Read, ToolError> {
        let limit = self.limit(source.cx);
        // One more than may be: it tells whether there is more. At least enough to tell text from other bytes.
        let most = limit.saturating_add(1).max(SNIFFED_BYTES + 1);
        let bytes = source.take(most, usize::try_from(len).unwrap_or(usize::MAX))?;
        let is_all = bytes.len() < most;
        let too_large = || {
            ToolError::failed(format!(
                "File too large; use start_line/end_line ({len} bytes, and at most {limit} are read at once)"
            ))
        };
        if encoding.is_none() && looks_binary(&bytes, is_all) {
            return self.binary(source, bytes, is_all);
        }
        if bytes.len() > limit {
            return Err(too_large());
        }
        let used = encoding.unwrap_or(Encoding::Utf8);
        refuse_odd(used, bytes.len())?;
        let Decoded { text, is_lossy } = match encoding {
            None => match String::from_utf8(bytes) {
                Ok(text) => Decoded { text, is_lossy: false },
                // The start looked like text, and the rest is not.
                Err(error) => return self.binary(source, error.into_bytes(), is_all),
            },
            Some(encoding) => decode(bytes, encoding),
        };
        if text.len() > limit {
            return Err(too_large());
        }
        let content = FileContent { lossy: is_lossy, ..plain(text, used.as_str()) };
        Ok(Read { content, is_binary: false, only_lines: None, open_key: None })
    }

    /// Bytes in base64, as many as fit into the output with their header.
    fn binary(&self, source: &mut Source<'_>, mut bytes: Vec<u8>, is_all: bool) -> Result<Read, ToolError> {
        let limit = source.cx.capacity();
        // Before they are encoded: nothing finds a secret in base64.
        bytes = source.cx.without_secrets(bytes);
        let fits = |header: &str| limit.checked_sub(header.len() + 1).map(|left| left / 4 * 3);
        let room = |header| fits(header).map(|room| room.min(self.max_file_read_bytes));
        let truncated = !is_all || room(BINARY).is_none_or(|room| bytes.len() > room);
        if truncated {
            let Some(room) = room(BINARY_CUT) else {
                return Err(ToolError::failed(format!(
                    "output budget too small: {limit} bytes are left, and this file is not text"
                )));
            };
            bytes.truncate(room);
        }
        source.rest()?;
        let content = FileContent { truncated, ..plain(STANDARD.encode(&bytes), "base64") };
        Ok(Read { content, is_binary: true, only_lines: None, open_key: None })
    }

    fn lines(
        &self,
        source: &mut Source<'_>,
        first: u64,
        last: Option<u64>,
        encoding: Option<Encoding>,
    ) -> Result<Read, ToolError> {
        let limits = ScanLimits { scanned: self.max_scan_bytes, kept: self.limit(source.cx) };
        let (bytes, seen, open_key, used, is_lossy) = match encoding {
            Some(Encoding::Utf16) => {
                let raw = source.take(self.max_scan_bytes.saturating_add(1), PIECE_BYTES)?;
                let is_all = raw.len() <= self.max_scan_bytes;
                if is_all {
                    refuse_odd(Encoding::Utf16, raw.len())?;
                }
                let Decoded { text, is_lossy } = decode(raw, Encoding::Utf16);
                let mut scan = LineScan::new(first, last, ScanLimits { scanned: usize::MAX, ..limits });
                scan.feed(text.as_bytes()).map_err(|trouble| self.trouble(trouble, limits))?;
                if !is_all && !scan.is_done() {
                    return Err(self.trouble(ScanTrouble::TooFar, limits));
                }
                let open_key = scan.open_key();
                let (kept, seen) = scan.finish();
                (kept, seen, open_key, Encoding::Utf16, is_lossy)
            }
            None | Some(Encoding::Utf8 | Encoding::Ascii) => {
                let scan = LineScan::new(first, last, limits);
                let scan = self.scan(source, scan, limits, encoding.is_none())?;
                let open_key = scan.open_key();
                let (kept, seen) = scan.finish();
                (kept, seen, open_key, encoding.unwrap_or(Encoding::Utf8), false)
            }
        };
        source.rest()?;
        let Decoded { text, is_lossy: marked } = match used {
            Encoding::Utf16 => decode(bytes, Encoding::Utf8),
            Encoding::Utf8 | Encoding::Ascii => decode(bytes, used),
        };
        let lines =
            (seen >= first).then(|| LineRange { first, last: last.map_or(seen, |last| last.min(seen)) });
        let content = FileContent { lossy: is_lossy || marked, lines, ..plain(text, used.as_str()) };
        Ok(Read { content, is_binary: false, only_lines: lines.is_none().then_some(seen), open_key })
    }

    /// Reads as far as the last line that is wanted.
    fn scan(
        &self,
        source: &mut Source<'_>,
        mut scan: LineScan,
        limits: ScanLimits,
        sniffs: bool,
    ) -> Result<LineScan, ToolError> {
        let mut start = true;
        while !scan.is_done() {
            let piece = source.take(PIECE_BYTES, PIECE_BYTES)?;
            if start && sniffs && looks_binary(&piece, piece.len() < PIECE_BYTES) {
                return Err(bad("Line ranges are not supported for binary files"));
            }
            start = false;
            if piece.is_empty() {
                break;
            }
            scan.feed(&piece).map_err(|trouble| self.trouble(trouble, limits))?;
        }
        Ok(scan)
    }

    fn trouble(&self, trouble: ScanTrouble, limits: ScanLimits) -> ToolError {
        ToolError::failed(match trouble {
            ScanTrouble::TooFar => format!(
                "Scan limit exceeded; narrow the range (lines are looked for in the first {} bytes)",
                limits.scanned
            ),
            ScanTrouble::TooMuch => format!(
                "The lines have more than {} bytes, which is the most that is read at once; narrow the range",
                limits.kept
            ),
        })
    }
}

fn check(args: &ReadFileArgs) -> Result<(), ToolError> {
    if args.path.trim().is_empty() {
        return Err(bad("path must not be empty"));
    }
    match (args.start_line, args.end_line) {
        (Some(0), _) => Err(bad("start_line must be >= 1")),
        (_, Some(0)) => Err(bad("end_line must be >= 1")),
        (Some(first), Some(last)) if first > last => Err(bad("start_line must be <= end_line")),
        _ => Ok(()),
    }
}

fn bad(text: &str) -> ToolError {
    ToolError::bad_args(format!("Bad args: {text}"))
}

fn refuse_odd(encoding: Encoding, len: usize) -> Result<(), ToolError> {
    match encoding {
        Encoding::Utf16 if len % 2 == 1 => Err(ToolError::failed(format!(
            "The file is not UTF-16: it has {len} bytes, and that is not an even number"
        ))),
        Encoding::Utf8 | Encoding::Ascii | Encoding::Utf16 => Ok(()),
    }
}

fn plain(content: String, encoding: &str) -> FileContent {
    FileContent {
        content,
        size: 0,
        encoding: encoding.to_owned(),
        sha256: None,
        lines: None,
        truncated: false,
        lossy: false,
    }
}

/// The text for a model.
fn told(args: &ReadFileArgs, content: &FileContent, is_binary: bool, only_lines: Option<u64>) -> String {
    if is_binary {
        let header = if content.truncated { BINARY_CUT } else { BINARY };
        return format!("{header}\n{}", content.content);
    }
    if let Some(lines) = only_lines {
        let first = args.start_line.unwrap_or(1);
        return match lines {
            0 => "[the file is empty]".to_owned(),
            lines => format!("[there is no line {first}: the file has {lines}]"),
        };
    }
    let mut text = match args.show_line_numbers {
        true => numbered(&content.content, content.lines.map_or(1, |lines| lines.first)),
        false => content.content.clone(),
    };
    if content.sha256.is_none() {
        let most = MAX_HASHED_BYTES >> 20;
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[the file has {} bytes; above {most} MiB it cannot be edited]", content.size);
    }
    text
}

/// Each line with its number before it.
fn numbered(text: &str, first: u64) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for (number, line) in (first..).zip(text.split_inclusive('\n')) {
        // Writing to a string cannot fail.
        let _ = write!(out, "{number:>6}\t{line}");
    }
    out
}

/// A file that is read from its start, and hashed on the way.
struct Source<'a> {
    file: FileReader,
    hash: Hash,
    cx: &'a ToolCtx,
}

impl Source<'_> {
    /// The next bytes: `most` of them, or all that are left.
    fn take(&mut self, most: usize, expected: usize) -> Result<Vec<u8>, ToolError> {
        self.cx.check_cancelled()?;
        let mut bytes = Vec::with_capacity(expected.saturating_add(1).min(most));
        let mut left = (&self.file).take(most as u64);
        left.read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
        self.hash.add(&bytes);
        Ok(bytes)
    }

    /// Hashes what is left, without keeping it.
    fn rest(&mut self) -> Result<(), ToolError> {
        if self.hash.is_off() {
            return Ok(());
        }
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            self.cx.check_cancelled()?;
            match (&self.file).read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => self.hash.add(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error)),
            }
            if self.hash.is_off() {
                return Ok(());
            }
        }
    }
}

fn unreadable(error: &io::Error) -> ToolError {
    ToolError::failed("the file cannot be read").with_diagnostics(error)
}

/// SHA-256 of all that was read, as long as it is not too much.
#[derive(Default)]
struct Hash {
    hasher: Sha256,
    total: u64,
}

impl Hash {
    fn is_off(&self) -> bool {
        self.total > MAX_HASHED_BYTES
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        if !self.is_off() {
            self.hasher.update(bytes);
        }
    }

    /// The hash in hex, and of how many bytes it is.
    fn finish(self) -> Option<(String, u64)> {
        if self.is_off() {
            return None;
        }
        let mut hex = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Some((hex, self.total))
    }
}
