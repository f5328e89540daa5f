//! A conversation in which the other side cannot make haft hold more than so much.
//!
//! The protocol library reads requests as fast as they come, and keeps every answer until it is taken. So one who asks
//! and never reads would fill memory with answers. Here requests are counted until their answers are on their way, and
//! answers until they have been taken.

use rmcp::{
    ErrorData, RoleClient, RoleServer,
    model::{ClientNotification, ErrorCode, JsonRpcMessage, RequestId, ServerNotification},
    service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage},
    transport::Transport,
};
use std::{
    collections::HashSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The longest id of a request. It is kept, and comes back in the answer.
const LONGEST_ID: usize = 1024;

/// What the other side may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Requests without an answer. One more is refused, or ends the conversation.
    pub(crate) open: usize,
    /// Answers that it has not taken. One more ends the conversation.
    pub(crate) untaken: usize,
    pub(crate) beyond: Beyond,
}

/// What becomes of a request that is one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// It is refused, and the caller may ask again.
    Refused,
    /// The conversation ends: nobody means well with so many.
    TheEnd,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    Refused,
    End(&'static str),
}

/// Decides about one more request, of an id of that length.
fn judge(bounds: &Bounds, open: usize, untaken: usize, id_length: usize) -> Verdict {
    if id_length > LONGEST_ID {
        return Verdict::End("it sent a request with an id of more than a kilobyte");
    }
    if untaken >= bounds.untaken {
        return Verdict::End("it does not read the answers to what it asks");
    }
    match bounds.beyond {
        _ if open < bounds.open => Verdict::Taken,
        Beyond::Refused => Verdict::Refused,
        Beyond::TheEnd => Verdict::End("it asks more than is answered"),
    }
}

/// What a notification says about one of the requests of its sender.
pub(crate) trait Side: ServiceRole {
    /// The request that they do not want answered any more.
    fn cancelled(notification: &Self::PeerNot) -> Option<&RequestId>;
}

impl Side for RoleClient {
    fn cancelled(notification: &ServerNotification) -> Option<&RequestId> {
        match notification {
            ServerNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        }
    }
}

impl Side for RoleServer {
    fn cancelled(notification: &ClientNotification) -> Option<&RequestId> {
        match notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        }
    }
}

/// A transport within bounds.
pub(crate) struct Bounded<T> {
    transport: T,
    bounds: Bounds,
    open: HashSet<RequestId>,
    untaken: Arc<AtomicUsize>,
    /// Why it was ended, where it was.
    why: Arc<OnceLock<&'static str>>,
    /// What is held for as long as the conversation goes on.
    _held: Option<Box<dyn Send + Sync>>,
}

/// An answer on its way. Dropping it says that it is not any more.
struct OnItsWay(Arc<AtomicUsize>);

impl OnItsWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        OnItsWay(Arc::clone(count))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Bounded<T> {
    pub(crate) fn new(transport: T, bounds: Bounds) -> Self {
        Bounded {
            transport,
            bounds,
            open: HashSet::new(),
            untaken: Arc::default(),
            why: Arc::default(),
            _held: None,
        }
    }

    /// This transport, which holds something until everything of the conversation is gone.
    #[cfg(feature = "http")]
    pub(crate) fn holding(mut self, held: impl Send + Sync + 'static) -> Self {
        self._held = Some(Box::new(held));
        self
    }

    /// Where it is written why the conversation was ended.
    pub(crate) fn why(&self) -> Arc<OnceLock<&'static str>> {
        Arc::clone(&self.why)
    }

    fn end(&self, why: &'static str) {
        tracing::warn!(why, "an MCP conversation was ended");
        let _ = self.why.set(why);
    }
}

