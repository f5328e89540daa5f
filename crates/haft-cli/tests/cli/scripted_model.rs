//! A model server on loopback that asks for the tools of a script, one after the other, and then says that it is done.
//! It speaks as much of Anthropic's messages and of OpenAI's responses as Claude Code and Codex need.

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// One call that the model asks for.
pub(crate) type Asked = (&'static str, Value);

/// What a host told its model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The tools that it offered.
    pub(crate) tools: Vec<String>,
    /// What each call gave, in order, as the host told it.
    pub(crate) results: Vec<String>,
}

/// The server, until the test ends.
pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Heard>>,
}

impl Model {
    pub(crate) fn start(script: Vec<Asked>) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (script, kept) = (Arc::new(script), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, heard) = (Arc::clone(&script), Arc::clone(&kept));
                // A host that goes away is its own matter.
                std::thread::spawn(move || drop(answer(stream, &script, &heard)));
            }
        });
        Model { address, heard }
    }

    pub(crate) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, script: &[Asked], heard: &Mutex<Heard>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap_or(0);
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (kind, text) = match path {
        path if path.contains("count_tokens") => ("application/json", json!({"input_tokens": 1}).to_string()),
        path if path.starts_with("/v1/messages") => {
            ("text/event-stream", events(&messages(&said, script, heard)))
        }
        path if path.contains("/responses") => {
            ("text/event-stream", events(&responses(&said, script, heard)))
        }
        _ => ("application/json", "{}".to_owned()),
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
    )
}

fn events(events: &[Value]) -> String {
    let each = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()));
    each.collect()
}

fn names(said: &Value) -> Vec<String> {
    let tools = said["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().or(tool["type"].as_str())).map(str::to_owned).collect()
}

fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.to_string(),
    }
}

/// Which call is next; `None` where all were made.
fn next<'a>(
    said: &Value,
    script: &'a [Asked],
    heard: &Mutex<Heard>,
    results: Vec<String>,
) -> Option<(usize, &'a Asked)> {
    let tools = names(said);
    let place = results.len();
    // Hosts ask a model for titles and the like, too, and then offer no tools.
    if tools.is_empty() {
        return None;
    }
    *heard.lock().unwrap() = Heard { tools, results };
    script.get(place).map(|asked| (place, asked))
}

fn messages(said: &Value, script: &[Asked], heard: &Mutex<Heard>) -> Vec<Value> {
    let parts = said["messages"].as_array().into_iter().flatten();
    let parts = parts.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let results =
        parts.filter(|part| part["type"] == "tool_result").map(|part| texts(&part["content"])).collect();
    let (block, delta, stop) = match next(said, script, heard, results) {
        Some((place, (tool, input))) => (
            json!({"type": "tool_use", "id": format!("toolu_{place:03}"), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "done"}), "end_turn")
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": said["model"], "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]
}

fn responses(said: &Value, script: &[Asked], heard: &Mutex<Heard>) -> Vec<Value> {
    let items = said["input"].as_array().into_iter().flatten();
    let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    let results = items.filter(is_result).map(|item| texts(&item["output"])).collect();
    let item = match next(said, script, heard, results) {
        Some((place, (tool, input))) => json!({
            "type": "function_call", "id": format!("fc_{place}"), "call_id": format!("call_{place}"), "name": tool,
            "arguments": input.to_string(),
        }),
        None => json!({
            "type": "message", "id": "m1", "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}],
        }),
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null,
        "total_tokens": 2,
    });
    vec![
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": usage}}),
    ]
}
