//! The policy of a configuration: its lists with canonical names, and its rules.

use crate::{Error, ListPolicy, StoredGrants, ToolDefinition, config::Config, wiring};
use haft_core::port::Policy;
use haft_guard::{
    GrantSource, LivePolicy, PolicySet,
    policy::{PolicyProblems, Rule},
};
use std::{any::Any, sync::Arc};

/// What decides about calls.
pub(crate) enum Policing {
    /// Lists that may name tools by their aliases, and rules.
    Lists(ListPolicy, Vec<Rule>),
    /// Lists and rules that somebody put together.
    Set(Box<PolicySet>),
    /// Whatever somebody brought.
    Own(Arc<dyn Policy>),
}

/// The port, and what can be exchanged behind it, where anything can.
pub(crate) type Put = (Arc<dyn Policy>, Option<Arc<LivePolicy>>);

impl Policing {
    /// That of a configuration.
    pub(crate) fn of(config: &Config) -> Self {
        Policing::Lists(wiring::policy(config), config.policy.rules.clone())
    }

    /// That one. What can be exchanged and explained is known as such.
    pub(crate) fn own<P: Policy + 'static>(policy: P) -> Self {
        let mut policy = Some(policy);
        let any = &mut policy as &mut dyn Any;
        if let Some(lists) = any.downcast_mut::<Option<ListPolicy>>().and_then(Option::take) {
            return Policing::Lists(lists, Vec::new());
        }
        if let Some(set) = any.downcast_mut::<Option<PolicySet>>().and_then(Option::take) {
            return Policing::Set(Box::new(set));
        }
        match policy {
            Some(policy) => Policing::Own(Arc::new(policy)),
            // It was taken above only where this is not reached.
            None => Policing::Lists(ListPolicy::default(), Vec::new()),
        }
    }

    /// The port, and what can be exchanged behind it. Lists have the grants that the store `keeps`, where there are no
    /// others; a set has its own.
    pub(crate) fn put<'a>(
        self,
        definitions: impl Iterator<Item = &'a ToolDefinition>,
        grants: Option<Arc<dyn GrantSource>>,
        keeps: Option<StoredGrants>,
    ) -> Result<Put, Error> {
        let kept = || keeps.map(|kept| Arc::new(kept) as Arc<dyn GrantSource>);
        let (set, grants) = match self {
            Policing::Own(policy) => return Ok((policy, None)),
            Policing::Set(set) => (*set, grants),
            Policing::Lists(lists, rules) => {
                (policy_set(lists, rules, definitions).map_err(broken)?, grants.or_else(kept))
            }
        };
        let set = grants.into_iter().fold(set, PolicySet::with_grant_source);
        let live = Arc::new(LivePolicy::new(set));
        Ok((Arc::clone(&live) as Arc<dyn Policy>, Some(live)))
    }
}

fn broken(problems: PolicyProblems) -> Error {
    Error::Policy(problems.to_string())
}

/// Lists and rules, with the canonical name of every tool that a list names by an alias.
pub(crate) fn policy_set<'a>(
    lists: ListPolicy,
    rules: Vec<Rule>,
    definitions: impl Iterator<Item = &'a ToolDefinition>,
) -> Result<PolicySet, PolicyProblems> {
    PolicySet::new(wiring::with_canonical_names(lists, definitions), rules)
}
