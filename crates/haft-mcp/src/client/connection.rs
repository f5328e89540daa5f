//! One conversation with one server.

#[cfg(feature = "http")]
use super::web::not_sent;
use super::{
    handler::{Handler, Talk, question},
    listing::Listing,
    pipes::{Pipes, Program},
};
use crate::bounded::{Beyond, Bounded, Bounds};
use haft_core::{McpSource, text};
use haft_sdk::ToolCtx;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
        ElicitResult, ElicitationAction, InputRequest, InputRequiredResult, ListToolsRequest,
        PaginatedRequestParams, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
        SubscriptionFilter, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
        RunningService, ServiceError,
    },
    transport::{IntoTransport, async_rw::AsyncRwTransport},
};
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::AbortHandle};

/// The longest message that is taken from a server.
pub(super) const LONGEST_MESSAGE: usize = 16 << 20;
/// A server that has more is not listed whole, and so not used.
const MOST_TOOLS: usize = 2000;
const MOST_PAGES: usize = 200;
/// What a server may ask of haft at once. It has no business with more: whatever it asks is answered at once.
const BOUNDS: Bounds = Bounds { open: 64, untaken: 64, beyond: Beyond::TheEnd };
/// How often a call is answered with a question before that is a failure.
const MOST_ROUNDS: usize = 4;

/// What went wrong with a call.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection ended while the call was on its way.
    Died,
    /// The server was not reached, so the call was not on its way: why.
    NotSent(String),
    /// The server refused it: what it said.
    Refused(String),
    /// It needs something that haft does not give.
    Needs(&'static str),
    /// The answer cannot be understood.
    Nonsense,
}

/// A server that is spoken with.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: tokio::sync::Mutex<Option<RunningService<RoleClient, Handler>>>,
    talk: Arc<Talk>,
    program: RwLock<Option<Arc<Program>>>,
    /// What the server has, with how often it had said that this changed.
    listing: watch::Receiver<(u64, Arc<Listing>)>,
    lister: AbortHandle,
    /// Why haft ended it, where it did.
    ended_by_us: Arc<OnceLock<&'static str>>,
    pub(super) since: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.lister.abort();
    }
}

