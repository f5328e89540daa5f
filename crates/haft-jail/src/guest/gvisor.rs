//! The `gvisor` jail: runsc, a kernel in user space. What a guest asks of the machine's kernel is asked by that one.
//!
//! runsc runs in a jail init as any program does, only that it keeps its privileges: so the cgroups, the end and the
//! metering are those of every other guest, and runsc is told to leave cgroups alone. It gets pipes, never a terminal.
//!
//! Most of its time goes into starting that kernel. So kernels stand ready, each in a jail init of its own and for one
//! guest: it ends with that guest, and nobody else is ever in it. [`warm`] says when such a kernel is the right one.
//!
//! A guest that may reach hosts has sockets of the machine's kernel, because a socket cannot be handed to gVisor's own
//! network stack: they are in a network of the init's, which consists of a loopback with the gate on it.

use super::{
    host::{Inner, JailHost, STALE, broken},
    init::{HOME, INNER_ID, bind_place},
    interpreter,
    namespace::ATTEMPTS,
    plan::{self, GuestPlan, JailKind, Network},
    pool::{Pool, Warm},
    process::{of_walls, refusal},
    runc,
    running::{self, Scratch},
    sandbox,
    wire::{Bind, FilterKind, InitKind, InitRequest},
};
use haft_core::{
    Enforcement, IsolationLevel, Limits, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Sandbox, Unavailable},
};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use warm::Template;

pub(super) mod warm;

/// Holds programs in a kernel of their own.
#[derive(Clone)]
pub struct Gvisor {
    /// Before the host, so that it ends first.
    pool: Arc<Pool>,
    host: Arc<Inner>,
    probed: Arc<OnceLock<Result<(), Unavailable>>>,
}

/// Its kvm platform can hang when it starts; the others take a tenth of a second.
const START_WITHIN: Duration = Duration::from_secs(20);

/// Threads of its kernel and of what serves it files, which are counted with the guest's processes. 64 are too few.
const THREADS: u32 = 96;

/// What a guest sees of the machine.
const SYSTEM: [&str; 11] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ld.so.cache",
    "/etc/localtime",
];

impl Gvisor {
    /// Such a jail.
    pub fn new(host: &JailHost) -> Self {
        Gvisor { pool: Arc::default(), host: Arc::clone(&host.0), probed: Arc::default() }
    }

    fn runsc() -> Option<PathBuf> {
        let folders = ["/usr/local/bin", "/usr/bin", "/usr/sbin", "/opt/gvisor"];
        folders.into_iter().map(|folder| Path::new(folder).join("runsc")).find(|path| path.is_file())
    }

    fn is_there(&self) -> Result<PathBuf, Unavailable> {
        let missing = |reason: &str, fix: &str| Unavailable { reason: reason.into(), fix: fix.into() };
        if !rustix::process::geteuid().is_root() {
            return Err(missing(
                "runsc is run as root here",
                "run haft as root, or use the `namespace` jail",
            ));
        }
        Gvisor::runsc()
            .ok_or_else(|| missing("runsc is not installed", "`apt-get install runsc`, or see gvisor.dev"))
    }

    /// What would be enforced, whether or not it was probed.
    fn planned(&self, spec: &GuestSpec) -> Result<GuestPlan, plan::Refusal> {
        self.is_there()?;
        if spec.terminal.is_some() {
            return Err(Unavailable {
                reason: "the `gvisor` jail has pipes, not terminals".into(),
                fix: "use the `namespace` jail for programs that need a terminal".into(),
            }
            .into());
        }
        runc::has_limits(&self.host.facts)?;
        spec.writes.must_be_live("gvisor")?;
        self.host.check_hosts(&spec.hosts)?;
        let mut plan = plan::plan(spec, JailKind::Namespace, &self.host.facts, None)?;
        plan.enforcement = enforcement(plan.enforcement);
        plan.own_processes += THREADS;
        if plan.network == Network::Gate {
            plan.enforcement
                .details
                .insert("networkStack".into(), json!("machine, in a namespace of its own"));
            plan.enforcement
                .details
                .insert("user".into(), json!("root of its own kernel, without privileges"));
        }
        Ok(plan)
    }

    fn probe(&self) -> Result<(), Unavailable> {
        let jail = self.clone();
        let thread = std::thread::Builder::new().name("haft-probe".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let mut spec = GuestSpec::command(["sh", "-c", "exit 0"]);
                spec.limits.wall_time = Some(START_WITHIN);
                let mut guest = jail.start(spec).await.map_err(|error| error.message)?;
                let end = guest.wait(Arc::new(|_, _: &[u8]| {})).await.map_err(|error| error.message)?;
                end.error().map_or(Ok(()), |error| Err(error.message))
            })
        });
        let fix =
            "look at `runsc --debug run`; on machines without KVM use its `ptrace` or `systrap` platform";
        match thread.map(std::thread::JoinHandle::join) {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(reason))) => {
                Err(Unavailable { reason: format!("runsc does not run: {reason}"), fix: fix.into() })
            }
            Ok(Err(_)) | Err(_) => {
                Err(Unavailable { reason: "the probe did not run".into(), fix: fix.into() })
            }
        }
    }
}

