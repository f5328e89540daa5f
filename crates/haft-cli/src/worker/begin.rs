//! Starting a worker in the background: in a session of its own, so that neither Ctrl-C nor a closed terminal reaches
//! it.
//!
//! A process cannot begin a session while it leads a group, and one that does not lead a group is in that of the shell
//! in which somebody typed, where Ctrl-C reaches it. So there are two steps: the first is put in a group of its own and
//! starts the second in it, which then begins its session; the first ends.

use super::{
    files::Files,
    talk::{self, WorkerReply, WorkerRequest},
};
use crate::{failure::Failure, setup::CliContext};
use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// How long a worker may take until it answers.
const STARTING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// What a worker of the same configuration is started with.
pub(crate) struct Starter {
    files: Files,
    state: PathBuf,
    args: Vec<OsString>,
}

impl Starter {
    /// One for that state folder, with the options that were typed.
    pub(crate) fn of(ground: &CliContext, state: &Path) -> Result<Self, Failure> {
        let mut args: Vec<OsString> = vec!["worker".into(), "--no-folder-config".into()];
        if let Some(file) = &ground.global.config {
            args.push("--config".into());
            args.push(ground.surroundings.working_folder.join(file).into());
        }
        for (key, value) in &ground.global.settings {
            args.push("--set".into());
            args.push(format!("{key}={value}").into());
        }
        Ok(Starter { files: Files::new(state), state: state.to_owned(), args })
    }

    fn cannot(&self, reason: io::Error) -> Failure {
        Failure::WorkerNotStarted { log: self.files.log(), reason }
    }

    fn start(&self) -> io::Result<()> {
        self.files.create()?;
        let log = self.files.open_log()?;
        let mut first = Command::new(std::env::current_exe()?)
            .args(&self.args)
            .args(["--step", "1"])
            .env("HAFT_STATE_DIR", &self.state)
            .current_dir(&self.state)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()?;
        match first.wait()?.success() {
            true => Ok(()),
            false => Err(io::Error::other("its first step failed")),
        }
    }
}

/// Sees to it that a worker runs, whose store is the one of that name; gives what it says of itself.
pub(crate) fn ensure(starter: &Starter, store: Option<&str>) -> Result<WorkerReply, Failure> {
    let begun = Instant::now();
    let mut is_started = false;
    loop {
        match talk::ask(&starter.files, &WorkerRequest::Hello) {
            Ok(told) if store.is_some_and(|store| store != told.store) => {
                return Err(Failure::OtherStore { process: told.process, store: told.store });
            }
            Ok(told) => return Ok(told),
            Err(error) if begun.elapsed() > STARTING => return Err(starter.cannot(error)),
            // One that is about to end does not answer any more, and its successor waits for its lock.
            Err(_) if !is_started => {
                starter.start().map_err(|error| starter.cannot(error))?;
                is_started = true;
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// The first step starts the second, and ends.
pub(super) fn second_step() -> Result<u8, Failure> {
    let args = std::env::args_os().skip(1);
    let args: Vec<OsString> = args.map(|arg| if arg == "1" { "2".into() } else { arg }).collect();
    let started = std::env::current_exe().and_then(|program| Command::new(program).args(args).spawn());
    match started {
        // Nobody waits for it here: it is the system's child when this one has ended.
        Ok(_) => Ok(0),
        Err(reason) => Err(Failure::WorkerNotStarted { log: PathBuf::from("log"), reason }),
    }
}

/// From now on no terminal has a say.
pub(super) fn own_session() {
    // It fails only where the process leads a group already: then it is not reached by Ctrl-C either.
    let _ = rustix::process::setsid();
}
