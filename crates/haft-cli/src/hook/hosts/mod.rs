//! The hosts, each in its own file.

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini;
#[cfg(test)]
mod recorded;

use super::event::Protocol;
use crate::hosts::Host;

pub(super) fn of(host: Host) -> Option<&'static Protocol> {
    Some(match host {
        Host::ClaudeCode => &claude_code::PROTOCOL,
        Host::Codex => &codex::PROTOCOL,
        Host::Copilot => &copilot::PROTOCOL,
        Host::Cursor => &cursor::PROTOCOL,
        Host::Gemini => &gemini::PROTOCOL,
        Host::ClaudeDesktop | Host::Vscode | Host::Windsurf | Host::Zed => return None,
    })
}
