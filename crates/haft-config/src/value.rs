//! One value of one key, whatever its type: what layers carry before they become a [`Config`](super::Config).

use std::fmt;
use std::path::PathBuf;

use haft_core::{
    AgentDefinition, ApprovalMode, AskCommands, Channel, CommandWrites, IsolationLevel, Parameters, Source,
    Strategy, ToolDefinition, ToolsMode,
};
use haft_guard::policy::Rule as PolicyRule;

use super::profile::Profile;
use serde::Serialize;

use super::visible;

/// A value that was read for a key, or that is in effect for it.
///
/// It prints as TOML:
///
/// ```
/// use haft_config::Value;
///
/// assert_eq!(Value::Names(vec!["read_file".into(), "glob".into()]).to_string(), r#"["read_file", "glob"]"#);
/// assert_eq!(Value::Level("parse_only").to_string(), r#""parse_only""#);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Value {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Count(u64),
    /// One of a key's ordered choices.
    Level(&'static str),
    /// Text.
    Text(String),
    /// Names or patterns.
    Names(Vec<String>),
    /// Folders.
    Folders(Vec<PathBuf>),
    /// Tools that are declared, not built in.
    Tools(Vec<DeclaredTool>),
    /// Rules of policy.
    Rules(Vec<PolicyRule>),
    /// What named agents have.
    Agents(Vec<AgentDefinition>),
}

/// A tool that exists only as a declaration (`[[tools.definitions]]`), for `mode = "parse_only"`: a model may
/// call it, and a person supplies the result.
///
/// ```
/// let text = r#"
/// [[tools.definitions]]
/// name = "ask_colleague"
/// description = "Asks the person at the next desk"
/// parameters = { type = "object", properties = { question = { type = "string" } } }
/// "#;
/// let tools = haft_config::parse(text)?.tools.definitions;
/// assert_eq!(tools[0].parameters["properties"]["question"]["type"], "string");
/// # Ok::<(), haft_config::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeclaredTool {
    /// The name a model calls it by.
    pub name: String,
    /// What it is for, in words for a model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: serde_json::Value,
}

impl DeclaredTool {
    /// The definition to offer to a model. Nothing is known about what its user will do, so it counts as
    /// having side effects.
    ///
    /// ```
    /// let text = "[[tools.definitions]]\nname = 'ask_colleague'\ndescription = 'Asks at the next desk'\n";
    /// let definition = haft_config::parse(text)?.tools.definitions[0].definition();
    /// assert_eq!(definition.source, haft_core::Source::Declared);
    /// assert_eq!(definition.check(), []);
    /// # Ok::<(), haft_config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        let mut definition = ToolDefinition::new(&self.name, &self.description);
        definition.parameters = Parameters::Schema(self.parameters.clone());
        definition.source = Source::Declared;
        definition
    }
}

/// Where haft remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreBackend {
    /// In a file of the state folder.
    Sqlite,
    /// On a server that several machines share.
    Postgres,
}

pub use haft_core::IsolationTechnology;

/// What is on the disk before anybody goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreDurability {
    /// Every call.
    Full,
    /// Every call that has effects.
    Effects,
}

/// Who approves calls of MCP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum McpApprovals {
    /// The person who answers haft's own questions. The client hears by which id.
    Queue,
    /// The person before the client, through a form of haft's, where the client has forms.
    Client,
    /// The client's program: it asks its user before each call, and that counts.
    Host,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => write!(f, "{on}"),
            Self::Count(number) => write!(f, "{number}"),
            Self::Level(level) => f.write_str(&visible::quoted(level)),
            Self::Text(text) => f.write_str(&visible::quoted(text)),
            Self::Names(names) => list(f, names.iter().map(|name| visible::quoted(name))),
            Self::Folders(folders) => {
                list(f, folders.iter().map(|folder| visible::quoted(&folder.to_string_lossy())))
            }
            Self::Tools(tools) => list(f, tools.iter().map(DeclaredTool::to_string)),
            Self::Rules(rules) => list(f, rules.iter().map(rule_text)),
            Self::Agents(agents) => list(f, agents.iter().map(agent_text)),
        }
    }
}

impl fmt::Display for DeclaredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, description) = (visible::quoted(&self.name), visible::quoted(&self.description));
        write!(f, "{{ name = {name}, description = {description}, parameters = ")?;
        json_as_toml(f, &self.parameters)?;
        f.write_str(" }")
    }
}

/// A rule as inline TOML: its name and what it does first.
pub(super) fn rule_text(rule: &PolicyRule) -> String {
    struct Inline(serde_json::Map<String, serde_json::Value>);
    impl fmt::Display for Inline {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let first = ["name", "effect"];
            let rest = self.0.keys().map(String::as_str).filter(|key| !first.contains(key));
            f.write_str("{ ")?;
            for (index, key) in first.into_iter().chain(rest).enumerate() {
                write!(f, "{}{key} = ", if index == 0 { "" } else { ", " })?;
                json_as_toml(f, self.0.get(key).unwrap_or(&serde_json::Value::Null))?;
            }
            f.write_str(" }")
        }
    }
    match serde_json::to_value(rule) {
        Ok(serde_json::Value::Object(keys)) => Inline(keys).to_string(),
        // A rule is texts and switches: it always has a form in JSON.
        Ok(_) | Err(_) => rule.name.clone(),
    }
}

