//! An open folder: the system's own way where there is one, the portable one elsewhere.

#[cfg(unix)]
pub(crate) use super::folder_unix::{Folder, Opener, entry_of_file, is_system_file};
#[cfg(not(unix))]
pub(crate) use super::portable::{Folder, Opener, entry_of_file, is_system_file, says_link};

#[cfg(unix)]
/// Whether an error says that a link is on the way.
pub(crate) fn says_link(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
