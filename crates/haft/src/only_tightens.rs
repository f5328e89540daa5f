//! A folder that nobody trusts only tightens: shown by what can be read, written, run, reached and stored, for every
//! key.
//!
//! `config_layers.rs` compares values. That is not enough: a shorter list of read-only folders looks like less, and
//! lets more be written. Here configurations are put to work, through the functions that decide in earnest.

use crate::config::{
    Config, FolderSource, Inputs, Key, Kind, SourceText, Tighter, ToolsConfig, Value, keys, parse, real_path,
    resolve,
};
use crate::{Folders, ToolDefinition, ToolsMode, commands, wiring};
use haft_core::{
    CallContext, Footprint, Resource,
    port::{Policy as _, Redactor as _, Subject, Verdict},
};
use haft_gate::{HostList, decide};
use haft_guard::{
    Covers, EnvironmentFilter, Grant, KnownSecrets, Lasts, MemoryGrants, NameCase, SecretPatterns, Secrets,
};
use haft_sdk::{capability::Workspace as _, files::Access};
use haft_tools::commands::DeniedVariables;
use proptest::prelude::*;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a key is looked at with: a tight and a loose value, and what else must be configured for the difference to
/// show.
struct Row {
    key: &'static str,
    tight: &'static str,
    loose: &'static str,
    around: &'static str,
}

const fn row(key: &'static str, tight: &'static str, loose: &'static str) -> Row {
    Row { key, tight, loose, around: "" }
}

/// Every key in which a folder has a say. One without a row fails the tests below; so does a row whose difference no
/// probe sees.
const ROWS: &[Row] = &[
    row("tools.mode", "'disabled'", "'enabled'"),
    row("tools.allow_parallel", "false", "true"),
    row("tools.max_tool_calls_per_batch", "1", "9"),
    row("tools.max_tool_iterations_per_user_turn", "1", "5"),
    row("tools.max_tool_args_bytes", "1000", "2000"),
    row("tools.max_listed", "1", "2"),
    row("tools.definitions", "[]", "[{ name = 'ask_desk', description = 'Asks at the desk' }]"),
    row("tools.files.denied_patterns", "['secrets/**']", "[]"),
    Row {
        around: "tools.files.allowed_roots = ['.', 'vendor']\n",
        ..row("tools.files.allow_absolute", "false", "true")
    },
    row("tools.files.include_default_denies", "true", "false"),
    row("tools.files.protected_names", "['deploy.sh']", "[]"),
    row("tools.files.unprotected_names", "[]", "['.vscode']"),
    row("tools.timeouts.default_seconds", "1", "31"),
    row("tools.timeouts.file_operations_seconds", "1", "31"),
    row("tools.timeouts.shell_commands_seconds", "1", "301"),
    row("tools.output.max_bytes", "256", "102401"),
    row("tools.output.redact_results", "true", "false"),
    row("tools.environment.denylist", "['SHOWN']", "[]"),
    row("tools.approval.enabled", "false", "true"),
    row("tools.approval.mode", "'deny'", "'auto'"),
    row("tools.approval.allowlist", "[]", "['write_file']"),
    row("tools.approval.denylist", "['deploy']", "[]"),
    row("tools.approval.prompt_side_effects", "true", "false"),
    row("tools.approval.accept_from", "[]", "['terminal']"),
    row("tools.approval.expire_seconds", "60", "61"),
    row("tools.read_file.max_file_read_bytes", "1", "2"),
    row("tools.read_file.max_scan_bytes", "1", "2"),
    row("tools.apply_patch.max_patch_bytes", "1", "2"),
    row("tools.list_directory.max_entries", "1", "2"),
    row("tools.list_directory.max_depth", "1", "2"),
    row("tools.list_directory.include_hidden_default", "false", "true"),
    row("tools.list_directory.include_files_default", "false", "true"),
    row("tools.list_directory.include_dirs_default", "false", "true"),
    row("tools.list_directory.include_symlinks_default", "false", "true"),
    row("tools.list_directory.include_other_default", "false", "true"),
    row("tools.fileops.allow_overwrite", "false", "true"),
    row("tools.delete.allow_delete_dirs", "false", "true"),
    row("tools.undo.max_file_bytes", "1", "2"),
    row("tools.flows.max_nodes", "1", "2"),
    row("tools.commands.isolation", "'restricted'", "'standard'"),
    row("tools.commands.hosts", "[]", "['*.example.com']"),
    row("tools.commands.presets", "[]", "['git']"),
    row("tools.commands.pass_environment", "[]", "['CARGO_PKG_NAME']"),
    row("tools.commands.memory_bytes", "1048576", "2097152"),
    row("tools.commands.cpu_seconds", "1", "2"),
    row("tools.commands.processes", "1", "2"),
    row("tools.commands.scratch_bytes", "1048576", "2097152"),
    row("tools.commands.max_memory_bytes", "0", "1099511627776"),
    row("tools.commands.max_cpu_seconds", "0", "604800"),
    row("tools.commands.max_processes", "0", "1000000"),
    row("tools.commands.max_scratch_bytes", "0", "1099511627776"),
    row("tools.commands.max_open_files", "0", "1000000"),
    row("tools.commands.per_process_limits", "false", "true"),
    row("tools.commands.unix_sockets", "false", "true"),
    row("tools.http.hosts", "[]", "['api.example.com']"),
    row("tools.http.private_hosts", "[]", "['localhost:8080']"),
    row("tools.mcp.connect_seconds", "1", "2"),
    row("tools.signatures.require_signatures", "true", "false"),
    Row {
        around: "tools.approval.mode = 'auto'\n",
        ..row("policy.rules", "[{ name = 'a', effect = 'deny', path = 'src/**' }]", "[]")
    },
    row("store.durability", "'full'", "'effects'"),
    row("scheduling.strategy", "'sequential'", "'parallel'"),
    row("scheduling.max_parallelism", "1", "2"),
    row("scheduling.lanes.per_agent", "1", "2"),
    row("scheduling.lanes.queue_per_tenant", "1", "2"),
    row("scheduling.lanes.queue_total", "1024", "1025"),
    row("scheduling.retry.max_retries", "0", "1"),
    row("scheduling.retry.batch_max_retries", "0", "1"),
    row("scheduling.breaker.enabled", "true", "false"),
    row("scheduling.cache.enabled", "false", "true"),
    row("scheduling.cache.ttl_seconds", "1", "2"),
    row("scheduling.cache.max_bytes", "1", "2"),
    row("scheduling.cache.max_result_bytes", "1", "2"),
    row("scheduling.repeat_guard.enabled", "true", "false"),
    row("scheduling.repeat_guard.warn_at", "1", "2"),
    row("scheduling.repeat_guard.stop_after", "5", "6"),
    row("scheduling.adaptive_timeout.enabled", "true", "false"),
];

