//! What a configuration allows, found out by trying.

use super::*;

/// Which files the file tools read and write.
pub(super) fn files(config: &Config, world: &World, found: &mut Behaviour) {
    found.allowed.extend(reached(config, world));
    let is_in_process = wiring::file_tools(config).isolation.is_none();
    found.may("file tools run in haft's own process", is_in_process);
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
pub(super) fn reached(config: &Config, world: &World) -> BTreeSet<String> {
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
pub(super) fn programs(config: &Config, world: &World, found: &mut Behaviour) {
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
    let commands = &config.tools.commands;
    found.may("a command runs before anybody is asked", commands.ask > haft_core::AskCommands::Before);
    found.may("what a command changed is applied unasked", commands.ask > haft_core::AskCommands::Effects);
    found.may(
        "a command writes where it cannot be staged",
        commands.writes > haft_core::CommandWrites::Staged,
    );
    found.may("a command writes to the files", commands.writes > haft_core::CommandWrites::StagedIfPossible);
    found.limits.insert("staged bytes", commands.staged_bytes);
    found.limits.insert("staged files", commands.staged_files);
    found.may("limits for each process do", config.tools.commands.per_process_limits);
    found.may("a program has unix sockets", config.tools.commands.unix_sockets);
    let variables = DeniedVariables::new(config.tools.environment.denylist.iter().cloned());
    for name in ["SHOWN", "MY_TOKEN", "AWS_REGION", "LANG"] {
        found.may(format!("a program may be given {name}"), variables.allow(name).is_ok());
    }
}

pub(super) fn network(config: &Config, _world: &World, found: &mut Behaviour) {
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
pub(super) fn calls(
    world: &World,
) -> Vec<(ToolDefinition, serde_json::Value, Footprint, Option<&'static str>)> {
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

pub(super) fn policy(config: &Config, world: &World, found: &mut Behaviour) {
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
            accepts: haft_core::port::AcceptAnswers::from_any(),
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
pub(super) fn secrets(config: &Config, _world: &World, found: &mut Behaviour) {
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

pub(super) fn engine(config: &Config, _world: &World, found: &mut Behaviour) {
    let (settings, around) = (wiring::settings(config), wiring::admission(config));
    found.may("calls run", settings.mode == ToolsMode::Enabled);
    found.may("calls are taken", settings.mode != ToolsMode::Disabled);
    found.may("calls of one answer run at the same time", settings.allow_parallel);
    found.may("arguments are converted", settings.coerce_arguments);
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

pub(super) fn tools(config: &Config, _world: &World, found: &mut Behaviour) {
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

pub(super) fn remembered(config: &Config, _world: &World, found: &mut Behaviour) {
    found.may(
        "a call goes on before it is on the disk",
        config.store.durability != crate::config::StoreDurability::Full,
    );
    for key in keys().iter().filter(|key| key.rule().tighter == Tighter::Nothing) {
        // In these a folder has no say, so what they come to is what it was.
        found.shared.insert(key.path(), key.get(config).to_string());
    }
}
