//! From a result to what a client gets.

use haft_core::{ContentPart, ErrorCode, ErrorInfo, ToolResult};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents},
};
use serde_json::{Value, json};

/// On every result: the execution of the call, by which records name it.
const EXECUTION: &str = "haft/executionId";
/// On a result that is no success: the row of the error table, with its facts.
pub(super) const ERROR: &str = "haft/error";
/// On a result whose output was cut: how long the whole is, and by which handle it is read.
const OUTPUT: &str = "haft/output";

/// What a client gets. Unknown tools are an error of the protocol, as MCP has it; all else is an answer that a model
/// can read.
pub(super) fn answer(result: ToolResult, is_stateless: bool) -> Result<CallToolResult, ErrorData> {
    let ToolResult { output, content, error, metadata, tool, .. } = result;
    let mut meta = MetaObject::new();
    meta.insert(EXECUTION.to_owned(), Value::String(metadata.execution_id.to_string()));
    let mut answer = CallToolResult::success(content.into_iter().map(block).collect());
    if let Some(error) = error {
        if error.code == ErrorCode::ToolNotFound {
            return Err(ErrorData::invalid_params(error.message.clone(), Some(json!({ERROR: error}))));
        }
        answer.is_error = Some(true);
        if let Some(line) = approval_line(&error) {
            answer.content.push(ContentBlock::text(line));
        }
        meta.insert(ERROR.to_owned(), json!(error));
    } else {
        // Before 2026-07-28 a structured value is an object.
        answer.structured_content = output.filter(|output| is_stateless || output.is_object());
    }
    if let Some(handle) = &metadata.output_handle {
        let uri = super::resources::output_uri(handle);
        meta.insert(OUTPUT.to_owned(), json!({"handle": handle, "uri": uri, "size": metadata.output_size}));
        let whole = Resource::new(uri, handle.as_str())
            .with_description(format!("The whole output of {tool}"))
            .with_size(metadata.output_size);
        answer.content.push(ContentBlock::resource_link(whole));
    }
    answer.meta = Some(meta);
    Ok(answer)
}

/// By which a person finds the question, for a model that tells them. The facts beside the answer reach programs only.
fn approval_line(error: &ErrorInfo) -> Option<String> {
    let open = matches!(error.code, ErrorCode::ConfirmationRequired | ErrorCode::ApprovalExpired);
    let id = error.data.as_ref().filter(|_| open)?.get("approvalId")?.as_str()?;
    Some(format!(
        "Approval id: {id}. A person sees everything with `haft approvals show {id}`, and answers with `haft approvals \
         approve {id}` or `deny`"
    ))
}

fn block(part: ContentPart) -> ContentBlock {
    match part {
        ContentPart::Text { text } => ContentBlock::text(text),
        ContentPart::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        ContentPart::Audio { data, mime_type } => ContentBlock::audio(data, mime_type),
        ContentPart::Resource { uri, mime_type, text, blob } => ContentBlock::resource(match (text, blob) {
            (None, Some(blob)) => ResourceContents::BlobResourceContents { uri, mime_type, blob, meta: None },
            (text, _) => ResourceContents::TextResourceContents {
                uri,
                mime_type,
                text: text.unwrap_or_default(),
                meta: None,
            },
        }),
    }
}
