//! `list_directory`: what is in a folder.

use super::{Told, output::IntoValue, reading};
use haft_core::{Footprint, Resource, ToolDefinition, ToolError};
use haft_sdk::{
    ToolCtx, TypedTool,
    files::{FolderView, Kind, Metadata},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{ffi::OsStr, io, time::SystemTime};

/// Lists a folder. The fields are limits, and what counts where an argument is left out.
///
/// ```
/// use haft_sdk::{Tool, typed};
/// let tool = typed(haft_tools::ListDirectory::default());
/// assert_eq!(tool.definition().aliases, ["ListFiles", "listdir", "ls", "dir"]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListDirectory {
    /// The most entries, also where fewer are not asked for.
    pub max_entries: usize,
    /// How deep folders in folders are listed at most, also where less is not asked for.
    pub max_depth: u32,
    /// Whether names that begin with a dot are listed.
    pub include_hidden_default: bool,
    /// Whether files are listed.
    pub include_files_default: bool,
    /// Whether folders are listed.
    pub include_dirs_default: bool,
    /// Whether links are listed.
    pub include_symlinks_default: bool,
    /// Whether pipes, devices and sockets are listed.
    pub include_other_default: bool,
}

impl Default for ListDirectory {
    fn default() -> Self {
        ListDirectory {
            max_entries: 200,
            max_depth: 4,
            include_hidden_default: false,
            include_files_default: true,
            include_dirs_default: true,
            include_symlinks_default: true,
            include_other_default: false,
        }
    }
}

/// As deep as folders are ever listed, whatever the setting says: each one on the way stays open.
const DEEPEST: u32 = 256;

/// What to list.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListDirectoryArgs {
    /// The folder, relative to the working folder.
    pub path: String,
    /// Also what is in the folders in it.
    #[serde(default)]
    pub recursive: bool,
    /// How deep, with recursive; what is in the folder itself is at depth 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_depth: Option<u32>,
    /// The most entries to list.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub max_entries: Option<usize>,
    /// Also names that begin with a dot.
    #[serde(default)]
    pub include_hidden: Option<bool>,
    /// Whether files are listed.
    #[serde(default)]
    pub include_files: Option<bool>,
    /// Whether folders are listed.
    #[serde(default)]
    pub include_dirs: Option<bool>,
    /// Whether links are listed. They are not followed.
    #[serde(default)]
    pub include_symlinks: Option<bool>,
    /// Also pipes, devices and sockets.
    #[serde(default)]
    pub include_other: Option<bool>,
}

/// What is in a folder. The order of the members is part of the form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// The folder that was asked for.
    pub path: String,
    /// What is in it, by path.
    pub entries: Vec<ListingEntry>,
    /// How many these are.
    pub returned: usize,
    /// The most that there could be.
    pub max_entries: usize,
    /// Whether some were left out.
    pub truncated: bool,
    /// What they were left out for: `max_entries` or `max_output_bytes`.
    pub truncated_reason: Option<String>,
}

/// One file, folder or link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListingEntry {
    /// The name of the entry.
    pub name: String,
    /// Its path below the folder that was asked for.
    pub path: String,
    /// How deep it is; what is in the folder itself is at 1.
    pub depth: u32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: EntryKind,
    /// Its length; of files only.
    pub size_bytes: Option<u64>,
    /// When it was last changed, in milliseconds since 1970.
    pub modified_epoch_ms: Option<u64>,
    /// Whether its name begins with a dot.
    pub is_hidden: bool,
    /// Why it is not known what it is, or what is in it.
    pub error_code: Option<EntryErrorCode>,
    /// The error in words.
    pub error: Option<String>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A link.
    Symlink,
    /// A pipe, a device, a socket.
    Other,
    /// It could not be found out, or the folder could not be read.
    Unknown,
}

/// Why something is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryErrorCode {
    /// Nothing is known about it, such as when it was just deleted.
    MetadataUnavailable,
    /// The system does not permit to look.
    PermissionDenied,
    /// The folder could not be read.
    ReadDirFailed,
    /// The disk could not be read.
    IoError,
    /// Anything else.
    Unknown,
}

