//! Messages that say one thing twice are refused.
//!
//! A client that shows a person the first of two equal keys would show another call than haft runs, which would take
//! the last. [`refusal`] decides, for HTTP and for pipes. On pipes the protocol library reads the lines, and has lost
//! the first key by then: so [`Lines`] looks at each line before it, and [`Strict`] answers in its place.

use super::answer::ERROR;
use haft_core::{ErrorCode, ErrorInfo, Problem, json};
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest line that is looked at. The protocol library throws longer ones away.
const LONGEST: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
/// What a file may begin with, and the protocol library passes over.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Why a message is not taken.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    /// The request to answer; nothing where it is none, or does not say its name.
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

/// Why a message is not taken: it has a key twice. What is no JSON at all is answered by those who read it.
pub(super) fn refusal(message: &[u8]) -> Option<Refusal> {
    let message = message.strip_prefix(MARK).unwrap_or(message);
    let text = String::from_utf8_lossy(message);
    let anywhere = json::parse(&text).err()?;
    serde_json::from_str::<IgnoredAny>(&text).ok()?;
    let (says, problem) = match in_arguments(&text) {
        // As the engine says it of arguments that come another way.
        Some(problem) => ("Invalid tool arguments JSON", problem),
        None => ("Invalid request", anywhere),
    };
    let code = ErrorCode::ValidationFailed;
    let info = ErrorInfo {
        code,
        number: code.e_number().map(str::to_owned),
        message: format!("{says}: {problem}"),
        retryable: code.is_retryable(),
        problems: vec![problem],
        data: None,
    };
    let whole: Value = serde_json::from_str(&text).unwrap_or_default();
    // An answer to a question of haft's is none: then nobody answered. It gets no answer itself.
    let id = whole.get("method").and_then(|_| serde_json::from_value(whole.get("id")?.clone()).ok());
    let error = ErrorData::invalid_params(info.message.clone(), Some(serde_json::json!({ERROR: info})));
    Some(Refusal { id, error })
}

/// What is wrong with the arguments of a call, where it is in them.
fn in_arguments(text: &str) -> Option<Problem> {
    #[derive(Deserialize)]
    struct Message<'a> {
        method: String,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    if message.method != "tools/call" {
        return None;
    }
    json::parse(message.params.arguments.get()).err()
}

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
    /// The line is too long to be looked at: it is handed on, and thrown away there.
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
        if end.is_none() && !self.is_long {
            return None;
        }
        let refused = if self.is_long { None } else { refusal(&self.line) };
        if end.is_some() {
            self.is_long = false;
        }
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
                Err(Refusal { id, error }) => {
                    tracing::debug!(why = %error.message, "a message was refused");
                    let Some(id) = id else { continue };
                    let answer = ServerJsonRpcMessage::error(error, Some(id));
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
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    const TWICE: &str = concat!(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","#,
        r#""params":{"name":"t","arguments":{"path":"a","path":"b"}}}"#
    );

    #[test]
    fn a_message_says_everything_once() {
        let refused = refusal(TWICE.as_bytes()).unwrap();
        let message = "Invalid tool arguments JSON: the key \"path\" is there twice (line 1 column 18)";
        assert_eq!((refused.id, &*refused.error.message), (Some(RequestId::Number(7)), message));
        let info = &refused.error.data.unwrap()["haft/error"];
        assert_eq!((&info["code"], &info["message"]), (&"VALIDATION_FAILED".into(), &message.into()));
        let marked = [MARK, TWICE.as_bytes()].concat();
        assert!(refusal(&marked).is_some(), "the mark is passed over by those who read it, too");
        for (twice, id) in [
            (r#"{"id":1,"method":"ping","method":"tools/list"}"#, true),
            (r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b","arguments":{}}}"#, true),
            (r#"{"id":1,"method":"tools/call","params":{"arguments":{"a":[{"b":1,"b":2}]}}}"#, true),
            (r#"{"method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#, false),
            (r#"{"id":1,"result":{"action":"accept","content":{"approve":false,"approve":true}}}"#, false),
        ] {
            let refused = refusal(twice.as_bytes()).unwrap();
            assert_eq!(refused.id.is_some(), id, "{twice}");
            assert!(refused.error.message.contains("is there twice"), "{twice}");
        }
        for fine in [&br#"{"a":{"b":1},"c":{"b":1}}"#[..], b"", b"no json", b"\xff", b"{\"a\":"] {
            assert_eq!(refusal(fine), None, "{fine:?}");
        }
    }

    /// Lines that are refused are answered in their place, and those around them are read, however they are cut.
    #[tokio::test]
    async fn lines_are_refused_one_by_one() {
        let ping = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
        let unanswered = r#"{"jsonrpc":"2.0","method":"notifications/initialized","method":"ping"}"#;
        let all =
            [&ping(1), TWICE, TWICE, unanswered, "nonsense", &ping(2), TWICE, &ping(3)].join("\n") + "\n";
        for piece in [1, 7, 4096] {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (from, to) = tokio::io::split(theirs);
            let (lines, refusals) = Lines::new(from);
            let mut strict =
                Strict::new(IntoTransport::<RoleServer, _, _>::into_transport((lines, to)), refusals);
            let (answers, mut says) = tokio::io::split(ours);
            let all = all.clone();
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
            assert_eq!(taken, ["1", "2", "3"]);
            drop(strict);
            let mut answers = BufReader::new(answers).lines();
            let mut refused = 0;
            while let Some(line) = answers.next_line().await.unwrap() {
                let answer: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(answer["id"], 7, "{answer}");
                refused += 1;
            }
            assert_eq!(refused, 3, "in pieces of {piece} bytes");
        }
    }
}
