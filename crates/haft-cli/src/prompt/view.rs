//! A question as a person reads it. Pure: a question, a screen and a width give text.

use super::keys::{Can, Keep, Memory, Screen};
use crate::{
    call_view,
    console::{BAD, GOOD, STRONG, UNSURE},
    layout, words,
};
use anstyle::Style;
use haft::{ApprovalRequest, Risk};
use haft_core::text::one_line;

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

impl View<'_> {
    /// What can be done about it. What a key would do that is not here, it does not do.
    pub(super) fn can(&self, size: Size) -> Can {
        let request = self.request;
        Can {
            offers: request.offers.len().min(9),
            session: request.asker.session.is_some(),
            // Secrets are taken out of what is shown; what would be changed would not be what was sent.
            edit: request.can_edit(),
            more: self.everything(size).lines().count() + FURTHER_ROWS > size.height,
            others: self.number.0 < self.number.1,
        }
    }

    /// The question itself.
    pub(super) fn approval(&self, size: Size) -> String {
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
        out.push_str(&layout::indented(&one_line(&request.summary, 200), 2, Some(width)));
        out.push_str(&self.everything(size));
        out
    }

    /// Everything that a yes covers. It is printed whole before a key counts.
    pub(super) fn everything(&self, size: Size) -> String {
        call_view::rows(&self.request.view(), Some(size.width))
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
                    let text = format!("{}  {}", place + 1, one_line(&offer.words, usize::MAX));
                    out.push_str(&layout::indented(&text, 2, width));
                }
                out.push_str("1-9 choose · q back");
                out
            }
            Screen::Confirm(memory) => self.confirm(*memory, size.width),
            Screen::Rest => {
                let left = self.number.1.saturating_sub(self.number.0);
                let text = format!(
                    "That is this call and {}.\ny run all of them, this once · n back",
                    words::count(left, "more call")
                );
                layout::indented(&text, 0, width)
            }
        }
    }

    fn confirm(&self, memory: Memory, width: usize) -> String {
        let Some(offer) = self.request.offers.get(memory.offer) else { return String::new() };
        let mut out = format!("{STRONG}This will be remembered:{STRONG:#}\n");
        let rule = format!("{}, {}", one_line(&offer.words, usize::MAX), lasts(memory.keep));
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
}

/// Rows that the heading and the keys take.
const FURTHER_ROWS: usize = 6;

fn risk(risk: Risk) -> (&'static str, Style) {
    match risk {
        Risk::Low => ("low", GOOD),
        Risk::Medium => ("medium", UNSURE),
        Risk::High => ("high", BAD),
    }
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
        (can.more, "d show again"),
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
        (can.more, "d", "show everything again: it does not fit on the screen"),
        (can.others, "Y", "yes to this and all that follow, which are shown first"),
        (can.others, "N", "no to this and all that follow"),
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
