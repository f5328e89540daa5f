//! What of a running guest's writes is kept apart.

use super::*;
use crate::guest::staging::Bounds;
use haft_core::port::StagedRoot;
use tokio::{task::JoinHandle, time::Instant};

/// With a jail init go its mounts, and it has nothing to do but to end.
const UNMOUNTED_WITHIN: Duration = Duration::from_secs(30);

/// Tells of the end of a process.
pub(super) fn end_of(pid: i32) -> Result<AsyncFd<OwnedFd>, ToolError> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or_else(|| broken("no init", "it has no number"))?;
    let open = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
    let open = open.map_err(|errno| broken("no init", errno))?;
    crate::guest::sys::watched(open).map_err(|error| broken("no runtime", error))
}

/// Counts what is in layers, again and again. It may take a while, so it is done elsewhere.
pub(super) struct Counts {
    bounds: Option<Bounds>,
    at: Instant,
    running: Option<JoinHandle<Result<Duration, Exceeded>>>,
}

impl Counts {
    pub(super) fn of(bounds: Option<Bounds>) -> Self {
        let bounds = bounds.filter(Bounds::is_watched);
        let first = bounds.as_ref().map_or(Duration::ZERO, Bounds::first_look);
        Counts { bounds, at: Instant::now() + first, running: None }
    }

    /// The same, after a while: what was there before was counted, and most commands have ended by then.
    pub(super) fn later(bounds: Option<Bounds>) -> Self {
        Counts { at: Instant::now() + Duration::from_secs(1), ..Counts::of(bounds) }
    }

    /// When something was counted: the limit that was passed, where one was. Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> Result<(), Exceeded> {
        let Some(bounds) = &self.bounds else { return std::future::pending().await };
        if self.running.is_none() {
            tokio::time::sleep_until(self.at).await;
        }
        let bounds = bounds.clone();
        let counted =
            self.running.get_or_insert_with(|| tokio::task::spawn_blocking(move || bounds.look())).await;
        self.running = None;
        // Where nothing could be counted, it is tried again.
        let later = counted.unwrap_or(Ok(Duration::from_millis(20)))?;
        self.at = Instant::now() + later;
        Ok(())
    }

    /// Counts once more, when nothing is written any more.
    pub(super) async fn last(&mut self) -> Result<(), Exceeded> {
        let Some(bounds) = self.bounds.take() else { return Ok(()) };
        if let Some(counted) = bounds.look_at_little() {
            return counted.map(drop);
        }
        match tokio::task::spawn_blocking(move || bounds.look()).await {
            Ok(counted) => counted.map(drop),
            Err(_) => Ok(()),
        }
    }
}

/// When one of two was counted.
pub(super) async fn first_of(one: &mut Counts, other: &mut Counts) -> Result<(), Exceeded> {
    tokio::select! {
        counted = one.next() => counted,
        counted = other.next() => counted,
    }
}

impl InitGuest {
    /// Lets the init end where its mounts have to go, now that everything is known of its guest.
    pub(super) fn let_the_init_end(&self) {
        if self.staged.is_some() {
            let _ = rustix::net::shutdown(self.control.socket.get_ref(), rustix::net::Shutdown::Write);
        }
    }

    /// What the guest wrote, when nothing of it is mounted any more. Where it wrote nothing there is nothing that a
    /// mount could be in the way of, and nobody waits for that.
    pub(super) async fn unmounted(&mut self) -> Result<Vec<StagedRoot>, ToolError> {
        let Some((staged, init)) = self.staged.take() else { return Ok(Vec::new()) };
        if staged.is_empty() {
            staged.tidy();
            return Ok(staged.roots);
        }
        match tokio::time::timeout(UNMOUNTED_WITHIN, init.readable()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(broken("its end cannot be seen", error)),
            Err(_) => return Err(broken("its layers are still mounted", "its init does not end")),
        }
        staged.tidy();
        Ok(staged.roots)
    }
}
