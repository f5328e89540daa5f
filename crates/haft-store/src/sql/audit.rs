//! Checking the chain, and giving records out.

use super::{
    chain::{self, Bytes32, Link},
    open,
    options::AuditHead,
    record::{self, Happening, Read},
    store::DurableStore,
    value::{Fault, Row, Sql, Value},
    work::bytes32,
};
use haft_core::port::{AuditQuery, AuditRecord, StoreError, TenantStore as _};
use std::{io::Write, path::Path};

/// Records that are looked at in one go.
const PIECE: i64 = 2000;

/// What checking the audit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The first record that is still there; those before were archived and cut off.
    pub first: i64,
    /// The last record.
    pub last: i64,
    /// Records among them whose text was archived: their seals still hold.
    pub archived: u64,
    /// The first thing that is wrong, if anything is.
    pub bad: Option<Bad>,
}

/// A record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Its number.
    pub seq: i64,
    /// What is wrong.
    pub what: String,
}

impl Bad {
    pub(crate) fn new(seq: i64, what: impl Into<String>) -> Self {
        Bad { seq, what: what.into() }
    }
}

/// How records are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A JSON document a line, with everything.
    JsonLines,
    /// The most asked-for columns, for a spreadsheet.
    Csv,
}

/// The end of the chain, as a reader sees it.
struct End {
    chain_id: String,
    seq: i64,
    mac: Bytes32,
    ratchet: Bytes32,
    projected: i64,
    anchor_seq: i64,
    anchor_mac: Bytes32,
}

