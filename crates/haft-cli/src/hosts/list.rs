//! `haft hosts`: what is installed where, and whether it holds.

use super::{
    host::Host,
    manifest::{Manifests, Written},
    plan::Mode,
    settings::{self, Form},
};
use crate::{
    console::{BAD, Console, GOOD, STRONG, UNSURE},
    failure::Failure,
    hook,
    setup::CliContext,
    words,
};
use clap::{Args, ValueEnum as _};
use haft::config::Surroundings;
use serde_json::json;
use std::{fs, path::Path};

/// What hook mode is, in words.
pub(super) const HOOK_IS_NOT_CONTAINMENT: &str =
    "A hook decides and records; it contains nothing. What the host runs after a yes runs as you.";

#[derive(Debug, Args)]
pub(crate) struct HostsArgs {
    /// Print one JSON document only
    #[arg(long)]
    json: bool,
}

/// What a mode of a host is worth, as far as it was tried.
pub(super) fn holds(host: Host, mode: Mode, only_haft: bool) -> String {
    let title = host.title();
    let tried = match hook::protocol(host) {
        Some(protocol) if !protocol.tried.is_empty() => {
            format!("tried with {title} {}", protocol.tried.join(", "))
        }
        Some(_) => format!("not tried with {title} itself, only with its documented protocol"),
        None => format!("{title} has no hooks that haft knows"),
    };
    match (mode, host) {
        (Mode::Mcp, _) if only_haft => {
            "haft's own tools are contained; the host's own are denied, as far as haft knows them by name"
                .to_owned()
        }
        (Mode::Mcp, _) => "haft's own tools are contained; the host's own tools are free".to_owned(),
        (_, Host::Codex) => format!(
            "{tried}. Codex runs a hook only after you trusted it: type /hooks in Codex. A hook that fails or takes \
             too long lets the call through, and input to a running command is not hooked"
        ),
        (_, Host::ClaudeCode) => {
            format!("{tried}. 2.1.197 lets a call through whose hook cannot be started, or is killed")
        }
        _ => tried,
    }
}

/// Whether what haft wrote into a file is still there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    /// All is there, and the host does not use it: its person has not trusted it.
    NotTrusted,
    Changed,
    Gone,
}

impl State {
    fn of(written: &Written, surroundings: &Surroundings) -> Self {
        let Ok(text) = fs::read_to_string(&written.file) else { return State::Gone };
        if !written.changes.iter().all(|made| settings::has(written.form, &text, &made.change)) {
            return State::Changed;
        }
        if (written.host, written.form) == (Host::Codex, Form::Json) {
            let own = Host::Codex.file(surroundings).and_then(|file| fs::read_to_string(file).ok());
            if !own.is_some_and(|own| is_trusted(&own, &written.file)) {
                return State::NotTrusted;
            }
        }
        State::Whole
    }

    fn as_str(self) -> &'static str {
        match self {
            State::Whole => "installed",
            State::NotTrusted => "not trusted",
            State::Changed => "changed",
            State::Gone => "gone",
        }
    }
}

/// Whether Codex's own settings say that its person trusted a hook of that file. Whether that was the entry that is
/// there now is for Codex to check: it does before each start.
fn is_trusted(settings: &str, file: &Path) -> bool {
    let table: toml::Table = toml::from_str(settings).unwrap_or_default();
    let states = table.get("hooks").and_then(|hooks| hooks.get("state")?.as_table());
    states.into_iter().flatten().any(|(key, state)| {
        key.contains(&*file.to_string_lossy())
            && key.contains("pre_tool_use")
            && state.get("trusted_hash").is_some()
            && state.get("enabled").and_then(toml::Value::as_bool) != Some(false)
    })
}

pub(crate) fn run(args: &HostsArgs, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let surroundings = ground.surroundings()?;
    let state = surroundings.state_folder().ok_or(Failure::NoStateFolder)?;
    let written = Manifests::new(&state).all()?;
    let blocked = hook::blocked_sessions(&state);
    if args.json {
        let each = written.iter().map(|written| {
            json!({
                "host": written.host, "mode": written.mode, "onlyHaft": written.only_haft, "file": written.file,
                "state": State::of(written, &surroundings).as_str(),
                "holds": holds(written.host, written.mode, written.only_haft),
            })
        });
        let hosts = Host::value_variants().iter().map(|host| {
            json!({
                "host": host, "title": host.title(), "hooks": hook::protocol(*host).is_some(),
                "tried": hook::protocol(*host).map(|protocol| protocol.tried).unwrap_or_default(),
            })
        });
        console.print_json(&json!({
            "installed": each.collect::<Vec<_>>(), "hosts": hosts.collect::<Vec<_>>(), "blockedSessions": blocked,
        }))?;
        return Ok(0);
    }
    for host in Host::value_variants() {
        let entries: Vec<&Written> = written.iter().filter(|written| written.host == *host).collect();
        console.print(format!("{STRONG}{}{STRONG:#} ({})\n", host.name(), host.title()))?;
        if entries.is_empty() {
            console.print("  not installed\n")?;
        }
        for entry in entries {
            let state = State::of(entry, &surroundings);
            let style = match state {
                State::Whole => GOOD,
                State::Changed => UNSURE,
                State::NotTrusted | State::Gone => BAD,
            };
            let mode = entry.mode.to_possible_value();
            let mode = mode.as_ref().map(|mode| mode.get_name()).unwrap_or_default();
            let only = if entry.only_haft { ", only haft's tools" } else { "" };
            let (file, state) = (words::path(&entry.file), state.as_str());
            console.print(format!(
                "  {style}{state}{style:#} as {mode}{only} in {file}\n    {}\n",
                holds(*host, entry.mode, entry.only_haft)
            ))?;
        }
    }
    for (session, why) in &blocked {
        console.warn(&format!("session {} is blocked: {why}", words::name(session)));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_of_codex_is_trusted_where_codex_says_so() {
        let file = Path::new("/home/ada/.codex/hooks.json");
        let state = |event: &str, rest: &str| {
            format!("[hooks.state.\"file:{}:{event}:0:0\"]\n{rest}\n", file.display())
        };
        let hash = "trusted_hash = \"sha256:1\"";
        for (settings, expected) in [
            (state("pre_tool_use", hash), true),
            (state("pre_tool_use", "enabled = true"), false),
            (state("pre_tool_use", &format!("{hash}\nenabled = false")), false),
            (state("post_tool_use", hash), false),
            (state("pre_tool_use", hash).replace("ada", "eve"), false),
            ("model = 'x'".to_owned(), false),
            ("= nonsense".to_owned(), false),
        ] {
            assert_eq!(is_trusted(&settings, file), expected, "{settings}");
        }
    }
}
