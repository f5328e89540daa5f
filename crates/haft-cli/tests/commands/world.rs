//! What the tests run calls with.

use haft::{
    CallContext, Decision, Folders, Haft, IsolationLevel, Request, ToolCall, ToolResult, ask_with, config,
    port::{AuditRecord, Jail as _},
};
use serde_json::Value;
use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// A test by name, which it is told.
pub type Test = (&'static str, fn(&'static str));

/// Tests as the harness takes them.
pub fn trials(tests: impl IntoIterator<Item = Test>) -> Vec<libtest_mimic::Trial> {
    let trial = |(name, test): Test| {
        libtest_mimic::Trial::test(name, move || {
            test(name);
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

/// A working folder with an engine on it.
pub struct World {
    pub haft: Haft,
    folder: tempfile::TempDir,
}

/// What is allowed here that is not by default: every call that asks is agreed to.
const CONFIG: &str = "[tools.approval]\ndenylist = []\n";

/// Runs a test in a world, if a jail can be had; else says so.
pub fn in_world<F: Future<Output = ()>>(name: &str, test: impl FnOnce(World) -> F) {
    in_world_with(name, "", test);
}

/// Runs a test in a world with more configuration.
pub fn in_world_with<F: Future<Output = ()>>(name: &str, more: &str, test: impl FnOnce(World) -> F) {
    let world = World::new(more);
    if let Err(reason) = world.jail_at_hand() {
        haft_testkit::not_run(&format!("commands::{name}"), &reason);
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test(world));
}

impl World {
    pub fn new(more: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "state"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        World { haft: engine(folder.path(), &format!("{CONFIG}{more}")), folder }
    }

    /// A world of that configuration, and nothing else.
    pub fn with(config: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "state"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        World { haft: engine(folder.path(), config), folder }
    }

    /// Another engine on the same folders.
    pub fn another(&self, more: &str) -> Haft {
        engine(self.folder.path(), &format!("{CONFIG}{more}"))
    }

    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program in a folder that commands do not see otherwise.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = self.folder.path().join("programs");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn jail_at_hand(&self) -> Result<(), String> {
        let mut options =
            haft_jail::guest::JailOptions::new(self.folder.path().join("probe"), "/nonexistent");
        options.warm = 0;
        fs::create_dir_all(self.folder.path().join("probe")).unwrap();
        let host = haft_jail::guest::JailHost::new(options).map_err(|error| error.to_string())?;
        let jail = haft_jail::guest::Auto::new(&host);
        jail.offers(IsolationLevel::Strict).map(drop).map_err(|unavailable| unavailable.to_string())
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.haft.execute(ToolCall::new(tool, arguments)).await
    }

    pub async fn call_as(&self, context: &Arc<CallContext>, tool: &str, arguments: Value) -> ToolResult {
        self.haft.execute(Request::new(ToolCall::new(tool, arguments)).context(Arc::clone(context))).await
    }

    /// The last audit record.
    pub async fn audit(&self) -> AuditRecord {
        let records = self.haft.store().for_tenant("local").audit(1000).await.unwrap();
        records.into_iter().max_by_key(|record| record.metadata.completed_at).unwrap()
    }
}

fn engine(folder: &Path, config: &str) -> Haft {
    let config = config::parse(config).unwrap_or_else(|error| panic!("{error}"));
    Haft::builder()
        .config(&config)
        .files(Folders::new(folder.join("work"), folder.join("state")))
        .approver(ask_with(|requests| requests.iter().map(|_| Decision::Approve).collect()))
        .build()
        .unwrap()
}

/// Somebody with a session of their own.
pub fn somebody(tenant: &str, session: &str) -> Arc<CallContext> {
    Arc::new(CallContext {
        tenant: tenant.into(),
        session: Some(session.into()),
        ..CallContext::clone(&CallContext::owner())
    })
}

/// A number that no other process has among its words.
pub fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes of this machine with that text among their words.
pub fn processes(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.contains(text))
        .collect()
}

/// Waits until no such process is left.
pub fn none_left(text: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    while !processes(text).is_empty() {
        assert!(Instant::now() < end, "left: {:?}", processes(text));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A script that starts sleepers which try to get away, says so, and goes on.
pub fn daemons(mark: &str) -> String {
    format!(
        "setsid sleep 7{mark} & (setsid sh -c 'trap \"\" TERM INT HUP; sleep 7{mark}; sleep 7{mark}' &) ; echo ready"
    )
}
