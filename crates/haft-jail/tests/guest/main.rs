//! Jails, by really running programs in them. A program of its own, because jails need one that calls
//! `haft_jail::init` first, and because it is also what the guests run.
#![cfg_attr(
    target_os = "linux",
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr,
        missing_docs,
        unreachable_pub,
        reason = "tests: a failure is a panic"
    )
)]

#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod basics;
#[cfg(target_os = "linux")]
mod caches;
#[cfg(target_os = "linux")]
mod choice;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod staged;
#[cfg(target_os = "linux")]
mod swaps;
#[cfg(target_os = "linux")]
mod user;
#[cfg(target_os = "linux")]
mod warm;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
fn main() {
    haft_jail::init();
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("--attack") => std::process::exit(attack::run(&arguments[2..])),
        Some("--reboot") => attack::reboot(),
        Some("--unix-sockets") => std::process::exit(attack::use_unix_sockets()),
        Some("--through-the-gate") => std::process::exit(choice::go_through_the_gate()),
        Some("--use") => std::process::exit(limits::use_up(&arguments[2..])),
        Some("--threads") => std::process::exit(choice::start_threads(&arguments[2])),
        Some("--hold") => std::process::exit(attack::names::hold(&arguments[2..])),
        Some("--haft") => ends::be_haft(&arguments[2..]),
        Some("--mark") => std::process::exit(staged::attacks::mark(&arguments[2..])),
        Some("--stage") => std::process::exit(staged::refused::stage(&arguments[2..])),
        Some("--staged-haft") => std::process::exit(staged::bounds::be_haft(&arguments[2..])),
        _ => {}
    }
    let mut options = libtest_mimic::Arguments::from_args();
    // Some measure, and all make processes: more at once than cores would make the figures those of the scheduler.
    options.test_threads.get_or_insert(2);
    let mut trials = basics::trials();
    trials.extend(limits::trials());
    trials.extend(caches::trials());
    trials.extend(choice::trials());
    trials.extend(ends::trials());
    trials.extend(attack::trials());
    trials.extend(staged::trials());
    trials.extend(swaps::trials());
    trials.extend(cost::trials());
    trials.extend(warm::trials());
    trials.extend(user::trials());
    libtest_mimic::run(&options, trials).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    haft_testkit::not_run("guest", "jails are made on Linux only");
}
