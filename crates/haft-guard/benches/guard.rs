//! What decisions cost: policy with a thousand rules, permissions, redaction of ordinary text.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

use haft_core::{
    ApprovalMode, CallContext, Category, Footprint, Resource, Tier, ToolDefinition,
    port::{Authorisation, Policy, Redactor, Subject},
};
use haft_guard::{KnownSecrets, ListPolicy, Permissions, PolicySet, Role, Secrets, policy::read_rules};
use serde_json::json;
use std::{hint::black_box, time::Instant};

/// The fastest of some rounds, in seconds for one.
fn fastest(rounds: usize, each: usize, mut work: impl FnMut()) -> f64 {
    let round = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..each).for_each(|_| work());
        start.elapsed().as_secs_f64() / each as f64
    };
    (0..rounds).map(|_| round(&mut work)).fold(f64::INFINITY, f64::min)
}

/// So many rules of every kind, none of which denies the calls below, so that all have to be looked at.
fn rules_of_every_kind(count: usize) -> PolicySet {
    let rules: String = (0..count)
        .map(|number| {
            let condition = match number % 8 {
                0 => format!("tool = 'tool_{number}'"),
                1 => format!("path = 'secret_{number}/**'"),
                2 => format!("command = 'program_{number} run'"),
                3 => format!("host = '*.host-{number}.example'"),
                4 => format!("tool = 'deploy_{number}_*'\nargument = {{ '/env' = 'prod-{number}' }}"),
                5 => format!("path = ['src_{number}/**/*.key', '**/*.pem{number}']\naccess = 'write'"),
                6 => format!("agent = 'did:agent:{number}'"),
                _ => format!("category = 'Database'\nrisk = 'high'\ntenant = 'tenant-{number}'"),
            };
            format!("[[rules]]\nname = 'r{number}'\neffect = 'deny'\n{condition}\n")
        })
        .collect();
    let lists = ListPolicy { mode: ApprovalMode::Prompt, denylist: [].into(), ..ListPolicy::default() };
    PolicySet::new(lists, read_rules(&rules, "/work").unwrap()).unwrap()
}

