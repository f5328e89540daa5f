//! What holds a program in.

use super::BoxFuture;
use crate::{Enforcement, IsolationLevel, Limits, Metrics, OutputStream, ToolError, Violation};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// Why a jail cannot deliver a level here, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {fix}")]
pub struct Unavailable {
    /// What is missing.
    pub reason: String,
    /// What to do.
    pub fix: String,
}

/// A program to be run in a jail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestSpec {
    /// How strongly.
    pub level: IsolationLevel,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it starts.
    pub working_dir: Option<PathBuf>,
    /// What it reads; closed where absent.
    pub stdin: Option<Vec<u8>>,
    /// Paths that it may read.
    pub readable: Vec<PathBuf>,
    /// Paths that it may write.
    pub writable: Vec<PathBuf>,
    /// Hosts that it may reach.
    pub hosts: Vec<String>,
    /// What it may use.
    pub limits: Limits,
}

/// How a guest ended.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestEnd {
    /// The exit code, where it has one.
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// What it used.
    pub metrics: Metrics,
    /// What was stopped or noticed.
    pub violations: Vec<Violation>,
}

/// Takes output as it comes.
pub type OutputSink = Arc<dyn Fn(OutputStream, &[u8]) + Send + Sync>;

/// A program in a jail. Dropping it ends it, with everything that it started.
pub trait Guest: Send {
    /// Its sandbox.
    fn sandbox_id(&self) -> &str;

    /// What holds it in.
    fn enforcement(&self) -> &Enforcement;

    /// Waits for its end. Output goes to `sink` as it comes.
    fn wait<'a>(&'a mut self, sink: OutputSink) -> BoxFuture<'a, Result<GuestEnd, ToolError>>;
}

/// A technology that holds programs in. A guest need not be a process of this machine.
pub trait Jail: Send + Sync {
    /// Its name, such as `namespace`.
    fn name(&self) -> &str;

    /// What it would enforce here at that level, or why it cannot. Never weaker than asked.
    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable>;

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
        Box::pin(
            async move { Err(ToolError::new(crate::ErrorCode::SandboxCreationFailed, refusal.to_string())) },
        )
    }
}
