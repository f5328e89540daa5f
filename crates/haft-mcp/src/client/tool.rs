//! A tool of a server.

use super::{
    answer,
    connection::{Connection, Trouble},
    instance::Instance,
    listing::{Compared, compare},
    upstreams::{Accepted, Upstreams},
};
use haft_core::{ErrorCode, Footprint, McpSource, Resource, ToolDefinition, ToolError, ToolOutput, text};
use haft_sdk::{Args, Prepared, Tool, ToolCtx, ToolFuture};
use serde_json::{Map, Value, json};
use std::{fmt, sync::Arc};

/// A tool of an MCP server, as it was accepted.
///
/// Before each call the server's own words about it are compared with what was accepted. A tool that has become another
/// one is not called.
#[derive(Clone)]
pub struct McpTool {
    definition: Arc<ToolDefinition>,
    /// As long as this is there, the tool counts as accepted.
    accepted: Arc<Accepted>,
    upstreams: Upstreams,
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpTool").field(&self.definition.name).finish()
    }
}

impl McpTool {
    pub(super) fn new(
        definition: Arc<ToolDefinition>,
        accepted: Arc<Accepted>,
        upstreams: Upstreams,
    ) -> Self {
        McpTool { definition, accepted, upstreams }
    }

    fn source(&self) -> Result<&McpSource, ToolError> {
        // The constructor has checked it.
        self.accepted.0.mcp.as_deref().ok_or_else(|| ErrorCode::ToolDisabled.into())
    }

    /// Whether the server still means what was accepted.
    async fn verify(&self, connection: &Connection) -> Result<(), ToolError> {
        let name = &self.definition.name;
        match compare(&self.definition, &*connection.listing().await) {
            Compared::Same => Ok(()),
            Compared::Changed(_) => {
                let text = format!(
                    "The server changed the definition of `{name}`, so haft did not call it. A person has to look at the \
                     difference and accept it first"
                );
                // The next step is in it, for a face that would say another one.
                let next = json!({"accept": name});
                Err(ToolError::new(ErrorCode::ToolDisabled, text).with_data(next))
            }
            Compared::Gone => {
                let text = format!("The server of `{name}` does not have this tool any more");
                Err(ToolError::new(ErrorCode::ToolNotFound, text))
            }
        }
    }

    async fn call(&self, arguments: Map<String, Value>, cx: &ToolCtx) -> Result<ToolOutput, ToolError> {
        let source = self.source()?;
        let instance = self.upstreams.instance(source, cx)?;
        let connection = instance.connection().await?;
        if let Some(program) = connection.program() {
            cx.note_contained(&program.sandbox, &program.enforcement);
        }
        self.verify(&connection).await?;
        let answered = tokio::select! {
            biased;
            answered = connection.call(&source.tool, arguments, cx) => answered,
            // Dropping the call tells the server.
            _ = cx.cancelled() => return Err(ToolError::cancelled()),
        };
        match answered {
            Ok(result) => {
                let (output, remarks) = answer::output(result);
                remarks.iter().for_each(|remark| cx.warn(remark));
                output
            }
            Err(trouble) => Err(self.failed(trouble, &instance, &connection).await),
        }
    }

    async fn failed(&self, trouble: Trouble, instance: &Instance, connection: &Arc<Connection>) -> ToolError {
        let server = self.accepted.0.mcp.as_ref().map_or("", |mcp| &mcp.server);
        let failed = |text: String| ToolError::new(ErrorCode::ExecutionFailed, text);
        match trouble {
            Trouble::Died => {
                let why = connection.why().await;
                instance.died(connection, &why);
                // The server may have done it, and died then.
                let (code, more) = match self.definition.has_side_effects() {
                    true => (ErrorCode::OutcomeUnknown, "; it is not known whether the call took effect"),
                    false => (ErrorCode::UpstreamUnavailable, ""),
                };
                let text = format!("The MCP server `{server}` ended while it was asked{more}: {why}");
                ToolError::new(code, text)
            }
            Trouble::NotSent(why) => {
                instance.died(connection, &why);
                let text = format!("The MCP server `{server}` was not asked: {why}");
                ToolError::new(ErrorCode::UpstreamUnavailable, text)
            }
            Trouble::Refused(said) => failed(format!("The MCP server `{server}` refused the call: {said}")),
            Trouble::Needs(what) => {
                failed(format!("The MCP server `{server}` did not finish the call: {what}"))
            }
            Trouble::Nonsense => {
                let text = format!("The MCP server `{server}` gave an answer that is none");
                ToolError::new(ErrorCode::OutputValidationFailed, text)
            }
        }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        Ok(Box::new(UpstreamCall { tool: self.clone(), arguments: args.value.clone() }))
    }
}

struct UpstreamCall {
    tool: McpTool,
    arguments: Map<String, Value>,
}

impl Prepared for UpstreamCall {
    fn confirm(&self) -> Option<String> {
        None
    }

    fn footprint(&self) -> Footprint {
        let changes = self.tool.definition.has_side_effects();
        match (self.tool.accepted.0.mcp.as_ref().and_then(|mcp| mcp.host()), changes) {
            (Some(host), true) => Footprint::writes([Resource::Host(host)]),
            (Some(host), false) => Footprint::reads([Resource::Host(host)]),
            // What a program does nobody here knows.
            (None, changes) => Footprint::undeclared(changes),
        }
    }

    fn summary(&self) -> String {
        let mcp = self.tool.accepted.0.mcp.as_deref();
        let (server, tool) = mcp.map_or(("", ""), |mcp| (mcp.server.as_str(), mcp.tool.as_str()));
        let arguments = Value::Object(self.arguments.clone());
        format!("{} of the MCP server {server}: {arguments}", text::one_line(tool, 80))
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        Box::pin(async move { self.tool.call(self.arguments, &cx).await })
    }
}
