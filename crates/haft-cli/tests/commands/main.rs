//! Programs, through the whole engine and in real jails. A program of its own, because jails need one that calls
//! `haft::init` first.
#![cfg_attr(
    target_os = "linux",
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        missing_docs,
        unreachable_pub,
        reason = "tests: a failure is a panic"
    )
)]

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod background;
#[cfg(target_os = "linux")]
mod census;
#[cfg(target_os = "linux")]
mod effects;
#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "the hostile worker speaks on its standard output")]
mod file_worker;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod run_command;
#[cfg(target_os = "linux")]
mod sandboxes;
#[cfg(target_os = "linux")]
mod staged;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
fn main() {
    file_worker::attack_if_told();
    haft::init();
    if std::env::args().nth(1).as_deref() == Some("--haft") {
        background::be_haft();
    }
    let mut options = libtest_mimic::Arguments::from_args();
    options.test_threads.get_or_insert(2);
    let mut trials = run_command::trials();
    trials.extend(background::trials());
    trials.extend(program::trials());
    trials.extend(sandboxes::trials());
    trials.extend(attempts::trials());
    trials.extend(staged::trials());
    trials.extend(effects::trials());
    trials.extend(census::trials());
    trials.extend(file_worker::trials());
    libtest_mimic::run(&options, trials).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    haft_testkit::not_run("commands", "jails are made on Linux only");
}
