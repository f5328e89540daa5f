//! What a server says of itself.

#![allow(deprecated, reason = "2025-06-18 and 2025-11-25 have logging")]

use super::{approval::Approvals, builder::McpServer};
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};

/// What a model is told about haft as a whole.
const INSTRUCTIONS: &str = "These tools are run by haft. Every call is checked against its schema and a policy, may need a \
     person's approval, and is recorded. An error says what to do next. A call that waits for approval has not run: send \
     it again, unchanged, once it is approved. A long output is cut in the middle; read_output reads any part of the whole.";

/// Its name, what it can do, and what a model should know.
pub(super) fn server(server: &McpServer) -> ServerConfig {
    let inner = &server.0;
    let mut capabilities = ServerCapabilities::builder()
        .enable_logging()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_resources_list_changed()
        .build();
    if inner.extension.has_prompts() {
        let with = ServerCapabilities::builder().enable_prompts().enable_prompts_list_changed().build();
        capabilities.prompts = with.prompts;
    }
    if inner.tasks.is_some() {
        capabilities.extensions = ServerCapabilities::builder().enable_tasks().build().extensions;
    }
    if inner.extension.has_completions() {
        capabilities.completions = Some(Default::default());
    }
    let mut instructions = INSTRUCTIONS.to_owned();
    if inner.approvals == Approvals::Host && server.takes_answers() {
        instructions.push_str(" The host asks its user before each call, and that counts as approval.");
    }
    if let Some(more) = &inner.instructions {
        instructions = format!("{instructions}\n\n{more}");
    }
    let haft = Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft");
    ServerConfig::new(capabilities)
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
        .with_server_info(haft)
        .with_instructions(instructions)
}
