//! From what a caller asks for to what a jail init has to do. Looks at files, changes nothing but an absent hooks
//! folder and an absent build cache.

use super::{
    cache::Cache,
    environment, gather,
    host::broken,
    init::GATE_PORT,
    limits,
    limits::Means,
    mask::{self, Findings, Found, Granted},
    preset,
    quarantine::{self, Watched, Window},
    staging::{self, Staging},
    survey::Id,
    wire::{Bind, FilterKind, InitRequest, Mask},
};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, ToolError,
    port::{GuestSpec, Preset, Unavailable, Unstageable, Writes},
};
use haft_guard::names::ProtectedNames;
use serde_json::{Map, Value, json};
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

mod found;
use found::{find, pins};

/// Which walls a guest gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JailKind {
    /// Among the processes of this machine.
    Process,
    /// In namespaces of its own.
    Namespace,
}

/// What the plan has to know of this machine and this haft.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) home: PathBuf,
    /// haft's state folder.
    pub(crate) state: PathBuf,
    /// haft's own folders, which no guest may reach.
    pub(crate) protected: Vec<PathBuf>,
    /// Names of files that run programs later.
    pub(crate) names: Arc<ProtectedNames>,
    pub(crate) landlock: u8,
    pub(crate) cgroups: Option<&'static str>,
    pub(crate) can_kill: bool,
    pub(crate) per_process_limits_do: bool,
    pub(crate) has_gate: bool,
    /// Whether haft is root.
    pub(crate) is_root: bool,
    /// Whether guests in namespaces may have sockets of this machine.
    pub(crate) unix_sockets: bool,
    /// Bytes of the build cache of a workspace.
    pub(crate) cache_bytes: u64,
}

/// A guest that can be started.
#[derive(Clone, Debug)]
pub(crate) struct GuestPlan {
    pub(crate) request: InitRequest,
    pub(crate) enforcement: Enforcement,
    pub(crate) limits: Limits,
    pub(crate) network: Network,
    /// Where to look for new names afterwards.
    pub(crate) watched: Watched,
    /// Open until that is on record.
    pub(crate) window: Option<Window>,
    /// What is kept apart of what it writes.
    pub(crate) staging: Option<Staging>,
    /// What it keeps from one command to the next, and is not looked at.
    pub(crate) cache: Option<Cache>,
    /// Processes and threads in the guest's cgroups that are not the guest's.
    pub(crate) own_processes: u32,
}

/// How much of the network a guest has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    None,
    /// The listed hosts, through a gate.
    Gate,
    /// All of the machine's.
    All,
}

impl Network {
    fn name(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Gate => "gate",
            Network::All => "all",
        }
    }
}

fn unavailable(reason: impl Into<String>, fix: impl Into<String>) -> Unavailable {
    Unavailable { reason: reason.into(), fix: fix.into() }
}

/// The network that these walls can give for that list of hosts.
pub(crate) fn network(spec: &GuestSpec, jail_kind: JailKind, facts: &Facts) -> Result<Network, Unavailable> {
    if spec.hosts.is_empty() {
        return Ok(Network::None);
    }
    if spec.level == IsolationLevel::Restricted {
        return Err(unavailable("`restricted` has no network", "ask for `strict`, or for no hosts"));
    }
    match jail_kind {
        JailKind::Namespace if facts.has_gate => Ok(Network::Gate),
        JailKind::Namespace => {
            Err(unavailable("no network gate is wired into this program", "give the jails a gate"))
        }
        JailKind::Process if spec.hosts == ["*"] && spec.level <= IsolationLevel::Standard => {
            Ok(Network::All)
        }
        JailKind::Process => Err(unavailable(
            "the `process` jail knows all of the network or nothing of it, not hosts",
            "use the `namespace` jail",
        )),
    }
}

