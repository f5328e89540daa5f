//! A place to run haft in, and what it said.

use serde_json::Value;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// A working folder and a home, both empty, and nothing in the environment.
pub(crate) struct Place {
    folder: TempDir,
}

/// What haft said, and its exit code.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Said {
        Said {
            code: output.status.code().expect("it ended by itself"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Both streams, for a snapshot: times and ids replaced.
    pub(crate) fn shown(&self) -> String {
        let stderr =
            if self.stderr.is_empty() { String::new() } else { format!("--- stderr\n{}", self.stderr) };
        steady(&format!("exit {}\n{}{stderr}", self.code, self.stdout))
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["work", "home"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Place { folder }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.work().join(name), text).expect("written");
    }

    /// Writes the user's own configuration.
    pub(crate) fn own_config(&self, text: &str) {
        let folder = self.home().join(".config/haft");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("haft.toml"), text).expect("written");
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().current_dir(self.work()).env("HOME", self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The real program with these arguments, not yet started.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_haft"));
        command.args(args);
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Said {
        Said::of(self.program(args).output().expect("it starts"))
    }

    /// Runs haft with something on standard input.
    pub(crate) fn haft_with(&self, args: &[&str], input: impl AsRef<[u8]>) -> Said {
        let mut child = self.program(args).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.as_ref().to_vec();
        let writer = std::thread::spawn(move || {
            // It may end before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let said = Said::of(child.wait_with_output().expect("it ends"));
        writer.join().expect("written");
        said
    }
}

/// Times become `[time]`, numbers with three decimals `[n]`, ids `[id]`; the spaces before them become two.
pub(crate) fn steady(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for index in 0..words.len() {
            let is_number = |word: &str| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            if !is_number(&words[index]) {
                continue;
            }
            let is_time = words.get(index + 1).is_some_and(|unit| matches!(unit.as_str(), "ms" | "s"));
            if is_time {
                words[index] = "[time]".to_owned();
                words[index + 1] = "\0".to_owned();
            } else if words[index]
                .split_once('.')
                .is_some_and(|(_, decimals)| decimals.len() == 3 && !decimals.contains('.'))
            {
                words[index] = "[n]".to_owned();
            } else {
                continue;
            }
            for before in words[..index].iter_mut().rev().skip(1).take_while(|word| word.is_empty()) {
                *before = "\0".to_owned();
            }
        }
        words.retain(|word| word != "\0");
        words
            .iter()
            .map(|word| if is_id(word.trim_matches(',')) { "[id]" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    });
    lines.map(|line| format!("{line}\n")).collect()
}

fn is_id(word: &str) -> bool {
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match word.trim_matches('`').strip_prefix("apr_") {
        Some(rest) => rest.len() == 32 && is_hex(rest),
        None => word.len() == 36 && is_hex(word),
    }
}
