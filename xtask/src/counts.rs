//! `cargo xtask counts`: how many instructions the stages of a call and the start of the program take, beside those that
//! are written down in `xtask/counts.txt`.
//!
//! Time on a shared machine varies by more than a change costs; instructions hardly vary. What is counted is the build
//! without optimisation that the tests have made anyway: a release build would take longer than all counts together,
//! and work that is added adds to both. valgrind emulates one processor, but which instructions that has, and the libc,
//! are those of the machine: the counts that are written down hold for Debian 12 on x86-64 with AVX2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::error::Error;
use crate::recap::{End, Outcome};
use crate::step;
use crate::workspace::Workspace;

/// Parts of a call, in the order of the table, and how often each is done to count it. What comes before redaction (its
/// patterns are compiled) varies by more than one redaction costs, so that is done often.
const WORK: [(&str, u64); 5] =
    [("decide", 40), ("dispatch", 40), ("plan", 40), ("record", 20), ("redact", 300)];

/// Starts of the program, with their arguments.
const STARTS: [(&str, &[&str]); 2] =
    [("start: version", &["--version"]), ("start: call", &["call", "validate_content", "content=[1]"])];

/// How far a count may be from the one that is written down, in thousandths.
const TOLERANCE: u64 = 30;

/// A count may be this much dearer, in hundredths, when it is made so on purpose: it has to be noticed.
const DEARER: u64 = 5;

/// The step by itself. `write` writes the counts down.
pub(crate) fn counts(workspace: &Workspace, write: bool) -> Result<(), Error> {
    match check(workspace, write)? {
        End::Passed | End::Information(_) => Ok(()),
        End::Failed => Err(Error::TestsFailed),
        End::NotRun(why) => Err(Error::NotRun(why)),
    }
}

/// The step as a part of a test run.
pub(crate) fn outcome(workspace: &Workspace) -> Result<Outcome, Error> {
    let started = Instant::now();
    let end = check(workspace, false)?;
    Ok(Outcome { name: "counts", took: started.elapsed(), end })
}

fn check(workspace: &Workspace, write: bool) -> Result<End, Error> {
    if let Some(why) = elsewhere(&read("/etc/os-release"), &read("/proc/cpuinfo"), std::env::consts::ARCH) {
        return Ok(End::NotRun(why));
    }
    if !step::works(workspace.command("valgrind").arg("--version")) {
        return Ok(End::NotRun("valgrind is not installed: apt-get install valgrind".to_owned()));
    }
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--workspace", "--bin", "haft", "--example", "counts"]);
    step::announce("counts", &cargo);
    if !step::run(&mut cargo)?.success() {
        return Ok(End::Failed);
    }
    let counter = Counter { workspace };
    let counted = counter.all()?;
    let file = workspace.root().join("xtask/counts.txt");
    if write {
        fs::write(&file, text(&counted)).map_err(|source| Error::File {
            action: "write",
            path: file.clone(),
            source,
        })?;
        println!("written to {}", file.display());
    }
    let known = parse(&read(&file));
    let problems = compare(&counted, &known);
    for (name, count) in &counted {
        let before = known.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
        println!("  {name:<16} {count:>12}  written down {before:>12}");
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    // Whether a call that is made dearer on purpose is noticed.
    let dearer = ("dispatch".to_owned(), counter.work("dispatch", 40, DEARER)?);
    let is_noticed = !compare(&[dearer], &known).is_empty();
    println!("  a call made {DEARER} % dearer is {}", if is_noticed { "noticed" } else { "NOT NOTICED" });
    Ok(if problems.is_empty() && is_noticed { End::Passed } else { End::Failed })
}

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// Why the counts that are written down do not hold here; `None` where they do.
fn elsewhere(os_release: &str, cpuinfo: &str, arch: &str) -> Option<String> {
    let has = |line: &str| os_release.lines().any(|known| known.trim() == line);
    if !has("ID=debian") || !has("VERSION_ID=\"12\"") || arch != "x86_64" {
        return Some("the counts in xtask/counts.txt are of Debian 12 on x86-64".to_owned());
    }
    let has_avx2 = cpuinfo.split_whitespace().any(|flag| flag == "avx2");
    (!has_avx2).then(|| "the counts in xtask/counts.txt are of a processor with AVX2".to_owned())
}

struct Counter<'a> {
    workspace: &'a Workspace,
}

