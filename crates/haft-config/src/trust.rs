//! Which folder files a person trusts: a path pinned to the SHA-256 of its bytes.
//!
//! A pin holds for one file with exactly one content; change a byte and it is gone. The record is private to
//! the user. If it cannot be read, or if somebody else could have written it, nothing is trusted.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::visible;
use haft_store::private_file;

const RECORD: &str = "trusted.json";
const LOCK: &str = "trusted.lock";
const VERSION: u32 = 1;
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// The record of trusted files, in the state folder.
///
/// ```
/// use haft_config::TrustStore;
/// # let folder = tempfile::tempdir()?;
/// # let (state, file) = (folder.path().join("state"), folder.path().join("haft.toml"));
/// # std::fs::write(&file, "[tools]\n")?;
/// # #[cfg(unix)] let me = Some(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&file)?));
/// # #[cfg(not(unix))] let me = None;
///
/// let store = TrustStore::new(state, me);
/// store.trust(&file, b"[tools]\n", jiff::Timestamp::now())?;
/// assert!(store.is_trusted(&file, b"[tools]\n")?);
/// assert!(!store.is_trusted(&file, b"[tools] \n")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
    user_id: Option<u32>,
}

/// One file that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// The file, with the links of its folder followed.
    pub path: PathBuf,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// When it was trusted.
    pub trusted_at: Timestamp,
}

