//! Staged commands at the command line: diff, apply, discard, undo, and a haft that is killed.

use crate::{
    stop::Running,
    support::{Place, Said},
};
use std::{fs, time::Duration};

/// What holds until a profile is chosen denies commands, and says how to choose one.
#[test]
fn a_profile_is_chosen_for_a_folder_and_remembered() {
    let place = Place::new();
    let denied = run(&place, "true");
    assert_eq!(denied.code, 3, "{denied:?}");
    assert!(denied.stdout.contains("haft policy use"), "{denied:?}");
    assert!(place.haft(&["policy", "show"]).stdout.starts_with("profile: locked"), "nothing was chosen");
    let chosen = place.haft(&["policy", "use", "coding"]);
    assert!(chosen.code == 0 && chosen.stdout.contains("tools.commands.ask"), "{chosen:?}");
    assert!(place.haft(&["policy", "show"]).stdout.starts_with("profile: coding"));
    let planned = place.haft(&["call", "run_command", "command=make", "--dry-run"]);
    assert_eq!(planned.code, 0, "unasked: {planned:?}");
    let background = place.haft(&["call", "start_command", "command=make", "--dry-run"]);
    assert_eq!(background.code, 5, "asked about before: {background:?}");
    // A key of the user's own file counts more than the profile.
    place.own_config("[tools.approval]\ndenylist = ['run_command']\n");
    assert_eq!(place.haft(&["call", "run_command", "command=make", "--dry-run"]).code, 3);
    place.own_config("");
    assert_eq!(place.haft(&["policy", "use", "read-only"]).code, 0);
    assert_eq!(place.haft(&["call", "write_file", "path=a", "content=x", "--dry-run"]).code, 3);
    assert_ne!(place.haft(&["policy", "use", "lax"]).code, 0);
}

pub(crate) const STAGED: &str = "\
[tools.approval]
denylist = []
mode = 'auto'

[tools.commands]
writes = 'staged'
ask = 'never'
";

/// A place where commands are staged; `None` where they cannot be.
fn place(name: &str) -> Option<Place> {
    let place = Place::new();
    place.own_config(STAGED);
    let said = run(&place, "true");
    if said.code != 0 {
        haft_testkit::not_run(&format!("staged::{name}"), said.shown().trim());
        return None;
    }
    Some(place)
}

/// The same for tests elsewhere.
pub(crate) fn staged_place(name: &str) -> Option<Place> {
    place(name)
}

pub(crate) fn run(place: &Place, command: &str) -> Said {
    place.haft(&["call", "run_command", "--json", &format!("command={command}")])
}

