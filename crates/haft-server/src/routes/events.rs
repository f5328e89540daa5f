//! Everything that happens to a tenant's calls.

use crate::{extract::Who, problem::Problem, schema, server::App, sse};
use axum::{
    extract::State,
    http::HeaderMap,
    response::{Response, sse::Event},
};
use futures_util::{StreamExt as _, stream};
use haft_engine::EventStream;
use std::future::ready;

/// What happens in all calls and batches of this tenant: events, resumable with `Last-Event-ID`
///
/// From now on, without an end. A client that comes back within a minute goes on where it was. One that is too slow gets
/// an event `tool:gap`, which says how many events are gone; one that comes back too late gets `tool:missed` first.
#[utoipa::path(
    get, path = "/v1/events", tag = "executions",
    params(("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,18}-[0-9]{1,18}$")),
    responses((status = 200, body = schema::StreamEvent, content_type = "text/event-stream"))
)]
pub(crate) async fn all(
    State(app): State<App>,
    Who(who): Who,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let happening = match sse::last_event_text(&headers)? {
        None => app.engine.events(who.tenant()),
        Some(place) => {
            let place = place.parse().map_err(|_| sse::wrong())?;
            app.engine.events_from(who.tenant(), place)
        }
    };
    // At once, so that a client that is cut off before the first event does not miss it.
    let begin = Event::default().id(happening.position().to_string());
    let events = stream::once(ready(begin)).chain(stream::unfold(happening, next));
    Ok(sse::answer(events, app.stop.clone()))
}

async fn next(mut happening: EventStream) -> Option<(Event, EventStream)> {
    let happened = happening.next().await?;
    let event = sse::named(&happened).id(happening.position().to_string());
    Some((event, happening))
}
