//! What is remembered about tools. It is in the database; an earlier haft had it in a file, which is taken over once.

use super::{LazyStore, refused};
use haft_core::port::{BoxFuture, Registrations, StoreError, StoredTool, ToolChanges, ToolShelf, ToolsSeen};
use haft_store::{DurableStore, FileRegistrations, ImportedTools};
use std::{future::ready, sync::PoisonError};

impl LazyStore {
    /// The store with everything that is remembered about tools; `None` where nothing was ever remembered, and it need
    /// not be made to say so.
    fn tools(&self) -> Result<Option<&DurableStore>, StoreError> {
        let is_new = self.0.opened.get().is_none() && !self.0.place.exists();
        if is_new && !self.tools_file().path().exists() {
            return Ok(None);
        }
        self.take_over_tools()?;
        self.open().map(Some)
    }

    fn tools_file(&self) -> FileRegistrations {
        FileRegistrations::new(self.0.place.folder())
    }

    /// Takes over what an earlier haft remembered about tools in a file, which is kept under another name. Says what was
    /// done; `None` where there is no such file. One that cannot be read is an error, and every use of the tools is one
    /// until it is corrected or moved away: a tool that somebody switched off would be on again.
    pub fn take_over_tools(&self) -> Result<Option<ImportedTools>, StoreError> {
        let mut is_done = self.0.has_tools.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_done {
            return Ok(None);
        }
        let file = self.tools_file();
        let imported = match file.path().exists() {
            true => file.hand_over(self.open()?)?,
            false => None,
        };
        *is_done = true;
        Ok(imported)
    }

    /// What is remembered about tools now, to be compared with later. Blocks.
    pub fn tools_seen(&self) -> Result<ToolsSeen, StoreError> {
        self.tools()?.map_or_else(|| Ok(ToolsSeen::default()), DurableStore::tools_seen)
    }

    /// What was changed about tools since then, with what is seen now; `None` where nothing was.
    pub async fn tools_since(&self, seen: ToolsSeen) -> Result<Option<(ToolsSeen, ToolChanges)>, StoreError> {
        match self.tools()? {
            Some(store) => store.tools_since(seen).await,
            None => Ok(None),
        }
    }
}

impl Registrations for LazyStore {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        match self.tools() {
            Ok(Some(store)) => store.load(),
            Ok(None) => Box::pin(ready(Ok(Vec::new()))),
            Err(error) => refused(error),
        }
    }

    fn save_all<'a>(&'a self, tools: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.take_over_tools().and_then(|_| self.open()) {
            Ok(store) => store.save_all(tools),
            Err(error) => refused(error),
        }
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        match self.tools() {
            Ok(Some(store)) => Registrations::remove(store, name),
            Ok(None) => Box::pin(ready(Ok(()))),
            Err(error) => refused(error),
        }
    }
}

impl ToolShelf for LazyStore {
    fn find(&self, name: &str) -> Result<Option<StoredTool>, StoreError> {
        self.tools()?.map_or(Ok(None), |store| ToolShelf::find(store, name))
    }

    fn of_server(&self, server: &str) -> Result<Vec<StoredTool>, StoreError> {
        self.tools()?.map_or(Ok(Vec::new()), |store| store.of_server(server))
    }

    fn switched(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.tools()?.map_or(Ok(Vec::new()), ToolShelf::switched)
    }

    fn all(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.tools()?.map_or(Ok(Vec::new()), ToolShelf::all)
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.tools()?.map_or(Ok(Vec::new()), ToolShelf::names)
    }

    fn count(&self) -> Result<usize, StoreError> {
        self.tools()?.map_or(Ok(0), ToolShelf::count)
    }
}
