//! This program as its own helper: what makes jails, and what works with files in one.

use haft_tools::worker;

/// First of all in `main`: jails are made by this same program, started again, and file tools that are to work in a jail
/// do so in it. Returns in every other process.
///
/// ```no_run
/// haft::init();
/// // … everything else of `main` …
/// ```
pub fn init() {
    haft_jail::init();
    let is_worker = std::env::args_os().nth(1).is_some_and(|argument| argument == worker::MARK);
    if is_worker && std::env::args_os().len() == 2 {
        let code = worker::serve(haft_files::reopened);
        // `ExitCode` cannot end a process from here.
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
}
