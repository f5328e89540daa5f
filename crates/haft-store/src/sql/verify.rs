//! Whether the audit is as it was written: every record against its seal, and every table that is shown against the
//! records.

use super::{
    audit::{Bad, Verified},
    chain::{self, Bytes32, Link},
    options::AuditHead,
    projection::Execution,
    record::{self, Happening, Read},
    value::{Fault, Row, Sql, Value},
    work::bytes32,
};
use haft_core::{
    Violation,
    port::{AuditRecord, Hashes},
};
use std::collections::{BTreeMap, BTreeSet};

/// Records that are looked at in one go.
const PIECE: i64 = 2000;
/// Results that are held in memory at once: they may be long.
const RESULTS: i64 = 32;

/// The end of the chain, as a reader sees it.
pub(crate) struct End {
    pub(crate) chain_id: String,
    pub(crate) seq: i64,
    pub(crate) mac: Bytes32,
    ratchet: Bytes32,
    projected: i64,
    anchor_seq: i64,
    anchor_mac: Bytes32,
}

/// Reads the end of the chain.
pub(crate) fn end(sql: &mut dyn Sql) -> Result<End, Fault> {
    let row = sql.query_one(
        "SELECT chain_id, seq, mac, ratchet, projected, anchor_seq, anchor_mac FROM audit_head",
        &[],
    )?;
    let mut row = row.ok_or_else(|| Fault::refused("the audit has no head: somebody removed it"))?;
    Ok(End {
        chain_id: row.text(0)?,
        seq: row.int(1)?,
        mac: bytes32(row.blob(2)?)?,
        ratchet: bytes32(row.blob(3)?)?,
        projected: row.int(4)?,
        anchor_seq: row.int(5)?,
        anchor_mac: bytes32(row.blob(6)?)?,
    })
}

/// Everything is read as it was at one moment: a row that the end of the chain does not know was not written by haft.
pub(crate) fn verify(sql: &mut dyn Sql, first_key: Bytes32, heads: &[AuditHead]) -> Result<Verified, Fault> {
    sql.snapshot()?;
    let verified = verify_at_once(sql, first_key, heads);
    sql.roll_back();
    verified
}

/// One pass from the first record that is there to the last.
fn verify_at_once(sql: &mut dyn Sql, first_key: Bytes32, heads: &[AuditHead]) -> Result<Verified, Fault> {
    let end = end(sql)?;
    let mut link = Link::genesis(&end.chain_id, first_key);
    for _ in 0..end.anchor_seq {
        link.key = chain::next_key(&link.key);
    }
    link.seq = end.anchor_seq;
    if end.anchor_seq == 0 && end.anchor_mac != link.mac {
        return Ok(verified(&end, 0, Some(Bad::new(0, "the beginning of the chain was changed"))));
    }
    link.mac = end.anchor_mac;
    let cut = end.anchor_seq == 0;
    let mut pass = Pass {
        link,
        archived: 0,
        cut,
        emptied: BTreeSet::new(),
        calls: BTreeMap::new(),
        violations: BTreeMap::new(),
        end,
        heads,
    };
    loop {
        let columns = Execution::COLUMNS;
        let rows = sql.query(
            &format!(
                "SELECT a.seq, a.body, a.digest, a.mac, {columns} FROM audit_log a \
                 LEFT JOIN tool_executions e ON e.seq = a.seq WHERE a.seq > ?1 ORDER BY a.seq LIMIT ?2"
            ),
            &[Value::Int(pass.link.seq), Value::Int(PIECE)],
        )?;
        let (before, mut is_last) = (pass.link.seq, rows.is_empty());
        for row in rows {
            if pass.link.seq >= pass.end.seq {
                // Beyond the end: `outside` names it.
                is_last = true;
                break;
            }
            if let Some(bad) = pass.step(row)? {
                return Ok(verified(&pass.end, pass.archived, Some(bad)));
            }
        }
        let mut bad = pass.results(sql, before)?;
        if bad.is_none() {
            bad = pass.events(sql, before)?;
        }
        let bad = match bad {
            Some(bad) => Some(bad),
            None if is_last => pass.last(sql)?,
            None => continue,
        };
        return Ok(verified(&pass.end, pass.archived, bad));
    }
}

fn verified(end: &End, archived: u64, bad: Option<Bad>) -> Verified {
    Verified { first: end.anchor_seq + 1, last: end.seq, archived, bad }
}

struct Pass<'a> {
    link: Link,
    archived: u64,
    /// Whether the cut at the beginning is on record.
    cut: bool,
    /// Records without a text that no record of retention has named yet.
    emptied: BTreeSet<i64>,
    /// Calls whose results were not compared yet.
    calls: BTreeMap<i64, (String, Hashes)>,
    /// What sandboxes stopped in calls, as far as it was not compared yet.
    violations: BTreeMap<i64, Vec<Event>>,
    end: End,
    heads: &'a [AuditHead],
}

