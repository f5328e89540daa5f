//! `haft runs watch`: waiting for something that another process runs.
//!
//! What another process does is seen in the store, when a call of it has ended. Output on its way is not: that is in
//! the memory of its process.

use super::{
    Memory,
    filter::Id,
    record,
    runs::{Found, found, running_now},
};
use crate::{console::Console, failure::Failure, words};
use haft::port::TenantStore as _;
use std::time::{Duration, Instant};

/// How often it is asked.
const POLL: Duration = Duration::from_millis(200);
/// How long after its end a record may still be on its way: a call without side effects is written within 50 ms.
const LATE: Duration = Duration::from_millis(1000);

pub(super) async fn watch(
    memory: &Memory,
    tenant: &str,
    wanted: Id,
    timeout: Option<Duration>,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    let id = wanted.call.to_string();
    let begun = Instant::now();
    let mut last_seen = None;
    let mut shown = 0;
    loop {
        // In this order: what has ended between the two questions is found by the second.
        let running = running_now(memory)?.into_iter().find(|running| running.id == id);
        let so_far = found(memory, tenant, wanted).await?;
        if let (Some(Found::Batch(page)), false) = (&so_far, json) {
            for (_, record) in page.records.iter().skip(shown) {
                console.say(format!(
                    "{} {} {}",
                    record::mark(record.status),
                    words::name(&record.tool),
                    words::duration(record.metadata.duration)
                ));
            }
            shown = page.records.len();
        }
        match (&running, so_far) {
            (None, Some(found)) => {
                found.print(json, console)?;
                return Ok(found.exit());
            }
            (Some(running), _) => {
                if last_seen.is_none() && !json {
                    let what = if running.is_batch { "batch" } else { "call" };
                    console.say(format!("the {what} runs in process {}", running.process));
                }
                last_seen = Some(Instant::now());
            }
            (None, None) => {
                let waited = last_seen.unwrap_or(begun).elapsed();
                if waited >= LATE {
                    return gone(memory, tenant, wanted, last_seen.is_some(), json, console).await;
                }
            }
        }
        if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
            return Err(Failure::StillRunning { id });
        }
        tokio::time::sleep(POLL).await;
    }
}

/// It ran, and now neither runs nor has an end: its process was killed. Looking for what it left records that.
async fn gone(
    memory: &Memory,
    tenant: &str,
    wanted: Id,
    did_run: bool,
    json: bool,
    console: &mut Console,
) -> Result<u8, Failure> {
    memory.store.tenant(tenant).unfinished().await?;
    match found(memory, tenant, wanted).await? {
        Some(found) => {
            found.print(json, console)?;
            Ok(found.exit())
        }
        None if did_run => Err(Failure::Vanished { id: wanted.call.to_string() }),
        None => Err(Failure::NoRun { id: wanted.call.to_string() }),
    }
}
