//! What stands behind a server besides the engine: tiers, explanations, the look at the jails, the desk for questions.

use haft::{
    DurableStore, Folders, Haft, Tier, ToolError, assembly,
    assembly::LazyJail,
    config::Config,
    doctor,
    port::{
        AcceptAnswers, Answer, ApprovalFilter, ApprovalState, BoxFuture, Jail as _, StoreError, StoredGrant,
        TenantStore as _,
    },
};
use haft_core::{ApprovalId, Arguments, Channel, Decision, ErrorCode, GrantOffer};
use haft_engine::Request;
use haft_guard::Lasts;
use haft_server::{
    Answered, Desk, GivenAnswer, Grant, Lasting, Offer, Question, Refused, Remember, ServerBackend, Verdict,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a result about the jails is reused before they are tested again: a test takes a while.
const FRESH: Duration = Duration::from_secs(60);
/// From where answers over HTTP come.
const CHANNEL: Channel = Channel::Http;
/// The states of a question.
const STATES: [ApprovalState; 6] = [
    ApprovalState::Open,
    ApprovalState::Approved,
    ApprovalState::Denied,
    ApprovalState::Expired,
    ApprovalState::Used,
    ApprovalState::Edited,
];

/// A [`Haft`] with its store, as a server needs them.
pub(crate) struct HaftBackend {
    haft: Haft,
    store: DurableStore,
    jail: Option<Arc<LazyJail>>,
    accepts: AcceptAnswers,
    examined: tokio::sync::Mutex<Option<(Instant, Value)>>,
}

impl HaftBackend {
    pub(crate) fn new(haft: Haft, store: DurableStore, config: &Config, folders: Option<&Folders>) -> Self {
        let jail = folders.map(|folders| Arc::new(LazyJail::new(config, folders)));
        let accepts = haft::assembly::settings(config).accept_answers;
        HaftBackend { haft, store, jail, accepts, examined: tokio::sync::Mutex::default() }
    }

    fn tenant(&self, tenant: &str) -> haft_store::Tenant {
        self.store.tenant(tenant)
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

    fn desk(&self) -> Option<&dyn Desk> {
        Some(self)
    }
}

fn offer(offer: &GrantOffer) -> Offer {
    Offer { kind: offer.kind().to_owned(), covers: offer.words.clone() }
}

/// The grant that is wished for. What is wrong with the wish is said before anything is answered.
fn wished(
    question: &haft::port::StoredApproval,
    wish: &Remember,
    by: &str,
) -> Result<StoredGrant, ToolError> {
    let (asked, now) = (&question.request, Timestamp::now());
    let bad = |text: String| ToolError::new(ErrorCode::ValidationFailed, text);
    let lasts = match (wish.lasts, &asked.asker.session) {
        (Lasting::Always, _) => Lasts::Always,
        (Lasting::Session, Some(session)) => Lasts::Session(session.to_string()),
        (Lasting::Session, None) => return Err(bad("The call belongs to no session".to_owned())),
        (Lasting::For(time), _) => {
            let end = jiff::SignedDuration::try_from(time).ok().and_then(|time| now.checked_add(time).ok());
            Lasts::Until(end.ok_or_else(|| bad("That is too long".to_owned()))?)
        }
    };
    let none = || {
        let kinds: Vec<_> = asked.offers.iter().map(GrantOffer::kind).collect();
        bad(match kinds.is_empty() {
            true => "Nothing can be remembered of this call".to_owned(),
            false => format!("This question offers only {}", kinds.join(", ")),
        })
    };
    let offer = asked.offers.iter().find(|offer| offer.kind() == wish.kind).ok_or_else(none)?;
    assembly::to_store(offer, &lasts, &asked.asker, by, now).ok_or_else(none)
}

/// Refuses a change of arguments that could not be meant.
fn changes(before: &Arguments, after: &Arguments) -> Result<(), ToolError> {
    let bad = |text: &str| Err(ToolError::new(ErrorCode::ValidationFailed, text));
    if before.as_str().contains("[redacted:") {
        return bad("The arguments hold secrets that are not shown, so they cannot be changed here");
    }
    match (before.parse(), after.parse()) {
        (Ok(before), Ok(after)) if before == after => bad("The arguments are as they were"),
        _ => Ok(()),
    }
}

fn shown_grant(grant: StoredGrant) -> Grant {
    Grant {
        id: grant.id,
        tool: grant.tool,
        shown: grant.shown,
        agent: grant.agent,
        user: grant.user,
        session: grant.session,
        granted_by: grant.granted_by,
        granted_at: grant.granted_at,
        expires_at: grant.expires_at,
    }
}

fn question(found: haft::port::StoredApproval) -> Question {
    let asked = found.request;
    let view = asked.view().to_string();
    Question {
        view,
        id: asked.id.to_string(),
        state: found.state.as_str().to_owned(),
        tool: asked.tool.to_string(),
        summary: asked.summary,
        reason: asked.reason,
        risk: format!("{:?}", asked.risk).to_lowercase(),
        arguments: asked.arguments.parse().map_or(Value::Null, Value::Object),
        preview: asked.preview,
        agent: Some(asked.asker.agent.to_string()),
        execution_id: asked.execution_id.to_string(),
        asked_at: found.asked_at,
        expires_at: asked.expires_at,
        offers: asked.offers.iter().map(offer).collect(),
        replaces: asked.replaces.map(|id| id.to_string()),
        answered_by: found.answered_by,
        answer_reason: found.answer_reason,
    }
}

impl Desk for HaftBackend {
    fn questions<'a>(
        &'a self,
        tenant: &'a str,
        state: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Question>, ToolError>> {
        Box::pin(async move {
            let known = |name: &str| STATES.into_iter().find(|state| state.as_str() == name);
            let state = match state.map(known) {
                // A state that does not exist is nobody's.
                Some(None) => return Ok(Vec::new()),
                Some(known) => known,
                None => None,
            };
            let filter = ApprovalFilter { state, ..ApprovalFilter::default() };
            let found = self.tenant(tenant).approvals(filter).await.map_err(unavailable)?;
            Ok(found.into_iter().map(question).collect())
        })
    }

    fn question<'a>(
        &'a self,
        tenant: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Question>, ToolError>> {
        Box::pin(async move {
            let found = self.tenant(tenant).approval(&ApprovalId::from_text(id)).await;
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
            // An answer that does not count would use the question up.
            if !self.accepts.counts(CHANNEL) {
                let text = "This server does not accept answers over HTTP: add \"http\" to accept_from under [tools.approval]";
                return Err(ToolError::new(ErrorCode::PermissionDenied, text));
            }
            let found = tenant.approval(&id).await.map_err(unavailable)?;
            let Some(question) = found else { return Ok(Answered::Unknown) };
            if question.state != ApprovalState::Open {
                return Ok(Answered::TooLate);
            }
            let (decision, grant) = match answer.verdict {
                Verdict::Approve(wish) => {
                    let grant = wish.map(|wish| wished(&question, &wish, &answer.by)).transpose()?;
                    (Decision::Approve, grant)
                }
                Verdict::Deny(reason) => (Decision::Deny { reason }, None),
                Verdict::Edit(arguments) => {
                    changes(&question.request.arguments, &arguments)?;
                    (Decision::Edit { arguments }, None)
                }
            };
            let given = Answer { decision, by: answer.by, from: CHANNEL };
            if !tenant.answer(&id, given).await.map_err(unavailable)? {
                return Ok(Answered::TooLate);
            }
            if let Some(grant) = &grant {
                tenant.grant(grant.clone()).await.map_err(unavailable)?;
            }
            Ok(Answered::Counts(grant.map(|grant| Box::new(shown_grant(grant)))))
        })
    }

    fn grants<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, Result<Vec<Grant>, ToolError>> {
        Box::pin(async move {
            let grants = self.tenant(tenant).grants(false).await.map_err(unavailable)?;
            Ok(grants.into_iter().map(shown_grant).collect())
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
