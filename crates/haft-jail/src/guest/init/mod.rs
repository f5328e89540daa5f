//! A jail init: a process that is ready for one guest, runs it, and leaves nothing of it behind.
//!
//! Jail inits are made ahead of time, because what is slow about a jail does not depend on the guest: the kernel needs
//! milliseconds to move a process into a cgroup, and about one to make namespaces. A jail init is used once and by one
//! guest, so nothing of one guest is ever seen by another.
//!
//! A jail init is a copy of its cgroup parent, which is a copy of the spawner. It is the guest's parent, and in a pid
//! namespace its first process; it cannot be read, traced or signalled by the guest.

mod child;
mod mounts;
mod numbers;
mod system;

use super::{
    filter::FilterSet,
    rules::{self, Right, Rules},
    sys::{self, Forked},
    wire::{self, FilterKind, FromInit, InitEnd, InitKind, InitRequest, ToInit},
};
pub(crate) use mounts::{HOME, PROC_HIDDEN, bind_place};

use child::Program;
use mounts::{Proc, Tree};
use numbers::{children, own_number, read_io};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd as _, AsRawFd as _, OwnedFd},
    io::Errno,
    process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal},
};
use std::{
    cell::Cell,
    fs::{self, File},
    net::TcpListener,
    time::{Duration, Instant},
};

/// The port of the gate on a jail's own loopback.
pub(crate) const GATE_PORT: u16 = 3128;
/// The first process's user and group in a namespace: not root.
pub(crate) const INNER_ID: u32 = 1000;

/// What a jail init is made of.
pub(super) struct Setup<'a> {
    pub(super) kind: InitKind,
    /// To haft. Its end of file ends everything.
    pub(super) socket: OwnedFd,
    /// The cgroup in which the guest alone is.
    pub(super) guest_cgroup: Option<&'a OwnedFd>,
    /// Written to, it ends everything in that cgroup.
    pub(super) kill_switch: Option<&'a OwnedFd>,
    /// Whether there is anything to be seen of cgroups.
    pub(super) has_cgroups: bool,
    pub(super) filters: &'a FilterSet,
    /// Of the user whom haft runs as.
    pub(super) user: u32,
    pub(super) group: u32,
}

/// What failed.
#[derive(Debug)]
pub(super) struct Failure {
    stage: String,
    errno: Errno,
}

/// Names what is being done, for when it fails.
pub(super) trait Stage<T> {
    fn stage(self, stage: impl Into<String>) -> Result<T, Failure>;
}

impl<T> Stage<T> for Result<T, Errno> {
    fn stage(self, stage: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|errno| Failure { stage: stage.into(), errno })
    }
}

impl<T> Stage<T> for std::io::Result<T> {
    fn stage(self, stage: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            stage: stage.into(),
            errno: Errno::from_io_error(&error).unwrap_or(Errno::INVAL),
        })
    }
}

impl<T> Stage<T> for Result<T, landlock::RulesetError> {
    fn stage(self, stage: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|_| Failure { stage: stage.into(), errno: Errno::NOSYS })
    }
}

/// Lives as a jail init. The caller is a fresh copy of its cgroup parent.
pub(super) fn live(setup: Setup<'_>) -> ! {
    let mut keep = vec![setup.socket.as_raw_fd()];
    keep.extend(setup.guest_cgroup.iter().chain(&setup.kill_switch).map(|fd| fd.as_raw_fd()));
    let closed = sys::close_others(&keep).stage("close descriptors");
    match closed.and_then(|()| JailInit::ready(&setup)).and_then(|init| init.run()) {
        Ok(Cgroup::AsBefore) => sys::exit(0),
        Ok(Cgroup::Killed) => sys::exit(KILLED),
        Err(Failure { stage, errno }) => {
            let failed = FromInit::Failed { stage, errno: errno.raw_os_error() };
            let _ = wire::send(&setup.socket, &failed, &[]);
            sys::exit(1)
        }
    }
}

