//! Files as tools are granted them: the path jail, the memory of what was read, and changes that are whole.

use super::{
    changes::{Became, Changes, Keep, TakenBack},
    jail::{PathJail, special},
    view::View,
    walk,
};
use haft_core::{
    ErrorCode, ExecutionId, Footprint, ToolError,
    port::{ReadHashes, ReadRecord, StoreError},
};
use haft_sdk::files::{
    Access, ChangeSet, Changed, FileOutcome, FolderView, Kind, Metadata, OpenFile, Place, Reader, Scope,
    Step, Visit, Visitor, Walk, Workspace,
};
use jiff::Timestamp;
use serde_json::Value;
use std::{any::Any, path::Path, sync::Arc};

/// The files below the roots of a path jail.
pub struct Files {
    jail: Arc<PathJail>,
    reads: Arc<dyn ReadHashes>,
    changes: Arc<Changes>,
    gate: Option<Gate>,
}

/// Passed before files are changed: what it gives is held until they are.
pub type Gate = Arc<dyn Fn() -> Result<Box<dyn Any>, ToolError> + Send + Sync>;

impl Files {
    /// Files of that jail. What was read is remembered there; what was changed is kept in that folder, which no tool
    /// reaches.
    pub fn new(jail: Arc<PathJail>, reads: Arc<dyn ReadHashes>, records: &Path, keep: Keep) -> Self {
        Files { jail, reads, changes: Arc::new(Changes::new(records, keep)), gate: None }
    }

    /// The same files, which are changed only when this gate lets that through.
    #[must_use]
    pub fn with_gate(self, gate: Gate) -> Self {
        Files { gate: Some(gate), ..self }
    }

    fn pass(&self) -> Result<Option<Box<dyn Any>>, ToolError> {
        self.gate.as_ref().map(|gate| gate()).transpose()
    }

    /// What became of the changes that a call was making.
    pub fn became_of(&self, by: ExecutionId) -> std::io::Result<Became> {
        self.changes.became_of(by)
    }

    /// What haft itself put back when changes of that call were cut and taken back: see
    /// [`StageRules`](crate::StageRules).
    #[cfg(target_os = "linux")]
    pub fn restored(&self, of: ExecutionId) -> std::io::Result<crate::Restored> {
        self.changes.restored(of)
    }

    /// Forgets that: the changes of the call are applied or thrown away.
    #[cfg(target_os = "linux")]
    pub fn forget_restored(&self, of: ExecutionId) {
        self.changes.forget_restored(of);
    }

    /// Takes back the changes that a crash cut, of this process or another one that ended. To be called at the start.
    pub fn recover(&self) -> std::io::Result<Vec<TakenBack>> {
        self.changes.recover()
    }

    /// Applies what a command wrote apart from the files themselves: all of it, or nothing. It is looked at once more
    /// before; with a violation or a conflict nothing is applied. The layers are left to [`discard`](crate::discard).
    #[cfg(target_os = "linux")]
    pub fn apply_staged(
        &self,
        set: &crate::StagedSet,
        how: &crate::ApplyStaged,
    ) -> Result<haft_core::ChangeSummary, ToolError> {
        self.changes.apply_staged(&self.jail, set, how)
    }

    /// Calls this at every point at which a change could be cut. For tests.
    #[doc(hidden)]
    pub fn at_points(&mut self, points: Arc<dyn Fn(&str) + Send + Sync>) {
        if let Some(changes) = Arc::get_mut(&mut self.changes) {
            changes.at_points(points);
        }
    }

    /// The files that changed count as read by the conversation that changed them.
    fn remember_all(&self, reader: &Reader, changed: &[Changed]) -> Result<(), ToolError> {
        for changed in changed {
            // What only got another name was not seen by anybody.
            let is_moved = matches!(changed.outcome, FileOutcome::Moved { .. });
            if let (Some(after), false) = (&changed.after, is_moved) {
                self.remember(reader, &changed.place, after)?;
            }
        }
        Ok(())
    }
}

fn not_remembered(error: StoreError) -> ToolError {
    ToolError::from(ErrorCode::StoreUnavailable).with_diagnostics(error)
}

impl Workspace for Files {
    fn for_worker(&self) -> Result<Value, ToolError> {
        crate::worker::described(&self.jail)
    }

