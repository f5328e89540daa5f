//! Tools of MCP servers through the real program: servers that die, change, stall, lie and flood. The server is this
//! very program, started by haft in a jail.
#![cfg_attr(
    target_os = "linux",
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stderr,
        clippy::zombie_processes,
        missing_docs,
        unreachable_pub,
        dead_code,
        reason = "tests: a failure is a panic"
    )
)]

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod everything;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod scripted;
#[cfg(target_os = "linux")]
#[path = "../cli/support.rs"]
mod support;
#[cfg(target_os = "linux")]
mod world;

#[cfg(target_os = "linux")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some("mcp-server") {
        scripted::serve();
    }
    let mut options = libtest_mimic::Arguments::from_args();
    options.test_threads.get_or_insert(2);
    let mut trials = calls::trials();
    trials.extend(changes::trials());
    trials.extend(ends::trials());
    trials.extend(everything::trials());
    trials.extend(http::trials());
    libtest_mimic::run(&options, trials).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    haft_testkit::not_run("upstreams", "jails are made on Linux only");
}
