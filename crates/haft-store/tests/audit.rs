//! The audit cannot be quietly changed: every change is found, and named.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod suite;

use haft_core::{
    Status, Tier,
    port::{AuditQuery, Clock, Store as _},
};
use haft_store::{AuditHead, Durability, DurableStore, ExportFormat, HeadSink, Options, RetentionRule};
use jiff::Timestamp;
use rusqlite::Connection;
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use suite::make::{after, call, noon};

fn open(folder: &Path) -> DurableStore {
    DurableStore::open_sqlite(folder, Options::default()).unwrap()
}

/// A chain of ten records, closed; what somebody does to the file; what is found afterwards.
async fn tampered(change: impl FnOnce(&Connection)) -> Option<(i64, String)> {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..10 {
        store.outcome(call("t", &format!("tool_{n}")).at(after(n)).without_effect().outcome()).await.unwrap();
    }
    store.for_tenant("t").audit(1).await.unwrap();
    drop(store);
    change(&database(folder.path()));
    let store = match DurableStore::open_sqlite(folder.path(), Options::default()) {
        Ok(store) => store,
        Err(error) => return Some((-1, error.to_string())),
    };
    let verified = store.verify(None, &[]).await.unwrap();
    verified.bad.map(|bad| (bad.seq, bad.what))
}

