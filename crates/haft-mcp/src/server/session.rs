//! One connection: the requests of the protocol, each handed on.

#![allow(deprecated, reason = "2025-06-18 and 2025-11-25 have roots, logging and resources/subscribe")]

use super::{
    approval::Approvals,
    builder::McpServer,
    call,
    callers::LastCaller,
    changes::{self, Listener, Watched},
    client::Client,
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
        GetPromptResponse, GetTaskMethod, GetTaskParams, GetTaskResult, Implementation, InputRequest,
        InputRequiredResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListRootsRequest, ListToolsResult, LoggingLevel, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskMethod, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The revisions that are spoken, oldest first.
const REVISIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// What a model is told about haft as a whole.
const INSTRUCTIONS: &str = "These tools are run by haft. Every call is checked against its schema and a policy, may need a \
     person's approval, and is recorded. An error says what to do next. A call that waits for approval has not run: send \
     it again, unchanged, once it is approved. A long output is cut in the middle; read_output reads any part of the whole.";

/// What a client may ask for with parameters.
const METHODS: &[&str] =
    &["tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list"];
/// The same, before 2026-07-28, and since.
const METHODS_BEFORE: &[&str] = &["resources/subscribe", "resources/unsubscribe", "logging/setLevel"];
const METHODS_SINCE: &[&str] = &["subscriptions/listen"];

/// The name of the question for folders.
const ROOTS: &str = "haft_roots";

/// One connection to a client. It is what rmcp serves.
pub struct Session {
    pub(super) server: McpServer,
    last_caller: LastCaller,
    level: Mutex<Option<LoggingLevel>>,
    watched: Watched,
    has_roots: AtomicBool,
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
            has_roots: AtomicBool::new(false),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    pub(super) fn caller(&self, request: &RequestContext<RoleServer>) -> Result<Arc<CallContext>, ErrorData> {
        self.last_caller.of(&self.server.0.callers, request)
    }

    pub(super) fn log_level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the client's folders before its first call, where nothing can be asked at another time.
    pub(super) async fn ask_for_roots(&self, client: &Client) -> Option<InputRequiredResult> {
        let taker = self.server.0.roots.as_ref().filter(|_| client.is_stateless())?;
        if self.has_roots.load(Ordering::Acquire) || client.capabilities().roots.is_none() {
            return None;
        }
        if let Some(answer) = client.round().answers.get(ROOTS) {
            if let Some(folders) = roots::folders(answer.clone()) {
                taker.take(folders);
            }
            self.has_roots.store(true, Ordering::Release);
            return None;
        }
        let question = InputRequest::ListRoots(ListRootsRequest::default());
        Some(InputRequiredResult::from_input_requests([(ROOTS.to_owned(), question)].into()))
    }

    /// Asks for the client's folders, where that can be done at any time.
    async fn take_roots(&self, context: &NotificationContext<RoleServer>) {
        let Some(taker) = &self.server.0.roots else { return };
        let has_them = context.peer.peer_info().is_some_and(|info| info.capabilities.roots.is_some());
        if !has_them {
            return;
        }
        match context.peer.list_roots().await {
            Ok(answer) => {
                if let Some(folders) = serde_json::to_value(answer).ok().and_then(roots::folders) {
                    taker.take(folders);
                }
            }
            Err(error) => tracing::warn!(%error, "the client did not say which folders it works in"),
        }
    }

    fn tasks<M: ConstString>(&self) -> Result<&Arc<dyn Tasks>, ErrorData> {
        self.server.0.tasks.as_ref().ok_or_else(ErrorData::method_not_found::<M>)
    }

    fn config(&self) -> ServerConfig {
        let extension = &self.server.0.extension;
        let mut capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .build();
        if extension.has_prompts() {
            let with = ServerCapabilities::builder().enable_prompts().enable_prompts_list_changed().build();
            capabilities.prompts = with.prompts;
        }
        if self.server.0.tasks.is_some() {
            capabilities.extensions = ServerCapabilities::builder().enable_tasks().build().extensions;
        }
        if extension.has_completions() {
            capabilities.completions = Some(Default::default());
        }
        let mut instructions = INSTRUCTIONS.to_owned();
        if self.server.0.approvals == Approvals::Host {
            instructions.push_str(" The host asks its user before each call, and that counts as approval.");
        }
        if let Some(more) = &self.server.0.instructions {
            instructions = format!("{instructions}\n\n{more}");
        }
        let haft = Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft");
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(haft)
            .with_instructions(instructions)
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        self.config()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Ok(DiscoverResult::from_server_info(REVISIONS.to_vec(), self.config()).with_ttl_ms(LIST_TTL_MS))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let has_prompts = self.server.0.extension.has_prompts();
        let listener = Listener::new(&self.server);
        let (watched, ended) = (self.watched.clone(), self.ended.clone());
        tokio::spawn(changes::tell(listener, context.peer.clone(), watched, has_prompts, ended));
        self.take_roots(&context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.take_roots(&context).await;
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let server = &self.server.0;
        let caller = self.caller(&context)?;
        let listed = server.engine.tools().listed(&caller).await;
        let (definitions, next) = page(listed, |definition| &definition.name, request, server.page)?;
        server.shown.keep_only(|name| server.engine.tools().exists(name));
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
        let tasks = self.tasks::<GetTaskMethod>()?;
        let caller = self.caller(&context)?;
        let task = tasks.get(&caller, &request.task_id, Duration::ZERO).await.map_err(tasks::refused)?;
        Ok(GetTaskResult::new(task.detailed()))
    }

    /// No task of haft's asks its client anything, so there is nothing that an update could answer.
    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self.tasks::<UpdateTaskMethod>()?;
        let caller = self.caller(&context)?;
        tasks.get(&caller, &request.task_id, Duration::ZERO).await.map_err(tasks::refused).map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self.tasks::<CancelTaskMethod>()?;
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
        let available = server.engine.tools().available(&caller).await;
        let mut all: Vec<_> = available.iter().map(|definition| resources::definition(definition)).collect();
        all.extend(server.extension.resources(&caller));
        all.sort_by(|one, other| one.uri.cmp(&other.uri));
        let (resources, next) = page(all, |resource| &resource.uri, request, server.page)?;
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

    /// What rmcp does not recognise: methods that are unknown, and known ones whose parameters are not as they should be.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = haft_core::text::one_line(&request.method, 80);
        let is_stateless =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let more = if is_stateless { METHODS_SINCE } else { METHODS_BEFORE };
        match METHODS.iter().chain(more).any(|known| *known == request.method) {
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
