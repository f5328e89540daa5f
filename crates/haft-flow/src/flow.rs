//! A flow, as it is read.

use crate::{Condition, Template};
use haft_core::{Parameters, Retry, ToolDefinition};
use haft_definition::Document;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// How nodes follow each other where nothing else says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// One after the other.
    Chain,
    /// None waits for another.
    Parallel,
    /// By references, conditions and `after`.
    #[default]
    Dag,
}

/// A flow: calls of tools that belong together. It is well-formed: every name leads somewhere, nothing waits for
/// itself, and every condition compiles. Whether the tools are there is for [`check`](crate::check()) to say.
///
/// ```
/// let flow = haft_flow::read(
///     r#"
/// name = "greet"
/// description = "Greets somebody"
/// [[nodes]]
/// name = "look"
/// tool = "read_file"
/// arguments = { path = "names.txt" }
/// [[nodes]]
/// name = "check"
/// tool = "validate_content"
/// arguments = { content = "${look.output.content}" }
/// "#,
///     haft_definition::Format::Toml,
/// )?;
/// assert_eq!(flow.nodes[1].depends_on, [0]);
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[derive(Debug)]
pub struct Flow {
    /// By which it is called where it is a tool.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// A semantic version.
    pub version: Option<String>,
    /// What it takes.
    pub parameters: Parameters,
    /// A JSON Schema of what it gives.
    pub output_schema: Option<Value>,
    /// What it gives; without it, what the last nodes gave.
    pub output: Option<Template>,
    /// How long all of it may take.
    pub timeout: Option<Duration>,
    /// Calls at once.
    pub max_parallelism: usize,
    /// Whether nothing more starts after a node that did not succeed.
    pub stop_on_failure: bool,
    /// The calls, in the order of the file.
    pub nodes: Vec<Node>,
    pub(crate) document: Document,
}

/// One call of a flow.
#[derive(Debug)]
pub struct Node {
    /// Unique in its flow.
    pub name: Arc<str>,
    /// The tool that it calls.
    pub tool: Arc<str>,
    /// With what: named members.
    pub arguments: Template,
    /// What has to hold.
    pub when: Option<Condition>,
    /// How long the call may take.
    pub timeout: Option<Duration>,
    /// Retries of the call.
    pub retry: Option<Retry>,
    /// Whether what depends on it goes on where it does not succeed.
    pub continue_on_failure: bool,
    /// The nodes that must have ended before, by their places, in that order.
    pub depends_on: Vec<usize>,
}

impl Flow {
    /// The place of a node.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| &*node.name == name)
    }

    /// The nodes that nothing depends on.
    #[must_use]
    pub fn last_nodes(&self) -> Vec<usize> {
        let mut is_last = vec![true; self.nodes.len()];
        self.nodes.iter().flat_map(|node| &node.depends_on).for_each(|&earlier| is_last[earlier] = false);
        (0..self.nodes.len()).filter(|&place| is_last[place]).collect()
    }

    /// The file, as a value: [`read`](crate::read()) reads it again, written as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        self.document.value()
    }

    /// The definition of the flow as a tool. It changes nothing by itself: what its nodes do is checked, asked about
    /// and recorded for each of them.
    #[must_use]
    pub fn definition(&self) -> ToolDefinition {
        let mut definition = ToolDefinition::new(&self.name, &self.description);
        definition.title.clone_from(&self.title);
        definition.version.clone_from(&self.version);
        definition.parameters = self.parameters.clone();
        definition.output_schema.clone_from(&self.output_schema);
        definition.source = haft_core::Source::Flow;
        definition.flow = Some(Box::new(self.to_value()));
        let constraints = &mut definition.constraints;
        constraints.allow_side_effects = false;
        constraints.required_isolation = haft_core::IsolationLevel::None;
        // Each call inside has a deadline of its own, and a person who is asked takes their time.
        let longest = constraints.max_execution_time;
        constraints.default_timeout = Some(self.timeout.map_or(longest, |timeout| timeout.min(longest)));
        definition
    }
}
