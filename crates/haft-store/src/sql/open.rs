//! Opening: the layout, the look for damage, the first key, the list of processes.

use super::{
    chain::{self, Bytes32},
    instances, migrations,
    options::Options,
    recovery,
    value::{Fault, FaultKind, Sql, Value},
    work::Work,
};
use crate::private_file;
use sha2::{Digest as _, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Makes sure that the chain has a beginning; gives its id.
pub(crate) fn ensure_head(sql: &mut dyn Sql, key_file: &Path, now: i64) -> Result<String, Fault> {
    sql.begin()?;
    let done = head(sql, key_file, now).and_then(|chain| sql.commit().map(|()| chain));
    if done.is_err() {
        sql.roll_back();
    }
    done
}

fn head(sql: &mut dyn Sql, key_file: &Path, now: i64) -> Result<String, Fault> {
    if let Some(mut row) = sql.query_one("SELECT chain_id FROM audit_head", &[])? {
        return row.text(0);
    }
    if sql.query_one("SELECT 1 FROM audit_log LIMIT 1", &[])?.is_some() {
        // A new chain would begin before them, and `verify` would never come to them.
        return Err(Fault::refused(
            "the audit has records and no head: somebody removed it. Keep a copy of the database as evidence, and bring \
             back a backup",
        ));
    }
    let key = read_or_make_key(key_file)?;
    let chain_id = uuid::Uuid::new_v4().to_string();
    let mac = chain::genesis_mac(&chain_id);
    sql.execute(
        "INSERT INTO audit_head (only_one, chain_id, seq, mac, ratchet, projected, anchor_seq, anchor_mac) \
         VALUES (1, ?1, 0, ?2, ?3, 0, 0, ?2)",
        &[Value::Text(&chain_id), Value::Blob(&mac), Value::Blob(&key)],
    )?;
    sql.execute(
        "INSERT INTO facts (name, value) VALUES ('chain_begun_at', ?1)",
        &[Value::Text(&now.to_string())],
    )?;
    Ok(chain_id)
}

/// The first key of the chain, from its file.
pub(crate) fn read_key(path: &Path) -> Result<Bytes32, Fault> {
    let text = fs::read_to_string(path).map_err(|error| {
        Fault::refused(format!(
            "the audit's first key, {}, cannot be read: {error}; name the place where it was moved to",
            path.display()
        ))
    })?;
    chain::from_hex(text.trim())
        .ok_or_else(|| Fault::refused(format!("{} is not a key: 64 hex digits are", path.display())))
}

fn read_or_make_key(path: &Path) -> Result<Bytes32, Fault> {
    if path.exists() {
        return read_key(path);
    }
    let mut hash = Sha256::new();
    for _ in 0..4 {
        // Each has 122 bits from the system.
        hash.update(uuid::Uuid::new_v4().as_bytes());
    }
    let key: Bytes32 = hash.finalize().into();
    let unwritable = |error: std::io::Error| {
        Fault::new(FaultKind::Io, format!("{} cannot be written: {error}", path.display()))
    };
    if let Some(folder) = path.parent() {
        private_file::create_folder(folder).map_err(unwritable)?;
    }
    private_file::replace(path, format!("{}\n", chain::hex(&key)).as_bytes()).map_err(unwritable)?;
    Ok(key)
}

/// Where the first key is.
pub(crate) fn key_file(options: &Options, folder: &Path) -> PathBuf {
    options.key_file.clone().unwrap_or_else(|| folder.join("audit.key"))
}

/// Brings the layout up to date; what was there is copied first.
pub(crate) fn bring_up(
    sql: &mut dyn Sql,
    now: i64,
    back_up: impl FnOnce(&mut dyn Sql, i64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let found = migrations::version(sql)?;
    if found > migrations::LATEST {
        return Err(migrations::too_new(found));
    }
    if found == migrations::LATEST {
        return Ok(());
    }
    if found > 0 {
        back_up(sql, found)?;
    }
    migrations::migrate(sql, migrations::LATEST, now)
}

/// This process is there, and those that are gone are looked after.
pub(crate) fn enter(work: &mut Work<'_>) -> Result<(), Fault> {
    instances::enter(work)?;
    recovery::sweep_all(work)
}
