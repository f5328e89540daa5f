//! Agents that have listed tools and permissions, and no more.

use super::PermissionStrings;
use haft_core::{
    AgentDefinition, CallContext, ToolDefinition,
    port::{Authorisation, Authoriser, BoxFuture, GuardError},
};
use std::{future::ready, sync::Arc};

/// Holds named agents to their definitions, before another authoriser decides. Agents without a definition are its affair
/// alone.
///
/// ```
/// use haft_core::AgentDefinition;
/// use haft_guard::{AgentTools, PermissionStrings};
/// use std::sync::Arc;
/// let agents = vec![AgentDefinition::new("reader", ["read_file"])];
/// let _authoriser = AgentTools::new(agents.into(), Arc::new(PermissionStrings));
/// ```
pub struct AgentTools {
    agents: Arc<[AgentDefinition]>,
    others: Arc<dyn Authoriser>,
}

impl AgentTools {
    /// These agents, and who decides beside that.
    pub fn new(agents: Arc<[AgentDefinition]>, others: Arc<dyn Authoriser>) -> Self {
        AgentTools { agents, others }
    }
}

/// What the definition of an agent says against a tool.
fn refused(agent: &AgentDefinition, definition: &ToolDefinition) -> Option<Authorisation> {
    if !agent.has(definition) {
        return Some(Authorisation::NotListed { agent: agent.name.to_string() });
    }
    let held = agent.permissions.as_ref()?;
    let covered = |required: &&String| !held.iter().any(|held| PermissionStrings::covers(held, required));
    let missing = definition.required_permissions.iter().find(covered)?;
    let reason = format!("the definition of the agent `{}` does not list it", agent.name);
    Some(Authorisation::Denied { missing: missing.clone(), reason })
}

impl Authoriser for AgentTools {
    fn authorise<'a>(
        &'a self,
        context: &'a CallContext,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
        let agent = AgentDefinition::of(&self.agents, context);
        match agent.and_then(|agent| refused(agent, definition)) {
            Some(refused) => Box::pin(ready(Ok(refused))),
            None => self.others.authorise(context, definition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_its_tools_and_permissions_and_no_more() {
        let mut definition = ToolDefinition::new("read_file", "Reads");
        definition.required_permissions = vec!["tool.filesystem.read".to_owned()];
        let with = |permissions: Option<&[&str]>| AgentDefinition {
            permissions: permissions.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
            ..AgentDefinition::new("reader", ["read_file"])
        };
        assert_eq!(refused(&with(None), &definition), None);
        assert_eq!(refused(&with(Some(&["tool.filesystem.*"])), &definition), None);
        assert!(matches!(
            refused(&with(Some(&["tool.web.*"])), &definition),
            Some(Authorisation::Denied { missing, .. }) if missing == "tool.filesystem.read"
        ));
        assert!(matches!(refused(&with(Some(&[])), &definition), Some(Authorisation::Denied { .. })));
        let other = ToolDefinition::new("write_file", "Writes");
        assert!(matches!(refused(&with(None), &other), Some(Authorisation::NotListed { .. })));
    }
}
