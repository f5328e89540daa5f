//! Sandboxes: limits that several guests share, and one end for all of them.

use super::{
    cgroup::{self, InitCgroups},
    host::{Inner, JailHost, broken},
};
use haft_core::{
    ErrorCode, Limits, Metrics, ToolError,
    port::{self, BoxFuture, GuestControl},
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

/// Processes of haft's own that may be in a sandbox beside the guests.
const INITS: u32 = 64;
/// Guests that were told to end have ended by then; what is left is ended with their jail inits.
const ORDERLY: Duration = Duration::from_secs(1);
/// Whatever has not ended by then never will.
const AT_LAST: Duration = Duration::from_secs(10);

/// A sandbox. Guests whose `parent` is its id stay together within its limits. Dropping it ends them.
pub struct Sandbox {
    around: Arc<Around>,
    host: Arc<Inner>,
}

/// What guests in a sandbox share.
pub(super) struct Around {
    id: String,
    cgroups: InitCgroups,
    limits: Limits,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    ended: bool,
    next: u64,
    guests: HashMap<u64, Weak<dyn GuestControl>>,
}

/// A guest's place in a sandbox. Dropping it leaves.
pub(super) struct Place {
    pub(super) around: Arc<Around>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.around.inside().guests.remove(&self.number);
    }
}

impl Around {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a guest in, unless everything in it was ended meanwhile.
    pub(super) fn enter(self: &Arc<Self>, guest: &Arc<dyn GuestControl>) -> Result<Place, ToolError> {
        let mut inside = self.inside();
        if inside.ended {
            return Err(unknown(&self.id));
        }
        let number = inside.next;
        inside.next += 1;
        inside.guests.insert(number, Arc::downgrade(guest));
        Ok(Place { around: Arc::clone(self), number })
    }

    /// The time on a core that all guests together may use, and what they used, in milliseconds.
    pub(super) fn cpu_time(&self) -> Option<(u64, u64)> {
        let allowed = super::limits::millis(self.limits.cpu_time?);
        Some((allowed, self.cgroups.cpu_micros()? / 1000))
    }

    /// Makes its cgroups and sets its limits: at first, and again where they were removed with a spawner that died.
    pub(super) fn furnish(&self) -> io::Result<&InitCgroups> {
        self.cgroups.make()?;
        self.cgroups.hand_down();
        self.cgroups.limit(&self.limits, INITS)?;
        Ok(&self.cgroups)
    }

    /// Lets nothing more in, and tells everything in it to end.
    fn close(&self) {
        let mut inside = self.inside();
        inside.ended = true;
        let guests: Vec<_> = inside.guests.values().filter_map(Weak::upgrade).collect();
        drop(inside);
        for guest in guests {
            guest.kill();
        }
    }

    /// Until nothing of it is left.
    fn clear(&self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            if self.cgroups.folders().into_iter().rev().filter(|folder| !cgroup::remove_tree(folder)).count()
                == 0
            {
                return Ok(());
            }
            match began.elapsed() {
                waited if waited > AT_LAST => return Err(io::Error::other("processes in it do not end")),
                waited if waited > ORDERLY => self.cgroups.kill(),
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(super) fn unknown(id: &str) -> ToolError {
    let text = format!("there is no sandbox `{id}` around the call");
    ToolError::new(ErrorCode::SandboxCreationFailed, text)
}

impl JailHost {
    /// Opens a sandbox with limits for all that will be in it: memory, processes, cores and time on them hold for all
    /// together, the others for each guest by itself.
    pub fn open_sandbox(&self, limits: &Limits) -> Result<Sandbox, ToolError> {
        let host = &self.0;
        if host.facts.cgroups.is_none() {
            let text = "limits for several programs together take cgroups, and none can be made here";
            return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
        }
        let (_, id) = host.name();
        let mut cgroups = host.hierarchies.init(None, &id);
        // A guest's own is made in this one; one for all of them together would be in the way.
        if cgroups.v2.is_some() {
            cgroups.kill = None;
        }
        let around =
            Arc::new(Around { id: id.clone(), cgroups, limits: limits.clone(), inside: Mutex::default() });
        // From here on, its drop removes what was made.
        let sandbox = Sandbox { around: Arc::clone(&around), host: Arc::clone(host) };
        let cgroups = around.furnish().map_err(|error| broken("no cgroup for the sandbox", error))?;
        host.group(cgroups.clone(), true)?;
        host.sandboxes().insert(id, around);
        Ok(sandbox)
    }
}

/// Opens a sandbox, as a port.
pub(super) fn open(host: &Arc<Inner>, limits: &Limits) -> Result<Arc<dyn port::Sandbox>, ToolError> {
    JailHost(Arc::clone(host)).open_sandbox(limits).map(|sandbox| Arc::new(sandbox) as Arc<dyn port::Sandbox>)
}

impl Sandbox {
    /// What a guest names as its parent.
    pub fn id(&self) -> &str {
        &self.around.id
    }
}

impl port::Sandbox for Sandbox {
    fn id(&self) -> &str {
        &self.around.id
    }

    fn used(&self) -> Metrics {
        let counted = self.around.cgroups.counted();
        Metrics {
            peak_memory_bytes: counted.peak_memory,
            cpu_time_ms: counted.cpu_micros.map(|micros| micros as f64 / 1000.0),
            ..Metrics::default()
        }
    }

    fn end<'a>(&'a self) -> BoxFuture<'a, Result<(), ToolError>> {
        self.host.sandboxes().remove(&self.around.id);
        self.around.close();
        let around = Arc::clone(&self.around);
        Box::pin(async move {
            let cleared = tokio::task::spawn_blocking(move || around.clear())
                .await
                .map_err(io::Error::other)
                .and_then(|cleared| cleared);
            cleared.map_err(|error| {
                ToolError::new(ErrorCode::SandboxCrashed, "something in the sandbox did not end")
                    .with_diagnostics(error)
            })
        })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.host.sandboxes().remove(&self.around.id);
        self.around.close();
        // Guests that are about to end hold it a little longer; the spawner removes it then.
        let _ = self.host.group(self.around.cgroups.clone(), false);
    }
}
