//! The rules that a definition keeps.
//!
//! Whether the JSON Schemas in it can be used, and whether defaults satisfy them, takes a validator: `haft-schema`
//! checks that.

mod command;
mod http;
mod mcp;
mod names;
mod parameters;

use crate::{Constraints, IsolationLevel, Source, ToolDefinition, iso_duration};
use names::{is_reserved, is_semver, is_snake_case, shown_name, snake_case};
use serde_json::Value;
use std::{fmt, ops::RangeInclusive, time::Duration};

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

impl std::error::Error for DefinitionProblem {}

const NAME_CHARACTERS: usize = 64;
const DESCRIPTION_CHARACTERS: usize = 1024;
const TITLE_CHARACTERS: usize = 128;
const VERSION_CHARACTERS: usize = 32;
const TIME: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);
const OUTPUT: RangeInclusive<u64> = 1024..=100 * 1024 * 1024;

/// The problems so far.
#[derive(Default)]
struct Found(Vec<DefinitionProblem>);

impl Found {
    fn add(&mut self, place: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) {
        self.0.push(DefinitionProblem { place: place.into(), problem: problem.into(), fix: fix.into() });
    }
}

impl ToolDefinition {
    /// Every rule that it breaks; empty when it is fine.
    ///
    /// ```
    /// use haft_core::ToolDefinition;
    /// assert_eq!(ToolDefinition::new("word_count", "Counts the words of a text").check(), []);
    /// let problems = ToolDefinition::new("run", "").check();
    /// assert_eq!(problems[0].to_string(), "name: `run` is a reserved word; say what it works on, such as `run_report`");
    /// assert_eq!(problems[1].place, "description");
    /// ```
    pub fn check(&self) -> Vec<DefinitionProblem> {
        let mut found = Found::default();
        name(&self.name, &mut found);
        title(self.title.as_deref(), &mut found);
        description(&self.description, &mut found);
        parameters::check(&self.parameters, &mut found);
        output_schema(self.output_schema.as_ref(), &mut found);
        settings_schema(self.settings_schema.as_ref(), &mut found);
        constraints(&self.constraints, self.source, &mut found);
        permissions(&self.required_permissions, &mut found);
        if self.cacheable && self.constraints.allow_side_effects {
            found.add(
                "cacheable",
                "a tool with side effects cannot be answered from a cache",
                "set constraints.allowSideEffects to false, or cacheable to false",
            );
        }
        if let Some(Err(bad)) = self.retry.as_ref().map(|retry| retry.check()) {
            found.add("retry", bad.to_string(), "use fewer retries, or errors that an attempt can end with");
        }
        version(self.version.as_deref(), &mut found);
        aliases(&self.name, &self.aliases, &mut found);
        command::check(self, &mut found);
        http::check(self, &mut found);
        mcp::check(self, &mut found);
        if self.flow.is_some() && self.source != Source::Flow {
            found.add("flow", "the source of this tool is no flow", "set source to `flow`, or remove it");
        }
        found.0
    }
}

fn name(name: &str, found: &mut Found) {
    let shown = shown_name(name);
    if name.is_empty() {
        found.add("name", "it is empty", "say what the tool does, such as `read_file`");
    } else if !is_snake_case(name) {
        let example = snake_case(name);
        let fix = format!("use only a-z, 0-9 and _, and begin with a letter, such as `{example}`");
        found.add("name", format!("`{shown}` is not a valid name"), fix);
    } else if name.len() > NAME_CHARACTERS {
        found.add("name", format!("it has {} characters", name.len()), "use at most 64");
    } else if is_reserved(name) {
        let fix = format!("say what it works on, such as `{name}_report`");
        found.add("name", format!("`{shown}` is a reserved word"), fix);
    }
}

fn title(title: Option<&str>, found: &mut Found) {
    let Some(title) = title else { return };
    let characters = title.chars().count();
    if title.trim().is_empty() {
        found.add("title", "it is empty", "give it a name for people, or remove it");
    } else if characters > TITLE_CHARACTERS {
        found.add("title", format!("it has {characters} characters, and 128 is the most"), "shorten it");
    }
}

fn description(description: &str, found: &mut Found) {
    let characters = description.chars().count();
    if description.trim().is_empty() {
        found.add("description", "it is empty", "say what the tool does, in one sentence");
    } else if characters > DESCRIPTION_CHARACTERS {
        let problem = format!("it has {characters} characters, and 1024 is the most");
        found.add("description", problem, "shorten it");
    }
}

