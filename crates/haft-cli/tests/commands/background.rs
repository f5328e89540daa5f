//! Commands that run on.

use crate::world::{World, daemons, in_world, mark, none_left, processes, somebody};
use haft::{CallContext, ErrorCode, Status, ToolResult};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 11] = [
        ("background::start_look_write_end", start_look_write_end),
        ("background::what_it_did_is_on_record_once", what_it_did_is_on_record_once),
        ("background::a_terminal", a_terminal),
        ("background::signals", signals),
        ("background::a_kill_leaves_nothing", a_kill_leaves_nothing),
        ("background::nobody_else_reaches_it", nobody_else_reaches_it),
        ("background::sixteen_at_once", sixteen_at_once),
        (
            "background::it_ends_with_its_session_and_with_the_engine",
            it_ends_with_its_session_and_with_the_engine,
        ),
        ("background::much_output_is_counted", much_output_is_counted),
        ("background::it_ends_when_haft_is_killed", it_ends_when_haft_is_killed),
        ("background::it_ends_at_a_shutdown", it_ends_at_a_shutdown),
    ];
    crate::world::trials(tests)
}

/// The value of a result that must have succeeded.
fn value(result: &ToolResult) -> &Value {
    assert_eq!(result.status, Status::Success, "{result:?}");
    result.output.as_ref().unwrap()
}

async fn start(world: &World, arguments: Value) -> String {
    value(&world.call("start_command", arguments).await)["id"].as_str().unwrap().to_owned()
}

/// Looks until that is among what came, or until it has ended.
async fn look_for(world: &World, id: &str, wanted: &str) -> Value {
    let (mut all, end) = (String::new(), Instant::now() + Duration::from_secs(20));
    loop {
        let result = world.call("poll_command", json!({"id": id, "wait_ms": 1000})).await;
        let seen = value(&result).clone();
        all.push_str(seen["stdout"].as_str().unwrap());
        if all.contains(wanted) || seen["running"] == json!(false) {
            assert!(all.contains(wanted), "{wanted} is not in {all:?}: {seen}");
            return seen;
        }
        assert!(Instant::now() < end, "{wanted} is not in {all:?}");
    }
}

async fn its_end(world: &World, id: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let result = world.call("poll_command", json!({"id": id, "wait_ms": 1000})).await;
        let seen = value(&result).clone();
        if seen["running"] == json!(false) {
            return seen;
        }
        assert!(Instant::now() < end, "{seen}");
    }
}

fn start_look_write_end(name: &str) {
    in_world(name, async |world| {
        let command = "echo ready; echo oops >&2; while read line; do echo got $line; done; exit 4";
        let id = start(&world, json!({"command": command})).await;
        assert!(id.len() > 30, "it cannot be guessed: {id}");
        look_for(&world, &id, "ready\n").await;
        let listed = world.call("list_commands", json!({})).await;
        assert_eq!(value(&listed)["commands"][0]["id"], json!(id));
        assert_eq!(value(&listed)["commands"][0]["running"], json!(true));

        assert_eq!(
            world.call("write_command", json!({"id": id, "input": "one\n"})).await.text(),
            "4 bytes written"
        );
        look_for(&world, &id, "got one\n").await;
        let start = Instant::now();
        let nothing = world.call("poll_command", json!({"id": id, "wait_ms": 300})).await;
        assert_eq!(
            (value(&nothing)["stdout"].as_str(), value(&nothing)["running"].as_bool()),
            (Some(""), Some(true))
        );
        assert!(start.elapsed() >= Duration::from_millis(300), "it waits");

        world.call("write_command", json!({"id": id, "input": "two\n", "close": true})).await;
        let seen = its_end(&world, &id).await;
        assert_eq!((&seen["exit_code"], &seen["running"]), (&json!(4), &json!(false)));
        let all = world.call("poll_command", json!({"id": id, "cursor": 0})).await;
        assert_eq!(value(&all)["stdout"], json!("ready\ngot one\ngot two\n"));
        assert_eq!((&value(&all)["stderr"], &value(&all)["dropped"]), (&json!("oops\n"), &json!(0)));
        assert!(all.text().starts_with("[ended with exit code 4; cursor "), "{}", all.text());
        for late in [
            ("write_command", json!({"id": id, "input": "x"})),
            ("signal_command", json!({"id": id, "signal": "interrupt"})),
        ] {
            let result = world.call(late.0, late.1).await;
            assert!(result.text().contains("has ended"), "{}", result.text());
        }
    });
}

