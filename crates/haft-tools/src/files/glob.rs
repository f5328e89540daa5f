//! `glob`: files by a pattern of their path.

use super::{
    Told, below_note, output::IntoValue, path_filter::path_pattern, per_thread::PerThread, reading, shown,
    usual_threads,
};
use haft_core::{Footprint, Resource, ToolDefinition, ToolError, text::one_line};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{Step, Walk},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

/// Finds files by a pattern of their path.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let tool = typed(haft_tools::Glob::default());
/// assert_eq!(tool.definition().aliases, ["QueryVFS"]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Glob {
    /// How many paths are given where the caller does not say.
    pub default_results: usize,
    /// How many a caller may ask for.
    pub max_results: usize,
    /// How many threads walk.
    pub threads: usize,
}

impl Default for Glob {
    fn default() -> Self {
        Glob { default_results: 2000, max_results: 10_000, threads: usual_threads() }
    }
}

/// What to find.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GlobArgs {
    /// Such as `**/*.rs` or `src/**/*.{ts,tsx}`. `*` stays within a name, `**` goes through folders.
    pub pattern: String,
    /// The folder where the pattern begins, relative to the working folder.
    #[serde(default = "here")]
    pub path: String,
    /// Also files and folders whose name begins with a dot.
    #[serde(default)]
    pub hidden: bool,
    /// Also what `.gitignore` and `.ignore` leave out.
    #[serde(default)]
    pub no_ignore: bool,
    /// The most paths to give back.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_results: Option<usize>,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

/// Files that were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Globbed {
    /// Their paths below the folder, sorted.
    pub paths: Vec<String>,
    /// How many there are in all.
    pub total: usize,
    /// Whether some are left out.
    pub truncated: bool,
}

impl IntoValue for Globbed {
    fn into_value(mut self) -> serde_json::Result<Value> {
        let paths = std::mem::take(&mut self.paths);
        let mut value = serde_json::to_value(self)?;
        value["paths"] = paths.into_iter().map(Value::String).collect();
        Ok(value)
    }
}

impl TypedTool for Glob {
    const NAME: &'static str = "glob";
    type Args = GlobArgs;
    type Output = Told<Globbed>;

    fn define(&self, definition: &mut ToolDefinition) {
        reading(
            definition,
            "Find files",
            "Finds files by a pattern of their path, such as **/*.rs, and gives their paths, sorted, one a line. \
             What .gitignore leaves out, and names that begin with a dot, are left out unless asked for.",
            // `Glob` is the tool's own name: names are taken in any case.
            &["QueryVFS"],
        );
    }

    fn footprint(&self, args: &GlobArgs) -> Option<Footprint> {
        Some(Footprint::reads([Resource::path(args.path.as_str())]))
    }

    fn summary(&self, args: &GlobArgs) -> Option<String> {
        Some(format!("Find {} in {}", args.pattern, args.path))
    }

    async fn call(&self, args: GlobArgs, cx: ToolCtx) -> Result<Told<Globbed>, ToolError> {
        let most = wanted(args.max_results, self.default_results, self.max_results)?;
        let threads = self.threads;
        cx.blocking(move |cx| find(&args, most, threads, cx)).await
    }
}

/// How many results a call gives.
pub(super) fn wanted(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, ToolError> {
    match asked {
        None => Ok(usual.min(most)),
        Some(0) => Err(ToolError::bad_args("Bad args: max_results must be >= 1")),
        Some(asked) if asked > most => {
            Err(ToolError::bad_args(format!("Bad args: max_results must be <= {most}")))
        }
        Some(asked) => Ok(asked),
    }
}

/// What one thread found.
#[derive(Default)]
struct Found {
    paths: Vec<String>,
    total: usize,
}

impl Found {
    fn add(&mut self, path: String, most: usize) {
        self.paths.push(path);
        self.total += 1;
        // Only the first ones are ever shown, so only those are kept; not too often, so that it costs little.
        if self.paths.len() > most.saturating_mul(4).max(4096) {
            self.paths.select_nth_unstable(most - 1);
            self.paths.truncate(most);
        }
    }
}

fn find(args: &GlobArgs, most: usize, threads: usize, cx: &ToolCtx) -> Result<Told<Globbed>, ToolError> {
    let pattern = path_pattern(&args.pattern)?;
    let found = PerThread::new(threads, Found::default);
    let walk = Walk { path: &args.path, hidden: args.hidden, ignore_files: !args.no_ignore, threads };
    cx.workspace().walk(&walk, &|visit| {
        if cx.cancel_reason().is_some() {
            return Step::Stop;
        }
        if pattern.is_match(visit.below) {
            found.with(|found| found.add(shown(visit.below), most));
        }
        Step::Continue
    })?;
    cx.check_cancelled()?;
    let value = gathered(found.into_values().collect(), most);
    let text = told(args, &value);
    Ok(Told { value, text, keep_whole: false })
}

/// What all threads found, in order.
fn gathered(mut parts: Vec<Found>, most: usize) -> Globbed {
    let total = parts.iter().map(|part| part.total).sum();
    // Each thread's part is sorted by a thread, where that is worth one.
    std::thread::scope(|scope| {
        for part in &mut parts {
            if part.paths.len() > 10_000 {
                scope.spawn(|| part.paths.sort_unstable());
            }
        }
    });
    let mut paths: Vec<_> = parts.into_iter().flat_map(|part| part.paths).collect();
    // Parts that are sorted are merged: this sort notices.
    paths.sort();
    paths.truncate(most);
    Globbed { truncated: total > paths.len(), paths, total }
}

fn told(args: &GlobArgs, found: &Globbed) -> String {
    if found.paths.is_empty() {
        return nothing(args);
    }
    let mut text = found.paths.join("\n");
    if found.truncated {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[truncated at {} matches of {}; use a narrower pattern or path, or max_results]",
            found.paths.len(),
            found.total
        );
    }
    text.push_str(&below_note(&args.path));
    text
}

/// What to try when nothing was found.
fn nothing(args: &GlobArgs) -> String {
    let pattern = one_line(&args.pattern, 200);
    let mut text = format!("No files match pattern: {pattern}");
    let mut tries = Vec::new();
    if !args.pattern.contains("**") {
        let name = pattern.rsplit('/').next().unwrap_or(&pattern);
        tries.push(format!("`**/{name}` looks in every folder"));
    }
    if !args.hidden {
        tries.push("hidden: true adds names that begin with a dot".to_owned());
    }
    if !args.no_ignore {
        tries.push("no_ignore: true adds what .gitignore leaves out".to_owned());
    }
    if !tries.is_empty() {
        let _ = write!(text, "\n[{}]", tries.join("; "));
    }
    text.push_str(&below_note(&args.path));
    text
}
