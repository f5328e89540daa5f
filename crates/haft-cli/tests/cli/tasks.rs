//! Detached calls: real processes, real signals.

use crate::{stop::Running, support::Place};
use serde_json::Value;
use std::{
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    time::{Duration, Instant},
};

/// A place whose worker, if it has one, ends with the test.
struct Worked(Place);

impl std::ops::Deref for Worked {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for Worked {
    fn drop(&mut self) {
        let _ = self.0.program(&["worker", "stop", "--now"]).output();
    }
}

fn place() -> Worked {
    let place = Worked(Place::new());
    // Should a test be killed, its worker does not stay for long.
    place.own_config("[tasks]\nworker_idle_seconds = 30\n");
    place
}

const VALID: [&str; 5] = ["call", "validate_content", "content=[1]", "--detach", "--json"];

impl Worked {
    fn state(&self) -> PathBuf {
        self.home().join(".local/state/haft")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.state().join("worker/log")).unwrap_or_default()
    }

    /// The id of the task of a detached call of haft's own tools.
    fn detach(&self, args: &[&str]) -> String {
        let said = self.haft(args);
        assert_eq!(said.code, 0, "{said:?}");
        said.json()["taskId"].as_str().expect("a task").to_owned()
    }

    /// Detaches a call of one of the tools of the tests.
    fn detach_own(&self, tool: &str) -> String {
        let said = self.run_with_tools(&["call", tool, "--detach", "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.json()["taskId"].as_str().expect("a task").to_owned()
    }

    fn task(&self, id: &str) -> Value {
        let said = self.haft(&["runs", "show", id, "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.json()
    }

    fn wait(&self, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let task = self.task(id);
            if is_so(&task) {
                return task;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for {what}: {task}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A worker with the tools of the tests, which it can be asked to run.
    fn worker(&self) -> Running {
        let mut worker = Running::start(&self.0, &["worker", "--foreground"]);
        worker.wait_for(" begins, store ");
        let begun = Instant::now();
        while self.haft(&["worker", "status"]).code != 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        worker
    }
}

fn half_way(task: &Value) -> bool {
    task["progress"]["percent"] == 50
}

#[test]
fn a_detached_call_starts_a_worker_and_can_be_waited_for() {
    let place = place();
    let said = place.haft(&["call", "validate_content", "content=[1]", "--detach"]);
    assert_eq!(said.code, 0, "{said:?}");
    let id = said.stdout.trim();
    assert!(
        id.starts_with("tsk_") && said.stdout.lines().count() == 1,
        "only the id, to be piped on: {said:?}"
    );
    assert!(said.stderr.contains(&format!("haft runs watch {id}")), "{said:?}");
    let watched = place.haft(&["runs", "watch", id]);
    assert_eq!((watched.code, watched.stdout.as_str()), (0, "valid JSON\n"), "{watched:?}");
    let task = place.task(id);
    assert_eq!((&task["state"], &task["result"]["status"]), (&"completed".into(), &"Success".into()));
    // It is an ordinary call: on record, and found by its execution, too.
    let run = place.haft(&["runs", "show", task["executionId"].as_str().unwrap(), "--json"]);
    assert_eq!(run.json()["tool"], "validate_content", "{run:?}");
    let listed = place.haft(&["runs", "tasks"]);
    assert!(listed.stdout.contains(id) && listed.stdout.contains("✓ completed"), "{listed:?}");
    let status = place.haft(&["worker", "status", "--json"]).json();
    assert_eq!((&status["running"], &status["tasks"]), (&true.into(), &0.into()));
    assert_eq!(
        status["engines"][0]["stats"]["tools"]["validate_content"]["byStatus"]["Success"], 1,
        "{status}"
    );
    let folder = place.state().join("worker");
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.clone()), 0o700);
    for file in ["socket", "lock", "log"] {
        assert_eq!(mode(folder.join(file)), 0o600, "{file}");
    }
    let stopped = place.haft(&["worker", "stop"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(place.haft(&["worker", "status"]).code, 1);
    assert!(!folder.join("socket").exists());
    let again = place.haft(&["worker", "stop"]);
    assert_eq!((again.code, again.stderr.contains("no worker is running")), (1, true), "{again:?}");
}

#[test]
fn several_starts_at_once_make_one_worker() {
    let place = place();
    let children: Vec<_> = (0..6).map(|_| place.program(&VALID).spawn().unwrap()).collect();
    let mut ids = Vec::new();
    for child in children {
        let said = crate::support::Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        ids.push(said.json()["taskId"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        assert_eq!(place.haft(&["runs", "watch", id]).stdout, "valid JSON\n");
    }
    assert_eq!(place.log().matches(" begins, store ").count(), 1, "{}", place.log());
    let page = place.haft(&["runs", "tasks", "--limit", "4", "--json"]).json();
    assert_eq!(page["tasks"].as_array().unwrap().len(), 4);
    let rest = place.haft(&["runs", "tasks", "--after", page["next"].as_str().unwrap(), "--json"]).json();
    assert_eq!((rest["tasks"].as_array().unwrap().len(), &rest["next"]), (2, &Value::Null));
}

#[test]
fn an_idle_worker_ends_and_the_next_call_starts_another() {
    let place = place();
    place.own_config("[tasks]\nworker_idle_seconds = 1\n");
    let first = place.detach(&VALID);
    assert_eq!(place.haft(&["runs", "watch", &first]).code, 0);
    let begun = Instant::now();
    while !place.log().contains("worker ends: nothing to do") {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", place.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    // Also while one is about to end: what is on record is run.
    for _ in 0..3 {
        let id = place.detach(&VALID);
        assert_eq!(place.haft(&["runs", "watch", &id, "--timeout", "30s"]).code, 0, "{}", place.log());
        std::thread::sleep(Duration::from_millis(950));
    }
}

#[test]
fn neither_ctrl_c_nor_the_terminal_reaches_the_worker() {
    let place = place();
    // A shell in a group of its own, which interrupts everybody in it after the call was handed over.
    let haft = env!("CARGO_BIN_EXE_haft");
    let script =
        format!("trap '' INT; {haft} call validate_content content=[1] --detach; kill -INT 0; sleep 0.3");
    let mut shell = place.command("/bin/sh");
    shell.args(["-c", &script]).process_group(0);
    let said = crate::support::Said::of(shell.output().unwrap());
    let id = said.stdout.trim().to_owned();
    assert!(id.starts_with("tsk_"), "{said:?}");
    let status = place.haft(&["worker", "status", "--json"]).json();
    let process = status["process"].as_u64().expect("it still runs").to_string();
    let session = |process: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1.to_owned();
        after_name.split_whitespace().nth(3).unwrap().to_owned()
    };
    assert_eq!(session(&process), process, "it leads a session");
    assert_eq!(place.haft(&["runs", "watch", &id]).code, 0);
}

#[test]
fn a_killed_workers_tasks_say_what_is_known_and_are_not_run_again() {
    let place = place();
    place.own_config(
        "[tools.approval]\nmode = 'auto'\nprompt_side_effects = false\n[tasks]\nmax_running = 2\n",
    );
    let worker = place.worker();
    let effects = place.detach_own("slow_touch");
    let reads = place.detach_own("slow");
    for id in [&effects, &reads] {
        place.wait(id, "half way", half_way);
    }
    worker.kill();

    let unknown = place.task(&effects);
    assert_eq!(unknown["result"]["error"]["code"], "OUTCOME_UNKNOWN", "{unknown}");
    let interrupted = place.task(&reads);
    assert_eq!(interrupted["result"]["error"]["code"], "NOT_STARTED", "{interrupted}");
    let watched = place.haft(&["runs", "watch", &reads]);
    assert!(watched.code == 1 && watched.stderr.contains("Interrupted: "), "{watched:?}");
    assert_eq!(place.haft(&["runs", "watch", &effects]).code, 6);

    let worker = place.worker();
    std::thread::sleep(Duration::from_millis(1500));
    let status = place.haft(&["worker", "status", "--json"]).json();
    assert_eq!(status["tasks"], 0, "nothing of it is run again: {status}");
    worker.kill();
}

#[test]
fn what_the_worker_had_no_room_for_is_run_by_the_next_one() {
    let place = place();
    place.own_config("[tasks]\nmax_running = 1\n");
    let worker = place.worker();
    let first = place.detach_own("slow");
    place.wait(&first, "half way", half_way);
    let second = place.detach_own("long");
    worker.kill();
    assert_eq!(place.task(&second)["state"], "pending");
    let worker = place.worker();
    let done = place.wait(&second, "the end", |task| task["state"] == "completed");
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("line 50"), "{done}");
    worker.kill();
}

#[test]
fn tasks_are_cancelled_from_anywhere() {
    let place = place();
    let worker = place.worker();
    let (first, second) = (place.detach_own("slow"), place.detach_own("slow"));
    let watcher = place.program(&["runs", "watch", &first]).spawn().unwrap();
    for id in [&first, &second] {
        place.wait(id, "half way", half_way);
    }
    let running = place.haft(&["runs", "list", "--running", "--json"]).json();
    assert_eq!(running["running"].as_array().unwrap().len(), 2, "{running}");
    // By its task, and by its execution, as any call that runs.
    let said = place.haft(&["runs", "cancel", &first]);
    assert!(said.code == 0 && said.stdout.contains("cancelling"), "{said:?}");
    let execution = place.task(&second)["executionId"].as_str().unwrap().to_owned();
    assert_eq!(place.haft(&["runs", "cancel", &execution]).code, 0);
    for id in [&first, &second] {
        place.wait(id, "the end", |task| task["state"] == "cancelled");
    }
    let watched = crate::support::Said::of(watcher.wait_with_output().unwrap());
    assert!(watched.code == 130 && watched.stderr.contains("50 % half way"), "{watched:?}");
    let again = place.haft(&["runs", "cancel", &first]);
    assert!(again.code == 1 && again.stderr.contains("has already ended"), "{again:?}");
    worker.signal("TERM");
    let said = worker.end();
    assert!(said.stderr.contains("worker ends: told to stop"), "{said:?}");
}

#[test]
fn a_call_runs_as_in_the_folder_where_it_was_made() {
    let place = place();
    let other = place.home().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(place.work().join("notes.txt"), "here\n").unwrap();
    std::fs::write(other.join("notes.txt"), "there\n").unwrap();
    let args = ["call", "read_file", "path=notes.txt", "--detach", "--json"];
    let here = place.detach(&args);
    let there = crate::support::Said::of(place.program(&args).current_dir(&other).output().unwrap()).json();
    let there = there["taskId"].as_str().unwrap();
    assert_eq!(place.haft(&["runs", "watch", &here]).stdout, "here\n");
    assert_eq!(place.haft(&["runs", "watch", there]).stdout, "there\n");
    // A setting of one call is not another's.
    let set =
        ["call", "read_file", "path=notes.txt", "--detach", "--json", "--set", "tools.output.max_bytes=256"];
    let id = place.detach(&set);
    assert_eq!(place.haft(&["runs", "watch", &id]).stdout, "here\n");
    // The folder's file says no between the call and its run: it does not run.
    place.write("haft.toml", "[tools]\nmode = 'disabled'\n");
    let refused = place.haft(&args);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{refused:?}");
    assert_eq!(place.log().matches(" begins, store ").count(), 1, "one worker for both");
}

#[test]
fn a_state_folder_with_a_long_path_has_a_worker_too() {
    let place = place();
    let state = place.home().join("a".repeat(120));
    let long = |args: &[&str]| {
        let output = place.program(args).env("HAFT_STATE_DIR", &state).output().unwrap();
        crate::support::Said::of(output)
    };
    let said = long(&VALID);
    assert_eq!(said.code, 0, "{said:?}");
    let watched = long(&["runs", "watch", said.json()["taskId"].as_str().unwrap()]);
    assert_eq!((watched.code, watched.stdout.as_str()), (0, "valid JSON\n"), "{watched:?}");
    assert_eq!(long(&["worker", "stop"]).code, 0);
}

#[test]
fn state_folders_have_their_own_workers() {
    let (one, other) = (place(), place());
    let (first, second) = (one.detach(&VALID), other.detach(&VALID));
    let process = |place: &Worked| place.haft(&["worker", "status", "--json"]).json()["process"].clone();
    assert_ne!(process(&one), process(&other));
    assert_eq!(one.haft(&["runs", "show", &second]).code, 1);
    assert_eq!(one.haft(&["runs", "watch", &first[..12]]).code, 0, "by a prefix of its id");
    assert_eq!(one.haft(&["runs", "show", &first[..12], "--json"]).json()["taskId"], first.as_str());
    assert_eq!(other.haft(&["runs", "watch", &second]).code, 0);
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_started() {
    let place = place();
    for (args, code, text) in [
        (&["call", "validate_contnt", "--detach"][..], 1, "Did you mean `validate_content`?"),
        (&["call", "validate_content", "--detach"], 4, "content"),
        (&["call", "run_command", "command=ls", "--detach"], 3, "denylist"),
        (&["call", "get_metrics", "--detach", "--dry-run"], 2, "--dry-run"),
        (&["runs", "show", "tsk_none"], 1, "there is no task `tsk_none`"),
        (&["runs", "watch", "tsk_none"], 1, "there is no task"),
        (&["runs", "cancel", "tsk_none"], 1, "there is no task"),
        (&["runs", "tasks", "--state", "runing"], 2, "did you mean running?"),
        (&["runs", "tasks", "--after", "x"], 2, "page"),
    ] {
        let said = place.haft(args);
        assert!(said.code == code && said.stderr.contains(text), "{args:?}: {said:?}");
    }
    assert_eq!(place.haft(&["runs", "tasks"]).stdout, "no tasks match\n");
    assert!(!place.state().join("worker/lock").exists(), "no worker was started");
}

#[test]
fn a_second_worker_leaves_the_first_alone_and_a_stale_socket_does_no_harm() {
    let place = place();
    let worker = place.worker();
    let said = place.haft(&["worker", "--foreground"]);
    assert!(said.code == 0 && said.stderr.contains("another worker serves"), "{said:?}");
    worker.kill();
    assert!(place.state().join("worker/socket").exists(), "a killed one leaves it");
    let id = place.detach(&VALID);
    assert_eq!(place.haft(&["runs", "watch", &id]).code, 0);
}

#[test]
fn one_that_waits_for_a_person_goes_on_when_it_is_answered_though_its_worker_is_gone() {
    let place = place();
    let id = place.detach(&["call", "write_file", "path=note.txt", "content=hello", "--detach", "--json"]);
    let waiting = place.wait(&id, "the question", |task| task["approvalId"].is_string());
    assert!(!place.work().join("note.txt").exists(), "nothing runs before it is answered: {waiting}");
    let worker = place.haft(&["worker", "status", "--json"]).json();
    let process = worker["process"].as_u64().expect("a worker runs").to_string();
    let killed = std::process::Command::new("kill").args(["-9", &process]).status().expect("kill starts");
    assert!(killed.success());
    let approval = waiting["approvalId"].as_str().expect("an id");
    let said = place.haft(&["approvals", "approve", approval]);
    assert_eq!(said.code, 0, "{said:?}");
    let done = place.wait(&id, "its end", |task| task["finishedAt"].is_string());
    assert_eq!(
        std::fs::read_to_string(place.work().join("note.txt")).ok().as_deref(),
        Some("hello"),
        "{done}"
    );
}
