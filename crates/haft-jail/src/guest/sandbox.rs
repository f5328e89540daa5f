//! Sandboxes: limits that several guests share.

use super::{cgroup::SeatCgroups, host::Inner, host::JailHost, host::broken};
use haft_core::{ErrorCode, Limits, ToolError};
use std::sync::Arc;

/// A sandbox. Guests whose `parent` is its id stay together within its limits. Dropping it removes it, once the guests
/// in it have ended.
pub struct Sandbox {
    id: String,
    cgroups: SeatCgroups,
    host: Arc<Inner>,
}

impl JailHost {
    /// Opens a sandbox with limits for all that will be in it.
    pub fn open_sandbox(&self, limits: &Limits) -> Result<Sandbox, ToolError> {
        let host = &self.0;
        if host.facts.cgroups.is_none() {
            let text = "limits for several programs together take cgroups, and none can be made here";
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        let (_, id) = host.name();
        let mut cgroups = host.hierarchies.seat(None, &id);
        // A guest's own is made in this one; one for all of them together would be in the way.
        if cgroups.v2.is_some() {
            cgroups.kill = None;
        }
        cgroups.make().map_err(|error| broken("no cgroup for the sandbox", error))?;
        let sandbox = Sandbox { id: id.clone(), cgroups, host: Arc::clone(host) };
        sandbox.cgroups.limit(limits, 64).map_err(|error| broken("limits cannot be set", error))?;
        host.group(sandbox.cgroups.clone(), true)?;
        host.sandboxes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(id);
        Ok(sandbox)
    }
}

impl Sandbox {
    /// What a guest names as its parent.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.host.sandboxes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&self.id);
        // Guests that are about to end hold it a little longer; the spawner removes it then.
        let _ = self.host.group(self.cgroups.clone(), false);
    }
}
