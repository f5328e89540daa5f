//! One tool in each dialect.

use crate::{
    Change, Dialect, ExportOptions,
    back::Back,
    dialect::Limits,
    remark::Notes,
    schema::{expand::Expander, gemini, plain, root, strict, strict_limits},
};
use haft_core::{ToolDefinition, text};
use serde_json::{Map, Value, json};

fn described(definition: &ToolDefinition, limits: &Limits, owner: &str, notes: &mut Notes) -> String {
    let whole = &definition.description;
    let Some(most) = limits.description.filter(|most| whole.chars().nth(*most).is_some()) else {
        return whole.clone();
    };
    let cut: String = whole.chars().take(most - 1).collect();
    let what = format!("only the first {} of {} characters are there", most - 1, whole.chars().count());
    notes.add("/description", Change::Shortened, what, format!("{owner} takes at most {most}"));
    format!("{}…", cut.trim_end())
}

const AT: &str = "/parameters";

pub(crate) fn openai(
    dialect: Dialect,
    options: ExportOptions,
    definition: &ToolDefinition,
    name: &str,
    back: &mut Back,
    notes: &mut Notes,
) -> Result<Value, &'static str> {
    let schema = definition.parameters.to_schema();
    let description = described(definition, &dialect.limits(), dialect.owner(), notes);
    let strictly = if options.strict { strict_parameters(&schema, definition, back, notes) } else { None };
    let is_strict = strictly.is_some();
    let parameters = match strictly {
        Some(parameters) => parameters,
        None => {
            let mut expander = Expander::new(&schema, "OpenAI has no reference and no `allOf` at the top");
            let top = root::object(&schema, AT, notes)?;
            let mut top = root::flat(top, &mut expander, AT, "OpenAI", notes)?;
            root::without(&mut top, &["enum", "const", "not"], "OpenAI", AT, notes);
            plain::put_right(&mut top, AT, 0, notes);
            plain::without_dead_references(&mut top, AT, notes);
            top
        }
    };
    Ok(match dialect {
        // Left out, it means false here, and true in the other one.
        Dialect::OpenAiChat if !is_strict => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": parameters},
        }),
        Dialect::OpenAiChat => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": parameters, "strict": true},
        }),
        _ => json!({
            "type": "function",
            "name": name,
            "description": description,
            "parameters": parameters,
            "strict": is_strict,
        }),
    })
}

/// The parameters for strict mode; `None`, with a remark, where they cannot be said.
fn strict_parameters(
    schema: &Value,
    definition: &ToolDefinition,
    back: &mut Back,
    notes: &mut Notes,
) -> Option<Map<String, Value>> {
    // What was tried for nothing leaves no remarks.
    let mut tried = Notes::new(&definition.name);
    let mut expander = Expander::new(schema, strict::WHY_INLINE);
    let top = root::object(schema, AT, &mut tried)
        .and_then(|top| root::flat(top, &mut expander, AT, "OpenAI", &mut tried));
    let written = top.map_err(|why| strict::Refusal { at: AT.to_owned(), why }).and_then(|mut top| {
        root::without(&mut top, &["enum", "const", "not"], "OpenAI", AT, &mut tried);
        let mut found = Back::default();
        let mut writer = strict::Writer { expander, notes: &mut tried };
        let written = writer.schema(&Value::Object(top), AT, 0, &mut found)?;
        match strict_limits::exceeded(&written) {
            Some(why) => Err(strict::Refusal { at: AT.to_owned(), why }),
            None => Ok((written, found)),
        }
    });
    match written {
        Ok((written, found)) => {
            notes.take(tried);
            *back = found;
            Some(written)
        }
        Err(refusal) => {
            notes.add(&refusal.at, Change::Loosened, "the tool is not strict", refusal.why);
            None
        }
    }
}

