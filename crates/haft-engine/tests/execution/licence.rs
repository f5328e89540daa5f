//! Every tier at every limit that acts in the engine.

use crate::common::{House, Setup, call, code, house, message, tool};
use haft_core::{
    ApprovalMode, BatchOptions, CallContext, CallOptions, ErrorCode, IsolationLevel, Limits, Metrics,
    RoleSupport, SchemaValidation, SearchFilter, SideEffect, SideEffectKind, Strategy, Tier, ToolError,
    ToolOutput, port,
};
use haft_engine::{BatchRequest, Engine, Request, SandboxSpec, ToolQuery};
use haft_guard::{
    LIMITS, ListPolicy, Need, Permissions, Role, check_licence,
    policy::{PolicySet, read_rules},
};
use haft_sdk::ToolCtx;
use haft_store::{Durability, DurableStore, Options};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

const TIERS: [Tier; 4] = Tier::ALL;

fn caller(tier: Tier) -> Arc<CallContext> {
    Arc::new(CallContext { tier, ..CallContext::clone(&CallContext::owner()) })
}

#[tokio::test]
async fn batches_tools_and_parallel_calls() {
    let house = house([
        tool("plain", |_, _| async { Ok(()) }),
        tool("of_teams", |_, _| async { Ok(()) }).define(|definition| definition.tier = Tier::Teams),
    ]);
    for tier in TIERS {
        for count in [1, 5, 6, 20, 21, 50, 51, 60] {
            let request = BatchRequest::from(vec![call("plain"); count]).context(caller(tier));
            let (results, _) = house.engine.execute_batch(request).await;
            let fits = check_licence(tier, Need::Batch(count)).is_ok();
            assert_eq!(results.iter().all(|result| code(result) == "OK"), fits, "{tier:?} {count}");
            assert!(
                fits || results.iter().all(|result| code(result) == "LIMIT_EXCEEDED"),
                "{tier:?} {count}"
            );
        }
        let result = house.engine.execute(Request::new(call("of_teams")).context(caller(tier))).await;
        let expected = if tier >= Tier::Teams { "OK" } else { "LICENSE_REQUIRED" };
        assert_eq!(code(&result), expected, "{tier:?}");
        if tier < Tier::Teams {
            let expected = format!("`of_teams` needs the Teams tier, and this caller has {tier:?}");
            assert_eq!(message(&result), expected);
        }
        let options =
            BatchOptions { strategy: Strategy::Parallel, max_parallelism: 4, ..BatchOptions::default() };
        let request = BatchRequest::from(vec![call("plain"); 4]).context(caller(tier)).options(options);
        let (results, summary) = house.engine.execute_batch(request).await;
        assert!(results.iter().all(|result| code(result) == "OK"), "it falls back, and fails not: {tier:?}");
        let falls_back = check_licence(tier, Need::Parallel(4)).is_err();
        assert_eq!(summary.note.is_some(), falls_back, "{tier:?}: {summary:?}");
        assert!(!falls_back || summary.note.unwrap().contains("does not include parallel calls"));
    }
}

#[tokio::test]
async fn isolation_and_limits_that_are_asked_for() {
    let mib = 1 << 20;
    let seconds = Duration::from_secs;
    let memory = |bytes| Limits { memory_bytes: Some(bytes), ..Limits::default() };
    let time = |time| Limits { cpu_time: Some(time), ..Limits::default() };
    let cases = [
        (None, memory(64 * mib), Need::Memory(64 * mib)),
        (None, memory(64 * mib + 1), Need::Memory(64 * mib + 1)),
        (None, memory(128 * mib + 1), Need::Memory(128 * mib + 1)),
        (None, memory(256 * mib + 1), Need::Memory(256 * mib + 1)),
        (None, time(seconds(30)), Need::CpuTime(seconds(30))),
        (None, time(seconds(31)), Need::CpuTime(seconds(31))),
        (None, time(seconds(61)), Need::CpuTime(seconds(61))),
        (None, time(seconds(301)), Need::CpuTime(seconds(301))),
    ];
    let house = with_jail();
    for tier in TIERS {
        for (isolation, limits, need) in cases.clone() {
            let options = CallOptions { isolation, limits: Some(Box::new(limits)), ..CallOptions::default() };
            let request = Request::new(call("jailed")).context(caller(tier)).options(options);
            let result = house.engine.execute(request).await;
            let expected = if check_licence(tier, need).is_ok() { "OK" } else { "LICENSE_REQUIRED" };
            assert_eq!(code(&result), expected, "{tier:?} {need:?}: {}", message(&result));
        }
        for level in [IsolationLevel::Standard, IsolationLevel::Strict, IsolationLevel::Restricted] {
            let options = CallOptions { isolation: Some(level), ..CallOptions::default() };
            let request = Request::new(call("jailed")).context(caller(tier)).options(options);
            let result = house.engine.execute(request).await;
            let expected =
                if check_licence(tier, Need::Isolation(level)).is_ok() { "OK" } else { "LICENSE_REQUIRED" };
            assert_eq!(code(&result), expected, "{tier:?} {level:?}: {}", message(&result));
        }
    }
}

