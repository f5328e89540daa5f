//! What was looked at is what is mounted, whatever is done to its name before the guest runs.

use crate::world::{House, block_on, has_runtime, is_root, run, sh};
use haft_core::port::GuestSpec;
use libtest_mimic::Trial;
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    vec![Trial::test("swaps::gvisor_mounts_what_was_looked_at", || {
        gvisor_mounts_what_was_looked_at();
        Ok(())
    })]
}

/// The bundle of the guest that is being started.
fn bundles(state: &Path) -> Vec<PathBuf> {
    let folders =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let scratch = folders(state.join("instances")).map(|instance| instance.join("scratch"));
    scratch
        .flat_map(folders)
        .map(|bundle| bundle.join("config.json"))
        .filter(|config| config.exists())
        .collect()
}

/// runsc mounts by name, a tenth of a second after haft has looked.
fn gvisor_mounts_what_was_looked_at() {
    if !(is_root() && has_runtime("runsc")) {
        return haft_testkit::not_run("swaps::gvisor_mounts_what_was_looked_at", "it takes root and runsc");
    }
    let house = House::new();
    let jail = house.jail("gvisor");
    let mut ran = 0;
    for delay in (0..12).map(|step| Duration::from_millis(step * 15)) {
        let place = tempfile::tempdir().unwrap();
        let (granted, other) = (place.path().join("granted"), place.path().join("other"));
        for (folder, text) in [(&granted, "granted"), (&other, "planted")] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), text).unwrap();
        }
        let state = house.state.path().to_owned();
        let (from, to, away) = (other.clone(), granted.clone(), place.path().join("away"));
        let swap = std::thread::spawn(move || {
            let soon = Instant::now() + Duration::from_secs(20);
            // Written when haft has looked at what it grants.
            while bundles(&state).is_empty() && Instant::now() < soon {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(delay);
            fs::rename(&to, away).unwrap();
            fs::rename(from, to).unwrap();
        });
        let spec = GuestSpec { writable: vec![granted], ..sh("cat file; echo written > new") };
        // Where it was swapped before the init opened it, the guest is refused.
        let heard = block_on(run(&*jail, spec)).map(|(_, heard)| heard.out).unwrap_or_default();
        swap.join().unwrap();
        ran += usize::from(heard == "granted");
        assert!(!heard.contains("planted"), "{delay:?}");
        assert!(!place.path().join("granted/new").exists(), "{delay:?}");
    }
    assert!(ran > 0, "it was never late enough");
}
