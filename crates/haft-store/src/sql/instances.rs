//! Which processes share the database, and which of them still live.

use super::{
    value::{Fault, Sql, Value},
    work::Work,
};

/// Tells whether the process of an instance still lives. Where that cannot be told, it does: better to wait with what
/// it left than to take something from a living process.
pub(crate) trait Lives: Send + Sync {
    fn lives(&self, sql: &mut dyn Sql, instance: &str) -> bool;
}

/// Puts this process on the list.
pub(crate) fn enter(work: &mut Work<'_>) -> Result<(), Fault> {
    let now = work.now();
    work.sql
        .execute(
            "INSERT INTO instances (instance_id, process_id, begun_at) VALUES (?1, ?2, ?3)",
            &[Value::Text(work.instance), Value::Int(i64::from(std::process::id())), Value::Int(now)],
        )
        .map(drop)
}

/// Takes this process off the list: everything that it did is recorded.
pub(crate) fn leave(work: &mut Work<'_>) -> Result<(), Fault> {
    let now = work.now();
    work.sql
        .execute(
            "UPDATE instances SET ended_at = ?2 WHERE instance_id = ?1 AND ended_at IS NULL",
            &[Value::Text(work.instance), Value::Int(now)],
        )
        .map(drop)
}

/// Instances whose process is gone, and which nobody has looked after yet.
pub(crate) fn dead(work: &mut Work<'_>) -> Result<Vec<String>, Fault> {
    let rows = work.sql.query(
        "SELECT instance_id FROM instances WHERE swept = 0 AND instance_id <> ?1",
        &[Value::Text(work.instance)],
    )?;
    let mut dead = Vec::new();
    for mut row in rows {
        let instance = row.text(0)?;
        if is_gone(work, &instance) {
            dead.push(instance);
        }
    }
    Ok(dead)
}

/// Whether an instance is another one, whose process is gone.
pub(crate) fn is_gone(work: &mut Work<'_>, instance: &str) -> bool {
    instance != work.instance && !work.lives.lives(work.sql, instance)
}