/// What an agent has, as inline TOML.
pub(super) fn agent_text(agent: &AgentDefinition) -> String {
    struct Inline(serde_json::Value);
    impl fmt::Display for Inline {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            json_as_toml(f, &self.0)
        }
    }
    // It is texts and numbers: it always has a form in JSON.
    serde_json::to_value(agent).map_or_else(|_| agent.name.to_string(), |value| Inline(value).to_string())
}

/// Writes a JSON value as inline TOML. `null`, which TOML does not have, never gets in: values come from
/// TOML.
fn json_as_toml(f: &mut fmt::Formatter<'_>, value: &serde_json::Value) -> fmt::Result {
    match value {
        serde_json::Value::Null => f.write_str("\"\""),
        serde_json::Value::Bool(on) => write!(f, "{on}"),
        serde_json::Value::Number(number) => write!(f, "{number}"),
        serde_json::Value::String(text) => f.write_str(&visible::quoted(text)),
        serde_json::Value::Array(items) => {
            f.write_str("[")?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                json_as_toml(f, item)?;
            }
            f.write_str("]")
        }
        serde_json::Value::Object(fields) => {
            f.write_str("{")?;
            for (index, (name, field)) in fields.iter().enumerate() {
                write!(f, "{}{} = ", if index == 0 { " " } else { ", " }, visible::quoted(name))?;
                json_as_toml(f, field)?;
            }
            f.write_str(if fields.is_empty() { "}" } else { " }" })
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    write!(f, "[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A field type of [`Config`](super::Config): how it becomes a [`Value`] and comes back.
pub(super) trait Setting: Sized {
    fn to_value(&self) -> Value;
    /// `None` when the value is of another type. The key table's rule for a key keeps that from happening.
    fn from_value(value: &Value) -> Option<Self>;
}

impl Setting for bool {
    fn to_value(&self) -> Value {
        Value::Switch(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

impl Setting for u64 {
    fn to_value(&self) -> Value {
        Value::Count(*self)
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Count(number) => Some(*number),
            _ => None,
        }
    }
}

impl Setting for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Setting for Vec<String> {
    fn to_value(&self) -> Value {
        Value::Names(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Names(names) => Some(names.clone()),
            _ => None,
        }
    }
}

impl Setting for Vec<Channel> {
    fn to_value(&self) -> Value {
        Value::Names(self.iter().map(ToString::to_string).collect())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Names(names) => names.iter().map(|name| name.parse().ok()).collect(),
            _ => None,
        }
    }
}

impl Setting for Vec<PathBuf> {
    fn to_value(&self) -> Value {
        Value::Folders(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Folders(folders) => Some(folders.clone()),
            _ => None,
        }
    }
}

impl Setting for Vec<DeclaredTool> {
    fn to_value(&self) -> Value {
        Value::Tools(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Tools(tools) => Some(tools.clone()),
            _ => None,
        }
    }
}

impl Setting for Vec<AgentDefinition> {
    fn to_value(&self) -> Value {
        Value::Agents(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Agents(agents) => Some(agents.clone()),
            _ => None,
        }
    }
}

impl Setting for Vec<PolicyRule> {
    fn to_value(&self) -> Value {
        Value::Rules(self.clone())
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Rules(rules) => Some(rules.clone()),
            _ => None,
        }
    }
}

/// An enum whose variants are ordered choices. The order is strictest first.
macro_rules! levels {
    ($($ty:ident: $choices:ident = [$($name:literal => $variant:ident),+ $(,)?];)+) => {$(
        #[doc = concat!("The choices of [`", stringify!($ty), "`], strictest first.")]
        pub(super) const $choices: &[&str] = &[$($name),+];

        impl Setting for $ty {
            fn to_value(&self) -> Value {
                // No catch-all: a new variant must be placed in the order above.
                Value::Level(match self { $(Self::$variant => $name,)+ })
            }
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $(Value::Level($name) => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    )+};
}

levels! {
    ToolsMode: TOOLS_MODES = ["disabled" => Disabled, "parse_only" => ParseOnly, "enabled" => Enabled];
    IsolationLevel: ISOLATION_LEVELS = [
        "restricted" => Restricted, "strict" => Strict, "standard" => Standard, "none" => None
    ];
    StoreBackend: STORE_BACKENDS = ["sqlite" => Sqlite, "postgres" => Postgres];
    IsolationTechnology: ISOLATION_TECHNOLOGIES = [
        "auto" => Auto, "process" => Process, "namespace" => Namespace, "runc" => Runc, "gvisor" => Gvisor
    ];
    McpApprovals: MCP_APPROVALS = ["queue" => Queue, "client" => Client, "host" => Host];
    StoreDurability: STORE_DURABILITIES = ["full" => Full, "effects" => Effects];
    Strategy: STRATEGIES = ["sequential" => Sequential, "smart" => Smart, "parallel" => Parallel];
    Profile: PROFILES = [
        "locked" => Locked, "read-only" => ReadOnly, "careful" => Careful, "coding" => Coding
    ];
    AskCommands: ASK_COMMANDS = ["before" => Before, "effects" => Effects, "never" => Never];
    CommandWrites: COMMAND_WRITES = ["staged" => Staged, "staged_if_possible" => StagedIfPossible, "live" => Live];
    ApprovalMode: APPROVAL_MODES = ["deny" => Deny, "prompt" => Prompt, "auto" => Auto];
}
