//! The tools that come with haft, one folder or file each. None changes or touches anything outside by itself.
//!
//! | tool | what it does |
//! |---|---|
//! | `validate_content` | says whether a text is valid JSON or TOML, and whether it fits a JSON Schema |
//! | `inspect_tool` | says what a tool takes, gives and may do |
//! | `get_metrics` | says how often tools were called, how it went, and how long it took |
//! | `get_state` | says what runs for the tenant: calls, sandboxes, tasks |
//! | `get_logs` | lists calls that ended lately |
//! | `read_output` | reads on in an output that was too long for its result: bytes, lines, what matches |
//! | `search_tools` | finds the tools that can do something, from a few words about it |
//! | `call_tool` | calls another tool, through every check that a direct call goes through |
//!
//! With `search_tools` and `call_tool`, a model that has many tools sees two of them.
//!
//! [`command_tools`] gives the tools that run programs, and [`CommandTool`] makes one of any program: see [`commands`].
//! [`HttpTool`] makes a tool of any HTTP service: see [`http`].
//! [`file_tools`] gives the tools for files: see [`files`].
//!
//! ```
//! let names: Vec<_> = haft_tools::builtin().iter().map(|tool| tool.definition().name.clone()).collect();
//! let all = "call_tool get_logs get_metrics get_state inspect_tool read_output search_tools validate_content";
//! assert_eq!(names.join(" "), all);
//! ```

mod call_tool;
pub mod changing;
pub mod commands;
pub mod describe;
pub mod files;
mod get_logs;
mod get_metrics;
mod get_state;
pub mod http;
mod inspect_tool;
mod read_output;
mod search_tools;
mod validate_content_tool;
mod worded;
pub mod worker;

pub mod validate_content;

pub use call_tool::{CallTool, CallToolArgs};
pub use changing::change_set_tools;
pub use commands::{CommandTool, CommandToolSettings, command_tools};
pub use files::{Encoding, FileToolSettings, Glob, ListDirectory, ReadFile, SearchFiles, file_tools};
pub use get_logs::{GetLogs, GetLogsArgs};
pub use get_metrics::GetMetrics;
pub use get_state::GetState;
pub use http::HttpTool;
pub use inspect_tool::InspectTool;
pub use read_output::{OutputPart, ReadOutput, ReadOutputArgs};
pub use search_tools::{SearchTools, SearchToolsArgs};
pub use validate_content_tool::ValidateContent;

use haft_core::{Category, Risk, Source, ToolDefinition, suggest};
use haft_sdk::{Tool, capability::EngineView, typed};

/// Every tool that comes with haft, by name.
///
/// ```
/// assert!(haft_tools::builtin().iter().all(|tool| !tool.definition().has_side_effects()));
/// ```
pub fn builtin() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(typed(CallTool)),
        Box::new(typed(GetLogs)),
        Box::new(typed(GetMetrics)),
        Box::new(typed(GetState)),
        Box::new(typed(InspectTool)),
        Box::new(typed(ReadOutput)),
        Box::new(typed(SearchTools)),
        Box::new(typed(ValidateContent)),
    ]
}

/// What all of them have in common.
fn harmless(definition: &mut ToolDefinition, title: &str, description: &str) {
    definition.title = Some(title.to_owned());
    definition.description = description.to_owned();
    definition.category = Category::System;
    definition.constraints.allow_side_effects = false;
    definition.risk = Some(Risk::Low);
    definition.idempotent = true;
    definition.version = Some("1.0.0".to_owned());
    definition.source = Source::BuiltIn;
}

/// What to tell somebody who named a tool that is not there.
fn no_such_tool(engine: &dyn EngineView, name: &str) -> String {
    const MOST: usize = 20;
    let definitions = engine.definitions();
    let known = definitions
        .iter()
        .flat_map(|definition| std::iter::once(&definition.name).chain(&definition.aliases))
        .map(String::as_str);
    let mut text = format!("There is no tool named `{}`.", haft_core::text::one_line(name, 80));
    if let Some(near) = suggest::nearest(name, known) {
        text.push_str(&format!(" Did you mean `{near}`?"));
    }
    let names: Vec<_> =
        definitions.iter().take(MOST).map(|definition| format!("`{}`", definition.name)).collect();
    if !names.is_empty() {
        let more = match definitions.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        text.push_str(&format!(" There are {}{more}", names.join(", ")));
    }
    text
}
