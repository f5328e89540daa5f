//! What is remembered about tools that were added, switched off or configured.

use super::{BoxFuture, StoreError};
use crate::ToolDefinition;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What is remembered about one tool. A tool without anything to remember has none.
///
/// ```
/// use haft_core::port::StoredTool;
/// let stored = StoredTool { enabled: false, ..StoredTool::new("web_fetch") };
/// assert_eq!(serde_json::to_string(&stored).unwrap(), r#"{"name":"web_fetch","enabled":false}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoredTool {
    /// The canonical name.
    pub name: String,
    /// The definition of a tool that somebody added; absent for those that come with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<ToolDefinition>>,
    /// Whether it may be called.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// What it was configured with.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// Who added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<String>,
    /// When the tool was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_at: Option<Timestamp>,
}

fn yes() -> bool {
    true
}

impl StoredTool {
    /// Nothing special about the tool of that name.
    pub fn new(name: impl Into<String>) -> Self {
        StoredTool {
            name: name.into(),
            definition: None,
            enabled: true,
            settings: Map::new(),
            registered_by: None,
            registered_at: None,
        }
    }

    /// Whether there is nothing to remember.
    pub fn is_ordinary(&self) -> bool {
        self.definition.is_none() && self.enabled && self.settings.is_empty()
    }
}

/// Remembers tools over a restart.
pub trait Registrations: Send + Sync {
    /// Everything that is remembered, by name.
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>>;

    /// Remembers these, each in place of what was remembered of that name, all of them or none; forgets those that are
    /// [ordinary](StoredTool::is_ordinary).
    fn save_all<'a>(&'a self, tools: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Remembers one, as [`save_all`](Self::save_all) does.
    fn save<'a>(&'a self, tool: StoredTool) -> BoxFuture<'a, Result<(), StoreError>> {
        self.save_all(vec![tool])
    }

    /// Forgets it.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// What is remembered about tools, found when somebody asks for it. However many tools there are, one is found in the
/// same time. Every question blocks the thread until it is answered.
pub trait ToolShelf: Send + Sync {
    /// The tool of that name or alias, which is in lower case.
    fn find(&self, name: &str) -> Result<Option<StoredTool>, StoreError>;

    /// The tools of an MCP server: what the server says is compared with all of them.
    fn of_server(&self, server: &str) -> Result<Vec<StoredTool>, StoreError>;

    /// Everything about tools that nobody added: switches and settings of those that come with the program.
    fn switched(&self) -> Result<Vec<StoredTool>, StoreError>;

    /// Everything that is remembered, by name.
    fn all(&self) -> Result<Vec<StoredTool>, StoreError>;

    /// The names and aliases of the tools that somebody added, each alias in lower case.
    fn names(&self) -> Result<Vec<String>, StoreError>;

    /// How many tools somebody added.
    fn count(&self) -> Result<usize, StoreError>;
}

/// A moment in the history of what is remembered: what was changed later is told apart from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolsSeen {
    /// Grows with every change.
    pub stamp: u64,
    /// How many tools were remembered.
    pub entries: u64,
}

/// What was changed since some moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolChanges {
    /// What is remembered now of those that were changed, by name.
    pub changed: Vec<StoredTool>,
    /// The names of everything that is remembered, where something was forgotten since; `None` where nothing was.
    pub left: Option<BTreeSet<String>>,
}

/// Remembers nothing: what is added, switched off or configured lasts as long as the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetfulRegistrations;

impl Registrations for ForgetfulRegistrations {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn save_all<'a>(&'a self, _tools: Vec<StoredTool>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn remove<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
