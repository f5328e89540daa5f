//! Retention: records go from the database to archive files, and what stays still verifies.

use super::{
    audit::{Bad, Verified},
    chain::{self, Bytes32},
    open,
    record::{self, Happening, Read},
    store::DurableStore,
    value::{Fault, FaultKind, Sql, Value},
    work::{Work, bytes32},
};
use crate::private_file;
use haft_core::{Tier, port::StoreError};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Records in one archive at most: bounds what is held in memory.
const PIECE: i64 = 20_000;

/// Which records are archived. Of several rules that fit a record the first decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionRule {
    /// Only calls of this licence tier.
    pub tier: Option<Tier>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// How long they stay in the database; `None` is for ever.
    pub keep: Option<Duration>,
}

/// What was archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// The file.
    pub path: PathBuf,
    /// Records in it.
    pub records: u64,
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Heading {
    haft_audit_archive: u32,
    chain: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    seq: i64,
    previous: String,
    mac: String,
    body: String,
}

impl DurableStore {
    /// Moves records that the rules no longer keep into a file of the folder `archives`, at most 20,000 at once: call
    /// it until it gives `None`. The seals of what is left still verify, and so does the file.
    pub async fn archive(&self, rules: &[RetentionRule]) -> Result<Option<Archived>, StoreError> {
        let now = self.0.options.clock.now().as_microsecond();
        let rules = rules.to_vec();
        let lines = self.0.read(move |sql| select_all(sql, &rules, now)).await?;
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Ok(None) };
        let (first, last, count) = (first.seq, last.seq, lines.len() as u64);
        let name = format!("audit-{first}-{last}-{now}.jsonl.zst");
        let path = self.0.folder.join("archives").join(name);
        let heading = Heading { haft_audit_archive: 1, chain: self.0.chain_id.clone() };
        let target = path.clone();
        // On the disk before anything is taken away.
        let lines =
            self.0.readers.compute(move || write(&target, &heading, &lines).map(|()| lines)).await??;
        let taken: Vec<(i64, Bytes32)> =
            lines.iter().map(|line| (line.seq, chain::digest(line.body.as_bytes()))).collect();
        self.0.write("archive", move |work| take_away(work, &taken)).await?;
        Ok(Some(Archived { path, records: count, first, last }))
    }

    /// Checks an archive file against the seals in it, with the first key of the chain.
    pub fn verify_archive(&self, path: &Path, key_file: Option<&Path>) -> Result<Verified, StoreError> {
        let usual = open::key_file(&self.0.options, &self.0.folder);
        let key = open::read_key(key_file.unwrap_or(&usual))?;
        Ok(check(path, key)?)
    }
}

/// Goes on until there is something, or nothing left: what one rule keeps must not hide what another lets go.
fn select_all(sql: &mut dyn Sql, rules: &[RetentionRule], now: i64) -> Result<Vec<Line>, Fault> {
    let mut after = 0;
    loop {
        let (lines, last) = select(sql, rules, now, after)?;
        match last {
            Some(last) if lines.is_empty() => after = last,
            Some(_) | None => return Ok(lines),
        }
    }
}

