//! Whatever the rules, the answers and the batch: nothing that policy denies ever runs, nothing runs before its batch
//! is decided, and a guard that errors denies.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Answers, Scripted, Setup, code, tool};
use haft_core::{
    ApprovalMode, BatchOptions, CallContext, Decision, Footprint, Resource, Strategy as Order, ToolCall,
    ToolDefinition,
    port::{Authorisation, Authoriser, BoxFuture, GuardError, Policy, Subject, Verdict},
};
use haft_engine::BatchRequest;
use haft_guard::{
    Covers, Grant, GrantSource, Lasts, ListPolicy, PolicySet,
    policy::{Conditions, Effect, Rule},
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::{Arc, Mutex};

const TOOLS: [&str; 4] = ["look", "change", "asks", "host"];

/// Effect, tool, path, whether it confirms, whether it may only tighten.
type RuleOf = (Effect, Option<usize>, Option<u8>, bool, bool);
/// What policy said about each call.
type Said = Arc<Mutex<Vec<(String, Result<Verdict, GuardError>)>>>;

#[derive(Clone, Debug)]
struct World {
    mode: ApprovalMode,
    prompt: bool,
    allowlist: Vec<usize>,
    denylist: Vec<usize>,
    rules: Vec<RuleOf>,
    granted: Vec<usize>,
    /// Tool and path of each call.
    calls: Vec<(usize, u8)>,
    order: Order,
    approves: Vec<bool>,
    /// What fails: nothing, policy, its first look, permissions, grants.
    fails: u8,
}

fn world() -> impl Strategy<Value = World> {
    let effect = prop_oneof![Just(Effect::Allow), Just(Effect::Ask), Just(Effect::Deny)];
    let rule =
        (effect, prop::option::of(0..4_usize), prop::option::of(0..3_u8), any::<bool>(), any::<bool>());
    (
        prop_oneof![Just(ApprovalMode::Auto), Just(ApprovalMode::Prompt), Just(ApprovalMode::Deny)],
        any::<bool>(),
        prop::collection::vec(0..4_usize, 0..3),
        prop::collection::vec(0..4_usize, 0..2),
        prop::collection::vec(rule, 0..5),
        prop::collection::vec(0..4_usize, 0..2),
        prop::collection::vec((0..4_usize, 0..3_u8), 1..7),
        prop_oneof![Just(Order::Sequential), Just(Order::Parallel), Just(Order::Smart)],
        prop::collection::vec(any::<bool>(), 8),
        0..9_u8,
    )
        .prop_map(
            |(mode, prompt, allowlist, denylist, rules, granted, calls, order, approves, fails)| World {
                mode,
                prompt,
                allowlist,
                denylist,
                rules,
                granted,
                calls,
                order,
                approves,
                fails,
            },
        )
}

fn policy(world: &World) -> PolicySet {
    let names = |places: &[usize]| places.iter().map(|place| TOOLS[*place].to_owned()).collect();
    let lists = ListPolicy {
        enabled: true,
        mode: world.mode,
        allowlist: names(&world.allowlist),
        denylist: names(&world.denylist),
        prompt_side_effects: world.prompt,
    };
    let rules = world.rules.iter().enumerate().map(|(number, (effect, tool, path, confirms, tightens))| {
        let when = Conditions {
            tools: tool
                .map(|tool| TOOLS[tool].to_owned())
                .or(path.is_none().then(|| "*".to_owned()))
                .into_iter()
                .collect(),
            paths: path.map(|path| format!("/work/{path}/**")).into_iter().collect(),
            ..Conditions::default()
        };
        let confirms = *confirms && *effect == Effect::Allow && when.is_narrow();
        let only_tightens = *tightens && *effect != Effect::Allow;
        Rule { confirms, only_tightens, ..Rule::new(format!("r{number}"), *effect, when) }
    });
    let grants = world.granted.iter().enumerate().map(|(number, tool)| {
        let covers = Covers::ToolInFolder {
            tool: TOOLS[*tool].to_owned(),
            folder: "/work/1".into(),
            fixed: Default::default(),
        };
        Grant::new(format!("g{number}"), "local", covers, Lasts::Always)
    });
    let set = PolicySet::new(lists, rules.collect()).unwrap().with_grants(grants.collect());
    if world.fails == 4 { set.with_grant_source(Arc::new(Broken)) } else { set }
}

struct Broken;

impl GrantSource for Broken {
    fn grants(&self, _tenant: &str) -> Result<Arc<[Grant]>, GuardError> {
        Err(GuardError("the store is gone".into()))
    }
}

/// Writes down what it said, and fails where it is told to.
struct Watched {
    set: PolicySet,
    fails: u8,
    said: Said,
}

impl Policy for Watched {
    fn is_enabled(&self) -> bool {
        true
    }

    fn denies(
        &self,
        context: &CallContext,
        definition: &ToolDefinition,
    ) -> Result<Option<String>, GuardError> {
        if self.fails == 2 {
            return Err(GuardError("broken".into()));
        }
        self.set.denies(context, definition)
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        let verdict = match self.fails {
            1 => Err(GuardError("broken".into())),
            _ => self.set.decide(subject),
        };
        self.said.lock().unwrap().push((subject.arguments["id"].to_string(), verdict.clone()));
        verdict
    }
}

struct Permitting(u8);

impl Authoriser for Permitting {
    fn authorise<'a>(
        &'a self,
        _context: &'a CallContext,
        _definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
        let answer = if self.0 == 3 { Err(GuardError("broken".into())) } else { Ok(Authorisation::Granted) };
        Box::pin(std::future::ready(answer))
    }
}