fn decisions() {
    let start = Instant::now();
    let policy = rules_of_every_kind(1_000);
    println!("policy: 1,000 rules read and compiled in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let rules: String = (0..2_000)
        .map(|n| format!("[[rules]]\nname = 'r{n}'\neffect = 'deny'\npath = ['secret_{n}/**/*.key', 'src_{n}/a_?/**']\n"))
        .collect();
    let start = Instant::now();
    let paths = PolicySet::new(ListPolicy::default(), read_rules(&rules, "/work").unwrap()).unwrap();
    println!("policy: 2,000 path rules read and compiled in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let context = CallContext { tier: Tier::Enterprise, ..CallContext::new("acme", "did:agent:x") };
    let mut edit = ToolDefinition::new("edit_file", "Edits");
    edit.category = Category::FileSystem;
    let mut run = ToolDefinition::new("run_command", "Runs");
    run.category = Category::CodeExecution;
    let path = || Resource::path("/work/crates/haft-guard/src/policy/set.rs");
    let cases = [
        ("a file", &edit, json!({"path": "x"}), Footprint::writes([path()])),
        (
            "a command",
            &run,
            json!({"command": "cargo test -p haft-guard"}),
            Footprint::writes([Resource::named("x")]),
        ),
        (
            "a command that cannot be read, of a tool that touches anything",
            &run,
            json!({"command": "a | b"}),
            Footprint::undeclared(true),
        ),
        ("a host", &edit, json!({}), Footprint::reads([Resource::Host("api.example.com".into()), path()])),
    ];
    let start = Instant::now();
    let (nothing, touches) =
        (serde_json::Map::new(), Footprint::writes([Resource::path("/work/secret_7/x.key")]));
    let subject = Subject {
        context: &context,
        definition: &edit,
        arguments: &nothing,
        footprint: &touches,
        folder: "/w",
        confirm: None,
        accepts: haft_core::port::AcceptAnswers::from_any(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    black_box(paths.decide(&subject).unwrap());
    println!(
        "policy: the first decision with 2,000 path rules: {:.1} µs",
        start.elapsed().as_secs_f64() * 1e6
    );
    let others = [100, 10_000].map(|count| {
        let start = Instant::now();
        let policy = rules_of_every_kind(count);
        println!("growth: {count} rules read and compiled in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        (count, policy)
    });
    for (name, definition, arguments, footprint) in cases {
        let arguments = arguments.as_object().unwrap().clone();
        let subject = Subject {
            context: &context,
            definition,
            arguments: &arguments,
            footprint: &footprint,
            folder: "/w",
            confirm: None,
            accepts: haft_core::port::AcceptAnswers::from_any(),
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        let each = fastest(7, 2_000, || {
            black_box(policy.decide(black_box(&subject)).unwrap());
        });
        println!("policy: a decision about {name} with 1,000 rules: {:.1} µs", each * 1e6);
        for (count, other) in &others {
            let each = fastest(7, 2_000, || {
                black_box(other.decide(black_box(&subject)).unwrap());
            });
            println!("growth: a decision about {name} with {count} rules: {:.1} µs", each * 1e6);
        }
    }
}

/// Ordinary text: this crate's own sources, over and over.
fn ordinary() -> Vec<u8> {
    let mut text = Vec::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders =
        vec![folder.join("src"), folder.join("../haft-core/src"), folder.join("../haft-engine/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                // The table of shapes is anything but ordinary.
                false if entry.ends_with("table.rs") || entry.ends_with("framed.rs") => {}
                false => text.extend(std::fs::read(entry).unwrap()),
            }
        }
    }
    text.truncate(1024 * 1024);
    text
}

fn redaction() {
    let start = Instant::now();
    let full = Secrets::full(KnownSecrets::default());
    black_box(full.redact(b"a first look"));
    let first = start.elapsed().as_secs_f64() * 1e3;
    println!("redaction: ready in {first:.1} ms");
    let start = Instant::now();
    assert!(full.warm_up().is_empty());
    println!(
        "redaction: and every shape of {} rules compiled in {:.1} ms",
        full.rules().len(),
        start.elapsed().as_secs_f64() * 1e3
    );
    let text = ordinary();
    let known = || {
        KnownSecrets::new(
            (0..20).map(|number| (format!("V{number}"), format!("value-{number}-of-a-variable"))),
        )
    };
    let log: Vec<u8> = (0..12_000)
        .flat_map(|n| {
            format!("2026-11-15T13:40:21.{n:06}Z INFO request id={n} path=/v1/items/{n} took {}ms\n", n % 97)
                .into_bytes()
        })
        .collect();
    for (name, text) in [("source code", &text), ("a log", &log)] {
        for (strength, secrets) in [("full", Secrets::full(known())), ("results", Secrets::results(known()))]
        {
            let each = fastest(60, 1, || {
                black_box(secrets.redact(black_box(text)));
            });
            let streamed = fastest(60, 1, || {
                for piece in text.chunks(64 * 1024) {
                    black_box(secrets.let_go(black_box(piece)));
                }
            });
            let rate = |seconds: f64| text.len() as f64 / seconds / 1e6;
            println!(
                "redaction: {strength}, {name}: {:.0} MB/s; in pieces {:.0} MB/s",
                rate(each),
                rate(streamed)
            );
        }
    }
}

fn permissions() {
    let permissions = Permissions::default();
    permissions.define("acme", "deployer", Role::new(["tool.deploy.*"]));
    let mut context = CallContext { tier: Tier::Enterprise, ..CallContext::new("acme", "did:agent:x") };
    context.roles = vec!["viewer".into(), "deployer".into()];
    let mut definition = ToolDefinition::new("deploy", "Deploys");
    definition.required_permissions = vec!["tool.deploy.run".into(), "tool.filesystem.read".into()];
    assert_eq!(permissions.check(&context, &definition), Authorisation::Granted);
    let each = fastest(7, 20_000, || {
        black_box(permissions.check(black_box(&context), black_box(&definition)));
    });
    println!("permissions: a check {:.0} ns", each * 1e9);
}

fn main() {
    decisions();
    permissions();
    redaction();
}
