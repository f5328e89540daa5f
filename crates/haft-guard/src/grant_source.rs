//! Where a decision finds grants.

use crate::Grant;
use haft_core::port::GuardError;
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

/// Where a decision finds the grants of a tenant.
///
/// It is asked only where a call would otherwise be asked about or refused by mode, never for one that runs anyway. It
/// is asked while a call is decided, so it answers from what it has at hand. An error denies the call.
///
/// What has expired, or is another session's, may be among them: a grant says itself whether it holds.
pub trait GrantSource: Send + Sync {
    /// The grants of a tenant, in the order in which they were given.
    fn grants(&self, tenant: &str) -> Result<Arc<[Grant]>, GuardError>;
}

/// Grants in memory: for as long as the process lasts.
///
/// ```
/// use haft_guard::{Covers, Grant, GrantSource, Lasts, MemoryGrants};
/// let covers = Covers::Host { tool: "web_fetch".into(), host: "example.com".into(), fixed: Default::default() };
/// let grants = MemoryGrants::default();
/// grants.add(Grant::new("g1", "acme", covers, Lasts::Always));
/// assert_eq!(grants.grants("acme")?.len(), 1);
/// assert!(grants.grants("other")?.is_empty());
/// assert!(grants.revoke("acme", "g1") && !grants.revoke("acme", "g1"));
/// # Ok::<(), haft_core::port::GuardError>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryGrants(RwLock<BTreeMap<String, Arc<[Grant]>>>);

impl MemoryGrants {
    /// These.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Self {
        let known = MemoryGrants::default();
        grants.into_iter().for_each(|grant| known.add(grant));
        known
    }

    /// One more. It takes the place of one of the same tenant with the same id.
    pub fn add(&self, grant: Grant) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = all.entry(grant.tenant.clone()).or_default();
        let others = of_tenant.iter().filter(|other| other.id != grant.id).cloned();
        *of_tenant = others.chain([grant.clone()]).collect();
    }

    /// Takes one back. False where the tenant has none of that id.
    pub fn revoke(&self, tenant: &str, id: &str) -> bool {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(of_tenant) = all.get_mut(tenant) else { return false };
        let before = of_tenant.len();
        *of_tenant = of_tenant.iter().filter(|grant| grant.id != id).cloned().collect();
        of_tenant.len() < before
    }
}

impl GrantSource for MemoryGrants {
    fn grants(&self, tenant: &str) -> Result<Arc<[Grant]>, GuardError> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(all.get(tenant).cloned().unwrap_or_default())
    }
}
