//! How much may be written, and what is left when haft is killed.

use super::*;
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

fn bounded(stage: &Stage, script: &str, bytes: Option<u64>, files: Option<u64>) -> GuestSpec {
    let mut spec = stage.spec(script);
    if let Writes::Staged(stage) = &mut spec.writes {
        (stage.most_bytes, stage.most_files) = (bytes, files);
    }
    spec
}

/// A program that goes on writing is ended; one that wrote too much and ended is told of.
fn a_full_layer_ends_the_program() {
    let stage = Stage::new();
    let before = picture(&stage.at());
    let bytes = "while :; do head -c 1000000 /dev/zero >> big; done";
    let files = "n=0; while :; do : > $n; n=$((n+1)); done";
    let shut = "mkdir d; exec 3> d/big; chmod 000 d; while :; do head -c 1000000 /dev/zero >&3; done";
    for (script, limits, expected) in [
        (bytes, (Some(8 << 20), None), "stagedBytes"),
        (files, (None, Some(100)), "stagedFiles"),
        (shut, (Some(8 << 20), None), "stagedBytes"),
        ("head -c 9000000 /dev/zero > big", (Some(8 << 20), None), "stagedBytes"),
        ("mkdir -p a/b/c/d", (None, Some(3)), "stagedFiles"),
    ] {
        let (end, heard) = stage.run_spec(bounded(&stage, script, limits.0, limits.1));
        let over = end.exceeded.as_ref().unwrap_or_else(|| panic!("{script}: {heard:?} {end:?}"));
        assert_eq!(over.limit, expected, "{script}: {end:?}");
        assert!(over.used > Some(over.allowed), "{end:?}");
        assert!(end.violations.iter().any(|violation| violation.resource == expected), "{end:?}");
        assert_eq!(end.staged.len(), 1, "it can be looked at");
    }
    let within = bounded(&stage, "head -c 7000000 /dev/zero > big; mkdir a", Some(8 << 20), Some(2));
    let (end, _) = stage.run_spec(within);
    assert_eq!((end.exit_code, end.exceeded.clone()), (Some(0), None), "{end:?}");
    assert_eq!(picture(&stage.at()), before);
}

/// `kill -9` while the program writes: the files are as before, the layer is there, nothing runs or is mounted.
fn a_killed_haft_leaves_the_files_alone() {
    let stage = Stage::new();
    stage.write("file", "old");
    let Writes::Staged(StageSpec { layers, .. }) = stage.writes() else { panic!() };
    let before = picture(&stage.at());
    let mark = format!("{}", std::process::id() as u64 * 1_000_003 + 7);
    let mut haft = Command::new(crate::world::own_program())
        .args(["--staged-haft".as_ref(), stage.at().as_os_str(), layers.as_os_str(), mark.as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(haft.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "written\n");
    haft.kill().unwrap();
    haft.wait().unwrap();
    crate::ends::gone_within("processes", Duration::from_secs(20), || {
        crate::ends::processes(&format!("sleep 7{mark}"))
    });
    assert_eq!(picture(&stage.at()), before);
    let upper = layers.join("0/upper");
    assert_eq!(fs::read_to_string(upper.join("file")).unwrap(), "new\n");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(layers.to_str().unwrap()), "{mounts}");
    // Nothing keeps it either: it can be removed, also what the kernel and the program shut.
    assert_eq!(fs::metadata(upper.join("shut")).unwrap().mode() & 0o777, 0);
    haft_jail::guest::remove_layers(&layers).unwrap();
    assert!(!layers.exists());
}

/// Another haft, whose guest writes and waits.
pub fn be_haft(arguments: &[String]) -> i32 {
    let [folder, layers, mark] = arguments else { panic!("--staged-haft FOLDER LAYERS MARK") };
    let house = House::new();
    let mut spec = sh(&format!(
        "echo new > file; mkdir -p shut/in; chmod 000 shut; echo written; sleep 7{mark}; sleep 1"
    ));
    spec.writable = vec![folder.into()];
    spec.writes = Writes::Staged(StageSpec { layers: layers.into(), ..StageSpec::default() });
    block_on(async {
        let mut guest = house.jail("namespace").start(spec).await.unwrap();
        let sink: haft_core::port::OutputSink = std::sync::Arc::new(|_, bytes: &[u8]| {
            use std::io::Write as _;
            let _ = std::io::stdout().write_all(bytes);
            let _ = std::io::stdout().flush();
        });
        let _ = guest.wait(sink).await;
    });
    0
}

/// A program that is killed from outside leaves its layer to be looked at, too.
fn a_program_that_is_ended_leaves_its_layer() {
    let stage = Stage::new();
    let end = block_on(async {
        let mut guest = stage
            .house
            .jail("namespace")
            .start(stage.spec("echo x > x; echo ready; sleep 1000"))
            .await
            .unwrap();
        let control = guest.control();
        let sink: haft_core::port::OutputSink = std::sync::Arc::new(move |_, _: &[u8]| control.kill());
        guest.wait(sink).await.unwrap()
    });
    assert_eq!((end.exit_code, end.signal), (None, Some(9)), "{end:?}");
    assert_eq!(fs::read_to_string(end.staged[0].upper.join("x")).unwrap(), "x\n");
    assert!(!stage.at().join("x").exists());
}

pub fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("a_full_layer_ends_the_program", a_full_layer_ends_the_program),
        ("a_killed_haft_leaves_the_files_alone", a_killed_haft_leaves_the_files_alone),
        ("a_program_that_is_ended_leaves_its_layer", a_program_that_is_ended_leaves_its_layer),
    ]
}
