//! One-time tickets: a command that haft rewrote ran through `haft exec`, once, as it was decided about.
//!
//! Some versions of hosts were reported to take a hook's `allow` and drop the changed input: the command then runs past
//! haft. So `haft hook` makes a ticket before the command, `haft exec --ticket` [takes](take) it, and `haft hook`
//! [settles](settle) it after the command: one that nobody took is an alarm, and the session is blocked.

use crate::hosts::{Host, digest};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a ticket can be taken: a person may be asked by the host meanwhile.
const LIFETIME: Duration = Duration::from_secs(3600);

/// A command that was decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    id: String,
    /// Who runs it.
    pub(crate) host: Host,
    /// The host's session.
    pub(crate) session: String,
    /// The host's own name for the call.
    pub(crate) call: String,
    /// The project that it was decided about for.
    pub(crate) folder: PathBuf,
    /// The words of the command, as a fingerprint.
    command: String,
    /// Seconds since 1970.
    expires: i64,
}

/// What a ticket is made for.
pub(crate) struct Wanted<'a> {
    pub(crate) host: Host,
    pub(crate) session: &'a str,
    pub(crate) call: &'a str,
    pub(crate) folder: &'a Path,
}

/// Why a ticket was not taken. The command must not run then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TicketError {
    /// There is none of that id.
    #[error("there is no such ticket; haft makes one for each command of a host, and it can be used once")]
    Unknown,
    /// Its time is over.
    #[error("the ticket is too old")]
    Expired,
    /// It was made for another command.
    #[error("the ticket is for another command")]
    OtherCommand,
    /// It cannot be read or marked.
    #[error("the ticket cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// What became of a ticket by the time that its command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The command ran through `haft exec`.
    Taken,
    /// Nobody took it.
    NotTaken,
    /// There was none.
    Missing,
}

fn folder(state: &Path) -> PathBuf {
    state.join("hook/tickets")
}

fn key(host: Host, session: &str, call: &str) -> String {
    digest(format!("{}\0{session}\0{call}", host.name()).as_bytes())[..16].to_owned()
}

fn fingerprint(words: &[String]) -> String {
    digest(words.join("\0").as_bytes())
}

/// Makes a ticket for these words of a command, and gives its id.
pub(crate) fn make(state: &Path, wanted: &Wanted<'_>, words: &[String], now: i64) -> io::Result<String> {
    let folder = folder(state);
    haft_store::private_file::create_folder(&folder)?;
    sweep(&folder, now)?;
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = key(wanted.host, wanted.session, wanted.call);
    let ticket = Ticket {
        id: format!("{key}-{secret}"),
        host: wanted.host,
        session: wanted.session.to_owned(),
        call: wanted.call.to_owned(),
        folder: wanted.folder.to_owned(),
        command: fingerprint(words),
        expires: now.saturating_add(LIFETIME.as_secs().cast_signed()),
    };
    match fs::remove_file(folder.join(format!("{key}.taken"))) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    haft_store::private_file::replace(&folder.join(format!("{key}.json")), &serde_json::to_vec(&ticket)?)?;
    Ok(ticket.id)
}

/// Takes the ticket of that id for these words of a command: once, in time, and for no other command.
///
/// # Errors
///
/// The command must not run.
#[cfg_attr(not(unix), expect(dead_code, reason = "`haft exec --ticket` calls it"))]
pub(crate) fn take(state: &Path, id: &str, words: &[String], now: i64) -> Result<Ticket, TicketError> {
    let key = id
        .split('-')
        .next()
        .filter(|key| key.len() == 16 && key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let folder = folder(state);
    let path = folder.join(format!("{}.json", key.ok_or(TicketError::Unknown)?));
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => TicketError::Unknown,
        _ => TicketError::Io(error),
    };
    let ticket: Ticket = serde_json::from_slice(&fs::read(&path).map_err(missing)?)
        .map_err(|error| TicketError::Io(error.into()))?;
    if ticket.id != id {
        return Err(TicketError::Unknown);
    }
    if ticket.expires < now {
        return Err(TicketError::Expired);
    }
    if ticket.command != fingerprint(words) {
        return Err(TicketError::OtherCommand);
    }
    // Of two who take it at the same time, the system lets one.
    fs::rename(&path, path.with_extension("taken")).map_err(missing)?;
    Ok(ticket)
}

