//! The two ends of a connection, with deadlines on everything.

use super::ledger::Ledger;
use std::{
    future::Future,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{Instant, sleep_until, timeout},
};

/// How much is read at once while a message is taken apart, and while bytes are only passed on.
const SMALL: usize = 16 * 1024;
const LARGE: usize = 128 * 1024;

/// One end: what it said and was not yet taken, and the way to answer.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) input: Input,
    pub(crate) output: OwnedWriteHalf,
}

/// What an end says.
#[derive(Debug)]
pub(crate) struct Input {
    half: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl End {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let (half, output) = stream.into_split();
        End { input: Input { half, buffer: Vec::new() }, output }
    }
}

impl Input {
    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes bytes from the front.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        self.buffer.drain(..length.min(self.buffer.len())).collect()
    }

    /// Forgets bytes at the front.
    pub(crate) fn skip(&mut self, length: usize) {
        self.buffer.drain(..length.min(self.buffer.len()));
    }

    /// Waits for more. 0 is the end. Dropping the future loses nothing.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        self.buffer.reserve(SMALL);
        self.half.read_buf(&mut self.buffer).await
    }

    /// As [`more`](Self::more), until a deadline.
    pub(crate) async fn more_until(&mut self, deadline: Instant) -> io::Result<usize> {
        match tokio::time::timeout_at(deadline, self.more()).await {
            Ok(read) => read,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Writes all of it, or fails when the other side takes nothing for so long.
pub(crate) async fn write_within(
    output: &mut OwnedWriteHalf,
    bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    within(patience, output.write_all(bytes)).await
}

/// A future that fails when it takes too long.
pub(crate) async fn within<T>(
    patience: Duration,
    future: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    timeout(patience, future).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Says the last word and leaves time for it to be read: closing with unread input resets the connection, and a client
/// then loses the answer that says why.
pub(crate) async fn last_word(client: &mut End, bytes: &[u8]) {
    const PATIENCE: Duration = Duration::from_secs(2);
    const MOST: usize = 1 << 20;
    if write_within(&mut client.output, bytes, PATIENCE).await.is_err() {
        return;
    }
    if within(PATIENCE, client.output.shutdown()).await.is_err() {
        return;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut thrown_away = 0;
    while thrown_away < MOST {
        client.input.buffer.clear();
        match client.input.more_until(deadline).await {
            Ok(0) | Err(_) => return,
            Ok(length) => thrown_away += length,
        }
    }
}

/// Waits for more from the client; meanwhile whatever the server says is passed on, as protocols in which the server
/// speaks first need.
pub(crate) async fn more_from_client(
    client: &mut End,
    server: &mut End,
    ledger: &Ledger,
    deadline: Instant,
) -> io::Result<usize> {
    let mut server_speaks = true;
    loop {
        tokio::select! {
            read = client.input.more() => return read,
            read = server.input.more(), if server_speaks => {
                match read? {
                    0 => {
                        client.output.shutdown().await?;
                        server_speaks = false;
                    }
                    length => {
                        ledger.received(length);
                        tokio::time::timeout_at(deadline, client.output.write_all(&server.input.buffer)).await??;
                        server.input.buffer.clear();
                    }
                }
            }
            () = sleep_until(deadline) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// When something last moved.
struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn touch(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// Returns when nothing moved for so long.
    async fn ceased(&self, patience: Duration) {
        loop {
            let last = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed));
            if last.elapsed() >= patience {
                return;
            }
            sleep_until(last + patience).await;
        }
    }
}

/// Passes bytes on in both directions until both ends are done, one breaks, or nothing moves for too long.
pub(crate) async fn pass_on(client: End, server: End, ledger: &Ledger, idle: Duration) {
    let activity = Activity { start: Instant::now(), last: AtomicU64::new(0) };
    let (mut client, mut server) = (client, server);
    // What the server said so far was counted by nobody yet; the client's is counted when it is sent.
    ledger.received(server.input.buffer.len());
    let out = async {
        one_way(&mut client.input, &mut server.output, &activity, |sent| ledger.sent(sent), |_| {}).await
    };
    let back = async {
        one_way(&mut server.input, &mut client.output, &activity, |_| {}, |read| ledger.received(read)).await
    };
    tokio::select! {
        // An error is an end like any other: there is nobody left to tell.
        _ = async { tokio::try_join!(out, back) } => {}
        () = activity.ceased(idle) => {}
    }
}

async fn one_way(
    from: &mut Input,
    to: &mut OwnedWriteHalf,
    activity: &Activity,
    sent: impl Fn(usize),
    read: impl Fn(usize),
) -> io::Result<()> {
    // What was read while the connection was looked at.
    to.write_all(&from.buffer).await?;
    sent(from.buffer.len());
    from.buffer.clear();
    let moved = |length| {
        read(length);
        sent(length);
        activity.touch();
    };
    #[cfg(target_os = "linux")]
    if let Some(pipe) = super::splice::Pipe::new() {
        return splice_on(&pipe, from, to, moved).await;
    }
    copy_on(from, to, moved).await
}

#[cfg(target_os = "linux")]
async fn splice_on(
    pipe: &super::splice::Pipe,
    from: &mut Input,
    to: &mut OwnedWriteHalf,
    moved: impl Fn(usize),
) -> io::Result<()> {
    from.buffer = Vec::new();
    loop {
        match pipe.fill(from.half.as_ref()).await? {
            0 => return to.shutdown().await,
            length => pipe.drain(to.as_ref(), length, &moved).await?,
        }
    }
}

/// Where bytes cannot be moved inside the kernel.
async fn copy_on(from: &mut Input, to: &mut OwnedWriteHalf, moved: impl Fn(usize)) -> io::Result<()> {
    loop {
        from.buffer.reserve(LARGE);
        match from.half.read_buf(&mut from.buffer).await? {
            0 => return to.shutdown().await,
            length => {
                to.write_all(&from.buffer).await?;
                from.buffer.clear();
                moved(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    /// Sends megabytes through `way`, and expects them whole, with an end behind them.
    async fn comes_through(way: impl AsyncFnOnce(&mut Input, &mut OwnedWriteHalf, &Cell<usize>)) {
        let ((mut source, inner), (outer, mut sink)) = (pair().await, pair().await);
        let (mut from, mut to) = (End::new(inner), End::new(outer));
        let bytes: Vec<u8> = (0..4_000_000u32).map(|number| (number % 251) as u8).collect();
        let counted = Cell::new(0);
        let send = async {
            source.write_all(&bytes).await.unwrap();
            source.shutdown().await.unwrap();
        };
        let mut got = Vec::new();
        let ((), (), read) =
            tokio::join!(send, way(&mut from.input, &mut to.output, &counted), sink.read_to_end(&mut got));
        read.unwrap();
        assert!(got == bytes, "{} bytes came", got.len());
        assert_eq!(counted.get(), bytes.len());
    }

    #[tokio::test]
    async fn bytes_are_copied_whole() {
        comes_through(async |from, to, counted| {
            copy_on(from, to, |moved| counted.set(counted.get() + moved)).await.unwrap();
        })
        .await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn bytes_are_moved_whole_inside_the_kernel() {
        comes_through(async |from, to, counted| {
            let pipe = super::super::splice::Pipe::new().unwrap();
            splice_on(&pipe, from, to, |moved| counted.set(counted.get() + moved)).await.unwrap();
        })
        .await;
    }
}
