//! What a server may ask of haft, and what it tells: progress, changed lists, questions.
#![expect(deprecated, reason = "servers of earlier revisions ask for models and send log messages")]

use haft_core::text;
use haft_sdk::ToolCtx;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest,
        CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, Implementation,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::watch;

/// What the calls on a connection share with what comes in on it.
pub(super) struct Talk {
    server: String,
    calls: Mutex<HashMap<ProgressToken, ToolCtx>>,
    /// Counts how often the server said that its list is another one.
    pub(super) changes: watch::Sender<u64>,
    /// How often calls were told something: a server must not fill their records.
    warned: AtomicUsize,
}

/// So often is said on calls what a server asked for.
const MOST_WARNINGS: usize = 32;

impl Talk {
    pub(super) fn new(server: &str) -> Self {
        Talk {
            server: server.to_owned(),
            calls: Mutex::default(),
            changes: watch::Sender::new(0),
            warned: AtomicUsize::new(0),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, ToolCtx>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is on its way, until it is forgotten.
    pub(super) fn begin(&self, token: ProgressToken, cx: ToolCtx) {
        self.calls().insert(token, cx);
    }

    pub(super) fn forget(&self, token: &ProgressToken) {
        self.calls().remove(token);
    }

    /// Says something to the observers of the calls that are on their way. The server does not say which one it means.
    fn warn(&self, what: &str) {
        if self.warned.fetch_add(1, Ordering::Relaxed) >= MOST_WARNINGS {
            return;
        }
        let calls: Vec<ToolCtx> = self.calls().values().cloned().collect();
        calls.iter().for_each(|cx| cx.warn(what));
    }

    /// The server asked a person something, and was told that nobody answers.
    pub(super) fn declined(&self, question: &str) {
        let question = text::one_line(question, 300);
        self.warn(&format!(
            "The MCP server `{}` asked for input, which was declined: {question}",
            self.server
        ));
    }
}

/// Answers a server.
#[derive(Clone)]
pub(super) struct Handler(pub(super) Arc<Talk>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // Nothing is offered that a server could ask for: neither a model, nor a person, nor folders.
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("haft", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.warn(&format!("The MCP server `{}` asked for a model, which was refused", self.0.server));
        Err(ErrorData::invalid_request("haft lends no model to servers", None))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.declined(&question(&params));
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    /// What is not known here. The answer has none of the server's own words: it may have sent megabytes of them.
    async fn on_custom_request(
        &self,
        _request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "haft does not know that method", None))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let cx = self.0.calls().get(&params.progress_token).cloned();
        let Some(cx) = cx else { return };
        let message = params.message.as_deref().map(|message| text::one_line(message, 500));
        match percent(params.progress, params.total) {
            Some(percent) => cx.progress(percent, message.as_deref().unwrap_or_default()),
            None => {
                let so_far = || format!("{} so far", params.progress);
                cx.status(&message.unwrap_or_else(so_far));
            }
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.changes.send_modify(|count| *count += 1);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let said = text::one_line(&params.data.to_string(), 500);
        tracing::debug!(server = self.0.server, said, "an MCP server logs");
    }
}

/// What a question says.
pub(super) fn question(params: &ElicitRequestParams) -> String {
    let said = serde_json::to_value(params).ok();
    let message = said.as_ref().and_then(|said| said.get("message")).and_then(serde_json::Value::as_str);
    message.unwrap_or("it said nothing about it").to_owned()
}

/// How far a server is, where it says of how much.
fn percent(progress: f64, total: Option<f64>) -> Option<u8> {
    let part = progress / total.filter(|total| *total > 0.0)?;
    // Saturates: what is not a number is nothing, and more than all is all.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within bounds")]
    let percent = (part * 100.0).clamp(0.0, 100.0) as u8;
    Some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_numbers_are_a_percentage_or_none() {
        assert_eq!(percent(1.0, Some(4.0)), Some(25));
        assert_eq!(percent(9.0, Some(4.0)), Some(100));
        assert_eq!(percent(-1.0, Some(4.0)), Some(0));
        assert_eq!(percent(f64::NAN, Some(4.0)), Some(0));
        assert_eq!(percent(f64::INFINITY, Some(1.0)), Some(100));
        for total in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            assert_eq!(percent(1.0, total), None);
        }
    }
}
