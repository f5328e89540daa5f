//! The rules for what a tool takes.

use super::{
    Found, NAME_CHARACTERS,
    names::{is_snake_case, shown_name, snake_case},
};
use crate::{Parameter, ParameterType, Parameters};
use serde_json::{Map, Value};

/// Characters of a value that a problem shows.
const SHOWN: usize = 80;

pub(super) fn check(parameters: &Parameters, found: &mut Found) {
    match parameters {
        Parameters::List(list) => {
            for index in 0..list.len() {
                declared(list, index, found);
            }
        }
        Parameters::Schema(Value::Object(schema)) => {
            if schema.get("type").is_some_and(|kind| kind != "object") {
                let fix = "use `{\"type\": \"object\", \"properties\": {…}}`";
                found.add("parameters.type", "arguments are always an object", fix);
            }
        }
        Parameters::Schema(_) => found.add(
            "parameters",
            "it is neither a list of parameters nor a JSON Schema object",
            "use `[…]` or `{\"type\": \"object\", \"properties\": {…}}`",
        ),
    }
}

fn declared(list: &[Parameter], index: usize, found: &mut Found) {
    let parameter = &list[index];
    let place = |field: &str| format!("parameters[{index}].{field}");
    let shown = shown_name(&parameter.name);
    if !is_snake_case(&parameter.name) || parameter.name.len() > NAME_CHARACTERS {
        let example = snake_case(&parameter.name);
        let fix = format!("use snake_case of at most 64 characters, such as `{example}`");
        found.add(place("name"), format!("`{shown}` is not a valid name"), fix);
    }
    if list[..index].iter().any(|earlier| earlier.name == parameter.name) {
        found.add(place("name"), format!("`{shown}` is there twice"), "rename or remove one");
    }
    if let Some(value) = &parameter.default {
        default(parameter, value, &place("default"), found);
    }
    choices(parameter, &place, found);
    schema(parameter, &place, found);
}

fn default(parameter: &Parameter, default: &Value, place: &str, found: &mut Found) {
    if parameter.required {
        let fix = "set required to false, or remove the default";
        found.add(place, "a required parameter cannot have a default", fix);
    }
    if !parameter.kind.fits(default) {
        let problem = format!("{} is not of type {:?}", shown(default), parameter.kind);
        found.add(place, problem, "use a value of the parameter's type, or remove the default");
    } else if let Some(choices) = &parameter.choices
        && !choices.iter().any(|choice| same(choice, default))
    {
        found.add(place, format!("{} is not in enum", shown(default)), "use one of the choices");
    }
}

fn choices(parameter: &Parameter, place: &impl Fn(&str) -> String, found: &mut Found) {
    let Some(choices) = &parameter.choices else { return };
    if choices.is_empty() {
        found.add(place("enum"), "it is empty", "name the choices, or remove it");
    }
    for (index, choice) in choices.iter().enumerate() {
        let place = format!("{}[{index}]", place("enum"));
        if !parameter.kind.fits(choice) {
            let problem = format!("{} is not of type {:?}", shown(choice), parameter.kind);
            found.add(place, problem, "use values of the parameter's type");
        } else if choices[..index].iter().any(|earlier| same(earlier, choice)) {
            found.add(place, format!("{} is there twice", shown(choice)), "remove one");
        }
    }
}

fn schema(parameter: &Parameter, place: &impl Fn(&str) -> String, found: &mut Found) {
    match &parameter.schema {
        Some(Value::Object(schema)) => said_twice(parameter, schema, &place("schema"), found),
        Some(_) => found.add(place("schema"), "it is not a JSON Schema object", "use an object"),
        None if parameter.choices.is_some() => {}
        None => {
            let example = match parameter.kind {
                ParameterType::Array => "{\"items\": {\"type\": \"string\"}}",
                ParameterType::Object => "{\"properties\": {\"id\": {\"type\": \"string\"}}}",
                ParameterType::String
                | ParameterType::Integer
                | ParameterType::Number
                | ParameterType::Boolean => return,
            };
            let problem = format!("a parameter of type {:?} needs a schema", parameter.kind);
            found.add(place("schema"), problem, format!("add one, such as {example}"));
        }
    }
}

/// What the parameter says itself and its schema says again is harmless where both say the same.
fn said_twice(parameter: &Parameter, schema: &Map<String, Value>, place: &str, found: &mut Found) {
    let kind = Value::from(parameter.kind.schema_name());
    let description = Value::from(parameter.description.as_str());
    let choices = parameter.choices.clone().map(Value::Array);
    let own = [
        ("type", Some(&kind)),
        ("description", Some(&description)),
        ("default", parameter.default.as_ref()),
        ("enum", choices.as_ref()),
    ];
    for (word, own) in own {
        let Some(other) = schema.get(word).filter(|other| Some(*other) != own) else { continue };
        let problem = match own {
            Some(own) => format!("it says {}, and the parameter itself {}", shown(other), shown(own)),
            None => format!("it says {}, and the parameter itself nothing", shown(other)),
        };
        let fix = format!("say it once, as `{word}` of the parameter, and remove it from the schema");
        found.add(format!("{place}.{word}"), problem, fix);
    }
}

/// Whether two values are the same to JSON Schema, for which 1 is 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}
