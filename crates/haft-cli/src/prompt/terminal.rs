//! Single keys from the person at the terminal, and from nobody else.
//!
//! Keys are read only where standard error, on which the question stands, is a terminal and haft is in its foreground.
//! Standard input is read only where it is that terminal: what is piped in is never an answer.

use super::keys::Key;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
        tcsetattr,
    },
};
use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _, Write as _},
    os::fd::AsFd as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The terminal as it was before keys were read from it. A process has one terminal, so it has one of these.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<(File, Termios)>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether somebody is being asked.
pub(crate) fn is_asking() -> bool {
    before().is_some()
}

/// Gives the terminal back as it was, without the line on which keys were waited for. For code that is about to end the
/// process, too.
pub(crate) fn restore() {
    if let Some((file, termios)) = before().take() {
        let _ = tcsetattr(file.as_fd(), OptionalActions::Now, &termios);
        clear();
    }
}

/// Clears the line on which the cursor is.
pub(super) fn clear() {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
}

/// The terminal at which somebody can be asked.
pub(super) struct Terminal(File);

impl Terminal {
    /// The one that standard error is on, where somebody sits at it.
    pub(super) fn open() -> Option<Terminal> {
        if !io::stderr().is_terminal() || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return None;
        }
        let file = match io::stdin().is_terminal() {
            true => File::from(io::stdin().as_fd().try_clone_to_owned().ok()?),
            false => File::open("/dev/tty").ok()?,
        };
        // In the background a process that changes the terminal is stopped; and nobody sees its question.
        let foreground = tcgetpgrp(file.as_fd()).ok()?;
        (foreground == rustix::process::getpgrp()).then_some(Terminal(file))
    }

    /// From now on keys come one by one and unseen, until it is given back. What was typed before is forgotten: it was
    /// not typed in answer to this.
    pub(super) fn listen(&self) -> io::Result<Listening<'_>> {
        let mut termios = tcgetattr(self.0.as_fd())?;
        let mut before = before();
        if before.is_none() {
            *before = Some((self.0.try_clone()?, termios.clone()));
        }
        drop(before);
        // Ctrl-C stays what it is: the call is cancelled, as without a question.
        termios.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        termios.special_codes[SpecialCodeIndex::VMIN] = 1;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A stopped process would leave the terminal mute.
        termios.special_codes[SpecialCodeIndex::VSUSP] = 0;
        let listening = Listening { terminal: self, held: Vec::new() };
        tcsetattr(self.0.as_fd(), OptionalActions::Now, &termios)?;
        tcflush(self.0.as_fd(), QueueSelector::IFlush)?;
        Ok(listening)
    }
}

/// Keys come one by one. Dropping it gives the terminal back.
pub(super) struct Listening<'a> {
    terminal: &'a Terminal,
    held: Vec<u8>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        restore();
    }
}

impl Listening<'_> {
    /// Forgets what was typed so far: it was not typed in answer to what stands here now.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        let _ = tcflush(self.terminal.0.as_fd(), QueueSelector::IFlush);
    }

    /// The next key; `None` where none came for a moment.
    pub(super) fn next(&mut self) -> io::Result<Option<Key>> {
        if let Some(key) = take(&mut self.held) {
            return Ok(Some(key));
        }
        let mut ready = [PollFd::new(&self.terminal.0, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut ready, Some(&moment)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {
                // An escape that nothing follows is the key itself.
                let alone = self.held == [0x1b];
                if alone {
                    self.held.clear();
                }
                return Ok(alone.then_some(Key::Escape));
            }
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        match (&self.terminal.0).read(&mut bytes) {
            Ok(0) => return Ok(Some(Key::End)),
            Ok(count) => self.held.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(take(&mut self.held))
    }
}

/// Takes one key off the bytes that came. Sequences of cursor and function keys mean nothing here and are passed over
/// as a whole, so that no letter in them counts as a key.
fn take(held: &mut Vec<u8>) -> Option<Key> {
    loop {
        let first = *held.first()?;
        let (length, key) = match first {
            0x1b => match sequence(held)? {
                0 => {
                    held.remove(0);
                    return Some(Key::Escape);
                }
                length => (length, None),
            },
            b'\r' | b'\n' => (1, Some(Key::Enter)),
            0x7f | 0x08 => (1, Some(Key::Backspace)),
            0x03 | 0x04 => (1, Some(Key::End)),
            0x00..=0x1f => (1, None),
            _ => {
                let length = match first {
                    0x00..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    _ => 4,
                };
                let letter = held.get(..length)?;
                (length, std::str::from_utf8(letter).ok().and_then(|text| text.chars().next()).map(Key::Char))
            }
        };
        held.drain(..length);
        if key.is_some() {
            return key;
        }
    }
}

/// How long the sequence at the start is: 0 where it is none, `None` where its end has not come yet.
fn sequence(held: &[u8]) -> Option<usize> {
    match held.get(1)? {
        b'[' => {
            let end = held.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte))?;
            Some(end + 3)
        }
        b'O' => held.get(2).map(|_| 3),
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        let cases: [(&[u8], &[Key], &[u8]); 9] = [
            (b"y", &[Key::Char('y')], b""),
            (b"\r\x7f\x04", &[Key::Enter, Key::Backspace, Key::End], b""),
            ("é…".as_bytes(), &[Key::Char('é'), Key::Char('…')], b""),
            (b"\xc3", &[], b"\xc3"),
            // An arrow, a function key, a paste in brackets: no letter of theirs counts.
            (b"\x1b[A\x1bOyn", &[Key::Char('n')], b""),
            (b"\x1b[15~\x1b[1;5yq", &[Key::Char('q')], b""),
            (b"\x1b[", &[], b"\x1b["),
            (b"\x1b", &[], b"\x1b"),
            (b"\x01\xff\xff\xff\xffn", &[Key::Char('n')], b""),
        ];
        for (bytes, keys, left) in cases {
            let mut held = bytes.to_vec();
            let taken: Vec<Key> = std::iter::from_fn(|| take(&mut held)).collect();
            assert_eq!((taken.as_slice(), held.as_slice()), (keys, left), "{bytes:?}");
        }
    }
}
