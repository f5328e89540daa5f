//! Writes that are kept apart: nothing of them is on the machine, all of them are in the layer, and what cannot be kept
//! apart is refused. As root and, from `user.rs`, as an ordinary user.

use crate::world::{Heard, House, block_on, is_root, run as run_guest, sh};
use haft_core::port::{GuestEnd, GuestSpec, Jail as _, LayerMarks, StageSpec, StagedRoot, Writes};
use libtest_mimic::Trial;
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

pub mod attacks;
pub mod bounds;
pub mod refused;

/// A house, a folder to grant, and a place for layers.
pub struct Stage {
    pub house: House,
    pub folder: tempfile::TempDir,
    pub layers: tempfile::TempDir,
}

impl Stage {
    pub fn new() -> Stage {
        let house = House::new();
        let layers = tempfile::tempdir_in(house.state.path()).unwrap();
        Stage { house, folder: tempfile::tempdir().unwrap(), layers }
    }

    pub fn at(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.at().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A place for the layers of the next guest.
    pub fn writes(&self) -> Writes {
        let layers = tempfile::tempdir_in(self.layers.path()).unwrap().keep();
        Writes::Staged(StageSpec { layers, ..StageSpec::default() })
    }

    pub fn spec(&self, script: &str) -> GuestSpec {
        let mut spec = sh("");
        spec.argv = ["bash", "-c", script].map(str::to_owned).into();
        spec.writable = vec![self.at()];
        spec.denied = [".env", "*.pem"].map(str::to_owned).into();
        spec.limits.wall_time = Some(Duration::from_secs(60));
        spec.writes = self.writes();
        spec
    }

    pub fn run_spec(&self, spec: GuestSpec) -> (GuestEnd, Heard) {
        let started = block_on(run_guest(&*self.house.jail("namespace"), spec));
        started.unwrap_or_else(|error| panic!("it does not start: {error:?}"))
    }

    /// Runs a script with its writes kept apart, and gives its one root.
    pub fn run(&self, script: &str) -> (StagedRoot, String) {
        let (end, heard) = self.run_spec(self.spec(script));
        let said = format!("{}{}", heard.out, heard.err);
        assert_eq!(end.exit_code, Some(0), "{script}: {said} {end:?}");
        assert!(end.violations.is_empty(), "{end:?}");
        assert_eq!(end.staged.len(), 1, "{end:?}");
        (end.staged[0].clone(), said)
    }

    /// The same script with its writes let through: that it works.
    pub fn run_live(&self, script: &str) -> String {
        let spec = GuestSpec { writes: Writes::Live, ..self.spec(script) };
        let (_, heard) = self.run_spec(spec);
        format!("{}{}", heard.out, heard.err)
    }
}

/// Everything below a folder: kind and mode, owner, content or target. Times of files too.
pub fn picture(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let kind = found.file_type();
            let content = if kind.is_symlink() {
                format!("-> {}", fs::read_link(&path).unwrap().display())
            } else if kind.is_file() {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            } else {
                format!("{kind:?}")
            };
            let owner = (
                found.uid(),
                found.gid(),
                found.mode(),
                found.mtime(),
                found.mtime_nsec(),
                found.ctime_nsec(),
            );
            all.insert(path.strip_prefix(folder).unwrap().to_owned(), format!("{owner:?} {content}"));
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    all
}

fn is_whiteout(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0)
}

