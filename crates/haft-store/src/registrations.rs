//! Tools that were added, switched off or configured, in one file.
//!
//! The file is private to the user and replaced as a whole: a reader sees the old one or the new one, also after a
//! power cut. A change is read, made and written under a lock of its own file, so that several processes lose none of
//! each other's changes. What cannot be read is never taken for nothing: a tool that somebody switched off would be on
//! again.

use crate::private_file;
use haft_core::port::{BoxFuture, Registrations, StoreError, StoredTool};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

const RECORD: &str = "registrations.json";
const LOCK: &str = "registrations.lock";
const VERSION: u32 = 1;
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// Remembers tools in `registrations.json` of a folder.
///
/// Reading and writing block the thread, within the future that they belong to: the file is small, it changes when a
/// person changes something, and nothing here then needs a runtime.
///
/// ```
/// use haft_core::port::{Registrations as _, StoredTool};
/// use haft_store::FileRegistrations;
/// # let folder = tempfile::tempdir()?;
/// # let state = folder.path().join("state");
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let off = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
/// FileRegistrations::new(&state).save(off.clone()).await?;
/// // Another process, another day.
/// assert_eq!(FileRegistrations::new(&state).load().await?, [off]);
/// # Ok::<(), haft_core::port::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileRegistrations {
    folder: PathBuf,
}

/// What was taken over from a file.
#[cfg(feature = "sql")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTools {
    /// How many tools the file was about.
    pub count: usize,
    /// Where the file is kept.
    pub kept: PathBuf,
    /// The tools of which the database knew something else, which stayed; what either switched off is off.
    pub differ: Vec<String>,
}

/// The version alone: whatever else a later one has, this tells that it is one.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    #[serde(rename = "version")]
    _version: u32,
    tools: Vec<StoredTool>,
}

#[derive(Serialize)]
struct RecordRef<'a> {
    version: u32,
    tools: Vec<&'a StoredTool>,
}

type Tools = BTreeMap<String, StoredTool>;