/// The database as an attacker has it: with the hash that everybody can compute.
fn database(folder: &Path) -> Connection {
    let database = Connection::open(folder.join("haft.db")).unwrap();
    database.execute_batch("CREATE TEMP TABLE hashes (seq INTEGER PRIMARY KEY, digest BLOB)").unwrap();
    let bodies: Vec<(i64, Option<String>)> = {
        let mut all = database.prepare("SELECT seq, body FROM audit_log").unwrap();
        let rows = all.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for (seq, body) in bodies {
        let digest = <sha2::Sha256 as sha2::Digest>::digest(body.unwrap_or_default().as_bytes()).to_vec();
        database.execute("INSERT INTO hashes VALUES (?1, ?2)", (seq, digest)).unwrap();
    }
    database
}

fn run(sql: &'static str) -> impl FnOnce(&Connection) {
    move |database| database.execute_batch(sql).unwrap()
}

#[tokio::test]
async fn an_untouched_chain_verifies() {
    assert_eq!(tampered(|_| ()).await, None);
}

#[tokio::test]
async fn a_changed_byte_is_found() {
    let changed = "UPDATE audit_log SET body = replace(body, 'tool_4', 'tool_5') WHERE seq = 5";
    assert_eq!(tampered(run(changed)).await, Some((5, "its text, its place or its seal was changed".into())));
}

#[tokio::test]
async fn a_deleted_row_is_found() {
    let (seq, what) = tampered(run("DELETE FROM audit_log WHERE seq = 4")).await.unwrap();
    assert_eq!((seq, &*what), (4, "it is missing: after 3 comes 5"));
}

#[tokio::test]
async fn two_swapped_rows_are_found() {
    let swap = "UPDATE audit_log SET seq = -1 WHERE seq = 6; UPDATE audit_log SET seq = 6 WHERE seq = 7; \
                UPDATE audit_log SET seq = 7 WHERE seq = -1";
    assert_eq!(tampered(run(swap)).await.unwrap().0, 6);
}

#[tokio::test]
async fn a_changed_seal_is_found() {
    assert_eq!(tampered(run("UPDATE audit_log SET mac = zeroblob(32) WHERE seq = 10")).await.unwrap().0, 10);
}

#[tokio::test]
async fn what_queries_look_at_is_compared_too() {
    let (seq, what) =
        tampered(run("UPDATE tool_executions SET agent_id = 'eve' WHERE seq = 3")).await.unwrap();
    assert_eq!((seq, &*what), (3, "the table of executions says something else about it"));
    let (seq, what) = tampered(run("DELETE FROM tool_executions WHERE seq = 8")).await.unwrap();
    assert_eq!((seq, &*what), (8, "it is missing in the table of executions"));
}

#[tokio::test]
async fn a_cut_tail_is_found_where_its_head_is_left() {
    assert_eq!(tampered(run("DELETE FROM audit_log WHERE seq > 8")).await.unwrap().0, 9);
}

/// Who cuts the tail and turns the head back has not the key of that place: it is nowhere any more.
#[tokio::test]
async fn a_head_that_was_turned_back_is_found() {
    let cut = "DELETE FROM audit_log WHERE seq > 8; DELETE FROM tool_executions WHERE seq > 8; \
               UPDATE audit_head SET seq = 8, mac = (SELECT mac FROM audit_log WHERE seq = 8), projected = 8";
    let (seq, what) = tampered(run(cut)).await.unwrap();
    assert_eq!(seq, 8);
    assert!(what.contains("the end of the chain was changed"), "{what}");
}

#[tokio::test]
async fn a_cut_beginning_is_found() {
    let cut = "UPDATE audit_head SET anchor_seq = 3, anchor_mac = (SELECT mac FROM audit_log WHERE seq = 3); \
               DELETE FROM audit_log WHERE seq <= 3; DELETE FROM tool_executions WHERE seq <= 3";
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..10 {
        store.outcome(call("t", "tool").at(after(n)).without_effect().outcome()).await.unwrap();
    }
    store.for_tenant("t").audit(1).await.unwrap();
    drop(store);
    Connection::open(folder.path().join("haft.db")).unwrap().execute_batch(cut).unwrap();
    let bad = open(folder.path()).verify(None, &[]).await.unwrap().bad.unwrap();
    assert_eq!(bad.what, "records up to it were cut off, and no retention is on record");
}

/// What attackers with the database file do to hide what they did, without a key. Each is found, and so is the record.
#[tokio::test]
async fn what_is_done_to_the_database_is_found() {
    let emptied = "UPDATE audit_log SET digest = (SELECT digest FROM hashes WHERE hashes.seq = audit_log.seq), body = NULL WHERE seq = 5; \
                   DELETE FROM tool_executions WHERE seq = 5; DELETE FROM call_results WHERE seq = 5";
    let attacks: &[(&str, &'static str, i64)] = &[
        ("a text is taken away, and its digest left", emptied, 5),
        (
            "all texts are taken away",
            "UPDATE audit_log SET digest = (SELECT digest FROM hashes WHERE hashes.seq = audit_log.seq), body = NULL; DELETE FROM tool_executions",
            1,
        ),
        (
            "a text is taken away with its digest",
            "UPDATE audit_log SET body = NULL, digest = NULL WHERE seq = 5",
            5,
        ),
        ("a text is emptied", "UPDATE audit_log SET body = '' WHERE seq = 5", 5),
        (
            "texts change places",
            "UPDATE audit_log SET digest = CAST(body AS BLOB) WHERE seq = 6; \
             UPDATE audit_log SET body = (SELECT body FROM audit_log WHERE seq = 7) WHERE seq = 6; \
             UPDATE audit_log SET body = (SELECT CAST(digest AS TEXT) FROM audit_log WHERE seq = 6) WHERE seq = 7; \
             UPDATE audit_log SET digest = NULL",
            6,
        ),
        (
            "the tail is cut",
            "DELETE FROM audit_log WHERE seq > 8; DELETE FROM tool_executions WHERE seq > 8",
            9,
        ),
        (
            "one goes, and those after it move up",
            "DELETE FROM audit_log WHERE seq = 4; DELETE FROM tool_executions WHERE seq = 4; \
             UPDATE audit_log SET seq = seq - 1 WHERE seq > 4; UPDATE tool_executions SET seq = seq - 1 WHERE seq > 4; \
             UPDATE audit_head SET seq = 9, projected = 9",
            4,
        ),
        ("the head has another key", "UPDATE audit_head SET ratchet = randomblob(32)", 10),
        ("the head has another seal", "UPDATE audit_head SET mac = randomblob(32)", 10),
        ("the head is of another chain", "UPDATE audit_head SET chain_id = 'other'", 0),
        ("the head goes", "DELETE FROM audit_head", -1),
        (
            "the beginning is cut, and the anchor moved",
            "UPDATE audit_head SET anchor_seq = 3, anchor_mac = (SELECT mac FROM audit_log WHERE seq = 3); \
             DELETE FROM audit_log WHERE seq <= 3; DELETE FROM tool_executions WHERE seq <= 3",
            3,
        ),
        (
            "the anchor is moved, and the rows stay",
            "UPDATE audit_head SET anchor_seq = 3, anchor_mac = (SELECT mac FROM audit_log WHERE seq = 3)",
            3,
        ),
        (
            "what queries look at is changed, and said to come later",
            "UPDATE audit_head SET projected = 0; UPDATE tool_executions SET agent_id = 'eve' WHERE seq = 3",
            3,
        ),
        ("who was the user", "UPDATE tool_executions SET user_id = 'eve' WHERE seq = 3", 3),
        ("how it failed", "UPDATE tool_executions SET error_code = 'TOOL_DENIED' WHERE seq = 3", 3),
        (
            "an execution that never was",
            "INSERT INTO tool_executions SELECT 99, 'x', tenant, call_id, tool_name, status, error_code, started_at, completed_at, \
             duration_ms, output_size_bytes, output_truncated, output_handle, sandbox_id, agent_id, user_id, session_id, batch_id, \
             batch_index, correlation_id, 'x', parameters_json, error_message, metadata_json FROM tool_executions \
             WHERE seq = 1",
            99,
        ),
        ("another result", "UPDATE call_results SET result = CAST('{}' AS BLOB) WHERE seq = 3", 3),
        ("a result of another execution", "UPDATE call_results SET execution_id = 'x' WHERE seq = 3", 3),
        ("other arguments", "UPDATE call_results SET input = '{}' WHERE seq = 3", 3),
        ("a record before the beginning", INVENTED_BEFORE, -5),
        ("a record after the end", INVENTED_AFTER, 5000),
        (
            "a result after the end",
            "INSERT INTO call_results (seq, execution_id, kept_at) VALUES (5000, 'x', 1)",
            5000,
        ),
        (
            "a record after the end, and nothing of it elsewhere",
            "INSERT INTO audit_log SELECT 5000, body, digest, zeroblob(32) FROM audit_log WHERE seq = 2",
            5000,
        ),
        (
            "a record before the beginning, and nothing of it elsewhere",
            "INSERT INTO audit_log SELECT -5, body, digest, zeroblob(32) FROM audit_log WHERE seq = 2",
            -5,
        ),
        (
            "a sandbox that stopped something after the end",
            "INSERT INTO sandbox_security_events (seq, tenant, violation_type, resource, description, was_blocked, \
             happened_at) VALUES (5000, 't', 'x', 'x', 'x', 1, 1)",
            5000,
        ),
        (
            "a sandbox that stopped something",
            "INSERT INTO sandbox_security_events (seq, tenant, violation_type, resource, description, was_blocked, \
             happened_at) VALUES (3, 't', 'x', 'x', 'x', 1, 1)",
            3,
        ),
        ("an index goes", "DROP INDEX ix_tool_executions_status", 10),
        (
            "an index has only some",
            "DROP INDEX ix_tool_executions_status; CREATE INDEX ix_tool_executions_status ON tool_executions (tenant, status, started_at, seq) WHERE seq <> 7",
            10,
        ),
        (
            "a trigger that takes away what comes",
            "CREATE TRIGGER later AFTER INSERT ON tool_executions BEGIN DELETE FROM tool_executions WHERE seq = NEW.seq; END",
            10,
        ),
        (
            "a table that is a view",
            "ALTER TABLE approvals RENAME TO hidden; CREATE VIEW approvals AS SELECT * FROM hidden",
            10,
        ),
    ];
    let mut unnoticed = Vec::new();
    for (what, sql, first_bad) in attacks {
        match tampered(run(sql)).await {
            Some((seq, _)) if seq == *first_bad => {}
            other => unnoticed.push(format!("{what}: {other:?}, not {first_bad}")),
        }
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
}

const INVENTED_BEFORE: &str = "INSERT INTO audit_log SELECT -5, body, digest, zeroblob(32) FROM audit_log WHERE seq = 2; \
     CREATE TEMP TABLE copy AS SELECT * FROM tool_executions WHERE seq = 2; UPDATE copy SET seq = -5, id = 'x'; \
     INSERT INTO tool_executions SELECT * FROM copy";
const INVENTED_AFTER: &str = "INSERT INTO audit_log SELECT 5000, body, digest, zeroblob(32) FROM audit_log WHERE seq = 2; \
     CREATE TEMP TABLE copy AS SELECT * FROM tool_executions WHERE seq = 2; UPDATE copy SET seq = 5000, id = 'x'; \
     INSERT INTO tool_executions SELECT * FROM copy";

/// Indexes that were built without a row answer without it, though the row is there and their words are as they were.
#[tokio::test]
async fn a_row_that_indexes_hide_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..10 {
        let made = call("t", &format!("tool_{n}")).at(after(n)).without_effect();
        store.outcome(made.outcome()).await.unwrap();
    }
    store.for_tenant("t").audit(1).await.unwrap();
    drop(store);
    let hide = "CREATE TEMP TABLE before AS SELECT name, sql FROM sqlite_schema; PRAGMA writable_schema = ON; \
                UPDATE sqlite_schema SET sql = sql || ' WHERE seq <> 7' WHERE name LIKE 'ix_tool_executions_%' \
                AND sql NOT LIKE '%WHERE%'; PRAGMA writable_schema = RESET; REINDEX; PRAGMA writable_schema = ON; \
                UPDATE sqlite_schema SET sql = (SELECT sql FROM before WHERE before.name = sqlite_schema.name) \
                WHERE name LIKE 'ix_tool_executions_%'; PRAGMA writable_schema = RESET";
    Connection::open(folder.path().join("haft.db")).unwrap().execute_batch(hide).unwrap();
    let store = open(folder.path());
    assert_eq!(store.for_tenant("t").audit(100).await.unwrap().len(), 9, "a query does not show it");
    let bad = store.verify(None, &[]).await.unwrap().bad.unwrap();
    assert!(bad.what.contains("do not agree") && bad.what.contains("ix_tool_executions"), "{bad:?}");
}

/// What sandboxes stopped is in the sealed record, and the table that repeats it must say the same.
#[tokio::test]
async fn what_sandboxes_stopped_is_compared_too() {
    for (change, is_found) in [
        ("SELECT 1", false),
        ("DELETE FROM sandbox_security_events", true),
        ("UPDATE sandbox_security_events SET resource = '/elsewhere' WHERE event_id = 2", true),
        ("UPDATE sandbox_security_events SET was_blocked = 1", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let mut outcome = call("t", "tool").without_effect().outcome();
        let mut facts = (*outcome.audit.metadata).clone();
        let violation = haft_core::Violation {
            kind: "QuarantinedFile".into(),
            resource: "/w/.envrc".into(),
            description: "moved".into(),
            timestamp: noon(),
            was_blocked: false,
        };
        facts.violations =
            vec![violation.clone(), haft_core::Violation { resource: "/w/b".into(), ..violation }];
        outcome.audit.metadata = facts.into();
        store.outcome(outcome).await.unwrap();
        store.for_tenant("t").audit(1).await.unwrap();
        drop(store);
        Connection::open(folder.path().join("haft.db")).unwrap().execute_batch(change).unwrap();
        let bad = open(folder.path()).verify(None, &[]).await.unwrap().bad;
        assert_eq!(bad.as_ref().map(|bad| bad.seq), is_found.then_some(1), "{change}: {bad:?}");
    }
}

/// Somebody who checks while others write sees one moment, and no false alarm.
#[tokio::test]
async fn checking_while_others_write_raises_no_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (open(folder.path()), open(folder.path()));
    let writing = tokio::spawn(async move {
        for n in 0..200 {
            other.outcome(call("t", "tool").at(after(n)).without_effect().outcome()).await.unwrap();
        }
    });
    while !writing.is_finished() {
        assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
    }
    writing.await.unwrap();
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

#[derive(Default)]
struct Elsewhere(Mutex<Vec<AuditHead>>);

impl HeadSink for Elsewhere {
    fn head(&self, head: &AuditHead) {
        self.0.lock().unwrap().push(head.clone());
    }
}

/// The whole database brought back as it was: only a head that was told elsewhere shows it.
#[tokio::test]
async fn a_database_brought_back_is_found_with_a_sink() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(Elsewhere::default());
    let with_sink = || {
        let options = Options { sink: Some(Arc::clone(&sink) as Arc<dyn HeadSink>), ..Options::default() };
        DurableStore::open_sqlite(folder.path(), options).unwrap()
    };
    let record = |store: DurableStore| async move {
        store.outcome(call("t", "tool").outcome()).await.unwrap();
        drop(store);
    };
    record(with_sink()).await;
    let old = folder.path().join("old.db");
    open(folder.path()).back_up(&old).await.unwrap();
    record(with_sink()).await;
    record(with_sink()).await;
    let heads = sink.0.lock().unwrap().clone();
    assert_eq!(heads.last().unwrap().seq, 3, "closing tells the last one");
    let store = open(folder.path());
    assert_eq!(store.verify(None, &heads).await.unwrap().bad, None);
    drop(store);
    for extra in ["haft.db-wal", "haft.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(extra));
    }
    std::fs::copy(old, folder.path().join("haft.db")).unwrap();
    let store = open(folder.path());
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "without the sink nobody can tell");
    let bad = store.verify(None, &heads).await.unwrap().bad.unwrap();
    assert_eq!(bad.seq, 2);
    assert!(bad.what.contains("told elsewhere"), "{bad:?}");
    // And one that went on differently.
    store.outcome(call("t", "other").outcome()).await.unwrap();
    let bad = store.verify(None, &heads).await.unwrap().bad.unwrap();
    assert_eq!(bad.seq, 2);
}

#[tokio::test]
async fn the_first_key_can_be_kept_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.outcome(call("t", "tool").outcome()).await.unwrap();
    let moved = folder.path().join("offline.key");
    std::fs::rename(folder.path().join("audit.key"), &moved).unwrap();
    store.outcome(call("t", "tool").outcome()).await.expect("writing does not need it");
    let error = store.verify(None, &[]).await.unwrap_err();
    assert!(error.0.contains("where it was moved to"), "{error}");
    assert_eq!(store.verify(Some(&moved), &[]).await.unwrap().bad, None);
    std::fs::write(&moved, "00".repeat(32)).unwrap();
    assert_eq!(
        store.verify(Some(&moved), &[]).await.unwrap().bad.unwrap().seq,
        1,
        "another key fits nothing"
    );
}

