//! One server that runs for some calls: it is begun when it is first needed, and again after it has ended.

#[cfg(feature = "http")]
use super::web::connect as over_http;
use super::{
    backoff::{backoff_delay, failures_after},
    connection::{Begin, Connection},
    pipes::Pipes,
    upstreams::Shared,
};
use haft_core::{ErrorCode, McpSource, ToolError, port::GuestSpec, text};
use serde_json::json;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::AbortHandle};

/// For whom a server runs, and how: calls for which all of that is the same share one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) tenant: Arc<str>,
    pub(super) server: McpSource,
    /// The program as those calls may run it; `None` for a server over HTTP.
    pub(super) program: Option<GuestSpec>,
}

/// What an attempt to begin came to.
type Begun = Result<Arc<Connection>, ToolError>;

enum State {
    /// Not there. `failures` in a row, the last of them `why`.
    Down {
        failures: u32,
        until: Instant,
        why: String,
    },
    /// Somebody begins it; everybody waits for that.
    Beginning {
        begun: watch::Receiver<Option<Begun>>,
        task: AbortHandle,
        failures: u32,
    },
    Up {
        connection: Arc<Connection>,
        follower: AbortHandle,
        failures: u32,
    },
    Over,
}

pub(super) struct Instance {
    pub(super) key: Key,
    shared: Arc<Shared>,
    state: Mutex<State>,
    used: Mutex<Instant>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.take();
    }
}

