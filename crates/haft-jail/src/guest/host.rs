//! haft's side: the spawner that it started, and the jail inits that stand ready.

use super::{
    base::check_base,
    cgroup::{Hierarchies, InitCgroups},
    gate::Gatekeeper,
    instance::Instance,
    plan::Facts,
    quarantine, rules,
    sandbox::{self, Around},
    spawner, sys,
    wire::{self, FromInit, FromSpawner, InitKind, ToSpawner},
};
use haft_core::{ErrorCode, Limits, ToolError, Violation};
use haft_guard::names::ProtectedNames;
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};
use std::{
    collections::{HashMap, HashSet},
    io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{io::unix::AsyncFd, sync::oneshot};

mod mount_table;
mod options;
use mount_table::MountTable;
pub use options::JailOptions;

/// Set by [`init`](super::init): only then does this program know how to be a spawner.
pub(super) static KNOWS_HOW: AtomicBool = AtomicBool::new(false);

/// A jail init that has waited this long is not used any more: files of the system may have been replaced since.
pub(super) const FRESH: Duration = Duration::from_secs(300);
/// A guest that was handed a jail init has started by then.
const AFTER_A_START: Duration = Duration::from_millis(5);
/// A jail init that is not ready by then never will be.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// Makes jails: starts the spawner when the first guest comes, and keeps jail inits ready. Dropping it ends all guests.
///
/// ```no_run
/// use haft_jail::guest::{JailHost, JailOptions, Namespace};
/// haft_jail::init(); // first in `main`, before anything else
/// let host = JailHost::new(JailOptions::new("/var/lib/haft", "/home/me")).unwrap();
/// let jail = Namespace::new(&host);
/// ```
#[derive(Clone)]
pub struct JailHost(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) options: JailOptions,
    pub(super) hierarchies: Hierarchies,
    pub(super) facts: Facts,
    pub(super) instance: Instance,
    pub(super) answers: super::probe::Answers,
    recovered: Vec<Violation>,
    sandboxes: Mutex<HashMap<String, Arc<Around>>>,
    limited: Mutex<HashMap<PathBuf, Held>>,
    next: AtomicU64,
    mounts: MountTable,
    spawner: Mutex<Option<Arc<Spawner>>>,
}

/// What a cgroup holds now: memory, processes, cores, and the processes of haft's own beside them.
type Held = (Option<u64>, Option<u32>, Option<u32>, u32);
/// So many are remembered. Names of cgroups are never used again.
const MOST_HELD: usize = 1024;

/// A running spawner.
struct Spawner {
    socket: OwnedFd,
    child: Mutex<Child>,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    dead: bool,
    ready: HashMap<InitKind, Vec<Init>>,
    /// Kinds of which one was asked for.
    asked: HashSet<InitKind>,
    waiting: HashMap<u64, (Init, oneshot::Sender<io::Result<Init>>)>,
    coming: HashMap<u64, (InitKind, Init)>,
}

/// A jail init, as haft knows it.
pub(super) struct Init {
    pub(super) name: String,
    pub(super) cgroups: InitCgroups,
    pub(super) socket: Option<OwnedFd>,
    made: Instant,
    /// What was mounted when it was ordered.
    mounts: u64,
}

/// How long jail inits and what is prepared in them are used.
pub(super) fn is_fresh(made: Instant) -> bool {
    made.elapsed() < FRESH
}

/// A jail init that said that it is ready.
pub(super) struct ReadyInit {
    pub(super) name: String,
    pub(super) cgroups: InitCgroups,
    pub(super) socket: AsyncFd<OwnedFd>,
    /// Its number on this machine.
    pub(super) pid: i32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What could not be done, for people and, in `diagnostics`, for operators.
pub(super) fn broken(what: &str, error: impl std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::SandboxCreationFailed, format!("the jail could not be made: {what}"))
        .with_diagnostics(error)
}

impl JailHost {
    /// Looks what this machine has, ends what killed runs of haft left, and begins a run of its own.
    pub fn new(options: JailOptions) -> io::Result<Self> {
        let hierarchies = Hierarchies::find();
        let base = options.base.as_deref().map(check_base).transpose().map_err(io::Error::other)?;
        let instance = Instance::begin(&options.state, base.as_deref(), hierarchies.roots())?;
        let recovered = quarantine::catch_up(&options.state, &options.names);
        let mut protected = options.protected.clone();
        protected.push(options.state.clone());
        protected.extend(base);
        let facts = Facts {
            home: options.home.clone(),
            state: options.state.clone(),
            protected,
            names: Arc::clone(&options.names),
            landlock: rules::version(),
            cgroups: hierarchies.version(),
            can_kill: hierarchies.can_kill(),
            per_process_limits_do: options.per_process_limits_do,
            has_gate: options.gate.is_some(),
            is_root: rustix::process::geteuid().is_root(),
            unix_sockets: options.unix_sockets,
            cache_bytes: options.cache_bytes,
        };
        let inner = Inner {
            options,
            hierarchies,
            facts,
            instance,
            answers: super::probe::Answers::default(),
            recovered,
            sandboxes: Mutex::default(),
            limited: Mutex::default(),
            next: AtomicU64::new(0),
            mounts: MountTable::new(),
            spawner: Mutex::new(None),
        };
        Ok(JailHost(Arc::new(inner)))
    }

