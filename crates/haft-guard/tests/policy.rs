//! The order of policy in every combination, rules one by one, and what nothing must talk round.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    ApprovalMode, CallContext, Category, Footprint, Resource, Risk, Tier, ToolDefinition,
    port::{GuardError, Policy, Subject, Verdict},
};
use haft_guard::{
    Covers, Grant, GrantSource, Lasts, ListPolicy, LivePolicy, PolicySet,
    command::{Shell, line},
    policy::{Conditions, Effect, ListChanges, Rule, read_rules},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A call to decide about.
#[derive(Clone)]
struct Call {
    context: CallContext,
    definition: ToolDefinition,
    arguments: Map<String, Value>,
    footprint: Footprint,
    confirm: Option<&'static str>,
    now: Timestamp,
}

impl Call {
    fn of(tool: &str) -> Call {
        Call {
            context: CallContext { tier: Tier::Enterprise, ..CallContext::new("acme", "did:agent:7") },
            definition: ToolDefinition::new(tool, "A tool"),
            arguments: Map::new(),
            footprint: Footprint::default(),
            confirm: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn command(text: &str) -> Call {
        let mut call = Call::of("run_command");
        call.definition.category = Category::CodeExecution;
        call.footprint = Footprint::undeclared(true);
        call.with(json!({"command": text}))
    }

    fn with(mut self, arguments: Value) -> Call {
        self.arguments = arguments.as_object().unwrap().clone();
        self
    }

    fn writing(mut self, paths: &[&str]) -> Call {
        self.footprint.writes = paths.iter().map(|&path| Resource::path(path)).collect();
        self
    }

    fn reading(mut self, paths: &[&str]) -> Call {
        self.footprint.reads = paths.iter().map(|&path| Resource::path(path)).collect();
        self
    }

    fn hosts(mut self, hosts: &[&str]) -> Call {
        self.footprint.reads.extend(hosts.iter().map(|&host| Resource::Host(host.to_owned())));
        self
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            context: &self.context,
            definition: &self.definition,
            arguments: &self.arguments,
            footprint: &self.footprint,
            folder: "/w",
            confirm: self.confirm,
            accepts: haft_core::port::AcceptAnswers::from_any(),
            now: self.now,
        }
    }
}

fn lists(mode: ApprovalMode) -> ListPolicy {
    ListPolicy { mode, allowlist: [].into(), denylist: [].into(), ..ListPolicy::default() }
}

/// Rules from a file, in auto mode: what no rule speaks about is allowed.
fn auto(rules: &str) -> PolicySet {
    let rules = read_rules(rules, "/work").unwrap();
    PolicySet::new(lists(ApprovalMode::Auto), rules).unwrap().for_shell(Shell::Posix)
}

/// Rules in deny mode: what no rule speaks about is denied.
fn strict(rules: &str) -> PolicySet {
    let rules = read_rules(rules, "/work").unwrap();
    PolicySet::new(lists(ApprovalMode::Deny), rules).unwrap().for_shell(Shell::Posix)
}

fn decided(policy: &PolicySet, call: &Call) -> (&'static str, String) {
    match policy.decide(&call.subject()).unwrap() {
        Verdict::Allow { rule, .. } => ("allow", rule.into_owned()),
        Verdict::Ask { rule, .. } => ("ask", rule.into_owned()),
        Verdict::Deny { rule, .. } => ("deny", rule.into_owned()),
    }
}

fn effect(policy: &PolicySet, call: &Call) -> &'static str {
    decided(policy, call).0
}

/// Mode × lists × side effects × the tool's wish × prompting × rules × grant, against the order in words.
#[test]
fn precedence_in_every_combination() {
    let mut seen = 0;
    let every_rule: Vec<Vec<Effect>> = (0_u8..8)
        .map(|bits| {
            let all = [Effect::Allow, Effect::Ask, Effect::Deny];
            all.into_iter()
                .enumerate()
                .filter(|(at, _)| bits & (1 << at) != 0)
                .map(|(_, effect)| effect)
                .collect()
        })
        .collect();
    let flags = [false, true];
    for mode in [ApprovalMode::Auto, ApprovalMode::Prompt, ApprovalMode::Deny] {
        for bits in 0_u8..128 {
            let flag = |at: u8| flags[usize::from(bits >> at & 1)];
            let (listed, denied, effects, asks, prompt, granted, confirms) =
                (flag(0), flag(1), flag(2), flag(3), flag(4), flag(5), flag(6));
            for effects_of_rules in &every_rule {
                let mut lists = lists(mode);
                lists.prompt_side_effects = prompt;
                lists.allowlist.extend(listed.then(|| "tool".to_owned()));
                lists.denylist.extend(denied.then(|| "tool".to_owned()));
                let rules = effects_of_rules.iter().map(|effect| {
                    let when = Conditions {
                        tools: vec!["tool".into()],
                        hosts: vec!["example.com".into()],
                        ..Conditions::default()
                    };
                    let confirms = confirms && *effect == Effect::Allow;
                    Rule { confirms, ..Rule::new(effect.to_string(), *effect, when) }
                });
                let covers = Covers::Host {
                    tool: "tool".into(),
                    host: "example.com".into(),
                    fixed: Default::default(),
                };
                let grants = granted.then(|| Grant::new("g", "acme", covers, Lasts::Always));
                let policy = PolicySet::new(lists, rules.collect()).unwrap();
                let policy = policy.with_grants(grants.into_iter().collect());
                let mut call = Call::of("tool").hosts(&["example.com"]);
                call.definition.constraints.allow_side_effects = effects;
                call.definition.requires_confirmation = asks;

                let rule = |effect| effects_of_rules.contains(&effect);
                let expected = if denied || rule(Effect::Deny) {
                    "deny"
                } else if rule(Effect::Ask) {
                    "ask"
                } else if rule(Effect::Allow) {
                    if asks && !confirms && !granted { "ask" } else { "allow" }
                } else if granted {
                    "allow"
                } else if mode == ApprovalMode::Deny && !listed {
                    "deny"
                } else if asks || (mode == ApprovalMode::Prompt && prompt && effects && !listed) {
                    "ask"
                } else {
                    "allow"
                };
                let found = effect(&policy, &call);
                assert_eq!(found, expected, "{mode:?} {bits:07b} {effects_of_rules:?}");
                assert_eq!(policy.explain(&call.subject()).effect.to_string(), expected);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 3 * 128 * 8);
}

#[test]
fn each_condition_holds_and_fails() {
    let call = || {
        let mut call =
            Call::of("edit_file").writing(&["/work/src/a.rs"]).with(json!({"branch": "main", "force": true}));
        call.definition.category = Category::FileSystem;
        call.definition.risk = Some(Risk::Medium);
        call
    };
    let cases = [
        ("tool = 'edit_file'", true),
        ("tool = 'edit_*'", true),
        ("tool = ['read_file', 'EDIT_FILE']", true),
        ("tool = 'read_file'", false),
        ("category = 'FileSystem'", true),
        ("category = ['Network', 'Database']", false),
        ("risk = ['medium', 'high']", true),
        ("risk = 'low'", false),
        ("path = 'src/**'", true),
        ("path = '**/*.rs'", true),
        ("path = '/work/src/a.rs'", true),
        ("path = 'src/*.toml'", false),
        ("path = 'src/**'\naccess = 'write'", true),
        ("path = 'src/**'\naccess = 'read'", false),
        ("argument = { '/branch' = 'ma*', '/force' = 'true' }", true),
        ("argument = { '/branch' = 'dev' }", false),
        ("argument = { '/absent' = '*' }", false),
        ("agent = 'did:agent:*'", true),
        ("agent = 'did:user:*'", false),
        ("tenant = 'acme'", true),
        ("tenant = 'other'", false),
        ("tool = 'edit_file'\ntenant = 'other'", false),
    ];
    for (condition, holds) in cases {
        for effect_name in ["deny", "ask"] {
            let policy = auto(&format!("[[rules]]\nname = 'r'\neffect = '{effect_name}'\n{condition}\n"));
            let expected = if holds { effect_name } else { "allow" };
            assert_eq!(effect(&policy, &call()), expected, "{effect_name} {condition}");
        }
        let policy = strict(&format!("[[rules]]\nname = 'r'\neffect = 'allow'\n{condition}\n"));
        assert_eq!(effect(&policy, &call()), if holds { "allow" } else { "deny" }, "allow {condition}");
    }
}

#[test]
fn an_allowance_needs_everything_named_and_a_denial_anything() {
    let allow = strict("[[rules]]\neffect = 'allow'\npath = 'src/**'\nhost = 'example.com'\n");
    let deny = auto("[[rules]]\neffect = 'deny'\npath = 'src/**'\nhost = 'example.com'\n");
    let tool = || Call::of("tool");
    let cases = [
        (tool().writing(&["/work/src/a"]), "allow", "deny"),
        (tool().writing(&["/work/src/a", "/work/b"]), "deny", "deny"),
        (tool().writing(&["/work/src/a"]).reading(&["/work/b"]), "deny", "deny"),
        (tool().writing(&["/work/src/a"]).hosts(&["example.com"]), "allow", "deny"),
        (tool().writing(&["/work/src/a"]).hosts(&["evil.example"]), "deny", "deny"),
        (tool().hosts(&["example.com:22"]), "deny", "deny"),
        (tool().writing(&["/work/src"]), "allow", "deny"),
        (tool().writing(&["/work/src2/a"]), "deny", "allow"),
        (tool(), "deny", "allow"),
        // A tool that does not say what it touches is not allowed by paths, and haft asks about it where some are
        // denied.
        (Call { footprint: Footprint::undeclared(true), ..tool() }, "deny", "ask"),
        // A folder around what is denied may hold it.
        (tool().writing(&["/work"]), "deny", "ask"),
        (tool().writing(&["/"]), "deny", "ask"),
        (tool().reading(&["/workshop"]), "deny", "allow"),
    ];
    for (call, allowed, denied) in cases {
        assert_eq!(effect(&allow, &call), allowed, "allow: {:?}", call.footprint);
        assert_eq!(effect(&deny, &call), denied, "deny: {:?}", call.footprint);
    }
    let named = Call { footprint: Footprint::writes([Resource::named("git-index:/work")]), ..tool() };
    assert_eq!(effect(&allow, &named), "deny", "what is named otherwise is not a path of the rule");
}

#[test]
fn an_alias_does_not_dodge_a_denial_and_gives_no_allowance() {
    let mut call = Call::of("run_shell");
    call.definition.aliases = vec!["Bash".into()];
    assert_eq!(effect(&auto("[[rules]]\neffect = 'deny'\ntool = 'bash'\n"), &call), "deny");
    assert_eq!(effect(&auto("[[rules]]\neffect = 'deny'\ntool = 'ba*'\n"), &call), "deny");
    assert_eq!(effect(&strict("[[rules]]\neffect = 'allow'\ntool = 'bash'\n"), &call), "deny");
}

#[test]
fn arguments_that_are_lists_and_objects() {
    let rule =
        |effect: &str| format!("[[rules]]\neffect = '{effect}'\nargument = {{ '/to' = '*@acme.org' }}\n");
    let sent = |to: Value| Call::of("send").with(json!({"to": to}));
    let (allow, deny) = (strict(&rule("allow")), auto(&rule("deny")));
    let cases = [
        (json!("a@acme.org"), "allow", "deny"),
        (json!("a@evil.org"), "deny", "allow"),
        (json!(["a@acme.org", "b@acme.org"]), "allow", "deny"),
        (json!(["a@acme.org", "b@evil.org"]), "deny", "deny"),
        (json!([]), "deny", "allow"),
        (json!({"x": 1}), "deny", "ask"),
        (json!([["a@acme.org"]]), "deny", "ask"),
    ];
    for (to, allowed, denied) in cases {
        let call = sent(to);
        assert_eq!((effect(&allow, &call), effect(&deny, &call)), (allowed, denied), "{:?}", call.arguments);
    }
    let nested = auto("[[rules]]\neffect = 'deny'\nargument = { '/a~1b/0/c' = '5' }\n");
    assert_eq!(effect(&nested, &Call::of("t").with(json!({"a/b": [{"c": 5}]}))), "deny");
}

#[test]
fn commands_that_are_denied_are_not_dodged() {
    let policy = auto("[[rules]]\neffect = 'deny'\ncommand = ['rm', 'git push']\n");
    let denied = [
        "rm x",
        "/bin/rm -rf x",
        "git push",
        "git push --force",
        "'rm' x",
        "sudo rm x",
        "env rm x",
        "sh -c 'rm x'",
        "ls; rm x",
        "X=1 rm x",
        "xargs rm",
        "time rm x",
        "true && rm -rf x",
    ];
    for text in denied {
        assert_eq!(effect(&policy, &Call::command(text)), "deny", "{text}");
    }
    // Where it cannot be seen, somebody is asked.
    for text in ["sh clean.sh", "$X x", "git -C . push", "eval \"$X\"", "r? x"] {
        assert_eq!(effect(&policy, &Call::command(text)), "ask", "{text}");
    }
    for text in ["ls", "git status", "rmdir x"] {
        assert_eq!(effect(&policy, &Call::command(text)), "allow", "{text}");
    }
    let mut code = Call::of("execute_code").with(json!({"code": "os.system('rm x')"}));
    code.definition.category = Category::CodeExecution;
    assert_eq!(effect(&policy, &code), "ask", "it runs a program and does not say which");
    assert_eq!(effect(&policy, &Call::of("read_file")), "allow", "it runs none");
}

/// Each starts as an allowed command does, or tries to. More of them, and those that run, are in `command_lines`.
const MUST_ASK: &[&str] = &[
    // Operators.
    "git status; rm -rf .",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status & rm x",
    "git status |& tee x",
    "git status;rm x",
    "git status)",
    "git status &&rm x",
    "echo a;;b",
    // Substitutions.
    "git log $(rm x)",
    "git log `rm x`",
    "echo \"`id`\"",
    "echo \"$(id)\"",
    "echo $((1+1))",
    "git log <(id)",
    "git log >(id)",
    "echo $'a\\nb'",
    "echo $\"a\"",
    "echo \"${x:-$(id)}\"",
    // Redirects and here-documents.
    "git log > x",
    "git log >> x",
    "git log &> x",
    "git log >| x",
    "ls <> x",
    "ls << EOF",
    "ls <<EOF\nrm x\nEOF",
    "ls <<< x",
    // Line ends and control characters.
    "git status\nrm x",
    "git status\r\nrm x",
    "git status\rrm x",
    "ls\u{0}",
    "ls \u{1b}[2J",
    "ls\u{b}x",
    "ls\u{85}rm",
    // Quotes and escapes.
    "git 'status",
    "git \"status",
    "'git status'",
    "git status '",
    // Wildcards, braces, home folders, comments.
    // Variables before the command, aliases, functions, the shell's own words.
    "X=1 git status",
    "PATH=/tmp git status",
    "GIT_PAGER=sh git log",
    "alias git=rm",
    "alias ls='rm -rf /'; ls",
    "git() { rm x; }",
    "function ls { rm x; }",
    "if true; then rm x; fi",
    "for i in a; do rm x; done",
    "case x in x) ls;; esac",
    "[[ -f x ]]",
    // Programs that run others.
    "env git status",
    "sudo git status",
    "exec git status",
    "eval git status",
    "command git status",
    "xargs git",
    "nohup git status",
    "sh -c 'git status'",
    "bash -c ls",
    "/usr/bin/env git status",
    ". ./git",
    "source git",
    "builtin echo a",
    "find . -exec rm x",
    "watch git status",
    // Letters that look like others.
    "git\u{a0}status",
    "ls \u{202e}x",
    "",
    "   ",
    "\t",
];

#[test]
fn lines_that_are_not_wholly_allowed_ask() {
    let policy = auto(
        "[[rules]]\nname = 'look'\neffect = 'allow'\nconfirms = true\n\
         command = ['git status', 'git log', 'git', 'ls', 'echo']\n",
    );
    assert!(MUST_ASK.len() >= 60, "{}", MUST_ASK.len());
    for text in MUST_ASK {
        let mut call = Call::command(text);
        call.definition.requires_confirmation = true;
        assert_eq!(effect(&policy, &call), "ask", "{text:?}");
        // Where every command is known, auto mode lets each run; where one is not, it asks.
        let is_known = line(text, Shell::Posix).parts.iter().all(|part| part.words().is_some());
        call.definition.requires_confirmation = false;
        assert_eq!(effect(&policy, &call), if is_known { "allow" } else { "ask" }, "{text:?} in auto mode");
    }
    for text in ["git status", "ls -la src", "echo 'two words'", "git log --oneline -5"] {
        let mut call = Call::command(text);
        call.definition.requires_confirmation = true;
        assert_eq!(decided(&policy, &call), ("allow", "look".into()), "{text}");
    }
    println!("{} shell texts ask", MUST_ASK.len());
}

#[test]
fn examples_are_checked_where_they_stand() {
    let cases = [
        (
            "[[rules]]\nname = 'a'\neffect = 'deny'\npath = 'secret/**'\n\
             examples = { match = ['secret/x', 'src/x'] }\n",
            "line 5: rule `a`: the example `src/x` must match, and does not",
        ),
        (
            "[[rules]]\nname = 'a'\neffect = 'allow'\ncommand = 'cargo test'\n\n[rules.examples]\nmatch = ['cargo test -q']\n\
             no_match = [\n  'cargo build',\n  'cargo test',\n]\n",
            "line 10: rule `a`: the example `cargo test` must not match, and does",
        ),
        (
            "[[rules]]\neffect = 'deny'\nhost = '*.corp'\nexamples = { match = [{ tool = 'fetch', hosts = ['corp'] }] }\n",
            "line 4: rule `rule 1`: the example `fetch corp` must match, and does not",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read_rules(text, "/work").unwrap_err().to_string(), expected);
    }
    let right = "[[rules]]\neffect = 'ask'\ntool = 'deploy_*'\nagent = 'did:*'\nargument = { '/env' = 'prod' }\n\
                 examples = { match = [{ arguments = { env = 'prod' } }], no_match = [{ arguments = { env = 'dev' } },\n\
                 { arguments = { env = 'prod' }, agent = 'x' }, { tool = 'build', arguments = { env = 'prod' } }] }\n";
    assert_eq!(read_rules(right, "/work").unwrap().len(), 1);
}

#[test]
fn a_broken_file_is_refused_with_the_line() {
    let cases = [
        ("[[rules]]\neffect = 'alow'\n", 2, "unknown variant"),
        ("[[rules]]\neffect = 'allow'\ntol = 'x'\n", 3, "unknown field `tol`"),
        ("rules = 3\n", 1, "invalid type"),
        ("[[rules]]\nname = 'x'\n", 1, "missing field `effect`"),
        ("\n[[rules]]\neffect = 'deny'\n", 2, "no condition"),
        ("[[rules]]\neffect = 'deny'\npath = 'a[b'\n", 1, "is no pattern"),
        ("[[rules]]\neffect = 'deny'\ncommand = 'a | b'\n", 1, "not the beginning of one simple command"),
        ("[[rules]]\neffect = 'allow'\ntool = 'x'\nconfirms = true\n", 1, "`confirms` is only for"),
        ("[[rules]]\neffect = 'deny'\ntool = 'x'\nremember = true\n", 1, "`remember` is only for"),
        ("[[rules]]\neffect = 'deny'\ntool = 'x'\naccess = 'read'\n", 1, "names none"),
        ("[[rules]]\neffect = 'deny'\nargument = { branch = 'x' }\n", 1, "write `/branch`"),
        (
            "[[rules]]\nname = 'a'\neffect = 'deny'\ntool = 'x'\n[[rules]]\nname = 'a'\neffect = 'ask'\ntool = 'y'\n",
            5,
            "same name",
        ),
        ("[[rules]\n", 1, ""),
        ("[[rules]]\neffect = 'deny'\ncategory = 'Filesystem'\n", 3, "expected one of `FileSystem`"),
        ("[[rules]]\neffect = 'deny'\nrisk = ['low', 'hihg']\n", 3, "unknown variant `hihg`"),
        ("[[rules]]\neffect = 'deny'\ntool = 5\n", 3, "expected a text, or a list of texts"),
        ("[[rules]]\neffect = 'deny'\ntool = ['a', '']\n", 1, "a `tool` is empty"),
        ("[[rules]]\neffect = 'deny'\nhost = 'http://example.com/'\n", 1, "is no host; write only its name"),
        ("[[rules]]\neffect = 'deny'\nhost = 'exam ple.com'\n", 1, "is no host"),
        ("[[rules]]\neffect = 'deny'\nhost = 'example.com:99999'\n", 1, "is no host"),
        ("[[rules]]\neffect = 'deny'\nhost = 'user@example.com'\n", 1, "is no host"),
        ("[[rules]]\neffect = 'deny'\nhost = 'example.com/path'\n", 1, "is no host"),
    ];
    for (text, line, message) in cases {
        let problems = read_rules(text, "/work").unwrap_err();
        let problem = &problems.0[0];
        assert_eq!(problem.line, Some(line), "{text}: {problems}");
        assert!(problem.message.contains(message), "{text}: {problems}");
    }
}

#[test]
fn hosts_that_are_some() {
    for host in [
        "example.com",
        "*.example.com",
        "*",
        "localhost:8080",
        "127.0.0.1",
        "[::1]:80",
        "::1",
        "münchen.example",
        "a_b.c",
    ] {
        let rule = format!("[[rules]]\neffect = 'deny'\nhost = '{host}'\n");
        assert_eq!(read_rules(&rule, "/work").map(|rules| rules.len()), Ok(1), "{host}");
    }
}

/// A misspelled list of rules is no empty one.
#[test]
fn a_section_has_rules_and_nothing_else() {
    let read = |text: &str| haft_guard::policy::read_policy_section(text, "/work");
    assert!(read("[[policy.rules]]\neffect = 'deny'\ntool = 'x'\n[tools]\nmode = 'enabled'\n").is_ok());
    for (text, message) in [
        ("[[policy.rule]]\neffect = 'deny'\ntool = 'x'\n", "unknown field `rule`, expected `rules`"),
        ("policy = 3\n", "a table with rules: [[policy.rules]]"),
    ] {
        let problems = read(text).map(|_| ()).unwrap_err().to_string();
        assert!(problems.contains(message), "{problems}");
    }
}

/// The first trap: a section that does not mention the denylist must not empty it.
#[test]
fn what_is_not_mentioned_stays() {
    let changed =
        ListPolicy::default().with(ListChanges { mode: Some(ApprovalMode::Auto), ..ListChanges::default() });
    assert_eq!(changed.denylist, ListPolicy::default().denylist);
    assert_eq!(changed.allowlist, ListPolicy::default().allowlist);
    let policy = PolicySet::new(changed, Vec::new()).unwrap();
    assert_eq!(decided(&policy, &Call::command("ls")), ("deny", "denylist".into()));
    let emptied =
        ListPolicy::default().with(ListChanges { denylist: Some(Vec::new()), ..ListChanges::default() });
    assert!(emptied.denylist.contains("run_command"), "an empty list adds nothing and takes nothing away");
    let opened = ListChanges { no_longer_denied: vec!["run_command".into()], ..ListChanges::default() };
    assert!(!ListPolicy::default().with(opened).denylist.contains("run_command"));
}

#[test]
fn a_broken_reload_keeps_the_old_policy_and_grants() {
    let rules = "[[rules]]\nname = 'old'\neffect = 'deny'\ntool = 'x'\n";
    let grant = Grant::new(
        "g",
        "acme",
        Covers::Host { tool: "y".into(), host: "h".into(), fixed: Default::default() },
        Lasts::Always,
    );
    let live = LivePolicy::new(strict(rules).with_grants(vec![grant]));
    let lists = || lists(ApprovalMode::Deny);
    assert!(live.reload(lists(), "[[rules]]\neffect = 'deny'\n", "/work").is_err());
    assert_eq!(live.now().rules()[0].name, "old");
    live.reload(lists(), &rules.replace("old", "new"), "/work").unwrap();
    let grants = || live.now().grant_source().grants("acme").unwrap().len();
    assert_eq!((live.now().rules()[0].name.as_str(), grants()), ("new", 1));
    live.replace(strict(""));
    assert_eq!((live.now().rules().len(), grants()), (0, 1));
}

struct Unreachable;

impl GrantSource for Unreachable {
    fn grants(&self, _tenant: &str) -> Result<Arc<[Grant]>, GuardError> {
        Err(GuardError("the store is gone".into()))
    }
}

/// A source that fails denies what it could have allowed, and is not asked about what runs anyway.
#[test]
fn grants_that_cannot_be_read_deny() {
    let policy =
        |mode| PolicySet::new(lists(mode), Vec::new()).unwrap().with_grant_source(Arc::new(Unreachable));
    let call = Call::of("tool").hosts(&["example.com"]);
    assert_eq!(
        policy(ApprovalMode::Prompt).decide(&call.subject()),
        Err(GuardError("the store is gone".into()))
    );
    assert_eq!(policy(ApprovalMode::Prompt).explain(&call.subject()).effect, Effect::Deny);
    assert_eq!(effect(&policy(ApprovalMode::Auto), &call), "allow");
}

#[test]
fn a_rule_that_asks_is_silenced_only_where_it_says_so() {
    let rule = "[[rules]]\nname = 'r'\neffect = 'ask'\nhost = 'example.com'\n";
    let covers = Covers::Host { tool: "fetch".into(), host: "example.com".into(), fixed: Default::default() };
    let grants = || vec![Grant::new("g", "acme", covers.clone(), Lasts::Always)];
    let call = Call::of("fetch").hosts(&["example.com"]);
    assert_eq!(decided(&auto(rule).with_grants(grants()), &call), ("ask", "r".into()));
    let remembers = format!("{rule}remember = true\n");
    assert_eq!(decided(&auto(&remembers).with_grants(grants()), &call), ("allow", "grant:g".into()));
}

#[test]
fn a_call_that_its_tool_wants_confirmed_is_allowed_by_nothing_general() {
    let rule = "[[rules]]\nname = 'r'\neffect = 'allow'\npath = '**'\nconfirms = true\n";
    let mut call = Call::of("apply_patch").writing(&["/work/a"]);
    assert_eq!(effect(&auto(rule), &call), "allow");
    call.confirm = Some("it deletes a file");
    assert_eq!(decided(&auto(rule), &call), ("ask", "tool_requires_confirmation".into()));
    let folder = Covers::ToolInFolder {
        tool: "apply_patch".into(),
        folder: "/work".into(),
        fixed: Default::default(),
    };
    let folder = Grant::new("f", "acme", folder, Lasts::Always);
    assert_eq!(effect(&strict("").with_grants(vec![folder.clone()]), &call), "ask");
    let exact = Covers::suggestions(&call.subject(), "Apply", Shell::Posix).remove(0);
    let exact = Grant::new("e", "acme", exact, Lasts::Always);
    assert_eq!(decided(&strict("").with_grants(vec![folder, exact]), &call), ("allow", "grant:e".into()));
}

#[test]
fn an_explanation_names_every_rule_and_the_way_out() {
    let policy = auto(
        "[[rules]]\nname = 'no pushes'\neffect = 'deny'\ncommand = 'git push'\n\
         [[rules]]\nname = 'night'\neffect = 'ask'\ntenant = 'other'\n",
    );
    let explanation = policy.explain(&Call::command("git push").subject());
    assert_eq!(
        explanation.to_string(),
        "deny, by `no pushes`\n  why: This call of `run_command` is denied by the rule `no pushes`. Do it in another way, \
         or ask the person who runs this to change the rule\nlooked at:\n  denylist (deny): does not, the tool is not on it\n\
         > no pushes (deny, line 1): holds\n  night (ask, line 5): does not, it is for other tenants\n\
         \u{20} tool (ask): does not, the tool does not always ask\n  allowlist (allow): does not, the tool is not on it\n\
         \u{20} mode (auto): holds\nwhat would change it:\n  change or remove the rule `no pushes` (line 1)\n"
    );
}

/// A rule that may only tighten never turns a refusal into a question, nor lets a grant answer what no grant may.
#[test]
fn what_may_only_tighten_loosens_nothing() {
    let asks = |remember: bool| {
        let when = Conditions { tools: vec!["tool".into()], ..Conditions::default() };
        Rule { only_tightens: true, remember, ..Rule::new("folder", Effect::Ask, when) }
    };
    let covers = Covers::Host { tool: "tool".into(), host: "example.com".into(), fixed: Default::default() };
    let grant = || vec![Grant::new("g", "acme", covers.clone(), Lasts::Always)];
    let call = Call::of("tool").hosts(&["example.com"]);
    let set = |mode, rules: Vec<Rule>| PolicySet::new(lists(mode), rules).unwrap();

    assert_eq!(decided(&set(ApprovalMode::Deny, vec![asks(true)]), &call), ("deny", "mode_deny".into()));
    assert_eq!(decided(&set(ApprovalMode::Auto, vec![asks(true)]), &call), ("ask", "folder".into()));
    let granted = set(ApprovalMode::Deny, vec![asks(true)]).with_grants(grant());
    assert_eq!(decided(&granted, &call), ("allow", "grant:g".into()), "as it is without the rule");
    let own = read_rules("[[rules]]\nname = 'own'\neffect = 'ask'\nhost = 'example.com'\n", "/work").unwrap();
    for order in [[own[0].clone(), asks(true)], [asks(true), own[0].clone()]] {
        let policy = set(ApprovalMode::Auto, order.to_vec()).with_grants(grant());
        assert_eq!(decided(&policy, &call), ("ask", "own".into()), "a grant does not answer it");
    }
    let allows = Rule { effect: Effect::Allow, ..asks(false) };
    assert!(PolicySet::new(lists(ApprovalMode::Auto), vec![allows]).is_err());
}

#[test]
fn a_rule_reads_as_it_is_written() {
    let text = r#"[[rules]]
name = "everything"
effect = "allow"
reason = "why"
tool = "run_*"
category = ["FileSystem", "System"]
risk = "low"
path = ["src/**", "**/*.rs"]
access = "write"
command = ["cargo test", "git commit -m 'two words'"]
host = "*.example.com"
argument = { "/a" = "b*" }
agent = "did:*"
tenant = "acme"
confirms = true
"#;
    let rules = read_rules(text, "/work").unwrap();
    let written = toml::to_string(&json!({"rules": rules})).unwrap();
    let again = read_rules(&written, "/elsewhere").unwrap();
    assert_eq!(again, [Rule { line: again[0].line, ..rules[0].clone() }]);
}

#[test]
fn a_rule_has_no_name_that_means_something_else() {
    for name in ["denylist", "mode", "grant:g1", ""] {
        let text = format!("[[rules]]\nname = '{name}'\neffect = 'deny'\ntool = 'x'\n");
        let problem = read_rules(&text, "/work").unwrap_err().to_string();
        assert!(problem.starts_with(&format!("line 1: rule `{name}`: the")), "{problem}");
    }
}

#[test]
fn there_is_an_end_to_rules() {
    let rules = |count: usize| -> String {
        (0..count).map(|number| format!("[[rules]]\neffect = 'deny'\ntool = 't{number}'\n")).collect()
    };
    assert_eq!(read_rules(&rules(10_000), "/work").unwrap().len(), 10_000);
    let problem = read_rules(&rules(10_001), "/work").unwrap_err().to_string();
    assert_eq!(problem, "line 30001: rule `rule 10001`: there are more than 10000 rules");
}

/// A hundred times as many rules about other things cost no ten times as much: each kind is found by what it is about.
#[test]
fn a_decision_takes_as_long_with_ten_thousand_rules() {
    type Kind = (&'static str, fn(usize) -> String);
    let kinds: [Kind; 8] = [
        ("tools", |n| format!("tool = 'tool_{n}'")),
        ("tools with wildcards", |n| format!("tool = 'server_{n}__*'\nargument = {{ '/env' = 'prod' }}")),
        ("agents with wildcards", |n| format!("agent = 'did:agent:{n}:*'")),
        ("tenants", |n| format!("tenant = 'tenant-{n}'\nrisk = 'high'")),
        ("commands", |n| format!("command = 'program_{n} run'")),
        ("hosts", |n| format!("host = '*.host-{n}.example'")),
        ("paths", |n| format!("path = 'secret_{n}/**/*.key'")),
        ("paths anywhere", |n| format!("path = '**/secret_{n}.key'")),
    ];
    let calls = [
        Call::of("edit_file").writing(&["/work/src/lib.rs"]),
        Call::of("run_command").with(json!({"command": "cargo test && cd src && ls"})).writing(&["/work/x"]),
    ];
    for (kind, condition) in kinds {
        let policy = |count: usize| {
            let rule = |n| format!("[[rules]]\nname = 'r{n}'\neffect = 'deny'\n{}\n", condition(n));
            auto(&(0..count).map(rule).collect::<String>())
        };
        let time = |policy: &PolicySet| {
            let round = || {
                let begun = std::time::Instant::now();
                for _ in 0..50 {
                    calls.iter().for_each(|call| drop(decided(policy, call)));
                }
                begun.elapsed().as_secs_f64()
            };
            // The first compiles what calls are about.
            round();
            (0..7).map(|_| round()).fold(f64::INFINITY, f64::min) / 50.0
        };
        let (few, many) = (time(&policy(100)), time(&policy(10_000)));
        println!("{kind}: {:.1} µs with 100 rules, {:.1} µs with 10,000", few * 1e6, many * 1e6);
        assert!(many < 10.0 * few + 50e-6, "{kind}: {few} s with 100 rules and {many} s with 10,000");
    }
}

/// The index only leaves out rules that say nothing: names with wildcards are found however they are written.
#[test]
fn rules_with_wildcards_in_names_are_found() {
    let rules = "[[rules]]\nname = 'r'\neffect = 'deny'\n";
    for (condition, tool, expected) in [
        ("tool = 'edit_*'", "edit_file", "deny"),
        ("tool = 'EDIT_*'", "edit_file", "deny"),
        ("tool = 'edit_fil?'", "edit_file", "deny"),
        ("tool = 'edit_file*'", "edit_file", "deny"),
        ("tool = 'edit_file?'", "edit_file", "allow"),
        ("tool = 'edit_files*'", "edit_file", "allow"),
        ("tool = ['other', 'e*']", "edit_file", "deny"),
        ("tool = ['other', '*e']", "edit_file", "deny"),
        ("tool = 'é*'", "edit_file", "allow"),
        ("tool = '?dit_file'", "edit_file", "deny"),
    ] {
        let policy = auto(&format!("{rules}{condition}\n"));
        assert_eq!(decided(&policy, &Call::of(tool).writing(&["/work/x"])).0, expected, "{condition}");
    }
}

/// Nothing is compiled before a call needs it: at load, in debug, this took ten seconds.
#[test]
fn ten_thousand_path_rules_are_read_at_once() {
    let rules: String = (0..10_000)
        .map(|n| {
            format!("[[rules]]\nname = 'r{n}'\neffect = 'deny'\npath = ['secret_{n}/**/*.key', 'src_{n}/{{a,b}}_?/**']\n")
        })
        .collect();
    let start = std::time::Instant::now();
    let policy = auto(&rules);
    let took = start.elapsed();
    println!("10,000 rules with 20,000 path patterns read in {took:?}");
    assert!(took.as_secs() < 30, "{took:?}, without optimisation");
    let cases = [
        ("/work/secret_7/x/y.key", ("deny", "r7")),
        ("/work/src_1999/b_x/z", ("deny", "r1999")),
        ("/work/src_1999/c_x/z", ("allow", "mode")),
        ("/work/secret_7", ("ask", "r7")),
    ];
    for (path, (effect, rule)) in cases {
        assert_eq!(
            decided(&policy, &Call::of("edit_file").writing(&[path])),
            (effect, rule.to_owned()),
            "{path}"
        );
    }
}

/// A licence opens nothing: below Enterprise a rule that allows by who calls is passed over, one that asks or denies
/// holds.
#[test]
fn rules_by_caller_and_the_licence() {
    let rule = |effect: &str, condition: &str| {
        strict(&format!(
            "[[rules]]\nname = 'r'\neffect = '{effect}'\ntool = 'edit_file'\n{condition} = '*'\n"
        ))
    };
    for tier in Tier::ALL {
        let mut call = Call::of("edit_file").writing(&["/work/a"]);
        call.context.tier = tier;
        for condition in ["agent", "tenant"] {
            let allowed = effect(&rule("allow", condition), &call);
            assert_eq!(allowed == "allow", tier == Tier::Enterprise, "{tier:?} {condition}");
            assert_eq!(effect(&rule("deny", condition), &call), "deny", "{tier:?}");
            assert_eq!(decided(&rule("ask", condition), &call), ("ask", "r".to_owned()), "{tier:?}");
        }
        let explained = rule("allow", "agent").explain(&call.subject()).to_string();
        let words = "r (allow, line 1): does not, allowing by agent or tenant needs the Enterprise tier";
        assert_eq!(explained.contains(words), tier < Tier::Enterprise, "{explained}");
    }
}

/// An allow rule for a command is about the command: variables and input make it another one, so somebody is asked.
/// What denies is not kept from it.
#[test]
fn an_allow_rule_for_a_command_looks_at_what_stands_beside_it() {
    let rules = "[[rules]]\nname = 'status'\neffect = 'allow'\nconfirms = true\ncommand = 'git status'\n\
                 [[rules]]\nname = 'test'\neffect = 'allow'\nconfirms = true\ncommand = 'cargo test'\n\
                 argument = { '/env/CI' = '1' }\n\
                 [[rules]]\nname = 'push'\neffect = 'deny'\ncommand = 'git push'\n";
    let lists = ListPolicy { denylist: [].into(), mode: ApprovalMode::Auto, ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(rules, "/work").unwrap()).unwrap().for_shell(Shell::Posix);
    let context = CallContext::new("acme", "agent");
    let definition = ToolDefinition::new("run_command", "Runs a command");
    let decided = |arguments: Value| {
        let (footprint, now) = (Footprint::undeclared(true), Timestamp::UNIX_EPOCH);
        let arguments = arguments.as_object().unwrap();
        let (context, definition, footprint) = (&context, &definition, &footprint);
        match policy
            .decide(&Subject {
                context,
                definition,
                arguments,
                footprint,
                folder: "/w",
                confirm: None,
                accepts: haft_core::port::AcceptAnswers::from_any(),
                now,
            })
            .unwrap()
        {
            Verdict::Allow { rule, .. } => format!("allow {rule}"),
            Verdict::Ask { rule, reason } => {
                assert!(reason.contains("beside its command"), "{reason}");
                format!("ask {rule}")
            }
            Verdict::Deny { rule, .. } => format!("deny {rule}"),
        }
    };
    let cases = [
        (json!({"command": "git status -s"}), "allow status"),
        (json!({"command": "git status", "working_dir": "src", "timeout": 9, "env": {}}), "allow status"),
        (json!({"command": "git status", "env": {"PATH": "./bin"}}), "ask status"),
        (json!({"command": "git status", "env": {"GIT_CONFIG_COUNT": "1"}}), "ask status"),
        (json!({"command": "git status", "stdin": "x"}), "ask status"),
        (json!({"command": "cargo test", "env": {"CI": "1"}}), "allow test"),
        (json!({"command": "cargo test", "env": {"CI": "1", "RUSTC": "./x"}}), "ask test"),
        (json!({"command": "git push", "env": {"PATH": "./bin"}}), "deny push"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(decided(arguments.clone()), expected, "{arguments}");
    }
}
