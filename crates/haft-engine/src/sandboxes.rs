//! Sandboxes: made once, for several calls that share limits, paths and hosts, and ended with everything in them.

use crate::{engine::Inner, ports::Ports};
use haft_core::{
    CallContext, Enforcement, ErrorCode, IsolationLevel, Limits, Metrics, ParentGrant, Tier, ToolError,
    port::{Sandbox, covers_host},
    text,
};
use haft_sdk::{CancelReason, files::Access};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    path::{Component, Path},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Notify, task::AbortHandle};

/// How long a sandbox lives that does not say.
const USUAL_LIFE: Duration = Duration::from_secs(3600);
/// How long one may live.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

/// What a sandbox grants to all calls in it. It only ever takes away: a path or host that the configuration does not
/// grant is not reached in a sandbox either.
///
/// ```
/// use haft_engine::SandboxSpec;
/// let spec: SandboxSpec =
///     serde_json::from_str(r#"{"limits": {"memoryBytes": 268435456}, "mounts": ["src"], "timeToLive": "PT10M"}"#).unwrap();
/// assert_eq!(spec.level, haft_core::IsolationLevel::Strict);
/// assert!(spec.hosts.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SandboxSpec {
    /// The level of programs in it, at the least. Tools that run in haft's own process have none.
    pub level: IsolationLevel,
    /// Memory, processes, cores and the time on them are those of all calls in it together, the rest of each by itself.
    pub limits: Limits,
    /// Paths that calls in it may reach; none where empty.
    pub mounts: Vec<String>,
    /// Hosts that calls in it may reach; none where empty.
    pub hosts: Vec<String>,
    /// When it is ended by itself; an hour where absent, a day at the most.
    #[serde(with = "haft_core::iso_duration::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time_to_live: Option<Duration>,
}

impl Default for SandboxSpec {
    fn default() -> Self {
        SandboxSpec {
            level: IsolationLevel::Strict,
            limits: Limits::default(),
            mounts: Vec::new(),
            hosts: Vec::new(),
            time_to_live: None,
        }
    }
}

/// A sandbox as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Sandbox")]
pub struct SandboxStatus {
    /// Its name, which calls in it give as their parent.
    pub id: String,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// What it grants. Paths are as they were found when it was made.
    pub grant: ParentGrant,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it is ended by itself.
    pub expires_at: Timestamp,
    /// Calls that were started in it.
    pub calls: u64,
    /// Calls that run in it now.
    pub running: usize,
    /// What they used so far: memory and time on a core as measured of all together, the rest of those that have ended.
    pub used: Metrics,
    /// What holds programs in it.
    pub enforcement: Enforcement,
}

/// One sandbox.
pub(crate) struct Entry {
    pub(crate) tenant: Arc<str>,
    pub(crate) grant: ParentGrant,
    pub(crate) level: IsolationLevel,
    enforcement: Enforcement,
    jail: Arc<dyn Sandbox>,
    created_at: Timestamp,
    expires_at: Timestamp,
    expires: Instant,
    ended: AtomicBool,
    calls: AtomicU64,
    running: AtomicUsize,
    idle: Notify,
    used: Mutex<Metrics>,
    timer: Mutex<Option<AbortHandle>>,
}

/// A call that runs in a sandbox. Dropping it says that it does not any more.
pub(crate) struct Inhabits(Arc<Entry>);

