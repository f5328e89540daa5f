//! What the engine does not know, from the program that puts the server together.

use haft_core::{ErrorCode, Tier, ToolError, port::BoxFuture};
use haft_engine::Request;
use serde_json::Value;
use std::{collections::BTreeMap, future::ready};

fn refused<'a, T: Send + 'a>(what: &str) -> BoxFuture<'a, Result<T, ToolError>> {
    let text = format!("This server does not offer {what}");
    Box::pin(ready(Err(ToolError::new(ErrorCode::NotSupported, text))))
}

/// What stands behind a server besides the engine.
pub trait ServerBackend: Send + Sync {
    /// The licence tier of a tenant now.
    fn tier(&self, _tenant: &str) -> Tier {
        Tier::Core
    }

    /// Why policy decides about a call as it does.
    fn explain<'a>(&'a self, _request: Request) -> BoxFuture<'a, Result<Value, ToolError>> {
        refused("explanations of policy")
    }

    /// What the jails of this machine enforce.
    fn doctor<'a>(&'a self) -> BoxFuture<'a, Result<Value, ToolError>> {
        refused("a look at its jails")
    }

    /// Keeps a record that somebody was not let in. At most one a minute; without a place for it, it is not kept.
    fn refused<'a>(&'a self, _refused: Refused) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(ready(Ok(())))
    }

    /// What happened besides calls, over all tenants, newest first: keys that were made and revoked, who was not let
    /// in.
    fn happenings<'a>(&'a self, _limit: usize) -> BoxFuture<'a, Result<Vec<Value>, ToolError>> {
        refused("a record of what happened besides calls")
    }
}

/// Nothing but the engine: everybody is on the lowest tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBackend;

impl ServerBackend for NoBackend {}

/// Who was not let in since the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Requests without a key or token.
    pub without: u64,
    /// Requests with one that does not count.
    pub unknown: u64,
    /// From where, for the first few addresses, and how often.
    pub addresses: BTreeMap<String, u64>,
    /// How often from other addresses.
    pub others: u64,
}
