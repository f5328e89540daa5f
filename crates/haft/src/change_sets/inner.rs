//! The change sets of calls in the same folders, on a thread that may wait.

use super::{
    StageBounds, failpoint, found,
    journal::Journal,
    locks::{self, Claim, RootLocks},
    none,
    record::{Record, State},
    unread, unwritten,
};
use haft_core::{
    ChangeSummary, ChangesState, ErrorCode, ExecutionId, ToolError,
    port::{ChangesStep, FoundChanges, KeepOutcome, KeptChanges, Stage, StageSpec, StagedCall, StagedRoot},
};
use haft_files::{ApplyStaged, Became, Files, StageRules, StagedSet};
use jiff::Timestamp;
use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// How many change sets are remembered as applied by this process.
const MOST_APPLIED: usize = 64;
/// A folder without a record that is older than this is being thrown away, or was cut before anything was in it.
const NOT_YET: Duration = Duration::from_secs(60);
/// Why a set is kept whose haft was killed.
pub(super) const KILLED: &str = "haft was killed, and nothing was applied";

pub(super) struct Inner {
    pub(super) folder: PathBuf,
    bounds: StageBounds,
    rules: StageRules,
    files: Arc<Files>,
    pub(super) locks: RootLocks,
    pub(super) journal: Journal,
    /// One decision about a change set at a time.
    deciding: Mutex<()>,
    /// What this process applied last.
    applied: Mutex<Vec<(ExecutionId, ChangeSummary)>>,
    live: Live,
}

/// The calls of this process whose sets are not settled, with what they hold.
type Live = Arc<Mutex<HashMap<ExecutionId, Arc<Held>>>>;

/// Held while the call of a change set lives, and while its set is applied: also where nobody waits for that any more.
struct Held {
    _folders: Claim,
    _lock: File,
}

/// What a call has of it: dropped, it is not live any more.
struct LiveCall {
    id: ExecutionId,
    live: Live,
}

impl Drop for LiveCall {
    fn drop(&mut self) {
        let held = self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        drop(held);
    }
}

/// What somebody holds who decides about a set.
enum Deciding {
    /// Its own call.
    Call { _held: Arc<Held> },
    /// Somebody later: the set is theirs alone.
    Later { _lock: File },
}

pub(super) fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<_> = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// The lock of a change set; `None` where its process lives.
pub(super) fn lock(place: &Path) -> io::Result<Option<File>> {
    let file = locks::open(&place.join("lock"), true)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Throws a set away. Its record goes first: what is left after a kill is no set any more, and cannot be applied in
/// part.
pub(super) fn throw_away(place: &Path) -> io::Result<()> {
    Record::remove(place)?;
    failpoint("forgotten");
    haft_files::discard(place)?;
    failpoint("cleaned");
    Ok(())
}

/// Removes what is left of a set that was being thrown away when its process was killed.
pub(super) fn remove_leftover(place: &Path) {
    let made = fs::metadata(place).and_then(|known| known.modified());
    let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > NOT_YET));
    if is_old {
        // What cannot be removed now is tried again at the next start.
        let _ = haft_files::discard(place);
    }
}

impl Inner {
    pub(super) fn new(
        folder: PathBuf,
        bounds: StageBounds,
        rules: StageRules,
        files: Arc<Files>,
        locks: RootLocks,
        journal: Journal,
    ) -> Self {
        let (deciding, applied, live) = (Mutex::default(), Mutex::default(), Arc::default());
        Inner { folder, bounds, rules, files, locks, journal, deciding, applied, live }
    }

    fn place(&self, id: ExecutionId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn applied(&self) -> MutexGuard<'_, Vec<(ExecutionId, ChangeSummary)>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<Held>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a call that holds its folders.
    pub(super) fn make(&self, call: &StagedCall, folders: Claim) -> io::Result<Stage> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.sweep();
        let (id, place) = (call.execution_id, self.place(call.execution_id));
        throw_away(&place)?;
        fs::DirBuilder::new().mode(0o700).create(&place)?;
        let made = self.make_in(&place, call, folders);
        if made.is_err() {
            let _ = throw_away(&place);
        }
        let (spec, held) = made?;
        self.live().insert(id, Arc::new(held));
        Ok(Stage { spec, held: Box::new(LiveCall { id, live: Arc::clone(&self.live) }) })
    }

