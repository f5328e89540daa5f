//! Whether a state folder is its user's own.
//!
//! What haft trusts, which tools it has, the audit and its key are in there. Somebody who could put a file or a link
//! there would decide what haft does, so a folder that is not its user's own is refused before anything in it is read.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Why a state folder is not used. [`help`](Self::help) says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateFolderError {
    /// It, or something in it, is a link.
    #[error("{} is a symbolic link, and a state folder must be without any", shown(.path))]
    Link {
        /// The link.
        path: PathBuf,
        /// Whether it is the folder itself.
        is_folder: bool,
    },
    /// A file in it has another name elsewhere.
    #[error("{} has another name elsewhere (a hard link), under which tools could reach it", shown(.path))]
    HardLink {
        /// The file.
        path: PathBuf,
    },
    /// It, or something in it, belongs to another user.
    #[error("{} belongs to the user {owner}, and haft runs as the user {user}", shown(.path))]
    NotYours {
        /// What belongs to somebody else.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs haft.
        user: u32,
    },
    /// Others may write it.
    #[error("{} can be written by other users", shown(.path))]
    Exposed {
        /// What they can write.
        path: PathBuf,
    },
    /// It is a file.
    #[error("{} is not a folder", shown(.path))]
    NotAFolder {
        /// What is there.
        path: PathBuf,
    },
    /// It cannot be looked at.
    #[error("{} cannot be looked at: {source}", shown(.path))]
    Unreadable {
        /// The folder, or something in it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn shown(path: &Path) -> String {
    haft_core::text::one_line(&path.to_string_lossy(), 400)
}

impl StateFolderError {
    /// What to do about it, in a line.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Link { path, is_folder: true } => match fs::canonicalize(path) {
                Ok(real) => {
                    format!("if it is yours, name the folder itself: HAFT_STATE_DIR={}", shown(&real))
                }
                Err(_) => "set HAFT_STATE_DIR to a folder of your own".to_owned(),
            },
            Self::Link { path, is_folder: false } => {
                format!("find out who made {}; then put what it leads to in its place", shown(path))
            }
            Self::HardLink { path } => alone(path),
            Self::NotYours { .. } => {
                "run haft as that user, or set HAFT_STATE_DIR to a folder of your own".to_owned()
            }
            Self::Exposed { path } => {
                format!("look whether all of it is yours, then run `chmod go-w '{}'`", shown(path))
            }
            Self::NotAFolder { .. } => "set HAFT_STATE_DIR to a folder of your own".to_owned(),
            Self::Unreadable { .. } => {
                "make it readable for you, or set HAFT_STATE_DIR to a folder of your own".to_owned()
            }
        }
    }
}

/// How a file gets to have one name only.
fn alone(path: &Path) -> String {
    let path = shown(path);
    format!(
        "find out who made it (`find / -samefile '{path}' 2>/dev/null`); then make it a file of its own: \
         cp -p '{path}' '{path}.own' && mv '{path}.own' '{path}'"
    )
}

/// Refuses a file that has more than one name: under the other one, nothing would tell that it is the owner's. One that
/// is not there is fine, and so is what is no file.
///
/// # Errors
///
/// It has another name, or it cannot be looked at.
pub fn check_only_name(path: &Path) -> Result<(), StateFolderError> {
    match look(path)? {
        Some(facts) if has_other_names(facts) => Err(StateFolderError::HardLink { path: path.to_owned() }),
        Some(_) | None => Ok(()),
    }
}

/// What is known of a file without following it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    is_link: bool,
    is_folder: bool,
    owner: u32,
    mode: u32,
    names: u64,
}

/// A folder has a name for itself and for each folder in it; those lead to nothing else.
const fn has_other_names(facts: Facts) -> bool {
    facts.names > 1 && !facts.is_folder && !facts.is_link
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Link,
    HardLink,
    NotYours,
    Exposed,
}

/// The decision, for the folder as for everything in it. Without a user only what shows by itself is a fault. What lies
/// in a folder that only its owner can enter is written by nobody else, whatever its mode says.
fn fault(facts: Facts, user: Option<u32>, in_private: bool) -> Option<Fault> {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    if facts.is_link {
        return Some(Fault::Link);
    }
    if has_other_names(facts) {
        return Some(Fault::HardLink);
    }
    if user.is_some_and(|user| user != facts.owner) {
        return Some(Fault::NotYours);
    }
    (facts.mode & WRITABLE_BY_OTHERS != 0 && !in_private).then_some(Fault::Exposed)
}

