//! The terminal of this process as that of a program in a jail: keys, output, window size, signals.
//!
//! Where standard input and output are a terminal, the program gets a terminal of its own, and every key goes to it as it
//! is, Ctrl-C too. Elsewhere it gets pipes, and signals that reach haft are sent on to it.

use haft::{
    ErrorCode, OutputStream, ToolError,
    port::{GuestControl, GuestSignal, OutputSink, TerminalSize},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr},
};
use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    sync::Arc,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
};

/// Signals that are sent on, with what they are for the program.
const PASSED: [(SignalKind, GuestSignal); 4] = [
    (SignalKind::interrupt(), GuestSignal::Interrupt),
    (SignalKind::terminate(), GuestSignal::Terminate),
    (SignalKind::hangup(), GuestSignal::Hangup),
    (SignalKind::quit(), GuestSignal::Quit),
];

/// Where a program reads and writes.
pub(super) struct Attached {
    /// The terminal, where the program gets one of its own.
    terminal: Option<File>,
}

impl Attached {
    /// The streams of this process.
    pub(super) fn here() -> Self {
        Attached { terminal: terminal() }
    }

    /// The size of the terminal that the program gets; `None` where it gets pipes.
    pub(super) fn size(&self) -> Option<TerminalSize> {
        self.terminal.as_ref().map(size)
    }

    /// Writes what the program puts out to the streams of this process, as it is. It waits where they are full, and so
    /// does the program.
    pub(super) fn sink(&self) -> OutputSink {
        Arc::new(|stream, bytes| {
            // A reader that has gone is for the program to notice: its own output still fails or is thrown away.
            let _ = match stream {
                OutputStream::Stdout => write_all(io::stdout().lock(), bytes),
                OutputStream::Stderr => write_all(io::stderr().lock(), bytes),
            };
        })
    }

    /// Connects the streams of this process with a program, until the connection is dropped.
    pub(super) fn connect(&self, control: Arc<dyn GuestControl>) -> Result<Connection, ToolError> {
        let connected = || -> io::Result<Connection> {
            let raw = self.terminal.as_ref().map(RawMode::enter).transpose()?;
            let (wake, stop) = UnixStream::pair()?;
            let mut tasks = vec![keys(stop, Arc::clone(&control))?];
            for (kind, sent) in PASSED {
                tasks.push(on_signal(kind, &control, move |control| drop(control.signal(sent)))?);
            }
            if let Some(terminal) = &self.terminal {
                let terminal = terminal.try_clone()?;
                let resize = move |control: &dyn GuestControl| drop(control.resize(size(&terminal)));
                tasks.push(on_signal(SignalKind::window_change(), &control, resize)?);
            }
            Ok(Connection { tasks, _wake: wake, _raw: raw })
        };
        connected().map_err(|error| {
            ToolError::new(ErrorCode::ExecutionFailed, format!("the terminal cannot be connected: {error}"))
        })
    }
}

/// A program and the streams of this process, connected. Dropping it gives the terminal back.
pub(super) struct Connection {
    tasks: Vec<JoinHandle<()>>,
    /// When it is closed nothing more is read.
    _wake: UnixStream,
    _raw: Option<RawMode>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The terminal that this process is in front of; `None` where it is in the background or its streams are no terminal.
fn terminal() -> Option<File> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return None;
    }
    let file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let foreground = tcgetpgrp(file.as_fd()).ok()?;
    (foreground == rustix::process::getpgrp()).then_some(file)
}

/// The size of a terminal; one that does not know has the usual one.
fn size(terminal: &File) -> TerminalSize {
    let usual = TerminalSize { rows: 24, columns: 80 };
    match tcgetwinsize(terminal.as_fd()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
            TerminalSize { rows: size.ws_row, columns: size.ws_col }
        }
        _ => usual,
    }
}

/// A terminal that hands every key on. Dropping it makes the terminal what it was.
struct RawMode {
    terminal: File,
    before: Termios,
}

impl RawMode {
    fn enter(terminal: &File) -> io::Result<Self> {
        let before = tcgetattr(terminal.as_fd())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal.as_fd(), OptionalActions::Drain, &raw)?;
        Ok(RawMode { terminal: terminal.try_clone()?, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal.as_fd(), OptionalActions::Drain, &self.before);
    }
}

/// Reads standard input and hands it to the program. A thread of its own reads, because a read cannot be taken back;
/// it reads only while nothing came from `stop`, so that no key is taken from what reads after the program.
fn keys(stop: UnixStream, control: Arc<dyn GuestControl>) -> io::Result<JoinHandle<()>> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(16);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut bytes = vec![0; 16 << 10];
        loop {
            let mut ready = [PollFd::new(&input, PollFlags::IN), PollFd::new(&stop, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) if !ready[1].revents().is_empty() => return,
                Ok(_) => {}
            }
            let read = match input.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            if sender.blocking_send(bytes.get(..read).unwrap_or_default().to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            if control.write(&piece).await.is_err() {
                break;
            }
        }
        control.close_stdin();
    }))
}

/// Does something each time that a signal comes.
fn on_signal(
    kind: SignalKind,
    control: &Arc<dyn GuestControl>,
    act: impl Fn(&dyn GuestControl) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (mut signals, control) = (signal(kind)?, Arc::clone(control));
    Ok(tokio::spawn(async move {
        while signals.recv().await.is_some() {
            act(&*control);
        }
    }))
}

fn write_all(mut stream: impl io::Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}
