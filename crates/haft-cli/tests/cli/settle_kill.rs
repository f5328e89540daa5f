//! The real program is killed at every named step of settling what a staged command changed: all is old or all is new,
//! the next haft says which, and a set that is kept can be decided about.

use crate::{
    serve::state as state_folder,
    staged::{STAGED, staged_place},
    support::Place,
};
use serde_json::Value;
use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

/// Every step from the room for what the command writes to the last word of its call, in order: the names of
/// `HAFT_FAILPOINT`. Jobs of the store are hit when they are applied, written and told.
const STEPS: [&str; 33] = [
    "set:forgotten:1",
    "set:made:1",
    "staged:applied:1",
    "staged:written:1",
    "staged:told:1",
    "set:ended:1",
    "set:recorded:1",
    "ran:applied:1",
    "ran:written:1",
    "set:read:1",
    "set:judged:1",
    "applying:applied:1",
    "applying:written:1",
    "applying:told:1",
    "apply:manifest:1",
    "apply:kept:1",
    "apply:put:1",
    "apply:kept:2",
    "apply:put:2",
    "apply:put:3",
    "apply:meta:1",
    "apply:carried out:1",
    "apply:done:1",
    "settled:applied:1",
    "settled:written:1",
    "settled:told:1",
    "set:forgotten:2",
    "set:cleaned:2",
    "outcome:applied:1",
    "outcome:written:1",
    "outcome:told:1",
    // Never reached: the control that a name which nothing has kills nothing.
    "set:nothing:1",
    "apply:nothing:1",
];

/// Replaces, makes, deletes, changes permissions; and counts how often it ran.
const COMMAND: &str =
    "command=echo new > a; mkdir -p made/in; echo new > made/in/b; rm gone; chmod 700 folder; echo x >> ran";

fn lay_out(place: &Place) {
    let work = place.work();
    for entry in fs::read_dir(&work).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    fs::create_dir(work.join("folder")).unwrap();
    for name in ["a", "gone", "folder/kept"] {
        fs::write(work.join(name), "old\n").unwrap();
    }
}

/// Whether all is new; everything else must be as before.
fn is_new(place: &Place, at: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let work = place.work();
    let read = |name: &str| fs::read_to_string(work.join(name)).ok();
    let mode = fs::metadata(work.join("folder")).unwrap().permissions().mode() & 0o777;
    let seen = (read("a"), read("made/in/b"), read("gone"), mode == 0o700, read("ran"), read("folder/kept"));
    let text = |text: &str| Some(text.to_owned());
    let old = (text("old\n"), None, text("old\n"), false, None, text("old\n"));
    let new = (text("new\n"), text("new\n"), None, true, text("x\n"), text("old\n"));
    let left = fs::read_dir(&work).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".haft")).collect();
    assert!(left.is_empty(), "{at}: {left:?} is left in the folder");
    match () {
        () if seen == new => true,
        () if seen == old && !work.join("made").exists() => false,
        () => panic!("{at}: neither old nor new: {seen:?}"),
    }
}

/// Runs haft until it is killed there; `None` where it ended by itself.
fn killed(place: &Place, args: &[&str], at: &str) -> Option<()> {
    let mut command = place.program(args);
    command.env("HAFT_FAILPOINT", at).stdout(Stdio::null());
    let output = command.output().unwrap();
    match output.status.signal() {
        Some(9) => Some(()),
        other => {
            assert_eq!(other, None, "{at}");
            None
        }
    }
}

/// What recovery says about the one call that was cut, if it says something.
fn recovered(place: &Place, at: &str) -> Option<(String, Value)> {
    let said = place.haft(&["recover", "--json"]).json();
    let unfinished = said["unfinished"].as_array().unwrap();
    assert!(unfinished.len() <= 1, "{at}: {said}");
    let call = &unfinished.first()?["calls"][0];
    Some((call["executionId"].as_str().unwrap().to_owned(), call["changes"].clone()))
}

fn kept(place: &Place) -> Vec<String> {
    let listed = place.haft(&["diff", "--json"]).json();
    listed.as_array().unwrap().iter().map(|one| one["executionId"].as_str().unwrap().to_owned()).collect()
}

