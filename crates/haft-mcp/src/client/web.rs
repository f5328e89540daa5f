//! A server over HTTP. Every request goes through the gate, which decides on hosts and addresses.

use super::{connection::Connection, upstreams::Shared};
use haft_core::{ErrorCode, McpSource, ToolError};

pub(super) async fn connect(
    _shared: &Shared,
    _server: &McpSource,
) -> Result<Result<Connection, String>, ToolError> {
    Err(ToolError::new(ErrorCode::ToolDisabled, "Servers over HTTP are not wired in"))
}
