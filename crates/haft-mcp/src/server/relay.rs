//! What a client is told while its call runs: progress and warnings.

#![allow(deprecated, reason = "2025-06-18 and 2025-11-25 have logging; 2026-07-28 keeps it for a while")]

use super::client::Client;
use haft_core::{Event, EventPayload};
use haft_engine::Observer;
use rmcp::model::{LoggingLevel, ProgressNotificationParam, ProgressToken};
use serde_json::json;
use std::time::{Duration, Instant};

/// The least time between two reports of a tool that reports a lot.
const PACE: Duration = Duration::from_millis(25);
/// How often a client hears that a person is still waited for.
const REMIND: Duration = Duration::from_secs(10);
/// By how much progress grows where nobody knows how much is left: it has to grow each time.
const STEP: f64 = 0.001;

/// Tells a client what an observer sees, until the call has ended.
pub(super) async fn relay(client: &Client, mut observer: Observer, token: Option<ProgressToken>) {
    let mut progress = token.map(Progress::new);
    // While a person is waited for, a client hears now and then that the call is not forgotten: many end one that is
    // silent for a minute.
    let mut waiting: Option<Event> = None;
    loop {
        let event = tokio::select! {
            biased;
            event = observer.next() => match event {
                Some(event) => event,
                None => break,
            },
            () = tokio::time::sleep(REMIND), if waiting.is_some() => {
                let Some(event) = waiting.clone() else { continue };
                event
            }
        };
        waiting = matches!(event.payload, EventPayload::ConfirmationRequested { .. }).then(|| event.clone());
        if let EventPayload::Warning { message } = &event.payload
            && client.wants_log()
        {
            client.log(LoggingLevel::Warning, json!(message)).await;
        }
        if let Some(progress) = &mut progress
            && let Some(report) = progress.report(&event, Instant::now())
        {
            // A client that is gone is noticed where its call is.
            let _ = client.peer().notify_progress(report).await;
        }
    }
    if let Some(report) = progress.and_then(|mut progress| progress.held.take()) {
        let _ = client.peer().notify_progress(report).await;
    }
}

/// Progress as the protocol has it: each report is further than the one before.
struct Progress {
    token: ProgressToken,
    so_far: Option<f64>,
    last: Option<Instant>,
    /// One that came too soon after another. The last of them is told at the end.
    held: Option<ProgressNotificationParam>,
}

impl Progress {
    fn new(token: ProgressToken) -> Self {
        Progress { token, so_far: None, last: None, held: None }
    }

    fn report(&mut self, event: &Event, now: Instant) -> Option<ProgressNotificationParam> {
        let (percent, message) = words(&event.payload)?;
        let too_soon = self.last.is_some_and(|last| now.duration_since(last) < PACE);
        let least = self.so_far.map_or(0.0, |so_far| so_far + STEP);
        let value = percent.map_or(least, |percent| f64::from(percent).max(least));
        let mut report = ProgressNotificationParam::new(self.token.clone(), value);
        if percent.is_some() || self.so_far.is_some_and(|so_far| so_far >= 1.0) {
            report = report.with_total(value.max(100.0));
        }
        if let Some(message) = message {
            report = report.with_message(message);
        }
        if too_soon {
            self.held = Some(report);
            return None;
        }
        self.held = None;
        self.so_far = Some(value);
        self.last = Some(now);
        Some(report)
    }
}

/// What an event has to do with progress.
fn words(payload: &EventPayload) -> Option<(Option<u8>, Option<String>)> {
    match payload {
        EventPayload::InProgress { percent, message } => Some((*percent, message.clone())),
        EventPayload::Queued { ahead, .. } => Some((None, Some(format!("waiting, {ahead} before this")))),
        EventPayload::ConfirmationRequested { summary, .. } => {
            Some((None, Some(format!("waiting for approval: {summary}"))))
        }
        EventPayload::RetryAttempt { attempt, most, failed: Some(_), .. } => {
            Some((None, Some(format!("retrying, attempt {attempt} of {most}"))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::NumberOrString;

    fn event(percent: Option<u8>) -> Event {
        Event {
            seq: 0,
            execution_id: None,
            batch_id: None,
            batch_index: None,
            tool: "t".into(),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            elapsed: Duration::ZERO,
            payload: EventPayload::InProgress { percent, message: None },
        }
    }

    #[test]
    fn progress_always_grows() {
        let mut progress = Progress::new(ProgressToken(NumberOrString::Number(1)));
        let mut now = Instant::now();
        let mut before = -1.0;
        for percent in [None, Some(0), Some(50), Some(50), None, Some(20), Some(100), Some(100), None] {
            now += PACE;
            let report = progress.report(&event(percent), now).unwrap();
            assert!(report.progress > before, "{percent:?}: {} after {before}", report.progress);
            assert!(report.total.is_none_or(|total| total >= report.progress));
            before = report.progress;
        }
    }

    #[test]
    fn a_flood_is_thinned_and_its_last_one_kept() {
        let mut progress = Progress::new(ProgressToken(NumberOrString::Number(1)));
        let now = Instant::now();
        let told = (0..=100).filter_map(|percent| progress.report(&event(Some(percent)), now)).count();
        assert_eq!(told, 1);
        assert_eq!(progress.held.unwrap().progress, 100.0);
    }
}
