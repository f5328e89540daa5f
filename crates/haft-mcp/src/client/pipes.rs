//! A server that is a program in a jail: its pipes, and its end.

use haft_core::{
    Enforcement, OutputStream, ToolError,
    port::{Guest, GuestControl, GuestEnd},
    text,
};
use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, DuplexStream, ReadBuf},
    sync::{mpsc, watch},
    task::AbortHandle,
};

/// What a server may have said that nobody has read yet. One that says more is ended: memory is not its to fill.
const MOST_UNREAD: usize = 64 << 20;
/// What is on its way to a server.
const ON_ITS_WAY: usize = 64 << 10;
/// How much of its standard error is kept, to say why it ended.
const TAIL: usize = 2048;
/// How long it may take to go once its input has ended, before it is asked to.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long an end that was asked for is waited for; a jail keeps the grace by itself.
const END: Duration = Duration::from_secs(5);

/// The two ends that are spoken through, and the program behind them.
pub(super) struct Pipes {
    pub(super) read: ServerOutput,
    pub(super) write: DuplexStream,
    pub(super) program: Program,
}

/// A program that runs. Dropping it ends it, with everything that it started.
pub(super) struct Program {
    pub(super) sandbox: String,
    pub(super) enforcement: Enforcement,
    control: Arc<dyn GuestControl>,
    waiting: AbortHandle,
    writing: AbortHandle,
    ended: watch::Receiver<Option<Result<GuestEnd, ToolError>>>,
    tail: Arc<Mutex<VecDeque<u8>>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.control.kill();
        // The guest is dropped with its task, and its jail with the guest.
        self.waiting.abort();
        self.writing.abort();
    }
}

impl Pipes {
    /// Speaks with a program that was started with a stream as its input.
    pub(super) fn of(mut guest: Box<dyn Guest>) -> Self {
        let control = guest.control();
        let (sandbox, enforcement) = (guest.sandbox_id().to_owned(), guest.enforcement().clone());
        let (bytes, said) = mpsc::unbounded_channel();
        let unread: Arc<AtomicUsize> = Arc::default();
        let tail: Arc<Mutex<VecDeque<u8>>> = Arc::default();
        let (tell_end, ended) = watch::channel(None);
        let sink = {
            let (unread, tail, control) = (Arc::clone(&unread), Arc::clone(&tail), Arc::clone(&control));
            Arc::new(move |stream, piece: &[u8]| match stream {
                OutputStream::Stdout => {
                    let before = unread.fetch_add(piece.len(), Ordering::Relaxed);
                    if before > MOST_UNREAD {
                        control.kill();
                    } else {
                        // Nobody reads any more once the connection has ended.
                        let _ = bytes.send(piece.to_vec());
                    }
                }
                OutputStream::Stderr => keep(&tail, piece),
            })
        };
        let waiting = tokio::spawn(async move {
            // The sink goes with the wait, so that the reader sees the end.
            let end = guest.wait(sink).await;
            drop(guest);
            tell_end.send_replace(Some(end));
        });
        let (write, mut to_write) = tokio::io::duplex(ON_ITS_WAY);
        let input = Arc::clone(&control);
        let writing = tokio::spawn(async move {
            let mut piece = vec![0; ON_ITS_WAY];
            while let Ok(length @ 1..) = to_write.read(&mut piece).await {
                if input.write(&piece[..length]).await.is_err() {
                    break;
                }
            }
            input.close_stdin();
        });
        let program = Program {
            sandbox,
            enforcement,
            control,
            waiting: waiting.abort_handle(),
            writing: writing.abort_handle(),
            ended,
            tail,
        };
        Pipes { read: ServerOutput { said, unread, current: Vec::new(), taken: 0 }, write, program }
    }
}

impl Program {
    /// Ends it: its input has ended already, so it may go by itself; then it is asked, and then it is ended.
    pub(super) async fn end(self) {
        if self.has_ended_within(PATIENCE).await {
            return;
        }
        self.control.stop();
        self.has_ended_within(END).await;
    }

    async fn has_ended_within(&self, time: Duration) -> bool {
        let mut ended = self.ended.clone();
        tokio::time::timeout(time, ended.wait_for(Option::is_some)).await.is_ok()
    }

    /// Why it is not there any more, in words. Waits a moment for its end.
    pub(super) async fn why(&self) -> String {
        self.has_ended_within(Duration::from_secs(1)).await;
        let end = self.ended.borrow().clone();
        let how = match end {
            None => "it closed its output".to_owned(),
            Some(Err(error)) => error.message,
            Some(Ok(end)) => match end.error() {
                Some(error) => error.message,
                None => "the program ended".to_owned(),
            },
        };
        match self.last_words() {
            Some(words) => format!("{how}; its last words were: {words}"),
            None => how,
        }
    }

    /// The end of its standard error, on one line.
    pub(super) fn last_words(&self) -> Option<String> {
        let tail: Vec<u8> =
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let words = String::from_utf8_lossy(&tail);
        let words = words.trim();
        (!words.is_empty()).then(|| text::one_line(words, 600))
    }
}

fn keep(tail: &Mutex<VecDeque<u8>>, piece: &[u8]) {
    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
    let last = &piece[piece.len().saturating_sub(TAIL)..];
    tail.extend(last);
    let over = tail.len().saturating_sub(TAIL);
    tail.drain(..over);
}

/// What a program says, as it comes.
pub(super) struct ServerOutput {
    said: mpsc::UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    current: Vec<u8>,
    taken: usize,
}

impl AsyncRead for ServerOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.taken == this.current.len() {
            match ready!(this.said.poll_recv(cx)) {
                Some(piece) => (this.current, this.taken) = (piece, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = into.remaining().min(this.current.len() - this.taken);
        into.put_slice(&this.current[this.taken..this.taken + length]);
        this.taken += length;
        this.unread.fetch_sub(length, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_words_are_kept() {
        let tail = Mutex::default();
        keep(&tail, &[b'a'; 10 * TAIL]);
        keep(&tail, b"the end");
        let tail = tail.into_inner().unwrap();
        assert_eq!(tail.len(), TAIL);
        assert!(tail.iter().copied().collect::<Vec<_>>().ends_with(b"athe end"));
    }
}