impl IntoValue for Listing {
    fn into_value(self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl TypedTool for ListDirectory {
    const NAME: &'static str = "list_directory";
    type Args = ListDirectoryArgs;
    type Output = Told<Listing>;

    fn define(&self, definition: &mut ToolDefinition) {
        reading(
            definition,
            "List directory",
            "List directory entries: names, types, sizes and times as one JSON object, sorted by path. \
             To find files by name use glob, and by what is in them search_files.",
            &["ListFiles", "listdir", "ls", "dir"],
        );
    }

    fn footprint(&self, args: &ListDirectoryArgs) -> Option<Footprint> {
        Some(Footprint::reads([Resource::path(args.path.trim())]))
    }

    fn summary(&self, args: &ListDirectoryArgs) -> Option<String> {
        let depth = match args.recursive {
            true => format!(" [depth {}]", args.max_depth.unwrap_or(self.max_depth)),
            false => String::new(),
        };
        Some(format!("List {}{depth}", normalised(&args.path)))
    }

    async fn call(&self, args: ListDirectoryArgs, cx: ToolCtx) -> Result<Told<Listing>, ToolError> {
        let wanted = self.wanted(&args)?;
        cx.blocking(move |cx| list(&args.path, &wanted, cx)).await
    }
}

/// What is listed, with every default filled in.
#[derive(Clone, Debug)]
struct Wanted {
    depth: u32,
    entries: usize,
    hidden: bool,
    files: bool,
    dirs: bool,
    symlinks: bool,
    other: bool,
}

impl ListDirectory {
    fn wanted(&self, args: &ListDirectoryArgs) -> Result<Wanted, ToolError> {
        if args.path.trim().is_empty() {
            return Err(bad("path must not be empty"));
        }
        let deepest = self.max_depth.min(DEEPEST);
        let depth = match (args.recursive, args.max_depth) {
            (_, Some(0)) => return Err(bad("max_depth must be >= 1")),
            (false, None | Some(1)) => 1,
            (false, Some(_)) => return Err(bad("max_depth needs recursive: true")),
            (true, None) => deepest,
            (true, Some(depth)) if depth > deepest => {
                return Err(bad(&format!("max_depth must be <= {deepest}")));
            }
            (true, Some(depth)) => depth,
        };
        let entries = match args.max_entries {
            None => self.max_entries,
            Some(0) => return Err(bad("max_entries must be >= 1")),
            Some(entries) if entries > self.max_entries => {
                return Err(bad(&format!("max_entries must be <= {}", self.max_entries)));
            }
            Some(entries) => entries,
        };
        let wanted = Wanted {
            depth,
            entries,
            hidden: args.include_hidden.unwrap_or(self.include_hidden_default),
            files: args.include_files.unwrap_or(self.include_files_default),
            dirs: args.include_dirs.unwrap_or(self.include_dirs_default),
            symlinks: args.include_symlinks.unwrap_or(self.include_symlinks_default),
            other: args.include_other.unwrap_or(self.include_other_default),
        };
        match wanted.files || wanted.dirs || wanted.symlinks {
            true => Ok(wanted),
            false => {
                Err(bad("at least one of include_files, include_dirs and include_symlinks must be true"))
            }
        }
    }
}

impl Wanted {
    fn wants(&self, kind: EntryKind) -> bool {
        match kind {
            EntryKind::File => self.files,
            EntryKind::Dir => self.dirs,
            EntryKind::Symlink => self.symlinks,
            EntryKind::Other => self.other,
            // What something is could not be found out: saying so is better than leaving it out.
            EntryKind::Unknown => true,
        }
    }
}

fn bad(text: &str) -> ToolError {
    ToolError::bad_args(format!("Bad args: {text}"))
}

fn list(path: &str, wanted: &Wanted, cx: &ToolCtx) -> Result<Told<Listing>, ToolError> {
    let (_, folder) = cx.workspace().folder(path.trim())?;
    let names = sorted(&*folder).map_err(|error| unreadable(&error))?;
    let mut walk = Walk { wanted, cx, entries: Vec::new(), is_cut: false };
    walk.folder(&*folder, names, "", 1)?;
    let Walk { mut entries, is_cut, .. } = walk;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let listing = Listing {
        path: normalised(path),
        returned: entries.len(),
        entries,
        max_entries: wanted.entries,
        truncated: is_cut,
        truncated_reason: is_cut.then(|| "max_entries".to_owned()),
    };
    fit(listing, cx.output_limit())
}

fn unreadable(error: &io::Error) -> ToolError {
    ToolError::failed("the folder cannot be read").with_diagnostics(error)
}

/// One name in a folder, and how it is shown and ordered.
struct Name {
    raw: std::ffi::OsString,
    shown: String,
    kind: Option<Kind>,
}

fn sorted(folder: &dyn FolderView) -> io::Result<Vec<Name>> {
    let mut names: Vec<_> = folder
        .entries()?
        .into_iter()
        .map(|listed| {
            let shown = listed.name.to_string_lossy().into_owned();
            Name { raw: listed.name, shown, kind: listed.kind }
        })
        .collect();
    names.sort_by(|a, b| a.shown.cmp(&b.shown));
    Ok(names)
}

/// A walk in depth, each folder before what is in it.
struct Walk<'a> {
    wanted: &'a Wanted,
    cx: &'a ToolCtx,
    entries: Vec<ListingEntry>,
    is_cut: bool,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &dyn FolderView,
        names: Vec<Name>,
        below: &str,
        depth: u32,
    ) -> Result<(), ToolError> {
        for name in names {
            self.cx.check_cancelled()?;
            let is_hidden = name.shown.starts_with('.');
            if is_hidden && !self.wanted.hidden {
                continue;
            }
            let goes_deeper = depth < self.wanted.depth;
            if let Some(kind) = name.kind
                && !self.wanted.wants(shown_kind(kind))
                && !(kind == Kind::Folder && goes_deeper)
            {
                continue;
            }
            let path = if below.is_empty() { name.shown.clone() } else { format!("{below}/{}", name.shown) };
            let mut entry = described(&name, path, depth, is_hidden, folder.metadata(&name.raw));
            let mut inner = None;
            if entry.kind == EntryKind::Dir && goes_deeper {
                match open(folder, &name.raw) {
                    Ok(opened) => inner = Some((opened, entry.path.clone())),
                    Err(error) => {
                        entry.kind = EntryKind::Unknown;
                        entry.error_code = Some(EntryErrorCode::ReadDirFailed);
                        entry.error = Some(words(&error));
                    }
                }
            }
            if self.wanted.wants(entry.kind) {
                if self.entries.len() == self.wanted.entries {
                    self.is_cut = true;
                    return Ok(());
                }
                self.entries.push(entry);
            }
            if let Some(((inner, names), below)) = inner {
                self.folder(&*inner, names, &below, depth + 1)?;
                if self.is_cut {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn open(folder: &dyn FolderView, name: &OsStr) -> io::Result<(Box<dyn FolderView>, Vec<Name>)> {
    let inner = folder.folder(name)?;
    let names = sorted(&*inner)?;
    Ok((inner, names))
}

fn shown_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::File,
        Kind::Folder => EntryKind::Dir,
        Kind::Link => EntryKind::Symlink,
        Kind::Other => EntryKind::Other,
    }
}

fn described(
    name: &Name,
    path: String,
    depth: u32,
    is_hidden: bool,
    metadata: io::Result<Metadata>,
) -> ListingEntry {
    let mut entry = ListingEntry {
        name: name.shown.clone(),
        path,
        depth,
        kind: EntryKind::Unknown,
        size_bytes: None,
        modified_epoch_ms: None,
        is_hidden,
        error_code: None,
        error: None,
    };
    match metadata {
        Ok(metadata) => {
            entry.kind = shown_kind(metadata.kind);
            entry.size_bytes = (metadata.kind == Kind::File).then_some(metadata.len);
            entry.modified_epoch_ms = metadata.modified.and_then(epoch_ms);
        }
        Err(error) => {
            entry.error_code = Some(match error.kind() {
                io::ErrorKind::PermissionDenied => EntryErrorCode::PermissionDenied,
                io::ErrorKind::NotFound => EntryErrorCode::MetadataUnavailable,
                _ if error.raw_os_error().is_some() => EntryErrorCode::IoError,
                _ => EntryErrorCode::Unknown,
            });
            entry.error = Some(words(&error));
        }
    }
    entry
}

fn epoch_ms(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// What went wrong, in the same few words on every system and in every language.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::NotFound => "not there any more",
        io::ErrorKind::NotADirectory => "not a folder any more",
        _ => "cannot be read",
    }
    .to_owned()
}

/// A path as it was asked for, without what changes nothing.
fn normalised(path: &str) -> String {
    let slashed = if cfg!(windows) { path.trim().replace('\\', "/") } else { path.trim().to_owned() };
    let names: Vec<_> = slashed.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let joined = names.join("/");
    match (slashed.starts_with('/'), joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        // The top of a drive needs its slash: without it, the drive's current folder is meant.
        (false, false) if cfg!(windows) && joined.len() == 2 && joined.ends_with(':') => format!("{joined}/"),
        (false, false) => joined,
    }
}

/// The listing as JSON that is not longer than it may be: entries go from the end until it is so.
fn fit(mut listing: Listing, limit: usize) -> Result<Told<Listing>, ToolError> {
    let text = json(&listing)?;
    if text.len() <= limit {
        return Ok(Told { value: listing, text, keep_whole: true });
    }
    let entries = std::mem::take(&mut listing.entries);
    listing.truncated = true;
    listing.truncated_reason = Some("max_output_bytes".to_owned());
    listing.returned = 0;
    // Everything but the entries and the digits of their number.
    let frame = json(&listing)?.len() - 1;
    let mut used = 0;
    let mut fitting = 0;
    for entry in &entries {
        used += json(entry)?.len() + usize::from(fitting > 0);
        if frame + digits(fitting + 1) + used > limit {
            break;
        }
        fitting += 1;
    }
    if frame + digits(fitting) > limit {
        return Err(ToolError::failed(format!(
            "output budget too small: {limit} bytes are left, and an empty list has {}",
            frame + 1
        )));
    }
    listing.entries = entries;
    listing.entries.truncate(fitting);
    listing.returned = fitting;
    let text = json(&listing)?;
    Ok(Told { value: listing, text, keep_whole: true })
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn json(value: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(value)
        .map_err(|error| ToolError::failed("the list cannot be written as JSON").with_diagnostics(error))
}

#[cfg(test)]
mod tests;
