//! Names of programs, and which of them run another one.

use super::compiler::is_compiler;

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
    let name = program_name(word).to_ascii_lowercase();
    WRAPPERS.contains(&name.as_str()) || WRAPPERS.contains(&stem(&name))
}

/// The last part of a program's path, without `.exe`: what a rule that forbids it means.
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    match name.len().checked_sub(4).and_then(|at| name.split_at_checked(at)) {
        Some((stem, end)) if !stem.is_empty() && end.eq_ignore_ascii_case(".exe") => stem,
        _ => name,
    }
}

/// The name of a program, in small letters, without its version and the system that it is for: `python3.11` and
/// `python3.13t` are `python`, `gcc-12` and `x86_64-linux-gnu-gcc` are `gcc`, `gtimeout` is `timeout`.
pub(crate) fn stem(name: &str) -> &str {
    const ENDINGS: [&str; 5] = ["-dbg", "-debug", "-posix", "-static", "-win32"];
    // As GNU's programs are called on systems that have others.
    const GNU: &[&str] = &[
        "awk", "chroot", "env", "find", "make", "nice", "nohup", "sed", "shuf", "sort", "split", "stdbuf",
        "tar", "timeout", "uniq", "xargs",
    ];
    let mut stem = name;
    for ending in ENDINGS {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    let numbered = stem.trim_end_matches(['d', 'm', 't']);
    if numbered.ends_with(|letter: char| letter.is_ascii_digit()) {
        stem = numbered;
    }
    let bare = stem.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    stem = if bare.len() < stem.len() { bare.trim_end_matches(['-', '_']) } else { stem };
    // `.` is a program by itself.
    if stem.is_empty() {
        return name;
    }
    match (stem.rsplit_once('-'), stem.strip_prefix('g')) {
        (Some((_, last)), _) if is_compiler(last) => last,
        (_, Some(gnu)) if GNU.contains(&gnu) => gnu,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_systems_are_no_part_of_a_name() {
        let cases = [
            ("gcc", "gcc"),
            ("gcc-12", "gcc"),
            ("gcc-12.2.0", "gcc"),
            ("x86_64-linux-gnu-gcc", "gcc"),
            ("x86_64-linux-gnu-g++-12", "g++"),
            ("i686-w64-mingw32-gcc-posix", "gcc"),
            ("clang++-15", "clang++"),
            ("c++", "c++"),
            ("c99", "c"),
            ("python3", "python"),
            ("python3.11", "python"),
            ("python3.13t", "python"),
            ("python3.7m", "python"),
            ("python3-dbg", "python"),
            ("pypy3.10", "pypy"),
            ("php8.2", "php"),
            ("perl5.36.0", "perl"),
            ("node20", "node"),
            ("node-20", "node"),
            ("lua5.4", "lua"),
            ("gtimeout", "timeout"),
            ("git", "git"),
            ("find", "find"),
            ("ts-node", "ts-node"),
            (".", "."),
            ("7", "7"),
            ("start-stop-daemon", "start-stop-daemon"),
            ("md", "md"),
        ];
        for (name, expected) in cases {
            assert_eq!(stem(name), expected, "{name}");
        }
        for wrapper in ["perl5.36", "/usr/bin/bash5", "ksh93", "busybox-static", "GTIMEOUT", "perl5.36.exe"] {
            assert!(is_wrapper(wrapper), "{wrapper}");
        }
        for other in ["ls", "cat", "python3", "bashful", "git"] {
            assert!(!is_wrapper(other), "{other}");
        }
    }
}
