//! The registry: what can be added, changed, found, and that readers never wait.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    CallContext, Category, ErrorCode, IsolationLevel, Parameter, ParameterType, Parameters, Tier, ToolCall,
    ToolDefinition, ToolError,
    port::{BoxFuture, Registrations, StoreError, StoredTool, ToolChanges, ToolShelf},
};
use haft_engine::{Engine, EngineBuilder, RegisterError, Settings, ToolQuery, ToolsEvent, ToolsPart};
use haft_guard::{ListPolicy, PermissionStrings};
use haft_sdk::{Args, Prepared, Tool, ToolCtx, ToolOutput};
use haft_store::MemoryStore;
use serde_json::{Map, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A tool that says how it was configured.
#[derive(Clone)]
struct Described(Arc<ToolDefinition>);

struct Says;

impl Tool for Described {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.0
    }

    fn prepare(&self, _: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(Says))
    }
}

impl Prepared for Says {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> haft_core::Footprint {
        haft_core::Footprint::default()
    }

    fn summary(&self) -> String {
        String::new()
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> haft_sdk::ToolFuture {
        Box::pin(async move { Ok(ToolOutput::structured(json!(*cx.settings()))) })
    }
}

fn defined(name: &str, refine: impl FnOnce(&mut ToolDefinition)) -> Described {
    let mut definition = ToolDefinition::new(name, format!("The tool {name}"));
    definition.constraints.required_isolation = IsolationLevel::None;
    definition.constraints.allow_side_effects = false;
    definition.settings_schema = Some(json!({"type": "object", "properties": {"language": {}, "a": {}}}));
    refine(&mut definition);
    Described(Arc::new(definition))
}

fn plain(name: &str) -> Described {
    defined(name, |_| {})
}

fn builder() -> EngineBuilder {
    let store = Arc::new(MemoryStore::new());
    Engine::builder(Arc::new(ListPolicy::default()), Arc::new(PermissionStrings), store)
}

fn by(tier: Tier) -> CallContext {
    CallContext { tier, permissions: vec!["*".into()], ..CallContext::new("acme", "agent-7") }
}

fn names(definitions: &[Arc<ToolDefinition>]) -> Vec<&str> {
    definitions.iter().map(|definition| definition.name.as_str()).collect()
}

/// Remembers in memory, and fails when told to.
#[derive(Default)]
struct Remembers {
    tools: Mutex<BTreeMap<String, StoredTool>>,
    /// What was asked for by name; `*` stands for everything.
    found: Mutex<Vec<String>>,
    broken: AtomicBool,
}

impl Remembers {
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, StoredTool>)) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Acquire) {
            return Err(StoreError("the disk is full".into()));
        }
        change(&mut self.tools.lock().unwrap());
        Ok(())
    }
}

impl Registrations for Remembers {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(async { Ok(self.tools.lock().unwrap().values().cloned().collect()) })
    }

    fn save_all<'a>(&'a self, changed: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.change(|tools| {
                for tool in changed {
                    if tool.is_ordinary() {
                        tools.remove(&tool.name);
                    } else {
                        tools.insert(tool.name.clone(), tool);
                    }
                }
            })
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.change(|tools| drop(tools.remove(name))) })
    }
}

/// The same, asked for one by one; it counts what it is asked.
impl ToolShelf for Remembers {
    fn find(&self, name: &str) -> Result<Option<StoredTool>, StoreError> {
        self.change(|_| ())?;
        self.found.lock().unwrap().push(name.to_owned());
        let tools = self.tools.lock().unwrap();
        let has_alias = |tool: &&StoredTool| {
            let aliases = tool.definition.iter().flat_map(|definition| &definition.aliases);
            aliases.into_iter().any(|alias| alias.eq_ignore_ascii_case(name))
        };
        Ok(tools.get(name).or_else(|| tools.values().find(has_alias)).cloned())
    }

    fn of_server(&self, server: &str) -> Result<Vec<StoredTool>, StoreError> {
        self.change(|_| ())?;
        let tools = self.tools.lock().unwrap();
        let is_its = |tool: &&StoredTool| {
            let mcp = tool.definition.as_ref().and_then(|definition| definition.mcp.as_ref());
            mcp.is_some_and(|mcp| mcp.server == server)
        };
        Ok(tools.values().filter(is_its).cloned().collect())
    }

    fn switched(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.change(|_| ())?;
        let tools = self.tools.lock().unwrap();
        Ok(tools.values().filter(|tool| tool.definition.is_none()).cloned().collect())
    }