impl Pass<'_> {
    fn step(&mut self, mut row: Row) -> Result<Option<Bad>, Fault> {
        let expected = self.link.seq + 1;
        let seq = row.int(0)?;
        if seq != expected {
            return Ok(Some(Bad::new(
                expected,
                format!("it is missing: after {} comes {seq}", self.link.seq),
            )));
        }
        let body = row.opt_text(1)?;
        let digest = match (&body, row.opt_blob(2)?) {
            (Some(body), _) => chain::digest(body.as_bytes()),
            (None, Some(digest)) => {
                self.archived += 1;
                self.emptied.insert(seq);
                bytes32(digest)?
            }
            (None, None) => return Ok(Some(Bad::new(seq, "its text was removed"))),
        };
        let mac = bytes32(row.blob(3)?)?;
        self.link.advance(&digest);
        if mac != self.link.mac {
            return Ok(Some(Bad::new(seq, "its text, its place or its seal was changed")));
        }
        for head in self.heads.iter().filter(|head| head.seq == seq) {
            if head.chain != self.end.chain_id || head.mac != chain::hex(&mac) {
                return Ok(Some(Bad::new(seq, format!("it is not what was told elsewhere at {}", head.at))));
            }
        }
        let shown = Execution::read(&mut row, 4)?;
        let Some(body) = body else {
            return Ok(shown.map(|_| Bad::new(seq, "it has no text, and the table of executions has one")));
        };
        match record::read(&body)? {
            Read::Call(record) => {
                let execution = Execution::of(seq, &record, &body)?;
                let id = execution.execution_id.clone();
                let bad = match shown {
                    Some(shown) if shown == execution => None,
                    // What queries look at must be what was sealed.
                    Some(_) => Some(Bad::new(seq, "the table of executions says something else about it")),
                    None if seq <= self.end.projected => {
                        Some(Bad::new(seq, "it is missing in the table of executions"))
                    }
                    None => None,
                };
                if seq <= self.end.projected {
                    self.violations.insert(seq, Event::all(&record));
                }
                if let Some(hashes) = record.hashes {
                    self.calls.insert(seq, (id, *hashes));
                }
                Ok(bad)
            }
            Read::Happening(happening) => {
                self.happened(seq, &happening);
                Ok(shown.map(|_| Bad::new(seq, "it is no call, and the table of executions has one")))
            }
        }
    }

    fn happened(&mut self, seq: i64, happening: &Happening) {
        match happening {
            Happening::Retention { through, mac, emptied, .. } => {
                self.cut |= *through == self.end.anchor_seq && *mac == chain::hex(&self.end.anchor_mac);
                // It speaks for what was before it.
                for (first, last) in emptied.iter().filter(|(first, last)| first <= last && *last < seq) {
                    let named: Vec<i64> = self.emptied.range(*first..=*last).copied().collect();
                    named.iter().for_each(|seq| {
                        self.emptied.remove(seq);
                    });
                }
            }
            Happening::Recovery { .. }
            | Happening::KeyCreated { .. }
            | Happening::KeyRevoked { .. }
            | Happening::Refused { .. } => {}
        }
    }

    /// Whether what is kept of the calls since is what their records say came in and went out.
    fn results(&mut self, sql: &mut dyn Sql, mut after: i64) -> Result<Option<Bad>, Fault> {
        let calls = std::mem::take(&mut self.calls);
        // Also beside records of no call, and of calls whose text is gone.
        let last = self.link.seq;
        loop {
            let rows = sql.query(
                "SELECT seq, execution_id, input, result FROM call_results WHERE seq > ?1 AND seq <= ?2 \
                 ORDER BY seq LIMIT ?3",
                &[Value::Int(after), Value::Int(last), Value::Int(RESULTS)],
            )?;
            if rows.is_empty() {
                return Ok(None);
            }
            for mut row in rows {
                after = row.int(0)?;
                let is_hash =
                    |bytes: &[u8], known: Option<&str>| known == Some(&*chain::hex(&chain::digest(bytes)));
                let (id, input, result) = (row.text(1)?, row.opt_text(2)?, row.opt_blob(3)?);
                let is_sealed = calls.get(&after).is_some_and(|(known, hashes)| {
                    *known == id
                        && input.is_none_or(|input| is_hash(input.as_bytes(), Some(&hashes.input)))
                        && result.is_none_or(|result| is_hash(&result, hashes.output.as_deref()))
                });
                if !is_sealed {
                    let what = "its arguments or its result are kept otherwise than they were";
                    return Ok(Some(Bad::new(after, what)));
                }
            }
        }
    }

    /// Whether the table of what sandboxes stopped says of the records since what they say.
    fn events(&mut self, sql: &mut dyn Sql, after: i64) -> Result<Option<Bad>, Fault> {
        let mut found: BTreeMap<i64, Vec<Event>> = BTreeMap::new();
        let rows = sql.query(
            "SELECT seq, tenant, sandbox_id, violation_type, resource, description, was_blocked, happened_at \
             FROM sandbox_security_events WHERE seq > ?1 AND seq <= ?2 ORDER BY seq, event_id",
            &[Value::Int(after), Value::Int(self.link.seq)],
        )?;
        for mut row in rows {
            found.entry(row.int(0)?).or_default().push(Event::read(&mut row)?);
        }
        let mut sealed = std::mem::take(&mut self.violations);
        sealed.retain(|_, events| !events.is_empty());
        let differs = |seq: &&i64| sealed.get(*seq) != found.get(*seq);
        let first = sealed.keys().filter(differs).chain(found.keys().filter(differs)).min();
        let what = "the table of what sandboxes stopped says something else about it";
        Ok(first.map(|seq| Bad::new(*seq, what)))
    }

    /// After the last record.
    fn last(&self, sql: &mut dyn Sql) -> Result<Option<Bad>, Fault> {
        let (last, end) = (self.link.seq, &self.end);
        if last < end.seq {
            return Ok(Some(Bad::new(last + 1, format!("it is missing: the chain went on to {}", end.seq))));
        }
        if self.link.mac != end.mac || self.link.key != end.ratchet {
            return Ok(Some(Bad::new(
                last,
                "the end of the chain was changed: records after it were cut off, or its key",
            )));
        }
        if let Some(head) = self.heads.iter().find(|head| head.chain != end.chain_id) {
            let what = format!("the chain is another one than was told elsewhere at {}", head.at);
            return Ok(Some(Bad::new(end.anchor_seq, what)));
        }
        if let Some(head) = self.heads.iter().find(|head| head.seq > last) {
            let what = format!("it is missing: it was told elsewhere at {}", head.at);
            return Ok(Some(Bad::new(last + 1, what)));
        }
        if let Some(seq) = self.emptied.first() {
            return Ok(Some(Bad::new(*seq, "its text is gone, and no record of retention names it")));
        }
        if !self.cut {
            return Ok(Some(Bad::new(
                end.anchor_seq,
                "records up to it were cut off, and no retention is on record",
            )));
        }
        if let Some(bad) = outside(sql, end)? {
            return Ok(Some(bad));
        }
        if let Some(bad) = never_recorded(sql)? {
            return Ok(Some(bad));
        }
        // Last, because it names no record: what is wrong in one is told above.
        let what = sql.difference()?;
        Ok(what.map(|what| {
            Bad::new(end.seq, format!("what is asked of the database may be answered wrongly: {what}"))
        }))
    }
}

