//! What staged commands wrote, in haft's state: one folder for each call, with its layers and what is known about it.
//!
//! ```text
//! state/staged/EXECUTION/set.json    how far the call came
//! state/staged/EXECUTION/lock        held while its process lives
//! state/staged/EXECUTION/layers/     what its command wrote
//! state/staged-locks/…               who works in which folder
//! ```

mod locks;
mod record;

use crate::facade::Unsettled;
use haft_core::{
    ChangeSummary, EntryChange, ErrorCode, ExecutionId, ToolError,
    port::{
        BoxFuture, ChangeSets, FoundChanges, KeepOutcome, KeptChanges, Stage, StageSpec, StagedCall,
        StagedRoot,
    },
};
use haft_files::{ApplyStaged, Files, Findings, Gate, StageRules, StagedKeep, StagedSet, UndoFit};
use jiff::Timestamp;
use locks::RootLocks;
use record::{Record, State};
use std::{
    ffi::OsStr,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

/// The folder of the state folder in which change sets are.
const STAGED: &str = "staged";
const LOCKS: &str = "staged-locks";
/// How many paths are named to policy. With more, a change set may touch anything.
const MOST_PATHS: usize = 20_000;
/// How many change sets are remembered as applied by this process.
const MOST_APPLIED: usize = 64;

/// How much is staged and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageBounds {
    /// Bytes that a command may write.
    pub(crate) bytes: u64,
    /// Files and folders that it may make or change.
    pub(crate) files: u64,
    /// How long and how much is kept where nobody decides.
    pub(crate) keep: StagedKeep,
}

/// The change sets of calls in the same folders.
pub(crate) struct StagedCalls(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    bounds: StageBounds,
    rules: StageRules,
    files: Arc<Files>,
    locks: RootLocks,
    /// One decision about a change set at a time.
    deciding: Mutex<()>,
    /// What this process applied last.
    applied: Mutex<Vec<(ExecutionId, ChangeSummary)>>,
}

/// Held while the call of a change set lives.
struct Held {
    _roots: Vec<File>,
    _lock: File,
}

/// The gate of files in these folders: they are not changed while a staged command works there.
pub(crate) fn gate(state: &Path, roots: &[PathBuf]) -> Gate {
    let locks = RootLocks::new(state.join(LOCKS), roots);
    Arc::new(move || locks.together())
}

impl StagedCalls {
    pub(crate) fn new(
        state: &Path,
        bounds: StageBounds,
        rules: StageRules,
        files: Arc<Files>,
        roots: &[PathBuf],
    ) -> Self {
        StagedCalls(Arc::new(Inner {
            folder: state.join(STAGED),
            bounds,
            rules: StageRules { most_listed: MOST_PATHS, ..rules },
            files,
            locks: RootLocks::new(state.join(LOCKS), roots),
            deciding: Mutex::default(),
            applied: Mutex::default(),
        }))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|_| Err(ErrorCode::Panicked.into()))
    }
}

/// Marks what a killed haft left: nothing of it was applied, unless all of it was.
pub(crate) fn recover(state: &Path, files: &Files) -> io::Result<Vec<Unsettled>> {
    let folder = state.join(STAGED);
    let mut recovered = Vec::new();
    for name in names(&folder)? {
        let place = folder.join(&name);
        // Its process lives, or another one looks after it just now.
        let Ok(Some(_lock)) = lock(&place) else { continue };
        let Some(mut record) = Record::read(&place)? else { continue };
        let applied = match record.state {
            State::Kept { .. } => continue,
            State::Running | State::Ran => false,
            State::Applying => files.has_changed(record.execution_id)?,
        };
        let (execution_id, summary) = (record.execution_id, record.summary.clone());
        match applied {
            true => haft_files::discard(&place)?,
            false => {
                record.state = State::Kept { why: "haft was killed, and nothing was applied".to_owned() };
                record.write(&place)?;
            }
        }
        recovered.push(Unsettled { execution_id, summary, applied });
    }
    Ok(recovered)
}

fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<_> = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// The lock of a change set; `None` where its process lives.
fn lock(place: &Path) -> io::Result<Option<File>> {
    let file = locks::open(&place.join("lock"), true)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Inner {
    fn place(&self, id: ExecutionId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn applied(&self) -> MutexGuard<'_, Vec<(ExecutionId, ChangeSummary)>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a call that holds its folders.
    fn make(&self, call: &StagedCall, roots: Vec<File>) -> io::Result<Stage> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.sweep();
        let place = self.place(call.execution_id);
        haft_files::discard(&place)?;
        fs::DirBuilder::new().mode(0o700).create(&place)?;
        let lock = lock(&place)?.ok_or(io::ErrorKind::ResourceBusy)?;
        Record::new(call, Timestamp::now()).write(&place)?;
        let spec = self.spec(place.join("layers"));
        fs::DirBuilder::new().mode(0o700).create(&spec.layers)?;
        Ok(Stage { spec, held: Box::new(Held { _roots: roots, _lock: lock }) })
    }

    fn spec(&self, layers: PathBuf) -> StageSpec {
        let StageBounds { bytes, files, .. } = self.bounds;
        StageSpec { layers, most_bytes: Some(bytes), most_files: Some(files) }
    }

    /// Throws away what is kept for too long. What cannot be thrown away now is tried again with the next call.
    fn sweep(&self) {
        let is_in_use = |name: &OsStr| !matches!(lock(&self.folder.join(name)), Ok(Some(_)));
        let _ = haft_files::sweep(&self.folder, self.bounds.keep, SystemTime::now(), &is_in_use);
    }

    /// The change set of a call of that tenant.
    fn find(&self, tenant: Option<&str>, id: ExecutionId) -> Result<(PathBuf, Record), ToolError> {
        let place = self.place(id);
        let record = Record::read(&place).map_err(|error| unread(&error))?;
        let record = record.filter(|record| tenant.is_none_or(|tenant| record.tenant == tenant));
        record.map(|record| (place, record)).ok_or_else(|| none(id))
    }

    /// The same, with what its command wrote.
    fn set(&self, tenant: Option<&str>, id: ExecutionId) -> Result<(PathBuf, Record, StagedSet), ToolError> {
        let (place, record) = self.find(tenant, id)?;
        let Some(roots) = record.roots() else {
            let text = match record.state {
                State::Running => format!("The command of {id} still runs, or was killed with haft"),
                State::Ran | State::Applying | State::Kept { .. } => format!(
                    "The command of {id} was stopped before it could be seen what it wrote. It can only be discarded"
                ),
            };
            return Err(ToolError::failed(text));
        };
        let set = StagedSet { roots, rules: self.rules.clone() };
        Ok((place, record, set))
    }

    fn look(&self, tenant: Option<&str>, id: ExecutionId) -> Result<FoundChanges, ToolError> {
        let (_, _, set) = self.set(tenant, id)?;
        set.look().map(found).map_err(|error| unread(&error))
    }

    fn apply(
        &self,
        tenant: &str,
        id: ExecutionId,
        fingerprint: &str,
        approved: bool,
    ) -> Result<ChangeSummary, ToolError> {
        let _turn = self.turn();
        let (place, mut record, set) = self.set(Some(tenant), id)?;
        let before = std::mem::replace(&mut record.state, State::Applying);
        record.write(&place).map_err(|error| unwritten(&error))?;
        let how = ApplyStaged {
            by: id,
            tenant: tenant.to_owned(),
            summary: record.summary.clone(),
            fingerprint: fingerprint.to_owned(),
            approved,
        };
        let applied = self.files.apply_staged(&set, &how);
        match &applied {
            Ok(summary) => {
                let mut last = self.applied();
                last.truncate(MOST_APPLIED);
                last.insert(0, (id, summary.clone()));
                // Should it stay, it is thrown away at the next start: its changes are on record.
                let _ = haft_files::discard(&place);
            }
            Err(_) => {
                record.state = before;
                record.write(&place).map_err(|error| unwritten(&error))?;
            }
        }
        applied
    }

    fn keep(&self, id: ExecutionId, why: &str) -> Result<KeepOutcome, ToolError> {
        let _turn = self.turn();
        let place = self.place(id);
        let Some(mut record) = Record::read(&place).map_err(|error| unread(&error))? else {
            let applied = self.applied().iter().find(|(applied, _)| *applied == id).cloned();
            return Ok(applied.map_or(KeepOutcome::Nothing, |(_, summary)| KeepOutcome::Applied(summary)));
        };
        record.state = State::Kept { why: why.to_owned() };
        record.at = Timestamp::now();
        record.write(&place).map_err(|error| unwritten(&error))?;
        let until = record.at.checked_add(self.bounds.keep.age).unwrap_or(Timestamp::MAX);
        Ok(KeepOutcome::Kept(until))
    }

    fn discard(&self, tenant: &str, id: ExecutionId) -> Result<(), ToolError> {
        let _turn = self.turn();
        let (place, _) = self.find(Some(tenant), id)?;
        haft_files::discard(&place).map_err(|error| {
            ToolError::failed(format!(
                "what {id} changed could not be thrown away: {error}. It was not applied"
            ))
        })
    }

    fn list(&self, tenant: &str) -> io::Result<Vec<KeptChanges>> {
        let mut kept = Vec::new();
        for name in names(&self.folder)? {
            let Some(record) = Record::read(&self.folder.join(name))? else { continue };
            let can_apply = record.roots().is_some();
            if let (State::Kept { why }, true) = (&record.state, record.tenant == tenant) {
                kept.push(KeptChanges { call: record.call(), why: why.clone(), since: record.at, can_apply });
            }
        }
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.since));
        Ok(kept)
    }
}

