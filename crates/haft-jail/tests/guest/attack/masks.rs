//! Attacks on masks: names and places that are hard to hide. Each is also tried without a jail, where the file is read.

use crate::world::{House, block_on, has_runtime, is_root, run as run_guest, sh};
use haft_core::port::{GuestEnd, GuestSpec};
use libtest_mimic::Trial;
use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::Path,
    process::Command,
    time::Duration,
};

const SECRET: &str = "planted-secret";
const READ: &str = "grep -ra planted . 2>/dev/null; true";

fn spec(script: &str, folder: &Path) -> GuestSpec {
    let mut spec = sh("");
    spec.argv = ["bash", "-c", script].map(str::to_owned).into();
    spec.writable = vec![folder.to_owned()];
    spec.denied = [".env", "*.pem"].map(str::to_owned).into();
    spec.limits.wall_time = Some(Duration::from_secs(60));
    spec
}

fn in_jail(house: &House, jail: &str, script: &str, folder: &Path) -> (GuestEnd, String) {
    let started = block_on(run_guest(&*house.jail(jail), spec(script, folder)));
    let (end, heard) = started.unwrap_or_else(|error| panic!("it does not start: {error:?}"));
    (end, format!("{}{}", heard.out, heard.err))
}

fn without_jail(script: &str, folder: &Path) -> String {
    let output = Command::new("bash").args(["-c", script]).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names that are not UTF-8: in every place where something is hidden, read-only or held.
fn names_that_are_no_text(jail: &str) {
    let make = "mkdir -p $'d\\xff/in'; for f in $'d\\xff/.env' $'d\\xff/in/x.pem' $'\\xfe.pem'; do echo planted-secret > $f; done; \
                mkdir $'f\\xfd.pem'; echo planted-secret > $'f\\xfd.pem/inside'; echo open > $'d\\xff/open'";
    let control = tempfile::tempdir().unwrap();
    without_jail(make, control.path());
    assert_eq!(without_jail(READ, control.path()).matches(SECRET).count(), 4, "without a jail all are read");
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    in_jail(&house, jail, make, at);
    let odd = at.join(OsStr::from_bytes(b"d\xff"));
    assert!(odd.join("in/x.pem").exists(), "the guest made them");
    fs::write(odd.join(".envrc"), "mine").unwrap();
    let attack = "mv $'d\\xff' d; mv $'d\\xff/in' i; mv $'\\xfe.pem' y; ln $'\\xfe.pem' z; mv $'f\\xfd.pem' g; \
                  echo evil > $'d\\xff/.envrc'; rm -f $'d\\xff/.envrc'; cat $'d\\xff/open'";
    for script in [READ, attack, READ] {
        let (end, said) = in_jail(&house, jail, script, at);
        assert!(!said.contains(SECRET), "{script}: {said}");
        assert!(script == READ || said.contains("open"), "the rest is there: {said}");
        assert!(end.violations.is_empty(), "{end:?}");
    }
    assert_eq!(fs::read_to_string(odd.join(".envrc")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(odd.join(".env")).unwrap().trim(), SECRET);
}

const DEEP: &str = "n=$(printf 'l%.0s' {1..200}); for i in {1..24}; do mkdir $n && cd $n || exit 1; done; \
                    echo planted-secret > .env";

/// A path that is too long to be named: the owner's is hidden, and one of a guest's keeps no other from starting.
fn paths_too_long_to_be_named(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    without_jail(DEEP, at);
    assert!(without_jail(READ, at).contains(SECRET), "without a jail it is read");
    for script in [READ, "n=$(echo l*); mv $n m; chmod -R 755 .; mv $n/$n k; true", READ] {
        let (end, said) = in_jail(&house, jail, script, at);
        assert!(!said.contains(SECRET), "{said}");
        assert!(end.violations.is_empty(), "what is the owner's stays: {end:?}");
    }
    assert!(without_jail(READ, at).contains(SECRET), "it is still there");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let first = format!("({DEEP}); : > made; while [ ! -e read ]; do sleep 0.05; done");
    let jail = house.jail(jail);
    let (end, said) = block_on(async {
        let running = run_guest(&*jail, spec(&first, at));
        let reading = async {
            while !at.join("made").exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let read = run_guest(&*jail, spec(READ, at)).await;
            fs::write(at.join("read"), "").unwrap();
            read
        };
        let (first, second) = tokio::join!(running, reading);
        (first.unwrap().0, second.unwrap().1.out)
    });
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(end.violations.len(), 1, "it is too deep to be left there: {end:?}");
    let (_, said) = block_on(run_guest(&*jail, spec(READ, at))).unwrap();
    assert!(!said.out.contains(SECRET), "{said:?}");
}

/// Very many denied files: a folder of them is hidden whole, and a start does not take the time of as many mounts.
fn very_many_files(jail: &str) {
    const MANY: usize = 20_000;
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path();
    for name in ["keys/a", "src"] {
        fs::create_dir_all(at.join(name)).unwrap();
    }
    for number in 0..MANY {
        fs::write(at.join(format!("keys/a/{number}.pem")), SECRET).unwrap();
    }
    fs::write(at.join("src/.env"), SECRET).unwrap();
    fs::write(at.join("src/main"), "open").unwrap();
    assert_eq!(without_jail(READ, at).matches(SECRET).count(), MANY + 1, "without a jail all are read");
    let mut spec = spec(&format!("{READ}; cat src/main; : > new; mv keys/a b; mv keys k"), at);
    let started = std::time::Instant::now();
    let (_, heard) = block_on(run_guest(&*house.jail(jail), spec.clone())).unwrap();
    // For a person who looks; on a busy machine no time is a promise.
    println!("{jail}: {MANY} denied files take {:?}", started.elapsed());
    assert!(!heard.out.contains(SECRET) && heard.out.contains("open"), "{heard:?}");
    assert!(at.join("new").exists() && at.join("keys/a/0.pem").exists());
    // As many as are hidden one by one.
    let few = tempfile::tempdir().unwrap();
    for number in 0..990 {
        fs::write(few.path().join(format!("{number}.pem")), SECRET).unwrap();
    }
    let (_, said) = in_jail(&house, jail, &format!("{READ}; : > new; ls | wc -l"), few.path());
    assert_eq!(said.trim(), "991");
    // In the granted folder itself they cannot be hidden so: the error says what to do.
    spec.writable = vec![at.join("keys/a")];
    let error = block_on(run_guest(&*house.jail(jail), spec)).unwrap_err();
    let told = format!("{error:?}");
    assert!(
        told.contains("keys/a holds 20000 files") && told.contains("tools.files.denied_patterns"),
        "{told}"
    );
}

/// A denied name that is a link: what it leads to is hidden, and stays so when a program removes the link.
fn links_under_denied_names(jail: &str) {
    let (house, folder) = (House::new(), tempfile::tempdir().unwrap());
    let at = folder.path().canonicalize().unwrap();
    let at = at.as_path();
    fs::create_dir_all(at.join("envs")).unwrap();
    fs::create_dir_all(at.join("app")).unwrap();
    fs::write(at.join("envs/prod"), SECRET).unwrap();
    fs::write(at.join("envs/test"), "open").unwrap();
    symlink("envs", at.join("now")).unwrap();
    symlink("../now/prod", at.join("app/.env")).unwrap();
    let read = "cat app/.env envs/* now/*; grep -ra planted . 2>/dev/null; true";
    assert!(without_jail(read, at).contains(SECRET), "without a jail it is read");
    let (end, said) = in_jail(&house, jail, read, at);
    assert!(!said.contains(SECRET) && said.contains("open"), "{said}");
    assert!(end.violations.is_empty(), "{end:?}");
    let attacks = [
        "rm app/.env now; mv envs/prod x; mv envs e; mv app a",
        "rm app/.env; ln -s /nothing app/.env; rm now; mkdir now",
        "rm app/.env; echo other > app/.env; rm now; ln -s app now",
    ];
    for attack in attacks {
        let script = format!("{attack}; : > made; while [ ! -e read ]; do sleep 0.05; done");
        let jail = house.jail(jail);
        // One that starts while the first runs, and one afterwards.
        let (first, (second, meanwhile)) = block_on(async {
            let running = run_guest(&*jail, spec(&script, at));
            let reading = async {
                while !at.join("made").exists() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let second = run_guest(&*jail, spec(read, at)).await.unwrap();
                fs::write(at.join("read"), "").unwrap();
                second
            };
            let (first, second) = tokio::join!(running, reading);
            (first.unwrap().0, second)
        });
        assert!(!meanwhile.out.contains(SECRET), "{attack}: {meanwhile:?}");
        let told = first.violations.iter().chain(&second.violations);
        assert!(told.count() >= 2, "{attack}: one of them tells of each link: {first:?} {second:?}");
        assert_eq!(fs::read_link(at.join("app/.env")).unwrap(), Path::new("../now/prod"), "{attack}");
        assert_eq!(fs::read_link(at.join("now")).unwrap(), Path::new("envs"), "{attack}");
        let (_, said) = block_on(run_guest(&*jail, spec(read, at))).unwrap();
        assert!(!said.out.contains(SECRET), "{attack}: {said:?}");
        for name in ["made", "read"] {
            fs::remove_file(at.join(name)).unwrap();
        }
    }
    assert_eq!(fs::read_to_string(at.join("app/.env")).unwrap(), SECRET, "the owner has it");
}

/// A test of one jail.
type Test = fn(&str);

pub fn trials() -> Vec<Trial> {
    let installed = [("runc", "runc"), ("crun", "crun"), ("gvisor", "runsc")];
    let others =
        installed.into_iter().filter(|(_, program)| is_root() && has_runtime(program)).map(|(jail, _)| jail);
    let tests: [(&str, Test); 4] = [
        ("links_under_denied_names", links_under_denied_names),
        ("very_many_files", very_many_files),
        ("names_that_are_no_text", names_that_are_no_text),
        ("paths_too_long_to_be_named", paths_too_long_to_be_named),
    ];
    let jails = ["namespace"].into_iter().chain(others);
    let one = |jail: &'static str, (name, test): (&str, Test)| {
        Trial::test(format!("attack::masks::{jail}::{name}"), move || {
            test(jail);
            Ok(())
        })
    };
    jails.flat_map(|jail| tests.map(|test| one(jail, test))).collect()
}
