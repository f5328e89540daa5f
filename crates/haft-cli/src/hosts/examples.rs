//! The examples at the end of the help of `install`, `uninstall`, `hosts` and `hook`.

pub(crate) const HOOK: &str = "\
A host calls this before and after each of its own tools. haft decides the call as it decides its own, records it, and
answers in the host's form: exit code 2 blocks. This is policy and audit, not containment: with --exec the commands that
the host runs are rewritten to run in a jail. `haft install HOST --mode hook` writes the host's settings.

Examples:
  haft hook claude-code
  haft hook codex --wait 20s";

pub(crate) const INSTALL: &str = "\
haft changes only its own entries in the host's files, and keeps the first copy of a file as it was beside it.

Examples:
  haft install claude-code
  haft install claude-code --only-haft --project
  haft install codex --mode hook
  haft install claude-code --mode exec --print";

pub(crate) const UNINSTALL: &str = "\
Examples:
  haft uninstall claude-code
  haft uninstall codex --json";

pub(crate) const HOSTS: &str = "\
Examples:
  haft hosts
  haft hosts --json";
