//! The spawner: a small process with one thread that makes all jails, and ends them all when haft is gone.
//!
//! haft itself has threads and secrets. A copy of such a process can hang in a lock that another thread held, and
//! carries the secrets into the jail. So haft starts its own program again, with an empty environment, and that
//! process is the one that is copied.

use super::{
    cgroup::InitCgroups,
    cgroup_parent::{self, CgroupParent},
    filter::FilterSet,
    sys::{self, Forked},
    wire::{self, FromParent, FromSpawner, InitKind, ToParent, ToSpawner},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd as _, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::{DumpableBehavior, set_dumpable_behavior},
};
use std::{
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

/// The name under which haft's program is started again as the spawner.
pub(super) const NAME: &str = "haft-jail-spawner";

/// How long jail inits may take to end what is in them once haft is gone.
const LAST_ORDERS: Duration = Duration::from_secs(3);

/// Bays that are kept though nobody needs them now.
const SPARE_PARENTS: usize = 8;

/// A cgroup parent, as the spawner knows it.
struct KnownParent {
    pid: i32,
    /// Gone when the cgroup parent was told to end.
    socket: Option<OwnedFd>,
    cgroups: InitCgroups,
    busy: bool,
    /// Whether it is used again.
    shared: bool,
}

struct Spawner {
    haft: OwnedFd,
    signals: OwnedFd,
    filters: FilterSet,
    parents: Vec<KnownParent>,
    /// Cgroups of cgroup parents that have ended, which are not empty yet.
    emptying: Vec<InitCgroups>,
    /// Folders of sandboxes, in which cgroups of cgroup parents are.
    groups: Vec<InitCgroups>,
    /// haft's own for this run, and the one for its guests: they are removed at the end.
    folders: Option<(PathBuf, PathBuf)>,
}

/// Lives as the spawner.
pub(super) fn live() -> ! {
    let haft = sys::take_stdin();
    match Spawner::start(haft) {
        Ok(mut spawner) => {
            spawner.serve();
            spawner.end_all();
            if let Some((folder, scratch)) = spawner.folders {
                super::instance::remove(&folder, &scratch);
            }
            sys::exit(0)
        }
        Err(_) => sys::exit(1),
    }
}

impl Spawner {
    fn start(haft: OwnedFd) -> io::Result<Self> {
        sys::close_others(&[])?;
        // A Ctrl-C at the terminal is haft's to handle.
        let _ = rustix::process::setsid();
        let _ = rustix::thread::set_name(c"haft-spawner");
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // What a jail init that was killed leaves behind comes to this process.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
        sys::drop_groups();
        rustix::process::chdir("/")?;
        // Guests would inherit a lower limit than the machine has; root's own may be raised again.
        let filters = FilterSet::compile().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Spawner {
            haft,
            signals: sys::signals()?,
            filters,
            parents: Vec::new(),
            emptying: Vec::new(),
            groups: Vec::new(),
            folders: None,
        })
    }

    /// Until haft is gone.
    fn serve(&mut self) {
        loop {
            let soon = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let timeout = (!self.emptying.is_empty()).then_some(&soon);
            let mut events =
                vec![PollFd::new(&self.haft, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            let sockets = self.parents.iter().filter_map(|parent| parent.socket.as_ref());
            events.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
            let _ = poll(&mut events, timeout);
            let spoken = events.first().is_some_and(|event| !event.revents().is_empty());
            let signalled = events.get(1).is_some_and(|event| !event.revents().is_empty());
            let mut heard = events
                .iter()
                .skip(2)
                .map(|event| !event.revents().is_empty())
                .collect::<Vec<_>>()
                .into_iter();
            drop(events);
            for parent in self.parents.iter_mut().filter(|parent| parent.socket.is_some()) {
                if heard.next().unwrap_or(false) {
                    parent.hear();
                }
            }
            if signalled || !self.emptying.is_empty() {
                self.reap();
            }
            if spoken {
                match wire::receive::<ToSpawner>(&self.haft) {
                    Ok(Some((ToSpawner::Begin { folder, scratch }, _))) => {
                        self.folders = Some((folder, scratch));
                    }
                    Ok(Some((ToSpawner::Init { id, kind, cgroups, own_parent }, _))) => {
                        self.init(id, kind, cgroups, own_parent);
                    }
                    Ok(Some((ToSpawner::Group { cgroups, make }, _))) => {
                        self.groups.retain(|group| *group != cgroups);
                        if make || !cgroups.remove() {
                            self.groups.push(cgroups);
                        }
                    }
                    Ok(None) | Err(_) => return,
                }
            }
            self.dismiss();
        }
    }

    fn init(&mut self, id: u64, kind: InitKind, cgroups: InitCgroups, own_parent: bool) {
        match self.try_init(kind, cgroups, own_parent) {
            Ok((cgroups, socket)) => self.say(&FromSpawner::Init { id, cgroups }, Some(&socket)),
            Err((stage, errno)) => {
                let stage = stage.to_owned();
                self.say(&FromSpawner::Failed { id, stage, errno: errno.raw_os_error() }, None);
            }
        }
    }

    fn try_init(
        &mut self,
        kind: InitKind,
        cgroups: InitCgroups,
        own_parent: bool,
    ) -> Result<(InitCgroups, OwnedFd), (&'static str, Errno)> {
        let (haft_end, init_end) = pair()?;
        let free = self
            .parents
            .iter()
            .position(|parent| !own_parent && parent.shared && !parent.busy && parent.socket.is_some());
        let index = match free {
            Some(index) => index,
            None => {
                let made = self.parent(&cgroups, !own_parent);
                if made.is_err() {
                    cgroups.remove();
                }
                self.parents.push(made?);
                self.parents.len() - 1
            }
        };
        let parent = self.parents.get_mut(index).ok_or(("find a cgroup parent", Errno::NOENT))?;
        let socket = parent.socket.as_ref().ok_or(("find a cgroup parent", Errno::NOENT))?;
        let order = ToParent::Init { kind };
        wire::send(socket, &order, &[init_end.as_fd()])
            .map_err(|_| ("speak to a cgroup parent", Errno::PIPE))?;
        parent.busy = true;
        Ok((parent.cgroups.clone(), haft_end))
    }

    fn parent(&self, cgroups: &InitCgroups, shared: bool) -> Result<KnownParent, (&'static str, Errno)> {
        let failed = |stage: &'static str| {
            move |error: io::Error| (stage, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        cgroups.make().map_err(failed("make cgroups"))?;
        let open =
            |path: PathBuf, flags: OFlags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        // In a cgroup of the second version it can be born, which costs nothing.
        let birth = cgroups.v2.as_ref().map(|folder| open(folder.clone(), OFlags::PATH | OFlags::DIRECTORY));
        let birth = birth.transpose().map_err(|errno| ("open cgroups", errno))?;
        let others =
            cgroups.for_the_init().into_iter().filter(|folder| Some(*folder) != cgroups.v2.as_deref());
        let moves: Result<Vec<OwnedFd>, Errno> =
            others.map(|folder| open(folder.join("cgroup.procs"), OFlags::WRONLY)).collect();
        let kill = cgroups.kill.as_ref();
        let (ours, theirs) = pair()?;
        let parent = CgroupParent {
            socket: theirs,
            moves: moves.map_err(|errno| ("open cgroups", errno))?,
            guest_cgroup: kill.and_then(|folder| open(folder.clone(), OFlags::PATH | OFlags::DIRECTORY).ok()),
            kill_switch: kill.and_then(|folder| open(folder.join("cgroup.kill"), OFlags::WRONLY).ok()),
            has_cgroups: !cgroups.for_the_init().is_empty(),
            filters: &self.filters,
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        match sys::fork(0, birth.as_ref().map(|fd| fd.as_fd())).map_err(|errno| ("make a process", errno))? {
            Forked::Child => cgroup_parent::live(&parent),
            Forked::Parent(pid) => Ok(KnownParent {
                pid: pid.as_raw_nonzero().get(),
                socket: Some(ours),
                cgroups: cgroups.clone(),
                busy: false,
                // What a cgroup of the second version counted cannot be set back everywhere.
                shared: shared && cgroups.v2.is_none(),
            }),
        }
    }

    /// Lets go of cgroup parents that nobody needs: those that are used once, and more than a few spare ones.
    fn dismiss(&mut self) {
        let mut spare = 0;
        for parent in self.parents.iter_mut().filter(|parent| !parent.busy) {
            spare += usize::from(parent.shared);
            if !parent.shared || spare > SPARE_PARENTS {
                parent.socket = None;
            }
        }
    }

    /// Looks after processes that have ended, and cgroups that are empty now.
    fn reap(&mut self) {
        sys::drain_signals(&self.signals);
        while let Ok(Some(waited)) = sys::wait_any(false) {
            let Some(index) = self.parents.iter().position(|parent| parent.pid == waited.pid) else {
                continue;
            };
            let parent = self.parents.swap_remove(index);
            // A cgroup parent ends when nothing is left in it, unless it was killed or failed.
            if waited.exit_code != Some(0) {
                parent.cgroups.kill();
                self.kill_orphans();
            }
            self.emptying.push(parent.cgroups);
        }
        self.emptying.retain(|cgroups| {
            let gone = cgroups.remove();
            if !gone {
                cgroups.kill();
            }
            !gone
        });
    }

    /// Children of this process that are no cgroup parents were a killed cgroup parent's.
    fn kill_orphans(&self) {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        for pid in children.filter(|pid| self.parents.iter().all(|parent| parent.pid != *pid)) {
            let _ = sys::kill(pid, libc::SIGKILL);
        }
    }

    /// haft is gone, and every init has noticed: its socket is at its end. What is not gone soon is killed.
    fn end_all(&mut self) {
        for parent in &mut self.parents {
            parent.socket = None;
        }
        let end = Instant::now() + LAST_ORDERS;
        while !(self.parents.is_empty() && self.emptying.is_empty()) {
            if Instant::now() > end {
                for parent in &self.parents {
                    parent.cgroups.kill();
                    let _ = sys::kill(parent.pid, libc::SIGKILL);
                }
                if Instant::now() > end + LAST_ORDERS {
                    break;
                }
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&pause));
            self.reap();
        }
        self.kill_orphans();
        for group in &self.groups {
            group.remove();
        }
    }

    fn say(&self, message: &FromSpawner, descriptor: Option<&OwnedFd>) {
        let descriptor = descriptor.map(|descriptor| descriptor.as_fd());
        // Whether haft is still there shows at the next read.
        let _ = wire::send(&self.haft, message, descriptor.as_slice());
    }
}

impl KnownParent {
    fn hear(&mut self) {
        match self.socket.as_ref().map(wire::receive::<FromParent>) {
            Some(Ok(Some((FromParent::Free, _)))) => self.busy = false,
            // It has ended, or is about to.
            Some(Ok(None) | Err(_)) | None => self.socket = None,
        }
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd), (&'static str, Errno)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|errno| ("make a socket", errno))
}