/// A repository on the disk, and what lies beside it.
struct World {
    _folder: tempfile::TempDir,
    folders: Folders,
}

const FILES: &[&str] = &[
    "repo/src/a.rs",
    "repo/src/deep/b.rs",
    "repo/vendor/lib.c",
    "repo/vendor/own/x.c",
    "repo/vendor/src/a.rs",
    "repo/.git/config",
    "repo/.git/hooks/pre-commit",
    "repo/.env",
    "repo/secrets/key.txt",
    "repo/src/secrets/key.txt",
    "outside/o.txt",
];

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in FILES {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "x").unwrap();
        }
        World { folders: Folders::new(root.join("repo"), root.join("state")), _folder: folder }
    }

    fn inputs(&self, user: &str, folder: Option<&str>) -> Inputs {
        let source = |text: &str| SourceText::new(self.folders.working.join("haft.toml"), text);
        Inputs {
            user: Some(SourceText::new(self.folders.state.join("haft.toml"), user)),
            folder: folder.map(|text| FolderSource { source: source(text), pinned: false }),
            working_folder: self.folders.working.clone(),
            home: Some(self.folders.working.clone()),
            real_path,
            ..Inputs::default()
        }
    }
}

/// What a configuration comes to.
#[derive(Debug, Default, PartialEq)]
struct Behaviour {
    /// What can be done.
    allowed: BTreeSet<String>,
    /// How much of something.
    limits: BTreeMap<&'static str, u64>,
    /// What all folders of a user share: it may neither grow nor shrink.
    shared: BTreeMap<&'static str, String>,
}

impl Behaviour {
    fn may(&mut self, what: impl Into<String>, is_allowed: bool) {
        if is_allowed {
            self.allowed.insert(what.into());
        }
    }

    /// What this allows and the other does not.
    fn beyond(&self, other: &Behaviour) -> Vec<String> {
        let more = self.allowed.difference(&other.allowed).cloned();
        let higher = self
            .limits
            .iter()
            .filter(|(name, limit)| other.limits.get(*name).is_none_or(|most| *limit > most));
        let higher =
            higher.map(|(name, limit)| format!("{name} up to {limit}, not {:?}", other.limits.get(name)));
        let changed = self.shared.iter().filter(|(name, value)| other.shared.get(*name) != Some(value));
        let changed = changed.map(|(name, value)| format!("{name} is {value}, which other folders share"));
        more.chain(higher).chain(changed).collect()
    }
}

/// A part of what a configuration comes to: the settings that it depends on, and how it is found out.
type Probe = (fn(&Config) -> String, fn(&Config, &World, &mut Behaviour));

