//! What counts from where: the layers of configuration, and the rule that a folder may only tighten.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_config::{
    Config, Configured, Effect, FolderSource, FromFolder, Inputs, Key, Kind, Note, Place, Resolved,
    SourceText, Tighter, Value, explain, key, keys, lexical_path, parse, resolve, template,
};
use haft_core::{ApprovalMode, ToolsMode};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

const TOOL: &str = "{ name = 'ask_desk', description = 'Asks at the desk' }";

const DENIES: &str = "[{ name = 'a', effect = 'deny', tool = 'x' }]";
const ALLOWS: &str = "[{ name = 'b', effect = 'allow', tool = 'x' }]";

/// Rules are added in every layer, and know where they stand: they have tests of their own.
fn is_plain(key: &&Key) -> bool {
    key.rule().kind != Kind::Rules
}

/// For each key a tight and a loose value, as they stand in a file. A key without a line here fails the tests
/// below.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("tools.mode", "'parse_only'", "'enabled'"),
    ("tools.allow_parallel", "false", "true"),
    ("tools.max_tool_calls_per_batch", "8", "9"),
    ("tools.max_tool_iterations_per_user_turn", "1", "5"),
    ("tools.max_tool_args_bytes", "262144", "262145"),
    ("tools.coerce_arguments", "false", "true"),
    ("tools.max_listed", "20", "500"),
    ("tools.definitions", "[]", "[{ name = 'ask_desk', description = 'Asks at the desk' }]"),
    ("tools.files.allowed_roots", "['/repo/src', '/repo/docs']", "['/repo']"),
    ("tools.files.read_only_roots", "[]", "['/elsewhere']"),
    ("tools.files.denied_patterns", "['**/a', '**/b']", "['**/a']"),
    ("tools.files.allow_absolute", "false", "true"),
    ("tools.files.include_default_denies", "true", "false"),
    ("tools.files.protected_names", "['a', 'b']", "['a']"),
    ("tools.files.unprotected_names", "[]", "['.vscode']"),
    ("tools.timeouts.default_seconds", "30", "31"),
    ("tools.timeouts.file_operations_seconds", "1", "604800"),
    ("tools.timeouts.shell_commands_seconds", "300", "301"),
    ("tools.output.max_bytes", "256", "102401"),
    ("tools.output.redact_results", "true", "false"),
    ("tools.flows.max_nodes", "10", "101"),
    ("tools.environment.denylist", "['MY_*']", "[]"),
    ("tools.approval.enabled", "false", "true"),
    ("tools.approval.mode", "'prompt'", "'auto'"),
    ("tools.approval.allowlist", "['glob']", "['glob', 'deploy']"),
    ("tools.approval.denylist", "['run_command', 'deploy']", "['run_command']"),
    ("tools.approval.prompt_side_effects", "true", "false"),
    ("tools.approval.accept_from", "[\"terminal\"]", "[\"terminal\", \"command_line\", \"http\"]"),
    ("tools.approval.expire_seconds", "60", "172800"),
    ("tools.approval.wait_seconds", "50", "51"),
    ("tools.read_file.max_file_read_bytes", "204800", "204801"),
    ("tools.read_file.max_scan_bytes", "2097152", "2097153"),
    ("tools.apply_patch.max_patch_bytes", "524288", "524289"),
    ("tools.list_directory.max_entries", "200", "201"),
    ("tools.list_directory.max_depth", "4", "5"),
    ("tools.list_directory.include_hidden_default", "false", "true"),
    ("tools.list_directory.include_files_default", "false", "true"),
    ("tools.list_directory.include_dirs_default", "false", "true"),
    ("tools.list_directory.include_symlinks_default", "false", "true"),
    ("tools.list_directory.include_other_default", "false", "true"),
    ("tools.fileops.allow_overwrite", "false", "true"),
    ("tools.delete.allow_delete_dirs", "false", "true"),
    ("tools.undo.max_records", "1000", "1001"),
    ("tools.undo.max_bytes", "1", "536870913"),
    ("tools.undo.max_file_bytes", "134217728", "134217729"),
    ("tools.files.isolation", "'strict'", "'none'"),
    ("tools.commands.isolation", "'restricted'", "'strict'"),
    ("tools.commands.isolation_technology", "'auto'", "'process'"),
    ("tools.commands.sandbox_base_dir", "'/var/lib/jails'", "'/var/lib/sandboxes'"),
    ("tools.commands.hosts", "[]", "['crates.io']"),
    ("tools.commands.presets", "['git']", "['git', 'rust']"),
    ("tools.commands.pass_environment", "[]", "['CI']"),
    ("tools.commands.memory_bytes", "1073741824", "1073741825"),
    ("tools.commands.cpu_millicores", "500", "501"),
    ("tools.commands.cpu_seconds", "300", "301"),
    ("tools.commands.processes", "256", "257"),
    ("tools.commands.scratch_bytes", "1048576", "268435457"),
    ("tools.commands.max_memory_bytes", "0", "1"),
    ("tools.commands.max_cpu_seconds", "0", "1"),
    ("tools.commands.max_processes", "0", "1"),
    ("tools.commands.max_scratch_bytes", "0", "1"),
    ("tools.commands.max_open_files", "0", "1"),
    ("policy.profile", "'locked'", "'coding'"),
    ("tools.commands.ask", "'before'", "'effects'"),
    ("tools.commands.writes", "'staged'", "'live'"),
    ("tools.commands.staged_bytes", "1048576", "4294967297"),
    ("tools.commands.staged_files", "1", "1000001"),
    ("tools.commands.staged_keep_hours", "168", "169"),
    ("tools.commands.cache_bytes", "1048576", "2097152"),
    ("tools.commands.per_process_limits", "false", "true"),
    ("tools.commands.unix_sockets", "false", "true"),
    ("tools.http.hosts", "[]", "['api.example.com']"),
    ("tools.http.private_hosts", "[]", "['localhost:8080']"),
    ("tools.mcp.connect_seconds", "5", "60"),
    ("tools.signatures.require_signatures", "true", "false"),
    ("tools.signatures.trusted_keys", "[]", "['ed25519:AAAA']"),
    ("policy.rules", DENIES, ALLOWS),
    ("redaction.patterns", "['a: abcd[0-9]+', 'b: bcde[0-9]+']", "[]"),
    ("redaction.values_from_environment", "['MY_*']", "[]"),
    ("redaction.values_file", "'/here'", "'/elsewhere'"),
    ("permissions.roles", "[]", "['auditor: *']"),
    ("permissions.agents", "[{ name = 'a', tools = [] }]", "[]"),
    ("permissions.local_roles", "['viewer']", "[]"),
    ("license.authority", "'ed25519:AAAA'", "'ed25519:BBBB'"),
    ("license.file", "'/here'", "'/elsewhere'"),
    ("store.backend", "'sqlite'", "'postgres'"),
    ("store.url", "'env:HAFT_DATABASE'", "'file:/elsewhere'"),
    ("store.allow_layout_change", "false", "true"),
    ("store.durability", "'full'", "'effects'"),
    ("store.audit_input", "false", "true"),
    ("store.keep_results_days", "30", "0"),
    ("store.keep_outputs_days", "30", "1"),
    ("store.max_output_bytes", "1073741824", "1048576"),
    ("store.keep_audit_days", "0", "1"),
    ("store.retention", "[]", "['deploy 1d']"),
    ("audit.key_file", "'credential:audit'", "'/elsewhere'"),
    ("audit.head_sink", "'/var/log/haft/heads.jsonl'", "'stderr'"),
    ("mcp.approvals", "'queue'", "'host'"),
    ("mcp.allowed_origins", "[]", "['https://evil.example:443']"),
    ("tasks.keep_hours", "24", "25"),
    ("tasks.max_running", "10", "11"),
    ("tasks.start_within_seconds", "3600", "3601"),
    ("tasks.worker_idle_seconds", "300", "301"),
    ("server.listen", "'127.0.0.1:8484'", "'0.0.0.0:80'"),
    ("server.tls_certificate", "'/here.pem'", "'/elsewhere.pem'"),
    ("server.tls_key", "'/here.pem'", "'/elsewhere.pem'"),
    ("server.allow_plaintext", "false", "true"),
    ("server.invoke_and_approve", "false", "true"),
    ("server.max_body_bytes", "4194304", "8388608"),
    ("server.max_connections", "4096", "8192"),
    ("server.max_connections_per_address", "1024", "2048"),
    ("server.max_requests_per_key", "256", "512"),
    ("server.max_requests_per_tenant", "1024", "2048"),
    ("server.max_mcp_sessions", "1024", "2048"),
    ("server.max_mcp_sessions_per_key", "128", "256"),
    ("server.allowed_hosts", "[]", "['evil.example']"),
    ("server.resource", "'https://haft.example'", "'https://evil.example'"),
    ("server.oidc.issuer", "'https://id.example'", "'https://evil.example'"),
    ("server.oidc.audience", "'haft'", "'x'"),
    ("server.oidc.jwks_file", "'/here.json'", "'/elsewhere.json'"),
    ("server.oidc.jwks_url", "'https://id.example/keys'", "'https://evil.example/keys'"),
    ("server.oidc.tenant_claim", "'tenant'", "'sub'"),
    ("server.oidc.roles_claim", "'roles'", "'scope'"),
    ("scheduling.strategy", "'sequential'", "'parallel'"),
    ("scheduling.max_parallelism", "5", "6"),
    ("scheduling.rates", "['agent 100/m']", "[]"),
    ("scheduling.lanes.per_agent", "10", "11"),
    ("scheduling.lanes.per_tenant", "8", "0"),
    ("scheduling.lanes.global", "64", "0"),
    ("scheduling.lanes.queue_per_tenant", "1024", "1025"),
    ("scheduling.lanes.queue_total", "65536", "65537"),
    ("scheduling.retry.max_retries", "2", "3"),
    ("scheduling.retry.batch_max_retries", "0", "1"),
    ("scheduling.retry.base_ms", "1000", "1001"),
    ("scheduling.quotas.calls_per_day", "1000", "0"),
    ("scheduling.quotas.cpu_seconds_per_day", "1000", "0"),
    ("scheduling.quotas.bytes_per_day", "1000", "0"),
    ("scheduling.quotas.tenants", "['acme calls=1000']", "[]"),
    ("scheduling.breaker.enabled", "true", "false"),
    ("scheduling.breaker.percent", "50", "51"),
    ("scheduling.breaker.window", "100", "101"),
    ("scheduling.breaker.min_calls", "10", "11"),
    ("scheduling.breaker.open_seconds", "60", "59"),
    ("scheduling.breaker.trials", "10", "11"),
    ("scheduling.cache.enabled", "false", "true"),
    ("scheduling.cache.ttl_seconds", "300", "301"),
    ("scheduling.cache.max_bytes", "67108864", "67108865"),
    ("scheduling.cache.max_result_bytes", "1048576", "1048577"),
    ("scheduling.repeat_guard.enabled", "true", "false"),
    ("scheduling.repeat_guard.warn_at", "3", "4"),
    ("scheduling.repeat_guard.stop_after", "5", "6"),
    ("scheduling.repeat_guard.forget_after_seconds", "600", "599"),
    ("scheduling.adaptive_timeout.enabled", "true", "false"),
    ("scheduling.adaptive_timeout.min_calls", "50", "51"),
    ("scheduling.adaptive_timeout.factor", "4", "5"),
    ("scheduling.adaptive_timeout.floor_ms", "1000", "1001"),
    ("telemetry.otlp_endpoint", "'http://localhost:4318'", "'http://elsewhere.example:4318'"),
    ("telemetry.otlp_ca_file", "'/etc/own.pem'", "'/etc/ca.pem'"),
    ("telemetry.otlp_headers_file", "'/etc/own-headers'", "'/etc/headers'"),
];

