//! What an agent has: its tools, its permissions, its limits.

use crate::{CallContext, Limits, ToolDefinition};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An agent by name, with what it has at most: the tools that are listed, and no more. It gives nothing that its caller
/// does not have besides.
///
/// ```
/// use haft_core::{AgentDefinition, CallContext};
/// let agents = [AgentDefinition::new("reader", ["read_file", "glob"])];
/// let found = AgentDefinition::of(&agents, &CallContext::new("acme", "reader"));
/// assert_eq!(found.unwrap().tools, ["read_file", "glob"]);
/// assert!(AgentDefinition::of(&agents, &CallContext::new("acme", "writer")).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// The agent, as calls name it. An agent that a caller names with an API key is meant, too, whatever the key.
    pub name: Arc<str>,
    /// The tools that it may call, by name.
    pub tools: Vec<String>,
    /// The permissions that it has at most, such as `tool.filesystem.*`. Where absent, those of its caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
    /// The most that a call of it may use.
    #[serde(default)]
    pub limits: Limits,
}

impl AgentDefinition {
    /// An agent with these tools, the permissions of its caller and no limits of its own.
    pub fn new<T: Into<String>>(name: impl Into<Arc<str>>, tools: impl IntoIterator<Item = T>) -> Self {
        let tools = tools.into_iter().map(Into::into).collect();
        AgentDefinition { name: name.into(), tools, permissions: None, limits: Limits::default() }
    }

    /// The definition of the agent that calls, where there is one.
    pub fn of<'a>(agents: &'a [AgentDefinition], context: &CallContext) -> Option<&'a AgentDefinition> {
        // Records name an agent behind the key that named it: `key_…/NAME`.
        let named = context.agent.strip_prefix("key_").and_then(|rest| rest.split_once('/'));
        let name = named.map_or(&*context.agent, |(_, name)| name);
        agents.iter().find(|agent| *agent.name == *name)
    }

    /// Whether it lists a tool. Case does not count, as for every name of a tool.
    pub fn has(&self, definition: &ToolDefinition) -> bool {
        let is = |name: &str| self.tools.iter().any(|tool| tool.eq_ignore_ascii_case(name));
        is(&definition.name) || definition.aliases.iter().any(|alias| is(alias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_its_name_and_behind_a_key() {
        let agents = [AgentDefinition::new("a/b", ["x"]), AgentDefinition::new("b", ["x"])];
        let found = |agent: &str| {
            AgentDefinition::of(&agents, &CallContext::new("t", agent)).map(|agent| agent.name.to_string())
        };
        assert_eq!(found("b").as_deref(), Some("b"));
        assert_eq!(found("a/b").as_deref(), Some("a/b"));
        assert_eq!(found("key_01/b").as_deref(), Some("b"));
        assert_eq!(found("key_01/a/b").as_deref(), Some("a/b"));
        assert_eq!(found("other/b"), None);
        assert_eq!(found("B"), None);
    }

    #[test]
    fn a_tool_is_listed_by_its_name_or_an_alias() {
        let mut definition = ToolDefinition::new("read_file", "Reads");
        definition.aliases = vec!["Read".to_owned()];
        assert!(AgentDefinition::new("a", ["READ_FILE"]).has(&definition));
        assert!(AgentDefinition::new("a", ["Read"]).has(&definition));
        assert!(!AgentDefinition::new("a", ["read"; 0]).has(&definition));
        assert!(!AgentDefinition::new("a", ["read_*"]).has(&definition));
    }
}
