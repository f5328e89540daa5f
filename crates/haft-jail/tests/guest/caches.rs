//! Build caches: kept from one command to the next, for one workspace, and out of the reach of everybody else.

use crate::world::{Heard, House, block_on, jails, run, sh};
use haft_core::port::{GuestEnd, GuestSpec, Preset, StageSpec, Writes};
use libtest_mimic::Trial;
use std::{fs, path::PathBuf, time::Duration};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for jail in jails() {
        let mut add = |name: &str, test: fn(&'static str)| {
            trials.push(Trial::test(format!("caches::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        };
        add("are_kept_for_the_workspace", kept);
        add("reach_neither_the_owner_nor_another_workspace", reach_neither_the_owner_nor_another_workspace);
        add("are_bounded", bounded);
    }
    trials
}

/// A house whose owner has caches, with two workspaces.
struct Homes {
    house: House,
    base: tempfile::TempDir,
}

impl Homes {
    fn new(bytes: u64) -> Homes {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("home");
        for name in ["home/.cargo/registry", "home/.npm", "home/.cache/pip", "one", "two"] {
            fs::create_dir_all(base.path().join(name)).unwrap();
        }
        fs::write(home.join(".cargo/registry/crate"), "good").unwrap();
        fs::write(home.join(".npm/package"), "good").unwrap();
        let house = House::with(|options| {
            options.home = home.canonicalize().unwrap();
            options.cache_bytes = bytes;
        });
        Homes { house, base }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name).canonicalize().unwrap()
    }

    fn spec(&self, workspace: &str, script: &str) -> GuestSpec {
        let mut spec = sh(script);
        spec.writable = vec![self.path(workspace)];
        spec.presets = vec![Preset::Rust, Preset::Node, Preset::Python];
        spec.limits.wall_time = Some(Duration::from_secs(60));
        spec
    }

    fn end(&self, jail: &str, spec: GuestSpec) -> (GuestEnd, Heard) {
        block_on(run(&*self.house.jail(jail), spec)).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn run(&self, jail: &str, workspace: &str, script: &str) -> String {
        let (end, heard) = self.end(jail, self.spec(workspace, script));
        assert_eq!(end.exit_code, Some(0), "{script}: {heard:?} {end:?}");
        heard.out
    }
}

/// Where toolchains look, of those that a shell can say.
const PLACES: &str = "$XDG_CACHE_HOME $npm_config_cache $npm_config_store_dir $YARN_CACHE_FOLDER $PIP_CACHE_DIR \
                      $UV_CACHE_DIR $BUN_INSTALL_CACHE_DIR $DENO_DIR ${CARGO_BUILD_BUILD_DIR%/*}";

fn kept(jail: &'static str) {
    let homes = Homes::new(1 << 30);
    let made = "for place in PLACES; do mkdir -p $place; echo $place > $place/x; done";
    homes.run(jail, "one", &made.replace("PLACES", PLACES));
    let read = "for place in PLACES; do test \"$(cat $place/x)\" = $place || echo no $place; done";
    assert_eq!(homes.run(jail, "one", &read.replace("PLACES", PLACES)), "");
    // Without network the user's own crates are what there is, read-only.
    assert_eq!(
        homes.run(jail, "one", "cat $CARGO_HOME/registry/crate; echo x > $CARGO_HOME/x || true"),
        "good"
    );
    assert_eq!(fs::read_dir(homes.path("one")).unwrap().count(), 0, "nothing of it is in the workspace");
    if jail == "namespace" {
        // Staged commands have the same, and it is no part of what they changed.
        let layers = tempfile::tempdir_in(homes.house.state.path()).unwrap();
        let mut spec = homes.spec("one", "cat $PIP_CACHE_DIR/x && echo y > $PIP_CACHE_DIR/y && echo z > z");
        spec.writes =
            Writes::Staged(StageSpec { layers: layers.path().to_path_buf(), ..StageSpec::default() });
        let (end, heard) = homes.end(jail, spec);
        assert_eq!(end.exit_code, Some(0), "{heard:?}");
        let [root] = &end.staged[..] else { panic!("{end:?}") };
        let names: Vec<_> =
            fs::read_dir(&root.upper).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["z"]);
        assert_eq!(homes.run(jail, "one", "cat $PIP_CACHE_DIR/y"), "y\n");
    }
    // Who may change nothing has none, and neither has who uses no toolchain.
    for change in [
        |spec: &mut GuestSpec| spec.readable.append(&mut spec.writable),
        |spec: &mut GuestSpec| spec.presets = vec![Preset::Git],
    ] {
        let mut spec = homes.spec("one", "echo ${XDG_CACHE_HOME-none} ${PIP_CACHE_DIR-none}");
        change(&mut spec);
        assert_eq!(homes.end(jail, spec).1.out, "none none\n");
    }
}

fn reach_neither_the_owner_nor_another_workspace(jail: &'static str) {
    let homes = Homes::new(1 << 30);
    homes.run(jail, "two", "mkdir -p $XDG_CACHE_HOME && echo good > $XDG_CACHE_HOME/program");
    let two = homes.run(jail, "two", "echo $XDG_CACHE_HOME");
    let poison = format!(
        "mkdir -p $XDG_CACHE_HOME $npm_config_cache; echo evil > $XDG_CACHE_HOME/program;
         echo evil > $npm_config_cache/package; ln -s {home} $XDG_CACHE_HOME/home;
         for path in {home}/.cargo/registry/crate {home}/.npm/package {home}/.cache/pip/x {two}/program \
                     $XDG_CACHE_HOME/../../../*/files/xdg/program $XDG_CACHE_HOME/home/.npm/package; do
           (echo evil > $path) 2>/dev/null
         done; echo $XDG_CACHE_HOME; true",
        home = homes.path("home").display(),
        two = two.trim(),
    );
    let one = homes.run(jail, "one", &poison);
    assert_eq!(homes.run(jail, "one", "cat $XDG_CACHE_HOME/program"), "evil\n", "it is there for itself");
    assert_eq!(homes.run(jail, "two", "cat $XDG_CACHE_HOME/program"), "good\n");
    let reached = format!("cat {}/program 2>/dev/null || echo nothing", one.trim());
    assert_eq!(homes.run(jail, "two", &reached), "nothing\n", "it cannot even be read from there");
    let read = |name: &str| fs::read_to_string(homes.path("home").join(name)).unwrap();
    assert_eq!((&*read(".cargo/registry/crate"), &*read(".npm/package")), ("good", "good"));
    assert_eq!(fs::read_dir(homes.path("home/.cache/pip")).unwrap().count(), 0);
    // A part of the workspace is another workspace.
    fs::create_dir(homes.path("one").join("part")).unwrap();
    assert_eq!(homes.run(jail, "one/part", "ls $XDG_CACHE_HOME 2>/dev/null || echo nothing"), "nothing\n");
    // Nobody else on the machine gets in.
    use std::os::unix::fs::PermissionsExt as _;
    let place = homes.house.state.path().join("caches");
    for entry in fs::read_dir(place).unwrap() {
        let mode = fs::metadata(entry.unwrap().path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

fn bounded(jail: &'static str) {
    let homes = Homes::new(8 << 20);
    homes.run(jail, "one", "mkdir -p $XDG_CACHE_HOME && head -c 1000000 /dev/zero > $XDG_CACHE_HOME/small");
    let writes = "while :; do head -c 1000000 /dev/zero >> $XDG_CACHE_HOME/large; sleep 0.05; done";
    let (end, heard) = homes.end(jail, homes.spec("one", writes));
    let over = end.exceeded.unwrap_or_else(|| panic!("{heard:?}"));
    assert_eq!((over.limit, over.allowed), ("cacheBytes", 8 << 20));
    assert!(over.used > Some(8 << 20), "{over:?}");
    // Counted again, a cache that is too large is emptied before the next command.
    for place in fs::read_dir(homes.house.state.path().join("caches")).unwrap() {
        let _ = fs::remove_file(place.unwrap().path().join("counted"));
    }
    assert_eq!(homes.run(jail, "one", "ls $XDG_CACHE_HOME 2>/dev/null || echo nothing"), "nothing\n");
}
