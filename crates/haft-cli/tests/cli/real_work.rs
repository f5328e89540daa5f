//! Everyday work in staged commands, as root and as an ordinary user: what it makes is in the files afterwards.

use crate::support::{Place, Said};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::Command,
};

const CONFIG: &str = "\
[tools.approval]
denylist = []
mode = 'auto'

[tools.commands]
writes = 'staged'
ask = 'never'
presets = ['git', 'rust']
";
/// Nobody's id on most machines.
const SOMEBODY: u32 = 54_321;
/// As many files as a large package has.
const MANY: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Root,
    Somebody,
}

/// One piece of work: what it needs, the command, and what is there afterwards.
struct Work {
    needs: &'static str,
    command: &'static str,
    made: &'static [&'static str],
    gone: &'static [&'static str],
}

const WORK: &[Work] = &[
    Work { needs: "make", command: "make", made: &["out.txt"], gone: &[] },
    Work {
        needs: "sed",
        command: "sed -i s/one/two/ a.txt && grep -q two a.txt",
        made: &["a.txt"],
        gone: &[],
    },
    Work {
        needs: "python3",
        command: "python3 -c \"import sqlite3; c = sqlite3.connect('db.sqlite'); c.execute('create table t(x)'); \
                  c.execute('insert into t values (7)'); c.commit(); c.close()\"",
        made: &["db.sqlite"],
        gone: &["db.sqlite-journal"],
    },
    Work {
        needs: "python3",
        command: "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'",
        made: &["v/bin/python", "v/pyvenv.cfg"],
        gone: &[],
    },
    Work {
        needs: "tar",
        command: "tar xf many.tar && rm many.tar",
        made: &["many/0", "many/19999"],
        gone: &["many.tar"],
    },
    Work {
        needs: "git",
        command: "git init -q . && git add a.txt d && git commit -qm one",
        made: &[".git/HEAD"],
        gone: &[],
    },
    Work {
        needs: "git",
        command: "git log --oneline && echo three >> a.txt && git commit -qam two",
        made: &[],
        gone: &[],
    },
    Work {
        needs: "cargo",
        command: "cd app && cargo build --offline -q && ./target/debug/app | grep -q seven",
        made: &["app/target/debug/app", "app/Cargo.lock"],
        // What only the next build needs is in the cache of the workspace.
        gone: &["app/target/debug/deps", "app/target/debug/incremental"],
    },
    Work {
        needs: "cargo",
        command: "cd app && sed -i s/seven/eight/ src/main.rs && cargo test --offline -q && \
                  cargo run --offline -q | grep -q eight",
        made: &["app/target/debug/app"],
        gone: &[],
    },
    Work {
        needs: "npm",
        command: "npm install --offline --no-audit --no-fund ./package",
        made: &["node_modules/here/package.json"],
        gone: &[],
    },
];

/// The files of a crate without dependencies.
const APP: [(&str, &str); 2] = [
    ("app/Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "app/src/main.rs",
        "fn main() { println!(\"seven\"); }\n#[test]\nfn it_holds() { assert_eq!(1 + 1, 2); }\n",
    ),
];

struct Desk {
    place: Place,
    program: PathBuf,
    who: Who,
    /// Where cargo and rustc are.
    toolchain: PathBuf,
}

