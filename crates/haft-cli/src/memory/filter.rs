//! What was typed, as a question.

use super::args::{Filter, Page};
use crate::failure::Failure;
use haft::{
    BatchId, ErrorCode, ExecutionId, Status, TaskKey, TaskState,
    assembly::age,
    port::{AuditQuery, PageKey},
};
use haft_core::suggest;
use jiff::{
    Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};

impl Filter {
    /// The question, for that part of the answer.
    pub(super) fn query(&self, page: Option<&Page>) -> AuditQuery {
        AuditQuery {
            from: self.since,
            until: self.until,
            tool: self.tool.clone(),
            agent: self.agent.clone(),
            batch: self.batch,
            status: self.status,
            code: self.code,
            text: self.text.clone(),
            after: page.and_then(|page| page.after),
            limit: page.map_or(1000, |page| page.limit),
        }
    }
}

/// A way to name something that ran: calls and batches have ids of the same form.
#[derive(Clone, Copy)]
pub(crate) struct Id {
    pub(crate) call: ExecutionId,
    pub(super) batch: BatchId,
}

pub(super) fn id(typed: &str) -> Result<Id, Failure> {
    let call: ExecutionId = typed.trim().parse().map_err(|_| Failure::NotAnId { id: typed.to_owned() })?;
    Ok(Id { call, batch: BatchId::from_uuid(call.as_uuid()) })
}

/// `success`, `PermissionDenied`, `permission-denied`.
pub(super) fn status(typed: &str) -> Result<Status, String> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = plain(typed);
    Status::ALL.into_iter().find(|status| plain(status.as_str()) == wanted).ok_or_else(|| {
        let names: Vec<String> = Status::ALL.iter().map(|status| typed_form(*status)).collect();
        let near = suggest::nearest(&wanted, names.iter().map(String::as_str))
            .map(|near| format!("; did you mean {near}?"))
            .unwrap_or_default();
        format!("use one of {}{near}", names.join(", "))
    })
}

/// `PermissionDenied` as it is typed: `permission-denied`.
fn typed_form(status: Status) -> String {
    let mut out = String::new();
    for c in status.as_str().chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// `running`, `awaiting-approval`.
pub(super) fn task_state(typed: &str) -> Result<TaskState, String> {
    let wanted = typed.to_lowercase().replace('-', "_");
    TaskState::ALL.into_iter().find(|state| state.as_str() == wanted).ok_or_else(|| {
        let names: Vec<String> =
            TaskState::ALL.iter().map(|state| state.as_str().replace('_', "-")).collect();
        let near = suggest::nearest(&wanted.replace('_', "-"), names.iter().map(String::as_str))
            .map(|near| format!("; did you mean {near}?"))
            .unwrap_or_default();
        format!("use one of {}{near}", names.join(", "))
    })
}

pub(super) fn task_key(typed: &str) -> Result<TaskKey, String> {
    typed.parse().map_err(|error: haft::port::NotAPageKey| error.to_string())
}

pub(super) fn code(typed: &str) -> Result<ErrorCode, String> {
    let wanted = typed.to_uppercase().replace('-', "_");
    wanted.parse().map_err(|_| {
        let known = ErrorCode::ALL.iter().map(|code| code.as_str());
        match suggest::nearest(&wanted, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "write it like TIMEOUT or TOOL_DENIED".to_owned(),
        }
    })
}

pub(super) fn batch(typed: &str) -> Result<BatchId, String> {
    typed.parse().map_err(|_| "a batch has an id like 0197f3a2-1c5b-7def-8a90-123456789abc".to_owned())
}

pub(super) fn page_key(typed: &str) -> Result<PageKey, String> {
    typed.parse().map_err(|_| "use the key that stood below the page before".to_owned())
}

pub(super) fn limit(typed: &str) -> Result<usize, String> {
    typed
        .parse()
        .ok()
        .filter(|limit| (1..=1000).contains(limit))
        .ok_or_else(|| "write a number from 1 to 1000".to_owned())
}

/// A time ago (`2h`), a day, or a moment. Without a zone it is UTC.
pub(super) fn moment(typed: &str) -> Result<Timestamp, String> {
    moment_at(typed, Timestamp::now())
}

fn moment_at(typed: &str, now: Timestamp) -> Result<Timestamp, String> {
    let wrong = || "write it like 2h, 3d, 2026-01-31 or 2026-01-31T12:00:00Z".to_owned();
    if let Some(ago) = age(typed) {
        return now.checked_sub(ago).map_err(|_| wrong());
    }
    if let Ok(moment) = typed.parse::<Timestamp>() {
        return Ok(moment);
    }
    let in_utc = |civil: DateTime| civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
    let civil = typed.parse::<DateTime>().or_else(|_| typed.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
    civil.and_then(in_utc).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_typed_in_any_form() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (typed, meant) in [
            ("2h", "2026-03-01T10:00:00Z"),
            ("3d", "2026-02-26T12:00:00Z"),
            ("PT30M", "2026-03-01T11:30:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T08:15:00", "2026-01-31T08:15:00Z"),
            ("2026-01-31T08:15:00+02:00", "2026-01-31T06:15:00Z"),
        ] {
            assert_eq!(moment_at(typed, now).unwrap(), meant.parse().unwrap(), "{typed}");
        }
        for wrong in ["", "yesterday", "2026-13-01", "2"] {
            assert!(moment_at(wrong, now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn statuses_and_codes_are_found_or_suggested() {
        assert_eq!(status("permission-denied"), Ok(Status::PermissionDenied));
        assert_eq!(status("Success"), Ok(Status::Success));
        assert!(status("sucess").unwrap_err().contains("did you mean success?"));
        assert_eq!(code("timeout"), Ok(ErrorCode::Timeout));
        assert!(code("tool_denid").unwrap_err().contains("TOOL_DENIED"));
        assert!(limit("0").is_err() && limit("1001").is_err() && limit("7") == Ok(7));
    }
}