/// Why the record of trusted files cannot be used. [`help`](Self::help) says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// There is no state folder: no home folder is known.
    #[error("there is no folder to keep the record of trusted files in")]
    NoFolder,
    /// It cannot be read.
    #[error("{} cannot be read: {reason}", visible::path(.path))]
    Unreadable {
        /// The record or its folder.
        path: PathBuf,
        /// Why not.
        reason: io::ErrorKind,
    },
    /// It is not what haft writes.
    #[error("{} is damaged: {}", visible::path(.path), visible::plain(.what))]
    Damaged {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It belongs to somebody else.
    #[error("{} does not belong to the user who runs haft", visible::path(.path))]
    NotYours {
        /// The record or its folder.
        path: PathBuf,
    },
    /// Others may write it.
    #[error("{} can be written by others", visible::path(.path))]
    Exposed {
        /// The record or its folder.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("{} cannot be written: {reason}", visible::path(.path))]
    Unwritable {
        /// The record or its folder.
        path: PathBuf,
        /// Why not.
        reason: io::ErrorKind,
    },
    /// The path of the file to trust is not UTF-8, and the record could not name it.
    #[error("{} has a name that is not UTF-8, so it cannot be trusted", visible::path(.path))]
    NotUtf8 {
        /// The file to trust.
        path: PathBuf,
    },
}

impl TrustError {
    /// What to do about it, in a line.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::NoFolder => "set HAFT_STATE_DIR or HOME".to_owned(),
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                "check that you may read and write it".to_owned()
            }
            Self::Damaged { path, .. } => {
                format!("remove {}, then run `haft trust` again where you need it", visible::path(path))
            }
            Self::NotYours { path } => format!(
                "find out who put it there; then remove {} or take it over with chown",
                visible::path(path)
            ),
            Self::Exposed { path } => format!("run `chmod go-w {}`", visible::path(path)),
            Self::NotUtf8 { .. } => "rename the folder".to_owned(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    files: BTreeMap<String, Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    sha256: String,
    trusted_at: Timestamp,
}

impl Default for Record {
    fn default() -> Self {
        Self { version: VERSION, files: BTreeMap::new() }
    }
}

impl TrustStore {
    /// The record in this state folder, as the user with this id sees it. On Unix, without an id nothing can
    /// be trusted: whose the record is could not be checked.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, user_id: Option<u32>) -> Self {
        Self { folder: folder.into(), user_id }
    }

    /// Whether exactly these bytes at this path are trusted.
    ///
    /// # Errors
    ///
    /// When the record cannot be used. Nothing is trusted then.
    pub fn is_trusted(&self, path: &Path, bytes: &[u8]) -> Result<bool, TrustError> {
        let record = self.load()?;
        let entry = located(path).to_str().and_then(|path| record.files.get(path));
        Ok(entry.is_some_and(|entry| entry.sha256 == digest(bytes)))
    }

    /// Every file that is trusted, by path.
    ///
    /// # Errors
    ///
    /// When the record cannot be used.
    pub fn list(&self) -> Result<Vec<Pin>, TrustError> {
        let pins = self.load()?.files.into_iter().map(|(path, Entry { sha256, trusted_at })| Pin {
            path: path.into(),
            sha256,
            trusted_at,
        });
        Ok(pins.collect())
    }

    /// Trusts these bytes at this path from now on, in place of what was trusted there before. Give the bytes
    /// that the person was shown, not a second reading of the file.
    ///
    /// # Errors
    ///
    /// When the record cannot be used or written. A damaged record is not overwritten.
    pub fn trust(&self, path: &Path, bytes: &[u8], now: Timestamp) -> Result<Pin, TrustError> {
        let path = located(path);
        let name = path.to_str().ok_or_else(|| TrustError::NotUtf8 { path: path.clone() })?.to_owned();
        let sha256 = digest(bytes);
        self.update(|record| {
            record.files.insert(name, Entry { sha256: sha256.clone(), trusted_at: now });
        })?;
        Ok(Pin { path, sha256, trusted_at: now })
    }

    /// Trusts the file at this path no longer, whatever is in it; whether it was trusted before. The file
    /// itself may be gone.
    ///
    /// # Errors
    ///
    /// When the record cannot be used or written.
    pub fn untrust(&self, path: &Path) -> Result<bool, TrustError> {
        let path = located(path);
        let Some(name) = path.to_str() else {
            return Ok(false);
        };
        if !self.load()?.files.contains_key(name) {
            return Ok(false);
        }
        self.update(|record| record.files.remove(name).is_some())
    }

    fn load(&self) -> Result<Record, TrustError> {
        let record: Record = self.load_from(RECORD)?;
        match record.version {
            VERSION => Ok(record),
            version => {
                let what = format!("it has the version {version}, not {VERSION}");
                Err(TrustError::Damaged { path: self.folder.join(RECORD), what })
            }
        }
    }

    /// A record of the state folder that only its owner can have written.
    pub(super) fn load_from<R: Default + for<'de> Deserialize<'de>>(
        &self,
        name: &str,
    ) -> Result<R, TrustError> {
        let path = self.folder.join(name);
        let unreadable =
            |reason: io::Error| TrustError::Unreadable { path: path.clone(), reason: reason.kind() };
        let damaged = |what: String| TrustError::Damaged { path: path.clone(), what };
        // Not through a pipe or a device, which could keep haft waiting.
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(R::default()),
            Err(error) => return Err(unreadable(error)),
            Ok(metadata) if !metadata.is_file() => return Err(damaged("it is not a file".to_owned())),
            Ok(_) => {}
        }
        let file = File::open(&path).map_err(unreadable)?;
        self.check_owner(&self.folder, &fs::metadata(&self.folder).map_err(unreadable)?)?;
        // The open file is checked, not its name: what is read is what was checked.
        self.check_owner(&path, &file.metadata().map_err(unreadable)?)?;
        let mut text = Vec::new();
        file.take(MAX_RECORD_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_RECORD_BYTES {
            return Err(damaged(format!("it is larger than {MAX_RECORD_BYTES} bytes")));
        }
        serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))
    }

    /// Reads, changes and replaces the record, one process at a time.
    fn update<T>(&self, change: impl FnOnce(&mut Record) -> T) -> Result<T, TrustError> {
        self.update_in(RECORD, Self::load, change)
    }

    /// The same with another record of the state folder.
    pub(super) fn update_in<R: Serialize, T>(
        &self,
        name: &str,
        load: impl FnOnce(&Self) -> Result<R, TrustError>,
        change: impl FnOnce(&mut R) -> T,
    ) -> Result<T, TrustError> {
        let failed =
            |path: PathBuf| move |error: io::Error| TrustError::Unwritable { path, reason: error.kind() };
        private_file::create_folder(&self.folder).map_err(failed(self.folder.clone()))?;
        self.check_owner(&self.folder, &fs::metadata(&self.folder).map_err(failed(self.folder.clone()))?)?;
        let lock_path = self.folder.join(LOCK);
        let _lock = private_file::lock(&lock_path).map_err(failed(lock_path.clone()))?;

        let mut record = load(self)?;
        let outcome = change(&mut record);
        let path = self.folder.join(name);
        let mut text = serde_json::to_vec_pretty(&record).map_err(|error| TrustError::Unwritable {
            path: path.clone(),
            reason: io::Error::from(error).kind(),
        })?;
        text.push(b'\n');
        private_file::replace(&path, &text).map_err(failed(path.clone()))?;
        Ok(outcome)
    }

    #[cfg(unix)]
    fn check_owner(&self, path: &Path, metadata: &fs::Metadata) -> Result<(), TrustError> {
        use std::os::unix::fs::MetadataExt as _;
        const WRITABLE_BY_OTHERS: u32 = 0o022;
        if self.user_id != Some(metadata.uid()) {
            return Err(TrustError::NotYours { path: path.to_path_buf() });
        }
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(TrustError::Exposed { path: path.to_path_buf() });
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check_owner(&self, _path: &Path, _metadata: &fs::Metadata) -> Result<(), TrustError> {
        // The state folder is in the user's profile, which the system keeps private.
        let _ = self.user_id;
        Ok(())
    }
}

/// The file in its real folder. A link in the last place is not followed: trust in a file is trust in it
/// *where it lies*, and a repository that links to a trusted file elsewhere must not inherit it.
fn located(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (absolute.parent().map(fs::canonicalize), absolute.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