/// How a jail init ends that ended all in its cgroup by one write: nobody should be put there again. Seen on Linux
/// 6.18: who is born into such a cgroup afterwards is ended at once (`the_next_guest_is_not_ended_with_the_last`).
const KILLED: i32 = 3;

/// A guest that ends within it costs its init no filter, which takes the kernel a fifth of a millisecond to load: an
/// eighth of all that a short program takes. The init has no privileges by then, and has heard nothing.
const A_MOMENT: Duration = Duration::from_millis(2);

/// What became of the guest's cgroup.
enum Cgroup {
    AsBefore,
    Killed,
}

/// A jail init that waits for its guest.
struct JailInit<'a> {
    setup: &'a Setup<'a>,
    signals: OwnedFd,
    tree: Option<Tree>,
    rules: Option<Rules>,
    /// What this process and those whose end it waited for read and wrote.
    io: Option<File>,
    /// Whether the kill switch of its cgroup was used.
    killed: Cell<bool>,
    /// Whether what is granted was mounted before the guest came.
    is_placed: Cell<bool>,
}

impl<'a> JailInit<'a> {
    /// Does everything that does not depend on the guest.
    fn ready(setup: &'a Setup<'a>) -> Result<Self, Failure> {
        let _ = rustix::thread::set_name(c"haft-init");
        set_parent_process_death_signal(Some(Signal::KILL)).stage("be ended with its parent")?;
        let signals = sys::signals().stage("take signals")?;
        let pid = own_number().stage("find its own number")?;
        // Belongs to root as long as its memory cannot be read; nobody is here yet who could read it.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
        let io = File::open("/proc/self/io").ok();
        set_dumpable_behavior(DumpableBehavior::NotDumpable).stage("hide its memory")?;
        let landlock = rules::version();
        let (tree, rules) = match setup.kind {
            InitKind::Namespace => {
                let tree = namespaces(setup)?;
                let rules = if landlock > 0 { Some(tree.rules()?) } else { None };
                (Some(tree), rules)
            }
            InitKind::Process => {
                rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
                    .stage("adopt orphans")?;
                let rules =
                    if landlock > 0 { Some(system::rules().stage("make Landlock rules")?) } else { None };
                (None, rules)
            }
            InitKind::Runtime => {
                rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
                    .stage("adopt orphans")?;
                mounts::own_view().stage("keep mounts to itself")?;
                mounts::fix_devices()?;
                (None, None)
            }
            InitKind::Container => {
                rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
                    .stage("adopt orphans")?;
                sys::loopback_up().stage("bring up loopback")?;
                (Some(Tree::prepare(Proc::Later)?), None)
            }
        };
        let proc = tree.as_ref().is_none_or(|tree| tree.has_proc);
        wire::send(&setup.socket, &FromInit::Ready { landlock, proc, pid }, &[])
            .stage("say that it is ready")?;
        Ok(JailInit {
            setup,
            signals,
            tree,
            rules,
            io,
            killed: Cell::new(false),
            is_placed: Cell::new(false),
        })
    }

