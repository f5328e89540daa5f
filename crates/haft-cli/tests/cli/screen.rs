//! A terminal for tests: tmux shows what a person would see.

use crate::support::Place;
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// A terminal of its own, with a shell in it.
pub(crate) struct Screen<'a> {
    place: &'a Place,
    socket: String,
}

impl<'a> Screen<'a> {
    /// `None`, and said to be not run, where there is no tmux.
    pub(crate) fn new(
        place: &'a Place,
        test: &str,
        width: usize,
        variables: &[(&str, &str)],
    ) -> Option<Screen<'a>> {
        if Command::new("tmux").arg("-V").output().is_err() {
            haft_testkit::not_run(&format!("prompt::{test}"), "tmux is not installed");
            return None;
        }
        let socket = format!("haft-{}-{test}", std::process::id());
        let screen = Screen { place, socket };
        let mut start = screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "s", "-y", "40", "-x"]);
        start.arg(width.to_string()).current_dir(place.work());
        let mut shell = vec![
            "env".to_owned(),
            "-i".into(),
            "TERM=screen".into(),
            "USER=ada".into(),
            "LANG=C.UTF-8".into(),
        ];
        shell.push(format!("HOME={}", place.home().display()));
        shell.push(format!("PATH={}", std::env::var("PATH").unwrap()));
        shell.push(format!("haft={}", env!("CARGO_BIN_EXE_haft")));
        shell.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        shell.extend(["sh".to_owned()]);
        assert!(start.args(shell).status().unwrap().success());
        Some(screen)
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8").args(["-u", "-L", &self.socket]).args(args);
        tmux
    }

    pub(crate) fn keys(&self, keys: &str) {
        assert!(self.tmux(&["send-keys", "-t", "s", "-l", keys]).status().unwrap().success());
    }

    pub(crate) fn press(&self, key: &str) {
        assert!(self.tmux(&["send-keys", "-t", "s", key]).status().unwrap().success());
    }

    pub(crate) fn shown(&self) -> String {
        let captured = self.tmux(&["capture-pane", "-p", "-t", "s"]).output().unwrap();
        String::from_utf8(captured.stdout).unwrap()
    }

    /// Waits until that is on the screen, and gives all that is.
    pub(crate) fn until(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.shown();
            if shown.contains(text) {
                return shown;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain for {text:?}:\n{shown}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Types a line.
    pub(crate) fn line(&self, line: &str) {
        self.keys(line);
        self.press("Enter");
    }

    /// Makes the window another size.
    pub(crate) fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut resize = self.tmux(&["resize-window", "-t", "s", "-x", &columns, "-y", &rows]);
        assert!(resize.status().unwrap().success());
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
        let _ = self.place;
    }
}
