//! Changes are made whole, can be undone, and keep what they should.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests say what they need"
)]

mod common;

use common::Ground;
use haft_core::ErrorCode;
use haft_sdk::files::{Change, Expect, FileOutcome, Workspace as _};
use std::{fs, os::unix::fs::PermissionsExt as _};

#[test]
fn t_patch_01_a_failure_in_the_middle_changes_nothing() {
    let ground = Ground::new();
    ground.write("a.txt", "a");
    ground.write("b.txt", "b");
    // The third one cannot be made: a file is where its folder would be.
    let error =
        ground.change([write("a.txt", "A"), write("new/x.txt", "X"), write("b.txt/c.txt", "C")]).unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    assert_eq!(ground.tree(), ["a.txt=a", "b.txt=b"]);

    // And one that fails only when it is carried out: somebody swaps a file after the plan.
    let path = ground.root.path().join("b.txt");
    let mut ground = ground;
    ground.files.at_points(std::sync::Arc::new(move |point| {
        if point == "manifest" {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "someone else's").unwrap();
        }
    }));
    let error =
        ground.change([write("a.txt", "A"), write("new/x.txt", "X"), write("b.txt", "B")]).unwrap_err();
    assert_eq!(error.code, ErrorCode::StaleFile, "{}", error.message);
    assert!(error.message.contains("What was changed before was taken back"), "{}", error.message);
    assert_eq!(ground.tree(), ["a.txt=a", "b.txt=someone else's"]);
}

