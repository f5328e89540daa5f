//! How haft reaches a guest: its input and output, its terminal, signals.

use super::{
    limits::millis,
    sys,
    wire::{self, ToInit},
};
use haft_core::{
    ToolError,
    port::{BoxFuture, GuestControl, GuestSignal, GuestStdin, TerminalSize},
};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::Winsize,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::io::unix::AsyncFd;

/// haft's end of a guest's input and output.
pub(super) struct Streams {
    pub(super) out: AsyncFd<OwnedFd>,
    pub(super) err: Option<AsyncFd<OwnedFd>>,
    pub(super) input: Option<AsyncFd<OwnedFd>>,
    pub(super) terminal: Option<OwnedFd>,
}

/// Both ends of them.
pub(super) struct Ends {
    pub(super) theirs: [OwnedFd; 3],
    pub(super) ours: Streams,
}

impl Ends {
    pub(super) fn pipes(stdin: &GuestStdin) -> std::io::Result<Self> {
        let (out, their_out) = pipe_with(PipeFlags::CLOEXEC)?;
        let (err, their_err) = pipe_with(PipeFlags::CLOEXEC)?;
        let (their_in, input) = match stdin {
            // A pipe at its end, in whose place the init puts an empty input.
            GuestStdin::Closed => (pipe_with(PipeFlags::CLOEXEC)?.0, None),
            GuestStdin::Bytes(_) | GuestStdin::Stream => {
                let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
                (theirs, Some(sys::watched(ours)?))
            }
        };
        let ours = Streams { out: sys::watched(out)?, err: Some(sys::watched(err)?), input, terminal: None };
        Ok(Ends { theirs: [their_in, their_out, their_err], ours })
    }

    pub(super) fn terminal(size: TerminalSize) -> std::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        unlockpt(&master)?;
        let theirs = ioctl_tiocgptpeer(&master, flags)?;
        rustix::termios::tcsetwinsize(&master, winsize(size))?;
        let ours = Streams {
            out: sys::watched(master.try_clone()?)?,
            err: None,
            input: Some(sys::watched(master.try_clone()?)?),
            terminal: Some(master),
        };
        Ok(Ends { theirs: [theirs.try_clone()?, theirs.try_clone()?, theirs], ours })
    }
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Reaches a guest while somebody waits for it.
pub(super) struct Control {
    pub(super) socket: Arc<AsyncFd<OwnedFd>>,
    pub(super) input: Arc<tokio::sync::Mutex<Option<AsyncFd<OwnedFd>>>>,
    /// Closes the input even while somebody writes to it.
    pub(super) closing: Arc<tokio::sync::Notify>,
    pub(super) closed: Arc<AtomicBool>,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) grace: Duration,
}

impl Control {
    fn tell(&self, message: &ToInit) -> Result<(), ToolError> {
        wire::send(self.socket.get_ref(), message, &[])
            .map_err(|error| ToolError::failed("the program has ended").with_diagnostics(error))
    }
}

async fn write_all(input: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let mut guard = input.writable().await?;
        let wrote = guard.try_io(|input| rustix::io::write(input.get_ref(), bytes).map_err(Into::into));
        match wrote {
            Ok(Ok(count)) => bytes = bytes.get(count..).unwrap_or_default(),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
    Ok(())
}

impl GuestControl for Control {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let input = self.input.lock().await;
            let Some(open) = input.as_ref().filter(|_| !self.closed.load(Ordering::Acquire)) else {
                return Err(ToolError::failed("the program's input is closed"));
            };
            let wrote = tokio::select! {
                wrote = write_all(open, bytes) => wrote,
                () = self.closing.notified() => Err(Errno::PIPE.into()),
            };
            wrote.map_err(|error| {
                ToolError::failed("the program does not read its input").with_diagnostics(error)
            })
        })
    }

    fn close_stdin(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        if let (Some(terminal), true) = (&self.terminal, true) {
            // A terminal has no end of its own: the character that means one does.
            let _ = rustix::io::write(terminal, &[4]);
        } else if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        } else {
            let input = Arc::clone(&self.input);
            tokio::spawn(async move { *input.lock().await = None });
        }
    }

    fn resize(&self, size: TerminalSize) -> Result<(), ToolError> {
        let terminal =
            self.terminal.as_ref().ok_or_else(|| ToolError::failed("the program has no terminal"))?;
        rustix::termios::tcsetwinsize(terminal, winsize(size))
            .map_err(|error| ToolError::failed("the terminal cannot be resized").with_diagnostics(error))
    }

    fn signal(&self, signal: GuestSignal) -> Result<(), ToolError> {
        let number = match signal {
            GuestSignal::Interrupt => libc::SIGINT,
            GuestSignal::Terminate => libc::SIGTERM,
            GuestSignal::Hangup => libc::SIGHUP,
            GuestSignal::Quit => libc::SIGQUIT,
            GuestSignal::Stop => libc::SIGSTOP,
            GuestSignal::Continue => libc::SIGCONT,
        };
        self.tell(&ToInit::Signal(number))
    }

    fn stop(&self) {
        let _ = self.tell(&ToInit::Stop { grace_ms: millis(self.grace) });
    }

    fn kill(&self) {
        let _ = self.tell(&ToInit::Signal(libc::SIGKILL));
    }
}
