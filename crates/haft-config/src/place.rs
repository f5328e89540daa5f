//! Where something was written, as a person finds it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::visible;

/// Where a value was written.
///
/// ```
/// use haft_config::{Inputs, Place, SourceText, resolve};
///
/// let user = SourceText::new("/home/ada/.config/haft/haft.toml", "[tools]\nmod = 1\n");
/// let error = resolve(&Inputs { user: Some(user), ..Inputs::default() }).unwrap_err();
/// assert_eq!(error.problems()[0].place().to_string(), "/home/ada/.config/haft/haft.toml:2:1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In a file.
    File {
        /// The file, relative to the working folder where it is inside it.
        path: PathBuf,
        /// Whose file it is.
        owner: Owner,
        /// Where in the file, if at one place.
        position: Option<Position>,
    },
    /// In an environment variable.
    Variable {
        /// The name of the variable.
        name: String,
    },
    /// By `haft policy use`, for a folder.
    Chosen {
        /// The folder.
        folder: PathBuf,
    },
    /// On the command line.
    Flag {
        /// The key it sets.
        key: String,
    },
}

/// Whose a configuration file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// The user's own, outside any project.
    User,
    /// It lies in the working folder or above it, and may have come with a project.
    Folder,
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A path as messages show it: relative where it is inside the working folder.
pub(super) fn shown(path: &Path, working_folder: &Path) -> PathBuf {
    match path.strip_prefix(working_folder) {
        // Everything is inside the root folder; that says nothing.
        Ok(inside) if working_folder.parent().is_some() => inside.to_path_buf(),
        Ok(_) | Err(_) => path.to_path_buf(),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, position: None, .. } => f.write_str(&visible::path(path)),
            Self::File { path, position: Some(Position { line, column }), .. } => {
                write!(f, "{}:{line}:{column}", visible::path(path))
            }
            Self::Variable { name } => f.write_str(&visible::plain(name)),
            Self::Chosen { folder } => write!(f, "the profile chosen for {}", visible::path(folder)),
            Self::Flag { .. } => f.write_str("the command line"),
        }
    }
}

impl Place {
    /// `in haft.toml:7:1`, `in HAFT_TOOLS_MODE`, `on the command line`.
    pub(super) fn within(&self) -> String {
        match self {
            Self::File { .. } | Self::Variable { .. } | Self::Chosen { .. } => format!("in {self}"),
            Self::Flag { .. } => format!("on {self}"),
        }
    }

    pub(super) fn position(&self) -> Option<Position> {
        match self {
            Self::File { position, .. } => *position,
            Self::Variable { .. } | Self::Chosen { .. } | Self::Flag { .. } => None,
        }
    }

    pub(super) fn is_in_folder(&self) -> bool {
        matches!(self, Self::File { owner: Owner::Folder, .. })
    }
}
