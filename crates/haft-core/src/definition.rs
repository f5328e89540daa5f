//! What a tool says about itself.

use crate::{CommandSource, HttpSource, McpSource, Parameters, Retry, Tier, iso_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// What a tool has to do with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Category {
    /// Files and folders.
    FileSystem,
    /// Other machines.
    Network,
    /// Queries.
    Database,
    /// Running programs.
    CodeExecution,
    /// Services of others.
    ExternalApi,
    /// What is known.
    Knowledge,
    /// Telling somebody something.
    Communication,
    /// haft itself, and what fits nowhere else.
    #[default]
    System,
}

impl Category {
    /// The risk of a tool that names none: running programs is high, reading knowledge is low.
    ///
    /// ```
    /// use haft_core::{Category, Risk};
    /// assert_eq!(Category::CodeExecution.usual_risk(), Risk::High);
    /// ```
    pub const fn usual_risk(self) -> Risk {
        match self {
            Category::CodeExecution => Risk::High,
            Category::FileSystem
            | Category::Network
            | Category::Database
            | Category::ExternalApi
            | Category::Communication => Risk::Medium,
            Category::Knowledge | Category::System => Risk::Low,
        }
    }
}

/// How bad it can get, for the person who is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Only reads.
    #[default]
    Low,
    /// Changes things that can be put back.
    Medium,
    /// Runs programs, deletes, sends.
    High,
}

/// How strongly a call is contained. Each level includes those before it.
///
/// ```
/// use haft_core::IsolationLevel;
/// assert!(IsolationLevel::None < IsolationLevel::Strict);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum IsolationLevel {
    /// In haft's own process: trusted built-ins and code linked into the program.
    None,
    /// A process of its own, with limits and a filtered environment.
    #[default]
    Standard,
    /// Plus paths and hosts enforced by the kernel, no privileges, filtered system calls.
    Strict,
    /// No files, no network, little memory, on the strongest jail there is.
    Restricted,
}

/// What holds programs in.
///
/// ```
/// use haft_core::IsolationTechnology;
/// assert_eq!(IsolationTechnology::Gvisor.jail(), Some("gvisor"));
/// assert_eq!(IsolationTechnology::default().jail(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IsolationTechnology {
    /// The cheapest that delivers the level of a call.
    #[default]
    Auto,
    /// Landlock, seccomp and cgroups, without namespaces.
    Process,
    /// Namespaces.
    Namespace,
    /// A container runtime: runc or crun.
    Runc,
    /// gVisor, a kernel in user space.
    Gvisor,
}

impl IsolationTechnology {
    /// The name of the jail; nothing where haft chooses.
    #[must_use]
    pub const fn jail(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Process => Some("process"),
            Self::Namespace => Some("namespace"),
            Self::Runc => Some("runc"),
            Self::Gvisor => Some("gvisor"),
        }
    }

    /// Whether nothing was chosen.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// What two chose together: nothing where they differ.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (one, Self::Auto) | (Self::Auto, one) => Some(one),
            (one, other) => (one == other).then_some(one),
        }
    }
}

/// How a tool may be run.
///
/// ```
/// use haft_core::Constraints;
/// let constraints: Constraints = serde_json::from_str(r#"{"maxExecutionTime": "PT30S"}"#).unwrap();
/// assert!(constraints.allow_side_effects);
/// assert_eq!(constraints.max_output_size, 10 * 1024 * 1024);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Constraints {
    /// The deadline when the caller names none.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_duration::option")]
    pub default_timeout: Option<Duration>,
    /// The longest deadline that a caller may name; and the deadline, where neither the caller nor the tool names one
    /// and this is not the default.
    #[serde(with = "iso_duration")]
    pub max_execution_time: Duration,
    /// The most bytes that are kept of its output.
    pub max_output_size: u64,
    /// The most bytes that its arguments may have, where it needs another limit than the general one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_argument_size: Option<u64>,
    /// Whether it changes anything.
    pub allow_side_effects: bool,
    /// The containment that it needs at least.
    pub required_isolation: IsolationLevel,
}

impl Constraints {
    /// The longest deadline of a tool that states none.
    pub const MAX_EXECUTION_TIME: Duration = Duration::from_secs(600);

    /// The `maxExecutionTime` that the tool states: one that is not the default.
    ///
    /// ```
    /// use haft_core::Constraints;
    /// assert_eq!(Constraints::default().stated_execution_time(), None);
    /// ```
    pub fn stated_execution_time(&self) -> Option<Duration> {
        Some(self.max_execution_time).filter(|most| *most != Constraints::MAX_EXECUTION_TIME)
    }
}

impl Default for Constraints {
    fn default() -> Self {
        Constraints {
            default_timeout: None,
            max_execution_time: Constraints::MAX_EXECUTION_TIME,
            max_output_size: 10 * 1024 * 1024,
            max_argument_size: None,
            allow_side_effects: true,
            required_isolation: IsolationLevel::Standard,
        }
    }
}

/// Where the code behind a tool comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Comes with haft, or is linked into the program.
    #[default]
    BuiltIn,
    /// A program.
    Command,
    /// An HTTP service.
    Http,
    /// A WebAssembly module.
    Wasm,
    /// An MCP server.
    Mcp,
    /// A flow of other tools.
    Flow,
    /// Declared only; somebody else supplies the results.
    Declared,
}

/// Hints for clients that show tools to people. Never the base of a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// May destroy what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Talks to an open world, such as the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Annotations {
    fn is_empty(&self) -> bool {
        *self == Annotations::default()
    }
}

