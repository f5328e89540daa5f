//! Outputs behind handles: cut into pieces, compressed, kept once for each tenant, let go by age and size.

use super::{
    chain::{self, Bytes32},
    value::{Fault, FaultKind, Sql, Value},
    work::Work,
};
use crate::lines::Lines;
use haft_core::{
    OutputHandle,
    port::{FoundLines, OutputRange, OutputSearch, StoreError, StoredPart},
};

/// Bytes of an output in one piece. A range is read without unpacking the rest.
const CHUNK: usize = 256 << 10;
/// Small enough to be quick on one core, and still a fifth of the size for what builds print.
const LEVEL: i32 = 3;
/// The most bytes that one answer holds.
const MOST: u64 = 64 << 20;

/// An output that is ready to be written: the slow part is done.
pub(crate) struct Packed {
    handle: OutputHandle,
    digest: Bytes32,
    size: u64,
    chunks: Vec<(i64, Vec<u8>)>,
}

/// Cuts and compresses. Slow, so never on the writer's thread.
pub(crate) fn pack(bytes: &[u8]) -> Result<Packed, StoreError> {
    let mut line = 0;
    let mut chunks = Vec::with_capacity(bytes.len().div_ceil(CHUNK));
    for piece in bytes.chunks(CHUNK) {
        let packed = zstd::bulk::compress(piece, LEVEL)
            .map_err(|error| StoreError(format!("an output could not be compressed: {error}")))?;
        chunks.push((line, packed));
        line += i64::try_from(lines_in(piece)).unwrap_or(i64::MAX);
    }
    Ok(Packed {
        handle: OutputHandle::random(),
        digest: chain::digest(bytes),
        size: bytes.len() as u64,
        chunks,
    })
}

fn lines_in(piece: &[u8]) -> usize {
    piece.iter().filter(|byte| **byte == b'\n').count()
}

/// Writes an output, or finds that this tenant has it already.
pub(crate) fn keep(work: &mut Work<'_>, tenant: &str, packed: &Packed) -> Result<OutputHandle, Fault> {
    let now = work.now();
    let digest = Value::Blob(&packed.digest);
    let found = work.sql.query_one(
        "SELECT body_id FROM output_bodies WHERE tenant = ?1 AND digest = ?2",
        &[Value::Text(tenant), digest],
    )?;
    let body = match found {
        Some(mut row) => row.int(0)?,
        None => write_body(work, tenant, packed)?,
    };
    work.sql.execute(
        "INSERT INTO outputs (handle, tenant, body_id, kept_at) VALUES (?1, ?2, ?3, ?4)",
        &[Value::Text(packed.handle.as_str()), Value::Text(tenant), Value::Int(body), Value::Int(now)],
    )?;
    Ok(packed.handle.clone())
}

fn write_body(work: &mut Work<'_>, tenant: &str, packed: &Packed) -> Result<i64, Fault> {
    let stored: usize = packed.chunks.iter().map(|(_, data)| data.len()).sum();
    let number = |size: u64| Value::Int(i64::try_from(size).unwrap_or(i64::MAX));
    let row = work.sql.query_one(
        "INSERT INTO output_bodies (tenant, digest, size, stored_size) VALUES (?1, ?2, ?3, ?4) RETURNING body_id",
        &[Value::Text(tenant), Value::Blob(&packed.digest), number(packed.size), number(stored as u64)],
    )?;
    let mut row = row.ok_or_else(|| Fault::new(FaultKind::Other, "the database gave no id"))?;
    let body = row.int(0)?;
    for ((first_line, data), chunk) in packed.chunks.iter().zip(0_i64..) {
        work.sql.execute(
            "INSERT INTO output_chunks (body_id, chunk, first_line, data) VALUES (?1, ?2, ?3, ?4)",
            &[Value::Int(body), Value::Int(chunk), Value::Int(*first_line), Value::Blob(data)],
        )?;
    }
    let limit = work.options.keep.output_bytes;
    shrink(work, limit, Some(body))?;
    Ok(body)
}

/// Lets the oldest outputs go until they fit; `newest` stays however large it is, because somebody is about to be given
/// its handle. Says how many went.
pub(crate) fn shrink(work: &mut Work<'_>, limit: u64, newest: Option<i64>) -> Result<u64, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut gone = 0;
    loop {
        let row = work
            .sql
            .query_one("SELECT CAST(COALESCE(SUM(stored_size), 0) AS BIGINT) FROM output_bodies", &[])?;
        if row.map_or(Ok(0), |mut row| row.int(0))? <= limit {
            return Ok(gone);
        }
        let oldest = work.sql.query(
            "SELECT body_id FROM output_bodies WHERE body_id <> ?1 ORDER BY body_id LIMIT 16",
            &[Value::Int(newest.unwrap_or(-1))],
        )?;
        if oldest.is_empty() {
            return Ok(gone);
        }
        for mut row in oldest {
            forget_body(work, row.int(0)?)?;
            gone += 1;
        }
    }
}

fn forget_body(work: &mut Work<'_>, body: i64) -> Result<(), Fault> {
    for statement in [
        "DELETE FROM outputs WHERE body_id = ?1",
        "DELETE FROM output_chunks WHERE body_id = ?1",
        "DELETE FROM output_bodies WHERE body_id = ?1",
    ] {
        work.sql.execute(statement, &[Value::Int(body)])?;
    }
    Ok(())
}

