//! One conversation on a pair of pipes: a message a line.
//!
//! The protocol library has a transport of its own for this. It drops a line that is not JSON, answers without an id
//! where it could have said it, has lost the first of two equal keys, tries a call as thirteen other requests before
//! it is a call, and writes each answer by itself. Here each line is read once, by [`read`], refused in its place, and
//! answers that are ready together are written together.

use super::{
    message::read,
    refusal::{Refusal, To, too_long},
};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest line that is taken.
const LONGEST: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

/// How much is read at once where lines are short.
const AT_ONCE: usize = 16 << 10;

/// Room for lines that is kept when it is empty again.
const KEPT: usize = 256 << 10;

/// A transport on pipes that refuses what is no message, in its place.
pub(super) struct Pipes<R, W> {
    incoming: Incoming<R>,
    outgoing: Arc<Outgoing<W>>,
    /// A refusal that is not sent yet. Nothing more is read before it is: one who takes no answers is not heard.
    refusing: Option<Sending>,
}

type Sending = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl<R, W> Pipes<R, W> {
    pub(super) fn new(from: R, to: W) -> Self {
        Pipes { incoming: Incoming::new(from), outgoing: Arc::new(Outgoing::new(to)), refusing: None }
    }
}

impl<R, W> Transport<RoleServer> for Pipes<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // In the order in which they were given, whichever of the futures is polled first.
        let added = self.outgoing.add(&message);
        let outgoing = Arc::clone(&self.outgoing);
        async move {
            added?;
            outgoing.write().await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                let sent = refusing.await;
                self.refusing = None;
                sent.ok()?;
            }
            let Refusal { to, error } = match self.incoming.line().await {
                Ok(Line::End) => return None,
                Ok(Line::TooLong) => too_long(LONGEST),
                Ok(Line::Whole(line)) => match read(line) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(refusal) => refusal,
                },
                Err(error) => {
                    tracing::error!(%error, "a pipe of a client could not be read");
                    return None;
                }
            };
            tracing::debug!(why = %error.message, "a message was refused");
            let id = match to {
                To::Nobody => continue,
                To::Unnamed => None,
                To::Request(id) => Some(id),
            };
            let answer = self.send(ServerJsonRpcMessage::error(error, id));
            self.refusing = Some(Box::pin(answer));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing.pipe.lock().await.to = None;
        Ok(())
    }
}

/// What comes next of a client.
enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
    /// The pipe is closed. What came after the last end of a line is no message.
    End,
}

/// Lines of a client.
struct Incoming<R> {
    from: R,
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no end of it was found.
    searched: usize,
    /// It is too long to be taken: nothing of it is kept.
    is_long: bool,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// The next line. Nothing is lost where the future is dropped.
    async fn line(&mut self) -> io::Result<Line<'_>> {
        loop {
            if let Some(end) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.start..self.searched + end;
                (self.start, self.searched) = (line.end + 1, line.end + 1);
                return Ok(match std::mem::take(&mut self.is_long) || line.len() >= LONGEST {
                    true => Line::TooLong,
                    false => Line::Whole(&self.bytes[line]),
                });
            }
            self.make_room();
            if self.from.read_buf(&mut self.bytes).await? == 0 {
                return Ok(Line::End);
            }
        }
    }
}

impl<R> Incoming<R> {
    fn new(from: R) -> Self {
        Incoming { from, bytes: Vec::new(), start: 0, searched: 0, is_long: false }
    }

    /// Keeps what is of the line that has begun, and nothing before it.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.is_long |= self.bytes.len() >= LONGEST;
        if self.is_long {
            self.bytes.clear();
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        self.searched = self.bytes.len();
        if self.bytes.capacity() == self.bytes.len() {
            self.bytes.reserve(AT_ONCE);
        }
    }
}

/// Answers on their way to a client.
struct Outgoing<W> {
    /// Lines that nobody writes yet.
    waiting: Mutex<Vec<u8>>,
    pipe: tokio::sync::Mutex<Pipe<W>>,
}

struct Pipe<W> {
    to: Option<W>,
    /// Lines that are being written, and how much of them was. Whoever holds the pipe next goes on with them where one
    /// went away in the middle.
    lines: Vec<u8>,
    written: usize,
}

