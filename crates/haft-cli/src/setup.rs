//! The configuration, and the engine that it gives.

use super::{args::Global, console::Console, failure::Failure, observe::Observing, words};
use crate::live_runs::{Running, Shown};
use haft::assembly::{AuditPlaces, HeadsTo, LazyStore, StorePlace};
use haft::{
    CallContext, Folders, Haft, Settings, Target, Tool,
    assembly::{Signatures, ToolMaker, environment, licensing, local},
    config::{self, FolderConfig, LoadOptions, Resolved, Surroundings},
};
use haft_core::text::one_line;
use std::{path::PathBuf, sync::Arc, time::Duration};

mod added;
mod person;

use added::{restore_when_needed, take_over};
#[cfg(unix)]
pub(super) use person::editor;
use person::own_file;
pub(super) use person::owner;

/// What every command stands on.
pub(super) struct CliContext {
    pub(super) surroundings: Surroundings,
    pub(super) global: Global,
    pub(super) tools: Vec<Box<dyn Tool>>,
}

/// Who runs the tasks of an engine.
#[derive(Clone, Copy)]
enum Runs {
    /// The worker, another process.
    Worker,
    /// A server, itself.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only a server runs its own"))]
    Serving,
    /// `haft mcp`, itself: for as long as it runs, and after it the next one in the same folder.
    Mcp,
}

/// The engine with the configuration that it was made from.
pub(super) struct Setup {
    pub(super) haft: Haft,
    pub(super) resolved: Resolved,
    /// The user's own configuration file as a person writes it, whether it is there or not.
    pub(super) own_file: String,
    /// Who runs this.
    pub(super) owner: Arc<CallContext>,
    /// Whose tools are accepted.
    pub(super) signatures: Arc<Signatures>,
    /// Where haft keeps its state.
    state: Option<PathBuf>,
    pub(super) memory: Option<LazyStore>,
    observing: Observing,
    #[cfg(unix)]
    editor: Option<super::prompt::editor::Editor>,
    /// Where the configuration was read from.
    from: (Surroundings, LoadOptions),
    /// What was remembered about the tools before any of them was brought back.
    seen: haft::port::ToolsSeen,
}

/// The configuration in effect, with where it holds.
pub(super) struct Configured {
    pub(super) surroundings: Surroundings,
    pub(super) resolved: Resolved,
}

impl Setup {
    /// Whether questions stay after this process has ended.
    pub(super) fn remembers(&self) -> bool {
        self.memory.is_some()
    }

    /// Makes tools as they behave here.
    pub(super) fn maker(&self) -> ToolMaker {
        ToolMaker::new(haft::assembly::command_tools(&self.resolved.config), &self.haft)
    }

    /// Nodes that a flow may have here.
    pub(super) fn most_nodes(&self) -> usize {
        most_nodes(&self.resolved)
    }

    /// Who calls, in that conversation. Without one, calls of this user from a terminal are one.
    pub(super) fn caller(&self, conversation: Option<&str>) -> Arc<CallContext> {
        match conversation {
            None => Arc::clone(&self.owner),
            Some(name) => {
                let name: Arc<str> = name.into();
                Arc::new(CallContext {
                    conversation: Some(Arc::clone(&name)),
                    session: Some(name),
                    ..CallContext::clone(&self.owner)
                })
            }
        }
    }

    /// Who answers its questions: the person at the terminal, or else somebody elsewhere within that time.
    pub(super) fn approver(
        &self,
        wait: Option<Duration>,
        console: &Console,
    ) -> Option<Arc<dyn haft::port::Approver>> {
        #[cfg(unix)]
        {
            let accepts = &self.resolved.config.tools.approval.accept_from;
            let asks_here = accepts.contains(&super::prompt::CHANNEL);
            let prompt =
                self.memory.clone().filter(|_| asks_here).and_then(|store| {
                    super::prompt::Prompt::new(console.again(), store, self.editor.clone()?)
                });
            if let Some(prompt) = prompt {
                return Some(Arc::new(prompt));
            }
        }
        Some(Arc::new(super::waiting::Elsewhere { wait: wait?, console: console.again() }))
    }

    /// Shows other processes what runs here, until it is dropped. Where that cannot be, it merely cannot be stopped
    /// from there.
    pub(super) fn show_running(&self, target: Target, calls: &[(String, String)]) -> Option<Shown> {
        let (id, is_batch) = match target {
            Target::Call(id) => (id.to_string(), false),
            Target::Batch(id) => (id.to_string(), true),
        };
        let running = Running {
            id,
            is_batch,
            tools: calls.iter().map(|(tool, _)| tool.clone()).collect(),
            tenant: self.owner.tenant.to_string(),
            agent: self.owner.agent.to_string(),
            since: jiff::Timestamp::now(),
            process: std::process::id(),
        };
        Shown::new(self.state.as_deref()?, &running).ok()
    }

