//! `search_files`: lines by a regular expression, or by the text itself.

mod hits;
mod kept;
mod told;

use super::{
    Told, glob, output::IntoValue, path_filter::PathFilter, per_thread::PerThread, reading, shown,
    usual_threads,
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_core::{Footprint, Resource, ToolDefinition, ToolError, text::one_line};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{FileReader, Step, Visit, Walk},
};
use hits::FileHits;
use kept::Kept;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, Read};

/// The most context lines on one side.
const MOST_CONTEXT: usize = 50;
/// The longest pattern, in bytes.
const MOST_PATTERN_BYTES: usize = 16 * 1024;
/// What one thread may hold of a file: one line, or with `multiline` the whole file.
const HEAP_BYTES: usize = 64 << 20;
/// What a compiled expression may take.
const REGEX_BYTES: usize = 16 << 20;

/// Finds lines in files.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let tool = typed(haft_tools::SearchFiles::default());
/// assert_eq!(tool.definition().aliases, ["SearchFiles", "Grep"]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchFiles {
    /// How many matches are given where the caller does not say.
    pub default_results: usize,
    /// How many a caller may ask for.
    pub max_results: usize,
    /// How many threads search.
    pub threads: usize,
}

impl Default for SearchFiles {
    fn default() -> Self {
        SearchFiles { default_results: 200, max_results: 10_000, threads: usual_threads() }
    }
}

/// What to find.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SearchFilesArgs {
    /// A regular expression, as Rust's regex library has them; with literal, the text itself.
    pub pattern: String,
    /// Whether the pattern is text, in which no character means anything else.
    #[serde(default)]
    pub literal: bool,
    /// Whether capital letters matter.
    #[serde(default)]
    pub case: Case,
    /// How many lines to show before each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    pub before: usize,
    /// How many lines to show after each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    pub after: usize,
    /// Only files of these patterns, such as `*.rs` or `src/**`.
    #[serde(default)]
    pub include: Vec<String>,
    /// Not the files of these patterns, such as `target/` or `*.lock`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The folder or file to search, relative to the working folder.
    #[serde(default = "glob::here")]
    pub path: String,
    /// Also files and folders whose name begins with a dot.
    #[serde(default)]
    pub hidden: bool,
    /// Also what `.gitignore` and `.ignore` leave out.
    #[serde(default)]
    pub no_ignore: bool,
    /// Whether a match may go over several lines.
    #[serde(default)]
    pub multiline: bool,
    /// The most matches to give back.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_results: Option<usize>,
}

/// Whether capital letters matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// Only where the pattern has one.
    #[default]
    Smart,
    /// They do.
    Sensitive,
    /// They do not.
    Insensitive,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The matches, by path and line.
    pub matches: Vec<Hit>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many files were searched. Those that come after the last match that is shown need not be.
    pub files_searched: usize,
    /// How many files could not be read, or have lines too long to be searched.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_failed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A line that matches; with `multiline`, the lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The file, below the folder that was searched.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// The line, without its end. Of a long one, the part around the match, and how long it is.
    pub text: String,
    /// The lines before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The lines after it, as far as no other match has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

