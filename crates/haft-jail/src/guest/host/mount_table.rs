//! Whether something was mounted or unmounted on this machine.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    fs::File,
    sync::{Mutex, PoisonError},
};

/// Counts changes of what is mounted where haft is. A jail init that was made before a change may not have seen it: what
/// a mount covers would be in it, and nobody has looked at that.
pub(in crate::guest) struct MountTable(Mutex<(Option<File>, u64)>);

impl MountTable {
    pub(in crate::guest) fn new() -> Self {
        MountTable(Mutex::new((File::open("/proc/self/mountinfo").ok(), 0)))
    }

    /// Another number than before where anything has changed since, or where that cannot be known.
    pub(in crate::guest) fn generation(&self) -> u64 {
        let (table, number) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = table.as_ref().is_none_or(|table| {
            let mut events = [PollFd::new(table, PollFlags::PRI)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let polled = poll(&mut events, Some(&at_once));
            polled.is_err() || events[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
        });
        *number += u64::from(has_changed);
        *number
    }
}