const PROBES: &[Probe] = &[
    (|config| format!("{:?}", (&config.tools.files, &config.tools.undo)), files),
    (
        |config| format!("{:?}", (&config.tools.commands, &config.tools.environment, &config.tools.files)),
        programs,
    ),
    (
        |config| format!("{:?}", (&config.tools.commands.hosts, &config.tools.http, &config.tools.mcp)),
        network,
    ),
    (|config| format!("{:?}", (&config.tools.approval, &config.policy)), policy),
    (|config| format!("{:?}", (&config.redaction, &config.tools.environment)), secrets),
    (|config| format!("{config:?}"), engine),
    (
        |config| {
            format!(
                "{:?}",
                ToolsConfig {
                    files: Default::default(),
                    approval: Default::default(),
                    ..config.tools.clone()
                }
            )
        },
        tools,
    ),
    (|config| format!("{config:?}"), remembered),
];

/// Worked out once for the same settings: most configurations here differ in a few, and patterns take a while to
/// compile.
fn behaviour(config: &Config, world: &World) -> Behaviour {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<(usize, PathBuf, String), Behaviour>> = RefCell::default();
    }
    let mut all = Behaviour::default();
    for (number, (settings, probe)) in PROBES.iter().enumerate() {
        let place = (number, world.folders.working.clone(), settings(config));
        KNOWN.with_borrow_mut(|known| {
            let found = known.entry(place).or_insert_with(|| {
                let mut found = Behaviour::default();
                probe(config, world, &mut found);
                found
            });
            all.allowed.extend(found.allowed.iter().cloned());
            all.limits.extend(&found.limits);
            all.shared.extend(found.shared.iter().map(|(name, value)| (*name, value.clone())));
        });
    }
    all
}

/// Which files the file tools read and write.
fn files(config: &Config, world: &World, found: &mut Behaviour) {
    found.allowed.extend(reached(config, world));
    let undo = &config.tools.undo;
    found.limits.insert("bytes of a file that is changed", undo.max_file_bytes);
    if let Ok(names) = wiring::protected_names(config) {
        for file in [".vscode/tasks.json", ".envrc", "deploy.sh", "one"] {
            found.may(format!("{file} is changed like any other"), names.reason(Path::new(file)).is_none());
        }
    }
    found.shared.insert("what can be undone", format!("{} {}", undo.max_records, undo.max_bytes));
}

/// What the file tools reach, by every name that one could try.
fn reached(config: &Config, world: &World) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roots = wiring::roots(config, &world.folders);
    // Where they cannot be had, nothing is reached.
    let Ok(files) = wiring::files(config, &world.folders, roots) else { return found };
    let base = world.folders.working.parent().unwrap();
    let mut names: BTreeSet<String> = BTreeSet::new();
    for file in FILES {
        names.insert(base.join(file).display().to_string());
        let parts: Vec<&str> = file.split('/').collect();
        names.extend((0..parts.len()).map(|from| parts[from..].join("/")));
        names.insert(format!("../{file}"));
        // One that is not there yet, beside it.
        names.insert(format!("{}.new", parts[1..].join("/")));
    }
    for name in &names {
        let how = if name.starts_with('/') { "absolutely" } else { "relatively" };
        for (access, word) in [(Access::Read, "read"), (Access::Write, "write")] {
            if let Ok(place) = files.locate(name, access) {
                found.insert(format!("{word} {} {how}", place.path));
            }
        }
    }
    found
}

