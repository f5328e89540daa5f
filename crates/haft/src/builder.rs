//! Puts an engine together from parts, or from a configuration.

use crate::{
    AdaptiveTimeout, Breaker, Engine, Error, Haft, Lanes, ListPolicy, MemoryStore, Quotas, RateLimit,
    RepeatGuard, ResultCache, Settings, StoredGrants, Tool,
    admission::AdmissionControls,
    commands::{self, LazyJail},
    config::Config,
    guards::{Policing, Redacting, permissions},
    wiring::{self, Folders},
    workspace::FolderOfCalls,
};
use haft_core::port::{Approver, Authoriser, Clock, Jail, Policy, Redactor, Registrations, Store};
use haft_guard::{AgentTools, GrantSource, Licensing};
use haft_sdk::capability::Capabilities;
use haft_tools::commands::BackgroundCommands;
use std::sync::Arc;

/// Where everything is recorded.
enum Storing {
    /// What somebody brought.
    Own(Arc<dyn Store>),
    /// Nowhere else than in this process.
    Memory(MemoryStore),
    /// A database of that folder.
    #[cfg(feature = "sqlite")]
    Durable(std::path::PathBuf, Box<crate::StoreOptions>),
}

impl Storing {
    /// The store, with the grants that it keeps.
    fn open(self) -> Result<(Arc<dyn Store>, Option<StoredGrants>), Error> {
        Ok(match self {
            Storing::Own(store) => (store, None),
            Storing::Memory(store) => (Arc::new(store.clone()), Some(StoredGrants::in_memory(store))),
            #[cfg(feature = "sqlite")]
            Storing::Durable(folder, options) => {
                let store = crate::DurableStore::open_sqlite(&folder, *options)
                    .map_err(|error| Error::Store(error.to_string()))?;
                (Arc::new(store.clone()), Some(StoredGrants::new(store)))
            }
        })
    }
}

/// Puts a [`Haft`] together.
///
/// ```
/// use haft::{ApprovalMode, Haft, ListPolicy};
/// let policy = ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() };
/// let haft = Haft::builder().policy(policy).without_builtins().build()?;
/// assert!(haft.definitions().is_empty());
/// # Ok::<(), haft::Error>(())
/// ```
#[must_use]
pub struct Builder {
    tools: Vec<Box<dyn Tool>>,
    has_builtins: bool,
    settings: Settings,
    policy: Policing,
    grants: Option<Arc<dyn GrantSource>>,
    authoriser: Option<Arc<dyn Authoriser>>,
    licensing: Licensing,
    store: Storing,
    approver: Option<Arc<dyn Approver>>,
    jail: Option<Arc<dyn Jail>>,
    clock: Option<Arc<dyn Clock>>,
    redacting: Redacting,
    registrations: Option<Arc<dyn Registrations>>,
    capabilities: Option<Capabilities>,
    admission: AdmissionControls,
    config: Config,
    folders: Option<Folders>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            tools: Vec::new(),
            has_builtins: true,
            settings: Settings::default(),
            policy: Policing::Lists(ListPolicy::default(), Vec::new()),
            grants: None,
            authoriser: None,
            licensing: Licensing::Unlimited,
            store: Storing::Memory(MemoryStore::new()),
            approver: None,
            jail: None,
            clock: None,
            redacting: Redacting::Rules(None),
            registrations: None,
            capabilities: None,
            admission: AdmissionControls::default(),
            config: Config::default(),
            folders: None,
        }
    }
}

