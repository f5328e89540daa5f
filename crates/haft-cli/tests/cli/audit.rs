//! The audit under attack: what somebody with the database does to it, and what `haft audit verify` says then.

use crate::support::{Place, Said};
use rusqlite::Connection;
use serde_json::Value;
use std::{fs, path::PathBuf};

fn state(place: &Place) -> PathBuf {
    place.home().join(".local/state/haft")
}

/// The database as an attacker has it: with the hash that everybody can compute, and no key.
fn database(place: &Place) -> Connection {
    let database = Connection::open(state(place).join("haft.db")).unwrap();
    database.execute_batch("CREATE TEMP TABLE hashes (seq INTEGER PRIMARY KEY, digest BLOB)").unwrap();
    let bodies: Vec<(i64, Option<String>)> = {
        let mut all = database.prepare("SELECT seq, body FROM audit_log").unwrap();
        let rows = all.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for (seq, body) in bodies {
        use sha2::{Digest as _, Sha256};
        let digest = Sha256::digest(body.unwrap_or_default().as_bytes()).to_vec();
        database.execute("INSERT INTO hashes VALUES (?1, ?2)", (seq, digest)).unwrap();
    }
    database
}

/// A place with six calls, two of which were archived.
fn recorded() -> Place {
    let place = Place::new();
    place.own_config("[store]\nretention = ['validate_content 1ms']\n");
    for call in 0..6 {
        let args: &[&str] = match call % 3 {
            0 => &["call", "validate_content", "content=[1]"],
            _ => &["call", "get_metrics"],
        };
        assert_eq!(place.haft(args).code, 0);
    }
    assert_eq!(place.haft(&["gc"]).code, 0);
    place
}

/// Another place that remembers the same.
fn copied(place: &Place) -> Place {
    let copy = Place::new();
    fs::create_dir_all(state(&copy)).unwrap();
    // What was written last may still be in the log beside the database.
    for file in ["haft.db", "haft.db-wal", "audit.key"] {
        if state(place).join(file).exists() {
            fs::copy(state(place).join(file), state(&copy).join(file)).unwrap();
        }
    }
    copy
}

#[test]
fn what_is_done_to_the_database_is_found() {
    let empty = "UPDATE audit_log SET digest = (SELECT digest FROM hashes WHERE hashes.seq = audit_log.seq), body = NULL";
    let gone = "DELETE FROM tool_executions WHERE seq = 3; DELETE FROM call_results WHERE seq = 3";
    // The first call was cut off, the fourth is archived, and the seventh record is that of the retention.
    let attacks = [
        ("a text is taken away", format!("{empty} WHERE seq = 3; {gone}"), "record 3: its text is gone"),
        (
            "all texts are taken away",
            format!("{empty} WHERE body IS NOT NULL; DELETE FROM tool_executions; DELETE FROM call_results"),
            "record 2: its text is gone",
        ),
        ("the record of the retention is emptied", format!("{empty} WHERE seq = 7"), "record 4: its text is gone"),
        ("the record of the retention goes", "DELETE FROM audit_log WHERE seq = 7".to_owned(), "record 7: it is missing"),
        (
            "texts change places",
            "CREATE TEMP TABLE t AS SELECT seq, body FROM audit_log WHERE seq IN (2, 3); \
             UPDATE audit_log SET body = (SELECT body FROM t WHERE t.seq = 5 - audit_log.seq) WHERE seq IN (2, 3)"
                .to_owned(),
            "record 2: its text, its place or its seal was changed",
        ),
        (
            "the tail is cut",
            "DELETE FROM audit_log WHERE seq > 5; DELETE FROM tool_executions WHERE seq > 5; \
             DELETE FROM call_results WHERE seq > 5"
                .to_owned(),
            "record 6: it is missing",
        ),
        (
            "the tail is cut, and the head turned back",
            "DELETE FROM audit_log WHERE seq > 5; DELETE FROM tool_executions WHERE seq > 5; \
             DELETE FROM call_results WHERE seq > 5; \
             UPDATE audit_head SET seq = 5, projected = 5, mac = (SELECT mac FROM audit_log WHERE seq = 5)"
                .to_owned(),
            "the end of the chain was changed",
        ),
        (
            "rows get other numbers",
            "DELETE FROM audit_log WHERE seq = 3; DELETE FROM tool_executions WHERE seq = 3; DELETE FROM call_results WHERE seq = 3; \
             UPDATE audit_log SET seq = seq - 1 WHERE seq > 3; UPDATE tool_executions SET seq = seq - 1 WHERE seq > 3; \
             UPDATE call_results SET seq = seq - 1 WHERE seq > 3; UPDATE audit_head SET seq = 6, projected = 6"
                .to_owned(),
            "record 3: its text, its place or its seal was changed",
        ),
        ("the head is another one", "UPDATE audit_head SET ratchet = randomblob(32)".to_owned(), "the end of the chain was changed"),
        ("a result is another one", "UPDATE call_results SET result = CAST('{}' AS BLOB) WHERE seq = 3".to_owned(), "record 3: its arguments or its result"),
        ("a list says something else", "UPDATE tool_executions SET tool_name = 'read_file' WHERE seq = 3".to_owned(), "record 3: the table of executions says something else"),
    ];
    let before = recorded();
    let untouched = before.haft(&["audit", "verify"]);
    assert_eq!(untouched.code, 0, "the control: {untouched:?}");
    for (what, sql, found) in attacks {
        let place = copied(&before);
        database(&place).execute_batch(&sql).unwrap_or_else(|error| panic!("{what}: {error}"));
        let said = place.haft(&["audit", "verify"]);
        assert_eq!(said.code, 1, "{what}: {said:?}");
        assert!(said.stdout.contains(found), "{what}: {said:?}");
        assert!(said.stderr.contains("keep a copy of the database as evidence"), "{what}: {said:?}");
    }
    let headless = copied(&before);
    database(&headless).execute_batch("DELETE FROM audit_head; DELETE FROM facts").unwrap();
    let said = headless.haft(&["audit", "verify"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("the audit has records and no head"), "{said:?}");
}

/// The key and the ends of the chain elsewhere: what is still not shown without them is shown with them.
#[test]
fn an_old_copy_and_a_new_chain_are_found_where_heads_were_told() {
    let place = Place::new();
    let elsewhere = place.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let (key, heads) = (elsewhere.join("audit.key"), elsewhere.join("heads.jsonl"));
    let config = format!("[audit]\nkey_file = '{}'\nhead_sink = '{}'\n", key.display(), heads.display());
    place.own_config(&config);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
    assert!(key.exists() && !state(&place).join("audit.key").exists());
    let (database, copy) = (state(&place).join("haft.db"), elsewhere.join("old.db"));
    assert_eq!(place.haft(&["backup", copy.to_str().unwrap()]).code, 0);
    for _ in 0..2 {
        assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
    }
    let told: Vec<Value> =
        fs::read_to_string(&heads).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.last().unwrap()["seq"], 3, "{told:?}");
    let said = place.haft(&["audit", "verify"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.stderr, "", "heads were told, so nothing is left to say");

    // The whole database is put back to an older one, with its head and its key of then.
    for extra in ["haft.db-wal", "haft.db-shm"] {
        let _ = fs::remove_file(state(&place).join(extra));
    }
    fs::copy(&copy, &database).unwrap();
    let said = place.haft(&["audit", "verify"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stdout.contains("record 2: it is missing: it was told elsewhere"), "{said:?}");
    // Without them nobody can tell, and verify says so.
    place.own_config(&format!("[audit]\nkey_file = '{}'\n", key.display()));
    let said = place.haft(&["audit", "verify"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("the whole database was replaced with an older copy"), "{said:?}");
    let against = place.haft(&["audit", "verify", "--against", heads.to_str().unwrap()]);
    assert_eq!(against.code, 1, "{against:?}");

    // All of it is taken away, and a new chain begun.
    fs::remove_dir_all(state(&place)).unwrap();
    place.own_config(&config);
    for _ in 0..4 {
        assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
    }
    let said = place.haft(&["audit", "verify"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stdout.contains("told elsewhere"), "{said:?}");
}

#[test]
fn the_key_is_a_credential_of_the_service() {
    let place = Place::new();
    let credentials = place.home().join("credentials");
    fs::create_dir(&credentials).unwrap();
    place.own_config("[audit]\nkey_file = 'credential:haft-audit'\nhead_sink = 'stderr'\n");
    let run = |args: &[&str], given: bool| {
        let mut command = place.program(args);
        if given {
            command.env("CREDENTIALS_DIRECTORY", &credentials);
        }
        Said::of(command.output().expect("it starts"))
    };
    fs::write(credentials.join("haft-audit"), "ab".repeat(32)).unwrap();
    let said = run(&["call", "get_metrics"], true);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains(r#"{"head":{"#), "{said:?}");
    assert!(!state(&place).join("audit.key").exists());
    assert_eq!(run(&["audit", "verify"], true).code, 0);
    // Without it calls go on: the key is for checking.
    assert_eq!(run(&["call", "get_metrics"], false).code, 0);
    let said = run(&["audit", "verify"], false);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("the audit's first key"), "{said:?}");
    fs::write(credentials.join("haft-audit"), "cd".repeat(32)).unwrap();
    assert_eq!(run(&["audit", "verify"], true).code, 1, "another key fits nothing");
}

#[test]
fn a_sink_that_cannot_be_written_is_said_before_anything_runs() {
    let place = Place::new();
    place.own_config("[audit]\nhead_sink = '/not/there/heads.jsonl'\n");
    let said = place.haft(&["audit", "verify"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("audit.head_sink: /not/there/heads.jsonl cannot be added to"), "{said:?}");
}
