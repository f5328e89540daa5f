//! How a conversation begins, on a transport that is one conversation.

use super::session::REVISIONS;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta as _, ProtocolVersion, ServerJsonRpcMessage},
    transport::Transport,
};

/// A transport that lets nothing through but requests until a conversation has begun.
///
/// A notification is never answered, so one that comes too early is no reason to go: the protocol library would end.
pub(super) struct FromTheBeginning<T> {
    transport: T,
    has_begun: bool,
}

impl<T> FromTheBeginning<T> {
    pub(super) fn new(transport: T) -> Self {
        FromTheBeginning { transport, has_begun: false }
    }
}

/// Whether a conversation begins with that request: a handshake, or a request that stands for itself.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        // Either may come before any conversation.
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(|version| REVISIONS.contains(&version))
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for FromTheBeginning<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let message = self.transport.receive().await?;
            match &message {
                ClientJsonRpcMessage::Request(request) => {
                    self.has_begun |= begins(&request.request);
                    return Some(message);
                }
                _ if self.has_begun => return Some(message),
                ClientJsonRpcMessage::Notification(_)
                | ClientJsonRpcMessage::Response(_)
                | ClientJsonRpcMessage::Error(_) => {
                    tracing::debug!("what a client said before it began was not heard");
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
