//! What stands behind a server besides the engine: tiers, explanations, the look at the jails, the desk for questions.

use crate::{
    DurableStore, Folders, Haft, Tier, ToolError,
    commands::LazyJail,
    config::Config,
    doctor,
    port::{BoxFuture, Jail as _, StoreError},
};
use haft_core::{ApprovalId, Decision, ErrorCode};
use haft_engine::Request;
use haft_server::{Answered, Desk, GivenAnswer, Grant, Host, Question};
use haft_store::{QuestionState, Tenant};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long what was found out about the jails is told again, before they are tried anew: trying takes a while.
const FRESH: Duration = Duration::from_secs(60);
/// The states of a question, as they are called over HTTP.
const STATES: [(QuestionState, &str); 5] = [
    (QuestionState::Open, "open"),
    (QuestionState::Approved, "approved"),
    (QuestionState::Denied, "denied"),
    (QuestionState::Expired, "expired"),
    (QuestionState::Used, "used"),
];

/// A [`Haft`] with its store, as a server needs them.
pub(crate) struct Backing {
    haft: Haft,
    store: DurableStore,
    jail: Option<Arc<LazyJail>>,
    examined: tokio::sync::Mutex<Option<(Instant, Value)>>,
}

impl Backing {
    pub(crate) fn new(haft: Haft, store: DurableStore, config: &Config, folders: Option<&Folders>) -> Self {
        let jail = folders.map(|folders| Arc::new(LazyJail::new(config, folders)));
        Backing { haft, store, jail, examined: tokio::sync::Mutex::default() }
    }

    fn tenant(&self, tenant: &str) -> Tenant {
        self.store.tenant(tenant)
    }
}

fn unavailable(error: StoreError) -> ToolError {
    let text = "What is remembered cannot be reached now. Try again later";
    ToolError::new(ErrorCode::StoreUnavailable, text).with_diagnostics(error)
}

impl Host for Backing {
    fn tier(&self, tenant: &str) -> Tier {
        self.haft.tier(tenant)
    }

    fn explain<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let policy = self.haft.policy();
            let fixed = || ToolError::new(ErrorCode::NotSupported, "The policy here does not explain itself");
            let policy = policy.ok_or_else(fixed)?;
            let tool = Arc::clone(&request.call.name);
            let decision = self.haft.examine(request, |subject| policy.explain(subject))?;
            Ok(json!({"tool": tool, "decision": decision}))
        })
    }

    fn doctor<'a>(&'a self) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let none = || ToolError::new(ErrorCode::NotSupported, "Nothing is run in jails here");
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
                        "standard": auto(crate::IsolationLevel::Standard),
                        "strict": auto(crate::IsolationLevel::Strict),
                        "restricted": auto(crate::IsolationLevel::Restricted),
                    });
                    match runtime.block_on(doctor::examine(jails.jails())) {
                        Ok(reports) => json!({"jails": reports, "auto": chosen}),
                        Err(error) => json!({"jails": [], "auto": chosen, "problem": error.to_string()}),
                    }
                }
            });
            let report = look.await.map_err(|error| {
                ToolError::new(ErrorCode::ExecutionFailed, "The jails could not be tried")
                    .with_diagnostics(error)
            })?;
            *examined = Some((Instant::now(), report.clone()));
            Ok(report)
        })
    }

    fn desk(&self) -> Option<&dyn Desk> {
        Some(self)
    }
}

fn question(found: haft_store::Question) -> Question {
    let asked = found.request;
    Question {
        id: asked.id.to_string(),
        state: STATES
            .iter()
            .find(|(state, _)| *state == found.state)
            .map_or("used", |(_, name)| name)
            .to_owned(),
        tool: asked.tool.to_string(),
        summary: asked.summary,
        reason: asked.reason,
        risk: format!("{:?}", asked.risk).to_lowercase(),
        arguments: asked.arguments.parse().map_or(Value::Null, Value::Object),
        preview: asked.preview,
        agent: Some(found.agent.to_string()),
        execution_id: asked.execution_id.to_string(),
        asked_at: found.asked_at,
        expires_at: found.expires_at,
        answered_by: found.answered_by,
        answer_reason: found.answer_reason,
    }
}

impl Desk for Backing {
    fn questions<'a>(
        &'a self,
        tenant: &'a str,
        state: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Question>, ToolError>> {
        Box::pin(async move {
            let tenant = self.tenant(tenant);
            let mut all = Vec::new();
            for (known, name) in STATES {
                if state.is_none_or(|state| state == name) {
                    all.extend(tenant.questions(known).await.map_err(unavailable)?);
                }
            }
            all.sort_by_key(|found| found.asked_at);
            Ok(all.into_iter().map(question).collect())
        })
    }

    fn question<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move {
            let found = self.tenant(tenant).question(&ApprovalId::from_text(id)).await;
            Ok(found.map_err(unavailable)?.map(question))
        })
    }

    fn answer<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
        answer: GivenAnswer,
    ) -> BoxFuture<'a, Result<Answered, ToolError>> {
        Box::pin(async move {
            let (tenant, id) = (self.tenant(tenant), ApprovalId::from_text(id));
            let decision = match answer.approve {
                true => Decision::Approve,
                false => Decision::Deny { reason: answer.reason },
            };
            if tenant.answer(&id, decision, &answer.by).await.map_err(unavailable)? {
                return Ok(Answered::Counts);
            }
            let is_there = tenant.question(&id).await.map_err(unavailable)?.is_some();
            Ok(if is_there { Answered::TooLate } else { Answered::Unknown })
        })
    }

    fn grants<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<Vec<Grant>, ToolError>> {
        Box::pin(async move {
            let grants = self.tenant(tenant).grants().await.map_err(unavailable)?;
            let shown = |grant: haft_store::Grant| Grant {
                id: grant.id,
                tool: grant.tool,
                shown: grant.shown,
                agent: grant.agent,
                user: grant.user,
                session: grant.session,
                granted_by: grant.granted_by,
                granted_at: grant.granted_at,
                expires_at: grant.expires_at,
            };
            Ok(grants.into_iter().map(shown).collect())
        })
    }

    fn revoke<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        Box::pin(async move { self.tenant(tenant).revoke(id, by).await.map_err(unavailable) })
    }
}
