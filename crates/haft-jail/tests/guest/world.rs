//! What tests run guests with.

use haft_core::{
    Enforcement, IsolationLevel, Limits, OutputStream, ToolError,
    port::{BoxFuture, Guest, GuestEnd, GuestSpec, Jail, OutputSink, Sandbox, Unavailable},
};
use haft_jail::guest::{Gvisor, JailHost, JailOptions, Namespace, Process, Runc};
use std::{
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex},
};

/// A state folder with jails on it.
pub struct House {
    pub state: tempfile::TempDir,
    pub host: JailHost,
}

/// Every jail that this machine should have, and those with a runtime that is installed. `process` refuses root: what
/// runs as an ordinary user tests it. Looked for by its file: a list of tests must not take a second to make.
pub fn jails() -> Vec<&'static str> {
    let runtimes = [("runc", "runc"), ("crun", "crun"), ("gvisor", "runsc")];
    let installed = runtimes.into_iter().filter(|(_, program)| is_root() && has_runtime(program));
    let process = (!is_root()).then_some("process");
    process.into_iter().chain(["namespace"]).chain(installed.map(|(jail, _)| jail)).collect()
}

/// Whether a container runtime is installed.
pub fn has_runtime(name: &str) -> bool {
    ["/usr/sbin", "/usr/bin"].iter().any(|folder| PathBuf::from(folder).join(name).exists())
}

impl House {
    pub fn new() -> House {
        House::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut JailOptions)) -> House {
        House::make(tempfile::tempdir().unwrap(), change)
    }

    /// On a state folder that another haft used.
    pub fn on(state: tempfile::TempDir) -> House {
        House::make(state, |_| {})
    }

    fn make(state: tempfile::TempDir, change: impl FnOnce(&mut JailOptions)) -> House {
        let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let mut options = JailOptions::new(state.path(), home);
        // An ordinary user can make no cgroups, unless some were handed over.
        options.per_process_limits_do = !has_cgroups();
        options.warm = 0;
        change(&mut options);
        House { host: JailHost::new(options).unwrap(), state }
    }

    pub fn jail(&self, name: &str) -> Arc<dyn Jail> {
        jail(&self.host, name)
    }
}

pub fn jail(host: &JailHost, name: &str) -> Arc<dyn Jail> {
    match name {
        "process" => Arc::new(AtStandard(Process::new(host))),
        "namespace" => Arc::new(Namespace::new(host)),
        "runc" => Arc::new(Runc::new(host)),
        "crun" => Arc::new(Runc::with(host, "/usr/bin/crun")),
        "gvisor" => Arc::new(Gvisor::new(host)),
        other => panic!("no jail {other}"),
    }
}

/// The `process` jail offers no more than `standard`; the tests ask every jail for `strict`.
struct AtStandard(Process);

impl AtStandard {
    fn lowered(spec: &GuestSpec) -> GuestSpec {
        GuestSpec { level: spec.level.min(IsolationLevel::Standard), ..spec.clone() }
    }
}

impl Jail for AtStandard {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        self.0.offers(level)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.0.holds(&AtStandard::lowered(spec))
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        self.0.has_sandbox(id)
    }

    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        self.0.open_sandbox(limits)
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        self.0.start(AtStandard::lowered(&spec))
    }
}

/// Runs a future.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(future)
}

#[derive(Debug, Default, Clone)]
pub struct Heard {
    pub out: String,
    pub err: String,
}

/// A sink that keeps everything.
pub fn keeping() -> (OutputSink, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let kept = Arc::clone(&heard);
    let sink: OutputSink = Arc::new(move |stream, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let mut heard = kept.lock().unwrap();
        match stream {
            OutputStream::Stdout => heard.out.push_str(&text),
            OutputStream::Stderr => heard.err.push_str(&text),
        }
    });
    (sink, heard)
}

/// Starts a guest, waits for its end.
pub async fn run(jail: &dyn Jail, spec: GuestSpec) -> Result<(GuestEnd, Heard), ToolError> {
    let mut guest = jail.start(spec).await?;
    let (sink, heard) = keeping();
    let end = guest.wait(sink).await?;
    let heard = heard.lock().unwrap().clone();
    Ok((end, heard))
}

/// A shell command at `strict`.
pub fn sh(script: &str) -> GuestSpec {
    GuestSpec { level: IsolationLevel::Strict, ..GuestSpec::command(["sh", "-c", script]) }
}

/// Set where an ordinary user was handed cgroups.
pub const HAS_CGROUPS: &str = "HAFT_TEST_CGROUPS";

/// Whether limits hold for all processes of a guest together.
pub fn has_cgroups() -> bool {
    is_root() || std::env::var_os(HAS_CGROUPS).is_some()
}

/// Whether this is root, or the same tests by an ordinary user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether runsc runs here.
pub fn has_gvisor() -> bool {
    House::new().jail("gvisor").offers(IsolationLevel::Restricted).is_ok()
}

/// This very program.
pub fn own_program() -> PathBuf {
    std::env::current_exe().unwrap()
}
