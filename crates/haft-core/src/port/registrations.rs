//! What is remembered about tools that were added, switched off or configured.

use super::{BoxFuture, StoreError};
use crate::ToolDefinition;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

    /// Remembers this, in place of what was remembered of that name; forgets it where it is
    /// [ordinary](StoredTool::is_ordinary).
    fn save<'a>(&'a self, tool: StoredTool) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets it.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Remembers nothing: what is added, switched off or configured lasts as long as the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForgetfulRegistrations;

impl Registrations for ForgetfulRegistrations {
    fn load<'a>(&'a self) -> BoxFuture<'a, Result<Vec<StoredTool>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn save<'a>(&'a self, _tool: StoredTool) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn remove<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
