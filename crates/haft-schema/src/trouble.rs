//! A schema that cannot be used, in words.

use std::fmt;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ReferencingError, ValidationError};

use crate::shape::Unmeasured;
use crate::words;

/// A schema that cannot be used, and why.
///
/// ```
/// use haft_schema::Checker;
/// use serde_json::json;
///
/// let error = Checker::new(&json!({"properties": {"age": {"minimum": "1"}}})).unwrap_err();
/// assert_eq!(error.pointer, "/properties/age/minimum");
/// assert_eq!(error.message, "expected a number, got the string \"1\"; write 1 without quotes");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSchema {
    /// JSON pointer of the place in the schema; empty for the whole of it.
    pub pointer: String,
    /// What is wrong there, in one sentence.
    pub message: String,
}

impl BadSchema {
    pub(crate) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into() }
    }
}

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid schema")?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for BadSchema {}

pub(crate) const TOO_MANY_CHECKS: &str =
    "its references and alternatives unfold into too many checks of one value: combine fewer";
pub(crate) const TOO_LONG_CHAIN: &str =
    "its references and alternatives form chains that are too long for this content: shorten them";
const ELSEWHERE: &str = "references to other documents are not fetched: put what it refers to into `$defs`";

pub(crate) fn unmeasured(why: Unmeasured) -> BadSchema {
    match why {
        Unmeasured::TooMany => BadSchema::new("", TOO_MANY_CHECKS),
        Unmeasured::Endless { pointer } => BadSchema::new(
            pointer,
            "refers back to itself for the same value, so checking it would never end",
        ),
        Unmeasured::Nowhere { pointer, reference, other_document: true } => BadSchema::new(
            pointer,
            format!("expected a reference into this schema, got {reference:?}; {ELSEWHERE}"),
        ),
        Unmeasured::Nowhere { pointer, reference, other_document: false } => BadSchema::new(
            pointer,
            format!("expected a reference to a part of this schema, got {reference:?}, which is not there"),
        ),
    }
}

pub(crate) fn uncompiled(error: &ValidationError<'_>) -> BadSchema {
    match error.kind() {
        Kind::Referencing(referencing) => unresolved(referencing),
        Kind::Format { format } if format == "regex" => {
            let problem = words::describe(error);
            BadSchema::new(problem.pointer, format!("expected a regular expression, got {}", problem.got))
        }
        _ => {
            let problem = words::describe(error);
            let hint = problem.hint.map_or(String::new(), |hint| format!("; {hint}"));
            BadSchema::new(problem.pointer, format!("{}{hint}", problem.message))
        }
    }
}

fn unresolved(error: &ReferencingError) -> BadSchema {
    match error {
        ReferencingError::Unretrievable { uri, .. } => {
            BadSchema::new("", format!("expected references into this schema only, got {uri:?}; {ELSEWHERE}"))
        }
        ReferencingError::UnknownSpecification { specification } => {
            let message = format!(
                "expected the address of a JSON Schema draft (such as \"https://json-schema.org/draft/2020-12/schema\"), got {specification:?}"
            );
            BadSchema::new("/$schema", message)
        }
        other => BadSchema::new("", other.to_string()),
    }
}
