//! Which limits hold for a guest, and by what.

#[cfg(target_os = "linux")]
use haft_core::port::Exceeded;
#[cfg(any(target_os = "linux", windows))]
use haft_core::port::Unavailable;
use haft_core::{IsolationLevel, Limits};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The limits that hold where nobody set one.
///
/// ```
/// use haft_core::{IsolationLevel, Limits};
/// let limits = haft_jail::guest::with_defaults(&Limits::default(), IsolationLevel::Strict);
/// assert_eq!((limits.memory_bytes, limits.processes), (Some(1 << 30), Some(256)));
/// ```
pub fn with_defaults(limits: &Limits, level: IsolationLevel) -> Limits {
    let memory = if level == IsolationLevel::Restricted { 256 * MIB } else { 1024 * MIB };
    Limits {
        memory_bytes: limits.memory_bytes.or(Some(memory)),
        cpu_millicores: limits.cpu_millicores,
        cpu_time: limits.cpu_time.or(Some(Duration::from_secs(300))),
        wall_time: limits.wall_time,
        processes: limits.processes.or(Some(256)),
        open_files: limits.open_files.or(Some(1024)),
        file_bytes: limits.file_bytes,
        scratch_bytes: limits.scratch_bytes.or(Some(256 * MIB)),
        output_bytes: limits.output_bytes,
        read_bytes: limits.read_bytes,
        written_bytes: limits.written_bytes,
        io_operations: limits.io_operations,
        io_bytes_per_second: limits.io_bytes_per_second,
    }
}

/// Refuses limits on what a program reads and writes: it can map a file into its memory, and the kernel counts neither
/// bytes nor operations of that, nor does it slow down what its caches have.
#[cfg(any(target_os = "linux", windows))]
pub(crate) fn held_by_kernel(limits: &Limits) -> Result<(), Unavailable> {
    let Some(name) = limits.of_io() else { return Ok(()) };
    Err(Unavailable {
        reason: format!(
            "`{name}` does not hold for programs: the kernel does not count all that a program reads and writes"
        ),
        fix:
            "leave it out, or use the file tools, for which haft counts; for programs there are `fileBytes`, \
              `scratchBytes` and `cpuTime`"
                .into(),
    })
}

/// What holds limits here.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Means {
    /// Memory and processes of all together.
    pub(crate) cgroups: bool,
    /// Processes are counted for the jail alone, even without cgroups.
    pub(crate) own_users: bool,
}

/// The limits that the kernel holds for each process, by number.
#[cfg(target_os = "linux")]
pub(crate) fn for_each_process(limits: &Limits, means: Means) -> Vec<(i32, u64)> {
    let hard = |resource| rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let mut set = vec![(libc::RLIMIT_CORE as i32, 0)];
    if let Some(files) = limits.open_files {
        let most = hard(rustix::process::Resource::Nofile);
        set.push((libc::RLIMIT_NOFILE as i32, u64::from(files).min(most)));
    }
    if let Some(bytes) = limits.file_bytes {
        set.push((libc::RLIMIT_FSIZE as i32, bytes));
    }
    if let Some(time) = limits.cpu_time {
        // In whole seconds, and after the finer one for all processes together, where there is one.
        let margin = u64::from(means.cgroups);
        set.push((libc::RLIMIT_CPU as i32, (time.as_millis() as u64).div_ceil(1000) + margin));
    }
    if !means.cgroups {
        if let Some(bytes) = limits.memory_bytes {
            set.push((libc::RLIMIT_AS as i32, bytes));
        }
        if let (Some(count), true) = (limits.processes, means.own_users) {
            set.push((libc::RLIMIT_NPROC as i32, u64::from(count) + 1));
        }
    }
    set
}

/// Milliseconds, as errors and limits have them.
#[cfg(any(target_os = "linux", windows))]
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Until then; for ever where there is no such time.
#[cfg(any(target_os = "linux", windows))]
pub(crate) async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What is known when a guest has ended, to tell whether a limit ended it.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out_of_memory: u64,
    pub(crate) peak_memory: Option<u64>,
    pub(crate) cpu_millis: u64,
}

/// The limit that ended a guest, where the kernel ended it and not haft.
#[cfg(target_os = "linux")]
pub(crate) fn exceeded(limits: &Limits, seen: Evidence) -> Option<Exceeded> {
    // A shell tells of a child that a signal ended by adding 128.
    let ended_by = |signal: i32| seen.signal == Some(signal) || seen.exit_code == Some(128 + signal);
    let failed = seen.exit_code != Some(0);
    if let (Some(allowed), true) = (limits.memory_bytes, seen.out_of_memory > 0 && failed) {
        return Some(Exceeded { limit: "memoryBytes", allowed, used: seen.peak_memory });
    }
    if let Some(time) = limits.cpu_time {
        let allowed = millis(time);
        if ended_by(libc::SIGXCPU) || (ended_by(libc::SIGKILL) && seen.cpu_millis >= allowed) {
            return Some(Exceeded { limit: "cpuTime", allowed, used: Some(seen.cpu_millis) });
        }
    }
    if let (Some(allowed), true) = (limits.file_bytes, ended_by(libc::SIGXFSZ)) {
        return Some(Exceeded { limit: "fileBytes", allowed, used: None });
    }
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_ended_a_guest_is_found() {
        let limits = Limits {
            memory_bytes: Some(100),
            cpu_time: Some(Duration::from_secs(1)),
            file_bytes: Some(7),
            ..Limits::default()
        };
        let seen = Evidence { peak_memory: Some(99), ..Evidence::default() };
        let of = |seen: Evidence| exceeded(&limits, seen).map(|over| over.limit);
        for (seen, expected) in [
            (Evidence { exit_code: Some(0), ..seen }, None),
            (Evidence { exit_code: Some(1), ..seen }, None),
            (Evidence { signal: Some(libc::SIGKILL), ..seen }, None),
            (Evidence { signal: Some(libc::SIGKILL), out_of_memory: 1, ..seen }, Some("memoryBytes")),
            (Evidence { exit_code: Some(137), out_of_memory: 1, ..seen }, Some("memoryBytes")),
            // A child was ended, and the program went on without it.
            (Evidence { exit_code: Some(0), out_of_memory: 1, ..seen }, None),
            (Evidence { signal: Some(libc::SIGXCPU), ..seen }, Some("cpuTime")),
            (Evidence { signal: Some(libc::SIGKILL), cpu_millis: 1000, ..seen }, Some("cpuTime")),
            (Evidence { exit_code: Some(0), cpu_millis: 1000, ..seen }, None),
            (Evidence { exit_code: Some(128 + libc::SIGXFSZ), ..seen }, Some("fileBytes")),
        ] {
            assert_eq!(of(seen), expected, "{seen:?}");
        }
    }
}