    fn make_in(&self, place: &Path, call: &StagedCall, folders: Claim) -> io::Result<(StageSpec, Held)> {
        let lock = lock(place)?.ok_or(io::ErrorKind::ResourceBusy)?;
        Record::new(call, Timestamp::now()).write(place)?;
        let spec = self.spec(place.join("layers"));
        fs::DirBuilder::new().mode(0o700).create(&spec.layers)?;
        Ok((spec, Held { _folders: folders, _lock: lock }))
    }

    pub(super) fn spec(&self, layers: PathBuf) -> StageSpec {
        let StageBounds { bytes, files, .. } = self.bounds;
        StageSpec { layers, most_bytes: Some(bytes), most_files: Some(files) }
    }

    /// Throws away what is kept for too long. What cannot be thrown away now is tried again with the next call.
    fn sweep(&self) {
        let is_in_use = |name: &OsStr| !matches!(lock(&self.folder.join(name)), Ok(Some(_)));
        let goes = haft_files::outdated(&self.folder, self.bounds.keep, SystemTime::now(), &is_in_use);
        for name in goes.unwrap_or_default() {
            let place = self.folder.join(name);
            // Somebody may decide about it just now.
            if let Ok(Some(_lock)) = lock(&place) {
                let _ = throw_away(&place);
            }
        }
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
        let restored = Arc::new(self.files.restored(id).map_err(|error| unread(&error))?);
        let set = StagedSet { roots, rules: StageRules { restored, ..self.rules.clone() } };
        Ok((place, record, set))
    }

    /// The set for one who decides about it: its call, or somebody later, whom nobody else is in the way of.
    fn hold(&self, id: ExecutionId, place: &Path) -> Result<Deciding, ToolError> {
        if let Some(held) = self.live().get(&id).cloned() {
            return Ok(Deciding::Call { _held: held });
        }
        let busy = || {
            let text = format!("The call {id} still runs, or somebody else decides about what it changed");
            ToolError::new(ErrorCode::Blocked, text)
        };
        let lock = lock(place).map_err(|error| unread(&error))?.ok_or_else(busy)?;
        Ok(Deciding::Later { _lock: lock })
    }

    /// The command of that call has ended.
    pub(super) fn ran(&self, id: ExecutionId, roots: &[StagedRoot]) -> Result<FoundChanges, ToolError> {
        failpoint("ended");
        let (place, mut record) = self.find(None, id)?;
        record.ran(roots);
        record.state = State::Ran;
        record.write(&place).map_err(|error| unwritten(&error))?;
        failpoint("recorded");
        self.journal.tell_now(&record, ChangesStep::Ran)?;
        let found = self.look(None, id);
        failpoint("read");
        found
    }

    pub(super) fn look(&self, tenant: Option<&str>, id: ExecutionId) -> Result<FoundChanges, ToolError> {
        let (_, _, set) = self.set(tenant, id)?;
        set.look().map(found).map_err(|error| unread(&error))
    }

    pub(super) fn diff(&self, tenant: &str, id: ExecutionId, most_bytes: usize) -> Result<String, ToolError> {
        let (_, _, set) = self.set(Some(tenant), id)?;
        set.diff(most_bytes).map_err(|error| unread(&error))
    }

    pub(super) fn apply(
        &self,
        tenant: &str,
        id: ExecutionId,
        fingerprint: &str,
        approved: bool,
    ) -> Result<ChangeSummary, ToolError> {
        let _turn = self.turn();
        failpoint("judged");
        let held = self.hold(id, &self.place(id))?;
        // Its call has the folders to itself. Later, a command may work there.
        let _folders = match &held {
            Deciding::Call { .. } => None,
            Deciding::Later { .. } => Some(self.locks.together()?),
        };
        let (place, mut record, set) = self.set(Some(tenant), id)?;
        let before = std::mem::replace(&mut record.state, State::Applying);
        record.write(&place).map_err(|error| unwritten(&error))?;
        let applied = self.journal.tell_now(&record, ChangesStep::Applying).and_then(|()| {
            let how = ApplyStaged {
                by: id,
                tenant: tenant.to_owned(),
                summary: record.summary.clone(),
                fingerprint: fingerprint.to_owned(),
                approved,
            };
            self.files.apply_staged(&set, &how)
        });
        match &applied {
            Ok(summary) => self.is_applied(&place, &record, summary),
            Err(_) => self.is_not_applied(&place, record, before)?,
        }
        applied
    }