impl Drop for Inhabits {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire) || Instant::now() >= self.expires
    }

    /// Lets a call run in it, unless it has ended. `is_first` of its tries.
    pub(crate) fn inhabit(self: &Arc<Self>, is_first: bool) -> Result<Inhabits, ToolError> {
        // Counted before it is looked: whoever ends the sandbox says so before it looks at the count.
        self.running.fetch_add(1, Ordering::AcqRel);
        let inhabits = Inhabits(Arc::clone(self));
        if self.is_over() {
            return Err(unknown(&self.grant.sandbox_id));
        }
        self.calls.fetch_add(u64::from(is_first), Ordering::Relaxed);
        Ok(inhabits)
    }

    /// Adds what a program used.
    pub(crate) fn add(&self, metrics: &Metrics) {
        let mut used = lock(&self.used);
        *used = used.and(metrics);
    }

    /// Whether all of `asked` is granted; or what is not.
    fn covers(&self, asked: &ParentGrant) -> Result<(), ToolError> {
        let (id, granted) = (&self.grant.sandbox_id, &self.grant);
        if let Some((name, mine, theirs)) = asked.limits.exceeds(&granted.limits) {
            let text = format!("{name} of {mine} is above the {theirs} of the sandbox {id}");
            return Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text));
        }
        let covered = |host: &&String| !granted.hosts.iter().any(|granted| covers_host(granted, host));
        if let Some(host) = asked.hosts.iter().find(covered) {
            let text = format!("The sandbox {id} does not grant the host `{}`", text::one_line(host, 255));
            return Err(ToolError::new(ErrorCode::NetworkPolicyViolation, text));
        }
        let outside =
            |path: &&String| !granted.mounts.iter().any(|granted| Path::new(path).starts_with(granted));
        if let Some(path) = asked.mounts.iter().find(outside) {
            let text = format!("The sandbox {id} does not grant `{}`", text::one_line(path, 255));
            return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
        }
        Ok(())
    }

    fn status(&self) -> SandboxStatus {
        // The jail knows better what all of them used together, and of what still runs, too.
        let (ended, together) = (lock(&self.used).clone(), self.jail.used());
        let used = Metrics {
            peak_memory_bytes: together.peak_memory_bytes.or(ended.peak_memory_bytes),
            cpu_time_ms: together.cpu_time_ms.or(ended.cpu_time_ms),
            ..ended
        };
        SandboxStatus {
            id: self.grant.sandbox_id.clone(),
            tenant: Arc::clone(&self.tenant),
            grant: self.grant.clone(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            calls: self.calls.load(Ordering::Relaxed),
            running: self.running.load(Ordering::Relaxed),
            used,
            enforcement: self.enforcement.clone(),
        }
    }
}

/// All sandboxes of an engine.
#[derive(Default)]
pub(crate) struct SandboxTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    by_id: HashMap<String, Arc<Entry>>,
    /// Tenants of those that are being made.
    coming: Vec<Arc<str>>,
    closed: bool,
}

/// Keeps room for one that is being made.
struct Coming<'a>(&'a SandboxTable, Arc<str>);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut table = lock(&self.0.0);
        if let Some(place) = table.coming.iter().position(|tenant| *tenant == self.1) {
            table.coming.swap_remove(place);
        }
    }
}

impl SandboxTable {
    /// The sandbox around a call, with what it grants checked against what the call's context says that it grants. `None`
    /// where the context names none, or one that was not made here and that the jail does not deny.
    pub(crate) fn around(
        &self,
        ports: &Ports,
        context: &CallContext,
    ) -> Result<Option<Arc<Entry>>, ToolError> {
        let Some(parent) = &context.parent else { return Ok(None) };
        if let Some(path) = parent.mounts.iter().find(|path| !is_plain(path)) {
            let text = format!(
                "`{}` cannot be granted by itself: name it as an absolute path, without `..`, and not in `.git`",
                text::one_line(path, 255)
            );
            return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
        }
        match self.find(&parent.sandbox_id) {
            Some(entry) if entry.tenant == context.tenant && !entry.is_over() => {
                entry.covers(parent)?;
                Ok(Some(entry))
            }
            Some(_) => Err(unknown(&parent.sandbox_id)),
            None => match ports.jail.has_sandbox(&parent.sandbox_id) {
                Some(false) => Err(unknown(&parent.sandbox_id)),
                Some(true) | None => Ok(None),
            },
        }
    }

    /// One that has not ended, whosoever it is; and one that just ended is no longer the jail's to know either.
    fn find(&self, id: &str) -> Option<Arc<Entry>> {
        lock(&self.0).by_id.get(id).cloned()
    }