    fn all(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.change(|_| ())?;
        self.found.lock().unwrap().push("*".to_owned());
        Ok(self.tools.lock().unwrap().values().cloned().collect())
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.change(|_| ())?;
        let tools = self.tools.lock().unwrap();
        Ok(tools.values().filter(|tool| tool.definition.is_some()).map(|tool| tool.name.clone()).collect())
    }

    fn count(&self) -> Result<usize, StoreError> {
        ToolShelf::names(self).map(|names| names.len())
    }
}

fn made(definition: ToolDefinition) -> Result<Box<dyn Tool>, String> {
    match definition.description.contains("cannot be made") {
        true => Err("it cannot be made".to_owned()),
        false => Ok(Box::new(Described(Arc::new(definition)))),
    }
}

/// An engine whose remembered tools come when they are needed, with what it said.
fn lazily(remembers: &Arc<Remembers>) -> (Engine, Arc<Mutex<Vec<String>>>) {
    let engine = builder().tool(plain("built_in")).registrations(Arc::clone(remembers) as _).build().unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let saying = Arc::clone(&said);
    let say = move |skipped: &[String]| saying.lock().unwrap().extend(skipped.iter().cloned());
    engine.tools().restore_when_needed(Arc::clone(remembers) as _, made, say);
    (engine, said)
}

async fn code(engine: &Engine, name: &str) -> Option<ErrorCode> {
    engine.execute(ToolCall::new(name, json!({}))).await.error_code()
}

