//! A shell in an empty folder, which is given one command after the other, as a reader would type them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};
use tempfile::TempDir;

/// Longer than any example takes on a busy machine: one that hangs fails, rather than the whole run.
const LONGEST: Duration = Duration::from_secs(300);

pub struct Session {
    folder: TempDir,
    shell: Child,
    input: ChildStdin,
    ended: Receiver<String>,
    count: usize,
}

/// What a command put out on both streams, and its exit code.
pub struct Done {
    pub code: i32,
    pub out: String,
}

impl Session {
    pub fn new() -> Session {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home/ada/work", "steps"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let mut shell = command(&folder, "bash")
            .args(["--norc", "--noprofile"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("bash starts");
        let input = shell.stdin.take().expect("a pipe");
        let output = BufReader::new(shell.stdout.take().expect("a pipe"));
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Session { folder, shell, input, ended, count: 0 }
    }

    /// The folder that the page's reader is in.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("home/ada/work")
    }

    /// The place of a file that a page names; `~` is the reader's home.
    pub fn place(&self, name: &str) -> PathBuf {
        match name.strip_prefix("~/") {
            Some(rest) => self.folder.path().join("home/ada").join(rest),
            None => self.work().join(name),
        }
    }

    /// A program beside the session, with the same environment.
    pub fn aside(&self, args: &[&str]) -> Done {
        let said = command(&self.folder, env!("CARGO_BIN_EXE_haft"))
            .args(args)
            .env("HAFT_STATE_DIR", self.folder.path().join("aside"))
            .stdin(Stdio::null())
            .output()
            .expect("haft starts");
        let out = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        Done { code: said.status.code().unwrap_or(-1), out }
    }

    /// Runs a command in the shell. One that ends with `&` goes on; it has put out its first line.
    pub fn run(&mut self, text: &str) -> Result<Done, String> {
        self.count += 1;
        let steps = self.folder.path().join("steps");
        let [code, out] = ["sh", "out"].map(|end| steps.join(format!("{}.{end}", self.count)));
        fs::write(&code, text).expect("written");
        let (code, out_name) = (code.display(), out.display());
        let mut line = format!(". '{code}' >'{out_name}' 2>&1 </dev/null; echo \"ended $?\"");
        let goes_on = text.split(" # ").next().is_some_and(|command| command.trim_end().ends_with('&'));
        if goes_on {
            line.push_str(&format!(
                "; until test -s '{out_name}' || ! kill -0 $!; do sleep 0.05; done; echo spoken"
            ));
        }
        writeln!(self.input, "{line}").map_err(|_| "the shell is gone".to_owned())?;
        let code = self.next("ended ")?.parse().map_err(|error| format!("no exit code: {error}"))?;
        if goes_on {
            self.next("spoken")?;
        }
        let out = String::from_utf8_lossy(&fs::read(&out).expect("its output")).into_owned();
        let folder = self.folder.path().to_string_lossy();
        Ok(Done { code, out: out.replace(&*folder, "") })
    }

    fn next(&self, begins: &str) -> Result<String, String> {
        let line = self.ended.recv_timeout(LONGEST).map_err(|_| "the command does not end".to_owned())?;
        line.strip_prefix(begins).map(str::to_owned).ok_or_else(|| format!("the shell said {line}"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The worker that runs detached calls, then what the page left running, then the shell.
        let _ = writeln!(self.input, "haft worker stop; kill $(jobs -p); wait; echo over");
        while self.next("over").is_err_and(|problem| problem.starts_with("the shell said")) {}
        // What a command that hangs left is in the shell's group.
        let group = format!("-{}", self.shell.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn command(folder: &TempDir, program: &str) -> Command {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_haft"));
    let own = own.parent().expect("a folder").display();
    let home = folder.path().join("home/ada");
    let mut command = Command::new(program);
    command.env_clear().env("PATH", format!("{own}:/usr/local/bin:/usr/bin:/bin"));
    command.env("HOME", &home).env("USER", "ada").env("LANG", "C.UTF-8").current_dir(home.join("work"));
    command.stderr(Stdio::piped());
    command
}
