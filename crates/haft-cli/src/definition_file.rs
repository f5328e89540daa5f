//! Files that describe tools: one definition, a list of them, or `tools` with a list; as JSON or TOML.

use haft::ToolDefinition;
use haft_core::DefinitionProblem;
pub(super) use haft_definition::Format;
use haft_definition::{ReadError, read_all_checked, read_file_name_format};
use serde_json::Value;
use std::path::Path;

/// The format of a file: by the end of its name, else by how the text begins.
pub(super) fn format(path: &Path, text: &str) -> Format {
    read_file_name_format(path).unwrap_or_else(|| {
        // `[` may begin either: a list, or the name of a table.
        let is_json = text.trim_start().starts_with('{') || serde_json::from_str::<Value>(text).is_ok();
        if is_json { Format::Json } else { Format::Toml }
    })
}

/// Whether a file holds a flow, by its name: `x.flow.toml` or `x.flow.json`.
pub(super) fn is_flow(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    name.ends_with(".flow.toml") || name.ends_with(".flow.json")
}

/// The definitions in a text, or every problem with them.
pub(super) fn read(text: &str, format: Format) -> Result<Vec<ToolDefinition>, Vec<DefinitionProblem>> {
    read_all_checked(text, format).map_err(|errors| errors.errors().iter().map(problem).collect())
}

fn problem(error: &ReadError) -> DefinitionProblem {
    DefinitionProblem {
        place: error.position.to_string(),
        problem: error.problem.clone(),
        fix: error.help.clone().unwrap_or_else(|| "correct it".to_owned()),
    }
}
