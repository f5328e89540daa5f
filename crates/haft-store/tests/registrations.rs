//! What is remembered about tools: nothing is lost, nothing is made up, nobody else may write it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_core::{
    ToolDefinition,
    port::{Registrations, StoredTool},
};
use haft_store::FileRegistrations;
use std::{fs, path::PathBuf, sync::Barrier};
use tempfile::TempDir;

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("deep/state");
    (folder, state)
}

fn added(name: &str) -> StoredTool {
    let definition = ToolDefinition::new(name, "Does something");
    StoredTool {
        definition: Some(Box::new(definition)),
        registered_by: Some("ada".to_owned()),
        registered_at: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        ..StoredTool::new(name)
    }
}

fn names(registrations: &FileRegistrations) -> Vec<String> {
    now(registrations.load()).unwrap().into_iter().map(|tool| tool.name).collect()
}

#[test]
fn what_is_saved_is_there_for_the_next_one_and_gone_once_removed() {
    let (_folder, state) = place();
    let one = FileRegistrations::new(&state);
    assert_eq!(now(one.load()).unwrap(), []);
    assert!(!state.exists(), "reading makes nothing");
    now(one.save(added("zeta"))).unwrap();
    now(one.save(added("alpha"))).unwrap();
    let off = StoredTool { enabled: false, ..added("zeta") };
    now(one.save(off.clone())).unwrap();

    let other = FileRegistrations::new(&state);
    assert_eq!(now(other.load()).unwrap(), [added("alpha"), off], "by name, the last word of each");
    now(other.remove("alpha")).unwrap();
    now(other.remove("nothing")).unwrap();
    assert_eq!(names(&one), ["zeta"]);
}

#[test]
fn what_is_ordinary_is_not_kept() {
    let (_folder, state) = place();
    let registrations = FileRegistrations::new(&state);
    now(registrations.save(StoredTool { enabled: false, ..StoredTool::new("get_metrics") })).unwrap();
    assert_eq!(names(&registrations), ["get_metrics"]);
    now(registrations.save(StoredTool::new("get_metrics"))).unwrap();
    assert_eq!(names(&registrations), [""; 0]);
}

#[test]
fn a_change_that_changes_nothing_writes_nothing() {
    let (_folder, state) = place();
    let registrations = FileRegistrations::new(&state);
    now(registrations.remove("nothing")).unwrap();
    assert!(!registrations.path().exists());
}

#[test]
fn many_at_once_lose_nothing() {
    const THREADS: usize = 8;
    const EACH: usize = 25;
    let (_folder, state) = place();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (state, start) = (&state, &start);
            scope.spawn(move || {
                start.wait();
                for index in 0..EACH {
                    // One of its own for each change, as a process has: nothing is shared but the folder.
                    let registrations = FileRegistrations::new(state);
                    now(registrations.save(added(&format!("tool_{thread}_{index}")))).unwrap();
                    assert!(names(&registrations).len() > index, "a reader never sees half of it");
                }
            });
        }
    });
    assert_eq!(names(&FileRegistrations::new(&state)).len(), THREADS * EACH);
}

#[test]
fn what_cannot_be_read_is_an_error_and_stays_as_it_is() {
    let newer = r#"{"version": 2, "tools": {"new": "shape"}}"#;
    let twice =
        r#"{"version": 1, "tools": [{"name": "a", "enabled": false}, {"name": "a", "enabled": false}]}"#;
    for (text, said) in [
        ("", "is damaged: EOF while parsing a value at line 1 column 0; correct it, or move it away"),
        ("{\"version\": 1, \"tools\": [", "is damaged: EOF while parsing"),
        ("[]", "is damaged: "),
        (r#"{"version": 1}"#, "is damaged: missing field `tools`"),
        (r#"{"version": 1, "tools": [], "more": 1}"#, "is damaged: unknown field `more`"),
        (r#"{"version": 1, "tools": [{"name": "a", "enabled": "no"}]}"#, "is damaged: invalid type"),
        (twice, "is damaged: `a` is in it twice"),
        (newer, "has the version 2, and this haft knows 1; use the haft that wrote it, or move it away"),
    ] {
        let (_folder, state) = place();
        let registrations = FileRegistrations::new(&state);
        fs::create_dir_all(&state).unwrap();
        fs::write(registrations.path(), text).unwrap();
        for error in [
            now(registrations.load()).unwrap_err(),
            now(registrations.save(added("b"))).unwrap_err(),
            now(registrations.remove("a")).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.starts_with(&registrations.path().display().to_string()), "{error}");
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(fs::read_to_string(registrations.path()).unwrap(), text);
    }
}

#[test]
fn a_folder_in_its_place_is_an_error() {
    let (_folder, state) = place();
    let registrations = FileRegistrations::new(&state);
    fs::create_dir_all(registrations.path()).unwrap();
    assert!(now(registrations.load()).unwrap_err().to_string().contains("it is not a file"));
}

#[test]
fn what_a_process_that_died_left_behind_is_no_hindrance() {
    let (_folder, state) = place();
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("registrations.json.new"), "half of").unwrap();
    let registrations = FileRegistrations::new(&state);
    now(registrations.save(added("a"))).unwrap();
    assert_eq!(names(&registrations), ["a"]);
    assert!(!state.join("registrations.json.new").exists());
}

#[cfg(unix)]
#[test]
fn it_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, state) = place();
    let registrations = FileRegistrations::new(&state);
    now(registrations.save(added("a"))).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&registrations.path())), (0o700, 0o600));

    fs::set_permissions(registrations.path(), fs::Permissions::from_mode(0o620)).unwrap();
    let error = now(registrations.load()).unwrap_err().to_string();
    assert!(error.contains("can be written by others; look at it, then run `chmod go-w "), "{error}");
    fs::set_permissions(registrations.path(), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(now(registrations.load()).is_err(), "a folder that others write is as bad");
}
