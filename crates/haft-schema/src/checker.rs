//! Checking values against a JSON Schema, within bounds.
//!
//! A schema and a value can come from a model, or from what a model has read, and both run in this process. So
//! what a check takes is bounded before it starts ([`crate::shape`]) and while it runs ([`crate::metered`]), and a
//! schema is never completed from the network or the disk.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::bounds::{
    LOOKS, LOOKS_PER_VALUE, MAX_ALL_STEPS, MAX_CHAIN, MAX_DEPTH, MAX_LOOKS, MAX_PROBLEMS, STACK_PER_SCHEMA,
    depth_and_size, with_stack,
};
use crate::compile::CompilePlan;
use crate::documents::Document;
use crate::metered::{Meter, Metered, MeteredValue, Patterns};
use crate::options::Options;
use crate::place::Place;
use crate::shape::Shape;
use crate::trouble::{BadSchema, TOO_LONG_CHAIN};
use crate::words::{self, SchemaProblem};

/// A compiled schema.
///
/// ```
/// use haft_schema::Checker;
/// use serde_json::json;
///
/// let checker = Checker::new(&json!({"properties": {"age": {"type": "integer"}}}))?;
/// assert_eq!(checker.check(&json!({"age": 12}))?.total, 0);
/// let checked = checker.check(&json!({"age": "12"}))?;
/// assert_eq!(checked.problems[0].to_string(), "/age: expected an integer, got the string \"12\"");
/// # Ok::<(), haft_schema::BadSchema>(())
/// ```
pub struct Checker {
    schema: Value,
    documents: Vec<Arc<Document>>,
    shape: Shape,
    validator: Validator<Metered>,
    patterns: Patterns,
}

/// What a check found.
///
/// ```
/// use haft_schema::Checker;
/// use serde_json::json;
///
/// let checked = Checker::new(&json!({"items": {"type": "integer"}}))?.check(&json!(vec!["x"; 5000]))?;
/// assert_eq!((checked.problems.len(), checked.total), (1000, 5000));
/// # Ok::<(), haft_schema::BadSchema>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The problems, each once, in no special order; at most 1000 of them.
    pub problems: Vec<SchemaProblem>,
    /// How many there are.
    pub total: usize,
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker")
            .field("schema", &self.schema)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

impl Checker {
    /// Compiles `schema`: JSON Schema 2020-12, or an older draft that its `$schema` names and that is converted to it.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to another document or to nothing, or could take too long.
    ///
    /// ```
    /// use haft_schema::Checker;
    /// use serde_json::json;
    ///
    /// let error = Checker::new(&json!({"$ref": "https://example.com/person.json"})).unwrap_err();
    /// assert_eq!(error.pointer, "/$ref");
    /// ```
    pub fn new(schema: &Value) -> Result<Self, BadSchema> {
        Self::with_options(schema, &Options::default())
    }

    /// Compiles a schema with documents that it may refer to, and with formats checked where that is wanted.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to a document that was not given or to nothing, or could take too long.
    ///
    /// ```
    /// use haft_schema::{Checker, Documents, Options};
    /// use serde_json::json;
    ///
    /// let mut options = Options::default();
    /// options.documents.add("https://example.com/person.json", json!({"required": ["name"]}))?;
    /// let checker = Checker::with_options(&json!({"$ref": "https://example.com/person.json"}), &options)?;
    /// assert_eq!(checker.check(&json!({}))?.problems[0].message, "missing required property \"name\"");
    /// # Ok::<(), haft_schema::BadSchema>(())
    /// ```
    pub fn with_options(schema: &Value, options: &Options) -> Result<Self, BadSchema> {
        Self::of_plan(CompilePlan::of(schema, options)?)
    }

    pub(crate) fn of_plan(plan: CompilePlan<'_>) -> Result<Self, BadSchema> {
        let (validator, patterns) = plan.compile()?;
        let CompilePlan { converted, documents, shape, .. } = plan;
        Ok(Self { schema: converted.schema.into_owned(), documents, shape, validator, patterns })
    }

    /// The schema that it was made from, in 2020-12.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// The problems of `value`.
    ///
    /// # Errors
    ///
    /// When `value` is too deep, or the schema takes too long on it.
    ///
    /// ```
    /// use haft_schema::Checker;
    /// use serde_json::json;
    ///
    /// let checked = Checker::new(&json!({"required": ["a", "b"]}))?.check(&json!({}))?;
    /// assert_eq!(checked.total, 2);
    /// # Ok::<(), haft_schema::BadSchema>(())
    /// ```
    pub fn check(&self, value: &Value) -> Result<Checked, BadSchema> {
        let (depth, size) = depth_and_size(value);
        if depth > MAX_DEPTH {
            let message = format!("expected a value at most {MAX_DEPTH} levels deep to check, got {depth}");
            return Err(BadSchema::new("", message));
        }
        let too_long = || BadSchema::new("", "checking the content against it takes too long: simplify it");
        if self.shape.steps.saturating_mul(size) > MAX_ALL_STEPS {
            return Err(too_long());
        }
        let chain = self.shape.chain * (depth + 1);
        if chain > MAX_CHAIN {
            return Err(BadSchema::new("", TOO_LONG_CHAIN));
        }
        let looks = (LOOKS + LOOKS_PER_VALUE * size).min(MAX_LOOKS);
        let meter = Meter::new(looks, self.patterns);
        let checked = with_stack(chain * STACK_PER_SCHEMA, || {
            let errors = self.validator.iter_errors(MeteredValue::new(value, &meter));
            if meter.is_spent() { Checked::default() } else { self.words(errors, value) }
        })?;
        if meter.is_spent() { Err(too_long()) } else { Ok(checked) }
    }

    fn words<'e>(&self, errors: impl Iterator<Item = ValidationError<'e>>, value: &Value) -> Checked {
        let mut seen = HashSet::new();
        let mut checked = Checked::default();
        for error in errors {
            let missing = match error.kind() {
                Kind::Required { property } => property.as_str().unwrap_or_default().to_owned(),
                _ => String::new(),
            };
            // Several ways may lead to one keyword of the schema.
            if !seen.insert((error.instance_path().clone(), error.schema_path().clone(), missing)) {
                continue;
            }
            let room = MAX_PROBLEMS.saturating_sub(checked.problems.len());
            let home = self.home(&error);
            let words = words::describe_all(&error, home, value);
            checked.total += words.len();
            checked.problems.extend(words.take(room));
        }
        checked
    }

    /// The document that the broken keyword is in; null where that is one inside another.
    fn home(&self, error: &ValidationError<'_>) -> &Value {
        let Some(location) = error.absolute_keyword_location().filter(|_| !self.documents.is_empty()) else {
            return &self.schema;
        };
        let address = location.as_str().split('#').next().unwrap_or_default();
        let answers = |document: &&Arc<Document>| document.place().address() == address;
        match self.documents.iter().find(answers) {
            Some(document) => document.contents(),
            None if Place::root(&self.schema).address() == address => &self.schema,
            None => &Value::Null,
        }
    }
}
