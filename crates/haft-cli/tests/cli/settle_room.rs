//! Settling without room: the folder, the state or the layer is full. And settling beside others: roots in each other.

use crate::{
    serve::state as state_folder,
    staged::{STAGED, id, run, staged_place, state},
    stop::Running,
    support::{Place, Said},
};
use std::{fs, path::Path, process::Command, time::Duration};

/// Runs a test of this file in a mount namespace of its own, so that nothing is left of what it mounts. False where the
/// test has run there, or cannot.
fn is_apart(test: &str) -> bool {
    const APART: &str = "HAFT_TEST_APART";
    if std::env::var_os(APART).is_some() {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        haft_testkit::not_run(&format!("settle_room::{test}"), "only root can mount a small file system");
        return false;
    }
    let output = Command::new("unshare")
        .arg("-m")
        .arg(std::env::current_exe().unwrap())
        .args([&format!("settle_room::{test}"), "--exact", "--nocapture"])
        .env(APART, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if said.contains("mount: permission denied") {
        haft_testkit::not_run(&format!("settle_room::{test}"), said.trim());
        return false;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

fn mount(options: &str, at: &Path) {
    fs::create_dir_all(at).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "small"]).arg(at).status();
    assert!(mounted.unwrap().success(), "mount: permission denied");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn message(said: &Said) -> String {
    said.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_full_folder_gets_nothing_of_a_set_and_the_set_is_kept() {
    let test = "a_full_folder_gets_nothing_of_a_set_and_the_set_is_kept";
    if !is_apart(test) {
        return;
    }
    for (options, what) in [("size=512k,mode=755", "bytes"), ("size=8m,nr_inodes=40,mode=755", "inodes")] {
        let place = Place::new();
        mount(options, &place.work());
        place.own_config(STAGED);
        place.write("old", "old\n");
        let first = run(&place, "true");
        if first.code != 0 {
            return haft_testkit::not_run(&format!("settle_room::{test}"), first.shown().trim());
        }
        let full = run(
            &place,
            "echo new > old; mkdir many; for n in $(seq 60); do head -c 20000 /dev/zero > many/$n; done",
        );
        assert_ne!(full.code, 0, "{what}: {full:?}");
        assert_eq!(state(&full), "kept", "{what}: {full:?}");
        assert!(message(&full).contains("o space left"), "{what}: {full:?}");
        assert_eq!(fs::read_to_string(place.work().join("old")).unwrap(), "old\n", "{what}");
        assert_eq!(names(&place.work()), ["old"], "{what}: nothing is half there, also none of haft's own");
        let again = place.haft(&["apply", &id(&full)]);
        assert_ne!(again.code, 0, "{what}: {again:?}");
        assert_eq!(names(&place.work()), ["old"], "{what}");
        // haft goes on working, and with room the same set can be applied.
        assert_eq!(state(&run(&place, "echo small > small")), "applied", "{what}");
        let more =
            Command::new("mount").args(["-o", "remount,size=16m,nr_inodes=1000"]).arg(place.work()).status();
        assert!(more.unwrap().success());
        let applied = place.haft(&["apply", &id(&full)]);
        assert_eq!(applied.code, 0, "{what}: {applied:?}");
        assert_eq!(fs::read_to_string(place.work().join("old")).unwrap(), "new\n", "{what}");
        assert_eq!(names(&place.work().join("many")).len(), 60, "{what}");
    }
}

/// What the command writes fills the disk on which haft keeps it, and haft's own records are on it.
#[test]
fn a_full_state_folder_applies_nothing_and_haft_goes_on_when_there_is_room() {
    let test = "a_full_state_folder_applies_nothing_and_haft_goes_on_when_there_is_room";
    if !is_apart(test) {
        return;
    }
    let fill = [
        ("size=12m,mode=700", "echo new > old; head -c 60000000 /dev/zero > big"),
        ("size=40m,nr_inodes=120,mode=700", "echo new > old; for n in $(seq 300); do : > f$n; done"),
    ];
    for (options, command) in fill {
        let place = Place::new();
        mount(options, &state_folder(&place));
        place.own_config(STAGED);
        place.write("old", "old\n");
        let first = run(&place, "true");
        if first.code != 0 {
            return haft_testkit::not_run(&format!("settle_room::{test}"), first.shown().trim());
        }
        let full = run(&place, command);
        assert_ne!(full.code, 0, "{full:?}");
        assert!(!message(&full).is_empty(), "{full:?}");
        assert_eq!(fs::read_to_string(place.work().join("old")).unwrap(), "old\n", "{full:?}");
        assert_eq!(names(&place.work()), ["old"], "{full:?}");
        // Another call is refused, or works: it does not hang, and it changes nothing by half.
        let other = place.haft(&["call", "write_file", "path=b", "content=b", "--json"]);
        assert_eq!(place.work().join("b").exists(), other.code == 0, "{other:?}");
        let more = Command::new("mount")
            .args(["-o", "remount,size=200m,nr_inodes=5000"])
            .arg(state_folder(&place))
            .status();
        assert!(more.unwrap().success());
        let recover = place.haft(&["recover"]);
        assert!(!recover.stdout.contains("All of what"), "{recover:?}");
        place.haft(&["recover", "--discard", "all"]);
        for set in place.haft(&["diff", "--json"]).json().as_array().unwrap() {
            let set = set["executionId"].as_str().unwrap();
            assert_eq!(place.haft(&["discard", set]).code, 0);
        }
        assert_eq!(state(&run(&place, "echo new > old; echo x > x")), "applied", "haft works again");
        assert_eq!(fs::read_to_string(place.work().join("old")).unwrap(), "new\n");
        assert_eq!(names(&state_folder(&place).join("staged")), Vec::<String>::new());
    }
}

#[test]
fn a_command_that_writes_more_than_it_may_is_stopped_and_its_changes_are_kept() {
    let test = "a_command_that_writes_more_than_it_may_is_stopped_and_its_changes_are_kept";
    let Some(place) = staged_place(test) else { return };
    place.write("old", "old\n");
    for (key, command) in [
        ("tools.commands.staged_bytes=1048576", "echo new > old; head -c 9000000 /dev/zero > big; sleep 30"),
        ("tools.commands.staged_files=5", "echo new > old; for n in $(seq 99); do : > f$n; done; sleep 30"),
    ] {
        let command = format!("command={command}");
        let full = place.haft(&["call", "run_command", "--json", &command, "--set", key]);
        assert_eq!(full.json()["error"]["code"], "RESOURCE_LIMIT_EXCEEDED", "{full:?}");
        assert_eq!(state(&full), "kept", "{full:?}");
        assert_eq!(names(&place.work()), ["old"]);
        assert_eq!(fs::read_to_string(place.work().join("old")).unwrap(), "old\n");
        assert_eq!(place.haft(&["discard", &id(&full)]).code, 0);
    }
    assert_eq!(state(&run(&place, "echo new > old")), "applied");
}

/// A haft whose root is a folder of another one's root.
fn inner(place: &Place, args: &[&str], state: &Path) -> Command {
    let mut command = place.program(args);
    command.current_dir(place.work().join("sub")).env("HAFT_STATE_DIR", state);
    command
}

#[test]
fn two_haft_with_roots_in_each_other_do_not_work_there_at_the_same_time() {
    let test = "two_haft_with_roots_in_each_other_do_not_work_there_at_the_same_time";
    let Some(place) = staged_place(test) else { return };
    fs::create_dir(place.work().join("sub")).unwrap();
    let own = state_folder(&place);
    // The outer one works; what the inner one does waits until that is settled.
    let slow = "command=echo rea''dy; sleep 3; echo outer > sub/outer; cp sub/* seen 2>/dev/null; true";
    for args in [
        &["call", "run_command", "command=echo inner > inner", "--json"][..],
        &["call", "write_file", "path=inner", "content=inner", "--json"][..],
    ] {
        let mut outer = Running::program(&place, &["call", "run_command", slow, "--events", "--json"]);
        outer.wait_for("ready");
        let begun = std::time::Instant::now();
        let done = Said::of(inner(&place, args, &own).output().unwrap());
        assert_eq!(done.code, 0, "{done:?}");
        assert!(begun.elapsed() > Duration::from_secs(1), "it waited: {done:?}");
        let outer = outer.end();
        assert_eq!(state(&outer), "applied", "{outer:?}");
        assert!(place.work().join("sub/outer").exists() && place.work().join("sub/inner").exists());
        fs::remove_file(place.work().join("sub/outer")).unwrap();
        fs::remove_file(place.work().join("sub/inner")).unwrap();
    }
    // The other way round: the inner one works, and the outer one waits.
    let slow = "command=echo rea''dy; sleep 3; echo inner > inner";
    let mut running = Running::of(inner(&place, &["call", "run_command", slow, "--events", "--json"], &own));
    running.wait_for("ready");
    let begun = std::time::Instant::now();
    let done = place.haft(&["call", "write_file", "path=outer", "content=x", "--json"]);
    assert!(done.code == 0 && begun.elapsed() > Duration::from_secs(1), "{done:?}");
    assert_eq!(state(&running.end()), "applied");
    // The control: folders beside each other do not wait for each other.
    fs::create_dir(place.work().join("beside")).unwrap();
    let mut beside = place.program(&["call", "run_command", "command=echo x > x", "--json"]);
    beside.current_dir(place.work().join("beside")).env("HAFT_STATE_DIR", &own);
    let mut running = Running::of(inner(
        &place,
        &["call", "run_command", "command=echo rea''dy; sleep 20", "--events", "--json"],
        &own,
    ));
    running.wait_for("ready");
    let done = Said::of(beside.output().unwrap());
    assert_eq!(state(&done), "applied", "{done:?}");
    running.kill();
}

/// With state folders of their own they cannot keep apart. Then what one changed is a conflict to the other: nothing is
/// lost, and nothing is mixed.
#[test]
fn two_haft_that_share_no_state_find_each_others_changes_as_conflicts() {
    let test = "two_haft_that_share_no_state_find_each_others_changes_as_conflicts";
    let Some(place) = staged_place(test) else { return };
    fs::create_dir(place.work().join("sub")).unwrap();
    fs::write(place.work().join("sub/both"), "before\n").unwrap();
    let other = place.home().join("other-state");
    let slow = "command=echo rea''dy; sleep 3; echo outer > sub/both; echo outer > sub/outer";
    let mut outer = Running::program(&place, &["call", "run_command", slow, "--events", "--json"]);
    outer.wait_for("ready");
    let args = ["call", "run_command", "command=echo inner > both; echo inner > inner", "--json"];
    let done = Said::of(inner(&place, &args, &other).output().unwrap());
    assert_eq!(state(&done), "applied", "{done:?}");
    let outer = outer.end();
    assert_eq!(outer.json()["error"]["code"], "STALE_FILE", "{outer:?}");
    assert_eq!(state(&outer), "kept", "{outer:?}");
    assert!(message(&outer).contains("both"), "{outer:?}");
    let read = |name: &str| fs::read_to_string(place.work().join("sub").join(name)).ok();
    assert_eq!(
        (read("both").as_deref(), read("inner").as_deref(), read("outer")),
        (Some("inner\n"), Some("inner\n"), None)
    );
}

/// A set that was kept is applied later, while a command works in the folder: it waits for that.
#[test]
fn a_kept_set_waits_for_a_command_that_works_in_its_folder() {
    let test = "a_kept_set_waits_for_a_command_that_works_in_its_folder";
    let Some(place) = staged_place(test) else { return };
    let kept = run(&place, "echo x > .envrc; echo x > kept");
    assert_eq!(state(&kept), "kept");
    let slow = "command=echo rea''dy; sleep 3; ls > seen";
    let mut running = Running::program(&place, &["call", "run_command", slow, "--events", "--json"]);
    running.wait_for("ready");
    let begun = std::time::Instant::now();
    let applied = place.haft(&["apply", &id(&kept)]);
    assert!(applied.code == 0 && begun.elapsed() > Duration::from_secs(1), "{applied:?}");
    assert_eq!(state(&running.end()), "applied");
    let seen = fs::read_to_string(place.work().join("seen")).unwrap();
    assert!(!seen.contains("kept") && place.work().join("kept").exists(), "{seen}");
}

/// Protected names that somebody agreed to are undone with the same question, and exactly.
#[test]
fn a_set_with_protected_names_is_undone_with_a_question_and_exactly() {
    let test = "a_set_with_protected_names_is_undone_with_a_question_and_exactly";
    let Some(place) = staged_place(test) else { return };
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        assert!(command.args(args).current_dir(place.work()).output().unwrap().status.success());
    };
    git(&["init", "-q", "."]);
    fs::create_dir_all(place.work().join("d/.vscode")).unwrap();
    place.write(".envrc", "export OLD=1\n");
    place.write("d/.vscode/tasks.json", "{}\n");
    place.write(".git/hooks/old", "#!/bin/sh\n");
    let picture = || {
        let shell = "find . -printf '%P %y %m\\n' | grep -v index | sort; find . -type f ! -name index | sort | xargs sha256sum";
        let output = Command::new("sh").args(["-c", shell]).current_dir(place.work()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = picture();
    let command = "echo evil > .envrc; echo x > .git/hooks/new; chmod +x .git/hooks/new; rm .git/hooks/old; rm -r d; \
                   echo y > ordinary";
    let kept = run(&place, command);
    assert_eq!(state(&kept), "kept", "{kept:?}");
    let id = id(&kept);
    assert_eq!(place.haft(&["apply", &id]).code, 0);
    let after = picture();
    assert!(after != before && !place.work().join("d").exists());
    // A caller that nobody answers for gets the question, and nothing is undone.
    let args = format!("execution_id={id}");
    let asked = place.haft(&["call", "undo_changes", &args, "--json"]);
    assert_eq!(asked.code, 5, "{asked:?}");
    assert_eq!(picture(), after);
    let approval = asked.json()["error"]["data"]["approvalId"].as_str().unwrap().to_owned();
    let shown = place.haft(&["approvals", "show", &approval]).stdout;
    for named in [".envrc", ".git/hooks", "protected", "tasks.json"] {
        assert!(shown.contains(named), "{named}: {shown}");
    }
    // A person who types it has decided, as with `haft apply`.
    let undone = place.haft(&["undo", &id]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(picture(), before);
    assert_ne!(place.haft(&["undo", &id]).code, 0, "once");
    // The control: without protected names nobody is asked.
    let plain = run(&place, "echo z > plain");
    let undone =
        place.haft(&["call", "undo_changes", &format!("execution_id={}", self::id(&plain)), "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!place.work().join("plain").exists());
}

/// Through the whole program: the set is kept, each of them is named, and nobody can apply it.
#[test]
fn what_is_never_applied_is_kept_and_named_and_nobody_can_apply_it() {
    let test = "what_is_never_applied_is_kept_and_named_and_nobody_can_apply_it";
    let Some(place) = staged_place(test) else { return };
    fs::create_dir(place.work().join("d")).unwrap();
    place.write("d/.env", "SECRET=1\n");
    place.write("d/other", "x\n");
    // what the command does, what is named
    let cases = [
        ("ln -s /etc/passwd out; echo y > beside", vec!["out", "/etc/passwd"]),
        ("mkfifo pipe; ln -s ../../x up; echo y > beside", vec!["pipe", "up"]),
        ("rm -rf d; echo y > beside", vec!["d", ".env"]),
        ("echo mine > d/.env; echo y > beside", vec!["d/.env"]),
        ("mv d e; echo y > beside", vec!["d"]),
    ];
    for (command, named) in cases {
        let refused = run(&place, command);
        assert_eq!(refused.json()["error"]["code"], "FILESYSTEM_POLICY_VIOLATION", "{command}: {refused:?}");
        assert_eq!(state(&refused), "kept", "{command}");
        for name in named {
            assert!(message(&refused).contains(name), "{command}: {name}: {refused:?}");
        }
        assert!(!message(&refused).contains("haft apply"), "there is no such step: {refused:?}");
        assert_ne!(place.haft(&["apply", &id(&refused)]).code, 0, "{command}");
        assert_eq!(names(&place.work()), ["d"], "{command}");
        assert_eq!(fs::read_to_string(place.work().join("d/.env")).unwrap(), "SECRET=1\n", "{command}");
        assert_eq!(place.haft(&["discard", &id(&refused)]).code, 0, "{command}");
    }
    // The control: the same beside it is applied, also a file that tools for files would not touch.
    assert_eq!(state(&run(&place, "ln -s d/other in; echo y > beside; echo z > cacert.pem")), "applied");
}

#[test]
fn what_cannot_be_undone_is_asked_about_and_says_so() {
    let test = "what_cannot_be_undone_is_asked_about_and_says_so";
    let Some(place) = staged_place(test) else { return };
    place.own_config(&format!("{STAGED}\n[tools.undo]\nmax_bytes = 5\n"));
    place.write("old", "more than five bytes\n");
    let kept = run(&place, "rm old; echo x > new");
    assert_eq!(state(&kept), "kept", "{kept:?}");
    assert!(message(&kept).contains("cannot be undone"), "{kept:?}");
    assert!(place.work().join("old").exists());
    assert_eq!(place.haft(&["apply", &id(&kept)]).code, 0);
    assert_eq!(names(&place.work()), ["new"]);
    let undone = place.haft(&["undo", &id(&kept)]);
    assert!(undone.code != 0 && undone.stderr.contains("cannot be undone"), "{undone:?}");
}

/// Undoing is decided about by what it changes: a rule about a path holds for it as for any other change.
#[test]
fn a_rule_about_a_path_holds_for_undoing() {
    let place = Place::new();
    place.own_config(STAGED);
    fs::create_dir(place.work().join("frozen")).unwrap();
    let written = place.haft(&["call", "write_file", "path=frozen/a", "content=x", "--json"]);
    assert_eq!(written.code, 0, "{written:?}");
    let rule = "[[policy.rules]]\nname = 'frozen'\neffect = 'deny'\npath = '**/frozen/**'\n";
    let undo = ["call", "undo_changes", &format!("execution_id={}", id(&written)), "--json"];
    place.own_config(&format!("{STAGED}{rule}"));
    assert_eq!(place.haft(&undo).code, 3);
    assert!(place.work().join("frozen/a").exists());
    place.own_config(STAGED);
    assert_eq!(place.haft(&undo).code, 0, "the control");
    assert!(!place.work().join("frozen/a").exists());
}