    /// Waits for the request, runs the guest, ends everything.
    fn run(mut self) -> Result<Cgroup, Failure> {
        let socket = &self.setup.socket;
        let mut request = wire::receive::<ToInit>(socket).stage("take the request")?;
        if let Some((ToInit::Prepare(first), descriptors)) = request {
            let prepared = self
                .prepare(&first, &descriptors)
                .and_then(|()| wire::send(socket, &FromInit::Prepared, &[]).stage("say that it is prepared"));
            drop(descriptors);
            request = match prepared {
                Ok(()) => wire::receive::<ToInit>(socket).stage("take the request")?,
                Err(failure) => {
                    self.end_all();
                    return Err(failure);
                }
            };
        }
        let Some((ToInit::Start(request), mut descriptors)) = request else {
            self.end_all();
            return Ok(self.cgroup());
        };
        let working_dir = request.working_dir.clone();
        let mounts = descriptors.split_off(descriptors.len().min(3));
        let rules = self.walls(&request, &mounts)?;
        drop(mounts);
        if request.gate {
            if self.setup.kind == InitKind::Runtime {
                sys::own_network_namespace().stage("leave the network of the machine")?;
                sys::loopback_up().stage("bring up loopback")?;
            }
            let listener = TcpListener::bind(("127.0.0.1", GATE_PORT)).stage("open the gate's port")?;
            wire::send(socket, &FromInit::Listening, &[listener.as_fd()])
                .stage("pass the gate's port out")?;
        }
        let ruleset = if request.landlock { rules.and_then(Rules::descriptor) } else { None };
        if request.landlock && ruleset.is_none() {
            return Err(Failure { stage: "restrict files with Landlock".into(), errno: Errno::NOSYS });
        }
        if request.no_input {
            let empty = File::open("/dev/null").stage("open /dev/null")?;
            *descriptors.first_mut().ok_or(Errno::BADF).stage("read the request")? = empty.into();
        }
        let filters = self.setup.filters.of(request.filter);
        let program = Program::new(&request, &descriptors, &working_dir, ruleset.as_ref(), filters)?;
        let forked = self.fork(&program);
        drop(descriptors);
        let guest = match forked {
            Ok(guest) => guest,
            Err(failure) => {
                self.end_all();
                return Err(failure);
            }
        };
        // Where nobody hears it, the watch notices that, too, and ends the guest.
        let _ = wire::send(socket, &FromInit::Started, &[]);
        let mut end = self.watch(guest, Duration::from_millis(request.grace_ms), &request.signaller);
        end.ended_with_it = self.end_all();
        (end.cpu_micros, end.max_process_bytes) = sys::children_usage();
        end.io = self.io.as_mut().and_then(read_io);
        let _ = wire::send(socket, &FromInit::Ended(end), &[]);
        // Until haft has read what the cgroups counted; the spawner removes them when this process has ended.
        while let Ok(Some(_)) = wire::receive::<ToInit>(socket) {}
        Ok(self.cgroup())
    }

    /// Whether this process only waits once its guest runs, and ends what is in the jail. One that runs a container
    /// runtime still has to start what passes signals on.
    fn only_waits(&self) -> bool {
        match self.setup.kind {
            InitKind::Namespace | InitKind::Process => true,
            InitKind::Runtime | InitKind::Container => false,
        }
    }

    /// Gives up what was needed to make the walls and the guest.
    fn drop_privileges(&self) -> Result<(), Failure> {
        if !self.only_waits() {
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true).stage("drop its own privileges")?;
        child::drop_capabilities().stage("drop its own privileges")
    }

    /// Keeps only the system calls that waiting and ending take. Without them nothing is waited for: the guest ends.
    fn filter_itself(&self) {
        let mut filters = self.setup.filters.of_init().iter();
        if filters.try_for_each(|filter| sys::load_filter(filter)).is_err() {
            self.kill_all();
        }
    }

    fn cgroup(&self) -> Cgroup {
        if self.killed.get() { Cgroup::Killed } else { Cgroup::AsBefore }
    }

    /// Runs a container runtime that leaves a sandbox behind, in which the guest will be.
    fn prepare(&self, request: &InitRequest, descriptors: &[OwnedFd]) -> Result<(), Failure> {
        mounts::place(request)?;
        self.is_placed.set(true);
        let filters = self.setup.filters.of(request.filter);
        let program = Program::new(request, descriptors, &request.working_dir, None, filters)?;
        let runtime = self.fork(&program)?;
        let end = self.watch(runtime, Duration::ZERO, &[]);
        (end.exit_code == Some(0)).then_some(()).ok_or(Errno::IO).stage("make a sandbox")
    }

