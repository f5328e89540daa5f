//! The question at the terminal.
//!
//! | file | what |
//! |---|---|
//! | `keys` | which key leads where: pure |
//! | `view` | what is shown: pure |
//! | `terminal` | single keys, from the person at the terminal only |
//! | `editor` | changing arguments |

pub(super) mod editor;
mod keys;
pub(super) mod terminal;
mod view;

use super::console::Console;
use editor::Editor;
use haft::{
    ApprovalError, ApprovalId, ApprovalRequest, Approvals, Channel, Decision, GrantTime, Remember, Reply,
    WhichOffer,
    assembly::LazyStore,
    port::{AcceptAnswers, Approver, BoxFuture, GuardError, Store as _, StoredApproval},
};
use haft_guard::spared;
use keys::{Answer, Keep, Memory, Screen, Step};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use terminal::{Terminal, clear};
use tokio::runtime::Handle;
use view::{Size, View};

/// What its answers are recorded as having come from.
pub(super) const CHANNEL: Channel = Channel::Terminal;

/// Asks the person at the terminal.
#[derive(Clone)]
pub(super) struct Prompt(Arc<Shared>);

struct Shared {
    console: Console,
    store: LazyStore,
    editor: Editor,
    /// Questions that were answered elsewhere while they stood here.
    elsewhere: Mutex<HashMap<ApprovalId, Decision>>,
    /// Questions that were answered here and written down with what is remembered.
    here: Mutex<HashSet<ApprovalId>>,
}

impl Prompt {
    /// Where somebody can be asked; `None` where nobody can.
    pub(super) fn new(console: Console, store: LazyStore, editor: Editor) -> Option<Prompt> {
        Terminal::open()?;
        let (elsewhere, here) = (Mutex::default(), Mutex::default());
        Some(Prompt(Arc::new(Shared { console, store, editor, elsewhere, here })))
    }
}

impl Approver for Prompt {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        Box::pin(async move {
            let stop = Stop { flag: Arc::default(), shared: &self.0, requests };
            let talk = Talk {
                shared: Arc::clone(&self.0),
                stop: Arc::clone(&stop.flag),
                runtime: Handle::current(),
                requests: requests.to_vec(),
            };
            let talked = tokio::task::spawn_blocking(move || talk.talk()).await;
            talked.map_err(|error| GuardError(format!("the question at the terminal broke off: {error}")))
        })
    }

    fn channel(&self) -> Channel {
        CHANNEL
    }

    fn answered_elsewhere(&self, question: &ApprovalId, decision: &Decision) {
        if self.0.here().contains(question) {
            return;
        }
        let mut elsewhere = self.0.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.insert(question.clone(), decision.clone());
    }
}

/// Dropped when nobody waits for the answer any more: the terminal is given back at once.
struct Stop<'a> {
    flag: Arc<AtomicBool>,
    shared: &'a Shared,
    requests: &'a [ApprovalRequest],
}

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
        terminal::restore();
        for request in self.requests {
            if let Some(decision) = self.shared.elsewhere(&request.id) {
                self.shared.console.say(answered_elsewhere(&decision));
            }
        }
    }
}

impl Shared {
    /// What somebody said elsewhere, once.
    fn elsewhere(&self, id: &ApprovalId) -> Option<Decision> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    fn here(&self) -> MutexGuard<'_, HashSet<ApprovalId>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The approvals among which a question is. There is a prompt only where its answers are accepted.
    fn approvals(&self, request: &ApprovalRequest) -> Approvals {
        Approvals::over(self.store.for_tenant(&request.asker.tenant), AcceptAnswers::only([CHANNEL]))
    }
}

/// A conversation about questions that are asked together.
struct Talk {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    runtime: Handle,
    requests: Vec<ApprovalRequest>,
}

/// How one question ended.
enum Ended {
    Answered(Answer),
    Edited(haft::Arguments),
    Elsewhere,
    Stopped,
}

