//! The rules that a definition keeps.

use crate::{Parameter, Parameters, ToolDefinition};
use serde_json::Value;
use std::{fmt, time::Duration};

/// One rule that a definition breaks: where, what, and how to put it right.
///
/// ```
/// let problems = haft_core::ToolDefinition::new("Run Me", "Runs").check();
/// assert_eq!(problems[0].place, "name");
/// assert_eq!(problems[0].fix, "use only a-z, 0-9 and _, and begin with a letter, such as `run_me`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionProblem {
    /// The field, such as `parameters[0].default`.
    pub place: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for DefinitionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.problem, self.fix)
    }
}

const RESERVED: [&str; 4] = ["execute", "run", "call", "invoke"];
const TIME: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);
const OUTPUT: std::ops::RangeInclusive<u64> = 1024..=100 * 1024 * 1024;

impl ToolDefinition {
    /// Every rule that it breaks; empty when it is fine.
    pub fn check(&self) -> Vec<DefinitionProblem> {
        let mut found = Vec::new();
        let mut add = |place: String, problem: String, fix: String| {
            found.push(DefinitionProblem { place, problem, fix });
        };
        name_problem(&self.name, "name", &mut add);
        for (index, alias) in self.aliases.iter().enumerate() {
            // Aliases keep the spelling that other systems use (`ReadFile`), so only their size and shape matter.
            if alias.is_empty()
                || alias.len() > 64
                || !alias.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            {
                add(
                    format!("aliases[{index}]"),
                    format!("`{alias}` is not a name"),
                    "use 1 to 64 letters, digits and _".into(),
                );
            }
        }
        if self.description.trim().is_empty() {
            add("description".into(), "it is empty".into(), "say what the tool does, in one sentence".into());
        } else if self.description.len() > 1024 {
            add(
                "description".into(),
                format!("it has {} bytes, and 1024 is the most", self.description.len()),
                "shorten it".into(),
            );
        }
        if let Some(version) = &self.version
            && !is_semver(version)
        {
            add(
                "version".into(),
                format!("`{version}` is not a semantic version"),
                "use three numbers, such as `1.0.0`".into(),
            );
        }
        self.check_constraints(&mut add);
        match &self.parameters {
            Parameters::List(list) => check_list(list, &mut add),
            Parameters::Schema(schema) if schema.get("type").is_some_and(|kind| kind != "object") => add(
                "parameters.type".into(),
                "arguments are always an object".into(),
                "use `{\"type\": \"object\", \"properties\": {…}}`".into(),
            ),
            Parameters::Schema(_) => {}
        }
        if let Some(schema) = &self.output_schema
            && !schema.is_object()
            && !schema.is_boolean()
        {
            add("outputSchema".into(), "it is not a JSON Schema".into(), "use an object or a boolean".into());
        }
        found
    }

    fn check_constraints(&self, add: &mut impl FnMut(String, String, String)) {
        let constraints = &self.constraints;
        if !TIME.contains(&constraints.max_execution_time) {
            add(
                "constraints.maxExecutionTime".into(),
                format!("{} is out of range", crate::iso_duration::format(constraints.max_execution_time)),
                "use PT1S to PT10M".into(),
            );
        }
        if let Some(default) = constraints.default_timeout
            && (default.is_zero() || default > constraints.max_execution_time)
        {
            add(
                "constraints.defaultTimeout".into(),
                format!("{} is zero or above maxExecutionTime", crate::iso_duration::format(default)),
                format!("use at most {}", crate::iso_duration::format(constraints.max_execution_time)),
            );
        }
        if !OUTPUT.contains(&constraints.max_output_size) {
            add(
                "constraints.maxOutputSize".into(),
                format!("{} bytes is out of range", constraints.max_output_size),
                "use 1024 to 104857600".into(),
            );
        }
        if self.cacheable && constraints.allow_side_effects {
            add(
                "cacheable".into(),
                "a tool with side effects cannot be answered from a cache".into(),
                "set constraints.allowSideEffects to false, or cacheable to false".into(),
            );
        }
    }
}