/// What ran; how many calls were decided about until then, and how often it was itself.
type Ran = Arc<Mutex<Vec<(String, usize, usize)>>>;

/// How many calls there are verdicts about.
fn decided<V>(said: &[(String, V)]) -> usize {
    said.iter().map(|(id, _)| id).collect::<std::collections::HashSet<_>>().len()
}

fn tools(ran: &Ran, said: &Said) -> Vec<Scripted> {
    let place = |args: &haft_sdk::Args| format!("/work/{}/file", args.value["place"]);
    TOOLS
        .iter()
        .map(|name| {
            let (ran, said) = (Arc::clone(ran), Arc::clone(said));
            let made = tool(name, move |args, _| {
                let (id, said) = (args.value["id"].to_string(), said.lock().unwrap());
                let times = said.iter().filter(|(known, _)| *known == id).count();
                ran.lock().unwrap().push((id, decided(&said), times));
                async { Ok(()) }
            });
            match *name {
                "look" => made.on_footprint(move |args| Footprint::reads([Resource::path(place(args))])),
                "host" => made.effects().on_footprint(|_| Footprint::writes([Resource::Host("h".into())])),
                "asks" => made
                    .effects()
                    .asks()
                    .on_footprint(move |args| Footprint::writes([Resource::path(place(args))])),
                _ => {
                    made.effects().on_footprint(move |args| Footprint::writes([Resource::path(place(args))]))
                }
            }
        })
        .collect()
}

fn check(world: &World) {
    let (ran, said) = (Ran::default(), Arc::new(Mutex::new(Vec::new())));
    let approves = world.approves.clone();
    let answered = Mutex::new(0);
    let person = Answers::by(move |_| {
        let mut answered = answered.lock().unwrap();
        *answered += 1;
        match approves[*answered % approves.len()] {
            true => Decision::Approve,
            false => Decision::Deny { reason: None },
        }
    });
    let setup = Setup {
        policy: Arc::new(Watched { set: policy(world), fails: world.fails, said: Arc::clone(&said) }),
        authoriser: Arc::new(Permitting(world.fails)),
        approver: person.clone(),
        ..Setup::default()
    };
    let house = setup.build(tools(&ran, &said));
    let calls: Vec<ToolCall> = world
        .calls
        .iter()
        .enumerate()
        .map(|(id, (tool, place))| ToolCall::new(TOOLS[*tool], json!({"id": id, "place": place})))
        .collect();
    let options = BatchOptions { strategy: world.order, max_parallelism: 4, ..BatchOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (results, _) =
        runtime.block_on(house.engine.execute_batch(BatchRequest::from(calls).options(options)));
    let (ran, said) = (ran.lock().unwrap().clone(), said.lock().unwrap().clone());
    let questions = person.asked();
    assert!(questions.len() <= 1, "all questions of a batch are asked together");
    for (id, calls, times) in &ran {
        assert_eq!(*calls, decided(&said), "{id} ran before all of its batch was decided");
        assert_eq!(*times, 2, "{id} is decided about when it is planned, and right before it runs");
        let (_, verdict) = said.iter().find(|(known, _)| known == id).expect("it ran without a verdict");
        match verdict {
            Ok(Verdict::Allow { .. }) => {}
            Ok(Verdict::Ask { .. }) => {
                let result = &results[id.parse::<usize>().unwrap()];
                assert_eq!(code(result), "OK", "it was asked about, and approved");
            }
            Ok(Verdict::Deny { .. }) | Err(_) => panic!("{id} was denied, and ran: {verdict:?}"),
        }
    }
    if (1..=3).contains(&world.fails) {
        assert!(ran.is_empty(), "a guard that errors denies");
    }
    for (place, (tool, _)) in world.calls.iter().enumerate() {
        if world.denylist.contains(tool) {
            assert_eq!(code(&results[place]), "TOOL_DENIED");
        }
        let verdict = said.iter().find(|(id, _)| *id == place.to_string()).map(|(_, verdict)| verdict);
        if let Some(Ok(Verdict::Deny { rule, .. })) = verdict {
            let data = results[place].error.as_ref().unwrap().data.clone().unwrap();
            assert_eq!(data["rule"], json!(rule), "the rule is on the result");
        }
        let times = ran.iter().filter(|(id, ..)| *id == place.to_string()).count();
        assert_eq!(times, usize::from(code(&results[place]) == "OK"), "{:?}", results[place]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400),
        // With a number of cases in the environment, the cases are other ones than usual.
        rng_seed: match std::env::var_os("PROPTEST_CASES") {
            Some(_) => proptest::test_runner::RngSeed::Random,
            None => proptest::test_runner::RngSeed::Fixed(8),
        },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_policy_denies_never_runs(world in world()) {
        check(&world);
    }
}
