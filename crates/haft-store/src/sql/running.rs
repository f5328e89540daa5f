//! Output on its way: what calls with side effects have put out so far, so that a crash does not lose it.
//!
//! A tool that puts something out never waits. What comes together until the writer gets to it is written as one piece;
//! as long as one waits there, more is only added to it. So a call that ends soon writes nothing, and one that prints a
//! lot writes a piece with each commit.

use super::{
    outputs,
    store::Inner,
    value::{Fault, Value},
    work::Work,
};
use haft_core::{ExecutionId, OutputHandle, port::RunningOutput};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Bytes that may wait to be written. Beyond it the oldest of them go: the disk is slower than the tool.
const WAITING: usize = 4 << 20;

/// Calls of this process that may have something in the table.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashSet<ExecutionId>>);

impl Calls {
    fn ids(&self) -> MutexGuard<'_, HashSet<ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may; from now on it does not, because its outcome lets go of that.
    pub(crate) fn take(&self, id: ExecutionId) -> bool {
        let mut ids = self.ids();
        !ids.is_empty() && ids.remove(&id)
    }
}

/// What waits to be written.
#[derive(Default)]
struct Pending {
    /// Where it begins in the output.
    offset: u64,
    bytes: Vec<u8>,
    /// A job that writes it waits at the writer.
    is_queued: bool,
}

/// A piece of output, and where it begins.
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
}

/// One call's output, as the engine sees it.
pub(crate) struct Running {
    id: ExecutionId,
    limit: u64,
    /// Not held: a call that hangs does not keep the store open.
    store: Weak<Inner>,
    pending: Arc<Mutex<Pending>>,
}

impl Running {
    pub(crate) fn new(id: ExecutionId, limit: u64, store: &Arc<Inner>) -> Self {
        store.running.ids().insert(id);
        Running { id, limit, store: Arc::downgrade(store), pending: Arc::default() }
    }
}

impl RunningOutput for Running {
    fn put(&mut self, bytes: &[u8]) {
        let mut pending = lock(&self.pending);
        pending.bytes.extend_from_slice(bytes);
        let over = pending.bytes.len().saturating_sub(WAITING);
        pending.bytes.drain(..over);
        pending.offset += over as u64;
        if std::mem::replace(&mut pending.is_queued, true) {
            return;
        }
        drop(pending);
        let Some(store) = self.store.upgrade() else { return };
        let (id, limit) = (self.id, self.limit);
        let (calls, pending) = (Arc::clone(&store.running), Arc::clone(&self.pending));
        let mut piece = None;
        store.writer.add("running", move |work| {
            // A second time only where the transaction came to nothing.
            let piece = piece.get_or_insert_with(|| take(&pending));
            // Its outcome stands behind this at the writer, and has all of it.
            let is_over = !calls.ids().contains(&id);
            if is_over { Ok(()) } else { write(work, &id.to_string(), limit, piece) }
        });
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(pending: &Mutex<Pending>) -> Piece {
    let mut pending = lock(pending);
    pending.is_queued = false;
    let piece = Piece { offset: pending.offset, bytes: std::mem::take(&mut pending.bytes) };
    pending.offset += piece.bytes.len() as u64;
    piece
}

fn write(work: &mut Work<'_>, id: &str, limit: u64, piece: &Piece) -> Result<(), Fault> {
    let number = |bytes: u64| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
    if piece.offset == 0 {
        // Of a try that failed before.
        forget(work, id)?;
    }
    work.sql.execute(
        "INSERT INTO running_output (execution_id, byte_offset, data) VALUES (?1, ?2, ?3)",
        &[Value::Text(id), number(piece.offset), Value::Blob(&piece.bytes)],
    )?;
    // As in memory: the first half of what is kept stays, and the last; the pieces between go.
    let end = piece.offset + piece.bytes.len() as u64;
    if end > limit {
        work.sql.execute(
            "DELETE FROM running_output WHERE execution_id = ?1 AND byte_offset >= ?2 \
             AND byte_offset + length(data) <= ?3",
            &[Value::Text(id), number(limit / 2), number(end.saturating_sub(limit / 2))],
        )?;
    }
    Ok(())
}

/// Lets go of what a call put out while it ran.
pub(crate) fn forget(work: &mut Work<'_>, id: &str) -> Result<(), Fault> {
    work.sql.execute("DELETE FROM running_output WHERE execution_id = ?1", &[Value::Text(id)]).map(drop)
}

/// Makes an output of what a call had put out when its process was gone; `None` where that was nothing.
pub(crate) fn rescue(
    work: &mut Work<'_>,
    tenant: &str,
    id: &str,
) -> Result<Option<(OutputHandle, u64)>, Fault> {
    let rows = work.sql.query(
        "SELECT byte_offset, data FROM running_output WHERE execution_id = ?1 ORDER BY byte_offset",
        &[Value::Text(id)],
    )?;
    let mut whole: Vec<u8> = Vec::new();
    let mut next = 0;
    for mut row in rows {
        let (offset, data) = (u64::try_from(row.int(0)?).unwrap_or(0), row.blob(1)?);
        if offset > next {
            whole.extend_from_slice(format!("\n... [{} bytes not kept]\n", offset - next).as_bytes());
        }
        next = offset + data.len() as u64;
        whole.extend_from_slice(&data);
    }
    // What cannot be packed must not keep the store from opening: it is evidence, and not the record.
    let (false, Ok(packed)) = (whole.is_empty(), outputs::pack(&whole)) else { return Ok(None) };
    let handle = outputs::keep(work, tenant, &packed)?;
    forget(work, id)?;
    Ok(Some((handle, next)))
}