/// The lines among the next records that the rules let go, and the last record that was looked at.
fn select(
    sql: &mut dyn Sql,
    rules: &[RetentionRule],
    now: i64,
    after: i64,
) -> Result<(Vec<Line>, Option<i64>), Fault> {
    let age = |keep: Duration| i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
    let Some(youngest) = rules.iter().filter_map(|rule| rule.keep).map(age).min() else {
        return Ok((Vec::new(), None));
    };
    let rows = sql.query(
        "SELECT a.seq, a.body, a.mac, p.mac, e.started_at FROM audit_log a \
         LEFT JOIN audit_log p ON p.seq = a.seq - 1 LEFT JOIN tool_executions e ON e.seq = a.seq \
         WHERE a.body IS NOT NULL AND (e.started_at IS NULL OR e.started_at < ?1) \
         AND a.seq <= (SELECT projected FROM audit_head) AND a.seq > ?3 ORDER BY a.seq LIMIT ?2",
        &[Value::Int(now.saturating_sub(youngest)), Value::Int(PIECE), Value::Int(after)],
    )?;
    let anchor = sql.query_one("SELECT anchor_mac FROM audit_head", &[])?;
    let anchor = anchor.map_or(Ok(Vec::new()), |mut row| row.blob(0))?;
    let mut lines = Vec::new();
    let mut last = None;
    for mut row in rows {
        let (seq, body) = (row.int(0)?, row.text(1)?);
        last = Some(seq);
        let mac = bytes32(row.blob(2)?)?;
        // Before the first that is there stands the anchor.
        let previous = bytes32(row.opt_blob(3)?.unwrap_or_else(|| anchor.clone()))?;
        let (at, tier, tool) = match record::read(&body)? {
            Read::Call(record) => {
                (record.metadata.started_at.as_microsecond(), Some(record.context.tier), Some(record.tool))
            }
            Read::Happening(happening) => (happening.at(), None, None),
        };
        let fits = |rule: &&RetentionRule| {
            rule.tier.is_none_or(|wanted| tier == Some(wanted))
                && rule.tool.as_deref().is_none_or(|wanted| tool.as_deref() == Some(wanted))
        };
        let keep = rules.iter().find(fits).and_then(|rule| rule.keep);
        if keep.is_some_and(|keep| at < now.saturating_sub(age(keep))) {
            lines.push(Line { seq, previous: chain::hex(&previous), mac: chain::hex(&mac), body });
        }
    }
    Ok((lines, last))
}

fn write(path: &Path, heading: &Heading, lines: &[Line]) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError(format!("{} cannot be written: {error}", path.display()));
    if let Some(folder) = path.parent() {
        private_file::create_folder(folder).map_err(failed)?;
    }
    let mut packed = zstd::stream::Encoder::new(Vec::new(), 9).map_err(failed)?;
    let heading = serde_json::to_string(heading).map_err(|error| failed(error.into()))?;
    writeln!(packed, "{heading}").map_err(failed)?;
    for line in lines {
        let line = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        writeln!(packed, "{line}").map_err(failed)?;
    }
    private_file::replace(path, &packed.finish().map_err(failed)?).map_err(failed)
}

/// Digests take the place of texts; what is archived from the beginning on is cut off; and that is put on record.
fn take_away(work: &mut Work<'_>, taken: &[(i64, Bytes32)]) -> Result<(), Fault> {
    // Before anything is taken away: the record that names them may be among what is.
    let mut emptied = named_before(work)?;
    for (seq, digest) in taken {
        let number = Value::Int(*seq);
        let changed = work.sql.execute(
            "UPDATE audit_log SET body = NULL, digest = ?2 WHERE seq = ?1 AND body IS NOT NULL",
            &[number, Value::Blob(digest)],
        )?;
        // A text that somebody else took away meanwhile is not named: that is for `verify` to find.
        if changed == 1 {
            emptied.push((*seq, *seq));
        }
        for statement in [
            "DELETE FROM call_results WHERE seq = ?1",
            "DELETE FROM sandbox_security_events WHERE seq = ?1",
            "DELETE FROM tool_executions WHERE seq = ?1",
        ] {
            work.sql.execute(statement, &[number])?;
        }
    }
    let row = work.sql.query_one("SELECT MIN(seq) FROM audit_log WHERE body IS NOT NULL", &[])?;
    let first_left = row.map_or(Ok(None), |mut row| row.opt_int(0))?;
    let head = work.head()?;
    // The last record always stays: the next one is tied to it.
    let wanted = first_left.unwrap_or(head.link.seq).min(head.link.seq) - 1;
    // Only what retention emptied is cut off: a text that is gone for another reason stays as evidence.
    let through = runs_through(&emptied, head.anchor_seq).min(wanted);
    if through > head.anchor_seq {
        let row = work.sql.query_one("SELECT mac FROM audit_log WHERE seq = ?1", &[Value::Int(through)])?;
        let mut row =
            row.ok_or_else(|| Fault::new(FaultKind::Corrupt, format!("the record {through} is missing")))?;
        let mac = bytes32(row.blob(0)?)?;
        work.sql.execute("DELETE FROM audit_log WHERE seq <= ?1", &[Value::Int(through)])?;
        let head = work.head_mut()?;
        (head.anchor_seq, head.anchor_mac) = (through, mac);
    }
    let at = work.now();
    let head = work.head()?;
    let happening = Happening::Retention {
        form: Happening::FORM,
        at,
        archived: taken.len() as u64,
        through: head.anchor_seq,
        mac: chain::hex(&head.anchor_mac),
        emptied: merged(emptied, head.anchor_seq),
    };
    work.append(&serde_json::to_string(&happening)?).map(drop)
}

