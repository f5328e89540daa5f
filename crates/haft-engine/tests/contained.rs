//! What a program of a call is given, at each attempt: what was decided, and never more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Answers, Scripted, Setup, call, code, tool, with};
use haft_core::{
    CallContext, CallOptions, Enforcement, ErrorCode, Footprint, IsolationLevel, Limits, Metrics,
    ParentGrant, Resource, Retry, Tier, ToolDefinition, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Preset, Sandbox, Unavailable},
};
use haft_engine::{Engine, SandboxSpec};
use haft_sdk::{Args, ToolCtx};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(7);

/// Writes down what it is asked to start, and starts nothing.
#[derive(Clone, Default)]
struct Seen {
    started: Arc<Mutex<Vec<GuestSpec>>>,
    /// Above this it has nothing to offer.
    lacks: Option<IsolationLevel>,
}

struct Empty;

impl Sandbox for Empty {
    fn id(&self) -> &str {
        "around"
    }

    fn used(&self) -> Metrics {
        Metrics::default()
    }

    fn end<'a>(&'a self) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Jail for Seen {
    fn name(&self) -> &str {
        "seen"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        match self.lacks {
            Some(lacks) if level >= lacks => {
                Err(Unavailable { reason: "not here".into(), fix: "elsewhere".into() })
            }
            _ => Ok(Enforcement { level, ..Enforcement::in_process() }),
        }
    }

    fn open_sandbox(&self, _limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        Ok(Arc::new(Empty))
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        self.started.lock().unwrap().push(spec);
        Box::pin(async { Err(ToolError::failed("nothing is started here")) })
    }
}

fn limits() -> Limits {
    Limits {
        memory_bytes: Some(1 << 30),
        cpu_millicores: Some(1000),
        cpu_time: Some(Duration::from_secs(600)),
        wall_time: None,
        processes: Some(256),
        open_files: Some(1024),
        file_bytes: Some(1 << 28),
        scratch_bytes: Some(1 << 29),
        output_bytes: Some(1 << 20),
        read_bytes: Some(1 << 30),
        written_bytes: Some(1 << 28),
        io_operations: Some(1000),
        io_bytes_per_second: Some(1 << 20),
    }
}

fn template() -> GuestSpec {
    GuestSpec {
        level: IsolationLevel::Standard,
        readable: vec!["/lib".into()],
        writable: vec!["/work".into()],
        denied: vec!["**/.env".into()],
        presets: vec![Preset::Rust],
        hosts: vec!["api.example.com".into(), "other.example".into()],
        limits: limits(),
        ..GuestSpec::default()
    }
}

/// A tool that starts a program, fails, and starts it again at its next attempt.
fn starts() -> Scripted {
    let started = tool("starts", |_: Args, cx: ToolCtx| async move {
        let spec = GuestSpec { argv: vec!["x".into()], ..cx.commands().template().clone() };
        let refused = cx.start(spec).await.err().expect("nothing is started here");
        match (cx.attempt(), refused.code) {
            (1, ErrorCode::ExecutionFailed) => Err(ToolError::new(ErrorCode::RateLimited, "not now")),
            (_, ErrorCode::ExecutionFailed) => Ok("twice"),
            _ => Err(refused),
        }
    });
    started.on_footprint(|_| Footprint::undeclared(true)).define(|definition| {
        definition.constraints.allow_side_effects = true;
        definition.constraints.required_isolation = IsolationLevel::Strict;
        definition.idempotent = true;
    })
}

fn house(jail: &Seen, tools: impl IntoIterator<Item = Scripted>) -> common::House {
    let jail = jail.clone();
    let mut builder = haft_engine::Engine::builder(
        Setup::default().policy,
        Setup::default().authoriser,
        Arc::new(common::TestStore::default()),
    )
    .jail(Arc::new(jail))
    .commands(template());
    for tool in tools {
        builder = builder.tool(tool);
    }
    common::House { engine: builder.build().unwrap(), store: common::TestStore::default() }
}

#[derive(Clone, Copy)]
struct Case {
    what: &'static str,
    define: fn(&mut ToolDefinition),
    touches: fn() -> Footprint,
    options: fn(&mut CallOptions),
    context: fn(&mut CallContext),
    /// What the program gets, beginning with what the template has at the level that the tool needs.
    gets: fn(&mut GuestSpec),
}

