//! The `runc` jail: a container made by runc or crun, the runtimes under most container engines.
//!
//! The init makes what haft has to be sure of: the guest's tree, of just those files that were looked at; a network
//! with nothing but loopback, where the gate listens; the cgroups, which the runtime cannot change. The runtime makes
//! users, processes, IPC, name and `/proc` of its own around that, drops privileges and filters system calls.
//!
//! Its state is in the guest's scratch folder, it runs in the guest's cgroup, and its mounts are the init's: what ends
//! the init ends all of it, and there is nothing to delete afterwards.

use super::{
    filter,
    gvisor::rlimit,
    host::{Inner, JailHost, STALE, broken},
    init::{INNER_ID, PROC_HIDDEN},
    plan::{self, GuestPlan, JailKind},
    process::{of_walls, refusal},
    running::{self, InitGuest, Scratch},
    sandbox,
    wire::{CgroupTree, Container, FilterKind, InitKind, InitRequest},
};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, ToolError,
    port::{BoxFuture, Guest, GuestControl, GuestEnd, GuestSpec, Jail, OutputSink, Sandbox, Unavailable},
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// Holds programs in containers.
///
/// ```no_run
/// use haft_core::port::Jail;
/// use haft_jail::guest::{JailHost, JailOptions, Runc};
/// let host = JailHost::new(JailOptions::new("/var/lib/haft", "/home/me")).unwrap();
/// println!("{:?}", Runc::new(&host).offers(haft_core::IsolationLevel::Strict));
/// ```
#[derive(Clone)]
pub struct Runc {
    host: Arc<Inner>,
    program: Option<Program>,
    probed: Arc<OnceLock<Result<(), Unavailable>>>,
}

/// A container runtime that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Runc,
    Crun,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Runc => "runc",
            Kind::Crun => "crun",
        }
    }

    /// Its threads, which are counted with the guest's. runc needs a few more to start than it has while the guest
    /// runs.
    fn threads(self) -> u32 {
        match self {
            Kind::Runc => 12,
            Kind::Crun => 1,
        }
    }
}

/// It takes some hundredths of a second.
const START_WITHIN: Duration = Duration::from_secs(20);
/// The root of the container's users. Nobody is that: the guest is not root, and the runtime is only at first.
const NOBODY: u32 = 65_534;
/// What the probe says when everything held.
const HELD: &str = "held";

impl Runc {
    /// Such a jail, by runc, or by crun where runc is not installed.
    pub fn new(host: &JailHost) -> Self {
        let found = [Kind::Runc, Kind::Crun].into_iter().find_map(|kind| installed(kind.name()));
        Runc::of(host, found)
    }

    /// Such a jail by that runtime: the path of `runc` or `crun`.
    pub fn with(host: &JailHost, runtime: impl Into<PathBuf>) -> Self {
        Runc::of(host, Program::at(runtime.into()))
    }

    fn of(host: &JailHost, program: Option<Program>) -> Self {
        Runc { host: Arc::clone(&host.0), program, probed: Arc::default() }
    }

    fn program(&self) -> Result<&Program, Unavailable> {
        if !rustix::process::geteuid().is_root() {
            return Err(Unavailable {
                reason: "runc is run as root here: without it there are no limits for all processes together"
                    .into(),
                fix: "run haft as root, or use the `namespace` jail".into(),
            });
        }
        self.program.as_ref().ok_or_else(|| Unavailable {
            reason: "neither runc nor crun is installed".into(),
            fix: "`apt-get install runc`".into(),
        })
    }

    /// What would be enforced, whether or not it was probed.
    fn planned(&self, spec: &GuestSpec) -> Result<GuestPlan, plan::Refusal> {
        let program = self.program()?;
        if spec.terminal.is_some() {
            return Err(Unavailable {
                reason: "the `runc` jail has pipes, not terminals".into(),
                fix: "use the `namespace` jail for programs that need a terminal".into(),
            }
            .into());
        }
        has_limits(&self.host.facts)?;
        spec.writes.must_be_live("runc")?;
        self.host.check_hosts(&spec.hosts)?;
        let mut plan = plan::plan(spec, JailKind::Namespace, &self.host.facts, None)?;
        plan.enforcement = enforcement(plan.enforcement, program.kind);
        plan.own_processes += program.kind.threads();
        Ok(plan)
    }