impl Counter<'_> {
    fn all(&self) -> Result<Vec<(String, u64)>, Error> {
        let mut counted = Vec::new();
        for (name, times) in WORK {
            counted.push((name.to_owned(), self.work(name, times, 0)?));
        }
        let place = self.workspace.target().join(format!("xtask/counts-{}", std::process::id()));
        let made =
            fs::create_dir_all(place.join("home")).and_then(|()| fs::create_dir_all(place.join("work")));
        made.map_err(|source| Error::File { action: "create", path: place.clone(), source })?;
        let starts = STARTS.iter().try_for_each(|(name, arguments)| {
            // The first makes the database, and what haft finds out once.
            let command = || self.start(&place, arguments);
            step::must_succeed(&mut command())?;
            counted.push(((*name).to_owned(), instructions(&mut under_valgrind(&command()))?));
            Ok(())
        });
        // What is left in the target folder harms nobody.
        let _ = fs::remove_dir_all(&place);
        starts.map(|()| counted)
    }

    /// Instructions of one piece of work: the difference between one time and more. `dearer` hundredths are added.
    fn work(&self, name: &str, times: u64, dearer: u64) -> Result<u64, Error> {
        let more = 1 + times + times * dearer / 100;
        let program = self.workspace.target().join("debug/examples/counts");
        let count = |times: u64| {
            let mut command = self.workspace.command(&program);
            command.args([name, &times.to_string()]);
            instructions(&mut under_valgrind(&command))
        };
        Ok(count(more)?.saturating_sub(count(1)?) / times)
    }

    fn start(&self, place: &Path, arguments: &[&str]) -> Command {
        let mut command = self.workspace.command(self.workspace.target().join("debug/haft"));
        command.env_clear().env("HOME", place.join("home")).env("PATH", "/usr/bin:/bin");
        command.current_dir(place.join("work")).args(arguments);
        command.stdout(std::process::Stdio::null());
        command
    }
}

/// The same command, counted.
fn under_valgrind(command: &Command) -> Command {
    let mut counted = Command::new("valgrind");
    counted.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    counted.arg(command.get_program()).args(command.get_args()).env_clear();
    counted.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    counted.current_dir(command.get_current_dir().map_or_else(|| PathBuf::from("."), Path::to_path_buf));
    counted
}

fn instructions(command: &mut Command) -> Result<u64, Error> {
    let output = command.output().map_err(Error::Output)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let failed =
        || Error::Failed { command: format!("{}\n{said}", step::shown(command)), status: output.status };
    if !output.status.success() {
        return Err(failed());
    }
    counted_by(&said).ok_or_else(failed)
}

/// `==123== I refs:        1,234,567`
fn counted_by(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("I ") && line.contains("refs:"))?;
    let digits: String = line.rsplit(':').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn text(counted: &[(String, u64)]) -> String {
    let head =
        "# Instructions, counted by `cargo xtask counts`; `cargo xtask counts --write` writes this file.\n";
    counted.iter().fold(head.to_owned(), |text, (name, count)| text + &format!("{name} = {count}\n"))
}

fn parse(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = |line: &str| {
        let (name, count) = line.split_once('=')?;
        Some((name.trim().to_owned(), count.trim().parse().ok()?))
    };
    lines.filter_map(line).collect()
}

/// What is not as it is written down, in words.
fn compare(counted: &[(String, u64)], known: &[(String, u64)]) -> Vec<String> {
    let problem = |(name, count): &(String, u64)| {
        let Some((_, before)) = known.iter().find(|(known, _)| known == name) else {
            return Some(format!("{name}: nothing is written down; `cargo xtask counts --write`"));
        };
        let off = count.abs_diff(*before).saturating_mul(1000);
        let words = if count > before { "more" } else { "fewer" };
        (off > before.saturating_mul(TOLERANCE)).then(|| {
            let percent = off as f64 / 10.0 / (*before).max(1) as f64;
            format!(
                "{name}: {percent:.1} % {words} instructions than before. Where that is meant, \
                 `cargo xtask counts --write`"
            )
        })
    };
    counted.iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(count: u64) -> Vec<(String, u64)> {
        vec![("dispatch".to_owned(), count)]
    }

    #[test]
    fn three_in_a_hundred_pass_and_five_are_noticed_in_both_directions() {
        let known = named(100_000);
        for count in [97_000, 99_000, 100_000, 103_000] {
            assert!(compare(&named(count), &known).is_empty(), "{count}");
        }
        for count in [95_000, 96_900, 103_100, 105_000] {
            assert_eq!(compare(&named(count), &known).len(), 1, "{count}");
        }
        assert!(compare(&named(105_000), &known)[0].starts_with("dispatch: 5.0 % more instructions"));
        assert_eq!(compare(&named(1), &[]).len(), 1, "one that is new has to be written down");
    }

    #[test]
    fn every_count_is_written_down() {
        let written = parse(&read(Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.txt")));
        let names: Vec<_> = written.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = WORK.iter().map(|(name, _)| *name).chain(STARTS.iter().map(|(name, _)| *name));
        assert_eq!(names, wanted.collect::<Vec<_>>());
        assert_eq!(parse(&text(&written)), written);
    }

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        let said = "==7== Cachegrind, a cache profiler\n==7== \n==7== I   refs:      12,345,678\n";
        assert_eq!(counted_by(said), Some(12_345_678));
        assert_eq!(counted_by("==7== I refs:      9\n"), Some(9));
        assert_eq!(counted_by("valgrind: failed"), None);
    }

    #[test]
    fn counts_of_one_system_do_not_hold_on_another() {
        let debian = "ID=debian\nVERSION_ID=\"12\"\n";
        assert_eq!(elsewhere(debian, "flags : sse avx2 x", "x86_64"), None);
        assert!(elsewhere(debian, "flags : sse avx x", "x86_64").is_some());
        assert!(elsewhere(debian, "flags : avx2", "aarch64").is_some());
        assert!(elsewhere("ID=debian\nVERSION_ID=\"13\"\n", "flags : avx2", "x86_64").is_some());
    }
}
