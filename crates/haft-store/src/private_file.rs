//! Files that are private to the user and are replaced as a whole.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Makes a folder that only the user can look into, with those above it.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Waits for a lock that other processes see. Held until it is dropped, which the system does for a process that dies.
pub fn lock(path: &Path) -> io::Result<File> {
    let lock = options().create(true).truncate(false).open(path)?;
    lock.lock()?;
    Ok(lock)
}

/// Replaces a file: a reader sees the old one or the new one, also after a power cut. The caller holds a lock.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("record.json");
/// haft_store::private_file::replace(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = Path::new(&fresh);
    // A leftover of a process that died: the lock is ours, so nobody is writing it.
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = options().create_new(true).open(fresh)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(fresh, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes an empty file that only the user can read, where there is none.
pub fn ensure(path: &Path) -> io::Result<()> {
    options().create(true).truncate(false).open(path).map(drop)
}
