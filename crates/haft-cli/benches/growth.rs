//! What grows with the number of tools that are registered, and what does not: the real program, with none and with
//! many.
//!
//! `--quick` for a short look with a tenth of the tools. `HAFT_PROGRAM` names another program to measure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a program that measures; where it cannot, it stops"
)]

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// One user of haft.
struct Home(PathBuf);

impl Home {
    fn new(folder: &Path, name: &str) -> Home {
        let home = folder.join(name);
        std::fs::create_dir(&home).unwrap();
        Home(home)
    }

    fn command(&self, args: &[&str]) -> Command {
        let program = std::env::var_os("HAFT_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_haft").into()));
        command.env_clear().env("HOME", &self.0).current_dir(&self.0).args(args);
        command
    }

    /// Seconds that a command takes from start to end.
    fn run(&self, args: &[&str]) -> f64 {
        let mut command = self.command(args);
        let begun = Instant::now();
        let said = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        let took = begun.elapsed().as_secs_f64();
        assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
        took
    }

    fn add(&self, tools: usize) -> f64 {
        let list: Vec<Value> = (0..tools).map(tool).collect();
        std::fs::write(self.0.join("tools.json"), Value::from(list).to_string()).unwrap();
        self.run(&["tools", "add", "tools.json"])
    }

    /// The median of some calls, in milliseconds.
    fn call(&self, rounds: usize) -> f64 {
        let mut times: Vec<f64> = (0..rounds).map(|_| self.run(&["call", "get_state"]) * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool_{number:06}"),
        "description": format!("Does the thing with the number {number} for somebody who asks"),
        "aliases": [format!("Tool{number}")],
        "parameters": [
            {"name": "text", "description": "What to do it with", "type": "String", "required": true},
            {"name": "count", "description": "How often", "type": "Integer"},
        ],
    })
}

/// `haft mcp`, and the pipes to it.
struct Mcp {
    child: Child,
    from: BufReader<std::process::ChildStdout>,
}

impl Mcp {
    fn start(home: &Home) -> Mcp {
        let mut command = home.command(&["--set", "tools.max_listed=1000000", "mcp"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut mcp = Mcp { child, from };
        mcp.ask("initialize", json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "growth", "version": "1"},
        }));
        mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        mcp
    }

    fn say(&mut self, message: &Value) {
        let to = self.child.stdin.as_mut().unwrap();
        writeln!(to, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "haft mcp ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() && message.get("method").is_none() {
                return message["result"].clone();
            }
        }
    }

    /// All pages of the list of tools: how many there are, and the seconds that it took.
    fn list(&mut self) -> (usize, f64) {
        let begun = Instant::now();
        let (mut count, mut params) = (0, json!({}));
        loop {
            let page = self.ask("tools/list", params);
            count += page["tools"].as_array().unwrap().len();
            match page.get("nextCursor").filter(|next| !next.is_null()) {
                Some(next) => params = json!({"cursor": next}),
                None => return (count, begun.elapsed().as_secs_f64()),
            }
        }
    }

    /// Seconds of CPU that the process has used.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / 100.0
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let (part, rounds) = if quick { (10, 5) } else { (1, 31) };
    let mut missed = false;
    let mut row = |what: String, value: f64, unit: &str, goal: Option<f64>| {
        let is_missed = goal.is_some_and(|goal| value > goal);
        missed |= is_missed;
        let goal = goal.map(|goal| format!("goal {goal}")).unwrap_or_default();
        println!("{what:<58} {value:>10.2} {unit:<3} {goal}{}", if is_missed { "  MISSED" } else { "" });
    };
    // Beside the programs: a folder of temporary files may be memory, where nothing costs anything.
    let folder = tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap();
    let none = Home::new(folder.path(), "none");
    none.run(&["call", "get_state"]);
    for count in [1_000, 2_000, 4_000] {
        let home = Home::new(folder.path(), &format!("added_{count}"));
        let goal = (count == 1_000).then_some(1.0);
        row(format!("haft tools add of {count}"), home.add(count / part), "s", goal);
    }
    let without = none.call(rounds);
    row("haft call with no tools registered".to_owned(), without, "ms", None);
    for count in [10_000, 40_000, 100_000] {
        let home = Home::new(folder.path(), &format!("many_{count}"));
        home.add(count / part);
        row(
            format!("haft call with {count} tools registered"),
            home.call(rounds),
            "ms",
            Some(without + 10.0),
        );
        let mut mcp = Mcp::start(&home);
        let (first, took) = mcp.list();
        assert!(first >= count / part);
        row(format!("tools/list, all pages, {count} tools, the first time"), took, "s", None);
        let (_, took) = mcp.list();
        row(format!("tools/list, all pages, {count} tools"), took, "s", (count == 40_000).then_some(0.5));
        let (before, pause) = (mcp.cpu(), Duration::from_secs(10));
        std::thread::sleep(pause);
        let share = (mcp.cpu() - before) / pause.as_secs_f64() * 100.0;
        row(format!("CPU of an idle server with {count} tools"), share, "%", Some(0.5));
        mcp.end();
    }
    let mut times: Vec<f64> = (0..5).map(|_| none.run(&["doctor"])).collect();
    times.sort_by(f64::total_cmp);
    row("haft doctor".to_owned(), times[2], "s", Some(1.0));
    std::process::exit(i32::from(missed && !quick));
}