/// What is enforced: the same promises, by other means.
fn enforcement(mut planned: Enforcement) -> Enforcement {
    planned.jail = Cow::Borrowed("gvisor");
    planned.details.remove("landlock");
    planned.details.insert("kernel".into(), json!("gvisor"));
    planned.details.insert("orphans".into(), json!("sandbox"));
    planned
}

impl Jail for Gvisor {
    fn name(&self) -> &str {
        "gvisor"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        self.is_there()?;
        let planned = plan::enforcement(level, JailKind::Namespace, &self.host.facts)?;
        self.probed.get_or_init(|| self.probe()).clone()?;
        Ok(enforcement(planned))
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.offers(spec.level)?;
        self.planned(spec).map(|plan| plan.enforcement).map_err(of_walls)
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        Some(self.host.has_sandbox(id))
    }

    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        sandbox::open(&self.host, limits)
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let mut attempt = 1;
            let mut granted = None;
            loop {
                match self.try_start(spec.clone(), &mut granted, attempt == 1).await {
                    // Files were moved since they were looked at, or since a kernel that stands ready was started.
                    Err(error) if error.diagnostics.as_deref() == Some(STALE) && attempt < ATTEMPTS => {
                        attempt += 1;
                    }
                    done => return done,
                }
            }
        })
    }
}

impl Gvisor {
    /// `granted` is what an attempt before this one granted: another file in the place of a grant is refused.
    /// `may_be_warm` is false where a kernel that stood ready would not do: the guest then gets one of its own.
    fn try_start<'a>(
        &'a self,
        spec: GuestSpec,
        granted: &'a mut Option<Vec<Bind>>,
        may_be_warm: bool,
    ) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let host = &self.host;
            let runsc = self.is_there().map_err(|unavailable| refusal(unavailable.into()))?;
            let mut plan = self.planned(&spec).map_err(refusal)?;
            if granted.get_or_insert_with(|| plan.request.binds.clone()) != &plan.request.binds {
                return Err(broken("what it is granted was moved while it started", "try again"));
            }
            if !has_program(&plan.request) {
                return Err(running::not_started(&spec, "start the program", libc::ENOENT));
            }
            if let Some(missing) = missing_interpreter(&plan.request) {
                let step = format!("{}{missing}", interpreter::STEP);
                return Err(running::not_started(&spec, &step, libc::ENOENT));
            }
            if let Some(template) = Template::of(&plan, &spec).map(Arc::new) {
                let warm = may_be_warm.then(|| self.pool.take(&template)).flatten();
                self.pool.refill(host, &runsc, &template);
                if let Some(Warm { init, scratch, .. }) = warm {
                    warm::prepare_inside(&scratch.0, &plan.request)
                        .map_err(|error| broken("no request for runsc", error))?;
                    plan.enforcement.details.insert("startedBefore".into(), json!(true));
                    plan.request = warm::request_inside(&runsc, &scratch.0, plan.request);
                    let init = init.wake()?;
                    let guest = running::start(host, init, plan, spec, Some(scratch)).await?;
                    return Ok(Box::new(guest) as Box<dyn Guest>);
                }
            }
            let scratch = Scratch::make(host)?;
            let config = config(&plan.request, plan.limits.scratch_bytes);
            prepare(&scratch.0, &config, &plan.request)
                .map_err(|error| broken("no bundle for runsc", error))?;
            plan.request = runtime_request(&runsc, &scratch.0, plan.request);
            let init = host.init(InitKind::Runtime, spec.parent.as_deref(), false).await?;
            let guest = running::start(host, init, plan, spec, Some(scratch)).await?;
            Ok(Box::new(guest) as Box<dyn Guest>)
        })
    }
}

/// Whether the guest will see its program. runsc tells it only in words of its own.
fn has_program(request: &InitRequest) -> bool {
    request.programs.iter().any(|path| is_seen(request, Path::new(path)))
}

fn is_seen(request: &InitRequest, path: &Path) -> bool {
    let mut granted = request.binds.iter().map(|bind| bind.path.as_path());
    let is_granted = SYSTEM.iter().any(|folder| path.starts_with(folder))
        || granted.any(|folder| path.starts_with(folder));
    is_granted && path.is_file()
}

/// The interpreter that the guest's program names, where the guest will not see it. A file that is hidden from the
/// guest is not read for it either.
fn missing_interpreter(request: &InitRequest) -> Option<String> {
    let program = request.programs.iter().map(Path::new).find(|path| is_seen(request, path))?;
    let real = fs::canonicalize(program).ok()?;
    if !is_seen(request, &real) || request.masks.iter().any(|mask| real.starts_with(&mask.path)) {
        return None;
    }
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&real, how, Mode::empty()).ok()?;
    let mut head = [0; interpreter::HEAD];
    let length = rustix::io::read(&file, &mut head).ok()?;
    let name = interpreter::named(&head[..length])?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name));
    (path.is_absolute() && !is_seen(request, path)).then(|| interpreter::shown(name))
}