impl Talk {
    fn talk(self) -> Vec<Decision> {
        let mut decisions = Vec::with_capacity(self.requests.len());
        let Some(terminal) = Terminal::open() else { return decisions };
        let mut agreed: Vec<serde_json::Value> = Vec::new();
        let mut rest = None;
        for place in 0..self.requests.len() {
            let offers = &self.requests[place].offers;
            // What was just remembered is not asked about again.
            if offers.iter().any(|offer| agreed.contains(&offer.covers)) {
                decisions.push(Decision::Approve);
                continue;
            }
            if let Some(rest) = &rest {
                decisions.push(Decision::clone(rest));
                continue;
            }
            let decision = match self.one(&terminal, place) {
                Ended::Answered(Answer::Once) => Decision::Approve,
                Ended::Answered(Answer::Remember(memory)) => {
                    agreed.extend(offers.get(memory.offer).map(|offer| offer.covers.clone()));
                    Decision::Approve
                }
                Ended::Answered(Answer::Deny(reason)) => Decision::Deny { reason },
                Ended::Answered(Answer::Later) | Ended::Elsewhere => Decision::Unanswered,
                Ended::Answered(Answer::AllOnce) => rest.insert(Decision::Approve).clone(),
                Ended::Answered(Answer::DenyAll) => rest.insert(Decision::Deny { reason: None }).clone(),
                Ended::Edited(arguments) => Decision::Edit { arguments },
                Ended::Stopped => return decisions,
            };
            decisions.push(decision);
        }
        decisions
    }

    /// Asks one question, until it is answered, here or elsewhere, or nobody wants to know any more.
    fn one(&self, terminal: &Terminal, place: usize) -> Ended {
        if self.stop.load(Ordering::Acquire) {
            return Ended::Stopped;
        }
        let request = &self.requests[place];
        let view = self.view(place);
        let console = &self.shared.console;
        let Ok(mut listening) = terminal.listen() else { return Ended::Answered(Answer::Later) };
        clear();
        let size = size();
        console.say(format!("\n{}", view.approval(size).trim_end()));
        // What was typed while it was being printed was typed before it could be read.
        listening.forget();
        let mut screen = Screen::Ask;
        self.show(&view, &screen, size);
        loop {
            if self.stop.load(Ordering::Acquire) {
                return Ended::Stopped;
            }
            if let Some(decision) = self.shared.elsewhere(&request.id) {
                clear();
                console.say(answered_elsewhere(&decision));
                return Ended::Elsewhere;
            }
            let key = match listening.next() {
                Ok(Some(key)) => key,
                Ok(None) => continue,
                Err(_) => return Ended::Answered(Answer::Later),
            };
            match keys::press(&screen, key, view.can(size)) {
                Step::Go(next) => screen = next,
                Step::ShowAll => {
                    clear();
                    console.say(view.everything(size).trim_end());
                    listening.forget();
                }
                Step::ShowRest => {
                    clear();
                    for later in place + 1..self.requests.len() {
                        console.say(format!("\n{}", self.view(later).approval(size).trim_end()));
                    }
                    listening.forget();
                    screen = Screen::Rest;
                }
                Step::Edit => {
                    // The editor has the terminal as it was, for itself.
                    drop(listening);
                    clear();
                    match self.shared.editor.edit(&request.arguments) {
                        Ok(Some(arguments)) => return Ended::Edited(arguments),
                        Ok(None) => console.say("nothing was changed"),
                        Err(problem) => console.say(problem),
                    }
                    match terminal.listen() {
                        Ok(again) => listening = again,
                        Err(_) => return Ended::Answered(Answer::Later),
                    }
                }
                Step::Answer(Answer::Remember(memory)) => match self.remember(request, memory) {
                    Ok(said) => {
                        clear();
                        console.say(said);
                        return Ended::Answered(Answer::Remember(memory));
                    }
                    Err(problem) => {
                        clear();
                        console.say(problem);
                        screen = Screen::Ask;
                    }
                },
                Step::Answer(answer) => {
                    clear();
                    console.say(said(&answer));
                    return Ended::Answered(answer);
                }
            }
            self.show(&view, &screen, size);
        }
    }

