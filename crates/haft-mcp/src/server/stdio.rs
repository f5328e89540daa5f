//! The way in through pipes.

use super::{beginning::FromTheBeginning, builder::McpServer, pipes::Pipes};
use crate::bounded::{Beyond, Bounded, Bounds};
use rmcp::{
    service::{QuitReason, ServerInitializeError, serve_server_with_ct},
    transport::io::stdio_pipes,
};
use tokio_util::sync::CancellationToken;

/// What a client may have open, and leave untaken. It is generous: the client has started this process, and harms
/// itself.
const BOUNDS: Bounds = Bounds { open: 4096, untaken: 4096, beyond: Beyond::Refused };

/// Why a server on pipes ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// What came was not the beginning of a conversation.
    #[error("the client did not begin as MCP wants it: {0}")]
    Beginning(String),
    /// Something in the server itself.
    #[error("the server stopped: {0}")]
    Stopped(String),
}

/// Serves one client on standard input and output, until it closes them or `stop` says so.
///
/// Nothing else may write to standard output meanwhile.
pub async fn serve_stdio(server: &McpServer, stop: CancellationToken) -> Result<(), ServeError> {
    let (from, to) = stdio_pipes();
    let transport = FromTheBeginning::new(Bounded::new(Pipes::new(from, to), BOUNDS));
    let running = match serve_server_with_ct(server.session(), transport, stop).await {
        Ok(running) => running,
        // A client that looked and went is none that failed.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => {
            let text = haft_core::text::one_line(&error.to_string(), 300);
            return Err(ServeError::Beginning(text));
        }
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Stopped(error.to_string())),
        Ok(_) => Ok(()),
    }
}
