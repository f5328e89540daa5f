//! The ids of calls and batches by a prefix: where to look for those that fit. Which one is meant,
//! `haft_core::id_prefix` says.

use super::filter::{self, Id};
use crate::{failure::Failure, live_runs::Running};
use haft::{
    DurableStore,
    port::{AuditQuery, TenantStore as _},
};
use haft_core::id_prefix::{IdMatch, LISTED, begins, digits, only};

/// How many of the newest calls a prefix is looked for in, in pages of 1,000.
const PAGES: usize = 10;

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
    let mut found: Vec<IdMatch> = Vec::new();
    let mut add = |id: String, what: String| {
        if begins(&id, &digits) && !found.iter().any(|known| known.id == id) {
            found.push(IdMatch { id, what });
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
    match only(typed, &found)? {
        Some(id) => filter::id(id),
        None => Err(Failure::NoRun { id: typed.to_owned() }),
    }
}