fn what_it_did_is_on_record_once(name: &str) {
    in_world(name, async |world| {
        let started = world.call("start_command", json!({"command": "echo $HAFT_EFFECT_ID"})).await;
        let id = value(&started)["id"].as_str().unwrap().to_owned();
        assert_eq!(started.metadata.enforcement.as_ref().unwrap().jail, "namespace");
        let sandbox = started.metadata.sandbox_id.clone().unwrap();
        let seen = look_for(&world, &id, "-").await;
        assert!(seen["stdout"].as_str().unwrap().contains(&started.metadata.execution_id.to_string()));
        its_end(&world, &id).await;
        let records = world.haft.store().for_tenant("local").audit(100).await.unwrap();
        let measured: Vec<_> = records.iter().filter(|record| record.metadata.metrics.is_some()).collect();
        assert_eq!(measured.len(), 1, "what it used is counted once");
        assert_eq!((&*measured[0].tool, &measured[0].metadata.sandbox_id), ("poll_command", &Some(sandbox)));
    });
}

fn a_terminal(name: &str) {
    in_world(name, async |world| {
        let command = "stty -echo; tty -s && echo terminal; stty size; read x; stty size; echo end";
        let terminal = json!({"rows": 33, "columns": 77});
        let id = start(&world, json!({"command": command, "terminal": terminal})).await;
        look_for(&world, &id, "33 77").await;
        let resized = world.call("resize_command", json!({"id": id, "rows": 50, "columns": 100})).await;
        assert_eq!(resized.status, Status::Success, "{resized:?}");
        world.call("write_command", json!({"id": id, "input": "\n"})).await;
        look_for(&world, &id, "50 100").await;
        its_end(&world, &id).await;
        let plain = start(&world, json!({"command": "sleep 100"})).await;
        let result = world.call("resize_command", json!({"id": plain, "rows": 50, "columns": 100})).await;
        assert_eq!(result.status, Status::ValidationError, "{result:?}");
    });
}

fn signals(name: &str) {
    in_world(name, async |world| {
        let command =
            "trap 'echo hup' HUP; trap 'echo int; exit 7' INT; echo ready; while :; do sleep 0.1; done";
        let id = start(&world, json!({"command": command})).await;
        look_for(&world, &id, "ready").await;
        world.call("signal_command", json!({"id": id, "signal": "hangup"})).await;
        look_for(&world, &id, "hup").await;
        world.call("signal_command", json!({"id": id, "signal": "interrupt"})).await;
        assert_eq!(its_end(&world, &id).await["exit_code"], json!(7));
        let result = world.call("signal_command", json!({"id": id, "signal": "kill"})).await;
        assert_eq!(result.status, Status::ValidationError, "kill_command does that");
    });
}

fn a_kill_leaves_nothing(name: &str) {
    in_world(name, async |world| {
        for force in [false, true] {
            let mark = mark();
            let id = start(&world, json!({"command": format!("{}; sleep 1000", daemons(&mark))})).await;
            look_for(&world, &id, "ready").await;
            assert!(!processes(&format!("sleep 7{mark}")).is_empty());
            let killed = world.call("kill_command", json!({"id": id, "force": force})).await;
            assert_eq!(value(&killed)["running"], json!(false));
            none_left(&format!("sleep 7{mark}"));
            assert_eq!(
                world.call("kill_command", json!({"id": id})).await.status,
                Status::Success,
                "twice is once"
            );
        }
        assert_eq!(world.haft.background_commands().running(), 0);
    });
}

fn nobody_else_reaches_it(name: &str) {
    in_world(name, async |world| {
        let (ada, bob, other) = (somebody("acme", "one"), somebody("acme", "two"), somebody("other", "one"));
        let started =
            world.call_as(&ada, "start_command", json!({"command": "echo secret; sleep 100"})).await;
        let id = value(&started)["id"].as_str().unwrap().to_owned();
        let calls = [
            ("poll_command", json!({"id": id})),
            ("write_command", json!({"id": id, "input": "x"})),
            ("signal_command", json!({"id": id, "signal": "terminate"})),
            ("resize_command", json!({"id": id, "rows": 1, "columns": 1})),
            ("kill_command", json!({"id": id})),
        ];
        let agent = Arc::new(CallContext { agent: "another".into(), ..CallContext::clone(&ada) });
        let talk = Arc::new(CallContext { conversation: Some("c".into()), ..CallContext::clone(&ada) });
        for who in [&bob, &other, &agent, &talk] {
            for (tool, arguments) in &calls {
                let result = world.call_as(who, tool, arguments.clone()).await;
                assert_eq!(result.status, Status::ValidationError, "{tool}");
                assert!(result.text().contains("This session has no command"), "{}", result.text());
            }
            let listed = world.call_as(who, "list_commands", json!({})).await;
            assert_eq!(value(&listed)["commands"], json!([]));
        }
        let seen = world.call_as(&ada, "poll_command", json!({"id": id, "wait_ms": 5000})).await;
        assert_eq!(value(&seen)["running"], json!(true));
    });
}

