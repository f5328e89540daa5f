//! From a configuration to the parts that honour it.

use crate::{
    AdaptiveTimeout, Args, Breaker, ErrorCode, FlowTool, Lanes, ListPolicy, Prepared, Quota, Quotas,
    RepeatGuard, ResultCache, Retry, Settings, Source, TaskSettings, Tool, ToolDefinition, ToolError,
    ToolsMode,
    admission::AdmissionControls,
    config::{self, Config},
};
use haft_core::{IsolationLevel, port::AcceptAnswers};
use haft_files::{DEFAULT_DENIES, Files, JailError, JailSpec, Keep, PathJail, RootSpec};
use haft_guard::names::{BadPattern, ProtectedNames};
use haft_store::FileReadHashes;
use haft_tools::{
    CommandTool, CommandToolSettings, FileToolSettings, HttpTool, ListDirectory, ReadFile,
    changing::{ApplyPatch, CopyFile, DeleteFile, MoveFile},
    commands::{DeniedVariables, Variables},
};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

/// The folder of the state folder in which changes of files are recorded.
pub const CHANGES: &str = "changes";

/// The numbers and switches of the engine.
pub fn settings(config: &Config) -> Settings {
    let tools = &config.tools;
    let base = Duration::from_millis(config.scheduling.retry.base_ms);
    let retry = |tries: u64| Retry {
        max_retries: u32::try_from(tries).unwrap_or(u32::MAX),
        base,
        ..Retry::default()
    };
    Settings {
        mode: tools.mode,
        allow_parallel: tools.allow_parallel,
        max_calls_per_answer: size(tools.max_tool_calls_per_batch),
        max_args_bytes: size(tools.max_tool_args_bytes),
        coerce_arguments: tools.coerce_arguments,
        max_listed_tools: size(tools.max_listed),
        retry: retry(config.scheduling.retry.max_retries),
        batch_retry: retry(config.scheduling.retry.batch_max_retries),
        default_timeout: Duration::from_secs(tools.timeouts.default_seconds),
        max_output_bytes: size(tools.output.max_bytes),
        tasks: TaskSettings {
            max_taken: size(config.tasks.max_running),
            ttl: Duration::from_secs(config.tasks.keep_hours * 60 * 60),
            ..TaskSettings::default()
        },
        approval_expiry: Duration::from_secs(tools.approval.expire_seconds),
        agents: config.permissions.agents.clone().into(),
        ask_commands: tools.commands.ask,
        command_writes: tools.commands.writes,
        accept_answers: AcceptAnswers::only(tools.approval.accept_from.iter().copied()),
        ..Settings::default()
    }
}

/// The admission controls of every start.
pub(crate) fn admission(config: &Config) -> AdmissionControls {
    let scheduling = &config.scheduling;
    let some = |number: u64| (number > 0).then_some(number);
    let seconds = Duration::from_secs;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let (lanes, breaker, cache) = (&scheduling.lanes, &scheduling.breaker, &scheduling.cache);
    let (guard, adaptive, quotas) =
        (&scheduling.repeat_guard, &scheduling.adaptive_timeout, &scheduling.quotas);
    let quotas = Quotas {
        everybody: Quota {
            calls: some(quotas.calls_per_day),
            cpu_seconds: some(quotas.cpu_seconds_per_day),
            bytes: some(quotas.bytes_per_day),
        },
        // What has no form was refused when it was read.
        tenants: quotas.tenants.iter().filter_map(|entry| config::parse_quota(entry)).collect(),
    };
    AdmissionControls {
        lanes: Some(Lanes {
            per_agent: Some(size(lanes.per_agent)),
            per_tenant: some(lanes.per_tenant).map(size),
            global: some(lanes.global).map(size),
            queue_per_tenant: size(lanes.queue_per_tenant),
            queue_total: size(lanes.queue_total),
            ..Lanes::default()
        }),
        breaker: breaker.enabled.then(|| Breaker {
            percent: small(breaker.percent),
            window: size(breaker.window),
            min_calls: size(breaker.min_calls),
            open_for: seconds(breaker.open_seconds),
            trials: small(breaker.trials),
        }),
        cache: cache.enabled.then(|| ResultCache {
            ttl: seconds(cache.ttl_seconds),
            max_bytes: cache.max_bytes,
            max_result_bytes: small(cache.max_result_bytes),
        }),
        repeat_guard: guard.enabled.then(|| RepeatGuard {
            warn_at: small(guard.warn_at),
            stop_after: small(guard.stop_after),
            forget_after: seconds(guard.forget_after_seconds),
        }),
        adaptive_timeout: adaptive.enabled.then(|| AdaptiveTimeout {
            min_calls: adaptive.min_calls,
            factor: small(adaptive.factor),
            floor: Duration::from_millis(adaptive.floor_ms),
        }),
        rate_limits: scheduling.rates.iter().filter_map(|entry| config::parse_rate(entry)).collect(),
        quotas: (quotas != Quotas::default()).then_some(quotas),
    }
}

