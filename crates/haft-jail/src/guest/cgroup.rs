//! cgroups: where they are, what they limit, what they counted. Both versions, each controller by itself.

use haft_core::Limits;
use rustix::fs::Mode;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Where this process may make cgroups of its own. Found once; see [`Hierarchies::find`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    /// Controllers of the first version, by name, each with the folder that is this process's own.
    v1: BTreeMap<String, PathBuf>,
    /// The folder of this process in the second version, and the controllers that it can hand down.
    v2: Option<(PathBuf, Vec<String>)>,
}

/// The cgroups of one init.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InitCgroups {
    pub(crate) memory: Option<PathBuf>,
    pub(crate) pids: Option<PathBuf>,
    pub(crate) cpu: Option<PathBuf>,
    pub(crate) cpuacct: Option<PathBuf>,
    /// Second version, with controllers.
    pub(crate) v2: Option<PathBuf>,
    /// Second version, for the guest without its init: what is written to its `cgroup.kill` ends all of it at once.
    pub(crate) kill: Option<PathBuf>,
}

const WANTED: [&str; 4] = ["memory", "pids", "cpu", "cpuacct"];

impl Hierarchies {
    /// Looks where cgroups can be made, by making one everywhere.
    pub(crate) fn find() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut found = Hierarchies::parse(&own, &mounts);
        found.v1.retain(|_, folder| can_make(folder));
        found.v2 = found.v2.and_then(|(own, _)| {
            // Nothing can be handed down from a cgroup that has processes of its own, as haft's has. The nearest one
            // above it that can be used is where systemd and containers put siblings, too.
            let above = own.ancestors().take_while(|folder| folder.join("cgroup.procs").exists());
            let usable: Vec<PathBuf> = above.filter(|folder| can_make(folder)).map(Path::to_owned).collect();
            let with = usable.iter().map(|folder| (folder.clone(), handed_down(folder)));
            let complete = with
                .into_iter()
                .find(|(_, has)| ["memory", "pids"].iter().all(|name| has.iter().any(|has| has == name)));
            complete.or_else(|| usable.first().map(|folder| (folder.clone(), Vec::new())))
        });
        found
    }

    /// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`.
    pub(crate) fn parse(own: &str, mounts: &str) -> Self {
        let mut found = Hierarchies::default();
        for line in own.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(names), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            if names.is_empty() {
                found.v2 = mounted(mounts, "cgroup2", "", path).map(|folder| (folder, Vec::new()));
                continue;
            }
            for name in names.split(',').filter(|name| WANTED.contains(name)) {
                if let Some(folder) = mounted(mounts, "cgroup", name, path) {
                    found.v1.insert(name.to_owned(), folder);
                }
            }
        }
        found
    }

    /// `v1`, `v2`, or nothing: where the limits of memory and processes come from.
    pub(crate) fn version(&self) -> Option<&'static str> {
        let v2_has = |name: &str| self.v2.as_ref().is_some_and(|(_, has)| has.iter().any(|has| has == name));
        if v2_has("memory") && v2_has("pids") {
            Some("v2")
        } else if self.v1.contains_key("memory") && self.v1.contains_key("pids") {
            Some("v1")
        } else {
            None
        }
    }

    /// Whether a whole guest can be ended by one write.
    pub(crate) fn can_kill(&self) -> bool {
        self.v2.is_some()
    }

    /// The folders of a jail init of that name, in the sandbox of that name where there is one.
    pub(crate) fn init(&self, sandbox: Option<&str>, name: &str) -> InitCgroups {
        let below = |folder: &PathBuf| match sandbox {
            Some(sandbox) => folder.join(sandbox).join(name),
            None => folder.join(name),
        };
        let v1 = |controller: &str| self.v1.get(controller).map(below);
        let v2 = self.v2.as_ref().map(|(folder, _)| below(folder));
        match self.version() {
            Some("v2") => InitCgroups {
                kill: v2.as_ref().map(|folder| folder.join("guest")),
                v2,
                ..InitCgroups::default()
            },
            _ => InitCgroups {
                memory: v1("memory"),
                pids: v1("pids"),
                cpu: v1("cpu"),
                cpuacct: v1("cpuacct"),
                v2: None,
                kill: v2,
            },
        }
    }

    /// Every folder in which this process could have made cgroups.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = self.v1.values().cloned().collect();
        roots.extend(self.v2.iter().map(|(folder, _)| folder.clone()));
        roots.sort();
        roots.dedup();
        roots
    }
}