const CASE: Case = Case {
    what: "nothing",
    define: |_| (),
    touches: || Footprint::undeclared(true),
    options: |_| (),
    context: |_| (),
    gets: |_| (),
};

fn nothing(spec: &mut GuestSpec) {
    spec.level = IsolationLevel::Restricted;
    spec.readable.clear();
    spec.writable.clear();
    spec.presets.clear();
    spec.hosts.clear();
}

fn parent() -> ParentGrant {
    ParentGrant {
        sandbox_id: "elsewhere".into(),
        limits: Limits { processes: Some(4), ..Limits::default() },
        mounts: vec!["/work/a".into()],
        hosts: vec!["*.example.com".into()],
        ..ParentGrant::default()
    }
}

fn narrowed(spec: &mut GuestSpec) {
    spec.readable.clear();
    spec.writable = vec!["/work/a".into()];
    spec.hosts = vec!["api.example.com".into()];
    spec.limits.processes = Some(4);
    spec.parent = Some("elsewhere".into());
}

const CASES: &[Case] = &[
    CASE,
    Case {
        what: "a level above",
        options: |o| o.isolation = Some(IsolationLevel::Restricted),
        gets: nothing,
        ..CASE
    },
    Case { what: "a level below", options: |o| o.isolation = Some(IsolationLevel::Standard), ..CASE },
    Case {
        what: "a tool that needs the strictest",
        define: |definition| definition.constraints.required_isolation = IsolationLevel::Restricted,
        gets: nothing,
        ..CASE
    },
    Case {
        what: "a tool that changes nothing",
        define: |definition| definition.constraints.allow_side_effects = false,
        touches: Footprint::default,
        gets: |spec| {
            spec.readable.push("/work".into());
            spec.writable.clear();
            spec.hosts.clear();
        },
        ..CASE
    },
    Case {
        what: "less of something",
        options: |o| o.limits = Some(Box::new(Limits { processes: Some(10), ..Limits::default() })),
        gets: |spec| spec.limits.processes = Some(10),
        ..CASE
    },
    Case {
        what: "a licence with limits",
        context: |context| context.tier = Tier::Teams,
        gets: |spec| spec.limits = spec.limits.within(&Tier::Teams.limits()),
        ..CASE
    },
    Case { what: "a sandbox", context: |context| context.parent = Some(parent()), gets: narrowed, ..CASE },
];

#[tokio::test(start_paused = true)]
async fn every_attempt_has_what_was_decided_and_no_more() {
    for case in CASES {
        let jail = Seen::default();
        let house = house(&jail, [starts().define(case.define).on_footprint(|_| (case.touches)())]);
        let mut options = CallOptions { timeout: Some(TIMEOUT), ..CallOptions::default() };
        (case.options)(&mut options);
        let mut context = (*CallContext::owner()).clone();
        (case.context)(&mut context);
        let result = house.engine.execute(with(call("starts"), options).context(context)).await;
        assert_eq!(result.text(), "twice", "{}: {result:?}", case.what);
        let mut expected = GuestSpec { level: IsolationLevel::Strict, argv: vec!["x".into()], ..template() };
        expected.limits.wall_time = Some(TIMEOUT);
        (case.gets)(&mut expected);
        let mut started = jail.started.lock().unwrap().clone();
        assert_eq!(started.len(), 2, "{}", case.what);
        for (place, spec) in started.iter_mut().enumerate() {
            // Attempts share the time of the call: a later one has what is left.
            let is_less = spec.limits.wall_time < expected.limits.wall_time;
            if place > 0 && is_less {
                spec.limits.wall_time = expected.limits.wall_time;
            }
            let effect = spec.environment.remove("HAFT_EFFECT_ID").unwrap();
            assert_eq!(effect, result.metadata.execution_id.to_string());
            assert_eq!(*spec, expected, "{}", case.what);
        }
    }
}

