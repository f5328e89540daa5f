//! Sandboxes: making them, asking about them, and ending them with everything in them.

use crate::{
    inner::Inner,
    sandboxes::{Entry, SandboxSpec, SandboxStatus, SandboxTable, is_plain, unknown},
};
use haft_core::{
    CallContext, Enforcement, ErrorCode, IsolationLevel, Limits, ParentGrant, Tier, ToolError,
    port::{GuestSpec, Unavailable},
    text,
};
use haft_sdk::{CancelReason, files::Access};
use std::{sync::Arc, time::Duration};

/// How long a sandbox lives that does not say.
const USUAL_LIFE: Duration = Duration::from_secs(3600);
/// How long one may live.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

/// The sandboxes of an engine: making them, asking about them, ending them.
///
/// A sandbox belongs to a tenant; to others it is not there. Its calls are those whose context names it as parent,
/// which [`enter`](Sandboxes::enter) sees to.
pub struct Sandboxes<'a>(pub(crate) &'a Arc<Inner>);

impl Sandboxes<'_> {
    /// Makes one for the tenant of a caller. Refused where the caller's licence does not include it, its level cannot
    /// be had, a path is not granted, or there are too many.
    pub async fn create(&self, by: &CallContext, spec: SandboxSpec) -> Result<SandboxStatus, ToolError> {
        let ports = &self.0.ports;
        let tenant = Arc::clone(&by.tenant);
        by.check().map_err(|problem| ToolError::new(ErrorCode::ValidationFailed, problem))?;
        let life = check(&spec)?;
        within_licence(ports.has_own_jail, by.tier, &spec)?;
        spec.limits.check()?;
        spec.limits.check_ceiling(&ports.capabilities.commands.ceiling())?;
        let _coming = ports.sandboxes.reserve(&ports.settings, &tenant)?;
        let mounts =
            spec.mounts.iter().map(|path| Ok(ports.capabilities.workspace.locate(path, Access::Read)?.path));
        let mounts = mounts.collect::<Result<Vec<_>, ToolError>>()?;
        if let Some(path) = mounts.iter().find(|path| !is_plain(path)) {
            let text = format!("files are not granted here, so neither is `{}`", text::one_line(path, 255));
            return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
        }
        // Both may take a while where nothing was made before: a jail is tried, and what others left is cleared away.
        let (jail, limits, level) = (Arc::clone(&ports.jail), spec.limits.clone(), spec.level);
        let technology = spec.isolation_technology;
        let made = tokio::task::spawn_blocking(move || {
            let enforcement = match level {
                IsolationLevel::None => Enforcement::in_process(),
                _ if !technology.is_auto() => {
                    let guest = GuestSpec { level, technology, ..GuestSpec::default() };
                    jail.holds(&guest).map_err(not_here)?
                }
                _ => jail.offers(level).map_err(not_here)?,
            };
            Ok::<_, ToolError>((enforcement, jail.open_sandbox(&limits)?))
        });
        let (enforcement, jail) = made
            .await
            .map_err(|error| ToolError::from(ErrorCode::SandboxCreationFailed).with_diagnostics(error))??;
        let grant = ParentGrant {
            sandbox_id: jail.id().to_owned(),
            limits: spec.limits,
            mounts,
            hosts: spec.hosts,
            isolation_technology: technology,
        };
        let now = ports.clock.now();
        let entry = Arc::new(Entry::new((tenant, spec.id), (grant, level), (enforcement, jail), now, life));
        // A shutdown that began meanwhile did not see it; dropping it ends it.
        ports.sandboxes.insert(&entry)?;
        let (engine, id) = (Arc::downgrade(self.0), entry.grant.sandbox_id.clone());
        let timer = tokio::spawn(async move {
            tokio::time::sleep(life).await;
            if let Some(engine) = engine.upgrade() {
                // Nobody waits for it. What could not be ended is tried again when it is dropped.
                let _ = end(&engine, &id, "its time was over").await;
            }
        });
        entry.set_timer(timer.abort_handle());
        Ok(entry.status())
    }

    /// The context of a call in a sandbox: like the given one, with all that the sandbox grants. Narrow the
    /// [`parent`](CallContext::parent) of what comes back for a call that is to have less.
    pub fn enter(&self, context: &CallContext, id: &str) -> Result<Arc<CallContext>, ToolError> {
        let entry = self.0.ports.sandboxes.find_of(&context.tenant, id)?;
        if context.parent.as_ref().is_some_and(|parent| parent.sandbox_id != entry.grant.sandbox_id) {
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
        let entries = self.0.ports.sandboxes.all_of(tenant);
        let mut all: Vec<_> = entries.iter().map(|entry| entry.status()).collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    /// Ends one with everything in it: calls are cancelled, programs in the background are ended. Comes back when
    /// nothing of it is left, with how it was at the end.
    pub async fn destroy(&self, tenant: &str, id: &str) -> Result<SandboxStatus, ToolError> {
        let entry = self.0.ports.sandboxes.find_of(tenant, id)?;
        end(self.0, &entry.grant.sandbox_id, "the sandbox around it was destroyed")
            .await
            .unwrap_or_else(|| Err(unknown(id)))
    }
}

/// Ends all of them, and lets none be made any more.
pub(crate) async fn end_all(engine: &Inner) {
    let ids = engine.ports.sandboxes.close();
    let ends = ids.iter().map(|id| end(engine, id, "haft is shutting down"));
    futures_util::future::join_all(ends).await;
}

/// Ends one; `None` where somebody else is at it or was.
async fn end(engine: &Inner, id: &str, why: &str) -> Option<Result<SandboxStatus, ToolError>> {
    let entry = engine.ports.sandboxes.find(id)?;
    if !entry.begin_end() {
        return None;
    }
    let _listed = Listed { table: &engine.ports.sandboxes, entry: &entry };
    for call in engine.live.executions.unfinished() {
        if call.sandbox.get().is_some_and(|inside| Arc::ptr_eq(inside, &entry)) {
            call.stop(CancelReason::Parent, Some(why));
        }
    }
    // Calls may tidy up and say what they used; their programs are ended in any case.
    let _ = tokio::time::timeout(engine.ports.settings.grace, entry.idle()).await;
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
        self.table.remove(self.entry);
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

/// What was asked for cannot be had on this machine: the caller can ask for something else.
fn not_here(unavailable: Unavailable) -> ToolError {
    let data = serde_json::json!({ "unavailable": true });
    ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string()).with_data(data)
}

/// What is wrong with a specification, or how long the sandbox is to live.
fn check(spec: &SandboxSpec) -> Result<Duration, ToolError> {
    let wrong = |text: String| ToolError::new(ErrorCode::ValidationFailed, text);
    if spec.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > 255 || id.chars().any(char::is_control))
    {
        return Err(wrong("id must have 1 to 255 bytes, and no control characters".to_owned()));
    }
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
        // A call can run that reads, writes and puts out nothing.
        file_bytes: _,
        scratch_bytes: _,
        output_bytes: _,
        read_bytes: _,
        written_bytes: _,
        io_operations: _,
        io_bytes_per_second,
    } = &spec.limits;
    let nothing = [
        ("memoryBytes", *memory_bytes == Some(0)),
        ("cpuMillicores", *cpu_millicores == Some(0)),
        ("cpuTime", *cpu_time == Some(Duration::ZERO)),
        ("wallTime", *wall_time == Some(Duration::ZERO)),
        ("processes", *processes == Some(0)),
        ("openFiles", *open_files == Some(0)),
        ("ioBytesPerSecond", *io_bytes_per_second == Some(0)),
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