    /// What guests of runs of haft left that were killed, as far as it would have run later. It was taken out of the
    /// way.
    pub fn recovered(&self) -> &[Violation] {
        &self.0.recovered
    }
}

impl Inner {
    fn spawner(&self) -> Result<Arc<Spawner>, ToolError> {
        let mut current = lock(&self.spawner);
        if let Some(spawner) = current.as_ref() {
            if !lock(&spawner.shared).dead {
                return Ok(Arc::clone(spawner));
            }
            self.instance.end_own();
        }
        if !KNOWS_HOW.load(Ordering::Relaxed) {
            let text = "this program cannot make jails, because it does not call `haft_jail::init()` first in `main`";
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        let spawner = self.start_spawner().map_err(|error| broken("the spawner does not start", error))?;
        // What an earlier one left was removed just now, and the folders of sandboxes with it.
        for around in self.sandboxes().values() {
            let made = around.furnish().and_then(|cgroups| {
                let group = ToSpawner::Group { cgroups: cgroups.clone(), make: true };
                wire::send(&spawner.socket, &group, &[])
            });
            made.map_err(|error| broken("no cgroup for the sandbox", error))?;
        }
        *current = Some(Arc::clone(&spawner));
        Ok(spawner)
    }

    fn start_spawner(&self) -> io::Result<Arc<Spawner>> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new("/proc/self/exe");
        std::os::unix::process::CommandExt::arg0(&mut command, spawner::NAME);
        command.env_clear().current_dir("/");
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        // The other end now is the spawner's alone, so that its end shows here.
        drop(command);
        let Instance { folder, scratch, .. } = &self.instance;
        wire::send(&ours, &ToSpawner::Begin { folder: folder.clone(), scratch: scratch.clone() }, &[])?;
        self.instance.record(i32::try_from(child.id()).ok())?;
        let shared = Mutex::new(Shared::default());
        let spawner = Arc::new(Spawner { socket: ours, child: Mutex::new(child), shared });
        let reader = Arc::clone(&spawner);
        std::thread::Builder::new().name("haft-jail".into()).spawn(move || reader.listen())?;
        Ok(spawner)
    }

    /// Whether the gate understands the hosts.
    pub(super) fn check_hosts(&self, hosts: &[String]) -> Result<(), ToolError> {
        match &self.options.gate {
            Some(gate) if !hosts.is_empty() => {
                gate.check(hosts).map_err(|why| ToolError::new(ErrorCode::NetworkPolicyViolation, why))
            }
            _ => Ok(()),
        }
    }

    /// Sets limits, unless they are what was set there last. Most guests have the same, and each write takes locks that
    /// all of the machine's processes share.
    pub(super) fn limit(&self, cgroups: &InitCgroups, limits: &Limits, inits: u32) -> io::Result<()> {
        let Some(folder) = cgroups.memory.as_ref().or(cgroups.v2.as_ref()) else {
            return cgroups.limit(limits, inits);
        };
        let wanted = (limits.memory_bytes, limits.processes, limits.cpu_millicores, inits);
        if lock(&self.limited).get(folder) == Some(&wanted) {
            return Ok(());
        }
        // Forgotten first: where setting fails, nothing is known.
        lock(&self.limited).remove(folder);
        cgroups.limit(limits, inits)?;
        let mut limited = lock(&self.limited);
        if limited.len() >= MOST_HELD {
            limited.clear();
        }
        limited.insert(folder.clone(), wanted);
        Ok(())
    }

