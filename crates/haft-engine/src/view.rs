//! An engine, as its own tools see it.

use crate::{
    inner::Inner,
    pipeline::intake,
    registry::{Registry, is_available, within_licence},
    request::Request,
    stats::Snapshot,
};
use haft_core::{
    CallOptions, ErrorCode, ExecutionId, SearchFilter, Tier, ToolCall, ToolDefinition, ToolError, ToolResult,
    port::{AuditQuery, BoxFuture},
};
use haft_sdk::capability::EngineView;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};

/// The engine, as tools see it.
pub(crate) struct View {
    pub(crate) registry: Arc<Registry>,
    /// Weak, because the engine owns this.
    pub(crate) engine: Weak<Inner>,
}

impl EngineView for View {
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.registry.lookup(name).map(|registered| Arc::clone(&registered.definition))
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.registry.all().iter().map(|registered| Arc::clone(&registered.definition)).collect()
    }

    fn metrics(&self, tenant: &str, tool: Option<&str>) -> Value {
        let mut sum = Snapshot::default();
        let mut tools = Map::new();
        let wanted = tool.and_then(|name| self.registry.lookup(name));
        for registered in self.registry.present().iter() {
            if wanted.as_ref().is_some_and(|wanted| !Arc::ptr_eq(wanted, registered)) {
                continue;
            }
            if let Some(counts) = registered.tenant_counts(tenant) {
                sum.add(&counts);
                tools.insert(registered.name.to_string(), counts.to_json());
            }
        }
        json!({"all": sum.to_json(), "tools": tools})
    }

    fn state(&self, tenant: &str) -> Value {
        let Some(engine) = self.engine.upgrade() else { return Value::Null };
        let calls =
            engine.live.executions.unfinished().into_iter().filter(|call| *call.context.tenant == *tenant);
        let calls: Vec<Value> = calls
            .map(|call| {
                json!({
                    "executionId": call.id,
                    "tool": &**call.tool_name(),
                    "arrivedAt": call.arrived_at.to_string(),
                    "agent": &*call.context.agent,
                })
            })
            .collect();
        let mut sandboxes: Vec<_> =
            engine.ports.sandboxes.all_of(tenant).iter().map(|entry| entry.status()).collect();
        sandboxes.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let sandboxes: Vec<Value> = sandboxes
            .iter()
            .map(|one| json!({"id": one.id, "running": one.running, "expiresAt": one.expires_at.to_string()}))
            .collect();
        json!({
            "mode": engine.ports.settings.mode,
            "calls": calls,
            "sandboxes": sandboxes,
            "tasks": engine.tasks.count_of(tenant),
        })
    }

    fn logs<'a>(&'a self, tenant: &'a str, query: AuditQuery) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::new(ErrorCode::Cancelled, "the engine is gone");
            let engine = self.engine.upgrade().ok_or_else(gone)?;
            let tool = query.tool.map(|name| match self.registry.lookup(&name) {
                Some(registered) => registered.name.to_string(),
                None => name,
            });
            let store = engine.ports.store.for_tenant(tenant);
            let page = store.audit_page(AuditQuery { tool, ..query }).await.map_err(|error| {
                ToolError::failed("The records of earlier calls cannot be read").with_diagnostics(error)
            })?;
            // The store keeps to the tenant; a record of another one must not get out even where one does not.
            let own = page.records.iter().filter(|(_, record)| *record.context.tenant == *tenant);
            let calls: Vec<Value> = own
                .map(|(_, record)| {
                    json!({
                        "executionId": record.metadata.execution_id,
                        "tool": &*record.tool,
                        "status": record.status,
                        "code": record.code,
                        "startedAt": record.metadata.started_at.to_string(),
                        "durationMs": record.metadata.duration.as_secs_f64() * 1000.0,
                    })
                })
                .collect();
            Ok(json!({"calls": calls, "more": page.next.is_some()}))
        })
    }

    fn search(&self, question: &str, most: usize, tier: Tier) -> Result<Vec<Arc<ToolDefinition>>, ToolError> {
        within_licence(SearchFilter::Name, tier)?;
        let ranked = self.registry.rank(question, most, |registered| is_available(registered, tier));
        Ok(ranked.into_iter().map(|(_, registered)| Arc::clone(&registered.definition)).collect())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn call<'a>(
        &'a self,
        outer: ExecutionId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::new(ErrorCode::Cancelled, "the engine is gone");
            let engine = self.engine.upgrade().ok_or_else(gone)?;
            let outer = engine.live.executions.call(outer).ok_or_else(gone)?;
            let request = Request {
                call,
                context: Arc::clone(&outer.context),
                // What holds the outer call to less holds what it calls to the same.
                options: Arc::new(CallOptions {
                    model: outer.options.model,
                    limits: outer.options.limits.clone(),
                    ..CallOptions::default()
                }),
                approver: outer.approver.clone(),
            };
            Ok(intake::execute(&engine, request, Some(outer), None).await)
        })
    }
}
