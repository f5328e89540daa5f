//! What happened besides calls: a part of the audit, and of its chain.

use super::{
    record::{Happening, Read, read},
    recovery::time,
    store::DurableStore,
    value::{Fault, Sql, Value},
};
use haft_core::port::StoreError;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// Something that happened besides calls: a key was made or revoked, somebody was not let in, records were archived,
/// somebody decided after a crash.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Happened {
    /// Its number in the audit.
    pub seq: i64,
    /// When it happened.
    pub at: Timestamp,
    /// What: `keyCreated`, `keyRevoked`, `refused`, `retention` or `recovery`.
    pub event: String,
    /// The rest of what is known of it.
    #[serde(flatten)]
    pub facts: Map<String, Json>,
}

/// Requests that a server did not let in, since it was last told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotLetIn {
    /// Those without a key or token.
    pub without: u64,
    /// Those with one that does not count.
    pub unknown: u64,
    /// From where, and how often.
    pub addresses: BTreeMap<String, u64>,
    /// How often from elsewhere.
    pub others: u64,
}

impl DurableStore {
    /// What happened besides calls, newest first, over all tenants. The whole audit is looked through for it.
    pub async fn happenings(&self, limit: usize) -> Result<Vec<Happened>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.0.read(move |sql| happenings(sql, limit)).await
    }

    /// Records that somebody was not let in.
    pub async fn not_let_in(&self, refused: NotLetIn) -> Result<(), StoreError> {
        let write = self.0.write("refused", move |work| {
            let NotLetIn { without, unknown, addresses, others } = &refused;
            let happening = Happening::Refused {
                form: Happening::FORM,
                at: work.now(),
                without: *without,
                unknown: *unknown,
                addresses: addresses.clone(),
                others: *others,
            };
            work.append(&serde_json::to_string(&happening)?).map(drop)
        });
        write.await
    }
}

fn happenings(sql: &mut dyn Sql, limit: i64) -> Result<Vec<Happened>, Fault> {
    // Records of calls begin with their form.
    let rows = sql.query(
        "SELECT seq, body FROM audit_log WHERE substr(body, 1, 9) = '{\"event\":' ORDER BY seq DESC LIMIT ?1",
        &[Value::Int(limit)],
    )?;
    let mut found = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (seq, body) = (row.int(0)?, row.text(1)?);
        let Read::Happening(happening) = read(&body)? else { continue };
        let mut facts: Map<String, Json> = serde_json::from_str(&body)?;
        facts.remove("form");
        facts.remove("at");
        if let Some(end) = facts.get("expiresAt").and_then(Json::as_i64) {
            facts.insert("expiresAt".to_owned(), Json::String(time(end)?.to_string()));
        }
        let event = facts.remove("event");
        let event = event.as_ref().and_then(Json::as_str).unwrap_or_default().to_owned();
        found.push(Happened { seq, at: time(happening.at())?, event, facts });
    }
    Ok(found)
}
