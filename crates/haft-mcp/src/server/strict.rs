//! Lines on pipes that are refused, and answered in their place.
//!
//! The protocol library drops a line that is not JSON, answers without an id where it could have said it, and has lost
//! the first of two equal keys. So [`Lines`] looks at each line before it, with [`refusal`], and [`Strict`] answers.

use super::refusal::{Refusal, To, refusal, too_long};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that is taken. The protocol library would throw longer ones away without a word.
const LONGEST: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

/// Refusals on their way from where lines are read to where answers are sent.
type Refusals = Arc<Mutex<Option<Refusal>>>;

/// A reader that leaves lines out that are refused.
pub(super) struct Lines<R> {
    from: R,
    /// The line that is being read.
    line: Vec<u8>,
    /// Bytes that were looked at, and how many of them were handed on.
    passed: (Vec<u8>, usize),
    /// Bytes that were read and not looked at yet.
    unread: (Vec<u8>, usize),
    /// The line is too long to be taken: nothing of it is kept.
    is_long: bool,
    has_ended: bool,
    refusals: Refusals,
}

impl<R> Lines<R> {
    pub(super) fn new(from: R) -> (Self, Refusals) {
        let refusals = Refusals::default();
        let lines = Lines {
            from,
            line: Vec::new(),
            passed: (Vec::new(), 0),
            unread: (Vec::new(), 0),
            is_long: false,
            has_ended: false,
            refusals: Arc::clone(&refusals),
        };
        (lines, refusals)
    }

    /// Takes bytes up to the end of a line, and says whether it is refused.
    fn take_line(&mut self) -> Option<Refusal> {
        let (bytes, at) = &mut self.unread;
        let rest = &bytes[*at..];
        let end = rest.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        self.line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        *at += end.unwrap_or(rest.len());
        self.is_long |= self.line.len() > LONGEST;
        if self.is_long {
            self.line.clear();
        }
        end?;
        if std::mem::take(&mut self.is_long) {
            return Some(too_long(LONGEST));
        }
        let refused = refusal(&self.line);
        if refused.is_none() {
            self.passed = (std::mem::take(&mut self.line), 0);
        }
        self.line.clear();
        refused
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let (bytes, at) = &mut this.passed;
            if *at < bytes.len() {
                let some = (bytes.len() - *at).min(into.remaining());
                into.put_slice(&bytes[*at..*at + some]);
                *at += some;
                return Poll::Ready(Ok(()));
            }
            if this.unread.1 < this.unread.0.len() {
                if let Some(refused) = this.take_line() {
                    *this.refusals.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                    // One at a time: it is answered before more is read.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            }
            if this.has_ended {
                return Poll::Ready(Ok(()));
            }
            let mut room = [0; 8 << 10];
            let mut buffer = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut this.from).poll_read(cx, &mut buffer))?;
            this.unread.0.clear();
            this.unread.0.extend_from_slice(buffer.filled());
            this.unread.1 = 0;
            if this.unread.0.is_empty() {
                this.has_ended = true;
                this.passed = (std::mem::take(&mut this.line), 0);
            }
        }
    }
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// What comes next on a transport: a message, or its end; or a line that is refused.
type Next = Result<Option<ClientJsonRpcMessage>, Refusal>;

/// A transport that answers the lines which [`Lines`] left out.
pub(super) struct Strict<T: Transport<RoleServer>> {
    transport: T,
    refusals: Refusals,
    /// An answer that is not sent yet. Nothing more is read before it is: one who takes no answers is not heard.
    sending: Option<Sending<T::Error>>,
}

impl<T: Transport<RoleServer>> Strict<T> {
    pub(super) fn new(transport: T, refusals: Refusals) -> Self {
        Strict { transport, refusals, sending: None }
    }

    /// What comes next. Where a line is refused, what was read of the one after it stays in the transport.
    async fn next(&mut self) -> Next {
        let mut receiving = std::pin::pin!(self.transport.receive());
        std::future::poll_fn(|cx| match receiving.as_mut().poll(cx) {
            Poll::Ready(message) => Poll::Ready(Ok(message)),
            Poll::Pending => {
                let refused = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).take();
                refused.map_or(Poll::Pending, |refused| Poll::Ready(Err(refused)))
            }
        })
        .await
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Strict<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(sending) = &mut self.sending {
                let sent = sending.await;
                self.sending = None;
                sent.ok()?;
            }
            match self.next().await {
                Ok(message) => return message,
                Err(Refusal { to, error }) => {
                    tracing::debug!(why = %error.message, "a message was refused");
                    let id = match to {
                        To::Nobody => continue,
                        To::Unnamed => None,
                        To::Request(id) => Some(id),
                    };
                    let answer = ServerJsonRpcMessage::error(error, id);
                    self.sending = Some(Box::pin(self.transport.send(answer)));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::transport::IntoTransport;
    use serde_json::Value;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

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
            let all = format!("{all}{last}\n{}\n", ping(4));
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (from, to) = tokio::io::split(theirs);
            let (lines, refusals) = Lines::new(from);
            let mut strict =
                Strict::new(IntoTransport::<RoleServer, _, _>::into_transport((lines, to)), refusals);
            let (answers, mut says) = tokio::io::split(ours);
            let saying = tokio::spawn(async move {
                for piece in all.as_bytes().chunks(piece) {
                    says.write_all(piece).await.unwrap();
                    tokio::task::yield_now().await;
                }
                says.shutdown().await.unwrap();
            });
            let mut taken = Vec::new();
            while let Some(message) = strict.receive().await {
                let ClientJsonRpcMessage::Request(request) = message else { panic!("{message:?}") };
                taken.push(request.id.to_string());
            }
            saying.await.unwrap();
            assert_eq!(taken, ["1", "2", "3", "4"]);
            drop(strict);
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
}