/// A clock that a test moves.
struct Moved(AtomicI64);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

#[tokio::test]
async fn what_was_archived_still_verifies() {
    let folder = tempfile::tempdir().unwrap();
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let clock = Arc::new(Moved(AtomicI64::new(after(40 * DAY).as_microsecond())));
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    // Old ones of two tiers in turn, then a new one.
    for n in 0..6 {
        let mut call = call("t", "tool").at(after(n));
        let mut context = (*call.context).clone();
        context.tier = if n % 2 == 0 { Tier::Core } else { Tier::Enterprise };
        call.context = Arc::new(context);
        store.outcome(call.without_effect().outcome()).await.unwrap();
    }
    store.outcome(call("t", "new").at(after(40 * DAY)).without_effect().outcome()).await.unwrap();
    let days = |days: u64| Some(Duration::from_secs(days * 24 * 60 * 60));
    let rule = |tier, keep| RetentionRule { tier, tool: None, keep };
    assert_eq!(store.archive(&[]).await.unwrap(), None, "without a rule everything stays");

    let rules = [rule(Some(Tier::Enterprise), None), rule(None, days(7))];
    let first = store.archive(&rules).await.unwrap().expect("three are too old");
    assert_eq!((first.records, first.first, first.last), (3, 1, 5));
    assert_eq!(store.archive(&rules).await.unwrap(), None);
    let verified = store.verify(None, &[]).await.unwrap();
    assert_eq!((verified.first, verified.archived, verified.bad), (2, 2, None), "the first was cut off");
    let left = store.for_tenant("t").audit(100).await.unwrap();
    assert_eq!(left.len(), 4);

    let second = store.archive(&[rule(None, days(30))]).await.unwrap().expect("the others are, too");
    assert_eq!(second.records, 3);
    let verified = store.verify(None, &[]).await.unwrap();
    assert_eq!((verified.first, verified.bad), (7, None));
    for archived in [&first, &second] {
        let verified = store.verify_archive(&archived.path, None).unwrap();
        assert_eq!((verified.archived, verified.bad), (archived.records, None));
    }
    // A changed archive is found.
    let text = zstd_text(&first.path)
        .replace("\"tool\":\"tool\"", "\"tool\":\"tolo\"")
        .replace(r#"\"tool\":\"tool\""#, r#"\"tool\":\"tolo\""#);
    std::fs::write(&first.path, zstd::encode_all(text.as_bytes(), 3).unwrap()).unwrap();
    assert_eq!(store.verify_archive(&first.path, None).unwrap().bad.unwrap().seq, 1);
}

/// Eight old records of two tools in turn, of which `a` is archived, and a new one; what somebody does then; what is
/// found after one more retention, which must not cover for it.
async fn after_retention(change: impl FnOnce(&Connection), again: bool) -> Option<(i64, String)> {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicI64::new(after(40 * DAY).as_microsecond())));
    let opened = || {
        let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
        DurableStore::open_sqlite(folder.path(), options).unwrap()
    };
    let store = opened();
    let keep = |tool: &str, days: u64| RetentionRule {
        tier: None,
        tool: Some(tool.to_owned()),
        keep: Some(Duration::from_secs(days * 24 * 60 * 60)),
    };
    for n in 0..8 {
        let tool = if n % 2 == 1 { "a" } else { "b" };
        store.outcome(call("t", tool).at(after(n)).without_effect().outcome()).await.unwrap();
    }
    store.outcome(call("t", "new").at(after(40 * DAY)).without_effect().outcome()).await.unwrap();
    store.archive(&[keep("a", 7)]).await.unwrap().expect("four are too old");
    assert_eq!(
        store.verify(None, &[]).await.unwrap().bad,
        None,
        "2, 4, 6 and 8 are archived, and 10 says so"
    );
    drop(store);
    change(&database(folder.path()));
    let store = opened();
    if again {
        // The record of the first retention goes as well; what it named is named by the second one.
        let all = RetentionRule { tier: None, tool: None, keep: None };
        store.outcome(call("t", "c").at(after(9)).without_effect().outcome()).await.unwrap();
        store.archive(&[keep("c", 7), all]).await.unwrap().expect("one is too old");
    }
    store.verify(None, &[]).await.unwrap().bad.map(|bad| (bad.seq, bad.what))
}

