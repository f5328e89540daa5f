//! The one who called, as tools and approvals reach it.

#![allow(
    deprecated,
    reason = "2025-06-18 and 2025-11-25 have sampling, roots and logging; 2026-07-28 keeps them for a while"
)]

use super::{
    builder::McpServer,
    roots,
    round::{Binding, Round, State},
};
use haft_core::{ErrorCode, ToolError};
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{
        ClientCapabilities, CreateMessageResult, ElicitRequestParams, ElicitResult, InputRequest,
        InputRequests, InputRequiredResult, InputResponses, ListRootsResult, LoggingLevel,
        LoggingMessageNotificationParam, ProtocolVersion, RequestMetaObject,
    },
    service::ServiceError,
};
use serde::Serialize;
use serde_json::Value;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

tokio::task_local! {
    static CURRENT: Client;
}

/// The MCP client that made the call which is running: what it can do, and how to ask it something.
///
/// A tool that is linked in finds it with [`Client::current`]. Whatever a tool does with it, the call itself has passed
/// every check before.
///
/// ```
/// use haft_core::ToolError;
/// use haft_mcp::{rmcp::model::{ElicitRequest, InputRequest}, server::Client};
/// # async fn tool() -> Result<String, ToolError> {
/// let client = Client::current().ok_or_else(|| ToolError::failed("this is for MCP clients only"))?;
/// let question = Client::form(
///     "What is your name?",
///     serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
/// )?;
/// let answers = client.ask([("name".to_owned(), question)].into()).await?;
/// Ok(format!("Hello, {}!", answers["name"]["content"]["name"]))
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    server: McpServer,
    peer: Peer<RoleServer>,
    meta: RequestMetaObject,
    /// Whether each request stands for itself, so that nothing can be asked while it runs.
    is_stateless: bool,
    log_level: Option<LoggingLevel>,
    round: Round,
    /// Whether the state of the round before may be used in this one: found out once, for the whole call.
    is_first_use: OnceLock<bool>,
    /// An answer and an earlier agreement are good for one question each.
    answer_used: AtomicBool,
    agreement_used: AtomicBool,
    /// What the call still needs to know, and what became of it.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    requests: InputRequests,
    state: State,
    refusal: Option<ErrorData>,
}

impl Client {
    pub(super) fn new(
        server: McpServer,
        peer: Peer<RoleServer>,
        meta: RequestMetaObject,
        session_level: Option<LoggingLevel>,
        round: Round,
    ) -> Self {
        let is_stateless = is_stateless(&meta, &peer);
        let log_level = if is_stateless { meta.log_level() } else { session_level };
        Client(Arc::new(Inner {
            server,
            peer,
            meta,
            is_stateless,
            log_level,
            round,
            is_first_use: OnceLock::new(),
            answer_used: AtomicBool::new(false),
            agreement_used: AtomicBool::new(false),
            open: Mutex::default(),
        }))
    }