/// The level of a sandbox is that of programs in it, at the least, and its limits are those of each attempt.
#[tokio::test(start_paused = true)]
async fn a_sandbox_is_around_every_attempt() {
    let jail = Seen::default();
    let starts = starts().define(|d| d.constraints.required_isolation = IsolationLevel::Standard);
    let house = house(&jail, [starts]);
    let limits = Limits { processes: Some(3), ..Limits::default() };
    let spec = SandboxSpec { level: IsolationLevel::Strict, limits, ..SandboxSpec::default() };
    let owner = (*CallContext::owner()).clone();
    let around = house.engine.sandboxes().create(&owner, spec).await.unwrap();
    let sandbox_id = serde_json::to_value(&around).unwrap()["id"].as_str().unwrap().to_owned();
    let parent = ParentGrant { sandbox_id: sandbox_id.clone(), ..ParentGrant::default() };
    let context = CallContext { parent: Some(parent), ..owner };
    let options = CallOptions { timeout: Some(TIMEOUT), ..CallOptions::default() };
    let result = house.engine.execute(with(call("starts"), options).context(context)).await;
    assert_eq!(result.text(), "twice", "{result:?}");
    let started = jail.started.lock().unwrap().clone();
    assert_eq!(started.len(), 2);
    for spec in started {
        assert_eq!((spec.level, spec.limits.processes), (IsolationLevel::Strict, Some(3)));
        assert_eq!((spec.parent, spec.writable, spec.hosts), (Some(sandbox_id.clone()), vec![], vec![]));
    }
}

