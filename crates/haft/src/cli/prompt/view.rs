//! A question as a person reads it. Pure: a question, a screen and a width give text.

use super::keys::{Can, Keep, Memory, Screen};
use crate::{
    ApprovalRequest, Footprint, Resource, Risk,
    cli::{
        console::{BAD, GOOD, QUIET, STRONG, UNSURE},
        layout, words,
    },
};
use anstyle::{AnsiColor, Style};
use haft_core::text::{one_line, people_text};

const PLACE: Style = AnsiColor::Cyan.on_default();

/// What a question is shown with.
pub(super) struct View<'a> {
    pub(super) request: &'a ApprovalRequest,
    /// Its number among those that are asked together, from 1, and how many there are.
    pub(super) number: (usize, usize),
    /// How many questions of this tool were asked so far, and how many of those each offer would have spared.
    pub(super) asked: usize,
    pub(super) spared: Vec<usize>,
}

/// The size of what it is shown on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Size {
    /// Lines for what would change: the rest of the screen has to fit, too.
    fn lines(self) -> usize {
        self.height.saturating_sub(14).clamp(5, 40)
    }
}

impl View<'_> {
    /// What can be done about it. What a key would do that is not here, it does not do.
    pub(super) fn can(&self, size: Size) -> Can {
        let request = self.request;
        Can {
            offers: request.offers.len().min(9),
            session: request.asker.session.is_some(),
            // Secrets are taken out of what is shown; what would be changed would not be what was sent.
            edit: !request.arguments.as_str().contains("[redacted:"),
            more: self.detail().is_cut(size),
            others: self.number.0 < self.number.1,
        }
    }

    /// The question itself.
    pub(super) fn question(&self, size: Size) -> String {
        let (request, width) = (self.request, size.width);
        let (risk, style) = risk(request.risk);
        let tool = words::name(&request.tool);
        let count = match self.number {
            (_, 1) => String::new(),
            (number, total) => format!(" ({number} of {total})"),
        };
        let asks = format!("May `{tool}` run?");
        let fits = asks.chars().count() + count.chars().count() + risk.len() + " risk".len() + 2 <= width;
        let gap = if fits { "  " } else { "\n  " };
        let mut out = format!("{STRONG}{asks}{STRONG:#}{count}{gap}{style}{risk} risk{style:#}\n");
        let mut say = |label: &str, text: &str| out.push_str(&labelled(label, text, width));
        say("", &one_line(&request.summary, 400));
        say("why", &one_line(&request.reason, 400));
        say("who", &who(request));
        if let Some(touches) = touches(&request.footprint) {
            say("touches", &touches);
        }
        if request.replaces.is_some() {
            say("note", "the arguments were changed by a person");
        }
        let detail = self.detail();
        out.push_str(&detail.shown(size));
        out
    }

    /// All of what would change, or of the arguments.
    pub(super) fn everything(&self) -> String {
        self.detail().whole()
    }

    /// What stands below the question.
    pub(super) fn screen(&self, screen: &Screen, size: Size) -> String {
        let (can, width) = (self.can(size), Some(size.width));
        match screen {
            Screen::Ask => layout::indented(&keys(can), 0, width),
            Screen::Help => help(can, size.width),
            Screen::Reason(typed) => {
                let text = format!("Why not? (Enter sends, Esc goes back) {}", one_line(typed, 400));
                layout::indented(&text, 0, width)
            }
            Screen::HowLong(typed) => {
                let typed = one_line(typed, 400);
                let text = format!("For how long? Such as 30m, 2h, 7d (Esc goes back) {typed}");
                layout::indented(&text, 0, width)
            }
            Screen::Which(keep) => {
                let offers = self.request.offers.iter().enumerate().take(9);
                let head = format!("Do not ask again {}, for:", lasts(*keep));
                let mut out = layout::indented(&head, 0, width);
                for (place, offer) in offers {
                    let text = format!("{}  {}", place + 1, one_line(&offer.words, 400));
                    out.push_str(&layout::indented(&text, 2, width));
                }
                out.push_str("1-9 choose · q back");
                out
            }
            Screen::Confirm(memory) => self.confirm(*memory, size.width),
        }
    }

    fn confirm(&self, memory: Memory, width: usize) -> String {
        let Some(offer) = self.request.offers.get(memory.offer) else { return String::new() };
        let mut out = format!("{STRONG}This will be remembered:{STRONG:#}\n");
        let rule = format!("{}, {}", one_line(&offer.words, 400), lasts(memory.keep));
        out.push_str(&layout::indented(&rule, 2, Some(width)));
        let spared = self.spared.get(memory.offer).copied().unwrap_or(0);
        let past = match (self.asked, spared) {
            (0, _) => "It is the first question about this tool.".to_owned(),
            (asked, spared) => {
                format!("It would have spared you {spared} of the last {}.", words::count(asked, "question"))
            }
        };
        out.push_str(&layout::indented(&past, 2, Some(width)));
        out.push_str("y remember it and run · n back");
        out
    }

    fn detail(&self) -> Detail<'_> {
        match &self.request.preview {
            Some(preview) => Detail::Change(people_text(preview)),
            None => Detail::Arguments(arguments(self.request)),
        }
    }
}

/// What there is to see of a call.
enum Detail<'a> {
    /// What would change.
    Change(std::borrow::Cow<'a, str>),
    /// What it is called with.
    Arguments(String),
}