    /// The end of a command that made calls: what was recorded is safe, and a person hears of what a crash left.
    pub(super) fn end(self, console: &Console) -> Result<(), Failure> {
        self.observing.end(console);
        if let Some(store) = self.memory.as_ref().and_then(LazyStore::opened) {
            super::memory::say_unfinished(store, &self.owner.tenant, console);
            now(store.leave())??;
        }
        Ok(())
    }

    /// For a process that lives long: from now on the policy is as its files are, and so are the tools that other
    /// processes add, remove and switch. What is broken is said, and what was before holds.
    pub(super) fn keep_current(&self) {
        const LOOK: Duration = Duration::from_secs(1);
        let (surroundings, options) = self.from.clone();
        let (haft, console) = (self.haft.clone(), Console::plain());
        let mut reload = haft::PolicyReload::new(surroundings, options);
        let mut tools = self.memory.clone().map(|memory| super::following::Following::new(memory, self.seen));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                if let Some(tools) = &mut tools {
                    tools.look(&haft, &console).await;
                }
                if let haft::Reloaded::Kept(reason) = reload.look(&haft) {
                    let reason = one_line(&reason, 1000);
                    console.warn(&format!(
                        "the policy was changed and cannot be used, so the old one holds: {reason}"
                    ));
                }
            }
        });
    }

    /// Where haft keeps its state.
    pub(super) fn state(&self) -> Result<&std::path::Path, Failure> {
        self.state.as_deref().ok_or(Failure::NoStateFolder)
    }

    /// What is remembered, opened.
    #[cfg(unix)]
    pub(super) fn memory_store(&self) -> Result<&haft::DurableStore, Failure> {
        Ok(self.memory.as_ref().ok_or(Failure::NoStateFolder)?.open()?)
    }

    /// Where a change of the tools is remembered, so that it is there the next time.
    pub(super) fn registrations(&self) -> Result<&LazyStore, Failure> {
        self.memory.as_ref().ok_or(Failure::NoStateFolder)
    }
}

impl CliContext {
    /// The surroundings as the options have them.
    pub(super) fn surroundings(&self) -> Result<Surroundings, Failure> {
        let mut surroundings = self.surroundings.clone();
        // Before anything in it is read: somebody who can put a file there would decide what haft does.
        if let Some(state) = surroundings.state_folder() {
            haft_store::check_state_folder(&state, surroundings.user_id)?;
        }
        if let Some(file) = &self.global.config {
            let path = surroundings.working_folder.join(file);
            if !path.exists() {
                return Err(Failure::NoConfigFile { path: file.clone() });
            }
            surroundings.env.retain(|(name, _)| name != "HAFT_CONFIG");
            surroundings.env.push(("HAFT_CONFIG".into(), path.into_os_string()));
        }
        Ok(surroundings)
    }

    pub(super) fn load_options(&self) -> LoadOptions {
        let folder_config =
            if self.global.no_folder_config { FolderConfig::Skip } else { FolderConfig::Search };
        LoadOptions { folder_config, flags: self.global.settings.clone() }
    }

    /// Reads the configuration, and says once what a person should hear about it.
    pub(super) fn configured(&self, console: &Console) -> Result<Configured, Failure> {
        let surroundings = self.surroundings()?;
        let (inputs, mut notes) = config::gather(&surroundings, &self.load_options())?;
        if let Some(user) = &inputs.user {
            console.note(&format!("your own configuration: {}", words::path(&user.path)));
        }
        if let Some(folder) = &inputs.folder {
            let trust = if folder.pinned { "trusted" } else { "not trusted" };
            console
                .note(&format!("the folder's configuration ({trust}): {}", words::path(&folder.source.path)));
        }
        let mut resolved = config::resolve(&inputs)?;
        // Tools are kept from these files by their names: under another name they would reach them.
        for file in config::own_files(&surroundings, &resolved.config) {
            // Who cannot look at it cannot read it either.
            if let Err(error @ haft_store::StateFolderError::HardLink { .. }) =
                haft_store::check_only_name(&file)
            {
                return Err(Failure::OtherName(error));
            }
        }
        notes.append(&mut resolved.notes);
        for note in &notes {
            console.warn(&note.to_string());
        }
        Ok(Configured { surroundings, resolved })
    }

    /// The engine, for commands that look and change nothing but the tools.
    pub(super) fn setup(self, console: &Console) -> Result<Setup, Failure> {
        self.build(console, false, Runs::Worker)
    }