impl IntoValue for Searched {
    fn into_value(self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl TypedTool for SearchFiles {
    const NAME: &'static str = "search_files";
    type Args = SearchFilesArgs;
    type Output = Told<Searched>;

    fn define(&self, definition: &mut ToolDefinition) {
        reading(
            definition,
            "Search files",
            "Finds lines in files by a regular expression, or with literal: true by the text itself, and gives them \
             as path:line:text, sorted. What .gitignore leaves out, names that begin with a dot, and files that are \
             not text are left out; the first two can be asked for.",
            &["SearchFiles", "Grep"],
        );
    }

    fn footprint(&self, args: &SearchFilesArgs) -> Option<Footprint> {
        Some(Footprint::reads([Resource::path(args.path.as_str())]))
    }

    fn summary(&self, args: &SearchFilesArgs) -> Option<String> {
        Some(format!("Search {} for {}", args.path, args.pattern))
    }

    async fn call(&self, args: SearchFilesArgs, cx: ToolCtx) -> Result<Told<Searched>, ToolError> {
        let most = glob::wanted(args.max_results, self.default_results, self.max_results)?;
        let threads = self.threads;
        cx.blocking(move |cx| search(&args, most, threads, cx)).await
    }
}

/// What one thread searches with.
struct Worker {
    searcher: Searcher,
    matcher: RegexMatcher,
    searched: usize,
    failed: usize,
}

fn search(
    args: &SearchFilesArgs,
    most: usize,
    threads: usize,
    cx: &ToolCtx,
) -> Result<Told<Searched>, ToolError> {
    let matcher = matcher(args)?;
    let filter = PathFilter::new(&args.include, &args.exclude)?;
    let searcher = searcher(args)?;
    let workers = PerThread::new(threads, || Worker {
        searcher: searcher.build(),
        matcher: matcher.clone(),
        searched: 0,
        failed: 0,
    });
    // One more than is shown tells for certain that there are more.
    let kept = Kept::new(most.saturating_add(1));
    let walk = Walk { path: &args.path, hidden: args.hidden, ignore_files: !args.no_ignore, threads };
    cx.workspace().walk(&walk, &|visit| {
        if cx.cancel_reason().is_some() {
            return Step::Stop;
        }
        if filter.wants(visit.below) && kept.has_room_for(visit.below) {
            workers.with(|worker| worker.search(visit, most.saturating_add(1), &kept, cx));
        }
        Step::Continue
    })?;
    cx.check_cancelled()?;
    let mut value =
        Searched { matches: kept.into_hits(), truncated: false, files_searched: 0, files_failed: 0 };
    for worker in workers.into_values() {
        value.files_searched += worker.searched;
        value.files_failed += worker.failed;
    }
    value.truncated = value.matches.len() > most;
    value.matches.truncate(most);
    let text = told::told(args, &value);
    Ok(Told { value, text, keep_whole: false })
}

impl Worker {
    fn search(&mut self, visit: &Visit<'_>, most: usize, kept: &Kept, cx: &ToolCtx) {
        let mut hits = FileHits::new(&self.matcher, most);
        let searched = (visit.open)()
            .and_then(|file| self.searcher.search_reader(&self.matcher, Cancellable { file, cx }, &mut hits));
        match searched {
            Ok(()) => self.searched += 1,
            Err(_) => self.failed += 1,
        }
        let hits = hits.finish();
        if !hits.is_empty() {
            kept.add(shown(visit.below), hits);
        }
    }
}

/// A file whose reading ends when the call does.
struct Cancellable<'a> {
    file: FileReader,
    cx: &'a ToolCtx,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.cx.cancel_reason() {
            None => self.file.read(buffer),
            Some(_) => Err(io::Error::other("the call was ended")),
        }
    }
}

fn searcher(args: &SearchFilesArgs) -> Result<SearcherBuilder, ToolError> {
    for (name, lines) in [("before", args.before), ("after", args.after)] {
        if lines > MOST_CONTEXT {
            return Err(ToolError::bad_args(format!("Bad args: {name} must be <= {MOST_CONTEXT}")));
        }
    }
    let mut builder = SearcherBuilder::new();
    builder
        .line_number(true)
        .multi_line(args.multiline)
        .before_context(args.before)
        .after_context(args.after)
        .heap_limit(Some(HEAP_BYTES))
        .binary_detection(BinaryDetection::quit(0));
    Ok(builder)
}

fn matcher(args: &SearchFilesArgs) -> Result<RegexMatcher, ToolError> {
    let pattern = &args.pattern;
    if pattern.is_empty() {
        return Err(ToolError::bad_args("Bad args: pattern must not be empty"));
    }
    if pattern.len() > MOST_PATTERN_BYTES {
        let text =
            format!("Bad args: pattern has {} bytes, and {MOST_PATTERN_BYTES} is the most", pattern.len());
        return Err(ToolError::bad_args(text));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .fixed_strings(args.literal)
        .case_smart(args.case == Case::Smart)
        .case_insensitive(args.case == Case::Insensitive)
        .multi_line(true)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES);
    if !args.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(pattern).map_err(|error| {
        let hint = match (args.literal, pattern.contains('\n') || pattern.contains("\\n")) {
            (_, true) if !args.multiline => "For matches over several lines set multiline: true",
            (false, _) => "To search for the text itself set literal: true",
            (true, _) => "Search for one line of it",
        };
        let shown = one_line(pattern, 200);
        ToolError::bad_args(format!("Bad args: '{shown}' cannot be searched for: {error}\n{hint}"))
    })
}