/// A jail that offers everything, for tools that run no program.
struct Willing;

impl port::Jail for Willing {
    fn name(&self) -> &str {
        "willing"
    }

    fn offers(&self, level: IsolationLevel) -> Result<haft_core::Enforcement, port::Unavailable> {
        Ok(haft_core::Enforcement { level, ..haft_core::Enforcement::in_process() })
    }

    fn open_sandbox(&self, _limits: &Limits) -> Result<Arc<dyn port::Sandbox>, ToolError> {
        Ok(Arc::new(Empty))
    }

    fn start<'a>(
        &'a self,
        _spec: port::GuestSpec,
    ) -> port::BoxFuture<'a, Result<Box<dyn port::Guest>, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::failed("nothing is started here"))))
    }
}

/// A sandbox with nothing in it.
struct Empty;

impl port::Sandbox for Empty {
    fn id(&self) -> &str {
        "empty"
    }

    fn used(&self) -> Metrics {
        Metrics::default()
    }

    fn end<'a>(&'a self) -> port::BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn jailed(around: fn(haft_engine::EngineBuilder) -> haft_engine::EngineBuilder) -> House {
    Setup { around, ..Setup::default() }.build([tool("jailed", |_, _| async { Ok(()) })
        .define(|definition| definition.constraints.required_isolation = IsolationLevel::Standard)])
}

fn with_jail() -> House {
    jailed(|builder| builder.jail(Arc::new(Willing)))
}

#[tokio::test]
async fn what_a_result_tells_and_what_is_kept_of_it() {
    let house = house([
        tool("changes", |_, _| async {
            let effect = SideEffect::new(SideEffectKind::Modified, "a.txt", jiff::Timestamp::UNIX_EPOCH);
            Ok(ToolOutput::text("changed").with_side_effect(effect))
        }),
        tool("long", |_, cx: ToolCtx| async move {
            cx.progress(50, "half");
            Ok(ToolOutput::text("line\n".repeat(40_000)))
        }),
    ]);
    for tier in TIERS {
        let result = house.engine.execute(Request::new(call("changes")).context(caller(tier))).await;
        let tells = check_licence(tier, Need::SideEffects).is_ok();
        assert_eq!(result.metadata.side_effects.len(), usize::from(tells), "{tier:?}");
        let result = house.engine.execute(Request::new(call("long")).context(caller(tier))).await;
        assert!(result.metadata.output_truncated);
        let keeps = check_licence(tier, Need::FullOutput).is_ok();
        assert_eq!(result.metadata.output_handle.is_some(), keeps, "{tier:?}");
        let events = house.events(result.metadata.execution_id).await;
        let told = events.iter().any(|event| event.payload.is_droppable());
        assert_eq!(told, check_licence(tier, Need::FullProgress).is_ok(), "{tier:?}");
    }
}

#[tokio::test]
async fn tools_of_ones_own() {
    for tier in TIERS {
        let house = house([]);
        let most = tier.max_custom_tools().unwrap_or(60);
        for number in 0..most {
            let own = tool(&format!("own_{number}"), |_, _| async { Ok(()) });
            house.engine.tools().add(own, &caller(tier)).await.unwrap();
        }
        let one_more = tool("one_more", |_, _| async { Ok(()) });
        let added = house.engine.tools().add(one_more, &caller(tier)).await;
        assert_eq!(added.is_ok(), tier == Tier::Enterprise, "{tier:?}");
        assert_eq!(check_licence(tier, Need::CustomTools(most + 1)).is_ok(), tier == Tier::Enterprise);
    }
}

/// Whether a call is let through, with that isolation and those limits. A refusal names the licence.
async fn runs_with(house: &House, tier: Tier, level: Option<IsolationLevel>, limits: Option<Limits>) -> bool {
    let options = CallOptions { isolation: level, limits: limits.map(Box::new), ..CallOptions::default() };
    let request = Request::new(call("jailed")).context(caller(tier)).options(options);
    licensed(house.engine.execute(request).await.error.map(|error| error.code))
}

