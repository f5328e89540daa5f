//! The spawner: a small process with one thread that makes all seats, and ends them all when haft is gone.
//!
//! haft itself has threads and secrets. A copy of such a process can hang in a lock that another thread held, and
//! carries the secrets into the jail. So haft starts its own program anew, with an empty environment, and that
//! process is the one that is copied.

use super::{
    cgroup::SeatCgroups,
    filter::{self, Filters},
    seat::{self, Setup},
    sys::{self, Forked},
    wire::{self, FilterKind, FromSpawner, SeatKind, ToSpawner},
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
    collections::HashMap,
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

/// The name under which haft's program is started anew as the spawner.
pub(super) const NAME: &str = "haft-jail-spawner";

/// How long seats may take to end what is in them once haft is gone.
const LAST_ORDERS: Duration = Duration::from_secs(3);

struct Seated {
    id: u64,
    kind: SeatKind,
    cgroups: SeatCgroups,
}

struct Spawner {
    haft: OwnedFd,
    signals: OwnedFd,
    no_network: Filters,
    network: Filters,
    seats: HashMap<i32, Seated>,
    /// Seats that have ended, whose cgroups are not empty yet.
    emptying: Vec<Seated>,
    /// Folders of sandboxes, in which cgroups of seats are.
    groups: Vec<SeatCgroups>,
}

/// Lives as the spawner. `folder` is haft's own for this run: it is removed at the end.
pub(super) fn live(folder: Option<PathBuf>) -> ! {
    let haft = sys::take_stdin();
    match Spawner::start(haft) {
        Ok(mut spawner) => {
            spawner.serve();
            spawner.end_all();
            if let Some(folder) = folder {
                let _ = fs::remove_dir_all(folder);
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
        // What a seat that was killed leaves behind comes to this process.
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
        sys::drop_groups();
        rustix::process::chdir("/")?;
        // Guests would inherit a lower limit than the machine has; root's own may be raised again.
        let compiled = |kind| filter::compile(kind).map_err(|error| io::Error::other(error.to_string()));
        Ok(Spawner {
            haft,
            signals: sys::signals()?,
            no_network: compiled(FilterKind::NoNetwork)?,
            network: compiled(FilterKind::Network)?,
            seats: HashMap::new(),
            emptying: Vec::new(),
            groups: Vec::new(),
        })
    }

    /// Until haft is gone.
    fn serve(&mut self) {
        loop {
            let soon = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let timeout = (!self.emptying.is_empty()).then_some(&soon);
            let mut events =
                [PollFd::new(&self.haft, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            let _ = poll(&mut events, timeout);
            let spoken = !events[0].revents().is_empty();
            self.reap();
            if spoken {
                match wire::receive::<ToSpawner>(&self.haft) {
                    Ok(Some((ToSpawner::Seat { id, kind, cgroups }, _))) => self.seat(id, kind, cgroups),
                    Ok(Some((ToSpawner::Group { cgroups, make }, _))) => {
                        self.groups.retain(|group| *group != cgroups);
                        if make || !cgroups.remove() {
                            self.groups.push(cgroups);
                        }
                    }
                    Ok(None) | Err(_) => return,
                }
            }
        }
    }

    fn seat(&mut self, id: u64, kind: SeatKind, cgroups: SeatCgroups) {
        match self.try_seat(kind, &cgroups) {
            Ok((pid, socket)) => {
                self.seats.insert(pid, Seated { id, kind, cgroups });
                self.say(&FromSpawner::Seat { id }, Some(&socket));
            }
            Err((stage, errno)) => {
                cgroups.remove();
                let stage = stage.to_owned();
                self.say(&FromSpawner::Failed { id, stage, errno: errno.raw_os_error() }, None);
            }
        }
    }

    fn try_seat(
        &self,
        kind: SeatKind,
        cgroups: &SeatCgroups,
    ) -> Result<(i32, OwnedFd), (&'static str, Errno)> {
        let failed = |stage: &'static str| {
            move |error: io::Error| (stage, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        cgroups.make().map_err(failed("make cgroups"))?;
        let open =
            |path: PathBuf, flags: OFlags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let moves: Result<Vec<OwnedFd>, Errno> = cgroups
            .for_the_seat()
            .iter()
            .map(|folder| open(folder.join("cgroup.procs"), OFlags::WRONLY))
            .collect();
        let moves = moves.map_err(|errno| ("open cgroups", errno))?;
        let alone = cgroups.kill.as_ref().filter(|_| kind != SeatKind::Namespace);
        let guest_cgroup =
            alone.and_then(|folder| open(folder.clone(), OFlags::PATH | OFlags::DIRECTORY).ok());
        let kill_switch = alone.and_then(|folder| open(folder.join("cgroup.kill"), OFlags::WRONLY).ok());
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| ("make a socket", errno))?;
        let namespaces = if kind == SeatKind::Namespace { sys::ALL_NAMESPACES } else { 0 };
        let setup = Setup {
            kind,
            socket: ours,
            moves,
            guest_cgroup,
            kill_switch,
            no_network: &self.no_network,
            network: &self.network,
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        match sys::fork(namespaces, None).map_err(|errno| ("make a process", errno))? {
            Forked::Child => seat::live(setup),
            Forked::Parent(pid) => Ok((pid.as_raw_nonzero().get(), theirs)),
        }
    }

    /// Looks after processes that have ended, and cgroups that are empty now.
    fn reap(&mut self) {
        sys::drain_signals(&self.signals);
        while let Ok(Some(waited)) = sys::wait_any(false) {
            let Some(seated) = self.seats.remove(&waited.pid) else { continue };
            // A seat ends its guest before it ends itself, unless it was killed or failed.
            if waited.exit_code != Some(0) {
                seated.cgroups.kill();
                if seated.kind != SeatKind::Namespace {
                    self.kill_orphans();
                }
            }
            self.emptying.push(seated);
        }
        let emptying = std::mem::take(&mut self.emptying);
        for seated in emptying {
            if seated.cgroups.remove() {
                self.say(&FromSpawner::Gone { id: seated.id }, None);
            } else {
                seated.cgroups.kill();
                self.emptying.push(seated);
            }
        }
    }

    /// Children of this process that are no seats were a killed seat's.
    fn kill_orphans(&self) {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
        for pid in children.filter(|pid| !self.seats.contains_key(pid)) {
            let _ = sys::kill(pid, libc::SIGKILL);
        }
    }

    /// haft is gone, and every seat has noticed: its socket is at its end. What is not gone soon is killed.
    fn end_all(&mut self) {
        let end = Instant::now() + LAST_ORDERS;
        while !(self.seats.is_empty() && self.emptying.is_empty()) {
            if Instant::now() > end {
                for (pid, seated) in &self.seats {
                    seated.cgroups.kill();
                    let _ = sys::kill(*pid, libc::SIGKILL);
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
