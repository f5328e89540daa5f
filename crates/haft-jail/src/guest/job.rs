//! The `job` jail of Windows: a job object, which ends a program with everything that it started, also when haft is
//! gone.
//!
//! It holds neither files nor the network, so it is offered for no level above `none`, which only a person's own
//! configuration can ask for. Its deadline and its output are bounded by haft.

use super::limits::{millis, sleep_until};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, Metrics, OutputStream, ToolError,
    port::{
        BoxFuture, Exceeded, Guest, GuestControl, GuestEnd, GuestSignal, GuestSpec, GuestStdin, Jail,
        OutputSink, TerminalSize, Unavailable,
    },
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use serde_json::{Map, json};
use std::{
    borrow::Cow,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::{Mutex, Notify},
};

/// How much of the output is taken at once.
const CHUNK: usize = 64 * 1024;
/// What is left in a pipe after everything that wrote to it has ended is read within that time.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Holds programs in job objects.
///
/// ```no_run
/// use haft_core::{IsolationLevel, port::Jail as _};
/// assert!(haft_jail::guest::Job::new().offers(IsolationLevel::Strict).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Job(());

impl Job {
    /// Such a jail.
    pub fn new() -> Self {
        Job(())
    }
}

fn unavailable(reason: &str, fix: &str) -> Unavailable {
    Unavailable { reason: reason.to_owned(), fix: fix.to_owned() }
}

impl Jail for Job {
    fn name(&self) -> &str {
        "job"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        if level > IsolationLevel::None {
            return Err(unavailable(
                "a job object ends programs, and holds neither files nor the network",
                "run haft on Linux or in WSL; or, to run programs unheld, set `tools.commands.isolation = \"none\"` \
                 in your own haft.toml",
            ));
        }
        let mut details = Map::new();
        details.insert("orphans".into(), json!("job"));
        details.insert("files".into(), json!("not held"));
        details.insert("network".into(), json!("not held"));
        details.insert("limits".into(), json!(["wallTime", "outputBytes"]));
        Ok(Enforcement { level: IsolationLevel::None, jail: Cow::Borrowed("job"), details })
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        spec.writes.must_be_live("job")?;
        super::limits::held_by_kernel(&spec.limits)?;
        if spec.terminal.is_some() {
            return Err(unavailable(
                "the `job` jail has pipes, not terminals",
                "run the program without a terminal",
            ));
        }
        if spec.parent.is_some() {
            return Err(unavailable("the `job` jail knows no sandboxes", "run the program outside of one"));
        }
        self.offers(spec.level)
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let refused = |unavailable: Unavailable| {
                ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string())
            };
            let enforcement = self.holds(&spec).map_err(refused)?;
            let guest = JobGuest::start(spec, enforcement)?;
            Ok(Box::new(guest) as Box<dyn Guest>)
        })
    }
}

/// Reaches a guest while somebody waits for it.
struct Control {
    input: Mutex<Option<ChildStdin>>,
    closing: Notify,
    ending: Notify,
}

impl GuestControl for Control {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let mut input = self.input.lock().await;
            let Some(open) = input.as_mut() else {
                return Err(ToolError::failed("the program's input is closed"));
            };
            let wrote = tokio::select! {
                wrote = async { open.write_all(bytes).await?; open.flush().await } => wrote,
                () = self.closing.notified() => Err(std::io::ErrorKind::BrokenPipe.into()),
            };
            wrote.map_err(|error| {
                *input = None;
                ToolError::failed("the program does not read its input").with_diagnostics(error)
            })
        })
    }

    fn close_stdin(&self) {
        // Where somebody writes just now, that ends, and with it the input.
        self.closing.notify_waiters();
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
    }

    fn resize(&self, _size: TerminalSize) -> Result<(), ToolError> {
        Err(ToolError::failed("the program has no terminal"))
    }

    fn signal(&self, _signal: GuestSignal) -> Result<(), ToolError> {
        Err(ToolError::failed("programs of Windows know no signals; end it instead"))
    }

    /// Programs of Windows cannot be asked.
    fn stop(&self) {
        self.kill();
    }

    fn kill(&self) {
        self.ending.notify_one();
    }
}

/// A program in a job. Dropping it closes the job, which ends everything in it.
struct JobGuest {
    id: String,
    enforcement: Enforcement,
    limits: Limits,
    child: Box<dyn ChildWrapper>,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    feed: Option<Vec<u8>>,
    control: Arc<Control>,
    started: Instant,
    running: bool,
}

