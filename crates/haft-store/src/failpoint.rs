//! Places at which a test ends the process, to see what is left. Without the feature they are nothing.

/// The process gets here: after `what` was `done`.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn hit(_what: &str, _done: &str) {}

/// With `HAFT_FAILPOINT=what:done:n` the n-th time ends the process at once, as a power cut would: no destructor runs,
/// no buffer is written.
#[cfg(feature = "failpoints")]
pub fn hit(what: &str, done: &str) {
    use std::sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    };
    static POINT: LazyLock<Option<(String, String, u64)>> = LazyLock::new(|| {
        let text = std::env::var("HAFT_FAILPOINT").ok()?;
        let mut parts = text.split(':');
        let (what, done) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some((what, done, parts.next()?.parse().ok()?))
    });
    static HITS: AtomicU64 = AtomicU64::new(0);
    if let Some((wanted, when, count)) = &*POINT
        && wanted == what
        && when == done
        && HITS.fetch_add(1, Ordering::SeqCst) + 1 == *count
    {
        let me = rustix::process::getpid();
        // Nothing to be done if it fails: the test then sees that the process lives on.
        let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}
