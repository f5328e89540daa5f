//! A tool's schema: checked on every call, so it must be fast where it can.

use crate::{BadSchema, Checked, Checker, words::SchemaProblem};
use haft_core::Problem;
use serde_json::Value;

/// A compiled JSON Schema.
///
/// ```
/// use haft_schema::Schema;
/// use serde_json::json;
/// let schema = Schema::compile(&json!({"type": "object", "required": ["path"]})).unwrap();
/// assert!(schema.is_valid(&json!({"path": "a.txt"})));
/// assert!(!schema.is_valid(&json!({})));
/// ```
#[derive(Debug)]
pub struct Schema {
    /// Says why, within bounds.
    checker: Checker,
    /// Says whether, fast. Only for schemas without references: their cost grows with the value and no faster.
    quick: Option<jsonschema::Validator>,
}

/// How many problems are named; more are counted.
const NAMED: usize = 5;

impl Schema {
    /// Compiles it: draft 2020-12, or the draft that its `$schema` names.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let checker = Checker::new(schema)?;
        let quick = if checker.is_plain() { checker.quick(schema) } else { None };
        Ok(Schema { checker, quick })
    }

    /// Whether the value fits. Says nothing about why not.
    pub fn is_valid(&self, value: &Value) -> bool {
        match &self.quick {
            Some(quick) => quick.is_valid(value),
            // A check that would take too long is no check that passed.
            None => self.checker.check(value).is_ok_and(|checked| checked.total == 0),
        }
    }

    /// What is wrong with a value, in a sentence that names at most five problems, and those problems.
    ///
    /// ```
    /// use haft_schema::Schema;
    /// use serde_json::json;
    /// let schema = Schema::compile(&json!({"properties": {"n": {"type": "integer"}}})).unwrap();
    /// let (sentence, _) = schema.explain(&json!({"n": "5"}));
    /// assert_eq!(sentence, "/n: expected an integer, got the string \"5\" (write 5 without quotes)");
    /// ```
    pub fn explain(&self, value: &Value) -> (String, Vec<Problem>) {
        let Checked { mut problems, total } = match self.checker.check(value) {
            Ok(checked) => checked,
            Err(error) => return (error.to_string(), vec![Problem::new("", "schema", error.message)]),
        };
        problems.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        problems.truncate(NAMED);
        let named: Vec<Problem> = problems.into_iter().map(problem).collect();
        let mut sentence = named.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        if total > named.len() {
            sentence.push_str(&format!("; and {} more", total - named.len()));
        }
        (sentence, named)
    }
}

fn problem(found: SchemaProblem) -> Problem {
    let message = match &found.hint {
        Some(hint) => format!("{} ({hint})", found.message),
        None => found.message,
    };
    Problem::new(found.pointer, found.rule, message)
}