/// The key's tight and loose value.
fn example(key: &Key) -> (&'static str, &'static str) {
    let found = EXAMPLES.iter().find(|(path, _, _)| *path == key.path());
    let (_, tight, loose) =
        found.unwrap_or_else(|| panic!("`{}` needs a line in EXAMPLES: what would loosen it?", key.path()));
    (tight, loose)
}

fn line(key: &str, value: &str) -> String {
    format!("{key} = {value}\n")
}

fn inputs(user: &str, folder: &str) -> Inputs {
    let source = SourceText::new("/repo/haft.toml", folder);
    Inputs {
        user: Some(SourceText::new("/home/ada/.config/haft/haft.toml", user)),
        folder: Some(FolderSource { source, pinned: false }),
        working_folder: "/repo".into(),
        home: Some("/home/ada".into()),
        real_path: lexical_path,
        ..Inputs::default()
    }
}

fn trusted(mut inputs: Inputs) -> Inputs {
    inputs.folder.as_mut().unwrap().pinned = true;
    inputs
}

fn resolved(inputs: &Inputs) -> Resolved {
    resolve(inputs).unwrap_or_else(|error| panic!("{error}"))
}

/// The value that a text has for a key in the user's own file.
fn value(key: &Key, text: &str) -> Value {
    key.get(&parse(&line(key.path(), text)).unwrap_or_else(|error| panic!("{error}")))
}

