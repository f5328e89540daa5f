//! Grants between the guard, which understands them, and the store, which keeps them.

use haft_core::port::{GuardError, StoreError, StoredGrant};
use haft_guard::{Covers, Grant, GrantSource, Lasts};
#[cfg(feature = "durable")]
use haft_store::DurableStore;
use haft_store::MemoryStore;
use std::sync::Arc;

/// The grants of a store, as policy asks for them. They are read for each decision that they could change, so that one
/// that another process revoked holds no longer.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use haft::{DurableStore, Haft, StoredGrants, StoreOptions};
/// # let folder = tempfile::tempdir().unwrap();
/// let store = DurableStore::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
/// let haft = Haft::builder().grants(StoredGrants::new(store.clone())).store(store).build()?;
/// # }
/// # Ok::<(), haft::Error>(())
/// ```
pub struct StoredGrants(Box<Read>);

type Read = dyn Fn(&str) -> Result<Vec<StoredGrant>, StoreError> + Send + Sync;

impl StoredGrants {
    /// Those of that store.
    #[cfg(feature = "durable")]
    pub fn new(store: DurableStore) -> Self {
        StoredGrants::reached(move || Ok(store.clone()))
    }

    /// Those of a store that is reached when it is first needed.
    #[cfg(feature = "durable")]
    pub fn reached(reach: impl Fn() -> Result<DurableStore, StoreError> + Send + Sync + 'static) -> Self {
        StoredGrants(Box::new(move |tenant| reach()?.tenant(tenant).grants_now()))
    }

    /// Those of a store that lasts as long as the process.
    pub fn in_memory(store: MemoryStore) -> Self {
        StoredGrants(Box::new(move |tenant| Ok(store.grants_now(tenant))))
    }
}

impl GrantSource for StoredGrants {
    fn grants(&self, tenant: &str) -> Result<Arc<[Grant]>, GuardError> {
        let stored = (self.0)(tenant).map_err(|error| GuardError(error.0))?;
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
        from: stored.granted_from?,
        granted_at: Some(stored.granted_at),
        ..Grant::new(stored.id.clone(), tenant, covers, lasts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::Channel;
    use jiff::Timestamp;

    #[test]
    fn a_grant_is_understood_as_it_was_kept_or_allows_nothing() {
        let covers = Covers::Commands {
            tool: "run_command".into(),
            words: vec!["cargo".into(), "test".into()],
            fixed: Default::default(),
            folder: Some("/w".into()),
        };
        let (now, end) = (Timestamp::from_second(1_000).unwrap(), Timestamp::from_second(2_000).unwrap());
        let stored = StoredGrant {
            id: "grant_1".into(),
            tool: "run_command".into(),
            agent: Some("helper".into()),
            user: None,
            session: None,
            covers: covers.offer().unwrap().covers.to_string(),
            shown: String::new(),
            granted_by: "ada".into(),
            granted_from: Some(Channel::Terminal),
            granted_at: now,
            expires_at: None,
            revoked_at: None,
        };
        let cases = [
            (stored.clone(), Lasts::Always),
            (StoredGrant { session: Some("s1".into()), ..stored.clone() }, Lasts::Session("s1".into())),
            (StoredGrant { expires_at: Some(end), ..stored.clone() }, Lasts::Until(end)),
        ];
        for (stored, lasts) in cases {
            let grant = from_store("acme", &stored).unwrap();
            assert_eq!((&grant.covers, &grant.lasts), (&covers, &lasts));
            assert_eq!((grant.principal.as_deref(), grant.from), (Some("helper"), Channel::Terminal));
        }
        let for_user = StoredGrant { user: Some("bob".into()), agent: None, ..stored.clone() };
        assert_eq!(from_store("acme", &for_user).unwrap().principal.as_deref(), Some("bob"));
        let from_nowhere = StoredGrant { granted_from: None, ..stored.clone() };
        assert_eq!(from_store("acme", &from_nowhere), None, "allows nothing");
        let unknown = StoredGrant { covers: "{\"kind\":\"everything\"}".into(), ..stored };
        assert_eq!(from_store("acme", &unknown), None, "allows nothing");
    }
}
