//! Commands whose writes are kept apart: what becomes of what they changed.

use crate::world::{World, in_world_with};
use haft::{
    CallOptions, ChangesState, CommandWrites, ErrorCode, ExecutionId, Request, Status, ToolCall, ToolResult,
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{fs, time::Duration};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 11] = [
        ("staged::what_a_command_changed_is_applied_and_named", what_a_command_changed_is_applied_and_named),
        ("staged::a_failed_command_is_settled_like_any_other", failed_is_settled),
        ("staged::what_a_stopped_command_wrote_is_kept_and_not_applied", stopped_is_kept),
        ("staged::a_masked_file_is_not_touched_and_named", masked_is_a_violation),
        ("staged::protected_names_are_asked_about_with_the_diff", protected_is_asked),
        ("staged::a_call_that_wants_to_write_live_is_asked_about", live_is_asked),
        ("staged::later_calls_of_a_batch_wait_or_are_blocked", later_calls_are_blocked),
        ("staged::files_are_not_changed_while_a_command_works_there", files_wait),
        ("staged::it_is_undone_as_a_whole", undone),
        ("staged::what_somebody_else_writes_meanwhile_is_not_seen_and_not_overwritten", not_shared),
        ("staged::locks_watches_and_hard_links_do_not_reach_across", do_not_reach_across),
    ];
    crate::world::trials(tests)
}

const STAGED: &str = "[tools.commands]\nwrites = 'staged'\n";

async fn run(world: &World, command: &str) -> ToolResult {
    world.call("run_command", json!({"command": command})).await
}

fn state(result: &ToolResult) -> ChangesState {
    result.metadata.changes.as_ref().unwrap_or_else(|| panic!("{result:?}")).state
}

fn read(world: &World, name: &str) -> Option<String> {
    fs::read_to_string(world.work().join(name)).ok()
}

fn what_a_command_changed_is_applied_and_named(name: &str) {
    in_world_with(name, STAGED, async |world| {
        world.write("old.txt", "old\n");
        world.write("gone.txt", "gone\n");
        let result = run(&world, "echo new > new.txt; echo more >> old.txt; rm gone.txt; cat new.txt").await;
        assert_eq!(result.status, Status::Success, "{result:?}");
        assert_eq!(state(&result), ChangesState::Applied);
        let summary = &result.metadata.changes.as_ref().unwrap().summary;
        assert_eq!((summary.created, summary.modified, summary.deleted), (1, 1, 1));
        let told = format!("{:?}", result.content);
        assert!(told.contains("changes applied: 1 created, 1 modified, 1 deleted"), "{told}");
        assert_eq!(read(&world, "new.txt").as_deref(), Some("new\n"));
        assert_eq!(read(&world, "old.txt").as_deref(), Some("old\nmore\n"));
        assert_eq!(read(&world, "gone.txt"), None);
        let nothing = run(&world, "cat old.txt").await;
        assert_eq!((nothing.status, state(&nothing)), (Status::Success, ChangesState::Nothing));
        assert_eq!(fs::read_dir(world.state().join("staged")).unwrap().count(), 0, "nothing is left");
    });
}

fn failed_is_settled(name: &str) {
    in_world_with(name, STAGED, async |world| {
        let result = run(&world, "echo half > half.txt; exit 3").await;
        assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::NonZeroExit), "{result:?}");
        assert_eq!(state(&result), ChangesState::Applied);
        assert_eq!(read(&world, "half.txt").as_deref(), Some("half\n"));
    });
}

fn stopped_is_kept(name: &str) {
    in_world_with(name, STAGED, async |world| {
        // The control: without a deadline the same command changes the folder.
        let quick = run(&world, "echo x > quick.txt").await;
        assert_eq!(state(&quick), ChangesState::Applied);
        let options = CallOptions { timeout: Some(Duration::from_secs(3)), ..CallOptions::default() };
        let call = ToolCall::new("run_command", json!({"command": "echo x > slow.txt; sleep 100"}));
        let result = world.haft.execute(Request::new(call).options(options)).await;
        assert_eq!(result.status, Status::Timeout, "{result:?}");
        assert_eq!(state(&result), ChangesState::Kept, "{result:?}");
        assert_eq!(read(&world, "slow.txt"), None);
        let id = result.metadata.execution_id;
        let sets = world.haft.change_sets().unwrap();
        let kept = sets.list("local").await.unwrap();
        assert_eq!(kept.len(), 1);
        assert!(kept[0].why.contains("timed out") && kept[0].can_apply, "{kept:?}");
        assert!(sets.list("other").await.unwrap().is_empty());
        let diff = sets.diff("local", id, 10_000).await.unwrap();
        assert!(diff.contains("slow.txt") && diff.contains("+x"), "{diff}");
        assert!(sets.diff("other", id, 10_000).await.is_err(), "it is another tenant's");
        let fingerprint = sets.look("local", id).await.unwrap().fingerprint;
        sets.apply("local", id, &fingerprint, true).await.unwrap();
        assert_eq!(read(&world, "slow.txt").as_deref(), Some("x\n"));
        assert!(sets.list("local").await.unwrap().is_empty());
    });
}

