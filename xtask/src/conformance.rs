//! The public conformance suite of MCP, against a server and a client that haft's public API makes.
//!
//! The suite counts some checks as passed where no server is. So the server is asked before and after it, and every
//! scenario that a revision requires has to be among those that passed.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::mcp_kit;
use crate::recap::{End, Outcome};
use crate::step;
use crate::workspace::Workspace;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Scenarios that no revision requires, and that pass all the same: they are to stay so. `docs/mcp.md` lists the
/// others.
const ALSO: [(&str, &[&str]); 2] = [
    ("2025-11-25", &["server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"]),
    (
        "2026-07-28",
        &[
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-request-headers",
            "json-schema-2020-12",
            "http-header-validation",
            "http-custom-header-server-validation",
        ],
    ),
];

/// Scenarios that a revision requires of a client and that haft does not pass. `docs/mcp.md` says why.
fn is_beyond(scenario: &str) -> bool {
    scenario.starts_with("auth/") || BEYOND.contains(&scenario)
}

const BEYOND: [&str; 1] = ["elicitation-sep1034-client-defaults"];

/// The step by itself.
pub(crate) fn conformance(workspace: &Workspace) -> Result<(), Error> {
    let kit = mcp_kit::ensure(workspace)?;
    println!("the SDKs are in {}; tests look there with {}", kit.display(), mcp_kit::VARIABLE);
    match check(workspace, &kit)? {
        End::Failed => Err(Error::TestsFailed),
        End::Passed | End::Information(_) | End::NotRun(_) => Ok(()),
    }
}

/// The step as a part of a test run.
pub(crate) fn outcome(workspace: &Workspace, kit: Option<&Path>) -> Result<Outcome, Error> {
    let started = Instant::now();
    let end = match kit {
        Some(kit) => check(workspace, kit)?,
        None => End::NotRun("the conformance suite of MCP is not installed".to_owned()),
    };
    Ok(Outcome { name: "MCP conformance", took: started.elapsed(), end })
}

fn check(workspace: &Workspace, kit: &Path) -> Result<End, Error> {
    let mut build = workspace.cargo();
    build.args(["build", "--package", "haft-mcp", "--example", "conformance_server"]);
    build.args(["--example", "conformance_client"]);
    step::announce("MCP conformance", &build);
    if !step::run(&mut build)?.success() {
        return Ok(End::Failed);
    }
    let server = Server::start(workspace)?;
    let mut problems = Vec::new();
    for revision in REVISIONS {
        if !server.is_alive() {
            problems.push("the server is not there".to_owned());
            break;
        }
        let mut required = required(workspace, kit, revision, "server")?;
        let also = ALSO.iter().filter(|(known, _)| *known == revision);
        required.extend(also.flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned())));
        let suite = kit.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        let mut run = workspace.command(kit.join("node"));
        run.arg(suite).args(["server", "--url", &server.url, "--requirements", revision]);
        step::announce("MCP conformance", &run);
        let output = step::run_captured(&mut run, |line| line.starts_with('✗') || line.starts_with("Total"))?;
        problems.extend(
            missing(&required, &output.stdout).map(|name| format!("{revision}: {name} did not pass")),
        );
        if !output.status.success() {
            problems.push(format!("{revision}: the suite ended with {}", output.status));
        }
        problems.extend(check_client(workspace, kit, revision)?);
    }
    if !server.is_alive() {
        problems.push("the server was gone at the end".to_owned());
    }
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(if problems.is_empty() { End::Passed } else { End::Failed })
}

