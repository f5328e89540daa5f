//! Ids by a prefix: what a person types when a whole id is too long.

use super::filter::{self, Id};
use crate::{failure::Failure, live_runs::Running, words};
use haft::{
    DurableStore,
    port::{AuditQuery, TenantStore as _},
};

/// The fewest characters of an id: a shorter prefix would only match by chance.
const FEWEST: usize = 4;
/// How many matches an error lists.
const LISTED: usize = 10;
/// How many of the newest calls a prefix is looked for in, in pages of 1,000.
const PAGES: usize = 10;

/// An id that fits, and what it is the id of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) id: String,
    pub(crate) what: String,
}

/// The one id that fits; `None` where none does. An id that is there as a whole is meant, whatever else begins like it.
pub(crate) fn only(typed: &str, fitting: Vec<Match>) -> Result<Option<String>, Failure> {
    let typed = typed.trim();
    if let Some(exact) = fitting.iter().find(|found| found.id == typed) {
        return Ok(Some(exact.id.clone()));
    }
    match fitting.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.id.clone())),
        several => {
            let mut matches: Vec<String> = several
                .iter()
                .take(LISTED)
                .map(|found| format!("  {}  {}", words::name(&found.id), words::name(&found.what)))
                .collect();
            if several.len() > LISTED {
                matches.push("  …".to_owned());
            }
            Err(Failure::Ambiguous { id: typed.to_owned(), matches: matches.join("\n") })
        }
    }
}

/// Whether something typed can be a prefix of ids that all begin with `kind`, such as `apr_`.
pub(crate) fn is_prefix(typed: &str, kind: &str) -> bool {
    typed.trim().strip_prefix(kind).is_some_and(|rest| rest.len() >= FEWEST)
}

/// The digits of a prefix of the id of a call or a batch, with or without its dashes.
pub(super) fn digits(typed: &str) -> Option<String> {
    let digits: String = typed.trim().chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
    let fits = (FEWEST..=32).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_hexdigit());
    fits.then_some(digits)
}

/// Whether an id begins with these digits.
pub(super) fn begins(id: &str, digits: &str) -> bool {
    id.replace('-', "").starts_with(digits)
}

/// Which ids are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Calls,
    CallsAndBatches,
}

/// The id of a call or a batch, from the whole or a prefix: one that runs, or one of the newest that are recorded.
pub(crate) async fn run_id(
    store: &DurableStore,
    running: &[Running],
    tenant: &str,
    typed: &str,
    which: Which,
) -> Result<Id, Failure> {
    if let Ok(whole) = filter::id(typed) {
        return Ok(whole);
    }
    let digits = digits(typed).ok_or_else(|| Failure::NotAnId { id: typed.to_owned() })?;
    let mut found: Vec<Match> = Vec::new();
    let mut add = |id: String, what: String| {
        if begins(&id, &digits) && !found.iter().any(|known| known.id == id) {
            found.push(Match { id, what });
        }
        found.len()
    };
    for one in running.iter().filter(|one| one.tenant == tenant) {
        if !one.is_batch || which == Which::CallsAndBatches {
            let what = if one.is_batch { "batch" } else { "call" };
            add(one.id.clone(), format!("{what} of {}, runs now", one.tools.join(", ")));
        }
    }
    let store = store.tenant(tenant);
    let mut query = AuditQuery { limit: 1000, ..AuditQuery::default() };
    'pages: for _ in 0..PAGES {
        let page = store.audit_page(query.clone()).await?;
        for (_, record) in &page.records {
            let facts = &record.metadata;
            let call = format!("{} {}", record.tool, record.status);
            let mut known = add(facts.execution_id.to_string(), call);
            if let (Some(batch), Which::CallsAndBatches) = (facts.batch_id, which) {
                known = add(batch.to_string(), "batch".to_owned());
            }
            if known > LISTED {
                break 'pages;
            }
        }
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    match only(typed, found)? {
        Some(id) => filter::id(&id),
        None => Err(Failure::NoRun { id: typed.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn found(ids: &[&str]) -> Vec<Match> {
        ids.iter().map(|id| Match { id: (*id).to_owned(), what: "a call".to_owned() }).collect()
    }

    #[test]
    fn one_match_is_meant_and_several_are_listed() {
        assert_eq!(only("apr_12", found(&[])).unwrap(), None);
        assert_eq!(only("apr_12", found(&["apr_1234"])).unwrap().as_deref(), Some("apr_1234"));
        assert_eq!(only(" apr_12 ", found(&["apr_1234", "apr_12"])).unwrap().as_deref(), Some("apr_12"));
        let several = only("apr_12", found(&["apr_1234", "apr_1256"])).unwrap_err();
        assert_eq!(
            several.to_string(),
            "several ids begin with `apr_12`:\n  apr_1234  a call\n  apr_1256  a call"
        );
        let many: Vec<String> = (10..40).map(|n| format!("apr_12{n}")).collect();
        let many = only("apr_12", found(&many.iter().map(String::as_str).collect::<Vec<_>>())).unwrap_err();
        assert_eq!(many.to_string().lines().count(), 1 + LISTED + 1, "{many}");
    }

    #[test]
    fn a_prefix_of_a_call_is_some_digits() {
        assert_eq!(digits("0197F3A2-1c5b").as_deref(), Some("0197f3a21c5b"));
        assert_eq!(digits("0197f3a21c").as_deref(), Some("0197f3a21c"));
        for wrong in ["", "019", "nothing", "0197f3a2-1c5b-7def-8a90-123456789abcd", "tsk_0197f3"] {
            assert_eq!(digits(wrong), None, "{wrong}");
        }
        assert!(begins("0197f3a2-1c5b-7def-8a90-123456789abc", "0197f3a21c"));
        assert!(!begins("0197f3a2-1c5b-7def-8a90-123456789abc", "97f3a21c"));
        assert!(is_prefix("apr_5d41", "apr_") && !is_prefix("apr_5d4", "apr_") && !is_prefix("5d41", "apr_"));
    }
}