impl Connection {
    /// Begins a conversation with a program.
    pub(super) async fn over_pipes(server: &McpSource, pipes: Pipes, begin: Begin) -> Result<Self, String> {
        let Pipes { read, write, program } = pipes;
        let transport =
            AsyncRwTransport::<RoleClient, _, _>::new(read, write).with_max_line_length(LONGEST_MESSAGE);
        match Self::begin(server, transport, begin).await {
            Ok(connection) => {
                *connection.program.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(program));
                Ok(connection)
            }
            Err(why) => {
                let words = program.last_words();
                program.end().await;
                Err(words.into_iter().fold(why, |why, words| format!("{why}; its last words were: {words}")))
            }
        }
    }

    /// Begins a conversation over any transport: which revision, and what there is.
    pub(super) async fn begin<T, E, A>(server: &McpSource, transport: T, begin: Begin) -> Result<Self, String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let talk = Arc::new(Talk::new(&server.server));
        let lifecycle = match begin {
            Begin::Any => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Begin::Initialize => ClientLifecycleMode::Initialize,
        };
        let transport = Bounded::new(transport.into_transport(), BOUNDS);
        let ended_by_us = transport.why();
        let service = Handler(Arc::clone(&talk)).serve_with_lifecycle(transport, lifecycle).await;
        let service = service.map_err(|error| match ended_by_us.get() {
            Some(why) => (*why).to_owned(),
            None => not_begun(&error),
        })?;
        let peer = service.peer().clone();
        // Before the list is asked for: a server may say that it changed while it is on its way.
        let seen = *talk.changes.borrow();
        let first = listed(server, &peer).await?;
        let (tell, listing) = watch::channel((seen, Arc::new(first)));
        let lister = tokio::spawn(keep_current(server.clone(), peer.clone(), Arc::clone(&talk), tell));
        Ok(Connection {
            peer,
            service: tokio::sync::Mutex::new(Some(service)),
            talk,
            program: RwLock::new(None),
            listing,
            lister: lister.abort_handle(),
            ended_by_us,
            since: Instant::now(),
        })
    }

    /// Whether nobody is there any more.
    pub(super) fn has_ended(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// The program, where it is one.
    pub(super) fn program(&self) -> Option<Arc<Program>> {
        self.program.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The revision that is spoken.
    pub(super) fn revision(&self) -> Option<String> {
        self.peer.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// What the server has. Once it said that this changed, the new list is waited for.
    pub(super) async fn listing(&self) -> Arc<Listing> {
        let wanted = *self.talk.changes.borrow();
        let mut listing = self.listing.clone();
        let current = listing.wait_for(|(seen, _)| *seen >= wanted).await;
        match current {
            Ok(current) => Arc::clone(&current.1),
            // The task that lists has ended with the connection; the call will find that out.
            Err(_) => Arc::clone(&self.listing.borrow().1),
        }
    }

    /// What the server had when it was last asked.
    pub(super) fn last_listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.borrow().1)
    }

    /// Changes of what the server has.
    pub(super) fn listings(&self) -> watch::Receiver<(u64, Arc<Listing>)> {
        self.listing.clone()
    }

    /// Calls a tool, and waits for its answer. Dropping this tells the server that nobody waits.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        cx: &ToolCtx,
    ) -> Result<CallToolResult, Trouble> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for round in 0..MOST_ROUNDS {
            let trouble = |error| match trouble(error) {
                // The round before it was: the server has the call, and asked something about it.
                Trouble::NotSent(_) if round > 0 => Trouble::Died,
                trouble => trouble,
            };
            let mut meta = RequestMetaObject::new();
            // For a server that keeps apart a second try and a second wish.
            meta.insert("haft/idempotencyKey".to_owned(), cx.effect_id().to_string().into());
            for (name, value) in cx.passed_on().members() {
                meta.insert(format!("haft/{name}"), value);
            }
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let options = PeerRequestOptions::no_options().with_meta(meta);
            let handle = self.peer.send_request_with_option(request, options).await;
            let handle = handle.map_err(trouble)?;
            let mut on_its_way = OnItsWay {
                talk: &self.talk,
                peer: &self.peer,
                token: handle.progress_token.clone(),
                id: Some(handle.id.clone()),
            };
            self.talk.begin(handle.progress_token.clone(), cx.clone());
            let answer = handle.await_response().await;
            on_its_way.id = None;
            match answer.map_err(trouble)? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(asked) => {
                    params.input_responses = Some(self.decline(&asked)?);
                    params.request_state = asked.request_state;
                }
                ServerResult::CreateTaskResult(_) => {
                    return Err(Trouble::Needs("it made a task of the call, which was not asked for"));
                }
                _ => return Err(Trouble::Nonsense),
            }
        }
        Err(Trouble::Needs("it kept asking for input, which nobody here gives"))
    }

    /// Says no to what a server wants to know before it goes on.
    fn decline(
        &self,
        asked: &InputRequiredResult,
    ) -> Result<std::collections::BTreeMap<String, Value>, Trouble> {
        let asked = asked.input_requests.as_ref().into_iter().flatten();
        asked
            .map(|(key, request)| match request {
                InputRequest::Elicitation(request) => {
                    self.talk.declined(&question(&request.params));
                    let no = serde_json::to_value(ElicitResult::new(ElicitationAction::Decline));
                    Ok((key.clone(), no.unwrap_or_else(|_| json!({"action": "decline"}))))
                }
                InputRequest::CreateMessage(_) => {
                    Err(Trouble::Needs("it asked for a model, which haft does not lend"))
                }
                InputRequest::ListRoots(_) => Ok((key.clone(), json!({"roots": []}))),
                _ => Err(Trouble::Needs("it asked for something that is not known here")),
            })
            .collect()
    }

    /// Why it is not there any more.
    pub(super) async fn why(&self) -> String {
        if let Some(why) = self.ended_by_us.get() {
            return (*why).to_owned();
        }
        match self.program() {
            Some(program) => program.why().await,
            None => "the connection ended".to_owned(),
        }
    }

    /// Ends the conversation, and the program with it.
    pub(super) async fn end(&self) {
        if let Some(mut service) = self.service.lock().await.take() {
            let _ = service.close_with_timeout(Duration::from_secs(2)).await;
        }
        let program = self.program.write().unwrap_or_else(PoisonError::into_inner).take();
        // Where a call still looks at it, that one lets it go.
        if let Some(Ok(program)) = program.map(Arc::try_unwrap) {
            program.end().await;
        }
    }
}

