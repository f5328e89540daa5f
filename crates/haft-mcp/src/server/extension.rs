//! What is offered besides tools. None of it is haft's.

use super::client::Client;
use haft_core::{CallContext, port::BoxFuture};
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, Prompt,
        ReadResourceResult, Resource, ResourceTemplate,
    },
};
use std::future::ready;

/// Prompts, completion and more resources, for programs that embed the server. Tools belong into the engine.
///
/// ```
/// use haft_mcp::{rmcp::model::Resource, server::Extension};
///
/// struct Handbook;
///
/// impl Extension for Handbook {
///     fn resources(&self, _caller: &haft_core::CallContext) -> Vec<Resource> {
///         vec![Resource::new("handbook://first-day", "first-day")]
///     }
/// }
/// ```
pub trait Extension: Send + Sync {
    /// Whether there are prompts. Without them, their methods are unknown to clients.
    fn has_prompts(&self) -> bool {
        false
    }

    /// Whether anything can be completed.
    fn has_completions(&self) -> bool {
        false
    }

    /// The prompts that a caller may use.
    fn prompts(&self, _caller: &CallContext) -> Vec<Prompt> {
        Vec::new()
    }

    /// One prompt. It may ask for input first.
    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        _caller: &'a CallContext,
        _client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResponse, ErrorData>> {
        let text = format!("there is no prompt {}", haft_core::text::one_line(&request.name, 80));
        Box::pin(ready(Err(ErrorData::invalid_params(text, None))))
    }

    /// What somebody is about to type.
    fn complete<'a>(
        &'a self,
        _request: CompleteRequestParams,
        _caller: &'a CallContext,
    ) -> BoxFuture<'a, Result<CompleteResult, ErrorData>> {
        Box::pin(ready(Ok(CompleteResult::default())))
    }

    /// Further resources that a caller may read.
    fn resources(&self, _caller: &CallContext) -> Vec<Resource> {
        Vec::new()
    }

    /// Further templates of addresses.
    fn resource_templates(&self, _caller: &CallContext) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// What is behind an address that is not one of haft's; `None` where nothing is.
    fn read<'a>(
        &'a self,
        _uri: &'a str,
        _caller: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<ReadResourceResult>, ErrorData>> {
        Box::pin(ready(Ok(None)))
    }
}

/// Nothing besides tools.
pub(super) struct Nothing;

impl Extension for Nothing {}
