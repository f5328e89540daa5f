//! What is remembered, as a person at a terminal asks for it.
//!
//! | file | what |
//! |---|---|
//! | `args`, `filter` | what can be typed; which calls |
//! | `runs`, `watching` | `haft runs`: calls that ended, calls that run |
//! | `tasks` | the same for detached calls |
//! | `audit` | `haft audit`: the record and its seals |
//! | `recover` | `haft recover`: what a crash left, and a person's decision about it |
//! | `upkeep` | `haft backup`, `haft gc` |
//! | `record`, `table` | a record as JSON and as a line; columns that fit |

mod args;
mod audit;
mod filter;
mod record;
mod recover;
mod runs;
mod table;
mod tasks;
mod upkeep;
mod watching;

pub(super) use args::{AuditCommand, BackupArgs, GcArgs, RecoverArgs, RunsCommand};

use super::{
    console::Console,
    failure::Failure,
    setup::{Configured, Ground, now},
    watch,
};
use crate::{CallContext, DurableStore, config::Config};
use std::path::PathBuf;

/// What these commands stand on: the store, and no engine.
pub(super) struct Memory {
    pub(super) store: DurableStore,
    pub(super) config: Config,
    pub(super) state: PathBuf,
    pub(super) working_folder: PathBuf,
}

impl Memory {
    pub(super) fn open(ground: &Ground, console: &Console) -> Result<Memory, Failure> {
        let configured = ground.configured(console)?;
        let lazy = configured.memory().ok_or(Failure::NoStateFolder)?;
        let store = lazy.open()?.clone();
        let Configured { surroundings, resolved } = configured;
        let state = surroundings.state_folder().ok_or(Failure::NoStateFolder)?;
        Ok(Memory { store, config: resolved.config, state, working_folder: surroundings.working_folder })
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

pub(super) fn runs(command: &RunsCommand, ground: &Ground, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(runs::run(command, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn audit(command: &AuditCommand, ground: &Ground, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(audit::run(command, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn recover(args: &RecoverArgs, ground: &Ground, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(recover::run(args, &memory, console));
    // It has said what there is to say about recovery.
    drop(memory);
    ended
}

pub(super) fn backup(args: &BackupArgs, ground: &Ground, console: &mut Console) -> Result<u8, Failure> {
    let memory = Memory::open(ground, console)?;
    let runtime = watch::runtime()?;
    let ended = runtime.block_on(upkeep::backup(args, &memory, console));
    end(memory, runtime, ended, console)
}

pub(super) fn gc(args: &GcArgs, ground: &Ground, console: &mut Console) -> Result<u8, Failure> {
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
