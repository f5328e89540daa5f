//! The worker itself: takes tasks over, runs them, and ends when there has been nothing to do for a while.

use super::{
    RUNNER,
    engines::{Engines, Whence},
    files::Files,
    talk::{EngineTold, LONGEST, WorkerReply, WorkerRequest, ask},
};
use crate::{console::Console, failure::Failure, setup::CliContext, watch};
use haft::{
    CancelReason, DurableStore, ErrorCode, Haft, Target,
    assembly::LazyStore,
    config::TasksConfig,
    port::{ClaimedTask, TaskStore as _},
};
use haft_core::text::one_line;
use jiff::Timestamp;
use std::{fs::File, io, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::{mpsc, oneshot},
    time::Instant,
};

/// How often it looks without having been told to.
const TICK: Duration = Duration::from_secs(1);
/// How often it is asked whether another process wants a task to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long a worker waits for one that is about to end.
const SUCCESSION: Duration = Duration::from_secs(15);

pub(super) fn serve(files: &Files, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let cannot = |reason| Failure::WorkerNotStarted { log: files.log(), reason };
    files.create().map_err(cannot)?;
    let Some(lock) = succeed(files).map_err(cannot)? else {
        say(console, "another worker serves this state folder");
        return Ok(0);
    };
    let configured = ground.configured(console)?;
    let settings = configured.resolved.config.tasks.clone();
    let lazy = configured.memory().ok_or(Failure::NoStateFolder)?;
    let store = lazy.open()?.clone();
    let user_id = ground.surroundings.user_id;
    let engines = Engines::new(ground.tools, lazy.clone(), user_id);
    let runtime = watch::runtime()?;
    let worker = Worker { store, settings, engines, console, since: Timestamp::now(), trouble: None };
    let ended = runtime.block_on(worker.serve(files));
    runtime.shutdown_background();
    leave(&lazy)?;
    drop(lock);
    ended.map(|()| 0)
}

fn leave(lazy: &LazyStore) -> Result<(), Failure> {
    if let Some(store) = lazy.opened() {
        crate::setup::now(store.leave())??;
    }
    Ok(())
}

