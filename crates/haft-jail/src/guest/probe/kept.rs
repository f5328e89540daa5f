//! Walls that were seen to hold, remembered beyond one run of haft.
//!
//! A probe starts a program in a jail, which most commands of a shell would pay for again. What is remembered counts for
//! the very same situation alone: this boot, this program, this user, with these privileges in these namespaces. Only
//! walls that held are remembered; what did not hold is tried again each time.

use super::JailKind;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

/// In the state folder, which no guest can write.
const FILE: &str = "probes.json";

/// Everything on which it depends whether walls hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Situation {
    boot: String,
    /// The program: where it is, how large, and when it was changed.
    program: [i64; 5],
    user: (u32, u32),
    /// Privileges and filters of this process, as the kernel writes them.
    privileges: Vec<String>,
    namespaces: Vec<String>,
}

impl Situation {
    /// The situation now; nothing where it cannot be told.
    fn now() -> io::Result<Self> {
        let program = fs::metadata("/proc/self/exe")?;
        let number = |number: u64| i64::try_from(number).map_err(io::Error::other);
        let at = |seconds: i64, part: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(part);
        let status = fs::read_to_string("/proc/self/status")?;
        let is_privilege = |line: &&str| {
            ["Cap", "NoNewPrivs", "Seccomp", "Groups"].iter().any(|start| line.starts_with(start))
        };
        // What a security module says about this process, where there is one.
        let label = fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
        let mut privileges: Vec<String> = status.lines().filter(is_privilege).map(str::to_owned).collect();
        privileges.push(label.trim_end_matches(['\0', '\n']).to_owned());
        let namespace =
            |name| Ok(fs::read_link(Path::new("/proc/self/ns").join(name))?.display().to_string());
        let namespaces: io::Result<Vec<String>> =
            ["user", "mnt", "pid", "net", "cgroup"].into_iter().map(namespace).collect();
        Ok(Situation {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            program: [
                number(program.dev())?,
                number(program.ino())?,
                number(program.size())?,
                at(program.mtime(), program.mtime_nsec()),
                at(program.ctime(), program.ctime_nsec()),
            ],
            user: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            privileges,
            namespaces: namespaces?,
        })
    }
}

/// By the name of the jail.
type Kept = BTreeMap<String, Situation>;

fn read(state: &Path) -> Kept {
    let text = fs::read(state.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn name(kind: JailKind) -> String {
    format!("{kind:?}")
}

/// Whether these walls were seen to hold in this very situation.
pub(super) fn has_held(state: &Path, kind: JailKind) -> bool {
    Situation::now().is_ok_and(|now| read(state).get(&name(kind)) == Some(&now))
}

/// Remembers that these walls hold. Where that fails, the next run of haft tries them again.
pub(super) fn remember(state: &Path, kind: JailKind) -> io::Result<()> {
    let mut kept = read(state);
    kept.insert(name(kind), Situation::now()?);
    let new = state.join(format!(".{FILE}.{}", std::process::id()));
    // A killed haft of the same number may have left one.
    let _ = fs::remove_file(&new);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = serde_json::to_writer(&file, &kept).map_err(io::Error::from);
    let done = written.and_then(|()| fs::rename(&new, state.join(FILE)));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_are_known_to_hold_only_in_the_very_same_situation() {
        let state = tempfile::tempdir().unwrap();
        let held = || has_held(state.path(), JailKind::Namespace);
        assert!(!held(), "nobody tried");
        remember(state.path(), JailKind::Namespace).unwrap();
        assert!(held());
        assert!(!has_held(state.path(), JailKind::Process), "another jail");
        let path = state.path().join(FILE);
        let kept: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for (field, value) in [
            ("boot", serde_json::json!("another")),
            ("program", serde_json::json!([0, 0, 0, 0, 0])),
            ("user", serde_json::json!([4711, 4711])),
            ("privileges", serde_json::json!([])),
            ("namespaces", serde_json::json!(["user:[1]"])),
        ] {
            let mut other = kept.clone();
            other["Namespace"][field] = value;
            fs::write(&path, other.to_string()).unwrap();
            assert!(!held(), "another {field}");
        }
        fs::write(&path, "{").unwrap();
        assert!(!held(), "what cannot be read says nothing");
        remember(state.path(), JailKind::Process).unwrap();
        assert!(has_held(state.path(), JailKind::Process));
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