/// What programs are granted.
fn programs(config: &Config, world: &World, found: &mut Behaviour) {
    // What cannot be granted is not.
    let Ok(spec) = commands::template(config, &world.folders) else { return };
    let level = ["restricted", "strict", "standard"].iter().position(|level| {
        Value::Level(level) == crate::config::key("tools.commands.isolation").unwrap().get(config)
    });
    found.limits.insert("how loose jails are", level.map_or(u64::MAX, |level| level as u64));
    let base = world.folders.working.parent().unwrap();
    let depth = |roots: &[PathBuf], path: &Path| {
        roots.iter().filter(|root| path.starts_with(root)).map(|root| root.components().count()).max()
    };
    for file in FILES {
        let path = base.join(file);
        let (writes, reads) = (depth(&spec.writable, &path), depth(&spec.readable, &path));
        found.may(format!("a program sees {file}"), writes.or(reads).is_some());
        found.may(format!("a program writes {file}"), writes > reads);
        // A repository is protected where its `.git` lies in what is granted, not where it is what is granted.
        let is_inside_git = |root: &PathBuf| root.components().any(|part| part.as_os_str() == ".git");
        found.may("a program is granted a repository's inside", spec.writable.iter().any(is_inside_git));
    }
    for pattern in ["**/.env", "**/.ssh/**", "secrets/**", "**/x"] {
        found.may(
            format!("a program sees what {pattern} matches"),
            !spec.denied.iter().any(|denied| denied == pattern),
        );
    }
    for name in spec.environment.keys() {
        found.may(format!("a program gets {name}"), true);
    }
    for preset in &spec.presets {
        found.may(format!("a program has the preset {preset:?}"), true);
    }
    let limits = &spec.limits;
    for (name, limit) in [
        ("memory", limits.memory_bytes),
        ("seconds on a core", limits.cpu_time.map(|time| time.as_secs())),
        ("processes", limits.processes.map(u64::from)),
        ("scratch", limits.scratch_bytes),
    ] {
        found.limits.insert(name, limit.unwrap_or(u64::MAX));
    }
    for (name, most) in commands::ceiling(&config.tools.commands).numbers() {
        found.limits.insert(name, most.unwrap_or(u64::MAX));
    }
    found.may("limits for each process do", config.tools.commands.per_process_limits);
    found.may("a program has unix sockets", config.tools.commands.unix_sockets);
    let variables = DeniedVariables::new(config.tools.environment.denylist.iter().cloned());
    for name in ["SHOWN", "MY_TOKEN", "AWS_REGION", "LANG"] {
        found.may(format!("a program may be given {name}"), variables.allow(name).is_ok());
    }
}

fn network(config: &Config, _world: &World, found: &mut Behaviour) {
    let lists = [("a program", &config.tools.commands.hosts), ("an HTTP tool", &config.tools.http.hosts)];
    for (who, hosts) in lists {
        let all = who == "a program" && *hosts == ["*"];
        let Ok(list) = HostList::parse(if all { &[] } else { &hosts[..] }) else { continue };
        for host in ["crates.io", "api.example.com", "example.com", "evil.example", "a.b.example.com"] {
            for port in [80, 443, 8443] {
                found.may(format!("{who} reaches {host}:{port}"), all || decide(host, port, &list).is_ok());
            }
        }
    }
    for host in &config.tools.http.private_hosts {
        found.may(format!("an HTTP tool reaches {host}, here"), true);
    }
    found.limits.insert("seconds for an MCP server", config.tools.mcp.connect_seconds);
}

/// Calls that are tried: a tool, what it touches, whether it asks by itself or about this very call.
fn calls(world: &World) -> Vec<(ToolDefinition, serde_json::Value, Footprint, Option<&'static str>)> {
    let below = |path: &str| Resource::path(world.folders.working.join(path).display().to_string());
    let tool = |name: &str, effects: bool| {
        let mut definition = ToolDefinition::new(name, "A tool");
        definition.constraints.allow_side_effects = effects;
        definition
    };
    let mut deploy = tool("deploy", true);
    deploy.requires_confirmation = true;
    let json = |path: &str| serde_json::json!({ "path": path });
    let run = |command: &str| serde_json::json!({ "command": command });
    vec![
        (tool("read_file", false), json("src/a.rs"), Footprint::reads([below("src/a.rs")]), None),
        (tool("glob", false), json("."), Footprint::reads([below(".")]), None),
        (tool("write_file", true), json("src/a.rs"), Footprint::writes([below("src/a.rs")]), None),
        (
            tool("write_file", true),
            json("x.md"),
            Footprint::writes([below("x.md")]),
            Some("it replaces a file"),
        ),
        (tool("run_command", true), run("cargo test"), Footprint::undeclared(true), None),
        (tool("run_command", true), run("rm -rf ."), Footprint::undeclared(true), None),
        (deploy, json("."), Footprint::undeclared(true), None),
    ]
}

