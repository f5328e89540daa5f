//! A schema that is ready to be used.

use crate::words;
use haft_core::Problem;
use serde_json::Value;

/// A schema that cannot be used: where, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if pointer.is_empty() { String::new() } else { format!("{pointer}: ") })]
pub struct BadSchema {
    /// JSON pointer of the place in the schema; empty for the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// A compiled JSON Schema.
///
/// ```
/// use haft_schema::Schema;
/// use serde_json::json;
/// let schema = Schema::compile(&json!({"type": "object", "required": ["path"]})).unwrap();
/// assert!(schema.is_valid(&json!({"path": "a.txt"})));
/// let (problems, more) = schema.problems(&json!({}), 5);
/// assert_eq!((problems[0].rule.as_str(), more), ("required", 0));
/// ```
#[derive(Debug)]
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// Compiles it. The dialect is draft 2020-12 unless the schema names another.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .build(schema)
            .map(Schema)
            .map_err(|error| words::bad_schema(&error))
    }

    /// Whether the value fits. Fast; says nothing about why not.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// At most `most` problems, and how many there are beyond those.
    pub fn problems(&self, value: &Value, most: usize) -> (Vec<Problem>, usize) {
        let mut errors = self.0.iter_errors(value);
        let problems = errors.by_ref().take(most).map(|error| words::describe(&error)).collect();
        (problems, errors.count())
    }

    /// The same, with a sentence that names each: what a model reads.
    ///
    /// ```
    /// # use haft_schema::Schema; use serde_json::json;
    /// let schema = Schema::compile(&json!({"properties": {"n": {"type": "integer"}}})).unwrap();
    /// let (sentence, _) = schema.explain(&json!({"n": "5"}));
    /// assert_eq!(sentence, "/n: expected an integer, got the string \"5\"");
    /// ```
    pub fn explain(&self, value: &Value) -> (String, Vec<Problem>) {
        let (problems, more) = self.problems(value, 5);
        let mut sentence = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        if more > 0 {
            sentence.push_str(&format!("; and {more} more"));
        }
        (sentence, problems)
    }
}
