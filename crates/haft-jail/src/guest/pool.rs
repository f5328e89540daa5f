//! Kernels of gVisor that stand ready. Each is handed out once, to one guest, and ends with it.

use super::{
    cgroup::InitCgroups,
    gvisor::warm::Template,
    host::{FRESH, Inner, ReadyInit, broken, failed, hear, is_fresh},
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

/// So many templates are remembered of which a second guest makes a kernel worth while.
const REMEMBERED: usize = 4;
/// Kernels stand ready for so many templates at once: each takes memory, and holds on to the folders that it shows.
const TEMPLATES: usize = 2;

#[derive(Default)]
struct Standing {
    ready: VecDeque<Warm>,
    coming: Vec<Arc<Template>>,
    asked: VecDeque<Arc<Template>>,
}

impl Standing {
    /// Whether a guest like this one came before, lately.
    fn is_asked_again(&mut self, template: &Arc<Template>) -> bool {
        let known = self.asked.contains(template);
        self.asked.retain(|asked| asked != template);
        self.asked.push_back(Arc::clone(template));
        while self.asked.len() > REMEMBERED {
            self.asked.pop_front();
        }
        known
    }

    /// Lets go of what nobody will get: what is too old, and what shows these grants as they are no more.
    fn tidy(&mut self, now: Option<&Template>) {
        self.ready.retain(|warm| is_fresh(warm.made) && !now.is_some_and(|now| warm.template.is_past(now)));
    }
}

/// A kernel that waits for its guest. Dropping it ends it.
pub(super) struct Warm {
    pub(super) init: Asleep,
    pub(super) scratch: Scratch,
    template: Arc<Template>,
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
struct Coming(Arc<Pool>, Arc<Template>);

impl Drop for Coming {
    fn drop(&mut self) {
        let mut standing = self.0.lock();
        if let Some(at) = standing.coming.iter().position(|coming| *coming == self.1) {
            standing.coming.swap_remove(at);
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that stands ready for such a guest. Nobody else gets it.
    pub(super) fn take(&self, template: &Template) -> Option<Warm> {
        loop {
            let mut standing = self.lock();
            standing.tidy(Some(template));
            let at = standing.ready.iter().position(|warm| *warm.template == *template)?;
            let warm = standing.ready.remove(at)?;
            drop(standing);
            if !warm.init.is_gone() {
                return Some(warm);
            }
        }
    }

    /// Makes more of them, in the background, until as many stand ready as the options say.
    pub(super) fn refill(self: &Arc<Self>, host: &Arc<Inner>, runsc: &Path, template: &Arc<Template>) {
        let most = host.options.warm;
        let mut standing = self.lock();
        if !standing.is_asked_again(template) && !template.is_usual() {
            return;
        }
        let there = standing.ready.iter().map(|warm| &warm.template).chain(&standing.coming);
        let missing = most.saturating_sub(there.filter(|there| *there == template).count());
        standing.coming.extend((0..missing).map(|_| Arc::clone(template)));
        drop(standing);
        for _ in 0..missing {
            let coming = Coming(Arc::clone(self), Arc::clone(template));
            let (host, runsc) = (Arc::clone(host), runsc.to_owned());
            tokio::spawn(async move {
                // Without it the next guest waits for its own; that is all.
                let made = tokio::time::timeout(START_WITHIN, make(&host, runsc, &coming.1)).await;
                let Ok(Ok(warm)) = made else { return };
                coming.0.put(warm, most);
                let pool = Arc::downgrade(&coming.0);
                drop((coming, host));
                // One that nobody takes holds on to its folders no longer than it would be used.
                tokio::time::sleep(FRESH).await;
                if let Some(pool) = pool.upgrade() {
                    pool.lock().tidy(None);
                }
            });
        }
    }

    /// Adds one, in the place of the oldest of another template where there are too many.
    fn put(&self, warm: Warm, most: usize) {
        let mut standing = self.lock();
        while standing.ready.len() >= most * TEMPLATES {
            let other = standing.ready.iter().position(|other| other.template != warm.template);
            if other.and_then(|at| standing.ready.remove(at)).is_none() {
                break;
            }
        }
        standing.ready.push_back(warm);
    }
}

/// Starts a kernel in a jail init.
async fn make(host: &Arc<Inner>, runsc: PathBuf, template: &Arc<Template>) -> Result<Warm, ToolError> {
    let scratch = Scratch::make(host)?;
    template.prepare(&scratch.0).map_err(|error| broken("no bundle for runsc", error))?;
    let init = host.init(InitKind::Runtime, None, false).await?;
    // The last guest's may be on it; those of this guest are set when it comes.
    host.limit(&init.cgroups, &Limits::default(), 0)
        .map_err(|error| broken("limits cannot be set", error))?;
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| broken("no /dev/null", error))?;
    let request = Box::new(template.request(&runsc, &scratch.0));
    wire::send(init.socket.get_ref(), &ToInit::Prepare(request), &[null.as_fd(); 3])
        .map_err(|error| broken("its init does not answer", error))?;
    match hear(&init.socket).await.map_err(|error| broken("its init does not answer", error))? {
        Some((FromInit::Prepared, _)) => Ok(Warm {
            init: Asleep::new(init),
            scratch,
            template: Arc::clone(template),
            made: Instant::now(),
        }),
        Some((FromInit::Failed { stage, errno }, _)) => Err(failed(&stage, errno)),
        _ => Err(broken("its init has ended", "before the sandbox was there")),
    }
}
