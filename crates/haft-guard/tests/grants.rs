//! Grants cover what they say in words, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    CallContext, Channel, Footprint, Resource, ToolDefinition,
    port::{AcceptAnswers, Policy as _, Subject},
};
use haft_guard::{
    Covers, Fixed, Grant, Lasts, ListPolicy, PastPrompt, PolicySet, command::Shell, covers_how_many,
    policy::read_rules,
};
use jiff::Timestamp;
use serde_json::{Value, json};

struct Call(CallContext, ToolDefinition, Value, Footprint);

impl Call {
    fn new(tool: &str, arguments: Value, footprint: Footprint) -> Self {
        Call(CallContext::new("acme", "agent"), ToolDefinition::new(tool, "A tool"), arguments, footprint)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            context: &self.0,
            definition: &self.1,
            arguments: self.2.as_object().unwrap(),
            footprint: &self.3,
            folder: "/w",
            confirm: None,
            accepts: AcceptAnswers::from_any(),
            now: Timestamp::from_second(1_000).unwrap(),
        }
    }
}

fn writes(paths: &[&str]) -> Footprint {
    Footprint::writes(paths.iter().map(|&path| Resource::path(path)))
}

/// Nothing but these, which are free.
fn free(names: &[&str]) -> Fixed {
    Fixed { free: names.iter().map(|&name| name.to_owned()).collect(), ..Fixed::default() }
}

fn always(covers: Covers) -> Grant {
    Grant::new("g", "acme", covers, Lasts::Always)
}