pub(crate) fn id(said: &Said) -> String {
    said.json()["metadata"]["executionId"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned()
}

pub(crate) fn state(said: &Said) -> String {
    said.json()["metadata"]["changes"]["state"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned()
}

#[test]
fn what_is_kept_is_shown_applied_and_undone() {
    let Some(place) = place("what_is_kept_is_shown_applied_and_undone") else { return };
    // Stopped by its deadline: haft never applies that itself.
    let command = "command=echo 'layout node' > b; echo one > a; sleep 100";
    let kept = place.haft(&["call", "run_command", "--json", "--timeout", "3s", command]);
    assert_eq!(state(&kept), "kept", "{kept:?}");
    let id = id(&kept);
    let listed = place.haft(&["diff"]);
    assert!(listed.stdout.contains(&id) && listed.stdout.contains("echo one > a"), "{listed:?}");
    let diff = place.haft(&["diff", &id[..13]]);
    assert!(diff.stdout.contains("+layout node") && diff.stdout.contains("2 created"), "{diff:?}");
    let json = place.haft(&["diff", &id, "--json"]).json();
    assert_eq!(json["changes"]["created"], 2);
    assert!(!place.work().join("a").exists());
    let applied = place.haft(&["apply", &id]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(fs::read_to_string(place.work().join("a")).unwrap(), "one\n");
    assert!(place.haft(&["diff"]).stdout.contains("no changes wait"));
    assert_ne!(place.haft(&["apply", &id]).code, 0, "once");
    let audited = place.haft(&["audit", "query", "--json"]);
    assert!(audited.stdout.contains("apply_changes"), "it is on record: {audited:?}");
    let undone = place.haft(&["undo", &id]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!place.work().join("a").exists() && !place.work().join("b").exists());
}

#[test]
fn what_is_discarded_is_gone() {
    let Some(place) = place("what_is_discarded_is_gone") else { return };
    let kept = run(&place, "echo x > .envrc");
    assert_eq!(place.haft(&["discard", &id(&kept)]).code, 0);
    assert!(!place.work().join(".envrc").exists());
    assert!(place.haft(&["diff"]).stdout.contains("no changes wait"));
    assert_ne!(place.haft(&["apply", &id(&kept)]).code, 0);
}

#[test]
fn changes_are_shown_and_applied_over_http() {
    use crate::serve::{listening, state, talk};
    use std::os::unix::net::UnixStream;
    let Some(place) = place("changes_are_shown_and_applied_over_http") else { return };
    let kept = run(&place, "echo 'layout node' > .envrc; echo one > a");
    let id = id(&kept);
    let key =
        ["keys", "create", "rival", "--right", "approve", "--role", "admin", "--tenant", "rival", "--json"];
    let rival = place.haft(&key).json()["secret"].as_str().unwrap().to_owned();
    let (server, address) = listening(Running::program(&place, &["serve", "--listen", "127.0.0.1:0"]));
    let ask = |path: &str, body: Option<&str>| {
        let socket = UnixStream::connect(state(&place).join("haft.sock")).unwrap();
        talk(socket, path, None, body)
    };
    let (status, listed) = ask("/v1/changes", None);
    assert!(status == 200 && listed.contains(&id), "{status} {listed}");
    let (status, shown) = ask(&format!("/v1/changes/{id}"), None);
    assert!(
        status == 200 && shown.contains("+layout node") && shown.contains("\"created\":2"),
        "{status} {shown}"
    );
    assert!(!place.work().join("a").exists());
    // For another tenant it is not there, whatever its key may do.
    let rivals = |path: &str, body: Option<&str>| {
        talk(std::net::TcpStream::connect(&address).unwrap(), path, Some(&rival), body)
    };
    let (status, listed) = rivals("/v1/changes", None);
    assert!(status == 200 && !listed.contains(&id), "{status} {listed}");
    let never = "0197a1b0-0000-7000-8000-000000000000";
    for (path, body) in [("", None), ("/apply", Some("{}")), ("/discard", Some("{}"))] {
        let (status, theirs) = rivals(&format!("/v1/changes/{id}{path}"), body);
        let nobodys = rivals(&format!("/v1/changes/{never}{path}"), body);
        assert_eq!((status, theirs.replace(&id, "ID")), (404, nobodys.1.replace(never, "ID")), "{path}");
    }
    let (status, applied) = ask(&format!("/v1/changes/{id}/apply"), Some("{}"));
    assert!(status == 200 && applied.contains("2 created"), "{status} {applied}");
    assert_eq!(fs::read_to_string(place.work().join("a")).unwrap(), "one\n");
    assert_eq!(ask(&format!("/v1/changes/{id}/discard"), Some("{}")).0, 404, "once");
    server.signal("TERM");
    assert_eq!(server.end().code, 0);
}

/// A state folder inside the folder that commands write cannot hold what they write.
#[test]
fn doctor_says_whether_commands_can_be_staged_here_and_what_is_in_the_way() {
    let Some(place) = place("doctor_says_whether_commands_can_be_staged_here") else { return };
    let fine = place.haft(&["doctor", "--json"]).json();
    assert_eq!(fine["staged"]["available"], true, "{fine}");
    let wished = ["call", "run_command", "command=true", "--json", "--set"];
    let wished = place.haft(&[&wished[..], &["tools.commands.writes=staged_if_possible"]].concat());
    assert_eq!(state(&wished), "nothing", "staged where that can be had: {wished:?}");
    let inside = place.work().join("state");
    fs::create_dir(&inside).unwrap();
    let doctor =
        |args: &[&str]| Said::of(place.program(args).env("HAFT_STATE_DIR", &inside).output().unwrap());
    let refused = doctor(&["doctor", "--json"]).json();
    assert_eq!(refused["staged"]["available"], false, "{refused}");
    assert!(refused["staged"]["reason"].as_str().unwrap().contains("state"), "{refused}");
    let said = doctor(&["doctor"]);
    assert!(said.stdout.contains("cannot be staged") && said.stdout.contains("fix:"), "{said:?}");
    let call = doctor(&["call", "run_command", "command=echo x > a"]);
    assert!(call.code != 0 && !place.work().join("a").exists(), "{call:?}");
    // Where it is only wished for, the command writes to the files, and the result says so.
    let live = ["call", "run_command", "command=echo x > a", "--json"];
    let live = doctor(&[&live[..], &["--set", "tools.commands.writes=staged_if_possible"]].concat());
    assert_eq!(state(&live), "live", "{live:?}");
    assert!(place.work().join("a").exists());
}

/// However far a haft came that is killed: all of what the command changed is there, or nothing of it, and the next haft
/// says so.
#[test]
fn killed_at_any_moment_all_is_applied_or_nothing() {
    const FILES: usize = 300;
    let Some(place) = place("killed_at_any_moment_all_is_applied_or_nothing") else { return };
    let command = format!(
        "command=echo rea''dy; for n in $(seq {FILES}); do echo $n > new-$n; done; rm -f old; echo fin''ished"
    );
    let mut seen = (0, 0);
    // Denser where it is settled: the command says when it has written everything.
    let delays = (0..6).map(|step| ("ready", step * 5)).chain((0..18).map(|step| ("finished", step * 4)));
    for (marker, delay) in delays {
        let work = place.work();
        for entry in fs::read_dir(&work).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        fs::write(work.join("old"), "old").unwrap();
        let mut running = Running::program(&place, &["call", "run_command", &command, "--events"]);
        running.wait_for(marker);
        std::thread::sleep(Duration::from_millis(delay));
        running.kill();
        let after = place.haft(&["diff", "--json"]);
        let new = fs::read_dir(&work)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("new-"));
        match (new.count(), work.join("old").exists()) {
            (0, true) => {
                seen.0 += 1;
                let said = format!("{}{}", after.stdout, after.stderr);
                assert!(said.contains("nothing") && said.contains("applied"), "{marker} {delay}: {after:?}");
                for kept in after.json().as_array().unwrap() {
                    let id = kept["executionId"].as_str().unwrap();
                    assert_eq!(place.haft(&["discard", id]).code, 0);
                }
            }
            (FILES, false) => seen.1 += 1,
            other => panic!("{marker} {delay}: {other:?} {after:?}"),
        }
    }
    assert!(seen.0 > 0, "{seen:?}");
}
