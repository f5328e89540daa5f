//! `haft backup` and `haft gc`.

use super::{
    Memory,
    args::{BackupArgs, GcArgs},
};
use crate::{console::Console, failure::Failure, words};
use haft::assembly::{retention, sweep_caches};
use serde_json::json;
use std::time::Duration;

/// How long a build cache is kept that no command uses.
const CACHES_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) async fn backup(args: &BackupArgs, memory: &Memory, console: &mut Console) -> Result<u8, Failure> {
    let path = match &args.file {
        Some(file) => memory.working_folder.join(file),
        None => {
            let now = jiff::Timestamp::now().to_string().replace([':', '.'], "-");
            memory.state.join("backups").join(format!("haft-{now}.db"))
        }
    };
    if path.exists() {
        return Err(Failure::BackupExists { path });
    }
    memory.store.back_up(&path).await?;
    let bytes = std::fs::metadata(&path).map_or(0, |facts| facts.len());
    if args.json {
        console.print_json(&json!({"path": path, "bytes": bytes}))?;
    } else {
        console.print(format!("{}\n", words::path(&path)))?;
        console.say(
            "the backup does not contain audit.key, the first key of the audit log: keep a copy elsewhere",
        );
    }
    Ok(0)
}

pub(super) async fn gc(args: &GcArgs, memory: &Memory, console: &mut Console) -> Result<u8, Failure> {
    let rules = retention(&memory.config.store).map_err(Failure::BadRetention)?;
    let gone = memory.store.gc().await?;
    let conversations = haft_store::FileReadHashes::new(memory.state.join("reads")).forget_old();
    let unused_for = if args.caches { Duration::ZERO } else { CACHES_KEPT };
    let caches = sweep_caches(&memory.state, unused_for)
        .map_err(|error| haft::ToolError::failed(format!("Build caches cannot be deleted: {error}")))?;
    let mut archives = Vec::new();
    while let Some(archived) = memory.store.archive(&rules).await? {
        archives.push(archived);
    }
    let records: u64 = archives.iter().map(|archived| archived.records).sum();
    if args.json {
        let archives: Vec<_> = archives
            .iter()
            .map(|archived| {
                json!({
                    "path": archived.path,
                    "records": archived.records,
                    "first": archived.first,
                    "last": archived.last,
                })
            })
            .collect();
        console.print_json(&json!({
            "results": gone.results,
            "outputs": gone.outputs,
            "keys": gone.keys,
            "batches": gone.batches,
            "approvals": gone.approvals,
            "conversations": conversations,
            "caches": caches,
            "archives": archives,
        }))?;
        return Ok(0);
    }
    let count = |number: u64, what| words::count(usize::try_from(number).unwrap_or(usize::MAX), what);
    let mut text = format!(
        "let go: {}, {}, {}, {}, {}, {}, {}\n",
        count(gone.results, "result"),
        count(gone.outputs, "output"),
        count(gone.keys, "idempotency key"),
        count(gone.batches, "batch").replace("batchs", "batches"),
        count(gone.approvals, "approval"),
        count(conversations, "conversation"),
        count(caches, "build cache"),
    );
    text.push_str(&format!("archived: {}\n", count(records, "audit record")));
    for archived in &archives {
        text.push_str(&format!("  {}\n", words::path(&archived.path)));
    }
    console.print(text)?;
    Ok(0)
}