/// The folder of a cgroup: a mount shows a part of the hierarchy, and our path is relative to the whole.
fn mounted(mounts: &str, kind: &str, controller: &str, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (fs_type, options) = (after.next()?, after.nth(1)?);
        if fs_type != kind
            || !(controller.is_empty() || options.split(',').any(|option| option == controller))
        {
            return None;
        }
        let fields: Vec<&str> = before.split(' ').collect();
        let (root, point) = (fields.get(3)?, fields.get(4)?);
        let relative = if *root == "/" { path } else { path.strip_prefix(root)? };
        Some(Path::new(point).join(relative.trim_start_matches('/')))
    })
}

fn can_make(folder: &Path) -> bool {
    let trial = folder.join(format!("haft-trial-{}", uuid::Uuid::new_v4().simple()));
    fs::create_dir(&trial).is_ok() && fs::remove_dir(&trial).is_ok()
}

/// The controllers that children of that folder have, or can be given.
fn handed_down(folder: &Path) -> Vec<String> {
    let read = || fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    let available = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    for controller in available.split_whitespace().filter(|name| WANTED.contains(name)) {
        // Refused where processes are in the folder itself; then they are not handed down.
        let _ = fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"));
    }
    read().split_whitespace().map(str::to_owned).collect()
}

/// What a guest's cgroups counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) peak_memory: Option<u64>,
    pub(crate) cpu_micros: Option<u64>,
    pub(crate) out_of_memory: u64,
    pub(crate) refused_forks: u64,
}

impl Counted {
    /// What was counted since.
    pub(crate) fn since(self, before: Counted) -> Counted {
        Counted {
            // The second version's peak is not reset: where it did not grow, it was another guest's.
            peak_memory: self.peak_memory.filter(|_| self.peak_memory != before.peak_memory),
            cpu_micros: self.cpu_micros.map(|now| now.saturating_sub(before.cpu_micros.unwrap_or(0))),
            out_of_memory: self.out_of_memory.saturating_sub(before.out_of_memory),
            refused_forks: self.refused_forks.saturating_sub(before.refused_forks),
        }
    }
}

