//! All servers that tools come from.

use super::{
    instance::{Instance, Key, connect},
    listing::{Compared, Listing, compare},
    program,
    tool::McpTool,
};
use haft_core::{
    DefinitionProblem, ErrorCode, IsolationLevel, McpSource, Source, ToolDefinition, ToolError,
    port::GuestSpec, text,
};
use haft_sdk::{
    PassedOn, ToolCtx,
    capability::{Commands, Http},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

/// Servers that run at once, for all tenants together.
const MOST_INSTANCES: usize = 64;

/// What servers are reached through: jails for programs, the gate for addresses.
#[derive(Clone)]
pub struct Reach {
    /// Programs.
    pub commands: Arc<dyn Commands>,
    /// Other machines.
    pub http: Arc<dyn Http>,
}

/// The value of a variable of haft's that a server may get: `None` where there is none, an error where it may not.
pub type Variable = Arc<dyn Fn(&str) -> Result<Option<String>, ToolError> + Send + Sync>;

/// Gives the value of a variable, where there is one.
pub type Secret = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How servers are run.
#[derive(Clone)]
pub struct UpstreamSettings {
    /// The least containment of a program.
    pub isolation: IsolationLevel,
    /// How long a server may take until it has said what it has.
    pub connect_timeout: Duration,
    /// Variables that programs name.
    pub variable: Variable,
    /// Variables that headers are taken from.
    pub secret: Secret,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        UpstreamSettings {
            isolation: IsolationLevel::Strict,
            connect_timeout: Duration::from_secs(30),
            variable: Arc::new(|_| Ok(None)),
            secret: Arc::new(|_| None),
        }
    }
}

/// The tools of a server beside what was accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notice {
    /// The server.
    pub server: String,
    /// Tools that are not what they were: what was accepted, and what would have to be. Their calls are refused.
    pub changed: Vec<(Arc<ToolDefinition>, ToolDefinition)>,
    /// Tools that nobody has accepted. They are not there.
    pub new: Vec<ToolDefinition>,
    /// Tools that the server does not have any more.
    pub gone: Vec<String>,
    /// Tools that it has, as they were accepted or changed.
    pub there: Vec<String>,
}

impl Notice {
    /// Whether everything is as it was accepted.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.new.is_empty() && self.gone.is_empty()
    }
}

/// Hears what a server has.
pub type Observer = Arc<dyn Fn(&Notice) + Send + Sync>;

/// A tool that was accepted, as long as somebody has it.
pub(super) struct Accepted(pub(super) Arc<ToolDefinition>);

/// What all servers have in common.
pub(super) struct Shared {
    pub(super) reach: Reach,
    pub(super) settings: UpstreamSettings,
    accepted: Mutex<Vec<Weak<Accepted>>>,
    observer: OnceLock<Observer>,
}

impl Shared {
    fn accepted(&self) -> MutexGuard<'_, Vec<Weak<Accepted>>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what is other about a server than what was accepted.
    pub(super) fn notice(&self, server: &McpSource, now: &Listing) {
        let known: Vec<Arc<ToolDefinition>> = {
            let mut accepted = self.accepted();
            accepted.retain(|known| known.strong_count() > 0);
            accepted.iter().filter_map(Weak::upgrade).map(|known| Arc::clone(&known.0)).collect()
        };
        if let Some(observer) = self.observer.get() {
            observer(&difference(server, &known, now));
        }
    }
}

/// What is other about a server than what was accepted. Of two tools of one name the later one counts.
fn difference(server: &McpSource, known: &[Arc<ToolDefinition>], now: &Listing) -> Notice {
    let mut notice = Notice { server: server.server.clone(), ..Notice::default() };
    let is_its =
        |tool: &&Arc<ToolDefinition>| tool.mcp.as_ref().is_some_and(|mcp| mcp.is_same_server(server));
    let mut own: Vec<&Arc<ToolDefinition>> = known.iter().filter(is_its).collect();
    own.reverse();
    let mut seen = std::collections::BTreeSet::new();
    own.retain(|tool| seen.insert(tool.name.as_str()));
    for tool in &own {
        match compare(tool, now) {
            Compared::Same => {}
            Compared::Changed(proposed) => notice.changed.push((Arc::clone(tool), *proposed)),
            Compared::Gone => {
                notice.gone.push(tool.name.clone());
                continue;
            }
        }
        notice.there.push(tool.name.clone());
    }
    let is_known = |tool: &&ToolDefinition| {
        let wanted = tool.mcp.as_ref().map(|mcp| &mcp.tool);
        own.iter().any(|known| known.mcp.as_ref().map(|mcp| &mcp.tool) == wanted)
    };
    notice.new = now.tools.values().filter(|tool| !is_known(tool)).cloned().collect();
    notice
}

struct Inner {
    shared: Arc<Shared>,
    instances: Mutex<Vec<Arc<Instance>>>,
}

/// The servers that tools come from. Each is begun when one of its tools is first called, in a jail where it is a
/// program, and serves the calls of one tenant that may have it in the same way. They end when the last clone of this
/// is dropped; the tools hold one.
///
/// ```no_run
/// use haft_core::McpSource;
/// use haft_mcp::client::{Reach, Upstreams, UpstreamSettings};
/// # async fn example(reach: Reach) -> Result<(), Box<dyn std::error::Error>> {
/// let upstreams = Upstreams::new(reach, UpstreamSettings::default());
/// let server = McpSource { program: Some("clock-server".into()), ..McpSource::new("clock", "") };
/// for definition in upstreams.discover(&server).await?.tools.into_values() {
///     let tool = upstreams.tool(definition).map_err(|problem| problem.to_string())?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Upstreams(Arc<Inner>);

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").field("running", &self.running()).finish()
    }
}

