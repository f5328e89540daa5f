//! A store in one file of the state folder.

use super::{
    instances::Lives,
    migrations, open,
    options::Options,
    sqlite::SqliteSql,
    store::{DurableStore, Foundation},
    value::{Fault, FaultKind, Sql, Value},
    writer::Connect,
};
use crate::private_file;
use haft_core::port::StoreError;
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

const DATABASE: &str = "haft.db";
const INSTANCES: &str = "instances";
const BACKUPS: &str = "backups";
/// How long to wait for another process that opens or changes the layout.
const OPENING: Duration = Duration::from_secs(10);
/// How often a database that was always closed in order is looked at.
const CHECK_EVERY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
const READERS: usize = 2;

impl DurableStore {
    /// Opens the store of a state folder; makes it where it is missing. Blocks while it opens.
    ///
    /// ```
    /// use haft_store::{DurableStore, Options};
    /// # let folder = tempfile::tempdir()?;
    /// let store = DurableStore::open_sqlite(folder.path(), Options::default())?;
    /// assert!(store.place().ends_with("haft.db"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_sqlite(folder: &Path, options: Options) -> Result<Self, StoreError> {
        Ok(open_sqlite(folder, options)?)
    }

    /// Changes the layout of a folder's database to that of another version of haft, up or down, after a copy was made.
    /// Gives the copy's place. No other process may use it meanwhile.
    pub fn change_sqlite_layout(folder: &Path, to: i64) -> Result<PathBuf, StoreError> {
        Ok(change_layout(folder, to)?)
    }

    /// Writes a copy of everything to a new file that only the user can read, while others go on writing.
    pub async fn back_up(&self, target: &Path) -> Result<(), StoreError> {
        let file = self.0.file.clone().ok_or_else(|| {
            StoreError("a database on a server is copied with the server's own tool: `pg_dump`".to_owned())
        })?;
        // What was handed over before is in the copy.
        haft_core::port::Store::flush(self).await?;
        let target = target.to_owned();
        Ok(self.0.readers.compute(move || back_up(&file, &target)).await??)
    }

    /// Looks for damage in the whole database, however long it takes.
    pub async fn check(&self) -> Result<(), StoreError> {
        let Some(file) = self.0.file.clone() else { return Ok(()) };
        Ok(self.0.readers.compute(move || SqliteSql::open_reader(&file)?.check_all(&file)).await??)
    }

    /// The layout that this haft works with.
    pub const LAYOUT: i64 = migrations::LATEST;
}

/// Whether a state folder has a database already.
pub fn sqlite_exists(folder: &Path) -> bool {
    folder.join(DATABASE).exists()
}

fn open_sqlite(folder: &Path, options: Options) -> Result<DurableStore, Fault> {
    let path = folder.join(DATABASE);
    refuse_strange(folder)?;
    private_file::create_folder(folder).map_err(|error| cannot(folder, "be made", &error))?;
    let _opening = lock_within(&folder.join("haft.db.opening"), OPENING)?;
    let mut sql = SqliteSql::open(&path)?;
    let now = options.clock.now().as_microsecond();
    open::bring_up(&mut sql, now, |_, found| back_up(&path, &backup_path(folder, found, now)))?;
    let lives = Arc::new(LockFiles { folder: folder.join(INSTANCES) });
    check(&mut sql, &path, &lives, &options, now)?;
    let chain_id = open::ensure_head(&mut sql, &open::key_file(&options, folder), now)?;
    let instance = uuid::Uuid::new_v4().to_string();
    let lock = lives.take(&instance)?;
    let readers: Vec<Box<dyn Connect>> =
        (0..READERS).map(|_| Box::new(Reading(path.clone())) as Box<dyn Connect>).collect();
    DurableStore::found(Foundation {
        place: path.display().to_string(),
        folder: folder.to_owned(),
        writing: Box::new(Writing(path.clone())),
        sql: Box::new(sql),
        reading: readers,
        instance,
        lives,
        presence: Box::new(lock),
        chain_id,
        options,
        file: Some(path),
    })
}

/// Looks for damage: after a process ended without closing, and else once a day.
fn check(
    sql: &mut SqliteSql,
    path: &Path,
    lives: &LockFiles,
    options: &Options,
    now: i64,
) -> Result<(), Fault> {
    let row = sql.query_one("SELECT value FROM facts WHERE name = 'checked_at'", &[])?;
    let checked: i64 = row.map_or(Ok(String::new()), |mut row| row.text(0))?.parse().unwrap_or(i64::MIN);
    let is_fresh = now >= checked && now.saturating_sub(checked) < CHECK_EVERY_MICROS;
    let rows = sql.query("SELECT instance_id FROM instances WHERE ended_at IS NULL", &[])?;
    let mut was_cut = false;
    for mut row in rows {
        was_cut |= !lives.is_held(&row.text(0)?);
    }
    if is_fresh && !was_cut {
        return Ok(());
    }
    if sql.check(path, options.check)? {
        let now = now.to_string();
        sql.execute(
            "INSERT INTO facts (name, value) VALUES ('checked_at', ?1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            &[Value::Text(&now)],
        )?;
    }
    Ok(())
}

