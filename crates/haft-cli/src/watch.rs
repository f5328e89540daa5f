//! A call or a batch on its way: its events, its progress, and what happens on Ctrl-C.
//!
//! The first Ctrl-C cancels; every call still gets its result, and that is shown. The second ends the process. A
//! request to terminate shuts down in order: what runs may end for a while, the rest is cancelled.

use super::{
    console::Console,
    failure::Failure,
    progress::{Progress, last_words},
};
use crate::live_runs::Shown;
use haft::{CancelReason, EventPayload, Haft, Observer, Target, ToolsMode};
use haft_core::text::people_text;
use std::{future::Future, process, time::Duration};
use tokio::{runtime::Runtime, sync::mpsc, time::MissedTickBehavior};

/// What somebody outside wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The system, or a supervisor, wants the process to end.
    Terminate,
}

impl Signal {
    /// The exit code of what it stopped.
    pub(super) fn exit(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// What to watch.
pub(super) struct Watch {
    pub(super) target: Target,
    /// Tool and id of each call, in call order.
    pub(super) calls: Vec<(String, String)>,
    /// Whether every event is written to standard error.
    pub(super) events: bool,
    /// Shows it to other processes, which may want it to stop.
    pub(super) shown: Option<Shown>,
}

/// How it ended.
pub(super) struct Ended<T> {
    pub(super) value: T,
    /// The signal that stopped it, if one did.
    pub(super) stopped_by: Option<Signal>,
    /// How long each call ran, without waiting for those before it; in call order, `None` where it never
    /// started.
    pub(super) times: Vec<Option<Duration>>,
}

const TICK: Duration = Duration::from_millis(100);
/// Every so many ticks it is asked whether another process wants this to stop.
const LOOK: u32 = 2;
/// How long the last events are waited for after the result is there.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// A runtime for one command.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        // At least two: a tool that blocks its thread must not keep Ctrl-C from being heard.
        .worker_threads(cores.clamp(2, 8))
        .enable_all()
        .build()
        .map_err(Failure::Runtime)
}

/// Runs a call or a batch to its end, in a task of its own, so that nothing it does keeps this from listening.
/// `start` makes the call.
pub(super) async fn watch<F>(
    console: &Console,
    haft: &Haft,
    what: Watch,
    start: impl FnOnce(&Haft) -> F,
) -> Result<Ended<F::Output>, Failure>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (sender, mut signals) = mpsc::unbounded_channel();
    tokio::spawn(listen(haft.clone(), what.target, sender));
    let running = start(haft);
    // It is on the list before it is first polled, so it can be watched from its first event.
    let mut observer = haft.observe(what.target);
    let mut running = tokio::spawn(running);
    let mut progress = Progress::new(what.calls, !what.events);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let is_parse_only = haft.settings().mode == ToolsMode::ParseOnly;
    let mut stopped_by = None;
    let mut shown = what.shown;
    let mut tick = 0_u32;
    let ended = loop {
        tokio::select! {
            biased;
            Some(signal) = signals.recv() => {
                stopped_by = Some(signal);
                progress.clear();
                progress.stop();
                console.say(match signal {
                    Signal::Interrupt => "cancelling; Ctrl-C again exits at once",
                    Signal::Terminate => "shutting down; running calls get a few seconds to finish",
                });
            }
            event = next(&mut observer) => match event {
                Some(event) => see(console, &mut progress, what.events, &event),
                None => observer = None,
            },
            ended = &mut running => {
                // Servers that the calls began may tidy up before this process ends.
                haft.upstreams().end_all().await;
                break ended;
            }
            _ = ticks.tick() => {
                if !is_asking() {
                    progress.draw();
                }
                tick = tick.wrapping_add(1);
                if tick.is_multiple_of(LOOK) && shown.as_ref().is_some_and(Shown::is_to_stop) {
                    // Asked for once; the process that asked hears of the end as any other does.
                    shown = None;
                    progress.clear();
                    progress.stop();
                    console.say("cancelled by `haft runs cancel`");
                    haft.cancel(what.target, CancelReason::User, Some("stopped by `haft runs cancel`"));
                }
                if is_parse_only && !haft.pending().is_empty() {
                    let note = Some("nothing is run in parse-only mode");
                    haft.cancel(what.target, CancelReason::Parent, note);
                }
            }
        }
    };
    if let Some(mut observer) = observer {
        let last_events = async {
            while let Some(event) = observer.next().await {
                see(console, &mut progress, what.events, &event);
            }
        };
        let _ = tokio::time::timeout(LAST_EVENTS, last_events).await;
    }
    progress.clear();
    drop(shown);
    Ok(Ended { value: ended.map_err(Failure::BrokeOff)?, stopped_by, times: progress.into_times() })
}

/// Whether a question stands where progress would be drawn.
fn is_asking() -> bool {
    #[cfg(unix)]
    let is_asking = super::prompt::terminal::is_asking();
    #[cfg(not(unix))]
    let is_asking = false;
    is_asking
}

/// As it was before anybody was asked: a signal here ends the process at once.
fn give_back_terminal() {
    #[cfg(unix)]
    super::prompt::terminal::restore();
}

/// The next event; never, once there are no more.
async fn next(observer: &mut Option<Observer>) -> Option<haft::Event> {
    match observer {
        Some(observer) => observer.next().await,
        None => std::future::pending().await,
    }
}

fn see(console: &Console, progress: &mut Progress, events: bool, event: &haft::Event) {
    if events {
        if let Ok(line) = serde_json::to_string(event) {
            console.say_raw(&line);
        }
    } else if let EventPayload::Warning { message } = &event.payload {
        progress.clear();
        console.warn(&people_text(message));
    }
    progress.see(event);
}

/// Hears signals for as long as the process lives.
async fn listen(haft: Haft, target: Target, heard: mpsc::UnboundedSender<Signal>) {
    let Ok(mut signals) = Signals::new() else {
        // Then a signal does what it does to any process: it ends it.
        return;
    };
    let mut first = None;
    loop {
        let signal = signals.next().await;
        give_back_terminal();
        if !haft.is_executing(target) {
            process::exit(signal.exit().into());
        }
        if first.replace(signal).is_some() {
            last_words("exited at once; running calls may have had their effect");
            process::exit(signal.exit().into());
        }
        // The process that shows it may have gone; the call is stopped all the same.
        let _ = heard.send(signal);
        match signal {
            Signal::Interrupt => {
                haft.cancel(target, CancelReason::User, None);
            }
            Signal::Terminate => {
                let haft = haft.clone();
                tokio::spawn(async move { haft.shutdown().await });
            }
        }
    }
}

#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Signals)
    }

    pub(super) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
