//! A guest while it runs: its output, its limits, its end.

use super::{
    cache::Cache,
    cgroup::Counted,
    control::{Control, Ends},
    disk::Room,
    gate::OpenGate,
    host::{Inner, ReadyInit, broken, failed, hear},
    interpreter,
    limits::{self, Evidence, millis, sleep_until},
    plan::{GuestPlan, Network},
    quarantine::Watch,
    sandbox::{Place, unknown},
    staging::{self, Prepared},
    wire::{self, FromInit, InitEnd, ToInit},
};
use haft_core::{
    Enforcement, ErrorCode, Limits, Metrics, OutputStream, ToolError, Violation,
    port::{BoxFuture, Exceeded, Guest, GuestControl, GuestEnd, GuestSpec, GuestStdin, OutputSink},
};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    io::Errno,
};
use std::{
    net::TcpListener,
    path::PathBuf,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use tokio::io::unix::AsyncFd;

mod port;
mod staged;
mod summary;

use staged::{Counts, end_of, first_of};

/// How much of the output is taken at once.
const CHUNK: usize = 64 * 1024;
/// Where time on a core is nearly over, it is looked at again after a time between these two.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// What is left in a pipe after everything that wrote to it has ended is read within that time.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A folder that goes with its guest.
#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    /// A new one.
    pub(super) fn make(host: &Inner) -> Result<Self, ToolError> {
        let (_, name) = host.name();
        let folder = host.instance.scratch.join(name);
        std::fs::create_dir(&folder).map_err(|error| broken("no scratch folder", error))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The spawner removes what is left when haft ends.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A guest in a jail init. Dropping it closes the init's socket, which ends everything in it.
pub(super) struct InitGuest {
    sandbox: String,
    enforcement: Enforcement,
    limits: Limits,
    cgroups: super::cgroup::InitCgroups,
    before: Counted,
    control: Arc<Control>,
    out: AsyncFd<OwnedFd>,
    err: Option<AsyncFd<OwnedFd>>,
    feed: Option<Vec<u8>>,
    gate: Option<Box<dyn OpenGate>>,
    room: Room,
    /// What is kept apart of what it writes, and the init, with which the layers are unmounted.
    staged: Option<(Prepared, AsyncFd<OwnedFd>)>,
    /// What it keeps for the next command of its workspace.
    cache: Option<Cache>,
    started: Instant,
    /// Its place in the sandbox around it.
    place: Option<Place>,
    /// Set as long as the guest has not ended.
    running: bool,
    /// What to look at when it has.
    watch: Option<Watch>,
    _scratch: Option<Scratch>,
    _host: Arc<Inner>,
}

/// A limit that haft itself saw passed, and when.
struct Passed {
    exceeded: Exceeded,
    kind: &'static str,
}

/// Runs a plan in a jail init.
pub(super) async fn start(
    host: &Arc<Inner>,
    init: ReadyInit,
    plan: GuestPlan,
    spec: GuestSpec,
    scratch: Option<Scratch>,
) -> Result<InitGuest, ToolError> {
    let GuestPlan {
        mut request,
        enforcement,
        limits,
        network,
        watched,
        window,
        staging,
        cache,
        own_processes,
    } = plan;
    request.no_input = spec.terminal.is_none() && matches!(spec.stdin, GuestStdin::Closed);
    host.limit(&init.cgroups, &limits, own_processes)
        .map_err(|error| broken("limits cannot be set", error))?;
    let before = init.cgroups.before();
    // Before anything else, because the guest may begin only when the clock of file times has gone on.
    let staging = staging.filter(|staging| !staging.roots.is_empty());
    let staged = staging.map(|staging| staging::prepare(&staging, &mut request.binds)).transpose()?;
    let staged = staged.map(|staged| Ok::<_, ToolError>((staged, end_of(init.pid)?))).transpose()?;
    let writable = request.binds.iter().filter(|bind| bind.writable);
    let room = Room::of(
        writable.map(|bind| bind.layers.as_ref().map_or(&*bind.path, |layers| layers.folder.as_path())),
    );
    let ends = match spec.terminal {
        Some(size) => Ends::terminal(size),
        None => Ends::pipes(&spec.stdin),
    };
    let Ends { theirs, ours } = ends.map_err(|error| broken("no pipes", error))?;
    let mounts = staged.iter().flat_map(|(staged, _)| &staged.mounts);
    let descriptors: Vec<BorrowedFd<'_>> = theirs.iter().chain(mounts).map(|fd| fd.as_fd()).collect();
    // On record before anything can happen.
    let watch = Watch::begin(host, &init.name, watched).map_err(|error| broken("no record of it", error))?;
    drop(window);
    let mut unseen = Unseen(watch);
    let started = Instant::now();
    wire::send(init.socket.get_ref(), &ToInit::Start(Box::new(request)), &descriptors)
        .map_err(|error| broken("its init does not answer", error))?;
    drop(descriptors);
    drop(theirs);
    // The init has them now; as long as haft does, nothing is unmounted.
    let staged = staged.map(|(staged, end)| (Prepared { mounts: Vec::new(), ..staged }, end));
    let mut gate = None;
    loop {
        match hear(&init.socket).await.map_err(|error| broken("its init does not answer", error))? {
            Some((FromInit::Started, _)) => break,
            Some((FromInit::Listening, mut fds)) => {
                let listener = fds.pop().map(TcpListener::from);
                gate = Some(open_gate(host, listener, &spec.hosts)?);
            }
            Some((FromInit::Failed { stage, errno }, _)) => {
                if let Some(watch) = unseen.0.take() {
                    watch.never_ran();
                }
                return Err(not_started(&spec, &stage, errno));
            }
            Some((FromInit::Ready { .. } | FromInit::Prepared | FromInit::Ended(_), _)) | None => {
                return Err(broken("its init has ended", "before the guest started"));
            }
        }
    }
    let control = Control {
        socket: Arc::new(init.socket),
        input: Arc::new(tokio::sync::Mutex::new(ours.input)),
        closing: Arc::default(),
        closed: Arc::default(),
        terminal: ours.terminal,
        grace: spec.grace,
    };
    let control = Arc::new(control);
    let as_port = Arc::clone(&control) as Arc<dyn GuestControl>;
    // From here on it runs: dropping this ends it, and looks at what it left.
    let mut guest = InitGuest {
        sandbox: init.name,
        enforcement,
        limits,
        cgroups: init.cgroups,
        before,
        control,
        out: ours.out,
        err: ours.err,
        feed: match spec.stdin {
            GuestStdin::Bytes(bytes) => Some(bytes),
            GuestStdin::Closed | GuestStdin::Stream => None,
        },
        gate,
        room,
        staged,
        cache,
        started,
        place: None,
        running: true,
        watch: unseen.0.take(),
        _scratch: scratch,
        _host: Arc::clone(host),
    };
    if network == Network::Gate && guest.gate.is_none() {
        return Err(broken("its gate is not there", "the init passed no socket"));
    }
    let around = spec.parent.as_ref().map(|id| host.sandboxes().get(id).cloned().ok_or_else(|| unknown(id)));
    // Where the sandbox was ended while this one started, dropping the socket ends it, too.
    guest.place = around.transpose()?.map(|around| around.enter(&as_port)).transpose()?;
    Ok(guest)
}

/// What to look at where a jail init ends without a word, so that nobody knows whether its guest ran.
struct Unseen(Option<Watch>);

impl Drop for Unseen {
    fn drop(&mut self) {
        if let Some(watch) = self.0.take() {
            watch.settle();
        }
    }
}

/// Waits for the end of a jail init that was let go of, and looks at what its guest left.
fn settle_later(watch: Watch, socket: OwnedFd) {
    let waiting = move || {
        let mut events = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
        let longest = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        while rustix::event::poll(&mut events, Some(&longest)).is_ok_and(|ready| ready > 0) {
            match wire::receive::<FromInit>(&socket) {
                Ok(Some(_)) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => break,
            }
        }
        watch.settle();
    };
    // Where there is no thread, the record is there for the next haft.
    let _ = std::thread::Builder::new().name("haft-settle".into()).spawn(waiting);
}

fn open_gate(
    host: &Inner,
    listener: Option<TcpListener>,
    hosts: &[String],
) -> Result<Box<dyn OpenGate>, ToolError> {
    let (Some(keeper), Some(listener)) = (&host.options.gate, listener) else {
        return Err(broken("its gate is not there", "no gate is wired in"));
    };
    keeper.open(listener, hosts).map_err(|error| broken("its gate does not open", error))
}

/// What could not be done for a guest, in words.
pub(super) fn not_started(spec: &GuestSpec, stage: &str, errno: i32) -> ToolError {
    let name = spec.argv.first().map_or("", String::as_str);
    if let Some(interpreter) = stage.strip_prefix(interpreter::STEP) {
        return ToolError::failed(format!(
            "`{name}` cannot be started: its first line names the interpreter `{interpreter}`, which is not in the jail"
        ));
    }
    match (stage, errno) {
        ("start the program", libc::ENOENT) => {
            ToolError::failed(format!("there is no program `{name}` in the jail"))
        }
        ("start the program", _) => {
            ToolError::failed(format!("`{name}` cannot be started: {}", Errno::from_raw_os_error(errno)))
        }
        ("enter the working folder", libc::ENOENT | libc::EACCES | libc::ENOTDIR) => {
            let text = "the working folder is not a folder that the jail grants";
            ToolError::new(ErrorCode::FilesystemPolicyViolation, text)
        }
        _ => failed(stage, errno),
    }
}

/// What came of a read: bytes, an end, or a reason to come again.
async fn read(stream: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> usize {
    loop {
        let Ok(mut guard) = stream.readable().await else { return 0 };
        match guard.try_io(|stream| rustix::io::read(stream.get_ref(), &mut *buffer).map_err(Into::into)) {
            Ok(Ok(count)) => return count,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // A terminal whose other side is closed answers with an error.
            Ok(Err(_)) => return 0,
            Err(_would_block) => {}
        }
    }
}

/// Reads a stream that may be at its end: then it never comes back.
async fn read_open(stream: Option<&AsyncFd<OwnedFd>>, buffer: &mut [u8]) -> usize {
    match stream {
        Some(stream) => read(stream, buffer).await,
        None => std::future::pending().await,
    }
}

impl InitGuest {
    async fn run(&mut self, sink: OutputSink) -> Result<GuestEnd, ToolError> {
        let control = Arc::clone(&self.control);
        let feed = self.feed.take();
        let feeding = async {
            let Some(bytes) = feed else { return std::future::pending().await };
            // A program need not read all of its input.
            let _ = control.write(&bytes).await;
            control.close_stdin();
            std::future::pending::<()>().await
        };
        tokio::pin!(feeding);
        let (mut first, mut second) = (vec![0; CHUNK], vec![0; CHUNK]);
        let (mut out_open, mut err_open) = (true, self.err.is_some());
        let mut put_out = 0u64;
        let mut passed: Option<Passed> = None;
        let mut end: Option<InitEnd> = None;
        let mut last_words: Option<tokio::time::Instant> = None;
        let wall = self.limits.wall_time.map(|time| tokio::time::Instant::from_std(self.started) + time);
        let looks = self.limits.cpu_time.is_some() && self.before.cpu_micros.is_some();
        let mut next_look = tokio::time::Instant::now() + self.first_look();
        let mut next_room = tokio::time::Instant::now();
        let mut counts = Counts::of(self.staged.as_ref().map(|(staged, _)| staged.bounds.clone()));
        let mut cached = Counts::later(self.cache.as_ref().map(Cache::bounds));
        while end.is_none()
            || ((out_open || err_open) && last_words.is_none_or(|at| at > tokio::time::Instant::now()))
        {
            let running = end.is_none();
            let (stream, count) = tokio::select! {
                biased;
                message = hear(&self.control.socket), if running => {
                    match message {
                        Ok(Some((FromInit::Ended(ended), _))) => end = Some(ended),
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => {
                            self.running = false;
                            // The init is gone, and with it all that was in it.
                            self.settle().await;
                            return Err(ErrorCode::SandboxCrashed.into());
                        }
                    }
                    last_words = end.as_ref().map(|_| tokio::time::Instant::now() + LAST_WORDS);
                    continue;
                }
                count = read_open(out_open.then_some(&self.out), &mut first) => (OutputStream::Stdout, count),
                count = read_open(self.err.as_ref().filter(|_| err_open), &mut second) => (OutputStream::Stderr, count),
                () = &mut feeding, if running => continue,
                () = sleep_until(wall), if running && passed.is_none() => {
                    let allowed = self.limits.wall_time.map_or(0, millis);
                    let used = Some(millis(self.started.elapsed()));
                    passed = Some(Passed { exceeded: Exceeded { limit: "wallTime", allowed, used }, kind: "RestrictedResourceAccess" });
                    self.control.stop();
                    continue;
                }
                () = tokio::time::sleep_until(next_look), if running && looks && passed.is_none() => {
                    passed = self.look_at_cpu();
                    next_look = tokio::time::Instant::now() + self.next_look();
                    continue;
                }
                () = tokio::time::sleep_until(next_room), if running && self.room.is_watched() && passed.is_none() => {
                    match self.room.look() {
                        Ok(later) => next_room = tokio::time::Instant::now() + later,
                        Err(exceeded) => {
                            passed = Some(Passed { exceeded, kind: "RestrictedResourceAccess" });
                            self.control.kill();
                        }
                    }
                    continue;
                }
                counted = first_of(&mut counts, &mut cached), if running && passed.is_none() => {
                    if let Err(exceeded) = counted {
                        passed = Some(Passed { exceeded, kind: "RestrictedResourceAccess" });
                        self.control.kill();
                    }
                    continue;
                }
                () = sleep_until(last_words), if !running => break,
            };
            if count == 0 {
                match stream {
                    OutputStream::Stdout => out_open = false,
                    OutputStream::Stderr => err_open = false,
                }
                continue;
            }
            let buffer = if stream == OutputStream::Stdout { &first } else { &second };
            let mut bytes = buffer.get(..count).unwrap_or_default();
            if let Some(allowed) = self.limits.output_bytes {
                let room = allowed.saturating_sub(put_out);
                if count as u64 > room {
                    bytes = bytes.get(..room as usize).unwrap_or_default();
                    if passed.is_none() {
                        let used = Some(put_out + count as u64);
                        passed = Some(Passed {
                            exceeded: Exceeded { limit: "outputBytes", allowed, used },
                            kind: "RestrictedResourceAccess",
                        });
                        self.control.kill();
                    }
                }
            }
            put_out += count as u64;
            if !bytes.is_empty() {
                sink(stream, bytes);
            }
        }
        self.running = false;
        let seen = passed.is_some();
        let mut end = self.sum_up(end.unwrap_or_default(), passed);
        self.let_the_init_end();
        if let Some(exceeded) = counts.last().await.err().filter(|_| !seen) {
            let passed = Passed { exceeded, kind: "RestrictedResourceAccess" };
            end.violations.push(summary::of_a_limit(&passed));
            end.exceeded = Some(passed.exceeded);
        }
        end.violations.extend(self.settle().await);
        end.staged = self.unmounted().await?;
        Ok(end)
    }

    /// Looks at what the guest left, now that nothing of it runs, and takes away what would run later.
    async fn settle(&mut self) -> Vec<Violation> {
        let Some(watch) = self.watch.take() else { return Vec::new() };
        tokio::task::spawn_blocking(move || watch.settle()).await.unwrap_or_default()
    }

    /// Time on a core of this guest, in microseconds.
    fn cpu_micros(&self) -> Option<u64> {
        Some(self.cgroups.cpu_micros()?.saturating_sub(self.before.cpu_micros.unwrap_or(0)))
    }

    fn first_look(&self) -> Duration {
        match (self.limits.cpu_time, &self.place) {
            // Others may have used some already.
            (Some(_), Some(_)) => self.next_look(),
            (Some(allowed), None) => (allowed / cores()).max(between_looks(allowed)),
            (None, _) => Duration::MAX / 4,
        }
    }

    /// When the time on a core could be over at the earliest.
    fn next_look(&self) -> Duration {
        let Some(allowed) = self.limits.cpu_time else { return Duration::MAX / 4 };
        let used = Duration::from_micros(self.cpu_micros().unwrap_or(0));
        let mut left = allowed.saturating_sub(used);
        if let Some((allowed, used)) = self.cpu_time_around() {
            left = left.min(Duration::from_millis(allowed.saturating_sub(used)));
        }
        (left / cores()).max(between_looks(allowed))
    }

    /// The time on a core of everything in the sandbox around it: what is allowed, and what was used.
    fn cpu_time_around(&self) -> Option<(u64, u64)> {
        self.place.as_ref().and_then(|place| place.around.cpu_time())
    }

    fn look_at_cpu(&self) -> Option<Passed> {
        let own = (millis(self.limits.cpu_time?), self.cpu_micros()? / 1000);
        let both = [Some(own), self.cpu_time_around()];
        let (allowed, used) = both.into_iter().flatten().find(|(allowed, used)| used >= allowed)?;
        self.control.kill();
        Some(Passed {
            exceeded: Exceeded { limit: "cpuTime", allowed, used: Some(used) },
            kind: "CpuLimitExceeded",
        })
    }
}

/// How many cores can be used at once. Asked once: the answer takes reading several files.
fn cores() -> u32 {
    static CORES: LazyLock<u32> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32));
    *CORES
}

/// All cores together use up a hundredth of what is allowed in that time: that much is told too late.
fn between_looks(allowed: Duration) -> Duration {
    (allowed / 100 / cores()).clamp(LOOKS.0, LOOKS.1)
}
