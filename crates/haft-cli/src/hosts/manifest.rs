//! What haft wrote into which file of a host, so that exactly that can be taken out again.

use super::{
    host::Host,
    plan::Mode,
    settings::{Form, Made},
};
use crate::{failure::Failure, words};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What haft wrote into one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) host: Host,
    pub(super) mode: Mode,
    pub(super) only_haft: bool,
    pub(super) file: PathBuf,
    pub(super) form: Form,
    pub(super) changes: Vec<Made>,
    /// The objects and lists that were made on the way.
    pub(super) made: Vec<Vec<String>>,
    /// The file as it was before haft's first change, where nobody else has changed it since; `None` where there was
    /// none, or where it is not known any more.
    pub(super) before: Option<String>,
    /// Whether haft made the file.
    pub(super) made_file: bool,
    /// SHA-256 of the file after haft's last change.
    pub(super) after: String,
}

/// Where haft remembers what it wrote.
pub(super) struct Manifests(PathBuf);

impl Manifests {
    pub(super) fn new(state: &Path) -> Self {
        Manifests(state.join("hosts"))
    }

    fn path(&self, file: &Path) -> PathBuf {
        self.0.join(format!("{}.json", &digest(file.as_os_str().as_encoded_bytes())[..16]))
    }

    /// All that haft wrote, by file.
    pub(super) fn all(&self) -> Result<Vec<Written>, Failure> {
        let listed = match fs::read_dir(&self.0) {
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(|reason| unreadable(&self.0, reason))?,
        };
        let mut written = Vec::new();
        for entry in listed {
            let path = entry.map_err(|reason| unreadable(&self.0, reason))?.path();
            if path.extension().is_some_and(|end| end == "json") {
                written.push(read(&path)?);
            }
        }
        written.sort_by(|one: &Written, other| one.file.cmp(&other.file));
        Ok(written)
    }

    pub(super) fn of(&self, file: &Path) -> Result<Option<Written>, Failure> {
        let path = self.path(file);
        match path.exists() {
            true => read(&path).map(Some),
            false => Ok(None),
        }
    }

    pub(super) fn keep(&self, written: &Written) -> Result<(), Failure> {
        let path = self.path(&written.file);
        let cannot = |reason| Failure::CannotWrite { path: path.clone(), reason };
        haft_store::private_file::create_folder(&self.0).map_err(cannot)?;
        let text = serde_json::to_vec_pretty(written).map_err(|error| cannot(error.into()))?;
        haft_store::private_file::replace(&path, &text).map_err(cannot)
    }

    pub(super) fn forget(&self, file: &Path) -> Result<(), Failure> {
        let path = self.path(file);
        fs::remove_file(&path).map_err(|reason| Failure::CannotWrite { path, reason })
    }
}

fn read(path: &Path) -> Result<Written, Failure> {
    let text = fs::read(path).map_err(|reason| unreadable(path, reason))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(path, error.into()))
}

fn unreadable(path: &Path, reason: io::Error) -> Failure {
    Failure::Unreadable { name: words::path(path), reason }
}

/// SHA-256, in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
