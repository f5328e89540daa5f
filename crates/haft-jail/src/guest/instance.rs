//! One run of haft among several on the same state folder: its folder, its lock, and what a killed one left.

use super::{cgroup, sys};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// What another haft has to know to clean up after this one.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    boot: String,
    spawner: Option<(i32, u64)>,
    cgroups: Vec<PathBuf>,
    prefix: String,
    /// Where its guests have their folders. Those of an earlier haft are in the folder that the record is in.
    #[serde(default)]
    scratch: Option<PathBuf>,
}

/// This run: a folder of its own, locked as long as it lives.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Starts the names of its cgroups and jail inits.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// In which its guests have their folders.
    pub(crate) scratch: PathBuf,
    roots: Vec<PathBuf>,
    _lock: File,
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When a process started, in ticks since boot. With the boot and its number that names a process for good.
fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

impl Instance {
    /// Ends what killed runs left, and begins a new one. Its guests have their folders in `base`, where there is one.
    pub(crate) fn begin(state: &Path, base: Option<&Path>, roots: Vec<PathBuf>) -> io::Result<Self> {
        let all = state.join("instances");
        make_private(&all)?;
        sweep(&all);
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let random = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("haft-{own}-{}", random.get(..8).unwrap_or(&random));
        // Locked before others can see it: they end what is not locked.
        let hidden = all.join(format!(".{name}"));
        let folder = all.join(&name);
        make_private(&hidden)?;
        let lock = File::create(hidden.join("lock"))?;
        lock.try_lock().map_err(io::Error::from)?;
        fs::rename(hidden, &folder)?;
        let scratch = base.map_or_else(|| folder.join("scratch"), |base| base.join(&name));
        let instance = Instance { name, folder, scratch, roots, _lock: lock };
        // On record before it is there, so that it is found.
        instance.record(None)?;
        make_new(&instance.scratch)?;
        Ok(instance)
    }

    /// Writes down which process makes this run's jail inits.
    pub(crate) fn record(&self, spawner: Option<i32>) -> io::Result<()> {
        let record = Record {
            boot: boot_id(),
            spawner: spawner.and_then(|pid| Some((pid, start_time(pid)?))),
            cgroups: self.roots.clone(),
            prefix: self.name.clone(),
            scratch: Some(self.scratch.clone()),
        };
        let half = self.folder.join("record.new");
        fs::write(&half, serde_json::to_vec(&record)?)?;
        fs::rename(half, self.folder.join("record.json"))
    }

    /// Ends what is left of this run's own jails after its spawner died.
    pub(crate) fn end_own(&self) {
        for root in &self.roots {
            end_cgroups(root, &self.name);
        }
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A folder that was not there before, whoever could have made one.
fn make_new(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// Ends what runs of haft on a state folder left that are not alive any more.
pub(crate) fn end_dead(state: &Path) {
    sweep(&state.join("instances"));
}

/// Removes the folder of a run whose jails have ended. Out of sight first and at once: a folder that is seen has its
/// lock, so that every process that sees it can tell whether its run is over.
///
/// `scratch` is where its guests had their folders: in that one, or elsewhere under the same name.
pub(crate) fn remove(folder: &Path, scratch: &Path) {
    if folder.file_name() == scratch.file_name() && folder != scratch {
        let _ = fs::remove_dir_all(scratch);
    }
    let (Some(all), Some(name)) = (folder.parent(), folder.file_name()) else { return };
    let gone = all.join(format!("{GONE}{}", name.to_string_lossy()));
    match fs::rename(folder, &gone) {
        Ok(()) => drop(fs::remove_dir_all(gone)),
        Err(_) => drop(fs::remove_dir_all(folder)),
    }
}

/// Starts the names of folders that are being removed.
const GONE: &str = ".gone-";

/// Ends what runs of haft left that are not alive any more. Those whose lock is held are left alone.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let (name, folder) = (entry.file_name(), entry.path());
        match name.to_string_lossy() {
            name if name.starts_with(GONE) => {
                let _ = fs::remove_dir_all(&folder);
                continue;
            }
            // One that is just beginning.
            name if name.starts_with('.') => continue,
            _ => {}
        }
        // Where it has none, it was removed meanwhile.
        let Ok(lock) = File::open(folder.join("lock")) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        let record = fs::read(folder.join("record.json")).ok();
        let record = record.and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        if let Some(record) = record.as_ref().filter(|record| record.boot == boot_id()) {
            end(record);
        }
        let scratch = record.and_then(|record| record.scratch);
        remove(&folder, &scratch.unwrap_or_else(|| folder.join("scratch")));
    }
}

fn end(record: &Record) {
    if let Some((pid, started)) = record.spawner {
        // It is about to end by itself, and knows best what there is to end. Its jail inits end with it.
        for _ in 0..400 {
            if start_time(pid) != Some(started) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if start_time(pid) == Some(started) {
            let _ = sys::kill(pid, libc::SIGKILL);
        }
    }
    for root in &record.cgroups {
        end_cgroups(root, &record.prefix);
    }
}

fn end_cgroups(root: &Path, prefix: &str) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            cgroup::end(&entry.path());
        }
    }
}