/// A row of the table of what sandboxes stopped, without its numbers.
#[derive(Debug, PartialEq)]
struct Event {
    tenant: String,
    sandbox_id: Option<String>,
    violation_type: String,
    resource: String,
    description: String,
    was_blocked: i64,
    happened_at: i64,
}

impl Event {
    /// What a record says.
    fn all(record: &AuditRecord) -> Vec<Self> {
        let one = |violation: &Violation| Event {
            tenant: record.context.tenant.to_string(),
            sandbox_id: record.metadata.sandbox_id.as_deref().map(str::to_owned),
            violation_type: violation.kind.clone(),
            resource: violation.resource.clone(),
            description: violation.description.clone(),
            was_blocked: i64::from(violation.was_blocked),
            happened_at: violation.timestamp.as_microsecond(),
        };
        record.metadata.violations.iter().map(one).collect()
    }

    /// What the table says.
    fn read(row: &mut Row) -> Result<Self, Fault> {
        Ok(Event {
            tenant: row.text(1)?,
            sandbox_id: row.opt_text(2)?,
            violation_type: row.text(3)?,
            resource: row.text(4)?,
            description: row.text(5)?,
            was_blocked: row.int(6)?,
            happened_at: row.int(7)?,
        })
    }
}

/// A row with a number that no record of the chain has: before its beginning or after its end.
fn outside(sql: &mut dyn Sql, end: &End) -> Result<Option<Bad>, Fault> {
    for table in ["audit_log", "tool_executions", "call_results", "sandbox_security_events"] {
        let row = sql.query_one(
            &format!("SELECT seq FROM {table} WHERE seq <= ?1 OR seq > ?2 ORDER BY seq LIMIT 1"),
            &[Value::Int(end.anchor_seq), Value::Int(end.seq)],
        )?;
        if let Some(mut row) = row {
            let seq = row.int(0)?;
            let what = format!("it is in `{table}`, and the chain has no such record: somebody added it");
            return Ok(Some(Bad::new(seq, what)));
        }
    }
    Ok(None)
}

/// An execution that is shown and has no record.
fn never_recorded(sql: &mut dyn Sql) -> Result<Option<Bad>, Fault> {
    for table in ["tool_executions", "call_results"] {
        let row = sql.query_one(
            &format!(
                "SELECT e.seq FROM {table} e LEFT JOIN audit_log a ON a.seq = e.seq WHERE a.body IS NULL \
                 ORDER BY e.seq LIMIT 1"
            ),
            &[],
        )?;
        if let Some(mut row) = row {
            return Ok(Some(Bad::new(row.int(0)?, "it is shown, and was never recorded")));
        }
    }
    Ok(None)
}
