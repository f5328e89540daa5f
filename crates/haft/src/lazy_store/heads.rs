//! Where ends of the audit chain are told, so that somebody who changes the database cannot change what was said of it.

use crate::config::{AuditConfig, Surroundings};
use haft_core::port::StoreError;
use haft_store::{AuditHead, HeadSink};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

/// What the configuration says of the audit's key and of its heads.
pub struct AuditPlaces {
    /// The first key; beside the database where absent.
    pub key_file: Option<PathBuf>,
    /// Where heads are told.
    pub heads: HeadsTo,
}

/// Where heads are told.
pub enum HeadsTo {
    /// Nowhere.
    Nowhere,
    /// On standard error, for a program that collects it.
    Stderr,
    /// At the end of a file.
    File(PathBuf),
}

impl HeadsTo {
    /// Where `audit.head_sink` says.
    pub fn new(audit: &AuditConfig, surroundings: &Surroundings) -> Self {
        match (&*audit.head_sink, surroundings.audit_head_file(audit)) {
            (AuditConfig::STDERR, _) => HeadsTo::Stderr,
            (_, Some(file)) => HeadsTo::File(file),
            (_, None) => HeadsTo::Nowhere,
        }
    }

    /// The sink. A file that cannot be added to is an error: the operator who set it relies on it.
    pub fn sink(&self) -> Result<Option<Arc<dyn HeadSink>>, StoreError> {
        match self {
            HeadsTo::Nowhere => Ok(None),
            HeadsTo::Stderr => Ok(Some(Arc::new(StderrHeads))),
            HeadsTo::File(path) => match open(path) {
                Ok(_) => Ok(Some(Arc::new(FileHeads(path.clone())))),
                Err(error) => Err(StoreError(format!(
                    "audit.head_sink: {} cannot be added to: {error}. Make its folder, or let you write it",
                    path.display()
                ))),
            },
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Only ever added to, so that a file with the attribute "append only" will do.
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

struct FileHeads(PathBuf);

impl HeadSink for FileHeads {
    fn head(&self, head: &AuditHead) {
        // Opened each time, which is once a second at most: it may have been moved away, or come back.
        let added = serde_json::to_string(head).map_err(io::Error::other).and_then(|line| {
            let mut file = open(&self.0)?;
            // In one piece: other processes add theirs.
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        });
        if let Err(error) = added {
            tracing::error!(code = "HEAD_NOT_TOLD", file = %self.0.display(), %error, "an end of the audit was not told");
        }
    }
}

struct StderrHeads;

impl HeadSink for StderrHeads {
    fn head(&self, head: &AuditHead) {
        let line = serde_json::json!({"head": head});
        // Who closed it does not want to know.
        let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
    }
}