#[tokio::test]
async fn a_text_is_gone_only_where_retention_names_it() {
    let empty = "UPDATE audit_log SET digest = (SELECT digest FROM hashes WHERE hashes.seq = audit_log.seq), body = NULL \
                 WHERE seq = 3; DELETE FROM tool_executions WHERE seq = 3; DELETE FROM call_results WHERE seq = 3";
    let gone = "its text is gone, and no record of retention names it";
    for again in [false, true] {
        assert_eq!(after_retention(|_| (), again).await, None, "again: {again}");
        assert_eq!(after_retention(run(empty), again).await, Some((3, gone.to_owned())), "again: {again}");
    }
    // The record of retention itself: taken away, emptied, or saying something else.
    let (seq, _) = after_retention(run("DELETE FROM audit_log WHERE seq = 10"), false).await.unwrap();
    assert_eq!(seq, 10);
    let emptied = "UPDATE audit_log SET digest = (SELECT digest FROM hashes WHERE hashes.seq = audit_log.seq), body = NULL \
                   WHERE seq = 10";
    assert_eq!(after_retention(run(emptied), false).await, Some((2, gone.to_owned())));
    let widened = "UPDATE audit_log SET body = replace(body, '[[2,2]', '[[2,3]') WHERE seq = 10";
    assert_eq!(after_retention(run(widened), false).await.unwrap().0, 10);
    let named = |database: &Connection| {
        let body = "SELECT body FROM audit_log WHERE seq = 10";
        let body: String = database.query_row(body, (), |row| row.get(0)).unwrap();
        assert!(body.contains(r#""emptied":[[2,2],[4,4],[6,6],[8,8]]"#), "{body}");
    };
    assert_eq!(after_retention(named, false).await, None);
}

/// A row in a table that is shown, beside a record that is archived or of no call.
#[tokio::test]
async fn a_row_beside_a_record_of_no_call_is_found() {
    const EXECUTION: &str = "CREATE TEMP TABLE copy AS SELECT * FROM tool_executions WHERE seq = 3; \
                             UPDATE copy SET seq = @here, execution_id = 'x', id = 'x'; INSERT INTO tool_executions SELECT * FROM copy";
    const RESULT: &str = "INSERT INTO call_results (seq, execution_id, kept_at) VALUES (@here, 'x', 1)";
    for (row, at, expected) in [
        (EXECUTION, 8, "it has no text, and the table of executions has one"),
        (EXECUTION, 10, "it is no call, and the table of executions has one"),
        (RESULT, 8, "its arguments or its result are kept otherwise than they were"),
        (RESULT, 10, "its arguments or its result are kept otherwise than they were"),
    ] {
        let sql = row.replace("@here", &at.to_string());
        let found = after_retention(|database| database.execute_batch(&sql).unwrap(), false).await;
        assert_eq!(found, Some((at, expected.to_owned())), "{sql}");
    }
}

/// A record of retention that is archived itself hands on what it named.
#[tokio::test]
async fn the_next_retention_names_what_an_archived_one_named() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicI64::new(noon().as_microsecond())));
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    let forever = RetentionRule { tier: None, tool: Some("kept".to_owned()), keep: None };
    let week = RetentionRule { tier: None, tool: None, keep: Some(Duration::from_secs(7 * 24 * 60 * 60)) };
    for round in 0..4_i64 {
        for tool in ["kept", "gone", "kept", "gone"] {
            let at = after(round * 40 * DAY);
            store.outcome(call("t", tool).at(at).without_effect().outcome()).await.unwrap();
        }
        clock.0.store(after((round + 1) * 40 * DAY).as_microsecond(), Ordering::SeqCst);
        while store.archive(&[forever.clone(), week.clone()]).await.unwrap().is_some() {}
        assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "round {round}");
    }
}