/// What every guest of that level gets from these jail_kind, whatever else it asks for.
pub(crate) fn enforcement(
    level: IsolationLevel,
    jail_kind: JailKind,
    facts: &Facts,
) -> Result<Enforcement, Unavailable> {
    if jail_kind == JailKind::Process && facts.landlock == 0 {
        return Err(unavailable(
            "this kernel has no Landlock, or it is switched off",
            "boot with `lsm=landlock,…` on Linux 5.13 or later, or use another jail",
        ));
    }
    if jail_kind == JailKind::Process && facts.is_root {
        return Err(unavailable(
            "the `process` jail does not run as root: its guest would change the modes and owners of every file",
            "use the `namespace` jail, or run haft as an ordinary user",
        ));
    }
    if jail_kind == JailKind::Process && level >= IsolationLevel::Strict {
        return Err(unavailable(
            "the `process` jail shows the machine's processes, and lets a guest change the modes of all files of its user",
            "use the `namespace` jail; for this one ask for `standard`",
        ));
    }
    if level >= IsolationLevel::Strict && facts.cgroups.is_none() && !facts.per_process_limits_do {
        return Err(unavailable(
            "no cgroup can be made here, so limits would hold for each process by itself",
            "give haft cgroups of its own: `systemd-run --user --scope -p Delegate=yes haft …`, or \
             `Delegate=yes` in its unit; or accept limits for each process by itself: \
             `haft --set tools.commands.per_process_limits=true …`",
        ));
    }
    let mut details = Map::new();
    let mut say = |name: &str, value: Value| drop(details.insert(name.to_owned(), value));
    say("landlock", json!(facts.landlock));
    say("seccomp", json!(true));
    say("noNewPrivileges", json!(true));
    say("cgroups", json!(facts.cgroups.unwrap_or("none")));
    say("limits", json!(if facts.cgroups.is_some() { "together" } else { "per_process" }));
    match jail_kind {
        JailKind::Namespace => {
            say("namespaces", json!(["user", "pid", "mount", "net", "ipc", "uts", "cgroup"]));
            say("orphans", json!("pid_namespace"));
            say("scratch", json!("private"));
        }
        JailKind::Process => {
            say("orphans", json!(if facts.can_kill { "cgroup" } else { "subreaper" }));
            say("scratch", json!("folder"));
        }
    }
    let jail = match jail_kind {
        JailKind::Process => "process",
        JailKind::Namespace => "namespace",
    };
    Ok(Enforcement { level, jail: Cow::Borrowed(jail), details })
}

/// Paths, as they are on this machine.
struct Grants {
    binds: BTreeMap<PathBuf, Bind>,
}

impl Grants {
    fn add(&mut self, path: &Path, writable: bool) -> Result<PathBuf, ToolError> {
        let refused = |why: String| ToolError::new(ErrorCode::FilesystemPolicyViolation, why);
        let real = fs::canonicalize(path)
            .map_err(|error| refused(format!("{} cannot be granted: {error}", path.display())))?;
        let found = fs::metadata(&real)
            .map_err(|error| refused(format!("{} cannot be granted: {error}", path.display())))?;
        if real.to_str().is_none() {
            return Err(refused(format!("{} is not UTF-8", path.display())));
        }
        let (device, inode) = (found.dev(), found.ino());
        let bind = Bind { path: real.clone(), writable, device, inode, layers: None };
        let entry = self.binds.entry(real.clone()).or_insert_with(|| bind.clone());
        entry.writable |= writable;
        Ok(real)
    }
}

/// Why a guest cannot be held: these walls cannot, or nothing could.
#[derive(Debug)]
pub(crate) enum Refusal {
    Jail(Unavailable),
    Stage(Unstageable),
    Call(ToolError),
}

impl From<Unstageable> for Refusal {
    fn from(why: Unstageable) -> Self {
        Refusal::Stage(why)
    }
}

impl From<Unavailable> for Refusal {
    fn from(unavailable: Unavailable) -> Self {
        Refusal::Jail(unavailable)
    }
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Refusal::Call(error)
    }
}

