//! The key table: every key that `haft.toml` knows, once.
//!
//! Reading, suggestions, environment names, the `haft init` template, and the rule that a folder may only
//! tighten all come from here. To add a key, add its line to the table below, with its doc comment:
//! `name: type = default, rule;`. Its field appears in the section's struct; the tests then ask for an example
//! of loosening it.

use std::{borrow::Cow, path::PathBuf};

use haft_core::{
    AgentDefinition, ApprovalMode, AskCommands, Channel, CommandWrites, IsolationLevel, Strategy, ToolsMode,
};
use haft_guard::policy::Rule as PolicyRule;
use serde::Serialize;

use super::from_folder::FromFolder;
use super::profile::Profile;
use super::rule::{self, Kind, Rule};
use super::value::{
    APPROVAL_MODES, ASK_COMMANDS, COMMAND_WRITES, DeclaredTool, ISOLATION_LEVELS, ISOLATION_TECHNOLOGIES,
    IsolationTechnology, MCP_APPROVALS, McpApprovals, PROFILES, STORE_BACKENDS, STORE_DURABILITIES,
    STRATEGIES, Setting, StoreBackend, StoreDurability, TOOLS_MODES, Value,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const WEEK: u64 = 7 * 24 * 60 * 60;
/// More than anybody uses in a day.
const AMOUNT: u64 = 1 << 50;
/// Days that something is kept; 0 keeps it forever.
const DAYS: Kind = Kind::Count { min: 0, max: 36_500 };

/// One key of `haft.toml`.
///
/// ```
/// use haft_config as config;
///
/// let key = config::key("tools.approval.mode").expect("it is in the table");
/// assert_eq!(key.env_name(), "HAFT_TOOLS_APPROVAL_MODE");
/// assert_eq!(key.default_value().to_string(), r#""prompt""#);
/// assert_eq!(key.get(&config::Config::default()), key.default_value());
/// ```
#[derive(Debug)]
pub struct Key {
    path: &'static str,
    doc: &'static str,
    rule: Rule,
    default: fn() -> Value,
    get: fn(&Config) -> Value,
    set: fn(&mut Config, &Value) -> bool,
}

impl Key {
    /// Its full name, such as `tools.files.allow_absolute`.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// The section it is in, such as `tools.files`.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Its name inside its section, such as `allow_absolute`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// What it does, in a line.
    #[must_use]
    pub fn doc(&self) -> &'static str {
        self.doc.trim()
    }

    /// What it takes, and which change is tighter.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The value it has when nobody sets it.
    #[must_use]
    pub fn default_value(&self) -> Value {
        (self.default)()
    }

    /// Its value in a configuration.
    #[must_use]
    pub fn get(&self, config: &Config) -> Value {
        (self.get)(config)
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn env_name(&self) -> String {
        format!("{ENV_PREFIX}{}", self.path.replace('.', "_").to_uppercase())
    }

    /// Whether an environment variable of this name sets it, by its name now or a former one.
    #[must_use]
    pub fn is_set_by(&self, variable: &str) -> bool {
        let variable_of = |path: &str| format!("{ENV_PREFIX}{}", path.replace('.', "_").to_uppercase());
        let former = FORMER_SECTIONS.iter().filter(|(_, now)| *now == self.section());
        let mut former = former.map(|(before, _)| variable_of(&format!("{before}.{}", self.name())));
        self.env_name() == variable || former.any(|name| name == variable)
    }

    /// Puts a value into a configuration; `false` if the value is not of this key's type.
    pub(super) fn set(&self, config: &mut Config, value: &Value) -> bool {
        (self.set)(config, value)
    }
}

/// What every environment variable of haft begins with.
pub(super) const ENV_PREFIX: &str = "HAFT_";

/// A section of `haft.toml`, such as `[tools.files]`.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) path: &'static str,
    pub(super) docs: &'static [&'static str],
}

/// Every key, in the order of the template.
///
/// ```
/// assert!(haft_config::keys().iter().any(|key| key.path() == "tools.mode"));
/// ```
#[must_use]
pub fn keys() -> &'static [Key] {
    KEYS
}

/// The key with this full name.
///
/// ```
/// assert!(haft_config::key("tools.mode").is_some());
/// assert!(haft_config::key("tools.mood").is_none());
/// ```
#[must_use]
pub fn key(path: &str) -> Option<&'static Key> {
    let path = current(path);
    KEYS.iter().find(|key| key.path == path)
}

/// Sections that had another name before. Files, variables and flags with that name are read as if they had the new
/// one.
const FORMER_SECTIONS: &[(&str, &str)] = &[("tools.sandbox", "tools.files")];

