//! What is special about a file: who can read it, how long it gets, what happens when it is locked, damaged, full.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod suite;

use haft_core::port::Store as _;
use haft_store::{DurableStore, Options};
use rusqlite::Connection;
use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};
use suite::make::call;

fn open(folder: &Path) -> Result<DurableStore, haft_core::port::StoreError> {
    DurableStore::open_sqlite(folder, Options::default())
}

fn refused(folder: &Path) -> String {
    match open(folder) {
        Ok(_) => panic!("it opened"),
        Err(error) => error.0,
    }
}

async fn effect(store: &DurableStore) -> Result<(), haft_core::port::StoreError> {
    let call = call("t", "write");
    store.intent(call.intent()).await?;
    store.outcome(call.outcome()).await
}

#[tokio::test]
async fn only_the_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let store = open(&state).unwrap();
    effect(&store).await.unwrap();
    store.back_up(&state.join("backups/now.db")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in ["haft.db", "haft.db-wal", "haft.db-shm", "audit.key", "backups/now.db", "haft.db.opening"] {
        assert_eq!(mode(&state.join(file)), 0o600, "{file}");
    }
    for folder in ["", "backups", "instances"] {
        assert_eq!(mode(&state.join(folder)), 0o700, "{folder:?}");
    }
    assert!(store.back_up(&state.join("backups/now.db")).await.is_err(), "a backup is never overwritten");
    store.check().await.unwrap();
}

