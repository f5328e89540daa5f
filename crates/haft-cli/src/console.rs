//! The two streams of the process.
//!
//! Standard output carries what was asked for; standard error everything else. Text that a tool, a model or a file
//! wrote has passed `people_text` before it comes here.

use super::{args::Color, failure::Failure, layout};
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, IsTerminal as _, Write},
};

pub(super) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(super) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(super) const UNSURE: Style = AnsiColor::Yellow.on_default().bold();
pub(super) const STRONG: Style = Style::new().bold();
pub(super) const QUIET: Style = Style::new().dimmed();

/// Where to write.
pub(super) struct Console {
    color: ColorChoice,
    pub(super) verbose: bool,
    /// The reader of standard output has gone: there is nobody to write for.
    closed: bool,
}

impl Console {
    pub(super) fn new(color: Color, verbose: bool) -> Self {
        Console { color: color.into(), verbose, closed: false }
    }

    /// The same streams, for somebody else to write to.
    pub(super) fn again(&self) -> Self {
        Console { closed: false, ..*self }
    }

    /// Before the command line is understood.
    pub(super) fn plain() -> Self {
        Console::new(Color::Auto, false)
    }

    /// Writes styled text to standard output.
    pub(super) fn print(&mut self, text: impl Display) -> Result<(), Failure> {
        let stdout = io::stdout().lock();
        let mut stream = AutoStream::new(stdout, choice(self.color, &io::stdout()));
        let written = stream.write_all(text.to_string().as_bytes()).and_then(|()| stream.flush());
        self.after(written)
    }

    /// Writes text to standard output exactly as it is.
    pub(super) fn print_raw(&mut self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        self.after(written)
    }

    /// Writes one JSON document: spread out for a person at a terminal, on one line for a program.
    pub(super) fn print_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let written = if self.is_terminal() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let mut text = harmless_json(&written.map_err(Failure::Unwritable)?);
        text.push('\n');
        self.print_raw(&text)
    }

    fn after(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Ok(()) => Ok(()),
            // `haft tools list | head -1` is no failure: the rest is not wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(_) if self.closed => Ok(()),
            Err(error) => Err(Failure::Stdout(error)),
        }
    }

    /// Writes a line to standard error. If that cannot be written, there is nobody left to tell.
    pub(super) fn say(&self, text: impl Display) {
        let stderr = io::stderr().lock();
        let mut stream = AutoStream::new(stderr, choice(self.color, &io::stderr()));
        let _ = stream.write_all(format!("{text}\n").as_bytes()).and_then(|()| stream.flush());
    }

    /// Writes to standard error, and stays on the line.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody is asked there"))]
    pub(super) fn say_on_line(&self, text: impl Display) {
        let stderr = io::stderr().lock();
        let mut stream = AutoStream::new(stderr, choice(self.color, &io::stderr()));
        let _ = stream.write_all(text.to_string().as_bytes()).and_then(|()| stream.flush());
    }

    /// Writes a line to standard error exactly as it is.
    pub(super) fn say_raw(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(format!("{text}\n").as_bytes()).and_then(|()| stderr.flush());
    }

    /// Says what went wrong and what to do about it.
    pub(super) fn fail(&self, failure: &Failure) {
        self.error(&failure.to_string(), failure.help().as_deref());
    }

    /// Prints an error of any kind, with what to do next.
    pub(super) fn error(&self, message: &str, help: Option<&str>) {
        self.say(with_help("error:", BAD, message, help));
    }

    /// Something that is worth knowing.
    pub(super) fn warn(&self, message: &str) {
        self.say(with_help("warning:", UNSURE, message, None));
    }

    /// Something for people who want to know more.
    pub(super) fn note(&self, message: &str) {
        if self.verbose {
            self.say(format!("{QUIET}note: {message}{QUIET:#}"));
        }
    }

    /// Whether the reader of standard output has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a person reads standard output.
    pub(super) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The columns of the terminal that standard output is; `None` where it is none.
    pub(super) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        (width.0 > 0).then_some(usize::from(width.0))
    }

    /// The width of the terminal on standard error, if there is one.
    pub(super) fn side_width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stderr())?;
        (width.0 > 0).then_some(usize::from(width.0))
    }
}

fn with_help(word: &str, style: Style, message: &str, help: Option<&str>) -> String {
    let width = terminal_size::terminal_size_of(io::stderr()).map(|(width, _)| usize::from(width.0));
    let mut text = layout::indented(&format!("{word} {message}"), 0, width);
    for line in help.into_iter().flat_map(str::lines) {
        text.push_str(&layout::indented(&format!("  help: {line}"), 0, width));
    }
    // After the lines are made: a style has no width.
    let text = text.replacen(word, &format!("{style}{word}{style:#}"), 1);
    text.trim_end().replace("\n  help:", &format!("\n  {STRONG}help:{STRONG:#}"))
}

fn choice(wanted: ColorChoice, stream: &impl anstream::stream::RawStream) -> ColorChoice {
    match wanted {
        ColorChoice::Auto => AutoStream::choice(stream),
        other => other,
    }
}

/// The same JSON, with characters escaped that would drive a terminal or reorder its line. They stand only inside
/// strings, where the escape is the same character.
fn harmless_json(json: &str) -> String {
    let is_harmful =
        |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !json.contains(is_harmful) {
        return json.to_owned();
    }
    json.chars().fold(String::with_capacity(json.len() + 64), |mut out, c| {
        if is_harmful(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_value_and_drives_no_terminal() {
        let value = serde_json::json!({"a\u{9b}31m": "\u{1b}[0m \u{202e}txt \u{7f} é 👩\u{200d}👧"});
        let text = harmless_json(&value.to_string());
        assert!(!text.contains(['\u{9b}', '\u{1b}', '\u{202e}', '\u{7f}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
