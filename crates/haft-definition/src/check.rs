//! The rules that a definition keeps, with their places in the text.

use haft_core::{DefinitionProblem, ToolDefinition};

use crate::error::{Position, ReadError, ReadErrors};
use crate::tree::Node;
use crate::{Format, read};

/// Every rule that a definition breaks: those of [`ToolDefinition::check`], schemas that cannot be used, and defaults
/// that do not satisfy them.
///
/// ```
/// use haft_core::ToolDefinition;
/// let mut definition = ToolDefinition::new("ping", "Answers at once");
/// assert!(haft_definition::check(&definition).is_empty());
/// definition.output_schema = Some(serde_json::json!({"type": "text"}));
/// assert_eq!(haft_definition::check(&definition)[0].place, "outputSchema.type");
/// ```
pub fn check(definition: &ToolDefinition) -> Vec<DefinitionProblem> {
    let mut problems = definition.check();
    let found = problems.len();
    for other in haft_schema::check_definition(definition) {
        // A default of the wrong type does not satisfy its schema, either; once is enough.
        if !problems[..found].iter().any(|known| known.place == other.place) {
            problems.push(other);
        }
    }
    problems
}

/// Reads a definition and checks it: everything that is wrong, with its place in the text.
///
/// # Errors
///
/// Those of [`read`](crate::read()), or else the rules that the definition breaks.
///
/// ```
/// use haft_definition::{Format, read_checked};
/// let errors = read_checked("name = 'run'\ndescription = 'Runs'", Format::Toml).unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "error: `name`: `run` is a reserved word at line 1, column 8\n  help: say what it works on, such as `run_report`"
/// );
/// ```
pub fn read_checked(text: &str, format: Format) -> Result<ToolDefinition, ReadErrors> {
    checked(&read::tree(text, format)?, text, format)
}

/// Reads and checks a part of a text.
pub(crate) fn checked(tree: &Node, text: &str, format: Format) -> Result<ToolDefinition, ReadErrors> {
    let definition = read::definition(tree, text, format)?;
    let problems = check(&definition);
    if problems.is_empty() {
        return Ok(definition);
    }
    let errors = problems.into_iter().map(|DefinitionProblem { place, problem, fix }| ReadError {
        position: Position::of(text, tree.value_at(&steps(&place))),
        problem: format!("`{place}`: {problem}"),
        help: Some(fix),
    });
    Err(ReadErrors::new(errors.collect()))
}

/// Where in a text a field is, given its place as problems name it, such as `parameters[0].default`; where it is not
/// there, where the nearest thing around it is. None where the text cannot be read.
///
/// ```
/// use haft_definition::{Format, Position, locate};
/// let text = "name = 'ping'\n\n[constraints]\nmaxOutputSize = 5\n";
/// let position = locate(text, Format::Toml, "constraints.maxOutputSize");
/// assert_eq!(position, Some(Position { line: 4, column: 17 }));
/// ```
pub fn locate(text: &str, format: Format, place: &str) -> Option<Position> {
    let tree = read::tree(text, format).ok()?;
    Some(Position::of(text, tree.value_at(&steps(place))))
}

/// The steps of `parameters[0].schema.properties["a b"].type`.
pub(crate) fn steps(place: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = place;
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inside) = rest.strip_prefix('[') {
            let mut texts = serde_json::Deserializer::from_str(inside).into_iter::<serde_json::Value>();
            let Some(Ok(step)) = texts.next() else { break };
            steps.push(step.as_str().map_or_else(|| step.to_string(), str::to_owned));
            rest = inside[texts.byte_offset()..].trim_start_matches(']');
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::steps;

    #[test]
    fn places_lead_somewhere() {
        assert_eq!(steps("name"), ["name"]);
        assert_eq!(steps("parameters[10].default"), ["parameters", "10", "default"]);
        assert_eq!(
            steps("parameters[1].schema.properties[\"a ].b\"].anyOf[0].$ref"),
            ["parameters", "1", "schema", "properties", "a ].b", "anyOf", "0", "$ref"]
        );
        assert_eq!(steps(""), [""; 0]);
        assert_eq!(steps("a["), ["a"]);
    }
}
