//! The last steps of a guest before it is one. Nothing here allocates: everything is made before the process is.

use super::Failure;
use crate::guest::{
    interpreter,
    sys::{self, CStrings},
    wire::InitRequest,
};
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Signal, set_parent_process_death_signal},
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
    },
};
use seccompiler::BpfProgram;
use std::ffi::CString;

/// The steps, for naming the one that failed.
const STEPS: [&str; 11] = [
    "start a session",
    "take the terminal",
    "take input and output",
    "enter the working folder",
    "set limits",
    "drop privileges",
    "be ended with its init",
    "restrict files with Landlock",
    "close descriptors",
    "filter system calls",
    "start the program",
];

/// A guest in the making.
pub(super) struct Program<'a> {
    candidates: Vec<CString>,
    argv: CStrings,
    environment: CStrings,
    working_dir: CString,
    stdio: [&'a OwnedFd; 3],
    terminal: bool,
    limits: &'a [(i32, u64)],
    keeps_privileges: bool,
    ruleset: Option<&'a OwnedFd>,
    filters: &'a [BpfProgram],
}

impl<'a> Program<'a> {
    pub(super) fn new(
        request: &'a InitRequest,
        descriptors: &'a [OwnedFd],
        working_dir: &str,
        ruleset: Option<&'a OwnedFd>,
        filters: &'a [BpfProgram],
    ) -> Result<Self, Failure> {
        let invalid = |_| Failure { stage: "read the request".into(), errno: Errno::INVAL };
        let [stdin, stdout, stderr] = descriptors else {
            return Err(Failure { stage: "read the request".into(), errno: Errno::BADF });
        };
        let candidates: Result<Vec<_>, _> =
            request.programs.iter().map(|path| CString::new(path.as_str())).collect();
        Ok(Program {
            candidates: candidates.map_err(invalid)?,
            argv: CStrings::new(request.argv.iter().map(String::as_str)).map_err(invalid)?,
            environment: CStrings::new(request.environment.iter().map(String::as_str)).map_err(invalid)?,
            working_dir: CString::new(working_dir).map_err(invalid)?,
            stdio: [stdin, stdout, stderr],
            terminal: request.terminal,
            limits: &request.limits,
            keeps_privileges: request.filter == crate::guest::wire::FilterKind::Runtime,
            ruleset,
            filters,
        })
    }

    /// Becomes the guest, or says in `told` what failed, and ends.
    pub(super) fn become_guest(&self, told: &OwnedFd) -> ! {
        let mut step = 0;
        let errno = self.steps(&mut step);
        let mut message = [0; 5 + interpreter::HEAD];
        message[0] = step;
        message[1..5].copy_from_slice(&errno.raw_os_error().to_ne_bytes());
        let mut length = 5;
        if usize::from(step) == STEPS.len() - 1 && errno == Errno::NOENT {
            length += self.head(&mut message[5..]);
        }
        let _ = rustix::io::write(told, &message[..length]);
        sys::exit(127)
    }

    fn steps(&self, step: &mut u8) -> Errno {
        match self.prepare(step) {
            Err(errno) => errno,
            Ok(()) => self.start(),
        }
    }

    fn prepare(&self, step: &mut u8) -> Result<(), Errno> {
        rustix::process::setsid()?;
        *step = 1;
        if self.terminal {
            rustix::process::ioctl_tiocsctty(self.stdio[0])?;
        }
        *step = 2;
        rustix::stdio::dup2_stdin(self.stdio[0])?;
        rustix::stdio::dup2_stdout(self.stdio[1])?;
        rustix::stdio::dup2_stderr(self.stdio[2])?;
        *step = 3;
        rustix::process::chdir(self.working_dir.as_c_str())?;
        *step = 4;
        for (resource, limit) in self.limits {
            sys::set_limit(*resource, *limit)?;
        }
        *step = 5;
        if !self.keeps_privileges {
            drop_privileges()?;
        }
        *step = 6;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        *step = 7;
        if let Some(ruleset) = self.ruleset {
            sys::landlock_restrict(ruleset.as_fd())?;
        }
        *step = 8;
        sys::close_on_exec_from(3)?;
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        sys::default_signals();
        *step = 9;
        for filter in self.filters {
            sys::load_filter(filter)?;
        }
        *step = 10;
        Ok(())
    }

    /// The first bytes of the program, where there is one: the guest itself may read them. It did not start, so what
    /// is missing is what runs it.
    fn head(&self, into: &mut [u8]) -> usize {
        let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let files = self.candidates.iter();
        let mut files = files.filter_map(|path| rustix::fs::open(path.as_c_str(), how, Mode::empty()).ok());
        files.next().and_then(|file| rustix::io::read(&file, into).ok()).unwrap_or(0)
    }

    fn start(&self) -> Errno {
        let mut reason = Errno::NOENT;
        for candidate in &self.candidates {
            match sys::execve(candidate, &self.argv, &self.environment) {
                Errno::NOENT | Errno::NOTDIR => {}
                other => reason = other,
            }
        }
        reason
    }
}

/// No capability, in no set, for good.
fn drop_privileges() -> Result<(), Errno> {
    set_no_new_privs(true)?;
    for number in 0..64 {
        let Some(capability) = CapabilitySet::from_bits(1 << number) else { break };
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // An ordinary user has none to lose, and may not lose them.
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    let _ = clear_ambient_capability_set();
    drop_capabilities()
}

/// No capability that could be used. Enough for a process that never becomes another program.
pub(super) fn drop_capabilities() -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// What a child said that failed; nothing when it became the guest.
pub(super) fn failure(report: &OwnedFd) -> Option<Failure> {
    let mut message = [0u8; 5 + interpreter::HEAD];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(report.as_fd() as BorrowedFd<'_>, &mut message));
    match read {
        Ok(0) => None,
        Ok(length @ 5..) => {
            let [step, a, b, c, d, ..] = message;
            let stage = STEPS.get(usize::from(step)).copied().unwrap_or("start");
            let errno = Errno::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]));
            let stage = match interpreter::named(&message[5..length]) {
                Some(name) => format!("{}{}", interpreter::STEP, interpreter::shown(name)),
                None => stage.into(),
            };
            Some(Failure { stage, errno })
        }
        _ => Some(Failure { stage: "start".into(), errno: Errno::IO }),
    }
}