    fn locate(&self, path: &str, access: Access) -> Result<Place, ToolError> {
        Ok(self.jail.locate(path, access)?)
    }

    fn look(&self, path: &str) -> Result<Option<(Place, Metadata)>, ToolError> {
        let (spot, entry) = self.jail.look(path)?;
        Ok(entry.map(|entry| (self.jail.place(&spot), entry.metadata())))
    }

    fn working_folder(&self, path: &str) -> Result<Place, ToolError> {
        let (_, spot) = self.jail.open_folder(path)?;
        Ok(self.jail.place(&spot))
    }

    fn open(&self, path: &str) -> Result<OpenFile, ToolError> {
        let opened = self.jail.open(path)?;
        Ok(OpenFile { file: opened.file.into(), place: opened.place, len: opened.len })
    }

    fn folder(&self, path: &str) -> Result<(Place, Box<dyn FolderView>), ToolError> {
        let (folder, spot) = self.jail.open_folder(path)?;
        self.jail.hold(path, &spot, Access::Read)?;
        let place = self.jail.place(&spot);
        Ok((place, Box::new(View { jail: Arc::clone(&self.jail), folder, spot })))
    }

    fn walk(&self, walk: &Walk<'_>, visitor: &Visitor<'_>) -> Result<Place, ToolError> {
        let spot = self.jail.spot(walk.path, Access::Read)?;
        match self.jail.entry_at(walk.path, &spot)?.map(|entry| entry.kind) {
            Some(Kind::Folder) => {
                let (_, spot) = self.jail.open_folder(walk.path)?;
                self.jail.hold(walk.path, &spot, Access::Read)?;
                let place = self.jail.place(&spot);
                walk::walk(&self.jail, walk, spot, visitor);
                Ok(place)
            }
            Some(Kind::File) => {
                let name = spot.below.file_name().unwrap_or_default();
                let _: Step = visitor(&Visit {
                    below: Path::new(name),
                    open: &|| Ok(self.jail.open_spot(&spot)?.into()),
                });
                Ok(self.jail.place(&spot))
            }
            Some(Kind::Link | Kind::Other) => Err(special(walk.path).into()),
            None => Err(super::PathError::NotFound { attempted: walk.path.to_owned() }.into()),
        }
    }

    fn protects(&self, path: &str, scope: Scope) -> Result<Option<String>, ToolError> {
        Ok(self.jail.protects(Path::new(path), scope))
    }

    fn change(&self, set: ChangeSet) -> Result<Vec<Changed>, ToolError> {
        let _passed = self.pass()?;
        let changed = self.changes.make(&self.jail, &set)?;
        // The change is made, and saying otherwise would be wrong: what is not remembered is read again.
        let _ = self.remember_all(&set.reader, &changed);
        Ok(changed)
    }

    fn changed_by(&self, of: ExecutionId, tenant: &str) -> Result<Option<Vec<String>>, ToolError> {
        self.changes.changed_by(&self.jail, of, tenant)
    }

    fn undo(&self, of: ExecutionId, by: ExecutionId, reader: &Reader) -> Result<Vec<Changed>, ToolError> {
        let _passed = self.pass()?;
        let changed = self.changes.undo(&self.jail, of, by, &reader.tenant)?;
        let _ = self.remember_all(reader, &changed);
        Ok(changed)
    }

    fn last_read(&self, reader: &Reader, place: &Place) -> Result<Option<String>, ToolError> {
        self.jail.hold_place(place)?;
        let record = self.reads.recall(&reader.tenant, &reader.conversation, &place.path);
        Ok(record.map_err(not_remembered)?.map(|record| record.sha256))
    }

    fn remember(&self, reader: &Reader, place: &Place, sha256: &str) -> Result<(), ToolError> {
        self.jail.hold_place(place)?;
        let record = ReadRecord { sha256: sha256.to_owned(), at: Timestamp::now() };
        self.reads
            .remember(&reader.tenant, &reader.conversation, &place.path, &record)
            .map_err(not_remembered)
    }

    fn held_to(&self, footprint: &Footprint) -> Arc<dyn Workspace> {
        Arc::new(Files {
            jail: Arc::new(self.jail.held_to(footprint)),
            reads: Arc::clone(&self.reads),
            changes: Arc::clone(&self.changes),
            gate: self.gate.clone(),
        })
    }
}
