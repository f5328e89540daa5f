//! A change of one file: how often it waits for the disk, that this does not grow, and that a power cut in between
//! leaves it whole. Linux.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests say what they need"
)]

mod common;

use common::{files, new_id};
use haft_core::ExecutionId;
use haft_files::{Files, Keep};
use haft_sdk::files::{Change, ChangeSet, Expect, Reader, Workspace as _};
use sha2::{Digest as _, Sha256};
use std::{
    env, fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};
use tempfile::TempDir;

const CHILD: &str = "HAFT_TEST_ONE_FILE_CHILD";

fn reader() -> Reader {
    Reader { tenant: "local".into(), conversation: "c".into() }
}

fn change(files: &Files, by: ExecutionId, text: &str) {
    let write = Change::Write {
        path: "a.txt".into(),
        expect: Expect::Anything,
        bytes: text.as_bytes().to_vec(),
        like: None,
    };
    let set = ChangeSet { by, reader: reader(), summary: "one file".into(), changes: vec![write] };
    files.change(set).unwrap();
}

/// Not a test by itself: makes so many changes, and is killed at that point of the last one.
#[test]
fn child() {
    let Ok(plan) = env::var(CHILD) else { return };
    let [root, state, times, die_at]: [&str; 4] = plan.split('|').collect::<Vec<_>>().try_into().unwrap();
    let mut files = files(Path::new(root), Path::new(state), Keep::default());
    let times: usize = times.parse().unwrap();
    for round in 1..times {
        change(&files, new_id(), &format!("round {round}"));
    }
    let die_at = die_at.to_owned();
    files.at_points(Arc::new(move |point| {
        if point == die_at {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }));
    change(&files, new_id(), "new");
}

fn plan(root: &Path, state: &Path, times: usize, die_at: &str) -> String {
    format!("{}|{}|{times}|{die_at}", root.display(), state.display())
}

/// The system calls of a child that makes so many changes; those of that list, or all.
fn calls(root: &Path, state: &Path, times: usize, which: &str) -> Option<usize> {
    let list = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={which}"), "-o"])
        .arg(list.path())
        .arg(env::current_exe().unwrap())
        .args(["child", "--exact", "--test-threads=1"])
        .env(CHILD, plan(root, state, times, "never"))
        .status()
        .ok()?;
    assert!(status.success());
    let text = fs::read_to_string(list.path()).unwrap();
    Some(text.lines().filter(|line| line.contains('(') && !line.contains("resumed>")).count())
}

#[test]
fn a_change_of_one_file_waits_for_the_disk_three_times() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let count =
        |times| calls(root.path(), state.path(), times, "fsync,fdatasync,sync_file_range,syncfs,sync");
    let Some(first) = count(1) else {
        return haft_testkit::not_run(
            "a_change_of_one_file_waits_for_the_disk_three_times",
            "strace is missing",
        );
    };
    assert_eq!(first, 4, "the first also makes records to come");
    // Fifteen records are left of those.
    assert_eq!(count(15), Some(45));
    assert_eq!(count(16), Some(49), "sixteen more are made at once");
}

#[test]
fn a_change_costs_the_same_after_nine_hundred_others() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = files(root.path(), state.path(), Keep::default());
    change(&here, new_id(), "first");
    let Some(few) = calls(root.path(), state.path(), 1, "all") else {
        return haft_testkit::not_run(
            "a_change_costs_the_same_after_nine_hundred_others",
            "strace is missing",
        );
    };
    // As many as use up all records that were made ahead: the next one is the second after those were made, again.
    for round in 0..911 {
        change(&here, new_id(), &format!("round {round}"));
    }
    let many = calls(root.path(), state.path(), 1, "all").unwrap();
    assert_eq!(fs::read_dir(state.path().join("changes/done")).unwrap().count(), 914);
    // What the test program does besides may differ by some.
    assert!(many.abs_diff(few) <= 12, "{few} system calls with few records, {many} with many");
}

#[test]
fn never_more_records_than_are_to_be_kept_and_the_newest_stay() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = files(root.path(), state.path(), Keep { records: 32, ..Keep::default() });
    for round in 0..80 {
        change(&here, new_id(), &format!("round {round}"));
        let kept = fs::read_dir(state.path().join("changes/done")).unwrap().count();
        assert!(kept <= 32 && kept >= (round + 1).min(30), "{kept} after {round}");
    }
    let last = new_id();
    change(&here, last, "last");
    here.undo(last, new_id(), &reader()).unwrap();
    assert_eq!(fs::read_to_string(root.path().join("a.txt")).unwrap(), "round 79");
}

#[test]
fn old_records_go_when_their_bytes_are_too_many() {
    let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = files(root.path(), state.path(), Keep { bytes: 100_000, ..Keep::default() });
    for round in 0..30 {
        change(&here, new_id(), &format!("{round}").repeat(5_000));
        let all = fs::read_dir(state.path().join("changes/done")).unwrap();
        let bytes: u64 = all.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes <= 100_000, "{bytes} after {round}");
    }
}

