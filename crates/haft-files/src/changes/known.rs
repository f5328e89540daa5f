//! What is known of the changes of a call.

#[cfg(target_os = "linux")]
use super::tree;
use super::{
    Changes,
    manifest::{Manifest, Step},
    record::{self, Shelf},
};
use crate::jail::PathJail;
use haft_core::{ExecutionId, ToolError};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

/// How many paths undoing is decided about by name. What changes more may change anything.
const MOST_UNDONE: usize = 5_000;

/// What became of the changes that a call was making.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// Nothing was changed, or that was taken back, or it is too long ago to be known.
    Nothing,
    /// They were made, all of them.
    Made,
    /// They were cut, or are being made: to be taken back, or to be waited for.
    Cut,
}

/// What became of the changes of a call, by the records in that folder.
///
/// ```
/// use haft_core::ExecutionId;
/// # let folder = tempfile::tempdir()?;
/// let call = ExecutionId::at(jiff::Timestamp::now());
/// assert_eq!(haft_files::became_of(folder.path(), call)?, haft_files::Became::Nothing);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn became_of(records: &Path, by: ExecutionId) -> io::Result<Became> {
    Shelf::new(records).became_of(by)
}

impl Changes {
    /// Every path that undoing what a call of that tenant changed would change; `None` where nothing is known of it, or
    /// it is too much to name.
    pub(crate) fn changed_by(
        &self,
        jail: &PathJail,
        of: ExecutionId,
        tenant: &str,
    ) -> Result<Option<Vec<String>>, ToolError> {
        let unreadable =
            |error: io::Error| ToolError::failed(format!("what {of} changed cannot be read: {error}"));
        let mut paths = BTreeSet::new();
        for folder in self.shelf.of(of).map_err(unreadable)? {
            let read = record::read(&folder).map_err(unreadable)?;
            let Some((manifest, _)) = read.filter(|(manifest, _)| manifest.tenant == tenant) else {
                return Ok(None);
            };
            let touched = self.touched(jail, &folder, &manifest).map_err(unreadable)?;
            let Some(touched) = touched else { return Ok(None) };
            paths.extend(touched);
        }
        let texts = paths.into_iter().map(|path| path.into_os_string().into_string());
        // A name that is no text is named by nobody.
        let texts: Option<Vec<String>> = texts.map(Result::ok).collect();
        Ok(texts.filter(|paths| !paths.is_empty() && paths.len() <= MOST_UNDONE))
    }

    /// What haft put back when changes of that call were taken back.
    #[cfg(target_os = "linux")]
    pub(crate) fn restored(&self, of: ExecutionId) -> io::Result<crate::staged::Restored> {
        self.shelf.restored(&of.to_string())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn forget_restored(&self, of: ExecutionId) {
        self.shelf.forget_restored(&of.to_string());
    }

    fn touched(
        &self,
        jail: &PathJail,
        folder: &Path,
        manifest: &Manifest,
    ) -> io::Result<Option<Vec<PathBuf>>> {
        #[cfg(target_os = "linux")]
        if manifest.version == super::manifest::TREES {
            return tree::touched(jail, folder, &manifest.roots, MOST_UNDONE);
        }
        let _ = (jail, folder);
        Ok(Some(manifest.steps.iter().flat_map(Step::paths).cloned().collect()))
    }

    /// What became of the changes of a call.
    pub(crate) fn became_of(&self, by: ExecutionId) -> io::Result<Became> {
        self.shelf.became_of(by)
    }
}