fn is_ignored(note: &Note) -> bool {
    matches!(note, Note::Ignored { .. })
}

#[test]
fn what_a_folder_loosens_does_not_count_and_is_said_once() {
    for key in keys() {
        let (tight, loose) = example(key);
        let user = line(key.path(), tight);
        let without = resolved(&inputs(&user, "")).config;
        let with = resolved(&inputs(&user, &line(key.path(), loose)));
        assert_eq!(with.config, without, "{}", key.path());
        let notes: Vec<_> = with.notes.iter().filter(|note| is_ignored(note)).collect();
        if key.rule().configured == Configured::Adds && is_plain(&key) {
            // Whatever is written is added: nothing can be taken away, so there is nothing to say.
            assert!(notes.is_empty(), "{}", key.path());
            continue;
        }
        let [note @ Note::Ignored { ignored, .. }] = notes.as_slice() else {
            panic!("`{}` is said {} times", key.path(), notes.len())
        };
        assert_eq!(ignored.len(), 1, "{}", key.path());
        assert_eq!((ignored[0].key, &ignored[0].in_effect), (key.path(), &key.get(&without)));
        assert!(note.to_string().contains("haft trust"), "{note}");
    }
}

#[test]
fn what_a_folder_tightens_counts() {
    for key in keys().iter().filter(is_plain).filter(|key| key.rule().tighter != Tighter::Nothing) {
        let (tight, loose) = example(key);
        let user = line(key.path(), loose);
        let with = resolved(&inputs(&user, &line(key.path(), tight)));
        assert_eq!(key.get(&with.config), value(key, tight), "{}", key.path());
        assert_ne!(with.config, resolved(&inputs(&user, "")).config, "{}", key.path());
        assert!(!with.notes.iter().any(is_ignored), "{}: {:?}", key.path(), with.notes);
        let origins = with.origins(key.path());
        assert!(origins.last().unwrap().to_string().starts_with("haft.toml:1:"), "{origins:?}");
    }
}

/// The keys that a folder has no say in, written down: one that is given another rule fails here.
const OWN: &str = "\
    tools.commands.isolation_technology tools.commands.sandbox_base_dir tools.commands.staged_keep_hours \
    tools.commands.cache_bytes tools.approval.wait_seconds policy.profile \
    tools.files.allowed_roots tools.files.read_only_roots tools.undo.max_records tools.undo.max_bytes \
    tools.signatures.trusted_keys redaction.patterns redaction.values_from_environment redaction.values_file \
    permissions.roles permissions.agents permissions.local_roles license.authority license.file store.backend store.url \
    store.allow_layout_change store.audit_input store.keep_results_days store.keep_outputs_days \
    store.max_output_bytes store.keep_audit_days store.retention audit.key_file audit.head_sink \
    mcp.approvals mcp.allowed_origins tasks.keep_hours tasks.max_running tasks.start_within_seconds \
    tasks.worker_idle_seconds server.listen server.tls_certificate server.tls_key server.allow_plaintext \
    server.invoke_and_approve server.max_body_bytes server.max_connections server.max_connections_per_address \
    server.max_requests_per_key server.max_requests_per_tenant server.max_mcp_sessions \
    server.max_mcp_sessions_per_key server.allowed_hosts server.resource server.oidc.issuer \
    server.oidc.audience server.oidc.jwks_file server.oidc.jwks_url server.oidc.tenant_claim \
    server.oidc.roles_claim telemetry.otlp_endpoint telemetry.otlp_ca_file \
    telemetry.otlp_headers_file scheduling.rates scheduling.lanes.per_tenant \
    scheduling.lanes.global scheduling.retry.base_ms scheduling.quotas.calls_per_day \
    scheduling.quotas.cpu_seconds_per_day scheduling.quotas.bytes_per_day scheduling.quotas.tenants \
    scheduling.breaker.percent scheduling.breaker.window scheduling.breaker.min_calls \
    scheduling.breaker.open_seconds scheduling.breaker.trials scheduling.repeat_guard.forget_after_seconds \
    scheduling.adaptive_timeout.min_calls scheduling.adaptive_timeout.factor \
    scheduling.adaptive_timeout.floor_ms";

#[test]
fn a_folder_has_no_say_in_what_is_the_users_own_affair() {
    let own = keys().iter().filter(|key| key.rule().tighter == Tighter::Nothing).map(|key| key.path());
    assert_eq!(own.collect::<BTreeSet<_>>(), OWN.split(' ').collect::<BTreeSet<_>>());
    for key in OWN.split(' ').map(|path| key(path).unwrap()) {
        let (one, other) = example(key);
        for (user, folder) in [(one, other), (other, one)] {
            let with = resolved(&inputs(&line(key.path(), user), &line(key.path(), folder)));
            assert_eq!(key.get(&with.config), value(key, user), "{}", key.path());
            // An empty list that would be added changes nothing, so there is nothing to say.
            let adds = key.rule().configured == Configured::Replaces || folder != "[]";
            assert_eq!(with.notes.iter().any(is_ignored), adds, "{}", key.path());
        }
    }
}