    /// The sandboxes that are open, by name.
    pub(super) fn sandboxes(&self) -> MutexGuard<'_, HashMap<String, Arc<Around>>> {
        lock(&self.sandboxes)
    }

    /// Whether there is a sandbox of that name.
    pub(super) fn has_sandbox(&self, id: &str) -> bool {
        self.sandboxes().contains_key(id)
    }

    /// A name that nobody else uses.
    pub(super) fn name(&self) -> (u64, String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number, format!("{}-{number}", self.instance.name))
    }

    fn order(&self, spawner: &Spawner, kind: InitKind, parent: Option<&str>) -> io::Result<(u64, Init)> {
        let (id, name) = self.name();
        let cgroups = self.hierarchies.init(parent, &name);
        let (made, mounts) = (Instant::now(), self.mounts.generation());
        let init = Init { name, cgroups: InitCgroups::default(), socket: None, made, mounts };
        wire::send(
            &spawner.socket,
            &ToSpawner::Init { id, kind, cgroups, own_parent: parent.is_some() },
            &[],
        )?;
        Ok((id, init))
    }

    /// A jail init that is ready: one that stands by, or a new one.
    ///
    /// `fresh` takes none that stands by: what was mounted on the machine since may be missing in it.
    pub(super) async fn init(
        self: &Arc<Self>,
        kind: InitKind,
        parent: Option<&str>,
        fresh: bool,
    ) -> Result<ReadyInit, ToolError> {
        if let Some(unknown) = parent.filter(|parent| !self.has_sandbox(parent)) {
            return Err(sandbox::unknown(unknown));
        }
        match self.try_init(kind, parent, fresh).await {
            // The spawner ended under it, which shows only when it is spoken to. There is a new one for the next try.
            Err(error) if error.code == ErrorCode::SandboxCrashed => self.try_init(kind, parent, fresh).await,
            done => done,
        }
    }

    async fn try_init(
        self: &Arc<Self>,
        kind: InitKind,
        parent: Option<&str>,
        fresh: bool,
    ) -> Result<ReadyInit, ToolError> {
        let spawner = self.spawner()?;
        let may_stand_by = parent.is_none() && !fresh;
        let standing_by = may_stand_by.then(|| spawner.take(kind, self.mounts.generation())).flatten();
        let init = match standing_by {
            Some(init) => init,
            None => self.new_init(&spawner, kind, parent).await?,
        };
        // One program says nothing about another: most runs of haft start a single one, and would only pay.
        if parent.is_none() && spawner.is_asked_again(kind) {
            self.refill_soon(&spawner, kind);
        }
        into_ready(init).await
    }

    /// Orders the next jail inits when this guest has started, where one still stands by: making them takes a core that
    /// the guest could have.
    fn refill_soon(self: &Arc<Self>, spawner: &Arc<Spawner>, kind: InitKind) {
        let is_last = lock(&spawner.shared).ready.get(&kind).is_none_or(Vec::is_empty);
        if is_last {
            return self.refill(spawner, kind);
        }
        let (host, spawner) = (Arc::downgrade(self), Arc::downgrade(spawner));
        tokio::spawn(async move {
            tokio::time::sleep(AFTER_A_START).await;
            if let (Some(host), Some(spawner)) = (host.upgrade(), spawner.upgrade()) {
                host.refill(&spawner, kind);
            }
        });
    }

    async fn new_init(
        &self,
        spawner: &Arc<Spawner>,
        kind: InitKind,
        parent: Option<&str>,
    ) -> Result<Init, ToolError> {
        let receiver = {
            // Held until the answer has somewhere to go: it may come at once.
            let mut shared = lock(&spawner.shared);
            if shared.dead {
                return Err(spawner_ended());
            }
            let ordered = self.order(spawner, kind, parent);
            // Known at once, so that the next try does not find it again.
            shared.dead |= ordered.is_err();
            let (id, init) = ordered.map_err(|_| spawner_ended())?;
            let (sender, receiver) = oneshot::channel();
            shared.waiting.insert(id, (init, sender));
            receiver
        };
        match receiver.await {
            Ok(init) => init.map_err(|error| broken("no init", error)),
            Err(_) => Err(spawner_ended()),
        }
    }

    /// Orders jail inits until enough stand by.
    fn refill(&self, spawner: &Spawner, kind: InitKind) {
        let mut shared = lock(&spawner.shared);
        let standing = shared.ready.get(&kind).map_or(0, Vec::len);
        let coming = shared.coming.values().filter(|(coming, _)| *coming == kind).count();
        for _ in standing + coming..self.options.warm {
            // Without it the next guest waits for its init; that is all.
            let Ok((id, init)) = self.order(spawner, kind, None) else { return };
            shared.coming.insert(id, (kind, init));
        }
    }

    /// Tells the spawner of a cgroup in which those of guests are, so that it is removed when haft is gone.
    pub(super) fn group(&self, cgroups: InitCgroups, make: bool) -> Result<(), ToolError> {
        let spawner = self.spawner()?;
        wire::send(&spawner.socket, &ToSpawner::Group { cgroups, make }, &[])
            .map_err(|error| broken("the spawner does not answer", error))
    }
}

