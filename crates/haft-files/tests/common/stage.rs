//! Real overlays: a program of file operations, run on a folder itself or on a layer above it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use crate::common::{files, new_id};
use haft_core::{
    ExecutionId,
    port::{LayerMarks, StagedRoot},
};
use haft_files::{ApplyStaged, Files, Keep, StageRules, StagedSet};
use rustix::fs::{AtFlags, Timespec, Timestamps, XattrFlags};
use std::{
    env, fs, io,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
        process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

pub const CHILD: &str = "HAFT_TEST_STAGE_CHILD";

/// Says that this is an ordinary user, also to those who are root only in a namespace of their own.
pub const USER: &str = "HAFT_TEST_STAGE_USER";

pub fn is_root() -> bool {
    env::var_os(USER).is_none() && rustix::process::geteuid().is_root()
}

/// Whether layers can be made here, else why not.
pub fn is_possible() -> Result<(), String> {
    let stage = Stage::new();
    run_staged(&[(stage.base.path().to_path_buf(), vec![Op::Folder("a".into())])])
}

/// A folder for tests whose `syncfs` writes nobody else's files to disk.
pub fn base() -> TempDir {
    let shm = Path::new("/dev/shm");
    match env::var_os("HAFT_TEST_STAGE_ON_DISK").is_none() && shm.is_dir() {
        true => tempfile::tempdir_in(shm).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// One thing that a program does.
#[derive(Clone, Debug)]
pub enum Op {
    Write(String, String),
    Append(String, String),
    Delete(String),
    Folder(String),
    Rename(String, String),
    Link(String, String),
    HardLink(String, String),
    Mode(String, u32),
    Again(String),
    Touch(String),
    Attribute(String, u8),
    Owner(String, u32),
    /// A program of the system's.
    Shell(String),
}

/// A folder with a state folder beside it, and what becomes of a program in it.
pub struct Stage {
    pub base: TempDir,
}

impl Stage {
    pub fn new() -> Self {
        Stage::at(base())
    }

    pub fn at(base: TempDir) -> Self {
        let stage = Stage { base };
        for folder in ["root", "state", "layers/upper", "layers/work", "merged"] {
            fs::create_dir_all(stage.path(folder)).unwrap();
        }
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    pub fn files(&self) -> Files {
        files(&self.root(), &self.path("state"), Keep::default())
    }

    /// By the clock of file times: what changes after this is newer.
    pub fn now(&self) -> (i64, u32) {
        let file = self.path("now");
        fs::write(&file, "now").unwrap();
        let known = fs::metadata(&file).unwrap();
        (known.ctime(), known.ctime_nsec() as u32)
    }

    pub fn staged(&self, since: (i64, u32)) -> StagedRoot {
        StagedRoot {
            root: self.root(),
            upper: self.path("layers/upper"),
            marks: if is_root() { LayerMarks::Trusted } else { LayerMarks::User },
            hidden: Vec::new(),
            since,
        }
    }

    pub fn set(&self, since: (i64, u32)) -> StagedSet {
        StagedSet { roots: vec![self.staged(since)], rules: StageRules::default() }
    }

    /// Runs shell lines on the layer.
    pub fn shell(&self, lines: &str) -> StagedSet {
        let since = self.now();
        run_staged(&[(self.base.path().to_path_buf(), vec![Op::Shell(lines.into())])]).unwrap();
        self.set(since)
    }
}

pub fn how(set: &StagedSet) -> ApplyStaged {
    ApplyStaged {
        by: new_id(),
        tenant: "local".into(),
        summary: "a test".into(),
        fingerprint: set.look().unwrap().fingerprint,
        approved: false,
    }
}

pub fn apply(files: &Files, set: &StagedSet) -> Result<ExecutionId, String> {
    let how = how(set);
    files.apply_staged(set, &how).map(|_| how.by).map_err(|error| error.message)
}

/// Runs programs on layers: each in the folder of a [`Stage`]. In a process of its own, whose mounts end with it.
pub fn run_staged(programs: &[(PathBuf, Vec<Op>)]) -> Result<(), String> {
    let plan = tempfile::NamedTempFile::new().unwrap();
    fs::write(plan.path(), encode(programs)).unwrap();
    fs::set_permissions(plan.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = Command::new("unshare");
    match is_root() {
        true => command.arg("-m"),
        false => command.arg("-Urm").env(USER, "1"),
    };
    let output = command
        .arg(env::current_exe().unwrap())
        .args(["stage_child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, plan.path())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = [output.stdout, output.stderr].concat();
            Err(format!("{:?} {}", output.status.signal(), String::from_utf8_lossy(&said)))
        }
    }
}

/// What the child does. To be called by a test of the name `stage_child`.
pub fn child() {
    let Ok(plan) = env::var(CHILD) else { return };
    let program = decode(&fs::read_to_string(plan).unwrap());
    for (base, ops) in program {
        let path = |name: &str| base.join(name).display().to_string();
        let how = match is_root() {
            true => "redirect_dir=on,index=off,metacopy=off",
            false => "userxattr",
        };
        let options = format!(
            "lowerdir={},upperdir={},workdir={},{how}",
            path("root"),
            path("layers/upper"),
            path("layers/work")
        );
        let merged = path("merged");
        let output = Command::new("mount")
            .args(["-t", "overlay", "overlay", "-o", &options, &merged])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        run(Path::new(&merged), &ops);
        assert!(Command::new("umount").arg(&merged).status().unwrap().success());
    }
}

/// Runs a program in a folder. What fails is the same on the folder and on a layer.
pub fn run(root: &Path, ops: &[Op]) -> Vec<bool> {
    let made = |(number, op): (usize, &Op)| perform(root, op, number as i64).is_ok();
    ops.iter().enumerate().map(made).collect()
}

fn set_time(path: &Path, number: i64) -> io::Result<()> {
    let time = Timespec { tv_sec: 1_600_000_000 + number, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn perform(root: &Path, op: &Op, number: i64) -> io::Result<()> {
    let at = |path: &String| root.join(path);
    // Nothing is followed: links of the tree lead anywhere in it.
    let plain = |path: &String| -> io::Result<PathBuf> {
        let full = root.join(path);
        let has_link = full.ancestors().take_while(|at| *at != root).any(|at| at.is_symlink());
        if has_link { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(full) }
    };
    let parents = |path: &Path| fs::create_dir_all(path.parent().unwrap());
    match op {
        Op::Write(path, text) => {
            let path = plain(path)?;
            parents(&path)?;
            fs::write(&path, text)?;
            set_time(&path, number)
        }
        Op::Append(path, text) => {
            let path = plain(path)?;
            let mut file = fs::OpenOptions::new().append(true).open(&path)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            set_time(&path, number)
        }
        Op::Delete(path) => remove(&at(path)),
        Op::Folder(path) => fs::create_dir_all(plain(path)?),
        Op::Rename(from, to) => {
            let (from, to) = (plain(from)?, at(to));
            // An ordinary user's layer cannot move a folder that was there; real programs copy it then.
            if from.is_dir() && !is_root() {
                return Err(io::ErrorKind::CrossesDevices.into());
            }
            if to.ancestors().skip(1).take_while(|at| *at != root).any(|at| at.is_symlink()) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            parents(&to)?;
            fs::rename(from, to)
        }
        Op::Link(path, target) => {
            let path = plain(path)?;
            parents(&path)?;
            symlink(target, &path)?;
            set_time(&path, number)
        }
        Op::HardLink(from, to) => {
            let (from, to) = (plain(from)?, plain(to)?);
            parents(&to)?;
            fs::hard_link(from, to)
        }
        Op::Mode(path, mode) => {
            let path = plain(path)?;
            let known = fs::symlink_metadata(&path)?;
            let is_folder = known.is_dir();
            // Who runs the test must still be able to use a folder.
            let mode = if is_folder { mode | 0o700 } else { mode & 0o777 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
        }
        Op::Again(path) => {
            let path = plain(path)?;
            if !path.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            fs::remove_dir_all(&path)?;
            fs::create_dir(&path)?;
            fs::write(path.join("a"), "again")?;
            set_time(&path.join("a"), number)
        }
        Op::Touch(path) => match plain(path)? {
            path if path.is_file() => set_time(&path, number),
            _ => Ok(()),
        },
        Op::Attribute(path, value) => {
            let path = plain(path)?;
            Ok(rustix::fs::lsetxattr(&path, "user.test", &[*value], XattrFlags::empty())?)
        }
        Op::Owner(path, owner) => std::os::unix::fs::lchown(plain(path)?, Some(*owner), Some(*owner)),
        Op::Shell(lines) => {
            let output = Command::new("sh").args(["-euc", lines]).current_dir(root).output()?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(())
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Everything below a folder: kind, permissions, owner, time, attributes, content.
pub fn snapshot(root: &Path) -> Vec<String> {
    let (mut all, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let known = fs::symlink_metadata(&path).unwrap();
            let time = format!("{}.{}", known.mtime(), known.mtime_nsec());
            let content = match () {
                () if known.is_symlink() => format!("-> {} {time}", fs::read_link(&path).unwrap().display()),
                () if known.is_dir() => "folder".to_owned(),
                () if known.is_file() => format!("{:?} {time}", fs::read_to_string(&path).unwrap()),
                () => "special".to_owned(),
            };
            if known.is_dir() {
                open.push(path.clone());
            }
            let path_below = path.strip_prefix(root).unwrap().display();
            let (mode, owner) = (known.permissions().mode(), (known.uid(), known.gid()));
            all.push(format!("{path_below} {mode:o} {owner:?} {content} {}", attributes(&path)));
        }
    }
    all.sort();
    all
}

fn attributes(path: &Path) -> String {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let mut found: Vec<_> = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let name = String::from_utf8_lossy(name).into_owned();
            let mut value = [0; 256];
            let length = rustix::fs::lgetxattr(path, name.as_str(), &mut value[..]).unwrap_or(0);
            format!("{name}={:?}", &value[..length])
        })
        .collect();
    found.sort();
    found.join(",")
}

fn encode(programs: &[(PathBuf, Vec<Op>)]) -> String {
    let line = |op: &Op| {
        let parts: Vec<String> = match op {
            Op::Write(a, b) => vec!["write".into(), a.clone(), b.clone()],
            Op::Append(a, b) => vec!["append".into(), a.clone(), b.clone()],
            Op::Delete(a) => vec!["delete".into(), a.clone()],
            Op::Folder(a) => vec!["folder".into(), a.clone()],
            Op::Rename(a, b) => vec!["rename".into(), a.clone(), b.clone()],
            Op::Link(a, b) => vec!["link".into(), a.clone(), b.clone()],
            Op::HardLink(a, b) => vec!["hardlink".into(), a.clone(), b.clone()],
            Op::Mode(a, mode) => vec!["mode".into(), a.clone(), mode.to_string()],
            Op::Again(a) => vec!["again".into(), a.clone()],
            Op::Touch(a) => vec!["touch".into(), a.clone()],
            Op::Attribute(a, value) => vec!["attribute".into(), a.clone(), value.to_string()],
            Op::Owner(a, owner) => vec!["owner".into(), a.clone(), owner.to_string()],
            Op::Shell(a) => vec!["shell".into(), a.clone()],
        };
        parts.join("\u{1f}")
    };
    let program = |(base, ops): &(PathBuf, Vec<Op>)| {
        let ops: Vec<_> = ops.iter().map(line).collect();
        format!("{}\u{1d}{}", base.display(), ops.join("\u{1e}"))
    };
    programs.iter().map(program).collect::<Vec<_>>().join("\u{1c}")
}

fn decode(text: &str) -> Vec<(PathBuf, Vec<Op>)> {
    let op = |line: &str| {
        let parts: Vec<String> = line.split('\u{1f}').map(str::to_owned).collect();
        let (a, b) = (parts[1].clone(), parts.get(2).cloned().unwrap_or_default());
        match parts[0].as_str() {
            "write" => Op::Write(a, b),
            "append" => Op::Append(a, b),
            "delete" => Op::Delete(a),
            "folder" => Op::Folder(a),
            "rename" => Op::Rename(a, b),
            "link" => Op::Link(a, b),
            "hardlink" => Op::HardLink(a, b),
            "mode" => Op::Mode(a, b.parse().unwrap()),
            "again" => Op::Again(a),
            "touch" => Op::Touch(a),
            "attribute" => Op::Attribute(a, b.parse().unwrap()),
            "owner" => Op::Owner(a, b.parse().unwrap()),
            _ => Op::Shell(a),
        }
    };
    let program = |text: &str| {
        let (base, ops) = text.split_once('\u{1d}').unwrap();
        (base.into(), ops.split('\u{1e}').filter(|line| !line.is_empty()).map(op).collect())
    };
    text.split('\u{1c}').filter(|text| !text.is_empty()).map(program).collect()
}