fn policy(config: &Config, world: &World, found: &mut Behaviour) {
    let calls = calls(world);
    let set = |grants: Vec<Grant>| {
        let definitions = calls.iter().map(|(definition, ..)| definition);
        crate::guards::policy_set(wiring::policy(config), config.policy.rules.clone(), definitions)
            .map(|set| set.with_grant_source(Arc::new(MemoryGrants::new(grants))))
    };
    // Rules that cannot be used keep haft from starting.
    let Ok(plain) = set(Vec::new()) else { return };
    let context = CallContext::new("acme", "agent");
    let subjects: Vec<Subject<'_>> = calls
        .iter()
        .map(|(definition, arguments, footprint, confirm)| Subject {
            context: &context,
            definition,
            arguments: arguments.as_object().unwrap(),
            footprint,
            folder: "/w",
            confirm: *confirm,
            now: jiff::Timestamp::from_second(1_000).unwrap(),
        })
        .collect();
    let suggested = |subject| Covers::suggestions(subject, "summary", haft_guard::command::Shell::Posix);
    let grants = subjects.iter().flat_map(suggested);
    let grants = grants.map(|covers| Grant::new("g", "acme", covers, Lasts::Always)).collect();
    let granted = set(grants).unwrap();
    for (number, subject) in subjects.iter().enumerate() {
        for (set, when) in [(&plain, ""), (&granted, ", granted earlier")] {
            let name = format!("call {number} of {}{when}", subject.definition.name);
            let verdict = set.decide(subject);
            found.may(format!("{name}, unasked"), matches!(verdict, Ok(Verdict::Allow { .. })));
            let at_all = matches!(verdict, Ok(Verdict::Allow { .. } | Verdict::Ask { .. }));
            found.may(format!("{name}, at all"), at_all);
            // For a call that nobody has to confirm it means nothing.
            let confirmed = matches!(verdict, Ok(Verdict::Allow { confirmed: true, .. }));
            let wanted = subject.confirm.is_some() || subject.definition.requires_confirmation;
            found.may(format!("{name}, as confirmed"), wanted && confirmed);
        }
        // Where a call runs unasked, remembering an answer spares no more than that.
        let offers = match plain.decide(subject) {
            Ok(Verdict::Allow { .. }) => suggested(subject).iter().filter_map(Covers::offer).collect(),
            Ok(Verdict::Ask { .. } | Verdict::Deny { .. }) | Err(_) => plain.offers(subject, "summary"),
        };
        for offer in offers {
            found.may(format!("call {number}: {} can be remembered", offer.words), true);
        }
    }
    let settings = wiring::settings(config);
    for channel in haft_core::Channel::CONFIGURABLE {
        found.may(format!("answers from {channel}"), settings.accept_answers.counts(channel));
    }
    found.limits.insert("seconds that a yes holds", settings.approval_expiry.as_secs());
}

/// Which secrets are taken out.
fn secrets(config: &Config, _world: &World, found: &mut Behaviour) {
    // Patterns that cannot be read keep haft from starting.
    let Ok(patterns) = SecretPatterns::new(&config.redaction.patterns) else { return };
    let redactor = Secrets::results(KnownSecrets::default()).with_patterns(patterns);
    for text in ["acme_abcd1234", "other_123456"] {
        found.may(format!("{text} is shown"), &*redactor.redact(text.as_bytes()) == text.as_bytes());
    }
    let filter = EnvironmentFilter::new(config.secret_variables(), NameCase::of_this_system());
    for name in ["SHOWN", "MY_TOKEN", "one", "LANG"] {
        let (_, held_back) = filter.split([(name, "value")]);
        found.may(format!("the value of {name} is shown"), held_back.is_empty());
    }
}

fn engine(config: &Config, _world: &World, found: &mut Behaviour) {
    let (settings, around) = (wiring::settings(config), wiring::admission(config));
    found.may("calls run", settings.mode == ToolsMode::Enabled);
    found.may("calls are taken", settings.mode != ToolsMode::Disabled);
    found.may("calls of one answer run at the same time", settings.allow_parallel);
    for tool in &config.tools.definitions {
        found.may(format!("a model is told of {}", tool.definition().name), true);
    }
    let strategy = match config.scheduling.strategy {
        haft_core::Strategy::Sequential => 0,
        haft_core::Strategy::Smart => 1,
        haft_core::Strategy::Parallel => 2,
    };
    let lanes = around.lanes.unwrap();
    let most = |number: Option<usize>| number.map_or(u64::MAX, |number| number as u64);
    for (name, limit) in [
        ("how much of a batch overlaps", strategy),
        ("calls of a batch at once", config.scheduling.max_parallelism),
        ("calls of an answer", settings.max_calls_per_answer as u64),
        ("answers with calls", config.tools.max_tool_iterations_per_user_turn),
        ("bytes of arguments", settings.max_args_bytes as u64),
        ("tools that are listed", settings.max_listed_tools as u64),
        ("retries", u64::from(settings.retry.max_retries)),
        ("retries in a batch", u64::from(settings.batch_retry.max_retries)),
        ("seconds of a call", settings.default_timeout.as_secs()),
        ("bytes that a model sees", settings.max_output_bytes as u64),
        ("nodes of a flow", config.tools.flows.max_nodes),
        ("calls of an agent at once", most(lanes.per_agent)),
        ("calls of a tenant at once", most(lanes.per_tenant)),
        ("calls at once", most(lanes.global)),
        ("calls of a tenant that wait", lanes.queue_per_tenant as u64),
        ("calls that wait", lanes.queue_total as u64),
    ] {
        found.limits.insert(name, limit);
    }
    found.may("a tool that keeps failing goes on", around.breaker.is_none());
    found.may("the same failure is repeated for ever", around.repeat_guard.is_none());
    found.may("every tool has its whole time", around.adaptive_timeout.is_none());
    if let Some(guard) = around.repeat_guard {
        found.limits.insert("failures before a warning", u64::from(guard.warn_at));
        found.limits.insert("failures before the end", u64::from(guard.stop_after));
    } else {
        found.limits.extend([("failures before a warning", u64::MAX), ("failures before the end", u64::MAX)]);
    }
    found.may("results are stored", around.cache.is_some());
    let (ttl, all, one) = around
        .cache
        .map_or((0, 0, 0), |cache| (cache.ttl.as_secs(), cache.max_bytes, u64::from(cache.max_result_bytes)));
    found.limits.extend([
        ("seconds that a result answers", ttl),
        ("bytes of results", all),
        ("bytes of a result", one),
    ]);
    found.may("secrets are shown", !config.tools.output.redact_results);
    found.may("tools without a signature", !config.tools.signatures.require_signatures);
}

