//! `haft tools`: what there is to call.

use super::{
    args::ToolsCommand,
    console::{Console, QUIET, STRONG},
    failure::Failure,
    layout,
    setup::Ground,
};
use crate::ToolDefinition;
use haft_core::text::{one_line, people_text};
use haft_tools::describe::{self, ParameterRow};

pub(super) fn run(command: &ToolsCommand, ground: Ground, console: &mut Console) -> Result<u8, Failure> {
    let haft = ground.setup(console)?.haft;
    match command {
        ToolsCommand::List { json: true } => {
            let definitions = haft.definitions();
            let all: Vec<&ToolDefinition> = definitions.iter().map(|definition| &**definition).collect();
            console.print_json(&all)?;
        }
        ToolsCommand::List { json: false } => {
            let rows: Vec<(String, String)> = haft
                .definitions()
                .iter()
                .map(|definition| (definition.name.clone(), one_line(sentence(definition), 200)))
                .collect();
            let mut text = layout::list(&rows, console.width());
            text.push_str(&format!("\n{QUIET}`haft tools show NAME` has the parameters of one{QUIET:#}\n"));
            console.print(text)?;
        }
        ToolsCommand::Show { name, json } => {
            let Some(definition) = haft.definition(name) else {
                return Err(Failure::NoTool { name: name.clone(), near: haft.nearest(name) });
            };
            if *json {
                console.print_json(&*definition)?;
            } else {
                console.print(page(&definition, console.width()))?;
            }
        }
    }
    Ok(0)
}

/// The first sentence of the description.
fn sentence(definition: &ToolDefinition) -> &str {
    let text = definition.description.trim();
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// All about one tool.
fn page(definition: &ToolDefinition, width: Option<usize>) -> String {
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
    out.push_str(&format!("\n{STRONG}Example{STRONG:#}\n  {}\n", example(definition, &rows)));
    out
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
fn example(definition: &ToolDefinition, rows: &[ParameterRow]) -> String {
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
