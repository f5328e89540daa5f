//! Tools of MCP servers through the real program: servers that die, change, stall, lie and flood. The server is this very
//! program, started by haft in a jail.
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

#[cfg(all(target_os = "linux", feature = "mcp"))]
mod calls;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod changes;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod ends;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod everything;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod http;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod scripted;
#[cfg(all(target_os = "linux", feature = "mcp"))]
#[path = "../cli/support.rs"]
mod support;
#[cfg(all(target_os = "linux", feature = "mcp"))]
mod world;

#[cfg(all(target_os = "linux", feature = "mcp"))]
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

#[cfg(not(all(target_os = "linux", feature = "mcp")))]
fn main() {
    haft_testkit::not_run("upstreams", "jails are made on Linux only");
}
