//! Names of programs, and which of them run another one.

/// Words of the shell's own language, and programs whose arguments are a command.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    ".", ":", "alias", "ash", "at", "awk", "bash", "batch", "begin", "break", "builtin", "busybox", "bwrap",
    "call", "capsh", "case", "cd", "cgexec", "chroot", "chrt", "cmd", "command", "continue", "coproc", "csh",
    "daemonize", "dash", "declare", "do", "doas", "done", "elif", "else", "elvish", "enable", "end", "entr",
    "env", "esac", "eval", "exec", "exit", "expect", "export", "fakeroot", "faketime", "fc", "fi", "find",
    "firejail", "fish", "flock", "for", "forfiles", "function", "gawk", "getopts", "gosu", "hash", "if", "in",
    "ionice", "ksh", "let", "local", "ltrace", "mapfile", "mawk", "mksh", "nawk", "nice", "nohup", "nsenter",
    "nu", "numactl", "parallel", "perl", "pkexec", "popd", "powershell", "prlimit", "proot", "pushd", "pwsh",
    "rbash", "read", "readarray", "readonly", "return", "rlwrap", "runuser", "screen", "script", "select",
    "set", "setarch", "setpriv", "setsid", "sg", "sh", "shift", "shopt", "source", "ssh", "start",
    "start-stop-daemon", "stdbuf", "strace", "su", "su-exec", "sudo", "systemd-run", "taskset", "tcsh", "then",
    "time", "timeout", "tmux", "toybox", "trap", "typeset", "umask", "unalias", "unbuffer", "unset", "unshare",
    "until", "watch", "while", "wsl", "xargs", "xvfb-run", "yash", "zsh",
];

/// Whether a program runs what its arguments say, or changes what the shell makes of the next words.
pub(super) fn is_wrapper(word: &str) -> bool {
    let name = program_name(word);
    WRAPPERS.iter().any(|wrapper| name.eq_ignore_ascii_case(wrapper))
}

/// The last part of a program's path, without `.exe`: what a rule that forbids it means.
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
        Some((stem, end)) if !stem.is_empty() && end.eq_ignore_ascii_case(".exe") => stem,
        _ => name,
    }
}

/// The name of a program without its version: `python3.11` is `python`.
pub(super) fn stem(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}
