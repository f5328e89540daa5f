//! `haft recover` at a terminal: it asks, a person answers. On a real pseudo-terminal.

use crate::{memory::crash, support::Place};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    ffi::OsString,
    fs::File,
    io::{Read as _, Write as _},
    os::unix::ffi::OsStringExt as _,
    process::Child,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// haft with a terminal that a test types at.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(place: &Place, args: &[&str]) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = OsString::from_vec(ptsname(&ours, Vec::new()).unwrap().into_bytes());
        let theirs = || File::options().read(true).write(true).open(&name).unwrap();
        let mut command = place.program(args);
        command.env("TERM", "xterm").stdin(theirs()).stdout(theirs()).stderr(theirs());
        let child = command.spawn().unwrap();
        drop(command);
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when the last one who has the other side closes it.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard, screen, seen: String::new() }
    }

    /// Reads on until this is on the screen, so many times.
    fn wait_for(&mut self, text: &str, times: usize) {
        while self.seen.matches(text).count() < times {
            match self.screen.recv_timeout(Duration::from_secs(60)) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} is not on the screen:\n{}", self.seen),
            }
        }
    }

    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(60)) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (self.child.wait().unwrap().code(), self.seen)
    }
}

const QUESTION: &str = "anything else leaves it:";

#[test]
fn a_person_is_asked_about_one_after_the_other() {
    let place = Place::new();
    for _ in 0..3 {
        crash(&place, &["call", "slow_touch"]);
    }
    let mut terminal = Terminal::start(&place, &["recover"]);
    terminal.wait_for(QUESTION, 1);
    let shown = terminal.seen.matches("outcome unknown, not re-run").count();
    assert_eq!(shown, 3, "all are shown before: {}", terminal.seen);
    terminal.type_in("r\n");
    terminal.wait_for("resumed with what is there", 1);
    terminal.wait_for("Tool result missing after crash", 2);
    terminal.wait_for(QUESTION, 2);
    terminal.type_in("d\n");
    terminal.wait_for("Tool results discarded after crash", 2);
    terminal.wait_for(QUESTION, 3);
    terminal.type_in("later\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(6), "one is left: {seen}");
    assert_eq!(place.json_at(6, &["recover", "--json"])["unfinished"].as_array().unwrap().len(), 1);

    // Ctrl-D, and an empty answer, leave it as well.
    for keys in ["\u{4}", "\n"] {
        let mut terminal = Terminal::start(&place, &["recover"]);
        terminal.wait_for(QUESTION, 1);
        terminal.type_in(keys);
        assert_eq!(terminal.end().0, Some(6));
    }
    let mut terminal = Terminal::start(&place, &["recover"]);
    terminal.wait_for(QUESTION, 1);
    terminal.type_in("resume\n");
    assert_eq!(terminal.end().0, Some(0), "nothing is left");
    assert_eq!(place.haft(&["recover"]).stdout, "nothing is unfinished\n");
}

#[test]
fn ctrl_c_at_the_question_decides_nothing() {
    let place = Place::new();
    crash(&place, &["call", "slow_touch"]);
    let mut terminal = Terminal::start(&place, &["recover"]);
    terminal.wait_for(QUESTION, 1);
    // The terminal is nobody's controlling one, so the key is sent as what it stands for.
    let process = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_ne!(terminal.end().0, Some(0));
    assert_eq!(place.haft(&["recover"]).code, 6, "it still waits");
}