/// What was found out, in words.
fn found(findings: Findings) -> FoundChanges {
    let Findings { summary, violations, asks, conflicts, undo, fingerprint } = findings;
    let words = |first: Vec<String>, total: u64| {
        let more = total.saturating_sub(first.len() as u64);
        let more = (more > 0).then(|| format!("{more} more"));
        first.into_iter().chain(more).collect::<Vec<_>>()
    };
    let mut asks = words(asks.first.iter().map(ToString::to_string).collect(), asks.total);
    if let UndoFit::TooLarge { bytes, .. } = undo {
        asks.insert(0, format!("it replaces or deletes {bytes} bytes, and cannot be undone"));
    }
    let mut paths = Vec::new();
    for entry in &summary.changes {
        paths.push(entry.path.clone());
        if let EntryChange::Moved(from) = &entry.change {
            paths.push(from.clone());
        }
    }
    FoundChanges {
        paths: (summary.omitted == 0).then_some(paths),
        violations: words(violations.first.iter().map(ToString::to_string).collect(), violations.total),
        conflicts: words(conflicts.first.iter().map(ToString::to_string).collect(), conflicts.total),
        asks,
        fingerprint,
        summary,
    }
}

fn none(id: ExecutionId) -> ToolError {
    let text = format!(
        "There are no changes of {id} to apply or discard: they were applied or discarded, or kept for too long, or \
         there never were any"
    );
    ToolError::failed(text)
}

fn unread(error: &io::Error) -> ToolError {
    ToolError::failed(format!("what the command changed cannot be read: {error}. Nothing was applied"))
}

fn unwritten(error: &io::Error) -> ToolError {
    ToolError::failed(format!("what becomes of the changes cannot be written down: {error}"))
}

impl ChangeSets for StagedCalls {
    fn place(&self) -> StageSpec {
        self.0.spec(self.0.folder.join("layers"))
    }

    fn open<'a>(&'a self, call: StagedCall) -> BoxFuture<'a, Result<Stage, ToolError>> {
        Box::pin(async move {
            let roots = self.0.locks.alone().await?;
            self.blocking(move |inner| {
                inner.make(&call, roots).map_err(|error| {
                    let text =
                        format!("there is no room for what the command writes: {error}. It was not run");
                    ToolError::new(ErrorCode::SandboxCreationFailed, text)
                })
            })
            .await
        })
    }

    fn ran<'a>(
        &'a self,
        id: ExecutionId,
        roots: Vec<StagedRoot>,
    ) -> BoxFuture<'a, Result<FoundChanges, ToolError>> {
        Box::pin(self.blocking(move |inner| {
            let (place, mut record) = inner.find(None, id)?;
            record.ran(&roots);
            record.state = State::Ran;
            record.write(&place).map_err(|error| unwritten(&error))?;
            inner.look(None, id)
        }))
    }

    fn look<'a>(
        &'a self,
        tenant: &'a str,
        id: ExecutionId,
    ) -> BoxFuture<'a, Result<FoundChanges, ToolError>> {
        let tenant = tenant.to_owned();
        Box::pin(self.blocking(move |inner| inner.look(Some(&tenant), id)))
    }

    fn diff<'a>(
        &'a self,
        tenant: &'a str,
        id: ExecutionId,
        most_bytes: usize,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        let tenant = tenant.to_owned();
        Box::pin(self.blocking(move |inner| {
            let (_, _, set) = inner.set(Some(&tenant), id)?;
            set.diff(most_bytes).map_err(|error| unread(&error))
        }))
    }

    fn apply<'a>(
        &'a self,
        tenant: &'a str,
        id: ExecutionId,
        fingerprint: &'a str,
        approved: bool,
    ) -> BoxFuture<'a, Result<ChangeSummary, ToolError>> {
        let (tenant, fingerprint) = (tenant.to_owned(), fingerprint.to_owned());
        Box::pin(self.blocking(move |inner| inner.apply(&tenant, id, &fingerprint, approved)))
    }

    fn keep<'a>(&'a self, id: ExecutionId, why: &'a str) -> BoxFuture<'a, Result<KeepOutcome, ToolError>> {
        let why = why.to_owned();
        Box::pin(self.blocking(move |inner| inner.keep(id, &why)))
    }

    fn discard<'a>(&'a self, tenant: &'a str, id: ExecutionId) -> BoxFuture<'a, Result<(), ToolError>> {
        let tenant = tenant.to_owned();
        Box::pin(self.blocking(move |inner| inner.discard(&tenant, id)))
    }

    fn list<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<Vec<KeptChanges>, ToolError>> {
        let tenant = tenant.to_owned();
        Box::pin(self.blocking(move |inner| inner.list(&tenant).map_err(|error| unread(&error))))
    }
}
