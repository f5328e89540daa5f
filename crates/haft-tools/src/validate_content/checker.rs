//! Checking values against a JSON Schema, within bounds.
//!
//! A schema and a value can come from a model, or from what a model has read, and both run in this process. So
//! what a check takes is bounded before it starts ([`super::shape`]) and while it runs ([`super::metered`]), and a
//! schema is never completed from the network or the disk.

use std::collections::HashSet;
use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;

use super::metered::{Meter, Metered, MeteredValue};
use super::schema_words::{self, SchemaProblem};
use super::shape::{self, Shape, Unmeasured};

/// How deep a schema or a value may be.
const MAX_DEPTH: usize = 128;
/// How many checks one value may take at worst.
const MAX_STEPS: u64 = 1_000_000;
/// How many checks all values together may take at worst.
const MAX_ALL_STEPS: u64 = 50_000_000;
/// How often a check may look at a value: so often in any case, and so often more for each value.
const LOOKS: u64 = 1_000_000;
const LOOKS_PER_VALUE: u64 = 200;
/// Stack that the library takes for one schema in a chain, measured without optimisation and doubled.
const STACK_PER_SCHEMA: usize = 3 << 10;
/// Stack that it takes for one level of the schema's own JSON while compiling, the same.
const STACK_PER_LEVEL: usize = 12 << 10;
/// Stack that it takes in any case.
const STACK_BASE: usize = 512 << 10;
/// Stack that a caller is taken to have left. Work that may take more gets a thread with a stack of its own.
const STACK_AT_HAND: usize = 768 << 10;
/// The most stack that a check may take.
const MAX_STACK: usize = 256 << 20;
/// Steps back that a pattern with look-around or back-references may take on one string.
const MAX_BACKTRACKS: usize = 50_000;
/// Bytes that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A schema that cannot be used, and why.
///
/// ```
/// use haft_tools::validate_content::{Args, validate};
/// use serde_json::json;
///
/// let args = Args { schema: Some(json!({"properties": {"age": {"minimum": "1"}}})), ..Args::json("{}") };
/// let error = validate(&args).unwrap_err();
/// assert_eq!(error.pointer, "/properties/age/minimum");
/// assert_eq!(error.to_string(), "invalid schema at /properties/age/minimum: expected a number, got the string \"1\"");
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
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
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
/// use haft_tools::validate_content::Checker;
/// use serde_json::json;
///
/// let checker = Checker::new(&json!({"properties": {"age": {"type": "integer"}}}))?;
/// assert!(checker.check(&json!({"age": 12}))?.is_empty());
/// let problems = checker.check(&json!({"age": "12"}))?;
/// assert_eq!(problems[0].to_string(), "/age: expected an integer, got the string \"12\"");
/// # Ok::<(), haft_tools::validate_content::BadSchema>(())
/// ```
pub struct Checker {
    schema: Value,
    shape: Shape,
    validator: Validator<Metered>,
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
    /// use haft_tools::validate_content::Checker;
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
            let message =
                "its references and alternatives unfold into too many checks of one value: combine fewer";
            return Err(BadSchema::new("", message));
        }
        let stack = shape.chain * STACK_PER_SCHEMA + shape.depth * STACK_PER_LEVEL;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_PATTERN_BYTES);
        let compiled = with_stack(stack, || {
            let options = jsonschema::options_for::<Metered>()
                .offline()
                .with_pattern_options(patterns);
            options.build(schema).map_err(|error| uncompiled(&error, schema))
        })?;
        Ok(Self {
            schema: schema.clone(),
            shape,
            validator: compiled?,
        })
    }

    /// All problems of `value`, each once, in no special order.
    ///
    /// # Errors
    ///
    /// When `value` is too deep, or the schema takes too long on it.
    ///
    /// ```
    /// use haft_tools::validate_content::Checker;
    /// use serde_json::json;
    ///
    /// let problems = Checker::new(&json!({"required": ["a", "b"]}))?.check(&json!({}))?;
    /// assert_eq!(problems.len(), 2);
    /// # Ok::<(), haft_tools::validate_content::BadSchema>(())
    /// ```
    pub fn check(&self, value: &Value) -> Result<Vec<SchemaProblem>, BadSchema> {
        let (depth, size) = depth_and_size(value);
        if depth > MAX_DEPTH {
            let message = format!("expected a value at most {MAX_DEPTH} levels deep to check, got {depth}");
            return Err(BadSchema::new("", message));
        }
        let too_long = || BadSchema::new("", "checking the content against it takes too long: simplify it");
        if self.shape.steps.saturating_mul(size) > MAX_ALL_STEPS {
            return Err(too_long());
        }
        let meter = Meter::new(LOOKS + LOOKS_PER_VALUE * size);
        let problems = with_stack(self.shape.chain * (depth + 1) * STACK_PER_SCHEMA, || {
            let mut seen = HashSet::new();
            let mut problems = Vec::new();
            for error in self.validator.iter_errors(MeteredValue::new(value, &meter)) {
                if meter.is_spent() {
                    break;
                }
                // Several ways may lead to one keyword of the schema.
                let words = schema_words::describe_all(&error, &self.schema, value);
                problems.extend(words.into_iter().filter(|problem| seen.insert(problem.clone())));
            }
            problems
        })?;
        if meter.is_spent() {
            Err(too_long())
        } else {
            Ok(problems)
        }
    }
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

