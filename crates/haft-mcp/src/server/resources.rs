//! What can be read: outputs by handle, definitions by name.

use super::builder::McpServer;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_core::{CallContext, OutputHandle, ToolDefinition, port::OutputRange};
use rmcp::{
    ErrorData,
    model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::json;

const OUTPUTS: &str = "haft://outputs/";
pub(super) const TOOLS: &str = "haft://tools/";
const CHANGES: &str = "haft://changes/";
/// The most bytes of an output in one answer.
const MOST_BYTES: u64 = 1 << 20;
/// Definitions change, and listeners are told.
pub(super) const LIST_TTL_MS: u64 = 60_000;
/// An output never changes.
const OUTPUT_TTL_MS: u64 = 60 * 60 * 1000;

/// Where an output is read.
pub(super) fn output_uri(handle: &OutputHandle) -> String {
    format!("{OUTPUTS}{handle}")
}

/// Where a definition is read.
pub(super) fn tool_uri(name: &str) -> String {
    format!("{TOOLS}{name}")
}

pub(super) fn definition(definition: &ToolDefinition) -> Resource {
    let title = definition.title.clone().unwrap_or_else(|| definition.name.clone());
    Resource::new(tool_uri(&definition.name), &definition.name)
        .with_title(title)
        .with_description(format!("The definition of the tool {}", definition.name))
        .with_mime_type("application/json")
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{OUTPUTS}{{handle}}{{?offset,length}}"), "output").with_description(
            "The whole output of a call whose answer was cut, by the handle on that answer. A long one is read in parts: \
             offset and length are in bytes",
        ),
        ResourceTemplate::new(format!("{CHANGES}{{execution_id}}"), "changes")
            .with_description(
                "What a staged command changed and what is not applied yet, as a diff, by the execution id of its call",
            )
            .with_mime_type("text/x-diff"),
        ResourceTemplate::new(format!("{TOOLS}{{name}}"), "definition")
            .with_description("The definition of a tool")
            .with_mime_type("application/json"),
    ]
}

/// What is behind an address; `None` where it is not one of haft's.
pub(super) async fn read(
    server: &McpServer,
    caller: &CallContext,
    uri: &str,
) -> Result<Option<ReadResourceResult>, ErrorData> {
    if let Some(rest) = uri.strip_prefix(OUTPUTS) {
        return read_output(server, caller, uri, rest).await.map(Some);
    }
    if let Some(id) = uri.strip_prefix(CHANGES) {
        return read_changes(server, caller, uri, id).await.map(Some);
    }
    match uri.strip_prefix(TOOLS) {
        Some(name) => read_definition(server, caller, uri, name).await.map(Some),
        None => Ok(None),
    }
}

/// An answer that tells nobody whether it is there for somebody else.
pub(super) fn not_there(uri: &str) -> ErrorData {
    let text = haft_core::text::one_line(uri, 200);
    ErrorData::resource_not_found(format!("there is no resource {text}"), Some(json!({"uri": text})))
}

async fn read_output(
    server: &McpServer,
    caller: &CallContext,
    uri: &str,
    rest: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let (handle, query) = rest.split_once('?').unwrap_or((rest, ""));
    let range = range(query)?;
    let asked =
        OutputRange { offset: range.offset, length: range.length.unwrap_or(MOST_BYTES).min(MOST_BYTES) };
    let reader = server.0.engine.store().for_tenant(&caller.tenant);
    let part = reader.output(&OutputHandle::from_text(handle), asked).await.map_err(|error| {
        tracing::warn!(%error, "an output could not be read");
        ErrorData::internal_error("the output cannot be read now", None)
    })?;
    let (bytes, total) = part.ok_or_else(|| not_there(uri))?;
    let left = total.saturating_sub(range.offset).saturating_sub(bytes.len() as u64);
    if left > 0 && range.length.is_none_or(|length| length > MOST_BYTES) {
        let text = format!(
            "the output has {total} bytes, and {MOST_BYTES} can be read at once: read {OUTPUTS}{handle}?offset=0&length={MOST_BYTES}"
        );
        return Err(ErrorData::invalid_params(text, Some(json!({"size": total}))));
    }
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("text/plain".to_owned()),
            text,
            meta: None,
        },
        Err(bytes) => ResourceContents::BlobResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("application/octet-stream".to_owned()),
            blob: STANDARD.encode(bytes.into_bytes()),
            meta: None,
        },
    };
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(OUTPUT_TTL_MS)
        .with_cache_scope(CacheScope::Private))
}

async fn read_changes(
    server: &McpServer,
    caller: &CallContext,
    uri: &str,
    id: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let id = id.parse().map_err(|_| not_there(uri))?;
    let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    // Why it cannot be read says whether it is there for somebody else.
    let text = server.0.engine.diff_of_changes(&caller.tenant, id, most).await.map_err(|_| not_there(uri))?;
    let contents = ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some("text/x-diff".to_owned()),
        text,
        meta: None,
    };
    // It is applied or thrown away at any moment.
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

#[derive(Debug, Default, PartialEq)]
struct ResourceQuery {
    offset: u64,
    length: Option<u64>,
}

fn range(query: &str) -> Result<ResourceQuery, ErrorData> {
    let mut asked = ResourceQuery::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let wrong = || {
            let pair = haft_core::text::one_line(pair, 80);
            ErrorData::invalid_params(
                format!("`{pair}`: an output is read by offset and length, in bytes"),
                None,
            )
        };
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        let number: u64 = value.parse().map_err(|_| wrong())?;
        match key {
            "offset" => asked.offset = number,
            "length" => asked.length = Some(number),
            _ => return Err(wrong()),
        }
    }
    Ok(asked)
}

async fn read_definition(
    server: &McpServer,
    caller: &CallContext,
    uri: &str,
    name: &str,
) -> Result<ReadResourceResult, ErrorData> {
    // Only those that the caller may call, and so may know of.
    let available = server.0.engine.tools().available_one(caller, name).await;
    let definition = available.filter(|definition| definition.name == name).ok_or_else(|| not_there(uri))?;
    let text = serde_json::to_string_pretty(&definition.shown())
        .map_err(|_| ErrorData::internal_error("the definition cannot be written", None))?;
    let contents = ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some("application/json".to_owned()),
        text,
        meta: None,
    };
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_strictly() {
        assert_eq!(range("").unwrap(), ResourceQuery::default());
        assert_eq!(range("offset=5&length=7").unwrap(), ResourceQuery { offset: 5, length: Some(7) });
        for wrong in ["offset", "offset=", "offset=-1", "offset=1.5", "size=3", "length=99999999999999999999"]
        {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
