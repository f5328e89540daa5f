//! Starts programs: says which, lets their output through, keeps a copy where it has to be read.

use std::env;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::error::Error;

/// What a program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Says what is about to run.
pub(crate) fn announce(name: &str, command: &Command) {
    println!("\n==> {name}: {}", shown(command));
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    // Cargo is started by its full path; nobody types that.
    let program = if program.ends_with("/cargo") { "cargo".into() } else { quoted(&program) };
    command.get_args().fold(program, |line, arg| line + " " + &quoted(&arg.to_string_lossy()))
}

/// The word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs the command with this program's own input and output.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus, Error> {
    command.status().map_err(|source| cannot_start(command, source))
}

/// Runs the command; anything but success is an error.
pub(crate) fn must_succeed(command: &mut Command) -> Result<(), Error> {
    let status = run(command)?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: shown(command), status }) }
}

/// Whether the command can be run at all and succeeds; its output is dropped.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Which lines of a program's output are let through to the terminal.
pub(crate) type Filter = fn(&str) -> bool;

/// Lets every line through.
pub(crate) fn every_line(_: &str) -> bool {
    true
}

/// Runs the command, passes its output on line by line, and returns all of it too.
pub(crate) fn run_captured(command: &mut Command, show: Filter) -> Result<Captured, Error> {
    // The programs see a pipe, so they have to be told that there is a terminal behind it.
    if io::stderr().is_terminal()
        && env::var_os("NO_COLOR").is_none()
        && env::var_os("CARGO_TERM_COLOR").is_none()
    {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|source| cannot_start(command, source))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = thread::scope(|scope| {
        let stdout = scope.spawn(|| tee(stdout, io::stdout(), show));
        let stderr = scope.spawn(|| tee(stderr, io::stderr(), show));
        (joined(stdout), joined(stderr))
    });
    let status = child.wait().map_err(Error::Output)?;
    Ok(Captured { status, stdout: stdout?, stderr: stderr? })
}

fn joined(copier: thread::ScopedJoinHandle<'_, io::Result<String>>) -> Result<String, Error> {
    let ended = copier.join().unwrap_or_else(|_| Err(io::Error::other("the copying thread panicked")));
    ended.map_err(Error::Output)
}

/// Copies `from` to `to` by lines, and returns the whole text. Bytes that are not UTF-8 are passed on as they are.
fn tee(from: Option<impl Read>, mut to: impl Write, show: Filter) -> io::Result<String> {
    let Some(from) = from else {
        return Ok(String::new());
    };
    let mut from = BufReader::new(from);
    let (mut text, mut line) = (String::new(), Vec::new());
    while from.read_until(b'\n', &mut line)? > 0 {
        let readable = String::from_utf8_lossy(&line);
        if show(&readable) {
            to.write_all(&line)?;
            to.flush()?;
        }
        text.push_str(&readable);
        line.clear();
    }
    Ok(text)
}

fn cannot_start(command: &Command, source: io::Error) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_a_person_types_them() {
        let mut command = Command::new("/some/where/bin/cargo");
        command.args(["test", "two words", "it's", "", "--color=always"]);
        assert_eq!(shown(&command), r"cargo test 'two words' 'it'\''s' '' --color=always");
    }

    #[test]
    fn tee_copies_shows_and_keeps() {
        let mut shown = Vec::new();
        let text =
            tee(Some(&b"one\n#two\n\xff three"[..]), &mut shown, |line| !line.starts_with('#')).unwrap();
        assert_eq!(shown, b"one\n\xff three");
        assert_eq!(text, "one\n#two\n\u{fffd} three");
    }

    #[test]
    fn output_and_status_come_back() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo err >&2; exit 3"]);
        let captured = run_captured(&mut shell, |_| false).unwrap();
        assert_eq!((captured.stdout.as_str(), captured.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(captured.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = must_succeed(&mut Command::new("surely-no-such-program")).unwrap_err();
        assert!(error.to_string().starts_with("cannot start `surely-no-such-program`"), "{error}");
        assert!(!works(&mut Command::new("surely-no-such-program")));
    }
}
