//! Lets a call start, through what is configured: the repeat guard → stored results → [`Attempts`].

use super::{attempts::Attempts, cache::Cache, controls::AdmissionControls};
use crate::{
    pipeline::types::{AttemptOutcome, Ready, Start},
    ports::Ports,
};

/// Starts a call, unless something answers for it or holds it back.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice, and this is moved with every call"
)]
pub(crate) fn admit<R: Start>(
    controls: &AdmissionControls,
    ports: &Ports,
    ready: &mut Ready,
    run: R,
) -> impl Future<Output = AttemptOutcome> + Send {
    async move {
        if let Some(repeats) = &controls.repeats
            && let Some(stop) = repeats.stops(&mut ready.call)
        {
            return Err(stop);
        }
        let attempts = Attempts { controls, ports, run: &run };
        match &controls.cache {
            Some(cache) if Cache::is_for(ready) => Box::pin(cache.answer(ready, &attempts)).await,
            _ => attempts.start(ready).await,
        }
    }
}