/// Keys that have a shorter name of their own.
const SHORT: &[(&str, &str)] = &[("agents", "permissions.agents")];

/// The name in the table, of a key or section that may be written by a short or a former name.
fn current(path: &str) -> Cow<'_, str> {
    if let Some((_, key)) = SHORT.iter().find(|(short, _)| *short == path) {
        return Cow::Borrowed(key);
    }
    for (former, now) in FORMER_SECTIONS {
        match path.strip_prefix(former) {
            Some("") => return Cow::Borrowed(now),
            Some(rest) if rest.starts_with('.') => return Cow::Owned(format!("{now}{rest}")),
            Some(_) | None => {}
        }
    }
    Cow::Borrowed(path)
}

pub(super) fn sections() -> &'static [Section] {
    SECTIONS
}

pub(super) fn is_section(path: &str) -> bool {
    let path = current(path);
    SECTIONS.iter().any(|section| section.path == path)
}

macro_rules! dotted {
    ([$first:ident $(.$rest:ident)*] $($field:ident)?) => {
        concat!(stringify!($first) $(, ".", stringify!($rest))* $(, ".", stringify!($field))?)
    };
}

macro_rules! field {
    ($config:expr, [$($segment:ident).+], $field:ident) => { $config.$($segment).+.$field };
}

