//! The examples at the end of each help.

pub(super) const APPROVALS: &str = "\
Examples:
  haft approvals list
  haft approvals show apr_5d41
  haft approvals approve apr_5d41
  haft approvals deny apr_5d41 --reason 'not on a Friday'
  haft approvals watch";

pub(super) const APPROVALS_LIST: &str = "\
Examples:
  haft approvals list
  haft approvals list --all --json";

pub(super) const APPROVALS_SHOW: &str = "\
Examples:
  haft approvals show apr_5d41          what the call would change, and what haft can remember";

pub(super) const APPROVALS_APPROVE: &str = "\
Examples:
  haft approvals approve apr_5d41                     the call runs now, or when it is sent again
  haft approvals approve apr_5d41 --all               and every other call of its batch
  haft approvals approve apr_5d41 --remember commands --for 8h
  haft approvals approve apr_5d41 --edit              edit the arguments; haft asks again";

pub(super) const APPROVALS_DENY: &str = "\
Examples:
  haft approvals deny apr_5d41
  haft approvals deny apr_5d41 --reason 'use the staging server'";

pub(super) const APPROVALS_WATCH: &str = "\
Examples:
  haft approvals watch            asks you here about every waiting call
  haft approvals watch --json     prints them as JSON Lines";

pub(super) const GRANTS: &str = "\
Examples:
  haft grants list
  haft grants show grant_3f2a
  haft grants revoke grant_3f2a";

pub(super) const GRANTS_LIST: &str = "\
Examples:
  haft grants list
  haft grants list --all --json      with expired and revoked grants";

pub(super) const GRANTS_SHOW: &str = "\
Examples:
  haft grants show grant_3f2a";

pub(super) const GRANTS_REVOKE: &str = "\
Examples:
  haft grants revoke grant_3f2a
  haft grants revoke --all";

pub(super) const ROOT: &str = "\
Examples:
  haft tools list
  haft call validate_content content='{\"a\": 1,}'
  haft batch calls.json

Exit codes:
  0    success
  1    the call failed
  2    wrong usage
  3    denied
  4    invalid arguments or output, or over a limit
  5    approval needed: see `haft approvals list`
  6    outcome unknown after a crash: see `haft recover`
  124  timeout
  130  cancelled
A batch exits with the code of its first call that did not succeed.

`haft COMMAND --help` shows the options of a command, with examples.";

pub(super) const CALL: &str = "\
Examples:
  haft call validate_content content='{\"a\": 1,}'
  haft call validate_content content=@haft.toml format=toml max_problems=3
  haft call validate_content content=@data.json schema=@schema.json
  haft call inspect_tool --args '{\"name\": \"validate_content\"}' --json
  curl -s https://example.com/a.json | haft call validate_content content=@-
  haft call run_tests --detach";

pub(super) const BATCH: &str = "\
Examples:
  haft batch calls.json
  haft batch calls.jsonl --json --stop-on-failure
  haft batch calls.json --strategy smart --max-parallelism 8
  echo '[{\"id\": \"c1\", \"name\": \"get_metrics\", \"arguments\": {}}]' | haft batch -";

pub(super) const DOCTOR: &str = "\
For each ✓, haft ran a program in that jail. Exits with 1 if no jail reaches the level strict.

Examples:
  haft doctor
  haft doctor --json";

pub(super) const MCP: &str = "\
Without --http, haft speaks MCP on standard input and output, for the client that starts it.

Examples:
  haft mcp install claude-code
  haft mcp install cursor --approvals host
  haft mcp --http 127.0.0.1:8787";

#[cfg(unix)]
pub(super) const SERVE: &str = "\
The unix socket is for you alone and needs no key. A port needs an API key (`haft keys create`), and TLS for other \
machines: see [server] in haft.toml. /v1/openapi.json describes every route.

Examples:
  haft serve
  haft serve --listen 127.0.0.1:8484
  curl --unix-socket ~/.local/state/haft/haft.sock http://haft/v1/tools";

#[cfg(unix)]
pub(super) const KEYS_API: &str = "\
Examples:
  haft keys create ci --right invoke --role editor
  haft keys list
  haft keys revoke key_0123456789abcdef";

#[cfg(unix)]
pub(super) const KEYS_CREATE: &str = "\
haft keeps only a hash of the secret. Every key may read what belongs to its tenant; --right adds more.

Examples:
  haft keys create ci --right invoke --role editor
  haft keys create phone --right approve --user ada --expires 720h
  haft keys create prometheus --right operate --expires never";

pub(super) const MCP_INSTALL: &str = "\
haft changes only its own entry in the client's file, and keeps a copy of the file as it was beside it.

Examples:
  haft mcp install claude-desktop
  haft mcp install vscode --print
  haft mcp install codex --approvals host";

pub(super) const POLICY: &str = "\
Examples:
  haft policy explain run_command command='git push'
  haft policy show
  haft policy test";

pub(super) const POLICY_EXPLAIN: &str = "\
Exits with 0 if the call would run, 5 if haft would ask, 3 if it is denied.

