//! The same tests again, by somebody who is nobody: without cgroups, and with some that root handed over.

use crate::world::{HAS_CGROUPS, is_root, own_program};
use libtest_mimic::Trial;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const NOBODY_IN_PARTICULAR: u32 = 54_321;

/// Only root can become somebody else.
pub fn trials() -> Vec<Trial> {
    if !is_root() {
        return Vec::new();
    }
    let alone =
        ["basics", "limits", "ends", "attack", "staged", "cost", "caches", "choice::limits_per_process"];
    // The `process` jail does not run as root, so these are what tests its limits for all processes together.
    let delegated = ["limits::process", "ends::process", "attack::process", "choice::siblings"];
    let alone = alone.map(|which| {
        Trial::test(format!("user::{which}"), move || {
            as_an_ordinary_user(which, None);
            Ok(())
        })
    });
    let delegated = delegated.map(|which| {
        Trial::test(format!("user::with_cgroups::{which}"), move || {
            match Delegated::new(which) {
                Ok(cgroups) => as_an_ordinary_user(which, Some(&cgroups)),
                Err(why) => haft_testkit::not_run(&format!("user::with_cgroups::{which}"), &why),
            }
            Ok(())
        })
    });
    alone.into_iter().chain(delegated).collect()
}

/// A cgroup in every hierarchy that belongs to the user, as systemd makes one for a service with `Delegate=yes`.
struct Delegated(Vec<PathBuf>);

impl Delegated {
    fn new(which: &str) -> Result<Self, String> {
        let name = format!("haft-test-{}-{}", std::process::id(), which.replace(':', "-"));
        let hierarchies = ["memory", "pids", "cpu", "cpuacct", "unified"]
            .map(|name| Path::new("/sys/fs/cgroup").join(name));
        let mut made = Delegated(Vec::new());
        for folder in hierarchies.map(|hierarchy| hierarchy.join(&name)) {
            fs::create_dir(&folder).map_err(|error| format!("no cgroup {}: {error}", folder.display()))?;
            made.0.push(folder.clone());
            let files = ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "tasks"]
                .map(|file| folder.join(file));
            for path in files.iter().chain([&folder]).filter(|path| path.exists()) {
                let owner = Some(NOBODY_IN_PARTICULAR);
                std::os::unix::fs::chown(path, owner, owner).map_err(|error| error.to_string())?;
            }
        }
        Ok(made)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn as_an_ordinary_user(which: &str, cgroups: Option<&Delegated>) {
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(NOBODY_IN_PARTICULAR), Some(NOBODY_IN_PARTICULAR)).unwrap();
    let output = match start(which, cgroups, home.path()) {
        Ok(output) => output,
        Err(error) => {
            return haft_testkit::not_run(&format!("user::{which}"), &format!("cannot start it: {error}"));
        }
    };
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    for line in said.lines().filter_map(|line| line.split_once("not run: ")).map(|(_, line)| line) {
        let (test, reason) = line.split_once(": ").unwrap_or((line, "no reason"));
        haft_testkit::not_run(&format!("user::{test}"), reason);
    }
    let failed: Vec<&str> = said.lines().filter(|line| !line.ends_with("... ok")).collect();
    assert!(output.status.success(), "{}", failed.join("\n"));
    assert!(!said.contains("running 0 tests"), "no test is called {which}");
}

fn start(which: &str, cgroups: Option<&Delegated>, home: &Path) -> std::io::Result<Output> {
    // Into the cgroups as root, and then somebody else.
    let script = "for folder in $FOLDERS; do echo $$ > $folder/cgroup.procs || exit 9; done; unset FOLDERS; \
                  exec setpriv --reuid=$ID --regid=$ID --clear-groups \"$@\"";
    let folders: Vec<_> = cgroups.iter().flat_map(|all| &all.0).map(|path| path.to_str().unwrap()).collect();
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(own_program()).args([which, "--test-threads", "2"]);
    command.env("FOLDERS", folders.join(" ")).env("ID", NOBODY_IN_PARTICULAR.to_string());
    command.env("HOME", home).env("TMPDIR", home).env_remove("HAFT_NOT_RUN").current_dir("/");
    if cgroups.is_some() {
        command.env(HAS_CGROUPS, "1");
    }
    command.output()
}