    fn find_of(&self, tenant: &str, id: &str) -> Result<Arc<Entry>, ToolError> {
        self.find(id).filter(|entry| *entry.tenant == *tenant && !entry.is_over()).ok_or_else(|| unknown(id))
    }

    fn reserve(&self, ports: &Ports, tenant: &Arc<str>) -> Result<Coming<'_>, ToolError> {
        let mut table = lock(&self.0);
        if table.closed {
            return Err(ToolError::new(ErrorCode::Cancelled, "haft is shutting down"));
        }
        let (each, all) = (ports.settings.max_sandboxes_per_tenant, ports.settings.max_sandboxes);
        let of_tenant = table.by_id.values().filter(|entry| entry.tenant == *tenant).count()
            + table.coming.iter().filter(|coming| *coming == tenant).count();
        let full = (of_tenant >= each).then_some((each, "a tenant"));
        let full = full.or((table.by_id.len() + table.coming.len() >= all).then_some((all, "haft")));
        if let Some((most, who)) = full {
            let text = format!("{who} may have {most} sandboxes at once. Destroy one first");
            return Err(ToolError::new(ErrorCode::ConcurrentLimitExceeded, text));
        }
        table.coming.push(Arc::clone(tenant));
        Ok(Coming(self, Arc::clone(tenant)))
    }
}

/// The words of every sandbox that cannot be named: ended, never there, or another tenant's.
pub(crate) fn unknown(id: &str) -> ToolError {
    let text = format!("There is no sandbox `{}`: it was destroyed, or it never was", text::one_line(id, 80));
    ToolError::new(ErrorCode::SandboxCreationFailed, text)
}

/// Whether a path says where it leads: what is compared by its words must not have `..` among them. The inside of a
/// repository cannot be granted apart from it: its hooks are kept as they are only where the whole is seen.
fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let inner = Component::Normal(".git".as_ref());
    Path::new(path).is_absolute() && !parts.any(|part| part == Component::ParentDir || part == inner)
}

/// The sandboxes of an engine: making them, asking about them, ending them.
///
/// A sandbox belongs to a tenant; to others it is not there. Its calls are those whose context names it as parent, which
/// [`enter`](Sandboxes::enter) sees to.
pub struct Sandboxes<'a>(pub(crate) &'a Arc<Inner>);