impl Desk {
    fn new(who: Who) -> Desk {
        let place = Place::new();
        // A user has no cgroup of their own on most machines.
        let limits = if who == Who::Somebody { "per_process_limits = true\n" } else { "" };
        let toolchain = toolchain(place.home().parent().unwrap());
        let shown = toolchain.display();
        place.own_config(&format!("{CONFIG}{limits}\n[tools.files]\nread_only_roots = ['{shown}']\n"));
        place.write("a.txt", "one\n");
        place.write("Makefile", "all:\n\techo built > out.txt\n");
        let others =
            [("d/f.txt", "f\n"), ("package/package.json", r#"{"name": "here", "version": "1.0.0"}"#)];
        for (name, text) in others.into_iter().chain(APP) {
            fs::create_dir_all(place.work().join(name).parent().unwrap()).unwrap();
            place.write(name, text);
        }
        fs::write(place.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n").unwrap();
        let many = place.home().join("many");
        fs::create_dir(&many).unwrap();
        (0..MANY).for_each(|number| fs::write(many.join(number.to_string()), number.to_string()).unwrap());
        let mut pack = Command::new("tar");
        pack.arg("cf").arg(place.work().join("many.tar")).arg("many").current_dir(place.home());
        assert!(pack.status().unwrap().success());
        fs::remove_dir_all(&many).unwrap();
        let program = place.home().join("haft");
        fs::copy(env!("CARGO_BIN_EXE_haft"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        if who == Who::Somebody {
            give(place.home().parent().unwrap());
        }
        Desk { place, program, who, toolchain }
    }

    fn haft(&self, args: &[&str]) -> Said {
        let mut command = match self.who {
            Who::Root => self.place.command(&self.program),
            Who::Somebody => {
                let mut command = self.place.command("setpriv");
                let id = SOMEBODY.to_string();
                command.args([&format!("--reuid={id}"), &format!("--regid={id}"), "--clear-groups", "--"]);
                command.arg(&self.program);
                command
            }
        };
        let programs = self.toolchain.join("bin");
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()));
        Said::of(command.args(args).output().expect("it starts"))
    }

    fn run(&self, command: &str) -> Said {
        self.haft(&["call", "run_command", "--json", "--timeout", "2m", &format!("command={command}")])
    }
}

/// The toolchain that this test was built with, where everybody gets: the same files under other names, without what no
/// build needs. Empty where it cannot be had like that.
fn toolchain(base: &Path) -> PathBuf {
    let copy = base.join("toolchain");
    let root = Path::new(env!("CARGO")).parent().and_then(Path::parent).unwrap();
    fs::create_dir_all(copy.join("lib/rustlib")).unwrap();
    let target = fs::read_dir(root.join("lib/rustlib")).into_iter().flatten().flatten();
    let target =
        target.map(|entry| entry.file_name()).find(|name| name.to_string_lossy().contains("-linux-"));
    let libraries = target.map(|target| PathBuf::from("lib/rustlib").join(target));
    for (from, to) in [(Some("bin".into()), ""), (libraries, "lib/rustlib")] {
        let Some(from) = from else { continue };
        let mut link = Command::new("cp");
        link.arg("-al").arg(root.join(from)).arg(copy.join(to));
        let _ = link.status();
    }
    for entry in fs::read_dir(root.join("lib")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(".so") {
            let _ = fs::hard_link(entry.path(), copy.join("lib").join(entry.file_name()));
        }
    }
    copy.canonicalize().unwrap()
}

fn give(path: &Path) {
    // The toolchain has names elsewhere, too.
    if path.ends_with("toolchain") {
        return;
    }
    chown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

fn is_there(program: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(program).exists())
}

fn everyday_work(name: &str, who: Who) {
    if !rustix::process::geteuid().is_root() {
        return haft_testkit::not_run(name, "it needs root to become somebody else");
    }
    let desk = Desk::new(who);
    let first = desk.run("true");
    if first.code != 0 {
        return haft_testkit::not_run(name, first.shown().trim());
    }
    for work in WORK {
        if !is_there(work.needs) && !desk.toolchain.join("bin").join(work.needs).exists() {
            haft_testkit::not_run(
                &format!("{name}: {}", work.command),
                &format!("{} is not there", work.needs),
            );
            continue;
        }
        let said = desk.run(work.command);
        let result = said.json();
        let changes = &result["metadata"]["changes"];
        if changes["state"] == "kept" {
            // A repository is made: its settings are protected names, so a person says yes.
            assert!(work.command.starts_with("git init"), "{who:?} {}: {said:?}", work.command);
            let id = result["metadata"]["executionId"].as_str().unwrap();
            assert!(!desk.place.work().join(".git").exists(), "nothing before the yes");
            let applied = desk.haft(&["apply", id]);
            assert_eq!(applied.code, 0, "{applied:?}");
        } else {
            assert_eq!(
                (said.code, &changes["state"]),
                (0, &"applied".into()),
                "{who:?} {}: {said:?}",
                work.command
            );
        }
        let there = |path: &&str| desk.place.work().join(path).symlink_metadata().is_ok();
        assert!(work.made.iter().all(&there), "{who:?} {}: {said:?}", work.command);
        assert!(!work.gone.iter().any(there), "{who:?} {}: {said:?}", work.command);
    }
    let folder = desk.run("mkdir -p e && echo x > e/f && mv d e/d");
    assert_eq!(folder.code, 0, "mv copies where it cannot rename: {folder:?}");
    assert_eq!(fs::read_to_string(desk.place.work().join("e/d/f.txt")).unwrap(), "f\n");
    assert!(!desk.place.work().join("d").exists());
    if is_there("git") {
        let renamed = desk.run("git add -A . && git commit -qm three && git mv e g");
        // As the page says: without root an existing folder cannot be renamed in a layer.
        assert_eq!(renamed.code == 0, who == Who::Root, "{renamed:?}");
        assert_eq!(desk.place.work().join("g/d/f.txt").exists(), who == Who::Root);
        assert_eq!(desk.place.work().join("e/d/f.txt").exists(), who == Who::Somebody);
    }
    assert_eq!(fs::read_dir(desk.place.work().join("many")).unwrap().count(), MANY);
    let caches = desk.place.home().join(".local/state/haft/caches");
    assert_eq!(fs::read_dir(&caches).unwrap().count(), 1, "one workspace, one cache");
    assert_eq!(desk.haft(&["gc", "--json"]).json()["caches"], 0);
    assert_eq!(desk.haft(&["gc", "--caches", "--json"]).json()["caches"], 1);
    assert_eq!(fs::read_dir(&caches).unwrap().count(), 0);
    if let Some(owner) = (who == Who::Somebody).then_some(SOMEBODY) {
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(fs::metadata(desk.place.work().join("many/7")).unwrap().uid(), owner);
    }
}

/// What a team shares: a folder whose files belong to its group, whoever made them.
#[test]
fn files_in_a_folder_of_a_group_belong_to_the_group() {
    let name = "files_in_a_folder_of_a_group_belong_to_the_group";
    if !rustix::process::geteuid().is_root() {
        return haft_testkit::not_run(name, "it needs root to give files to a group");
    }
    let group = 45_678;
    let command =
        "mkdir -p shared/new && echo x > shared/file && echo y > shared/new/file && echo z >> shared/old";
    let pictures = ["live", "staged"].map(|writes| {
        let place = Place::new();
        place.own_config(&CONFIG.replace("'staged'", &format!("'{writes}'")));
        let shared = place.work().join("shared");
        fs::create_dir(&shared).unwrap();
        place.write("shared/old", "a\n");
        for path in [&shared, &shared.join("old")] {
            chown(path, None, Some(group)).unwrap();
        }
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o2775)).unwrap();
        let said = place.haft(&["call", "run_command", "--json", &format!("command={command}")]);
        let state = said.json()["metadata"]["changes"]["state"].clone();
        (said.code == 0).then(|| {
            assert!(writes == "live" || state == "applied", "{said:?}");
            ["", "file", "new", "new/file", "old"].map(|name| {
                use std::os::unix::fs::MetadataExt as _;
                let found = fs::metadata(shared.join(name)).unwrap();
                (name, found.uid(), found.gid(), found.mode())
            })
        })
    });
    let [Some(live), Some(staged)] = pictures else {
        return haft_testkit::not_run(name, "nothing can be staged here");
    };
    assert_eq!(staged, live);
    assert!(live.iter().all(|(_, _, owner, _)| *owner == group), "{live:?}");
}

#[test]
fn everyday_work_is_applied_for_root() {
    everyday_work("everyday_work_is_applied_for_root", Who::Root);
}

#[test]
fn everyday_work_is_applied_for_an_ordinary_user() {
    everyday_work("everyday_work_is_applied_for_an_ordinary_user", Who::Somebody);
}
