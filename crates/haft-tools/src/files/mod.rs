//! The tools for files. They reach files only through the [`Workspace`](haft_sdk::files::Workspace) of a call.
//!
//! | tool | what it does |
//! |---|---|
//! | `read_file` | gives the text of a file, or of some of its lines; of other files, their bytes in base64 |
//! | `list_directory` | says what is in a folder |
//! | `glob` | finds files by a pattern of their path |
//! | `search_files` | finds lines by a regular expression, or by the text itself |
//! | `write_file` | makes a file, adds to one, or replaces one |
//! | `edit_file` | replaces a piece of text, or lines |
//! | `apply_patch` | changes several files at once, by a patch |
//! | `move_file`, `copy_file`, `delete_file` | do what they say |
//! | `undo_changes` | puts back what an earlier call changed |

mod encoding;
mod glob;
mod line_range;
mod list_directory;
mod output;
mod path_filter;
mod per_thread;
mod read_file;
mod search_files;

pub use encoding::Encoding;
pub use glob::{Glob, GlobArgs, Globbed};
pub use list_directory::{
    EntryErrorCode, EntryKind, ListDirectory, ListDirectoryArgs, Listing, ListingEntry,
};
pub use output::{IntoValue, Told};
pub use read_file::{FileContent, LineRange, ReadFile, ReadFileArgs};
pub use search_files::{Case, Hit, SearchFiles, SearchFilesArgs, Searched};

use crate::changing::{ApplyPatch, CopyFile, DeleteFile, EditFile, MoveFile, UndoChanges, WriteFile};
use crate::worker::Jailable;
use haft_core::{Category, IsolationLevel, Risk, Source, ToolDefinition};
use haft_sdk::{Tool, TypedTool, typed_with};
use serde::{Serialize, de::DeserializeOwned};
use std::{num::NonZero, path::Path, time::Duration};

/// How the file tools behave on this installation.
///
/// ```
/// let settings = haft_tools::FileToolSettings::default();
/// assert_eq!(settings.read_file.max_file_read_bytes, 200 * 1024);
/// ```
#[derive(Clone, Debug, Default)]
pub struct FileToolSettings {
    /// Of `read_file`.
    pub read_file: ReadFile,
    /// Of `list_directory`.
    pub list_directory: ListDirectory,
    /// Of `glob`.
    pub glob: Glob,
    /// Of `search_files`.
    pub search_files: SearchFiles,
    /// Of `apply_patch`.
    pub apply_patch: ApplyPatch,
    /// Of `copy_file`.
    pub copy_file: CopyFile,
    /// Of `move_file`.
    pub move_file: MoveFile,
    /// Of `delete_file`.
    pub delete_file: DeleteFile,
    /// The level that they run at, at the least: each call then has a worker of its own in a jail. Without it they run in
    /// haft's own process, unless a call asks for more. Undoing, which only puts back what haft recorded, always does.
    pub isolation: Option<IsolationLevel>,
    /// How long a call may take that does not say; without it, as long as any other call.
    pub timeout: Option<Duration>,
}

/// The tools for files, by name.
///
/// ```
/// let tools = haft_tools::file_tools(&haft_tools::FileToolSettings::default());
/// let names: Vec<_> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
/// assert_eq!(names[..4], ["apply_patch", "copy_file", "delete_file", "edit_file"]);
/// assert_eq!(names[4..8], ["glob", "list_directory", "move_file", "read_file"]);
/// assert_eq!(names[8..], ["search_files", "undo_changes", "write_file"]);
/// assert!(tools.iter().all(|tool| tool.definition().check().is_empty()));
/// ```
pub fn file_tools(settings: &FileToolSettings) -> Vec<Box<dyn Tool>> {
    vec![
        jailable(settings.apply_patch, settings),
        jailable(settings.copy_file, settings),
        jailable(settings.delete_file, settings),
        jailable(EditFile, settings),
        jailable(settings.glob.clone(), settings),
        jailable(settings.list_directory.clone(), settings),
        jailable(settings.move_file, settings),
        jailable(settings.read_file.clone(), settings),
        jailable(settings.search_files.clone(), settings),
        limited(UndoChanges, settings),
        jailable(WriteFile, settings),
    ]
}

/// A tool with the time that all of them have, in haft's own process.
fn limited(tool: impl TypedTool, settings: &FileToolSettings) -> Box<dyn Tool> {
    let timeout = settings.timeout;
    Box::new(typed_with(tool, |definition| definition.constraints.default_timeout = timeout))
}

/// A tool with the time that all of them have, which works in a jail where that is asked for.
fn jailable<T>(tool: T, settings: &FileToolSettings) -> Box<dyn Tool>
where
    T: TypedTool + Serialize + DeserializeOwned,
    T::Args: Serialize,
{
    let FileToolSettings { timeout, isolation, .. } = *settings;
    Box::new(typed_with(Jailable::new(tool), |definition| {
        definition.constraints.default_timeout = timeout;
        definition.constraints.required_isolation = isolation.unwrap_or(IsolationLevel::None);
    }))
}

/// What the tools that only read have in common.
fn reading(definition: &mut ToolDefinition, title: &str, description: &str, aliases: &[&str]) {
    definition.title = Some(title.to_owned());
    definition.description = description.to_owned();
    definition.category = Category::FileSystem;
    definition.constraints.allow_side_effects = false;
    definition.required_permissions = vec!["tool.filesystem.read".to_owned()];
    definition.risk = Some(Risk::Low);
    definition.idempotent = true;
    definition.version = Some("1.0.0".to_owned());
    definition.source = Source::BuiltIn;
    definition.aliases = aliases.iter().map(|&alias| alias.to_owned()).collect();
}

/// A path for a model: with forward slashes, and with a mark for what is not text.
fn shown(below: &Path) -> String {
    let text = below.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}

/// As many threads as walking is worth: beyond a few they wait for the same locks of the kernel.
fn usual_threads() -> usize {
    const MOST: usize = 8;
    std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST)
}

/// A last line for a model about where paths begin, unless they begin where all paths do.
fn below_note(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" | "." | "./." => String::new(),
        path => format!("\n[paths are below {}]", haft_core::text::one_line(path, 200)),
    }
}