/// What is taken out of results is hidden from the model: a folder that nobody trusts does not choose it.
#[test]
fn a_folder_chooses_no_secrets() {
    let user = "redaction.patterns = ['mine: mine_[0-9]{8}']\n";
    let folder = "[redaction]\npatterns = ['all: err[a-z ]*']\nvalues_from_environment = ['*']\n";
    let with = resolved(&inputs(user, folder));
    assert_eq!(with.config.redaction, resolved(&inputs(user, "")).config.redaction);
    assert_eq!(
        with.notes[0].to_string(),
        "haft.toml is not trusted, so it can only tighten; haft ignores:\n  \
         redaction.patterns = [\"all: err[a-z ]*\"] (line 2); in effect: [\"mine: mine_[0-9]{8}\"]; \
         only your own file or a trusted one sets it\n  \
         redaction.values_from_environment = [\"*\"] (line 3); in effect: []; \
         only your own file or a trusted one sets it\n  \
         help: read the file; if you want all of it to apply, run `haft trust`"
    );
    // The control: trusted, it adds to what is the owner's.
    let trusted = resolved(&trusted(inputs(user, folder))).config.redaction;
    assert_eq!(trusted.patterns, ["mine: mine_[0-9]{8}", "all: err[a-z ]*"]);
    assert_eq!(trusted.values_from_environment, ["*"]);
}

/// The list of variables that programs do not get says which values are secrets, too. A folder adds to the first alone.
#[test]
fn a_folder_keeps_variables_from_programs_and_makes_no_secrets_of_them() {
    let user =
        "tools.environment.denylist = ['MINE', 'BOTH']\nredaction.values_from_environment = ['NAMED']\n";
    let folder = "tools.environment.denylist = ['THEIRS*', 'BOTH']\n";
    let secret = |config: &Config, name: &str| config.secret_variables().any(|pattern| pattern == name);
    let with = resolved(&inputs(user, folder)).config;
    for name in ["MINE", "BOTH", "THEIRS*", "*_TOKEN"] {
        assert!(with.tools.environment.denylist.iter().any(|denied| denied == name), "{name}");
        assert_eq!(secret(&with, name), name != "THEIRS*", "{name}");
    }
    assert!(secret(&with, "NAMED"));
    assert_eq!(with.from_folder.denied_variables, ["THEIRS*"]);
    // The control: trusted, its names are the owner's.
    let trusted = resolved(&trusted(inputs(user, folder))).config;
    assert!(secret(&trusted, "THEIRS*") && trusted.from_folder == FromFolder::default());
    // A configuration that a program makes has an owner alone.
    let mut made = Config::default();
    made.tools.environment.denylist.push("MADE".to_owned());
    assert!(secret(&made, "MADE"));
}

#[test]
fn what_a_trusted_folder_loosens_counts() {
    for key in keys().iter().filter(|key| key.rule().configured == Configured::Replaces) {
        let (tight, loose) = example(key);
        let inputs = trusted(inputs(&line(key.path(), tight), &line(key.path(), loose)));
        let with = resolved(&inputs);
        assert_eq!(key.get(&with.config), value(key, loose), "{}", key.path());
        assert!(!with.notes.iter().any(is_ignored), "{}", key.path());
        let explanation = explain(&inputs).unwrap();
        assert_eq!(explanation.loosens().map(|change| change.key).collect::<Vec<_>>(), [key.path()]);
    }
}

#[test]
fn many_ignored_keys_make_one_note() {
    let user: String = keys().iter().map(|key| line(key.path(), example(key).0)).collect();
    let folder: String = keys().iter().map(|key| line(key.path(), example(key).1)).collect();
    let with = resolved(&inputs(&user, &folder));
    assert_eq!(with.config, resolved(&inputs(&user, "")).config);
    let [Note::Ignored { ignored, .. }] = with.notes.as_slice() else { panic!("{:?}", with.notes) };
    let lines: Vec<_> = ignored.iter().map(|ignored| ignored.place.to_string()).collect();
    assert_eq!(
        lines.len(),
        keys().iter().filter(|key| key.rule().configured == Configured::Replaces || !is_plain(key)).count()
    );
    assert!(
        lines[0].starts_with("haft.toml:1:") && lines[1].starts_with("haft.toml:2:"),
        "in the file's order"
    );
}

#[test]
fn a_list_counts_in_part() {
    let folder = "tools.approval.denylist = ['deploy']\ntools.approval.allowlist = ['glob', 'deploy']\n";
    let with = resolved(&inputs("", folder));
    assert_eq!(
        with.config.tools.approval.denylist,
        ["run_command", "start_command", "execute_code", "deploy"]
    );
    assert_eq!(with.config.tools.approval.allowlist, ["glob"]);
    assert_eq!(
        with.notes[0].to_string(),
        "haft.toml is not trusted, so it can only tighten; haft ignores:\n  \
         tools.approval.denylist = [\"deploy\"] (line 1); in effect: [\"run_command\", \"start_command\", \"execute_code\", \"deploy\"]\n  \
         tools.approval.allowlist = [\"glob\", \"deploy\"] (line 2); in effect: [\"glob\"]\n  \
         help: read the file; if you want all of it to apply, run `haft trust`"
    );
}

/// A section that leaves its denylist out must not empty it: `run_command` would be allowed.
#[test]
fn trap_approval_without_denylist_keeps_the_denylist() {
    let config = parse("[tools.approval]\nmode = 'auto'\n").unwrap();
    assert_eq!(config.tools.approval.denylist, ["run_command", "start_command", "execute_code"]);
    // In their own file a person may say otherwise, and then exactly that holds.
    assert_eq!(
        parse("[tools.approval]\ndenylist = ['deploy']\n").unwrap().tools.approval.denylist,
        ["deploy"]
    );
    assert!(parse("[tools.approval]\ndenylist = []\n").unwrap().tools.approval.denylist.is_empty());
}

/// A list that replaced the defaults would let tokens reach commands.
#[test]
fn trap_the_environment_denylist_is_added_to_the_defaults() {
    let defaults = Config::default().tools.environment.denylist;
    let mut inputs = trusted(inputs(
        "[tools.environment]\ndenylist = ['A_*', 'AWS_*']\n",
        "[tools.environment]\ndenylist = ['B_*']\n",
    ));
    inputs.env = vec![("HAFT_TOOLS_ENVIRONMENT_DENYLIST".into(), "C_*".into())];
    inputs.flags = vec![("tools.environment.denylist".into(), "[]".into())];
    let denylist = resolved(&inputs).config.tools.environment.denylist;
    assert_eq!(denylist, [defaults, vec!["A_*".into(), "B_*".into(), "C_*".into()]].concat());
}