    /// The client behind the call that runs here; `None` where the call did not come in through MCP, and on other
    /// threads than that of the call.
    pub fn current() -> Option<Client> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs a call as one of this client.
    pub(super) fn scope<F: Future>(&self, call: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.clone(), call)
    }

    /// A question in a form, with the schema of its answer.
    pub fn form(message: impl Into<String>, schema: Value) -> Result<InputRequest, ToolError> {
        let schema = serde_json::from_value(schema).map_err(|error| {
            ToolError::failed("a question has a form that MCP does not know").with_diagnostics(error)
        })?;
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message.into(),
            requested_schema: schema,
        };
        Ok(InputRequest::Elicitation(rmcp::model::ElicitRequest::new(params)))
    }

    /// What it said that it can do.
    pub fn capabilities(&self) -> ClientCapabilities {
        if self.0.is_stateless {
            return self.0.meta.client_capabilities().unwrap_or_default();
        }
        self.0.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default()
    }

    /// Whether it can put a form before a person.
    pub fn has_forms(&self) -> bool {
        match self.0.is_stateless {
            true => has_forms(&self.capabilities()),
            // Not copied: this is asked with every call.
            false => self.0.peer.peer_info().is_some_and(|info| has_forms(&info.capabilities)),
        }
    }

    /// Whether each request stands for itself (2026-07-28), so that a question ends the call and it comes again.
    pub fn is_stateless(&self) -> bool {
        self.0.is_stateless
    }

    /// Goes on only if the client can do that; else the request is refused, as the protocol has it.
    pub fn require(&self, needed: ClientCapabilities) -> Result<(), ToolError> {
        let has = self.capabilities();
        let lacks = (needed.sampling.is_some() && has.sampling.is_none())
            || (needed.elicitation.is_some() && has.elicitation.is_none())
            || (needed.roots.is_some() && has.roots.is_none());
        if !lacks {
            return Ok(());
        }
        self.open().refusal = Some(ErrorData::missing_required_client_capability(needed));
        Err(ToolError::new(ErrorCode::ExecutionFailed, "the client lacks what this tool needs"))
    }

    /// Asks the client, and through it a person or a model, and waits for the answers, by the names of the questions.
    ///
    /// Where each request stands for itself this fails once: the call ends there, and comes again with the answers. So
    /// nothing may have an effect before it.
    pub async fn ask(&self, requests: InputRequests) -> Result<InputResponses, ToolError> {
        self.ask_keeping(requests, None).await
    }

    /// Asks as above, and [`kept`](Self::kept) gives `keep` when the call comes again. Nobody can change it in between,
    /// but the client can read it.
    pub async fn ask_keeping(
        &self,
        requests: InputRequests,
        keep: Option<Value>,
    ) -> Result<InputResponses, ToolError> {
        requests.values().try_for_each(|request| self.require(needs(request)))?;
        if !self.0.is_stateless {
            let mut answers = InputResponses::new();
            for (name, request) in requests {
                let answer = self.send(request, None).await;
                answers.insert(name, answer.map_err(|error| unanswered(&error))?);
            }
            return Ok(answers);
        }
        let given = |name: &String, request| {
            self.0.round.answers.get(name).filter(|answer| answers_to(answer, request))
        };
        let answers: Option<InputResponses> = requests
            .iter()
            .map(|(name, request)| Some((name.clone(), given(name, request)?.clone())))
            .collect();
        answers.ok_or_else(|| {
            let mut open = self.open();
            open.requests.extend(requests);
            open.state.tool = keep;
            ToolError::new(
                ErrorCode::ConfirmationRequired,
                "The client is asked for input, and sends the call again",
            )
        })
    }

    /// What the same call kept when it asked in the round before.
    pub fn kept(&self) -> Option<&Value> {
        self.0.round.state.as_ref()?.tool.as_ref()
    }

    /// Tells the client something for its log, if it wants to hear that much.
    pub async fn log(&self, level: LoggingLevel, data: Value) {
        let wanted = match self.0.log_level {
            Some(least) => severity(level) >= severity(least),
            // Where each request stands for itself, nobody is told who did not ask.
            None => !self.0.is_stateless && severity(level) >= severity(LoggingLevel::Info),
        };
        if wanted {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger("haft");
            let _ = self.0.peer.notify_logging_message(message).await;
        }
    }

    pub(super) fn wants_log(&self) -> bool {
        self.0.log_level.is_some()
    }

    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.0.peer
    }

    pub(super) fn server(&self) -> &McpServer {
        &self.0.server
    }

    /// Whether a person agreed to this very call in a round before. Asking is using it up.
    pub(super) fn take_agreement(&self, fingerprint: &str) -> bool {
        let state = self.0.round.state.as_ref();
        state.is_some_and(|state| state.agreed_to(fingerprint) && self.is_first_use(state))
            && !self.0.agreement_used.swap(true, Ordering::AcqRel)
    }

    /// The answer that this round brought to the question about this very call. Taking it is using it up.
    pub(super) fn take_answer(&self, question: &str, fingerprint: &str) -> Option<Value> {
        let state = self.0.round.state.as_ref()?;
        let answer = self.0.round.answers.get(question)?;
        let is_this = state.asked_about(fingerprint) && self.is_first_use(state);
        (is_this && !self.0.answer_used.swap(true, Ordering::AcqRel)).then(|| answer.clone())
    }

    fn is_first_use(&self, state: &State) -> bool {
        *self.0.is_first_use.get_or_init(|| self.0.server.0.seals.use_once(state))
    }

    /// The folders that the client said in a round before.
    pub(super) fn known_roots(&self) -> Option<Vec<String>> {
        self.0.round.state.as_ref()?.roots.clone()
    }

    /// The folders that this round brought.
    pub(super) fn answered_roots(&self, question: &str) -> Option<Vec<String>> {
        let answer = self.0.round.answers.get(question)?;
        roots::folders(answer.clone()).map(|folders| roots::as_text(&folders))
    }

    /// Takes the folders along into the next round, should there be one.
    pub(super) fn keep_roots(&self, folders: &[String]) {
        self.open().state.roots = Some(folders.to_vec());
    }

    /// Asks for the client's folders, while the call waits.
    #[expect(deprecated, reason = "2025-06-18 and 2025-11-25 have roots")]
    pub(super) async fn list_roots(&self) -> Result<Value, ServiceError> {
        to_value(self.0.peer.list_roots().await?)
    }

    /// Sends a question while the call runs.
    pub(super) async fn send(
        &self,
        request: InputRequest,
        patience: Option<Duration>,
    ) -> Result<Value, ServiceError> {
        let peer = &self.0.peer;
        match request {
            InputRequest::Elicitation(request) => {
                to_value(peer.create_elicitation_with_timeout(request.params, patience).await?)
            }
            InputRequest::CreateMessage(request) => to_value(peer.create_message(request.params).await?),
            InputRequest::ListRoots(_) => to_value(peer.list_roots().await?),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    /// Notes a question about a call; it is put when the call has ended.
    pub(super) fn put(&self, name: &str, request: InputRequest, fingerprint: &str) {
        let mut open = self.open();
        open.requests.insert(name.to_owned(), request);
        open.state.asked = Some(fingerprint.to_owned());
    }

    /// Notes that a person agreed to the call. Should it ask for something else now, that agreement holds for the next
    /// round.
    pub(super) fn approved(&self, fingerprint: &str) {
        self.open().state.approved = Some(fingerprint.to_owned());
    }

    /// What the protocol forbids or needs, found out while the call ran.
    pub(super) fn take_open(
        &self,
        binding: impl FnOnce() -> Binding,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let Open { requests, state, refusal } = std::mem::take(&mut *self.open());
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        if requests.is_empty() {
            return Ok(None);
        }
        let sealed = match state.is_empty() {
            true => None,
            false => {
                let sealed = self.0.server.0.seals.seal(state, &binding());
                Some(sealed.ok_or_else(|| {
                    ErrorData::internal_error("the state of the call cannot be sealed", None)
                })?)
            }
        };
        Ok(Some(InputRequiredResult::new(Some(requests), sealed)))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a client with these abilities can put a form before a person.
pub(super) fn has_forms(can: &ClientCapabilities) -> bool {
    can.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// Whether a request says of itself which revision it is of, and that is one without a handshake; else the handshake
/// did.
fn is_stateless(meta: &RequestMetaObject, peer: &Peer<RoleServer>) -> bool {
    let since = ProtocolVersion::V_2026_07_28;
    match meta.get(PROTOCOL_VERSION).and_then(Value::as_str) {
        // Revisions are dates, so the order of letters is that of time.
        Some(version) => version >= since.as_str(),
        None => peer.peer_info().is_some_and(|info| info.protocol_version >= since),
    }
}

/// What a client has to be able to do to answer.
fn needs(request: &InputRequest) -> ClientCapabilities {
    let mut needed = ClientCapabilities::default();
    match request {
        InputRequest::Elicitation(_) => needed.elicitation = Some(Default::default()),
        InputRequest::CreateMessage(_) => needed.sampling = Some(Default::default()),
        InputRequest::ListRoots(_) => needed.roots = Some(Default::default()),
        _ => {}
    }
    needed
}

/// Whether that is an answer to this at all. One that is not is asked for again.
fn answers_to(answer: &Value, request: &InputRequest) -> bool {
    let answer = answer.clone();
    match request {
        InputRequest::Elicitation(_) => serde_json::from_value::<ElicitResult>(answer).is_ok(),
        InputRequest::CreateMessage(_) => serde_json::from_value::<CreateMessageResult>(answer).is_ok(),
        InputRequest::ListRoots(_) => serde_json::from_value::<ListRootsResult>(answer).is_ok(),
        _ => false,
    }
}

fn to_value(answer: impl Serialize) -> Result<Value, ServiceError> {
    serde_json::to_value(answer).map_err(|_| ServiceError::UnexpectedResponse)
}

fn unanswered(error: &ServiceError) -> ToolError {
    ToolError::failed("the client did not answer").with_diagnostics(error)
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