#[test]
fn each_kind_covers_what_it_says() {
    let edit = |path: &str| Call::new("edit_file", json!({"path": path, "n": 1}), writes(&[path]));
    let exact = Covers::suggestions(&edit("/w/a").subject(), "Edit a", Shell::Posix).remove(0);
    let fixed = Fixed::of(json!({"n": 1}).as_object().unwrap(), vec!["path".into()]);
    let folder = Covers::ToolInFolder { tool: "edit_file".into(), folder: "/w/src".into(), fixed };
    let (words, fixed) = (vec!["cargo".into(), "test".into()], free(&["command"]));
    let commands = |words: &[&str]| Covers::Commands {
        tool: "run_command".into(),
        words: words.iter().map(ToString::to_string).collect(),
        fixed: free(&["command"]),
        folder: Some("/w".into()),
    };
    let (git, all_of_git) = (commands(&["git", "log"]), commands(&["git"]));
    let words = Covers::Commands { tool: "run_command".into(), words, fixed, folder: Some("/w".into()) };
    let host = Covers::Host { tool: "web_fetch".into(), host: "example.com".into(), fixed: free(&[]) };
    let run = |text: &str| Call::new("run_command", json!({"command": text}), Footprint::undeclared(true));
    let fetch = |hosts: &[&str]| {
        let hosts = hosts.iter().map(|&host| Resource::Host(host.to_owned()));
        Call::new("web_fetch", json!({}), Footprint::reads(hosts))
    };
    let beside = |others: Value| {
        let mut arguments = others;
        arguments["command"] = "cargo test".into();
        Call::new("run_command", arguments, Footprint::undeclared(true))
    };
    let cases = [
        (&exact, edit("/w/a"), true),
        (&exact, edit("/w/b"), false),
        (&exact, Call::new("edit_file", json!({"n": 1, "path": "/w/a"}), writes(&["/w/a"])), true),
        (&exact, Call::new("edit_file", json!({"path": "/w/a", "n": 2}), writes(&["/w/a"])), false),
        // The same arguments that lead elsewhere now, as after a link was swapped.
        (&exact, Call::new("edit_file", json!({"path": "/w/a", "n": 1}), writes(&["/etc/a"])), false),
        (&exact, Call::new("write_file", json!({"path": "/w/a", "n": 1}), writes(&["/w/a"])), false),
        (&folder, edit("/w/src/deep/a"), true),
        (&folder, edit("/w/src"), true),
        (&folder, edit("/w/src2/a"), false),
        (&folder, edit("/w"), false),
        // The same place, and a switch that is another, or new, or gone.
        (&folder, Call::new("edit_file", json!({"path": "a", "n": 2}), writes(&["/w/src/a"])), false),
        (&folder, Call::new("edit_file", json!({"path": "a", "n": 1, "m": 1}), writes(&["/w/src/a"])), false),
        (&folder, Call::new("edit_file", json!({"path": "a"}), writes(&["/w/src/a"])), false),
        (&folder, Call::new("edit_file", json!({}), writes(&["/w/src/a", "/w/b"])), false),
        (&folder, Call::new("edit_file", json!({}), Footprint::undeclared(true)), false),
        (&folder, Call::new("edit_file", json!({}), Footprint::default()), false),
        (&words, run("cargo test"), true),
        (&words, run("cargo test -p core 'a b'"), true),
        (&words, run("cargo testing"), false),
        (&words, run("cargo"), false),
        (&words, run("cargo test; rm x"), false),
        (&words, run("cargo test $(rm x)"), false),
        (&words, run("sudo cargo test"), false),
        (&words, run("./cargo test"), false),
        // What the words did not say: an option that runs another program, or may.
        (&words, run("cargo test --config build.rustc-wrapper=./x"), false),
        (&words, run("cargo test --conf=x"), false),
        (&words, run("cargo test $X"), false),
        (&git, run("git log -5"), true),
        (&git, run("git log --output=F"), false),
        (&git, run("git log --outp F"), false),
        (&all_of_git, run("git -C . status"), true),
        (&all_of_git, run("git -c alias.z=x z"), false),
        (&all_of_git, run("git --shallow-file x -c alias.z='!id' z"), false),
        (&all_of_git, run("git bisect run ./x"), false),
        (&all_of_git, run("git config core.pager ./x"), false),
        (&words, beside(json!({"env": {"PATH": "./bin"}})), false),
        (&words, beside(json!({"env": {"GIT_CONFIG_COUNT": "1"}})), false),
        (&words, beside(json!({"stdin": "x"})), false),
        (&words, beside(json!({"working_dir": "elsewhere"})), false),
        (&words, beside(json!({"timeout": 5})), false),
        (&words, beside(json!({})), true),
        (&host, fetch(&["example.com"]), true),
        (&host, fetch(&["EXAMPLE.com:443"]), true),
        (&host, fetch(&["example.com:22"]), false),
        (&host, fetch(&["example.com", "evil.org"]), false),
        (&host, fetch(&[]), false),
    ];
    for (covers, call, expected) in cases {
        assert_eq!(
            always(covers.clone()).covers(&call.subject(), Shell::Posix),
            expected,
            "{covers:?} {} {:?}",
            call.2,
            call.3
        );
    }
}

/// Whatever a tool takes beside its command: there as it was, or absent as it was.
#[test]
fn a_grant_for_commands_looks_at_every_other_argument() {
    let names =
        ["env", "stdin", "working_dir", "files", "timeout", "terminal", "limits", "isolation", "name"];
    let values = [json!("x"), json!(1), json!(true), json!(["x"]), json!({"A": "1"})];
    let run = |arguments: Value| Call::new("run_command", arguments, Footprint::undeclared(true));
    let commands = |call: &Call| always(Covers::suggestions(&call.subject(), "x", Shell::Posix)[1].clone());
    let plain = run(json!({"command": "git status"}));
    let without = commands(&plain);
    assert!(without.covers(&plain.subject(), Shell::Posix), "the control");
    for name in names {
        for value in &values {
            let with = run(json!({"command": "git status", name: value}));
            assert!(!without.covers(&with.subject(), Shell::Posix), "{name} {value} is new");
            assert!(commands(&with).covers(&with.subject(), Shell::Posix), "{name} {value} is as it was");
            assert!(!commands(&with).covers(&plain.subject(), Shell::Posix), "{name} {value} is gone");
            for other in values.iter().filter(|other| *other != value) {
                let changed = run(json!({"command": "git status", name: other}));
                assert!(!commands(&with).covers(&changed.subject(), Shell::Posix), "{name} {value} {other}");
            }
        }
    }
}

