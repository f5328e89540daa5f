//! What a server answered, as a tool's output. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_core::{ContentPart, ErrorCode, ToolError, ToolOutput, text};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// What a call gave, with remarks on what could not be taken.
pub(super) fn output(result: CallToolResult) -> (Result<ToolOutput, ToolError>, Vec<String>) {
    let mut remarks = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for block in result.content {
        match block {
            ContentBlock::Text(part) => words.push(part.text),
            ContentBlock::Image(part) => {
                if is_base64("a picture", &part.data, &mut remarks) {
                    parts.push(ContentPart::Image { data: part.data, mime_type: part.mime_type });
                }
            }
            ContentBlock::Audio(part) => {
                if is_base64("a sound", &part.data, &mut remarks) {
                    parts.push(ContentPart::Audio { data: part.data, mime_type: part.mime_type });
                }
            }
            ContentBlock::Resource(part) => match part.resource {
                ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                    parts.push(ContentPart::Resource { uri, mime_type, text: Some(text), blob: None });
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    if is_base64("a document", &blob, &mut remarks) {
                        parts.push(ContentPart::Resource { uri, mime_type, text: None, blob: Some(blob) });
                    }
                }
                _ => remarks.push("The server sent a document of a kind that is not known".to_owned()),
            },
            // What it leads to is at the server; its address is all there is to tell.
            ContentBlock::ResourceLink(link) => words.push(format!("{}: {}", link.name, link.uri)),
            _ => remarks.push("The server sent content of a kind that is not known".to_owned()),
        }
    }
    let said = (!words.is_empty()).then(|| words.join("\n"));
    if result.is_error == Some(true) {
        return (Err(failure(said, result.structured_content)), remarks);
    }
    let structured = result.structured_content;
    // A call that gave nothing has an empty text: what was streamed beside it is not its output.
    let text = said.or_else(|| structured.is_none().then(String::new));
    (Ok(ToolOutput { text, structured, parts, ..ToolOutput::default() }), remarks)
}

/// What the server says went wrong, as it said it.
fn failure(said: Option<String>, structured: Option<Value>) -> ToolError {
    let error = match said.filter(|said| !said.trim().is_empty()) {
        Some(said) => ToolError::new(ErrorCode::ExecutionFailed, said),
        None => ErrorCode::ExecutionFailed.into(),
    };
    match structured {
        Some(value) => error.with_data(value),
        None => error,
    }
}

fn is_base64(what: &str, data: &str, remarks: &mut Vec<String>) -> bool {
    let is = STANDARD.decode(data).is_ok();
    if !is {
        let start = text::one_line(&data.chars().take(20).collect::<String>(), 20);
        remarks.push(format!("The server sent {what} that is not base64 (`{start}…`), so it was left out"));
    }
    is
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(result: Value) -> (Result<ToolOutput, ToolError>, Vec<String>) {
        output(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content_arrives() {
        let (result, remarks) = of(json!({
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "text", "text": "b"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/plain", "text": "t"}},
                {"type": "resource", "resource": {"uri": "x:2", "blob": "AAAA"}},
                {"type": "resource_link", "uri": "x:3", "name": "third"},
            ],
            "structuredContent": {"n": 1},
        }));
        let output = result.unwrap();
        assert_eq!(output.text.as_deref(), Some("a\nb\nthird: x:3"));
        assert_eq!(output.structured, Some(json!({"n": 1})));
        assert_eq!(output.parts.len(), 4);
        assert_eq!(remarks, [""; 0]);
    }

    #[test]
    fn what_is_not_base64_is_left_out() {
        let (result, remarks) =
            of(json!({"content": [{"type": "image", "data": "<script>", "mimeType": "image/png"}]}));
        assert!(result.unwrap().parts.is_empty());
        assert_eq!(remarks.len(), 1);
    }

    #[test]
    fn an_error_is_heard_as_the_server_spoke() {
        let (result, _) = of(json!({"content": [{"type": "text", "text": "no such city"}], "isError": true,
            "structuredContent": {"code": 7}}));
        let error = result.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::ExecutionFailed, "no such city"));
        assert_eq!(error.data.as_deref(), Some(&json!({"code": 7})));
        let (result, _) = of(json!({"content": [], "isError": true}));
        assert_eq!(result.unwrap_err().message, ErrorCode::ExecutionFailed.model_text());
    }

    #[test]
    fn nothing_is_an_empty_text() {
        assert_eq!(of(json!({"content": []})).0.unwrap().text.as_deref(), Some(""));
        let only_value = of(json!({"content": [], "structuredContent": {"a": 1}})).0.unwrap();
        assert_eq!((only_value.text, only_value.structured), (None, Some(json!({"a": 1}))));
    }
}
