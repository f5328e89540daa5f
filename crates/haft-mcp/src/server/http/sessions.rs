//! Sessions within bounds: so many in all, of one caller, of one tenant; and each with so much open.
//!
//! A session costs some fifty kilobytes for as long as it lives, and beginning one costs a client a hundred bytes. So
//! each is counted from before it is made until everything of it is gone.

use crate::bounded::{Beyond, Bounded, Bounds};
use haft_core::CallContext;
use haft_http::{Full, Slot, Slots};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        WorkerTransport,
        common::server_side_http::{ServerSseMessage, SessionId},
        streamable_http_server::session::{
            SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker, SessionConfig},
        },
    },
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How many sessions there may be, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// All together.
    pub all: usize,
    /// Of one tenant.
    pub per_tenant: usize,
    /// Of one caller: a key, or a person with one program.
    pub per_caller: usize,
    /// How long one may be idle before it is ended.
    pub idle: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits { all: 1024, per_tenant: 512, per_caller: 128, idle: Duration::from_secs(300) }
    }
}

/// What a client may have open in one session, and leave untaken. A call goes on though its client hung up, so this is
/// what bounds them.
const BOUNDS: Bounds = Bounds { open: 64, untaken: 256, beyond: Beyond::Refused };

/// Who makes a request that may begin a session, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    caller: Arc<CallContext>,
    refused: Arc<Mutex<Option<Full>>>,
}

tokio::task_local! {
    static BEGINNING: Beginning;
}

impl Beginning {
    pub(super) fn new(caller: Arc<CallContext>) -> Self {
        Beginning { caller, refused: Arc::default() }
    }

    /// Lets the sessions that are begun meanwhile know whose they are. The protocol library does not tell them.
    pub(super) async fn scope<T>(self, answering: impl Future<Output = T>) -> (T, Option<Full>) {
        let refused = Arc::clone(&self.refused);
        let answer = BEGINNING.scope(self, answering).await;
        let refused = *refused.lock().unwrap_or_else(PoisonError::into_inner);
        (answer, refused)
    }
}

/// Counts, until it is dropped with the transport of its session: whatever ends one, that goes last.
#[derive(Debug)]
struct Held {
    _caller: Slot<Arc<[Arc<str>; 3]>>,
    _tenant: Slot<Arc<str>>,
}

/// Why a session did not begin, or is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("nobody is known who begins it")]
    Nobody,
    #[error("there are too many sessions: {0}")]
    TooMany(Full),
    #[error(transparent)]
    Session(#[from] LocalSessionManagerError),
}

/// The sessions of a service.
#[derive(Debug)]
pub(super) struct Sessions {
    sessions: LocalSessionManager,
    callers: Slots<Arc<[Arc<str>; 3]>>,
    tenants: Slots<Arc<str>>,
}

impl Sessions {
    pub(super) fn new(limits: SessionLimits) -> Self {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(limits.idle);
        config.init_timeout = Some(limits.idle.min(SessionConfig::DEFAULT_INIT_TIMEOUT));
        // An answer that was sent is let go: kept for those who come back for it, a minute of long answers is
        // gigabytes.
        config.completed_cache_ttl = Duration::ZERO;
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = config;
        Sessions {
            sessions,
            callers: Slots::new(limits.per_caller, limits.all),
            tenants: Slots::new(limits.per_tenant, limits.all),
        }
    }

    /// Whether the session that a request names is there. A request that names none is answered by those who need one.
    pub(super) async fn is_there(&self, headers: &::http::HeaderMap) -> bool {
        let Some(id) = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()) else { return true };
        self.sessions.sessions.read().await.contains_key(id)
    }

    fn hold(&self, caller: &CallContext) -> Result<Held, Full> {
        let user = caller.user.clone().unwrap_or_default();
        let who = Arc::new([Arc::clone(&caller.tenant), user, Arc::clone(&caller.agent)]);
        Ok(Held {
            _caller: self.callers.take(who, 1)?,
            _tenant: self.tenants.take(Arc::clone(&caller.tenant), 1)?,
        })
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = Bounded<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        let beginning = BEGINNING.try_with(Beginning::clone).map_err(|_| SessionsError::Nobody)?;
        let held = self.hold(&beginning.caller).map_err(|full| {
            *beginning.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(full);
            SessionsError::TooMany(full)
        })?;
        let (id, transport) = self.sessions.create_session().await?;
        Ok((id, Bounded::new(transport, BOUNDS).holding(held)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        Ok(self.sessions.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.sessions.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        Ok(self.sessions.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl futures_util::Stream<Item = ServerSseMessage> + Send + 'static, SessionsError> {
        Ok(self.sessions.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        Ok(self.sessions.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl futures_util::Stream<Item = ServerSseMessage> + Send + 'static, SessionsError> {
        Ok(self.sessions.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl futures_util::Stream<Item = ServerSseMessage> + Send + 'static, SessionsError> {
        Ok(self.sessions.resume(id, last_event_id).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> SessionLimits {
        SessionLimits { all: 5, per_tenant: 3, per_caller: 2, idle: Duration::from_secs(60) }
    }

    async fn begin(sessions: &Sessions, tenant: &str, agent: &str) -> Result<(SessionId, impl Sized), Full> {
        let caller = Arc::new(CallContext::new(tenant, agent));
        let (begun, refused) = Beginning::new(caller).scope(sessions.create_session()).await;
        begun.map_err(|_| refused.unwrap())
    }

    #[tokio::test]
    async fn callers_tenants_and_all_have_bounds_and_what_is_gone_counts_no_more() {
        let sessions = Sessions::new(limits());
        let mut open = vec![
            begin(&sessions, "acme", "ada").await.unwrap(),
            begin(&sessions, "acme", "ada").await.unwrap(),
        ];
        assert_eq!(begin(&sessions, "acme", "ada").await.err(), Some(Full::Own));
        open.push(begin(&sessions, "acme", "bob").await.unwrap());
        assert_eq!(begin(&sessions, "acme", "bob").await.err(), Some(Full::Own), "the tenant has three");
        open.push(begin(&sessions, "rival", "ada").await.unwrap());
        open.push(begin(&sessions, "rival", "bob").await.unwrap());
        assert_eq!(begin(&sessions, "third", "eve").await.err(), Some(Full::All));
        assert_eq!((sessions.callers.taken(), sessions.tenants.taken()), (5, 5));
        for (id, transport) in open.drain(..) {
            sessions.close_session(&id).await.unwrap();
            drop(transport);
        }
        assert_eq!((sessions.callers.taken(), sessions.tenants.taken()), (0, 0));
        assert!(sessions.sessions.sessions.read().await.is_empty());
        assert!(matches!(sessions.create_session().await, Err(SessionsError::Nobody)), "whose is not known");
    }
}