/// The client half: the suite is the server, and the example is started once for each scenario.
fn check_client(workspace: &Workspace, kit: &Path, revision: &str) -> Result<Vec<String>, Error> {
    let mut required = required(workspace, kit, revision, "client")?;
    required.retain(|scenario| !is_beyond(scenario));
    let suite = kit.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let client = workspace.target().join("debug/examples/conformance_client");
    let mut problems = Vec::new();
    // One by one: with a whole list the suite starts all clients at once, and what is beyond haft would fail the
    // others.
    for scenario in &required {
        let mut run = workspace.command(kit.join("node"));
        run.arg(&suite)
            .args(["client", "--spec-version", revision, "--scenario", scenario, "--command"])
            .arg(&client);
        step::announce("MCP conformance", &run);
        let output =
            step::run_captured(&mut run, |line| line.starts_with('✗') || line.starts_with("Passed"))?;
        if !output.status.success() {
            problems.push(format!("{revision}: a client does not pass {scenario}"));
        }
    }
    Ok(problems)
}

/// The example, which tells its address on its first line.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(workspace: &Workspace) -> Result<Self, Error> {
        let program = workspace.target().join("debug/examples/conformance_server");
        let mut command = workspace.command(&program);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let start = |source| Error::Start { program: program.display().to_string(), source };
        let mut child = command.spawn().map_err(start)?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url).map_err(Error::Output)?;
        }
        Ok(Server { child, url: url.trim().to_owned() })
    }

    /// Whether it answers as a server of MCP does.
    fn is_alive(&self) -> bool {
        self.discover()
            .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.contains("supportedVersions"))
    }

    fn discover(&self) -> io::Result<String> {
        let address = self.url.trim_start_matches("http://").trim_end_matches("/mcp");
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: server/discover\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a revision requires of one side: by the list in the test data, else by the suite's own copy of it.
fn required(workspace: &Workspace, kit: &Path, revision: &str, side: &str) -> Result<Vec<String>, Error> {
    let data = std::env::var_os("HAFT_TEST_DATA").filter(|folder| !folder.is_empty());
    let data = data.map_or_else(|| workspace.root().join("../shared/data"), PathBuf::from);
    let file = format!("{revision}.yaml");
    let shared = data.join("mcp_schema/requirements").join(&file);
    let own = kit.join("node_modules/@modelcontextprotocol/conformance/requirements").join(&file);
    let path = if shared.is_file() { shared } else { own };
    let text = fs::read_to_string(&path).map_err(|source| Error::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    let names = scenarios(&text, side);
    if names.is_empty() { Err(Error::NoSuchFile(path)) } else { Ok(names) }
}

/// The entries below `server:` or `client:`.
fn scenarios(yaml: &str, side: &str) -> Vec<String> {
    let heading = format!("{side}:");
    let lines = yaml.lines().skip_while(|line| line.trim_end() != heading).skip(1);
    let entries = lines.take_while(|line| line.trim().is_empty() || line.starts_with(' '));
    entries.filter_map(|line| line.trim().strip_prefix("- ")).map(str::to_owned).collect()
}

/// Those that the suite does not say have passed, each with at least one check.
fn missing<'a>(required: &'a [String], output: &'a str) -> impl Iterator<Item = &'a String> {
    required.iter().filter(move |name| {
        let passed = |line: &str| {
            let rest = line.strip_prefix("✓ ")?.strip_prefix(name.as_str())?.strip_prefix(": ")?;
            let (passed, rest) = rest.split_once(" passed, ")?;
            (passed != "0" && rest.starts_with("0 failed")).then_some(())
        };
        !output.lines().any(|line| passed(line).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_side_must_do_is_required() {
        let yaml = "# words\nserver:\n  - ping\n\n  - tools-list\nclient:\n  - other\n";
        assert_eq!(scenarios(yaml, "server"), ["ping", "tools-list"]);
        assert_eq!(scenarios(yaml, "client"), ["other"]);
    }

    #[test]
    fn what_did_not_run_did_not_pass() {
        let required = ["ping", "tools-list", "empty", "broken", "gone"].map(str::to_owned);
        let output = "✓ ping: 2 passed, 0 failed\n✓ tools-list-more: 1 passed, 0 failed\n✓ empty: 0 passed, 0 failed\n\
                      ✗ broken: 1 passed, 1 failed\n✓ tools-list: 3 passed, 0 failed, 1 warnings\n";
        assert_eq!(missing(&required, output).collect::<Vec<_>>(), ["empty", "broken", "gone"]);
    }
}
