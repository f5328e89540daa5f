//! Kernels of gVisor that stand ready. Each is handed out once, to one guest, and ends with it.

use super::{
    cgroup::InitCgroups,
    gvisor,
    host::{Inner, ReadyInit, broken, failed, hear, is_fresh},
    running::Scratch,
    sys,
    wire::{self, FromInit, InitKind, ToInit},
};
use haft_core::{Limits, ToolError};
use rustix::fd::{AsFd as _, OwnedFd};
use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// One that has not started by then never will.
const START_WITHIN: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(super) struct Pool(Mutex<Standing>);

#[derive(Default)]
struct Standing {
    ready: VecDeque<Warm>,
    coming: usize,
}

/// A kernel that waits for its guest. Dropping it ends it.
pub(super) struct Warm {
    pub(super) init: Asleep,
    pub(super) scratch: Scratch,
    made: Instant,
}

/// A jail init that no runtime watches: the one that made it may be gone when it is used.
pub(super) struct Asleep {
    name: String,
    cgroups: InitCgroups,
    socket: OwnedFd,
    pid: i32,
}

impl Asleep {
    fn new(init: ReadyInit) -> Self {
        Asleep { name: init.name, cgroups: init.cgroups, pid: init.pid, socket: init.socket.into_inner() }
    }

    /// The init, watched by this runtime.
    pub(super) fn wake(self) -> Result<ReadyInit, ToolError> {
        let Asleep { name, cgroups, socket, pid } = self;
        let socket = sys::watched(socket).map_err(|error| broken("no runtime", error))?;
        Ok(ReadyInit { name, cgroups, socket, pid })
    }

    /// Whether it has ended, or failed: it says nothing while it waits.
    fn is_gone(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut events = [PollFd::new(&self.socket, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut events, Some(&at_once)) != Ok(0)
    }
}

/// Counts one that is being made, however its making ends.
struct Coming(Arc<Pool>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.lock().coming -= 1;
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that stands ready. Nobody else gets it.
    pub(super) fn take(&self) -> Option<Warm> {
        loop {
            let warm = self.lock().ready.pop_front()?;
            if is_fresh(warm.made) && !warm.init.is_gone() {
                return Some(warm);
            }
        }
    }

    /// Makes more, in the background, until that many stand ready.
    pub(super) fn refill(self: &Arc<Self>, host: &Arc<Inner>, runsc: &Path, most: usize) {
        let mut standing = self.lock();
        let missing = most.saturating_sub(standing.ready.len() + standing.coming);
        standing.coming += missing;
        drop(standing);
        for _ in 0..missing {
            let coming = Coming(Arc::clone(self));
            let (host, runsc) = (Arc::clone(host), runsc.to_owned());
            tokio::spawn(async move {
                // Without it the next guest waits for its own; that is all.
                let made = tokio::time::timeout(START_WITHIN, make(&host, runsc)).await;
                if let Ok(Ok(warm)) = made {
                    coming.0.lock().ready.push_back(warm);
                }
            });
        }
    }
}

/// Starts a kernel in a jail init.
async fn make(host: &Arc<Inner>, runsc: PathBuf) -> Result<Warm, ToolError> {
    let scratch = Scratch::make(host)?;
    gvisor::prepare_warm(&scratch.0).map_err(|error| broken("no bundle for runsc", error))?;
    let init = host.init(InitKind::Runtime, None, false).await?;
    // The last guest's may be on it; those of this guest are set when it comes.
    host.limit(&init.cgroups, &Limits::default(), 0)
        .map_err(|error| broken("limits cannot be set", error))?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| broken("no /dev/null", error))?;
    let request = Box::new(gvisor::warm_request(&runsc, &scratch.0));
    wire::send(init.socket.get_ref(), &ToInit::Prepare(request), &[null.as_fd(); 3])
        .map_err(|error| broken("its init does not answer", error))?;
    match hear(&init.socket).await.map_err(|error| broken("its init does not answer", error))? {
        Some((FromInit::Prepared, _)) => Ok(Warm { init: Asleep::new(init), scratch, made: Instant::now() }),
        Some((FromInit::Failed { stage, errno }, _)) => Err(failed(&stage, errno)),
        _ => Err(broken("its init has ended", "before the sandbox was there")),
    }
}