fn sixteen_at_once(name: &str) {
    in_world(name, async |world| {
        let (ada, bob) = (somebody("acme", "one"), somebody("acme", "two"));
        for _ in 0..16 {
            value(&world.call_as(&ada, "start_command", json!({"command": "sleep 100"})).await);
        }
        let result = world.call_as(&ada, "start_command", json!({"command": "sleep 100"})).await;
        assert_eq!(result.error.as_ref().unwrap().code, ErrorCode::ConcurrentLimitExceeded, "{result:?}");
        value(&world.call_as(&bob, "start_command", json!({"command": "sleep 100"})).await);
        let listed = world.call_as(&ada, "list_commands", json!({})).await;
        let first = value(&listed)["commands"][0]["id"].clone();
        value(&world.call_as(&ada, "kill_command", json!({"id": first, "force": true})).await);
        value(&world.call_as(&ada, "start_command", json!({"command": "sleep 100"})).await);
        assert_eq!(world.haft.background_commands().end_all().await, 17);
    });
}

fn it_ends_with_its_session_and_with_the_engine(name: &str) {
    in_world(name, async |world| {
        let (one, two) = (mark(), mark());
        let (ada, bob) = (somebody("acme", "one"), somebody("acme", "two"));
        for (who, mark) in [(&ada, &one), (&bob, &two)] {
            let command = format!("{}; sleep 1000", daemons(mark));
            value(&world.call_as(who, "start_command", json!({"command": command})).await);
        }
        let soon = Instant::now() + Duration::from_secs(20);
        while processes(&format!("sleep 7{one}")).len() < 2 || processes(&format!("sleep 7{two}")).len() < 2 {
            assert!(Instant::now() < soon);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let background = world.haft.background_commands().clone();
        assert_eq!(background.end_session("other", "one").await, 0, "of another tenant");
        assert_eq!(background.end_session("acme", "one").await, 1);
        assert_eq!(processes(&format!("sleep 7{one}")), Vec::<String>::new(), "at once");
        assert!(!processes(&format!("sleep 7{two}")).is_empty(), "the other goes on");
        drop(background);
        drop(world);
        none_left(&format!("sleep 7{two}"));
    });
}

fn much_output_is_counted(name: &str) {
    in_world(name, async |world| {
        const SIZE: u64 = 3_000_000;
        let id =
            start(&world, json!({"command": format!("head -c {SIZE} /dev/zero | tr '\\0' x; echo end")}))
                .await;
        let end = Instant::now() + Duration::from_secs(20);
        while value(&world.call("list_commands", json!({})).await)["commands"][0]["running"] == json!(true) {
            assert!(Instant::now() < end);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (mut cursor, mut seen, mut dropped, mut looks) = (0, 0, 0, 0);
        loop {
            let result = world.call("poll_command", json!({"id": id, "cursor": cursor})).await;
            assert!(!result.metadata.output_truncated, "what is given is seen");
            let part = value(&result);
            seen += part["stdout"].as_str().unwrap().len() as u64;
            dropped += part["dropped"].as_u64().unwrap();
            cursor = part["cursor"].as_u64().unwrap();
            looks += 1;
            if part["more"] == json!(0) {
                break;
            }
        }
        assert_eq!(seen + dropped, SIZE + 4, "not a byte is unaccounted for");
        assert_eq!(cursor, SIZE + 4);
        assert_eq!(seen, 1 << 20);
        assert!(looks > 5, "{looks}");
    });
}

/// A haft of its own that starts a command and waits to be killed.
pub fn be_haft() -> ! {
    let mark = std::env::args().nth(2).unwrap();
    in_world("be_haft", async |world| {
        let command = format!("{}; sleep 1000", daemons(&mark));
        value(&world.call("start_command", json!({"command": command})).await);
        std::future::pending::<()>().await;
    });
    std::process::exit(0)
}

fn it_ends_when_haft_is_killed(name: &str) {
    in_world(name, async |_world| {
        let mark = mark();
        let own = std::env::current_exe().unwrap();
        let mut haft = std::process::Command::new(own).args(["--haft", &mark]).spawn().unwrap();
        let soon = Instant::now() + Duration::from_secs(20);
        while processes(&format!("sleep 7{mark}")).len() < 2 {
            assert!(Instant::now() < soon, "it never started");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        haft.kill().unwrap();
        haft.wait().unwrap();
        none_left(&format!("sleep 7{mark}"));
    });
}

fn it_ends_at_a_shutdown(name: &str) {
    in_world(name, async |world| {
        let mark = mark();
        let command = format!("{}; sleep 1000", daemons(&mark));
        let id = start(&world, json!({"command": command})).await;
        look_for(&world, &id, "ready").await;
        world.haft.shutdown_now().await;
        assert_eq!(processes(&format!("sleep 7{mark}")), Vec::<String>::new());
    });
}
