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

mod probes;
mod rows;

use probes::*;
use rows::{ROWS, Row};

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
        (_, Kind::Agents) => list(&["{ name = 'a', tools = ['glob'] }", "{ name = 'b', tools = [] }"], 0),
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
