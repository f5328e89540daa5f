//! `haft hook HOST`: haft as the hook that a host calls before and after each of its own tools.
//!
//! | file | what |
//! |---|---|
//! | `event` | what a host says, and what haft answers |
//! | `hosts` | one file for each host: its protocol, and its tools as calls of haft's |
//! | `map` | what those files share |
//! | `decide` | the engine, asked about one call |
//! | `host_tool` | tools that only the host has |
//! | `ticket` | that a rewritten command ran through `haft exec`, once |
//!
//! A hook is policy and audit, and no containment. Hosts take every end of a hook but exit code 2 for consent, so every
//! way out of here that is not a decision is that one: an error, a panic, a deadline.

mod decide;
mod event;
mod host_tool;
mod hosts;
mod map;
mod ticket;

use crate::{console::Console, failure::Failure, hosts::Host, setup::CliContext, words};
use clap::Args;
pub(crate) use event::Protocol;
use event::{Event, Moment, Reply};
use serde_json::Value;
use std::{
    io::{self, Read as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
#[cfg(unix)]
pub(crate) use ticket::take as take_ticket;
pub(crate) use ticket::{TicketError, blocked_sessions};

/// The exit code by which every host blocks a call.
pub(crate) const DENY: u8 = 2;
/// The most that a host may say at once; a file that it read is among it.
const MOST_BYTES: u64 = 32 << 20;
/// How long haft waits for `haft approvals`, where nothing else is said.
const WAIT: Duration = Duration::from_secs(30);
/// What the rest of a decision may take, at the most.
const REST: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The host that calls
    #[arg(value_name = "HOST")]
    pub(crate) host: Host,
    /// Rewrite shell commands, so that they run through `haft exec`
    #[arg(long)]
    pub(crate) exec: bool,
    #[command(flatten)]
    pub(crate) flags: HookFlags,
}

/// What can be chosen when the hook is installed, too.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HookFlags {
    /// Hook: answer `allow`, so that the host does not ask again about what haft allows
    #[arg(long)]
    pub(crate) allow: bool,
    /// Hook: work with versions of the host that haft was not tried with
    #[arg(long)]
    pub(crate) untried: bool,
    /// Hook: wait this long for `haft approvals` where the host cannot ask, at most 40s [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = at_most_40s)]
    pub(crate) wait: Option<Duration>,
}

/// Hosts are told to wait a minute for haft.
fn at_most_40s(typed: &str) -> Result<Duration, String> {
    match words::time(typed)? {
        time if time <= Duration::from_secs(40) => Ok(time),
        _ => Err("the host waits a minute for haft in all, so 40s is the most".to_owned()),
    }
}

impl HookFlags {
    /// As they are typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.allow.then(|| "--allow".to_owned()));
        words.extend(self.untried.then(|| "--untried".to_owned()));
        if let Some(wait) = self.wait {
            words.extend(["--wait".to_owned(), format!("{}ms", wait.as_millis())]);
        }
        words
    }

    fn wait(&self) -> Duration {
        self.wait.unwrap_or(WAIT)
    }
}

/// How a host talks to its hooks; `None` where it has none that haft knows.
pub(crate) fn protocol(host: Host) -> Option<&'static Protocol> {
    hosts::of(host)
}

pub(crate) fn run(args: &HookArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    deadline(args.flags.wait() + REST);
    let answered = catch_unwind(AssertUnwindSafe(|| answer(args, ground, console)));
    let reply = match answered {
        Ok(Ok(reply)) => reply,
        Ok(Err(failure)) => Reply::blocked(format!("haft could not decide about this call: {failure}")),
        Err(_) => Reply::blocked("haft could not decide about this call: an error in haft itself"),
    };
    if let Some(text) = &reply.stdout {
        console.print_raw(&format!("{text}\n"))?;
    }
    if let Some(text) = &reply.stderr {
        console.say(text);
    }
    Ok(reply.exit)
}

/// Ends this process with a no, should it take longer. The host would take its own timeout for a yes.
fn deadline(after: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        let _ = io::stderr().write_all(b"haft took too long to decide about this call, so it is blocked\n");
        std::process::exit(i32::from(DENY));
    });
}

fn answer(args: &HookArgs, ground: CliContext, console: &mut Console) -> Result<Reply, Failure> {
    let host = args.host;
    let protocol = protocol(host).ok_or_else(|| Failure::Mcp {
        what: format!("{} has no hooks that haft knows", host.title()),
        help: "`haft hosts` lists the hosts, and what each can do".to_owned(),
    })?;
    let said = said()?;
    let event = (protocol.read)(&said, &ground.surroundings).ok_or_else(|| Failure::Mcp {
        what: format!("standard input is not what {} says to a hook", host.title()),
        help: format!("`haft install {} --mode hook` makes it call haft", host.name()),
    })?;
    if event.moment == Moment::Other {
        return Ok(Reply::nothing());
    }
    if !args.flags.untried
        && !event.version.as_deref().is_some_and(|version| protocol.tried.contains(&version))
    {
        return Ok(Reply::blocked(untried(host, protocol, &event)));
    }
    let state = ground.surroundings()?.state_folder().ok_or(Failure::NoStateFolder)?;
    if let (Moment::Before, Some(why)) = (event.moment, ticket::blocked(&state, host, &event.session)) {
        return Ok(Reply::blocked(format!("haft blocked this session: {why}. Start a new one")));
    }
    let verdict = match event.moment {
        Moment::Before => decide::before(args, &event, protocol, &state, ground, console)?,
        _ => decide::after(args, &event, protocol, &state, ground, console)?,
    };
    Ok((protocol.reply)(&event, verdict))
}

fn untried(host: Host, protocol: &Protocol, event: &Event) -> String {
    let title = host.title();
    let version = event.version.as_deref().map_or_else(
        || "this version".to_owned(),
        |known| format!("version {}", haft_core::text::one_line(known, 40)),
    );
    let tried = match protocol.tried {
        [] => "none".to_owned(),
        versions => versions.join(", "),
    };
    format!(
        "haft was not tried with {version} of {title} (tried: {tried}), so it blocks every call. `haft install {} \
         --mode hook --untried` installs it all the same",
        host.name()
    )
}

/// What the host says, within bounds.
fn said() -> Result<Value, Failure> {
    let mut bytes = Vec::new();
    let name = || "standard input".to_owned();
    io::stdin()
        .lock()
        .take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|reason| Failure::Unreadable { name: name(), reason })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::TooBig { name: name(), limit: MOST_BYTES });
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::NotJson { key: name(), problem: error.to_string() })
}
