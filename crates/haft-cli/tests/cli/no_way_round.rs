//! No way round a confirmation: a yes is for one call, once, in time, for the caller who was asked about, and for what
//! it touched then. Each with a control that shows what would have happened. That a program in a jail cannot agree is
//! in `approvals.rs`.

use crate::support::{Place, Said};
use serde_json::{Value, json};
use std::{os::unix::fs::symlink, process::Stdio, time::Duration};

const CALL: [&str; 5] = ["call", "write_file", "path=way/notes.txt", "content=hello", "--json"];

/// The id of the question that a call left.
fn question(said: &Said) -> String {
    assert_eq!(said.code, 5, "{said:?}");
    said.json()["error"]["data"]["approvalId"].as_str().unwrap().to_owned()
}

fn approve(place: &Place, id: &str) {
    let said = place.haft(&["approvals", "approve", id]);
    assert_eq!(said.code, 0, "{said:?}");
}

fn state(place: &Place, id: &str) -> Value {
    place.haft(&["approvals", "show", id, "--json"]).json()["state"].clone()
}

/// What is written below the working folder and beside it.
fn written(place: &Place) -> Vec<&'static str> {
    let ways = ["asked/notes.txt", "other/notes.txt", "way/notes.txt", "../outside/notes.txt"];
    ways.into_iter().filter(|way| place.work().join(way).is_file()).collect()
}

/// How the way to the file is made to lead elsewhere.
#[derive(Clone, Copy, Debug)]
enum Swap {
    /// A link leads to another folder.
    Link,
    /// A link leads out of the working folder.
    LinkOut,
    /// A folder is put away, and a link stands in its place.
    Folder,
}

const SWAPS: [Swap; 3] = [Swap::Link, Swap::LinkOut, Swap::Folder];

impl Swap {
    /// A place where `way` leads to where the call is to write.
    fn place(self) -> Place {
        let place = Place::new();
        for folder in ["asked", "other", "../outside"] {
            std::fs::create_dir(place.work().join(folder)).unwrap();
        }
        match self {
            Swap::Link | Swap::LinkOut => symlink("asked", place.work().join("way")).unwrap(),
            Swap::Folder => std::fs::create_dir(place.work().join("way")).unwrap(),
        }
        place
    }

    fn make(self, place: &Place) {
        let way = place.work().join("way");
        match self {
            Swap::Link | Swap::LinkOut => std::fs::remove_file(&way).unwrap(),
            Swap::Folder => std::fs::rename(&way, place.work().join("put_away")).unwrap(),
        }
        symlink(if let Swap::LinkOut = self { "../outside" } else { "other" }, way).unwrap();
    }

    fn undo(self, place: &Place) {
        let way = place.work().join("way");
        std::fs::remove_file(&way).unwrap();
        match self {
            Swap::Link | Swap::LinkOut => symlink("asked", way).unwrap(),
            Swap::Folder => std::fs::rename(place.work().join("put_away"), way).unwrap(),
        }
    }
}

/// Answered first, then the way is swapped, then the call is sent again.
#[test]
fn a_way_that_is_swapped_after_the_yes_needs_another() {
    for swap in SWAPS {
        let place = swap.place();
        let id = question(&place.haft(&CALL));
        approve(&place, &id);
        swap.make(&place);
        let said = place.haft(&CALL);
        assert_eq!(written(&place), [""; 0], "{swap:?}: {said:?}");
        match swap {
            // What leads out is refused before anybody is asked.
            Swap::LinkOut => assert_eq!(said.code, 3, "{said:?}"),
            Swap::Link | Swap::Folder => assert_ne!(question(&said), id, "{swap:?}: another question"),
        }
        assert_eq!(state(&place, &id), json!("approved"), "the yes is not used up: {swap:?}");
        // The control: as it was when it was agreed to, it runs.
        swap.undo(&place);
        assert_eq!(place.haft(&CALL).code, 0, "{swap:?}");
        assert_eq!(
            written(&place).first(),
            Some(if let Swap::Folder = swap { &"way/notes.txt" } else { &"asked/notes.txt" })
        );
        assert_eq!(state(&place, &id), json!("used"));
    }
}

