//! A message of a client, read once.

use super::refusal::{Refusal, parsed, shapeless, unlike_a_message};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, MetaObject, RequestId, RequestMetaObject,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Reads a message, or says why it is not taken. A blank one is none.
pub(super) fn read(message: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Refusal> {
    let Some(mut value) = parsed(message)? else { return Ok(None) };
    if let Some(refusal) = shapeless(&value) {
        return Err(refusal);
    }
    if let Some(call) = value.as_object_mut().and_then(call) {
        return Ok(Some(call));
    }
    match ClientJsonRpcMessage::deserialize(&value) {
        Ok(message) => Ok(Some(message)),
        Err(_) => Err(unlike_a_message(&value)),
    }
}

/// A call of a tool, which is most of what clients send. Taken apart here, because the protocol library takes every
/// other request into account before it comes to this one. Where anything is not as it is in plain calls, nothing is
/// changed and the library reads it.
fn call(message: &mut Map<String, Value>) -> Option<ClientJsonRpcMessage> {
    const OURS: [&str; 3] = ["_meta", "name", "arguments"];
    if message.get("method")?.as_str()? != "tools/call" {
        return None;
    }
    let id = match message.get_mut("id")? {
        Value::Number(number) => RequestId::Number(number.as_i64()?),
        Value::String(id) => RequestId::String(id.as_str().into()),
        _ => return None,
    };
    let params = message.get_mut("params")?.as_object_mut()?;
    let is_plain = params.get("name").is_some_and(Value::is_string)
        && params.get("arguments").is_none_or(Value::is_object)
        && params.get("_meta").is_none_or(Value::is_object)
        && params.keys().all(|key| OURS.contains(&key.as_str()));
    if !is_plain {
        return None;
    }
    let Some(Value::String(name)) = params.remove("name") else { return None };
    let mut request = CallToolRequest::new(CallToolRequestParams::new(name));
    if let Some(Value::Object(arguments)) = params.remove("arguments") {
        request.params.arguments = Some(arguments);
    }
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        request.extensions.insert(RequestMetaObject(MetaObject(meta)));
    }
    Some(ClientJsonRpcMessage::request(request.into(), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call is read as the protocol library reads it, with everything that it carries.
    #[test]
    fn a_call_is_read_as_the_protocol_library_reads_it() {
        let calls = [
            r#"{"name":"t"}"#,
            r#"{"name":"t","arguments":{}}"#,
            r#"{"name":"t","arguments":{"a":[1,-2,1.5,18446744073709551615,null,true,"ü"],"b":{"c":{}}}}"#,
            r#"{"name":"t","arguments":null}"#,
            r#"{"name":"t","arguments":{},"_meta":{"progressToken":3,"x":{"y":1}}}"#,
            r#"{"name":"t","_meta":{}}"#,
            r#"{"name":"t","_meta":null}"#,
            r#"{"name":"t","_meta":5}"#,
            r#"{"name":"t","requestState":"s","inputResponses":{}}"#,
            r#"{"name":"t","task":{"ttl":5}}"#,
            r#"{"name":5}"#,
            r#"{"arguments":{}}"#,
            r#"{"name":"t","arguments":[]}"#,
        ];
        for (params, id) in calls.into_iter().flat_map(|params| [(params, "1"), (params, "\"x\"")]) {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
            let (ours, theirs) = match (read(text.as_bytes()), serde_json::from_str(&text)) {
                (Ok(Some(ours)), Ok(theirs)) => (ours, theirs),
                (Err(_), Err(_)) => {
                    assert!(params.contains(r#""_meta":5"#), "{text}");
                    continue;
                }
                (ours, theirs) => panic!("{text}: {ours:?}, {theirs:?}"),
            };
            let meta = |message: &ClientJsonRpcMessage| match message {
                ClientJsonRpcMessage::Request(request) => {
                    rmcp::model::GetMeta::get_meta(&request.request).clone()
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(meta(&ours), meta(&theirs), "{text}");
            let json = |message: &ClientJsonRpcMessage| serde_json::to_value(message).unwrap();
            assert_eq!(json(&ours), json(&theirs), "{text}");
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{text}");
        }
    }
}