/// Whether something was done, where it was not refused for another reason than the licence.
fn licensed(refused: Option<ErrorCode>) -> bool {
    match refused {
        None => true,
        Some(ErrorCode::LicenseRequired) => false,
        Some(other) => panic!("refused with {other:?}"),
    }
}

fn by_schema(schema: serde_json::Value) -> crate::common::Scripted {
    tool("own", |_, _| async { Ok(()) })
        .define(move |definition| definition.output_schema = Some(schema.clone()))
}

async fn adds(tier: Tier, tools: impl IntoIterator<Item = crate::common::Scripted>) -> bool {
    let house = house([]);
    let mut refused = None;
    for own in tools {
        refused = refused.or(house.engine.tools().add(own, &caller(tier)).await.err());
    }
    licensed(refused.map(|error| error.code()))
}

async fn acts_as(tier: Tier, role: &str) -> bool {
    let permissions = Permissions::default();
    permissions.define("local", "own_role", Role::new(["*"]));
    let house = Setup { authoriser: Arc::new(permissions), ..Setup::default() }.build([tool(
        "reads",
        |_, _| async { Ok(()) },
    )
    .define(|definition| definition.required_permissions = vec!["tool.x.read".into()])]);
    let roles = if role.is_empty() { Vec::new() } else { vec![role.to_owned()] };
    let permissions = if role.is_empty() { vec!["*".to_owned()] } else { Vec::new() };
    let context = CallContext { roles, permissions, ..CallContext::clone(&caller(tier)) };
    let result = house.engine.execute(Request::new(call("reads")).context(Arc::new(context))).await;
    licensed(result.error.map(|error| error.code))
}

/// Whether a rule that allows by who calls spares the question. What asks or denies holds with every licence.
async fn allows_by_agent(tier: Tier) -> bool {
    let rules = "[[rules]]\nname = 'mine'\neffect = 'allow'\nagent = '*'\n\
                 [[rules]]\nname = 'never'\neffect = 'deny'\ntool = 'denied'\nagent = '*'\n";
    let lists = ListPolicy { mode: ApprovalMode::Prompt, ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(rules, "/").unwrap()).unwrap();
    let house = Setup { policy: Arc::new(policy), ..Setup::default() }
        .build(["asked", "denied"].map(|name| tool(name, |_, _| async { Ok(()) }).effects()));
    let run = async |name| house.engine.execute(Request::new(call(name)).context(caller(tier))).await;
    assert_eq!(code(&run("denied").await), "TOOL_DENIED", "{tier:?}");
    code(&run("asked").await) == "OK"
}

/// A clock that a test moves.
struct Moved(AtomicI64);

impl port::Clock for Moved {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// Whether a result is there after some time.
async fn keeps_for(tier: Tier, time: Duration) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(Moved(AtomicI64::new(1_800_000_000)));
    let durability = Durability::Full;
    let mut options = Options { clock: Arc::clone(&clock) as _, durability, ..Options::default() };
    options.keep.results = None;
    let store = Arc::new(DurableStore::open_sqlite(folder.path(), options).unwrap());
    let policy = Arc::new(ListPolicy { mode: ApprovalMode::Auto, ..ListPolicy::default() });
    let engine = Engine::builder(policy, Arc::new(Permissions::default()), Arc::clone(&store) as _)
        .clock(Arc::clone(&clock) as _)
        .tool(tool("says", |_, _| async { Ok("said") }))
        .build()
        .unwrap();
    let result = engine.execute(Request::new(call("says")).context(caller(tier))).await;
    // Nothing is kept for no time: a moment later is after it.
    clock.0.fetch_add(i64::try_from(time.as_secs()).unwrap(), Ordering::SeqCst);
    let run = port::Store::for_tenant(&*store, "local").run(result.metadata.execution_id).await;
    run.unwrap().expect("the record itself stays").result.is_some()
}

async fn told(tier: Tier, of: impl Fn(&haft_core::ToolResult, &[haft_core::Event]) -> bool) -> bool {
    let house = house([tool("tells", |_, cx: ToolCtx| async move {
        cx.progress(50, "half");
        let effect = SideEffect::new(SideEffectKind::Modified, "a.txt", jiff::Timestamp::UNIX_EPOCH);
        Ok(ToolOutput::text("line\n".repeat(40_000)).with_side_effect(effect))
    })]);
    let result = house.engine.execute(Request::new(call("tells")).context(caller(tier))).await;
    let events = house.events(result.metadata.execution_id).await;
    of(&result, &events)
}

