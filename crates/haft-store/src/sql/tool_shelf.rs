//! What is remembered about tools, as the ports have it.

use super::{registrations, store::DurableStore};
use haft_core::port::{BoxFuture, Registrations, StoreError, StoredTool, ToolChanges, ToolShelf, ToolsSeen};

impl DurableStore {
    /// What is remembered about tools now, to be compared with later. Blocks.
    pub fn tools_seen(&self) -> Result<ToolsSeen, StoreError> {
        self.0.readers.read_blocking(registrations::seen)
    }

    /// What was changed about tools since then, by any process, with what is seen now; `None` where nothing was. To ask
    /// costs the same however many tools there are.
    ///
    /// ```
    /// use haft_core::port::{Registrations as _, StoredTool};
    /// use haft_store::{DurableStore, Options};
    /// # let folder = tempfile::tempdir()?;
    /// # let store = DurableStore::open_sqlite(folder.path(), Options::default())?;
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let seen = store.tools_seen()?;
    /// assert!(store.tools_since(seen).await?.is_none());
    /// let off = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
    /// store.save(off.clone()).await?;
    /// let (seen, changes) = store.tools_since(seen).await?.unwrap_or_default();
    /// assert_eq!(changes.changed, [off]);
    /// assert!(store.tools_since(seen).await?.is_none());
    /// # Ok::<(), haft_core::port::StoreError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn tools_since(&self, seen: ToolsSeen) -> Result<Option<(ToolsSeen, ToolChanges)>, StoreError> {
        self.0.readers.read(move |sql| registrations::since(sql, seen)).await
    }

    /// Takes over what an earlier haft remembered in a file, all of it or nothing. What is here already stays; only what
    /// either of them switched off is off. Gives the names of those that differ. Blocks.
    pub fn import_tools(&self, brought: Vec<StoredTool>) -> Result<Vec<String>, StoreError> {
        let import = move |work: &mut super::work::Work<'_>| registrations::import(work, &brought);
        self.0.writer.submit("registration", false, import).wait_blocking()
    }
}

impl Registrations for DurableStore {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(self.0.readers.read(registrations::load))
    }

    fn save_all<'a>(&'a self, tools: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.0.write("registration", move |work| registrations::save(work, &tools)))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let name = name.to_owned();
        Box::pin(self.0.write("registration", move |work| registrations::remove(work, &name)))
    }
}

impl ToolShelf for DurableStore {
    fn find(&self, name: &str) -> Result<Option<StoredTool>, StoreError> {
        let name = name.to_owned();
        self.0.readers.read_blocking(move |sql| registrations::find(sql, &name))
    }

    fn of_server(&self, server: &str) -> Result<Vec<StoredTool>, StoreError> {
        let server = server.to_owned();
        self.0.readers.read_blocking(move |sql| registrations::of_server(sql, &server))
    }

    fn switched(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.0.readers.read_blocking(registrations::switched)
    }

    fn all(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.0.readers.read_blocking(registrations::load)
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.0.readers.read_blocking(registrations::names)
    }

    fn count(&self) -> Result<usize, StoreError> {
        let count = self.0.readers.read_blocking(registrations::count)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}