    /// Makes what depends on the guest: its part of the tree, its rules.
    fn walls(&mut self, request: &InitRequest, mounts: &[OwnedFd]) -> Result<Option<Rules>, Failure> {
        let mut rules = self.rules.take();
        match (self.tree.take(), &request.container) {
            (Some(tree), Some(container)) => tree.hand_over(request, container).map(|()| None),
            (Some(tree), None) if self.setup.kind == InitKind::Namespace => {
                tree.finish(request, mounts, rules)
            }
            (Some(_), None) | (None, Some(_)) => {
                Err(Failure { stage: "read the request".into(), errno: Errno::INVAL })
            }
            (None, None) if self.is_placed.get() => mounts::still_placed(request).map(|()| None),
            (None, None) if self.setup.kind == InitKind::Runtime => mounts::place(request).map(|()| None),
            (None, None) => {
                if request.filter == FilterKind::Network && self.setup.kind == InitKind::Process {
                    rules = rules.map(system::with_network).transpose().stage("allow name files")?;
                }
                for bind in &request.binds {
                    let open = system::open_exactly(bind)?;
                    let right = if bind.writable { Right::Write } else { Right::Read };
                    rules = rules
                        .map(|rules| rules.allow(&open.0, right, open.1))
                        .transpose()
                        .stage(format!("allow {}", bind.path.display()))?;
                }
                Ok(rules)
            }
        }
    }

    /// Until the guest itself has ended.
    fn watch(&self, guest: i32, grace: Duration, signaller: &[String]) -> InitEnd {
        let mut deadline: Option<Instant> = None;
        let mut deaf = false;
        let mut unfiltered = self.only_waits();
        loop {
            let mut left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.kill_all();
                deadline = None;
            }
            if unfiltered {
                left = Some(left.unwrap_or(A_MOMENT).min(A_MOMENT));
            }
            let mut events = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(&self.setup.socket, if deaf { PollFlags::empty() } else { PollFlags::IN }),
            ];
            let watched = if deaf { &mut events[..1] } else { &mut events[..] };
            let timeout = left.map(|left| Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            let _ = poll(watched, timeout.as_ref());
            let spoken = watched.get(1).is_some_and(|event| !event.revents().is_empty());
            sys::drain_signals(&self.signals);
            while let Ok(Some(waited)) = sys::wait_any(false) {
                if waited.pid == guest {
                    return InitEnd {
                        exit_code: waited.exit_code,
                        signal: waited.signal,
                        ..InitEnd::default()
                    };
                }
            }
            if std::mem::take(&mut unfiltered) {
                self.filter_itself();
            }
            if !spoken {
                continue;
            }
            let mut stop = |grace: Duration| {
                // A stopped program cannot tidy up before it goes on.
                self.signal(guest, libc::SIGTERM, signaller);
                self.signal(guest, libc::SIGCONT, signaller);
                deadline = Some(Instant::now() + grace);
            };
            match wire::receive::<ToInit>(&self.setup.socket) {
                Ok(Some((ToInit::Signal(libc::SIGKILL), _))) => self.kill_all(),
                Ok(Some((ToInit::Signal(signal), _))) => self.signal(guest, signal, signaller),
                Ok(Some((ToInit::Stop { grace_ms }, _))) => stop(Duration::from_millis(grace_ms)),
                Ok(Some((ToInit::Start(_) | ToInit::Prepare(_), _))) => {}
                Ok(None) | Err(_) => {
                    deaf = true;
                    stop(grace);
                }
            }
        }
    }

    /// To the guest's group; or by what passes it on, because to the processes of a runtime the same signal is meant
    /// for themselves.
    fn signal(&self, guest: i32, signal: i32, signaller: &[String]) {
        let is_passed_on = ![libc::SIGSTOP, libc::SIGCONT].contains(&signal);
        match signaller {
            [program, ..] if is_passed_on => {
                // Where that fails, the guest is killed at the end of its grace.
                let _ = self.pass_on(program, signaller, signal);
            }
            _ => drop(sys::kill(-guest, signal)),
        }
    }

    /// Starts what passes a signal on. Its end is seen with that of others.
    fn pass_on(&self, program: &str, signaller: &[String], signal: i32) -> Result<(), Failure> {
        let argv = signaller.iter().cloned().chain([signal.to_string()]).collect();
        let programs = vec![program.to_owned()];
        let request = InitRequest { programs, argv, filter: FilterKind::Runtime, ..InitRequest::default() };
        let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        let descriptors = [null(), null(), null()].into_iter().collect::<std::io::Result<Vec<OwnedFd>>>();
        let filters = self.setup.filters.of(request.filter);
        self.fork(&Program::new(&request, &descriptors.stage("open /dev/null")?, "/", None, filters)?)?;
        Ok(())
    }

    /// Runs a program in the guest's cgroup, and gives its number when it has started.
    fn fork(&self, program: &Program<'_>) -> Result<i32, Failure> {
        let (report, told) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).stage("make a pipe")?;
        let cgroup = self.setup.guest_cgroup.map(|fd| fd.as_fd());
        let pid = match sys::fork(0, cgroup).stage("make the guest's process")? {
            Forked::Child => program.become_guest(&told),
            Forked::Parent(pid) => pid.as_raw_nonzero().get(),
        };
        drop(told);
        // While the other one gets ready.
        self.drop_privileges()?;
        child::failure(&report).map_or(Ok(pid), Err)
    }

    /// Ends everything but this process. Those that come to be meanwhile are found by the next round.
    fn kill_all(&self) {
        if self.setup.kind == InitKind::Namespace {
            return sys::kill_namespace(libc::SIGKILL);
        }
        self.killed.set(self.setup.kill_switch.is_some());
        kill_children(self.setup.kill_switch);
    }

    /// Ends everything and waits until the kernel says that nothing is left. Says how many there were.
    fn end_all(&self) -> u32 {
        until_none_is_left(&self.signals, || self.kill_all())
    }
}