/// The caller that opens the store has checked whose the folder is; that nothing in it leads elsewhere shows by itself.
fn refuse_strange(folder: &Path) -> Result<(), Fault> {
    crate::check_state_folder(folder, None)
        .map_err(|error| Fault::refused(format!("{error}; {}", error.help())))
}

fn change_layout(folder: &Path, to: i64) -> Result<PathBuf, Fault> {
    let path = folder.join(DATABASE);
    refuse_strange(folder)?;
    let _opening = lock_within(&folder.join("haft.db.opening"), OPENING)?;
    let mut sql = SqliteSql::open(&path)?;
    let found = migrations::version(&mut sql)?;
    let lives = LockFiles { folder: folder.join(INSTANCES) };
    if let Some(instance) = lives.any_alive()? {
        return Err(Fault::refused(format!("the process of {instance} uses the database; end it first")));
    }
    let now = jiff::Timestamp::now().as_microsecond();
    let copy = backup_path(folder, found, now);
    sql.copy_to(&copy)?;
    migrations::migrate(&mut sql, to, now)?;
    Ok(copy)
}

fn backup_path(folder: &Path, layout: i64, now: i64) -> PathBuf {
    folder.join(BACKUPS).join(format!("haft-layout-{layout}-{now}.db"))
}

/// Writes a copy of a database.
pub(crate) fn back_up(path: &Path, target: &Path) -> Result<(), Fault> {
    SqliteSql::open(path)?.copy_to(target)
}

struct Writing(PathBuf);

impl Connect for Writing {
    fn connect(&mut self) -> Result<Box<dyn Sql + Send>, Fault> {
        // Not made again where it is gone: a process that lost its database must not go on with an empty one.
        if !self.0.exists() {
            return Err(Fault::new(FaultKind::Io, format!("{} is gone", self.0.display())));
        }
        Ok(Box::new(SqliteSql::open(&self.0)?))
    }
}

struct Reading(PathBuf);

impl Connect for Reading {
    fn connect(&mut self) -> Result<Box<dyn Sql + Send>, Fault> {
        Ok(Box::new(SqliteSql::open_reader(&self.0)?))
    }
}

/// A file for each process, which the system unlocks when the process ends, however it does.
pub(crate) struct LockFiles {
    folder: PathBuf,
}

/// This process's own file.
struct Presence {
    path: PathBuf,
    _lock: File,
}

impl Drop for Presence {
    fn drop(&mut self) {
        // What is left over is removed by the next process that looks.
        let _ = fs::remove_file(&self.path);
    }
}

impl LockFiles {
    fn path(&self, instance: &str) -> PathBuf {
        self.folder.join(format!("{instance}.lock"))
    }

    fn take(&self, instance: &str) -> Result<Presence, Fault> {
        private_file::create_folder(&self.folder).map_err(|error| cannot(&self.folder, "be made", &error))?;
        let path = self.path(instance);
        let lock = private_file::lock(&path).map_err(|error| cannot(&path, "be locked", &error))?;
        Ok(Presence { path, _lock: lock })
    }

    fn any_alive(&self) -> Result<Option<String>, Fault> {
        let files = match fs::read_dir(&self.folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot(&self.folder, "be read", &error)),
        };
        for file in files {
            let name = file.map_err(|error| cannot(&self.folder, "be read", &error))?.file_name();
            let name = name.to_string_lossy();
            if let Some(instance) = name.strip_suffix(".lock")
                && self.is_held(instance)
            {
                return Ok(Some(instance.to_owned()));
            }
        }
        Ok(None)
    }
}

impl Lives for LockFiles {
    fn lives(&self, _sql: &mut dyn Sql, instance: &str) -> bool {
        self.is_held(instance)
    }
}

impl LockFiles {
    fn is_held(&self, instance: &str) -> bool {
        let path = self.path(instance);
        let file = match File::options().write(true).open(&path) {
            Ok(file) => file,
            // Removed in order, or by another process that looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return false,
            Err(_) => return true,
        };
        match file.try_lock() {
            Ok(()) => {
                let _ = fs::remove_file(&path);
                false
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        }
    }
}

/// A lock, or the reason why not: never for longer than that.
fn lock_within(path: &Path, at_most: Duration) -> Result<File, Fault> {
    private_file::ensure(path).map_err(|error| cannot(path, "be made", &error))?;
    let file = File::options().write(true).open(path).map_err(|error| cannot(path, "be opened", &error))?;
    let end = Instant::now() + at_most;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(cannot(path, "be locked", &error)),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::new(FaultKind::Busy, format!("{} is locked", path.display())));
            }
        }
    }
}

fn cannot(path: &Path, what: &str, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FaultKind::Full,
        _ => FaultKind::Io,
    };
    Fault::new(kind, format!("{} cannot {what}: {error}", path.display()))
}
