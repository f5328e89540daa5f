//! What is remembered, as a person at a terminal asks for it.
//!
//! | file | what |
//! |---|---|
//! | `args`, `filter`, `prefix` | what can be typed; which calls; ids by a prefix |
//! | `approvals`, `answering`, `grants` | `haft approvals`, `haft grants`: questions, answers, what is remembered of them |
//! | `runs`, `watching` | `haft runs`: calls that ended, calls that run |
//! | `tasks` | the same for detached calls |
//! | `audit` | `haft audit`: the record and its seals |
//! | `recover` | `haft recover`: what a crash left, and a person's decision about it |
//! | `upkeep` | `haft backup`, `haft gc` |
//! | `record`, `table` | a record as JSON and as a line; columns that fit |

mod answering;
mod approvals;
mod args;
mod audit;
mod filter;
mod grants;
mod prefix;
mod record;
mod recover;
mod runs;
mod table;
mod tasks;
mod upkeep;
mod watching;

pub(super) use approvals::ApprovalsCommand;
pub(super) use approvals::remember_as;
pub(super) use args::{AuditCommand, BackupArgs, GcArgs, RecoverArgs, RunsCommand};
pub(super) use grants::GrantsCommand;
pub(super) use prefix::{Which, run_id};

#[cfg(unix)]
use super::worker;
use super::{
    console::Console,
    failure::Failure,
    setup::{self, CliContext, Configured, now},
    watch,
};
#[cfg(unix)]
use haft::assembly::LazyStore;
use haft::{Approvals, CallContext, DurableStore, assembly::CHANGES, config::Config, port::Store as _};
use std::path::PathBuf;

/// What these commands stand on: the store, and no engine.
pub(super) struct Memory {
    pub(super) store: DurableStore,
    pub(super) config: Config,
    pub(super) state: PathBuf,
    pub(super) working_folder: PathBuf,
    /// The file in which ends of the audit chain are told.
    pub(super) heads: Option<PathBuf>,
    /// The person at the keyboard, as records name them.
    pub(super) user: String,
    #[cfg(unix)]
    pub(super) lazy: LazyStore,
    #[cfg(unix)]
    pub(super) editor: Option<super::prompt::editor::Editor>,
}

impl Memory {
    pub(super) fn open(ground: &CliContext, console: &Console) -> Result<Memory, Failure> {
        let configured = ground.configured(console)?;
        let lazy = configured.memory().ok_or(Failure::NoStateFolder)?;
        let store = lazy.open()?.clone();
        let Configured { surroundings, resolved } = configured;
        let state = surroundings.state_folder().ok_or(Failure::NoStateFolder)?;
        take_back(&state, console);
        match haft::assembly::settle_cut(&state, std::sync::Arc::new(store.clone())) {
            Ok(unsettled) => setup::say_unsettled(&unsettled, console),
            Err(error) => {
                console
                    .warn(&format!("what became of the changes of a command cannot be found out: {error}"));
            }
        }
        if let Some(folders) = setup::folders(&surroundings, &resolved.config) {
            match haft::assembly::recover(&resolved.config, &folders) {
                Ok(found) => found.iter().for_each(|found| console.warn(&found.description)),
                Err(problem) => console.warn(&problem),
            }
        }
        let owner = setup::owner(&surroundings);
        Ok(Memory {
            store,
            config: resolved.config,
            state,
            heads: lazy.heads().map(Into::into),
            user: owner.user.as_ref().unwrap_or(&owner.agent).to_string(),
            #[cfg(unix)]
            editor: setup::editor(&surroundings),
            #[cfg(unix)]
            lazy,
            working_folder: surroundings.working_folder,
        })
    }
}

impl Memory {
    /// The approvals and grants of that tenant, or of one's own.
    fn approvals(&self, tenant: Option<&str>) -> Approvals {
        let accepts = haft::assembly::settings(&self.config).accept_answers;
        Approvals::over(self.store.for_tenant(&tenant_or_own(tenant)), accepts)
    }
}

/// The next process takes back what a killed process left half done, also one that only looks: a person who asks what
/// happened finds files as they were, or as they are said to be.
fn take_back(state: &std::path::Path, console: &Console) {
    match haft_files::take_back_cut(&state.join(CHANGES)) {
        Ok(taken_back) => setup::say_taken_back(&taken_back, console),
        Err(error) => {
            console.warn(&format!("whether a change of files was cut cannot be found out: {error}"))
        }
    }
}

/// The tenant that is meant when none is named.
fn tenant_or_own(tenant: Option<&str>) -> String {
    tenant.map_or_else(|| CallContext::owner().tenant.to_string(), str::to_owned)
}

/// In one line, that a person has to decide about something. Where that cannot be found out, nobody is told.
pub(super) fn say_unfinished(store: &DurableStore, tenant: &str, console: &Console) {
    let Ok(Ok(count)) = now(store.tenant(tenant).waiting()) else { return };
    if count > 0 {
        let what = if count == 1 { "batch or call was" } else { "batches or calls were" };
        console
            .warn(&format!("recovery needed: {count} {what} cut off by a crash; decide with `haft recover`"));
    }
}

pub(super) fn approvals(
    command: &ApprovalsCommand,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(async {
        let code = approvals::run(command, &memory, console).await?;
        #[cfg(unix)]
        if command.answers() {
            wake_worker(ground, &memory, console).await;
        }
        Ok(code)
    });
    end(memory, runtime, ended, console)
}

/// A detached call that waited for an answer goes on in a worker; after a restart of the machine there is none.
#[cfg(unix)]
async fn wake_worker(ground: &CliContext, memory: &Memory, console: &mut Console) {
    let is_needed = memory.store.open_tasks(worker::RUNNER).await.is_ok_and(|open| open > 0);
    if !is_needed || worker::look(&memory.state) {
        return;
    }
    let started = worker::Starter::of(ground, &memory.state);
    if let Err(failure) = started.and_then(|starter| worker::ensure(&starter, None)) {
        console.warn(&format!("{failure}; a detached call waits for a worker"));
    }
}

pub(super) fn grants(
    command: &GrantsCommand,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(grants::run(command, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn runs(command: &RunsCommand, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(runs::run(command, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn audit(
    command: &AuditCommand,
    ground: &CliContext,
    console: &mut Console,
) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(audit::run(command, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn recover(args: &RecoverArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(recover::run(args, &memory, console));
    // It has said what there is to say about recovery.
    drop(memory);
    ended
}

pub(super) fn backup(args: &BackupArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(upkeep::backup(args, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn gc(args: &GcArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(upkeep::gc(args, &memory, console));
    end(memory, runtime, ended, console)
}

fn end(
    memory: Memory,
    runtime: tokio::runtime::Runtime,
    ended: Result<u8, Failure>,
    console: &Console,
) -> Result<u8, Failure> {
    runtime.shutdown_background();
    say_unfinished(&memory.store, &tenant_or_own(None), console);
    // The last one to hold the store closes it in order.
    drop(memory);
    ended
}
