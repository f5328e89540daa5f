//! Commands that run on while the agent does other things.
//!
//! | tool | what it does |
//! |---|---|
//! | `start_command` | starts one, and gives its id |
//! | `poll_command` | gives what it put out since the last look, and whether it has ended |
//! | `write_command` | writes to its standard input |
//! | `resize_command` | changes the size of its terminal |
//! | `signal_command` | sends it a signal |
//! | `kill_command` | ends it |
//! | `list_commands` | lists those of this session |
//!
//! **Architecture Invariant:** a command belongs to the tenant, agent, session and conversation that started it. Nobody
//! else reaches it, not even by its id; it ends with its session, with the engine, and with haft.

mod kill_command;
mod list_commands;
mod log;
mod poll_command;
mod resize_command;
mod signal_command;
mod start_command;
mod write_command;

pub use kill_command::{KillCommand, KillCommandArgs};
pub use list_commands::{CommandList, ListCommands, ListCommandsArgs};
pub use poll_command::{PollCommand, PollCommandArgs, PollReport};
pub use resize_command::{ResizeCommand, ResizeCommandArgs};
pub use signal_command::{SignalCommand, SignalCommandArgs, SignalName};
pub use start_command::{StartCommand, StartCommandArgs, Started, Terminal};
pub use write_command::{WriteCommand, WriteCommandArgs};

use haft_core::{
    CallContext, Category, Enforcement, ErrorCode, IsolationLevel, Risk, Source, ToolDefinition, ToolError,
    port::{Guest, GuestControl, GuestEnd},
    text,
};
use haft_sdk::ToolCtx;
use jiff::Timestamp;
use log::{Log, Part};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, task::AbortHandle};

/// How many of a session run at once, and how many that have ended are remembered.
pub const MOST_AT_ONCE: usize = 16;
/// How much of a command's output is kept.
const MOST_OUTPUT: usize = 1 << 20;

/// Who started a command: nobody else reaches it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    tenant: Arc<str>,
    agent: Arc<str>,
    user: Option<Arc<str>>,
    session: Option<Arc<str>>,
    conversation: Option<Arc<str>>,
}

impl Owner {
    fn of(context: &CallContext) -> Self {
        Owner {
            tenant: Arc::clone(&context.tenant),
            agent: Arc::clone(&context.agent),
            user: context.user.clone(),
            session: context.session.clone(),
            conversation: context.conversation.clone(),
        }
    }
}

/// One command.
struct Command {
    id: String,
    owner: Owner,
    /// What was asked to be run.
    words: String,
    started: Timestamp,
    has_terminal: bool,
    sandbox: String,
    enforcement: Enforcement,
    control: Arc<dyn GuestControl>,
    state: Mutex<State>,
    /// Changes whenever something came, and when it ended.
    changed: watch::Sender<()>,
}

struct State {
    log: Log,
    ended: Option<Result<GuestEnd, ToolError>>,
    /// Whether a result carries already what it used.
    is_told: bool,
    /// Where a look goes on that does not say.
    next: u64,
}

impl Command {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    /// Waits until something came after that place, or it ended, or the time is over.
    async fn news(&self, cursor: Option<u64>, wait: Duration) {
        let mut changes = self.changed.subscribe();
        let is_there =
            |state: &State| state.ended.is_some() || state.log.end() > cursor.unwrap_or(state.next);
        let _ = tokio::time::timeout(wait, async {
            while !is_there(&self.state()) && changes.changed().await.is_ok() {}
        })
        .await;
    }

    /// Waits until it has ended; false where the time was over first.
    async fn end(&self, wait: Duration) -> bool {
        let mut changes = self.changed.subscribe();
        let ending = async { while !self.has_ended() && changes.changed().await.is_ok() {} };
        tokio::time::timeout(wait, ending).await.is_ok() && self.has_ended()
    }

    /// What came, and where it is. The first look after its end puts what it used on the call's record.
    fn look(&self, cx: &ToolCtx, cursor: Option<u64>, most: usize) -> PollReport {
        let mut state = self.state();
        let part = state.log.after(cursor.unwrap_or(state.next), most);
        state.next = part.cursor;
        if let Some(Ok(end)) = &state.ended
            && !state.is_told
        {
            cx.note_end(&self.sandbox, &self.enforcement, end);
            state.is_told = true;
        }
        PollReport::new(self, part, state.ended.as_ref())
    }
}

/// A command with the task that waits for it.
struct Entry {
    command: Arc<Command>,
    task: AbortHandle,
}

