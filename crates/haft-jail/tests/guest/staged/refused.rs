//! What cannot be kept apart is refused before anything runs, and named.

use super::*;
use std::{
    os::unix::fs::chown,
    process::{Command, Stdio},
};

/// A mount that goes with the test.
struct Mounted(PathBuf);

impl Mounted {
    fn new(arguments: &[&str], at: &Path) -> Mounted {
        let done = Command::new("mount").args(arguments).arg(at).status().unwrap();
        assert!(done.success(), "mount {arguments:?} {}", at.display());
        Mounted(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
    }
}

/// Refused by the question and by the start, with that path and these words; and nothing is written.
fn refused(stage: &Stage, spec: &GuestSpec, path: &Path, words: &str) {
    let why = stage.house.jail("namespace").can_stage(spec).unwrap_err();
    assert_eq!(why.path.as_deref(), Some(path), "{why}");
    assert!(why.to_string().contains(words), "{why}");
    let before = picture(&stage.at());
    let error = block_on(run_guest(&*stage.house.jail("namespace"), spec.clone())).unwrap_err();
    assert!(error.message.contains(words) && error.message.contains(&*path.to_string_lossy()), "{error:?}");
    assert_eq!(picture(&stage.at()), before);
}

/// Another file system in a writable folder: below an overlay it would show empty.
fn a_mount_below_a_root() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let inner = stage.at().join("in ner");
    fs::create_dir(&inner).unwrap();
    assert_eq!(stage.run("ls").1.trim(), "in ner", "without the mount it starts");
    let mounted = Mounted::new(&["-t", "tmpfs", "haft-test"], &inner);
    fs::write(inner.join("file"), "x").unwrap();
    refused(&stage, &stage.spec("echo x > 'in ner/y'"), &inner, "another file system");
    assert!(stage.run_live("cat 'in ner/file'").contains('x'), "written through it works");
    drop(mounted);
    // The same folder again, by another name: nothing but the list of mounts tells.
    let _again = Mounted::new(&["--bind", stage.at().to_str().unwrap()], &inner);
    refused(&stage, &stage.spec("true"), &inner, "another file system");
}

fn a_single_file() {
    let stage = Stage::new();
    stage.write("file", "old");
    let mut spec = stage.spec("true");
    spec.writable = vec![stage.at().join("file")];
    refused(&stage, &spec, &stage.at().join("file"), "single file");
}

/// haft's own state in the folder whose writes it would hold.
fn the_state_in_the_folder() {
    let stage = Stage::new();
    let mut spec = stage.spec("true");
    let layers = stage.at().join("state/layers");
    fs::create_dir_all(&layers).unwrap();
    spec.writes = Writes::Staged(StageSpec { layers, ..StageSpec::default() });
    refused(&stage, &spec, &stage.at(), "haft's state");
}