/// All kinds of changes: the machine's files are as before, and the layer has them.
fn nothing_is_on_the_machine() {
    let stage = Stage::new();
    for (name, text) in
        [("keep", "old"), ("gone", "old"), ("sub/file", "old"), ("sub/gone", "old"), (".git/config", "")]
    {
        stage.write(name, text);
    }
    symlink("keep", stage.at().join("link")).unwrap();
    let script = "echo new > made; echo more >> keep; rm gone; mkdir -p d/e; mv sub/file d/e/; rm -r sub; \
                  mkdir sub; echo x > sub/x; ln keep hard; ln -sf made link; chmod 700 made; touch -d @0 d; \
                  mkfifo pipe; echo '[x]' > .git/config; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit; \
                  echo evil > .envrc; cat keep d/e/file sub/x; ls -a";
    let before = picture(&stage.at());
    let (root, said) = stage.run(script);
    assert_eq!(picture(&stage.at()), before, "not a byte and not a time of the machine's changed");
    assert!(said.contains("old\nmore") || said.contains("oldmore"), "the program sees what it wrote: {said}");
    assert!(!said.contains("gone"), "{said}");
    assert_eq!(root.root, stage.at());
    assert_eq!(root.marks, if is_root() { LayerMarks::Trusted } else { LayerMarks::User });
    let upper = |name: &str| root.upper.join(name);
    assert_eq!(fs::read_to_string(upper("made")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(upper("d/e/file")).unwrap(), "old");
    assert_eq!(fs::read_to_string(upper("keep")).unwrap(), "oldmore\n");
    assert_eq!(fs::metadata(upper("made")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_link(upper("link")).unwrap(), Path::new("made"));
    assert!(is_whiteout(&upper("gone")), "a removed file is marked");
    // Protected names may be written: they are looked at before they are applied.
    for (name, text) in [(".git/config", "[x]\n"), (".git/hooks/post-commit", "evil\n"), (".envrc", "evil\n")]
    {
        assert_eq!(fs::read_to_string(upper(name)).unwrap(), text, "{name}");
    }
    // The control: written through, all of that is there.
    stage.run_live("echo more >> keep; rm gone");
    assert!(!stage.at().join("gone").exists());
}

/// The folder itself and folders around what is hidden look as they do on the machine.
fn folders_look_as_they_are() {
    let stage = Stage::new();
    stage.write("sub/deep/.env", "secret");
    stage.write("sub/deep/x", "x");
    for (name, mode) in [("sub/deep", 0o2750), ("sub", 0o711), (".", 0o751)] {
        fs::set_permissions(stage.at().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let stat = "stat -c '%a %Y %n' . sub sub/deep";
    let live = stage.run_live(stat);
    assert_eq!(stage.run(stat).1, live);
}

/// A folder that is there is renamed: as root by a mark, as another user not at all.
fn folders_are_renamed() {
    let stage = Stage::new();
    stage.write("d/x", "x");
    stage.write("d/.env", "secret");
    let rename = "perl -e 'rename(\"d\", \"e\") or print \"$!{EXDEV}\"'; ls e/ 2>/dev/null; true";
    assert!(stage.run_live("mkdir a; perl -e 'rename(\"a\", \"b\") or die'; ls -d b; rmdir b").contains('b'));
    let (root, said) = stage.run(rename);
    if is_root() {
        assert_eq!(said.trim(), "x", "and what is hidden in it stays so");
        assert!(is_whiteout(&root.upper.join("d")));
        let mut value = [0; 64];
        let length =
            rustix::fs::lgetxattr(root.upper.join("e"), "trusted.overlay.redirect", &mut value[..]).unwrap();
        assert!(value[..length].ends_with(b"d"), "{:?}", &value[..length]);
    } else {
        assert_ne!(said.trim(), "", "EXDEV");
        assert!(!root.upper.join("e").exists());
    }
    // What programs do then: they copy.
    let (root, said) = stage.run("mv d e && ls -A e");
    assert_eq!(said.trim(), "x");
    assert!(root.upper.join("e").is_dir());
}

/// What is denied is hidden, however folders around it are moved and whatever is made in its place.
fn masks_survive_renames_of_their_parents() {
    let stage = Stage::new();
    for name in ["a/b/.env", "a/key.pem", "top.pem", "dir.pem/inside"] {
        stage.write(name, "planted-secret");
    }
    stage.write("a/b/open", "open");
    let read = "grep -ra planted . 2>/dev/null; true";
    assert_eq!(
        String::from_utf8(
            std::process::Command::new("sh")
                .args(["-c", read])
                .current_dir(stage.at())
                .output()
                .unwrap()
                .stdout
        )
        .unwrap()
        .matches("planted")
        .count(),
        4,
        "without a jail all are read"
    );
    let before = picture(&stage.at());
    let script = format!(
        "{read}; mv a z; mv z/b c; {read}; mkdir -p a/b; {read}; cp -r c d; rm -rf c; mv a/b c; {read}; \
         mkdir dir.pem; echo mine > a/key.pem; cat d/open; {read}"
    );
    let (root, said) = stage.run(&script);
    assert!(!said.contains("planted") && said.contains("open"), "{said}");
    assert_eq!(picture(&stage.at()), before);
    let mut hidden = root.hidden.clone();
    hidden.sort();
    assert_eq!(hidden, ["a/b/.env", "a/key.pem", "dir.pem", "top.pem"].map(PathBuf::from));
    // What the guest put in their place is in the layer, to be refused.
    assert_eq!(fs::read_to_string(root.upper.join("a/key.pem")).unwrap(), "mine\n");
    // The layers can be removed by their owner.
    fs::remove_dir_all(root.upper.parent().unwrap()).unwrap();
}

/// Read-only parts of a writable folder are read-only, and nothing of the machine is written through any grant.
fn grants_inside_of_grants() {
    let stage = Stage::new();
    for name in ["ro/x", "ro/.env", "rw/x", "p/file", "x"] {
        stage.write(name, "old");
    }
    let before = picture(&stage.at());
    let mut spec = stage.spec(
        "for f in ro/x rw/x p/file x; do echo new > $f && echo wrote $f; done; mv ro r; mv p q; ls -A ro; true",
    );
    spec.writable.push(stage.at().join("rw"));
    spec.readable = vec![stage.at().join("ro"), stage.at().join("p/file")];
    let (end, heard) = stage.run_spec(spec);
    let wrote: Vec<_> = heard.out.lines().collect();
    assert_eq!(wrote, ["wrote rw/x", "wrote x", "x"], "{heard:?}");
    assert_eq!(end.staged.len(), 1, "the inner folder is a part of the outer one: {end:?}");
    assert_eq!(picture(&stage.at()), before);
    // A writable folder in a read-only one.
    let mut spec = stage.spec("echo new > rw/x && echo wrote; echo new > x || echo kept");
    spec.readable = vec![stage.at()];
    spec.writable = vec![stage.at().join("rw")];
    spec.working_dir = Some(stage.at());
    let (end, heard) = stage.run_spec(spec);
    assert_eq!((heard.out.trim(), end.staged[0].root.clone()), ("wrote\nkept", stage.at().join("rw")));
    assert_eq!(picture(&stage.at()), before);
}

/// Two folders, two layers; and what is in one layer is not seen by the next guest.
fn every_guest_has_layers_of_its_own() {
    let stage = Stage::new();
    let other = tempfile::tempdir().unwrap();
    let mut spec = stage.spec("");
    spec.writable.push(other.path().canonicalize().unwrap());
    spec.argv[2] = format!("echo one > one; echo two > {}/two", other.path().display());
    let (end, _) = stage.run_spec(spec);
    let found: Vec<_> = end.staged.iter().map(|root| fs::read_dir(&root.upper).unwrap().count()).collect();
    assert_eq!(found, [1, 1], "{end:?}");
    let (_, said) = stage.run("ls -A");
    assert_eq!(said, "");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
}

/// What changed after the mount is what has a later change time, and nothing else.
fn changes_of_others_can_be_told() {
    let stage = Stage::new();
    for number in 0..20 {
        stage.write(&format!("{number}"), "before");
        let (root, _) = stage.run(&format!("[ $(cat {number}) = before ]"));
        let changed = |name: &str| {
            let found = fs::metadata(stage.at().join(name)).unwrap();
            (found.ctime(), u32::try_from(found.ctime_nsec()).unwrap()) > root.since
        };
        assert!(!changed(&number.to_string()), "written before it started: {:?}", root.since);
        stage.write("after", "after");
        assert!(changed("after"));
    }
    // While it runs, too: what it makes is later than the mount by the same clock.
    let (root, _) = stage.run("echo x > first");
    let made = fs::metadata(root.upper.join("first")).unwrap();
    assert!((made.ctime(), u32::try_from(made.ctime_nsec()).unwrap()) > root.since);
}

/// What people do with git.
fn git_works() {
    let stage = Stage::new();
    let git = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; ";
    let (root, said) = stage.run(&format!(
        "{git} git init -q .; mkdir d; echo x > d/x; git add .; git commit -qm one; git mv d e; git commit -qm two; \
         git log --oneline | wc -l; git status --short"
    ));
    assert_eq!(said.trim(), "2", "in a repository of its own everything works");
    assert!(root.upper.join(".git/HEAD").exists() && !stage.at().join(".git").exists());
    // In one that is there.
    stage.run_live(&format!("{git} git init -q .; mkdir d; echo x > d/x; git add .; git commit -qm one"));
    let before = picture(&stage.at());
    let (_, said) = stage.run(&format!(
        "{git} echo y > y; git add .; git commit -qm two; git log --oneline | wc -l; \
         if git mv d e 2>/dev/null; then echo moved; git commit -qm three; fi; git fsck"
    ));
    assert_eq!(said.contains("moved"), is_root(), "{said}");
    assert_eq!(picture(&stage.at()), before);
}

/// Jails that cannot keep writes apart say so, and the choice among jails takes the one that can.
fn the_jail_that_can_is_taken() {
    let stage = Stage::new();
    for jail in crate::world::jails().into_iter().filter(|jail| *jail != "namespace") {
        let why = stage.house.jail(jail).can_stage(&stage.spec("true")).unwrap_err();
        assert!(why.to_string().contains("namespace"), "{jail}: {why}");
        let error = block_on(run_guest(&*stage.house.jail(jail), stage.spec("echo x > x"))).unwrap_err();
        assert!(error.message.contains("stage"), "{jail}: {error:?}");
        assert!(!stage.at().join("x").exists());
    }
    let auto = haft_jail::guest::Auto::new(&stage.house.host);
    for level in [haft_core::IsolationLevel::Standard, haft_core::IsolationLevel::Strict] {
        let spec = GuestSpec { level, ..stage.spec("echo x > x") };
        assert_eq!(auto.can_stage(&spec), Ok(()));
        let (end, _) = block_on(run_guest(&auto, spec)).unwrap();
        assert_eq!(end.staged.len(), 1, "{end:?}");
    }
    assert!(!stage.at().join("x").exists());
}

/// A program that may write nothing has no layers, and needs no place for any.
fn nothing_writable_needs_no_layers() {
    let stage = Stage::new();
    stage.write("x", "x");
    let mut spec = stage.spec("cat x; echo y > x");
    (spec.readable, spec.writable) = (spec.writable, Vec::new());
    spec.writes = Writes::Staged(StageSpec { layers: "/not/there".into(), ..StageSpec::default() });
    let (end, heard) = stage.run_spec(spec);
    assert_eq!((heard.out.as_str(), end.staged.len()), ("x", 0), "{heard:?} {end:?}");
}

pub fn trials() -> Vec<Trial> {
    let own: [(&str, fn()); 10] = [
        ("nothing_is_on_the_machine", nothing_is_on_the_machine),
        ("folders_look_as_they_are", folders_look_as_they_are),
        ("folders_are_renamed", folders_are_renamed),
        ("masks_survive_renames_of_their_parents", masks_survive_renames_of_their_parents),
        ("grants_inside_of_grants", grants_inside_of_grants),
        ("every_guest_has_layers_of_its_own", every_guest_has_layers_of_its_own),
        ("changes_of_others_can_be_told", changes_of_others_can_be_told),
        ("git_works", git_works),
        ("the_jail_that_can_is_taken", the_jail_that_can_is_taken),
        ("nothing_writable_needs_no_layers", nothing_writable_needs_no_layers),
    ];
    let all = own.into_iter().chain(attacks::tests()).chain(bounds::tests()).chain(refused::tests());
    all.map(|(name, test)| {
        Trial::test(format!("staged::{name}"), move || {
            test();
            Ok(())
        })
    })
    .collect()
}
