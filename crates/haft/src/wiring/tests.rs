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
        accept_answers: AcceptAnswers::only([haft_core::Channel::Terminal]),
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
    let accept_answers = AcceptAnswers::only([
        haft_core::Channel::Terminal,
        haft_core::Channel::CommandLine,
        haft_core::Channel::Mcp,
    ]);
    assert_eq!(settings(&config), Settings { accept_answers, ..Settings::default() });
    assert_eq!(policy(&config), ListPolicy::default());
    assert_eq!(admission(&config), AdmissionControls::default());
}

#[test]
fn every_key_of_scheduling_arrives() {
    let text = "
            [scheduling]
            rates = ['agent 100/m', 'tool:fetch 1/s']
            [scheduling.lanes]
            per_agent = 1
            per_tenant = 2
            global = 3
            queue_per_tenant = 4
            queue_total = 5
            [scheduling.retry]
            max_retries = 6
            batch_max_retries = 7
            base_ms = 8
            [scheduling.quotas]
            calls_per_day = 9
            cpu_seconds_per_day = 10
            bytes_per_day = 11
            tenants = ['acme calls=12']
            [scheduling.breaker]
            percent = 13
            window = 14
            min_calls = 14
            open_seconds = 15
            trials = 16
            [scheduling.cache]
            ttl_seconds = 17
            max_bytes = 18
            max_result_bytes = 19
            [scheduling.repeat_guard]
            warn_at = 20
            stop_after = 21
            forget_after_seconds = 22
            [scheduling.adaptive_timeout]
            enabled = true
            min_calls = 23
            factor = 24
            floor_ms = 25
        ";
    let config = config::parse(text).unwrap();
    let seconds = Duration::from_secs;
    let everybody = Quota { calls: Some(9), cpu_seconds: Some(10), bytes: Some(11) };
    let acme = Quota { calls: Some(12), ..Quota::default() };
    let expected = AdmissionControls {
        lanes: Some(Lanes {
            per_agent: Some(1),
            per_tenant: Some(2),
            global: Some(3),
            queue_per_tenant: 4,
            queue_total: 5,
            ..Lanes::default()
        }),
        breaker: Some(Breaker { percent: 13, window: 14, min_calls: 14, open_for: seconds(15), trials: 16 }),
        cache: Some(ResultCache { ttl: seconds(17), max_bytes: 18, max_result_bytes: 19 }),
        repeat_guard: Some(RepeatGuard { warn_at: 20, stop_after: 21, forget_after: seconds(22) }),
        adaptive_timeout: Some(AdaptiveTimeout {
            min_calls: 23,
            factor: 24,
            floor: Duration::from_millis(25),
        }),
        rate_limits: ["agent 100/m", "tool:fetch 1/s"].map(|rate| config::parse_rate(rate).unwrap()).to_vec(),
        quotas: Some(Quotas { everybody, tenants: [("acme".to_owned(), acme)].into() }),
    };
    assert_eq!(admission(&config), expected);
    let settings = settings(&config);
    assert_eq!((settings.retry.max_retries, settings.batch_retry.max_retries), (6, 7));
    assert_eq!(settings.retry.base, Duration::from_millis(8));
    let off = "[scheduling]\nbreaker.enabled = false\ncache.enabled = false\nrepeat_guard.enabled = false\n";
    let off = admission(&config::parse(off).unwrap());
    assert_eq!((off.breaker, off.cache, off.repeat_guard), (None, None, None));
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

/// The configuration of `seeds/004` §6, table by table, loads as it is: its own definition of `read_file` is what a
/// model is told in parse-only mode (CFG-TOOLS-02), and the built-in one otherwise (CFG-TOOLS-02a).
#[test]
fn the_configuration_of_seeds_004_section_6_loads_as_it_is() {
    const TEXT: &str = r#"
        [tools]
        mode = "parse_only"      # disabled | parse_only | enabled
        allow_parallel = false
        max_tool_calls_per_batch = 8
        max_tool_iterations_per_user_turn = 4
        max_tool_args_bytes = 262144
        [[tools.definitions]]
        name = "read_file"
        description = "Read file contents"
        parameters = { "type"="object", "properties"={ "path"={ "type"="string" } }, "required"=["path"] }
        [tools.sandbox]
        allowed_roots = ["."]
        denied_patterns = ["**/.ssh/**", "**/*.pem"]
        allow_absolute = false
        include_default_denies = true
        [tools.timeouts]
        default_seconds = 30
        file_operations_seconds = 30
        shell_commands_seconds = 300
        [tools.output]
        max_bytes = 102400
        [tools.environment]
        denylist = ["*_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "AWS_*", "ANTHROPIC_*", "OPENAI_*"]
        [tools.approval]
        enabled = true
        mode = "prompt"           # auto | prompt | deny
        allowlist = ["read_file"]
        denylist = ["run_command"]
        prompt_side_effects = true
        [tools.read_file]
        max_file_read_bytes = 204800
        max_scan_bytes = 2097152
        [tools.apply_patch]
        max_patch_bytes = 524288
    "#;
    let folder = tempfile::tempdir().unwrap();
    let [work, state] = ["work", "state"].map(|name| folder.path().join(name));
    std::fs::create_dir(&work).unwrap();
    let read_file = |text: &str| {
        let config = config::parse(text).unwrap();
        let folders = crate::Folders::new(&work, &state);
        let haft = crate::Haft::builder().config(&config).files(folders).build().unwrap();
        assert!(haft.definition("run_command").is_some(), "the other tools stay");
        haft.definition("read_file").unwrap()
    };
    let declared = read_file(TEXT);
    assert_eq!((declared.source, declared.description.as_str()), (Source::Declared, "Read file contents"));
    let own = read_file(&TEXT.replace("parse_only\"", "enabled\""));
    assert_eq!(own.source, Source::BuiltIn);
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
