//! What is remembered on a PostgreSQL server, through the real program.

use crate::{
    memory::{crash, text},
    support::Place,
};
use haft_testkit::Postgres;
use serde_json::json;

/// A place whose memory is on that server.
fn place_at(address: &str) -> Place {
    let place = Place::new();
    place.write("address", address);
    let file = place.work().join("address");
    place.own_config(&format!(
        "[store]\nbackend = 'postgres'\nurl = 'file:{}'\nretention = ['get_metrics 1ms']\n",
        file.display()
    ));
    place
}

#[test]
fn a_server_remembers_what_the_file_would() {
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return haft_testkit::not_run("a_server_remembers_what_the_file_would", &why),
    };
    let place = place_at(&server.address());
    assert_eq!(place.haft(&["call", "validate_content", "content=[1]", "--id", "c1"]).code, 0);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
    let runs = place.runs(&[]);
    assert_eq!((runs.len(), text(&runs[1], "tool")), (2, "validate_content"));
    let run = place.json(&["runs", "show", text(&runs[1], "executionId"), "--json"]);
    assert_eq!((&run["callId"], &run["arguments"]), (&json!("c1"), &json!({"content": "[1]"})));
    let stats = place.json(&["runs", "stats", "--json"]);
    assert_eq!(stats["tools"].as_array().unwrap().len(), 2);

    // Another machine, which has only the address, sees the same.
    let other = place_at(&server.address());
    assert_eq!(other.runs(&["--tool", "validate_content"]).len(), 1);

    let cut = place.run_with_tools(&["call", "long", "--json", "--set", "tools.output.max_bytes=256"]).json();
    let handle = format!("handle={}", text(&cut["metadata"], "outputHandle"));
    let read = place.haft(&["call", "read_output", &handle, "from_line=50"]);
    assert_eq!(read.stdout, "50: line 50\n[no more lines]\n", "{read:?}");

    crash(&place, &["call", "slow_touch"]);
    let shown = place.haft(&["recover"]);
    assert_eq!(shown.code, 6, "{shown:?}");
    assert!(shown.stdout.contains("slow_touch  outcome unknown, not re-run"), "{shown:?}");
    let decided = place.haft(&["recover", "--resume", "all"]);
    assert_eq!(decided.code, 0, "{decided:?}");
    assert_eq!(place.runs(&["--code", "outcome_unknown"]).len(), 1);

    let gone = place.json(&["gc", "--json"]);
    assert_eq!(gone["archives"][0]["records"], 1, "{gone}");
    let verified = place.json(&["audit", "verify", "--json"]);
    assert_eq!(verified["verified"], true);
    let archive = text(&gone["archives"][0], "path").to_owned();
    assert_eq!(place.haft(&["audit", "verify", "--archive", &archive]).code, 0);
    server
        .sql("UPDATE agent_tools.audit_log SET body = replace(body, 'c1', 'c2') WHERE body LIKE '%c1%'")
        .unwrap();
    let found = place.haft(&["audit", "verify"]);
    assert_eq!(found.code, 1, "{found:?}");

    let backup = place.haft(&["backup"]);
    assert_eq!(backup.code, 1, "{backup:?}");
    assert!(backup.stderr.contains("pg_dump"), "{backup:?}");

    // The layout of an earlier haft is changed only where that is allowed.
    let at = haft::PostgresPlace::new(server.address());
    haft::DurableStore::change_postgres_layout(&at, haft::DurableStore::LAYOUT - 1).unwrap();
    let refused = place.haft(&["runs", "list"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    for word in ["pg_dump", "store.allow_layout_change"] {
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
    assert_ne!(place.haft(&["call", "get_metrics"]).code, 0, "nothing succeeds that nobody remembers");
    assert_eq!(place.haft(&["--set", "store.allow_layout_change=true", "runs", "list"]).code, 0);
    assert_eq!(place.haft(&["runs", "list"]).code, 0);
}

#[test]
fn a_server_that_is_not_there_says_what_to_do() {
    let place = place_at("host=/nowhere user=haft dbname=haft password=hunter2");
    let said = place.haft(&["runs", "list"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("check that the database server is there"), "{said:?}");
    assert!(!said.stderr.contains("hunter2"), "{said:?}");
    assert_ne!(place.haft(&["call", "get_metrics"]).code, 0);
    let place = place_at("postgres://haft@db.example.invalid/haft?sslmode=prefer");
    let said = place.haft(&["runs", "list"]);
    assert!(said.stderr.contains("verify-full"), "{said:?}");
}
