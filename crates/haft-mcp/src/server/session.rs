//! One connection: the requests of the protocol, each handed on.

#![allow(deprecated, reason = "2025-06-18 and 2025-11-25 have roots, logging and resources/subscribe")]

use super::{
    about,
    approval::Approvals,
    builder::McpServer,
    call,
    callers::LastCaller,
    changes::{self, Listener, Watched},
    client::{self, Client},
    lists,
    methods::Offered,
    page::page,
    resources::{self, LIST_TTL_MS},
    roots,
    round::Round,
    tasks::{self, Tasks},
};
use haft_core::CallContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskMethod, CancelTaskParams,
        CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, CustomRequest,
        CustomResult, DiscoverResult, ErrorCode, GetPromptRequestMethod, GetPromptRequestParams,
        GetPromptResponse, GetTaskMethod, GetTaskParams, GetTaskResult, InitializeRequestParams,
        InitializeResult, InputRequest, InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListRootsRequest, ListToolsResult, LoggingLevel,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams, UpdateTaskMethod, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The revisions that are spoken, oldest first.
pub(super) const REVISIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Whether calls may become tasks in that revision. Its predecessor had other ones, which it took back.
fn has_tasks(version: &ProtocolVersion) -> bool {
    *version >= ProtocolVersion::V_2026_07_28
}

/// The name of the question for folders.
const ROOTS: &str = "haft_roots";

/// How long a client may take to say which folders it works in, while its call waits.
const ROOTS_TIME: Duration = Duration::from_secs(10);

/// The folders of a client, with how often it had said that they changed.
#[derive(Default)]
struct OwnRoots(Option<(u64, Vec<String>)>);

/// Who calls; or what their client is asked first.
pub(super) enum Kept {
    Caller(Arc<CallContext>),
    Asked(Box<InputRequiredResult>),
}

/// One connection to a client. It is what rmcp serves.
pub struct Session {
    pub(super) server: McpServer,
    last_caller: LastCaller,
    level: Mutex<Option<LoggingLevel>>,
    watched: Watched,
    /// The folders of this session's client, where it was asked.
    own_roots: tokio::sync::Mutex<OwnRoots>,
    /// How often the client said that they changed.
    roots_changes: AtomicU64,
    ended: CancellationToken,
    _end: DropGuard,
}