    /// The engine, for commands that make calls: what they remember is made ready while the rest is.
    pub(super) fn setup_for_calls(self, console: &Console) -> Result<Setup, Failure> {
        self.build(console, true, Runs::Worker)
    }

    /// The engine, for one call that is granted more than what is configured.
    #[cfg(unix)]
    pub(super) fn setup_with_config(
        self,
        console: &Console,
        mut configured: Configured,
        grant: impl FnOnce(&mut config::Config),
    ) -> Result<Setup, Failure> {
        grant(&mut configured.resolved.config);
        let observing = Observing::begin(self.global.log, true, &configured, console);
        let memory = configured.memory();
        self.build_engine(console, configured, observing, memory, Runs::Worker)
    }

    /// The engine of `haft mcp`: its tasks are its own.
    pub(super) fn setup_for_mcp(self, console: &Console) -> Result<Setup, Failure> {
        self.build(console, true, Runs::Mcp)
    }

    /// The engine of a server: its tasks are its own, and it goes on with those of the server before it.
    #[cfg(unix)]
    pub(super) fn setup_for_serving(mut self, console: &Console) -> Result<Setup, Failure> {
        // With these its routes apply and discard what staged commands changed.
        self.tools.extend(haft_tools::change_set_tools());
        let configured = self.configured(console)?;
        let observing = Observing::begin(self.global.log, true, &configured, console);
        let memory = configured.memory();
        self.build_engine(console, configured, observing, memory, Runs::Serving)
    }

    /// The engine of a worker, which has its memory already.
    #[cfg(unix)]
    pub(super) fn setup_with(self, console: &Console, memory: LazyStore) -> Result<Setup, Failure> {
        let configured = self.configured(console)?;
        let observing = Observing::begin(self.global.log, true, &configured, console);
        self.build_engine(console, configured, observing, Some(memory), Runs::Worker)
    }

    fn build(self, console: &Console, makes_calls: bool, runs: Runs) -> Result<Setup, Failure> {
        let configured = self.configured(console)?;
        let observing = Observing::begin(self.global.log, makes_calls, &configured, console);
        let memory = configured.memory();
        if makes_calls && let Some(memory) = &memory {
            memory.warm();
        }
        self.build_engine(console, configured, observing, memory, runs)
    }

    fn build_engine(
        self,
        console: &Console,
        configured: Configured,
        observing: Observing,
        memory: Option<LazyStore>,
        runs: Runs,
    ) -> Result<Setup, Failure> {
        let options = self.load_options();
        let Configured { surroundings, resolved } = configured;
        let own_folder = surroundings.user_file().and_then(|file| Some(file.parent()?.to_path_buf()));
        let licensing = licensing(&resolved.config, own_folder.as_deref()).map_err(Failure::Build)?;
        let haft = Haft::builder()
            .config(&resolved.config)
            .licensing(licensing)
            .variables(environment(surroundings.env.iter().cloned()))
            .tools(self.tools);
        let settings = Settings {
            // Together with the grace this stays below the ten seconds that most supervisors give.
            drain: Duration::from_secs(5),
            ..haft::assembly::settings(&resolved.config)
        };
        #[cfg(unix)]
        let settings = Settings {
            tasks: match runs {
                // The worker takes tasks over, and then knows which engine runs them.
                Runs::Worker => haft::TaskSettings {
                    runner: super::worker::RUNNER.into(),
                    takes_over: false,
                    ..settings.tasks
                },
                Runs::Serving => {
                    haft::TaskSettings { runner: "serve".into(), takes_over: true, ..settings.tasks }
                }
                Runs::Mcp => haft::TaskSettings {
                    // What waits for a person goes on in the folder in which it was asked.
                    runner: format!("mcp {}", surroundings.working_folder.display()).into(),
                    takes_over: true,
                    ..settings.tasks
                },
            },
            ..settings
        };
        if let (Some(memory), Some(state)) = (&memory, surroundings.state_folder()) {
            take_over(memory, &state, console)?;
        }
        let haft = memory.iter().cloned().fold(haft, |haft, memory| {
            let grants = memory.clone();
            haft.registrations(memory.clone())
                .store(memory)
                .grants(haft::StoredGrants::reached(move || grants.open().cloned()))
        });
        let haft = folders(&surroundings, &resolved.config).into_iter().fold(haft, haft::Builder::files);
        let waits = surroundings.state_folder().filter(|_| !matches!(runs, Runs::Worker));
        let haft = waits.into_iter().fold(haft, |haft, state| {
            let wait = Duration::from_secs(resolved.config.tools.approval.wait_seconds);
            haft.approver(super::waiting::WhileWatched { state, wait })
        });
        let haft = haft.settings(settings).build().map_err(Failure::Build)?;
        say_taken_back(haft.taken_back(), console);
        say_unsettled(haft.unsettled(), console);
        for found in haft.quarantined() {
            console.warn(&found.description);
        }
        for root in haft.missing_roots() {
            console.warn(&format!(
                "there is no folder {}, which tools.files.allowed_roots has; tools cannot use it",
                words::path(root)
            ));
        }
        let maker = ToolMaker::new(haft::assembly::command_tools(&resolved.config), &haft);
        let signatures =
            Signatures::new(&resolved.config, surroundings.state_folder()).map_err(Failure::Build)?;
        let signatures = Arc::new(signatures);
        haft.upstreams().observe(super::tools::keep_differences(&haft, &signatures, console));
        // Before any of them is brought back: what changes in between is noticed.
        let seen = match (&runs, &memory) {
            (Runs::Worker, _) | (_, None) => haft::port::ToolsSeen::default(),
            (_, Some(memory)) => memory.tools_seen()?,
        };
        if let Some(memory) = &memory {
            restore_when_needed(&haft, memory, maker, &signatures, console);
        }
        let owner = owner(&surroundings);
        let owner = CallContext { tier: haft.tier(&owner.tenant), ..local(&resolved.config, &owner) };
        let owner = Arc::new(owner);
        Ok(Setup {
            haft,
            resolved,
            own_file: own_file(&surroundings),
            owner,
            signatures,
            state: surroundings.state_folder(),
            memory,
            observing,
            #[cfg(unix)]
            editor: editor(&surroundings),
            from: (surroundings, options),
            seen,
        })
    }
}