/// Lets handles go that are older, and bodies that no handle leads to. Says how many bodies went.
pub(crate) fn expire(work: &mut Work<'_>, before: i64) -> Result<u64, Fault> {
    work.sql.execute("DELETE FROM outputs WHERE kept_at < ?1", &[Value::Int(before)])?;
    let rows = work.sql.query(
        "SELECT body_id FROM output_bodies b WHERE NOT EXISTS (SELECT 1 FROM outputs o WHERE o.body_id = b.body_id)",
        &[],
    )?;
    let mut gone = 0;
    for mut row in rows {
        forget_body(work, row.int(0)?)?;
        gone += 1;
    }
    Ok(gone)
}

/// Where an output is, and how long.
fn find(sql: &mut dyn Sql, tenant: &str, handle: &OutputHandle) -> Result<Option<(i64, u64)>, Fault> {
    let row = sql.query_one(
        "SELECT b.body_id, b.size FROM outputs o JOIN output_bodies b ON b.body_id = o.body_id \
         WHERE o.handle = ?1 AND o.tenant = ?2",
        &[Value::Text(handle.as_str()), Value::Text(tenant)],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    Ok(Some((row.int(0)?, u64::try_from(row.int(1)?).unwrap_or(0))))
}

fn chunk(sql: &mut dyn Sql, body: i64, chunk: u64) -> Result<Option<Vec<u8>>, Fault> {
    let row = sql.query_one(
        "SELECT data FROM output_chunks WHERE body_id = ?1 AND chunk = ?2",
        &[Value::Int(body), Value::Int(i64::try_from(chunk).unwrap_or(i64::MAX))],
    )?;
    let Some(mut row) = row else { return Ok(None) };
    let bytes = zstd::bulk::decompress(&row.blob(0)?, CHUNK)
        .map_err(|error| Fault::new(FaultKind::Corrupt, format!("an output cannot be read: {error}")))?;
    Ok(Some(bytes))
}

/// A range of bytes.
pub(crate) fn read(
    sql: &mut dyn Sql,
    tenant: &str,
    handle: &OutputHandle,
    range: OutputRange,
) -> Result<Option<StoredPart>, Fault> {
    let Some((body, total)) = find(sql, tenant, handle)? else { return Ok(None) };
    let from = range.offset.min(total);
    let to = range.offset.saturating_add(range.length.min(MOST)).min(total);
    let mut part = Vec::new();
    let mut at = from;
    while at < to {
        let number = at / CHUNK as u64;
        let Some(bytes) = chunk(sql, body, number)? else { break };
        let begin = usize::try_from(at - number * CHUNK as u64).unwrap_or(usize::MAX).min(bytes.len());
        let wanted = usize::try_from(to - at).unwrap_or(usize::MAX);
        let end = begin.saturating_add(wanted).min(bytes.len());
        if begin == end {
            break;
        }
        part.extend_from_slice(&bytes[begin..end]);
        at += (end - begin) as u64;
    }
    Ok(Some((part, total)))
}

/// Lines, all or those that match.
pub(crate) fn search(
    sql: &mut dyn Sql,
    tenant: &str,
    handle: &OutputHandle,
    search: &OutputSearch,
) -> Result<Option<FoundLines>, Fault> {
    let Some((body, total)) = find(sql, tenant, handle)? else { return Ok(None) };
    let lines = Lines::new(search, total).map_err(Fault::refused)?;
    let from = search.from_line.max(1);
    // The last piece that begins before the wanted line. A line may begin in an earlier piece than it ends in.
    let row = sql.query_one(
        "SELECT MAX(chunk) FROM output_chunks WHERE body_id = ?1 AND (first_line < ?2 OR chunk = 0)",
        &[Value::Int(body), Value::Int(i64::try_from(from - 1).unwrap_or(i64::MAX))],
    )?;
    let first = row.map_or(Ok(None), |mut row| row.opt_int(0))?.unwrap_or(0);
    let row = sql.query_one(
        "SELECT first_line FROM output_chunks WHERE body_id = ?1 AND chunk = ?2",
        &[Value::Int(body), Value::Int(first)],
    )?;
    let line = row.map_or(Ok(0), |mut row| row.int(0))?;
    let mut lines = lines.at_line(u64::try_from(line).unwrap_or(0) + 1);
    let mut rest: Vec<u8> = Vec::new();
    let mut number = u64::try_from(first).unwrap_or(0);
    while let Some(bytes) = chunk(sql, body, number)? {
        number += 1;
        // Only what is new can hold a line end.
        let mut look_from = rest.len();
        rest.extend_from_slice(&bytes);
        let mut begin = 0;
        while let Some(end) = rest[look_from..].iter().position(|byte| *byte == b'\n') {
            let end = look_from + end;
            if lines.is_full(&rest[begin..end]) {
                return Ok(Some(lines.found));
            }
            (begin, look_from) = (end + 1, end + 1);
        }
        rest.drain(..begin);
    }
    if !rest.is_empty() {
        lines.is_full(&rest);
    }
    Ok(Some(lines.found))
}
