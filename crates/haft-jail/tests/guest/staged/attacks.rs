//! Attacks on staged writes. Each has a control: without the wall it succeeds.

use super::*;
use std::process::Command;

/// The attacks on files of the list, with their writes kept apart: what a jail stops is stopped, and what is written is
/// not on the machine.
fn the_attacks_of_the_list() {
    const NAMES: [&str; 33] = [
        "read_a_file_outside",
        "write_a_file_outside",
        "make_a_file_outside",
        "make_a_folder_outside",
        "make_a_link_outside",
        "remove_a_file_outside",
        "shorten_a_file_outside",
        "rename_a_file_outside",
        "list_a_folder_outside",
        "see_a_file_outside",
        "change_the_mode_of_a_file_outside",
        "change_the_times_of_a_file_outside",
        "follow_a_planted_link",
        "follow_a_planted_link_to_a_folder",
        "hard_link_to_the_outside",
        "move_the_outside_in",
        "climb_out_of_the_folder",
        "read_what_is_denied",
        "read_in_a_folder_that_is_denied",
        "move_what_is_denied",
        "hard_link_to_what_is_denied",
        "read_hafts_own_state",
        "make_a_device",
        "run_a_setuid_program",
        "give_a_file_away",
        "write_a_larger_file",
        "make_a_shell_that_runs_as_its_owner",
        "make_a_shell_that_runs_as_its_group",
        "make_a_privileged_file_by_any_call",
        "make_a_file_outside_privileged",
        "give_a_file_capabilities",
        "connect_to_a_socket_in_its_folder",
        "send_to_a_socket_in_its_folder",
    ];
    for name in NAMES {
        crate::attack::staged(name, false);
    }
    // These work for the program, because haft looks at what they did before it is anywhere.
    for name in ["write_a_hook", "write_settings_of_a_repository", "put_another_repository_in_its_place"] {
        crate::attack::staged(name, true);
    }
}

/// Marks on the machine's own files that say to an overlay that something else is there: earlier programs can set them.
fn marks_that_an_earlier_program_left() {
    let stage = Stage::new();
    stage.write(".env", "planted-secret");
    stage.write("private.pem/key", "planted-secret");
    stage.write("lure", "");
    stage.write("folder/x", "x");
    let set = |name: &str, mark: &str, value: &[u8]| {
        let path = stage.at().join(name);
        rustix::fs::setxattr(&path, mark, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    set("lure", "user.overlay.metacopy", b"");
    set("lure", "user.overlay.redirect", b"/.env");
    set("folder", "user.overlay.redirect", b"/private.pem");
    let (_, said) = stage.run("cat lure .env folder/key folder/x; grep -r planted .; true");
    assert!(!said.contains("planted") && said.contains('x'), "{said}");
    // The control: without patterns it is read.
    let (_, heard) = stage.run_spec(GuestSpec { denied: Vec::new(), ..stage.spec("cat .env") });
    assert!(heard.out.contains("planted"), "{heard:?}");
}

/// A program sets such marks on what it made: in its layer they are not those of the layer.
fn marks_that_the_program_sets() {
    let stage = Stage::new();
    stage.write("d/x", "x");
    let mark = |folder: &Path| {
        let mut spec = stage.spec("");
        let program = crate::world::own_program();
        spec.argv = vec![program.display().to_string(), "--mark".to_owned(), folder.display().to_string()];
        spec.readable = vec![program];
        spec
    };
    let has = |folder: &Path, name: &str| rustix::fs::getxattr(folder, name, &mut [0; 64][..]).is_ok();
    let live = GuestSpec { writes: Writes::Live, ..mark(&stage.at().join("d")) };
    let (end, heard) = stage.run_spec(live);
    assert_eq!(end.exit_code, Some(0), "{heard:?}");
    assert!(has(&stage.at().join("d"), "user.overlay.opaque"), "written through it is set");
    rustix::fs::removexattr(stage.at().join("d"), "user.overlay.opaque").unwrap();
    let (end, _) = stage.run_spec(mark(&stage.at().join("d")));
    let upper = end.staged[0].upper.join("d");
    // As root those of users mean nothing to the layer.
    let own = if is_root() { "trusted.overlay.opaque" } else { "user.overlay.opaque" };
    assert!(!has(&upper, own), "{end:?}");
}

/// What the program is told by `--mark`.
pub fn mark(arguments: &[String]) -> i32 {
    let set =
        rustix::fs::setxattr(&arguments[0], "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty());
    println!("{set:?}");
    0
}

/// A setuid program that is copied into the layer is one on that file system, too: nobody else gets there.
fn nobody_else_gets_to_the_layer() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    for (path, mode) in [(stage.at(), 0o755), (stage.house.state.path().to_owned(), 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(stage.layers.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy("/usr/bin/id", stage.at().join("id")).unwrap();
    fs::set_permissions(stage.at().join("id"), fs::Permissions::from_mode(0o4755)).unwrap();
    // By a shell: what becomes another user still has its rights when it starts that.
    let as_another = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--clear-groups", "sh", "-c", "\"$0\""]).arg(program);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    assert!(as_another(&stage.at().join("id")).contains("euid=0"), "the owner's own works");
    let mut spec = stage.spec("mv id other");
    if let Writes::Staged(asked) = &spec.writes {
        fs::set_permissions(&asked.layers, fs::Permissions::from_mode(0o755)).unwrap();
    }
    spec.denied.clear();
    let (end, heard) = stage.run_spec(spec);
    let copied = end.staged[0].upper.join("other");
    assert_eq!(
        fs::metadata(&copied).unwrap_or_else(|error| panic!("{error} {heard:?}")).mode() & 0o7777,
        0o4755
    );
    assert_eq!(as_another(&copied), "", "nobody else runs it");
}

pub fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("the_attacks_of_the_list", the_attacks_of_the_list),
        ("marks_that_an_earlier_program_left", marks_that_an_earlier_program_left),
        ("marks_that_the_program_sets", marks_that_the_program_sets),
        ("nobody_else_gets_to_the_layer", nobody_else_gets_to_the_layer),
    ]
}
