//! Watching calls: one from its first event on, a tenant's as they happen, and those that run now.

use super::Engine;
use crate::{
    events::{EventPosition, EventStream, Observer},
    inner::Target,
    pipeline::intake,
    request::{BatchRequest, Request},
};
use haft_core::{
    BatchId, BatchSummary, ExecutionId, ToolResult,
    port::{AuditQuery, StoreError},
    text::one_line,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::{future::Future, sync::Arc};

/// A call that has no result yet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Executing {
    /// The execution.
    #[schemars(with = "String")]
    pub execution_id: ExecutionId,
    /// The batch that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub batch_id: Option<BatchId>,
    /// Its place in the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_index: Option<u32>,
    /// The caller's own name for it.
    pub call_id: String,
    /// The tool's name, or what was asked for.
    pub tool: String,
    /// The agent that called.
    #[schemars(with = "String")]
    pub agent: Arc<str>,
    /// When it came in.
    #[schemars(with = "String")]
    pub started_at: Timestamp,
    /// The kind of the event that changed its state last: `Queued`, `ConfirmationRequested`, `InProgress` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event: Option<&'static str>,
}

impl Engine {
    /// Makes one call, with one who watches it from its first event on. See [`execute`](Engine::execute).
    pub fn execute_watched<R: Into<Request>>(
        &self,
        request: R,
    ) -> (Observer, impl Future<Output = ToolResult> + Send + use<R>) {
        let (call, running) = intake::opened(&self.0, request.into(), None, None);
        (Observer::new(call), running)
    }

    /// Makes several calls that are planned together, with one who watches them from the first event on. See
    /// [`execute_batch`](Engine::execute_batch).
    pub fn execute_batch_watched<R: Into<BatchRequest>>(
        &self,
        request: R,
    ) -> (Observer, impl Future<Output = (Vec<ToolResult>, BatchSummary)> + Send + use<R>) {
        let (batch, running) = intake::opened_batch(&self.0, request.into());
        (Observer::new(batch), running)
    }

    /// Everything that happens to the calls and batches of a tenant, from now on: for consoles and for programs that
    /// watch many calls. A listener slows nobody; one that is too slow is told how many events it missed.
    ///
    /// ```
    /// # async fn watch(engine: haft_engine::Engine) {
    /// let mut events = engine.events("local");
    /// while let Some(event) = events.next().await {
    ///     println!("{} {}", event.tool, event.payload.message());
    /// }
    /// # }
    /// ```
    pub fn events(&self, tenant: &str) -> EventStream {
        let ports = &self.0.ports;
        ports.feeds.listen(tenant, None, ports.clock.now())
    }

    /// Goes on listening from a place, where what happened since is still kept; else the first event is
    /// [`Missed`](haft_core::EventPayload::Missed).
    pub fn events_from(&self, tenant: &str, place: EventPosition) -> EventStream {
        let ports = &self.0.ports;
        ports.feeds.listen(tenant, Some(place), ports.clock.now())
    }

    /// The calls of a tenant that have no result yet, oldest first.
    pub fn executing(&self, tenant: &str) -> Vec<Executing> {
        let redaction = &self.0.ports.redaction;
        let shown = |name: &str| one_line(&redaction.string(name.to_owned()), 255);
        let mut calls = self.0.live.executions.unfinished();
        calls.retain(|call| *call.context.tenant == *tenant);
        calls.sort_by_key(|call| (call.arrived_at, call.batch_place().map(|(_, index)| index)));
        let one = |call: &Arc<crate::pipeline::types::CallState>| Executing {
            execution_id: call.id,
            batch_id: call.batch_place().map(|(id, _)| id),
            batch_index: call.batch_place().map(|(_, index)| index),
            call_id: shown(&call.tool_call.id),
            tool: shown(call.tool_name()),
            agent: Arc::clone(&call.context.agent),
            started_at: call.arrived_at,
            last_event: call.log.last_change(),
        };
        calls.iter().map(one).collect()
    }

    /// Whether an id was used before: by a call or batch that is still known here, or by one of that tenant that is on
    /// record. Asked before a call under an id that its caller chose.
    ///
    /// # Errors
    ///
    /// The store cannot say whether it is on record.
    pub async fn is_used(&self, target: impl Into<Target>, tenant: &str) -> Result<bool, StoreError> {
        let (executions, ports) = (&self.0.live.executions, &self.0.ports);
        let target = target.into();
        let is_known = match target {
            Target::Call(id) => executions.call(id).is_some(),
            Target::Batch(id) => executions.batch(id).is_some(),
        };
        if is_known || !ports.wants.results {
            return Ok(is_known);
        }
        let store = ports.store.for_tenant(tenant);
        Ok(match target {
            Target::Call(id) => store.run(id).await?.is_some(),
            Target::Batch(batch) => {
                let of_the_batch = AuditQuery { batch: Some(batch), limit: 1, ..AuditQuery::default() };
                !store.audit_page(of_the_batch).await?.records.is_empty()
            }
        })
    }
}
