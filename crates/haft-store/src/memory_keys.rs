//! Keys that last as long as the process.

use haft_core::port::{ApiKey, BoxFuture, KeyStore, SecretHash, StoreError};
use std::{
    collections::HashMap,
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Keys that last as long as the process: for tests, and for programs that make new keys at each start.
///
/// ```
/// use haft_core::port::KeyStore;
/// let keys = haft_store::MemoryKeys::default();
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// assert_eq!(keys.by_secret([0; 32]).await, Ok(None));
/// # });
/// ```
#[derive(Debug, Default)]
pub struct MemoryKeys(Mutex<HashMap<SecretHash, ApiKey>>);

impl MemoryKeys {
    fn keys(&self) -> MutexGuard<'_, HashMap<SecretHash, ApiKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for MemoryKeys {
    fn add<'a>(&'a self, key: ApiKey, hash: SecretHash) -> BoxFuture<'a, Result<(), StoreError>> {
        self.keys().insert(hash, key);
        Box::pin(ready(Ok(())))
    }

    fn by_secret<'a>(&'a self, hash: SecretHash) -> BoxFuture<'a, Result<Option<ApiKey>, StoreError>> {
        Box::pin(ready(Ok(self.keys().get(&hash).cloned())))
    }

    fn all<'a>(&'a self, tenant: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ApiKey>, StoreError>> {
        let mut all: Vec<ApiKey> = self
            .keys()
            .values()
            .filter(|key| tenant.is_none_or(|tenant| *key.tenant == *tenant))
            .cloned()
            .collect();
        all.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Box::pin(ready(Ok(all)))
    }

    fn revoke<'a>(&'a self, id: &'a str, _by: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut keys = self.keys();
        let found = keys.values_mut().find(|key| key.id == id && key.revoked_at.is_none());
        let was_there = found.is_some();
        if let Some(key) = found {
            key.revoked_at = Some(jiff::Timestamp::now());
        }
        drop(keys);
        Box::pin(ready(Ok(was_there)))
    }
}