    async fn try_start(&self, spec: &GuestSpec, fresh: bool) -> Result<ContainerGuest, ToolError> {
        let program = self.program().map_err(|unavailable| refusal(unavailable.into()))?;
        let mut plan = self.planned(spec).map_err(refusal)?;
        let scratch = Scratch::make(&self.host)?;
        let bundle = scratch.0.clone();
        prepare(&bundle, &config(&plan.request, &bundle, program.kind))
            .map_err(|error| broken("no bundle for its runtime", error))?;
        plan.request = runtime_request(program, &bundle, plan.request);
        let init = self.host.init(InitKind::Container, spec.parent.as_deref(), fresh).await?;
        let inside = running::start(&self.host, init, plan, spec.clone(), Some(scratch)).await?;
        Ok(ContainerGuest { inside, bundle, runtime: program.kind.name() })
    }

    fn probe(&self) -> Result<(), Unavailable> {
        let jail = self.clone();
        let thread = std::thread::Builder::new().name("haft-probe".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(jail.run_probe()).map_err(|error| match error.diagnostics {
                Some(more) => format!("{} ({more})", error.message),
                None => error.message,
            })
        });
        let fix = "look at what `runc run` says here; in a container start it with `--privileged`, \
                   or use the `namespace` jail";
        let reason = match thread.map(std::thread::JoinHandle::join) {
            Ok(Ok(Ok(said))) if said.trim() == HELD => return Ok(()),
            Ok(Ok(Ok(said))) => format!("a program that was put behind its walls is not held: {said}"),
            Ok(Ok(Err(reason))) => format!("its runtime does not run: {reason}"),
            Ok(Err(_)) | Err(_) => "the probe did not run".into(),
        };
        Err(Unavailable { reason, fix: fix.into() })
    }

    async fn run_probe(&self) -> Result<String, ToolError> {
        let state = self.host.options.state.to_string_lossy().into_owned();
        let script = format!(
            "[ ! -e \"$1\" ] || echo sees what is not granted; [ $(id -u) = {INNER_ID} ] || echo is root; \
             s=$(cat /proc/self/status); for want in 'NoNewPrivs:\t1' 'Seccomp:\t2' \
             'CapEff:\t0000000000000000' 'CapBnd:\t0000000000000000'; \
             do case \"$s\" in *\"$want\"*) ;; *) echo lacks $want;; esac; done; echo {HELD}"
        );
        let mut spec = GuestSpec::command(["sh", "-c", &script, "sh", &state]);
        spec.limits.wall_time = Some(START_WITHIN);
        let mut guest = self.start(spec).await?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let sink: OutputSink = Arc::new(move |_, bytes: &[u8]| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        });
        let end = guest.wait(sink).await?;
        if let Some(error) = end.error() {
            return Err(error);
        }
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

impl Program {
    fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let kind = [Kind::Runc, Kind::Crun].into_iter().find(|kind| kind.name() == name)?;
        path.is_file().then_some(Program { path, kind })
    }
}

/// Looked for where programs of the system are, whatever the caller's own path is.
fn installed(name: &str) -> Option<Program> {
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
    folders.into_iter().find_map(|folder| Program::at(Path::new(folder).join(name)))
}

/// What is enforced: the same promises, by other means.
fn enforcement(mut planned: Enforcement, kind: Kind) -> Enforcement {
    planned.jail = Cow::Borrowed("runc");
    planned.details.remove("landlock");
    planned.details.insert("runtime".into(), json!(kind.name()));
    planned
}

impl Jail for Runc {
    fn name(&self) -> &str {
        "runc"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        let kind = self.program()?.kind;
        let planned = plan::enforcement(level, JailKind::Namespace, &self.host.facts)?;
        self.probed.get_or_init(|| self.probe()).clone()?;
        Ok(enforcement(planned, kind))
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
            let guest = match self.try_start(&spec, false).await {
                // A path leads elsewhere than for haft: something was mounted there after the init was made.
                Err(error) if error.diagnostics.as_deref() == Some(STALE) => {
                    self.try_start(&spec, true).await?
                }
                done => done?,
            };
            Ok(Box::new(guest) as Box<dyn Guest>)
        })
    }
}

/// A guest whose runtime may fail before there is one.
struct ContainerGuest {
    inside: InitGuest,
    bundle: PathBuf,
    runtime: &'static str,
}

impl ContainerGuest {
    /// Written by the runtime when the guest runs.
    fn has_started(&self) -> bool {
        self.bundle.join("pid").exists()
    }
}

