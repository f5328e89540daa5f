//! `run_command`.

use crate::world::{daemons, in_world, in_world_with, mark, none_left, processes};
use haft::{
    CallOptions, CancelReason, ErrorCode, EventPayload, ExecutionId, ModelBudget, OutputStream, Request,
    Status, ToolCall, port::OutputRange,
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 13] = [
        ("run_command::output_is_seen_while_it_runs", output_is_seen_while_it_runs),
        ("run_command::what_it_gives", what_it_gives),
        ("run_command::a_failure_keeps_its_output", a_failure_keeps_its_output),
        ("run_command::where_it_starts", where_it_starts),
        ("run_command::what_it_reads", what_it_reads),
        ("run_command::its_environment", its_environment),
        ("run_command::denied_files_are_not_there", denied_files_are_not_there),
        ("run_command::too_much_memory_is_named", too_much_memory_is_named),
        ("run_command::a_timeout_leaves_nothing", a_timeout_leaves_nothing),
        ("run_command::a_cancel_leaves_nothing", a_cancel_leaves_nothing),
        ("run_command::its_deadline_is_its_own_to_ask_for", its_deadline_is_its_own_to_ask_for),
        ("run_command::what_held_it_is_on_record", what_held_it_is_on_record),
        ("run_command::ten_megabytes", ten_megabytes),
    ];
    crate::world::trials(tests)
}

/// IT-CMD-01.
fn output_is_seen_while_it_runs(name: &str) {
    in_world(name, async |world| {
        let id = ExecutionId::at(haft::jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let call =
            ToolCall::new("run_command", json!({"command": "echo one; echo two >&2; sleep 5; echo three"}));
        let call = world.haft.execute(Request::new(call).options(options));
        let mut watch = world.haft.observe(id).unwrap();
        let start = Instant::now();
        let watching = tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Some(event) = watch.next().await {
                if let EventPayload::Output { stream, chunk, .. } = event.payload {
                    seen.push((stream, chunk, start.elapsed()));
                }
            }
            seen
        });
        let result = call.await;
        assert_eq!(result.status, Status::Success, "{result:?}");
        assert_eq!(result.text(), "one\nthree\n\n\n[stderr]\ntwo\n");
        let seen = watching.await.unwrap();
        let of = |wanted| seen.iter().filter(move |(stream, ..)| *stream == wanted);
        let text: String = of(OutputStream::Stdout).map(|(_, chunk, _)| chunk.as_str()).collect();
        assert_eq!(text, "one\nthree\n");
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let (_, _, when) = of(stream).next().unwrap();
            assert!(*when < Duration::from_millis(4500), "{stream:?} came only after {when:?}");
        }
        assert_eq!(world.audit().await.status, Status::Success, "and the result is on record");
    });
}

fn what_it_gives(name: &str) {
    in_world(name, async |world| {
        let result = world.call("Bash", json!({"command": "printf hello"})).await;
        assert_eq!(result.output, Some(json!({"exit_code": 0, "stdout": "hello", "stderr": ""})));
        assert_eq!((result.text(), result.metadata.output_size), ("hello", 5), "counted once");
        for bad in
            [json!({"command": " "}), json!({"command": "a\u{0}b"}), json!({}), json!({"command": [1]})]
        {
            assert_eq!(world.call("run_command", bad).await.status, Status::ValidationError);
        }
    });
}

fn a_failure_keeps_its_output(name: &str) {
    in_world(name, async |world| {
        let result = world.call("run_command", json!({"command": "echo before; echo why >&2; exit 3"})).await;
        let error = result.error.as_ref().unwrap();
        assert_eq!((result.status, error.code), (Status::Failed, ErrorCode::NonZeroExit));
        assert_eq!(
            (error.message.as_str(), error.data.as_deref()),
            ("exit code 3", Some(&json!({"exitCode": 3})))
        );
        let text = result.text();
        assert!(
            text.starts_with("exit code 3\n\n") && text.contains("before\n") && text.contains("why\n"),
            "{text}"
        );
        let result = world.call("run_command", json!({"command": "kill -9 $$"})).await;
        assert_eq!(result.error.unwrap().data.as_deref(), Some(&json!({"signal": 9})));
    });
}

fn where_it_starts(name: &str) {
    in_world(name, async |world| {
        world.write("sub/a.txt", "x");
        let result = world.call("run_command", json!({"command": "pwd; ls", "working_dir": "sub"})).await;
        assert_eq!(result.text(), format!("{}\na.txt\n", world.work().join("sub").display()));
        for (dir, why) in [("../..", "outside"), ("sub/a.txt", "folder"), ("nothing", "nothing")] {
            let result = world.call("run_command", json!({"command": "pwd", "working_dir": dir})).await;
            assert_ne!(result.status, Status::Success, "{dir}");
            assert!(result.text().contains(why) || result.text().contains(dir), "{dir}: {}", result.text());
        }
        // It is the folder that the file tools work in, too.
        world.call("run_command", json!({"command": "echo made > new.txt"})).await;
        assert_eq!(std::fs::read_to_string(world.work().join("new.txt")).unwrap(), "made\n");
    });
}