/// A grant for a folder or a host frees names and contents. What says how a tool acts stays as it was shown.
#[test]
fn a_grant_for_a_place_frees_no_switch_and_no_choice() {
    let kinds = [
        ("boolean", json!({"type": "boolean"}), json!(true), json!(false)),
        ("integer", json!({"type": "integer"}), json!(1), json!(2)),
        ("number", json!({"type": "number"}), json!(1.5), json!(2.5)),
        ("object", json!({"type": "object"}), json!({"a": 1}), json!({"a": 2})),
        ("untyped", json!({}), json!("a"), json!("b")),
        ("mixed", json!({"type": ["string", "integer"]}), json!("a"), json!("b")),
        ("enum", json!({"type": "string", "enum": ["a", "b"]}), json!("a"), json!("b")),
        ("const", json!({"type": "string", "const": "a"}), json!("a"), json!("b")),
        ("$ref", json!({"type": "string", "$ref": "#/$defs/x"}), json!("a"), json!("b")),
        ("oneOf", json!({"type": "string", "oneOf": [{"const": "a"}]}), json!("a"), json!("b")),
        ("anyOf", json!({"type": "string", "anyOf": [{"const": "a"}]}), json!("a"), json!("b")),
        ("allOf", json!({"type": "string", "allOf": [{"enum": ["a", "b"]}]}), json!("a"), json!("b")),
    ];
    let hosts = |host: &str| Footprint::writes([Resource::Host(host.to_owned())]);
    for (place, here) in [("/w/src/a", writes(&["/w/src/a"])), ("example.com", hosts("example.com"))] {
        for (kind, schema, shown, other) in &kinds {
            let call = |value: Option<&Value>, text: &str| {
                let mut arguments = json!({"where": place, "text": text});
                if let Some(value) = value {
                    arguments["how"] = value.clone();
                }
                let mut call = Call::new("act", arguments, here.clone());
                let text = json!({"type": "string"});
                let schema =
                    json!({"type": "object", "properties": {"where": text, "text": text, "how": schema}});
                call.1.parameters = haft_core::Parameters::Schema(schema);
                call
            };
            let given = call(Some(shown), "one");
            let grant = always(Covers::suggestions(&given.subject(), "x", Shell::Posix)[1].clone());
            let covers = |call: &Call| grant.covers(&call.subject(), Shell::Posix);
            assert!(covers(&given) && covers(&call(Some(shown), "two")), "{place} {kind}: the control");
            assert!(!covers(&call(Some(other), "one")), "{place} {kind}: another one");
            assert!(!covers(&call(None, "one")), "{place} {kind}: none");
        }
    }
}

/// What is read counts as much as what is written.
#[test]
fn a_grant_looks_at_both_sides_of_what_is_touched() {
    let sides = |reads: &[Resource], writes: &[Resource]| {
        let mut both = Footprint::writes(writes.iter().cloned());
        both.reads = Footprint::reads(reads.iter().cloned()).reads;
        Call::new("t", json!({}), both)
    };
    for (here, elsewhere) in [
        (Resource::path("/w/src/a"), Resource::path("/etc/b")),
        (Resource::Host("example.com".into()), Resource::Host("evil.example".into())),
    ] {
        let (here, elsewhere) = (std::slice::from_ref(&here), std::slice::from_ref(&elsewhere));
        let given = sides(here, here);
        for covers in Covers::suggestions(&given.subject(), "x", Shell::Posix) {
            let holds = |call: &Call| always(covers.clone()).covers(&call.subject(), Shell::Posix);
            assert!(holds(&given), "the control: {covers}");
            assert!(!holds(&sides(elsewhere, here)), "{covers}");
            assert!(!holds(&sides(here, elsewhere)), "{covers}");
        }
    }
}