#[test]
fn files_are_written_with_their_permissions_and_folders_are_made() {
    let ground = Ground::new();
    ground.write("run.sh", "old");
    let path = ground.root.path().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let changed = ground.change([write("run.sh", "new"), write("deep/er/x", "x")]).unwrap();
    assert_eq!(ground.tree(), ["deep/er/x=x", "run.sh=new"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    let outcomes: Vec<_> = changed.iter().map(|changed| (&*changed.place.shown, &changed.outcome)).collect();
    assert_eq!(outcomes, [("run.sh", &FileOutcome::Modified), ("deep/er/x", &FileOutcome::Created)]);
    assert_ne!(changed[0].before, changed[0].after);
    assert_eq!(changed[1].before, None);
}

#[test]
fn what_is_expected_is_checked() {
    let ground = Ground::new();
    ground.write("a", "1");
    let hash = |text: &str| {
        use sha2::{Digest as _, Sha256};
        Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let with = |expect| Change::Write { path: "a".into(), expect, bytes: b"2".to_vec(), like: None };
    assert_eq!(ground.change([with(Expect::Absent)]).unwrap_err().message, "'a' already exists");
    let error = ground.change([with(Expect::Sha256(hash("other")))]).unwrap_err();
    assert_eq!(error.code, ErrorCode::StaleFile);
    assert!(error.message.contains("File content changed since last read"), "{}", error.message);
    ground.change([with(Expect::Sha256(hash("1")))]).unwrap();
    assert_eq!(ground.tree(), ["a=2"]);
    assert!(ground.change([with(Expect::Anything)]).unwrap().is_empty(), "the same bytes are no change");
}

#[test]
fn moves_copies_and_deletions() {
    let ground = Ground::new();
    ground.write("a", "1");
    ground.write("b", "2");
    ground.write("dir/x", "3");
    let moved = |from: &str, to: &str, replace| Change::Move { from: from.into(), to: to.into(), replace };
    let copied = |from: &str, to: &str, replace| Change::Copy { from: from.into(), to: to.into(), replace };

    assert!(ground.change([moved("a", "b", false)]).unwrap_err().message.contains("already exists"));
    let changed = ground.change([moved("a", "b", true)]).unwrap();
    let one = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
    let hashes = (changed[1].before.as_deref(), changed[1].after.as_deref(), changed[1].bytes);
    assert_eq!(hashes, (Some(one), Some(one), 1), "a moved file has its hash on both sides");
    assert_eq!(ground.tree(), ["b=1", "dir/x=3"]);
    ground.change([copied("b", "dir", false)]).unwrap();
    assert_eq!(ground.tree(), ["b=1", "dir/b=1", "dir/x=3"]);
    assert!(ground.change([moved("dir", "dir/inside", false)]).unwrap_err().message.contains("into itself"));
    ground.change([moved("dir", "other/place", false)]).unwrap();
    assert_eq!(ground.tree(), ["b=1", "other/place/b=1", "other/place/x=3"]);
    let delete = |path: &str| Change::Delete { path: path.into(), expect: Expect::Anything };
    ground.change([delete("other")]).unwrap();
    assert_eq!(ground.tree(), ["b=1"]);
    assert!(ground.change([delete("other")]).unwrap_err().message.contains("does not exist"));
}

#[test]
fn every_kind_of_change_can_be_undone_and_the_undoing_too() {
    let set = |text: &str| match text.split(' ').collect::<Vec<_>>()[..] {
        ["write", path, text] => write(path, text),
        ["delete", path] => Change::Delete { path: path.into(), expect: Expect::Anything },
        ["move", from, to] => Change::Move { from: from.into(), to: to.into(), replace: true },
        ["copy", from, to] => Change::Copy { from: from.into(), to: to.into(), replace: true },
        _ => panic!("{text}"),
    };
    for change in [
        "write a new",
        "write new/deep/file x",
        "delete a",
        "delete dir",
        "move a b",
        "move a c/d/e",
        "move dir folder",
        "copy a b",
        "copy a new/b",
        "move dir/x x",
    ] {
        let ground = Ground::new();
        for (path, text) in [("a", "1"), ("b", "2"), ("dir/x", "3"), ("dir/sub/y", "4")] {
            ground.write(path, text);
        }
        std::os::unix::fs::symlink("x", ground.root.path().join("dir/link")).unwrap();
        let before = ground.tree();
        let first = ground.change_as([set(change)]).unwrap().0;
        let after = ground.tree();
        assert_ne!(before, after, "{change}");
        let second = ground.undo(first).unwrap();
        assert_eq!(ground.tree(), before, "{change}");
        ground.undo(second).unwrap();
        assert_eq!(ground.tree(), after, "{change}");
        assert_eq!(ground.undo(second).unwrap_err().code, ErrorCode::StaleFile, "{change}: not twice");
    }
}

#[test]
fn undoing_is_refused_where_the_file_changed_since() {
    let ground = Ground::new();
    ground.write("a", "1");
    ground.write("b", "1");
    let (id, _) = ground.change_as([write("a", "2"), write("b", "2")]).unwrap();
    ground.write("b", "mine");
    let error = ground.undo(id).unwrap_err();
    assert_eq!(error.code, ErrorCode::StaleFile);
    assert!(error.message.contains("is not as the call left it"), "{}", error.message);
    assert_eq!(ground.tree(), ["a=2", "b=mine"], "nothing was undone");
}

#[test]
fn nobody_undoes_what_another_tenant_did() {
    let ground = Ground::new();
    let (id, _) = ground.change_as([write("a", "2")]).unwrap();
    let mut reader = ground.reader();
    reader.tenant = "other".into();
    let error = ground.files.undo(id, common::new_id(), &reader).unwrap_err();
    assert!(error.message.contains("nothing to undo"), "{}", error.message);
}

#[test]
fn nothing_is_written_through_links_into_denied_or_read_only_places() {
    let ground = Ground::new();
    ground.write("target", "1");
    std::os::unix::fs::symlink("target", ground.root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(ground.outside.path(), ground.root.path().join("out")).unwrap();
    for (path, part) in [
        ("link", "is a link"),
        ("out/x", "outside sandbox"),
        (".env", "denied pattern '**/.env'"),
        (".git/hooks/pre-commit", "denied pattern '**/.git/**'"),
        ("sub/.SSH/authorized_keys", "denied pattern '**/.ssh/**'"),
    ] {
        let error = ground.change([write(path, "x")]).unwrap_err();
        assert_eq!(error.code, ErrorCode::FilesystemPolicyViolation, "{path}: {}", error.message);
        assert!(error.message.contains(part), "{path}: {}", error.message);
    }
    assert_eq!(ground.tree(), ["link->target", "out->", "target=1"]);
    assert_eq!(fs::read_dir(ground.outside.path()).unwrap().count(), 0);
    // A folder with something denied in it keeps its name: under another one a pattern may not fit.
    ground.write("dir/.env", "secret");
    for change in [
        Change::Move { from: "dir".into(), to: "elsewhere".into(), replace: false },
        Change::Delete { path: "dir".into(), expect: Expect::Anything },
        Change::Copy { from: "dir/.env".into(), to: "x".into(), replace: false },
    ] {
        assert_eq!(ground.change([change]).unwrap_err().code, ErrorCode::FilesystemPolicyViolation);
    }
}

#[test]
fn what_a_call_wrote_counts_as_read() {
    let ground = Ground::new();
    let changed = ground.change([write("a", "1")]).unwrap();
    let known = ground.files.last_read(&ground.reader(), &changed[0].place).unwrap();
    assert_eq!(known, changed[0].after);
}

#[test]
fn old_records_go() {
    let ground = Ground::keeping(haft_files::Keep { records: 5, bytes: 1 << 20, file_bytes: 1 << 20 });
    for round in 0..40 {
        ground.change([write("a", &format!("{round}"))]).unwrap();
    }
    let left = fs::read_dir(ground.state.path().join("changes/done")).unwrap().count();
    assert!(left <= 6, "{left}");
    assert_eq!(fs::read_dir(ground.state.path().join("changes/open")).unwrap().count(), 0);
}

#[test]
fn a_file_too_large_to_put_back_is_not_touched() {
    let ground = Ground::keeping(haft_files::Keep { records: 5, bytes: 1 << 20, file_bytes: 10 });
    ground.write("large", &"x".repeat(11));
    let error = ground.change([write("large", "y")]).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitExceeded);
}

fn write(path: &str, text: &str) -> Change {
    Change::Write { path: path.into(), expect: Expect::Anything, bytes: text.into(), like: None }
}
