//! What applying a staged command costs against copying the same files, in one run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "not a library")]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use haft_core::{
        ExecutionId,
        port::{LayerMarks, StagedRoot},
    };
    use haft_files::{ApplyStaged, Files, JailSpec, Keep, PathJail, RootSpec, StageRules, StagedSet};
    use haft_store::MemoryReadHashes;
    use std::{
        fs,
        path::Path,
        process::Command,
        sync::Arc,
        time::{Duration, Instant},
    };

    const ROUNDS: usize = 5;

    pub(super) fn main() {
        // Cargo runs benches as tests, too.
        if std::env::args().any(|argument| argument == "--test") {
            return;
        }
        println!(
            "applying a staged command against `cp -r` and `sync` of the same files (goal: at most 2 times)"
        );
        for (count, is_new) in [(1000, true), (20_000, true), (1000, false), (20_000, false)] {
            let (mut copied, mut applied) = (Vec::new(), Vec::new());
            let before = peak();
            for _ in 0..ROUNDS {
                let (copy, apply) = round(count, is_new);
                copied.push(copy);
                applied.push(apply);
            }
            let (copy, apply) = (median(copied), median(applied));
            println!(
                "{count:>6} files, {}: cp -r {copy:?}, look and apply {apply:?}, {:.2} times; memory {} KiB more",
                if is_new { "new" } else { "replaced" },
                apply.as_secs_f64() / copy.as_secs_f64(),
                peak().saturating_sub(before)
            );
        }
    }

    fn round(count: usize, is_new: bool) -> (Duration, Duration) {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().canonicalize().unwrap().join(name);
        for folder in ["root", "state", "upper", "copy"] {
            fs::create_dir(path(folder)).unwrap();
        }
        if !is_new {
            fill(&path("root"), count, "old");
        }
        let now = path("now");
        fs::write(&now, "").unwrap();
        let known = fs::metadata(&now).unwrap();
        use std::os::unix::fs::MetadataExt as _;
        let since = (known.ctime(), known.ctime_nsec() as u32);
        fill(&path("upper"), count, "new");
        let sync =
            |path: &Path| assert!(Command::new("sync").arg("-f").arg(path).status().unwrap().success());
        sync(base.path());
        let start = Instant::now();
        let status = Command::new("cp").arg("-r").arg(path("upper")).arg(path("copy")).status().unwrap();
        assert!(status.success());
        sync(base.path());
        let copied = start.elapsed();
        let marks = LayerMarks::User;
        let root = StagedRoot { root: path("root"), upper: path("upper"), marks, hidden: Vec::new(), since };
        let set = StagedSet { roots: vec![root], rules: StageRules::default() };
        let spec = RootSpec { path: path("root"), read_only: false };
        let jail = PathJail::new(JailSpec { roots: vec![spec], ..JailSpec::default() }).unwrap();
        let reads = Arc::new(MemoryReadHashes::default());
        let files = Files::new(Arc::new(jail), reads, &path("state/changes"), Keep::default());
        let start = Instant::now();
        let found = set.look().unwrap();
        let how = ApplyStaged {
            by: ExecutionId::at(jiff::Timestamp::now()),
            tenant: "local".into(),
            summary: "a measurement".into(),
            fingerprint: found.fingerprint,
            approved: false,
        };
        let summary = files.apply_staged(&set, &how).unwrap();
        let applied = start.elapsed();
        assert_eq!(summary.created + summary.modified, count as u64);
        (copied, applied)
    }

    fn fill(folder: &Path, count: usize, text: &str) {
        for number in 0..count {
            let folder = folder.join(format!("{}", number / 100));
            if number % 100 == 0 {
                fs::create_dir(&folder).unwrap();
            }
            fs::write(folder.join(format!("{number}.txt")), format!("{text} {number}\n").repeat(20)).unwrap();
        }
    }

    fn median(mut all: Vec<Duration>) -> Duration {
        all.sort();
        all[all.len() / 2]
    }

    /// The most memory that this process had so far, in KiB.
    fn peak() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