#[test]
fn whose_and_for_how_long() {
    let covers = Covers::ToolInFolder { tool: "t".into(), folder: "/w".into(), fixed: free(&[]) };
    let mut call = Call::new("t", json!({}), writes(&["/w/a"]));
    let why = |grant: &Grant, call: &Call| grant.why_not(&call.subject(), Shell::Posix);
    let at = |second| Timestamp::from_second(second).unwrap();
    let lasting = |lasts| Grant { lasts, ..always(covers.clone()) };
    assert_eq!(why(&lasting(Lasts::Until(at(1_001))), &call), None);
    assert_eq!(why(&lasting(Lasts::Until(at(1_000))), &call), Some("it has expired"));
    assert!(lasting(Lasts::Until(at(5))).is_over(at(5)) && !lasting(Lasts::Always).is_over(at(5)));
    assert_eq!(why(&lasting(Lasts::Session("s".into())), &call), Some("it was for another session"));
    call.0.session = Some("s".into());
    assert_eq!(why(&lasting(Lasts::Session("s".into())), &call), None);
    let to = |principal: &str| Grant { principal: Some(principal.into()), ..always(covers.clone()) };
    assert_eq!(why(&to("agent"), &call), None);
    assert_eq!(why(&to("other"), &call), Some("it was given to somebody else"));
    call.0.user = Some("ada".into());
    assert_eq!(
        why(&to("agent"), &call),
        Some("it was given to somebody else"),
        "the person counts where one is named"
    );
    call.0.tenant = "other".into();
    assert_eq!(why(&always(covers), &call), Some("it is another tenant's"));
}

