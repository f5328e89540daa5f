//! What a person waits for who types `haft call`: the real program, with a place to remember and without one.
//!
//! `--quick` for a short look.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures; where it cannot, it stops"
)]

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

/// Milliseconds that a command takes from start to end; without a home there is no place to remember.
fn run(folder: &Path, home: Option<&Path>, args: &[&str]) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
    command.env_clear().current_dir(folder).args(args).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(home.map(|home| ("HOME", home)));
    let begun = Instant::now();
    let status = command.status().unwrap();
    let took = begun.elapsed().as_secs_f64() * 1e3;
    assert!(status.success(), "{args:?}: {status}");
    took
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let rounds = if quick { 10 } else { 200 };
    // Beside the programs: a folder of temporary files may be memory, where nothing costs anything.
    let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let (work, home) = (folder.path().join("work"), folder.path().join("home"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&home).unwrap();
    let call = ["call", "validate_content", "content=[1]"];
    let (mut with, mut without, mut nothing) = (vec![], vec![], vec![]);
    // The first makes the database.
    let first = run(&work, Some(&home), &call);
    for _ in 0..rounds {
        nothing.push(run(&work, None, &["--version"]));
        without.push(run(&work, None, &call));
        with.push(run(&work, Some(&home), &call));
    }
    let differences = with.iter().zip(&without).map(|(with, without)| with - without).collect();
    let extra = median(differences);
    println!("{:<58} {:>10.2} ms", "haft --version", median(nothing));
    println!("{:<58} {:>10.2} ms", "haft call, nothing to remember in", median(without));
    println!("{:<58} {:>10.2} ms", "haft call, with SQLite", median(with));
    println!("{:<58} {first:>10.2} ms", "the very first one, which makes the database");
    let mark = if extra <= 15.0 { "" } else { "  MISSED" };
    println!("{:<58} {extra:>10.2} ms        goal 15{mark}", "what remembering adds");
    std::process::exit(i32::from(extra > 15.0));
}
