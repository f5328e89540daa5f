//! What a caller hands to a tool beside its arguments, in the forms in which tools that are no Rust code get it.

use haft_core::{CallContext, ToolCall, ToolError};
use serde_json::{Map, Value};

/// The caller's own id for a call, the metadata of the call, and the context of its caller, as far as they are there.
///
/// ```
/// use haft_core::{CallContext, ToolCall};
/// use haft_sdk::PassedOn;
/// let call = ToolCall::new("t", serde_json::json!({})).with_id("call_1");
/// let context = CallContext::owner();
/// let variables = PassedOn::new(&call, &context).variables().unwrap();
/// assert_eq!(variables, [("HAFT_CALL_ID".to_owned(), "call_1".to_owned())]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PassedOn<'a> {
    id: &'a str,
    metadata: Option<&'a Map<String, Value>>,
    context: &'a Map<String, Value>,
}

/// The most bytes of each: what a variable, and a header of most services, holds.
const MOST: usize = 8 << 10;

impl<'a> PassedOn<'a> {
    /// The variables of a program in which it is.
    pub const VARIABLES: [&'static str; 3] = ["HAFT_CALL_ID", "HAFT_CALL_METADATA", "HAFT_CALL_CONTEXT"];
    /// The headers of a request in which it is.
    pub const HEADERS: [&'static str; 3] = ["Haft-Call-Id", "Haft-Call-Metadata", "Haft-Call-Context"];
    /// The members of a request of MCP in which it is, below `haft/`.
    pub const MEMBERS: [&'static str; 3] = ["callId", "metadata", "context"];

    /// What is handed on of this call.
    pub fn new(call: &'a ToolCall, context: &'a CallContext) -> Self {
        PassedOn { id: &call.id, metadata: call.metadata.as_deref(), context: &context.extra }
    }

    /// As values.
    pub fn members(self) -> Vec<(&'static str, Value)> {
        let id = (!self.id.is_empty()).then(|| Value::from(self.id));
        let object = |members: &Map<String, Value>| Value::Object(members.clone());
        let metadata = self.metadata.filter(|members| !members.is_empty()).map(object);
        let context = Some(self.context).filter(|members| !members.is_empty()).map(object);
        let values = [id, metadata, context];
        PassedOn::MEMBERS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// As variables of a program: the id as it is, the rest as JSON.
    pub fn variables(self) -> Result<Vec<(String, String)>, ToolError> {
        self.texts(PassedOn::VARIABLES)
            .map(|texts| texts.map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// As headers of a request: the id and JSON, in ASCII.
    pub fn headers(self) -> Result<Vec<(&'static str, String)>, ToolError> {
        Ok(self.texts(PassedOn::HEADERS)?.collect())
    }

    fn texts(
        self,
        names: [&'static str; 3],
    ) -> Result<impl Iterator<Item = (&'static str, String)> + use<>, ToolError> {
        let mut texts = Vec::new();
        for (member, value) in self.members() {
            let text = match value {
                Value::String(id) if id.bytes().all(|byte| byte.is_ascii_graphic()) => id,
                other => ascii(&other.to_string()),
            };
            if text.len() > MOST {
                let text = format!(
                    "Bad args: the {member} of this call is longer than {MOST} bytes, so no program or service can have it"
                );
                return Err(ToolError::bad_args(text));
            }
            let at = PassedOn::MEMBERS.iter().position(|known| *known == member).unwrap_or_default();
            texts.push((names[at], text));
        }
        Ok(texts.into_iter())
    }
}

/// JSON with everything beyond ASCII written out, which headers cannot hold.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char.is_ascii() {
            true => out.push(char),
            false => {
                char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")))
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(metadata: Value) -> ToolCall {
        let metadata = metadata.as_object().cloned().map(std::sync::Arc::new);
        ToolCall { metadata, ..ToolCall::new("t", json!({})) }
    }

    #[test]
    fn what_is_not_there_is_not_handed_on() {
        let context = CallContext::owner();
        assert!(PassedOn::new(&call(json!({})), &context).members().is_empty());
    }

    #[test]
    fn fr_reg_04_metadata_and_context_become_variables_and_headers() {
        let mut context = CallContext::new("acme", "helper");
        context.extra.insert("place".to_owned(), json!("Köln 🦀"));
        let call = call(json!({"trace": 7})).with_id("call 1\n");
        let passed = PassedOn::new(&call, &context);
        let expected = ["\"call 1\\n\"", r#"{"trace":7}"#, r#"{"place":"K\u00f6ln \ud83e\udd80"}"#];
        let headers = passed.headers().unwrap();
        assert_eq!(headers.iter().map(|(name, _)| *name).collect::<Vec<_>>(), PassedOn::HEADERS);
        assert_eq!(headers.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(serde_json::from_str::<Value>(&headers[2].1).unwrap(), json!({"place": "Köln 🦀"}));
        assert_eq!(passed.variables().unwrap()[1].0, "HAFT_CALL_METADATA");
    }

    #[test]
    fn what_is_too_long_is_an_error_and_not_cut() {
        let context = CallContext::owner();
        let long = call(json!({"a": "x".repeat(MOST)}));
        let error = PassedOn::new(&long, &context).variables().unwrap_err();
        assert!(error.message.contains("metadata"), "{error:?}");
    }
}
