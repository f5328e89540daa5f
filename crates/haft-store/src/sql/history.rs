//! Reading what happened: pages by key, one call, numbers by tool.

use super::{
    record::{self, Read},
    value::{Fault, Row, Sql, Value},
};
use haft_core::{
    Arguments, ExecutionId,
    port::{AuditPage, AuditQuery, AuditRecord, PageKey, StoredRun, ToolStatistics},
};
use std::sync::Arc;

/// The most records on one page.
const MOST: usize = 1000;
/// The newest calls of a tool that its percentiles are worked out from.
const SAMPLE: i64 = 100_000;

/// The conditions of a query, with what they compare to.
struct Conditions {
    text: String,
    arguments: Vec<Owned>,
}

enum Owned {
    Int(i64),
    Text(String),
}

impl Conditions {
    fn of(tenant: &str, query: &AuditQuery) -> Self {
        let mut conditions =
            Conditions { text: "e.tenant = ?1".to_owned(), arguments: vec![Owned::Text(tenant.to_owned())] };
        let text = |text: &Option<String>| text.clone().map(Owned::Text);
        let time = |at: Option<jiff::Timestamp>| at.map(|at| Owned::Int(at.as_microsecond()));
        conditions.add("e.started_at >= ", time(query.from));
        conditions.add("e.started_at < ", time(query.until));
        conditions.add("e.tool_name = ", text(&query.tool));
        conditions.add("e.agent_id = ", text(&query.agent));
        conditions.add("e.batch_id = ", query.batch.map(|batch| Owned::Text(batch.to_string())));
        conditions.add("e.status = ", query.status.map(|status| Owned::Int(record::status_number(status))));
        conditions.add("e.error_code = ", query.code.map(|code| Owned::Text(code.as_str().to_owned())));
        if let Some(text) = &query.text {
            conditions.arguments.push(Owned::Text(like(text)));
            let place = conditions.arguments.len();
            conditions.text.push_str(&format!(" AND lower(a.body) LIKE ?{place} ESCAPE '!'"));
        }
        if let Some(after) = query.after {
            conditions.arguments.extend([Owned::Int(after.at), Owned::Int(after.seq)]);
            let place = conditions.arguments.len();
            conditions.text.push_str(&format!(" AND (e.started_at, e.seq) < (?{}, ?{place})", place - 1));
        }
        conditions
    }

    fn add(&mut self, condition: &str, argument: Option<Owned>) {
        if let Some(argument) = argument {
            self.arguments.push(argument);
            self.text.push_str(&format!(" AND {condition}?{}", self.arguments.len()));
        }
    }

    fn values(&self) -> Vec<Value<'_>> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            values.push(match argument {
                Owned::Int(number) => Value::Int(*number),
                Owned::Text(text) => Value::Text(text),
            });
        }
        values
    }
}

/// A text to be found anywhere, with the signs that mean something else made plain.
fn like(text: &str) -> String {
    let plain = text.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{plain}%")
}

/// A page of records, newest first.
pub(crate) fn page(sql: &mut dyn Sql, tenant: &str, query: &AuditQuery) -> Result<AuditPage, Fault> {
    let limit = query.limit.clamp(1, MOST);
    let conditions = Conditions::of(tenant, query);
    let question = format!(
        "SELECT e.seq, e.started_at, a.body FROM tool_executions e JOIN audit_log a ON a.seq = e.seq \
         WHERE {} ORDER BY e.started_at DESC, e.seq DESC LIMIT {}",
        conditions.text,
        limit + 1
    );
    let rows = sql.query(&question, &conditions.values())?;
    let more = rows.len() > limit;
    let mut page = AuditPage::default();
    for mut row in rows.into_iter().take(limit) {
        let key = PageKey { seq: row.int(0)?, at: row.int(1)? };
        page.next = Some(key);
        if let Some(record) = record_of(row.opt_text(2)?)? {
            page.records.push((key.seq, record));
        }
    }
    page.next = page.next.filter(|_| more);
    Ok(page)
}

fn record_of(body: Option<String>) -> Result<Option<AuditRecord>, Fault> {
    let Some(body) = body else { return Ok(None) };
    Ok(match record::read(&body)? {
        Read::Call(record) => Some(*record),
        Read::Happening(_) => None,
    })
}

/// One call: the newest of that id.
pub(crate) fn run(
    sql: &mut dyn Sql,
    tenant: &str,
    id: ExecutionId,
    now: i64,
) -> Result<Option<StoredRun>, Fault> {
    let row = sql.query_one(
        "SELECT a.body, r.input, r.result FROM tool_executions e JOIN audit_log a ON a.seq = e.seq \
         LEFT JOIN call_results r ON r.seq = e.seq AND (r.keep_until IS NULL OR r.keep_until >= ?3) \
         WHERE e.execution_id = ?1 AND e.tenant = ?2 \
         ORDER BY e.seq DESC LIMIT 1",
        &[Value::Text(&id.to_string()), Value::Text(tenant), Value::Int(now)],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let Some(record) = record_of(row.opt_text(0)?)? else { return Ok(None) };
    let arguments = row.opt_text(1)?.map(Arguments::from_text);
    let result = row.opt_blob(2)?.map(|parts| record::result(&record, &parts)).transpose()?.map(Arc::new);
    Ok(Some(StoredRun { record, arguments, result }))
}

/// Numbers by tool, over the newest calls of each.
pub(crate) fn statistics(
    sql: &mut dyn Sql,
    tenant: &str,
    query: &AuditQuery,
) -> Result<Vec<ToolStatistics>, Fault> {
    let conditions = Conditions::of(tenant, &AuditQuery { after: None, text: None, ..query.clone() });
    let values = conditions.values();
    let counts = sql.query(
        &format!(
            "SELECT e.tool_name, COUNT(*), SUM(CASE WHEN e.status = 0 THEN 1 ELSE 0 END) FROM tool_executions e \
             WHERE {} GROUP BY e.tool_name ORDER BY e.tool_name",
            conditions.text
        ),
        &values,
    )?;
    let mut numbers = Vec::with_capacity(counts.len());
    for mut row in counts {
        let tool = row.text(0)?;
        let (count, succeeded) = (row.int(1)?, number(&mut row, 2)?);
        let place = values.len() + 1;
        let mut with_tool = values.clone();
        with_tool.push(Value::Text(&tool));
        let rows = sql.query(
            &format!(
                "SELECT e.status, e.duration_ms FROM tool_executions e WHERE {} AND e.tool_name = ?{place} \
                 ORDER BY e.started_at DESC, e.seq DESC LIMIT {SAMPLE}",
                conditions.text
            ),
            &with_tool,
        )?;
        let mut calls = Vec::with_capacity(rows.len());
        for mut row in rows {
            calls.push((row.int(0)? == 0, row.real(1)?));
        }
        numbers.push(ToolStatistics {
            count: u64::try_from(count).unwrap_or(0),
            succeeded,
            ..ToolStatistics::of(tool, calls)
        });
    }
    Ok(numbers)
}

/// A sum, which some databases give as text because it may be larger than any number.
fn number(row: &mut Row, place: usize) -> Result<u64, Fault> {
    Ok(row.opt_int(place)?.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}