/// What each rule is called, what it does, where it is from, and whether it may only tighten.
fn rules(inputs: &Inputs) -> Vec<(String, String, String, bool)> {
    let rules = resolved(inputs).config.policy.rules;
    rules
        .into_iter()
        .map(|rule| (rule.name.clone(), rule.effect.to_string(), rule.place(), rule.only_tightens))
        .collect()
}

fn known(name: &str, effect: &str, place: &str, only_tightens: bool) -> (String, String, String, bool) {
    (name.to_owned(), effect.to_owned(), place.to_owned(), only_tightens)
}

const OWN_RULES: &str = "\
[tools.approval]
mode = 'auto'

[[policy.rules]]
name = 'same'
effect = 'allow'
path = 'src/**'

[[policy.rules]]
effect = 'ask'
tool = 'deploy'
";

const FOLDER_RULES: &str = "\
[[policy.rules]]
name = 'same'
effect = 'deny'
path = 'secrets/**'
examples = { match = ['secrets/a'], no_match = ['src/a'] }

[[policy.rules]]
name = 'opens'
effect = 'allow'
command = 'cargo test'
";

#[test]
fn rules_of_all_layers_come_together_and_a_folder_only_tightens() {
    let own = "/home/ada/.config/haft/haft.toml";
    let mut inputs = inputs(OWN_RULES, FOLDER_RULES);
    inputs.env = vec![("HAFT_POLICY_RULES".into(), "[{ name = 'env', effect = 'ask', tool = 'x' }]".into())];
    let both = [
        known("same", "allow", &format!("{own} line 4"), false),
        known("rule 2", "ask", &format!("{own} line 9"), false),
    ];
    let untrusted = [
        both[0].clone(),
        both[1].clone(),
        known("env", "ask", "HAFT_POLICY_RULES", false),
        known("same (2)", "deny", "haft.toml line 1", true),
    ];
    assert_eq!(rules(&inputs), untrusted);
    let note = resolved(&inputs).notes[0].to_string();
    assert_eq!(
        note,
        "haft.toml is not trusted, so it can only tighten; haft ignores:\n  \
         policy.rules: `opens` (line 7) allows something\n  \
         help: read the file; if you want all of it to apply, run `haft trust`"
    );
    // Paths start where the file is, or where one works.
    let patterns: Vec<String> =
        resolved(&inputs).config.policy.rules.iter().flat_map(|rule| rule.when.paths.clone()).collect();
    assert_eq!(patterns, ["/repo/src/**", "/repo/secrets/**"]);

    let inputs = trusted(inputs);
    let expected = [
        both[0].clone(),
        both[1].clone(),
        known("same (2)", "deny", "haft.toml line 1", false),
        known("opens", "allow", "haft.toml line 7", false),
        known("env", "ask", "HAFT_POLICY_RULES", false),
    ];
    assert_eq!(rules(&inputs), expected);
    let explanation = explain(&inputs).unwrap().to_string();
    assert!(
        explanation.contains("+ { name = \"opens\", effect = \"allow\", command = [\"cargo test\"] }"),
        "{explanation}"
    );
}