impl Detail<'_> {
    fn text(&self) -> &str {
        match self {
            Detail::Change(text) => text,
            Detail::Arguments(text) => text,
        }
    }

    fn is_cut(&self, size: Size) -> bool {
        let room = size.width.saturating_sub(2).max(8);
        let mut lines = self.text().lines();
        lines.clone().count() > size.lines() || lines.any(|line| line.chars().count() > room)
    }

    fn styled(&self, line: &str) -> String {
        let style = match (self, line.as_bytes().first()) {
            (Detail::Change(_), Some(b'+')) => GOOD,
            (Detail::Change(_), Some(b'-')) => BAD,
            (Detail::Change(_), Some(b'@')) => PLACE,
            _ => return line.to_owned(),
        };
        format!("{style}{line}{style:#}")
    }

    fn shown(&self, size: Size) -> String {
        let room = size.width.saturating_sub(2).max(8);
        let mut out = String::new();
        for line in self.text().lines().take(size.lines()) {
            let line = line.replace('\t', "    ");
            out.push_str(&format!("  {}\n", self.styled(&cut(&line, room))));
        }
        let left = self.text().lines().count().saturating_sub(size.lines());
        if left > 0 {
            let lines = words::count(left, "more line");
            out.push_str(&format!("  {QUIET}… {lines}; d shows everything{QUIET:#}\n"));
        }
        out
    }

    fn whole(&self) -> String {
        self.text().lines().map(|line| format!("  {}\n", self.styled(line))).collect()
    }
}

fn cut(line: &str, room: usize) -> String {
    if line.chars().count() <= room {
        return line.to_owned();
    }
    line.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn risk(risk: Risk) -> (&'static str, Style) {
    match risk {
        Risk::Low => ("low", GOOD),
        Risk::Medium => ("medium", UNSURE),
        Risk::High => ("high", BAD),
    }
}

fn labelled(label: &str, text: &str, width: usize) -> String {
    let body = layout::indented(text, if label.is_empty() { 2 } else { 11 }, Some(width));
    match label {
        "" => body,
        label => format!("  {QUIET}{label:<9}{QUIET:#}{}", body.trim_start()),
    }
}

fn who(request: &ApprovalRequest) -> String {
    let asker = &request.asker;
    let mut who = format!("agent `{}`", words::name(&asker.agent));
    if let Some(user) = &asker.user {
        who.push_str(&format!(" for {}", words::name(user)));
    }
    if let Some(session) = &asker.session {
        who.push_str(&format!(", session `{}`", words::name(session)));
    }
    who
}

/// What it touches, in a line; nothing where it says nothing that the summary does not.
fn touches(footprint: &Footprint) -> Option<String> {
    let named = |what: &str, resources: &[Resource]| {
        let names: Vec<String> = resources.iter().take(4).map(resource).collect();
        let more = match resources.len().saturating_sub(4) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!names.is_empty()).then(|| format!("{what} {}{more}", names.join(", ")))
    };
    let parts: Vec<String> = [named("writes", &footprint.writes), named("reads", &footprint.reads)]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn resource(resource: &Resource) -> String {
    match resource {
        Resource::Path(path) => one_line(path, 120),
        Resource::Host(host) => format!("host {}", one_line(host, 120)),
        Resource::Named(name) => one_line(name, 120),
        Resource::Anything => "anything".to_owned(),
    }
}

fn arguments(request: &ApprovalRequest) -> String {
    let Ok(arguments) = request.arguments.parse() else {
        return people_text(request.arguments.as_str()).into_owned();
    };
    let mut out = String::new();
    for (name, value) in &arguments {
        let value = match value.as_str() {
            Some(text) => people_text(text).into_owned(),
            None => people_text(&value.to_string()).into_owned(),
        };
        let name = words::name(name);
        match value.contains('\n') {
            true => out.push_str(&format!("{name}:\n{}\n", layout::indented(&value, 2, None).trim_end())),
            false => out.push_str(&format!("{name}: {value}\n")),
        }
    }
    out
}

fn lasts(keep: Keep) -> String {
    match keep {
        Keep::Session => "while this session goes on".to_owned(),
        Keep::Always => "until it is revoked".to_owned(),
        Keep::For(time) => format!("for {}", super::time_words(time)),
    }
}

/// The keys, in the order in which they are needed.
fn keys(can: Can) -> String {
    let offered = [
        (true, "y once"),
        (true, "n no"),
        (can.edit, "e edit"),
        (can.offers > 0, "a always…"),
        (can.offers > 0 && can.session, "s session…"),
        (can.offers > 0, "u until…"),
        (can.more, "d details"),
        (can.others, "Y/N all"),
        (true, "? help"),
        (true, "q later"),
    ];
    let keys: Vec<&str> = offered.iter().filter(|(can, _)| *can).map(|(_, key)| *key).collect();
    keys.join(" · ")
}

fn help(can: Can, width: usize) -> String {
    let rows = [
        (true, "y", "run it, this once"),
        (true, "n", "do not run it; the model is told so"),
        (true, "r", "the same, with a reason that the model gets to read"),
        (can.edit, "e", "change the arguments in $EDITOR; the changed call is shown before it runs"),
        (can.offers > 0, "a", "run it, and do not ask again; what is remembered is shown first"),
        (can.offers > 0 && can.session, "s", "the same, for this session"),
        (can.offers > 0, "u", "the same, for a time that you type"),
        (can.more, "d", "show everything that would change"),
        (can.others, "Y, N", "yes, or no, to this and all that follow"),
        (true, "q", "decide later: `haft approvals` has it on its list"),
        (true, "Ctrl-C", "stop; nothing is run"),
    ];
    let rows: Vec<(String, String)> = rows
        .iter()
        .filter(|(can, _, _)| *can)
        .map(|(_, key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect();
    layout::list(&rows, Some(width))
}

#[cfg(test)]
mod tests;