#[test]
fn what_is_offered_can_be_said_in_words() {
    let words = |call: &Call| {
        let offered = Covers::suggestions(&call.subject(), "What it does", Shell::Posix);
        assert!(offered.iter().all(|covers| always(covers.clone()).covers(&call.subject(), Shell::Posix)));
        offered.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let exact = |tool: &str| format!("`{tool}`, only this very call (What it does), in the folder `/w`");
    let run = Call::new("run_command", json!({"command": "git -C x status"}), Footprint::undeclared(true));
    assert_eq!(words(&run), [exact("run_command")], "`git` would be every command of it");
    let piped = Call::new("run_command", json!({"command": "git log | sh"}), Footprint::undeclared(true));
    assert_eq!(words(&piped), [exact("run_command")]);
    let copy = Call::new("copy", json!({}), writes(&["/w/src/a/x", "/w/src/b/y"]));
    assert_eq!(
        words(&copy),
        [exact("copy"), "`copy`, every call that touches only what is in `/w/src`".to_owned()]
    );
    let apart = Call::new("copy", json!({}), writes(&["/w/a", "/etc/b"]));
    assert_eq!(words(&apart), [exact("copy")], "everything is not a folder that a person means");
    let fetch = Call::new("f", json!({}), Footprint::reads([Resource::Host("example.com".into())]));
    assert_eq!(words(&fetch)[1], "`f`, every call that touches only the host `example.com`");
}

/// What is remembered says what else was in the call, and looks like no other.
#[test]
fn what_stays_as_it_was_is_said() {
    let words = |arguments: Value| {
        let call = Call::new("run_command", arguments, Footprint::undeclared(true));
        Covers::suggestions(&call.subject(), "x", Shell::Posix)[1].to_string()
    };
    let starts = "`run_command`, every command that starts with";
    let cases = [
        (json!({"command": "git status"}), "`git status`, in the folder `/w`"),
        (
            json!({"command": "git status", "env": {"PATH": "./bin"}}),
            "`git status`, in the folder `/w`, with the same `env` as here",
        ),
        (
            json!({"command": "git status", "env": {}, "stdin": "x", "working_dir": "y"}),
            "`git status`, in the folder `/w`, with the same `stdin` and `working_dir` as here",
        ),
        (json!({"command": "cargo 'te  st'"}), "`cargo 'te  st'`, in the folder `/w`"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(words(arguments.clone()), format!("{starts} {expected}"), "{arguments}");
    }
    // An empty one is not said, and must stay empty all the same. One that an earlier haft named is known.
    let run = |arguments: Value| Call::new("run_command", arguments, Footprint::undeclared(true));
    let filled_in = run(json!({"command": "git status", "env": {}, "stdin": ""}));
    let covers = Covers::suggestions(&filled_in.subject(), "x", Shell::Posix)[1].clone();
    assert_eq!(covers.to_string(), format!("{starts} `git status`, in the folder `/w`"));
    let mut earlier = covers.clone();
    if let Covers::Commands { fixed, .. } = &mut earlier {
        fixed.names = vec!["env".into(), "stdin".into()];
    }
    for (arguments, is_covered) in [
        (json!({"command": "git status -s", "env": {}, "stdin": ""}), true),
        (json!({"command": "git status", "env": {"PATH": "./bin"}, "stdin": ""}), false),
        (json!({"command": "git status", "env": {}, "stdin": "x"}), false),
        (json!({"command": "git status", "env": {}, "stdin": "", "timeout": 1}), false),
    ] {
        for covers in [&covers, &earlier] {
            let call = run(arguments.clone());
            let covered = always(covers.clone()).covers(&call.subject(), Shell::Posix);
            assert_eq!(covered, is_covered, "{arguments}");
        }
    }
    // A summary comes spelled out; the rest is spelled here.
    let exact = &Covers::suggestions(&filled_in.subject(), "Run ls ⟨ESC⟩[2J", Shell::Posix)[0];
    assert_eq!(exact.to_string(), "`run_command`, only this very call (Run ls ⟨ESC⟩[2J), in the folder `/w`");
    // Values are not in what is stored: a variable may be a secret.
    let secret = json!({"command": "git status", "env": {"TOKEN": "hunter2-hunter2"}});
    let call = Call::new("run_command", secret, Footprint::undeclared(true));
    for covers in Covers::suggestions(&call.subject(), "x", Shell::Posix) {
        assert!(!covers.offer().unwrap().covers.to_string().contains("hunter2"), "{covers:?}");
    }
}

/// A grant for commands from before it looked at other arguments holds for calls that have none; one for a folder,
/// which does not say what is free, holds for no call with arguments.
#[test]
fn what_was_granted_before_covers_no_more_than_was_said() {
    let old = |document: Value| always(Covers::from_document(&document).unwrap());
    let commands =
        old(json!({"kind": "commands", "tool": "run_command", "words": ["git", "status"], "folder": "/w"}));
    let run = |arguments: Value| Call::new("run_command", arguments, Footprint::undeclared(true));
    assert!(commands.covers(&run(json!({"command": "git status -s"})).subject(), Shell::Posix));
    let changed = run(json!({"command": "git status", "env": {"PATH": "./bin"}}));
    assert!(!commands.covers(&changed.subject(), Shell::Posix));
    let folder = old(json!({"kind": "tool_in_folder", "tool": "write_file", "folder": "/w"}));
    let write = Call::new("write_file", json!({"path": "a", "mode": "overwrite"}), writes(&["/w/a"]));
    assert!(!folder.covers(&write.subject(), Shell::Posix));
}

#[test]
fn past_questions_are_counted() {
    let asked: Vec<PastPrompt> = [("t", "/w/a"), ("t", "/w/b"), ("t", "/etc/b"), ("u", "/w/a")]
        .into_iter()
        .map(|(tool, path)| PastPrompt {
            tool: tool.into(),
            arguments: json!({"path": path}).as_object().unwrap().clone(),
            footprint: writes(&[path]),
            folder: "/elsewhere".into(),
        })
        .collect();
    let covers = Covers::ToolInFolder { tool: "t".into(), folder: "/w".into(), fixed: free(&["path"]) };
    assert_eq!(covers_how_many(&covers, &asked, Shell::Posix), 2);
}

#[test]
fn a_grant_survives_being_stored() {
    let grants = [
        always(Covers::Host { tool: "t".into(), host: "h".into(), fixed: free(&["url"]) }),
        Grant {
            principal: Some("p".into()),
            granted_by: Some("ada".into()),
            granted_at: Some(Timestamp::UNIX_EPOCH),
            lasts: Lasts::Until(Timestamp::UNIX_EPOCH),
            ..always(Covers::Commands {
                tool: "t".into(),
                words: vec!["a".into()],
                fixed: free(&["command"]),
                folder: Some("/w".into()),
            })
        },
        Grant {
            lasts: Lasts::Session("s".into()),
            ..always(Covers::ExactCall {
                tool: "t".into(),
                digest: "00".into(),
                summary: "x".into(),
                folder: None,
            })
        },
    ];
    for grant in grants {
        let text = serde_json::to_string(&grant).unwrap();
        assert_eq!(serde_json::from_str::<Grant>(&text).unwrap(), grant, "{text}");
    }
    let more = r#"{"id":"g","tenant":"t","covers":{"kind":"everything"},"lasts":{"lasts":"always"}}"#;
    assert!(serde_json::from_str::<Grant>(more).is_err(), "what is not known is no grant");
}

fn kinds(policy: &PolicySet, subject: &Subject<'_>) -> Vec<String> {
    policy.offers(subject, "does it").iter().map(|offer| offer.kind().to_owned()).collect()
}

#[test]
fn only_what_would_have_spared_the_question_is_offered() {
    let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
    let plain = PolicySet::new(lists.clone(), Vec::new()).unwrap().for_shell(Shell::Posix);
    let edit = Call::new("edit_file", json!({"path": "a"}), writes(&["/w/src/a"]));
    assert_eq!(kinds(&plain, &edit.subject()), ["exact_call", "tool_in_folder"]);
    // A tool that wants this very call confirmed is satisfied by no other grant.
    let grave = Subject { confirm: Some("it deletes"), ..edit.subject() };
    assert_eq!(kinds(&plain, &grave), ["exact_call"]);
    // A rule that asks every time is satisfied by none; one that may be remembered, by all.
    for (remember, offered) in [("", &[][..]), ("remember = true\n", &["exact_call", "tool_in_folder"])] {
        let text = format!("[[rules]]\nname = 'r'\neffect = 'ask'\n{remember}tool = 'edit_file'\n");
        let rules = read_rules(&text, "/w").unwrap();
        let policy = PolicySet::new(lists.clone(), rules).unwrap().for_shell(Shell::Posix);
        assert_eq!(kinds(&policy, &edit.subject()), offered, "{text}");
    }
    let rules = read_rules("[[rules]]\nname = 'r'\neffect = 'deny'\ntool = 'edit_file'\n", "/w").unwrap();
    assert!(kinds(&PolicySet::new(lists, rules).unwrap(), &edit.subject()).is_empty(), "a deny stays one");
}

#[test]
fn commands_are_offered_by_words_that_say_something() {
    let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
    let policy = PolicySet::new(lists, Vec::new()).unwrap().for_shell(Shell::Posix);
    let offered = |text: &str| {
        let call = Call::new("run_command", json!({"command": text}), writes(&["/w/src"]));
        let mut definition = call.1.clone();
        definition.requires_confirmation = true;
        let subject = Subject { definition: &definition, ..call.subject() };
        let offers = policy.offers(&subject, "runs it");
        offers.iter().map(|offer| offer.covers["words"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(offered("cargo test -p core"), ["null", r#"["cargo","test"]"#], "never the folder");
    assert_eq!(offered("make -j4"), ["null", r#"["make"]"#]);
    for broad in [
        "rm x",
        "/bin/rm x y",
        "cp a b",
        "curl x",
        "git -C . status",
        "git -C x log",
        "git log --output=F",
        "git --attr-source HEAD log",
        "git bisect run x",
        "git config a.b c",
        "git 'x\u{202e}y'",
        "sed -i s/a/b/ x",
        "sort -o F x",
        "cargo -q test",
        "npm --silent test",
        "vim x",
        "rm -rf x",
        "bash -c ls",
        "python3 -c 1",
        "/bin/sh -x",
        "cargo test; rm x",
        "env -i ls",
    ] {
        assert_eq!(offered(broad), ["null"], "{broad}");
    }
}

#[test]
fn the_list_of_programs_that_say_little_is_searched_as_a_sorted_one() {
    let policy =
        PolicySet::new(ListPolicy { denylist: [].into(), ..ListPolicy::default() }, Vec::new()).unwrap();
    let policy = policy.for_shell(Shell::Posix);
    for program in
        ["awk", "bash", "cmd.exe", "dd", "find", "npx", "rm", "sed", "tee", "uvx", "wget", "xargs", "zsh"]
    {
        let call = Call::new("run_command", json!({"command": format!("{program} -x")}), writes(&["/w/src"]));
        assert_eq!(kinds(&policy, &call.subject()), ["exact_call"], "{program}");
    }
}

#[test]
fn a_grant_counts_where_answers_of_its_channel_count() {
    let call = Call::new("edit_file", json!({"path": "/w/a"}), writes(&["/w/a"]));
    let covers = Covers::suggestions(&call.subject(), "Edit a", Shell::Posix).remove(0);
    let only = AcceptAnswers::only([Channel::Terminal]);
    let subject = Subject { accepts: &only, ..call.subject() };
    for (from, counts) in [
        (Channel::Program, true),
        (Channel::Terminal, true),
        (Channel::CommandLine, false),
        (Channel::Http, false),
        (Channel::Mcp, false),
    ] {
        let grant = Grant { from, ..always(covers.clone()) };
        assert!(grant.covers(&call.subject(), Shell::Posix), "the control: {from}");
        assert_eq!(grant.covers(&subject, Shell::Posix), counts, "{from}");
    }
}

#[test]
fn a_grant_for_a_command_holds_in_the_folder_in_which_it_was_given() {
    let call = Call::new("run_command", json!({"command": "cargo test"}), Footprint::undeclared(true));
    let offered = Covers::suggestions(&call.subject(), "Run `cargo test`", Shell::Posix);
    assert_eq!(offered.len(), 2, "{offered:?}");
    for covers in offered {
        assert!(covers.to_string().contains("in the folder `/w`"), "{covers}");
        let mut earlier = serde_json::to_value(&covers).unwrap();
        let grant = always(covers);
        assert!(grant.covers(&call.subject(), Shell::Posix), "the control: {grant}");
        for elsewhere in ["/w2", "/w/sub", "/", ""] {
            let there = Subject { folder: elsewhere, ..call.subject() };
            assert_eq!(
                grant.why_not(&there, Shell::Posix),
                Some("it was given in another folder"),
                "{grant}"
            );
        }
        // As one was stored before grants named a folder.
        earlier.as_object_mut().unwrap().remove("folder");
        let earlier = always(Covers::from_document(&earlier).unwrap());
        for folder in ["/w", ""] {
            let there = Subject { folder, ..call.subject() };
            assert!(!earlier.covers(&there, Shell::Posix), "{earlier}");
        }
        assert!(earlier.to_string().contains("covers nothing"), "{earlier}");
    }
}
