//! What stands behind a server besides the engine: tiers, explanations, the look at the jails.

use haft::{
    DurableStore, Folders, Haft, Tier, ToolError,
    assembly::LazyJail,
    config::Config,
    doctor,
    port::{BoxFuture, Jail as _, StoreError},
};
use haft_core::ErrorCode;
use haft_engine::Request;
use haft_server::{Refused, ServerBackend};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a result about the jails is reused before they are tested again: a test takes a while.
const FRESH: Duration = Duration::from_secs(60);
/// A [`Haft`] with its store, as a server needs them.
pub(crate) struct HaftBackend {
    haft: Haft,
    store: DurableStore,
    jail: Option<Arc<LazyJail>>,
    examined: tokio::sync::Mutex<Option<(Instant, Value)>>,
}

impl HaftBackend {
    pub(crate) fn new(haft: Haft, store: DurableStore, config: &Config, folders: Option<&Folders>) -> Self {
        let jail = folders.map(|folders| Arc::new(LazyJail::new(config, folders)));
        HaftBackend { haft, store, jail, examined: tokio::sync::Mutex::default() }
    }
}

fn unavailable(error: StoreError) -> ToolError {
    let text = "The database is not available now. Try again later";
    ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
}

impl ServerBackend for HaftBackend {
    fn tier(&self, tenant: &str) -> Tier {
        self.haft.tier(tenant)
    }

    fn explain<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let policy = self.haft.policy();
            let fixed = || {
                ToolError::new(
                    ErrorCode::NotSupported,
                    "The policy of this server cannot explain its decisions",
                )
            };
            let policy = policy.ok_or_else(fixed)?;
            let tool = Arc::clone(&request.call.name);
            let decision = self.haft.explain(request, |subject| policy.explain(subject))?;
            Ok(json!({"tool": tool, "decision": decision}))
        })
    }

    fn doctor<'a>(&'a self) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let none = || ToolError::new(ErrorCode::NotSupported, "This server runs nothing in jails");
            let jail = Arc::clone(self.jail.as_ref().ok_or_else(none)?);
            // One look at a time, however many ask.
            let mut examined = self.examined.lock().await;
            if let Some((at, report)) = &*examined
                && at.elapsed() < FRESH
            {
                return Ok(report.clone());
            }
            let runtime = tokio::runtime::Handle::current();
            let look = tokio::task::spawn_blocking(move || match jail.jails() {
                Err(unavailable) => json!({"jails": [], "problem": unavailable.to_string()}),
                Ok(jails) => {
                    let auto = |level| jail.offers(level).ok().map(|by| by.jail.into_owned());
                    let chosen = json!({
                        "standard": auto(haft::IsolationLevel::Standard),
                        "strict": auto(haft::IsolationLevel::Strict),
                        "restricted": auto(haft::IsolationLevel::Restricted),
                    });
                    match runtime.block_on(doctor::examine(jails.jails())) {
                        Ok(reports) => json!({"jails": reports, "auto": chosen}),
                        Err(error) => json!({"jails": [], "auto": chosen, "problem": error.to_string()}),
                    }
                }
            });
            let report = look.await.map_err(|error| {
                ToolError::new(ErrorCode::ExecutionFailed, "The jails could not be tested")
                    .with_diagnostics(error)
            })?;
            *examined = Some((Instant::now(), report.clone()));
            Ok(report)
        })
    }

    fn refused<'a>(&'a self, refused: Refused) -> BoxFuture<'a, Result<(), ToolError>> {
        let Refused { without, unknown, addresses, others } = refused;
        let refused = haft_store::NotLetIn { without, unknown, addresses, others };
        Box::pin(async move { self.store.not_let_in(refused).await.map_err(unavailable) })
    }

    fn happenings<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<Value>, ToolError>> {
        Box::pin(async move {
            let found = self.store.happenings(limit).await.map_err(unavailable)?;
            Ok(found.iter().map(|happened| json!(happened)).collect())
        })
    }
}