    /// A question, as it is shown.
    fn view(&self, place: usize) -> View<'_> {
        let request = &self.requests[place];
        let past = self.past(request);
        View {
            request,
            number: (place + 1, self.requests.len()),
            asked: past.len(),
            spared: request.offers.iter().map(|offer| spared(offer, &past)).collect(),
        }
    }

    /// Draws what stands below the question, in place of what stood there.
    fn show(&self, view: &View<'_>, screen: &Screen, size: Size) {
        clear();
        let text = view.screen(screen, size);
        let text = text.trim_end();
        match text.rsplit_once('\n') {
            // The last line stays where the cursor is.
            Some((above, last)) if !last.is_empty() => {
                self.shared.console.say(above);
                self.shared.console.say_on_line(last);
            }
            _ => self.shared.console.say_on_line(text),
        }
    }

    /// Earlier questions about the tool. Where they cannot be read, there were none.
    fn past(&self, request: &ApprovalRequest) -> Vec<StoredApproval> {
        if request.offers.is_empty() {
            return Vec::new();
        }
        self.runtime.block_on(self.shared.approvals(request).past(request)).unwrap_or_default()
    }

    /// A yes with what is remembered of it: both are written down here, as one.
    fn remember(&self, request: &ApprovalRequest, memory: Memory) -> Result<String, String> {
        let lasts = match memory.keep {
            Keep::Always => GrantTime::Always,
            Keep::Session => GrantTime::Session,
            Keep::For(time) => GrantTime::For(time),
        };
        let remember = Some(Remember { offer: WhichOffer::Place(memory.offer), lasts });
        let (approvals, by) = (self.shared.approvals(request), request.asker.principal());
        self.shared.here().insert(request.id.clone());
        let answer = approvals.answer(&request.id, Reply::Approve { remember }, by, CHANNEL);
        match self.runtime.block_on(answer) {
            Ok(answered) => {
                let id = answered.grant.map(|grant| grant.id).unwrap_or_default();
                Ok(format!("yes; remembered, until `haft grants revoke {id}`"))
            }
            Err(error) => {
                self.shared.here().remove(&request.id);
                Err(cannot(&error))
            }
        }
    }
}

fn cannot(error: &ApprovalError) -> String {
    format!("that cannot be remembered: {error}")
}

/// The answer, as it stays on the screen.
fn said(answer: &Answer) -> &'static str {
    match answer {
        Answer::Once | Answer::Remember(_) => "yes, this once",
        Answer::AllOnce => "yes, to this and all that follow",
        Answer::Deny(_) => "no",
        Answer::DenyAll => "no, to this and all that follow",
        Answer::Later => "left open",
    }
}

fn answered_elsewhere(decision: &Decision) -> &'static str {
    match decision {
        Decision::Approve => "answered elsewhere: yes",
        Decision::Deny { .. } => "answered elsewhere: no",
        Decision::Edit { .. } => "answered elsewhere: with other arguments",
        Decision::Expired | Decision::Unanswered => "the question has expired",
    }
}

fn size() -> Size {
    let (width, height) = terminal_size::terminal_size_of(std::io::stderr())
        .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
    Size { width: width.clamp(20, 200), height: height.max(10) }
}

/// A time as a person says it.
fn time_words(time: Duration) -> String {
    let (seconds, minute, hour, day) = (time.as_secs(), 60, 3600, 86_400);
    let unit = |size: u64, name: &str| {
        super::words::count(usize::try_from(seconds / size).unwrap_or(usize::MAX), name)
    };
    match seconds {
        _ if seconds >= day && seconds % day == 0 => unit(day, "day"),
        _ if seconds >= hour && seconds % hour == 0 => unit(hour, "hour"),
        _ if seconds >= minute && seconds % minute == 0 => unit(minute, "minute"),
        _ => super::words::duration(time),
    }
}