impl Builder {
    /// One more tool.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tools([Box::new(tool) as Box<dyn Tool>])
    }

    /// More tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Box<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Leaves out the tools that come with haft.
    pub fn without_builtins(mut self) -> Self {
        self.has_builtins = false;
        self
    }

    /// What may run, what must be asked, what must not. The lists of a [`ListPolicy`] may name tools by their aliases;
    /// a [`PolicySet`](crate::PolicySet) has rules, too.
    pub fn policy<P: Policy + 'static>(mut self, policy: P) -> Self {
        self.policy = Policing::own(policy);
        self
    }

    /// Where grants come from: what a person agreed to earlier. Without it, lists have those that are remembered with
    /// an answer ([`approvals`](crate::Engine::approvals)), unless the [`store`](Self::store) is one's own; a
    /// [`PolicySet`](crate::PolicySet) or another policy knows about grants itself.
    pub fn grants(mut self, grants: impl GrantSource + 'static) -> Self {
        self.grants = Some(Arc::new(grants));
        self
    }

    /// Who has which permissions. Without it, [`Permissions`](crate::Permissions) with the roles of the configuration.
    pub fn authoriser(mut self, authoriser: impl Authoriser + 'static) -> Self {
        self.authoriser = Some(Arc::new(authoriser));
        self
    }

    /// How licence tiers are given. Without it, nobody is limited.
    pub fn licensing(mut self, licensing: Licensing) -> Self {
        self.licensing = licensing;
        self
    }

    /// Whom to ask: a function ([`ask_with`](crate::ask_with)) or anything else that is an [`Approver`].
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Where everything is recorded.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Storing::Own(Arc::new(store));
        self
    }

    /// Records everything in a database of that folder, so that it outlasts the process: what was about to happen, what
    /// happened, the audit, long outputs. It is opened when the whole is built; see `docs/durability.md`.
    ///
    /// ```
    /// use haft::{StoreOptions, prelude::*};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let state = folder.path();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let build = || Haft::builder().durable(state, StoreOptions::default()).build();
    /// let haft = build()?;
    /// haft.execute(ToolCall::new("get_metrics", json!({}))).await;
    /// drop(haft);
    ///
    /// let records = build()?.store().for_tenant("local").audit(10).await.unwrap();
    /// assert_eq!(&*records[0].tool, "get_metrics");
    /// # Ok::<(), haft::Error>(())
    /// # }).unwrap();
    /// ```
    #[cfg(feature = "sqlite")]
    pub fn durable(
        mut self,
        state_folder: impl Into<std::path::PathBuf>,
        options: crate::StoreOptions,
    ) -> Self {
        self.store = Storing::Durable(state_folder.into(), Box::new(options));
        self
    }

    /// What holds programs in. Without one, what needs containment does not run. Where licences are given, callers need
    /// the tier that includes jails of one's own.
    pub fn jail(mut self, jail: impl Jail + 'static) -> Self {
        self.jail = Some(Arc::new(jail));
        self
    }

    /// What time it is.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// What must not be shown, in place of what haft takes out by itself: tokens and keys by their look, and the values
    /// of variables that programs do not get.
    pub fn redactor(mut self, redactor: impl Redactor + 'static) -> Self {
        self.redacting = Redacting::Own(Arc::new(redactor));
        self
    }

    /// Shows everything as it is.
    ///
    /// ```
    /// use haft::prelude::*;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    /// let say = || {
    ///     let token = token.clone();
    ///     tool_fn("say", move |_: Nothing, _: ToolCtx| { let token = token.clone(); async move { Ok::<_, ToolError>(token) } })
    /// #       .read_only()
    /// };
    /// # /// Nothing.
    /// # #[derive(Deserialize, JsonSchema)]
    /// # struct Nothing {}
    /// let call = || ToolCall::new("say", json!({}));
    /// let haft = Haft::builder().tool(say()).build()?;
    /// assert_eq!(haft.execute(call()).await.text(), "[redacted:github-token]");
    /// let haft = Haft::builder().tool(say()).without_redaction().build()?;
    /// assert_eq!(haft.execute(call()).await.text(), token);
    /// # Ok::<(), haft::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn without_redaction(mut self) -> Self {
        self.redacting = Redacting::Off;
        self
    }

    /// Takes these for the variables of the process: the values of those that programs do not get are not shown.
    pub fn variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.redacting = Redacting::Rules(Some(variables.into_iter().collect()));
        self
    }

    /// Where tools that are added, switched off or configured are remembered; without it, nowhere. What is remembered
    /// counts once [`tools().restore(…)`](haft_engine::Tools::restore) has brought it back.
    ///
    /// ```
    /// use haft::{CallContext, DeclaredTool, FileRegistrations, Haft, ToolDefinition};
    /// # let folder = tempfile::tempdir()?;
    /// # let state = folder.path();
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let build = || Haft::builder().registrations(FileRegistrations::new(state)).build();
    /// let tool = DeclaredTool::new(ToolDefinition::new("ask_colleague", "Asks at the next desk"));
    /// build()?.tools().add(tool, &CallContext::owner()).await?;
    ///
    /// let haft = build()?;
    /// let skipped = haft.tools().restore(|definition| Ok(Box::new(DeclaredTool::new(definition)))).await?;
    /// assert!(skipped.is_empty() && haft.tools().exists("ask_colleague"));
    /// # Ok::<(), haft::Error>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn registrations(mut self, registrations: impl Registrations + 'static) -> Self {
        self.registrations = Some(Arc::new(registrations));
        self
    }

    /// What tools may reach. Outputs and the engine itself are added.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Other numbers and switches.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// How many calls run at once; `None` for as many as come. By default four for each agent.
    ///
    /// ```
    /// use haft::{Haft, Lanes};
    /// let lanes = Lanes { per_agent: Some(8), global: Some(64), ..Lanes::default() };
    /// let haft = Haft::builder().lanes(lanes).build()?;
    /// assert_eq!(haft.stats().lanes.map(|lanes| lanes.running), Some(0));
    /// # Ok::<(), haft::Error>(())
    /// ```
    pub fn lanes(mut self, lanes: impl Into<Option<Lanes>>) -> Self {
        self.admission.lanes = lanes.into();
        self
    }

    /// When a tool that keeps failing is left alone; `None` for never.
    pub fn breaker(mut self, breaker: impl Into<Option<Breaker>>) -> Self {
        self.admission.breaker = breaker.into();
        self
    }

    /// What is stored of the results of tools that allow it; `None` for nothing.
    pub fn cache(mut self, cache: impl Into<Option<ResultCache>>) -> Self {
        self.admission.cache = cache.into();
        self
    }

    /// When the same failing call is not run any more; `None` for never.
    pub fn repeat_guard(mut self, guard: impl Into<Option<RepeatGuard>>) -> Self {
        self.admission.repeat_guard = guard.into();
        self
    }

    /// Deadlines from how long a tool's calls took. Off unless this is said.
    pub fn adaptive_timeout(mut self, adaptive: impl Into<Option<AdaptiveTimeout>>) -> Self {
        self.admission.adaptive_timeout = adaptive.into();
        self
    }

    /// So many calls in so much time. None unless this is said.
    pub fn rate_limits(mut self, limits: impl IntoIterator<Item = RateLimit>) -> Self {
        self.admission.rate_limits = limits.into_iter().collect();
        self
    }

    /// What a tenant may use in a day. Any amount unless this is said.
    pub fn quotas(mut self, quotas: impl Into<Option<Quotas>>) -> Self {
        self.admission.quotas = quotas.into();
        self
    }

    /// Everything that a configuration says: settings, policy, and in parse-only mode the tools that it declares, each
    /// in the place of a built-in tool of its name.
    /// What is set after this wins.
    ///
    /// ```
    /// let config = haft::config::parse("[tools.timeouts]\ndefault_seconds = 5\n")?;
    /// let haft = haft::Haft::builder().config(&config).build()?;
    /// assert_eq!(haft.settings().default_timeout.as_secs(), 5);
    /// # Ok::<(), haft::Error>(())
    /// ```
    pub fn config(mut self, config: &Config) -> Self {
        self.config = config.clone();
        self.settings = wiring::settings(config);
        self.admission = wiring::admission(config);
        self.policy = Policing::of(config);
        self
    }

    /// Grants files: the roots, limits and denied patterns are those of the configuration, and the tools for files are
    /// there. Without this, no tool reaches a file.
    ///
    /// Changes that a crash cut are taken back when it is built; see [`Haft::taken_back`].
    ///
    /// ```
    /// use haft::prelude::*;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (project, state) = (folder.path().join("project"), folder.path().join("state"));
    /// # std::fs::create_dir(&project).unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// std::fs::write(project.join("notes.txt"), "hello\n").unwrap();
    /// let haft = Haft::builder().files(haft::Folders::new(&project, &state)).build()?;
    /// let result = haft.execute(ToolCall::new("read_file", json!({"path": "notes.txt"}))).await;
    /// assert_eq!(result.text(), "hello\n");
    /// # Ok::<(), haft::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn files(mut self, folders: Folders) -> Self {
        self.folders = Some(folders);
        self
    }

    /// The whole, or why there is none.
    pub fn build(self) -> Result<Haft, Error> {
        let mut tools = if self.has_builtins { haft_tools::builtin() } else { Vec::new() };
        let mut capabilities = self.capabilities;
        let mut taken_back = Vec::new();
        let mut missing_roots = Vec::new();
        let mut quarantined = Vec::new();
        #[cfg_attr(not(target_os = "linux"), allow(unused_mut, reason = "nothing is staged elsewhere"))]
        let mut unsettled = Vec::new();
        let mut found = None;
        let background = BackgroundCommands::default();
        if let Some(folders) = &self.folders {
            let (roots, missing) = wiring::present(wiring::roots(&self.config, folders));
            missing_roots = missing;
            let files = wiring::files(&self.config, folders, roots)
                .map_err(|error| Error::Files(error.to_string()))?;
            taken_back = files.recover().map_err(|error| Error::Files(cannot_recover(folders, &error)))?;
            quarantined = commands::recover(&self.config, folders).map_err(Error::Files)?;
            found = Some(files);
            tools.extend(haft_tools::file_tools(&wiring::file_tools(&self.config)));
            #[cfg(feature = "http")]
            {
                capabilities.get_or_insert_default().http =
                    wiring::http(&self.config).map_err(Error::Files)?;
            }
            tools.extend(haft_tools::command_tools(&wiring::command_tools(&self.config), &background));
        }
        let mut others = wiring::declared_instead(&mut tools, &self.config);
        others.extend(self.tools);
        let (store, kept) = self.store.open()?;
        #[cfg(target_os = "linux")]
        if let Some(folders) = &self.folders {
            let journal = crate::change_sets::Journal(Arc::clone(&store));
            unsettled = crate::change_sets::recover(&folders.state, &journal)
                .map_err(|error| Error::Files(cannot_recover(folders, &error)))?;
        }
        let definitions = tools.iter().chain(&others).map(|tool| &**tool.definition());
        let (policy, live) = self.policy.put(definitions, self.grants, kept)?;
        let authoriser = match self.authoriser {
            Some(authoriser) => authoriser,
            None => Arc::new(permissions(&self.config)?),
        };
        // Whatever else is decided, an agent with a definition has no more than that.
        let authoriser = Arc::new(AgentTools::new(Arc::clone(&self.settings.agents), authoriser));
        let builder = Engine::builder(policy, authoriser, Arc::clone(&store)).settings(self.settings);
        let builder = self.admission.put(builder);
        let mut builder = self.redacting.put(&self.config, builder)?;
        if let Some(approver) = self.approver {
            builder = builder.approver(approver);
        }
        let is_own = self.jail.is_some();
        let mut jail = self.jail;
        if let (Some(folders), Some(files)) = (&self.folders, found) {
            let template = commands::template(&self.config, folders).map_err(Error::Files)?;
            let jail = jail.get_or_insert_with(|| Arc::new(LazyJail::new(&self.config, folders)));
            let place = FolderOfCalls::new(
                &self.config,
                folders,
                files,
                template,
                Arc::clone(jail),
                Arc::clone(&store),
            );
            let place = Arc::new(place);
            let granted = capabilities.get_or_insert_default();
            granted.workspace = Arc::clone(&place) as _;
            granted.commands = Arc::clone(&place) as _;
            granted.roots = place as _;
        }
        if let Some(jail) = jail {
            builder = if is_own { builder.own_jail(jail) } else { builder.jail(jail) };
        }
        if let Some(clock) = self.clock {
            builder = builder.clock(clock);
        }
        if let Some(registrations) = self.registrations {
            builder = builder.registrations(registrations);
        }
        #[cfg(feature = "mcp")]
        let upstreams = wiring::upstreams(&self.config, capabilities.as_ref());
        if let Some(capabilities) = capabilities {
            builder = builder.capabilities(capabilities);
        }
        // Tests look at the schemas of what comes with haft; they need not be compiled each time that it starts.
        let builder = tools.into_iter().fold(builder, |builder, tool| builder.checked_tool(tool));
        let engine = others.into_iter().fold(builder, |builder, tool| builder.boxed_tool(tool)).build()?;
        let licensing = Arc::new(self.licensing);
        Ok(Haft {
            engine,
            taken_back: taken_back.into(),
            missing_roots: missing_roots.into(),
            quarantined: quarantined.into(),
            unsettled: unsettled.into(),
            background,
            #[cfg(feature = "mcp")]
            upstreams,
            policy: live,
            licensing,
        })
    }
}

fn cannot_recover(folders: &Folders, error: &std::io::Error) -> String {
    let changes = folders.state.join("changes");
    format!("the records of changed files in {} cannot be read: {error}", changes.display())
}
