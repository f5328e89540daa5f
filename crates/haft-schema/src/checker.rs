//! Checking values against a JSON Schema, within bounds.
//!
//! A schema and a value can come from a model, or from what a model has read, and both run in this process. So
//! what a check takes is bounded before it starts ([`crate::shape`]) and while it runs ([`crate::metered`]), and a
//! schema is never completed from the network or the disk.

use std::collections::HashSet;
use std::fmt;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::metered::{Meter, Metered, MeteredValue, Patterns};
use crate::shape::{self, Shape, Unmeasured};
use crate::words::{self, SchemaProblem};

/// How deep a schema or a value may be.
const MAX_DEPTH: usize = 128;
/// How many checks one value may take at worst.
const MAX_STEPS: u64 = 1_000_000;
/// How many checks all values together may take at worst.
const MAX_ALL_STEPS: u64 = 50_000_000;
/// How often a check may look at a value: so often in any case, so often more for each value, and never more than.
const LOOKS: u64 = 2_000_000;
const LOOKS_PER_VALUE: u64 = 500;
const MAX_LOOKS: u64 = 30_000_000;
/// How many problems are put into words; more are counted.
const MAX_PROBLEMS: usize = 1000;
/// Stack that the library takes for one schema in a chain, measured without optimisation and doubled.
const STACK_PER_SCHEMA: usize = 5 << 10;
/// Stack that it takes for one level of the schema's own JSON while compiling, the same.
const STACK_PER_LEVEL: usize = 12 << 10;
/// Stack that it takes in any case.
const STACK_BASE: usize = 512 << 10;
/// Stack that a caller is taken to have left. Work that may take more gets a thread with a stack of its own.
const STACK_AT_HAND: usize = 768 << 10;
/// How many schemas may wait for each other, over all levels of a value. Besides the stack it bounds errors: inside
/// nested unions each of them holds the whole way to it.
const MAX_CHAIN: usize = 4000;
/// Steps back that a pattern with look-around or back-references may take on one string.
const MAX_BACKTRACKS: usize = 10_000;
/// Bytes that a compiled pattern may take, and all of them together.
const MAX_PATTERN_BYTES: usize = 10 << 20;
const MAX_ALL_PATTERN_BYTES: usize = 32 << 20;

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
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
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
    /// Compiles `schema`: JSON Schema 2020-12, or the draft that its `$schema` names.
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
        if depth_and_size(schema).0 > MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} arrays and objects inside each other, got more");
            return Err(BadSchema::new("", message));
        }
        let shape = shape::measure(schema).map_err(unmeasured)?;
        if shape.steps > MAX_STEPS {
            return Err(BadSchema::new("", TOO_MANY_CHECKS));
        }
        if shape.chain > MAX_CHAIN {
            return Err(BadSchema::new("", TOO_LONG_CHAIN));
        }
        let stack = shape.chain * STACK_PER_SCHEMA + shape.depth * STACK_PER_LEVEL;
        let (validator, patterns) = with_stack(stack, || {
            compile(schema, Patterns::Linear).or_else(|error| match error.kind() {
                // Perhaps it needs more than one pass.
                Kind::Format { format } if format == "regex" => compile(schema, Patterns::Backtracking),
                _ => Err(error),
            })
        })?
        .map_err(|error| uncompiled(&error))?;
        Ok(Self { schema: schema.clone(), shape, validator, patterns })
    }

    /// Whether the schema has no references and is not deep: then what a check costs grows with the value and no
    /// faster, and it needs no bounds.
    pub(crate) fn is_plain(&self) -> bool {
        self.shape.depth <= 32 && !has_references(&self.schema)
    }

    /// A validator without bounds, with patterns that take linear time; none where a pattern needs more.
    pub(crate) fn quick(&self, schema: &Value) -> Option<Validator> {
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
        match self.patterns {
            Patterns::Linear => {
                jsonschema::options().offline().with_pattern_options(patterns).build(schema).ok()
            }
            Patterns::Backtracking => None,
        }
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
            let words = words::describe_all(&error, &self.schema, value);
            checked.total += words.len();
            checked.problems.extend(words.take(room));
        }
        checked
    }
}

fn compile(
    schema: &Value,
    patterns: Patterns,
) -> Result<(Validator<Metered>, Patterns), ValidationError<'static>> {
    let bytes = (MAX_ALL_PATTERN_BYTES / count_patterns(schema).max(1)).min(MAX_PATTERN_BYTES);
    let options = jsonschema::options_for::<Metered>().offline();
    let options = match patterns {
        Patterns::Linear => options.with_pattern_options(PatternOptions::regex().size_limit(bytes)),
        Patterns::Backtracking => {
            let engine = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
            options.with_pattern_options(engine.size_limit(bytes))
        }
    };
    options.build(schema).map(|validator| (validator, patterns))
}

/// How many levels a value has, and how many values are in it.
fn depth_and_size(value: &Value) -> (usize, u64) {
    let (mut deepest, mut size) = (0, 0);
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        size += 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    (deepest, size)
}

/// Whether a schema refers to any schema, itself included.
fn has_references(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_references),
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| shape::REFERENCES.contains(&key.as_str()) || has_references(member)),
        _ => false,
    }
}

/// How many patterns are in a schema.
fn count_patterns(schema: &Value) -> usize {
    let mut patterns = 0;
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => {
                patterns += usize::from(object.get("pattern").is_some_and(Value::is_string));
                patterns += object.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
                open.extend(object.values());
            }
            _ => {}
        }
    }
    patterns
}

/// Runs `work`, which takes `stack` bytes of stack on top of the usual.
fn with_stack<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> Result<T, BadSchema> {
    let stack = STACK_BASE + stack;
    if stack <= STACK_AT_HAND {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| BadSchema::new("", format!("no thread to check it on: {error}")))?;
        match thread.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

const TOO_MANY_CHECKS: &str =
    "its references and alternatives unfold into too many checks of one value: combine fewer";
const TOO_LONG_CHAIN: &str =
    "its references and alternatives form chains that are too long for this content: shorten them";
const ELSEWHERE: &str = "references to other documents are not fetched: put what it refers to into `$defs`";

fn unmeasured(why: Unmeasured) -> BadSchema {
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

fn uncompiled(error: &ValidationError<'_>) -> BadSchema {
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
