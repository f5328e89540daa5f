//! Which programs say by their name what they do.

use super::*;

/// Whether so many words of a command say what will be done, whatever stands behind them.
pub(super) fn says_enough(program: &str, named: usize) -> bool {
    // What follows is a file or an address, and the next one may be any other.
    const NEVER: &[&str] = &[
        "chgrp", "chmod", "chown", "cp", "curl", "dd", "install", "kill", "killall", "ln", "mkfs", "mv",
        "nc", "npx", "pkill", "rm", "rmdir", "rsync", "scp", "shred", "tee", "truncate", "unlink", "uvx",
        "wget",
    ];
    let name = command::program_name(program).to_ascii_lowercase();
    !NEVER.contains(&name.as_str())
        && !NEVER.contains(&command::stem(&name))
        && (named > 1 || !says_little(program))
}

/// Programs whose name alone says nothing about what they will do, or nothing that anybody would agree to ahead of
/// time.
fn says_little(program: &str) -> bool {
    const NAMES: &[&str] = &[
        "awk",
        "bash",
        "bun",
        "busybox",
        "cargo",
        "chmod",
        "chown",
        "cmd",
        "cmd.exe",
        "cp",
        "curl",
        "dash",
        "dd",
        "deno",
        "doas",
        "docker",
        "env",
        "eval",
        "exec",
        "find",
        "fish",
        "gh",
        "git",
        "go",
        "ksh",
        "kubectl",
        "mv",
        "node",
        "nohup",
        "npm",
        "npx",
        "perl",
        "php",
        "pip",
        "pnpm",
        "podman",
        "powershell",
        "powershell.exe",
        "pwsh",
        "python",
        "python3",
        "rm",
        "rmdir",
        "rsync",
        "ruby",
        "sed",
        "sh",
        "ssh",
        "su",
        "sudo",
        "tee",
        "time",
        "timeout",
        "uv",
        "uvx",
        "wget",
        "xargs",
        "yarn",
        "zsh",
    ];
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    // `python3.11` says as little as `python3`.
    let stem = command::stem(command::program_name(&name));
    let is_listed = |name: &str| NAMES.binary_search(&name).is_ok();
    is_listed(&name) || is_listed(stem) || command::is_interpreter(stem)
}