    /// The journal is told before anything goes. Should either fail, the next start does it: the records of changed
    /// files say what happened.
    fn is_applied(&self, place: &Path, record: &Record, summary: &ChangeSummary) {
        let mut last = self.applied();
        last.truncate(MOST_APPLIED);
        last.insert(0, (record.execution_id, summary.clone()));
        drop(last);
        let told = self.journal.tell_now(record, ChangesStep::Settled(ChangesState::Applied));
        if told.is_ok() {
            let _ = throw_away(place);
        }
        self.files.forget_restored(record.execution_id);
    }

    /// Nothing was applied, unless that is not sure: then it stays as it is, and the next start takes it back.
    fn is_not_applied(&self, place: &Path, mut record: Record, before: State) -> Result<(), ToolError> {
        if !matches!(self.files.became_of(record.execution_id), Ok(Became::Nothing)) {
            return Ok(());
        }
        let step = match before {
            State::Kept { .. } => ChangesStep::Settled(ChangesState::Kept),
            State::Running | State::Ran | State::Applying => ChangesStep::Ran,
        };
        // Where it cannot be told, the set still says that it is being applied, and the next start finds out.
        let _ = self.journal.tell_now(&record, step);
        record.state = before;
        record.write(place).map_err(|error| unwritten(&error))
    }

    pub(super) fn keep(&self, id: ExecutionId, why: &str) -> Result<KeepOutcome, ToolError> {
        let _turn = self.turn();
        failpoint("judged");
        let place = self.place(id);
        let applied = || self.applied().iter().find(|(applied, _)| *applied == id).cloned();
        if let Some((_, summary)) = applied() {
            return Ok(KeepOutcome::Applied(summary));
        }
        let Some(mut record) = Record::read(&place).map_err(|error| unread(&error))? else {
            return Ok(KeepOutcome::Nothing);
        };
        let until = |at: Timestamp| at.checked_add(self.bounds.keep.age).unwrap_or(Timestamp::MAX);
        // Whether it was applied is for the next start to find out, and so is what becomes of it.
        if record.state == State::Applying && !matches!(self.files.became_of(id), Ok(Became::Nothing)) {
            return Ok(KeepOutcome::Kept(until(record.at)));
        }
        record.state = State::Kept { why: why.to_owned() };
        record.at = Timestamp::now();
        record.write(&place).map_err(|error| unwritten(&error))?;
        failpoint("kept");
        // What the journal has of it says the same about the files: nothing was applied.
        let _ = self.journal.tell_now(&record, ChangesStep::Settled(ChangesState::Kept));
        Ok(KeepOutcome::Kept(until(record.at)))
    }

    pub(super) fn discard(&self, tenant: &str, id: ExecutionId) -> Result<(), ToolError> {
        let _turn = self.turn();
        failpoint("judged");
        let (place, _) = self.find(Some(tenant), id)?;
        let _held = self.hold(id, &place)?;
        // Somebody may have decided since.
        let (place, record) = self.find(Some(tenant), id)?;
        throw_away(&place).map_err(|error| {
            ToolError::failed(format!(
                "what {id} changed could not be thrown away: {error}. It was not applied"
            ))
        })?;
        self.files.forget_restored(id);
        let _ = self.journal.tell_now(&record, ChangesStep::Settled(ChangesState::Discarded));
        Ok(())
    }

    /// Throws away room that nothing was written to.
    pub(super) fn forget(&self, id: ExecutionId) -> Result<(), ToolError> {
        throw_away(&self.place(id)).map_err(|error| unread(&error))
    }

    pub(super) fn list(&self, tenant: &str) -> io::Result<Vec<KeptChanges>> {
        let mut kept = Vec::new();
        for name in names(&self.folder)? {
            let place = self.folder.join(name);
            let Some(record) = Record::read(&place)?.filter(|record| record.tenant == tenant) else {
                continue;
            };
            let can_apply = record.roots().is_some();
            let why = match &record.state {
                State::Kept { why } => why.clone(),
                // Its process is gone, and that could not be written down: the disk is full, say.
                State::Running | State::Ran if matches!(lock(&place), Ok(Some(_))) => KILLED.to_owned(),
                State::Running | State::Ran | State::Applying => continue,
            };
            kept.push(KeptChanges { call: record.call(), why, since: record.at, can_apply });
        }
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.since));
        Ok(kept)
    }
}
