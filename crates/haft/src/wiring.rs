//! From a configuration to the parts that honour it.

use crate::{
    Args, ErrorCode, ListPolicy, Prepared, Settings, Source, Tool, ToolDefinition, ToolError, ToolsMode,
    config::Config,
};
use haft_core::port::AcceptAnswers;
use haft_jail::path::{DEFAULT_DENIES, Files, JailError, JailSpec, Keep, PathJail, RootSpec};
use haft_store::FileReadHashes;
use haft_tools::{
    CommandTool, CommandToolSettings, FileToolSettings, ListDirectory, ReadFile,
    changing::{ApplyPatch, CopyFile, DeleteFile, MoveFile},
    commands::{DeniedVariables, Variables},
};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

/// The numbers and switches of the engine.
pub(crate) fn settings(config: &Config) -> Settings {
    let tools = &config.tools;
    Settings {
        mode: tools.mode,
        allow_parallel: tools.allow_parallel,
        max_calls_per_answer: size(tools.max_tool_calls_per_batch),
        max_args_bytes: size(tools.max_tool_args_bytes),
        default_timeout: Duration::from_secs(tools.timeouts.default_seconds),
        max_output_bytes: size(tools.output.max_bytes),
        approval_expiry: Duration::from_secs(tools.approval.expire_seconds),
        accept_answers: AcceptAnswers::only(tools.approval.accept_from.iter().map(String::as_str)),
        ..Settings::default()
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
    /// More folders that no tool reaches, such as that of the user's configuration.
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

/// The files that tools reach.
pub(crate) fn files(config: &Config, folders: &Folders) -> Result<Files, JailError> {
    let (sandbox, undo) = (&config.tools.sandbox, &config.tools.undo);
    let root = |path: &PathBuf, read_only| RootSpec { path: folders.working.join(path), read_only };
    let writable = sandbox.allowed_roots.iter().map(|path| root(path, false));
    let readable = sandbox.read_only_roots.iter().map(|path| root(path, true));
    let defaults = if sandbox.include_default_denies { DEFAULT_DENIES } else { &[] };
    let spec = JailSpec {
        roots: writable.chain(readable).collect(),
        denied_patterns: defaults
            .iter()
            .map(|&pattern| pattern.to_owned())
            .chain(sandbox.denied_patterns.iter().cloned())
            .collect(),
        allow_absolute: sandbox.allow_absolute,
        private: std::iter::once(&folders.state).chain(&folders.private).cloned().collect(),
        ..JailSpec::default()
    };
    let reads = Arc::new(FileReadHashes::new(folders.state.join("reads")));
    let keep =
        Keep { records: size(undo.max_records), bytes: undo.max_bytes, file_bytes: undo.max_file_bytes };
    Ok(Files::new(Arc::new(PathJail::new(spec)?), reads, &folders.state.join("changes"), keep))
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
        timeout: Some(Duration::from_secs(tools.timeouts.file_operations_seconds)),
        ..FileToolSettings::default()
    }
}

/// How the command tools behave.
pub(crate) fn command_tools(config: &Config) -> CommandToolSettings {
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

/// The same lists with the canonical name of every tool that they name by an alias or in another case: policy
/// matches canonical names only, and whoever denies `Bash` means the tool behind it.
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
            Source::Http => "an HTTP service",
            Source::Wasm => "a WebAssembly module",
            Source::Mcp => "a tool of an MCP server",
            Source::Flow => "a flow of other tools",
        };
        let text = format!("`{}` is {what}, and there is nothing here that could run it", self.0.name);
        Err(ToolError::new(ErrorCode::ToolDisabled, text))
    }
}

/// The tool of a definition: a program where it names one, else one without code behind it.
pub(crate) fn described(
    definition: ToolDefinition,
    commands: &CommandToolSettings,
) -> Result<Box<dyn Tool>, String> {
    if definition.source == Source::Command && definition.command.is_some() {
        let tool = CommandTool::new(definition, commands).map_err(|problem| problem.to_string())?;
        return Ok(Box::new(tool));
    }
    Ok(Box::new(DeclaredTool::new(definition)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn every_key_that_is_wired_arrives() {
        let text = "
            [tools]
            mode = 'disabled'
            max_tool_calls_per_batch = 3
            max_tool_args_bytes = 1000
            [tools.timeouts]
            default_seconds = 7
            [tools.output]
            max_bytes = 2000
            [tools.approval]
            enabled = false
            mode = 'deny'
            allowlist = ['a']
            denylist = ['b']
            prompt_side_effects = false
            accept_from = ['terminal']
            expire_seconds = 60
        ";
        let config = config::parse(text).unwrap();
        let expected = Settings {
            mode: ToolsMode::Disabled,
            max_calls_per_answer: 3,
            max_args_bytes: 1000,
            default_timeout: Duration::from_secs(7),
            max_output_bytes: 2000,
            approval_expiry: Duration::from_secs(60),
            accept_answers: AcceptAnswers::only(["terminal"]),
            ..Settings::default()
        };
        assert_eq!(settings(&config), expected);
        let expected = ListPolicy {
            enabled: false,
            mode: crate::ApprovalMode::Deny,
            allowlist: ["a".to_owned()].into(),
            denylist: ["b".to_owned()].into(),
            prompt_side_effects: false,
        };
        assert_eq!(policy(&config), expected);
    }

    #[test]
    fn the_defaults_of_the_file_are_those_of_the_parts() {
        let config = config::Config::default();
        let accept_answers = AcceptAnswers::only(["terminal", "command_line"]);
        assert_eq!(settings(&config), Settings { accept_answers, ..Settings::default() });
        assert_eq!(policy(&config), ListPolicy::default());
    }

    #[test]
    fn a_list_that_names_an_alias_means_the_tool() {
        let mut definition = ToolDefinition::new("run_it", "Runs it");
        definition.aliases = vec!["Bash".to_owned()];
        for listed in ["Bash", "bash", "RUN_IT"] {
            let lists = ListPolicy { denylist: [listed.to_owned()].into(), ..ListPolicy::default() };
            assert!(
                with_canonical_names(lists, [&definition].into_iter()).denylist.contains("run_it"),
                "{listed}"
            );
        }
        let lists = with_canonical_names(ListPolicy::default(), [&definition].into_iter());
        assert_eq!(lists, ListPolicy::default(), "nothing else changes");
    }

    #[test]
    fn a_declared_tool_keeps_where_it_comes_from() {
        for (source, kept) in [(Source::BuiltIn, Source::Declared), (Source::Http, Source::Http)] {
            let mut definition = ToolDefinition::new("ask", "Asks");
            definition.source = source;
            assert_eq!(DeclaredTool::new(definition).definition().source, kept);
        }
    }

    #[test]
    fn declared_tools_are_offered_only_in_parse_only_mode() {
        let text = |mode| {
            format!("[tools]\nmode = '{mode}'\n[[tools.definitions]]\nname = 'ask'\ndescription = 'Asks'\n")
        };
        for (mode, offered) in [("parse_only", 1), ("enabled", 0), ("disabled", 0)] {
            assert_eq!(declared(&config::parse(&text(mode)).unwrap()).count(), offered, "{mode}");
        }
    }
}
