//! A signed tool: its files are looked at again before it runs.

use super::Payload;
use crate::{Args, ErrorCode, Prepared, Tool, ToolCtx, ToolDefinition, ToolError, ToolFuture};
use haft_core::{Footprint, port::BoxFuture};
use std::{sync::Arc, time::Duration};

/// The tool, which does not run once what it runs has changed.
pub(super) fn watched(tool: Box<dyn Tool>, payload: Payload) -> Box<dyn Tool> {
    match payload.digest {
        Some(_) => Box::new(Signed { tool, payload: Arc::new(payload) }),
        None => tool,
    }
}

struct Signed {
    tool: Box<dyn Tool>,
    payload: Arc<Payload>,
}

impl Tool for Signed {
    fn definition(&self) -> &Arc<ToolDefinition> {
        self.tool.definition()
    }

    fn prepare(&self, args: &Args) -> Result<Box<dyn Prepared>, ToolError> {
        let prepared = self.tool.prepare(args)?;
        Ok(Box::new(SignedCall { prepared, payload: Arc::clone(&self.payload) }))
    }
}

struct SignedCall {
    prepared: Box<dyn Prepared>,
    payload: Arc<Payload>,
}

impl Prepared for SignedCall {
    fn footprint(&self) -> Footprint {
        self.prepared.footprint()
    }

    fn summary(&self) -> String {
        self.prepared.summary()
    }

    fn confirm(&self) -> Option<String> {
        self.prepared.confirm()
    }

    fn timeout(&self) -> Option<Duration> {
        self.prepared.timeout()
    }

    fn stages(&self) -> bool {
        self.prepared.stages()
    }

    fn preview(&self, cx: ToolCtx) -> Option<BoxFuture<'_, Result<String, ToolError>>> {
        self.prepared.preview(cx)
    }

    fn execute(self: Box<Self>, cx: ToolCtx) -> ToolFuture {
        let SignedCall { prepared, payload } = *self;
        Box::pin(async move {
            let is_unchanged = cx.blocking(move |_| payload.is_unchanged()).await;
            match is_unchanged {
                true => prepared.execute(cx).await,
                false => Err(ToolError::new(
                    ErrorCode::BadSignature,
                    "What this tool runs was changed after it was signed, so it was not run. Ask the person who runs \
                     this to have it signed again",
                )),
            }
        })
    }
}
