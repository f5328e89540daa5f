//! Why a message of a client is not taken, over HTTP and on pipes.
//!
//! What is not JSON is -32700, what is not a message of JSON-RPC is -32600 and carries the id of its request, and a key
//! that is there twice is refused: a client that shows a person the first of two equal keys would show another call
//! than haft runs, which would take the last.

use super::answer::ERROR;
use haft_core::{ErrorCode, ErrorInfo, Problem, json};
use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, RequestId},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

/// What a file may begin with, and the protocol library passes over.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Who gets the answer.
#[derive(Debug, PartialEq)]
pub(super) enum To {
    /// Nobody: notifications and answers have none.
    Nobody,
    /// The sender, without an id: none could be read.
    Unnamed,
    /// The sender of this request.
    Request(RequestId),
}

/// Why a message is not taken.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) to: To,
    pub(super) error: ErrorData,
}

/// Why a message is not taken. A blank one is no message, and is taken: those who read it pass over it.
#[cfg(any(feature = "http", test))]
pub(super) fn refusal(message: &[u8]) -> Option<Refusal> {
    match parsed(message) {
        Ok(value) => value.as_ref().and_then(shapeless),
        Err(refusal) => Some(refusal),
    }
}

/// The JSON of a message, in which no key is there twice; nothing of a blank one.
pub(super) fn parsed(message: &[u8]) -> Result<Option<Value>, Refusal> {
    let message = message.strip_prefix(MARK).unwrap_or(message);
    if message.trim_ascii().is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(message).map_err(|_| unparseable("it is not UTF-8"))?;
    json::parse(text).map(Some).map_err(|problem| match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => strictly(text, problem),
        Err(_) => unparseable(&problem.message),
    })
}

/// A message that is longer than is read.
pub(super) fn too_long(longest: usize) -> Refusal {
    let text = format!("Invalid request: the message is longer than {longest} bytes");
    Refusal { to: To::Unnamed, error: ErrorData::invalid_request(text, None) }
}

fn unparseable(why: &str) -> Refusal {
    Refusal {
        to: To::Unnamed,
        error: ErrorData::parse_error(format!("The message is not JSON: {why}"), None),
    }
}

/// JSON that is not read strictly: a key is there twice, or it is too deep.
fn strictly(text: &str, anywhere: Problem) -> Refusal {
    let (says, problem) = match in_arguments(text) {
        // As the engine says it of arguments that come another way.
        Some(problem) => ("Invalid tool arguments JSON", problem),
        None => ("Invalid request", anywhere),
    };
    let code = ErrorCode::ValidationFailed;
    let info = ErrorInfo {
        code,
        number: code.e_number().map(str::to_owned),
        message: format!("{says}: {problem}"),
        retryable: code.is_retryable(),
        problems: vec![problem],
        data: None,
    };
    // An answer to a question of haft's is none: then nobody answered. It gets no answer itself.
    let to = match serde_json::from_str::<Value>(text) {
        Ok(whole) => match whole.get("method").and(whole.get("id")) {
            Some(id) => named(id),
            None => To::Nobody,
        },
        Err(_) => outermost(text),
    };
    let error = ErrorData::invalid_params(info.message.clone(), Some(serde_json::json!({ERROR: info})));
    Refusal { to, error }
}

/// Who sent a message of which only the outermost keys can be read.
fn outermost(text: &str) -> To {
    #[derive(Deserialize)]
    struct Outermost {
        id: Option<Value>,
        method: Option<IgnoredAny>,
    }
    match serde_json::from_str::<Outermost>(text) {
        Ok(Outermost { id: Some(id), method: Some(_) }) => named(&id),
        Ok(Outermost { .. }) => To::Nobody,
        Err(_) => To::Unnamed,
    }
}

fn named(id: &Value) -> To {
    RequestId::deserialize(id).map_or(To::Unnamed, To::Request)
}

/// What is wrong with the arguments of a call, where it is in them.
fn in_arguments(text: &str) -> Option<Problem> {
    #[derive(Deserialize)]
    struct Message<'a> {
        method: String,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    if message.method != "tools/call" {
        return None;
    }
    json::parse(message.params.arguments.get()).err()
}

/// Why JSON is no message of JSON-RPC.
pub(super) fn shapeless(value: &Value) -> Option<Refusal> {
    let Some(message) = value.as_object() else {
        let why = match value.is_array() {
            true => "MCP has no batches; send each message for itself",
            false => "a message is a JSON object",
        };
        return Some(invalid(To::Unnamed, why));
    };
    // Most messages end here: nothing has to be tried.
    let why = wrong(message)?;
    if ClientJsonRpcMessage::deserialize(value).is_ok() {
        return None;
    }
    Some(invalid(sender(message), why))
}

/// What has the shape of a message of JSON-RPC, and is none that MCP knows.
pub(super) fn unlike_a_message(value: &Value) -> Refusal {
    let to = value.as_object().map_or(To::Unnamed, sender);
    invalid(to, "it is no message that MCP knows")
}