/// How a conversation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// As of 2026-07-28, or else as before.
    Any,
    /// As before 2026-07-28: for programs that end when they are asked something before `initialize`.
    Initialize,
}

/// A request that is on its way: dropping it tells the server.
struct OnItsWay<'a> {
    talk: &'a Talk,
    peer: &'a Peer<RoleClient>,
    token: ProgressToken,
    id: Option<RequestId>,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        self.talk.forget(&self.token);
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("nobody waits for it any more".to_owned());
            let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
        });
    }
}

/// What went wrong with a request, by its own error.
fn trouble(error: ServiceError) -> Trouble {
    match error {
        ServiceError::McpError(error) => Trouble::Refused(text::one_line(&error.message, 2000)),
        ServiceError::TransportSend(error) => not_sent(&*error.error).map_or(Trouble::Died, Trouble::NotSent),
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Trouble::Died,
        _ => Trouble::Nonsense,
    }
}

/// What is written to a pipe may always have been read.
#[cfg(not(feature = "http"))]
fn not_sent(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}

fn not_begun(error: &ClientInitializeError) -> String {
    text::one_line(&format!("it did not begin to speak: {error}"), 600)
}

/// Everything that the server lists. Never from a cache: what is accepted is compared with this.
async fn listed(server: &McpSource, peer: &Peer<RoleClient>) -> Result<Listing, String> {
    if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
        return Ok(Listing::default());
    }
    let mut tools: Vec<Tool> = Vec::new();
    let mut bytes = 0;
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await;
        let page = match answer {
            Ok(ServerResult::ListToolsResult(page)) => page,
            Ok(_) => return Err("its list of tools cannot be understood".to_owned()),
            Err(error) => return Err(text::one_line(&format!("it did not list its tools: {error}"), 600)),
        };
        bytes += serde_json::to_vec(&page.tools).map_or(LONGEST_MESSAGE, |text| text.len());
        if bytes > LONGEST_MESSAGE {
            return Err(format!("its list of tools has more than {LONGEST_MESSAGE} bytes"));
        }
        tools.extend(page.tools);
        if tools.len() > MOST_TOOLS {
            return Err(format!("it has more than {MOST_TOOLS} tools"));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(Listing::of(server, &tools));
        }
    }
    Err(format!("its list of tools has more than {MOST_PAGES} pages"))
}

/// Lists again whenever the server says that something changed.
async fn keep_current(
    server: McpSource,
    peer: Peer<RoleClient>,
    talk: Arc<Talk>,
    tell: watch::Sender<(u64, Arc<Listing>)>,
) {
    let mut changes = talk.changes.subscribe();
    let hearing = hear(peer.clone(), Arc::clone(&talk));
    let listing = async {
        loop {
            let seen = *changes.borrow_and_update();
            if seen <= tell.borrow().0 {
                match changes.changed().await {
                    Ok(()) => continue,
                    Err(_) => return,
                }
            }
            match listed(&server, &peer).await {
                Ok(now) => drop(tell.send_replace((seen, Arc::new(now)))),
                // What it has now is not known, so it has nothing.
                Err(why) => {
                    tracing::warn!(server = server.server, why, "a changed list of tools was not given");
                    tell.send_replace((seen, Arc::default()));
                }
            }
        }
    };
    tokio::join!(hearing, listing);
}

/// Since 2026-07-28 a server tells of changes only to those who asked.
async fn hear(peer: Peer<RoleClient>, talk: Arc<Talk>) {
    let asks = peer.peer_info().is_some_and(|info| {
        let tells = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        !info.protocol_version.has_initialize() && tells == Some(true)
    });
    if !asks {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let Ok(mut subscription) = peer.listen(filter).await else { return };
    // One kind was asked for, so whatever comes is that.
    while let Ok(Some(_)) = subscription.next().await {
        talk.changes.send_modify(|count| *count += 1);
    }
}
