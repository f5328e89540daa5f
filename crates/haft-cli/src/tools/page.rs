//! All about one tool, on one page.

use super::super::{
    console::{QUIET, STRONG},
    layout,
};
use haft::{Registration, Source, ToolDefinition};
use haft_core::text::{one_line, people_text};
use haft_tools::describe::{self, ParameterRow};

/// All about one tool.
pub(super) fn of(registration: &Registration, width: Option<usize>) -> String {
    let definition = &registration.definition;
    let title = definition.title.as_deref().map(|title| format!("  {}", one_line(title, 80)));
    let version = definition.version.as_deref().map(|version| format!(" {}", one_line(version, 40)));
    let mut out = format!(
        "{STRONG}{}{STRONG:#}{}{}\n",
        definition.name,
        version.unwrap_or_default(),
        title.unwrap_or_default()
    );
    out.push_str(&layout::indented(&people_text(&definition.description), 2, width));
    let rows = describe::parameters(definition);
    out.push_str(&format!("\n{STRONG}Parameters{STRONG:#}\n"));
    if rows.is_empty() {
        out.push_str("  none\n");
    }
    let described: Vec<(String, String)> = rows.iter().map(in_columns).collect();
    out.push_str(&moved_in(&layout::list(&described, width.map(|width| width.saturating_sub(2)))));
    out.push_str(&format!("\n{STRONG}Facts{STRONG:#}\n"));
    for (name, value) in describe::facts(definition) {
        out.push_str(&layout::indented(&format!("{name}: {}", one_line(&value, 400)), 2, width));
    }
    out.push_str(&format!("\n{STRONG}Here{STRONG:#}\n"));
    for line in here(registration) {
        out.push_str(&layout::indented(&line, 2, width));
    }
    out.push_str(&format!("\n{STRONG}Example{STRONG:#}\n  {}\n", example(definition, &rows)));
    out
}

/// Where it comes from, whether it may be called, and with which settings.
fn here(registration: &Registration) -> Vec<String> {
    let name = &registration.definition.name;
    let mut lines = Vec::new();
    lines.push(match &registration.registered_by {
        _ if registration.is_built_in => "Built in".to_owned(),
        by => {
            let at = registration.registered_at.to_string();
            let day = at.get(..10).unwrap_or(&at);
            format!("Added by {} on {day}", one_line(by.as_deref().unwrap_or("somebody"), 80))
        }
    });
    lines.push(match registration.enabled {
        true => "Enabled".to_owned(),
        false => format!("Disabled {QUIET}(`haft tools enable {name}` enables it){QUIET:#}"),
    });
    if let Some(command) = &registration.definition.command {
        let words: Vec<&str> =
            std::iter::once(&command.program).chain(&command.args).map(String::as_str).collect();
        lines.push(format!("Runs {} in a jail", one_line(&words.join(" "), 400)));
    } else if let Some(mcp) = &registration.definition.mcp {
        let server = one_line(&mcp.server, 80);
        lines.push(match (&mcp.program, &mcp.url) {
            (Some(program), _) => {
                let words: Vec<&str> =
                    std::iter::once(program).chain(&mcp.args).map(String::as_str).collect();
                let words = one_line(&words.join(" "), 400);
                format!("Asks the MCP server {server}: runs {words} in a jail")
            }
            (None, url) => {
                let url = one_line(url.as_deref().unwrap_or("nowhere"), 400);
                format!("Asks the MCP server {server} at {url}")
            }
        });
    } else if let Some(what) = only_described(&registration.definition) {
        lines.push(format!("{what}; nothing here can run it yet"));
    }
    lines.extend(haft_definition::dialect_notes(&registration.definition));
    for (key, value) in registration.settings.iter() {
        lines.push(format!("Setting {} = {}", one_line(key, 80), one_line(&value.to_string(), 200)));
    }
    lines
}

/// Of what there is only the description here.
fn only_described(definition: &ToolDefinition) -> Option<&'static str> {
    if definition.says_what_runs() {
        return None;
    }
    Some(match definition.source {
        Source::BuiltIn => return None,
        Source::Declared => "Only declared",
        Source::Command => "A program",
        Source::Http => "An HTTP service",
        Source::Wasm => "A WebAssembly module",
        Source::Mcp => "A tool of an MCP server",
        Source::Flow => "A flow of other tools",
    })
}

fn in_columns(row: &ParameterRow) -> (String, String) {
    let need = match (&row.default, row.required) {
        (Some(default), _) => format!("default {default}"),
        (None, true) => "required".to_owned(),
        (None, false) => "optional".to_owned(),
    };
    let text = format!("{}, {need}\n{}", row.kind, row.description);
    (one_line(&row.name, 64), people_text(text.trim_end()).into_owned())
}

fn moved_in(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// A call that could be typed.
pub(super) fn example(definition: &ToolDefinition, rows: &[ParameterRow]) -> String {
    let mut text = format!("haft call {}", definition.name);
    for row in rows.iter().filter(|row| row.required) {
        let value = match row.kind.split([' ', ',']).next().unwrap_or_default() {
            "integer" => "1",
            "number" => "1.5",
            "boolean" => "true",
            "list" => "'[]'",
            "object" => "'{}'",
            kind if kind.starts_with('"') => kind.trim_matches('"'),
            _ => "TEXT",
        };
        text.push_str(&format!(" {}={value}", row.name));
    }
    people_text(&text).into_owned()
}
