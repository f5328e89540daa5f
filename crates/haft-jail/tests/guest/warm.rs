//! What stands ready shows what is there when the guest comes, and hides what is to be hidden then: kernels of gVisor that
//! were started with the files of a project, and inits of every jail.

use crate::world::{Heard, House, block_on, has_runtime, is_root, jails, keeping, sh};
use haft_core::port::{GuestSpec, Jail};
use libtest_mimic::Trial;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

pub fn trials() -> Vec<Trial> {
    let tests: [(&str, fn()); 3] = [
        ("a_kernel_with_the_projects_files_stands_ready", a_kernel_with_the_projects_files_stands_ready),
        (
            "nothing_that_is_hidden_now_is_seen_in_an_older_kernel",
            nothing_that_is_hidden_now_is_seen_in_an_older_kernel,
        ),
        ("what_is_mounted_in_a_grant_later_is_seen", what_is_mounted_in_a_grant_later_is_seen),
    ];
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(format!("warm::{name}"), move || {
            match is_root() && has_runtime("runsc") {
                true => test(),
                false => haft_testkit::not_run(&format!("warm::{name}"), "it takes root and runsc"),
            }
            Ok(())
        })
    };
    tests.into_iter().map(trial).collect()
}

struct World {
    // Before the house, so that it ends first.
    jail: Arc<dyn Jail>,
    _house: House,
    folder: tempfile::TempDir,
}

impl World {
    fn new(jail: &str) -> World {
        let house = House::with(|options| options.warm = 2);
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("file", "first"), ("open/file", "visible\n"), (".env", "planted"), ("inner/.env", "planted")]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(folder.path().join(".git/hooks")).unwrap();
        World { jail: house.jail(jail), _house: house, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self, script: &str) -> GuestSpec {
        let (writable, denied) = (vec![self.folder.path().to_owned()], vec![".env".into()]);
        GuestSpec { writable, denied, ..sh(script) }
    }

    /// Whether the kernel stood ready, and what was heard.
    async fn run(&self, script: &str) -> (bool, Heard) {
        let mut guest = self.jail.start(self.spec(script)).await.unwrap();
        let was_ready = guest.enforcement().details.contains_key("startedBefore");
        let (sink, heard) = keeping();
        guest.wait(sink).await.unwrap();
        let heard = heard.lock().unwrap().clone();
        (was_ready, heard)
    }

    /// Runs it until it was in a kernel that stood ready, and waits until the next ones are.
    async fn until_ready(&self, script: &str) -> Heard {
        let soon = Instant::now() + Duration::from_secs(60);
        loop {
            let (was_ready, heard) = self.run(script).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            if was_ready {
                return heard;
            }
            assert!(Instant::now() < soon, "none ever stands ready: {heard:?}");
        }
    }
}

fn a_kernel_with_the_projects_files_stands_ready() {
    let world = World::new("gvisor");
    block_on(async {
        let look = "cat file; cat .env inner/.env; pwd; echo x > .git/hooks/pre-commit; echo made > made";
        let heard = world.until_ready(look).await;
        assert!(heard.out.starts_with("first") && !heard.out.contains("planted"), "{heard:?}");
        assert!(heard.out.contains(&*world.folder.path().to_string_lossy()), "it starts there: {heard:?}");
        assert_eq!(fs::read_to_string(world.at("made")).unwrap(), "made\n");
        assert!(!world.at(".git/hooks/pre-commit").exists());
        // What was changed and made since the kernel started is there, and what was removed is not.
        fs::write(world.at("file"), "second").unwrap();
        fs::write(world.at("new"), "new").unwrap();
        fs::remove_file(world.at("made")).unwrap();
        let (was_ready, heard) = world.run("cat file new; ls made").await;
        assert!(was_ready, "a change of a file needs no other kernel");
        assert_eq!(heard.out, "secondnew", "{heard:?}");
        // One that asks for other limits has another kernel.
        let mut other = world.spec("ulimit -n");
        other.limits.open_files = Some(77);
        let mut guest = world.jail.start(other).await.unwrap();
        assert!(!guest.enforcement().details.contains_key("startedBefore"));
        let (sink, heard) = keeping();
        guest.wait(sink).await.unwrap();
        assert_eq!(heard.lock().unwrap().out, "77\n");
    });
}

/// What somebody does to the folder after a kernel was started with it: a secret is somewhere else, or what hid it is
/// gone. The control is the secret itself, read without a jail.
const CHANGES: [(&str, &str); 8] = [
    ("a new name", "mkdir deep; echo planted > deep/.env"),
    ("replaced by a rename", "echo planted again > .tmp; mv .tmp .env"),
    ("replaced by a link of the same file", "ln .env kept; rm .env; ln kept .env; rm kept"),
    ("removed and made again", "rm .env; echo planted > .env"),
    ("away and back", "mv .env kept; mv kept .env"),
    ("the folder around it moved", "mv inner moved"),
    (
        "the folder around it replaced",
        "mkdir other; echo planted > other/.env; mv inner gone; mv other inner",
    ),
    ("another name of it", "ln .env visible"),
];

fn shell(folder: &Path, script: &str) {
    let status = Command::new("sh").args(["-ec", script]).current_dir(folder).status().unwrap();
    assert!(status.success(), "{script}");
}

fn nothing_that_is_hidden_now_is_seen_in_an_older_kernel() {
    for (name, change) in CHANGES {
        let world = World::new("gvisor");
        // What it can see shows that it looks.
        let (look, nothing) =
            ("cat file; grep -rhE 'planted|visible' . ; echo looked", "firstvisible\nlooked\n");
        block_on(async {
            let heard = world.until_ready(look).await;
            assert_eq!(heard.out, nothing, "{name}, before: {heard:?}");
            shell(world.folder.path(), change);
            let seen =
                Command::new("grep").args(["-r", "planted", "."]).current_dir(world.folder.path()).output();
            assert!(seen.unwrap().status.success(), "{name}: without a jail it is there");
            // As often as kernels stand ready, and more.
            for round in 0..4 {
                let (_, heard) = world.run(look).await;
                assert_eq!(heard.out, nothing, "{name}, {round}: {heard:?}");
            }
            // And kernels that show it as it is now come again.
            world.until_ready(look).await;
        });
    }
}

fn what_is_mounted_in_a_grant_later_is_seen() {
    for jail in jails() {
        let world = World::new(jail);
        fs::create_dir(world.at("place")).unwrap();
        fs::write(world.at("place/below"), "below").unwrap();
        let look = "cd place && echo *";
        block_on(async {
            // Inits stand ready from the second guest on.
            for _ in 0..3 {
                assert_eq!(world.run(look).await.1.out, "below\n", "{jail}");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            if jail == "gvisor" {
                world.until_ready(look).await;
            }
            let other = tempfile::tempdir().unwrap();
            fs::write(other.path().join("above"), "above").unwrap();
            let mounted = Mounted::new(other.path(), world.at("place"));
            let seen = [world.run(look).await.1.out, world.run(look).await.1.out];
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(mounted);
            assert_eq!(seen, ["above\n", "above\n"], "{jail}");
            for _ in 0..3 {
                assert_eq!(world.run(look).await.1.out, "below\n", "{jail}, unmounted");
            }
        });
    }
}

/// A folder over another one, for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &Path, over: PathBuf) -> Mounted {
        let status = Command::new("mount").arg("--bind").args([folder, &over]).status().unwrap();
        assert!(status.success());
        Mounted(over)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