pub(crate) fn anthropic(
    definition: &ToolDefinition,
    name: &str,
    limits: &Limits,
    back: &mut Back,
    notes: &mut Notes,
) -> Result<Value, &'static str> {
    let schema = definition.parameters.to_schema();
    let mut expander = Expander::new(&schema, "Anthropic has no reference and no `allOf` at the top");
    let top = root::object(&schema, AT, notes)?;
    let mut top = root::flat(top, &mut expander, AT, "Anthropic", notes)?;
    if let Some(rule) = limits.property {
        back.renamed = root::rename_properties(&mut top, rule, "Anthropic", AT, notes);
    }
    plain::without_dead_references(&mut top, AT, notes);
    let description = described(definition, limits, "Anthropic", notes);
    Ok(json!({"name": name, "description": description, "input_schema": top}))
}

pub(crate) fn gemini(
    definition: &ToolDefinition,
    name: &str,
    limits: &Limits,
    back: &mut Back,
    notes: &mut Notes,
) -> Result<Value, &'static str> {
    let schema = definition.parameters.to_schema();
    let mut expander = Expander::new(&schema, gemini::WHY_INLINE);
    let top = root::object(&schema, AT, notes)?;
    let mut top = root::flat(top, &mut expander, AT, "Gemini", notes)?;
    if let Some(rule) = limits.property {
        back.renamed = root::rename_properties(&mut top, rule, "Gemini", AT, notes);
    }
    let parameters = gemini::Writer { expander, notes }.schema(&Value::Object(top), AT, 0);
    let description = described(definition, limits, "Gemini", notes);
    Ok(json!({"name": name, "description": description, "parameters": parameters}))
}

pub(crate) fn mcp(definition: &ToolDefinition, name: &str, notes: &mut Notes) -> Result<Value, &'static str> {
    let mut input = root::object(&definition.parameters.to_schema(), AT, notes)?;
    root::tidy(&mut input, AT, notes);
    plain::without_dead_references(&mut input, AT, notes);
    let mut tool = Map::new();
    tool.insert("name".into(), name.into());
    if let Some(title) = &definition.title {
        tool.insert("title".into(), title.clone().into());
    }
    tool.insert("description".into(), definition.description.clone().into());
    tool.insert("inputSchema".into(), input.into());
    if let Some(output) = definition.output_schema.as_ref().and_then(|schema| mcp_output(schema, notes)) {
        tool.insert("outputSchema".into(), output.into());
    }
    let mut annotations = Map::new();
    annotations.insert("readOnlyHint".into(), (!definition.has_side_effects()).into());
    annotations.insert("idempotentHint".into(), definition.idempotent.into());
    if let Some(destructive) = definition.annotations.destructive {
        annotations.insert("destructiveHint".into(), destructive.into());
    }
    if let Some(open_world) = definition.annotations.open_world {
        annotations.insert("openWorldHint".into(), open_world.into());
    }
    tool.insert("annotations".into(), annotations.into());
    Ok(Value::Object(tool))
}

/// MCP up to 2025-11-25 takes only objects as structured output.
fn mcp_output(schema: &Value, notes: &mut Notes) -> Option<Map<String, Value>> {
    const AT: &str = "/outputSchema";
    let is_object = |schema: &Map<String, Value>| match schema.get("type") {
        None => schema.contains_key("properties"),
        Some(kind) => kind == "object",
    };
    match schema {
        Value::Object(schema) if is_object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".into(), "object".into());
            root::tidy(&mut schema, AT, notes);
            Some(schema)
        }
        // Says nothing about the output.
        Value::Bool(true) => None,
        Value::Object(schema) if schema.is_empty() => None,
        _ => {
            let kind = schema.get("type").map_or_else(|| "something else".to_owned(), ToString::to_string);
            let what = format!("the schema of its output ({}) is left out", text::one_line(&kind, 40));
            notes.add(AT, Change::Dropped, what, "MCP takes only objects");
            None
        }
    }
}
