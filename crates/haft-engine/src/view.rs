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
    port::BoxFuture,
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
        for registered in self.registry.all() {
            if wanted.as_ref().is_some_and(|wanted| !Arc::ptr_eq(wanted, &registered)) {
                continue;
            }
            if let Some(counts) = registered.tenant_counts(tenant) {
                sum.add(&counts);
                tools.insert(registered.name.to_string(), counts.to_json());
            }
        }
        json!({"all": sum.to_json(), "tools": tools})
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
