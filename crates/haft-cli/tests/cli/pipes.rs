//! Readers that go away, and disks that are full.

use crate::support::{Place, Said};
use std::{fs::File, process::Stdio};

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    place.write("calls.json", "[{\"name\": \"get_metrics\"}]");
    for args in [
        &["tools", "list"][..],
        &["tools", "list", "--json"],
        &["tools", "show", "validate_content"],
        &["call", "get_metrics"],
        &["call", "get_metrics", "--json"],
        &["batch", "calls.json"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = place.program(args).spawn().unwrap();
        drop(child.stdout.take());
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn nobody_who_reads_errors_is_no_failure_either() {
    let place = Place::new();
    let mut child = place.program(&["call", "zzz", "--json", "--events"]).spawn().unwrap();
    drop(child.stderr.take());
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!(said.code, 1);
    assert_eq!(said.json()["status"], "Failed");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said() {
    let place = Place::new();
    for args in
        [&["call", "get_metrics"][..], &["call", "get_metrics", "--json"], &["tools", "list"], &["--help"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let said = Said::of(place.program(args).stdout(Stdio::from(full)).output().unwrap());
        assert_eq!(said.code, 1, "{args:?}: {said:?}");
        let expected = "error: standard output cannot be written: No space left on device\n  help: ";
        assert!(args == ["--help"] || said.stderr.starts_with(expected), "{args:?}: {said:?}");
    }
}
