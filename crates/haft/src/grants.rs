//! Grants between the guard, which understands them, and the store, which keeps them.

use haft_core::{
    Asker, GrantOffer,
    port::{GuardError, StoreError, StoredApproval, StoredGrant},
};
use haft_guard::{Covers, Grant, GrantSource, Lasts, PastPrompt, command::Shell, covers_how_many};
use haft_store::DurableStore;
use jiff::Timestamp;
use std::sync::Arc;

/// The grants of a durable store, as policy asks for them. They are read for each decision that they could change, so that
/// one that another process revoked holds no longer.
///
/// ```
/// use haft::{DurableStore, Haft, StoredGrants, StoreOptions};
/// # let folder = tempfile::tempdir().unwrap();
/// let store = DurableStore::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
/// let haft = Haft::builder().grants(StoredGrants::new(store.clone())).store(store).build()?;
/// # Ok::<(), haft::Error>(())
/// ```
pub struct StoredGrants(Box<Reach>);

type Reach = dyn Fn() -> Result<DurableStore, StoreError> + Send + Sync;

impl StoredGrants {
    /// Those of that store.
    pub fn new(store: DurableStore) -> Self {
        StoredGrants::reached(move || Ok(store.clone()))
    }

    /// Those of a store that is reached when it is first needed.
    pub fn reached(reach: impl Fn() -> Result<DurableStore, StoreError> + Send + Sync + 'static) -> Self {
        StoredGrants(Box::new(reach))
    }
}

impl GrantSource for StoredGrants {
    fn grants(&self, tenant: &str) -> Result<Arc<[Grant]>, GuardError> {
        let stored = (self.0)().and_then(|store| store.tenant(tenant).grants_now());
        let stored = stored.map_err(|error| GuardError(error.0))?;
        // One that is not understood allows nothing.
        Ok(stored.iter().filter_map(|stored| from_store(tenant, stored)).collect())
    }
}

/// A grant, as the guard understands it.
fn from_store(tenant: &str, stored: &StoredGrant) -> Option<Grant> {
    let covers = Covers::from_document(&serde_json::from_str(&stored.covers).ok()?)?;
    let lasts = match (&stored.session, stored.expires_at) {
        (Some(session), _) => Lasts::Session(session.clone()),
        (None, Some(end)) => Lasts::Until(end),
        (None, None) => Lasts::Always,
    };
    Some(Grant {
        principal: stored.user.clone().or_else(|| stored.agent.clone()),
        granted_by: Some(stored.granted_by.clone()),
        granted_at: Some(stored.granted_at),
        ..Grant::new(stored.id.clone(), tenant, covers, lasts)
    })
}

/// What would be remembered, as it is shown before it is saved and kept afterwards. `None` where the offer is not
/// understood, or where it is for a session and there is none.
pub fn to_store(
    offer: &GrantOffer,
    lasts: &Lasts,
    asker: &Asker,
    by: &str,
    now: Timestamp,
) -> Option<StoredGrant> {
    let covers = Covers::from_document(&offer.covers)?;
    let tool = covers.tool().to_owned();
    let id = format!("grant_{}", &haft_core::OutputHandle::random().as_str()[4..20]);
    let grant = Grant::new(id.clone(), &*asker.tenant, covers, lasts.clone());
    let (session, expires_at) = match lasts {
        Lasts::Session(session) => (Some(session.clone()), None),
        Lasts::Until(end) => (None, Some(*end)),
        Lasts::Always => (None, None),
    };
    let user = asker.user.as_ref().map(ToString::to_string);
    Some(StoredGrant {
        id,
        tool,
        agent: user.is_none().then(|| asker.agent.to_string()),
        user,
        session,
        covers: offer.covers.to_string(),
        shown: grant.to_string(),
        granted_by: by.to_owned(),
        granted_at: now,
        expires_at,
        revoked_at: None,
    })
}

/// How many of these questions it would have spared.
pub fn spared(offer: &GrantOffer, past: &[StoredApproval]) -> usize {
    let Some(covers) = Covers::from_document(&offer.covers) else { return 0 };
    let prompts: Vec<PastPrompt> = past
        .iter()
        .filter_map(|question| {
            let request = &question.request;
            Some(PastPrompt {
                tool: request.tool.to_string(),
                arguments: request.arguments.parse().ok()?,
                footprint: request.footprint.clone(),
                folder: request.detail.reach["folder"].as_str().unwrap_or_default().to_owned(),
            })
        })
        .collect();
    covers_how_many(&covers, &prompts, Shell::of_this_system())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_offered() {
        let covers = Covers::Commands {
            tool: "run_command".into(),
            words: vec!["cargo".into(), "test".into()],
            fixed: Default::default(),
            folder: Some("/w".into()),
        };
        let offer = covers.offer().unwrap();
        let mut asker = Asker { tenant: "acme".into(), agent: "helper".into(), ..Asker::default() };
        let now = Timestamp::from_second(1_000).unwrap();
        let cases = [
            (Lasts::Always, "until it is revoked"),
            (Lasts::Session("s1".into()), "while this session goes on"),
            (Lasts::Until(Timestamp::from_second(2_000).unwrap()), "until 1970-01-01T00:33:20Z"),
        ];
        for (lasts, words) in cases {
            let stored = to_store(&offer, &lasts, &asker, "ada", now).unwrap();
            assert_eq!(
                stored.shown,
                format!(
                    "`run_command`, every command that starts with `cargo test`, in the folder `/w`, {words}"
                )
            );
            let grant = from_store("acme", &stored).unwrap();
            assert_eq!((&grant.covers, &grant.lasts), (&covers, &lasts));
            assert_eq!(grant.principal.as_deref(), Some("helper"));
        }
        asker.user = Some("bob".into());
        let stored = to_store(&offer, &Lasts::Always, &asker, "ada", now).unwrap();
        assert_eq!(from_store("acme", &stored).unwrap().principal.as_deref(), Some("bob"));
        let unknown = StoredGrant { covers: "{\"kind\":\"everything\"}".into(), ..stored };
        assert_eq!(from_store("acme", &unknown), None, "allows nothing");
    }
}