impl Configured {
    /// Nodes that a flow may have here.
    pub(super) fn most_nodes(&self) -> usize {
        most_nodes(&self.resolved)
    }
}

fn most_nodes(resolved: &Resolved) -> usize {
    usize::try_from(resolved.config.tools.flows.max_nodes).unwrap_or(usize::MAX)
}

impl Configured {
    /// What is remembered; nothing where there is no folder for it.
    pub(super) fn memory(&self) -> Option<LazyStore> {
        let folder = self.surroundings.state_folder()?;
        let variable = |name: &str| {
            let (_, value) = self.surroundings.env.iter().find(|(known, _)| known == name)?;
            value.to_str().map(str::to_owned)
        };
        let config = &self.resolved.config;
        let audit = AuditPlaces {
            key_file: self.surroundings.audit_key_file(&config.audit),
            heads: HeadsTo::new(&config.audit, &self.surroundings),
        };
        Some(LazyStore::new(StorePlace::new(config, &folder, audit, variable)))
    }
}

/// Where the tools' files are, and the owner's, which no tool reaches. Without a place to remember, no tool reaches
/// any.
pub(super) fn folders(surroundings: &Surroundings, config: &config::Config) -> Option<Folders> {
    Some(Folders {
        private: config::own_files(surroundings, config),
        home: surroundings.home.clone(),
        ..Folders::new(&surroundings.working_folder, surroundings.state_folder()?)
    })
}

/// What became of the changes of staged commands whose haft was killed.
pub(super) fn say_unsettled(unsettled: &[haft::Unsettled], console: &Console) {
    for call in unsettled {
        let (id, what) = (call.execution_id, one_line(&call.summary, 200));
        console.warn(&match call.applied {
            true => format!("haft was killed after it had applied what an earlier call changed ({what})"),
            false => format!(
                "haft was killed during an earlier call ({what}): nothing of what it changed was applied. `haft diff \
                 {id}` shows it, `haft apply {id}` applies it, `haft discard {id}` throws it away"
            ),
        });
    }
}

/// What a process that was killed left half done.
pub(super) fn say_taken_back(taken_back: &[haft::TakenBack], console: &Console) {
    for set in taken_back {
        let what = one_line(&set.summary, 200);
        match &set.problem {
            Some(problem) => console.warn(&format!(
                "a crash cut off an earlier call ({what}), and haft could not restore its files: {problem}. haft tries \
                 again at its next start"
            )),
            None => {
                let files = words::count(set.paths.len(), "file");
                console.warn(&format!("a crash cut off an earlier call ({what}): haft restored {files}"));
            }
        }
        for path in &set.left {
            console.warn(&format!("{} changed since, so haft did not restore it", words::path(path)));
        }
    }
}

/// What a future gives that waits for files only.
pub(super) fn now<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Failure::Runtime)?;
    Ok(runtime.block_on(future))
}