/// Of each limit so much as there is, and not one more.
#[tokio::test(start_paused = true)]
async fn no_limit_is_raised_by_a_call() {
    let most = limits();
    let asked = |change: fn(&mut Limits, u64), by: u64| {
        let mut asked = Limits::default();
        change(&mut asked, by);
        asked
    };
    type Change = (&'static str, fn(&mut Limits, u64));
    let changes: [Change; 12] = [
        ("memoryBytes", |l, by| l.memory_bytes = limits().memory_bytes.map(|most| most + by)),
        ("cpuMillicores", |l, by| l.cpu_millicores = limits().cpu_millicores.map(|most| most + by as u32)),
        ("cpuTime (ms)", |l, by| l.cpu_time = limits().cpu_time.map(|most| most + Duration::from_millis(by))),
        ("processes", |l, by| l.processes = limits().processes.map(|most| most + by as u32)),
        ("openFiles", |l, by| l.open_files = limits().open_files.map(|most| most + by as u32)),
        ("fileBytes", |l, by| l.file_bytes = limits().file_bytes.map(|most| most + by)),
        ("scratchBytes", |l, by| l.scratch_bytes = limits().scratch_bytes.map(|most| most + by)),
        ("outputBytes", |l, by| l.output_bytes = limits().output_bytes.map(|most| most + by)),
        ("readBytes", |l, by| l.read_bytes = limits().read_bytes.map(|most| most + by)),
        ("writtenBytes", |l, by| l.written_bytes = limits().written_bytes.map(|most| most + by)),
        ("ioOperations", |l, by| l.io_operations = limits().io_operations.map(|most| most + by)),
        ("ioBytesPerSecond", |l, by| {
            l.io_bytes_per_second = limits().io_bytes_per_second.map(|most| most + by);
        }),
    ];
    let named = most.numbers().into_iter().filter(|(_, most)| most.is_some()).map(|(name, _)| name);
    assert!(named.eq(changes.iter().map(|(name, _)| *name)), "every limit that there is");
    for (name, change) in changes {
        for (by, expected) in [(0, "OK"), (1, ErrorCode::ResourceLimitExceeded.as_str())] {
            let jail = Seen::default();
            let limits = Some(Box::new(asked(change, by)));
            let options = CallOptions { timeout: Some(TIMEOUT), limits, ..CallOptions::default() };
            let result = house(&jail, [starts()]).engine.execute(with(call("starts"), options)).await;
            assert_eq!(code(&result), expected, "{name} + {by}: {result:?}");
            assert_eq!(jail.started.lock().unwrap().is_empty(), by > 0, "{name} + {by}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_held_does_not_run() {
    let in_process = || starts().define(|d| d.constraints.required_isolation = IsolationLevel::None);
    let at =
        |path: &'static str| in_process().on_footprint(move |_| Footprint::writes([Resource::path(path)]));
    let strict = |o: &mut CallOptions| o.isolation = Some(IsolationLevel::Strict);
    let inside = |context: &mut CallContext| context.parent = Some(parent());
    let outside = ErrorCode::FilesystemPolicyViolation;
    let unavailable = ErrorCode::SandboxCreationFailed;
    type Refine<T> = fn(&mut T);
    type Refused =
        (&'static str, Scripted, Refine<CallOptions>, Refine<CallContext>, Option<IsolationLevel>, ErrorCode);
    let cases: [Refused; 5] = [
        ("no jail for the level", starts(), |_| (), |_| (), Some(IsolationLevel::Strict), unavailable),
        ("a level in haft's own process", in_process(), strict, |_| (), None, unavailable),
        ("a path outside of the sandbox", at("/etc/x"), |_| (), inside, None, outside),
        ("its neighbour", at("/work/ab"), |_| (), inside, None, outside),
        (
            "a host outside of the sandbox",
            in_process().on_footprint(|_| Footprint::writes([Resource::Host("evil.example".into())])),
            |_| (),
            inside,
            None,
            ErrorCode::NetworkPolicyViolation,
        ),
    ];
    for (what, tool, refine, place, lacks, expected) in cases {
        let jail = Seen { lacks, ..Seen::default() };
        let mut options = CallOptions {
            timeout: Some(TIMEOUT),
            retry: Some(Retry { max_retries: 0, ..Retry::default() }),
            ..CallOptions::default()
        };
        refine(&mut options);
        let mut context = (*CallContext::owner()).clone();
        place(&mut context);
        let result =
            house(&jail, [tool]).engine.execute(with(call("starts"), options).context(context)).await;
        assert_eq!(code(&result), expected.as_str(), "{what}: {result:?}");
        assert!(jail.started.lock().unwrap().is_empty(), "{what}");
    }
}

/// Code in haft's own process is held to a sandbox by what it says that it touches. What says nothing is not.
#[tokio::test(start_paused = true)]
async fn code_that_does_not_say_what_it_touches_runs_in_no_sandbox() {
    let jail = Seen::default();
    let tool = starts().define(|d| d.constraints.required_isolation = IsolationLevel::None);
    let house = house(&jail, [tool]);
    let owner = (*CallContext::owner()).clone();
    let around = house.engine.sandboxes().create(&owner, SandboxSpec::default()).await.unwrap();
    let sandbox_id = serde_json::to_value(&around).unwrap()["id"].as_str().unwrap().to_owned();
    let parent = ParentGrant { sandbox_id, ..ParentGrant::default() };
    let context = CallContext { parent: Some(parent), ..owner };
    let request = with(call("starts"), CallOptions::default()).context(context);
    let result = house.engine.execute(request).await;
    assert_eq!(code(&result), ErrorCode::FilesystemPolicyViolation.as_str(), "{result:?}");
    assert!(jail.started.lock().unwrap().is_empty());
}

/// What an attempt left behind that ran out of time starts nothing beside the next one.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_starts_nothing() {
    let jail = Seen::default();
    let (done, mut over) = tokio::sync::mpsc::unbounded_channel();
    let lingers = tool("lingers", move |_: Args, cx: ToolCtx| {
        let done = done.clone();
        async move {
            tokio::spawn(async move {
                cx.cancelled().await;
                let refused = cx.start(cx.commands().template().clone()).await.err().map(|error| error.code);
                let _ = done.send(refused);
            });
            std::future::pending::<Result<&str, ToolError>>().await
        }
    });
    let lingers = lingers.define(|d| d.constraints.required_isolation = IsolationLevel::Strict);
    let house = house(&jail, [lingers]);
    let result = house.engine.execute(with(call("lingers"), common::timeout(TIMEOUT))).await;
    assert_eq!(code(&result), ErrorCode::Timeout.as_str());
    assert_eq!(over.recv().await, Some(Some(ErrorCode::Cancelled)));
    assert!(jail.started.lock().unwrap().is_empty());
}

/// What a person is asked, by the fingerprint of what a yes would cover.
async fn asked(
    template: GuestSpec,
    options: CallOptions,
    place: impl AsyncFnOnce(&Engine) -> CallContext,
) -> String {
    let person = Answers::yes();
    let setup = Setup::default();
    let engine = Engine::builder(setup.policy, setup.authoriser, Arc::new(common::TestStore::default()))
        .jail(Arc::new(Seen::default()))
        .commands(template)
        .approver(person.clone())
        .tool(starts().asks())
        .build()
        .unwrap();
    let context = place(&engine).await;
    let result = engine.execute(with(call("starts"), options).context(context)).await;
    let asked = person.asked();
    assert!(!asked.is_empty(), "{result:?}");
    asked[0][0].fingerprint.clone()
}

fn owner() -> CallContext {
    (*CallContext::owner()).clone()
}

/// A yes covers what the programs of a call reach, at which level, in which sandbox, and whose call it is.
#[tokio::test(start_paused = true)]
async fn a_yes_is_bound_to_everything_that_holds_a_program() {
    let usual = async |template| asked(template, CallOptions::default(), async |_| owner()).await;
    let base = usual(template()).await;
    assert_eq!(usual(template()).await, base, "the control");
    let mut others = std::collections::BTreeMap::from([("nothing", base)]);
    type Change = (&'static str, fn(&mut GuestSpec));
    let changes: [Change; 10] = [
        ("level", |spec| spec.level = IsolationLevel::Strict),
        ("argv", |spec| spec.argv.push("first".into())),
        ("variables", |spec| drop(spec.environment.insert("A".into(), "1".into()))),
        ("readable", |spec| spec.readable.push("/srv".into())),
        ("writable", |spec| spec.writable.push("/srv".into())),
        ("denied", |spec| spec.denied.clear()),
        ("presets", |spec| spec.presets.push(Preset::Git)),
        ("hosts", |spec| spec.hosts.push("*".into())),
        ("limits", |spec| spec.limits.processes = Some(1)),
        ("folder", |spec| spec.working_dir = Some("/work/deep".into())),
    ];
    for (what, change) in changes {
        let mut other = template();
        change(&mut other);
        others.insert(what, usual(other).await);
    }
    let strictest = CallOptions { isolation: Some(IsolationLevel::Restricted), ..CallOptions::default() };
    others.insert("isolation", asked(template(), strictest, async |_| owner()).await);
    let tenant = async |_: &Engine| CallContext { tenant: "other".into(), ..owner() };
    others.insert("tenant", asked(template(), CallOptions::default(), tenant).await);
    for (what, processes) in [("sandbox", 3), ("another sandbox", 4)] {
        let inside = async |engine: &Engine| {
            let limits = Limits { processes: Some(processes), ..Limits::default() };
            let mounts = Vec::new();
            let spec = SandboxSpec { limits, mounts, ..SandboxSpec::default() };
            let around = engine.sandboxes().create(&owner(), spec).await.unwrap();
            let sandbox_id = serde_json::to_value(&around).unwrap()["id"].as_str().unwrap().to_owned();
            CallContext { parent: Some(ParentGrant { sandbox_id, ..ParentGrant::default() }), ..owner() }
        };
        others.insert(what, asked(template(), CallOptions::default(), inside).await);
    }
    let different: std::collections::BTreeSet<&String> = others.values().collect();
    assert_eq!(different.len(), others.len(), "{others:#?}");
}

/// What a tool has of its own is the most that a call of it may ask for, also where others may have more.
#[tokio::test(start_paused = true)]
async fn the_limit_of_a_tool_is_not_raised_by_a_call() {
    for (asked, expected) in [(9, Some(9)), (10, Some(10)), (11, None)] {
        let jail = Seen::default();
        let own = tool("starts", |_: Args, cx: ToolCtx| async move {
            let mut spec = cx.commands().template().clone();
            spec.limits.processes = Some(10);
            match cx.start(spec).await.err().expect("nothing is started here") {
                error if error.code == ErrorCode::ExecutionFailed => Ok("started"),
                error => Err(error),
            }
        });
        let own = own.define(|d| d.constraints.required_isolation = IsolationLevel::Strict);
        let limits = Some(Box::new(Limits { processes: Some(asked), ..Limits::default() }));
        let options = CallOptions { timeout: Some(TIMEOUT), limits, ..CallOptions::default() };
        let result = house(&jail, [own]).engine.execute(with(call("starts"), options)).await;
        let refused = expected.is_none().then_some(ErrorCode::ResourceLimitExceeded);
        assert_eq!(result.error_code(), refused, "{asked}: {result:?}");
        let started = jail.started.lock().unwrap();
        assert_eq!(started.first().and_then(|spec| spec.limits.processes), expected, "{asked}");
    }
}