fn tools(config: &Config, _world: &World, found: &mut Behaviour) {
    let tools = wiring::file_tools(config);
    let list = &tools.list_directory;
    for (name, is_allowed) in [
        ("hidden files are listed", list.include_hidden_default),
        ("files are listed", list.include_files_default),
        ("folders are listed", list.include_dirs_default),
        ("links are listed", list.include_symlinks_default),
        ("devices are listed", list.include_other_default),
        ("a copy replaces", tools.copy_file.allow_overwrite),
        ("a move replaces", tools.move_file.allow_overwrite),
        ("folders are deleted", tools.delete_file.allow_delete_dirs),
    ] {
        found.may(name, is_allowed);
    }
    let commands = wiring::command_tools(config);
    for (name, limit) in [
        ("bytes that are read", tools.read_file.max_file_read_bytes as u64),
        ("bytes that are scanned", tools.read_file.max_scan_bytes as u64),
        ("entries of a list", list.max_entries as u64),
        ("depth of a list", u64::from(list.max_depth)),
        ("bytes of a patch", tools.apply_patch.max_patch_bytes as u64),
        ("seconds with files", tools.timeout.map_or(u64::MAX, |timeout| timeout.as_secs())),
        ("seconds of a command", commands.timeout.map_or(u64::MAX, |timeout| timeout.as_secs())),
    ] {
        found.limits.insert(name, limit);
    }
}

fn remembered(config: &Config, _world: &World, found: &mut Behaviour) {
    found.may(
        "a call goes on before it is on the disk",
        config.store.durability != crate::config::StoreDurability::Full,
    );
    for key in keys().iter().filter(|key| key.rule().tighter == Tighter::Nothing) {
        // In these a folder has no say, so what they come to is what it was.
        found.shared.insert(key.path(), key.get(config).to_string());
    }
}

fn line(key: &str, value: &str) -> String {
    format!("{key} = {value}\n")
}

fn has_say(key: &&Key) -> bool {
    key.rule().tighter != Tighter::Nothing
}

#[test]
fn every_key_is_looked_at_and_every_loosening_is_seen() {
    let world = World::new();
    let missing: Vec<_> = keys()
        .iter()
        .filter(has_say)
        .map(Key::path)
        .filter(|path| ROWS.iter().all(|row| row.key != *path))
        .collect();
    assert!(missing.is_empty(), "without a row in ROWS, and perhaps without a probe: {missing:?}");
    for Row { key, tight, loose, around } in ROWS {
        let config = |value: &str| {
            let text = format!("{around}{}", line(key, value));
            resolve(&world.inputs(&text, None)).unwrap_or_else(|error| panic!("{key}: {error}")).config
        };
        let (tight, loose) = (behaviour(&config(tight), &world), behaviour(&config(loose), &world));
        assert!(!loose.beyond(&tight).is_empty(), "no probe sees what `{key}` loosens");
        assert!(tight.beyond(&loose).is_empty(), "`{key}`: {:?}", tight.beyond(&loose));
    }
}