/// Ends all children of this process, and theirs, and waits until nothing is left.
pub(super) fn end_all(kill_switch: Option<&OwnedFd>, signals: &OwnedFd) {
    until_none_is_left(signals, || kill_children(kill_switch));
}

fn kill_children(kill_switch: Option<&OwnedFd>) {
    if let Some(switch) = kill_switch {
        let _ = rustix::io::pwrite(switch, b"1", 0);
    }
    for child in children() {
        let _ = sys::kill(child, libc::SIGKILL);
    }
}

fn until_none_is_left(signals: &OwnedFd, kill: impl Fn()) -> u32 {
    let mut ended = 0;
    loop {
        loop {
            match sys::wait_any(false) {
                Ok(Some(_)) => ended += 1,
                Ok(None) => break,
                Err(Errno::INTR) => {}
                // No children: nothing is left.
                Err(_) => return ended,
            }
        }
        kill();
        let pause = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&pause));
        sys::drain_signals(signals);
    }
}

/// Users, mounts, network and name of a new set of namespaces.
fn namespaces(setup: &Setup<'_>) -> Result<Tree, Failure> {
    // The maps of a process that cannot be read belong to root, even to itself; nobody is here yet who could read it.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    fs::write("/proc/self/setgroups", "deny").stage("map groups")?;
    fs::write("/proc/self/uid_map", format!("{INNER_ID} {} 1", setup.user)).stage("map the user")?;
    fs::write("/proc/self/gid_map", format!("{INNER_ID} {} 1", setup.group)).stage("map the group")?;
    // No further user namespaces, whatever else a guest may find; the filter refuses them, too.
    let _ = fs::write("/proc/sys/user/max_user_namespaces", "0");
    set_dumpable_behavior(DumpableBehavior::NotDumpable).stage("hide its memory")?;
    set_parent_process_death_signal(Some(Signal::KILL)).stage("be ended with its parent")?;
    if setup.has_cgroups {
        sys::own_cgroup_namespace().stage("hide the cgroups of others")?;
    }
    rustix::system::sethostname(b"haft").stage("name the machine")?;
    sys::loopback_up().stage("bring up loopback")?;
    Tree::prepare(Proc::Now)
}