/// Nothing is left that nobody would ever remove: no record of a cut change, no claim, no process, no mount, and of sets
/// only what was being thrown away.
fn nothing_leaks(place: &Place, at: &str) {
    let state = state_folder(place);
    let names = |folder: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(state.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    assert_eq!(names("changes/open"), Vec::<PathBuf>::new(), "{at}");
    assert_eq!(names("changes/left"), Vec::<PathBuf>::new(), "{at}");
    for left in names("staged") {
        assert!(!left.join("set.json").exists(), "{at}: {}", left.display());
        // A minute later the next start removes it.
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
        fs::File::open(&left).unwrap().set_modified(past).unwrap();
        assert!(kept(place).is_empty(), "{at}");
        assert!(!left.exists(), "{at}: {}", left.display());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(state.to_str().unwrap()), "{at}");
    let words = place.work();
    let words = words.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let running = processes.filter(|process| {
        let folder = fs::read_link(process.path().join("cwd"));
        folder.is_ok_and(|folder| folder.to_string_lossy().starts_with(words))
    });
    assert_eq!(running.count(), 0, "{at}: a process is left in the folder");
}

fn shown(place: &Place, id: &str) -> (Value, String) {
    let json = place.haft(&["runs", "show", id, "--json"]).json();
    (json["changes"]["applied"].clone(), place.haft(&["runs", "show", id]).stdout)
}

#[test]
fn killed_at_every_step_of_settling_all_is_old_or_all_is_new_and_recovery_says_which() {
    let test = "killed_at_every_step_of_settling_all_is_old_or_all_is_new_and_recovery_says_which";
    let Some(place) = staged_place(test) else { return };
    let mut seen = [0; 3];
    for (number, at) in STEPS.into_iter().enumerate() {
        lay_out(&place);
        let was_killed = killed(&place, &["call", "run_command", COMMAND], at).is_some();
        assert_eq!(was_killed, !at.contains("nothing"), "{at}");
        let recovered = recovered(&place, at);
        let new = is_new(&place, at);
        seen[usize::from(new)] += 1;
        if let Some((id, changes)) = &recovered {
            seen[2] += 1;
            match changes.is_null() {
                // Before the command could run: it wrote nothing at all.
                true => assert!(!new && number <= 3, "{at}"),
                false => {
                    assert_eq!(changes["applied"], new, "{at}: {changes}");
                    let words =
                        if new { "All of what it changed was applied" } else { "Nothing of what it changed" };
                    let (applied, text) = shown(&place, id);
                    assert!(applied == new && text.contains(words), "{at}: {applied} {text}");
                    assert!(place.haft(&["recover"]).stdout.contains(words), "{at}");
                }
            }
        }
        decide(&place, at, number, new, recovered.as_ref().map(|(id, _)| id.as_str()));
        place.haft(&["recover", "--discard", "all"]);
        nothing_leaks(&place, at);
    }
    assert!(seen[0] >= 15 && seen[1] >= 8 && seen[2] >= 20, "{seen:?}");
    // haft goes on working, and nothing is in its way.
    lay_out(&place);
    assert_eq!(place.haft(&["call", "run_command", COMMAND]).code, 0);
    assert!(is_new(&place, "the end"));
}

/// What is kept is applied or discarded, in turns; what was applied is undone.
fn decide(place: &Place, at: &str, number: usize, new: bool, id: Option<&str>) {
    let kept = kept(place);
    match (&kept[..], new) {
        ([], false) => {}
        ([], true) => {
            let Some(id) = id else { return };
            let undone = place.haft(&["undo", id]);
            assert_eq!(undone.code, 0, "{at}: {undone:?}");
            assert!(!is_new(place, at), "{at}");
        }
        ([set], false) => {
            let applies = number.is_multiple_of(2);
            let done = place.haft(&[if applies { "apply" } else { "discard" }, set]);
            // Before the command has ended nothing is known to be applied.
            let can = done.code == 0;
            assert!(can || (applies && number < 6), "{at}: {done:?}");
            if !can {
                assert_eq!(place.haft(&["discard", set]).code, 0, "{at}");
            }
            assert_eq!(is_new(place, at), applies && can, "{at}");
            let (applied, text) = shown(place, set);
            assert_eq!(applied, applies && can, "{at}: what somebody decided later is known, too: {text}");
        }
        other => panic!("{at}: {other:?}"),
    }
    assert!(self::kept(place).is_empty(), "{at}");
}

/// The same for a set that was kept and is applied later, by another process.
#[test]
fn killed_while_a_kept_set_is_applied_or_discarded_nothing_is_half_done() {
    let test = "killed_while_a_kept_set_is_applied_or_discarded_nothing_is_half_done";
    let Some(place) = staged_place(test) else { return };
    let steps = [
        ("apply", "set:judged:1"),
        ("apply", "applying:applied:1"),
        ("apply", "applying:told:1"),
        ("apply", "apply:manifest:1"),
        ("apply", "apply:put:1"),
        ("apply", "apply:carried out:1"),
        ("apply", "apply:done:1"),
        ("apply", "settled:applied:1"),
        ("apply", "settled:told:1"),
        ("apply", "set:forgotten:1"),
        ("apply", "set:cleaned:1"),
        ("apply", "outcome:written:1"),
        ("discard", "set:judged:1"),
        ("discard", "set:forgotten:1"),
        ("discard", "set:cleaned:1"),
        ("discard", "settled:applied:1"),
        ("discard", "outcome:written:1"),
    ];
    for (verb, at) in steps {
        let at = &format!("{verb} {at}");
        lay_out(&place);
        // Stopped by its deadline: that is never applied by haft itself.
        let stopped =
            place.haft(&["call", "run_command", "--timeout", "2s", &format!("{COMMAND}; sleep 60")]);
        assert_ne!(stopped.code, 0, "{stopped:?}");
        let [set] = &kept(&place)[..] else { panic!("{at}: {stopped:?}") };
        let point = at.split_once(' ').unwrap().1;
        killed(&place, &[verb, set], point).unwrap_or_else(|| panic!("{at}: it was not killed"));
        place.haft(&["recover", "--discard", "all"]);
        let new = is_new(&place, at);
        assert!(!new || verb == "apply", "{at}");
        let (applied, text) = shown(&place, set);
        assert_eq!(applied, new, "{at}: {text}");
        if let [left] = &kept(&place)[..] {
            assert!(left == set && !new, "{at}");
            assert_eq!(place.haft(&["apply", set]).code, 0, "{at}");
            assert!(is_new(&place, at), "{at}: it is whole");
        }
        nothing_leaks(&place, at);
    }
}

/// Asked and answered: a person answers from elsewhere.
#[test]
fn killed_while_a_person_is_asked_and_after_the_answer_nothing_was_applied() {
    let test = "killed_while_a_person_is_asked_and_after_the_answer_nothing_was_applied";
    let Some(place) = staged_place(test) else { return };
    place.own_config(&STAGED.replace("never", "effects").replace("auto", "prompt"));
    for answer in [None, Some("approve"), Some("deny")] {
        let at = format!("{answer:?}");
        lay_out(&place);
        let mut command = place.program(&["call", "run_command", COMMAND, "--wait", "5m"]);
        let mut child = command.env("HAFT_FAILPOINT", "set:judged:1").stdout(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let question = loop {
            let open = place.haft(&["approvals", "list", "--json"]).json();
            let open = open["approvals"].as_array().unwrap().first().cloned();
            if let Some(open) = open {
                break open["id"].as_str().unwrap_or_else(|| panic!("{open}")).to_owned();
            }
            assert!(Instant::now() < end, "{at}: nobody was asked");
            std::thread::sleep(Duration::from_millis(50));
        };
        match answer {
            None => child.kill().unwrap(),
            Some(answer) => assert_eq!(place.haft(&["approvals", answer, &question]).code, 0, "{at}"),
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9), "{at}");
        let (id, changes) = recovered(&place, &at).unwrap_or_else(|| panic!("{at}: nothing is unfinished"));
        assert_eq!(changes["applied"], false, "{at}: {changes}");
        assert!(!is_new(&place, &at), "{at}");
        assert_eq!(kept(&place), std::slice::from_ref(&id), "{at}");
        assert_eq!(place.haft(&["apply", &id]).code, 0, "{at}");
        assert!(is_new(&place, &at), "{at}");
        place.haft(&["recover", "--discard", "all"]);
        nothing_leaks(&place, &at);
        if answer.is_none() {
            // Nobody is asked about it any more; for the next one the list is to be empty.
            place.haft(&["approvals", "deny", &question]);
        }
    }
}