/// The findings: what looked like less and was more.
#[test]
fn roots_of_a_folder_loosen_nothing() {
    let world = World::new();
    let own = [
        "tools.files.read_only_roots = ['vendor']\n",
        "tools.files.read_only_roots = ['vendor']\ntools.files.allowed_roots = ['.', 'vendor/own']\n",
        "tools.files.denied_patterns = ['secrets/**']\n",
        "",
    ];
    let folder = [
        "tools.files.read_only_roots = []\n",
        "tools.files.read_only_roots = ['vendor/own']\n",
        "tools.files.allowed_roots = ['vendor']\n",
        "tools.files.allowed_roots = ['vendor/src']\n",
        "tools.files.allowed_roots = ['.git']\n",
        "tools.files.allowed_roots = ['secrets']\n",
        "tools.files.allowed_roots = ['src']\n",
        "tools.undo.max_records = 1\n",
        "tools.undo.max_bytes = 1\n",
    ];
    for own in own {
        let before = behaviour(&resolve(&world.inputs(own, None)).unwrap().config, &world);
        for folder in folder {
            let with = behaviour(&resolve(&world.inputs(own, Some(folder))).unwrap().config, &world);
            assert_eq!(with.beyond(&before), Vec::<String>::new(), "{own}{folder}");
            // The control: as the owner's own word it is seen to be more, or nothing at all.
            let trusted = format!("{own}{folder}");
            if let Ok(config) = parse(&trusted) {
                let differs = behaviour(&config, &world) != before;
                assert!(differs || own.contains(folder) || before == with, "{trusted}");
            }
        }
    }
    // What the probes would have seen.
    let own = "tools.files.read_only_roots = ['vendor']\n";
    let before = behaviour(&resolve(&world.inputs(own, None)).unwrap().config, &world);
    for loosens in ["tools.files.read_only_roots = []\n", "tools.files.read_only_roots = ['vendor/own']\n"] {
        let after = behaviour(&resolve(&world.inputs(loosens, None)).unwrap().config, &world);
        assert!(after.beyond(&before).iter().any(|what| what.starts_with("write ")), "{loosens}");
    }
}

/// Both lists may name the same folder: then it is read-only, for file tools and programs alike.
#[test]
fn a_folder_in_both_lists_is_read_only() {
    let world = World::new();
    for allowed in ["['.', 'vendor']", "['vendor', '.']"] {
        let text =
            format!("tools.files.allowed_roots = {allowed}\ntools.files.read_only_roots = ['vendor']\n");
        let found = behaviour(&resolve(&world.inputs(&text, None)).unwrap().config, &world);
        let file = world.folders.working.join("vendor/lib.c");
        let can = |word: &str| found.allowed.contains(&format!("{word} {} relatively", file.display()));
        assert!(can("read") && !can("write"), "{allowed}: {found:?}");
        assert!(!found.allowed.contains("a program writes repo/vendor/lib.c"), "{allowed}: {found:?}");
        assert!(found.allowed.contains("a program sees repo/vendor/lib.c"), "{allowed}: {found:?}");
    }
}