/// The lock; `None` where another worker has it and answers. One that has it and does not is about to end, or has just
/// begun.
fn succeed(files: &Files) -> io::Result<Option<File>> {
    let begun = std::time::Instant::now();
    loop {
        if let Some(lock) = files.take()? {
            return Ok(Some(lock));
        }
        if ask(files, &WorkerRequest::Look).is_ok() {
            return Ok(None);
        }
        if begun.elapsed() > SUCCESSION {
            return Err(io::Error::other("another worker holds its lock and does not answer"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A line of the log.
fn say(console: &Console, text: &str) {
    let now = Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| Timestamp::now());
    console.say(format!("{now} {}", one_line(text, 1000)));
}

struct Worker<'a> {
    store: DurableStore,
    settings: TasksConfig,
    engines: Engines,
    console: &'a Console,
    since: Timestamp,
    /// What keeps it from taking tasks over.
    trouble: Option<String>,
}

/// What somebody said over the socket, and where the answer goes.
type PendingRequest = (WorkerRequest, oneshot::Sender<WorkerReply>);

/// Why it ends.
enum End {
    Idle,
    WorkerReply { now: bool },
}

impl Worker<'_> {
    async fn serve(mut self, files: &Files) -> Result<(), Failure> {
        say(self.console, &format!("worker {} begins, store {}", std::process::id(), self.store.place()));
        let (sender, mut heard) = mpsc::channel(16);
        files.clear_socket();
        // Where there can be no socket, such as under a very long path, it still looks every second.
        let listening = match files.bind() {
            Ok(listener) => Some(tokio::spawn(listen(listener, sender))),
            Err(error) => {
                say(self.console, &format!("no socket: {error}"));
                None
            }
        };
        let mut stops = Stops::new()?;
        let end = self.work(&mut heard, &mut stops).await?;
        // From here on nobody can tell it anything: a process that tries starts a successor, which waits for the lock
        // and takes what is on record.
        files.clear_socket();
        if let Some(listening) = listening {
            listening.abort();
        }
        // The one who told it to stop gets an answer first: each that is on its way holds a sender until it is written.
        let written = async { while heard.recv().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), written).await;
        self.end(end, &mut stops).await;
        Ok(())
    }

    /// Takes and runs tasks until there is a reason to end.
    async fn work(
        &mut self,
        heard: &mut mpsc::Receiver<PendingRequest>,
        stops: &mut Stops,
    ) -> Result<End, Failure> {
        let idle = Duration::from_secs(self.settings.worker_idle_seconds);
        let mut last_busy = Instant::now();
        loop {
            self.take_over().await;
            // What waits for a person is not idle: somebody has to go on with it.
            if self.running() > 0 || self.store.open_tasks(RUNNER).await.unwrap_or(1) > 0 {
                last_busy = Instant::now();
            }
            if last_busy.elapsed() >= idle {
                return Ok(End::Idle);
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = stops.next() => return Ok(End::WorkerReply { now: false }),
                Some((asked, answer)) = heard.recv() => {
                    let _ = answer.send(self.told(&asked));
                    match asked {
                        WorkerRequest::Stop { now } => return Ok(End::WorkerReply { now }),
                        WorkerRequest::Hello | WorkerRequest::Look => last_busy = Instant::now(),
                        WorkerRequest::Status => {}
                    }
                }
            }
        }
    }

    fn running(&self) -> usize {
        self.engines.all().map(|engine| engine.setup.haft.running_tasks()).sum()
    }

    fn told(&self, asked: &WorkerRequest) -> WorkerReply {
        let engines = match asked {
            WorkerRequest::Status => self
                .engines
                .all()
                .map(|engine| EngineTold {
                    folder: engine.folder.clone(),
                    stats: serde_json::to_value(engine.setup.haft.stats()).unwrap_or_default(),
                })
                .collect(),
            WorkerRequest::Hello | WorkerRequest::Look | WorkerRequest::Stop { .. } => Vec::new(),
        };
        WorkerReply {
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: self.since,
            store: self.store.place().to_owned(),
            tasks: self.running(),
            engines,
        }
    }

    async fn take_over(&mut self) {
        let most = usize::try_from(self.settings.max_running).unwrap_or(usize::MAX);
        let room = most.saturating_sub(self.running());
        if room == 0 {
            return;
        }
        match self.store.take_over(RUNNER, room).await {
            Ok(taken) => {
                self.trouble = None;
                for task in taken {
                    self.run(task).await;
                }
            }
            // Once, and not every second.
            Err(error) if self.trouble.as_deref() != Some(&error.0) => {
                say(self.console, &format!("tasks cannot be taken over: {error}"));
                self.trouble = Some(error.0);
            }
            Err(_) => {}
        }
        // What was kept long enough; cheap where there is nothing.
        let _ = self.store.sweep().await;
    }

    async fn run(&mut self, task: ClaimedTask) {
        let id = task.id.clone();
        say(self.console, &format!("task {id}: {}", task.call.name));
        let whence = task.place.clone().map(serde_json::from_value::<Whence>);
        let problem = match whence {
            // Making an engine reads files, and waits for them.
            Some(Ok(whence)) => {
                match tokio::task::block_in_place(|| self.engines.of(&whence, self.console)) {
                    Ok(engine) => {
                        let setup = &engine.setup;
                        let names = [(task.call.name.to_string(), task.call.id.to_string())];
                        let shown = setup.show_running(Target::Call(task.execution_id), &names);
                        let (haft, tenant) = (setup.haft.clone(), task.context.tenant.to_string());
                        haft.run_claimed(task);
                        tokio::spawn(accompany(haft, tenant, id, shown));
                        return;
                    }
                    Err(failure) => failure.to_string(),
                }
            }
            Some(Err(error)) => format!("where it was made cannot be read: {error}"),
            None => "it is not known where it was made".to_owned(),
        };
        say(self.console, &format!("task {id} cannot run: {problem}"));
        let text = format!("It could not be run: {}", one_line(&problem, 2000));
        if let Err(error) = self.store.refuse_task(&id, ErrorCode::NotStarted, &text).await {
            say(self.console, &format!("task {id}: {error}"));
        }
    }

    async fn end(self, end: End, stops: &mut Stops) {
        let (why, now) = match end {
            End::Idle => ("nothing to do", false),
            End::WorkerReply { now } => ("told to stop", now),
        };
        say(self.console, &format!("worker ends: {why}"));
        let shutdowns = self.engines.all().map(|engine| async {
            match now {
                true => engine.setup.haft.shutdown_now().await,
                false => engine.setup.haft.shutdown().await,
            }
        });
        let all = async {
            for shutdown in shutdowns {
                shutdown.await;
            }
        };
        tokio::select! {
            () = all => {}
            // Asked twice.
            () = stops.next() => {}
        }
    }
}

/// Goes along with a task until it is over: stops it where another process wants that, and shows it until then.
async fn accompany(haft: Haft, tenant: String, id: haft::TaskId, shown: Option<crate::live_runs::Shown>) {
    let tasks = haft.tasks(&tenant);
    loop {
        match tasks.wait(&id, Some(LOOK)).await {
            Ok(task) if !task.state.is_over() && task.state != haft::TaskState::AwaitingApproval => {
                if shown.as_ref().is_some_and(crate::live_runs::Shown::is_to_stop) {
                    haft.cancel(task.execution_id, CancelReason::User, None);
                }
            }
            // Over, or gone, or not to be found out.
            Ok(_) | Err(_) => return,
        }
    }
}

/// Answers processes of the same user, for as long as the worker lives.
async fn listen(listener: UnixListener, heard: mpsc::Sender<PendingRequest>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let heard = heard.clone();
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(Duration::from_secs(5), answer(stream, heard)).await;
                });
            }
            // Such as too many open files: it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(stream: UnixStream, heard: mpsc::Sender<PendingRequest>) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    if stream.peer_cred()?.uid() != own {
        // The folder keeps others out; this is for where it does not.
        return Ok(());
    }
    let (reading, mut writing) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reading.take(LONGEST)).read_line(&mut line).await?;
    let Ok(asked) = serde_json::from_str::<WorkerRequest>(&line) else { return Ok(()) };
    let (sender, told) = oneshot::channel();
    if heard.send((asked, sender)).await.is_ok()
        && let Ok(told) = told.await
    {
        let mut text = serde_json::to_vec(&told)?;
        text.push(b'\n');
        writing.write_all(&text).await?;
    }
    Ok(())
}

/// Signals that ask it to end.
struct Stops {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stops {
    fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stops {
            interrupt: signal(SignalKind::interrupt()).map_err(Failure::Runtime)?,
            terminate: signal(SignalKind::terminate()).map_err(Failure::Runtime)?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
