//! Who asks.

use haft_core::{CallContext, text};
use rmcp::{ErrorData, RoleServer, service::RequestContext};
use std::sync::{Arc, Mutex, PoisonError};

/// How a server knows who asks.
#[derive(Clone, Debug)]
pub enum Callers {
    /// Always the same: the user who started the process. The client's own name for itself becomes the agent.
    One(Arc<CallContext>),
    /// Whom the HTTP layer around this found, as a [`Caller`] in the extensions of each request. One without is
    /// refused.
    PerRequest,
}

/// Whom an HTTP layer found behind a request. It puts this into the request's extensions.
///
/// A caller does not approve calls, unless it has that right, too.
///
/// ```
/// use haft_mcp::server::Caller;
/// let caller = Caller::new(haft_core::CallContext::owner());
/// assert!(!caller.may_approve && caller.and_approves().may_approve);
/// ```
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who asks.
    pub context: Arc<CallContext>,
    /// Whether approvals through the client count.
    pub may_approve: bool,
}

impl Caller {
    /// One who makes calls.
    pub fn new(context: Arc<CallContext>) -> Self {
        Caller { context, may_approve: false }
    }

    /// A caller who may also approve calls.
    #[must_use]
    pub fn and_approves(mut self) -> Self {
        self.may_approve = true;
        self
    }
}

impl Callers {
    /// Whether all requests are those of one client.
    pub(super) fn is_one(&self) -> bool {
        matches!(self, Callers::One(_))
    }

    /// Whether the caller of a request may approve calls.
    pub(super) fn may_approve(&self, request: &RequestContext<RoleServer>) -> bool {
        match self {
            Callers::One(_) => true,
            Callers::PerRequest => found(request).is_some_and(|caller| caller.may_approve),
        }
    }
}

/// Of a request's metadata: the conversation that it belongs to.
pub(super) const CONVERSATION: &str = "haft/conversation";
/// Of a request's metadata: the same key means the same call, which has an effect once.
pub(super) const IDEMPOTENCY_KEY: &str = "haft/idempotencyKey";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The caller of the last request, since nearly always it is that of the next.
#[derive(Default)]
pub(super) struct LastCaller(Mutex<Option<Known>>);

struct Known {
    client: Option<String>,
    conversation: Option<String>,
    context: Arc<CallContext>,
}

impl LastCaller {
    pub(super) fn of(
        &self,
        callers: &Callers,
        request: &RequestContext<RoleServer>,
    ) -> Result<Arc<CallContext>, ErrorData> {
        let text = |key: &str| request.meta.get(key).and_then(|value| value.as_str());
        let conversation = text(CONVERSATION);
        match callers {
            Callers::One(base) => {
                let handshake = request.peer.peer_info();
                let client = match request.meta.get(CLIENT_INFO) {
                    Some(info) => info.get("name").and_then(|name| name.as_str()),
                    None => handshake.as_deref().map(|info| info.client_info.name.as_str()),
                };
                Ok(self.named(base, client, conversation))
            }
            Callers::PerRequest => {
                let base = found(request).map(|caller| Arc::clone(&caller.context)).ok_or_else(nobody)?;
                let conversation = conversation.map(str::to_owned).or_else(|| session(request));
                Ok(match conversation {
                    Some(conversation) if base.conversation.is_none() => {
                        let conversation = Some(short(&conversation).into());
                        Arc::new(CallContext { conversation, ..CallContext::clone(&base) })
                    }
                    _ => base,
                })
            }
        }
    }

    fn named(
        &self,
        base: &Arc<CallContext>,
        client: Option<&str>,
        conversation: Option<&str>,
    ) -> Arc<CallContext> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*last
            && known.client.as_deref() == client
            && known.conversation.as_deref() == conversation
        {
            return Arc::clone(&known.context);
        }
        let mut context = CallContext::clone(base);
        if let Some(name) = client.filter(|name| !name.trim().is_empty()) {
            context.agent = format!("mcp:{}", short(name)).into();
        }
        if let Some(conversation) = conversation {
            context.conversation = Some(short(conversation).into());
        }
        let context = Arc::new(context);
        *last = Some(Known {
            client: client.map(str::to_owned),
            conversation: conversation.map(str::to_owned),
            context: Arc::clone(&context),
        });
        context
    }
}

/// A name that somebody gave themselves, as it may stand in records.
fn short(name: &str) -> String {
    text::one_line(name.trim(), 60)
}

fn nobody() -> ErrorData {
    ErrorData::invalid_request("nobody is known who makes this request", None)
}

#[cfg(feature = "http")]
fn parts(request: &RequestContext<RoleServer>) -> Option<&::http::request::Parts> {
    request.extensions.get()
}

#[cfg(feature = "http")]
fn found(request: &RequestContext<RoleServer>) -> Option<&Caller> {
    parts(request)?.extensions.get()
}

#[cfg(feature = "http")]
fn session(request: &RequestContext<RoleServer>) -> Option<String> {
    let id = parts(request)?.headers.get("mcp-session-id")?.to_str().ok()?;
    Some(format!("mcp-session-{id}"))
}

#[cfg(not(feature = "http"))]
fn found(_request: &RequestContext<RoleServer>) -> Option<&Caller> {
    None
}

#[cfg(not(feature = "http"))]
fn session(_request: &RequestContext<RoleServer>) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_the_agent_under_its_own_name_made_safe() {
        let last = LastCaller::default();
        let owner = CallContext::owner();
        let context = last.named(&owner, Some("Code\u{1b}[31m Editor"), Some("c1"));
        assert_eq!(context.check(), Ok(()));
        assert!(context.agent.starts_with("mcp:Code"), "{}", context.agent);
        assert_eq!(context.conversation.as_deref(), Some("c1"));
        assert_eq!(context.tenant, owner.tenant);
        assert!(Arc::ptr_eq(&context, &last.named(&owner, Some("Code\u{1b}[31m Editor"), Some("c1"))));
        assert_eq!(&*last.named(&owner, Some(" "), None).agent, &*owner.agent);
        let long = last.named(&owner, Some(&"é".repeat(1000)), None);
        assert_eq!(long.check(), Ok(()));
    }
}