/// What a tool says about itself: its name, what it does, what it takes, what it gives, what it may do.
///
/// ```
/// use haft_core::ToolDefinition;
/// let definition: ToolDefinition = serde_json::from_str(r#"{
///     "name": "word_count",
///     "description": "Count the words of a text",
///     "category": "System",
///     "parameters": [{"name": "text", "description": "The text", "type": "String", "required": true}]
/// }"#).unwrap();
/// assert!(definition.check().is_empty());
/// assert_eq!(definition.parameters.to_schema()["required"], serde_json::json!(["text"]));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolDefinition {
    /// Lower case letters, digits and underscores.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model that chooses.
    pub description: String,
    /// What it has to do with.
    #[serde(default)]
    pub category: Category,
    /// What it takes.
    #[serde(default)]
    pub parameters: Parameters,
    /// A JSON Schema of what it gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How it may be run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub constraints: Constraints,
    /// What the caller must be permitted.
    #[serde(default)]
    pub required_permissions: Vec<String>,
    /// Whether a person must always agree.
    #[serde(default)]
    pub requires_confirmation: bool,
    /// How bad it can get; where absent, from side effects and category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// Whether running it twice is the same as running it once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub idempotent: bool,
    /// How its calls are retried, where that is not as usual. `maxRetries` of 0 stops retries, whatever a call asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Retry>>,
    /// Whether a stored result may answer a later call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cacheable: bool,
    /// The lowest licence tier that has it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tier: Tier,
    /// A semantic version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where the code comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub source: Source,
    /// The program, where the code is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<CommandSource>>,
    /// The HTTP service, where the code is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpSource>>,
    /// The MCP server, where the code is behind one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<Box<McpSource>>,
    /// The flow, where the code is one: what its file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<Value>>,
    /// What can be set on it beside what can be [tightened](crate::Tightening) on every tool: the JSON Schema of an object;
    /// absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_schema: Option<Value>,
    /// Other names for it. Rules and lists always match the canonical name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Hints for clients.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ToolDefinition {
    /// As callers may see it: headers whose values are written out are there by name alone, since a token may be among
    /// them.
    ///
    /// ```
    /// use haft_core::{HttpSource, ToolDefinition};
    /// let mut definition = ToolDefinition::new("weather", "Says how the weather is");
    /// let mut http = HttpSource::new("https://api.example");
    /// http.headers.insert("Authorization".into(), "Bearer abc".into());
    /// http.headers.insert("X-Key".into(), "env:KEY".into());
    /// definition.http = Some(Box::new(http));
    /// let headers = definition.shown().http.unwrap().headers;
    /// assert_eq!((headers["Authorization"].as_str(), headers["X-Key"].as_str()), ("(hidden)", "env:KEY"));
    /// ```
    pub fn shown(&self) -> ToolDefinition {
        let mut shown = self.clone();
        let of_http = shown.http.iter_mut().flat_map(|http| http.headers.values_mut());
        let of_mcp = shown.mcp.iter_mut().flat_map(|mcp| mcp.headers.values_mut());
        for value in of_http.chain(of_mcp) {
            if !["env:", "file:", "command:"].iter().any(|kept| value.starts_with(kept)) {
                *value = "(hidden)".into();
            }
        }
        shown
    }

    /// A definition with that name and description, and the defaults for the rest.
    ///
    /// ```
    /// let definition = haft_core::ToolDefinition::new("ping", "Answers at once");
    /// assert!(definition.has_side_effects(), "nothing is harmless until it says so");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        ToolDefinition {
            name: name.into(),
            title: None,
            description: description.into(),
            category: Category::System,
            parameters: Parameters::default(),
            output_schema: None,
            constraints: Constraints::default(),
            required_permissions: Vec::new(),
            requires_confirmation: false,
            risk: None,
            idempotent: false,
            retry: None,
            cacheable: false,
            tier: Tier::Core,
            version: None,
            source: Source::BuiltIn,
            command: None,
            http: None,
            mcp: None,
            flow: None,
            settings_schema: None,
            aliases: Vec::new(),
            annotations: Annotations::default(),
            metadata: Map::new(),
        }
    }

    /// Whether it says what runs when it is called: a program, an HTTP service, an MCP server or a flow.
    ///
    /// ```
    /// assert!(!haft_core::ToolDefinition::new("ping", "Answers at once").says_what_runs());
    /// ```
    pub fn says_what_runs(&self) -> bool {
        match self.source {
            Source::Command => self.command.is_some(),
            Source::Http => self.http.is_some(),
            Source::Flow => self.flow.is_some(),
            Source::Mcp => self.mcp.is_some(),
            Source::BuiltIn | Source::Wasm | Source::Declared => false,
        }
    }

    /// Whether a call of it starts a program of somebody's own, or a server that is one.
    ///
    /// ```
    /// use haft_core::{Source, ToolDefinition};
    /// let mut definition = ToolDefinition::new("count", "Counts");
    /// assert!(!definition.is_program());
    /// definition.source = Source::Command;
    /// assert!(definition.is_program());
    /// ```
    pub fn is_program(&self) -> bool {
        match self.source {
            Source::Command => true,
            Source::Mcp => self.mcp.as_ref().is_some_and(|server| server.program.is_some()),
            Source::BuiltIn | Source::Http | Source::Wasm | Source::Flow | Source::Declared => false,
        }
    }

    /// Whether running it may change anything.
    pub fn has_side_effects(&self) -> bool {
        self.constraints.allow_side_effects
    }

    /// The risk to show: its own, else low without side effects, else the category's, and at least medium.
    ///
    /// ```
    /// use haft_core::{Risk, ToolDefinition};
    /// assert_eq!(ToolDefinition::new("touch", "Creates a file").risk(), Risk::Medium);
    /// ```
    pub fn risk(&self) -> Risk {
        match self.risk {
            Some(risk) => risk,
            None if self.has_side_effects() => self.category.usual_risk().max(Risk::Medium),
            None => Risk::Low,
        }
    }
}