#[test]
fn a_rule_that_is_wrong_is_named_with_its_place() {
    let wrong = FOLDER_RULES.replace("no_match = ['src/a']", "no_match = ['secrets/b']");
    let error = resolve(&inputs("", &wrong)).unwrap_err().to_string();
    assert_eq!(
        error,
        "rule `same`: the example `secrets/b` must not match, and does, in haft.toml:5:1
  help: correct the rule or the example; until then haft does not use the file
  help: to go on without the file in this folder, add `--no-folder-config`"
    );
    for (text, expected) in [
        (
            "[[policy.rules]]\neffect = 'denny'\n",
            "unknown variant `denny`, expected one of `allow`, `ask`, `deny`, in haft.toml:2:1",
        ),
        ("[[policy.rules]]\neffect = 'deny'\n", "rule `rule 1`: the rule has no condition"),
        ("[[policy.rules]]\neffect = 'deny'\ntoool = 'x'\n", "unknown field `toool`"),
        (
            "[policy]\nrules = 'x'\n",
            "`policy.rules` must be a list of tables, not a string, in haft.toml:2:9",
        ),
        ("[policy]\nrulez = []\n", "unknown key `policy.rulez`"),
    ] {
        let error = resolve(&inputs("", text)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let env = vec![("HAFT_POLICY_RULES".to_owned(), "[{ effect = 'deny' }]".to_owned())];
    let error = resolve(&Inputs { env, ..Inputs::default() }).unwrap_err().to_string();
    assert!(error.starts_with("rule `rule 1`: the rule has no condition"), "{error}");
    assert!(error.contains("in HAFT_POLICY_RULES"), "{error}");
}

#[test]
fn stronger_layers_win() {
    let mut inputs = trusted(inputs("tools.output.max_bytes = 1001\n", "tools.output.max_bytes = 1002\n"));
    let bytes = |inputs: &Inputs| resolved(inputs).config.tools.output.max_bytes;
    assert_eq!(bytes(&inputs), 1002);
    inputs.env = vec![("HAFT_TOOLS_OUTPUT_MAX_BYTES".into(), "1_003".into())];
    assert_eq!(bytes(&inputs), 1003);
    inputs.flags = vec![("tools.output.max_bytes".into(), "1004".into())];
    assert_eq!(bytes(&inputs), 1004);
    inputs.flags.push(("tools.output.max_bytes".into(), "1005".into()));
    assert_eq!(bytes(&inputs), 1005);
    assert_eq!(resolved(&inputs).origins("tools.output.max_bytes")[0].to_string(), "the command line");
    // Untrusted, the folder comes after all of them, and can only tighten.
    inputs.folder.as_mut().unwrap().pinned = false;
    assert_eq!(bytes(&inputs), 1002);
}

#[test]
fn an_untrusted_folder_tightens_what_variables_and_flags_loosen() {
    let mut inputs = inputs("", "tools.mode = 'disabled'\ntools.approval.mode = 'prompt'\n");
    inputs.env = vec![("HAFT_TOOLS_APPROVAL_MODE".into(), "auto".into())];
    inputs.flags = vec![("tools.mode".into(), "enabled".into())];
    let config = resolved(&inputs).config;
    assert_eq!(config.tools.mode, ToolsMode::Disabled);
    assert_eq!(config.tools.approval.mode, ApprovalMode::Prompt);
}

#[test]
fn roots_are_relative_to_the_folder_of_the_file() {
    let mut inputs =
        trusted(inputs("", "tools.files.allowed_roots = ['.', 'src', '/opt', '~/notes', '~']\n"));
    inputs.working_folder = "/repo/deep/below".into();
    let roots = resolved(&inputs).config.tools.files.allowed_roots;
    assert_eq!(roots, ["/repo", "/repo/src", "/opt", "/home/ada/notes", "/home/ada"].map(PathBuf::from));
    // The user's own file is about wherever one works.
    let own = "tools.files.allowed_roots = ['src', '~/notes']\n";
    inputs.user = Some(SourceText::new("/home/ada/.config/haft/haft.toml", own));
    inputs.folder = None;
    let roots = resolved(&inputs).config.tools.files.allowed_roots;
    assert_eq!(roots, ["src", "/home/ada/notes"].map(PathBuf::from));
}

/// A root inside another one is not less: it is what patterns and protections are counted from.
#[test]
fn roots_are_no_matter_of_an_untrusted_folder() {
    // Given, and whether something was ignored.
    for (given, is_ignored) in [
        ("['.']", false),
        ("['/repo']", false),
        ("['/repo/src/..']", false),
        ("['src']", true),
        ("['.git']", true),
        ("['.', 'src']", true),
        ("['/etc']", true),
        ("['..']", true),
        ("['.', '/']", true),
    ] {
        let with = resolved(&inputs("", &line("tools.files.allowed_roots", given)));
        assert_eq!(with.config.tools.files.allowed_roots, [PathBuf::from(".")], "{given}");
        assert_eq!(with.notes.len(), usize::from(is_ignored), "{given}: {:?}", with.notes);
    }
    // Nothing is known of the disk: then no folder is known to be the same.
    let mut inputs = inputs("", "tools.files.allowed_roots = ['.']\n");
    inputs.real_path = |_| None;
    assert_eq!(resolved(&inputs).notes.len(), 1);
    assert_eq!(resolved(&inputs).config.tools.files.allowed_roots, [PathBuf::from(".")]);
}

#[test]
fn variables_and_flags_set_every_key() {
    for key in keys().iter().filter(is_plain) {
        let (tight, loose) = example(key);
        for text in [tight, loose] {
            // As a person writes it in a shell: without quotes around a word.
            let plain = text.trim_matches('\'');
            let with =
                resolved(&Inputs { env: vec![(key.env_name(), plain.to_owned())], ..Inputs::default() });
            assert_eq!(key.get(&with.config), value(key, text), "{}={plain}", key.env_name());
            assert_eq!(with.origins(key.path()).last().unwrap().to_string(), key.env_name());
            let flags = vec![(key.path().to_owned(), plain.to_owned())];
            assert_eq!(resolved(&Inputs { flags, ..Inputs::default() }).config, with.config);
        }
    }
}

/// Files that were written for an older haft, or after its source documents, say `[tools.sandbox]`.
#[test]
fn a_section_is_read_by_its_former_name_without_a_note() {
    let denied = |inputs: &Inputs| {
        let resolved = resolved(inputs);
        assert_eq!(resolved.notes, [], "no word about the name");
        resolved.config.tools.files.denied_patterns
    };
    let file = |text: &str| Inputs {
        user: Some(SourceText::new("/home/ada/.config/haft/haft.toml", text)),
        ..Inputs::default()
    };
    let former = "[tools.sandbox]\ndenied_patterns = ['a']\n";
    assert_eq!(denied(&file(former)), ["a"]);
    assert_eq!(denied(&file("tools.sandbox.denied_patterns = ['a']\n")), ["a"]);
    let env = vec![("HAFT_TOOLS_SANDBOX_DENIED_PATTERNS".to_owned(), "a".to_owned())];
    assert_eq!(denied(&Inputs { env: env.clone(), ..Inputs::default() }), ["a"]);
    let flags = vec![("tools.sandbox.denied_patterns".to_owned(), "a".to_owned())];
    assert_eq!(denied(&Inputs { flags, ..Inputs::default() }), ["a"]);
    // A folder may not loosen by the former name, either.
    let with = resolved(&inputs("", "[tools.sandbox]\ninclude_default_denies = false\n"));
    assert!(with.config.tools.files.include_default_denies && with.notes.len() == 1);

    let twice = format!("{former}[tools.files]\ndenied_patterns = ['b']\n");
    let error = haft_config::resolve(&file(&twice)).unwrap_err().to_string();
    assert!(error.contains("is set twice") && error.contains("keep one of the two"), "{error}");
    let both = [env, vec![("HAFT_TOOLS_FILES_DENIED_PATTERNS".to_owned(), "b".to_owned())]].concat();
    let error = haft_config::resolve(&Inputs { env: both, ..Inputs::default() }).unwrap_err().to_string();
    assert!(error.contains("is set twice"), "{error}");
}

#[test]
fn a_list_in_a_variable_is_comma_separated_or_toml() {
    let denylist = |text: &str| {
        let env = vec![("HAFT_TOOLS_APPROVAL_DENYLIST".to_owned(), text.to_owned())];
        resolved(&Inputs { env, ..Inputs::default() }).config.tools.approval.denylist
    };
    assert_eq!(denylist("a, b,c,"), ["a", "b", "c"]);
    assert_eq!(denylist("['a,b', 'c']"), ["a,b", "c"]);
    assert!(denylist("[]").is_empty());
    // An empty variable is one that is not set: it empties nothing.
    assert_eq!(denylist(""), Config::default().tools.approval.denylist);
    assert_eq!(denylist("  "), Config::default().tools.approval.denylist);
}

#[test]
fn names_of_variables_are_unique() {
    let names: BTreeSet<String> = keys().iter().map(|key| key.env_name()).collect();
    assert_eq!(names.len(), keys().len());
    assert!(names.contains("HAFT_TOOLS_MODE") && names.contains("HAFT_TOOLS_READ_FILE_MAX_SCAN_BYTES"));
}

#[test]
fn the_table_agrees_with_itself() {
    let config = Config::default();
    for key in keys() {
        assert_eq!(key.get(&config), key.default_value(), "{}", key.path());
        // The default is a value that the key takes, and comes back as it went.
        assert_eq!(value(key, &key.default_value().to_string()), key.default_value(), "{}", key.path());
        assert!(!key.doc().is_empty() && !key.doc().contains('\n'), "{}", key.path());
    }
}

#[test]
fn the_defaults() {
    let tools = Config::default().tools;
    assert_eq!(tools.mode, ToolsMode::Enabled);
    assert_eq!(
        (tools.max_tool_calls_per_batch, tools.max_tool_iterations_per_user_turn, tools.max_tool_args_bytes),
        (8, 4, 262_144)
    );
    assert_eq!(tools.files.allowed_roots, [PathBuf::from(".")]);
    assert_eq!(
        (
            tools.timeouts.default_seconds,
            tools.timeouts.file_operations_seconds,
            tools.timeouts.shell_commands_seconds
        ),
        (30, 30, 300)
    );
    assert_eq!(tools.output.max_bytes, 102_400);
    assert_eq!((tools.read_file.max_file_read_bytes, tools.read_file.max_scan_bytes), (204_800, 2_097_152));
    assert_eq!(tools.apply_patch.max_patch_bytes, 524_288);
    assert_eq!(tools.approval.mode, ApprovalMode::Prompt);
    assert_eq!(tools.approval.allowlist, ["read_file", "list_directory", "glob", "search_files"]);
    assert_eq!(tools.approval.denylist, ["run_command", "start_command", "execute_code"]);
    assert!(tools.approval.enabled && tools.approval.prompt_side_effects);
    assert!(tools.files.include_default_denies && !tools.files.allow_absolute && !tools.allow_parallel);
}

#[test]
fn the_template_is_the_defaults() {
    let text = template();
    let uncommented: String =
        text.lines().map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
    assert_eq!(parse(&uncommented).unwrap_or_else(|error| panic!("{error}")), Config::default());
    for key in keys() {
        let line = format!("\n{} = {}\n", key.name(), key.default_value());
        assert!(uncommented.contains(&line), "`{}` is not in the template", key.path());
        assert!(text.contains(&format!("\n## {}\n", key.doc())), "`{}` is not explained", key.path());
    }
    // As it is, it says nothing: also in an untrusted folder.
    assert_eq!(resolved(&inputs("", &text)).notes, []);
    assert_eq!(resolved(&inputs("", &uncommented)).notes, []);
    assert!(text.lines().all(|line| line.chars().count() <= 110), "lines fit a screen");
}

#[test]
fn declared_tools_are_unused_while_tools_run() {
    let text = format!("tools.definitions = [{TOOL}]\n");
    let with = resolved(&inputs(&text, ""));
    assert_eq!(with.notes, [Note::DefinitionsUnused { count: 1 }]);
    assert_eq!(resolved(&inputs(&format!("{text}tools.mode = 'parse_only'\n"), "")).notes, []);
}

/// Every host is what strict jails cannot give, and more than most want: haft warns of both.
#[test]
fn every_host_is_warned_about() {
    let notes =
        |text: &str| resolved(&inputs(text, "")).notes.iter().map(ToString::to_string).collect::<String>();
    let strict = notes("tools.commands.hosts = ['*']\n");
    assert!(strict.contains("keeps commands from running") && strict.contains("\"crates.io\""), "{strict}");
    let standard = notes("tools.commands.hosts = ['*']\ntools.commands.isolation = 'standard'\n");
    assert!(standard.contains("this machine's own services"), "{standard}");
    assert_eq!(notes("tools.commands.hosts = ['*.example.com']\n"), "");
}

/// Values of each kind, as text for a file: some tight, some loose, some beside the point.
fn any_value(key: &'static Key) -> BoxedStrategy<String> {
    let list = |pool: &'static [&'static str], least: usize| {
        prop::sample::subsequence(pool, least..=pool.len())
            .prop_map(|items| format!("[{}]", items.join(", ")))
            .boxed()
    };
    // Lists whose entries have a form, and numbers that must not be above each other.
    let numbers = |from: u64, to: u64| (from..=to).prop_map(|number| number.to_string()).boxed();
    match key.path() {
        "scheduling.rates" => {
            return list(&["'agent 100/m'", "'tenant 9/h'", "'all 1/s'", "'tool:deploy 1/d'"], 0);
        }
        "tools.approval.accept_from" => {
            return list(&["'terminal'", "'command_line'", "'http'", "'mcp'"], 0);
        }
        "scheduling.quotas.tenants" => {
            return list(&["'acme calls=1'", "'acme bytes=9'", "'other calls=0'"], 0);
        }
        "scheduling.breaker.min_calls" | "scheduling.repeat_guard.warn_at" => return numbers(1, 5),
        "scheduling.breaker.window" | "scheduling.repeat_guard.stop_after" => return numbers(10, 10_000),
        "scheduling.lanes.queue_per_tenant" => return numbers(1, 2048),
        "scheduling.lanes.queue_total" => return numbers(2048, 100_000),
        _ => {}
    }
    match (key.rule().kind, key.default_value()) {
        (Kind::Switch, _) => any::<bool>().prop_map(|on| on.to_string()).boxed(),
        (Kind::Count { min, max }, Value::Count(default)) => {
            prop_oneof![min..=max, min..=default, Just(default), Just(max), Just(min)]
                .prop_map(|number| number.to_string())
                .boxed()
        }
        (Kind::Level(choices), _) => {
            prop::sample::select(choices).prop_map(|choice| format!("'{choice}'")).boxed()
        }
        (Kind::Text, _) => "[a-z:]{0,8}".prop_map(|text| format!("'{text}'")).boxed(),
        (Kind::Names, _) => list(
            &["'read_file'", "'run_command'", "'execute_code'", "'glob'", "'deploy'", "'AWS_*'", "'**/x'"],
            0,
        ),
        (Kind::Folders, _) => list(
            &["'.'", "'src'", "'/'", "'..'", "'/repo/src/deep'", "'/repo/../etc'", "'~/notes'", "'/repo'"],
            1,
        ),
        (Kind::Tools, _) => {
            list(&["{ name = 'a', description = 'A' }", "{ name = 'b', description = 'B' }", TOOL], 0)
        }
        (Kind::Agents, _) => list(
            &["{ name = 'a', tools = ['glob'] }", "{ name = 'b', tools = [], limits = { processes = 4 } }"],
            0,
        ),
        (Kind::Rules, _) => list(
            &[
                "{ name = 'a', effect = 'deny', tool = 'x' }",
                "{ name = 'b', effect = 'ask', path = 'src/**', remember = true }",
                "{ name = 'c', effect = 'allow', command = 'cargo test', confirms = true }",
                "{ name = 'd', effect = 'allow', tool = 'x' }",
            ],
            0,
        ),
        other => panic!("what are values of {other:?}?"),
    }
}

/// A file with some keys set, in any order of the table's.
fn any_file() -> impl Strategy<Value = String> {
    let lines: Vec<_> = keys()
        .iter()
        .map(|key| {
            prop::option::of(any_value(key)).prop_map(|value| value.map(|value| line(key.path(), &value)))
        })
        .collect();
    lines.prop_map(|lines| lines.into_iter().flatten().collect())
}

/// Written apart from the code under test: whether `after` allows something that `before` does not.
fn is_looser(key: &Key, before: &Value, after: &Value) -> bool {
    match (key.rule().tighter, before, after) {
        (Tighter::Lower, Value::Count(before), Value::Count(after)) => after > before,
        (Tighter::Higher, Value::Count(before), Value::Count(after)) => after < before,
        (Tighter::Off, Value::Switch(before), Value::Switch(after)) => *after && !before,
        (Tighter::On, Value::Switch(before), Value::Switch(after)) => !after && *before,
        (Tighter::Earlier, Value::Level(before), Value::Level(after)) => {
            let order = [
                "disabled",
                "parse_only",
                "enabled",
                "deny",
                "prompt",
                "auto",
                "restricted",
                "strict",
                "standard",
                "none",
                "before",
                "full",
                "effects",
                "never",
                "staged",
                "staged_if_possible",
                "live",
                "sequential",
                "smart",
                "parallel",
            ];
            let place = |level| order.iter().position(|known| *known == level).unwrap();
            place(*after) > place(*before)
        }
        (Tighter::Nothing, before, after) => after != before,
        (Tighter::More, Value::Names(before), Value::Names(after)) => {
            before.iter().any(|name| !after.contains(name))
        }
        (Tighter::Fewer, Value::Names(before), Value::Names(after)) => {
            after.iter().any(|name| !before.contains(name))
        }
        (Tighter::Fewer, Value::Tools(before), Value::Tools(after)) => {
            after.iter().any(|tool| !before.contains(tool))
        }
        (Tighter::Stricter, Value::Rules(before), Value::Rules(after)) => {
            let added = after.iter().filter(|rule| !before.contains(rule));
            let only_tighten = |rule: &haft_guard::policy::Rule| {
                rule.effect != haft_guard::policy::Effect::Allow && rule.only_tightens
            };
            before.iter().any(|rule| !after.contains(rule)) || !added.into_iter().all(only_tighten)
        }
        other => panic!("which way does {other:?} go?"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_folder_never_loosens(user in any_file(), folder in any_file(), flag in any_file()) {
        let flags: Vec<(String, String)> = flag
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|(key, value)| (key.to_owned(), value.trim_matches('\'').to_owned()))
            .collect();
        let mut with = inputs(&user, &folder);
        with.flags = flags;
        let mut without = with.clone();
        without.folder = None;
        let (with, without) = (resolved(&with).config, resolved(&without).config);
        for key in keys() {
            let (before, after) = (key.get(&without), key.get(&with));
            prop_assert!(!is_looser(key, &before, &after), "{}: {before} became {after}", key.path());
        }
    }

    #[test]
    fn a_key_is_noted_just_when_trust_would_loosen_it(user in any_file(), folder in any_file()) {
        let with = resolved(&inputs(&user, &folder));
        let noted: Vec<&str> = with.notes.iter().find_map(|note| match note {
            Note::Ignored { ignored, .. } => Some(ignored.iter().map(|ignored| ignored.key).collect()),
            _ => None,
        }).unwrap_or_default();
        let explanation = explain(&inputs(&user, &folder)).unwrap();
        let loosened: Vec<&str> = explanation.loosens().map(|change| change.key).collect();
        prop_assert_eq!(noted, loosened);
        // What the explanation says is what happens.
        let trusted = resolved(&trusted(inputs(&user, &folder))).config;
        for change in &explanation.changes {
            prop_assert!(change.effect != Effect::Same);
            prop_assert_eq!(&key(change.key).unwrap().get(&trusted), &change.to);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&text).map_err(|error| error.to_string());
        let user = Some(SourceText::new("haft.toml", bytes));
        let _ = resolve(&Inputs { user, ..Inputs::default() }).map_err(|error| error.to_string());
    }

    #[test]
    fn a_broken_template_is_read_or_refused(at in 0usize..4000, junk in "[\\PC\n]{0,6}") {
        let mut text: String = template().replace("\n# ", "\n");
        text.insert_str(text.floor_char_boundary(at.min(text.len())), &junk);
        if let Err(error) = parse(&text) {
            let lines = text.lines().count();
            for problem in error.problems() {
                prop_assert!(!problem.help().is_empty());
                if let Place::File { position: Some(position), .. } = problem.place() {
                    prop_assert!(position.line <= lines + 1 && position.line > 0);
                }
            }
        }
    }

    #[test]
    fn a_variable_is_read_or_refused(which in 0..keys().len(), text in "\\PC{0,60}") {
        let env = vec![(keys()[which].env_name(), text)];
        let _ = resolve(&Inputs { env, ..Inputs::default() }).map_err(|error| error.to_string());
    }
}