impl Upstreams {
    /// None yet, and how they will be reached.
    pub fn new(reach: Reach, settings: UpstreamSettings) -> Self {
        let shared = Shared { reach, settings, accepted: Mutex::default(), observer: OnceLock::new() };
        Upstreams(Arc::new(Inner { shared: Arc::new(shared), instances: Mutex::default() }))
    }

    /// Who hears what a server has beside what was accepted: when a server is connected, and whenever it says that its
    /// list changed. The first one counts.
    pub fn observe(&self, observer: Observer) {
        let _ = self.0.shared.observer.set(observer);
    }

    /// The tool of an accepted definition.
    ///
    /// # Errors
    ///
    /// Its source is not `mcp`, or it names no server.
    pub fn tool(&self, mut definition: ToolDefinition) -> Result<McpTool, DefinitionProblem> {
        let (Source::Mcp, Some(mcp)) = (definition.source, &definition.mcp) else {
            return Err(DefinitionProblem {
                place: "mcp".to_owned(),
                problem: format!("`{}` names no server", text::one_line(&definition.name, 80)),
                fix:
                    "set source to `mcp`, and add a table `mcp` with `server`, `tool` and `program` or `url`"
                        .to_owned(),
            });
        };
        let required = &mut definition.constraints.required_isolation;
        *required = match &mcp.program {
            // When it is called it is contained as commands are, where that is stronger.
            Some(_) => (*required).max(IsolationLevel::Standard),
            None => IsolationLevel::None,
        };
        let definition = Arc::new(definition);
        let accepted = Arc::new(Accepted(Arc::clone(&definition)));
        self.0.shared.accepted().push(Arc::downgrade(&accepted));
        Ok(McpTool::new(definition, accepted, self.clone()))
    }

    /// What a server has: begins it, asks, and ends it.
    pub async fn discover(&self, server: &McpSource) -> Result<Listing, ToolError> {
        let shared = &self.0.shared;
        let program = match &server.program {
            Some(_) => {
                let mut spec = program::spec(server, shared, shared.reach.commands.template().clone())?;
                spec.level = shared.settings.isolation.max(IsolationLevel::Standard);
                Some(spec)
            }
            None => None,
        };
        let connection = connect(shared, server, program).await?;
        // One that keeps saying that its list changed has had its time.
        let listing = tokio::time::timeout(shared.settings.connect_timeout, connection.listing()).await;
        let listing = listing.unwrap_or_else(|_| connection.last_listing());
        connection.end().await;
        Ok(Listing::clone(&listing))
    }

    /// How many servers run now.
    pub fn running(&self) -> usize {
        self.instances().iter().filter(|instance| instance.is_running()).count()
    }

    /// Ends all servers. Calls that are on their way lose them; later ones find nothing.
    pub async fn end_all(&self) {
        let ending = std::mem::take(&mut *self.instances());
        futures_util::future::join_all(ending.iter().map(|instance| instance.end())).await;
    }

    fn instances(&self) -> MutexGuard<'_, Vec<Arc<Instance>>> {
        self.0.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server for a call: the one that serves the same tenant in the same way, or another one.
    pub(super) fn instance(&self, server: &McpSource, cx: &ToolCtx) -> Result<Arc<Instance>, ToolError> {
        let program = match &server.program {
            // As this call may run commands: it may keep to fewer folders.
            Some(_) => {
                Some(fitted(program::spec(server, &self.0.shared, cx.commands().template().clone())?, cx)?)
            }
            None => None,
        };
        let key = Key { tenant: Arc::clone(&cx.context().tenant), server: server.without_tool(), program };
        let mut instances = self.instances();
        if let Some(there) = instances.iter().find(|instance| instance.key == key) {
            return Ok(Arc::clone(there));
        }
        if instances.len() >= MOST_INSTANCES {
            let_one_go(&mut instances)?;
        }
        let instance = Arc::new(Instance::new(key, Arc::clone(&self.0.shared)));
        instances.push(Arc::clone(&instance));
        Ok(instance)
    }
}

/// The program as this call may run it. What names the call itself is not the server's.
fn fitted(spec: GuestSpec, cx: &ToolCtx) -> Result<GuestSpec, ToolError> {
    let mut spec = cx.fit(spec)?;
    spec.environment.remove("HAFT_EFFECT_ID");
    PassedOn::VARIABLES.iter().for_each(|name| drop(spec.environment.remove(*name)));
    Ok(spec)
}

/// Ends the server that nobody has used for the longest time.
fn let_one_go(instances: &mut Vec<Arc<Instance>>) -> Result<(), ToolError> {
    let idle = instances.iter().enumerate().filter(|(_, instance)| Arc::strong_count(instance) == 1);
    let Some((oldest, _)) = idle.min_by_key(|(_, instance)| instance.used()) else {
        let text = format!("{MOST_INSTANCES} MCP servers are in use already. Try again when one is free");
        return Err(ToolError::new(ErrorCode::ConcurrentLimitExceeded, text));
    };
    let ended = instances.swap_remove(oldest);
    tokio::spawn(async move { ended.end().await });
    Ok(())
}