impl Sandboxes<'_> {
    /// Makes one for the tenant of a caller. Refused where the caller's licence does not include it, its level cannot be had,
    /// a path is not granted, or there are too many.
    pub async fn create(&self, by: &CallContext, spec: SandboxSpec) -> Result<SandboxStatus, ToolError> {
        let ports = &self.0.ports;
        let tenant = Arc::clone(&by.tenant);
        by.check().map_err(|problem| ToolError::new(ErrorCode::ValidationFailed, problem))?;
        let life = check(&spec)?;
        within_licence(ports.has_own_jail, by.tier, &spec)?;
        spec.limits.check_ceiling(&ports.capabilities.commands.ceiling())?;
        let _coming = ports.sandboxes.reserve(ports, &tenant)?;
        let mounts =
            spec.mounts.iter().map(|path| Ok(ports.capabilities.workspace.locate(path, Access::Read)?.path));
        let mounts = mounts.collect::<Result<Vec<_>, ToolError>>()?;
        if let Some(path) = mounts.iter().find(|path| !is_plain(path)) {
            let text = format!("files are not granted here, so neither is `{}`", text::one_line(path, 255));
            return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
        }
        // Both may take a while where nothing was made before: a jail is tried, and what others left is cleared away.
        let (jail, limits, level) = (Arc::clone(&ports.jail), spec.limits.clone(), spec.level);
        let made = tokio::task::spawn_blocking(move || {
            let enforcement = match level {
                IsolationLevel::None => Enforcement::in_process(),
                _ => jail.offers(level).map_err(|unavailable| {
                    ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string())
                })?,
            };
            Ok::<_, ToolError>((enforcement, jail.open_sandbox(&limits)?))
        });
        let (enforcement, jail) = made
            .await
            .map_err(|error| ToolError::from(ErrorCode::SandboxCreationFailed).with_diagnostics(error))??;
        let now = ports.clock.now();
        let after = SignedDuration::try_from(life).unwrap_or_default();
        let entry = Arc::new(Entry {
            tenant,
            grant: ParentGrant {
                sandbox_id: jail.id().to_owned(),
                limits: spec.limits,
                mounts,
                hosts: spec.hosts,
            },
            level,
            enforcement,
            jail,
            created_at: now,
            expires_at: now.checked_add(after).unwrap_or(now),
            expires: Instant::now() + life,
            ended: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            idle: Notify::new(),
            used: Mutex::default(),
            timer: Mutex::default(),
        });
        let id = entry.grant.sandbox_id.clone();
        {
            let mut table = lock(&ports.sandboxes.0);
            // A shutdown that began meanwhile did not see it; dropping it ends it.
            if table.closed {
                return Err(ToolError::new(ErrorCode::Cancelled, "haft is shutting down"));
            }
            table.by_id.insert(id.clone(), Arc::clone(&entry));
        }
        let (engine, id) = (Arc::downgrade(self.0), id);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(life).await;
            if let Some(engine) = engine.upgrade() {
                // Nobody waits for it. What could not be ended is tried again when it is dropped.
                let _ = end(&engine, &id, "its time was over").await;
            }
        });
        *lock(&entry.timer) = Some(timer.abort_handle());
        Ok(entry.status())
    }

    /// The context of a call in a sandbox: like the given one, with all that the sandbox grants. Narrow the
    /// [`parent`](CallContext::parent) of what comes back for a call that is to have less.
    pub fn enter(&self, context: &CallContext, id: &str) -> Result<Arc<CallContext>, ToolError> {
        let entry = self.0.ports.sandboxes.find_of(&context.tenant, id)?;
        if context.parent.as_ref().is_some_and(|parent| parent.sandbox_id != id) {
            let text = "The call is in a sandbox already, and one is not made inside another";
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        Ok(Arc::new(CallContext { parent: Some(entry.grant.clone()), ..context.clone() }))
    }

    /// How one is.
    pub fn status(&self, tenant: &str, id: &str) -> Result<SandboxStatus, ToolError> {
        Ok(self.0.ports.sandboxes.find_of(tenant, id)?.status())
    }

    /// Those of a tenant, oldest first.
    pub fn list(&self, tenant: &str) -> Vec<SandboxStatus> {
        let entries: Vec<_> = lock(&self.0.ports.sandboxes.0).by_id.values().cloned().collect();
        let mut all: Vec<_> = entries
            .iter()
            .filter(|entry| *entry.tenant == *tenant && !entry.is_over())
            .map(|entry| entry.status())
            .collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    /// Ends one with everything in it: calls are cancelled, programs in the background are ended. Comes back when nothing
    /// of it is left, with how it was at the end.
    pub async fn destroy(&self, tenant: &str, id: &str) -> Result<SandboxStatus, ToolError> {
        self.0.ports.sandboxes.find_of(tenant, id)?;
        end(self.0, id, "the sandbox around it was destroyed").await.unwrap_or_else(|| Err(unknown(id)))
    }
}

/// Ends all of them, and lets none be made any more.
pub(crate) async fn end_all(engine: &Inner) {
    let ids: Vec<String> = {
        let mut table = lock(&engine.ports.sandboxes.0);
        table.closed = true;
        table.by_id.keys().cloned().collect()
    };
    let ends = ids.iter().map(|id| end(engine, id, "haft is shutting down"));
    futures_util::future::join_all(ends).await;
}

/// Ends one; `None` where somebody else is at it or was.
async fn end(engine: &Inner, id: &str, why: &str) -> Option<Result<SandboxStatus, ToolError>> {
    let entry = lock(&engine.ports.sandboxes.0).by_id.get(id).cloned()?;
    if entry.ended.swap(true, Ordering::AcqRel) {
        return None;
    }
    let _listed = Listed { table: &engine.ports.sandboxes, entry: &entry };
    for frame in engine.executions.unfinished() {
        if frame.sandbox.get().is_some_and(|inside| Arc::ptr_eq(inside, &entry)) {
            frame.stop(CancelReason::Parent, Some(why));
        }
    }
    // Calls may tidy up and say what they used; their programs are ended in any case.
    let _ = tokio::time::timeout(engine.ports.settings.grace, async {
        loop {
            let idle = entry.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if entry.running.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    })
    .await;
    let last = entry.status();
    let ended = entry.jail.end().await;
    Some(ended.map(|()| last))
}

/// Takes a sandbox that is being ended off the list, also when nobody waits for its end any more.
struct Listed<'a> {
    table: &'a SandboxTable,
    entry: &'a Arc<Entry>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.table.0).by_id.remove(&self.entry.grant.sandbox_id);
        // Last, because it may be the timer that does this.
        if let Some(timer) = lock(&self.entry.timer).take() {
            timer.abort();
        }
    }
}

