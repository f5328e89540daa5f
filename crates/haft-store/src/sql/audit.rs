//! Checking the chain, and giving records out.

use super::{
    chain, open,
    options::AuditHead,
    record,
    store::DurableStore,
    value::Fault,
    verify::{self, end},
};
use haft_core::port::{AuditQuery, AuditRecord, StoreError, TenantStore as _};
use std::{io::Write, path::Path};

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
    /// The number of the record.
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

impl DurableStore {
    /// Checks every record against its seal, with the first key of the chain: from the file beside the database, or
    /// from where that was moved to. `heads` are ends of the chain that were told elsewhere: the chain must still hold
    /// them.
    ///
    /// Not detected without such heads: that somebody brought back the whole database as it was some time ago, or began
    /// a new one. Not detected at all: changes by somebody who has the first key, in records after the last head that
    /// was told elsewhere.
    pub async fn verify(&self, key_file: Option<&Path>, heads: &[AuditHead]) -> Result<Verified, StoreError> {
        let usual = open::key_file(&self.0.options, &self.0.folder);
        let key = open::read_key(key_file.unwrap_or(&usual))?;
        let heads = heads.to_vec();
        self.0.read(move |sql| verify::verify(sql, key, &heads)).await
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
