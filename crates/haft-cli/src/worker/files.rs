//! The worker's folder: `worker` in the state folder, private to the user.

use haft_store::private_file;
use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// A log that is longer is started over, with the old one beside it.
const LONG_LOG: u64 = 1 << 20;

/// The longest path of a socket, in bytes.
const LONGEST_SOCKET: usize = 100;

/// Where everything of the worker of a state folder is.
#[derive(Clone, Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    pub(super) fn new(state: &Path) -> Self {
        Files(state.join("worker"))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    /// Does something with the path of the socket. The system takes short ones only; a long one is said by way of its
    /// folder.
    pub(super) fn at_socket<T>(&self, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = self.socket();
        if path.as_os_str().len() <= LONGEST_SOCKET {
            return work(&path);
        }
        let folder = File::open(&self.0)?;
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&folder);
        work(Path::new(&format!("/proc/self/fd/{descriptor}/socket")))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Makes the folder.
    pub(super) fn create(&self) -> io::Result<()> {
        private_file::create_folder(&self.0)
    }

    /// The right to be the worker, until it is dropped; `None` where another process has it.
    pub(super) fn take(&self) -> io::Result<Option<File>> {
        private_file::ensure(&self.lock())?;
        let mut lock = File::options().write(true).open(self.lock())?;
        match lock.try_lock() {
            Ok(()) => {
                lock.set_len(0)?;
                lock.write_all(format!("{}\n", std::process::id()).as_bytes())?;
                Ok(Some(lock))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether nobody is the worker.
    pub(super) fn is_free(&self) -> bool {
        match File::open(self.lock()) {
            Ok(lock) => lock.try_lock_shared().is_ok(),
            Err(_) => true,
        }
    }

    /// Where a worker in the background writes what it has to say.
    pub(super) fn open_log(&self) -> io::Result<File> {
        let log = self.log();
        if fs::metadata(&log).is_ok_and(|log| log.len() > LONG_LOG) {
            fs::rename(&log, self.0.join("log.old"))?;
        }
        private_file::ensure(&log)?;
        File::options().append(true).open(log)
    }

    /// Listens. The folder keeps other users out, and so does the socket itself.
    pub(super) fn bind(&self) -> io::Result<tokio::net::UnixListener> {
        let listener = self.at_socket(|path| tokio::net::UnixListener::bind(path))?;
        fs::set_permissions(self.socket(), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(listener)
    }

    /// Takes the place that a worker before this one left. The caller holds the lock.
    pub(super) fn clear_socket(&self) {
        let _ = fs::remove_file(self.socket());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_is_the_worker_and_the_folder_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let state = tempfile::tempdir().unwrap();
        let files = Files::new(state.path());
        assert!(files.is_free());
        files.create().unwrap();
        let lock = files.take().unwrap().expect("nobody has it");
        assert!(files.take().unwrap().is_none());
        assert!(!files.is_free());
        drop(lock);
        assert!(files.is_free());
        files.open_log().unwrap();
        for (path, mode) in [(files.0.clone(), 0o700), (files.lock(), 0o600), (files.log(), 0o600)] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{path:?}");
        }
    }

    #[test]
    fn a_long_log_is_started_over() {
        let state = tempfile::tempdir().unwrap();
        let files = Files::new(state.path());
        files.create().unwrap();
        fs::write(files.log(), vec![b'x'; LONG_LOG as usize + 1]).unwrap();
        files.open_log().unwrap();
        assert_eq!(fs::metadata(files.log()).unwrap().len(), 0);
        assert_eq!(fs::metadata(files.0.join("log.old")).unwrap().len(), LONG_LOG + 1);
    }
}