fn masked_is_a_violation(name: &str) {
    in_world_with(name, STAGED, async |world| {
        world.write("d/.env", "SECRET=1\n");
        world.write("d/other", "x\n");
        let result = run(&world, "rm -rf d; echo done").await;
        assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::FilesystemPolicyViolation));
        assert_eq!(state(&result), ChangesState::Kept);
        assert!(result.error.unwrap().message.contains(".env"));
        assert_eq!(read(&world, "d/.env").as_deref(), Some("SECRET=1\n"));
        assert_eq!(read(&world, "d/other").as_deref(), Some("x\n"), "all or nothing");
        let sets = world.haft.change_sets().unwrap();
        let id = result.metadata.execution_id;
        let found = sets.look("local", id).await.unwrap();
        sets.apply("local", id, &found.fingerprint, true).await.unwrap_err();
        assert_eq!(read(&world, "d/other").as_deref(), Some("x\n"), "nobody can agree to it");
    });
}

fn protected_is_asked(name: &str) {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = std::sync::Arc::clone(&asked);
    in_world_with(name, STAGED, async move |world| {
        let approver = |yes: bool| {
            let heard = std::sync::Arc::clone(&heard);
            std::sync::Arc::new(haft::ask_with(move |requests| {
                heard.lock().unwrap().extend(requests.iter().cloned());
                let about_changes = |request: &haft::ApprovalRequest| request.preview.is_some();
                requests
                    .iter()
                    .map(|request| match yes || !about_changes(request) {
                        true => haft::Decision::Approve,
                        false => haft::Decision::Deny { reason: Some("no hooks".into()) },
                    })
                    .collect()
            }))
        };
        let command = json!({"command": "echo 'layout node' > .envrc; echo y > ordinary"});
        let call = || Request::new(ToolCall::new("run_command", command.clone()));
        let denied = world.haft.execute(call().approver(approver(false))).await;
        assert_eq!(denied.error.as_ref().map(|error| error.code), Some(ErrorCode::ConfirmationDenied));
        assert!(denied.error.as_ref().unwrap().message.contains("no hooks"), "{denied:?}");
        assert_eq!(state(&denied), ChangesState::Discarded);
        assert_eq!((read(&world, ".envrc"), read(&world, "ordinary")), (None, None));
        let agreed = world.haft.execute(call().approver(approver(true))).await;
        assert_eq!((agreed.status, state(&agreed)), (Status::Success, ChangesState::Applied), "{agreed:?}");
        assert_eq!(read(&world, "ordinary").as_deref(), Some("y\n"));
    });
    let asked = asked.lock().unwrap();
    let about: Vec<_> =
        asked.iter().filter_map(|request| request.preview.as_ref().zip(Some(request))).collect();
    if asked.is_empty() {
        return;
    }
    assert_eq!(about.len(), 2, "{asked:?}");
    let (diff, request) = about[0];
    assert!(diff.contains("+layout node") && request.reason.contains(".envrc"), "{request:?}");
}

fn live_is_asked(name: &str) {
    in_world_with(name, "mode = 'auto'\n[tools.commands]\nwrites = 'staged'\n", async |world| {
        let nobody = std::sync::Arc::new(haft::ask_with(|requests| {
            requests.iter().map(|_| haft::Decision::Unanswered).collect()
        }));
        let call = |tool: &str, writes| {
            let options = CallOptions { writes, ..CallOptions::default() };
            let call = ToolCall::new(tool, json!({"command": "echo x > live.txt"}));
            world.haft.execute(Request::new(call).options(options).approver(nobody.clone()))
        };
        let asked = call("run_command", Some(CommandWrites::Live)).await;
        assert_eq!(asked.status, Status::RequiresConfirmation);
        assert_eq!(read(&world, "live.txt"), None);
        let background = call("start_command", Some(CommandWrites::Staged)).await;
        assert_eq!(background.error.as_ref().map(|error| error.code), Some(ErrorCode::ValidationFailed));
    });
}

fn later_calls_are_blocked(name: &str) {
    in_world_with(name, STAGED, async |world| {
        world.write(".env", "A=1\n");
        let calls = vec![
            ToolCall::new("run_command", json!({"command": "echo x > .env; echo y > a"})),
            ToolCall::new("write_file", json!({"path": "b", "content": "b"})),
            ToolCall::new("run_command", json!({"command": "cat a"})),
        ];
        let (results, _) = world.haft.execute_batch(calls).await;
        let codes: Vec<_> =
            results.iter().map(|result| result.error.as_ref().map(|error| error.code)).collect();
        assert_eq!(
            codes,
            [Some(ErrorCode::FilesystemPolicyViolation), Some(ErrorCode::Blocked), Some(ErrorCode::Blocked)],
            "{results:?}"
        );
        assert_eq!((read(&world, "a"), read(&world, "b")), (None, None));
    });
}