impl JobGuest {
    fn start(spec: GuestSpec, enforcement: Enforcement) -> Result<Self, ToolError> {
        let Some((program, arguments)) = spec.argv.split_first() else {
            return Err(ToolError::bad_args("there is no program to run"));
        };
        let mut command = CommandWrap::with_new(program, |command| {
            command.args(arguments).env_clear().envs(&spec.environment);
            // Without these, hardly any program of Windows starts; they name no secret.
            for name in ["SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT"] {
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
            if let Some(folder) =
                spec.working_dir.as_ref().or(spec.writable.first()).or(spec.readable.first())
            {
                command.current_dir(folder);
            }
            let input = if spec.stdin == GuestStdin::Closed { Stdio::null() } else { Stdio::piped() };
            command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        // Started suspended, put into its job, and only then let go: nothing that it starts is outside.
        command.wrap(KillOnDrop).wrap(JobObject);
        let mut child = command.spawn().map_err(|error| {
            ToolError::failed(format!("`{program}` cannot be started: {error}")).with_diagnostics(error)
        })?;
        let control = Control {
            input: Mutex::new(child.stdin().take()),
            closing: Notify::new(),
            ending: Notify::new(),
        };
        Ok(JobGuest {
            id: format!("job-{}", uuid::Uuid::new_v4().simple()),
            enforcement,
            out: child.stdout().take(),
            err: child.stderr().take(),
            child,
            feed: match spec.stdin {
                GuestStdin::Bytes(bytes) => Some(bytes),
                GuestStdin::Closed | GuestStdin::Stream => None,
            },
            limits: spec.limits,
            control: Arc::new(control),
            started: Instant::now(),
            running: true,
        })
    }

    async fn run(&mut self, sink: OutputSink) -> Result<GuestEnd, ToolError> {
        let control = Arc::clone(&self.control);
        let feed = self.feed.take();
        let feeding = async {
            if let Some(bytes) = feed {
                // A program need not read all of its input.
                let _ = control.write(&bytes).await;
                control.close_stdin();
            }
            std::future::pending::<()>().await
        };
        tokio::pin!(feeding);
        let (mut first, mut second) = (vec![0; CHUNK], vec![0; CHUNK]);
        let (mut put_out, mut exceeded, mut status) = (0u64, None, None::<ExitStatus>);
        let wall = self.limits.wall_time.map(|time| tokio::time::Instant::from_std(self.started) + time);
        let mut last_words = None;
        while status.is_none() || self.out.is_some() || self.err.is_some() {
            let running = status.is_none();
            let (stream, count) = tokio::select! {
                biased;
                // The program itself, not all that it started: what is left of those is ended with it.
                ended = self.child.inner_mut().wait(), if running => {
                    status = Some(ended.map_err(crashed)?);
                    let _ = self.child.start_kill();
                    last_words = Some(tokio::time::Instant::now() + LAST_WORDS);
                    continue;
                }
                count = read_open(&mut self.out, &mut first) => (OutputStream::Stdout, count),
                count = read_open(&mut self.err, &mut second) => (OutputStream::Stderr, count),
                () = &mut feeding, if running => continue,
                () = control.ending.notified(), if running => {
                    let _ = self.child.start_kill();
                    continue;
                }
                () = sleep_until(wall), if running && exceeded.is_none() => {
                    let allowed = millis(self.limits.wall_time.unwrap_or_default());
                    let used = Some(millis(self.started.elapsed()));
                    exceeded = Some(Exceeded { limit: "wallTime", allowed, used });
                    let _ = self.child.start_kill();
                    continue;
                }
                () = sleep_until(last_words), if !running => break,
            };
            let Some(count) = count else {
                match stream {
                    OutputStream::Stdout => self.out = None,
                    OutputStream::Stderr => self.err = None,
                }
                continue;
            };
            let buffer = if stream == OutputStream::Stdout { &first } else { &second };
            let room = self.limits.output_bytes.map_or(u64::MAX, |allowed| allowed.saturating_sub(put_out));
            put_out += count as u64;
            let shown = usize::try_from(room).unwrap_or(usize::MAX).min(count);
            if let (Some(allowed), true, None) = (self.limits.output_bytes, shown < count, &exceeded) {
                exceeded = Some(Exceeded { limit: "outputBytes", allowed, used: Some(put_out) });
                let _ = self.child.start_kill();
            }
            if let Some(bytes) = buffer.get(..shown).filter(|bytes| !bytes.is_empty()) {
                sink(stream, bytes);
            }
        }
        self.running = false;
        // Nothing of it is left when this comes back.
        self.child.wait().await.map_err(crashed)?;
        let wall_time_ms = Some(self.started.elapsed().as_secs_f64() * 1000.0);
        Ok(GuestEnd {
            exit_code: status.and_then(|status| status.code()),
            exceeded,
            metrics: Metrics { wall_time_ms, ..Metrics::default() },
            ..GuestEnd::default()
        })
    }
}

fn crashed(error: std::io::Error) -> ToolError {
    ToolError::from(ErrorCode::SandboxCrashed).with_diagnostics(error)
}

/// Bytes of a stream; `None` at its end. One that is at its end already never comes back.
async fn read_open(stream: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> Option<usize> {
    match stream {
        Some(stream) => stream.read(buffer).await.ok().filter(|count| *count > 0),
        None => std::future::pending().await,
    }
}

impl Guest for JobGuest {
    fn sandbox_id(&self) -> &str {
        &self.id
    }

    fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    fn control(&self) -> Arc<dyn GuestControl> {
        Arc::clone(&self.control) as Arc<dyn GuestControl>
    }

    fn wait<'a>(&'a mut self, sink: OutputSink) -> BoxFuture<'a, Result<GuestEnd, ToolError>> {
        Box::pin(async move {
            if !self.running {
                return Err(ToolError::failed("this program's end was waited for already"));
            }
            self.run(sink).await
        })
    }
}
