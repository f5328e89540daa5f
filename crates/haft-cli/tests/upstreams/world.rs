//! A place with a scripted server.

use super::support::{Place, Said};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

/// A place in which the tools of the scripted server were added, under a mark by which its processes are found.
pub struct World {
    pub place: Place,
    pub mark: String,
}

impl World {
    pub fn bare() -> World {
        let place = Place::new();
        place.own_config("[tools.approval]\nmode = \"auto\"\n");
        World { place, mark: format!("mark-{}", fresh()) }
    }

    pub fn new() -> World {
        let world = World::bare();
        let said = world.add(&[]);
        assert_eq!(said.code, 0, "{said:?}");
        world
    }

    /// `haft tools add --mcp s … -- SERVER`.
    pub fn add(&self, more: &[&str]) -> Said {
        let server = std::env::current_exe().unwrap();
        let mut args = vec!["tools", "add", "--mcp", "s"];
        args.extend(more);
        args.extend(["--", server.to_str().unwrap(), "mcp-server", &self.mark]);
        self.place.haft(&args)
    }

    pub fn script(&self, script: Value) {
        self.place.write("script.json", script.to_string());
    }

    pub fn call(&self, tool: &str, arguments: &Value) -> Said {
        self.place.haft(&["call", tool, "--json", "--args", &arguments.to_string()])
    }

    pub fn wrote(&self, name: &str) -> bool {
        self.place.work().join(name).exists()
    }

    /// How many processes of the server are there.
    pub fn processes(&self) -> usize {
        processes(&self.mark)
    }

    /// Waits until there are none, for no longer than that.
    pub fn none_left(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        while self.processes() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.processes() == 0
    }

    pub fn serve(&self, more: &[&str]) -> Session {
        let mut args = vec!["mcp"];
        args.extend(more);
        Session::start(&mut self.place.program(&args))
    }
}

fn fresh() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()
        ^ u128::from(std::process::id()) << 64
}

/// How many processes have that word on their command line, haft's own apart.
pub fn processes(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let is_haft = words.first().is_some_and(|first| first.ends_with(b"/haft"));
            !is_haft && words.contains(&word.as_bytes())
        })
        .count()
}

/// A process of haft that serves MCP, and lives for several calls.
pub struct Session {
    pub child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Session {
    /// Begins one with `haft mcp` as that command has it.
    pub fn start(command: &mut std::process::Command) -> Session {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut session = Session { child, to, from, id: 0 };
        session.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            }),
        );
        session
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.to.as_mut().unwrap(), "{request}").unwrap();
        self.id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The answer to a request; notifications before it are left out.
    pub fn answer(&mut self, id: u64) -> Value {
        self.message(id)["result"].clone()
    }

    fn message(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The whole message that answers a request.
    pub fn whole(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.message(id)
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The code of the error that a call ended with.
    pub fn error(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let answer = self.call(tool, arguments);
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (answer["_meta"]["haft/error"]["code"].as_str().unwrap_or_default().to_owned(), text)
    }

    pub fn names(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub fn end(mut self) {
        drop(self.to.take());
        self.child.wait().unwrap();
    }
}