fn spawner_ended() -> ToolError {
    ToolError::new(ErrorCode::SandboxCrashed, "the spawner of jails has ended")
}

/// Waits until a jail init says that it is ready.
async fn into_ready(init: Init) -> Result<ReadyInit, ToolError> {
    let Init { name, cgroups, socket, .. } = init;
    let socket = socket.ok_or_else(|| broken("no init", "it has no socket"))?;
    let socket = sys::watched(socket).map_err(|error| broken("no runtime", error))?;
    let said = tokio::time::timeout(READY_WITHIN, hear(&socket)).await;
    match said {
        Ok(Ok(Some((FromInit::Ready { pid, .. }, _)))) => Ok(ReadyInit { name, cgroups, socket, pid }),
        Ok(Ok(Some((FromInit::Failed { stage, errno }, _)))) => Err(failed(&stage, errno)),
        Ok(Ok(_)) => Err(ToolError::new(ErrorCode::SandboxCrashed, "the jail ended before it was ready")),
        Ok(Err(error)) => Err(broken("its init does not answer", error)),
        Err(_) => Err(broken("its init was not ready in time", format!("{READY_WITHIN:?}"))),
    }
}

/// What a jail init could not do, in words.
pub(super) fn failed(stage: &str, errno: i32) -> ToolError {
    let reason = Errno::from_raw_os_error(errno);
    let error =
        ToolError::new(ErrorCode::SandboxCreationFailed, format!("the jail could not {stage}: {reason}"));
    if reason == Errno::STALE { error.with_diagnostics(STALE) } else { error }
}

/// Says, in the diagnostics of an error, that a path is another file for a jail init than it is for haft.
pub(super) const STALE: &str = "stale";

/// The next message of a jail init; `None` at its end.
pub(super) async fn hear(socket: &AsyncFd<OwnedFd>) -> io::Result<Option<wire::Received<FromInit>>> {
    loop {
        // Most often it has spoken before it is asked.
        match wire::receive::<FromInit>(socket.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        let mut guard = socket.readable().await?;
        match guard.try_io(|socket| wire::receive::<FromInit>(socket.get_ref())) {
            Ok(done) => return done,
            Err(_would_block) => {}
        }
    }
}

impl Spawner {
    /// Whether a jail init of that kind was asked for before.
    fn is_asked_again(&self, kind: InitKind) -> bool {
        !lock(&self.shared).asked.insert(kind)
    }

    fn take(&self, kind: InitKind, mounts: u64) -> Option<Init> {
        let mut shared = lock(&self.shared);
        let ready = shared.ready.get_mut(&kind)?;
        // The oldest, which is the likeliest to be ready. Dropping a stale one ends it.
        while !ready.is_empty() {
            let init = ready.remove(0);
            if is_fresh(init.made) && init.mounts == mounts {
                return Some(init);
            }
        }
        None
    }

    /// Takes what the spawner says, until it has ended.
    fn listen(&self) {
        while let Ok(Some((message, mut descriptors))) = wire::receive::<FromSpawner>(&self.socket) {
            let mut shared = lock(&self.shared);
            match message {
                FromSpawner::Init { id, cgroups } => {
                    let socket = descriptors.pop();
                    if let Some((mut init, sender)) = shared.waiting.remove(&id) {
                        (init.socket, init.cgroups) = (socket, cgroups);
                        // Nobody waits any more: the init ends when it is dropped.
                        let _ = sender.send(Ok(init));
                    } else if let Some((kind, mut init)) = shared.coming.remove(&id) {
                        (init.socket, init.cgroups) = (socket, cgroups);
                        shared.ready.entry(kind).or_default().push(init);
                    }
                }
                FromSpawner::Failed { id, stage, errno } => {
                    shared.coming.remove(&id);
                    if let Some((_, sender)) = shared.waiting.remove(&id) {
                        let reason = Errno::from_raw_os_error(errno);
                        let _ = sender.send(Err(io::Error::other(format!("{stage}: {reason}"))));
                    }
                }
            }
        }
        let mut shared = lock(&self.shared);
        shared.dead = true;
        shared.waiting.clear();
        shared.coming.clear();
        shared.ready.clear();
        drop(shared);
        let _ = lock(&self.child).wait();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(spawner) = lock(&self.spawner).take() {
            lock(&spawner.shared).ready.clear();
            // The reader holds the socket as well; this ends its reading and, for the spawner, everything.
            let _ = rustix::net::shutdown(&spawner.socket, rustix::net::Shutdown::Both);
            let _ = lock(&spawner.child).wait();
        }
        // Nothing is left where the spawner ended as it should.
        self.instance.end_own();
        super::instance::remove(&self.instance.folder, &self.instance.scratch);
    }
}
