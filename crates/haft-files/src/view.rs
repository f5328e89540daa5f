//! An open folder, as a tool sees it.

use super::{
    folder::{Folder, Opener},
    jail::{PathJail, Spot},
};
use haft_sdk::files::{FolderView, Listed, Metadata};
use std::{ffi::OsStr, io, path::Path, sync::Arc};

/// Its own path is not denied: that was checked when it was opened.
pub(crate) struct View {
    pub(crate) jail: Arc<PathJail>,
    pub(crate) folder: Folder,
    pub(crate) spot: Spot,
}

impl FolderView for View {
    fn entries(&self) -> io::Result<Vec<Listed>> {
        let mut entries = Vec::new();
        self.folder.names(|name, kind| {
            if !self.jail.denies_in(&self.spot, name) {
                entries.push(Listed { name: name.to_owned(), kind });
            }
        })?;
        Ok(entries)
    }

    fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.permit(name)?;
        Ok(self.folder.entry(name)?.metadata())
    }

    fn folder(&self, name: &OsStr) -> io::Result<Box<dyn FolderView>> {
        self.permit(name)?;
        let folder = self.folder.folder(Path::new(name), Opener::best())?;
        Ok(Box::new(View { jail: Arc::clone(&self.jail), folder, spot: self.spot.join(name) }))
    }
}

impl View {
    /// A name, and one that is not denied.
    fn permit(&self, name: &OsStr) -> io::Result<()> {
        let is_name = Path::new(name).file_name() == Some(name);
        match is_name && !self.jail.denies_in(&self.spot, name) {
            true => Ok(()),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}