/// Also a licence that keeps no results has the hash of what really came in.
#[tokio::test]
async fn every_tier_seals_the_hash_of_what_came_in() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { audit_input: true, ..Options::default() };
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    let mut hashes = std::collections::BTreeSet::new();
    for tier in Tier::ALL {
        let mut call = call("t", "tool").at(noon()).without_effect();
        call.context = Arc::new(haft_core::CallContext { tier, ..(*call.context).clone() });
        store.outcome(call.outcome()).await.unwrap();
        let run = store.for_tenant("t").run(call.id).await.unwrap().expect("it is recorded");
        assert_eq!(run.arguments.is_some(), tier.keeps_results(), "{tier:?}");
        let sealed = run.record.hashes.unwrap();
        hashes.insert((sealed.input, sealed.output));
    }
    assert_eq!(hashes.len(), 1, "the same call has the same hashes, no matter who makes it: {hashes:?}");
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
    let core: String = Connection::open(folder.path().join("haft.db"))
        .unwrap()
        .query_row("SELECT body FROM audit_log WHERE seq = 1", (), |row| row.get(0))
        .unwrap();
    assert!(!core.contains("\"input\":"), "{core}");
}

/// seeds/000 §4.6, §6.1: a record holds parameters, the error's text and metadata, and so does the table.
#[tokio::test]
async fn the_table_of_executions_has_id_parameters_error_message_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let store = DurableStore::open_sqlite(folder.path(), Options::default()).unwrap();
    let mut failed = call("t", "tool").at(noon()).without_effect();
    (failed.status, failed.code) = (haft_core::Status::Failed, Some(haft_core::ErrorCode::ExecutionFailed));
    let mut large = call("t", "tool").at(noon()).without_effect();
    large.arguments = serde_json::json!({"path": "a.txt", "content": "x".repeat(1 << 20)}).into();
    for call in [&failed, &large] {
        store.outcome(call.outcome()).await.unwrap();
    }
    let run = store.for_tenant("t").run(failed.id).await.unwrap().unwrap();
    assert_eq!(run.record.error.as_deref(), Some(failed.text.as_str()));
    assert_eq!(run.record.input.as_ref(), Some(&failed.arguments));
    let database = Connection::open(folder.path().join("haft.db")).unwrap();
    let row = |id: &haft_core::ExecutionId| {
        let question = "SELECT id, parameters_json, error_message, metadata_json, status FROM tool_executions \
             WHERE execution_id = ?1";
        let columns = |row: &rusqlite::Row<'_>| {
            let text = |place: usize| row.get::<_, Option<String>>(place);
            Ok((text(0)?.unwrap(), text(1)?.unwrap(), text(2)?, text(3)?.unwrap(), row.get::<_, i64>(4)?))
        };
        database.query_row(question, [id.to_string()], columns).unwrap()
    };
    let (id, parameters, error, metadata, status) = row(&failed.id);
    assert!(id.parse::<uuid::Uuid>().is_ok(), "{id}");
    assert_eq!(
        (parameters.as_str(), error.as_deref()),
        (failed.arguments.as_str(), Some(failed.text.as_str()))
    );
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    assert_eq!((&metadata["executionId"], status), (&serde_json::json!(failed.id), 30));
    let (_, parameters, error, ..) = row(&large.id);
    let parameters: serde_json::Value = serde_json::from_str(&parameters).unwrap();
    assert!(parameters["path"] == "a.txt" && parameters.to_string().len() <= 64 << 10, "cut, and still JSON");
    assert_eq!(error, None);
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
    for change in ["id = 'x'", "parameters_json = '{}'", "error_message = 'fine'", "metadata_json = '{}'"] {
        database
            .execute_batch(&format!("BEGIN; UPDATE tool_executions SET {change} WHERE seq = 1; COMMIT;"))
            .unwrap();
        let bad = store.verify(None, &[]).await.unwrap().bad;
        assert_eq!(bad.map(|bad| bad.seq), Some(1), "{change}");
    }
}

