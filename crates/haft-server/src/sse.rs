//! Events as they happen: Server-Sent Events, which go on where a client left off.

use crate::problem::Problem;
use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use haft_core::{Event as Happened, EventPayload};
use haft_engine::Observer;
use serde::Serialize;
use std::{convert::Infallible, future::Future, time::Duration};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How often a silent stream says that it is there.
const ALIVE: Duration = Duration::from_secs(15);

/// The last event that a client has seen, as it says.
pub(crate) fn last_event_text(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    match id.to_str().map_err(|_| wrong())?.trim() {
        "" => Err(wrong()),
        id => Ok(Some(id)),
    }
}

/// The number of an event.
pub(crate) fn number(text: &str) -> Result<u64, Problem> {
    // As the document has it: what programs in most languages can count with.
    text.parse().ok().filter(|number| i64::try_from(*number).is_ok()).ok_or_else(wrong)
}

/// The last event that a client has seen.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    last_event_text(headers)?.map(number).transpose()
}

pub(crate) fn wrong() -> Problem {
    Problem::bad_request("Last-Event-ID must be the number of an event")
}

/// Whether a client wants events in place of one answer.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether a kind of answer is asked for by its own name.
pub(crate) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let mut kinds = accepts.flat_map(|accept| accept.split(','));
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted))
}

/// One event. Its id has `before` in front of its number.
pub(crate) fn event(happened: &Happened, before: &str) -> Event {
    // A gap ends with the last event that is gone: a client that comes back goes on after it.
    let seen = match happened.payload {
        EventPayload::Gap { to, .. } => to,
        _ => happened.seq,
    };
    named(happened).id(format!("{before}{seen}"))
}

/// One event, with its name and without an id.
pub(crate) fn named(happened: &Happened) -> Event {
    let data = serde_json::to_string(happened).unwrap_or_else(|_| "{}".to_owned());
    Event::default().event(happened.payload.wire_name()).data(data)
}

/// The result of a call or of a batch, as the last event.
pub(crate) fn result_event(result: &impl Serialize) -> Event {
    Event::default().event("result").data(serde_json::to_string(result).unwrap_or_else(|_| "{}".to_owned()))
}

/// Everything that an observer sees. Nothing is read ahead: one who stalls keeps a number, and nobody waits for them.
pub(crate) fn events(observer: Observer) -> impl Stream<Item = Event> + Send {
    stream::unfold(observer, async |mut observer| {
        let happened = observer.next().await?;
        Some((event(&happened, ""), observer))
    })
}

/// Events while a call or a batch runs, then its result. Dropping it cancels what runs.
pub(crate) fn events_and_result(
    observer: Observer,
    call: impl Future<Output = Event> + Send + 'static,
) -> impl Stream<Item = Event> + Send {
    let watched = events(observer);
    // In a task of its own, which ends with the stream: a call has its deadline also where nobody reads its events. Its
    // result waits until all of them are sent.
    let call = AbortOnDropHandle::new(tokio::spawn(call));
    let running = async move { call.await.ok() };
    Together { watched: Some(Box::pin(watched)), running: Some(Box::pin(running)), done: None }
}

struct Together<S> {
    watched: Option<std::pin::Pin<Box<S>>>,
    running: Option<std::pin::Pin<Box<dyn Future<Output = Option<Event>> + Send>>>,
    done: Option<Event>,
}

impl<S: Stream<Item = Event>> Stream for Together<S> {
    type Item = Event;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Event>> {
        use std::task::Poll;
        if let Some(running) = &mut self.running
            && let Poll::Ready(event) = running.as_mut().poll(cx)
        {
            self.running = None;
            self.done = event;
        }
        if let Some(watched) = &mut self.watched {
            match watched.as_mut().poll_next(cx) {
                Poll::Ready(Some(event)) => return Poll::Ready(Some(event)),
                Poll::Ready(None) => self.watched = None,
                Poll::Pending => return Poll::Pending,
            }
        }
        match (self.running.is_some(), self.done.take()) {
            (_, Some(event)) => Poll::Ready(Some(event)),
            (true, None) => Poll::Pending,
            (false, None) => Poll::Ready(None),
        }
    }
}

/// The answer with those events. It ends when `stop` says so.
pub(crate) fn answer(
    events: impl Stream<Item = Event> + Send + 'static,
    stop: CancellationToken,
) -> Response {
    let until_stop = events.take_until(stop.cancelled_owned()).map(Ok::<_, Infallible>);
    let mut response = Sse::new(until_stop).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that collect an answer first would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
