//! The program, as people start it: default configuration and store, single calls, beside the least that they could
//! cost. What is compared takes turns in one run.
//!
//! `--quick` for a short look. `HAFT_PROGRAM` names another program than the one that was built with this one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures; where it cannot, it stops"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

const BYTES: usize = 200 * 1000;

struct Place {
    program: PathBuf,
    home: PathBuf,
    work: PathBuf,
}

impl Place {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin").current_dir(&self.work);
        command.args(args);
        command
    }
}

/// Milliseconds that something takes.
fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

fn run(mut command: Command) -> f64 {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    timed(|| assert!(command.status().unwrap().success(), "{command:?}"))
}

fn bubblewrap() -> Option<Command> {
    let mut command = Command::new("bwrap");
    command.args([
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "--die-with-parent",
    ]);
    command.arg("true");
    let is_there = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    is_there.is_ok_and(|status| status.success()).then_some(command)
}

/// `haft mcp`, spoken to on pipes.
struct Warm {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: String,
    number: usize,
}

impl Warm {
    fn new(place: &Place, more: &[&str]) -> Self {
        let mut args = more.to_vec();
        args.push("mcp");
        let mut command = place.command(&args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut warm = Warm { child, to, from, line: String::new(), number: 0 };
        warm.ask(
            "initialize",
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#,
        );
        warm.to.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
        warm
    }

    fn ask(&mut self, method: &str, params: &str) {
        self.number += 1;
        let number = self.number;
        let request = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}"#);
        self.to.write_all((request + "\n").as_bytes()).unwrap();
        loop {
            self.line.clear();
            assert_ne!(self.from.read_line(&mut self.line).unwrap(), 0, "it ended");
            if self.line.contains(&format!("\"id\":{number}")) {
                return;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &str) -> f64 {
        let took =
            timed(|| self.ask("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)));
        assert!(!self.line.contains("\"isError\":true"), "{tool}: {:.600}", self.line);
        took
    }

    fn resident_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }

    fn end(mut self) {
        drop(self.to);
        self.child.wait().unwrap();
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Two things in turn: the medians, and the median of the rounds' ratios.
fn compare(
    rounds: usize,
    mut floor: impl FnMut(usize) -> f64,
    mut haft: impl FnMut(usize) -> f64,
) -> [f64; 3] {
    let (mut floors, mut hafts) = (Vec::new(), Vec::new());
    for round in 0..rounds + 2 {
        let pair = (floor(round), haft(round));
        // The first of each warms caches.
        if round >= 2 {
            floors.push(pair.0);
            hafts.push(pair.1);
        }
    }
    let ratios = floors.iter().zip(&hafts).map(|(floor, haft)| haft / floor).collect();
    [median(floors), median(hafts), median(ratios)]
}

fn row(name: &str, beside: &str, [floor, haft, ratio]: [f64; 3], goal: &str, is_met: bool) {
    let mark = if is_met { "" } else { "  MISSED" };
    println!("{name:<44} {haft:>8.2} ms  {beside:<28} {floor:>7.2} ms  {ratio:>5.2}x  goal {goal}{mark}");
}

fn cold(place: &Place, rounds: usize) {
    // Commands are denied until a person chooses otherwise.
    run(place.command(&["policy", "use", "coding"]));
    // The first one makes the database, and finds out which jail there is.
    run(place.command(&["call", "run_command", "command=true"]));
    let call = |args: &[&str]| run(place.command(args));
    match bubblewrap() {
        Some(_) => {
            let figures = compare(
                rounds,
                |_| run(bubblewrap().unwrap()),
                |_| call(&["call", "run_command", "command=true"]),
            );
            let is_met = figures[1] <= 12.0 && figures[2] <= 3.0;
            row("haft call run_command command=true", "bubblewrap", figures, "12 ms, 3x", is_met);
        }
        None => println!("bubblewrap is not installed: the start of a command is not compared"),
    }
    let figures =
        compare(rounds, |_| call(&["--version"]), |_| call(&["call", "validate_content", "content=[1]"]));
    row("haft call validate_content", "haft --version", figures, "7 ms", figures[1] <= 7.0);
}

fn warm(place: &Place, rounds: usize) {
    let plain = || run(Command::new("/bin/true"));
    let mut haft = Warm::new(place, &[]);
    let command = r#"{"command":"true"}"#;
    let figures = compare(rounds, |_| plain(), |_| haft.call("run_command", command));
    row("run_command true, warm, durable", "plain fork and exec", figures, "none", true);
    if bubblewrap().is_some() {
        let figures = compare(rounds, |_| run(bubblewrap().unwrap()), |_| haft.call("run_command", command));
        row("run_command true, warm, durable", "bubblewrap", figures, "0.5x", figures[2] <= 0.5);
    }
    let file = place.work.join("large.rs");
    let text = include_str!("program.rs");
    let text: String = text.repeat(BYTES / text.len() + 1).chars().take(BYTES).collect();
    fs::write(&file, &text).unwrap();
    let escape = |_| timed(|| drop(serde_json::to_string(&fs::read_to_string(&file).unwrap()).unwrap()));
    let figures = compare(rounds, escape, |_| haft.call("read_file", r#"{"path":"large.rs"}"#));
    row("read_file of 200 KB", "read and JSON escape", figures, "2x", figures[2] <= 2.0);
    let synced = |round: usize| {
        let path = place.work.join(format!("plain-{}", round % 4));
        timed(|| {
            let mut file = fs::File::create(path).unwrap();
            file.write_all(b"some text\n").unwrap();
            file.sync_all().unwrap();
        })
    };
    let write = |round: usize| format!(r#"{{"path":"new-{round}.txt","content":"some text\n"}}"#);
    let few = compare(rounds, synced, |round| haft.call("write_file", &write(round)));
    row("write_file of a new file", "create and fsync", few, "none", true);
    for round in 0..if rounds < 50 { 50 } else { 1000 } {
        haft.call("write_file", &format!(r#"{{"path":"more-{round}.txt","content":"some text\n"}}"#));
    }
    let many = compare(rounds, synced, |round| haft.call("write_file", &write(10_000 + round)));
    row("… after a thousand others", "create and fsync", many, "flat", many[1] <= few[1] * 1.25);
    haft.end();
    let idle = Warm::new(place, &[]);
    let mb = idle.resident_mb();
    println!("haft mcp, idle: {mb:.1} MB  goal 20 MB{}", if mb <= 20.0 { "" } else { "  MISSED" });
    idle.end();
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let rounds = if quick { 10 } else { 100 };
    let built = PathBuf::from(env!("CARGO_BIN_EXE_haft"));
    let program = std::env::var_os("HAFT_PROGRAM").map_or(built, PathBuf::from);
    // Beside the programs: a folder of temporary files may be memory, where nothing costs anything.
    let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let below = |name: &str| -> PathBuf {
        let path: &Path = folder.path();
        fs::create_dir(path.join(name)).unwrap();
        path.join(name)
    };
    let place = Place { program, home: below("home"), work: below("work") };
    cold(&place, rounds);
    warm(&place, rounds);
}