#[tokio::test]
async fn without_audit_input_the_record_has_no_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { audit_input: false, ..Options::default() };
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    let call = call("t", "tool").at(noon()).without_effect();
    store.outcome(call.outcome()).await.unwrap();
    let run = store.for_tenant("t").run(call.id).await.unwrap().unwrap();
    assert_eq!(run.record.input, None);
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

/// seeds/000 §6.1: status is a number, and its meaning is written down.
#[tokio::test]
async fn the_numbers_of_statuses_are_those_of_the_page() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = DurableStore::open_sqlite(folder.path(), Options::default()).unwrap();
    let database = Connection::open(folder.path().join("haft.db")).unwrap();
    for status in haft_core::Status::ALL {
        let mut call = call("t", "tool").at(noon()).without_effect();
        call.status = status;
        store.outcome(call.outcome()).await.unwrap();
        store.for_tenant("t").run(call.id).await.unwrap().unwrap();
        let number: i64 = database
            .query_row(
                "SELECT status FROM tool_executions WHERE execution_id = ?1",
                [call.id.to_string()],
                |row| row.get(0),
            )
            .unwrap();
        let row = format!("| {number} | {} |", status.as_str());
        assert!(page.contains(&row), "docs/audit.md has no row `{row}`");
    }
}

fn zstd_text(path: &Path) -> String {
    String::from_utf8(zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn records_are_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let odd = call("t", "=cmd, \"x\"").at(noon());
    store.outcome(odd.without_effect().outcome()).await.unwrap();
    store.outcome(call("t", "plain").at(after(1)).without_effect().outcome()).await.unwrap();
    store.outcome(call("u", "others").without_effect().outcome()).await.unwrap();
    let mut csv = Vec::new();
    let count = store.export("t", AuditQuery::default(), ExportFormat::Csv, &mut csv).await.unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!((count, csv.lines().count()), (2, 3));
    assert!(csv.contains(",\"'=cmd, \"\"x\"\"\",Success,"), "not a formula: {csv}");
    let mut lines = Vec::new();
    let query = AuditQuery { status: Some(Status::Success), limit: 1, ..AuditQuery::default() };
    assert_eq!(store.export("t", query, ExportFormat::JsonLines, &mut lines).await.unwrap(), 2);
    let first = String::from_utf8(lines).unwrap().lines().next().unwrap().to_owned();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&first["seq"], &first["tool"]), (&2.into(), &"plain".into()));
}

