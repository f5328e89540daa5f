//! A record, for programs and for people.

use super::table::{Side, table};
use crate::{
    console::{BAD, GOOD, UNSURE},
    show, words,
};
use haft::{
    Status,
    port::{AuditPage, AuditRecord},
};
use haft_core::text::one_line;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A record as a program gets it.
pub(super) fn to_json(seq: i64, record: &AuditRecord) -> Value {
    let (facts, context) = (&record.metadata, &record.context);
    let hashes = record.hashes.as_deref();
    json!({
        "seq": seq,
        "executionId": facts.execution_id,
        "batchId": facts.batch_id,
        "batchIndex": facts.batch_index,
        "callId": record.call_id,
        "tool": record.tool,
        "status": record.status,
        "code": record.code,
        "rule": record.rule,
        "approval": record.approval,
        "tenant": context.tenant,
        "agent": context.agent,
        "user": context.user,
        "session": context.session,
        "conversation": context.conversation,
        "startedAt": facts.started_at,
        "durationMs": millis(facts.duration),
        "inputSize": record.input_size,
        "inputSha256": hashes.map(|hashes| &hashes.input),
        "outputSize": facts.output_size,
        "outputSha256": hashes.and_then(|hashes| hashes.output.as_ref()),
        "metadata": facts,
        "diagnostics": record.diagnostics,
    })
}

/// A page as a program gets it.
pub(super) fn page_json(what: &str, page: &AuditPage) -> Value {
    let records: Vec<Value> = page.records.iter().map(|(seq, record)| to_json(*seq, record)).collect();
    json!({ what: records, "next": page.next.map(|key| key.to_string()) })
}

pub(super) fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// ✓ for what succeeded, • for what never ran or was stopped, ✗ for the rest.
pub(super) fn mark(status: Status) -> String {
    match status {
        Status::Success => format!("{GOOD}✓{GOOD:#}"),
        Status::Cancelled | Status::RequiresConfirmation => format!("{UNSURE}•{UNSURE:#}"),
        Status::Failed
        | Status::Timeout
        | Status::SandboxError
        | Status::PermissionDenied
        | Status::ValidationError => format!("{BAD}✗{BAD:#}"),
    }
}

/// The moment as a column has it: the time where it was today, else the day, too. In UTC.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> String {
    let text = at.to_string();
    let today = now.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    let time = time.get(..8).unwrap_or(time);
    match today.starts_with(day) {
        true => time.to_owned(),
        false => format!("{} {}", day.get(5..).unwrap_or(day), time.get(..5).unwrap_or(time)),
    }
}

/// A page as a table.
pub(super) fn page_table(page: &AuditPage, now: Timestamp, width: Option<usize>) -> String {
    let heading =
        [("execution", Side::Left), ("UTC", Side::Left), ("took", Side::Right), ("tool", Side::Left)];
    let rows: Vec<Vec<String>> = page
        .records
        .iter()
        .map(|(_, record)| {
            // In a batch or a flow the caller's own name for a call tells it from the others.
            let id = if record.metadata.batch_id.is_some() { &*record.call_id } else { "" };
            let tool = show::label(&record.tool, id);
            let what = match (record.code, record.status) {
                (None, _) => tool,
                (Some(code), _) => format!("{tool} {code}"),
            };
            vec![
                record.metadata.execution_id.to_string(),
                moment(record.metadata.started_at, now),
                words::duration(record.metadata.duration),
                what,
            ]
        })
        .collect();
    // The mark stands before each line, so that its colour has no part in the widths.
    let text = table(&heading, &rows, width.map(|width| width.saturating_sub(2)));
    let mut out = String::new();
    for (place, line) in text.lines().enumerate() {
        match place.checked_sub(1).and_then(|place| page.records.get(place)) {
            None => out.push_str(&format!("  {line}\n")),
            Some((_, record)) => out.push_str(&format!("{} {line}\n", mark(record.status))),
        }
    }
    out
}

/// Text of others, on one line.
pub(super) fn line(text: &str, most: usize) -> String {
    one_line(text, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_a_day_where_it_was_not_today() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let shown = |at: &str| moment(at.parse().unwrap(), now);
        assert_eq!(shown("2026-03-01T08:09:10.123Z"), "08:09:10");
        assert_eq!(shown("2026-02-28T08:09:10Z"), "02-28 08:09");
    }
}