impl<R: Side, T: Transport<R>> Transport<R> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<R>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let on_its_way = answered.map(|id| {
            self.open.remove(id);
            OnItsWay::new(&self.untaken)
        });
        let sending = self.transport.send(message);
        async move {
            let sent = sending.await;
            drop(on_its_way);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        loop {
            if self.why.get().is_some() {
                return None;
            }
            let message = self.transport.receive().await?;
            let id = match &message {
                JsonRpcMessage::Request(request) => &request.id,
                JsonRpcMessage::Notification(notification) => {
                    if let Some(id) = R::cancelled(&notification.notification) {
                        // Nobody answers it any more.
                        self.open.remove(id);
                    }
                    return Some(message);
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Some(message),
            };
            let length = match id {
                RequestId::Number(_) => 0,
                RequestId::String(text) => text.len(),
            };
            let untaken = self.untaken.load(Ordering::Relaxed);
            match judge(&self.bounds, self.open.len(), untaken, length) {
                Verdict::Taken => {
                    self.open.insert(id.clone());
                    return Some(message);
                }
                Verdict::Refused => {
                    let text =
                        "too many requests are open on this connection; wait for some of their answers";
                    let busy = ErrorData::new(ErrorCode(-32000), text, None);
                    let refusal = JsonRpcMessage::error(busy, Some(id.clone()));
                    let on_its_way = OnItsWay::new(&self.untaken);
                    let sending = self.transport.send(refusal);
                    tokio::spawn(async move {
                        let _ = sending.await;
                        drop(on_its_way);
                    });
                }
                Verdict::End(why) => {
                    self.end(why);
                    return None;
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
    use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
    use serde_json::json;
    use std::{collections::VecDeque, convert::Infallible};

    #[test]
    fn one_too_many_is_refused_or_the_end() {
        let bounds = |beyond| Bounds { open: 4, untaken: 2, beyond };
        for (beyond, open, untaken, id, expected) in [
            (Beyond::TheEnd, 3, 1, 1024, true),
            (Beyond::TheEnd, 4, 0, 0, false),
            (Beyond::TheEnd, 0, 2, 0, false),
            (Beyond::TheEnd, 0, 0, 1025, false),
            (Beyond::Refused, 3, 1, 0, true),
            (Beyond::Refused, 0, 2, 0, false),
            (Beyond::Refused, 0, 0, 1025, false),
        ] {
            let verdict = judge(&bounds(beyond), open, untaken, id);
            assert_eq!(verdict == Verdict::Taken, expected, "{beyond:?} {open} {untaken} {id}: {verdict:?}");
        }
        assert_eq!(judge(&bounds(Beyond::Refused), 4, 1, 0), Verdict::Refused);
    }

    /// Says what is in a list; takes answers, or never.
    struct Scripted {
        says: VecDeque<serde_json::Value>,
        takes: bool,
    }

    impl Transport<RoleClient> for Scripted {
        type Error = Infallible;

        fn send(
            &mut self,
            _: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            let takes = self.takes;
            async move { if takes { Ok(()) } else { std::future::pending().await } }
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            self.says.pop_front().map(|says| serde_json::from_value(says).unwrap())
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// How many of so many pings are taken, each answered at once, and cancelled where asked for.
    async fn taken(pings: usize, takes: bool, cancels: bool) -> usize {
        let mut says = VecDeque::new();
        for id in 0..pings {
            says.push_back(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
            if cancels {
                let params = json!({"requestId": id});
                says.push_back(
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
                );
            }
        }
        let bounds = Bounds { open: 8, untaken: 8, beyond: Beyond::TheEnd };
        let mut bounded = Bounded::new(Scripted { says, takes }, bounds);
        let (mut count, mut kept) = (0, Vec::new());
        while let Some(message) = bounded.receive().await {
            if let JsonRpcMessage::Request(request) = message {
                count += 1;
                let answer =
                    ClientJsonRpcMessage::error(ErrorData::invalid_request("no", None), Some(request.id));
                let mut sending = Box::pin(bounded.send(answer));
                if futures_util::poll!(&mut sending).is_pending() {
                    kept.push(sending);
                }
            }
        }
        assert_eq!(bounded.why().get().is_some(), count < pings);
        count
    }

    #[tokio::test]
    async fn one_who_reads_nothing_is_left_though_it_cancels_what_it_asked() {
        assert_eq!(taken(1000, true, false).await, 1000, "one who reads may ask for ever");
        assert_eq!(taken(1000, true, true).await, 1000);
        assert_eq!(taken(1000, false, false).await, 8);
        assert_eq!(taken(1000, false, true).await, 8);
    }
}