fn name_problem(name: &str, place: &str, add: &mut impl FnMut(String, String, String)) {
    if !is_snake_case(name) {
        add(
            place.into(),
            format!("`{name}` is not a valid name"),
            format!("use only a-z, 0-9 and _, and begin with a letter, such as `{}`", snake_case(name)),
        );
    } else if name.len() > 64 {
        add(place.into(), format!("it has {} characters", name.len()), "use at most 64".into());
    } else if RESERVED.contains(&name) {
        add(
            place.into(),
            format!("`{name}` is a reserved word"),
            format!("say what it works on, such as `{name}_report`"),
        );
    }
}

fn check_list(list: &[Parameter], add: &mut impl FnMut(String, String, String)) {
    for (index, parameter) in list.iter().enumerate() {
        let place = |field: &str| format!("parameters[{index}].{field}");
        if !is_snake_case(&parameter.name) || parameter.name.len() > 64 {
            add(
                place("name"),
                format!("`{}` is not a valid name", parameter.name),
                format!("use snake_case of at most 64 characters, such as `{}`", snake_case(&parameter.name)),
            );
        }
        if list[..index].iter().any(|earlier| earlier.name == parameter.name) {
            add(place("name"), format!("`{}` is there twice", parameter.name), "rename or remove one".into());
        }
        if let Some(default) = &parameter.default {
            if parameter.required {
                add(
                    place("default"),
                    "a required parameter cannot have a default".into(),
                    "set required to false, or remove the default".into(),
                );
            }
            if !parameter.kind.fits(default) {
                add(
                    place("default"),
                    format!("{default} is not of type {:?}", parameter.kind),
                    "use a value of the parameter's type".into(),
                );
            } else if parameter.choices.as_ref().is_some_and(|choices| !choices.contains(default)) {
                add(place("default"), format!("{default} is not in enum"), "use one of the choices".into());
            }
        }
        check_choices(parameter, &place, add);
    }
}

fn check_choices(
    parameter: &Parameter,
    place: &impl Fn(&str) -> String,
    add: &mut impl FnMut(String, String, String),
) {
    match &parameter.choices {
        Some(choices) if choices.is_empty() => {
            add(place("enum"), "it is empty".into(), "name the choices, or remove it".into());
        }
        Some(choices) => {
            for value in choices.iter().filter(|value| !parameter.kind.fits(value)) {
                add(
                    place("enum"),
                    format!("{value} is not of type {:?}", parameter.kind),
                    "use values of the parameter's type".into(),
                );
            }
        }
        None => {
            let structured =
                matches!(parameter.kind, crate::ParameterType::Array | crate::ParameterType::Object);
            if structured && parameter.schema.is_none() {
                add(
                    place("schema"),
                    format!("a parameter of type {:?} needs a schema", parameter.kind),
                    "add one, such as {\"items\": {\"type\": \"string\"}}".into(),
                );
            }
        }
    }
    if parameter.schema.as_ref().is_some_and(|schema| !matches!(schema, Value::Object(_))) {
        add(place("schema"), "it is not a JSON Schema object".into(), "use an object".into());
    }
}

fn is_snake_case(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            'A'..='Z' => {
                if out.chars().last().is_some_and(|last| last.is_ascii_lowercase() || last.is_ascii_digit()) {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => out.push(c),
            _ if out.is_empty() || out.ends_with('_') => {}
            _ => out.push('_'),
        }
    }
    let trimmed = out.trim_matches('_').trim_start_matches(|c: char| c.is_ascii_digit());
    if trimmed.is_empty() { "my_tool".to_owned() } else { trimmed.chars().take(64).collect() }
}

fn is_semver(version: &str) -> bool {
    if version.len() > 32 {
        return false;
    }
    let (version, build) = version.split_once('+').map_or((version, None), |(v, b)| (v, Some(b)));
    let (core, pre) = version.split_once('-').map_or((version, None), |(v, p)| (v, Some(p)));
    let number = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'))
    };
    let labels = |text: &str| {
        text.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.iter().all(|part| number(part))
        && pre.is_none_or(labels)
        && build.is_none_or(labels)
}