impl Session {
    pub(super) fn new(server: McpServer) -> Self {
        let ended = CancellationToken::new();
        Session {
            server,
            last_caller: LastCaller::default(),
            level: Mutex::default(),
            watched: Watched::default(),
            own_roots: tokio::sync::Mutex::default(),
            roots_changes: AtomicU64::new(0),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    pub(super) fn caller(&self, request: &RequestContext<RoleServer>) -> Result<Arc<CallContext>, ErrorData> {
        self.last_caller.of(&self.server.0.callers, request)
    }

    /// Who approves what this request asks for: what the server was told, where answers from here count and the caller
    /// may give them.
    pub(super) fn approvals(&self, request: &RequestContext<RoleServer>) -> Approvals {
        let asked = self.server.0.approvals;
        let counts = || self.server.takes_answers() && self.server.0.callers.may_approve(request);
        if asked == Approvals::Elsewhere || counts() { asked } else { Approvals::Elsewhere }
    }

    /// Whether a person is asked through the client that made this request.
    fn asks_through_client(&self, request: &RequestContext<RoleServer>) -> bool {
        self.approvals(request) == Approvals::ThroughClient
            && request.client_capabilities().is_some_and(|can| client::has_forms(&can))
    }

    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who calls, kept to the folders of their client: or what the client is asked first. A client that says that it
    /// works in folders, and does not say in which, makes no calls.
    pub(super) async fn kept_to_roots(
        &self,
        client: &Client,
        caller: Arc<CallContext>,
    ) -> Result<Kept, ErrorData> {
        if self.server.0.ignores_roots || client.capabilities().roots.is_none() {
            return Ok(Kept::Caller(caller));
        }
        let folders = match client.is_stateless() {
            true => match self.told_roots(client).await {
                Some(folders) => folders,
                None => {
                    let question = InputRequest::ListRoots(ListRootsRequest::default());
                    let asked =
                        InputRequiredResult::from_input_requests([(ROOTS.to_owned(), question)].into());
                    return Ok(Kept::Asked(Box::new(asked)));
                }
            },
            false => self.asked_roots(client).await?,
        };
        // Whatever the call asks for next, the folders are known then.
        client.keep_roots(&folders);
        Ok(Kept::Caller(Arc::new(CallContext { roots: Some(folders), ..CallContext::clone(&caller) })))
    }

    /// The folders that a client has named in its calls, since nothing is asked of it otherwise. Those that the one
    /// client of a pipe has named are remembered until it says that they changed.
    async fn told_roots(&self, client: &Client) -> Option<Vec<String>> {
        let named = client.known_roots().or_else(|| client.answered_roots(ROOTS));
        if !self.server.0.callers.is_one() {
            return named;
        }
        let mut known = self.own_roots.lock().await;
        let changes = self.roots_changes.load(Ordering::Acquire);
        match named {
            Some(folders) => known.0 = Some((changes, folders)),
            None => known.0 = known.0.take().filter(|(seen, _)| *seen == changes),
        }
        known.0.as_ref().map(|(_, folders)| folders.clone())
    }

    /// The folders of a client that can be asked while its call waits. It is asked once, and again after it said that
    /// they changed.
    async fn asked_roots(&self, client: &Client) -> Result<Vec<String>, ErrorData> {
        let mut known = self.own_roots.lock().await;
        let changes = self.roots_changes.load(Ordering::Acquire);
        if let Some((seen, folders)) = &known.0
            && *seen == changes
        {
            return Ok(folders.clone());
        }
        let answer = tokio::time::timeout(ROOTS_TIME, client.list_roots()).await;
        let folders = answer.ok().and_then(Result::ok).and_then(roots::folders).ok_or_else(|| {
            let text = "the client says that it works in folders (roots), and did not say in which when it was asked, so \
                        its calls are not made";
            ErrorData::invalid_request(text, None)
        })?;
        let folders = roots::as_text(&folders);
        known.0 = Some((changes, folders.clone()));
        Ok(folders)
    }

    /// Tasks, in the revision that has them.
    fn tasks<M: ConstString>(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<&Arc<dyn Tasks>, ErrorData> {
        let is_theirs = context.protocol_version().is_some_and(|version| has_tasks(&version));
        self.server.0.tasks.as_ref().filter(|_| is_theirs).ok_or_else(ErrorData::method_not_found::<M>)
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        about::server(&self.server)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Ok(DiscoverResult::from_server_info(REVISIONS.to_vec(), about::server(&self.server))
            .with_ttl_ms(LIST_TTL_MS))
    }

    /// A client that begins with a handshake speaks a revision in which no call becomes a task.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut begun = self.negotiate_initialize(&request)?;
        if !has_tasks(&begun.protocol_version) {
            begun.capabilities.extensions = None;
        }
        Ok(begun)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let has_prompts = self.server.0.extension.has_prompts();
        let listener = Listener::new(&self.server);
        let (watched, ended) = (self.watched.clone(), self.ended.clone());
        tokio::spawn(changes::tell(listener, context.peer.clone(), watched, has_prompts, ended));
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.roots_changes.fetch_add(1, Ordering::AcqRel);
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let server = &self.server.0;
        let caller = self.caller(&context)?;
        let (definitions, next) = lists::tools(server, &caller, request).await?;
        let tools = definitions.iter().filter_map(|definition| server.shown.tool(definition)).collect();
        let mut list = ListToolsResult::with_all_items(tools)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        list.next_cursor = next;
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.0.shown.tool(&self.server.0.engine.definition(name)?)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        call::call(self, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let tasks = self.tasks::<GetTaskMethod>(&context)?;
        let caller = self.caller(&context)?;
        let task = tasks.get(&caller, &request.task_id, Duration::ZERO).await.map_err(tasks::refused)?;
        Ok(GetTaskResult::new(task.detailed(self.asks_through_client(&context))))
    }

    /// Answers to what a task asks. Those to anything else change nothing.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self.tasks::<UpdateTaskMethod>(&context)?;
        let caller = self.caller(&context)?;
        let task = tasks.get(&caller, &request.task_id, Duration::ZERO).await.map_err(tasks::refused)?;
        if !self.asks_through_client(&context) {
            return Ok(());
        }
        match task.answered(&request.input_responses) {
            None => Ok(()),
            Some((question, decision)) => {
                tasks.answer(&caller, question, decision).await.map_err(tasks::refused)
            }
        }
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self.tasks::<CancelTaskMethod>(&context)?;
        let caller = self.caller(&context)?;
        tasks.cancel(&caller, &request.task_id).await.map_err(tasks::refused)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let server = &self.server.0;
        let caller = self.caller(&context)?;
        let (resources, next) = lists::resources(server, &caller, request).await?;
        let mut list = ListResourcesResult::with_all_items(resources)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        list.next_cursor = next;
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let caller = self.caller(&context)?;
        let mut all = resources::templates();
        all.extend(self.server.0.extension.resource_templates(&caller));
        all.sort_by(|one, other| one.uri_template.cmp(&other.uri_template));
        let (templates, next) = page(all, |template| &template.uri_template, request, self.server.0.page)?;
        let mut list = ListResourceTemplatesResult::with_all_items(templates)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        list.next_cursor = next;
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let found = match resources::read(&self.server, &caller, &request.uri).await? {
            Some(found) => Some(found),
            None => self.server.0.extension.read(&request.uri, &caller).await?,
        };
        found.map(Into::into).ok_or_else(|| resources::not_there(&request.uri))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.watched.add(request.uri) {
            true => Ok(()),
            false => {
                Err(ErrorData::invalid_params("too many resources are watched on this connection", None))
            }
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(changes::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        changes::listen(Listener::new(&self.server), &context).await;
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Gone in 2026-07-28, where each request says it.
        if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let extension = &self.server.0.extension;
        if !extension.has_prompts() {
            return Err(ErrorData::method_not_found::<ListPromptsRequestMethod>());
        }
        let mut all = extension.prompts(&*self.caller(&context)?);
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let (prompts, next) = page(all, |prompt| &prompt.name, request, self.server.0.page)?;
        let mut list = ListPromptsResult::with_all_items(prompts)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private);
        list.next_cursor = next;
        Ok(list)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let extension = &self.server.0.extension;
        if !extension.has_prompts() {
            return Err(ErrorData::method_not_found::<GetPromptRequestMethod>());
        }
        let caller = self.caller(&context)?;
        let RequestContext { peer, meta, .. } = context;
        let client = Client::new(self.server.clone(), peer, meta, self.log_level(), Round::default());
        extension.prompt(request, &caller, client).await
    }

    /// What rmcp does not recognise: methods that are unknown, and known ones whose parameters are not as they should
    /// be.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = haft_core::text::one_line(&request.method, 80);
        let version = context.protocol_version();
        let extension = &self.server.0.extension;
        let offered = Offered {
            is_stateless: version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28),
            has_tasks: self.server.0.tasks.is_some(),
            has_prompts: extension.has_prompts(),
            has_completions: extension.has_completions(),
        };
        match offered.has(&request.method) {
            true => Err(ErrorData::invalid_params(
                format!("the parameters of {method} are not as MCP has them"),
                None,
            )),
            false => {
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None))
            }
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let extension = &self.server.0.extension;
        if !extension.has_completions() {
            return Err(ErrorData::method_not_found::<CompleteRequestMethod>());
        }
        extension.complete(request, &*self.caller(&context)?).await
    }
}
