//! There may be ten thousand tools, so a compiled schema must be small. One test, alone in its process: it measures
//! that.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::ToolDefinition;
use haft_schema::ArgumentSchema;

/// A tool with five parameters, as tools are.
const TOOL: &str = r#"{
    "name": "search_files",
    "description": "Search the files below a folder for lines that match a regular expression",
    "parameters": [
        {"name": "pattern", "description": "A regular expression to look for", "type": "String", "required": true},
        {"name": "path", "description": "The folder to start from, relative to the project", "type": "String",
            "required": true},
        {"name": "max_results", "description": "How many matches to return at most", "type": "Integer", "default": 100,
            "schema": {"minimum": 1, "maximum": 1000}},
        {"name": "case_sensitive", "description": "Whether upper and lower case differ", "type": "Boolean",
            "default": true},
        {"name": "include", "description": "Only files whose names match one of these", "type": "Array",
            "schema": {"items": {"type": "string"}, "maxItems": 20}}
    ]
}"#;
const TOOLS: usize = 4000;
const MOST: usize = 8 * 1024;

/// Bytes of memory that the process holds.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<usize>().ok()? * 4096)
}

#[test]
fn a_compiled_tool_takes_less_than_8_kib() {
    let Some(_) = resident() else {
        return haft_testkit::not_run(
            "a_compiled_tool_takes_less_than_8_kib",
            "there is no /proc/self/statm",
        );
    };
    let definition: ToolDefinition = serde_json::from_str(TOOL).unwrap();
    // What is made once, and what compiling leaves free for later.
    let mut tools: Vec<ArgumentSchema> = Vec::with_capacity(TOOLS);
    (0..50).for_each(|_| drop(ArgumentSchema::of(&definition).unwrap()));
    let before = resident().unwrap();
    tools.extend((0..TOOLS).map(|_| ArgumentSchema::of(&definition).unwrap()));
    let each = (resident().unwrap() - before) / TOOLS;
    println!("{each} bytes for each of {} compiled tools", tools.len());
    assert!(each < MOST, "{each} bytes");
}