/// However long the configuration keeps results: no longer than the licence of the call's owner includes.
#[tokio::test]
async fn results_are_kept_no_longer_than_a_licence_includes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicI64::new(noon().as_microsecond())));
    let durability = Durability::Full;
    let clock_of_all = Arc::clone(&clock) as Arc<dyn Clock>;
    let mut options = Options { clock: clock_of_all, durability, ..Options::default() };
    options.keep.results = None;
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    let mut calls = Vec::new();
    for tier in Tier::ALL {
        let mut call = call("t", "tool").at(noon()).without_effect();
        call.context = Arc::new(haft_core::CallContext { tier, ..(*call.context).clone() });
        store.outcome(call.outcome()).await.unwrap();
        calls.push((tier, call.id));
    }
    let day = 24 * 60 * 60 * 1_000_000;
    for (days, collects) in
        [(0, false), (6, false), (8, false), (8, true), (31, false), (31, true), (4000, true)]
    {
        clock.0.store(noon().as_microsecond() + days * day + 1, Ordering::SeqCst);
        if collects {
            store.gc().await.unwrap();
        }
        for (tier, id) in &calls {
            let kept = store.for_tenant("t").run(*id).await.unwrap().expect("the record stays");
            let included = match tier.longest_retention() {
                Some(longest) => days * 86_400 < i64::try_from(longest.as_secs()).unwrap(),
                None => true,
            };
            assert_eq!(
                (kept.result.is_some(), kept.arguments.is_some()),
                (included, included),
                "{tier:?} after {days} days"
            );
        }
    }
    // Not only hidden: only that of the highest tier is in the database.
    assert_eq!(store.gc().await.unwrap().results, 0);
}

/// A clock that jumps back changes nothing about the order in the chain.
#[tokio::test]
async fn a_clock_may_jump_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicI64::new(noon().as_microsecond())));
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let store = DurableStore::open_sqlite(folder.path(), options).unwrap();
    for n in 0..20_i64 {
        clock.0.store(noon().as_microsecond() - n * 3_600_000_000, Ordering::SeqCst);
        let call = call("t", "tool").at(clock.now());
        store.intent(call.intent()).await.unwrap();
        store.outcome(call.outcome()).await.unwrap();
    }
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
    assert_eq!(store.for_tenant("t").audit(100).await.unwrap().len(), 20);
}