fn version(version: Option<&str>, found: &mut Found) {
    let Some(version) = version else { return };
    let characters = version.chars().count();
    if characters > VERSION_CHARACTERS {
        let problem = format!("it has {characters} characters, and 32 is the most");
        found.add("version", problem, "shorten what follows the three numbers");
    } else if !is_semver(version) {
        let problem = format!("`{}` is not a semantic version", shown_name(version));
        found.add("version", problem, "use three numbers, such as `1.0.0`");
    }
}

fn output_schema(schema: Option<&Value>, found: &mut Found) {
    if schema.is_some_and(|schema| !schema.is_object() && !schema.is_boolean()) {
        found.add("outputSchema", "it is not a JSON Schema", "use an object or a boolean");
    }
}

fn settings_schema(schema: Option<&Value>, found: &mut Found) {
    if schema.is_some_and(|schema| !schema.is_object()) {
        found.add(
            "settingsSchema",
            "it is not the JSON Schema of an object",
            "use an object with `properties`",
        );
    }
}

fn permissions(permissions: &[String], found: &mut Found) {
    for (index, permission) in permissions.iter().enumerate() {
        let place = format!("requiredPermissions[{index}]");
        let shown = shown_name(permission);
        if permission.is_empty() || permission.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let fix = "use words and dots, such as `tool.filesystem.read`";
            found.add(place, format!("`{shown}` is not a permission"), fix);
        } else if permission.contains('*') {
            let fix = "name each permission that it needs; `*` is for those who hold them";
            found.add(place, format!("`{shown}` has a `*`"), fix);
        } else if permissions[..index].contains(permission) {
            found.add(place, format!("`{shown}` is there twice"), "remove one");
        }
    }
}

fn aliases(name: &str, aliases: &[String], found: &mut Found) {
    for (index, alias) in aliases.iter().enumerate() {
        let place = format!("aliases[{index}]");
        let shown = shown_name(alias);
        // Aliases keep the spelling that other systems use (`ReadFile`), so only their size and shape matter.
        let is_name = (1..=NAME_CHARACTERS).contains(&alias.len())
            && alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let problem = format!("`{shown}` is not a name");
            found.add(place, problem, "use 1 to 64 letters, digits and _");
        } else if is_reserved(&alias.to_ascii_lowercase()) {
            found.add(place, format!("`{shown}` is a reserved word"), "use another word, or remove it");
        } else if alias.eq_ignore_ascii_case(name) {
            let problem = format!("`{shown}` is the tool's own name, as names are taken in any case");
            found.add(place, problem, "remove it");
        } else if aliases[..index].iter().any(|earlier| earlier.eq_ignore_ascii_case(alias)) {
            found.add(place, format!("`{shown}` is there twice"), "remove one");
        }
    }
}

fn constraints(constraints: &Constraints, source: Source, found: &mut Found) {
    let max = constraints.max_execution_time;
    if !TIME.contains(&max) {
        let problem = format!("{} is out of range", iso_duration::format(max));
        found.add("constraints.maxExecutionTime", problem, "use PT1S to PT10M");
    }
    if let Some(default) = constraints.default_timeout
        && (default.is_zero() || default > max)
    {
        let problem = format!("{} is zero or above maxExecutionTime", iso_duration::format(default));
        let fix = format!("use at most {}", iso_duration::format(max));
        found.add("constraints.defaultTimeout", problem, fix);
    }
    if !OUTPUT.contains(&constraints.max_output_size) {
        let problem = format!("{} bytes is out of range", constraints.max_output_size);
        found.add("constraints.maxOutputSize", problem, "use 1024 to 104857600");
    }
    if constraints.max_argument_size.is_some_and(|bytes| bytes < 2) {
        let problem = "no call could be made, as the empty arguments `{}` have 2 bytes";
        found.add("constraints.maxArgumentSize", problem, "use at least 2, or remove it");
    }
    // Code that somebody else wrote never runs inside haft's own process.
    let foreign = match source {
        Source::Command | Source::Wasm => true,
        Source::BuiltIn | Source::Http | Source::Mcp | Source::Flow | Source::Declared => false,
    };
    if foreign && constraints.required_isolation == IsolationLevel::None {
        let problem = "None is for code that is linked into the program";
        found.add("constraints.requiredIsolation", problem, "use Standard, Strict or Restricted");
    }
}
