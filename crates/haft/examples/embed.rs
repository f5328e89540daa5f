//! A tool of one's own, and a call of it: `cargo run --example embed`.
#![allow(clippy::print_stdout)]
use haft::prelude::*;

/// Estimates how long a text takes to read.
#[derive(Deserialize, JsonSchema)]
struct ReadingTime {
    /// The text to read.
    text: String,
}

async fn reading_time(args: ReadingTime, _cx: ToolCtx) -> Result<String, ToolError> {
    let words = args.text.split_whitespace().count();
    Ok(format!("{words} words, {} min", words.div_ceil(200)))
}

#[tokio::main]
async fn main() -> Result<(), haft::Error> {
    let haft = Haft::builder().tool(tool_fn("reading_time", reading_time).read_only()).build()?;
    let call = ToolCall::new("reading_time", json!({"text": "To be, or not to be"}));
    println!("{}", haft.execute(call).await.text());
    Ok(())
}