/// Refuses a state folder that is a link, belongs to somebody else or can be written by others, or in which such a file
/// lies. One that is not there yet is fine. `user` is who runs haft; without it only links and what others can write
/// are refused.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let state = folder.path().join("haft");
/// assert!(haft_store::check_state_folder(&state, None).is_ok(), "it can be made");
/// # #[cfg(unix)] {
/// haft_store::private_file::create_folder(&state)?;
/// std::os::unix::fs::symlink("/elsewhere", state.join("haft.db"))?;
/// let error = haft_store::check_state_folder(&state, None).unwrap_err();
/// assert!(error.to_string().ends_with("haft.db is a symbolic link, and a state folder must be without any"));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// The first thing that is wrong.
pub fn check_state_folder(folder: &Path, user: Option<u32>) -> Result<(), StateFolderError> {
    let Some(facts) = look(folder)? else { return Ok(()) };
    judge(folder, fault(facts, user, false), facts, user, true)?;
    if !facts.is_folder {
        return Err(StateFolderError::NotAFolder { path: folder.to_owned() });
    }
    let unreadable = |source| StateFolderError::Unreadable { path: folder.to_owned(), source };
    let is_private = facts.mode & 0o077 == 0;
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        // What another haft took away meanwhile is nobody's.
        if let Some(facts) = look(&path)? {
            judge(&path, fault(facts, user, is_private), facts, user, false)?;
        }
    }
    Ok(())
}

fn judge(
    path: &Path,
    found: Option<Fault>,
    facts: Facts,
    user: Option<u32>,
    is_folder: bool,
) -> Result<(), StateFolderError> {
    let path = path.to_owned();
    match found {
        None => Ok(()),
        Some(Fault::Link) => Err(StateFolderError::Link { path, is_folder }),
        Some(Fault::HardLink) => Err(StateFolderError::HardLink { path }),
        Some(Fault::NotYours) => {
            Err(StateFolderError::NotYours { path, owner: facts.owner, user: user.unwrap_or_default() })
        }
        Some(Fault::Exposed) => Err(StateFolderError::Exposed { path }),
    }
}

fn look(path: &Path) -> Result<Option<Facts>, StateFolderError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(facts(&metadata))),
        // Where a file is in the way, making the folder fails and says so.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(StateFolderError::Unreadable { path: path.to_owned(), source }),
    }
}

#[cfg(unix)]
fn facts(metadata: &fs::Metadata) -> Facts {
    use std::os::unix::fs::MetadataExt as _;
    Facts {
        is_link: metadata.is_symlink(),
        is_folder: metadata.is_dir(),
        owner: metadata.uid(),
        mode: metadata.mode(),
        names: metadata.nlink(),
    }
}

/// The state folder is in the user's profile, which the system keeps private.
#[cfg(not(unix))]
fn facts(metadata: &fs::Metadata) -> Facts {
    Facts { is_link: metadata.is_symlink(), is_folder: metadata.is_dir(), owner: 0, mode: 0, names: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_user_s_own_counts() {
        let own = Facts { is_link: false, is_folder: true, owner: 7, mode: 0o40700, names: 3 };
        let table = [
            (own, Some(7), None),
            (own, None, None),
            (own, Some(0), Some(Fault::NotYours)),
            (Facts { mode: 0o100644, ..own }, Some(7), None),
            (Facts { is_folder: false, names: 1, ..own }, Some(7), None),
            (Facts { is_folder: false, names: 2, ..own }, Some(7), Some(Fault::HardLink)),
            (Facts { is_folder: false, names: 2, ..own }, None, Some(Fault::HardLink)),
            (Facts { is_link: true, mode: 0o120777, ..own }, Some(7), Some(Fault::Link)),
            (Facts { is_link: true, owner: 8, ..own }, None, Some(Fault::Link)),
            (Facts { mode: 0o40770, ..own }, Some(7), Some(Fault::Exposed)),
            (Facts { mode: 0o40702, ..own }, None, Some(Fault::Exposed)),
            (Facts { mode: 0o41777, ..own }, Some(7), Some(Fault::Exposed)),
        ];
        for (facts, user, expected) in table {
            assert_eq!(fault(facts, user, false), expected, "{facts:?} for {user:?}");
            let inside = expected.filter(|fault| *fault != Fault::Exposed);
            assert_eq!(
                fault(facts, user, true),
                inside,
                "{facts:?} for {user:?}, in a folder of the user alone"
            );
        }
    }
}