impl Guest for ContainerGuest {
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
            let end = self.inside.wait(sink).await?;
            let failed = end.exit_code.is_some_and(|code| code != 0) && end.exceeded.is_none();
            if failed && !self.has_started() {
                let text = format!("{} did not start the program", self.runtime);
                let log = fs::read_to_string(self.bundle.join("log")).unwrap_or_default();
                return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text).with_diagnostics(log));
            }
            Ok(end)
        })
    }
}

/// A bundle, as container runtimes want it. The init mounts the guest's tree on the root.
fn prepare(bundle: &Path, config: &Value) -> std::io::Result<()> {
    for name in ["root", "state"] {
        fs::create_dir(bundle.join(name))?;
    }
    fs::write(bundle.join("config.json"), serde_json::to_vec(config)?)
}

/// The init's request for the runtime itself.
fn runtime_request(program: &Program, bundle: &Path, guest: InitRequest) -> InitRequest {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let id = bundle.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (cgroups, how) = match program.kind {
        // A user who may make no cgroups does without them, in runc's words.
        Kind::Runc => (CgroupTree::ReadOnly, "--rootless=true"),
        Kind::Crun => (CgroupTree::Hidden, "--cgroup-manager=disabled"),
    };
    let own = |name: &str| text(&bundle.join(name));
    let (state, log, pid) = (own("state"), own("log"), own("pid"));
    let arguments = ["--root", &state, "--log", &log, how, "run", "--pid-file", &pid, "--bundle"];
    let argv = [text(&program.path)].into_iter().chain(arguments.map(str::to_owned));
    InitRequest {
        programs: vec![text(&program.path)],
        argv: argv.chain([text(bundle), id]).collect(),
        environment: vec![format!("PATH={}", super::environment::PATH), "GOMAXPROCS=1".to_owned()],
        working_dir: text(bundle),
        limits: Vec::new(),
        filter: FilterKind::Runtime,
        landlock: false,
        container: Some(Container {
            root: text(&bundle.join("root")),
            cgroups,
            programs: guest.programs,
            working_dir: guest.working_dir,
        }),
        ..guest
    }
}

/// The `config.json` of a guest.
fn config(request: &InitRequest, bundle: &Path, kind: Kind) -> Value {
    let mut mounts = vec![json!({
        "type": "proc", "source": "proc", "destination": "/proc", "options": ["ro", "nosuid", "nodev", "noexec"],
    })];
    if kind == Kind::Runc {
        // It makes devices of its own unless these are bound; crun does so in any case.
        let devices = bundle.join("root/dev");
        mounts.push(
            json!({"type": "bind", "source": devices, "destination": "/dev", "options": ["rbind", "ro", "nosuid", "nodev"]}),
        );
    }
    let limits: Vec<Value> =
        request.limits.iter().filter_map(|(number, value)| rlimit(*number, *value)).collect();
    let none: [&str; 0] = [];
    // Not the network: the init has made it.
    let namespaces = ["user", "pid", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": {"uid": INNER_ID, "gid": INNER_ID, "umask": 0o022},
            "args": request.argv,
            "env": request.environment,
            "cwd": request.working_dir,
            "capabilities": {"bounding": none, "effective": none, "inheritable": none, "permitted": none, "ambient": none},
            "rlimits": limits,
            "noNewPrivileges": true,
        },
        "root": {"path": "root", "readonly": true},
        "hostname": "haft",
        "mounts": mounts,
        "linux": {
            "namespaces": namespaces,
            "uidMappings": users(rustix::process::geteuid().as_raw()),
            "gidMappings": users(rustix::process::getegid().as_raw()),
            "seccomp": filter::for_runtimes(request.filter),
            "maskedPaths": PROC_HIDDEN.map(|name| format!("/proc/{name}")),
        },
    })
}

/// Who a container's users are outside: the guest is the one whom haft runs as, and its root is nobody.
pub(super) fn users(own: u32) -> Value {
    json!([
        {"containerID": 0, "hostID": NOBODY, "size": 1},
        {"containerID": INNER_ID, "hostID": own, "size": 1},
    ])
}

/// Memory and processes of a container are held by cgroups alone.
pub(super) fn has_limits(facts: &plan::Facts) -> Result<(), Unavailable> {
    match facts.cgroups {
        Some(_) => Ok(()),
        None => Err(Unavailable {
            reason: "containers are limited by cgroups, and none can be made here".into(),
            fix: "give haft a cgroup of its own, or use the `namespace` jail".into(),
        }),
    }
}
