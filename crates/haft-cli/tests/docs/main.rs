//! README.md and the pages of `docs/` do what they show: a page is a test. Its commands run from top to bottom in one
//! shell, in an empty folder with an empty home, with this `haft` on the path; [`fence`] says what the kinds of fences
//! are. A new page is covered as soon as its file is there.
#![cfg_attr(
    unix,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        missing_docs,
        unreachable_pub,
        reason = "tests: a failure is a panic"
    )
)]

#[cfg(unix)]
mod architecture;
#[cfg(unix)]
mod compare;
#[cfg(unix)]
mod fence;
#[cfg(unix)]
mod page;
#[cfg(unix)]
mod prose;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod source_documents;

#[cfg(unix)]
fn main() {
    let options = libtest_mimic::Arguments::from_args();
    let mut trials: Vec<_> = fence::pages().into_iter().map(page::trial).collect();
    trials.extend(architecture::trials());
    trials.extend(compare::trials());
    trials.extend(fence::trials());
    trials.extend(prose::trials());
    trials.extend(source_documents::trials());
    libtest_mimic::run(&options, trials).exit();
}

#[cfg(not(unix))]
fn main() {
    haft_testkit::not_run("docs", "the examples are for a shell of Unix");
}