#[tokio::test]
async fn the_log_does_not_grow_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let mut made = call("t", "write").without_effect();
    made.text = "x".repeat(40_000);
    for _ in 0..1_500 {
        made.id = haft_core::ExecutionId::at(made.at);
        store.outcome(made.outcome()).await.unwrap();
    }
    store.flush().await.unwrap();
    let length = fs::metadata(folder.path().join("haft.db-wal")).unwrap().len();
    assert!(length < 40 << 20, "60 MB were written, and the log has {length} bytes");
    let end = Instant::now() + Duration::from_secs(20);
    while fs::metadata(folder.path().join("haft.db-wal")).unwrap().len() > 4 << 20 {
        assert!(Instant::now() < end, "nobody cuts the log when there is time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_locked_database_is_said_to_be_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    effect(&store).await.unwrap();
    let other = Connection::open(folder.path().join("haft.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    // Nobody waits for this one; it is kept until it can be written.
    store.outcome(call("t", "read").without_effect().outcome()).await.unwrap();
    let error = store.intent(call("t", "write").intent()).await.unwrap_err();
    assert!(error.0.contains("another process holds the database"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(12), "it did not hang");
    // While nothing can be written, records are not taken as if they were kept.
    let error = store.outcome(call("t", "read2").without_effect().outcome()).await.unwrap_err();
    assert!(error.0.contains("holds the database"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    effect(&store).await.expect("it works again by itself");
    let tools: Vec<_> =
        store.for_tenant("t").audit(10).await.unwrap().iter().map(|r| r.tool.to_string()).collect();
    assert_eq!(tools.len(), 4, "{tools:?}");
    assert!(tools.contains(&"read".to_owned()) && tools.contains(&"read2".to_owned()));
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

#[tokio::test]
async fn damage_is_named_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haft.db");
    fs::write(&file, b"this is not a database, however long it may be: ".repeat(100)).unwrap();
    let error = refused(folder.path());
    assert!(error.contains("haft.db") && error.contains("bring back a backup"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haft.db");
    let store = open(folder.path()).unwrap();
    for _ in 0..200 {
        store.outcome(call("t", "read").without_effect().outcome()).await.unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    let count = bytes.len();
    for byte in &mut bytes[count / 2..count / 2 + 8192] {
        *byte = 0xA5;
    }
    fs::write(&file, bytes).unwrap();
    // Somebody ended without closing, so it is looked at.
    let database = Connection::open(&file).unwrap();
    database
        .execute("INSERT INTO instances (instance_id, process_id, begun_at) VALUES ('gone', 1, 1)", [])
        .unwrap();
    drop(database);
    let error = refused(folder.path());
    assert!(error.contains("bring back a backup"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = refused(&file.join("state"));
    assert!(error.contains("cannot be made"), "{error}");
}

#[tokio::test]
async fn layouts_go_up_and_down() {
    for from in 1..=DurableStore::LAYOUT {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        effect(&store).await.unwrap();
        drop(store);
        let copy = DurableStore::change_sqlite_layout(folder.path(), from).unwrap();
        assert!(copy.exists(), "what was there is copied first");
        let copies = fs::read_dir(folder.path().join("backups")).unwrap().count();
        let store = open(folder.path()).unwrap();
        let expected = copies + usize::from(from < DurableStore::LAYOUT);
        assert_eq!(fs::read_dir(folder.path().join("backups")).unwrap().count(), expected, "from {from}");
        assert_eq!(store.for_tenant("t").audit(10).await.unwrap().len(), 1, "from {from}");
        effect(&store).await.unwrap();
        store.keep_output("t", b"bytes".to_vec()).await.unwrap();
        assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "from {from}");
    }
    // All the way down, and up from nothing.
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    DurableStore::change_sqlite_layout(folder.path(), 0).unwrap();
    effect(&open(folder.path()).unwrap()).await.unwrap();
    // One that is in use is left alone.
    let store = open(folder.path()).unwrap();
    assert!(DurableStore::change_sqlite_layout(folder.path(), 1).unwrap_err().0.contains("end it first"));
    drop(store);
    // And one of a later haft.
    let database = Connection::open(folder.path().join("haft.db")).unwrap();
    database.execute("INSERT INTO haft_migrations VALUES (99, 'later', 0)", []).unwrap();
    drop(database);
    let error = refused(folder.path());
    assert!(error.contains("has the layout 99"), "{error}");
}

/// Work for a process of its own: makes effects, says which were confirmed, and what went wrong.
#[test]
#[ignore = "run by other tests, as a process of its own"]
fn child() {
    let folder = std::env::var("HAFT_TEST_FOLDER").expect("run by another test");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = match open(Path::new(&folder)) {
            Ok(store) => store,
            Err(error) => return println!("\nrefused {error}"),
        };
        let mut made = call("t", "write");
        made.text = "x".repeat(8_000);
        for _ in 0..400 {
            made.id = haft_core::ExecutionId::at(made.at);
            if let Err(error) = store.intent(made.intent()).await {
                println!("\nrefused {error}");
                break;
            }
            match store.outcome(made.outcome()).await {
                Ok(()) => println!("\nconfirmed {}", made.id),
                Err(error) => {
                    println!("\nrefused {error}");
                    break;
                }
            }
        }
        // As a process that is killed: nothing is closed.
        std::process::exit(0);
    });
}

fn said<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
}

async fn everything_confirmed_is_there(folder: &Path, confirmed: &[&str]) {
    let store = open(folder).unwrap();
    let tenant = store.for_tenant("t");
    for id in confirmed {
        let run = tenant.run(id.parse().unwrap()).await.unwrap();
        assert!(run.is_some(), "{id} was confirmed, and is not there");
    }
    store.check().await.unwrap();
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_confirmed() {
    const TEST: &str = "a_full_disk_loses_nothing_that_was_confirmed";
    let folder = tempfile::tempdir().unwrap();
    let (small, kept) = (folder.path().join("small"), folder.path().join("kept"));
    fs::create_dir(&small).unwrap();
    // A disk of its own for that process, and a copy of what is on it at the end.
    let script = "mount -t tmpfs -o size=3m,mode=700 none \"$0\" || exit 77; \"$1\" --ignored --exact child --nocapture; \
                  cp -a \"$0\" \"$2\"";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .args([&small, &std::env::current_exe().unwrap(), &kept])
        .env("HAFT_TEST_FOLDER", &small)
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) && kept.exists() => output,
        _ => return haft_testkit::not_run(TEST, "no small disk can be mounted here"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (confirmed, refused) = (said(&text, "confirmed"), said(&text, "refused"));
    assert!(!confirmed.is_empty() && confirmed.len() < 400, "{} were confirmed", confirmed.len());
    assert!(refused[0].contains("make room on the disk"), "{refused:?}");
    everything_confirmed_is_there(&kept, &confirmed).await;
}

#[tokio::test]
async fn a_failing_disk_loses_nothing_that_was_confirmed() {
    const TEST: &str = "a_failing_disk_loses_nothing_that_was_confirmed";
    let works = Command::new("strace").args(["-e", "inject=fsync:error=EIO:when=1", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return haft_testkit::not_run(TEST, "strace is not installed, or may not look at processes here");
    }
    for when in ["60+", "61"] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        drop(open(&state).unwrap());
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null"])
            .args(["-e", &format!("inject=fsync,fdatasync:error=EIO:when={when}")])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child", "--nocapture"])
            .env("HAFT_TEST_FOLDER", &state)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (confirmed, refused) = (said(&text, "confirmed"), said(&text, "refused"));
        assert!(!refused.is_empty(), "{when}: nothing failed: {text}");
        assert!(refused[0].contains("check the disk"), "{refused:?}");
        everything_confirmed_is_there(&state, &confirmed).await;
    }
}
