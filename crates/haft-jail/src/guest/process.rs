//! The `process` jail: rlimits, cgroups, Landlock, seccomp, no new privileges, no capabilities.
//!
//! Works nearly everywhere, inside containers too, and costs next to nothing. It cannot take something out of what it
//! grants (a denied file in a granted folder), does not know hosts, and shows the names of the machine's processes.
//! Landlock does not know modes, owners and times of files either: a guest changes those of every file of its user. So
//! this jail holds nothing above `standard`, does not run as root, and looks after the modes of haft's own folders.

use super::{
    host::{Inner, JailHost},
    plan::{self, JailKind, Refusal},
    running::{self, InitGuest, Scratch},
    sandbox,
    wire::InitKind,
};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, ToolError, Violation,
    port::{BoxFuture, Guest, GuestControl, GuestEnd, GuestSpec, Jail, OutputSink, Sandbox, Unavailable},
};
use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags, RawMode, fchmod, fstat, open},
};
use std::{path::PathBuf, sync::Arc};

/// Holds programs with what a process can do to itself.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

impl Process {
    /// Such a jail.
    pub fn new(host: &JailHost) -> Self {
        Process(Arc::clone(&host.0))
    }
}

/// A refusal, as an error of the call.
pub(super) fn refusal(refusal: Refusal) -> ToolError {
    match refusal {
        Refusal::Call(error) => error,
        Refusal::Stage(why) => why.error(),
        Refusal::Jail(unavailable) => {
            ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string())
        }
    }
}

/// A refusal, where only walls are asked about: what is wrong with the call shows when it starts.
pub(super) fn of_walls(refused: Refusal) -> Unavailable {
    match refused {
        Refusal::Jail(unavailable) => unavailable,
        Refusal::Stage(why) => why.into(),
        Refusal::Call(error) => Unavailable { reason: error.message, fix: "change the call".into() },
    }
}

impl Jail for Process {
    fn name(&self) -> &str {
        "process"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        super::probe::checked(&self.0, JailKind::Process, level)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.offers(spec.level)?;
        let planned = plan::plan(spec, JailKind::Process, &self.0.facts, None);
        planned.map(|plan| plan.enforcement).map_err(of_walls)
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        Some(self.0.has_sandbox(id))
    }

    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        sandbox::open(&self.0, limits)
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let host = &self.0;
            let scratch = Scratch::make(host)?;
            let plan =
                plan::plan(&spec, JailKind::Process, &host.facts, Some(&scratch.0)).map_err(refusal)?;
            let init = host.init(InitKind::Process, spec.parent.as_deref(), false).await?;
            let modes = Modes::of(&host.facts.protected);
            let inside = running::start(host, init, plan, spec, Some(scratch)).await?;
            Ok(Box::new(ProcessGuest { inside, modes }) as Box<dyn Guest>)
        })
    }
}

/// A guest that could have changed the modes of haft's own folders.
struct ProcessGuest {
    inside: InitGuest,
    modes: Modes,
}

impl Guest for ProcessGuest {
    fn sandbox_id(&self) -> &str {
        self.inside.sandbox_id()
    }

    fn enforcement(&self) -> &Enforcement {
        self.inside.enforcement()
    }

    fn control(&self) -> Arc<dyn GuestControl> {
        self.inside.control()
    }

    fn wait<'a>(&'a mut self, sink: OutputSink) -> BoxFuture<'a, Result<GuestEnd, ToolError>> {
        Box::pin(async move {
            let ended = self.inside.wait(sink).await;
            let changed = self.modes.put_back();
            ended.map(|mut end| {
                end.violations.extend(changed);
                end
            })
        })
    }
}

impl Drop for ProcessGuest {
    fn drop(&mut self) {
        self.modes.put_back();
    }
}

/// The modes of haft's own folders before a guest ran. They keep other users out of everything that is in them.
struct Modes(Vec<(PathBuf, OwnedFd, RawMode)>);

impl Modes {
    fn of(folders: &[PathBuf]) -> Self {
        // Opened before: a guest can take every right away, its user's own too.
        let opened = folders.iter().filter_map(|path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let folder = open(path, flags, Mode::empty()).ok()?;
            let mode = fstat(&folder).ok()?.st_mode;
            Some((path.clone(), folder, mode))
        });
        Modes(opened.collect())
    }

    /// Sets what was changed as it was, and says what that is.
    fn put_back(&self) -> Vec<Violation> {
        let is_changed = |folder: &OwnedFd, mode: RawMode| fstat(folder).is_ok_and(|now| now.st_mode != mode);
        let changed = self.0.iter().filter(|(_, folder, mode)| is_changed(folder, *mode));
        let told = changed.map(|(path, folder, mode)| Violation {
            kind: "SandboxEscapeAttempt".to_owned(),
            resource: path.display().to_string(),
            description: "the program changed the mode of a folder of haft's, which is as before again"
                .to_owned(),
            timestamp: jiff::Timestamp::now(),
            was_blocked: fchmod(folder, Mode::from_raw_mode(*mode)).is_ok(),
        });
        told.collect()
    }
}