fn what_it_reads(name: &str) {
    in_world(name, async |world| {
        let result = world.call("run_command", json!({"command": "cat; echo end"})).await;
        assert_eq!(result.text(), "end\n", "nothing, and it does not wait");
        let text = "ä\n".repeat(40_000);
        let result = world.call("run_command", json!({"command": "wc -c", "stdin": text})).await;
        assert_eq!(result.text().trim(), text.len().to_string());
    });
}

fn its_environment(name: &str) {
    let more = "[tools.environment]\ndenylist = ['MY_*']\n[tools.commands]\npass_environment = ['CARGO_MANIFEST_DIR', 'HAFT_TEST_TOKEN']\n";
    in_world_with(name, more, async |world| {
        let command = "echo $GREETING; echo ${HAFT_EFFECT_ID:-none}; env | cut -d= -f1 | sort | tr '\\n' ' '";
        let result = world
            .call(
                "run_command",
                json!({"command": command, "env": {"GREETING": "hello", "HAFT_EFFECT_ID": "mine"}}),
            )
            .await;
        let text = result.text().to_owned();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("hello"));
        assert_eq!(lines.next(), Some(result.metadata.execution_id.to_string().as_str()), "it cannot be set");
        let names: Vec<&str> = lines.next().unwrap().split(' ').filter(|name| !name.is_empty()).collect();
        for name in names {
            let known = [
                "COLORTERM",
                "GREETING",
                "HAFT_EFFECT_ID",
                "HOME",
                "LANG",
                "PATH",
                "PWD",
                "SHLVL",
                "TERM",
                "TMPDIR",
                "TZ",
                "_",
                "OLDPWD",
                "CARGO_MANIFEST_DIR",
            ];
            assert!(known.contains(&name) || name.starts_with("LC_"), "{name} has no business there");
        }
        for denied in ["GITHUB_TOKEN", "my_thing", "AWS_REGION", "A_PASSWORD"] {
            let result = world.call("run_command", json!({"command": "true", "env": {denied: "x"}})).await;
            assert_eq!(result.status, Status::ValidationError, "{denied}");
            assert!(result.text().contains("tools.environment.denylist"), "{}", result.text());
        }
    });
}

fn denied_files_are_not_there(name: &str) {
    in_world(name, async |world| {
        world.write(".env", "PASSWORD=swordfish\n");
        world.write("sub/deploy.pem", "swordfish\n");
        world.write("plain", "swordfish\n");
        let result = world.call("run_command", json!({"command": "cat plain .env sub/deploy.pem"})).await;
        assert_eq!(result.text().matches("swordfish").count(), 1, "only the plain one: {}", result.text());
        let masked = &result.metadata.enforcement.as_ref().unwrap().details["masked"];
        assert_eq!(masked.as_array().unwrap().len(), 2, "{masked}");
    });
}

fn too_much_memory_is_named(name: &str) {
    in_world_with(name, "[tools.commands]\nmemory_bytes = 67108864\n", async |world| {
        let command = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
        let result = world.call("run_command", json!({"command": command})).await;
        let error = result.error.as_ref().unwrap();
        assert_eq!(error.code, ErrorCode::ResourceLimitExceeded, "{result:?}");
        assert_eq!(result.status, Status::SandboxError);
        let data = error.data.as_ref().unwrap();
        assert_eq!((&data["limit"], &data["allowed"]), (&json!("memoryBytes"), &json!(67_108_864)));
        assert!(data["used"].as_u64().unwrap() > 50_000_000, "{data}");
        assert!(
            error.message.contains("memoryBytes") && error.message.contains("67108864"),
            "{}",
            error.message
        );
        assert!(result.metadata.violations.iter().any(|violation| violation.kind == "MemoryLimitExceeded"));
        assert!(!world.audit().await.metadata.violations.is_empty());
    });
}

fn a_timeout_leaves_nothing(name: &str) {
    in_world(name, async |world| {
        let mark = mark();
        let command = format!("{}; sleep 1000", daemons(&mark));
        let start = Instant::now();
        let result = world.call("run_command", json!({"command": command, "timeout": 1})).await;
        assert_eq!(
            (result.status, result.error.as_ref().unwrap().code),
            (Status::Timeout, ErrorCode::Timeout)
        );
        assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
        assert!(
            result.text().contains("timed out after 1s") && result.text().contains("ready"),
            "{}",
            result.text()
        );
        none_left(&format!("sleep 7{mark}"));
    });
}