impl InitCgroups {
    /// Every folder, each once, parents before children.
    pub(crate) fn folders(&self) -> Vec<&Path> {
        let all = [&self.memory, &self.pids, &self.cpu, &self.cpuacct, &self.v2, &self.kill];
        let mut folders: Vec<&Path> = all.into_iter().flatten().map(PathBuf::as_path).collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// The folders that the init itself has to be in, for its children to be in them, too.
    pub(crate) fn for_the_init(&self) -> Vec<&Path> {
        let all = [&self.memory, &self.pids, &self.cpu, &self.cpuacct, &self.v2];
        let mut folders: Vec<&Path> = all.into_iter().flatten().map(PathBuf::as_path).collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Makes the folders.
    pub(crate) fn make(&self) -> io::Result<()> {
        for folder in self.folders() {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets the folders of jail inits that will be made below have limits of their own: the second version does that
    /// only on demand, the first one always.
    pub(crate) fn hand_down(&self) {
        if let Some(folder) = &self.v2 {
            handed_down(folder);
        }
    }

    /// Removes the folders. `false` while something is still in one.
    pub(crate) fn remove(&self) -> bool {
        let stays = self.folders().into_iter().rev().filter(|folder| !remove(folder)).count();
        stays == 0
    }

    /// Ends everything that is in them.
    pub(crate) fn kill(&self) {
        for folder in self.folders() {
            kill_all(folder);
        }
    }

    /// Sets limits. A process more than asked for is allowed: the init.
    pub(crate) fn limit(&self, limits: &Limits, inits: u32) -> io::Result<()> {
        if let Some(folder) = self.memory.as_ref() {
            let limit = limits.memory_bytes.map_or_else(|| "-1".to_owned(), |bytes| bytes.to_string());
            // Without swap accounting the file is not there; then there is no swap to account for, or it is the
            // machine's, which a jail cannot bound. It may never be below the other one, not even in between.
            let with_swap = folder.join("memory.memsw.limit_in_bytes");
            let _ = fs::write(&with_swap, "-1");
            fs::write(folder.join("memory.limit_in_bytes"), &limit)?;
            if with_swap.exists() {
                fs::write(with_swap, &limit)?;
            }
        }
        if let Some(folder) = self.pids.as_ref() {
            let most = limits
                .processes
                .map_or_else(|| "max".to_owned(), |count| count.saturating_add(inits).to_string());
            fs::write(folder.join("pids.max"), most)?;
        }
        if let Some(folder) = self.cpu.as_ref() {
            // A period of 100 ms; without a limit the last guest's must not stay.
            let quota =
                limits.cpu_millicores.map_or(-1, |millicores| (i64::from(millicores) * 100).max(1000));
            fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
        if let Some(folder) = self.v2.as_ref() {
            // Here, too, what the last guest had must not stay.
            let none = || "max".to_owned();
            let memory = limits.memory_bytes.map_or_else(none, |bytes| bytes.to_string());
            fs::write(folder.join("memory.max"), memory)?;
            let swap = folder.join("memory.swap.max");
            if swap.exists() {
                fs::write(swap, if limits.memory_bytes.is_some() { "0" } else { "max" })?;
            }
            let processes =
                limits.processes.map_or_else(none, |count| count.saturating_add(inits).to_string());
            fs::write(folder.join("pids.max"), processes)?;
            let quota = limits.cpu_millicores.map(|millicores| (u64::from(millicores) * 100).max(1000));
            let cores = folder.join("cpu.max");
            // The controller may not be handed down. A limit that cannot be set is an error, none is none.
            if quota.is_some() || cores.exists() {
                let quota = quota.map_or_else(none, |quota| quota.to_string());
                fs::write(cores, format!("{quota} 100000"))?;
            }
        }
        Ok(())
    }

    /// What the guest used so far.
    pub(crate) fn counted(&self) -> Counted {
        let number = |folder: &Option<PathBuf>, file: &str| -> Option<u64> {
            read_small(&folder.as_ref()?.join(file))?.trim().parse().ok()
        };
        let field = |folder: &Option<PathBuf>, file: &str, name: &str| -> Option<u64> {
            let text = read_small(&folder.as_ref()?.join(file))?;
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.trim().parse().ok()
        };
        Counted {
            peak_memory: number(&self.memory, "memory.max_usage_in_bytes")
                .or_else(|| number(&self.v2, "memory.peak")),
            cpu_micros: number(&self.cpuacct, "cpuacct.usage")
                .map(|nanos| nanos / 1000)
                .or_else(|| field(&self.v2, "cpu.stat", "usage_usec")),
            out_of_memory: field(&self.memory, "memory.oom_control", "oom_kill")
                .or_else(|| field(&self.v2, "memory.events", "oom_kill"))
                .unwrap_or(0),
            refused_forks: field(&self.pids, "pids.events", "max")
                .or_else(|| field(&self.v2, "pids.events", "max"))
                .unwrap_or(0),
        }
    }

    /// Time on a core so far, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Option<u64> {
        match &self.cpuacct {
            Some(folder) => read_small(&folder.join("cpuacct.usage"))?
                .trim()
                .parse::<u64>()
                .ok()
                .map(|nanos| nanos / 1000),
            None => self.counted().cpu_micros,
        }
    }

    /// What was counted before a guest came: its cgroup parent may have had others. The peak is reset.
    pub(crate) fn before(&self) -> Counted {
        if let Some(folder) = &self.memory {
            let _ = fs::write(folder.join("memory.max_usage_in_bytes"), "0");
        }
        self.counted()
    }
}

/// A file of the kernel's that comes in one piece. Reading it as any file takes twice the calls, for every guest.
fn read_small(path: &Path) -> Option<String> {
    let file =
        rustix::fs::open(path, rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC, Mode::empty())
            .ok()?;
    let mut bytes = vec![0; 4096];
    let count = rustix::io::read(&file, &mut bytes).ok()?;
    bytes.truncate(count);
    String::from_utf8(bytes).ok()
}

fn remove(folder: &Path) -> bool {
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Ends everything in a cgroup and in those below it.
pub(crate) fn kill_all(folder: &Path) {
    if fs::write(folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for below in fs::read_dir(folder).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            kill_all(&below.path());
        }
    }
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|line| line.parse::<i32>().ok()) {
        match super::sys::kill(pid, libc::SIGKILL) {
            Ok(()) | Err(Errno::SRCH | _) => {}
        }
    }
}

/// Ends everything in a cgroup, and removes it with those below it. `false` where something stays.
pub(crate) fn end(folder: &Path) -> bool {
    for _ in 0..200 {
        kill_all(folder);
        if remove_tree(folder) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    false
}

/// Removes a cgroup with those below it. `false` while something is in one.
pub(crate) fn remove_tree(folder: &Path) -> bool {
    for below in fs::read_dir(folder).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&below.path());
        }
    }
    remove(folder)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