/// What became of the ticket of a call that ended. The ticket is gone then. A command in the background may not have
/// begun yet, so one that nobody took is looked at again for a while.
pub(crate) fn settle(state: &Path, wanted: &Wanted<'_>, patience: Duration) -> io::Result<Settled> {
    const LOOK: Duration = Duration::from_millis(50);
    let path = folder(state).join(format!("{}.json", key(wanted.host, wanted.session, wanted.call)));
    let begun = std::time::Instant::now();
    loop {
        match fs::remove_file(path.with_extension("taken")) {
            Ok(()) => return Ok(Settled::Taken),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if !path.exists() => return Ok(Settled::Missing),
            Err(_) if begun.elapsed() >= patience => break,
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    fs::remove_file(&path)?;
    Ok(Settled::NotTaken)
}

/// Removes tickets that nobody will settle any more.
fn sweep(folder: &Path, now: i64) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Ok(text) = fs::read(&path) else { continue };
        let is_old = serde_json::from_slice::<Ticket>(&text).is_ok_and(|ticket| ticket.expires < now);
        if is_old {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

/// A session in which no tool runs any more.
#[derive(Serialize, Deserialize)]
struct Blocked {
    session: String,
    why: String,
}

fn blocked_folder(state: &Path) -> PathBuf {
    state.join("hook/blocked")
}

/// Blocks a session of a host.
pub(crate) fn block(state: &Path, host: Host, session: &str, why: &str) -> io::Result<()> {
    let folder = blocked_folder(state);
    haft_store::private_file::create_folder(&folder)?;
    let blocked = Blocked { session: session.to_owned(), why: why.to_owned() };
    let path = folder.join(format!("{}.json", key(host, session, "")));
    haft_store::private_file::replace(&path, &serde_json::to_vec(&blocked)?)
}

/// Why a session of a host is blocked, if it is.
pub(crate) fn blocked(state: &Path, host: Host, session: &str) -> Option<String> {
    let path = blocked_folder(state).join(format!("{}.json", key(host, session, "")));
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // What cannot be read blocks: something is there.
        read => Some(
            read.ok()
                .and_then(|text| serde_json::from_slice::<Blocked>(&text).ok())
                .map_or_else(|| "for a reason that cannot be read".to_owned(), |blocked| blocked.why),
        ),
    }
}

/// All sessions that are blocked, with the reason.
pub(crate) fn blocked_sessions(state: &Path) -> Vec<(String, String)> {
    let listed = fs::read_dir(blocked_folder(state)).into_iter().flatten().flatten();
    let read = |path: PathBuf| serde_json::from_slice::<Blocked>(&fs::read(path).ok()?).ok();
    let mut all: Vec<_> =
        listed.filter_map(|entry| read(entry.path())).map(|blocked| (blocked.session, blocked.why)).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn words(line: &str) -> Vec<String> {
        ["bash", "-c", line].map(str::to_owned).into()
    }

    fn wanted(call: &str) -> Wanted<'_> {
        Wanted { host: Host::ClaudeCode, session: "s", call, folder: Path::new("/work") }
    }

    #[test]
    fn a_ticket_is_taken_once_in_time_and_for_its_command() {
        let state = tempfile::tempdir().unwrap();
        let id = make(state.path(), &wanted("a"), &words("ls"), NOW).unwrap();
        assert!(matches!(take(state.path(), &id, &words("rm -rf ."), NOW), Err(TicketError::OtherCommand)));
        assert!(matches!(take(state.path(), &id, &words("ls"), NOW + 3601), Err(TicketError::Expired)));
        let forged = format!("{}-{}", &id[..16], "0".repeat(32));
        assert!(matches!(take(state.path(), &forged, &words("ls"), NOW), Err(TicketError::Unknown)));
        for wrong in ["", "-", "../../etc/passwd", "zz", &id[..16]] {
            assert!(
                matches!(take(state.path(), wrong, &words("ls"), NOW), Err(TicketError::Unknown)),
                "{wrong}"
            );
        }
        let taken = take(state.path(), &id, &words("ls"), NOW + 3600).unwrap();
        assert_eq!((taken.session.as_str(), taken.folder.as_path()), ("s", Path::new("/work")));
        assert!(matches!(take(state.path(), &id, &words("ls"), NOW), Err(TicketError::Unknown)));
    }

    #[test]
    fn of_many_who_take_it_at_once_one_does() {
        let state = tempfile::tempdir().unwrap();
        let id = make(state.path(), &wanted("a"), &words("ls"), NOW).unwrap();
        let taken = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..8).map(|_| scope.spawn(|| take(state.path(), &id, &words("ls"), NOW).is_ok())).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|taken| *taken).count()
        });
        assert_eq!(taken, 1);
    }

    #[test]
    fn what_became_of_it_is_told_once() {
        let state = tempfile::tempdir().unwrap();
        let settled = |call: &'static str| settle(state.path(), &wanted(call), Duration::ZERO).unwrap();
        assert_eq!(settled("none"), Settled::Missing);
        make(state.path(), &wanted("left"), &words("ls"), NOW).unwrap();
        assert_eq!((settled("left"), settled("left")), (Settled::NotTaken, Settled::Missing));
        let id = make(state.path(), &wanted("ran"), &words("ls"), NOW).unwrap();
        take(state.path(), &id, &words("ls"), NOW).unwrap();
        assert_eq!((settled("ran"), settled("ran")), (Settled::Taken, Settled::Missing));
    }

    #[test]
    fn one_that_is_taken_late_is_waited_for() {
        let state = tempfile::tempdir().unwrap();
        let id = make(state.path(), &wanted("late"), &words("ls"), NOW).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                take(state.path(), &id, &words("ls"), NOW).unwrap();
            });
            assert_eq!(
                settle(state.path(), &wanted("late"), Duration::from_secs(20)).unwrap(),
                Settled::Taken
            );
        });
    }

    #[test]
    fn old_tickets_are_swept_away() {
        let state = tempfile::tempdir().unwrap();
        make(state.path(), &wanted("old"), &words("ls"), NOW).unwrap();
        make(state.path(), &wanted("new"), &words("ls"), NOW + 4000).unwrap();
        assert_eq!(fs::read_dir(folder(state.path())).unwrap().count(), 1);
    }

    #[test]
    fn a_blocked_session_stays_blocked_also_where_the_reason_is_broken() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(blocked(state.path(), Host::Codex, "s"), None);
        block(state.path(), Host::Codex, "s", "because").unwrap();
        assert_eq!(blocked(state.path(), Host::Codex, "s").as_deref(), Some("because"));
        assert_eq!(blocked(state.path(), Host::ClaudeCode, "s"), None, "another host's");
        assert_eq!(blocked_sessions(state.path()), [("s".to_owned(), "because".to_owned())]);
        for entry in fs::read_dir(blocked_folder(state.path())).unwrap() {
            fs::write(entry.unwrap().path(), "nonsense").unwrap();
        }
        assert!(blocked(state.path(), Host::Codex, "s").is_some());
    }
}