fn a_cancel_leaves_nothing(name: &str) {
    in_world(name, async |world| {
        let mark = mark();
        let id = ExecutionId::at(haft::jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let call =
            ToolCall::new("run_command", json!({"command": format!("{}; sleep 1000", daemons(&mark))}));
        let call = tokio::spawn(world.haft.execute(Request::new(call).options(options)));
        let soon = Instant::now() + Duration::from_secs(20);
        while processes(&format!("sleep 7{mark}")).len() < 2 {
            assert!(Instant::now() < soon, "it never started");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(world.haft.cancel(id, CancelReason::User, None));
        let result = call.await.unwrap();
        assert_eq!(result.status, Status::Cancelled, "{result:?}");
        none_left(&format!("sleep 7{mark}"));
        // A caller that goes away ends the command, too.
        let call =
            ToolCall::new("run_command", json!({"command": format!("{}; sleep 1000", daemons(&mark))}));
        let call = tokio::spawn(world.haft.execute(call));
        let soon = Instant::now() + Duration::from_secs(20);
        while processes(&format!("sleep 7{mark}")).len() < 2 {
            assert!(Instant::now() < soon, "it never started");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        call.abort();
        none_left(&format!("sleep 7{mark}"));
    });
}

fn its_deadline_is_its_own_to_ask_for(name: &str) {
    in_world_with(name, "[tools.timeouts]\nshell_commands_seconds = 1\n", async |world| {
        let sleep = |seconds: u64| json!({"command": "sleep 2; echo slept", "timeout": seconds});
        assert_eq!(world.call("run_command", sleep(20)).await.text(), "slept\n", "longer than the default");
        let result = world.call("run_command", json!({"command": "sleep 20"})).await;
        assert_eq!(result.status, Status::Timeout, "the default");
        let result = world.call("run_command", sleep(601)).await;
        assert_eq!(result.status, Status::ValidationError);
        assert!(result.text().contains("PT10M1S") && result.text().contains("PT10M "), "{}", result.text());
        // The caller's own deadline counts more.
        let options = CallOptions { timeout: Some(Duration::from_millis(500)), ..CallOptions::default() };
        let call = ToolCall::new("run_command", sleep(20));
        assert_eq!(world.haft.execute(Request::new(call).options(options)).await.status, Status::Timeout);
    });
}

fn what_held_it_is_on_record(name: &str) {
    in_world(name, async |world| {
        let result = world.call("run_command", json!({"command": "echo hello > made"})).await;
        let record = world.audit().await;
        for metadata in [&result.metadata, &record.metadata] {
            let enforcement = metadata.enforcement.as_ref().unwrap();
            assert_eq!(enforcement.jail, "namespace");
            assert_eq!(enforcement.details["network"], "none");
            let metrics = metadata.metrics.as_ref().unwrap();
            assert!(metrics.wall_time_ms.unwrap() > 0.0 && metrics.peak_memory_bytes.unwrap() > 0);
            assert!(metadata.sandbox_id.as_ref().is_some_and(|id| !id.is_empty()));
            assert!(metadata.violations.is_empty());
        }
    });
}

fn ten_megabytes(name: &str) {
    in_world(name, async |world| {
        const SIZE: usize = 10_000_000;
        let command = format!("head -c {SIZE} /dev/zero | tr '\\0' x");
        let options = CallOptions { model: ModelBudget::Unknown, ..CallOptions::default() };
        let call = ToolCall::new("run_command", json!({"command": command}));
        let result = world.haft.execute(Request::new(call).options(options)).await;
        assert_eq!(result.status, Status::Success);
        let text = result.text();
        assert!(text.len() <= 64 << 10, "{}", text.len());
        assert!(result.metadata.output_truncated);
        assert_eq!(result.metadata.output_size, SIZE as u64);
        let shown = text.bytes().filter(|byte| *byte == b'x').count();
        assert!(
            text.contains(&(SIZE - shown).to_string()),
            "what is left out is counted: {}",
            &text[32_000..33_500]
        );
        let handle = result.metadata.output_handle.as_ref().unwrap();
        let range = OutputRange { offset: 0, length: 100_000_000 };
        let store = Arc::clone(world.haft.store());
        let (whole, total) = store.for_tenant("local").output(handle, range).await.unwrap().unwrap();
        assert_eq!((total, whole.len()), (SIZE as u64, SIZE), "the whole is behind the handle");
        assert!(whole.iter().all(|byte| *byte == b'x'));
    });
}
