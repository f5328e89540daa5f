//! Every limit holds within 5 % of what was set, in every jail.
//!
//! What takes time is measured on a machine that does other things as well, which only ever adds: the best of a few
//! tries counts.

use crate::world::{House, block_on, has_cgroups, jails, own_program, run, sh};
use haft_core::{
    ErrorCode, IsolationLevel, Limits,
    port::{GuestEnd, GuestSpec},
};
use libtest_mimic::Trial;
use std::{ops::RangeInclusive, time::Duration};

const MIB: u64 = 1 << 20;
const TRIES: usize = 4;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for jail in jails() {
        let mut add = |name: &str, test: fn(&'static str)| {
            trials.push(Trial::test(format!("limits::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        };
        add("time_on_a_core", time_on_a_core);
        add("time_on_several_cores", time_on_several_cores);
        add("time_on_the_wall", time_on_the_wall);
        add("open_files", open_files);
        add("file_bytes", file_bytes);
        add("output_bytes", output_bytes);
        if jail != "process" {
            add("scratch_bytes", scratch_bytes);
        }
        if crate::world::is_root() {
            add("room_on_the_disk", room_on_the_disk);
        }
        if has_cgroups() {
            add("memory", memory);
            add("over_memory_names_limit_and_peak", over_memory_names_limit_and_peak);
            add("the_share_of_a_core", the_share_of_a_core);
            // Threads of a guest of gVisor are its kernel's: `choice::gvisor_threads_are_held`.
            if jail == "gvisor" {
                add("in_a_kernel_that_stood_ready", in_a_kernel_that_stood_ready);
            } else {
                add("processes", processes);
            }
        }
    }
    trials
}

/// From what was set to 5 % more.
fn up_to_five_percent_over(set: u64) -> RangeInclusive<f64> {
    set as f64..=set as f64 * 1.05
}

/// From 5 % less to what was set.
fn down_to_five_percent_under(set: u64) -> RangeInclusive<u64> {
    set * 95 / 100..=set
}

/// A guest that uses up one thing, and says how much it got.
fn using(what: &str, path: &str, limits: Limits) -> GuestSpec {
    let program = own_program();
    let mut spec = GuestSpec::command([program.to_str().unwrap(), "--use", what, path]);
    spec.level = IsolationLevel::Strict;
    spec.readable = vec![program];
    spec.limits = limits;
    spec
}

/// What those guests do.
pub fn use_up(arguments: &[String]) -> i32 {
    use std::io::Write as _;
    let [what, path] = arguments else { return 2 };
    let used = match what.as_str() {
        "files" => {
            let open: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            // The three that it began with count, too.
            open.len() + 3
        }
        "space" => {
            #[allow(
                unsafe_code,
                reason = "there is no other way to be told by an error instead of a signal"
            )]
            // SAFETY: no handler of this program's is lost.
            unsafe {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
            };
            let Ok(mut file) = std::fs::File::create(path) else { return 3 };
            let piece = [7; 4096];
            std::iter::from_fn(|| file.write(&piece).ok().filter(|count| *count > 0)).sum()
        }
        _ => return 2,
    };
    println!("{used}");
    0
}

fn got(jail: &'static str, spec: GuestSpec) -> u64 {
    let (end, heard) = block_on(run(&*House::new().jail(jail), spec)).unwrap();
    heard.out.trim().parse().unwrap_or_else(|_| panic!("{heard:?} {end:?}"))
}

/// The best of a few tries, by what `figure` says of the end.
fn best(jail: &'static str, spec: &GuestSpec, figure: impl Fn(&GuestEnd) -> f64) -> f64 {
    (0..TRIES).map(|_| stopped(jail, spec, &figure)).fold(f64::INFINITY, f64::min)
}

fn stopped(jail: &'static str, spec: &GuestSpec, figure: impl Fn(&GuestEnd) -> f64) -> f64 {
    let (end, heard) = block_on(run(&*House::new().jail(jail), spec.clone())).unwrap();
    assert!(end.exceeded.is_some(), "{end:?} {heard:?}");
    figure(&end)
}

fn used_cpu(jail: &'static str, script: &str, millis: u64) {
    let limits = Limits { cpu_time: Some(Duration::from_millis(millis)), ..Limits::default() };
    let spec = GuestSpec { limits, ..sh(script) };
    let used = best(jail, &spec, |end| {
        let over = end.exceeded.as_ref().unwrap();
        assert_eq!((over.limit, over.allowed), ("cpuTime", millis));
        assert!(end.violations.iter().any(|violation| violation.kind == "CpuLimitExceeded"), "{end:?}");
        end.metrics.cpu_time_ms.unwrap()
    });
    if has_cgroups() {
        assert!(up_to_five_percent_over(millis).contains(&used), "{used}");
    } else {
        // The kernel counts ticks, for each process, and other times that are in them.
        assert!(used <= *up_to_five_percent_over(millis).end(), "{used}");
    }
}

/// A file system of its own, mounted for as long as this lives.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", options, "haft-test"];
        assert!(
            std::process::Command::new("mount").args(mount).arg(folder.path()).status().unwrap().success()
        );
        Disk(folder)
    }

    fn free(&self) -> (u64, u64) {
        let found = rustix::fs::statvfs(self.0.path()).unwrap();
        (found.f_bavail * found.f_frsize, found.f_favail)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Half is left where there is little; what would take it at once is not there. Without a jail each of them leaves
/// nothing.
fn room_on_the_disk(jail: &'static str) {
    let fills = "for i in $(seq 300); do head -c 256K /dev/zero >> file || exit 1; sleep 0.002; done";
    let at_once = "fallocate -l 60M file || exit 1";
    let files = "i=0; while [ $i -lt 2000 ]; do : > f$i || exit 1; i=$((i+1)); done";
    let options = "size=64m,nr_inodes=1000";
    for (script, limit) in [(fills, Some("diskBytes")), (at_once, None), (files, Some("diskFiles"))] {
        let disk = Disk::new(options);
        let mut plainly = std::process::Command::new("sh");
        plainly.args(["-c", script]).current_dir(disk.0.path()).stderr(std::process::Stdio::null());
        plainly.status().unwrap();
        let (bytes, inodes) = disk.free();
        assert!(
            bytes < 8 * MIB || inodes < 50,
            "without a jail it has to succeed: {bytes} {inodes} {script}"
        );
        drop(disk);
        if jail == "gvisor" && limit.is_none() {
            // There it is asked of the machine by what serves the guest's files.
            continue;
        }
        let disk = Disk::new(options);
        // A shell makes hundreds of files before it is looked at again.
        let script = script.replace(": > f$i", "sleep 0.001; : > f$i");
        let spec = GuestSpec { writable: vec![disk.0.path().to_owned()], ..sh(&script) };
        let (end, heard) = block_on(run(&*House::new().jail(jail), spec)).unwrap();
        let (bytes, inodes) = disk.free();
        assert!(bytes > 24 * MIB && inodes > 350, "{bytes} {inodes} {end:?} {heard:?} {script}");
        assert_eq!(end.exceeded.as_ref().map(|over| over.limit), limit, "{end:?} {heard:?}");
        assert_ne!(end.exit_code, Some(0), "{end:?}");
    }
}

fn time_on_a_core(jail: &'static str) {
    used_cpu(jail, "while :; do :; done", 1000);
}

/// Twice as fast, so it has to be looked at twice as often.
fn time_on_several_cores(jail: &'static str) {
    if has_cgroups() {
        used_cpu(jail, "while :; do :; done & while :; do :; done & while :; do :; done", 3000);
    }
}

fn time_on_the_wall(jail: &'static str) {
    let limits = Limits { wall_time: Some(Duration::from_secs(2)), ..Limits::default() };
    let spec = GuestSpec { limits, ..sh("sleep 100 & sleep 100") };
    let wall = best(jail, &spec, |end| {
        assert_eq!(end.error().unwrap().code, ErrorCode::Timeout);
        end.metrics.wall_time_ms.unwrap()
    });
    assert!(up_to_five_percent_over(2000).contains(&wall), "{wall}");
}

fn the_share_of_a_core(jail: &'static str) {
    let wall_time = Some(Duration::from_secs(4));
    let limits = Limits { cpu_millicores: Some(200), wall_time, ..Limits::default() };
    let spec = GuestSpec { limits, ..sh("while :; do :; done & while :; do :; done") };
    // Others can only take from it.
    let share =
        stopped(jail, &spec, |end| end.metrics.cpu_time_ms.unwrap() / end.metrics.wall_time_ms.unwrap());
    assert!(share <= 0.2 * 1.05, "{share}");
}

fn memory(jail: &'static str) {
    let house = House::new();
    let script = "head -c 512M /dev/zero | tail -c 512M"; // which holds all of it before it prints
    let limit = 128 * MIB;
    let limits = Limits { memory_bytes: Some(limit), ..Limits::default() };
    let (end, _) = block_on(run(&*house.jail(jail), GuestSpec { limits, ..sh(script) })).unwrap();
    let over = end.exceeded.clone().unwrap_or_else(|| panic!("{end:?}"));
    assert_eq!((over.limit, over.allowed), ("memoryBytes", limit));
    // What the kernel counts at its end may be a page more.
    assert!((limit * 95 / 100..=limit * 105 / 100).contains(&over.used.unwrap()), "{over:?}");
}

fn over_memory_names_limit_and_peak(jail: &'static str) {
    let house = House::new();
    let script = "x=$(head -c 200M /dev/zero | tr '\\0' x); echo ${#x}";
    let limits = Limits { memory_bytes: Some(96 * MIB), ..Limits::default() };
    let (end, _) = block_on(run(&*house.jail(jail), GuestSpec { limits, ..sh(script) })).unwrap();
    let error = end.error().unwrap();
    assert_eq!(error.code, ErrorCode::ResourceLimitExceeded);
    let peak = end.exceeded.as_ref().and_then(|over| over.used).unwrap().to_string();
    assert!(["memoryBytes", "100663296", &peak].iter().all(|text| error.message.contains(text)), "{error:?}");
    assert!(end.violations.iter().any(|violation| violation.kind == "MemoryLimitExceeded"));
}

fn processes(jail: &'static str) {
    let program = own_program();
    let mut spec = GuestSpec::command([program.to_str().unwrap(), "--threads", "300"]);
    spec.level = IsolationLevel::Strict;
    spec.readable = vec![program];
    spec.limits.processes = Some(100);
    // The program itself is one. How many threads runc has at the time differs by a few.
    let threads = got(jail, spec.clone()) + 1;
    assert!((95..=105).contains(&threads), "{threads}");
    // It also starts where it is to be nearly alone.
    spec.limits.processes = Some(2);
    assert!((1..=7).contains(&(got(jail, spec) + 1)));
}

fn open_files(jail: &'static str) {
    let limits = Limits { open_files: Some(200), ..Limits::default() };
    let open = got(jail, using("files", "", limits));
    assert!(down_to_five_percent_under(200).contains(&open), "{open}");
}

fn file_bytes(jail: &'static str) {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { file_bytes: Some(3 * MIB), ..Limits::default() };
    let path = folder.path().join("large");
    let mut spec = using("space", path.to_str().unwrap(), limits);
    spec.writable = vec![folder.path().to_owned()];
    assert_eq!(got(jail, spec), 3 * MIB);
    assert_eq!(std::fs::metadata(path).unwrap().len(), 3 * MIB);
}

fn scratch_bytes(jail: &'static str) {
    let limits = Limits { scratch_bytes: Some(20 * MIB), ..Limits::default() };
    let written = got(jail, using("space", "/tmp/large", limits));
    assert!(down_to_five_percent_under(20 * MIB).contains(&written), "{written}");
}

fn output_bytes(jail: &'static str) {
    let house = House::new();
    let limits = Limits { output_bytes: Some(100_000), ..Limits::default() };
    let (end, heard) = block_on(run(&*house.jail(jail), GuestSpec { limits, ..sh("yes") })).unwrap();
    assert_eq!(heard.out.len(), 100_000);
    assert_eq!(end.exceeded.unwrap().limit, "outputBytes");
}

/// runsc gives a program that comes later the limits of the one that waited for it.
fn in_a_kernel_that_stood_ready(jail: &'static str) {
    let house = House::with(|options| options.warm = 1);
    let held = house.jail(jail);
    let started = |files: Option<u32>| {
        let mut spec = sh("ulimit -n");
        spec.limits.open_files = files;
        block_on(async {
            let mut guest = held.start(spec).await.unwrap();
            let stood_ready = guest.enforcement().details.contains_key("startedBefore");
            let (sink, heard) = crate::world::keeping();
            guest.wait(sink).await.unwrap();
            let heard = heard.lock().unwrap().out.trim().to_owned();
            // Until the next one stands ready.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            (stood_ready, heard)
        })
    };
    let usual: Vec<(bool, String)> = (0..10).map(|_| started(None)).collect();
    assert!(usual.iter().any(|(stood_ready, _)| *stood_ready), "{usual:?}");
    assert!(usual.iter().all(|(_, files)| files == "1024"), "{usual:?}");
    assert_eq!(started(Some(200)), (false, "200".to_owned()));
}
