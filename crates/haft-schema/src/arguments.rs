//! What a tool takes: coercion where it is asked for, defaults, then the schema.

use haft_core::{DefinitionProblem, Problem, ToolDefinition};
use serde_json::{Map, Value};

use crate::defaults::undo;
use crate::{BadSchema, Defaults, Schema, coerce};

/// The schema of a tool's arguments, with what is done to arguments before they are checked.
///
/// ```
/// use haft_schema::{ArgumentSchema, Coercion};
/// use serde_json::json;
///
/// let schema = ArgumentSchema::compile(&json!({
///     "type": "object",
///     "properties": {"path": {"type": "string"}, "depth": {"type": "integer", "default": 3}},
///     "required": ["path"],
/// }))?;
/// let arguments = json!({"path": 5}).as_object().unwrap().clone();
/// let unfit = schema.check(arguments.clone(), Coercion::Off).unwrap_err();
/// assert_eq!(unfit.sentence, "/path: expected a string, got the number 5 (put it in quotes: \"5\")");
///
/// let fitting = schema.check(arguments, Coercion::Lossless).unwrap();
/// assert_eq!(fitting.coerced, ["/path"]);
/// assert_eq!(json!(fitting.arguments), json!({"path": "5", "depth": 3}));
/// # Ok::<(), haft_schema::BadSchema>(())
/// ```
#[derive(Debug)]
pub struct ArgumentSchema {
    schema: Schema,
    defaults: Defaults,
}

/// Whether arguments of the wrong type may be turned into what was meant.
///
/// ```
/// assert_eq!(haft_schema::Coercion::default(), haft_schema::Coercion::Off);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coercion {
    /// They are refused.
    #[default]
    Off,
    /// They are, where nothing is lost: see [`coerce`](crate::coerce()).
    Lossless,
}

/// Arguments that fit.
///
/// ```
/// use haft_schema::{ArgumentSchema, Coercion};
/// let any = ArgumentSchema::compile(&serde_json::json!(true)).unwrap();
/// let fitting = any.check(serde_json::Map::new(), Coercion::Lossless).unwrap();
/// assert!(fitting.arguments.is_empty() && fitting.coerced.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Fitting {
    /// With defaults.
    pub arguments: Map<String, Value>,
    /// The pointers of those that were coerced.
    pub coerced: Vec<String>,
}

/// Why arguments do not fit.
///
/// ```
/// use haft_schema::{ArgumentSchema, Coercion};
/// let none = ArgumentSchema::compile(&serde_json::json!({"required": ["path"]})).unwrap();
/// let unfit = none.check(serde_json::Map::new(), Coercion::Off).unwrap_err();
/// assert_eq!(unfit.sentence, "missing required property \"path\"");
/// assert_eq!(unfit.problems[0].rule, "required");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// At most five problems in words that a model can act on, and how many more there are.
    pub sentence: String,
    /// Those problems.
    pub problems: Vec<Problem>,
}

impl ArgumentSchema {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// When the schema is not valid, refers to another document or to nothing, or could take too long.
    ///
    /// ```
    /// let error = haft_schema::ArgumentSchema::compile(&serde_json::json!({"type": "text"})).unwrap_err();
    /// assert_eq!(error.pointer, "/type");
    /// ```
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        Ok(Self { schema: Schema::compile(schema)?, defaults: Defaults::of(schema) })
    }

    /// Compiles that of a tool.
    ///
    /// # Errors
    ///
    /// Compiles the schema of a definition; a problem is one of the definition.
    ///
    /// ```
    /// use haft_core::{Parameters, ToolDefinition};
    /// let mut definition = ToolDefinition::new("ping", "Answers at once");
    /// definition.parameters = Parameters::Schema(serde_json::json!({"properties": {"n": {"type": "int"}}}));
    /// let problem = haft_schema::ArgumentSchema::of(&definition).unwrap_err();
    /// assert_eq!(problem.place, "parameters.properties.n.type");
    /// ```
    pub fn of(definition: &ToolDefinition) -> Result<Self, DefinitionProblem> {
        let schema = definition.parameters.to_schema();
        Self::compile(&schema).map_err(|error| crate::definition::unusable(definition, "parameters", &error))
    }

    /// The arguments with defaults, coerced where that is asked for, if they fit then.
    ///
    /// Arguments that fit without defaults fit: where a default would spoil that, none is added. Arguments that fit
    /// are not coerced, but for floats that stand for integers.
    ///
    /// # Errors
    ///
    /// When they do not fit.
    pub fn check(&self, arguments: Map<String, Value>, coercion: Coercion) -> Result<Fitting, Unfit> {
        let has_floats = coercion == Coercion::Lossless && arguments.values().any(has_floats);
        let mut value = Value::Object(arguments);
        let mut fits = self.fit(&mut value);
        let mut coerced = Vec::new();
        if coercion == Coercion::Lossless && (!fits || has_floats) {
            if let Value::Object(arguments) = &mut value {
                coerced = coerce(&self.schema.source(), arguments);
            }
            // Floats that became integers are the same values as before.
            if !fits && !coerced.is_empty() {
                fits = self.fit(&mut value);
            }
        }
        match value {
            Value::Object(arguments) if fits => Ok(Fitting { arguments, coerced }),
            mut value => {
                // What is wrong is told of the arguments as they would have been.
                if let Value::Object(arguments) = &mut value {
                    self.defaults.apply(arguments);
                }
                let (sentence, problems) = self.schema.explain(&value);
                Err(Unfit { sentence, problems })
            }
        }
    }

    /// Adds defaults, where the value fits with them. Says whether it fits, with or without.
    fn fit(&self, value: &mut Value) -> bool {
        let added = match value {
            Value::Object(arguments) => self.defaults.apply_noted(arguments),
            _ => Vec::new(),
        };
        if self.schema.is_valid(value) {
            return true;
        }
        undo(&added, value);
        !added.is_empty() && self.schema.is_valid(value)
    }
}

fn has_floats(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_floats),
        Value::Object(members) => members.values().any(has_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
