//! What the suites that attack the path jail share: a ground with something to find outside, and a host without an
//! engine that gives every call an id of its own.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use haft_core::{
    Arguments, CallContext, Enforcement, ExecutionId, OutputStream, ToolCall, ToolError, ToolOutput,
    port::{BoxFuture, GuestEnd, GuestSpec},
};
use haft_files::{DEFAULT_DENIES, Files, JailSpec, Keep, PathJail, RootSpec};
use haft_sdk::{
    Args, CallHost, Cancel, Tool, ToolCtx,
    capability::{Capabilities, Workspace},
};
use haft_store::MemoryReadHashes;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// What stands in every file outside. Wherever it turns up, something was read that must not be.
pub const CANARY: &str = "canary-7d1f3c-content-from-outside";
/// The name of a file in every folder outside. Wherever it turns up, a folder was listed that must not be.
pub const OUTSIDE_NAME: &str = "only-seen-from-outside-91be";
/// What stands in every denied file inside.
pub const DENIED: &str = "denied-52ac90-content-of-an-inside-secret";

/// A new folder, in memory where there is such a place: these tests wait for the disk a hundred thousand times.
pub fn new_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

/// Files of a jail with one root.
pub fn files(root: &Path, state: &Path, step_by_step: bool) -> Files {
    let jail = PathJail::new(JailSpec {
        roots: vec![RootSpec { path: root.into(), read_only: false }],
        denied_patterns: DEFAULT_DENIES.iter().map(|&pattern| pattern.to_owned()).collect(),
        private: vec![state.to_owned()],
        step_by_step,
        ..JailSpec::default()
    });
    let keep = Keep { records: 2, ..Keep::default() };
    Files::new(Arc::new(jail.unwrap()), Arc::new(MemoryReadHashes::default()), &state.join("changes"), keep)
}

/// Stands in for the engine. Code that blocks runs in place, so a call is done when it is first polled.
struct OneCall {
    id: ExecutionId,
    call: ToolCall,
    context: Arc<CallContext>,
    cancel: Cancel,
    capabilities: Capabilities,
}

impl CallHost for OneCall {
    fn execution_id(&self) -> ExecutionId {
        self.id
    }
    fn call(&self) -> &ToolCall {
        &self.call
    }
    fn context(&self) -> &CallContext {
        &self.context
    }
    fn attempt(&self) -> u32 {
        1
    }
    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
    fn output_limit(&self) -> usize {
        1 << 20
    }
    fn capacity(&self) -> usize {
        self.output_limit()
    }
    fn without_secrets(&self, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }
    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
    fn write(&self, _stream: OutputStream, _bytes: &[u8]) {}
    fn progress(&self, _percent: Option<u8>, _message: Option<&str>) {}
    fn warn(&self, _message: &str) {}
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn isolation(&self) -> haft_core::IsolationLevel {
        haft_core::IsolationLevel::None
    }
    fn file_limits(&self) -> haft_core::Limits {
        haft_core::Limits::default()
    }
    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }
    fn workspace(&self) -> &dyn Workspace {
        &*self.capabilities.workspace
    }
    fn fit(&self, spec: GuestSpec) -> Result<GuestSpec, ToolError> {
        Ok(spec)
    }
    fn stage<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<GuestSpec, ToolError>> {
        Box::pin(async move { Ok(spec) })
    }
    fn contained(&self, _sandbox: &str, _by: &Enforcement) {}
    fn used(&self, _end: &GuestEnd) {}
    fn settings(&self) -> Arc<Map<String, Value>> {
        Arc::default()
    }
}

/// Makes one call, as a person's agent would, without policy and without approval.
pub fn call(files: &Arc<Files>, tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    let host = OneCall {
        id: ExecutionId::at(jiff::Timestamp::now()),
        call: ToolCall::new("attack", Arguments::default()),
        context: CallContext::owner(),
        cancel: Cancel::new(),
        capabilities: Capabilities { workspace: Arc::clone(files) as _, ..Capabilities::default() },
    };
    let original = Arguments::from(arguments);
    let value = original.parse().map_err(|problem| ToolError::bad_args(problem.to_string()))?;
    let prepared = tool.prepare(&Args { value, original })?;
    let running = pin!(prepared.execute(ToolCtx::new(Arc::new(host))));
    match running.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a file tool waits for something else than its own code"),
    }
}

/// Everything that a result says, to a model or to an operator.
pub fn everything(result: &Result<ToolOutput, ToolError>) -> String {
    match result {
        Ok(output) => format!("{output:?}"),
        Err(error) => format!("{error:?} {error}"),
    }
}

/// Panics where something is told that lies outside or is denied.
pub fn assert_nothing_leaks(said: &str, what: impl FnOnce() -> String) {
    // The last one is how the machine's own list of users begins.
    for secret in [CANARY, OUTSIDE_NAME, DENIED, "root:x:0:0"] {
        assert!(!said.contains(secret), "{secret} came out of {}: {said:.600}", what());
    }
}

/// All that can be known about a tree without opening links: content, kind, size, permissions, owner, times.
pub fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let known = fs::symlink_metadata(&path).unwrap();
        let content = match () {
            () if known.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
            () if known.is_dir() => String::new(),
            () => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        };
        let (mode, owner, inode) = (known.mode(), known.uid(), known.ino());
        let times = (known.mtime(), known.mtime_nsec(), known.ctime(), known.ctime_nsec());
        all.insert(path.clone(), format!("{mode:o} {owner} {inode} {times:?} {content}"));
        if known.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all
}

/// The regular files below a folder, links not followed, whose bytes hold that text.
pub fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let known = fs::symlink_metadata(&path).unwrap();
        if known.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if known.is_file()
            && memchr::memmem::find(&fs::read(&path).unwrap(), text.as_bytes()).is_some()
        {
            found.push(path);
        }
    }
    found
}

/// Ends the process when it takes too long: a call that hangs must fail the test, not stop it.
pub struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub fn new(limit: Duration, doing: impl Fn() -> String + Send + 'static) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < limit {
                thread::sleep(Duration::from_millis(100));
                if seen.load(Ordering::Relaxed) {
                    return;
                }
            }
            eprintln!("it hangs, or takes more than {limit:?}: {}", doing());
            std::process::abort();
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