fn end(sql: &mut dyn Sql) -> Result<End, Fault> {
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

impl DurableStore {
    /// Checks every record against its seal, with the first key of the chain: from the file beside the database, or from
    /// where that was moved to. `heads` are ends of the chain that were told elsewhere: the chain must still hold them.
    ///
    /// What is not detected without such heads: that somebody brought back the whole database as it was some time ago.
    pub async fn verify(&self, key_file: Option<&Path>, heads: &[AuditHead]) -> Result<Verified, StoreError> {
        let usual = open::key_file(&self.0.options, &self.0.folder);
        let key = open::read_key(key_file.unwrap_or(&usual))?;
        let heads = heads.to_vec();
        self.0.read(move |sql| verify(sql, key, &heads)).await
    }

    /// Where the chain ends now: worth keeping elsewhere.
    pub async fn head(&self) -> Result<AuditHead, StoreError> {
        let at = self.0.options.clock.now();
        let end = self.0.read(end).await?;
        Ok(AuditHead { chain: end.chain_id, seq: end.seq, mac: chain::hex(&end.mac), at })
    }

    /// Writes a tenant's records out, newest first, those that the query lets through. Gives their number.
    pub async fn export(
        &self,
        tenant: &str,
        query: AuditQuery,
        format: ExportFormat,
        out: &mut (dyn Write + Send),
    ) -> Result<u64, StoreError> {
        let unwritable = |error: std::io::Error| StoreError(format!("the export cannot be written: {error}"));
        let tenant = self.tenant(tenant);
        let mut query = AuditQuery { limit: 1000, ..query };
        let mut count = 0;
        if format == ExportFormat::Csv {
            writeln!(out, "{COLUMNS}").map_err(unwritable)?;
        }
        loop {
            let page = tenant.audit_page(query.clone()).await?;
            for (seq, record) in &page.records {
                let line = match format {
                    ExportFormat::JsonLines => json_line(*seq, record)?,
                    ExportFormat::Csv => csv_line(*seq, record),
                };
                writeln!(out, "{line}").map_err(unwritable)?;
                count += 1;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(count),
            }
        }
    }
}

fn json_line(seq: i64, record: &AuditRecord) -> Result<String, Fault> {
    let none = haft_core::port::Hashes { input: String::new(), output: None };
    let hashes = record.hashes.as_deref().unwrap_or(&none);
    let text = record::call_text(record, hashes, None)?;
    // The record is a JSON object already: its number goes in front.
    Ok(format!("{{\"seq\":{seq},{}", text.strip_prefix('{').unwrap_or(&text)))
}

const COLUMNS: &str = "seq,started_at,tenant,agent,user,tool,status,code,rule,duration_ms,attempts,input_size,output_size,\
                       input_sha256,output_sha256,execution_id,batch_id,approval";

fn csv_line(seq: i64, record: &AuditRecord) -> String {
    let facts = &record.metadata;
    let text = |text: Option<&str>| cell(text.unwrap_or(""));
    let hashes = record.hashes.as_deref();
    [
        seq.to_string(),
        facts.started_at.to_string(),
        cell(&record.context.tenant),
        cell(&record.context.agent),
        text(record.context.user.as_deref()),
        cell(&record.tool),
        record.status.to_string(),
        text(record.code.map(|code| code.as_str())),
        text(record.rule.as_deref()),
        format!("{:.3}", facts.duration.as_secs_f64() * 1000.0),
        facts.attempts.to_string(),
        record.input_size.to_string(),
        facts.output_size.to_string(),
        text(hashes.map(|hashes| &*hashes.input)),
        text(hashes.and_then(|hashes| hashes.output.as_deref())),
        facts.execution_id.to_string(),
        facts.batch_id.map(|batch| batch.to_string()).unwrap_or_default(),
        text(record.approval.as_ref().map(|approval| approval.as_str())),
    ]
    .join(",")
}

/// Text in a table. One that a spreadsheet would take for a formula begins with a quote.
fn cell(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// One pass from the first record that is there to the last.
fn verify(sql: &mut dyn Sql, first_key: Bytes32, heads: &[AuditHead]) -> Result<Verified, Fault> {
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
    let mut pass = Pass { link, archived: 0, cut: end.anchor_seq == 0, end, heads };
    loop {
        let rows = sql.query(
            "SELECT a.seq, a.body, a.digest, a.mac, e.tenant, e.tool_name, e.status, e.started_at, e.agent_id, \
             e.execution_id FROM audit_log a LEFT JOIN tool_executions e ON e.seq = a.seq WHERE a.seq > ?1 \
             ORDER BY a.seq LIMIT ?2",
            &[Value::Int(pass.link.seq), Value::Int(PIECE)],
        )?;
        if rows.is_empty() {
            let bad = pass.last();
            return Ok(verified(&pass.end, pass.archived, bad));
        }
        for row in rows {
            if pass.link.seq >= pass.end.seq {
                // Came in after the end was read.
                let bad = pass.last();
                return Ok(verified(&pass.end, pass.archived, bad));
            }
            if let Some(bad) = pass.step(row)? {
                return Ok(verified(&pass.end, pass.archived, Some(bad)));
            }
        }
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
        let Some(body) = body else { return Ok(None) };
        match record::read(&body)? {
            Read::Call(record) if seq <= self.end.projected => Ok(self.compare(seq, &record, row)?),
            Read::Call(_) => Ok(None),
            Read::Happening(Happening::Retention { through, mac, .. }) => {
                self.cut |= through == self.end.anchor_seq && mac == chain::hex(&self.end.anchor_mac);
                Ok(None)
            }
            Read::Happening(
                Happening::Recovery { .. }
                | Happening::KeyCreated { .. }
                | Happening::KeyRevoked { .. }
                | Happening::Refused { .. },
            ) => Ok(None),
        }
    }

    /// What queries look at must be what was sealed.
    fn compare(&self, seq: i64, record: &AuditRecord, mut row: Row) -> Result<Option<Bad>, Fault> {
        let Some(tenant) = row.opt_text(4)? else {
            return Ok(Some(Bad::new(seq, "it is missing in the table of executions")));
        };
        let there = (tenant, row.text(5)?, row.int(6)?, row.int(7)?, row.text(8)?, row.text(9)?);
        let sealed = (
            record.context.tenant.to_string(),
            record.tool.to_string(),
            record::status_number(record.status),
            record.metadata.started_at.as_microsecond(),
            record.context.agent.to_string(),
            record.metadata.execution_id.to_string(),
        );
        Ok((there != sealed).then(|| Bad::new(seq, "the table of executions says something else about it")))
    }

    /// After the last record.
    fn last(&self) -> Option<Bad> {
        let (last, end) = (self.link.seq, &self.end);
        if last < end.seq {
            return Some(Bad::new(last + 1, format!("it is missing: the chain went on to {}", end.seq)));
        }
        if self.link.mac != end.mac || self.link.key != end.ratchet {
            return Some(Bad::new(
                last,
                "the end of the chain was changed: records after it were cut off, or its key",
            ));
        }
        if let Some(head) = self.heads.iter().find(|head| head.seq > last) {
            let what = format!("it is missing: it was told elsewhere at {}", head.at);
            return Some(Bad::new(last + 1, what));
        }
        if !self.cut {
            return Some(Bad::new(
                end.anchor_seq,
                "records up to it were cut off, and no retention is on record",
            ));
        }
        None
    }
}