/// Who gets the answer to a message that can be read.
fn sender(message: &Map<String, Value>) -> To {
    let is_answer = message.contains_key("result") || message.contains_key("error");
    match (message.get("id"), message.get("method")) {
        (_, None) if is_answer => To::Nobody,
        (None, Some(method)) if method.is_string() => To::Nobody,
        (None, _) => To::Unnamed,
        (Some(id), _) => named(id),
    }
}

fn invalid(to: To, why: &str) -> Refusal {
    Refusal { to, error: ErrorData::invalid_request(format!("Invalid request: {why}"), None) }
}

/// What differs from a plain request or notification.
fn wrong(message: &Map<String, Value>) -> Option<&'static str> {
    let is_id = |id: &Value| id.is_string() || id.is_i64();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        Some("\"jsonrpc\" must be \"2.0\"")
    } else if message.contains_key("result") || message.contains_key("error") {
        Some("it is neither a request nor a whole answer")
    } else if !message.get("method").is_some_and(Value::is_string) {
        Some("\"method\" must be a string")
    } else if !message.get("id").is_none_or(is_id) {
        Some("\"id\" must be a string or a whole number")
    } else if !message.get("params").is_none_or(Value::is_object) {
        Some("\"params\" must be an object")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: &str = concat!(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","#,
        r#""params":{"name":"t","arguments":{"path":"a","path":"b"}}}"#
    );

    #[test]
    fn a_message_says_everything_once() {
        let refused = refusal(TWICE.as_bytes()).unwrap();
        let message = "Invalid tool arguments JSON: the key \"path\" is there twice (line 1 column 18)";
        assert_eq!((refused.to, &*refused.error.message), (To::Request(RequestId::Number(7)), message));
        let info = &refused.error.data.unwrap()["haft/error"];
        assert_eq!((&info["code"], &info["message"]), (&"VALIDATION_FAILED".into(), &message.into()));
        let marked = [MARK, TWICE.as_bytes()].concat();
        assert!(refusal(&marked).is_some(), "the mark is passed over by those who read it, too");
        for (twice, is_answered) in [
            (r#"{"id":1,"method":"ping","method":"tools/list"}"#, true),
            (r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b","arguments":{}}}"#, true),
            (r#"{"id":1,"method":"tools/call","params":{"arguments":{"a":[{"b":1,"b":2}]}}}"#, true),
            (r#"{"method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#, false),
            (
                r#"{"id":1,"result":{"action":"accept","content":{"decision":"deny","decision":"approve"}}}"#,
                false,
            ),
        ] {
            let refused = refusal(twice.as_bytes()).unwrap();
            let to = if is_answered { To::Request(RequestId::Number(1)) } else { To::Nobody };
            assert_eq!(refused.to, to, "{twice}");
            assert!(refused.error.message.contains("is there twice"), "{twice}");
        }
        for fine in [&br#"{"jsonrpc":"2.0","method":"a","params":{"b":{"c":1},"c":1}}"#[..], b"", b" \r\n"] {
            assert_eq!(refusal(fine), None, "{fine:?}");
        }
    }

    /// JSON-RPC 2.0: -32700 for what is not JSON, -32600 for what is no message, each with the id where there is one.
    #[test]
    fn what_cannot_be_read_is_a_parse_error_and_what_is_no_message_an_invalid_request() {
        for broken in
            [&b"no json"[..], b"\xff", b"{\"a\":", b"{\"id\":1,\"method\":\"ping\"", b"{} {}", b"nul"]
        {
            let refused = refusal(broken).unwrap();
            assert_eq!((refused.to, refused.error.code.0), (To::Unnamed, -32700), "{broken:?}");
        }
        let one = || To::Request(RequestId::Number(1));
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}1{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert_eq!(refusal(deep.as_bytes()).map(|refused| refused.to), Some(one()));
        for (odd, to) in [
            ("[]", To::Unnamed),
            ("5", To::Unnamed),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, To::Unnamed),
            (r#"{"jsonrpc":"2.0","id":1}"#, one()),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, one()),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, one()),
            (r#"{"id":"a","method":"ping"}"#, To::Request(RequestId::String("a".into()))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, To::Unnamed),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, To::Unnamed),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, one()),
            (r#"{"jsonrpc":"2.0","method":5}"#, To::Unnamed),
            (r#"{"method":"notifications/initialized"}"#, To::Nobody),
            (r#"{"id":1,"result":{}}"#, To::Nobody),
        ] {
            let refused = refusal(odd.as_bytes()).unwrap_or_else(|| panic!("{odd}"));
            assert_eq!((refused.to, refused.error.code.0), (to, -32600), "{odd}");
        }
        for fine in [
            r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":5}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/anything"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#,
        ] {
            assert_eq!(refusal(fine.as_bytes()), None, "{fine}");
        }
    }
}
