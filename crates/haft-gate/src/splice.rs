//! Bytes passed on inside the kernel: a proxy that copies them does twice the work of the connection itself.

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::{io, os::fd::OwnedFd};
use tokio::{io::Interest, net::TcpStream, task::coop::consume_budget};

/// How much is moved at once, where the kernel gives a pipe of that size.
const ROOM: usize = 256 * 1024;

/// Room in the kernel for bytes on their way.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    room: usize,
}

impl Pipe {
    /// `None` where there is no descriptor to spare.
    pub(crate) fn new() -> Option<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // Smaller is only slower.
        let room = fcntl_setpipe_size(&write, ROOM).unwrap_or(64 * 1024);
        Some(Pipe { read, write, room })
    }

    /// Waits for bytes and takes them; 0 is the end. Only for an empty pipe: a full one would wait for ever.
    pub(crate) async fn fill(&self, from: &TcpStream) -> io::Result<usize> {
        move_some(from, Interest::READABLE, || {
            splice(from, None, &self.write, None, self.room, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
        })
        .await
    }

    /// Gives away so many bytes, which must be there; `moved` hears how many at a time.
    pub(crate) async fn drain(
        &self,
        to: &TcpStream,
        mut left: usize,
        moved: impl Fn(usize),
    ) -> io::Result<()> {
        while left > 0 {
            let length = move_some(to, Interest::WRITABLE, || {
                splice(&self.read, None, to, None, left, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
            })
            .await?;
            if length == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            moved(length);
            left = left.saturating_sub(length);
        }
        Ok(())
    }
}

async fn move_some(
    stream: &TcpStream,
    interest: Interest,
    mut step: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        // Sockets that are always ready must not keep the thread from everyone else.
        consume_budget().await;
        stream.ready(interest).await?;
        match stream.try_io(interest, || step().map_err(io::Error::from)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            moved => return moved,
        }
    }
}