Examples:
  haft policy explain write_file path=notes.txt content=x
  haft policy explain run_command command='git push' --json";

pub(super) const POLICY_TEST: &str = "\
Examples:
  haft policy test
  haft policy test rules.toml";

pub(super) const POLICY_USE: &str = "\
haft remembers the choice for this folder and those in it. What haft.toml, a variable or a flag says about a key counts
more than the profile.

Examples:
  haft policy use careful
  haft policy use coding";

pub(super) const POLICY_SHOW: &str = "\
Examples:
  haft policy show
  haft policy show --json";

pub(super) const KEYS: &str = "\
`generate` and `show` are for keys that sign tools; `create`, `list` and `revoke` are for API keys of `haft serve`.

Examples:
  haft keys generate
  haft keys show";

pub(super) const KEYS_SIGNING: &str = "\
Examples:
  haft keys generate
  haft keys generate --out release.key
  haft keys show";

pub(super) const TOOLS_SIGN: &str = "\
haft writes the signature beside the file, as FILE.sig. It covers the file, and the programs and files that its \
tools run.

Examples:
  haft tools sign tool.toml
  haft tools sign tool.toml --key release.key";

pub(super) const TOOLS_VERIFY: &str = "\
Examples:
  haft tools verify tool.toml
  haft tools verify tools/*.toml --json";

pub(super) const TOOLS_ACCEPT: &str = "\
A changed definition waits here after `haft tools add --replace`, and so do new and changed tools of an MCP server. \
`haft tools list` names them.

Examples:
  haft tools accept deploy
  haft tools accept --mcp tickets";

pub(super) const LICENSE: &str = "\
Examples:
  haft license show
  haft license show --json";

pub(super) const LICENSE_ISSUE: &str = "\
The licence goes to standard output; its holder puts it at license.file. It counts where license.authority is the public \
key that `haft keys show` prints.

Examples:
  haft license issue --tier Teams --holder ACME > license.json
  haft license issue --tier WriterPro --holder Ada --expires 2030-01-01T00:00:00Z";

pub(super) const UNDO: &str = "\
If one of the files changed since, haft restores none of them. haft does not ask again before it restores files.

Examples:
  haft undo 0197f3a2-1c5b
  haft undo 0197f3a2-1c5b-7def-8a90-123456789abc --json";

pub(super) const DIFF: &str = "\
Examples:
  haft diff
  haft diff 0197f3a2-1c5b
  haft diff 0197f3a2-1c5b --json";

pub(super) const APPLY: &str = "\
haft applies all of it or nothing. It refuses changes that leave the folder or that somebody else's changes conflict
with. `haft undo` undoes them.

Examples:
  haft apply 0197f3a2-1c5b
  haft apply 0197f3a2-1c5b --json";

pub(super) const DISCARD: &str = "\
Examples:
  haft discard 0197f3a2-1c5b
  haft discard 0197f3a2-1c5b --json";

pub(super) const TOOLS: &str = "\
Examples:
  haft tools list
  haft tools show validate_content
  haft tools search is this json valid
  haft tools add tool.toml
  haft tools disable get_metrics";

pub(super) const TOOLS_LIST: &str = "\
Examples:
  haft tools list
  haft tools list --category system --available
  haft tools list --json";

pub(super) const TOOLS_SHOW: &str = "\
Examples:
  haft tools show validate_content
  haft tools show validate_content --json";

pub(super) const TOOLS_SEARCH: &str = "\
Examples:
  haft tools search is this json valid
  haft tools search how long did calls take --limit 1 --json";

pub(super) const TOOLS_ADD: &str = "\
A file has one definition, a list of definitions, or `tools` with a list. Its name ends in .json or .toml.

Examples:
  haft tools add tool.toml
  haft tools add tool.toml --replace
  haft tools export validate_content | haft tools check -
  haft tools add --import openai-tools.json
  haft tools add --mcp files -- mcp-server-files ./notes
  haft tools add --mcp tickets --url https://mcp.example.com/mcp --header 'Authorization: env:TICKETS_TOKEN'";

pub(super) const TOOLS_REMOVE: &str = "\
Examples:
  haft tools remove ask_colleague
  haft tools remove --mcp tickets";

pub(super) const TOOLS_ENABLE: &str = "\
Examples:
  haft tools enable get_metrics";

pub(super) const TOOLS_DISABLE: &str = "\
Examples:
  haft tools disable get_metrics";

pub(super) const TOOLS_CONFIG: &str = "\
Examples:
  haft tools config get_metrics
  haft tools config get_metrics depth=3 name=text
  haft tools config get_metrics --json '{\"depth\": 3}'
  haft tools config get_metrics --clear";

pub(super) const TOOLS_CHECK: &str = "\
Examples:
  haft tools check tool.toml
  haft tools check tool.toml --json";

pub(super) const TOOLS_EXPORT: &str = "\
Examples:
  haft tools export
  haft tools export validate_content > validate_content.json
  haft tools export --dialect anthropic
  haft tools export --dialect openai-chat --strict validate_content";

pub(super) use memory::*;

mod memory {
    pub(crate) const RUNS: &str = "\
Examples:
  haft runs list
  haft runs list --status failed --since 2h
  haft runs show 0197f3a2-1c5b
  haft runs stats";

    pub(crate) const RUNS_LIST: &str = "\
Examples:
  haft runs list
  haft runs list --tool run_command --since 2h
  haft runs list --text Cargo.toml --limit 5 --json
  haft runs list --running";

    pub(crate) const RUNS_SHOW: &str = "\
Examples:
  haft runs show 0197f3a2-1c5b
  haft runs show 0197f3a2-1c5b-7def-8a90-123456789abc --json";

    pub(crate) const RUNS_WATCH: &str = "\
Exits with the exit code of the call. A call of another process is shown when it ends; its output before that is not.

Examples:
  haft runs watch 0197f3a2-1c5b
  haft runs watch 0197f3a2-1c5b-7def-8a90-123456789abc --timeout 1s";

    pub(crate) const RUNS_CANCEL: &str = "\
`haft runs list --running` shows what can be cancelled.

Examples:
  haft runs cancel 0197f3a2-1c5b";

    pub(crate) const RUNS_STATS: &str = "\
Examples:
  haft runs stats
  haft runs stats --since 7d --json";

    pub(crate) const AUDIT: &str = "\
Examples:
  haft audit query --status permission-denied
  haft audit verify
  haft audit export --format csv > audit.csv";

    pub(crate) const AUDIT_QUERY: &str = "\
Examples:
  haft audit query --since 2026-01-31 --agent owner
  haft audit query --code TOOL_DENIED --limit 5 --json";

    pub(crate) const AUDIT_EVENTS: &str = "\
Examples:
  haft audit events
  haft audit events --limit 5 --json";

    pub(crate) const AUDIT_VERIFY: &str = "\
Exits with 1 if a record was changed. Keep what --json prints on another machine: with --head, a later check also \
notices that the whole database was replaced with an older copy. If audit.head_sink is a file, haft compares with it, too.

Examples:
  haft audit verify
  haft audit verify --json > head.json
  haft audit verify --head head.json
  haft audit verify --against /mnt/other/heads.jsonl --key /mnt/other/audit.key";

    pub(crate) const AUDIT_EXPORT: &str = "\
Examples:
  haft audit export > audit.jsonl
  haft audit export --format csv --since 30d > audit.csv";

    pub(crate) const RECOVER: &str = "\
haft runs nothing again, and the audit log stays. Exits with 6 while something waits for a decision.

Examples:
  haft recover
  haft recover --resume 0197f3a2-1c5b
  haft recover --discard all";

    pub(crate) const BACKUP: &str = "\
Examples:
  haft backup
  haft backup haft-backup.db";

    pub(crate) const GC: &str = "\
[store] in your own haft.toml sets what haft keeps, and for how long.

Examples:
  haft gc
  haft gc --caches
  haft gc --json";
}

pub(super) const INIT: &str = "\
Examples:
  haft init           haft.toml in the working folder: it can only tighten
  haft init --user    your own configuration: it can set every key";

pub(super) const TRUST: &str = "\
A haft.toml in a folder may have come with a project, so it can only tighten. `haft trust` shows what the file would \
loosen and asks you. Trust ends when the file changes.

Examples:
  haft trust
  haft trust ../project --yes
  haft trust --remove
  haft trust --list";

pub(super) const COMPLETIONS: &str = "\
Examples:
  haft completions bash > ~/.local/share/bash-completion/completions/haft
  haft completions zsh > ~/.zfunc/_haft
  haft completions fish > ~/.config/fish/completions/haft.fish";

#[cfg(unix)]
pub(super) const WORKER: &str = "\
Without --foreground, the worker runs in the background. `haft call --detach` starts one if none runs. An idle worker \
exits after tasks.worker_idle_seconds.

Examples:
  haft worker
  haft worker --foreground
  haft worker status --json
  haft worker stop";

#[cfg(unix)]
pub(super) const WORKER_COMMANDS: &str = "\
Examples:
  haft worker status --json
  haft worker stop --now";

pub(super) const RUNS_TASKS: &str = "\
Examples:
  haft runs tasks
  haft runs tasks --open
  haft runs tasks --state failed --json";

pub(super) const FLOW: &str = "\
Examples:
  haft flow check report.flow.toml
  haft flow graph report.flow.toml
  haft flow run report.flow.toml folder=src
  haft tools add report.flow.toml";

pub(super) const FLOW_RUN: &str = "\
The output of the flow is on standard output, the status of its nodes on standard error. Exits with the code of \
the first node that did not succeed, unless that node may fail.

Examples:
  haft flow run report.flow.toml folder=src
  haft flow run report.flow.toml --input '{\"folder\": \"src\"}' --json
  haft flow run report.flow.toml folder=src --dry-run";

pub(super) const FLOW_CHECK: &str = "\
Examples:
  haft flow check report.flow.toml
  haft flow check flows/*.flow.toml --json";

pub(super) const FLOW_GRAPH: &str = "\
Examples:
  haft flow graph report.flow.toml
  haft flow graph report.flow.toml --format mermaid > report.mmd";