/// Runs `work`, which takes `stack` bytes of stack on top of the usual.
fn with_stack<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> Result<T, BadSchema> {
    let stack = STACK_BASE + stack;
    if stack <= STACK_AT_HAND {
        return Ok(work());
    }
    let too_deep = || {
        BadSchema::new(
            "",
            "its references and alternatives form chains that are too long: shorten them",
        )
    };
    if stack > MAX_STACK {
        return Err(too_deep());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(stack)
            .spawn_scoped(scope, work);
        match thread.map_err(|_| too_deep())?.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

const ELSEWHERE: &str = "references to other documents are not fetched: put what it refers to into `$defs`";

fn unmeasured(why: Unmeasured) -> BadSchema {
    match why {
        Unmeasured::Endless { pointer } => BadSchema::new(
            pointer,
            "refers back to itself for the same value, so checking it would never end",
        ),
        Unmeasured::Nowhere {
            pointer,
            reference,
            other_document: true,
        } => BadSchema::new(
            pointer,
            format!("expected a reference into this schema, got {reference:?}; {ELSEWHERE}"),
        ),
        Unmeasured::Nowhere {
            pointer,
            reference,
            other_document: false,
        } => BadSchema::new(
            pointer,
            format!("expected a reference to a part of this schema, got {reference:?}, which is not there"),
        ),
    }
}

fn uncompiled(error: &ValidationError<'_>, schema: &Value) -> BadSchema {
    match error.kind() {
        ValidationErrorKind::Referencing(referencing) => unresolved(referencing),
        ValidationErrorKind::Format { format } if format == "regex" => {
            let problem = schema_words::describe(error);
            BadSchema::new(
                problem.pointer,
                format!("expected a regular expression, got {}", problem.got),
            )
        }
        _ => {
            let first = schema_words::describe_all(error, &Value::Null, schema)
                .into_iter()
                .next();
            let problem = first.unwrap_or_else(|| schema_words::describe(error));
            BadSchema::new(problem.pointer, problem.message)
        }
    }
}

fn unresolved(error: &ReferencingError) -> BadSchema {
    match error {
        ReferencingError::Unretrievable { uri, .. } => BadSchema::new(
            "",
            format!("expected references into this schema only, got {uri:?}; {ELSEWHERE}"),
        ),
        ReferencingError::UnknownSpecification { specification } => {
            let message = format!(
                "expected the address of a JSON Schema draft (such as \"https://json-schema.org/draft/2020-12/schema\"), got {specification:?}"
            );
            BadSchema::new("/$schema", message)
        }
        other => BadSchema::new("", other.to_string()),
    }
}
