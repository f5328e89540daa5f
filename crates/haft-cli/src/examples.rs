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
  haft approvals show apr_5d41          what would change, and what could be remembered";

pub(super) const APPROVALS_APPROVE: &str = "\
Examples:
  haft approvals approve apr_5d41                     the call goes on where it waits, or runs when it is sent again
  haft approvals approve apr_5d41 --all               with all others of its batch
  haft approvals approve apr_5d41 --remember commands --for 8h
  haft approvals approve apr_5d41 --edit              change the arguments; the changed call is asked about again";

pub(super) const APPROVALS_DENY: &str = "\
Examples:
  haft approvals deny apr_5d41
  haft approvals deny apr_5d41 --reason 'use the staging server'";

pub(super) const APPROVALS_WATCH: &str = "\
Examples:
  haft approvals watch            asks you, here, about every call that waits anywhere
  haft approvals watch --json     prints them as JSON Lines instead";

pub(super) const GRANTS: &str = "\
Examples:
  haft grants list
  haft grants show grant_3f2a
  haft grants revoke grant_3f2a";

pub(super) const GRANTS_LIST: &str = "\
Examples:
  haft grants list
  haft grants list --all --json      also those that are over";

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
  0    it succeeded
  1    it failed
  2    wrong usage
  3    it is not allowed
  4    its arguments or its output are wrong, or over a limit
  5    a person has to approve it
  6    it is not known whether it had an effect, or a person must decide: `haft recover`
  124  it took too long
  130  it was stopped
A batch exits with the code of the first call that did not succeed.";

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
Each ✓ was tried by a program in that jail. Exits with 1 where no jail delivers strict.

Examples:
  haft doctor
  haft doctor --json";

pub(super) const MCP: &str = "\
Without --http it speaks on standard input and output, for the program that starts it.

Examples:
  haft mcp install claude-code
  haft mcp install cursor --approvals host
  haft mcp --http 127.0.0.1:8787";

#[cfg(unix)]
pub(super) const SERVE: &str = "\
On the unix socket you are known by your process. On a port everybody needs a key, and other machines need TLS: see [server]
in haft.toml. /v1/openapi.json describes every route.

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
Only a hash of the secret is kept. A key counts for 90 days unless --expires says otherwise, for one tenant, and may look at
what is that tenant's; each further right has to be named.

Examples:
  haft keys create ci --right invoke --role editor
  haft keys create phone --right approve --user ada --expires 720h
  haft keys create prometheus --right operate --expires never";

pub(super) const MCP_INSTALL: &str = "\
The file of the program keeps everything else that is in it; what it was before is kept beside it.

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
Exits with 0 where it would run, 5 where a person is asked, 3 where it is denied.

Examples:
  haft policy explain write_file path=notes.txt content=x
  haft policy explain run_command command='git push' --json";

pub(super) const POLICY_TEST: &str = "\
Examples:
  haft policy test
  haft policy test rules.toml";

pub(super) const POLICY_SHOW: &str = "\
Examples:
  haft policy show
  haft policy show --json";

pub(super) const KEYS: &str = "\
`generate` and `show` are about keys that sign tools; `create`, `list` and `revoke` about API keys of `haft serve`, where this
haft has it.

Examples:
  haft keys generate
  haft keys show";

pub(super) const KEYS_SIGNING: &str = "\
Examples:
  haft keys generate
  haft keys generate --out release.key
  haft keys show";

pub(super) const TOOLS_SIGN: &str = "\
The signature is written beside the file, as FILE.sig. It covers every byte of the file, and the programs and files that its
tools run.

Examples:
  haft tools sign tool.toml
  haft tools sign tool.toml --key release.key";

pub(super) const TOOLS_VERIFY: &str = "\
Examples:
  haft tools verify tool.toml
  haft tools verify tools/*.toml --json";

pub(super) const TOOLS_ACCEPT: &str = "\
`haft tools add --replace` refuses a definition that is not what it was, and keeps it for this. So are new and
changed tools of an MCP server; `haft tools list` names what waits.

Examples:
  haft tools accept deploy
  haft tools accept --mcp tickets";

pub(super) const LICENSE: &str = "\
Examples:
  haft license show
  haft license show --json";

pub(super) const UNDO: &str = "\
A file that changed since is not touched, and then nothing is. Typing this is the approval.

Examples:
  haft undo 0197f3a2-1c5b-7def-8a90-123456789abc
  haft undo 0197f3a2-1c5b-7def-8a90-123456789abc --json";

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
A file has one definition, a list of them, or `tools` with a list. Its name ends in .json or .toml.

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
  haft runs show 0197f3a2-1c5b-7def-8a90-123456789abc
  haft runs stats";

    pub(crate) const RUNS_LIST: &str = "\
Examples:
  haft runs list
  haft runs list --tool run_command --since 2h
  haft runs list --text Cargo.toml --limit 5 --json
  haft runs list --running";

    pub(crate) const RUNS_SHOW: &str = "\
Examples:
  haft runs show 0197f3a2-1c5b-7def-8a90-123456789abc
  haft runs show 0197f3a2-1c5b-7def-8a90-123456789abc --json";

    pub(crate) const RUNS_WATCH: &str = "\
It exits with the code that the call had. Calls of another process are seen when each ends; what one writes on its way is \
not.

Examples:
  haft runs watch 0197f3a2-1c5b-7def-8a90-123456789abc
  haft runs watch 0197f3a2-1c5b-7def-8a90-123456789abc --timeout 1s";

    pub(crate) const RUNS_CANCEL: &str = "\
The process that runs it is asked, and looks for that five times a second. `haft runs list --running` shows what can be \
stopped.

Examples:
  haft runs cancel 0197f3a2-1c5b-7def-8a90-123456789abc";

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
It exits with 1 where a record is not as it was written. Keep what --json prints somewhere else: with it, a later check \
notices that the whole database was put back to an older one. Where audit.head_sink is a file, that one is compared by itself.

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
Nothing is run again, and the record of what happened stays. It exits with 6 while something waits for a decision.

Examples:
  haft recover
  haft recover --resume 0197f3a2-1c5b-7def-8a90-123456789abc
  haft recover --discard all";

    pub(crate) const BACKUP: &str = "\
Examples:
  haft backup
  haft backup haft-backup.db";

    pub(crate) const GC: &str = "\
What is kept, and for how long, is set under [store] in your own haft.toml.

Examples:
  haft gc
  haft gc --json";
}

pub(super) const INIT: &str = "\
Examples:
  haft init           haft.toml in the working folder: it may tighten
  haft init --user    your own configuration: it may set anything";

pub(super) const TRUST: &str = "\
A haft.toml in a folder may have come with a project, so it may only tighten. This shows what it would loosen and, \
once you agree, lets exactly this file count; after any change it has to be trusted again.

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
`haft call --detach` starts one by itself. It ends when there has been nothing to do for tasks.worker_idle_seconds.

Examples:
  haft worker
  haft worker --foreground
  haft worker status --json
  haft worker stop";

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
What the flow gave is on standard output, what became of its nodes on standard error. Exits with the code of the first
node that did not succeed, unless that node may fail.

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