/// Where the files are that tools reach, and where haft keeps what it must remember about them.
///
/// ```
/// let folders = haft::Folders::new("/work/project", "/home/ada/.local/state/haft");
/// assert!(folders.private.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// Where relative paths start, and the roots of the configuration that are relative.
    pub working: PathBuf,
    /// Where haft remembers. No tool reaches it.
    pub state: PathBuf,
    /// More folders and files that no tool reaches, whether they are there or not: the user's configuration and what it
    /// names. [`config::own_files`](crate::config::own_files) lists them.
    pub private: Vec<PathBuf>,
    /// The user's home, where toolchains keep their caches; only presets make parts of it visible to programs.
    pub home: Option<PathBuf>,
}

impl Folders {
    /// These two.
    pub fn new(working: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Self {
        Folders { working: working.into(), state: state.into(), private: Vec::new(), home: None }
    }
}

/// The folders that the configuration grants.
pub(crate) fn roots(config: &Config, folders: &Folders) -> Vec<RootSpec> {
    let files = &config.tools.files;
    let root = |path: &PathBuf, read_only| RootSpec { path: folders.working.join(path), read_only };
    let writable = files.allowed_roots.iter().map(|path| root(path, false));
    let readable = files.read_only_roots.iter().map(|path| root(path, true));
    writable.chain(readable).collect()
}

/// Those that are there, and the writable ones that are not: one that is missing takes nothing from the others. A
/// read-only one that is missing is left in, and refused when it is opened: without it, what appears in its place could
/// be written.
pub(crate) fn present(roots: Vec<RootSpec>) -> (Vec<RootSpec>, Vec<PathBuf>) {
    let is_missing = |root: &RootSpec| {
        let found = std::fs::symlink_metadata(&root.path);
        !root.read_only && found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    if roots.iter().all(|root| root.read_only || is_missing(root)) {
        return (roots, Vec::new());
    }
    let (missing, present): (Vec<_>, Vec<_>) = roots.into_iter().partition(is_missing);
    (present, missing.into_iter().map(|root| root.path).collect())
}

/// Denied patterns that start at a root, as they are in each configured one: where tools are kept to a folder inside a
/// root, what the pattern denies there is denied all the same.
fn in_configured_roots(config: &Config, folders: &Folders) -> Vec<String> {
    let starts_at_root = |pattern: &&String| {
        let pattern = pattern.trim_end_matches('/');
        pattern.contains('/') && !pattern.starts_with("**/") && !pattern.starts_with('/')
    };
    let patterns: Vec<_> = config.tools.files.denied_patterns.iter().filter(starts_at_root).collect();
    let roots = roots(config, folders).into_iter().filter_map(|root| root.path.canonicalize().ok());
    let roots = roots.filter_map(|root| root.to_str().map(escaped));
    roots
        .flat_map(|root| {
            patterns.iter().map(move |pattern| format!("{}/{pattern}", root.trim_end_matches('/')))
        })
        .collect()
}

/// A path as a pattern that matches nothing else.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if "\\*?[]{}!".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// The files that tools reach, in those folders.
pub(crate) fn files(config: &Config, folders: &Folders, roots: Vec<RootSpec>) -> Result<Files, JailError> {
    let (files, undo) = (&config.tools.files, &config.tools.undo);
    let defaults = if files.include_default_denies { DEFAULT_DENIES } else { &[] };
    let spec = JailSpec {
        roots,
        denied_patterns: defaults
            .iter()
            .map(|&pattern| pattern.to_owned())
            .chain(files.denied_patterns.iter().cloned())
            .chain(in_configured_roots(config, folders))
            .collect(),
        allow_absolute: files.allow_absolute,
        private: std::iter::once(&folders.state).chain(&folders.private).cloned().collect(),
        names: protected_names(config)?,
        ..JailSpec::default()
    };
    let reads = Arc::new(FileReadHashes::new(folders.state.join("reads")));
    let keep =
        Keep { records: size(undo.max_records), bytes: undo.max_bytes, file_bytes: undo.max_file_bytes };
    #[cfg(target_os = "linux")]
    let writable: Vec<_> = {
        let writable = spec.roots.iter().filter(|root| !root.read_only);
        writable.filter_map(|root| root.path.canonicalize().ok()).collect()
    };
    let files = Files::new(Arc::new(PathJail::new(spec)?), reads, &folders.state.join(CHANGES), keep);
    #[cfg(feature = "failpoints")]
    let files = {
        let mut files = files;
        files.at_points(Arc::new(|point| haft_store::failpoint::hit("apply", point)));
        files
    };
    // haft writes nothing below a folder in which a staged command works.
    #[cfg(target_os = "linux")]
    let files = files.with_gate(crate::change_sets::gate(&folders.state, &writable));
    Ok(files)
}

/// What staged commands wrote, in these folders.
#[cfg(target_os = "linux")]
pub(crate) fn change_sets(
    config: &Config,
    folders: &Folders,
    files: &Arc<Files>,
    template: &haft_core::port::GuestSpec,
    journal: &crate::change_sets::Journal,
) -> Result<Arc<dyn haft_core::port::ChangeSets>, BadPattern> {
    use crate::change_sets::{StageBounds, StagedCalls};
    use haft_files::{StageRules, StagedKeep};
    let (commands, undo) = (&config.tools.commands, &config.tools.undo);
    let age = Duration::from_secs(commands.staged_keep_hours * 60 * 60);
    let keep = StagedKeep { age, ..StagedKeep::default() };
    let bounds = StageBounds { bytes: commands.staged_bytes, files: commands.staged_files, keep };
    let rules = StageRules {
        names: protected_names(config)?,
        git: template.presets.contains(&haft_core::port::Preset::Git),
        // Where the programs of a system are: an environment of python links to its interpreter.
        link_targets: ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"].map(PathBuf::from).into(),
        read_only: template.readable.clone(),
        keep: Keep {
            records: size(undo.max_records),
            bytes: undo.max_bytes,
            file_bytes: undo.max_file_bytes,
        },
        ..StageRules::default()
    };
    let journal = journal.clone();
    let sets =
        StagedCalls::new(&folders.state, bounds, rules, Arc::clone(files), &template.writable, journal);
    Ok(Arc::new(sets))
}

/// Names of files that run programs later.
pub(crate) fn protected_names(config: &Config) -> Result<Arc<ProtectedNames>, BadPattern> {
    let files = &config.tools.files;
    ProtectedNames::new(&files.protected_names, &files.unprotected_names).map(Arc::new)
}

/// How the file tools behave.
pub(crate) fn file_tools(config: &Config) -> FileToolSettings {
    let tools = &config.tools;
    let list = &tools.list_directory;
    FileToolSettings {
        read_file: ReadFile {
            max_file_read_bytes: size(tools.read_file.max_file_read_bytes),
            max_scan_bytes: size(tools.read_file.max_scan_bytes),
        },
        list_directory: ListDirectory {
            max_entries: size(list.max_entries),
            max_depth: u32::try_from(list.max_depth).unwrap_or(u32::MAX),
            include_hidden_default: list.include_hidden_default,
            include_files_default: list.include_files_default,
            include_dirs_default: list.include_dirs_default,
            include_symlinks_default: list.include_symlinks_default,
            include_other_default: list.include_other_default,
        },
        apply_patch: ApplyPatch { max_patch_bytes: size(tools.apply_patch.max_patch_bytes) },
        copy_file: CopyFile { allow_overwrite: tools.fileops.allow_overwrite },
        move_file: MoveFile { allow_overwrite: tools.fileops.allow_overwrite },
        delete_file: DeleteFile { allow_delete_dirs: tools.delete.allow_delete_dirs },
        isolation: (tools.files.isolation > IsolationLevel::None).then_some(tools.files.isolation),
        timeout: Some(Duration::from_secs(tools.timeouts.file_operations_seconds)),
        ..FileToolSettings::default()
    }
}

/// How the command tools behave.
pub fn command_tools(config: &Config) -> CommandToolSettings {
    let tools = &config.tools;
    CommandToolSettings {
        isolation: tools.commands.isolation,
        timeout: Some(Duration::from_secs(tools.timeouts.shell_commands_seconds)),
        denied_variables: DeniedVariables::new(tools.environment.denylist.iter().cloned()),
        variables: Variables::new(|name| std::env::var(name).ok()),
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What runs, what is asked, what is denied.
pub(crate) fn policy(config: &Config) -> ListPolicy {
    let approval = &config.tools.approval;
    ListPolicy {
        enabled: approval.enabled,
        mode: approval.mode,
        allowlist: approval.allowlist.iter().cloned().collect(),
        denylist: approval.denylist.iter().cloned().collect(),
        prompt_side_effects: approval.prompt_side_effects,
    }
}

/// The tools that are declared, where declared tools are offered.
pub(crate) fn declared(config: &Config) -> impl Iterator<Item = ToolDefinition> {
    let offered = config.tools.mode == ToolsMode::ParseOnly;
    config.tools.definitions.iter().filter(move |_| offered).map(crate::config::DeclaredTool::definition)
}

/// Adds the tools that are declared. Where nothing runs, a declaration takes the place of the built-in tool of its
/// name: it is what the model is to be told.
pub(crate) fn declared_instead(tools: &mut Vec<Box<dyn Tool>>, config: &Config) -> Vec<Box<dyn Tool>> {
    let declared: Vec<_> = declared(config).collect();
    let is_declared = |name: &String| declared.iter().any(|tool| tool.name.eq_ignore_ascii_case(name));
    tools.retain(|tool| {
        let definition = tool.definition();
        !is_declared(&definition.name) && !definition.aliases.iter().any(is_declared)
    });
    declared.into_iter().map(|tool| Box::new(DeclaredTool::new(tool)) as Box<dyn Tool>).collect()
}

/// The same lists with the canonical name of every tool that they name by an alias or in another case: policy
/// matches canonical names only, and a denial of `Bash` means the tool behind it.
pub(crate) fn with_canonical_names<'a>(
    mut policy: ListPolicy,
    definitions: impl Iterator<Item = &'a ToolDefinition>,
) -> ListPolicy {
    for definition in definitions {
        for list in [&mut policy.allowlist, &mut policy.denylist] {
            if names(list, definition) {
                list.insert(definition.name.clone());
            }
        }
    }
    policy
}

fn names(list: &BTreeSet<String>, definition: &ToolDefinition) -> bool {
    let mut known = std::iter::once(&definition.name).chain(&definition.aliases);
    known.any(|known| list.iter().any(|listed| listed.eq_ignore_ascii_case(known)))
}

/// A tool without code behind it: in parse-only mode its calls wait for somebody to supply their results.
///
/// ```
/// use haft::{DeclaredTool, Haft, Settings, ToolCall, ToolDefinition, ToolOutput, ToolsMode};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tool = DeclaredTool::new(ToolDefinition::new("ask_colleague", "Asks at the next desk"));
/// let settings = Settings { mode: ToolsMode::ParseOnly, ..Settings::default() };
/// let haft = Haft::builder().tool(tool).settings(settings).build()?;
///
/// let call = ToolCall::new("ask_colleague", serde_json::json!({})).with_id("c1");
/// let waiting = tokio::spawn(haft.execute(call));
/// while haft.pending().is_empty() {
///     tokio::task::yield_now().await;
/// }
/// haft.submit_result("c1", Ok(ToolOutput::text("yes"))).unwrap();
/// assert_eq!(waiting.await.unwrap().text(), "yes");
/// # Ok::<(), haft::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct DeclaredTool(Arc<ToolDefinition>);

impl DeclaredTool {
    /// A tool of that definition. It keeps its source, unless that says that the code is here.
    pub fn new(mut definition: ToolDefinition) -> Self {
        if definition.source == Source::BuiltIn {
            definition.source = Source::Declared;
        }
        DeclaredTool(Arc::new(definition))
    }
}

impl Tool for DeclaredTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn prepare(&self, _args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let what = match self.0.source {
            Source::BuiltIn | Source::Declared => "only declared",
            Source::Command => "a program that its definition does not name in a table `command`",
            Source::Http => "an HTTP service that its definition does not name in a table `http`",
            Source::Wasm => "a WebAssembly module",
            Source::Mcp => "a tool of an MCP server that its definition does not name in a table `mcp`",
            Source::Flow => "a flow of other tools that its definition does not hold",
        };
        let text = format!("`{}` is {what}, and there is nothing here that could run it", self.0.name);
        Err(ToolError::new(ErrorCode::ToolDisabled, text))
    }
}

/// Makes tools of definitions.
#[derive(Clone)]
pub struct ToolMaker {
    commands: CommandToolSettings,
    #[cfg(feature = "mcp")]
    upstreams: haft_mcp::client::Upstreams,
}

impl ToolMaker {
    /// For tools of that engine. It does not keep the engine.
    pub fn new(commands: CommandToolSettings, haft: &crate::Haft) -> Self {
        #[cfg(not(feature = "mcp"))]
        let _ = haft;
        ToolMaker {
            commands,
            #[cfg(feature = "mcp")]
            upstreams: haft.upstreams().clone(),
        }
    }

    /// The tool of a definition: a program, an HTTP service, a tool of an MCP server or a flow where it names one, else
    /// one without code behind it.
    pub fn make(&self, definition: ToolDefinition) -> Result<Box<dyn Tool>, String> {
        #[cfg(feature = "mcp")]
        if definition.source == Source::Mcp && definition.mcp.is_some() {
            let tool = self.upstreams.tool(definition).map_err(|problem| problem.to_string())?;
            return Ok(Box::new(tool));
        }
        if definition.source == Source::Command && definition.command.is_some() {
            let tool = CommandTool::new(definition, &self.commands).map_err(|problem| problem.to_string())?;
            return Ok(Box::new(tool));
        }
        if cfg!(feature = "http") && definition.source == Source::Http && definition.http.is_some() {
            let variables = self.commands.variables.clone();
            let tool = HttpTool::new(definition, variables).map_err(|problem| problem.to_string())?;
            return Ok(Box::new(tool));
        }
        if definition.source == Source::Flow && definition.flow.is_some() {
            return Ok(Box::new(FlowTool::of(definition).map_err(|problem| problem.to_string())?));
        }
        Ok(Box::new(DeclaredTool::new(definition)))
    }
}

/// How tools reach other machines.
#[cfg(feature = "http")]
pub(crate) fn http(config: &Config) -> Result<Arc<dyn haft_sdk::capability::Http>, String> {
    use haft_gate::{Client, HostList};
    let granted = &config.tools.http;
    let hosts = HostList::parse(&granted.hosts).map_err(|problem| format!("tools.http.hosts: {problem}"))?;
    let client = Client::new(hosts)
        .with_private(&granted.private_hosts)
        .map_err(|problem| format!("tools.http.private_hosts: {problem}"))?;
    Ok(Arc::new(client))
}

/// How MCP servers are reached and run that tools come from.
#[cfg(feature = "mcp")]
pub(crate) fn upstreams(
    config: &Config,
    granted: Option<&haft_sdk::capability::Capabilities>,
) -> haft_mcp::client::Upstreams {
    use haft_mcp::client::{Reach, UpstreamSettings, Upstreams};
    let granted = granted.cloned().unwrap_or_default();
    let CommandToolSettings { isolation, denied_variables, variables, .. } = command_tools(config);
    let settings = UpstreamSettings {
        isolation,
        connect_timeout: Duration::from_secs(config.tools.mcp.connect_seconds),
        secret: {
            let variables = variables.clone();
            Arc::new(move |name| variables.get(name))
        },
        variable: Arc::new(move |name| {
            denied_variables.allow(name)?;
            Ok(variables.get(name))
        }),
    };
    Upstreams::new(Reach { commands: granted.commands, http: granted.http }, settings)
}

#[cfg(test)]
mod tests;