/// The plan for a guest. `scratch` is a private folder where the walls make none themselves.
pub(crate) fn plan(
    spec: &GuestSpec,
    jail_kind: JailKind,
    facts: &Facts,
    scratch: Option<&Path>,
) -> Result<GuestPlan, Refusal> {
    let Some(name) = spec.argv.first().filter(|name| !name.is_empty()) else {
        return Err(ToolError::bad_args("there is no program to run").into());
    };
    let mut enforcement = enforcement(spec.level, jail_kind, facts)?;
    let stage = match (&spec.writes, jail_kind) {
        (Writes::Live, _) => None,
        (Writes::Staged(stage), JailKind::Namespace) => Some(stage),
        (Writes::Staged(_), JailKind::Process) => return Err(Unstageable::by("process").into()),
    };
    let network = network(spec, jail_kind, facts)?;
    if spec.level == IsolationLevel::Restricted && !(spec.readable.is_empty() && spec.writable.is_empty()) {
        let text = "`restricted` grants no paths; ask for `strict`";
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text).into());
    }
    let mut environment = spec.environment.clone();
    let cache = cache(spec, network, facts, &mut environment)?;
    let mut grants = Grants { binds: BTreeMap::new() };
    let mut path = environment.remove("PATH").unwrap_or_else(|| environment::PATH.to_owned());
    for preset in &spec.presets {
        let extras = preset::extras(*preset, &facts.home);
        for readable in extras.readable.iter().filter(|path| path.exists()) {
            grants.add(readable, false)?;
        }
        for (name, value) in extras.environment {
            environment.entry(name).or_insert(value);
        }
        for folder in extras.programs.iter().rev().filter(|folder| folder.is_dir()) {
            path = format!("{}:{path}", folder.display());
        }
    }
    let mut granted = Granted::default();
    for readable in &spec.readable {
        granted.readable.push(grants.add(readable, false)?);
    }
    for writable in &spec.writable {
        granted.writable.push(grants.add(writable, true)?);
    }
    if spec.parent.is_some() {
        let paths = spec.readable.iter().chain(&spec.writable);
        lead_where_they_say(paths.zip(granted.all()))?;
    }
    let window = granted.all().next().map(|_| Window::open(&facts.state)).transpose();
    let window = window.map_err(|error| broken("no record of it", error))?;
    let found = find(spec, &granted, facts, stage.is_some())?;
    let staging = stage.map(|stage| staging::plan(stage, &mut grants.binds, &found)).transpose()?;
    let pins = match jail_kind {
        JailKind::Process => {
            without_mounts(&found, spec.level, &mut enforcement)?;
            Vec::new()
        }
        JailKind::Namespace if staging.is_some() => Vec::new(),
        JailKind::Namespace => pins(&found, &granted, &grants),
    };
    let home = match (jail_kind, scratch) {
        (JailKind::Process, Some(scratch)) => {
            grants.add(scratch, true)?;
            scratch.to_string_lossy().into_owned()
        }
        _ => super::init::HOME.to_owned(),
    };
    let temporary = if jail_kind == JailKind::Process { home.clone() } else { "/tmp".to_owned() };
    environment.insert("PATH".to_owned(), path.clone());
    environment.insert("HOME".to_owned(), home.clone());
    environment.insert("TMPDIR".to_owned(), temporary);
    if network == Network::Gate {
        environment.extend(proxies());
    }
    let working_dir = match &spec.working_dir {
        Some(folder) => folder.to_string_lossy().into_owned(),
        None => {
            let first = spec.writable.iter().chain(&spec.readable).find(|path| path.is_dir());
            let first = first.and_then(|path| fs::canonicalize(path).ok());
            first.map_or(home, |path| path.to_string_lossy().into_owned())
        }
    };
    let limits = limits::with_defaults(&spec.limits, spec.level);
    let means = Means { cgroups: facts.cgroups.is_some(), own_users: jail_kind == JailKind::Namespace };
    let say = &mut enforcement.details;
    say.insert("network".to_owned(), json!(network.name()));
    let paths =
        |found: &[Found]| json!(found.iter().map(|found| found.path.to_string_lossy()).collect::<Vec<_>>());
    if !found.denied.is_empty() {
        say.insert("masked".to_owned(), paths(&found.denied));
    }
    if !found.whole.is_empty() {
        let whole = found.whole.iter().map(|folder| folder.to_string_lossy());
        say.insert("maskedWhole".to_owned(), json!(whole.collect::<Vec<_>>()));
    }
    if jail_kind == JailKind::Namespace && !found.fixed.is_empty() {
        say.insert("readOnly".to_owned(), paths(&found.fixed));
    }
    let mask =
        |found: &Found| Mask { path: found.path.clone(), is_dir: found.is_dir, exactly: Some(found.id) };
    let is_staged = |found: &&Found| staging.as_ref().is_some_and(|staging| staging.hides(&found.path));
    let (whiteouts, masks): (Vec<&Found>, Vec<&Found>) = found.denied.iter().partition(is_staged);
    let [whiteouts, masks] = [whiteouts, masks].map(|all| all.into_iter().map(mask).collect());
    let mut binds: Vec<Bind> = grants.binds.into_values().collect();
    if let Some(cache) = &cache {
        // After the others: it is no part of what is kept apart and looked at.
        binds.push(cache.bind().map_err(|error| broken("no build cache", error))?);
    }
    let request = InitRequest {
        programs: programs(name, &path),
        argv: spec.argv.clone(),
        environment: environment.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        working_dir,
        binds,
        pins,
        masks,
        merged_pins: staging.iter().flat_map(|staging| staging.pins.iter().cloned()).collect(),
        whiteouts,
        scratch_bytes: limits.scratch_bytes.unwrap_or(u64::MAX),
        limits: limits::for_each_process(&limits, means),
        filter: match (jail_kind, network) {
            (JailKind::Process, Network::None) => FilterKind::NoNetwork,
            // Among the processes of this machine every socket of the machine would be in reach, haft's own among them.
            (JailKind::Process, Network::Gate | Network::All) => FilterKind::Network,
            (JailKind::Namespace, _) if facts.unix_sockets => FilterKind::NetworkAndUnix,
            (JailKind::Namespace, _) => FilterKind::Network,
        },
        landlock: facts.landlock > 0,
        terminal: spec.terminal.is_some(),
        no_input: false,
        gate: network == Network::Gate,
        grace_ms: limits::millis(spec.grace),
        container: None,
        signaller: Vec::new(),
    };
    if staging.is_some() {
        enforcement.details.insert("writes".to_owned(), json!("staged"));
    }
    // Nothing is left of a guest whose writes are kept apart.
    let watched = if staging.is_some() { Watched::default() } else { Watched::new(&granted, found) };
    Ok(GuestPlan { request, enforcement, limits, network, watched, window, staging, cache, own_processes: 2 })
}