impl<W> Outgoing<W> {
    fn new(to: W) -> Self {
        let pipe = Pipe { to: Some(to), lines: Vec::new(), written: 0 };
        Outgoing { waiting: Mutex::default(), pipe: tokio::sync::Mutex::new(pipe) }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message as a line.
    fn add(&self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let mut waiting = self.waiting();
        let before = waiting.len();
        let added = serde_json::to_writer(&mut *waiting, message);
        match added {
            Ok(()) => waiting.push(b'\n'),
            Err(_) => waiting.truncate(before),
        }
        added.map_err(io::Error::from)
    }
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    /// Writes what waits, and with it what was added before; returns when nothing of that is left.
    async fn write(&self) -> io::Result<()> {
        let mut pipe = self.pipe.lock().await;
        let Pipe { to: Some(to), lines, written } = &mut *pipe else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the pipe is closed"));
        };
        loop {
            while *written < lines.len() {
                *written += match to.write(&lines[*written..]).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    some => some,
                };
            }
            if *written > 0 {
                to.flush().await?;
                *written = 0;
                lines.clear();
                lines.shrink_to(KEPT);
            }
            let mut waiting = self.waiting();
            if waiting.is_empty() {
                return Ok(());
            }
            std::mem::swap(&mut *waiting, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{RequestId, ServerResult};
    use serde_json::Value;
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    const TWICE: &str = concat!(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","#,
        r#""params":{"name":"t","arguments":{"path":"a","path":"b"}}}"#
    );

    /// Lines that are refused are answered in their place, and those around them are read, however they are cut.
    #[tokio::test]
    async fn lines_are_refused_one_by_one() {
        let ping = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
        let unanswered = r#"{"jsonrpc":"2.0","method":"notifications/initialized","method":"ping"}"#;
        let long = " ".repeat(LONGEST);
        let lines = [
            &ping(1),
            TWICE,
            TWICE,
            unanswered,
            "nonsense",
            "",
            " ",
            &ping(2),
            "{\"id\":9}",
            TWICE,
            &ping(3),
        ];
        let all = lines.join("\n") + "\n";
        for (piece, last) in [(1, ""), (7, ""), (4096, &*long)] {
            let all = format!("{all}{last}\n{}\n{}", ping(4), ping(5));
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (from, to) = tokio::io::split(theirs);
            let mut pipes = Pipes::new(from, to);
            let (answers, mut says) = tokio::io::split(ours);
            let saying = tokio::spawn(async move {
                for piece in all.as_bytes().chunks(piece) {
                    says.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
                says.shutdown().await.unwrap();
            });
            let mut taken = Vec::new();
            while let Some(message) = pipes.receive().await {
                let ClientJsonRpcMessage::Request(request) = message else { panic!("{message:?}") };
                taken.push(request.id.to_string());
            }
            saying.await.unwrap();
            assert_eq!(taken, ["1", "2", "3", "4"], "the last line has no end, and is none");
            drop(pipes);
            let mut answers = BufReader::new(answers).lines();
            let mut refused = Vec::new();
            while let Some(line) = answers.next_line().await.unwrap() {
                let answer: Value = serde_json::from_str(&line).unwrap();
                refused.push((answer["id"].clone(), answer["error"]["code"].as_i64().unwrap()));
            }
            let mut expected = vec![
                (7.into(), -32602),
                (7.into(), -32602),
                (Value::Null, -32700),
                (9.into(), -32600),
                (7.into(), -32602),
            ];
            if !last.is_empty() {
                expected.push((Value::Null, -32600));
            }
            assert_eq!(refused, expected, "in pieces of {piece} bytes");
        }
    }

    /// Answers come whole and in the order in which they were given, also where one who wrote them went away in the
    /// middle, and where the last of them is polled first.
    #[tokio::test]
    async fn answers_are_whole_and_in_order() {
        let (mut ours, theirs) = tokio::io::duplex(5);
        let (from, to) = tokio::io::split(theirs);
        let mut pipes = Pipes::new(from, to);
        let answer = |id: i64| ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id));
        let mut sending: Vec<Sending> = Vec::new();
        for id in 0..3 {
            sending.push(Box::pin(pipes.send(answer(id))));
        }
        // The pipe takes five bytes, and nobody reads: it is in the middle of its line when it is dropped.
        assert!(futures_util::poll!(&mut sending[1]).is_pending());
        drop(sending.remove(1));
        let last = tokio::spawn(sending.remove(1));
        let mut read = Vec::new();
        while read.iter().filter(|byte| **byte == b'\n').count() < 3 {
            assert!(ours.read_buf(&mut read).await.unwrap() > 0);
        }
        last.await.unwrap().unwrap();
        sending.remove(0).await.unwrap();
        let ids: Vec<_> = read
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice::<Value>(line).unwrap()["id"].clone())
            .collect();
        assert_eq!(ids, [0, 1, 2]);
        drop(ours);
        assert!(pipes.send(answer(4)).await.is_err());
        pipes.close().await.unwrap();
        let closed = pipes.send(answer(5)).await.unwrap_err();
        assert_eq!(closed.kind(), io::ErrorKind::NotConnected);
    }
}
