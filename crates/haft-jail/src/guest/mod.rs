//! Programs in jails.
//!
//! ```text
//!   haft ──────────── start it again, empty environment ───────────► spawner   one thread, no secrets
//!    │                                                                  │ copies itself
//!    │                                                                  ▼
//!    │                                                                 cgroup parent     in cgroups of its own, used again
//!    │                                                                  │ copies itself, into namespaces
//!    │        request, signals                                          ▼
//!    └───────────────────────────────────────────────────────────►    init     ready before it is needed
//!             output, listening socket, end                             │ copies itself, becomes
//!                                                                       ▼
//!                                                                     guest    rlimits, Landlock, seccomp, …
//! ```
//!
//! - One file a technology: [`Process`], [`Namespace`], [`Runc`], [`Gvisor`].
//! - A program that makes jails calls [`init`] first in its `main`; otherwise making one fails and says so.
//! - **Architecture Invariant:** between its copy and its program, a guest's process allocates nothing.
//! - **Architecture Invariant:** the end of haft's socket ends a jail init with everything in it; the end of haft's
//!   other socket ends the spawner with every init. Nobody has to be told.

mod auto;
mod environment;
mod gate;
mod host_gate;
#[cfg(windows)]
mod job;
mod limits;

#[cfg(target_os = "linux")]
mod linux {
    //! Names what is only there on Linux.
    pub use super::{
        base::check_base,
        cache::sweep_caches,
        gvisor::Gvisor,
        host::{JailHost, JailOptions},
        namespace::Namespace,
        process::Process,
        quarantine::recover_quarantine,
        runc::Runc,
        sandbox::Sandbox,
        staging::remove_layers,
    };
}

#[cfg(target_os = "linux")]
mod base;
#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod cgroup_parent;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod denied_links;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod gather;
#[cfg(target_os = "linux")]
mod git_plain;
#[cfg(target_os = "linux")]
mod gvisor;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod instance;
#[cfg(target_os = "linux")]
mod interpreter;
#[cfg(target_os = "linux")]
mod leads;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod mask;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod other_names;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod pool;
#[cfg(target_os = "linux")]
mod preset;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod quarantine;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod runc;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod spawner;
#[cfg(target_os = "linux")]
mod staging;
#[cfg(target_os = "linux")]
mod survey;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod wire;

pub use auto::Auto;
pub use environment::environment;
pub use gate::{GateReport, Gatekeeper, OpenGate};
pub use host_gate::HostGate;
#[cfg(windows)]
pub use job::Job;
pub use limits::with_defaults;
#[cfg(target_os = "linux")]
pub use linux::*;

/// Call this first in `main`, before anything starts a thread. A program that was started again as the spawner of jails
/// stays in here; in all others this only notes that jails can be made.
///
/// ```no_run
/// // First of all in `main`:
/// haft_jail::init();
/// // … everything else …
/// ```
pub fn init() {
    #[cfg(target_os = "linux")]
    {
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_default();
        if name == spawner::NAME {
            spawner::live();
        }
        if name == probe::NAME {
            probe::live(arguments);
        }
        host::KNOWS_HOW.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
