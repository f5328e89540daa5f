//! A policy that can be exchanged while calls are decided.

use super::{ListPolicy, PolicyProblems, PolicySet, read_rules};
use arc_swap::ArcSwap;
use haft_core::{
    CallContext, GrantOffer, ToolDefinition,
    port::{GuardError, Policy, Subject, Verdict},
};
use std::sync::{Arc, Mutex, PoisonError};

/// A policy that is exchanged as a whole. Each call is decided by one of them; a file that is broken changes nothing.
///
/// ```
/// use haft_guard::policy::{ListPolicy, LivePolicy, PolicySet};
/// let live = LivePolicy::new(PolicySet::new(ListPolicy::default(), Vec::new())?);
/// assert!(live.reload(ListPolicy::default(), "[[rules]]\neffect = 'denny'\n", "/work").is_err());
/// assert!(live.now().rules().is_empty(), "the old one still holds");
/// # Ok::<(), haft_guard::policy::PolicyProblems>(())
/// ```
pub struct LivePolicy {
    set: ArcSwap<PolicySet>,
    /// Held over a whole exchange, so that two of them do not undo one another.
    exchanging: Mutex<()>,
}

impl LivePolicy {
    /// Starts with that one.
    pub fn new(set: PolicySet) -> Self {
        LivePolicy { set: ArcSwap::from_pointee(set), exchanging: Mutex::new(()) }
    }

    /// The one that holds now.
    pub fn now(&self) -> Arc<PolicySet> {
        self.set.load_full()
    }

    /// Reads the rules again, and keeps the grants. Where the text is broken the old policy goes on holding.
    pub fn reload(&self, lists: ListPolicy, rules: &str, base: &str) -> Result<(), PolicyProblems> {
        let rules = read_rules(rules, base)?;
        self.exchange(|old| Ok(PolicySet::new(lists, rules)?.for_shell(old.shell)))
    }

    /// Exchanges everything but where grants come from.
    pub fn replace(&self, set: PolicySet) {
        // It cannot fail: nothing is made that could.
        let _ = self.exchange(|_| Ok(set));
    }

    fn exchange(
        &self,
        make: impl FnOnce(&PolicySet) -> Result<PolicySet, PolicyProblems>,
    ) -> Result<(), PolicyProblems> {
        let _alone = self.exchanging.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.now();
        let new = Arc::new(make(&old)?.with_grant_source(Arc::clone(old.grant_source())));
        self.set.store(new);
        Ok(())
    }
}

impl Policy for LivePolicy {
    fn is_enabled(&self) -> bool {
        self.set.load().is_enabled()
    }

    fn denies(
        &self,
        context: &CallContext,
        definition: &ToolDefinition,
    ) -> Result<Option<String>, GuardError> {
        self.set.load().denies(context, definition)
    }

    fn decide(&self, subject: &Subject<'_>) -> Result<Verdict, GuardError> {
        self.set.load().decide(subject)
    }

    fn offers(&self, subject: &Subject<'_>, summary: &str) -> Vec<GrantOffer> {
        self.now().offers(subject, summary)
    }
}
