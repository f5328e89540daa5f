//! Ctrl-C, once and twice, and the request to terminate. Real signals to a real process.
#![cfg(unix)]

use crate::{
    own_tools::without_frame,
    support::{Place, Said},
};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, Command},
    time::{Duration, Instant},
};

/// A running haft whose standard error is read as it comes.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    heard: String,
}

impl Running {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Running {
        let mut child = place.with_tools(args).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Running { child, stderr, heard: String::new() }
    }

    /// Starts haft itself, which has none of the tools of the tests and can make jails.
    pub(crate) fn program(place: &Place, args: &[&str]) -> Running {
        Running::of(place.program(args))
    }

    /// Whatever that starts.
    pub(crate) fn of(mut command: Command) -> Running {
        let mut child = command.spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Running { child, stderr, heard: String::new() }
    }

    /// Reads on until a line has this in it.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            let mut line = String::new();
            let count = self.stderr.read_line(&mut line).expect("it can be read");
            assert!(count > 0, "it ended without saying {text:?}: {}", self.heard);
            self.heard.push_str(&line);
            if line.contains(text) {
                return;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn heard(&self) -> &str {
        &self.heard
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(sent.expect("sh starts").success());
    }

    /// Ends it as a power cut would: nothing of it runs on.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it is gone");
    }

    pub(crate) fn end(mut self) -> Said {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("it can be read");
        let mut said = without_frame(Said::of(self.child.wait_with_output().expect("it ends")));
        said.stderr = format!("{}{rest}", self.heard);
        said
    }
}

const CALLS: &str =
    r#"[{"id":"c1","name":"get_metrics"},{"id":"c2","name":"slow"},{"id":"c3","name":"get_metrics"}]"#;

#[test]
fn ctrl_c_once_stops_a_call_and_still_gives_its_result() {
    let place = Place::new();
    let mut running = Running::start(&place, &["call", "slow", "--id", "c1", "--json", "--events"]);
    running.wait_for("half way");
    running.signal("INT");
    let said = running.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert_eq!(said.json()["status"], "Cancelled");
    assert!(said.stderr.contains("\nstopped: slow (c1) after "), "{}", said.stderr);
    assert!(said.stderr.contains("\"type\":\"Cancelled\""), "the last event is there: {}", said.stderr);
}

#[test]
fn ctrl_c_once_stops_a_batch_and_every_call_has_its_result() {
    let place = Place::new();
    place.write("calls.json", CALLS);
    let mut running = Running::start(&place, &["batch", "calls.json", "--json", "--events"]);
    running.wait_for("half way");
    running.signal("INT");
    let said = running.end();
    let document = said.json();
    let statuses: Vec<_> = document["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["status"].as_str().unwrap())
        .collect();
    assert_eq!((said.code, statuses), (130, vec!["Success", "Cancelled", "Cancelled"]), "{said:?}");
    assert!(said.stderr.contains("\nstopped: slow (c2) after "), "{}", said.stderr);
    assert!(said.stderr.contains("\nnot started: get_metrics (c3)\n"), "{}", said.stderr);
}

#[test]
fn ctrl_c_shows_people_what_there_is() {
    let place = Place::new();
    place.write("calls.json", CALLS);
    let mut running = Running::start(&place, &["batch", "calls.json", "--events"]);
    running.wait_for("half way");
    running.signal("INT");
    let said = running.end();
    assert!(said.stdout.contains("✓ get_metrics  c1  "), "{}", said.stdout);
    assert!(said.stdout.contains("⊘ slow         c2  "), "{}", said.stdout);
    assert!(said.stdout.contains("\n1 of 3 succeeded in "), "{}", said.stdout);
}

#[test]
fn ctrl_c_twice_ends_a_tool_that_blocks_its_thread() {
    let place = Place::new();
    let mut running = Running::start(&place, &["call", "stubborn", "--events"]);
    running.wait_for("blocking");
    let begun = Instant::now();
    running.signal("INT");
    running.wait_for("Ctrl-C again exits at once");
    assert!(running.child.try_wait().unwrap().is_none(), "the tool does not listen");
    running.signal("INT");
    let said = running.end();
    assert_eq!((said.code, said.stdout.as_str()), (130, ""), "{said:?}");
    assert!(
        said.stderr.ends_with("exited at once; running calls may have had their effect\n"),
        "{}",
        said.stderr
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "it did not wait for the tool");
}

#[test]
fn a_request_to_terminate_shuts_down_in_order() {
    let place = Place::new();
    let mut running = Running::start(&place, &["call", "slow", "--json", "--events"]);
    running.wait_for("half way");
    running.signal("TERM");
    running.wait_for("shutting down");
    let said = running.end();
    assert_eq!(said.code, 143, "{said:?}");
    assert!(said.json()["error"]["message"].as_str().unwrap().contains("shutting down"), "{said:?}");
}
