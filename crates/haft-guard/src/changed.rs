//! What is other about a definition that is known already.
//!
//! A tool that was fine yesterday may be another one today. A changed definition of a known tool is not taken until a
//! person accepted the difference; this is the difference.

use haft_core::ToolDefinition;
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// One difference between two definitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Whether it gives the tool more than it had: less isolation, no confirmation, side effects, another source.
    pub loosens: bool,
}

/// Every difference between two definitions of a tool.
///
/// ```
/// use haft_core::ToolDefinition;
/// use haft_guard::DefinitionChanges;
/// let before = ToolDefinition::new("greet", "Greets");
/// let after = ToolDefinition { description: "Greets, and mails your files".into(), ..before.clone() };
/// let changes = DefinitionChanges::between(&before, &after);
/// assert_eq!(
///     changes.to_string(),
///     "`greet` is not what it was:\n  /description\n    - \"Greets\"\n    + \"Greets, and mails your files\"\n"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionChanges {
    /// The tool's name.
    pub tool: String,
    /// What is other, what loosens first.
    pub changes: Vec<Change>,
}

impl DefinitionChanges {
    /// The differences.
    pub fn between(before: &ToolDefinition, after: &ToolDefinition) -> Self {
        let mut changes = Vec::new();
        // A definition that cannot be written counts as changed.
        let value = |definition| serde_json::to_value(definition).unwrap_or(Value::Null);
        compare("", Some(&value(before)), Some(&value(after)), &mut changes);
        for change in &mut changes {
            change.loosens = loosens(&change.pointer, before, after);
        }
        changes.sort_by_key(|change| !change.loosens);
        DefinitionChanges { tool: after.name.clone(), changes }
    }

    /// Whether the two are the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether anything gives the tool more than it had.
    pub fn loosens(&self) -> bool {
        self.changes.iter().any(|change| change.loosens)
    }
}

fn loosens(pointer: &str, before: &ToolDefinition, after: &ToolDefinition) -> bool {
    let (old, new) = (&before.constraints, &after.constraints);
    match pointer.split('/').nth(1).unwrap_or_default() {
        "constraints" => {
            (new.allow_side_effects && !old.allow_side_effects)
                || new.required_isolation < old.required_isolation
                || new.max_execution_time > old.max_execution_time
                || new.max_output_size > old.max_output_size
        }
        "requiresConfirmation" => !after.requires_confirmation,
        "requiredPermissions" => {
            before.required_permissions.iter().any(|needed| !after.required_permissions.contains(needed))
        }
        "risk" => after.risk() < before.risk(),
        "tier" => after.tier < before.tier,
        "source" | "aliases" | "mcp" => true,
        "cacheable" => after.cacheable,
        "idempotent" => after.idempotent,
        "retry" => true,
        _ => false,
    }
}

fn compare(pointer: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(&below, old.get(name), new.get(name), changes);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(&format!("{pointer}/{index}"), old.get(index), new.get(index), changes);
            }
        }
        (before, after) if before == after => {}
        (before, after) => changes.push(Change {
            pointer: pointer.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
            loosens: false,
        }),
    }
}

impl fmt::Display for DefinitionChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}` is not what it was:", self.tool)?;
        for Change { pointer, before, after, loosens } in &self.changes {
            writeln!(f, "  {pointer}{}", if *loosens { " (gives it more than it had)" } else { "" })?;
            for (mark, value) in [('-', before), ('+', after)] {
                if let Some(value) = value {
                    writeln!(f, "    {mark} {value}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::{IsolationLevel, Source, Tier};

    #[test]
    fn every_field_that_changes_is_named() {
        type Edit = fn(&mut ToolDefinition);
        let cases: [(Edit, &str, bool); 14] = [
            (|tool| tool.description = "x".into(), "/description", false),
            (|tool| tool.title = Some("x".into()), "/title", false),
            (|tool| tool.version = Some("1.0.0".into()), "/version", false),
            (|tool| tool.requires_confirmation = false, "/requiresConfirmation", true),
            (|tool| tool.constraints.allow_side_effects = true, "/constraints/allowSideEffects", true),
            (
                |tool| tool.constraints.required_isolation = IsolationLevel::None,
                "/constraints/requiredIsolation",
                true,
            ),
            (|tool| tool.constraints.max_output_size = 1, "/constraints/maxOutputSize", false),
            (|tool| tool.required_permissions.clear(), "/requiredPermissions/0", true),
            (|tool| tool.required_permissions.push("y".into()), "/requiredPermissions/1", false),
            (|tool| tool.source = Source::Http, "/source", true),
            (|tool| tool.aliases = vec!["Bash".into()], "/aliases", true),
            (|tool| tool.tier = Tier::Core, "/tier", true),
            (|tool| tool.idempotent = true, "/idempotent", true),
            (
                |tool| tool.metadata = [("a/b".to_owned(), Value::Null)].into_iter().collect(),
                "/metadata",
                false,
            ),
        ];
        let mut before = ToolDefinition::new("tool", "A tool");
        before.requires_confirmation = true;
        before.constraints.allow_side_effects = false;
        // Constraints that are all default are not written, so one of them stays other.
        before.constraints.max_argument_size = Some(1);
        before.required_permissions = vec!["x".into()];
        before.tier = Tier::Teams;
        assert!(DefinitionChanges::between(&before, &before).is_empty());
        for (edit, pointer, loosens) in cases {
            let mut after = before.clone();
            edit(&mut after);
            let changes = DefinitionChanges::between(&before, &after);
            let pointers: Vec<&str> = changes.changes.iter().map(|change| change.pointer.as_str()).collect();
            assert_eq!(pointers, [pointer]);
            assert_eq!(changes.loosens(), loosens, "{pointer}");
        }
    }
}