/// Whether an engine does what is needed for a caller of that tier.
async fn does(tier: Tier, need: Need<'_>) -> bool {
    match need {
        Need::Batch(calls) => {
            let house = house([tool("plain", |_, _| async { Ok(()) })]);
            let request = BatchRequest::from(vec![call("plain"); calls]).context(caller(tier));
            house.engine.execute_batch(request).await.0.iter().all(|result| code(result) == "OK")
        }
        Need::Parallel(most) => {
            let house = house([tool("plain", |_, _| async { Ok(()) })]);
            let options = BatchOptions {
                strategy: if most > 1 { Strategy::Parallel } else { Strategy::Sequential },
                max_parallelism: most,
                ..BatchOptions::default()
            };
            let request = BatchRequest::from(vec![call("plain"); 2]).context(caller(tier)).options(options);
            house.engine.execute_batch(request).await.1.note.is_none()
        }
        Need::FullProgress => {
            told(tier, |_, events| events.iter().any(|event| event.payload.is_droppable())).await
        }
        Need::SideEffects => told(tier, |result, _| !result.metadata.side_effects.is_empty()).await,
        Need::FullOutput => told(tier, |result, _| result.metadata.output_handle.is_some()).await,
        Need::BuiltIn(name) => {
            let house = house([tool(name, |_, _| async { Ok(()) })
                .define(|definition| definition.tier = haft_guard::built_in_tier(&definition.name))]);
            let result = house.engine.execute(Request::new(call(name)).context(caller(tier))).await;
            licensed(result.error.map(|error| error.code))
        }
        Need::CustomTools(count) => {
            adds(tier, (0..count).map(|n| tool(&format!("own_{n}"), |_, _| async { Ok(()) }))).await
        }
        Need::Schema(level) => {
            let schema = match level {
                SchemaValidation::Basic => json!({"type": "string", "enum": ["a"]}),
                SchemaValidation::Advanced => json!({"type": "string", "minLength": 1}),
                SchemaValidation::Custom => return tier == Tier::Enterprise, // nothing in haft is more than advanced
            };
            // Core has no tools of its own, so what a schema costs is seen from a tier that has.
            adds(tier.max(Tier::WriterPro), [by_schema(schema)]).await
        }
        Need::Isolation(level) => runs_with(&with_jail(), tier, Some(level), None).await,
        Need::CustomSandbox => {
            runs_with(&jailed(|builder| builder.own_jail(Arc::new(Willing))), tier, None, None).await
        }
        Need::Memory(bytes) => {
            let limits = Limits { memory_bytes: Some(bytes), ..Limits::default() };
            runs_with(&with_jail(), tier, None, Some(limits)).await
        }
        Need::CpuTime(time) => {
            let limits = Limits { cpu_time: Some(time), ..Limits::default() };
            runs_with(&with_jail(), tier, None, Some(limits)).await
        }
        Need::SecurityPolicies => {
            let house = with_jail();
            let spec = SandboxSpec { level: IsolationLevel::Standard, ..SandboxSpec::default() };
            let made = house.engine.sandboxes().create(&caller(tier), spec).await;
            licensed(made.err().map(|error| error.code))
        }
        Need::Search(filter) => {
            let query = match filter {
                SearchFilter::Category => {
                    ToolQuery { categories: vec![haft_core::Category::System], ..ToolQuery::default() }
                }
                SearchFilter::Name => ToolQuery { text: Some("x".into()), ..ToolQuery::default() },
                SearchFilter::Full => ToolQuery { requires_confirmation: Some(true), ..ToolQuery::default() },
                SearchFilter::Custom => return tier == Tier::Enterprise, // a program's own affair
            };
            let house = house([]);
            if filter == SearchFilter::Name {
                let ranked = house.engine.tools().rank("x", 5, tier).err().map(|error| error.code);
                assert_eq!(licensed(ranked), tier >= Tier::WriterPro);
            }
            licensed(house.engine.tools().find(&query, tier).err().map(|error| error.code))
        }
        Need::Retention(time) => keeps_for(tier, time).await,
        Need::Roles(RoleSupport::Basic) => {
            acts_as(tier, "").await && acts_as(tier, "viewer").await && acts_as(tier, "admin").await
        }
        Need::Roles(RoleSupport::Full) => acts_as(tier, "own_role").await,
        Need::Roles(RoleSupport::Attributes) => allows_by_agent(tier).await,
    }
}

