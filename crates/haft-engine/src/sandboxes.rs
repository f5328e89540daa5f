//! Sandboxes that there are: each for several calls that share limits, paths and hosts. Making and ending them is
//! `engine/sandboxes.rs`.

use crate::settings::Settings;
use haft_core::{
    CallContext, Enforcement, ErrorCode, IsolationLevel, IsolationTechnology, Limits, Metrics, ParentGrant,
    ToolError,
    port::{Jail, Sandbox, covers_host},
    text,
};
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
    /// Your own name for it, unique in the tenant, by which calls may name it, too. haft makes one where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub id: Option<String>,
    /// The level of programs and file tools in it, at the least. Other tools run in haft's own process and have none.
    pub level: IsolationLevel,
    /// The jail of programs in it, and no other; haft chooses where it is `auto`.
    #[serde(skip_serializing_if = "IsolationTechnology::is_auto")]
    pub isolation_technology: IsolationTechnology,
    /// Memory, processes, cores and the time on them are those of all calls in it together, the rest of each by itself.
    pub limits: Limits,
    /// Paths that calls in it may reach; none where empty.
    pub mounts: Vec<String>,
    /// Hosts that calls in it may reach; none where empty.
    pub hosts: Vec<String>,
    /// How long it lasts; an hour where absent, at most a day.
    #[serde(with = "haft_core::iso_duration::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time_to_live: Option<Duration>,
}

impl Default for SandboxSpec {
    fn default() -> Self {
        SandboxSpec {
            id: None,
            level: IsolationLevel::Strict,
            isolation_technology: IsolationTechnology::Auto,
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
    /// What its tenant calls it.
    own_id: Option<String>,
    pub(crate) level: IsolationLevel,
    enforcement: Enforcement,
    pub(crate) jail: Arc<dyn Sandbox>,
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
    /// A sandbox that lives so long from now on.
    pub(crate) fn new(
        (tenant, own_id): (Arc<str>, Option<String>),
        (grant, level): (ParentGrant, IsolationLevel),
        (enforcement, jail): (Enforcement, Arc<dyn Sandbox>),
        now: Timestamp,
        life: Duration,
    ) -> Self {
        let after = SignedDuration::try_from(life).unwrap_or_default();
        Entry {
            tenant,
            grant,
            own_id,
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
        }
    }

    /// What ends it when its time is over.
    pub(crate) fn set_timer(&self, timer: AbortHandle) {
        *lock(&self.timer) = Some(timer);
    }

    /// Says that it has ended; false where somebody said so before.
    pub(crate) fn begin_end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    /// Waits until no call runs in it.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire) || Instant::now() >= self.expires
    }

    /// Lets a call run in it, unless it has ended. `is_first` of its attempts.
    pub(crate) fn inhabit(self: &Arc<Self>, is_first: bool) -> Result<Inhabits, ToolError> {
        // Counted before it is looked: what ends the sandbox says so before it looks at the count.
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

    fn is_named(&self, tenant: &str, id: &str) -> bool {
        *self.tenant == *tenant && !self.is_over() && self.own_id.as_deref() == Some(id)
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

    pub(crate) fn status(&self) -> SandboxStatus {
        // The jail knows better what all of them used together, and of what still runs, too.
        let (ended, together) = (lock(&self.used).clone(), self.jail.used());
        let used = Metrics {
            peak_memory_bytes: together.peak_memory_bytes.or(ended.peak_memory_bytes),
            cpu_time_ms: together.cpu_time_ms.or(ended.cpu_time_ms),
            ..ended
        };
        SandboxStatus {
            id: self.own_id.as_ref().unwrap_or(&self.grant.sandbox_id).clone(),
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
pub(crate) struct Coming<'a>(&'a SandboxTable, Arc<str>);

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut table = lock(&self.0.0);
        if let Some(place) = table.coming.iter().position(|tenant| *tenant == self.1) {
            table.coming.swap_remove(place);
        }
    }
}

impl SandboxTable {
    /// The sandbox around a call, with what it grants checked against what the call's context says that it grants.
    /// `None` where the context names none, or one that was not made here and that the jail does not deny.
    pub(crate) fn around(
        &self,
        jail: &dyn Jail,
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
            None => match jail.has_sandbox(&parent.sandbox_id) {
                Some(false) => Err(unknown(&parent.sandbox_id)),
                Some(true) | None => Ok(None),
            },
        }
    }

    /// Puts one on the list. Refused where no more are made: dropping it ends it.
    pub(crate) fn insert(&self, entry: &Arc<Entry>) -> Result<(), ToolError> {
        let mut table = lock(&self.0);
        if table.closed {
            return Err(shutting_down());
        }
        if let Some(id) = &entry.own_id
            && table.by_id.values().any(|other| other.is_named(&entry.tenant, id))
        {
            let text = format!("There is a sandbox `{}` already", text::one_line(id, 80));
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        table.by_id.insert(entry.grant.sandbox_id.clone(), Arc::clone(entry));
        Ok(())
    }

    /// All of a tenant that have not ended, in no order.
    pub(crate) fn all_of(&self, tenant: &str) -> Vec<Arc<Entry>> {
        let table = lock(&self.0);
        table.by_id.values().filter(|entry| *entry.tenant == *tenant && !entry.is_over()).cloned().collect()
    }

    /// Lets none be made any more. The ids of those that there are.
    pub(crate) fn close(&self) -> Vec<String> {
        let mut table = lock(&self.0);
        table.closed = true;
        table.by_id.keys().cloned().collect()
    }

    /// Takes one off the list.
    pub(crate) fn remove(&self, entry: &Entry) {
        lock(&self.0).by_id.remove(&entry.grant.sandbox_id);
        // Last, because it may be the timer that does this.
        if let Some(timer) = lock(&entry.timer).take() {
            timer.abort();
        }
    }

    /// One that has not ended, whosoever it is; and one that just ended is no longer the jail's to know either.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Entry>> {
        lock(&self.0).by_id.get(id).cloned()
    }

    pub(crate) fn find_of(&self, tenant: &str, id: &str) -> Result<Arc<Entry>, ToolError> {
        let made = self.find(id).filter(|entry| *entry.tenant == *tenant && !entry.is_over());
        let named = || lock(&self.0).by_id.values().find(|entry| entry.is_named(tenant, id)).cloned();
        made.or_else(named).ok_or_else(|| unknown(id))
    }

    pub(crate) fn reserve(&self, settings: &Settings, tenant: &Arc<str>) -> Result<Coming<'_>, ToolError> {
        let mut table = lock(&self.0);
        if table.closed {
            return Err(shutting_down());
        }
        let (each, all) = (settings.max_sandboxes_per_tenant, settings.max_sandboxes);
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
pub(crate) fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let inner = Component::Normal(".git".as_ref());
    Path::new(path).is_absolute() && !parts.any(|part| part == Component::ParentDir || part == inner)
}

fn shutting_down() -> ToolError {
    ErrorCode::ShuttingDown.into()
}