/// A folder with a file, and the record of a change to it whose process was killed at that point.
struct Cut {
    root: TempDir,
    state: TempDir,
}

impl Cut {
    fn at(point: &str) -> Self {
        let (root, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(root.path().join("a.txt"), "old").unwrap();
        let output = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--test-threads=1"])
            .env(CHILD, plan(root.path(), state.path(), 1, point))
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        Cut { root, state }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.state.path().join("changes").join(name)
    }

    fn record(&self, folder: &str) -> PathBuf {
        let all = fs::read_dir(self.folder(folder)).unwrap().map(|entry| entry.unwrap());
        all.filter(|entry| entry.metadata().unwrap().len() > 0).map(|entry| entry.path()).next().unwrap()
    }

    /// The record as another boot of the machine left it, without the mark that it is made.
    fn of_another_boot(&self, folder: &str) {
        let path = self.record(folder);
        let bytes = fs::read(&path).unwrap();
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let header = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let words: Vec<_> = header.split_whitespace().collect();
        let length: usize = words[2].parse().unwrap();
        let contents = String::from_utf8(bytes[end..end + length].to_vec()).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let other = contents.replace(boot.trim(), "0197f3a2-1c5b-4def-8a90-123456789abc");
        assert_ne!(other, contents);
        let sha256: String = Sha256::digest(&other).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut text = format!("{} o {length:020} {sha256}\n{other}", words[0]).into_bytes();
        text.extend_from_slice(&bytes[end + length..]);
        fs::write(path, text).unwrap();
    }

    /// What the file says after the next start, and how many sets were taken back. Nothing else is left anywhere.
    fn after(&self) -> (String, usize) {
        let elsewhere = tempfile::tempdir().unwrap();
        let next = files(elsewhere.path(), self.state.path(), Keep::default());
        let taken = next.recover().unwrap();
        assert!(taken.iter().all(|set| set.left.is_empty() && set.problem.is_none()), "{taken:?}");
        assert!(next.recover().unwrap().is_empty(), "once");
        assert_eq!(fs::read_dir(self.folder("open")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(self.root.path()).unwrap().count(), 1, "no staged bytes");
        (fs::read_to_string(self.root.path().join("a.txt")).unwrap(), taken.len())
    }

    fn undo(&self) {
        let name = self.record("done").file_name().unwrap().to_str().unwrap().to_owned();
        let of = name.split_once('.').unwrap().0.parse().unwrap();
        files(self.root.path(), self.state.path(), Keep::default()).undo(of, new_id(), &reader()).unwrap();
        assert_eq!(fs::read_to_string(self.root.path().join("a.txt")).unwrap(), "old");
    }
}

#[test]
fn a_killed_process_leaves_the_file_as_before_until_the_change_is_made() {
    for point in ["image", "manifest", "stage", "name", "carried out"] {
        assert_eq!(Cut::at(point).after(), ("old".into(), 1), "{point}");
    }
    assert_eq!(Cut::at("done").after(), ("new".into(), 0));
}

#[test]
fn after_a_power_cut_a_file_that_was_not_named_yet_is_as_before() {
    for point in ["manifest", "stage"] {
        let cut = Cut::at(point);
        cut.of_another_boot("open");
        assert_eq!(cut.after(), ("old".into(), 1), "{point}");
    }
}

#[test]
fn a_change_that_was_answered_survives_a_power_cut_that_took_its_mark_and_can_be_undone() {
    for point in ["carried out", "done"] {
        let cut = Cut::at(point);
        let folder = if point == "done" { "done" } else { "open" };
        cut.of_another_boot(folder);
        // The new name of the record was lost as well.
        for place in ["open", "spare"] {
            let record = cut.record(if place == "open" { folder } else { "done" });
            fs::rename(record, cut.folder(place).join("any-name")).unwrap();
            assert_eq!(cut.after(), ("new".into(), 0), "{point}, {place}");
        }
        cut.undo();
    }
}

#[test]
fn what_somebody_wrote_after_a_power_cut_is_left_alone() {
    let cut = Cut::at("carried out");
    cut.of_another_boot("open");
    fs::write(cut.root.path().join("a.txt"), "a person's own work").unwrap();
    assert_eq!(cut.after(), ("a person's own work".into(), 0));
}

#[test]
fn a_record_that_a_power_cut_left_in_pieces_is_of_a_change_that_was_not_begun() {
    for length in [0, 1, 50, 120, 400] {
        let cut = Cut::at("manifest");
        let record = cut.record("open");
        let bytes = fs::read(&record).unwrap();
        fs::write(&record, &bytes[..length]).unwrap();
        assert_eq!(cut.after(), ("old".into(), 0), "{length} bytes");
    }
    let cut = Cut::at("manifest");
    let record = cut.record("open");
    fs::write(&record, vec![0; fs::read(&record).unwrap().len()]).unwrap();
    assert_eq!(cut.after(), ("old".into(), 0), "only zeros");
}
