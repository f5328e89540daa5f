//! A tool's schema: checked on every call, so it must be fast where it can; and there may be thousands of tools, so
//! it must be small.

use std::borrow::Cow;
use std::collections::HashSet;

use haft_core::Problem;
use jsonschema::Validator;
use serde_json::Value;

use crate::compile::CompilePlan;
use crate::keywords::without_notes;
use crate::metered::Patterns;
use crate::words::SchemaProblem;
use crate::{BadSchema, Checked, Checker, Options};

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
pub struct Schema(Way);

/// How values are checked.
#[derive(Debug)]
enum Way {
    /// Without bounds, which a schema without references does not need: what it costs grows with the value and no
    /// faster. Says whether; to say why, the schema is compiled again.
    Quick {
        validator: Validator,
        /// As text: a parsed one is eight times as large.
        source: Box<str>,
        options: Option<Box<Options>>,
    },
    /// Within bounds.
    Bounded(Box<Checker>),
}

/// How many problems are named; more are counted.
const NAMED: usize = 5;

impl Schema {
    /// Compiles it: draft 2020-12, or an older draft that its `$schema` names and that is converted to it.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to another document or to nothing, or could take too long.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        Self::compile_with(schema, &Options::default())
    }

    /// Compiles a schema with documents that it may refer to, and with formats checked where that is wanted.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to a document that was not given or to nothing, or could take too long.
    ///
    /// ```
    /// use haft_schema::{Options, Schema};
    /// use serde_json::json;
    /// let mut options = Options::default();
    /// options.documents.add("urn:example:port", json!({"maximum": 65535}))?;
    /// let schema = Schema::compile_with(&json!({"$ref": "urn:example:port"}), &options)?;
    /// assert!(!schema.is_valid(&json!(70_000)));
    /// # Ok::<(), haft_schema::BadSchema>(())
    /// ```
    pub fn compile_with(schema: &Value, options: &Options) -> Result<Self, BadSchema> {
        let plan = CompilePlan::of(schema, options)?;
        if !plan.is_plain() {
            return Checker::of_plan(plan).map(Schema::bounded);
        }
        // The whole of it first: what only describes must be well-formed, too.
        let (validator, patterns) = plan.compile()?;
        if patterns == Patterns::Backtracking {
            return Checker::of_plan(plan).map(Schema::bounded);
        }
        let schema = plan.schema();
        let bare = without_notes(schema);
        let validator = if bare == *schema { validator } else { plan.compile_bare(&bare)? };
        let source = schema.to_string().into_boxed_str();
        let formats = plan.formats();
        let given = !options.documents.is_empty() || formats != crate::Formats::default();
        let options = given.then(|| Box::new(Options { formats, ..options.clone() }));
        Ok(Schema(Way::Quick { validator, source, options }))
    }

    fn bounded(checker: Checker) -> Self {
        Schema(Way::Bounded(Box::new(checker)))
    }

    /// Whether the value fits. Says nothing about why not.
    pub fn is_valid(&self, value: &Value) -> bool {
        match &self.0 {
            Way::Quick { validator, .. } => validator.is_valid(value),
            // A check that would take too long is no check that passed.
            Way::Bounded(checker) => checker.check(value).is_ok_and(|checked| checked.total == 0),
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
        let checked = match &self.0 {
            Way::Quick { options, .. } => {
                let options = options.as_deref().cloned().unwrap_or_default();
                Checker::with_options(&self.source(), &options).and_then(|checker| checker.check(value))
            }
            Way::Bounded(checker) => checker.check(value),
        };
        let Checked { mut problems, total } = match checked {
            Ok(checked) => checked,
            Err(error) => return (error.to_string(), vec![Problem::new("", "schema", error.message)]),
        };
        let all = problems.len();
        say_choices_once(&mut problems);
        let total = total - (all - problems.len());
        problems.sort_by(|a, b| a.pointer.cmp(&b.pointer));
        problems.truncate(NAMED);
        let named: Vec<Problem> = problems.into_iter().map(problem).collect();
        let mut sentence = named.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        if total > named.len() {
            sentence.push_str(&format!("; and {} more", total - named.len()));
        }
        (sentence, named)
    }

    /// The schema that it was made from, in 2020-12.
    ///
    /// ```
    /// use serde_json::json;
    /// let source = json!({"type": "integer"});
    /// assert_eq!(*haft_schema::Schema::compile(&source).unwrap().source(), source);
    /// ```
    pub fn source(&self) -> Cow<'_, Value> {
        match &self.0 {
            // It was written from a value, so it is one.
            Way::Quick { source, .. } => {
                Cow::Owned(serde_json::from_str(source).unwrap_or(Value::Bool(false)))
            }
            Way::Bounded(checker) => Cow::Borrowed(checker.schema()),
        }
    }
}

/// A value that is none of the choices has often the wrong type, too; the choices say enough.
fn say_choices_once(problems: &mut Vec<SchemaProblem>) {
    let choices: HashSet<String> =
        problems.iter().filter(|one| one.rule == "enum").map(|one| one.pointer.clone()).collect();
    problems.retain(|one| one.rule != "type" || !choices.contains(&one.pointer));
}

fn problem(found: SchemaProblem) -> Problem {
    let message = match &found.hint {
        Some(hint) => format!("{} ({hint})", found.message),
        None => found.message,
    };
    Problem::new(found.pointer, found.rule, message)
}
