//! What holds a program in.

use super::{BoxFuture, StagedRoot, Unstageable, Writes};
use crate::{
    Enforcement, ErrorCode, IsolationLevel, IsolationTechnology, Limits, Metrics, OutputStream, ToolError,
    Violation,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// Why a jail cannot deliver a level here, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {fix}")]
pub struct Unavailable {
    /// What is missing.
    pub reason: String,
    /// What to do.
    pub fix: String,
}

/// What a guest reads on its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GuestStdin {
    /// Nothing: it is at its end from the start.
    #[default]
    Closed,
    /// These bytes, and then its end.
    Bytes(Vec<u8>),
    /// What [`GuestControl::write`] brings, until [`GuestControl::close_stdin`].
    Stream,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// What a toolchain needs besides the paths that a call names: caches, settings, programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// cargo and rustc.
    Rust,
    /// node, npm, pnpm, yarn.
    Node,
    /// python, pip, uv.
    Python,
    /// git, with the user's own settings, read-only.
    Git,
    /// The program that runs now, started again in a jail for work of its own. No configuration names it.
    #[serde(skip)]
    Worker,
}

/// A program to be run in a jail.
///
/// ```
/// use haft_core::port::{GuestSpec, GuestStdin};
/// let spec = GuestSpec { stdin: GuestStdin::Bytes(b"hello".to_vec()), ..GuestSpec::command(["cat"]) };
/// assert_eq!(spec.argv, ["cat"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestSpec {
    /// How strongly.
    pub level: IsolationLevel,
    /// The program and its arguments. A program without a slash is looked for in the guest's `PATH`.
    pub argv: Vec<String>,
    /// Its environment. A jail adds what its own walls need (`HOME`, `TMPDIR`, proxies), and nothing of haft's.
    pub environment: BTreeMap<String, String>,
    /// Where it starts; the first writable path, or else the first readable one, or else its home, where absent.
    pub working_dir: Option<PathBuf>,
    /// What it reads.
    pub stdin: GuestStdin,
    /// A terminal of its own, of that size, instead of three pipes. What it puts out is then all `Stdout`.
    pub terminal: Option<TerminalSize>,
    /// Paths that it may read.
    pub readable: Vec<PathBuf>,
    /// Paths that it may write.
    pub writable: Vec<PathBuf>,
    /// Where what it writes goes. A jail that cannot keep writes apart refuses to, and never lets them through.
    pub writes: Writes,
    /// Patterns of paths below those that it may not even read, such as `**/.env`.
    pub denied: Vec<String>,
    /// Toolchains that it uses.
    pub presets: Vec<Preset>,
    /// Hosts that it may reach; none where empty.
    pub hosts: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// By which jail, where that was chosen. No other takes its place.
    pub technology: IsolationTechnology,
    /// The sandbox around it, whose limits hold for all that is in it together.
    pub parent: Option<String>,
    /// How long it may tidy up after it was told to end. Zero ends it at once.
    pub grace: Duration,
}

impl GuestSpec {
    /// That program with these arguments, and nothing else granted.
    pub fn command<I, S>(argv: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        GuestSpec { argv: argv.into_iter().map(Into::into).collect(), ..GuestSpec::default() }
    }
}

/// A limit that a guest ran into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Its name, as in [`Limits`]: `memoryBytes`.
    pub limit: &'static str,
    /// What it may use, in the unit of the limit; times in milliseconds.
    pub allowed: u64,
    /// The most that it used, where that is known.
    pub used: Option<u64>,
}

/// How a guest ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestEnd {
    /// The exit code, where it has one.
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// The limit that ended it, where one did.
    pub exceeded: Option<Exceeded>,
    /// What it used.
    pub metrics: Metrics,
    /// What was stopped or noticed.
    pub violations: Vec<Violation>,
    /// What it wrote, where that was kept apart.
    pub staged: Vec<StagedRoot>,
}

impl GuestEnd {
    /// The error that this end is, unless it is a success.
    ///
    /// ```
    /// use haft_core::{ErrorCode, port::{Exceeded, GuestEnd}};
    /// let over = Exceeded { limit: "memoryBytes", allowed: 1 << 20, used: Some(1 << 20) };
    /// let end = GuestEnd { signal: Some(9), exceeded: Some(over), ..GuestEnd::default() };
    /// let error = end.error().unwrap();
    /// assert_eq!(error.code, ErrorCode::ResourceLimitExceeded);
    /// assert!(error.message.contains("memoryBytes"));
    /// ```
    pub fn error(&self) -> Option<ToolError> {
        if let Some(over) = &self.exceeded {
            return Some(over.error());
        }
        match (self.exit_code, self.signal) {
            (Some(0), _) => None,
            (Some(code), _) => {
                let text = format!("the program ended with exit code {code}");
                let data = serde_json::json!({ "exitCode": code });
                Some(ToolError::new(ErrorCode::NonZeroExit, text).with_data(data))
            }
            (None, Some(signal)) => {
                let text = format!("the program was ended by signal {signal}");
                let data = serde_json::json!({ "signal": signal });
                Some(ToolError::new(ErrorCode::NonZeroExit, text).with_data(data))
            }
            (None, None) => Some(ErrorCode::SandboxCrashed.into()),
        }
    }
}

