//! Conditions of nodes.

use haft_flow::{Condition, NoAnswer};
use serde_json::Value;

/// Whether a condition holds: found out where nobody else waits.
pub(super) async fn answer(condition: Condition, variables: Value) -> Result<bool, NoAnswer> {
    let work = move || condition.holds(&variables);
    match tokio::runtime::Handle::try_current() {
        // Twice the time that an evaluation takes before it gives up by itself: then its thread is left alone.
        Ok(runtime) => match tokio::time::timeout(haft_flow::LONGEST * 2, runtime.spawn_blocking(work)).await
        {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(NoAnswer::Failed("the interpreter gave up on it".to_owned())),
            Err(_) => Err(NoAnswer::RanAway),
        },
        Err(_) => work(),
    }
}
