//! What staged commands wrote, in haft's state: one folder for each call, with its layers and what is known about it.
//!
//! ```text
//! state/staged/EXECUTION/set.json    how far the call came
//! state/staged/EXECUTION/lock        held while its process lives
//! state/staged/EXECUTION/layers/     what its command wrote
//! state/staged-locks/…               who works in which folder
//! ```
//!
//! How far each call came is also in the journal, which is what recovery reads. A step that changes files is in both
//! before it begins: first `set.json`, then the journal. So a set that says that it is being applied is looked after at
//! the next start, and the journal is told what became of it before anything is thrown away.

mod inner;
mod journal;
mod locks;
mod record;
mod recover;

pub(crate) use journal::Journal;
pub(crate) use recover::recover;

use haft_core::{
    ChangeSummary, EntryChange, ErrorCode, ExecutionId, ToolError,
    port::{
        BoxFuture, ChangeSets, ChangesStep, FoundChanges, KeepOutcome, KeptChanges, Stage, StageSpec,
        StagedCall, StagedRoot,
    },
};
use haft_files::{Files, Findings, Gate, StageRules, StagedKeep, UndoFit};
use inner::Inner;
use locks::RootLocks;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The folder of the state folder in which change sets are.
const STAGED: &str = "staged";
const LOCKS: &str = "staged-locks";
/// How many paths are named to policy. With more, a change set may touch anything.
const MOST_PATHS: usize = 20_000;

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

/// The gate of files in these folders: they are not changed while a staged command works there.
pub(crate) fn gate(state: &Path, roots: &[PathBuf]) -> Gate {
    let locks = RootLocks::new(state.join(LOCKS), roots);
    Arc::new(move || Ok(Box::new(locks.together()?)))
}

impl StagedCalls {
    pub(crate) fn new(
        state: &Path,
        bounds: StageBounds,
        rules: StageRules,
        files: Arc<Files>,
        roots: &[PathBuf],
        journal: Journal,
    ) -> Self {
        let rules = StageRules { most_listed: MOST_PATHS, ..rules };
        let locks = RootLocks::new(state.join(LOCKS), roots);
        StagedCalls(Arc::new(Inner::new(state.join(STAGED), bounds, rules, files, locks, journal)))
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

/// A place at which a test ends the process. Without the feature it is nothing.
fn failpoint(_done: &str) {
    #[cfg(feature = "failpoints")]
    haft_store::failpoint::hit("set", _done);
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
            let claim = self.0.locks.alone().await?;
            let (id, tenant) = (call.execution_id, call.tenant.clone());
            let stage = self.blocking(move |inner| {
                inner.make(&call, claim).map_err(|error| {
                    let text =
                        format!("there is no room for what the command writes: {error}. It was not run");
                    ToolError::new(ErrorCode::SandboxCreationFailed, text)
                })
            });
            let stage = stage.await?;
            failpoint("made");
            if let Err(error) = self.0.journal.tell(id, &tenant, ChangesStep::Staged).await {
                let text = "It could not be recorded that the command is staged, so it was not run";
                self.blocking(move |inner| inner.forget(id)).await?;
                return Err(ToolError { message: text.to_owned(), ..error });
            }
            Ok(stage)
        })
    }

    fn ran<'a>(
        &'a self,
        id: ExecutionId,
        roots: Vec<StagedRoot>,
    ) -> BoxFuture<'a, Result<FoundChanges, ToolError>> {
        Box::pin(self.blocking(move |inner| inner.ran(id, &roots)))
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
        Box::pin(self.blocking(move |inner| inner.diff(&tenant, id, most_bytes)))
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