#[tokio::test]
async fn tools_are_added_replaced_and_removed() {
    let engine = builder().tool(plain("built_in")).build().unwrap();
    let (tools, owner) = (engine.tools(), by(Tier::Enterprise));
    let mut events = tools.events();

    let added = tools.add(plain("mine"), &owner).await.unwrap();
    assert_eq!(
        (added.is_built_in, added.enabled, added.registered_by.as_deref()),
        (false, true, Some("agent-7"))
    );
    assert!(tools.exists("MINE") && tools.get("mine").is_some());
    assert_eq!((tools.count(None), tools.all().len()), (2, 2));
    assert_eq!(code(&engine, "mine").await, None);

    let again = tools.add(plain("mine"), &owner).await.unwrap_err();
    assert_eq!(
        (again.code(), again.to_string().contains("already registered")),
        (ErrorCode::DuplicateTool, true)
    );

    tools.set_enabled("mine", false).await.unwrap();
    let newer = defined("mine", |definition| definition.description = "Newer".into());
    let replaced = tools.replace(newer, &owner).await.unwrap();
    assert_eq!(
        (replaced.definition.description.as_str(), replaced.enabled),
        ("Newer", false),
        "the switch stays"
    );
    tools.remove("mine").await.unwrap();
    assert_eq!(code(&engine, "mine").await, Some(ErrorCode::ToolNotFound));
    tools.add(plain("mine"), &owner).await.expect("a name that was given back can be taken again");

    for refused in
        [tools.remove("built_in").await, tools.replace(plain("built_in"), &owner).await.map(|_| ())]
    {
        assert_eq!(refused, Err(RegisterError::BuiltIn { name: "built_in".into() }));
    }
    let unknown = tools.remove("mnie").await.unwrap_err();
    assert_eq!(unknown, RegisterError::Unknown { name: "mnie".into(), near: Some("mine".into()) });

    let name = || Arc::from("mine");
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        seen.push(event);
    }
    let expected = [
        ToolsEvent::Registered { name: name() },
        ToolsEvent::Disabled { name: name() },
        ToolsEvent::Replaced { name: name() },
        ToolsEvent::Unregistered { name: name() },
        ToolsEvent::Registered { name: name() },
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_disabled_tool_is_refused_by_every_name_until_it_is_enabled() {
    let tool = defined("read_it", |definition| definition.aliases = vec!["ReadIt".into()]);
    let engine = builder().tool(tool).build().unwrap();
    engine.tools().set_enabled("READIT", false).await.unwrap();
    for name in ["read_it", "ReadIt", "readit", "READ_IT"] {
        assert_eq!(code(&engine, name).await, Some(ErrorCode::ToolDisabled), "{name}");
    }
    assert!(engine.tools().available(&by(Tier::Enterprise)).await.is_empty());
    engine.tools().set_enabled("read_it", true).await.unwrap();
    assert_eq!(code(&engine, "ReadIt").await, None);
}

#[tokio::test]
async fn a_tool_finds_its_settings_on_its_context() {
    let engine = builder().tool(plain("greet")).build().unwrap();
    let settings = json!({"language": "fa"}).as_object().unwrap().clone();
    engine.tools().configure("greet", settings.clone()).await.unwrap();
    let result = engine.execute(ToolCall::new("greet", json!({}))).await;
    assert_eq!(result.output, Some(json!({"language": "fa"})));
    assert_eq!(*engine.tools().get("greet").unwrap().settings, settings);
}

#[tokio::test]
async fn aliases_and_names_cannot_take_each_others_place() {
    let engine =
        builder().tool(defined("read_file", |d| d.aliases = vec!["ReadFile".into()])).build().unwrap();
    let owner = by(Tier::Enterprise);
    for (name, aliases) in [
        ("readfile", vec![]),
        ("other", vec!["read_file"]),
        ("other", vec!["READFILE"]),
        ("other", vec!["Twice", "twice"]),
        ("other", vec!["other"]),
    ] {
        let tool = defined(name, |d| d.aliases = aliases.iter().map(|&alias| alias.into()).collect());
        let refused = engine.tools().add(tool, &owner).await;
        let clash =
            matches!(refused, Err(RegisterError::Duplicate { .. } | RegisterError::BadDefinition { .. }));
        assert!(clash, "{name} {aliases:?}: {refused:?}");
    }
    assert_eq!(engine.tools().count(None), 1, "a refused tool leaves nothing behind");
    assert!(!engine.tools().exists("twice"));
}

/// Schemas that somebody else has checked are not looked at when a tool comes in. One that is wrong for all that is no
/// way around it.
#[tokio::test]
async fn a_schema_that_nobody_checked_refuses_calls() {
    let broken = || {
        defined("broken", |definition| {
            definition.parameters = haft_core::Parameters::Schema(json!({"type": "object", "required": 5}));
        })
    };
    assert!(matches!(builder().tool(broken()).build(), Err(RegisterError::BadDefinition { .. })));
    let engine = builder().checked_tool(Box::new(broken())).build().unwrap();
    assert_eq!(code(&engine, "broken").await, Some(ErrorCode::BadDefinition));
    // Everything else about it is still looked at.
    let nameless = || Box::new(defined("run", |_| {}));
    assert!(matches!(builder().checked_tool(nameless()).build(), Err(RegisterError::BadDefinition { .. })));
}

#[tokio::test]
async fn custom_tools_are_bounded_by_tier() {
    for (tier, most) in [(Tier::Core, 0), (Tier::WriterPro, 10), (Tier::Teams, 50)] {
        let engine = builder().tool(plain("built_in")).build().unwrap();
        for number in 0..most {
            engine.tools().add(plain(&format!("tool_{number}")), &by(tier)).await.unwrap();
        }
        let refused = engine.tools().add(plain("one_more"), &by(tier)).await.unwrap_err();
        assert_eq!(refused, RegisterError::TooMany { tier, most });
        assert_eq!(refused.to_string(), format!("Custom tool limit ({most}) reached for {tier:?} tier"));
        assert_eq!(engine.tools().count(None), most + 1);
    }
}

#[tokio::test]
async fn what_is_available_depends_on_switch_tier_and_permission() {
    let engine = builder()
        .tool(plain("free"))
        .tool(defined("pro", |d| d.tier = Tier::Teams))
        .tool(defined("guarded", |d| d.required_permissions = vec!["vault.open".into()]))
        .tool(plain("off"))
        .build()
        .unwrap();
    engine.tools().set_enabled("off", false).await.unwrap();
    let nobody = CallContext::new("acme", "agent");
    assert_eq!(names(&engine.tools().available(&nobody).await), ["free"]);
    let keeper = CallContext { permissions: vec!["vault.*".into()], tier: Tier::Teams, ..nobody };
    assert_eq!(names(&engine.tools().available(&keeper).await), ["free", "guarded", "pro"]);
    assert_eq!((engine.tools().count(Some(Tier::Core)), engine.tools().count(None)), (2, 4));
}

#[tokio::test]
async fn a_long_list_is_left_to_the_search_where_there_is_one() {
    let build = |most: usize, built_in: &[&str]| {
        let settings = Settings { max_listed_tools: most, ..Settings::default() };
        let builder =
            built_in.iter().fold(builder().settings(settings), |builder, name| builder.tool(plain(name)));
        builder.build().unwrap()
    };
    let owner = by(Tier::Enterprise);
    for (most, built_in, expected) in [
        (3, &["call_tool", "search_tools"][..], &["call_tool", "mine", "search_tools"][..]),
        (2, &["call_tool", "search_tools"], &["call_tool", "search_tools"]),
        (0, &["search_tools"], &["mine", "search_tools"]),
    ] {
        let engine = build(most, built_in);
        engine.tools().add(plain("mine"), &owner).await.unwrap();
        assert_eq!(names(&engine.tools().listed(&owner).await), expected, "{most}");
        assert!(engine.tools().exists("mine"));
    }
}

#[tokio::test]
async fn a_withdrawn_tool_is_told_to_nobody_and_comes_back() {
    let engine = builder().tool(plain("stays")).build().unwrap();
    let owner = by(Tier::Enterprise);
    engine.tools().add(plain("comes_and_goes"), &owner).await.unwrap();
    let mut events = engine.tools().events();
    let told = |events: &mut tokio::sync::broadcast::Receiver<ToolsEvent>| events.try_recv().ok();
    let name: Arc<str> = "comes_and_goes".into();
    for _ in 0..2 {
        engine.tools().set_withdrawn(&name, true).unwrap();
    }
    assert_eq!(told(&mut events), Some(ToolsEvent::Unregistered { name: Arc::clone(&name) }));
    assert_eq!(told(&mut events), None, "it was gone already");
    assert_eq!(names(&engine.tools().available(&owner).await), ["stays"]);
    assert!(engine.tools().rank("comes goes", 5, Tier::Enterprise).unwrap().is_empty());
    engine.tools().set_withdrawn(&name, false).unwrap();
    assert_eq!(told(&mut events), Some(ToolsEvent::Registered { name }));
    assert_eq!(engine.tools().available(&owner).await.len(), 2);
    let weak = engine.downgrade();
    assert!(weak.upgrade().is_some());
    drop(engine);
    assert!(weak.upgrade().is_none());
}

#[tokio::test]
async fn every_condition_of_a_search_narrows() {
    let engine = builder()
        .tool(defined("read_file", |d| {
            d.category = Category::FileSystem;
            d.required_permissions = vec!["tool.filesystem.read".into()];
        }))
        .tool(defined("send_message", |d| {
            d.category = Category::Communication;
            d.requires_confirmation = true;
        }))
        .tool(defined("audit_report", |d| {
            d.tier = Tier::Enterprise;
            d.description = "Reports about FILES".into();
        }))
        .build()
        .unwrap();
    let find = |query: ToolQuery| {
        let found = engine.tools().find(&query, Tier::Teams).unwrap();
        found.iter().map(|definition| definition.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let all = ToolQuery::default;
    for (query, expected) in [
        (all(), "read_file send_message"),
        (ToolQuery { include_unavailable: true, ..all() }, "audit_report read_file send_message"),
        (ToolQuery { text: Some("FILE".into()), ..all() }, "read_file"),
        (
            ToolQuery { text: Some("file".into()), include_unavailable: true, ..all() },
            "audit_report read_file",
        ),
        (ToolQuery { categories: vec![Category::Communication], ..all() }, "send_message"),
        (ToolQuery { permissions: vec!["tool.filesystem.read".into()], ..all() }, "read_file"),
        (ToolQuery { permissions: vec!["tool.filesystem.read".into(), "x".into()], ..all() }, ""),
        (ToolQuery { requires_confirmation: Some(true), ..all() }, "send_message"),
        (ToolQuery { requires_confirmation: Some(false), ..all() }, "read_file"),
        (ToolQuery { max_results: 1, ..all() }, "read_file"),
        (ToolQuery { max_results: 0, ..all() }, ""),
    ] {
        assert_eq!(find(query.clone()), expected, "{query:?}");
    }
    assert_eq!(names(&engine.tools().by_category(Category::FileSystem, Tier::Core)), ["read_file"]);
}

#[tokio::test]
async fn ranking_looks_at_names_descriptions_and_parameters_of_what_may_be_called() {
    let with_parameter = |name: &str, parameter: &str| {
        defined(name, |definition| {
            definition.parameters = Parameters::List(vec![Parameter {
                name: "unit".into(),
                description: parameter.into(),
                kind: ParameterType::String,
                required: false,
                default: None,
                choices: None,
                schema: None,
            }]);
        })
    };
    let engine = builder()
        .tool(with_parameter("convert", "fahrenheit or celsius"))
        .tool(with_parameter("measure", "metres or feet"))
        .tool(defined("celsius_report", |d| d.tier = Tier::Enterprise))
        .build()
        .unwrap();
    let ranked = |tier| {
        let ranked = engine.tools().rank("celsius", 5, tier).unwrap();
        assert!(ranked.windows(2).all(|pair| pair[0].0 >= pair[1].0), "best first");
        ranked.iter().map(|(_, definition)| definition.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ranked(Tier::WriterPro), ["convert"]);
    assert_eq!(
        ranked(Tier::Enterprise),
        ["celsius_report", "convert"],
        "a name counts more than a parameter"
    );
    engine.tools().set_enabled("convert", false).await.unwrap();
    assert!(ranked(Tier::WriterPro).is_empty());
}

#[tokio::test]
async fn what_is_changed_is_there_after_a_restart() {
    let remembers = Arc::new(Remembers::default());
    let start = async || {
        let engine =
            builder().tool(plain("built_in")).registrations(Arc::clone(&remembers) as _).build().unwrap();
        let skipped =
            engine.tools().restore(|definition| Ok(Box::new(Described(Arc::new(definition))))).await.unwrap();
        (engine, skipped)
    };
    let (first, _) = start().await;
    let owner = by(Tier::Enterprise);
    first.tools().add(plain("mine"), &owner).await.unwrap();
    first.tools().add(plain("gone"), &owner).await.unwrap();
    first.tools().remove("gone").await.unwrap();
    first.tools().set_enabled("built_in", false).await.unwrap();
    let settings: Map<_, _> = json!({"a": 1}).as_object().unwrap().clone();
    first.tools().configure("mine", settings.clone()).await.unwrap();
    let before = first.tools().get("mine").unwrap();

    let (second, skipped) = start().await;
    assert!(skipped.is_empty());
    assert_eq!(second.tools().get("mine").unwrap(), before);
    assert!(!second.tools().get("built_in").unwrap().enabled && !second.tools().exists("gone"));

    second.tools().set_enabled("built_in", true).await.unwrap();
    assert_eq!(
        remembers.tools.lock().unwrap().keys().collect::<Vec<_>>(),
        ["mine"],
        "what is ordinary is forgotten"
    );
}

#[tokio::test]
async fn what_another_process_changes_is_followed() {
    let remembers = Arc::new(Remembers::default());
    let one = builder().tool(plain("built_in")).registrations(Arc::clone(&remembers) as _).build().unwrap();
    let (other, _) = lazily(&remembers);
    other.tools().bring_all().unwrap();
    let owner = by(Tier::Enterprise);
    let mut seen: BTreeMap<String, StoredTool> = BTreeMap::new();
    let mut events = other.tools().events();
    let mut look = async || {
        let now = remembers.tools.lock().unwrap().clone();
        let changed = now.iter().filter(|(name, tool)| seen.get(*name) != Some(tool));
        let gone = seen.keys().any(|name| !now.contains_key(name));
        let changes = ToolChanges {
            changed: changed.map(|(_, tool)| tool.clone()).collect(),
            left: gone.then(|| now.keys().cloned().collect()),
        };
        let skipped = other.tools().follow(&changes);
        seen = now;
        let told: Vec<String> =
            std::iter::from_fn(|| events.try_recv().ok()).map(|event| format!("{event:?}")).collect();
        assert_eq!(other.tools().follow(&ToolChanges::default()), [""; 0]);
        (skipped, told)
    };
    let nothing: Vec<String> = Vec::new();

    one.tools().add(plain("mine"), &owner).await.unwrap();
    assert_eq!(look().await, (nothing.clone(), vec![r#"Registered { name: "mine" }"#.to_owned()]));
    assert_eq!(other.tools().get("mine"), one.tools().get("mine"));
    assert_eq!(look().await, (nothing.clone(), nothing.clone()), "said once");

    one.tools().set_enabled("mine", false).await.unwrap();
    one.tools().set_enabled("built_in", false).await.unwrap();
    one.tools().configure("mine", json!({"a": 1}).as_object().unwrap().clone()).await.unwrap();
    let (_, told) = look().await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(!other.tools().get("built_in").unwrap().enabled);

    let changed = defined("mine", |definition| definition.description = "Another".into());
    one.tools().replace(changed, &owner).await.unwrap();
    one.tools().set_enabled("built_in", true).await.unwrap();
    let (_, told) = look().await;
    assert_eq!(told, [r#"Enabled { name: "built_in" }"#, r#"Replaced { name: "mine" }"#]);
    let mine = other.tools().get("mine").unwrap();
    assert!(mine.definition.description == "Another" && !mine.enabled, "switches stay");

    one.tools().add(defined("off", |_| {}), &owner).await.unwrap();
    one.tools().set_enabled("off", false).await.unwrap();
    one.tools().remove("mine").await.unwrap();
    let (_, told) = look().await;
    assert_eq!(told, [r#"Unregistered { name: "mine" }"#, r#"Registered { name: "off" }"#]);
    assert!(!other.tools().exists("mine") && !other.tools().get("off").unwrap().enabled);

    // What was changed here is so already, and nobody hears of it twice.
    other.tools().add(plain("here"), &owner).await.unwrap();
    assert_eq!(look().await.1, [r#"Registered { name: "here" }"#]);
    remembers.save(StoredTool { enabled: false, ..StoredTool::new("not_there") }).await.unwrap();
    let (skipped, told) = look().await;
    assert!(
        skipped.len() == 1 && skipped[0].contains("not_there") && told.is_empty(),
        "{skipped:?} {told:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_brought_back_is_named_and_stays_remembered() {
    let remembers = Arc::new(Remembers::default());
    for stored in [
        StoredTool { enabled: false, ..StoredTool::new("not_here_any_more") },
        StoredTool {
            definition: Some(Box::new(ToolDefinition::new("Bad Name", "x"))),
            ..StoredTool::new("Bad Name")
        },
        StoredTool {
            definition: Some(Box::new(ToolDefinition::clone(&plain("fine").0))),
            ..StoredTool::new("fine")
        },
    ] {
        remembers.save(stored).await.unwrap();
    }
    let engine = builder().registrations(Arc::clone(&remembers) as _).build().unwrap();
    let skipped =
        engine.tools().restore(|definition| Ok(Box::new(Described(Arc::new(definition))))).await.unwrap();
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    assert!(skipped.iter().any(|line| line.contains("not_here_any_more")), "{skipped:?}");
    assert!(engine.tools().exists("fine"));
    assert_eq!(remembers.tools.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn what_cannot_be_remembered_is_not_done() {
    let remembers = Arc::new(Remembers::default());
    let engine =
        builder().tool(plain("built_in")).registrations(Arc::clone(&remembers) as _).build().unwrap();
    let owner = by(Tier::Enterprise);
    engine.tools().add(plain("mine"), &owner).await.unwrap();
    remembers.broken.store(true, Ordering::Release);
    let tools = engine.tools();
    let newer = defined("mine", |definition| definition.description = "Newer".into());
    for refused in [
        tools.add(plain("other"), &owner).await.map(|_| ()),
        tools.replace(newer, &owner).await.map(|_| ()),
        tools.remove("mine").await,
        tools.set_enabled("built_in", false).await,
        tools.configure("built_in", json!({"a": 1}).as_object().unwrap().clone()).await,
    ] {
        assert!(matches!(refused, Err(RegisterError::NotRemembered(_))), "{refused:?}");
    }
    assert!(tools.exists("mine") && !tools.exists("other"));
    assert_eq!(tools.get("mine").unwrap().definition.description, "The tool mine");
    let built_in = tools.get("built_in").unwrap();
    assert!(built_in.enabled && built_in.settings.is_empty());
}

/// Readers and writers at full speed for a second: every snapshot is whole, and no reader ever waits for a writer.
#[test]
fn readers_never_see_half_a_change_and_never_wait() {
    let engine = builder().tool(plain("anchor")).build().unwrap();
    let stop = AtomicBool::new(false);
    let (reads, writes) = (AtomicU64::new(0), AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let slowest = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut slowest = Duration::ZERO;
                    while !stop.load(Ordering::Relaxed) {
                        let start = Instant::now();
                        let anchor = engine.definition("Anchor").expect("it was never removed");
                        slowest = slowest.max(start.elapsed());
                        assert_eq!(anchor.name, "anchor");
                        // The pair is added and removed as one tool with an alias: both are there, or neither.
                        if let Some(found) = engine.definition("flicker_alias") {
                            assert_eq!(found.name, "flicker");
                            assert_eq!(found.aliases, ["flicker_alias"]);
                        }
                        let all = engine.definitions();
                        assert!(
                            all.windows(2).all(|pair| pair[0].name < pair[1].name),
                            "in order, each once"
                        );
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    slowest
                })
            })
            .collect();
        let flicker = defined("flicker", |definition| definition.aliases = vec!["flicker_alias".into()]);
        let owner = by(Tier::Enterprise);
        let end = Instant::now() + Duration::from_secs(1);
        while Instant::now() < end {
            runtime.block_on(engine.tools().add(flicker.clone(), &owner)).unwrap();
            runtime.block_on(engine.tools().remove("flicker")).unwrap();
            writes.fetch_add(2, Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).max().unwrap()
    });
    let (reads, writes) = (reads.into_inner(), writes.into_inner());
    println!("{reads} reads and {writes} writes in a second; the slowest lookup took {slowest:?}");
    assert!(reads > 1_000 && writes > 100, "{reads} reads, {writes} writes");
    // A lookup takes no lock. What remains is the machine's own scheduling of four threads on few cores.
    assert!(slowest < Duration::from_millis(250), "a reader waited for {slowest:?}");
}

#[tokio::test]
async fn a_remembered_tool_comes_when_it_is_asked_for_and_the_others_stay() {
    let remembers = Arc::new(Remembers::default());
    let (first, _) = lazily(&remembers);
    let owner = by(Tier::Enterprise);
    for name in ["one", "two", "three"] {
        first.tools().add(plain(name), &owner).await.unwrap();
    }
    let aliased = defined("four", |definition| definition.aliases = vec!["Vier".into()]);
    first.tools().add(aliased, &owner).await.unwrap();
    first.tools().set_enabled("two", false).await.unwrap();
    first.tools().set_enabled("built_in", false).await.unwrap();

    let (second, said) = lazily(&remembers);
    remembers.found.lock().unwrap().clear();
    assert_eq!(code(&second, "built_in").await, Some(ErrorCode::ToolDisabled), "before anything else");
    assert_eq!(code(&second, "one").await, None);
    assert_eq!(code(&second, "ONE").await, None);
    assert_eq!(code(&second, "two").await, Some(ErrorCode::ToolDisabled));
    assert_eq!(code(&second, "vier").await, None);
    assert_eq!(*remembers.found.lock().unwrap(), ["one", "two", "vier"], "once each, and nothing else");
    let unknown = second.execute(ToolCall::new("thre", json!({}))).await;
    assert!(unknown.error.unwrap().message.contains("Did you mean `three`?"), "one that is not here yet");
    let taken = second.tools().add(defined("new", |new| new.aliases = vec!["Three".into()]), &owner).await;
    assert!(matches!(taken, Err(RegisterError::Duplicate { .. })), "{taken:?}");

    let names: Vec<String> = second.tools().all().iter().map(|tool| tool.definition.name.clone()).collect();
    assert_eq!(names, ["built_in", "four", "one", "three", "two"]);
    remembers.found.lock().unwrap().clear();
    assert!(!second.tools().exists("nothing"));
    assert!(remembers.found.lock().unwrap().is_empty(), "all that there is is here");
    assert!(said.lock().unwrap().is_empty());
}

#[tokio::test]
async fn with_a_tool_of_an_mcp_server_come_its_others() {
    let remembers = Arc::new(Remembers::default());
    let of = |name: &str, server: &str| {
        let mut definition = ToolDefinition::new(name, "Asks a server");
        definition.source = haft_core::Source::Mcp;
        definition.mcp = Some(Box::new(haft_core::McpSource {
            program: Some("/bin/server".into()),
            ..haft_core::McpSource::new(server, name)
        }));
        StoredTool { definition: Some(Box::new(definition)), ..StoredTool::new(name) }
    };
    let all = ["one", "two"].map(|name| of(name, "s")).into_iter().chain([of("three", "t")]).collect();
    remembers.save_all(all).await.unwrap();
    let made = Arc::new(Mutex::new(Vec::new()));
    let engine = builder().registrations(Arc::clone(&remembers) as _).build().unwrap();
    let names = Arc::clone(&made);
    let make = move |definition: ToolDefinition| {
        names.lock().unwrap().push(definition.name.clone());
        Ok(Box::new(Described(Arc::new(definition))) as Box<dyn Tool>)
    };
    let say = |said: &[String]| panic!("{said:?}");
    engine.tools().restore_when_needed(Arc::clone(&remembers) as _, make, say);
    assert!(engine.tools().exists("two"));
    let mut made = made.lock().unwrap().clone();
    made.sort();
    assert_eq!(made, ["one", "two"], "the server of which is compared with both");
}

#[tokio::test]
async fn where_it_cannot_be_known_how_tools_are_set_up_none_is_called() {
    let remembers = Arc::new(Remembers::default());
    let (engine, _) = lazily(&remembers);
    remembers.broken.store(true, Ordering::Release);
    assert_eq!(code(&engine, "built_in").await, Some(ErrorCode::StoreUnavailable), "it may be switched off");
    assert_eq!(code(&engine, "mine").await, Some(ErrorCode::StoreUnavailable));
    assert!(matches!(engine.tools().bring_all(), Err(RegisterError::Unreadable(_))));
    remembers.broken.store(false, Ordering::Release);
    assert_eq!(code(&engine, "built_in").await, None, "asked again");
}

#[tokio::test]
async fn what_is_remembered_and_cannot_be_used_is_said_once_and_never_called() {
    let remembers = Arc::new(Remembers::default());
    let stored = |name: &str, description: &str| StoredTool {
        definition: Some(Box::new(ToolDefinition::new(name, description))),
        ..StoredTool::new(name)
    };
    let mut tightened = stored("tight", "Is tightened");
    tightened.settings = json!({"no_such_setting": 1}).as_object().unwrap().clone();
    for tool in [stored("broken", "It cannot be made"), tightened, stored("built_in", "Another one")] {
        remembers.save(tool).await.unwrap();
    }
    remembers.save(StoredTool { enabled: false, ..StoredTool::new("gone") }).await.unwrap();
    let (engine, said) = lazily(&remembers);
    for _ in 0..2 {
        assert_eq!(code(&engine, "broken").await, Some(ErrorCode::ToolNotFound));
        assert_eq!(code(&engine, "tight").await, Some(ErrorCode::ToolDisabled), "not without its settings");
        engine.tools().bring_all().unwrap();
    }
    let mut said = said.lock().unwrap().clone();
    said.sort();
    assert_eq!(said.len(), 4, "{said:?}");
    for (line, name) in said.iter().zip(["`broken`", "`built_in`", "`gone`", "`tight`"]) {
        assert!(line.starts_with(name), "{line}");
    }
    assert_eq!(remembers.tools.lock().unwrap().len(), 4, "and stays remembered");
}

#[tokio::test]
async fn what_is_taken_together_is_taken_whole() {
    let remembers = Arc::new(Remembers::default());
    let (engine, _) = lazily(&remembers);
    let owner = by(Tier::Enterprise);
    engine.tools().add(plain("old"), &owner).await.unwrap();
    let boxed = |name: &str| Box::new(plain(name)) as Box<dyn Tool>;
    let twice = vec![(boxed("new"), false), (boxed("old"), false)];
    assert!(matches!(engine.tools().take(twice, &owner).await, Err(RegisterError::Duplicate { .. })));
    let built_in = vec![(boxed("new"), false), (boxed("built_in"), true)];
    assert!(matches!(engine.tools().take(built_in, &owner).await, Err(RegisterError::BuiltIn { .. })));
    remembers.broken.store(true, Ordering::Release);
    assert!(engine.tools().take(vec![(boxed("new"), false)], &owner).await.is_err());
    remembers.broken.store(false, Ordering::Release);
    assert!(!engine.tools().exists("new"), "none of these was added");
    let taken = engine.tools().take(vec![(boxed("new"), false), (boxed("old"), true)], &owner).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert_eq!(remembers.tools.lock().unwrap().keys().collect::<Vec<_>>(), ["new", "old"]);
}

#[tokio::test]
async fn the_parts_of_a_list_are_the_list() {
    let engine = builder().tool(plain("built_in")).build().unwrap();
    let owner = by(Tier::Enterprise);
    for number in 0..25 {
        engine.tools().add(plain(&format!("tool_{number:02}")), &owner).await.unwrap();
    }
    let whole: Vec<String> =
        engine.tools().available(&owner).await.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(whole.len(), 26);
    for most in [1, 7, 26, 100] {
        let (mut seen, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let part = ToolsPart { after: after.as_deref(), most };
            let page = engine.tools().available_part(&owner, part, |_| true).await;
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            seen.extend(page.iter().map(|tool| tool.name.clone()));
        }
        assert_eq!(seen, whole, "{most}");
    }
    let even = |tool: &ToolDefinition| tool.name.ends_with(['0', '2', '4', '6', '8']);
    assert_eq!(
        engine.tools().available_part(&owner, ToolsPart { after: None, most: 3 }, even).await.len(),
        3
    );
}