/// A bundle, as container runtimes want it. The root is empty: everything is mounted.
fn prepare(folder: &Path, config: &Value, request: &InitRequest) -> std::io::Result<()> {
    for name in ["root", "state", "hidden", "binds"] {
        fs::create_dir(folder.join(name))?;
    }
    for (number, bind) in request.binds.iter().enumerate() {
        let place = folder.join(bind_place(number));
        if bind.path.is_dir() { fs::create_dir(place)? } else { fs::write(place, "")? }
    }
    fs::write(folder.join("hidden-file"), "")?;
    fs::write(folder.join("config.json"), serde_json::to_vec(config)?)
}

/// The init's request for runsc itself.
fn runtime_request(runsc: &Path, bundle: &Path, guest: InitRequest) -> InitRequest {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let id = bundle.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let state = text(&bundle.join("state"));
    let argv = [
        text(runsc),
        "--root".into(),
        state.clone(),
        "--ignore-cgroups".into(),
        // With a gate it uses the network of its init, in which there is nothing but a loopback with the gate on it.
        // Its own network stack has no way to be handed a socket.
        if guest.gate { "--network=host" } else { "--network=none" }.into(),
        "run".into(),
        "--bundle".into(),
        text(bundle),
        id.clone(),
    ];
    let signaller = [text(runsc), "--root".into(), state, "kill".into(), "--all".into(), id];
    InitRequest {
        programs: vec![text(runsc)],
        argv: argv.into(),
        environment: vec![format!("PATH={}", super::environment::PATH)],
        working_dir: text(bundle),
        limits: Vec::new(),
        filter: FilterKind::Runtime,
        landlock: false,
        terminal: false,
        signaller: signaller.into(),
        ..guest
    }
}

/// The `config.json` of a guest.
fn config(request: &InitRequest, scratch: Option<u64>) -> Value {
    let read_only =
        |path: &str| json!({"type": "bind", "source": path, "destination": path, "options": ["rbind", "ro"]});
    let memory = |at: &str, size: Option<u64>| {
        let size = size.map(|bytes| format!("size={bytes}"));
        let options: Vec<String> =
            ["nosuid", "nodev", "mode=1777"].map(str::to_owned).into_iter().chain(size).collect();
        json!({"type": "tmpfs", "source": "tmpfs", "destination": at, "options": options})
    };
    let mut mounts = vec![
        json!({"type": "proc", "source": "proc", "destination": "/proc"}),
        memory("/tmp", scratch),
        memory(HOME, scratch),
        memory("/dev/shm", scratch),
    ];
    mounts.extend(SYSTEM.into_iter().filter(|path| Path::new(path).exists()).map(read_only));
    for (number, Bind { path, writable, .. }) in request.binds.iter().enumerate() {
        let options = if *writable { ["rbind", "rw"] } else { ["rbind", "ro"] };
        // Relative to the bundle, where the init has mounted just what was looked at, and hidden and held what is in
        // it.
        let source = bind_place(number);
        mounts.push(json!({"type": "bind", "source": source, "destination": path.to_string_lossy(), "options": options}));
    }
    let own = if request.gate { None } else { Some(["network", "user"]) };
    let namespaces = ["pid", "ipc", "uts", "mount"].into_iter().chain(own.into_iter().flatten());
    let namespaces: Vec<Value> = namespaces.map(|kind| json!({"type": kind})).collect();
    let mut linux = json!({"namespaces": namespaces});
    if own.is_some() {
        linux["uidMappings"] = runc::users(rustix::process::geteuid().as_raw());
        linux["gidMappings"] = runc::users(rustix::process::getegid().as_raw());
    }
    json!({
        "ociVersion": "1.0.2",
        "process": process(request),
        "root": {"path": "root", "readonly": true},
        "hostname": "haft",
        "mounts": mounts,
        "linux": linux,
    })
}

/// The guest's process.
fn process(request: &InitRequest) -> Value {
    let limits: Vec<Value> =
        request.limits.iter().filter_map(|(number, value)| rlimit(*number, *value)).collect();
    let none: [&str; 0] = [];
    // With the machine's network, runsc gives its own kernel the users and the privileges of the guest, and fails for
    // want of them in a namespace of users.
    let user = if request.gate { 0 } else { INNER_ID };
    json!({
        "terminal": false,
        "user": {"uid": user, "gid": user},
        "args": request.argv,
        "env": request.environment,
        "cwd": request.working_dir,
        "capabilities": {"bounding": none, "effective": none, "inheritable": none, "permitted": none, "ambient": none},
        "rlimits": limits,
        "noNewPrivileges": true,
    })
}

pub(super) fn rlimit(number: i32, value: u64) -> Option<Value> {
    let names = [
        (libc::RLIMIT_CORE as i32, "RLIMIT_CORE"),
        (libc::RLIMIT_NOFILE as i32, "RLIMIT_NOFILE"),
        (libc::RLIMIT_FSIZE as i32, "RLIMIT_FSIZE"),
        (libc::RLIMIT_CPU as i32, "RLIMIT_CPU"),
    ];
    let (_, name) = names.into_iter().find(|(known, _)| *known == number)?;
    Some(json!({"type": name, "soft": value, "hard": value}))
}