/// The build cache of a guest that uses toolchains and may write, with the variables by which they find it. There is
/// none where haft's state is in a folder that the guest sees: there it is hidden.
fn cache(
    spec: &GuestSpec,
    network: Network,
    facts: &Facts,
    environment: &mut BTreeMap<String, String>,
) -> Result<Option<Cache>, ToolError> {
    let uses = |preset: &Preset| *preset != Preset::Git;
    let is_seen = || {
        let state = fs::canonicalize(&facts.state).unwrap_or_else(|_| facts.state.clone());
        let mut granted = spec.readable.iter().chain(&spec.writable);
        granted.any(|path| fs::canonicalize(path).is_ok_and(|path| mask::is_within(&state, &path)))
    };
    if !spec.presets.iter().any(uses) || is_seen() {
        return Ok(None);
    }
    let opened = Cache::open(&facts.state, &spec.writable, facts.cache_bytes);
    let cache = opened.map_err(|error| broken("no build cache", error))?;
    if let Some(cache) = &cache {
        let variables = spec
            .presets
            .iter()
            .flat_map(|preset| preset::caches(*preset, &cache.files, &facts.home, network != Network::None));
        for (name, value) in variables {
            environment.entry(name.to_owned()).or_insert(value);
        }
    }
    Ok(cache)
}

/// Paths of a sandbox were checked when it was made. A program that was in it since may have put a link in the place of
/// one.
fn lead_where_they_say<'a>(
    mut paths: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>,
) -> Result<(), ToolError> {
    match paths.find(|(path, real)| path != real) {
        Some((path, _)) => {
            let text = format!("{} leads elsewhere than its sandbox was granted", path.display());
            Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text))
        }
        None => Ok(()),
    }
}

/// Where nothing can be mounted, what would have to be hidden is refused, and what would have to be read-only is too
/// where that was promised.
fn without_mounts(
    found: &Findings,
    level: IsolationLevel,
    enforcement: &mut Enforcement,
) -> Result<(), Unavailable> {
    if let Some(first) = found.denied.first() {
        return Err(unavailable(
            format!("the `process` jail cannot hide {} in a folder that it grants", first.path.display()),
            "use the `namespace` jail, or grant less",
        ));
    }
    let Some(first) = found.fixed.first().or(found.held.first()) else { return Ok(()) };
    if level >= IsolationLevel::Strict {
        return Err(unavailable(
            format!("the `process` jail cannot keep {} read-only", first.path.display()),
            "use the `namespace` jail, or grant a folder without a repository and settings of programs",
        ));
    }
    enforcement.details.insert("gitHooks".to_owned(), json!("writable"));
    Ok(())
}

fn programs(name: &str, path: &str) -> Vec<String> {
    if name.contains('/') {
        return vec![name.to_owned()];
    }
    path.split(':').filter(|folder| !folder.is_empty()).map(|folder| format!("{folder}/{name}")).collect()
}

/// How programs learn of the gate.
fn proxies() -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{GATE_PORT}");
    let socks = format!("socks5h://127.0.0.1:{GATE_PORT}");
    let names = [("http_proxy", &http), ("https_proxy", &http), ("all_proxy", &socks)];
    let both = names.into_iter().flat_map(|(name, value)| {
        [(name.to_owned(), value.clone()), (name.to_ascii_uppercase(), value.clone())]
    });
    let none = ["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), "localhost,127.0.0.1,::1".to_owned()));
    both.chain(none).collect()
}
