//! SQLite: one file, its write-ahead log beside it, private to the user.

use super::{
    migrations,
    value::{Cell, Dialect, Fault, FaultKind, Row, Sql, Value},
};
use crate::private_file;
use rusqlite::{Connection, OpenFlags, ffi, types::ToSqlOutput, types::ValueRef};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(5);
/// Pages of the write-ahead log after which they are moved into the database: 16 MiB.
const CHECKPOINT_PAGES: u32 = 4096;
/// What the log is cut back to, once everything in it has been moved.
const LOG_LIMIT: u32 = 32 << 20;

/// A log that is longer is cut when there is time.
const TIDY_ABOVE: u64 = 4 << 20;

/// A connection to one file.
pub(crate) struct SqliteSql {
    connection: Connection,
    path: PathBuf,
}

impl SqliteSql {
    /// Opens a file for writing; makes it where it is missing. Only the user can read it.
    pub(crate) fn open(path: &Path) -> Result<Self, Fault> {
        let folder = path.parent().unwrap_or(Path::new("."));
        private_file::create_folder(folder).map_err(|error| io_fault(folder, "be made", &error))?;
        refuse_network(folder)?;
        private_file::ensure(path).map_err(|error| io_fault(path, "be made", &error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| fault(path, &error))?;
        let sql = SqliteSql { connection, path: path.to_owned() };
        sql.prepare(path)?;
        Ok(sql)
    }

    /// Opens a file for reading only.
    pub(crate) fn open_reader(path: &Path) -> Result<Self, Fault> {
        // Not read-only: a reader of a write-ahead log writes to its index.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| fault(path, &error))?;
        let with = |error: rusqlite::Error| fault(path, &error);
        connection.busy_timeout(BUSY).map_err(with)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.pragma_update(None, "query_only", true).map_err(with)?;
        Ok(SqliteSql { connection, path: path.to_owned() })
    }

    fn prepare(&self, path: &Path) -> Result<(), Fault> {
        let with = |error: rusqlite::Error| fault(path, &error);
        let connection = &self.connection;
        connection.busy_timeout(BUSY).map_err(with)?;
        connection.set_prepared_statement_cache_capacity(128);
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(with)?;
        if !mode.eq_ignore_ascii_case("wal") {
            return Err(Fault::new(
                FaultKind::Io,
                format!("{} cannot have a write-ahead log, so it cannot be shared safely", path.display()),
            ));
        }
        connection.pragma_update(None, "synchronous", "FULL").map_err(with)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(with)?;
        connection.pragma_update(None, "journal_size_limit", LOG_LIMIT).map_err(with)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(with)?;
        connection.pragma_update(None, "temp_store", "MEMORY").map_err(with)?;
        connection.pragma_update(None, "cell_size_check", true).map_err(with)?;
        Ok(())
    }

    /// Looks whether the file makes sense, for at most so long. False where the time was over first.
    pub(crate) fn check(&mut self, path: &Path, at_most: Duration) -> Result<bool, Fault> {
        let end = Instant::now() + at_most;
        let with = |error: rusqlite::Error| fault(path, &error);
        self.connection.progress_handler(10_000, Some(move || Instant::now() > end)).map_err(with)?;
        let answer: Result<String, _> =
            self.connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
        self.connection.progress_handler(0, None::<fn() -> bool>).map_err(with)?;
        match answer {
            Ok(said) if said == "ok" => Ok(true),
            Ok(said) => Err(Fault::new(FaultKind::Corrupt, format!("{} is damaged: {said}", path.display()))),
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == ffi::ErrorCode::OperationInterrupted =>
            {
                Ok(false)
            }
            Err(error) => Err(fault(path, &error)),
        }
    }

    /// Everything, without a time limit.
    pub(crate) fn check_all(&self, path: &Path) -> Result<(), Fault> {
        let answer: Result<String, _> =
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
        match answer {
            Ok(said) if said == "ok" => Ok(()),
            Ok(said) => Err(Fault::new(FaultKind::Corrupt, format!("{} is damaged: {said}", path.display()))),
            Err(error) => Err(fault(path, &error)),
        }
    }

    /// An empty database that is nowhere but in memory.
    fn in_memory() -> Result<Self, Fault> {
        let connection = Connection::open_in_memory().map_err(bare_fault)?;
        Ok(SqliteSql { connection, path: PathBuf::new() })
    }

    /// What is in the database besides rows: type, name and table, and how it was made. What SQLite keeps for itself is
    /// left out.
    fn objects(&mut self) -> Result<BTreeMap<(String, String, String), String>, Fault> {
        let rows = self.query(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema \
             WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR type NOT IN ('table', 'index')",
            &[],
        )?;
        let mut objects = BTreeMap::new();
        for mut row in rows {
            let key = (row.text(0)?, row.text(1)?, row.text(2)?);
            objects.insert(key, plain(&row.opt_text(3)?.unwrap_or_default()));
        }
        Ok(objects)
    }

    /// Writes a copy of everything to a new file, which only the user can read.
    pub(crate) fn copy_to(&self, target: &Path) -> Result<(), Fault> {
        if let Some(folder) = target.parent() {
            private_file::create_folder(folder).map_err(|error| io_fault(folder, "be made", &error))?;
        }
        if target.exists() {
            return Err(Fault::new(
                FaultKind::Refused,
                format!("{} is there already; choose another name for the backup", target.display()),
            ));
        }
        // Made first, because then it is private from the beginning.
        private_file::ensure(target).map_err(|error| io_fault(target, "be made", &error))?;
        let copied = self.connection.execute("VACUUM INTO ?1", [target.to_string_lossy()]);
        if let Err(error) = copied {
            let _ = fs::remove_file(target);
            return Err(fault(target, &error));
        }
        let synced = fs::File::open(target).and_then(|file| file.sync_all());
        synced.map_err(|error| io_fault(target, "be written", &error))
    }
}

impl Sql for SqliteSql {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn execute(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<u64, Fault> {
        let mut statement = self.connection.prepare_cached(sql).map_err(bare_fault)?;
        let changed = statement.execute(rusqlite::params_from_iter(arguments)).map_err(bare_fault)?;
        Ok(changed as u64)
    }

    fn query(&mut self, sql: &str, arguments: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let mut statement = self.connection.prepare_cached(sql).map_err(bare_fault)?;
        let columns = statement.column_count();
        let mut answer = statement.query(rusqlite::params_from_iter(arguments)).map_err(bare_fault)?;
        let mut rows = Vec::new();
        while let Some(row) = answer.next().map_err(bare_fault)? {
            let cells = (0..columns).map(|place| row.get_ref(place).map(cell));
            rows.push(Row(cells.collect::<Result<_, _>>().map_err(bare_fault)?));
        }
        Ok(rows)
    }

    fn script(&mut self, sql: &str) -> Result<(), Fault> {
        self.connection.execute_batch(sql).map_err(bare_fault)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn commit(&mut self) -> Result<(), Fault> {
        self.execute("COMMIT", &[]).map(drop)
    }

    /// Moves what is in a long log into the database, and cuts the log.
    fn tidy(&mut self) {
        if fs::metadata(log_of(&self.path)).is_ok_and(|log| log.len() > TIDY_ABOVE) {
            // A reader may be in the way; then it is tried again later.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }

    fn snapshot(&mut self) -> Result<(), Fault> {
        self.execute("BEGIN DEFERRED", &[]).map(drop)
    }

    fn difference(&mut self) -> Result<Option<String>, Fault> {
        let mut wanted = SqliteSql::in_memory()?;
        migrations::migrate(&mut wanted, migrations::LATEST, 0)?;
        if let Some(what) = differs(&wanted.objects()?, &self.objects()?) {
            return Ok(Some(what));
        }
        // Finds rows that an index does not have, and entries of an index that no row has.
        let answer: Result<String, _> =
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
        match answer {
            Ok(said) if said == "ok" => Ok(None),
            Ok(said) => Ok(Some(format!("its tables and indexes do not agree: {said}"))),
            Err(error) if kind(&error) == FaultKind::Corrupt => Ok(Some(format!("it is damaged: {error}"))),
            Err(error) => Err(bare_fault(error)),
        }
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            // It fails only where the transaction is gone already, which is what is wanted.
            let _ = self.execute("ROLLBACK", &[]);
        }
    }
}

/// The first thing that is other than it should be.
fn differs(
    wanted: &BTreeMap<(String, String, String), String>,
    found: &BTreeMap<(String, String, String), String>,
) -> Option<String> {
    let of = |key: &(String, String, String)| format!("the {} `{}`", key.0, key.1);
    for (key, sql) in wanted {
        match found.get(key) {
            Some(other) if other == sql => {}
            Some(_) => return Some(format!("{} was changed", of(key))),
            None => return Some(format!("{} was removed", of(key))),
        }
    }
    let added = found.keys().find(|key| !wanted.contains_key(*key));
    added.map(|key| format!("{} was added", of(key)))
}

/// The words of a statement without the blanks between them: those depend on the way by which a layout came about.
fn plain(sql: &str) -> String {
    let mut plain = String::with_capacity(sql.len());
    for word in sql.split_whitespace() {
        let is_apart = |char: char| matches!(char, '(' | ')' | ',');
        if !plain.is_empty() && !plain.ends_with(is_apart) && !word.starts_with(is_apart) {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

fn kind(error: &rusqlite::Error) -> FaultKind {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => match error.code {
            ffi::ErrorCode::DatabaseBusy | ffi::ErrorCode::DatabaseLocked => FaultKind::Busy,
            ffi::ErrorCode::DiskFull => FaultKind::Full,
            ffi::ErrorCode::SystemIoFailure
            | ffi::ErrorCode::CannotOpen
            | ffi::ErrorCode::ReadOnly
            | ffi::ErrorCode::PermissionDenied => FaultKind::Io,
            ffi::ErrorCode::DatabaseCorrupt | ffi::ErrorCode::NotADatabase => FaultKind::Corrupt,
            ffi::ErrorCode::ConstraintViolation | ffi::ErrorCode::TooBig => FaultKind::Refused,
            _ => FaultKind::Other,
        },
        _ => FaultKind::Other,
    }
}

fn fault(path: &Path, error: &rusqlite::Error) -> Fault {
    Fault::new(kind(error), format!("{}: {error}", path.display()))
}

#[expect(clippy::needless_pass_by_value, reason = "handed to map_err")]
fn bare_fault(error: rusqlite::Error) -> Fault {
    Fault::new(kind(&error), format!("the database: {error}"))
}

fn io_fault(path: &Path, what: &str, error: &std::io::Error) -> Fault {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => FaultKind::Full,
        _ => FaultKind::Io,
    };
    Fault::new(kind, format!("{} cannot {what}: {error}", path.display()))
}

/// Locks on a network file system do not hold, and then two writers spoil the file.
#[cfg(target_os = "linux")]
fn refuse_network(folder: &Path) -> Result<(), Fault> {
    let found =
        rustix::fs::statfs(folder).map_err(|error| io_fault(folder, "be looked at", &error.into()))?;
    // The field has another width on some machines; the numbers all fit into 32 bits.
    match network_name(found.f_type as u32) {
        None => Ok(()),
        Some(name) => Err(Fault::new(
            FaultKind::Refused,
            format!(
                "{} is on {name}, a network file system, whose locks SQLite cannot rely on; set XDG_STATE_HOME to a \
                 folder on a local disk, or use PostgreSQL",
                folder.display()
            ),
        )),
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_folder: &Path) -> Result<(), Fault> {
    Ok(())
}

/// By the number that the kernel has for the file system.
#[cfg(target_os = "linux")]
fn network_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517B => "SMB",
        0xFF53_4D42 => "CIFS",
        0xFE53_4D42 => "SMB2",
        0x0102_1997 => "9P",
        0x00C3_6400 => "Ceph",
        0x0BD0_0BD0 => "Lustre",
        0x5346_414F => "AFS",
        0x7375_7245 => "Coda",
        0x564C => "NCP",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

/// The write-ahead log beside a database.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        for number in [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997] {
            assert!(network_name(number).is_some(), "{number:x}");
        }
        const EXT4: u32 = 0xEF53;
        const TMPFS: u32 = 0x0102_1994;
        const BTRFS: u32 = 0x9123_683E;
        for number in [EXT4, TMPFS, BTRFS] {
            assert_eq!(network_name(number), None, "{number:x}");
        }
    }
}
