//! The suite for stores on PostgreSQL. Each test binary starts a server of its own, in a private folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod suite;

use haft_core::port::{Store as _, StoreError};
use haft_store::{DurableStore, Options, PostgresPlace};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use suite::{Home, durable, make::call, port};

/// A server that nobody else can reach: it listens on a socket in a folder of this test alone.
struct Server {
    folder: tempfile::TempDir,
    process: Child,
}

/// Debian's package puts the programs there; they are not on the path.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    found.sort();
    found.pop()
}

/// PostgreSQL does not run as root: then it runs as the user that its package made.
fn as_ordinary_user(program: &Path) -> Command {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

impl Server {
    fn start() -> Result<Self, String> {
        let bin = programs().ok_or("PostgreSQL is not installed")?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // The server's user has to get in, where that is another one.
        let _ = Command::new("chown").arg("postgres:postgres").arg(folder.path()).output();
        let data = folder.path().join("data");
        let made = as_ordinary_user(&bin.join("initdb"))
            .args(["--username=haft", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .map_err(|error| error.to_string())?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let process = as_ordinary_user(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "port=15433", "-c", "max_connections=50", "-k"])
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let server = Server { folder, process };
        let end = Instant::now() + Duration::from_secs(30);
        while server.sql("SELECT 1").is_err() {
            if Instant::now() > end {
                return Err("the server does not come up".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    fn sql(&self, sql: &str) -> Result<String, String> {
        let output = Command::new("psql")
            .args([
                "-X",
                "-A",
                "-t",
                "-U",
                "haft",
                "-p",
                "15433",
                "-d",
                "postgres",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
            ])
            .arg(self.folder.path())
            .args(["-c", sql])
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn place(&self, schema: &str) -> PostgresPlace {
        let folder = self.folder.path().display();
        let address = format!("host={folder} port=15433 user=haft dbname=postgres");
        PostgresPlace { schema: schema.to_owned(), ..PostgresPlace::new(address) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT: a fast shutdown, which ends its children, too.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

struct Schema<'a> {
    server: &'a Server,
    name: &'a str,
    keys: tempfile::TempDir,
}

impl Home for Schema<'_> {
    fn open_with(&self, options: Options) -> DurableStore {
        DurableStore::open_postgres(&self.server.place(self.name), self.keys.path(), options)
            .expect("it opens")
    }

    fn crash(&self, store: DurableStore) {
        let name = format!("haft {}", store.instance());
        std::mem::forget(store);
        let ended = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
        );
        assert_eq!(self.server.sql(&ended).unwrap(), "t", "its connection is there");
        let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
        while self.server.sql(&gone).unwrap() != "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn refused(opened: Result<DurableStore, StoreError>) -> String {
    match opened {
        Ok(_) => panic!("it opened"),
        Err(error) => error.0,
    }
}

/// One server for all: starting one takes longer than everything else.
#[tokio::test]
async fn postgres_keeps_the_port_and_outlives_the_process() {
    let server = match Server::start() {
        Ok(server) => server,
        Err(why) => return haft_testkit::not_run("postgres_keeps_the_port_and_outlives_the_process", &why),
    };
    let schema = |name| Schema { server: &server, name, keys: tempfile::tempdir().unwrap() };
    port::run(&schema("effects").open()).await;
    port::run(&schema("whole").open_full()).await;
    durable::run(&schema("durable")).await;
    the_chain_verifies(&schema("chain")).await;
    a_lost_connection_comes_back(&schema("lost")).await;
    layouts_go_up_and_down(&schema("layouts")).await;
}

async fn the_chain_verifies(home: &Schema<'_>) {
    let (one, other) = (home.open(), home.open());
    for n in 0..20 {
        let store = if n % 2 == 0 { &one } else { &other };
        let call = call("t", "tool");
        store.intent(call.intent()).await.unwrap();
        store.outcome(call.outcome()).await.unwrap();
    }
    let verified = other.verify(None, &[]).await.unwrap();
    assert_eq!((verified.last, verified.bad), (20, None), "two processes, one chain");
    home.server.sql("UPDATE chain.audit_log SET body = replace(body, 'tool', 'fool') WHERE seq = 7").unwrap();
    assert_eq!(one.verify(None, &[]).await.unwrap().bad.unwrap().seq, 7);
}

async fn a_lost_connection_comes_back(home: &Schema<'_>) {
    let store = home.open();
    let before = call("t", "before");
    store.outcome(before.outcome()).await.unwrap();
    home.server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'haft %'")
        .unwrap();
    // What is told as not written is kept, and written once the server is there again.
    let (first, second) = (call("t", "first"), call("t", "second"));
    let error = store.outcome(first.outcome()).await.unwrap_err();
    assert!(error.0.contains("connects again by itself"), "{error}");
    store.outcome(second.outcome()).await.unwrap();
    let tools: Vec<_> =
        store.for_tenant("t").audit(10).await.unwrap().iter().map(|r| r.tool.to_string()).collect();
    assert_eq!(tools.len(), 3, "each once: {tools:?}");
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

async fn layouts_go_up_and_down(home: &Schema<'_>) {
    for from in 0..=DurableStore::LAYOUT {
        let store = home.open();
        store.outcome(call("t", "tool").outcome()).await.unwrap();
        drop(store);
        let place = home.server.place(home.name);
        DurableStore::change_postgres_layout(&place, from).unwrap();
        if (1..DurableStore::LAYOUT).contains(&from) {
            let error = refused(DurableStore::open_postgres(&place, home.keys.path(), Options::default()));
            assert!(error.contains("make a copy with `pg_dump`"), "{error}");
        }
        let allowed = PostgresPlace { may_change_layout: true, ..place };
        let store = DurableStore::open_postgres(&allowed, home.keys.path(), Options::default()).unwrap();
        store.keep_output("t", b"bytes".to_vec()).await.unwrap();
        assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "from {from}");
    }
}

#[test]
fn another_machine_needs_a_word_about_encryption() {
    let folder = tempfile::tempdir().unwrap();
    let place = PostgresPlace::new("postgres://haft@db.example.invalid/haft");
    let error = refused(DurableStore::open_postgres(&place, folder.path(), Options::default()));
    assert!(error.contains("without encryption"), "{error}");
    let place = PostgresPlace { schema: "x; drop".to_owned(), ..PostgresPlace::new("host=/nowhere") };
    assert!(
        refused(DurableStore::open_postgres(&place, folder.path(), Options::default())).contains("schema")
    );
    let nowhere = PostgresPlace::new("host=/nowhere user=haft:secret-word");
    let error = refused(DurableStore::open_postgres(&nowhere, folder.path(), Options::default()));
    assert!(
        error.contains("check that the database server is there") && !error.contains("secret-word"),
        "{error}"
    );
}