/// What a sandbox asks for beyond what a licence tier includes.
fn within_licence(has_own_jail: bool, tier: Tier, spec: &SandboxSpec) -> Result<(), ToolError> {
    let level = spec.level;
    tier.require("A sandbox with rules of its own", Tier::allows_sandboxes)?;
    tier.require(format_args!("A sandbox of {level:?} isolation"), |tier| level <= tier.max_isolation())?;
    if has_own_jail && level > IsolationLevel::None {
        tier.require("A sandbox in a jail that did not come with haft", Tier::allows_own_jails)?;
    }
    if let Some((name, mine, most)) = spec.limits.exceeds(&tier.limits()) {
        let what = format_args!("{name} of {mine}, where at most {most} are included,");
        tier.require(what, |tier| spec.limits.exceeds(&tier.limits()).is_none())?;
    }
    Ok(())
}

/// What is wrong with a specification, or how long the sandbox is to live.
fn check(spec: &SandboxSpec) -> Result<Duration, ToolError> {
    let wrong = |text: String| ToolError::new(ErrorCode::ValidationFailed, text);
    let life = spec.time_to_live.unwrap_or(USUAL_LIFE);
    if life < Duration::from_secs(1) || life > LONGEST_LIFE {
        return Err(wrong("timeToLive must be from a second to a day".to_owned()));
    }
    let Limits {
        memory_bytes,
        cpu_millicores,
        cpu_time,
        wall_time,
        processes,
        open_files,
        // A program can run that writes nothing and puts nothing out.
        file_bytes: _,
        scratch_bytes: _,
        output_bytes: _,
    } = &spec.limits;
    let nothing = [
        ("memoryBytes", *memory_bytes == Some(0)),
        ("cpuMillicores", *cpu_millicores == Some(0)),
        ("cpuTime", *cpu_time == Some(Duration::ZERO)),
        ("wallTime", *wall_time == Some(Duration::ZERO)),
        ("processes", *processes == Some(0)),
        ("openFiles", *open_files == Some(0)),
    ];
    if let Some((name, _)) = nothing.into_iter().find(|(_, is_nothing)| *is_nothing) {
        return Err(wrong(format!("{name} of 0 would let nothing run")));
    }
    let is_host = |host: &str| {
        !host.is_empty() && host.len() <= 261 && host.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(host) = spec.hosts.iter().find(|host| !is_host(host)) {
        return Err(wrong(format!("`{}` is no host", text::one_line(host, 80))));
    }
    if spec.hosts.len() > 1000 || spec.mounts.len() > 1000 {
        return Err(wrong("a sandbox may name a thousand hosts and a thousand paths".to_owned()));
    }
    Ok(life)
}