impl Exceeded {
    /// In words that name the limit, what was allowed and what was used.
    pub fn error(&self) -> ToolError {
        let used = self.used.map_or_else(String::new, |used| format!(", and used {used} at the most"));
        let code = match self.limit {
            "wallTime" => ErrorCode::Timeout,
            _ => ErrorCode::ResourceLimitExceeded,
        };
        let unit = if self.limit.ends_with("Time") { " ms" } else { "" };
        let text = format!(
            "the program was ended by its limit `{}`: it may use {}{unit}{used}",
            self.limit, self.allowed
        );
        let data = serde_json::json!({ "limit": self.limit, "allowed": self.allowed, "used": self.used });
        ToolError::new(code, text).with_data(data)
    }
}

/// Whether everything that `asked` names is also named by `granted`: the same host, `*.domain`, or `*`.
///
/// ```
/// use haft_core::port::covers_host;
/// assert!(covers_host("*.example.com", "api.example.com") && !covers_host("*.example.com", "example.com"));
/// assert!(!covers_host("example.com", "example.com:8080"), "a port of its own is another grant");
/// ```
pub fn covers_host(granted: &str, asked: &str) -> bool {
    let (granted, asked) = (granted.to_ascii_lowercase(), asked.to_ascii_lowercase());
    match granted.strip_prefix("*.") {
        _ if granted == asked || granted == "*" => true,
        Some(domain) => {
            asked.strip_suffix(domain).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
        }
        None => false,
    }
}

/// Takes output as it comes.
pub type OutputSink = Arc<dyn Fn(OutputStream, &[u8]) + Send + Sync>;

/// What can be sent to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestSignal {
    /// As Ctrl-C does.
    Interrupt,
    /// A request to end.
    Terminate,
    /// The terminal went away.
    Hangup,
    /// As Ctrl-\ does.
    Quit,
    /// Pause.
    Stop,
    /// Go on.
    Continue,
}

/// Reaches a guest while somebody waits for its end. It may have ended already: then these are errors, or nothing.
pub trait GuestControl: Send + Sync {
    /// Writes to its standard input, and waits until it is taken.
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>>;

    /// Ends its standard input.
    fn close_stdin(&self);

    /// Changes the size of its terminal.
    fn resize(&self, size: TerminalSize) -> Result<(), ToolError>;

    /// Sends a signal to the program and what it started.
    fn signal(&self, signal: GuestSignal) -> Result<(), ToolError>;

    /// Asks it to end, and ends it with everything that it started when its grace is over.
    fn stop(&self);

    /// Ends it with everything that it started, at once.
    fn kill(&self);
}

/// A program in a jail. Dropping it ends it, with everything that it started.
pub trait Guest: Send {
    /// The id of the sandbox that the program runs in.
    fn sandbox_id(&self) -> &str;

    /// What holds it in.
    fn enforcement(&self) -> &Enforcement;

    /// Reaches it while [`wait`](Guest::wait) waits.
    fn control(&self) -> Arc<dyn GuestControl>;

    /// Waits for its end. Output goes to `sink` as it comes. After an end nothing of it is left running.
    fn wait<'a>(&'a mut self, sink: OutputSink) -> BoxFuture<'a, Result<GuestEnd, ToolError>>;
}

/// Limits that several programs share. Dropping it ends everything in it.
pub trait Sandbox: Send + Sync {
    /// What a program names as its parent.
    fn id(&self) -> &str;

    /// What everything that ever was in it used, as far as all of it together is measured.
    fn used(&self) -> Metrics;

    /// Lets nothing more in and ends everything in it. After that nothing of it is left; an error says that something
    /// is.
    fn end<'a>(&'a self) -> BoxFuture<'a, Result<(), ToolError>>;
}

/// A technology that holds programs in. A guest need not be a process of this machine.
pub trait Jail: Send + Sync {
    /// Its name, such as `namespace`.
    fn name(&self) -> &str;

    /// What it would enforce here at that level, or why it cannot. Never weaker than asked.
    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable>;

    /// What it would enforce for that very guest, or why it cannot hold it: a jail may know a level, but not
    /// hosts, or how to keep a program from one file in a folder.
    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.offers(spec.level)
    }

    /// Whether it can keep the writes of that guest apart, or what is in the way. Nothing is run, and nothing stays
    /// changed. A jail that does not say how cannot.
    fn can_stage(&self, _spec: &GuestSpec) -> Result<(), Unstageable> {
        Err(Unstageable::by(self.name()))
    }

    /// Whether there is a sandbox of that id, in which several programs share limits; `None` from a jail that does not
    /// know sandboxes.
    fn has_sandbox(&self, _id: &str) -> Option<bool> {
        None
    }

    /// Opens a sandbox: programs whose [`parent`](GuestSpec::parent) is its id stay together within these limits.
    fn open_sandbox(&self, _limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        let text = format!("the jail `{}` knows no sandboxes", self.name());
        Err(ToolError::new(ErrorCode::SandboxCreationFailed, text))
    }

    /// Starts a program.
    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>>;
}

/// No containment is wired in: whatever needs some is refused.
///
/// ```
/// use haft_core::{IsolationLevel, port::{Jail, NoJail}};
/// assert!(NoJail.offers(IsolationLevel::Standard).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJail;

impl NoJail {
    fn refusal() -> Unavailable {
        Unavailable {
            reason: "no jail is wired into this program".into(),
            fix: "give the engine a jail, or use a tool that runs in haft's own process".into(),
        }
    }
}

impl Jail for NoJail {
    fn name(&self) -> &str {
        "none"
    }

    fn offers(&self, _level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        Err(NoJail::refusal())
    }

    fn start<'a>(&'a self, _spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        let refusal = NoJail::refusal();
        Box::pin(async move { Err(ToolError::new(ErrorCode::SandboxCreationFailed, refusal.to_string())) })
    }
}