/// Values of a key, as they stand in a file.
fn any_value(key: &'static Key) -> BoxedStrategy<String> {
    let list = |entries: &'static [&'static str], least: usize| {
        prop::sample::subsequence(entries, least..=entries.len())
            .prop_shuffle()
            .prop_map(|entries| format!("[{}]", entries.join(", ")))
            .boxed()
    };
    match (key.path(), key.rule().kind) {
        ("tools.files.allowed_roots", _) => {
            list(&["'.'", "'src'", "'vendor'", "'.git'", "'../outside'", "'secrets'", "'vendor/own'"], 1)
        }
        ("tools.files.read_only_roots", _) => {
            list(&["'.'", "'src'", "'vendor'", "'.git'", "'../outside'", "'vendor/own'"], 0)
        }
        ("tools.files.denied_patterns", _) => {
            list(&["'secrets/**'", "'**/x'", "'src/**'", "'*.rs'", "'**/.env'"], 0)
        }
        ("tools.files.protected_names", _) => list(&["'deploy.sh'", "'one'"], 0),
        ("tools.files.unprotected_names", _) => list(&["'.vscode'", "'.envrc'"], 0),
        ("redaction.patterns", _) => list(&["'acme: acme_[a-z0-9]{8}'", "'other: other_[0-9]{6}'"], 0),
        ("tools.environment.denylist", _) => list(&["'SHOWN'", "'LA*'", "'MY_*'"], 0),
        ("tools.commands.hosts", _) => prop_oneof![
            Just("['*']".to_owned()),
            list(&["'crates.io'", "'*.example.com'", "'api.example.com:8443'", "'evil.example'"], 0)
        ]
        .boxed(),
        ("tools.http.hosts", _) => {
            list(&["'crates.io'", "'*.example.com'", "'api.example.com:8443'", "'evil.example'"], 0)
        }
        ("tools.http.private_hosts", _) => list(&["'localhost:8080'", "'localhost:9090'"], 0),
        ("tools.commands.presets", _) => list(&["'rust'", "'node'", "'python'", "'git'"], 0),
        ("tools.commands.pass_environment", _) => list(&["'CARGO_PKG_NAME'", "'USER'", "'PWD'"], 0),
        ("tools.approval.accept_from", _) => list(&["'terminal'", "'command_line'", "'http'", "'mcp'"], 0),
        ("tools.approval.allowlist" | "tools.approval.denylist", _) => {
            list(&["'read_file'", "'write_file'", "'run_command'", "'deploy'", "'GLOB'", "'glob'"], 0)
        }
        // They must fit each other.
        ("scheduling.breaker.window", _) => Just("100".to_owned()).boxed(),
        ("scheduling.breaker.min_calls", _) => Just("10".to_owned()).boxed(),
        ("scheduling.lanes.queue_per_tenant", _) => {
            (1..=1024_u64).prop_map(|number| number.to_string()).boxed()
        }
        ("scheduling.lanes.queue_total", _) => {
            (1024..=99_999_u64).prop_map(|number| number.to_string()).boxed()
        }
        ("scheduling.repeat_guard.warn_at", _) => (1..=3_u64).prop_map(|number| number.to_string()).boxed(),
        ("scheduling.repeat_guard.stop_after", _) => {
            (3..=9_u64).prop_map(|number| number.to_string()).boxed()
        }
        ("scheduling.rates", _) => list(&["'agent 100/m'", "'all 10/s'"], 0),
        ("scheduling.quotas.tenants", _) => list(&["'acme calls=1'", "'other bytes=2'"], 0),
        (_, Kind::Switch) => any::<bool>().prop_map(|on| on.to_string()).boxed(),
        (_, Kind::Count { min, max }) => {
            let Value::Count(default) = key.default_value() else { panic!("`{}` is no count", key.path()) };
            prop_oneof![Just(min), Just(default), min..=default.max(min), min..=max]
                .prop_map(|number| number.to_string())
                .boxed()
        }
        (_, Kind::Level(choices)) => {
            prop::sample::select(choices).prop_map(|choice| format!("'{choice}'")).boxed()
        }
        (_, Kind::Text) => "[a-z]{0,6}".prop_map(|text| format!("'{text}'")).boxed(),
        (_, Kind::Names) => list(&["'one'", "'two'"], 0),
        (_, Kind::Folders) => list(&["'.'", "'src'"], 1),
        (_, Kind::Tools) => {
            list(&["{ name = 'a', description = 'A' }", "{ name = 'b', description = 'B' }"], 0)
        }
        (_, Kind::Rules) => list(
            &[
                "{ name = 'a', effect = 'deny', tool = 'deploy' }",
                "{ name = 'b', effect = 'ask', path = 'src/**', remember = true }",
                "{ name = 'c', effect = 'allow', command = 'cargo test', confirms = true }",
                "{ name = 'd', effect = 'allow', tool = 'write_file' }",
                "{ name = 'e', effect = 'ask', tool = 'run_command' }",
                "{ name = 'f', effect = 'deny', command = 'rm' }",
                "{ name = 'g', effect = 'ask', tool = 'deploy', remember = true }",
                "{ name = 'h', effect = 'ask', command = 'cargo', remember = true }",
            ],
            0,
        ),
    }
}

/// A file that sets some keys.
fn any_file() -> impl Strategy<Value = String> {
    let lines: Vec<_> = keys()
        .iter()
        .map(|key| {
            prop::option::weighted(0.4, any_value(key))
                .prop_map(|value| value.map_or_else(String::new, |value| line(key.path(), &value)))
        })
        .collect();
    lines.prop_map(|lines| lines.concat())
}

/// One key at a time, so that nothing hides behind something else; every key, some times over.
#[test]
fn no_single_key_loosens() {
    let world = World::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for key in keys() {
        for round in 0..6 {
            let mut any = || any_value(key).new_tree(&mut runner).unwrap().current();
            let (own, folder) = (any(), any());
            let around = match round % 2 == 0 || key.path().starts_with("tools.approval.") {
                true => "",
                false => "tools.approval.mode = 'auto'\ntools.approval.prompt_side_effects = false\n",
            };
            let own = format!("{around}{}", line(key.path(), &own));
            let before = resolve(&world.inputs(&own, None)).unwrap().config;
            let after = resolve(&world.inputs(&own, Some(&line(key.path(), &folder)))).unwrap().config;
            let beyond = behaviour(&after, &world).beyond(&behaviour(&before, &world));
            assert!(beyond.is_empty(), "{beyond:#?}\nown:\n{own}\nfolder:\n{} = {folder}", key.path());
        }
    }
}

thread_local! {
    static WORLD: World = World::new();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_both_allow_is_part_of_what_the_owner_allows(own in any_file(), folder in any_file()) {
        WORLD.with(|world| {
            let before = resolve(&world.inputs(&own, None)).unwrap().config;
            let after = resolve(&world.inputs(&own, Some(&folder))).unwrap().config;
            let beyond = behaviour(&after, world).beyond(&behaviour(&before, world));
            prop_assert!(beyond.is_empty(), "{beyond:#?}\nown:\n{own}\nfolder:\n{folder}");
            Ok(())
        })?;
    }
}
