//! Calls over MCP and HTTP wait for an answer while somebody watches, and do not where nobody does.

use crate::{
    screen::Screen,
    support::{Place, Said},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::{Duration, Instant},
};

/// `haft mcp` on pipes.
struct Mcp {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Mcp {
    fn start(place: &Place) -> Mcp {
        let mut child = place.program(&["mcp"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut mcp = Mcp { child, stdin, stdout };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        mcp.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}));
        mcp.answer(0);
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        mcp
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn call(&mut self, id: u64, path: &str) {
        let arguments = json!({"path": path, "content": "text"});
        let params = json!({"name": "write_file", "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// The answer to that request, and what was told before it.
    fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut told = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "it ended: {told:?}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                return (message["result"].clone(), told);
            }
            told.push(message);
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_call_over_mcp_waits_while_somebody_watches() {
    let place = Place::new();
    let mut mcp = Mcp::start(&place);
    // Nobody is there: it does not wait, and says what to do.
    let begun = Instant::now();
    mcp.call(1, "first.txt");
    let (result, _) = mcp.answer(1);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(result["isError"] == true && result.to_string().contains("haft approvals approve"), "{result}");

    let Some(screen) = Screen::new(&place, "watched", 100, &[]) else { return };
    screen.line(
        "\"$haft\" approvals deny $(\"$haft\" approvals list --json | grep -o 'apr_[0-9a-f]*' | head -1)",
    );
    screen.line("clear; \"$haft\" approvals watch");
    screen.until("Ctrl-C stops");
    mcp.call(2, "second.txt");
    screen.until("second.txt");
    screen.keys("y");
    let (result, told) = mcp.answer(2);
    assert_ne!(result["isError"], true, "{result}");
    assert!(place.work().join("second.txt").exists());
    assert!(told.iter().any(|message| message.to_string().contains("waiting for approval")), "{told:?}");
    mcp.call(3, "third.txt");
    screen.until("third.txt");
    screen.keys("n");
    let (result, _) = mcp.answer(3);
    assert!(result["isError"] == true && !place.work().join("third.txt").exists(), "{result}");
}

/// When the time is over, the question stays on the list.
#[test]
fn a_call_does_not_wait_longer_than_configured() {
    let place = Place::new();
    place.own_config("[tools.approval]\nwait_seconds = 2\n");
    let Some(screen) = Screen::new(&place, "watched-long", 100, &[]) else { return };
    screen.line("\"$haft\" approvals watch");
    screen.until("Ctrl-C stops");
    let mut mcp = Mcp::start(&place);
    let begun = Instant::now();
    mcp.call(1, "first.txt");
    let (result, _) = mcp.answer(1);
    assert!(result["isError"] == true && begun.elapsed() >= Duration::from_secs(2), "{result}");
    let listed: Said = place.haft(&["approvals", "list"]);
    assert!(listed.stdout.contains("first.txt"), "{listed:?}");
}