impl Drop for Entry {
    /// Nothing outlives its entry: the message ends it now, the task's end closes its jail.
    fn drop(&mut self) {
        self.command.control.kill();
        self.task.abort();
    }
}

#[derive(Default)]
struct Registry {
    entries: BTreeMap<String, Entry>,
    /// Those that are being started, by owner.
    starting: Vec<Owner>,
}

/// The commands that run in the background. They end when the last clone of this is dropped; the tools hold one.
///
/// ```
/// let commands = haft_tools::commands::BackgroundCommands::default();
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// assert_eq!(commands.end_session("acme", "session-7").await, 0);
/// # });
/// ```
#[derive(Clone, Default)]
pub struct BackgroundCommands(Arc<Mutex<Registry>>);

impl fmt::Debug for BackgroundCommands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundCommands").field("known", &self.registry().entries.len()).finish()
    }
}

impl BackgroundCommands {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many run now, of all sessions together.
    pub fn running(&self) -> usize {
        self.registry().entries.values().filter(|entry| !entry.command.has_ended()).count()
    }

    /// Ends every command of a session, and gives how many there were. They may tidy up first.
    pub async fn end_session(&self, tenant: &str, session: &str) -> usize {
        self.end_where(|owner| &*owner.tenant == tenant && owner.session.as_deref() == Some(session)).await
    }

    /// Ends every command of a conversation.
    pub async fn end_conversation(&self, tenant: &str, conversation: &str) -> usize {
        let is_it = |owner: &Owner| owner.conversation.as_deref() == Some(conversation);
        self.end_where(|owner| &*owner.tenant == tenant && is_it(owner)).await
    }

    /// Ends every command.
    pub async fn end_all(&self) -> usize {
        self.end_where(|_| true).await
    }

    async fn end_where(&self, is_one: impl Fn(&Owner) -> bool) -> usize {
        let ending: Vec<Entry> = {
            let mut registry = self.registry();
            let ids: Vec<String> = registry
                .entries
                .iter()
                .filter(|(_, entry)| is_one(&entry.command.owner))
                .map(|(id, _)| id.clone())
                .collect();
            ids.iter().filter_map(|id| registry.entries.remove(id)).collect()
        };
        let running: Vec<&Entry> = ending.iter().filter(|entry| !entry.command.has_ended()).collect();
        running.iter().for_each(|entry| entry.command.control.stop());
        for entry in &running {
            // A jail keeps the grace by itself; what is left after this is ended when the entry is dropped.
            entry.command.end(PATIENCE).await;
        }
        running.len()
    }

    /// Takes a place among those that run at once, or says that there is none.
    fn reserve(&self, owner: &Owner) -> Result<Reservation, ToolError> {
        let mut registry = self.registry();
        let of_owner = |entry: &&Entry| entry.command.owner == *owner;
        let running =
            registry.entries.values().filter(of_owner).filter(|entry| !entry.command.has_ended()).count();
        let starting = registry.starting.iter().filter(|starting| *starting == owner).count();
        if running + starting >= MOST_AT_ONCE {
            let text = format!(
                "{MOST_AT_ONCE} commands of this session run already. End one with kill_command, or wait for one"
            );
            return Err(ToolError::new(ErrorCode::ConcurrentLimitExceeded, text));
        }
        registry.starting.push(owner.clone());
        Ok(Reservation { commands: self.clone(), owner: owner.clone() })
    }

    /// Watches over a command that was started.
    fn add(
        &self,
        reservation: Reservation,
        words: String,
        has_terminal: bool,
        guest: Box<dyn Guest>,
    ) -> String {
        let mut guest = guest;
        let (changed, _) = watch::channel(());
        let command = Arc::new(Command {
            id: format!("cmd-{}", uuid::Uuid::new_v4().simple()),
            owner: reservation.owner.clone(),
            words,
            started: Timestamp::now(),
            has_terminal,
            sandbox: guest.sandbox_id().to_owned(),
            enforcement: guest.enforcement().clone(),
            control: guest.control(),
            state: Mutex::new(State { log: Log::new(MOST_OUTPUT), ended: None, is_told: false, next: 0 }),
            changed,
        });
        // It holds the command and not the registry: otherwise neither would ever end.
        let watched = Arc::clone(&command);
        let task = tokio::spawn(async move {
            let heard = Arc::clone(&watched);
            let sink = Arc::new(move |stream, bytes: &[u8]| {
                heard.state().log.take(stream, bytes);
                heard.changed.send_replace(());
            });
            let end = guest.wait(sink).await;
            drop(guest);
            let mut state = watched.state();
            state.log.finish();
            state.ended = Some(end);
            drop(state);
            watched.changed.send_replace(());
        });
        let id = command.id.clone();
        let mut registry = self.registry();
        registry.entries.insert(id.clone(), Entry { command, task: task.abort_handle() });
        let forgotten = forget(&mut registry, &reservation.owner);
        drop(registry);
        drop(forgotten);
        id
    }