/// The way is swapped while the call waits, and then somebody agrees to what they were shown.
#[test]
fn a_way_that_is_swapped_while_a_call_waits_is_not_followed() {
    for swap in SWAPS {
        let place = swap.place();
        let waiting =
            place.program(&[&CALL[..], &["--wait", "60s"]].concat()).stdin(Stdio::null()).spawn().unwrap();
        let id = loop {
            let listed = place.haft(&["approvals", "list", "--json"]).json();
            if let Some(id) = listed["approvals"][0]["id"].as_str() {
                break id.to_owned();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        swap.make(&place);
        approve(&place, &id);
        let said = Said::of(waiting.wait_with_output().unwrap());
        assert_ne!(said.code, 0, "{swap:?}: {said:?}");
        assert_eq!(written(&place), [""; 0], "{swap:?}: {said:?}");
    }
}

/// What would have happened: without a question the swapped way is followed, as far as it stays inside.
#[test]
fn the_control_without_a_question_follows_the_way() {
    for swap in SWAPS {
        let place = swap.place();
        place.own_config("[tools.approval]\nmode = 'auto'\n");
        swap.make(&place);
        let said = place.haft(&CALL);
        match swap {
            Swap::LinkOut => assert!(said.code == 3 && written(&place).is_empty(), "{said:?}"),
            Swap::Link | Swap::Folder => {
                assert_eq!(said.code, 0, "{said:?}");
                assert_eq!(written(&place), ["other/notes.txt", "way/notes.txt"], "{swap:?}");
            }
        }
    }
}

/// Arguments, session, alias and name: what is not the same call asks again. What is the same runs, once.
#[test]
fn a_yes_is_for_that_very_call_and_once() {
    let place = Swap::Folder.place();
    let id = question(&place.haft(&CALL));
    approve(&place, &id);
    for other in [
        &["call", "write_file", "path=way/notes.txt", "content=hello!", "--json"][..],
        &["call", "write_file", "path=way/notes2.txt", "content=hello", "--json"],
        &["call", "write_file", "path=way/notes.txt", "content=hello", "mode=append", "--json"],
        &["call", "write_file", "path=way/notes.txt", "content=hello", "--conversation", "s", "--json"],
        &["call", "copy_file", "from=asked", "to=way/notes.txt", "--json"],
    ] {
        let said = place.haft(other);
        assert_ne!(said.code, 0, "{other:?}: {said:?}");
        assert_eq!(written(&place), [""; 0], "{other:?}");
    }
    assert_eq!(place.haft(&CALL).code, 0, "the control");
    std::fs::remove_file(place.work().join("way/notes.txt")).unwrap();
    assert_ne!(question(&place.haft(&CALL)), id, "a second time is another question");
    assert_eq!(written(&place), [""; 0]);
}

#[test]
fn an_alias_dodges_neither_a_question_nor_a_denial() {
    let place = Swap::Folder.place();
    let tools = place.haft(&["tools", "show", "write_file", "--json"]).json();
    let aliases: Vec<&str> = tools["aliases"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!aliases.is_empty(), "{tools}");
    for alias in aliases.iter().copied().chain(["WRITE_FILE"]) {
        let mut call = CALL;
        call[1] = alias;
        question(&place.haft(&call));
        // By whichever name a list has it.
        for listed in ["write_file", alias] {
            let list = format!("tools.approval.denylist={listed}");
            let said = place.haft(&[&["--set", list.as_str()][..], &call].concat());
            assert_eq!(
                (said.code, &said.json()["error"]["code"]),
                (3, &json!("TOOL_DENIED")),
                "{alias} {listed}"
            );
        }
    }
    assert_eq!(written(&place), [""; 0]);
    let mut call = CALL;
    call[1] = aliases[0];
    assert_eq!(
        place.haft(&[&["--set", "tools.approval.mode=auto"][..], &call].concat()).code,
        0,
        "the control"
    );
}

#[test]
fn a_yes_that_is_too_old_is_none() {
    let place = Swap::Folder.place();
    place.own_config("[tools.approval]\nexpire_seconds = 2\n");
    let late = question(&place.haft(&CALL));
    std::thread::sleep(Duration::from_millis(2200));
    assert_ne!(place.haft(&["approvals", "approve", &late]).code, 0, "an answer that comes too late");
    let unused = question(&place.haft(&CALL));
    assert_ne!(unused, late);
    approve(&place, &unused);
    std::thread::sleep(Duration::from_millis(2200));
    let said = place.haft(&CALL);
    assert_ne!(said.code, 0, "a yes that nobody used in time: {said:?}");
    assert_eq!(written(&place), [""; 0]);
    place.own_config("");
    approve(&place, &question(&place.haft(&CALL)));
    assert_eq!(place.haft(&CALL).code, 0, "the control");
}

/// Another tenant has its own list, and its yes is for its own calls.
#[test]
fn another_tenants_yes_is_none() {
    let place = Swap::Folder.place();
    let id = question(&place.haft(&CALL));
    let said = place.haft(&["approvals", "approve", &id, "--tenant", "other"]);
    assert!(said.code == 1 && said.stderr.contains("there is no approval"), "{said:?}");
    let listed = place.haft(&["approvals", "list", "--tenant", "other", "--json"]).json();
    assert_eq!(listed["approvals"], json!([]));
    assert_eq!(question(&place.haft(&CALL)), id, "the same question is still open");
    assert_eq!(written(&place), [""; 0]);
}

/// Of those who answer at the same time one decides, and a yes is used once, however many calls come at once.
#[test]
fn two_who_answer_at_once_and_two_who_call_at_once() {
    let place = Swap::Folder.place();
    for round in 0..4 {
        let path = format!("path=way/{round}.txt");
        let mut call = CALL;
        call[2] = &path;
        let id = question(&place.haft(&call));
        let answers = ["approve", "deny", "approve", "deny"]
            .map(|answer| {
                (answer, place.program(&["approvals", answer, &id]).stdin(Stdio::null()).spawn().unwrap())
            })
            .map(|(answer, child)| (answer, Said::of(child.wait_with_output().unwrap())));
        let won: Vec<&str> =
            answers.iter().filter(|(_, said)| said.code == 0).map(|(answer, _)| *answer).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        let calls = [0, 1, 2].map(|_| place.program(&call).stdin(Stdio::null()).spawn().unwrap());
        let calls = calls.map(|child| Said::of(child.wait_with_output().unwrap()));
        let ran = calls.iter().filter(|said| said.code == 0).count();
        assert_eq!(ran, usize::from(won[0] == "approve"), "{won:?}: {calls:?}");
    }
}
