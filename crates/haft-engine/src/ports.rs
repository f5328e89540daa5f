//! Everything that the stages need from outside, in one place.

use crate::{registry::Registry, settings::Settings};
use haft_core::{
    OutputHandle, ToolDefinition, ToolError,
    port::{Approver, Authoriser, BoxFuture, Clock, Jail, OutputRange, Policy, Redactor, Store},
    text,
};
use haft_sdk::capability::{Capabilities, EngineView, Outputs};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, sync::Arc};

/// What the stages stand on.
pub(crate) struct Ports {
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) authoriser: Arc<dyn Authoriser>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) jail: Arc<dyn Jail>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) redactor: Option<Arc<dyn Redactor>>,
    pub(crate) capabilities: Capabilities,
}

impl Ports {
    /// Bytes without secrets.
    pub(crate) fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.redactor.as_ref().map_or(Cow::Borrowed(bytes), |redactor| redactor.redact(bytes))
    }

    /// A text without secrets, escape sequences and control characters.
    pub(crate) fn safe_text(&self, text: &str) -> String {
        text::model_text(&self.redact(text.as_bytes())).into_owned()
    }

    /// The same for text that is owned: untouched where there is nothing to take out.
    pub(crate) fn safe_string(&self, text: String) -> String {
        match (&self.redactor, text::model_str(&text)) {
            (None, Cow::Borrowed(_)) => text,
            (None, Cow::Owned(safe)) => safe,
            (Some(_), _) => self.safe_text(&text),
        }
    }

    /// A value whose strings have no secrets. Otherwise it stays as it is.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        let Some(redactor) = &self.redactor else { return };
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = redactor.redact(text.as_bytes()) {
                    *text = String::from_utf8_lossy(&redacted).into_owned();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.redact_value(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// The time of the system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// The engine, as tools see it.
pub(crate) struct View(pub(crate) Arc<Registry>);

impl EngineView for View {
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>> {
        self.0.lookup(name).map(|registered| Arc::clone(&registered.definition))
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.all().iter().map(|registered| Arc::clone(&registered.definition)).collect()
    }

    fn metrics(&self, tool: Option<&str>) -> Value {
        let mut sum = crate::stats::Snapshot::default();
        let mut tools = Map::new();
        let wanted = tool.and_then(|name| self.0.lookup(name));
        for registered in self.0.all() {
            if wanted.as_ref().is_some_and(|wanted| !Arc::ptr_eq(wanted, &registered)) {
                continue;
            }
            registered.stats.add_to(&mut sum);
            let snapshot = registered.stats.snapshot();
            if snapshot.total() > 0 {
                tools.insert(registered.name.to_string(), snapshot.to_json());
            }
        }
        json!({"all": sum.to_json(), "tools": tools})
    }
}

/// Stored outputs, as tools see them.
pub(crate) struct StoredOutputs(pub(crate) Arc<dyn Store>);

impl Outputs for StoredOutputs {
    fn read<'a>(
        &'a self,
        tenant: &'a str,
        handle: &'a OutputHandle,
        range: OutputRange,
    ) -> BoxFuture<'a, Result<Option<(Vec<u8>, u64)>, ToolError>> {
        Box::pin(async move {
            self.0.for_tenant(tenant).output(handle, range).await.map_err(|error| {
                ToolError::from(haft_core::ErrorCode::StoreUnavailable).with_diagnostics(error)
            })
        })
    }
}
