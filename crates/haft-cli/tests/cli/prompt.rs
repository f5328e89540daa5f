//! The question at a terminal, in a terminal: tmux shows what a person would see.

use crate::{screen::Screen, support::Place};
use std::time::{Duration, Instant};

/// Types a call, on a clean screen, and waits for its question.
fn ask(screen: &Screen<'_>, call: &str) -> String {
    // The question before must be gone, or it would be taken for this one.
    screen.keys("clear; echo clean");
    screen.press("Enter");
    let begun = Instant::now();
    while screen.shown().contains("q later") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", screen.shown());
        std::thread::sleep(Duration::from_millis(20));
    }
    screen.keys(&format!("clear; \"$haft\" {call}; echo \"ended $?\""));
    screen.press("Enter");
    screen.until("q later")
}

/// The screens of docs/approvals.md, line by line: all but the rows whose values are another machine's.
#[test]
fn the_screens_are_those_of_the_page() {
    let place = Place::new();
    let Some(screen) = Screen::new(&place, "of_the_page", 80, &[]) else { return };
    let page = include_str!("../../../../docs/approvals.md");
    let fence = |begins: &str| {
        let text = page.split_once(begins).unwrap_or_else(|| panic!("the page shows no {begins:?}")).1;
        format!("{begins}{}", text.split_once("\n```").expect("its end").0)
    };
    let others =
        |line: &&str| !line.contains("/home/ada") && !line.starts_with("  call  ") && !line.contains("┆");

    let shown =
        ask(&screen, "call write_file --args '{\"path\": \"notes.txt\", \"content\": \"one\\ntwo\\n\"}'");
    for line in fence("May `write_file` run?").lines().filter(others) {
        assert!(shown.lines().any(|on_screen| on_screen.trim_end() == line.trim_end()), "{line}\n{shown}");
    }
    screen.keys("a");
    let shown = screen.until("1-9 choose");
    for line in ["Do not ask again until it is revoked, for:", "1-9 choose · q back"] {
        assert!(fence("Do not ask again").contains(line) && shown.contains(line), "{line}\n{shown}");
    }
    screen.keys("1");
    let shown = screen.until("y remember it and run");
    for line in ["This will be remembered:", "y remember it and run · n back"] {
        assert!(fence("This will be remembered").contains(line) && shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn a_person_is_asked_at_eighty_columns() {
    let place = Place::new();
    place.write("notes.txt", "one\ntwo\n");
    let Some(screen) = Screen::new(&place, "at_eighty_columns", 80, &[("EDITOR", "sed -i s/three/four/")])
    else {
        return;
    };
    let call = "call write_file path=new.txt content=three";

    let shown = ask(&screen, call);
    for part in [
        "May `write_file` run?  medium risk",
        "Write new file: new.txt",
        "why          │ it has side effects",
        "  content    │ three",
        "isolation    │ none",
        "+three",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    assert!(shown.contains("y once · n no · e edit · a always… · u until… · ? help · q later"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(!shown.contains('\u{1b}'));
    // What means nothing does nothing; help says what means something.
    screen.keys("xj7");
    screen.press("Up");
    screen.press("Enter");
    screen.keys("?");
    screen.until("run it, this once");
    assert!(!place.work().join("new.txt").exists());
    screen.keys("n");
    let shown = screen.until("ended 3");
    assert!(shown.contains("Tool call denied by user"), "{shown}");

    ask(&screen, call);
    screen.keys("rnot yet");
    screen.press("Enter");
    let shown = screen.until("ended 3");
    assert!(shown.contains("denied by user: not yet"), "{shown}");

    ask(&screen, call);
    screen.keys("q");
    screen.until("ended 5");
    assert!(!place.work().join("new.txt").exists());

    ask(&screen, call);
    screen.press("C-c");
    let shown = screen.until("ended 130");
    assert!(shown.contains("Cancelled by user"), "{shown}");
    assert!(!place.work().join("new.txt").exists());

    // Changed: it is shown as it is now, and runs so.
    ask(&screen, call);
    screen.keys("e");
    let shown = screen.until("a person changed the arguments");
    assert!(shown.contains("+four"), "{shown}");
    screen.until("q later");
    screen.keys("y");
    screen.until("ended 0");
    assert_eq!(std::fs::read_to_string(place.work().join("new.txt")).unwrap(), "four");

    // Remembered: what will be is shown first, and then nobody is asked again.
    ask(&screen, "call write_file path=a.txt content=a");
    screen.keys("a");
    screen.until("1-9 choose");
    screen.keys("2");
    let shown = screen.until("y remember it and run");
    assert!(
        shown.contains("This will be remembered:") && shown.contains("It would have spared you"),
        "{shown}"
    );
    assert!(!place.work().join("a.txt").exists());
    screen.keys("y");
    let shown = screen.until("ended 0");
    assert!(shown.contains("remembered, until `haft grants revoke grant_"), "{shown}");
    // With an end of its own: that of the call before is still on the screen.
    screen.keys("clear; \"$haft\" call write_file path=b.txt content=b; echo \"over $?\"");
    screen.press("Enter");
    let shown = screen.until("over 0");
    assert!(!shown.contains("May `write_file`"), "{shown}");
}

#[test]
fn the_terminal_is_as_it_was_and_answers_from_elsewhere_end_the_question() {
    let place = Place::new();
    let Some(screen) = Screen::new(&place, "elsewhere", 80, &[("NO_COLOR", "1")]) else { return };
    // What was typed before the question is no answer to it.
    screen.keys("sleep 1; ");
    screen.keys("clear; \"$haft\" call write_file path=early.txt content=x; echo \"ended $?\"");
    screen.press("Enter");
    std::thread::sleep(Duration::from_millis(300));
    screen.keys("yyyy");
    screen.until("q later");
    std::thread::sleep(Duration::from_millis(500));
    assert!(!place.work().join("early.txt").exists());
    let list = place.haft(&["approvals", "list", "--json"]).json();
    let id = list["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.haft(&["approvals", "approve", &id]).code, 0);
    let shown = screen.until("ended 0");
    assert!(shown.contains("answered elsewhere: yes"), "{shown}");
    assert!(place.work().join("early.txt").exists());
    screen.keys("clear; stty -a");
    screen.press("Enter");
    let shown = screen.until("iexten");
    assert!(shown.contains(" icanon") && shown.contains(" echo "), "{shown}");
}

#[test]
fn a_batch_is_asked_about_together_in_forty_columns() {
    let place = Place::new();
    let calls: Vec<serde_json::Value> = ["a", "b", "c", "d"]
        .map(|name| serde_json::json!({"name": "write_file", "arguments": {"path": name, "content": name}}))
        .to_vec();
    place.write("calls.json", serde_json::Value::from(calls).to_string());
    let Some(screen) = Screen::new(&place, "batch", 40, &[]) else { return };
    let shown = ask(&screen, "batch calls.json");
    assert!(shown.contains("(1 of 4)") && shown.lines().all(|line| line.chars().count() <= 40), "{shown}");
    screen.keys("y");
    screen.until("(2 of 4)");
    screen.keys("n");
    screen.until("(3 of 4)");
    assert!(!place.work().join("a").exists(), "nothing runs before everything is decided");
    // What follows is shown before a yes to all of it counts.
    screen.keys("Y");
    let shown = screen.until("y run all of them");
    assert!(shown.contains("(4 of 4)") && shown.contains("content │ d"), "{shown}");
    assert!(!place.work().join("c").exists());
    screen.keys("y");
    screen.until("ended 3");
    let there = ["a", "b", "c", "d"].map(|name| place.work().join(name).exists());
    assert_eq!(there, [true, false, true, true]);
}

/// Each of these showed `echo hello` and ran more. Whatever a call is, all of it is printed before a key counts.
#[test]
fn what_a_call_hides_from_a_terminal_is_shown() {
    let place = Place::new();
    let Some(screen) = Screen::new(&place, "hidden", 80, &[]) else { return };
    let spaces = format!("hello{}; touch X", " ".repeat(200));
    let long: String = (0..300).map(|line| format!("line {line}\n")).collect();
    let cases = [
        ("title", "hello \u{1b}]0;touch X;\u{7}".to_owned(), "hello ⟨ESC⟩]0;touch X;⟨BEL⟩"),
        ("csi", "hello \u{1b}[|sh".to_owned(), "hello ⟨ESC⟩[|sh"),
        ("spaces", spaces, "hello⟨space×200⟩; touch X"),
        ("long", long, "line 299"),
    ];
    for (name, content, seen) in cases {
        place.write(&format!("{name}.txt"), content);
        ask(&screen, &format!("call write_file path={name} content=@{name}.txt"));
        let whole = screen.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", "s"]).output().unwrap();
        let whole = String::from_utf8(whole.stdout).unwrap();
        assert!(whole.matches(seen).count() >= 2, "{seen} in content and change:\n{whole}");
        if name == "long" {
            // All of it is there, above the question, though it does not fit the screen.
            for line in 0..300 {
                assert!(whole.contains(&format!("│ line {line}\n")), "{line}:\n{whole}");
            }
        }
        screen.keys("n");
        screen.until("ended ");
    }
}

/// `haft approvals watch` is a place to sit and answer whatever calls ask anywhere.
#[test]
fn watch_asks_about_calls_of_other_processes() {
    let place = Place::new();
    let Some(screen) = Screen::new(&place, "watch", 80, &[]) else { return };
    screen.keys("clear; \"$haft\" approvals watch; echo \"ended $?\"");
    screen.press("Enter");
    screen.until("waiting for calls that need approval");
    let waiting =
        place.program(&["call", "write_file", "path=w.txt", "content=w", "--wait", "60s"]).spawn().unwrap();
    screen.until("q later");
    screen.keys("y");
    let said = crate::support::Said::of(waiting.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    screen.until("yes, this once");
    screen.press("C-c");
    screen.until("ended 130");
}