/// Files that an ordinary user's layer cannot hold; root's can.
fn files_of_others() {
    let stage = Stage::new();
    if !is_root() {
        return;
    }
    stage.write("theirs", "old");
    stage.write("d/theirs", "old");
    for name in ["theirs", "d/theirs", "d"] {
        chown(stage.at().join(name), Some(12345), Some(12345)).unwrap();
        let mode = if name == "d" { 0o777 } else { 0o666 };
        fs::set_permissions(stage.at().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = picture(&stage.at());
    let (root, _) = stage.run("echo new > theirs; echo new > d/theirs; echo mine > d/mine");
    assert_eq!(picture(&stage.at()), before);
    let owner = |name: &str| {
        let found = fs::metadata(root.upper.join(name)).unwrap();
        (found.uid(), found.gid())
    };
    assert_eq!([owner("theirs"), owner("d"), owner("d/mine")], [(12345, 12345), (12345, 12345), (0, 0)]);
    // The same as an ordinary user: this very test by another name.
    let folder = stage.at();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    for (path, owner) in [(&folder, 54_321), (&folder.join("d"), 54_321), (&folder.join("d/theirs"), 54_321)]
    {
        chown(path, Some(owner), Some(owner)).unwrap();
    }
    let said = as_user(&folder, None);
    assert!(said.contains("theirs belongs to another user"), "{said}");
    fs::set_permissions(folder.join("theirs"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = as_user(&folder, None);
    assert!(said.contains("staged"), "what it may only read is not in the way: {said}");
    fs::write(folder.join(".env"), "secret").unwrap();
    chown(&folder, Some(12345), Some(54_321)).unwrap();
    let said = as_user(&folder, None);
    assert!(said.contains("belongs to another user"), "the folder itself: {said}");
}

/// As in a container: the state folder is on an overlay. Then nothing is staged; on a tmpfs it is, above an overlay.
fn layers_on_an_overlay() {
    if !is_root() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    for name in ["lower", "upper", "work", "merged", "tmpfs"] {
        fs::create_dir(base.path().join(name)).unwrap();
    }
    fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| base.path().join(name).display().to_string();
    let options = format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
    let _overlay = Mounted::new(&["-t", "overlay", "overlay", "-o", &options], &base.path().join("merged"));
    let _tmpfs = Mounted::new(&["-t", "tmpfs", "haft-test", "-o", "mode=777"], &base.path().join("tmpfs"));
    let stage = Stage::new();
    let mut spec = stage.spec("echo x > x");
    let on = |folder: &str| {
        let layers = base.path().join(folder).join("layers");
        fs::create_dir_all(&layers).unwrap();
        Writes::Staged(StageSpec { layers, ..StageSpec::default() })
    };
    spec.writes = on("merged");
    refused(&stage, &spec, &base.path().join("merged/layers"), "overlayfs");
    // The workspace is on the overlay, too, as it is in containers.
    let workspace = base.path().join("merged/workspace");
    fs::create_dir(&workspace).unwrap();
    spec.writes = on("tmpfs");
    spec.writable = vec![workspace.clone()];
    let (end, _) = stage.run_spec(spec);
    assert!(end.staged[0].upper.join("x").exists() && !workspace.join("x").exists(), "{end:?}");
    chown(&workspace, Some(54_321), Some(54_321)).unwrap();
    for (folder, expected) in [("merged", "overlayfs"), ("tmpfs", "staged")] {
        let state = base.path().join(folder).join("state");
        fs::create_dir(&state).unwrap();
        chown(&state, Some(54_321), Some(54_321)).unwrap();
        let said = as_user(&workspace, Some(&state));
        assert!(said.contains(expected), "{folder}: {said}");
    }
    assert!(!workspace.join("x").exists());
}

/// What staging a folder as an ordinary user says.
fn as_user(folder: &Path, state: Option<&Path>) -> String {
    let home = tempfile::tempdir().unwrap();
    chown(home.path(), Some(54_321), Some(54_321)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
        .arg(crate::world::own_program())
        .args(["--stage".as_ref(), folder.as_os_str(), state.unwrap_or(home.path()).as_os_str()])
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .current_dir("/")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Stages a folder, with the state in another one, and says what came of it.
pub fn stage(arguments: &[String]) -> i32 {
    let [folder, state] = arguments else { panic!("--stage FOLDER STATE") };
    let layers = Path::new(state).join("layers");
    fs::create_dir_all(&layers).unwrap();
    let house = House::new();
    let mut spec = sh("echo x > x && echo written");
    spec.writable = vec![folder.into()];
    spec.denied = vec![".env".to_owned()];
    spec.writes = Writes::Staged(StageSpec { layers, ..StageSpec::default() });
    let jail = house.jail("namespace");
    let asked = jail.can_stage(&spec);
    match block_on(run_guest(&*jail, spec)) {
        Ok((end, heard)) => println!("staged {} {heard:?} {asked:?}", end.staged[0].upper.join("x").exists()),
        Err(error) => println!("{} {asked:?}", error.message),
    }
    0
}

pub fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("a_mount_below_a_root", a_mount_below_a_root),
        ("a_single_file", a_single_file),
        ("the_state_in_the_folder", the_state_in_the_folder),
        ("files_of_others", files_of_others),
        ("layers_on_an_overlay", layers_on_an_overlay),
    ]
}