/// The runs that the latest record of retention names. What the table itself says counts for nothing: an attacker who
/// empties a row there must not have it sealed by the next retention.
fn named_before(work: &mut Work<'_>) -> Result<Vec<(i64, i64)>, Fault> {
    let row = work.sql.query_one(
        "SELECT body FROM audit_log WHERE substr(body, 1, 20) = '{\"event\":\"retention\"' ORDER BY seq DESC LIMIT 1",
        &[],
    )?;
    let Some(mut row) = row else { return Ok(Vec::new()) };
    match record::read(&row.text(0)?)? {
        Read::Happening(Happening::Retention { emptied, .. }) => Ok(emptied),
        Read::Happening(_) | Read::Call(_) => Ok(Vec::new()),
    }
}

/// How far the runs reach without a gap from the record after this one on.
fn runs_through(runs: &[(i64, i64)], after: i64) -> i64 {
    let mut runs = runs.to_vec();
    runs.sort_unstable();
    runs.iter().fold(after, |reached, &(first, last)| match first <= reached + 1 {
        true => reached.max(last),
        false => reached,
    })
}

/// The runs after that record, in order, each as long as it can be.
fn merged(mut runs: Vec<(i64, i64)>, after: i64) -> Vec<(i64, i64)> {
    runs.sort_unstable();
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (first, last) in runs.into_iter().filter(|(_, last)| *last > after) {
        let first = first.max(after + 1);
        match all.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = (*end).max(last),
            Some(_) | None => all.push((first, last)),
        }
    }
    all
}

fn check(path: &Path, first_key: Bytes32) -> Result<Verified, Fault> {
    let unreadable =
        |error: std::io::Error| Fault::refused(format!("{} cannot be read: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    let mut lines = BufReader::new(zstd::stream::Decoder::new(file).map_err(unreadable)?).lines();
    let heading = lines.next().transpose().map_err(unreadable)?.unwrap_or_default();
    let Heading { haft_audit_archive: 1, .. } = serde_json::from_str(&heading)? else {
        return Err(Fault::refused(format!("{} is not an archive that this haft knows", path.display())));
    };
    let (mut key, mut at) = (first_key, 1);
    let mut verified = Verified { first: 0, last: 0, archived: 0, bad: None };
    for line in lines {
        let line: Line = serde_json::from_str(&line.map_err(unreadable)?)?;
        if line.seq < at {
            verified.bad = Some(Bad::new(line.seq, "it stands in the wrong place"));
            return Ok(verified);
        }
        while at < line.seq {
            key = chain::next_key(&key);
            at += 1;
        }
        let digest = chain::digest(line.body.as_bytes());
        let sealed =
            chain::from_hex(&line.previous).map(|previous| chain::seal(&key, line.seq, &previous, &digest));
        if sealed.is_none() || sealed != chain::from_hex(&line.mac) {
            verified.bad = Some(Bad::new(line.seq, "its text, its place or its seal was changed"));
            return Ok(verified);
        }
        if verified.first == 0 {
            verified.first = line.seq;
        }
        verified.last = line.seq;
        verified.archived += 1;
    }
    Ok(verified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_put_together_and_begin_after_the_cut() {
        assert_eq!(merged(vec![(5, 5), (1, 1), (4, 4), (7, 9), (2, 2)], 1), [(2, 2), (4, 5), (7, 9)]);
        assert_eq!(merged(vec![(1, 4), (3, 9)], 2), [(3, 9)]);
        assert_eq!(merged(vec![(1, 2)], 2), []);
        assert_eq!(runs_through(&[(3, 3), (1, 2), (5, 9)], 0), 3);
        assert_eq!(runs_through(&[(5, 9)], 0), 0);
        assert_eq!(runs_through(&[(1, 9)], 4), 9);
    }
}
