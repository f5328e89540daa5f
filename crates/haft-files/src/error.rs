//! Why a path was refused, in words that lead on.

use haft_core::{ErrorCode, ToolError, text::one_line};
use serde_json::json;
use std::{io, path::Path};

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It is not a path that anything could be named by.
    #[error("{reason} (attempted: {attempted})")]
    Malformed {
        /// What was asked for.
        attempted: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It leads out of the roots.
    #[error("Path outside sandbox (attempted: {attempted}{})", leads_to(.resolved.as_ref()))]
    Outside {
        /// What was asked for.
        attempted: String,
        /// Where it leads, where that is known.
        resolved: Option<String>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// A pattern denies it.
    #[error("Path '{attempted}' matched denied pattern '{pattern}'{}", leads_to(.resolved.as_ref()))]
    Denied {
        /// What was asked for.
        attempted: String,
        /// Where it leads.
        resolved: Option<String>,
        /// The pattern.
        pattern: String,
    },
    /// It may be read, not written.
    #[error("'{attempted}' is in a folder that may only be read (resolved: {resolved})")]
    ReadOnly {
        /// What was asked for.
        attempted: String,
        /// Where it leads.
        resolved: String,
    },
    /// It leads elsewhere than when the call was decided on.
    #[error(
        "'{attempted}' leads elsewhere now ({resolved}) than what this call was checked for, so it was not used. \
         Send the call again"
    )]
    Moved {
        /// What was asked for.
        attempted: String,
        /// Where it leads now.
        resolved: String,
    },
    /// It is a link, and nothing is written through links.
    #[error("'{attempted}' is a link{}, and nothing is written through links. Name the file itself", leads_to(.target.as_ref()))]
    Link {
        /// What was asked for.
        attempted: String,
        /// Where it leads, where that is known.
        target: Option<String>,
    },
    /// It is neither a file nor a folder.
    #[error("'{attempted}' is a {kind}, not a regular file")]
    Special {
        /// What was asked for.
        attempted: String,
        /// What it is.
        kind: &'static str,
    },
    /// A folder is there, and a file was wanted.
    #[error("path is a directory: '{attempted}'")]
    Folder {
        /// What was asked for.
        attempted: String,
    },
    /// A file is there, and a folder was wanted.
    #[error("path is not a directory: '{attempted}'")]
    NotFolder {
        /// What was asked for.
        attempted: String,
    },
    /// Nothing is there.
    #[error("'{attempted}' does not exist")]
    NotFound {
        /// What was asked for.
        attempted: String,
    },
    /// The system refused.
    #[error("'{attempted}': {source}")]
    Io {
        /// What was asked for.
        attempted: String,
        /// What the system said.
        source: io::Error,
    },
}

fn leads_to(path: Option<&String>) -> String {
    path.map(|path| format!(", resolved: {path}")).unwrap_or_default()
}

/// A path for a message: one line, not endless.
pub(crate) fn shown(path: &str) -> String {
    one_line(path, 200)
}

impl PathError {
    pub(crate) fn malformed(attempted: &str, reason: impl Into<String>) -> Self {
        PathError::Malformed { attempted: shown(attempted), reason: reason.into() }
    }

    pub(crate) fn outside(attempted: &str, resolved: Option<&Path>) -> Self {
        let resolved = resolved.map(|path| shown(&path.to_string_lossy()));
        PathError::Outside { attempted: shown(attempted), resolved, hint: None }
    }

    pub(crate) fn denied(attempted: &str, resolved: &Path, pattern: &str) -> Self {
        PathError::Denied {
            attempted: shown(attempted),
            resolved: Some(shown(&resolved.to_string_lossy())),
            pattern: pattern.to_owned(),
        }
    }

    pub(crate) fn moved(attempted: &str, resolved: &Path) -> Self {
        let resolved = shown(&resolved.to_string_lossy());
        PathError::Moved { attempted: shown(attempted), resolved }
    }

    /// What the system said about a path, by its kind.
    pub(crate) fn io(attempted: &str, source: io::Error) -> Self {
        let attempted = shown(attempted);
        match source.kind() {
            io::ErrorKind::NotFound => PathError::NotFound { attempted },
            io::ErrorKind::NotADirectory => PathError::NotFolder { attempted },
            io::ErrorKind::IsADirectory => PathError::Folder { attempted },
            _ => PathError::Io { attempted, source },
        }
    }

    /// Whether it says that nothing is there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, PathError::NotFound { .. })
    }
}

impl PathError {
    /// The path as it was asked for.
    fn attempted(&self) -> &str {
        match self {
            PathError::Malformed { attempted, .. }
            | PathError::Outside { attempted, .. }
            | PathError::Denied { attempted, .. }
            | PathError::ReadOnly { attempted, .. }
            | PathError::Moved { attempted, .. }
            | PathError::Link { attempted, .. }
            | PathError::Special { attempted, .. }
            | PathError::Folder { attempted }
            | PathError::NotFolder { attempted }
            | PathError::NotFound { attempted }
            | PathError::Io { attempted, .. } => attempted,
        }
    }

    /// What is wrong, in one word for programs.
    fn reason(&self) -> &'static str {
        match self {
            PathError::Malformed { .. } => "malformed",
            PathError::Outside { .. } => "outside",
            PathError::Denied { .. } => "denied",
            PathError::ReadOnly { .. } => "read_only",
            PathError::Moved { .. } => "moved",
            PathError::Link { .. } => "link",
            PathError::Special { .. } => "special_file",
            PathError::Folder { .. } => "folder",
            PathError::NotFolder { .. } => "not_a_folder",
            PathError::NotFound { .. } => "not_found",
            PathError::Io { .. } => "system",
        }
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        let (file, reason) = (error.attempted().to_owned(), error.reason());
        tool_error(error).with_fact("file", file).with_fact("reason", reason)
    }
}

fn tool_error(error: PathError) -> ToolError {
    let text = error.to_string();
    match error {
        PathError::Malformed { .. } => ToolError::bad_args(format!("Bad args: {text}")),
        PathError::Outside { attempted, resolved, hint } => {
            let text = hint.map_or(text.clone(), |hint| format!("{text}. {hint}"));
            ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
                .with_data(json!({"attempted": attempted, "resolved": resolved}))
        }
        PathError::Denied { attempted, resolved, pattern } => {
            ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
                .with_data(json!({"attempted": attempted, "resolved": resolved, "pattern": pattern}))
        }
        PathError::ReadOnly { attempted, resolved } | PathError::Moved { attempted, resolved } => {
            ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
                .with_data(json!({"attempted": attempted, "resolved": resolved}))
        }
        PathError::Link { attempted, target } => ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
            .with_data(json!({"attempted": attempted, "resolved": target})),
        PathError::Special { .. }
        | PathError::Folder { .. }
        | PathError::NotFolder { .. }
        | PathError::NotFound { .. } => ToolError::failed(text),
        PathError::Io { attempted, source } => match source.kind() {
            io::ErrorKind::PermissionDenied => {
                ToolError::failed(format!("'{attempted}': the system does not permit it"))
                    .with_diagnostics(source)
            }
            _ => ToolError::failed(text),
        },
    }
}