impl Instance {
    pub(super) fn new(key: Key, shared: Arc<Shared>) -> Self {
        let state = State::Down { failures: 0, until: Instant::now(), why: String::new() };
        Instance { key, shared, state: Mutex::new(state), used: Mutex::new(Instant::now()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it was last asked for.
    pub(super) fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a server runs, or is begun.
    pub(super) fn is_running(&self) -> bool {
        match &*self.state() {
            State::Beginning { .. } => true,
            State::Up { connection, .. } => !connection.has_ended(),
            State::Down { .. } | State::Over => false,
        }
    }

    /// The conversation, begun where there is none. A server that failed is left alone for a while.
    pub(super) async fn connection(self: &Arc<Self>) -> Begun {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut begun = {
            let mut state = self.state();
            if let State::Up { connection, follower, failures } = &*state
                && connection.has_ended()
            {
                follower.abort();
                let failures = failures_after(*failures, connection.since.elapsed());
                let why = "the connection ended".to_owned();
                *state = State::Down { failures, until: Instant::now() + backoff_delay(failures), why };
            }
            match &*state {
                State::Up { connection, .. } => return Ok(Arc::clone(connection)),
                State::Over => return Err(self.unavailable("haft is ending", None)),
                State::Beginning { begun, .. } => begun.clone(),
                State::Down { until, why, failures } => {
                    let wait = until.saturating_duration_since(Instant::now());
                    if !wait.is_zero() {
                        return Err(self.unavailable(why, Some(wait)));
                    }
                    let failures = *failures;
                    let (tell, begun) = watch::channel(None);
                    // A task of its own: a server that begins slowly is there for the next call, though the first one
                    // gave up.
                    let task = tokio::spawn(begin(
                        Arc::downgrade(self),
                        self.key.clone(),
                        Arc::clone(&self.shared),
                        tell,
                    ));
                    *state = State::Beginning { begun: begun.clone(), task: task.abort_handle(), failures };
                    begun
                }
            }
        };
        match begun.wait_for(Option::is_some).await.map(|begun| begun.clone()) {
            Ok(Some(begun)) => begun,
            // The task that began it has ended without a word: haft is ending.
            Ok(None) | Err(_) => Err(self.unavailable("it was not begun", None)),
        }
    }

    /// Takes note that a conversation has ended, where it is still the one that counts.
    pub(super) fn died(&self, ended: &Arc<Connection>, why: &str) {
        let mut state = self.state();
        if let State::Up { connection, follower, failures } = &*state
            && Arc::ptr_eq(connection, ended)
        {
            follower.abort();
            let failures = failures_after(*failures, connection.since.elapsed());
            *state = State::Down {
                failures,
                until: Instant::now() + backoff_delay(failures),
                why: why.to_owned(),
            };
        }
    }

    fn done(&self, begun: &Begun) {
        let mut state = self.state();
        let State::Beginning { failures, .. } = &*state else { return };
        let failures = *failures;
        *state = match begun {
            Ok(connection) => {
                let follower = tokio::spawn(follow(
                    Arc::clone(&self.shared),
                    self.key.server.clone(),
                    Arc::clone(connection),
                ));
                State::Up { connection: Arc::clone(connection), follower: follower.abort_handle(), failures }
            }
            Err(error) => {
                let failures = failures.saturating_add(1);
                let why = error.message.clone();
                State::Down { failures, until: Instant::now() + backoff_delay(failures), why }
            }
        };
    }

    fn unavailable(&self, why: &str, wait: Option<Duration>) -> ToolError {
        unavailable(&self.key.server.server, why, wait)
    }

    /// Lets go of what runs, and gives it.
    fn take(&self) -> Option<Arc<Connection>> {
        match std::mem::replace(&mut *self.state(), State::Over) {
            State::Up { connection, follower, .. } => {
                follower.abort();
                Some(connection)
            }
            State::Beginning { task, .. } => {
                task.abort();
                None
            }
            State::Down { .. } | State::Over => None,
        }
    }

    /// Ends it. Nothing is begun here any more.
    pub(super) async fn end(&self) {
        if let Some(connection) = self.take() {
            connection.end().await;
        }
    }
}

/// The server cannot be used now.
fn unavailable(server: &str, why: &str, wait: Option<Duration>) -> ToolError {
    let server = text::one_line(server, 80);
    let why = text::one_line(why, 1000);
    match wait {
        Some(wait) => {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            let seconds = millis.div_ceil(1000);
            let text =
                format!("The MCP server `{server}` is not available: {why}. haft tries again in {seconds} s");
            ToolError::new(ErrorCode::UpstreamUnavailable, text)
                .with_data(json!({"server": server, "retryAfterMs": millis}))
        }
        None => {
            let text = format!("The MCP server `{server}` is not available: {why}");
            ToolError::new(ErrorCode::UpstreamUnavailable, text).with_data(json!({"server": server}))
        }
    }
}

async fn begin(
    instance: std::sync::Weak<Instance>,
    key: Key,
    shared: Arc<Shared>,
    tell: watch::Sender<Option<Begun>>,
) {
    let begun = connect(&shared, &key.server, key.program).await.map(Arc::new);
    if let Ok(connection) = &begun {
        // Before anybody calls: what is other about the tools is known, and kept.
        shared.notice(&key.server, &connection.last_listing());
    }
    match instance.upgrade() {
        Some(instance) => instance.done(&begun),
        None => return,
    }
    tell.send_replace(Some(begun));
}

/// Says what is other whenever the list changes.
async fn follow(shared: Arc<Shared>, server: McpSource, connection: Arc<Connection>) {
    let mut listings = connection.listings();
    // Only the list: a follower does not keep the conversation.
    drop(connection);
    // Once at first: it may have changed since the conversation began.
    loop {
        let listing = Arc::clone(&listings.borrow_and_update().1);
        shared.notice(&server, &listing);
        if listings.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(not(feature = "http"))]
async fn over_http(_shared: &Shared, server: &McpSource) -> Result<Result<Connection, String>, ToolError> {
    let server = text::one_line(&server.server, 80);
    let text =
        format!("The MCP server `{server}` is one over HTTP, which this program was put together without");
    Err(ToolError::new(ErrorCode::ToolDisabled, text))
}

/// Begins a conversation with a server.
pub(super) async fn connect(
    shared: &Shared,
    server: &McpSource,
    program: Option<GuestSpec>,
) -> Result<Connection, ToolError> {
    let limit = shared.settings.connect_timeout;
    let connecting = async {
        let Some(spec) = program else { return over_http(shared, server).await };
        let start = |spec| async { Ok::<_, ToolError>(Pipes::of(shared.reach.commands.start(spec).await?)) };
        let pipes = start(spec.clone()).await?;
        let first = Connection::over_pipes(server, pipes, Begin::Any).await;
        let Err(why) = first else { return Ok(first) };
        // Some servers of earlier revisions end when they are asked before `initialize`. Once more, as they expect it.
        tracing::debug!(server = server.server, why, "an MCP server is begun once more");
        let second = Connection::over_pipes(server, start(spec).await?, Begin::Initialize).await;
        Ok(second.map_err(|second| if second == why { why } else { second }))
    };
    match tokio::time::timeout(limit, connecting).await {
        Ok(Ok(Ok(connection))) => {
            let revision = connection.revision();
            tracing::info!(server = server.server, revision, "an MCP server is connected");
            Ok(connection)
        }
        Ok(Ok(Err(why))) => Err(unavailable(&server.server, &why, None)),
        // The jail or the gate says why, in its own row of the table.
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let why = format!("it did not begin to speak within {} s", limit.as_secs());
            Err(unavailable(&server.server, &why, None))
        }
    }
}