fn files_wait(name: &str) {
    in_world_with(name, STAGED, async |world| {
        let started = world.work().join("started");
        let id = ExecutionId::at(haft::jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let command = json!({"command": "echo ready; while ! test -e /tmp/never -o $((n=n+1)) -gt 40; do sleep 0.05; done; echo x > a"});
        let running =
            world.haft.execute(Request::new(ToolCall::new("run_command", command)).options(options));
        let mut watch = world.haft.observe(id).unwrap();
        let running = tokio::spawn(running);
        while let Some(event) = watch.next().await {
            if matches!(event.payload, haft::EventPayload::Output { .. }) {
                break;
            }
        }
        let written = world.call("write_file", json!({"path": "started", "content": "x"})).await;
        // It waited: the command is settled by now.
        assert_eq!(written.status, Status::Success, "{written:?}");
        assert!(started.exists() && world.work().join("a").exists());
        let command = running.await.unwrap();
        assert_eq!(state(&command), ChangesState::Applied, "{command:?}");
    });
}

fn undone(name: &str) {
    in_world_with(name, STAGED, async |world| {
        world.write("old.txt", "old\n");
        let result = run(&world, "echo new > new.txt; rm old.txt").await;
        assert_eq!(state(&result), ChangesState::Applied, "{result:?}");
        let id = result.metadata.execution_id.to_string();
        let undone = world.call("undo_changes", json!({"execution_id": id})).await;
        assert_eq!(undone.status, Status::Success, "{undone:?}");
        assert_eq!((read(&world, "old.txt").as_deref(), read(&world, "new.txt")), (Some("old\n"), None));
    });
}

/// A file that programs on both sides have open: the command has a copy from its first write.
fn not_shared(name: &str) {
    in_world_with(name, STAGED, async |world| {
        world.write("db", "old\n");
        let id = ExecutionId::at(haft::jiff::Timestamp::now());
        let options = CallOptions { execution_id: Some(id), ..CallOptions::default() };
        let command = json!({"command": "echo mine >> db; echo ready; sleep 2; cat db"});
        let running =
            world.haft.execute(Request::new(ToolCall::new("run_command", command)).options(options));
        let mut watch = world.haft.observe(id).unwrap();
        let running = tokio::spawn(running);
        while let Some(event) = watch.next().await {
            if matches!(event.payload, haft::EventPayload::Output { .. }) {
                break;
            }
        }
        assert_eq!(read(&world, "db").as_deref(), Some("old\n"), "nobody sees it before it is applied");
        fs::write(world.work().join("db"), "old\nowner\n").unwrap();
        let result = running.await.unwrap();
        let told = format!("{:?}", result.content);
        assert!(told.contains("old\\nmine") && !told.contains("owner"), "{told}");
        assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::StaleFile), "{result:?}");
        assert_eq!(state(&result), ChangesState::Kept);
        assert_eq!(read(&world, "db").as_deref(), Some("old\nowner\n"));
    });
}

/// What is true of a command that writes to the files, and not of one that is staged.
fn do_not_reach_across(name: &str) {
    use rustix::fs::inotify;
    use std::os::unix::fs::MetadataExt as _;
    for (writes, is_live) in [("live", true), ("staged", false)] {
        let config = format!("[tools.commands]\nwrites = '{writes}'\n");
        in_world_with(name, &config, async |world| {
            let at = |name: &str| world.work().join(name);
            world.write("lock", "");
            let lock = fs::File::open(at("lock")).unwrap();
            lock.lock().unwrap();
            let locked = run(&world, "flock -n lock true").await;
            assert_eq!(locked.error.is_some(), is_live, "{writes}: {locked:?}");
            let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
            let events = inotify::WatchFlags::CREATE;
            inotify::add_watch(&watch, world.work(), events).unwrap();
            run(&world, "echo x > passing; rm passing").await;
            let mut bytes = [const { std::mem::MaybeUninit::uninit() }; 4096];
            let seen = inotify::Reader::new(&watch, &mut bytes).next().is_ok();
            assert_eq!(seen, is_live, "{writes}: a file that was made and deleted");
            world.write("one", "old\n");
            fs::hard_link(at("one"), at("other")).unwrap();
            let before = fs::metadata(at("one")).unwrap();
            let appended = run(&world, "echo new >> one").await;
            assert_eq!(appended.status, Status::Success, "{appended:?}");
            assert_eq!(read(&world, "one").as_deref(), Some("old\nnew\n"));
            let other = if is_live { "old\nnew\n" } else { "old\n" };
            assert_eq!(read(&world, "other").as_deref(), Some(other), "{writes}");
            assert_eq!(fs::metadata(at("one")).unwrap().ino() == before.ino(), is_live, "{writes}");
        });
    }
}