impl FileRegistrations {
    /// In this folder, which is made with the first change.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        FileRegistrations { folder: folder.into() }
    }

    /// The file.
    ///
    /// ```
    /// let path = haft_store::FileRegistrations::new("state").path();
    /// assert_eq!(path, std::path::Path::new("state/registrations.json"));
    /// ```
    pub fn path(&self) -> PathBuf {
        self.folder.join(RECORD)
    }

    /// Hands everything over to a database, once: the file is then kept under another name, `registrations.json.imported`.
    /// What was done is said; `None` where there is no file. Where it is not done to its end, it is done again the next
    /// time, and comes to the same. Blocks.
    #[cfg(feature = "sql")]
    pub fn hand_over(&self, to: &crate::DurableStore) -> Result<Option<ImportedTools>, StoreError> {
        let lock_path = self.folder.join(LOCK);
        let _lock =
            private_file::lock(&lock_path).map_err(|error| cannot(&lock_path, "be locked", &error))?;
        let path = self.path();
        // Another process may have done it a moment ago.
        if !path.exists() {
            return Ok(None);
        }
        let tools: Vec<StoredTool> = self.read()?.into_values().collect();
        let count = tools.len();
        let differ = to.import_tools(tools)?;
        let kept = (1..)
            .map(|number| match number {
                1 => self.folder.join(format!("{RECORD}.imported")),
                more => self.folder.join(format!("{RECORD}.imported-{more}")),
            })
            .find(|kept| !kept.exists())
            .unwrap_or_else(|| self.folder.join(format!("{RECORD}.imported")));
        fs::rename(&path, &kept).map_err(|error| cannot(&path, "be renamed", &error))?;
        Ok(Some(ImportedTools { count, kept, differ }))
    }

    fn read(&self) -> Result<Tools, StoreError> {
        let path = self.path();
        let unreadable = |error: io::Error| cannot(&path, "be read", &error);
        // Not through a pipe or a device, which could keep haft waiting.
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tools::new()),
            Err(error) => return Err(unreadable(error)),
            Ok(metadata) if !metadata.is_file() => return Err(damaged(&path, "it is not a file")),
            Ok(_) => {}
        }
        let file = File::open(&path).map_err(unreadable)?;
        check_private(&self.folder, &fs::metadata(&self.folder).map_err(unreadable)?)?;
        // The open file is checked, not its name: what is read is what was checked.
        check_private(&path, &file.metadata().map_err(unreadable)?)?;
        let mut text = Vec::new();
        file.take(MAX_RECORD_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_RECORD_BYTES {
            return Err(damaged(&path, format!("it is larger than {MAX_RECORD_BYTES} bytes")));
        }
        let head: Head = serde_json::from_slice(&text).map_err(|error| damaged(&path, error))?;
        if head.version != VERSION {
            return Err(StoreError(format!(
                "{} has the version {}, and this haft knows {VERSION}; use the haft that wrote it, or move it away \
                 to start over",
                path.display(),
                head.version
            )));
        }
        let record: Record = serde_json::from_slice(&text).map_err(|error| damaged(&path, error))?;
        let mut tools = Tools::new();
        for tool in record.tools {
            if let Some(twice) = tools.insert(tool.name.clone(), tool) {
                return Err(damaged(&path, format!("`{}` is in it twice", twice.name)));
            }
        }
        Ok(tools)
    }

    /// Reads, changes and replaces the file, one process at a time; nothing is written where nothing changes.
    fn change(&self, change: impl FnOnce(&mut Tools)) -> Result<(), StoreError> {
        let made = private_file::create_folder(&self.folder);
        made.map_err(|error| cannot(&self.folder, "be made", &error))?;
        let lock_path = self.folder.join(LOCK);
        let _lock =
            private_file::lock(&lock_path).map_err(|error| cannot(&lock_path, "be locked", &error))?;

        let before = self.read()?;
        let mut tools = before.clone();
        change(&mut tools);
        if tools == before {
            return Ok(());
        }
        let path = self.path();
        let record = RecordRef { version: VERSION, tools: tools.values().collect() };
        let unwritable = |error: io::Error| cannot(&path, "be written", &error);
        let mut text = serde_json::to_vec_pretty(&record).map_err(|error| unwritable(error.into()))?;
        text.push(b'\n');
        private_file::replace(&path, &text).map_err(unwritable)
    }
}

impl Registrations for FileRegistrations {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(async { Ok(self.read()?.into_values().collect()) })
    }

    fn save_all<'a>(&'a self, changed: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async {
            self.change(|tools| {
                for tool in changed {
                    if tool.is_ordinary() {
                        tools.remove(&tool.name);
                    } else {
                        tools.insert(tool.name.clone(), tool);
                    }
                }
            })
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { self.change(|tools| drop(tools.remove(name))) })
    }
}

fn damaged(path: &Path, what: impl Display) -> StoreError {
    let path = path.display();
    StoreError(format!("{path} is damaged: {what}; correct it, or move it away to start over"))
}

fn cannot(path: &Path, what: &str, error: &io::Error) -> StoreError {
    let text = error.to_string();
    // Without the number that only the system knows.
    let reason = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    StoreError(format!("{} cannot {what}: {reason}; check whose it is, and who may use it", path.display()))
}

/// Anyone who can write it can add tools.
#[cfg(unix)]
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), StoreError> {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    if std::os::unix::fs::MetadataExt::mode(metadata) & WRITABLE_BY_OTHERS == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(StoreError(format!("{path} can be written by others; look at it, then run `chmod go-w {path}`")))
}

#[cfg(not(unix))]
fn check_private(_path: &Path, _metadata: &fs::Metadata) -> Result<(), StoreError> {
    // It is in the user's profile, which the system keeps private.
    Ok(())
}