macro_rules! key_table {
    ($(
        $(#[doc = $section_doc:literal])+
        $path:tt = $Section:ident $(with { $($sub:ident: $Sub:ident),+ $(,)? })? {
            $(#[doc = $doc:literal] $field:ident: $ty:ty = $default:expr, $rule:expr;)+
        }
    )+) => {
        $(
            $(#[doc = $section_doc])+
            #[derive(Debug, Clone, PartialEq, Serialize)]
            pub struct $Section {
                $(#[doc = $doc] pub $field: $ty,)+
                $($(#[doc = concat!("The section `", stringify!($sub), "`.")] pub $sub: $Sub,)+)?
            }

            impl Default for $Section {
                fn default() -> Self {
                    Self { $($field: $default,)+ $($($sub: $Sub::default(),)+)? }
                }
            }
        )+

        static KEYS: &[Key] = &[$($(Key {
            path: dotted!($path $field),
            doc: $doc,
            rule: $rule,
            default: || { let value: $ty = $default; value.to_value() },
            get: |config| field!(config, $path, $field).to_value(),
            set: |config, value| match Setting::from_value(value) {
                Some(value) => { field!(config, $path, $field) = value; true }
                None => false,
            },
        },)+)+];

        static SECTIONS: &[Section] =
            &[$(Section { path: dotted!($path), docs: &[$($section_doc),+] },)+];
    };
}

/// What is in effect: every key of the table, with its type.
///
/// ```
/// use haft_config::Config;
///
/// let config = Config::default();
/// assert_eq!(config.tools.max_tool_calls_per_batch, 8);
/// assert!(config.tools.approval.denylist.contains(&"run_command".to_owned()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Config {
    /// The section `tools`.
    pub tools: ToolsConfig,
    /// The section `policy`.
    pub policy: PolicyConfig,
    /// The section `redaction`.
    pub redaction: RedactionConfig,
    /// The section `permissions`.
    pub permissions: PermissionsConfig,
    /// The section `license`.
    pub license: LicenseConfig,
    /// The section `store`.
    pub store: StoreConfig,
    /// The section `audit`.
    pub audit: AuditConfig,
    /// The section `mcp`.
    pub mcp: McpConfig,
    /// The section `tasks`.
    pub tasks: TasksConfig,
    /// The section `telemetry`.
    pub telemetry: TelemetryConfig,
    /// The section `scheduling`.
    pub scheduling: SchedulingConfig,
    /// The section `server`.
    pub server: ServerConfig,
    /// What of it an untrusted folder's file added.
    #[serde(skip)]
    pub from_folder: FromFolder,
}

key_table! {
    /// Tool calls as a whole.
    [tools] = ToolsConfig with {
        files: FilesConfig,
        timeouts: TimeoutsConfig,
        output: OutputConfig,
        environment: EnvironmentConfig,
        approval: ApprovalConfig,
        read_file: ReadFileConfig,
        apply_patch: ApplyPatchConfig,
        list_directory: ListDirectoryConfig,
        fileops: FileopsConfig,
        delete: DeleteConfig,
        undo: UndoConfig,
        flows: FlowsConfig,
        commands: CommandsConfig,
        http: HttpConfig,
        mcp: McpServersConfig,
        signatures: SignaturesConfig,
    } {
        /// What haft does with a call: run it, only check it ("parse_only"), or refuse it ("disabled").
        mode: ToolsMode = ToolsMode::Enabled, rule::level(TOOLS_MODES);
        /// Whether calls of one model answer may run at the same time.
        allow_parallel: bool = false, rule::switch_off();
        /// How many calls a model may make in one answer.
        max_tool_calls_per_batch: u64 = 8, rule::at_most(1, 10_000);
        /// How many times a model may call tools before a person speaks again.
        max_tool_iterations_per_user_turn: u64 = 4, rule::at_most(1, 10_000);
        /// How many bytes of JSON the arguments of one call may have.
        max_tool_args_bytes: u64 = 256 << 10, rule::at_most(2, GIB);
        /// Whether "5" becomes 5 where a tool wants a number and nothing is lost; results name what was converted.
        coerce_arguments: bool = true, rule::switch_off();
        /// The longest tool list that a model is given; with more tools, `search_tools` finds those that you added.
        max_listed: u64 = 128, rule::at_most(0, 1_000_000);
        /// Tools that are only declared: used with mode = "parse_only".
        definitions: Vec<DeclaredTool> = Vec::new(), rule::declared_tools();
    }

    /// Which files the file tools may touch.
    [tools.files] = FilesConfig {
        /// The lowest isolation level for the file tools: none (in haft's own process), standard or strict.
        isolation: IsolationLevel = IsolationLevel::None, rule::level(ISOLATION_LEVELS);
        /// Folders that the file tools may use, relative to the working folder. Only your own file sets it.
        allowed_roots: Vec<PathBuf> = vec![PathBuf::from(".")], rule::own(Kind::Folders);
        /// Folders that the file tools may read and not change. Only your own file sets it.
        read_only_roots: Vec<PathBuf> = Vec::new(), rule::own(Kind::Folders);
        /// Files in the allowed folders that the file tools may not use, such as "**/secrets/**".
        denied_patterns: Vec<String> = Vec::new(), rule::deny_list();
        /// Whether a call may use absolute paths; the file must still be in an allowed folder.
        allow_absolute: bool = false, rule::switch_off();
        /// Whether haft denies keys, credentials and .git (.ssh, .aws, .env, id_rsa, *.pem, *.key and more), too.
        include_default_denies: bool = true, rule::switch_on();
        /// More files that run programs later, such as "deploy.sh": haft asks before a tool changes one.
        protected_names: Vec<String> = Vec::new(), rule::deny_list();
        /// Protected names that tools and programs may change like any other file, such as ".vscode".
        unprotected_names: Vec<String> = Vec::new(), rule::allow_list();
    }

    /// How long a call may take.
    [tools.timeouts] = TimeoutsConfig {
        /// Timeout in seconds of a tool that declares none.
        default_seconds: u64 = 30, rule::at_most(1, WEEK);
        /// Timeout in seconds of a tool that reads or writes files.
        file_operations_seconds: u64 = 30, rule::at_most(1, WEEK);
        /// Timeout in seconds of a command.
        shell_commands_seconds: u64 = 300, rule::at_most(1, WEEK);
    }

    /// What a model sees of a result.
    [tools.output] = OutputConfig {
        /// How many bytes of one result a model sees; the whole is kept.
        max_bytes: u64 = 100 << 10, rule::at_most(256, GIB);
        /// Whether API keys and tokens are redacted from results. They are always redacted from what haft stores.
        redact_results: bool = true, rule::switch_on();
    }

    /// Which environment variables commands get.
    [tools.environment] = EnvironmentConfig {
        /// Variables that commands never get. Every file adds to this list.
        denylist: Vec<String> = names(DENIED_VARIABLES), rule::added_deny_list();
    }

    /// Which calls need a person's approval.
    [tools.approval] = ApprovalConfig {
        /// Whether calls may run; false refuses every call.
        enabled: bool = true, rule::switch_off();
        /// What haft does with a call that no list decides: "deny", "prompt" (ask) or "auto" (allow).
        mode: ApprovalMode = ApprovalMode::Prompt, rule::level(APPROVAL_MODES);
        /// Tools that run without asking, except those that always ask.
        allowlist: Vec<String> = names(ALLOWED_TOOLS), rule::allow_list();
        /// Tools that never run. Your own file replaces this list; a folder's file adds to it.
        denylist: Vec<String> = names(DENIED_TOOLS), rule::deny_list();
        /// Whether haft asks before any tool that changes something, unless the tool is on the allowlist.
        prompt_side_effects: bool = true, rule::switch_on();
        /// Where answers may come from: "terminal", "command_line" (`haft approvals`), "http" (`haft serve`), "mcp".
        accept_from: Vec<Channel> = vec![Channel::Terminal, Channel::CommandLine, Channel::Mcp], rule::allow_list();
        /// Seconds until an unanswered question expires, and until an unused approval does.
        expire_seconds: u64 = 24 * 60 * 60, rule::at_most(1, WEEK);
        /// Seconds that a call over MCP or HTTP waits for an answer while somebody runs `haft approvals watch`.
        wait_seconds: u64 = 50, rule::own(Kind::Count { min: 0, max: 60 * 60 });
    }

    /// Limits of read_file.
    [tools.read_file] = ReadFileConfig {
        /// The largest file that is read whole, in bytes.
        max_file_read_bytes: u64 = 200 << 10, rule::at_most(1, GIB);
        /// How many bytes are scanned to find a range of lines.
        max_scan_bytes: u64 = 2 * MIB, rule::at_most(1, GIB);
    }

    /// Limits of apply_patch.
    [tools.apply_patch] = ApplyPatchConfig {
        /// The largest patch, in bytes.
        max_patch_bytes: u64 = 512 << 10, rule::at_most(1, GIB);
    }

    /// Limits and defaults of list_directory.
    [tools.list_directory] = ListDirectoryConfig {
        /// The most entries in one list, and the default.
        max_entries: u64 = 200, rule::at_most(1, 1_000_000);
        /// The deepest level of folders in one list, and the default.
        max_depth: u64 = 4, rule::at_most(1, 1_000);
        /// Whether names that begin with a dot are listed, unless the call sets it.
        include_hidden_default: bool = false, rule::switch_off();
        /// Whether files are listed, unless the call sets it.
        include_files_default: bool = true, rule::switch_off();
        /// Whether folders are listed, unless the call sets it.
        include_dirs_default: bool = true, rule::switch_off();
        /// Whether links are listed, unless the call sets it.
        include_symlinks_default: bool = true, rule::switch_off();
        /// Whether pipes, devices and sockets are listed, unless the call sets it.
        include_other_default: bool = false, rule::switch_off();
    }

    /// What move_file and copy_file may do.
    [tools.fileops] = FileopsConfig {
        /// Whether a call may replace a file at the destination.
        allow_overwrite: bool = false, rule::switch_off();
    }

    /// What delete_file may do.
    [tools.delete] = DeleteConfig {
        /// Whether a call may delete folders with everything in them.
        allow_delete_dirs: bool = false, rule::switch_off();
    }

    /// What haft keeps for `haft undo`.
    [tools.undo] = UndoConfig {
        /// How many calls can be undone, in all folders together. Only your own file sets it.
        max_records: u64 = 1000, rule::own(Kind::Count { min: 1, max: 1_000_000 });
        /// Bytes of changed and deleted files that haft keeps, in all folders together. Only your own file sets it.
        max_bytes: u64 = 512 * MIB, rule::own(Kind::Count { min: 1, max: 1024 * GIB });
        /// The largest file that a tool may change or delete; haft could not restore a larger one.
        max_file_bytes: u64 = 128 * MIB, rule::at_most(1, 64 * GIB);
    }

    /// Limits of flows.
    [tools.flows] = FlowsConfig {
        /// How many nodes a flow may have.
        max_nodes: u64 = 100, rule::at_most(1, 10_000);
    }

    /// How commands run: run_command, background commands, and tools that are programs.
    [tools.commands] = CommandsConfig {
        /// The lowest isolation level for commands: standard, strict or restricted.
        isolation: IsolationLevel = IsolationLevel::Strict, rule::level(ISOLATION_LEVELS);
        /// The jail that holds commands: auto, process, namespace, runc or gvisor. What it cannot hold is refused.
        isolation_technology: IsolationTechnology = IsolationTechnology::Auto,
            rule::own(Kind::Level(ISOLATION_TECHNOLOGIES));
        /// A folder of yours in which jails make their own folders for commands; empty: haft's state folder.
        sandbox_base_dir: String = String::new(), rule::own(Kind::Text);
        /// Hosts that commands may reach, such as "crates.io", "*.example.com" or "host:8080".
        hosts: Vec<String> = Vec::new(), rule::allow_list();
        /// Toolchains that commands use: rust, node, python, git.
        presets: Vec<String> = Vec::new(), rule::allow_list();
        /// Environment variables that commands get besides PATH, LANG, LC_*, TZ and TERM.
        pass_environment: Vec<String> = Vec::new(), rule::allow_list();
        /// Memory limit in bytes, for all processes of a call together.
        memory_bytes: u64 = GIB, rule::at_most(MIB, 1024 * GIB);
        /// CPU time limit in seconds, for all processes of a call together.
        cpu_seconds: u64 = 300, rule::at_most(1, WEEK);
        /// Share of the cores for all processes of a call together, in thousandths of a core; the most is no limit.
        cpu_millicores: u64 = 1_000_000, rule::at_most(10, 1_000_000);
        /// The most processes and threads at once.
        processes: u64 = 256, rule::at_most(1, 1_000_000);
        /// Bytes of scratch space; haft deletes it after the call.
        scratch_bytes: u64 = 256 * MIB, rule::at_most(MIB, 1024 * GIB);
        /// The most bytes of memory that a call may ask for; at least memory_bytes.
        max_memory_bytes: u64 = 0, rule::at_most(0, 1024 * GIB);
        /// The most CPU seconds that a call may ask for; at least cpu_seconds.
        max_cpu_seconds: u64 = 0, rule::at_most(0, WEEK);
        /// The most processes and threads that a call may ask for; at least processes.
        max_processes: u64 = 0, rule::at_most(0, 1_000_000);
        /// The most bytes of scratch space that a call may ask for; at least scratch_bytes.
        max_scratch_bytes: u64 = 0, rule::at_most(0, 1024 * GIB);
        /// The most open files of one process that a call may ask for; 1024 is the default and the minimum.
        max_open_files: u64 = 0, rule::at_most(0, 1_000_000);
        /// When haft asks about a command: "before" it runs, about its "effects" when it has run, or "never".
        ask: AskCommands = AskCommands::Before, rule::level(ASK_COMMANDS);
        /// Where commands write: "staged" (apart from the files), "staged_if_possible" or "live" (to the files).
        writes: CommandWrites = CommandWrites::Live, rule::level(COMMAND_WRITES);
        /// Bytes that a staged command may write.
        staged_bytes: u64 = 4 * GIB, rule::at_most(MIB, 1024 * GIB);
        /// Files and folders that a staged command may make or change.
        staged_files: u64 = 1_000_000, rule::at_most(1, 100_000_000);
        /// Hours that haft keeps changes of a staged command that nobody applied or discarded.
        staged_keep_hours: u64 = 168, rule::own(Kind::Count { min: 1, max: 24 * 366 });
        /// Bytes of the build cache of a workspace, which the presets rust, node and python use; 0 is none.
        cache_bytes: u64 = 4 * GIB, rule::own(Kind::Count { min: 0, max: 1024 * GIB });
        /// Whether "strict" accepts limits per process where haft cannot create a cgroup.
        per_process_limits: bool = false, rule::switch_off();
        /// Whether commands may use unix sockets, also those that lead to programs outside the jail.
        unix_sockets: bool = false, rule::switch_off();
    }

    /// What tools that are HTTP services may reach.
    [tools.http] = HttpConfig {
        /// Hosts on the public internet, such as "api.example.com", "*.example.com" or "host:8443".
        hosts: Vec<String> = Vec::new(), rule::allow_list();
        /// Hosts that may be on this machine or in a private network, each with its port: "localhost:8080".
        private_hosts: Vec<String> = Vec::new(), rule::allow_list();
    }

    /// MCP servers. Their programs are granted what commands are, their addresses what HTTP tools are.
    [tools.mcp] = McpServersConfig {
        /// Seconds until a server must have listed its tools.
        connect_seconds: u64 = 30, rule::at_most(1, 600);
    }

    /// Which signed tools haft accepts. A folder's file can require signatures; only your own file trusts keys.
    [tools.signatures] = SignaturesConfig {
        /// Whether a tool is added only with a signature of a trusted key.
        require_signatures: bool = false, rule::switch_on();
        /// Public keys that may sign tools, such as "ed25519:…"; `haft keys generate` makes one.
        trusted_keys: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// Rules that allow, ask or deny, beyond the lists of [tools.approval].
    [policy] = PolicyConfig {
        /// What holds where no key says otherwise: locked, read-only, careful or coding.
        profile: Profile = Profile::Locked, rule::own(Kind::Level(PROFILES));
        /// The rules. A folder's file adds its own; until you trust it, only those that ask or deny.
        rules: Vec<PolicyRule> = Vec::new(), rule::policy_rules();
    }

    /// More secrets that haft redacts from results and from everything that it stores.
    [redaction] = RedactionConfig {
        /// Patterns of secrets: "acme-token: acme_[a-z0-9]{32}". Lists add up. Only your own file sets it.
        patterns: Vec<String> = Vec::new(), rule::own_added_list();
        /// Environment variables whose values are secrets. Lists add up. Only your own file sets it.
        values_from_environment: Vec<String> = Vec::new(), rule::own_added_list();
        /// A file with one secret per line; "" is none. A line of fewer than 8 bytes is an error.
        values_file: String = String::new(), rule::own(Kind::Text);
    }

    /// Roles. On your own machine you have every permission.
    [permissions] = PermissionsConfig {
        /// Roles besides viewer, contributor, editor and admin, such as "auditor: tool.*.read !tool.secrets.*".
        roles: Vec<String> = Vec::new(), rule::own(Kind::Names);
        /// What named agents have, and no more: tools, permissions, limits. Each is a table, as below.
        agents: Vec<AgentDefinition> = Vec::new(), rule::own(Kind::Agents);
        /// The roles that you have on this machine, in place of every permission.
        local_roles: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// Licences. Without an authority there are no limits.
    [license] = LicenseConfig {
        /// The public key that licences must be signed with, such as "ed25519:…".
        authority: String = String::new(), rule::own(Kind::Text);
        /// The licence's file; "" is license.json beside your own configuration.
        file: String = String::new(), rule::own(Kind::Text);
    }

    /// What haft stores, where, and for how long. A folder's file can set only durability.
    [store] = StoreConfig {
        /// Where haft stores it: in a file of the state folder, or on a PostgreSQL server.
        backend: StoreBackend = StoreBackend::Sqlite, rule::own(Kind::Level(STORE_BACKENDS));
        /// The URL of the PostgreSQL server: "env:NAME" or "file:PATH"; as plain text only without a password.
        url: String = String::new(), rule::own(Kind::Text);
        /// Whether haft may migrate the tables of an earlier version on a server. Make a copy with pg_dump first.
        allow_layout_change: bool = false, rule::own(Kind::Switch);
        /// What haft writes to disk before a call goes on: every record, or those of calls with side effects.
        durability: StoreDurability = StoreDurability::Effects, rule::level(STORE_DURABILITIES);
        /// Whether the audit log keeps arguments, with secrets redacted, and not only their hash.
        audit_input: bool = true, rule::own(Kind::Switch);
        /// Days that results and arguments are kept for `haft runs show`; 0 keeps them forever.
        keep_results_days: u64 = 30, rule::own(DAYS);
        /// Days that long outputs are kept for read_output; 0 keeps them forever.
        keep_outputs_days: u64 = 30, rule::own(DAYS);
        /// Bytes of stored long outputs; above that, haft deletes the oldest first.
        max_output_bytes: u64 = GIB, rule::own(Kind::Count { min: MIB, max: 1024 * GIB });
        /// Days until `haft gc` moves audit records to an archive; 0 is never.
        keep_audit_days: u64 = 0, rule::own(DAYS);
        /// keep_audit_days for some calls, first match: "get_metrics 7d", "tier:core 30d", "deploy forever".
        retention: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// The key of the audit log, and where its heads are written. Only your own file sets this section.
    [audit] = AuditConfig {
        /// The first key of the chain: a file, or systemd's "credential:NAME"; "" is audit.key in the state folder.
        key_file: String = String::new(), rule::own(Kind::Text);
        /// Where haft writes heads of the chain: a file to append to, or "stderr"; "" is nowhere.
        head_sink: String = String::new(), rule::own(Kind::Text);
    }

    /// Serving MCP clients (`haft mcp`). Only your own file sets this section.
    [mcp] = McpConfig {
        /// Who approves calls of MCP clients: haft's own queue, a form in the client, or the host program.
        approvals: McpApprovals = McpApprovals::Queue, rule::own(Kind::Level(MCP_APPROVALS));
        /// Origins of web pages that may use `haft mcp --http`, such as "http://localhost:*".
        allowed_origins: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// Detached calls, and the worker that runs them. Only your own file sets this section.
    [tasks] = TasksConfig {
        /// Hours that a task is kept after it ended; the record of its call stays.
        keep_hours: u64 = 24, rule::own(Kind::Count { min: 1, max: 30 * 24 });
        /// How many tasks the worker runs at once.
        max_running: u64 = 10, rule::own(Kind::Count { min: 1, max: 1_000 });
        /// Seconds within which a task must start; after that it fails and does not run.
        start_within_seconds: u64 = 60 * 60, rule::own(Kind::Count { min: 1, max: WEEK });
        /// Idle seconds after which the worker exits.
        worker_idle_seconds: u64 = 300, rule::own(Kind::Count { min: 1, max: WEEK });
    }

    /// Serving haft over HTTP (`haft serve`). Only your own file sets this section.
    [server] = ServerConfig with { oidc: OidcConfig } {
        /// The address to listen on, such as "127.0.0.1:8484"; "" is the unix socket alone.
        listen: String = String::new(), rule::own(Kind::Text);
        /// The certificate chain for TLS, a PEM file.
        tls_certificate: String = String::new(), rule::own(Kind::Text);
        /// Its key, a PEM file.
        tls_key: String = String::new(), rule::own(Kind::Text);
        /// Whether other machines may connect without TLS: only behind a proxy that encrypts.
        allow_plaintext: bool = false, rule::own(Kind::Switch);
        /// Whether one key or token may both make calls and approve them.
        invoke_and_approve: bool = false, rule::own(Kind::Switch);
        /// The largest request body, in bytes.
        max_body_bytes: u64 = 4 * MIB, rule::own(Kind::Count { min: 1024, max: GIB });
        /// The most open connections; more wait.
        max_connections: u64 = 4096, rule::own(Kind::Count { min: 1, max: 65_536 });
        /// The most open connections of one address; behind a proxy all connections come from one address.
        max_connections_per_address: u64 = 1024, rule::own(Kind::Count { min: 1, max: 65_536 });
        /// The most open requests and streams of one key.
        max_requests_per_key: u64 = 256, rule::own(Kind::Count { min: 1, max: 65_536 });
        /// The most open requests and streams of one tenant.
        max_requests_per_tenant: u64 = 1024, rule::own(Kind::Count { min: 1, max: 65_536 });
        /// The most open MCP sessions.
        max_mcp_sessions: u64 = 1024, rule::own(Kind::Count { min: 1, max: 100_000 });
        /// The most open MCP sessions of one key.
        max_mcp_sessions_per_key: u64 = 128, rule::own(Kind::Count { min: 1, max: 100_000 });
        /// Host names besides localhost that MCP clients may use, such as "haft.example.com".
        allowed_hosts: Vec<String> = Vec::new(), rule::own(Kind::Names);
        /// The public URL of this server, such as `https://haft.example.com`.
        resource: String = String::new(), rule::own(Kind::Text);
    }

    /// Tokens of an identity provider. Rights are scopes: haft:invoke, haft:approve, haft:operate.
    [server.oidc] = OidcConfig {
        /// The identity provider, exactly as its tokens name it; "" is none.
        issuer: String = String::new(), rule::own(Kind::Text);
        /// The audience that tokens for this server must have.
        audience: String = String::new(), rule::own(Kind::Text);
        /// A file with the provider's public keys (JWKS); haft re-reads it regularly.
        jwks_file: String = String::new(), rule::own(Kind::Text);
        /// The https URL of the JWKS; without it and a file, haft asks the issuer (OpenID Connect Discovery).
        jwks_url: String = String::new(), rule::own(Kind::Text);
        /// The claim that names the tenant.
        tenant_claim: String = "tenant".to_owned(), rule::own(Kind::Text);
        /// The claim that lists the roles.
        roles_claim: String = "roles".to_owned(), rule::own(Kind::Text);
    }

    /// Telemetry. Only your own file sets this section.
    [telemetry] = TelemetryConfig {
        /// The OTLP collector, such as "http://localhost:4318" or "https://…"; else OTEL_EXPORTER_OTLP_ENDPOINT.
        otlp_endpoint: String = String::new(), rule::own(Kind::Text);
        /// A file with certificates (PEM) that haft trusts for the collector, besides those of the machine.
        otlp_ca_file: String = String::new(), rule::own(Kind::Text);
        /// A file that only you can read with headers for the collector, "name: value" on each line.
        otlp_headers_file: String = String::new(), rule::own(Kind::Text);
    }

    /// How many calls run at once; rate limits, retries, circuit breaker and cache.
    [scheduling] = SchedulingConfig with {
        lanes: LanesConfig,
        retry: RetryConfig,
        quotas: QuotasConfig,
        breaker: BreakerConfig,
        cache: CacheConfig,
        repeat_guard: RepeatGuardConfig,
        adaptive_timeout: AdaptiveTimeoutConfig,
    } {
        /// The strategy of a batch that sets none: "sequential", "smart" or "parallel".
        strategy: Strategy = Strategy::Sequential, rule::level(STRATEGIES);
        /// Calls of a batch at once, unless the batch sets it.
        max_parallelism: u64 = 5, rule::at_most(1, 1_000);
        /// Rate limits: "agent 100/m", "tenant 1000/h", "tool:web_fetch 10/m", "all 10000/d".
        rates: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// How many calls run at once in one process, and how many may wait.
    [scheduling.lanes] = LanesConfig {
        /// Calls of one agent at once.
        per_agent: u64 = 10, rule::at_most(1, 10_000);
        /// Calls of one tenant at once; 0 is no limit.
        per_tenant: u64 = 0, rule::own(Kind::Count { min: 0, max: 100_000 });
        /// All calls at once; 0 is no limit.
        global: u64 = 0, rule::own(Kind::Count { min: 0, max: 100_000 });
        /// Calls of one tenant that may wait; haft refuses more.
        queue_per_tenant: u64 = 1024, rule::at_most(1, 1_000_000);
        /// Calls of all tenants that may wait; haft refuses more.
        queue_total: u64 = 65_536, rule::at_most(1, 10_000_000);
    }

    /// Retries of calls that change nothing, or whose tool is idempotent.
    [scheduling.retry] = RetryConfig {
        /// Retries of a single call.
        max_retries: u64 = 2, rule::at_most(0, 20);
        /// Retries of a call of a batch.
        batch_max_retries: u64 = 0, rule::at_most(0, 20);
        /// The longest wait before the first retry, in milliseconds; it doubles with each retry.
        base_ms: u64 = 1000, rule::own(Kind::Count { min: 1, max: 3_600_000 });
    }

    /// What a tenant may use in a day, counted per process; 0 is no limit.
    [scheduling.quotas] = QuotasConfig {
        /// Calls that start.
        calls_per_day: u64 = 0, rule::own(Kind::Count { min: 0, max: AMOUNT });
        /// CPU seconds.
        cpu_seconds_per_day: u64 = 0, rule::own(Kind::Count { min: 0, max: AMOUNT });
        /// Bytes of tool output and network traffic.
        bytes_per_day: u64 = 0, rule::own(Kind::Count { min: 0, max: AMOUNT });
        /// Quotas of single tenants, in place of those above: "acme calls=1000 cpu_seconds=600 bytes=9000".
        tenants: Vec<String> = Vec::new(), rule::own(Kind::Names);
    }

    /// The circuit breaker: it pauses a tool that keeps failing.
    [scheduling.breaker] = BreakerConfig {
        /// Whether there is a circuit breaker.
        enabled: bool = true, rule::switch_on();
        /// The failure rate in percent at which it opens.
        percent: u64 = 50, rule::own(Kind::Count { min: 1, max: 100 });
        /// How many of the last calls the failure rate is measured over.
        window: u64 = 100, rule::own(Kind::Count { min: 1, max: 10_000 });
        /// The fewest calls to measure over; at most window.
        min_calls: u64 = 10, rule::own(Kind::Count { min: 1, max: 10_000 });
        /// Seconds that the tool is paused.
        open_seconds: u64 = 60, rule::own(Kind::Count { min: 1, max: WEEK });
        /// Trial calls after the pause.
        trials: u64 = 10, rule::own(Kind::Count { min: 1, max: 10_000 });
    }

    /// The cache: stored results of tools that allow it.
    [scheduling.cache] = CacheConfig {
        /// Whether results are cached.
        enabled: bool = true, rule::switch_off();
        /// Seconds until a cached result expires.
        ttl_seconds: u64 = 300, rule::at_most(1, WEEK);
        /// Bytes of the whole cache.
        max_bytes: u64 = 64 * MIB, rule::at_most(1, 64 * GIB);
        /// The largest cached result, in bytes.
        max_result_bytes: u64 = MIB, rule::at_most(1, GIB);
    }

    /// The repeat guard: it stops a model that sends the same failing call again and again.
    [scheduling.repeat_guard] = RepeatGuardConfig {
        /// Whether there is a repeat guard.
        enabled: bool = true, rule::switch_on();
        /// The failure in a row from which on the error warns; at most stop_after.
        warn_at: u64 = 3, rule::at_most(1, 10_000);
        /// After this many failures in a row the call is not run again.
        stop_after: u64 = 5, rule::at_most(1, 10_000);
        /// Seconds until a failure is forgotten.
        forget_after_seconds: u64 = 600, rule::own(Kind::Count { min: 1, max: WEEK });
    }

    /// Adaptive timeouts: shorter ones for tools that have always been fast.
    [scheduling.adaptive_timeout] = AdaptiveTimeoutConfig {
        /// Whether timeouts adapt.
        enabled: bool = false, rule::switch_on();
        /// The fewest earlier calls of the tool.
        min_calls: u64 = 50, rule::own(Kind::Count { min: 1, max: 1_000_000 });
        /// The timeout is this many times the 99th percentile.
        factor: u64 = 4, rule::own(Kind::Count { min: 1, max: 1_000 });
        /// The shortest timeout, in milliseconds.
        floor_ms: u64 = 1000, rule::own(Kind::Count { min: 1, max: 3_600_000 });
    }
}

impl AuditConfig {
    /// The sink that is standard error.
    pub const STDERR: &str = "stderr";
}

/// Tools that read files and change nothing.
const ALLOWED_TOOLS: &[&str] = &["read_file", "list_directory", "glob", "search_files"];

/// Tools that run programs.
const DENIED_TOOLS: &[&str] = &["run_command", "start_command", "execute_code"];

/// Variables that tend to hold secrets.
const DENIED_VARIABLES: &[&str] =
    &["*_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "AWS_*", "ANTHROPIC_*", "OPENAI_*"];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}