/// Every limit of the table at its edges: an engine does for each tier what the table says that the tier includes.
#[tokio::test]
async fn every_limit_of_the_table_acts() {
    use IsolationLevel::{Restricted, Standard, Strict};
    let (mib, secs, day) = (1 << 20, Duration::from_secs, Duration::from_secs(86_400));
    let needs = [
        Need::Batch(5),
        Need::Batch(6),
        Need::Batch(20),
        Need::Batch(21),
        Need::Batch(50),
        Need::Batch(51),
        Need::Parallel(1),
        Need::Parallel(2),
        Need::Parallel(10),
        Need::Parallel(11),
        Need::FullProgress,
        Need::BuiltIn("read_file"),
        Need::BuiltIn("send_message"),
        Need::CustomTools(1),
        Need::CustomTools(10),
        Need::CustomTools(11),
        Need::CustomTools(50),
        Need::CustomTools(51),
        Need::Schema(SchemaValidation::Basic),
        Need::Schema(SchemaValidation::Advanced),
        Need::Schema(SchemaValidation::Custom),
        Need::Isolation(Standard),
        Need::Isolation(Strict),
        Need::Isolation(Restricted),
        Need::CustomSandbox,
        Need::Memory(64 * mib),
        Need::Memory(64 * mib + 1),
        Need::Memory(128 * mib),
        Need::Memory(128 * mib + 1),
        Need::Memory(256 * mib),
        Need::Memory(256 * mib + 1),
        Need::CpuTime(secs(30)),
        Need::CpuTime(secs(31)),
        Need::CpuTime(secs(60)),
        Need::CpuTime(secs(61)),
        Need::CpuTime(secs(300)),
        Need::CpuTime(secs(301)),
        Need::SecurityPolicies,
        Need::Search(SearchFilter::Category),
        Need::Search(SearchFilter::Name),
        Need::Search(SearchFilter::Full),
        Need::Search(SearchFilter::Custom),
        Need::SideEffects,
        Need::Retention(secs(1)),
        Need::Retention(7 * day),
        Need::Retention(7 * day + secs(1)),
        Need::Retention(30 * day),
        Need::Retention(30 * day + secs(1)),
        Need::Retention(3650 * day),
        Need::FullOutput,
        Need::Roles(RoleSupport::Basic),
        Need::Roles(RoleSupport::Full),
        Need::Roles(RoleSupport::Attributes),
    ];
    for need in needs {
        for tier in TIERS {
            assert_eq!(does(tier, need).await, check_licence(tier, need).is_ok(), "{tier:?} {need:?}");
        }
    }
    let without: Vec<&str> = LIMITS
        .iter()
        .filter(|row| !needs.iter().any(|need| need.limit().is_some_and(|limit| limit.name == row.name)))
        .map(|row| row.name)
        .collect();
    assert!(without.is_empty(), "limits that nothing here tries: {without:?}");
}

#[tokio::test]
async fn a_refusal_says_what_would_be_needed() {
    let own = jailed(|builder| builder.own_jail(Arc::new(Willing)));
    let refused = own.engine.execute(Request::new(call("jailed")).context(caller(Tier::Teams))).await;
    assert_eq!(
        message(&refused),
        "`jailed` in `willing`, which did not come with haft, needs the Enterprise tier, and this caller has Teams"
    );
    let spec = SandboxSpec::default();
    let refused = own.engine.sandboxes().create(&caller(Tier::Core), spec).await.unwrap_err();
    assert_eq!(
        refused.message,
        "A sandbox with rules of its own needs the Teams tier, and this caller has Core"
    );
    let refused = own.engine.tools().rank("x", 1, Tier::Core).unwrap_err();
    assert_eq!(
        refused.message,
        "Looking for tools in words needs the WriterPro tier, and this caller has Core"
    );
    let schema = by_schema(json!({"type": "string", "pattern": "a"}));
    let refused = own.engine.tools().add(schema, &caller(Tier::WriterPro)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`pattern` in the output schema of `own` needs the Teams tier, and this caller has WriterPro"
    );
    let replaced = tool("own", |_, _| async { Ok(()) });
    own.engine.tools().add(replaced, &caller(Tier::WriterPro)).await.unwrap();
    let schema = by_schema(json!({"type": "string", "pattern": "a"}));
    let refused = own.engine.tools().replace(schema, &caller(Tier::WriterPro)).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LicenseRequired, "nor by replacing one");
}