    /// The command of that id, if the caller started it.
    fn find(&self, context: &CallContext, id: &str) -> Result<Arc<Command>, ToolError> {
        let owner = Owner::of(context);
        let registry = self.registry();
        let found = registry.entries.get(id).filter(|entry| entry.command.owner == owner);
        found.map(|entry| Arc::clone(&entry.command)).ok_or_else(|| {
            let shown = text::one_line(id, 60);
            let text = format!("This session has no command '{shown}'. list_commands tells which it has");
            ToolError::bad_args(text)
        })
    }

    /// The commands that the caller started, oldest first.
    fn of(&self, context: &CallContext) -> Vec<Arc<Command>> {
        let owner = Owner::of(context);
        let registry = self.registry();
        let own = registry.entries.values().filter(|entry| entry.command.owner == owner);
        let mut own: Vec<_> = own.map(|entry| Arc::clone(&entry.command)).collect();
        own.sort_by_key(|command| command.started);
        own
    }
}

/// How long an end that was asked for is waited for, beyond what grace there is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes out the oldest of those that have ended, where there are too many of an owner.
fn forget(registry: &mut Registry, owner: &Owner) -> Vec<Entry> {
    let mut ended: Vec<(Timestamp, String)> = registry
        .entries
        .iter()
        .filter(|(_, entry)| entry.command.owner == *owner && entry.command.has_ended())
        .map(|(id, entry)| (entry.command.started, id.clone()))
        .collect();
    ended.sort();
    let over = ended.len().saturating_sub(MOST_AT_ONCE);
    ended.into_iter().take(over).filter_map(|(_, id)| registry.entries.remove(&id)).collect()
}

/// A place among those that run at once, while a command is being started.
struct Reservation {
    commands: BackgroundCommands,
    owner: Owner,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let starting = &mut self.commands.registry().starting;
        if let Some(place) = starting.iter().position(|owner| *owner == self.owner) {
            starting.swap_remove(place);
        }
    }
}

/// What the tools have in common that act on a command which runs already.
fn define(definition: &mut ToolDefinition, title: &str, description: &str) {
    definition.title = Some(title.to_owned());
    definition.description = description.to_owned();
    definition.category = Category::CodeExecution;
    // They start nothing themselves: what they reach is in its jail already.
    definition.constraints.required_isolation = IsolationLevel::None;
    definition.constraints.allow_side_effects = false;
    definition.required_permissions = vec!["tool.command.run".to_owned()];
    definition.risk = Some(Risk::Low);
    definition.version = Some("1.0.0".to_owned());
    definition.source = Source::BuiltIn;
}

/// What came in one look, in room that the caller can take: it is in the text and in the value, and both share one limit.
fn room(cx: &ToolCtx, asked: Option<u64>) -> usize {
    const HEAD: usize = 512;
    let fits = (cx.output_limit() / 2).saturating_sub(HEAD).min(64 << 10);
    asked.map_or(fits, |asked| usize::try_from(asked).unwrap_or(usize::MAX).min(fits))
}

/// What a call touches that acts on one command: calls on the same one keep their order.
fn touches(id: &str) -> haft_core::Footprint {
    haft_core::Footprint::writes([haft_core::Resource::named(format!("command:{id}"))])
}

impl PollReport {
    fn new(command: &Command, part: Part, ended: Option<&Result<GuestEnd, ToolError>>) -> Self {
        let Part { stdout, stderr, cursor, dropped, more } = part;
        let mut report = PollReport {
            id: command.id.clone(),
            running: ended.is_none(),
            exit_code: None,
            signal: None,
            problem: None,
            stdout,
            stderr,
            cursor,
            dropped,
            more,
        };
        match ended {
            None => {}
            Some(Ok(end)) => {
                report.exit_code = end.exit_code;
                report.signal = end.signal;
                report.problem = end.exceeded.as_ref().map(|over| over.error().message);
            }
            Some(Err(error)) => report.problem = Some(error.message.clone()),
        }
        report
    }
}
