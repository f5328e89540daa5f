//! Conditions in CEL, within bounds.
//!
//! A condition comes from an operator's file, but what it looks at comes from tools. CEL always ends, and still two
//! loops over an output of some thousand entries take minutes. So a condition is at most [`MOST_BYTES`] long and
//! [`MOST_NESTING`] levels deep, and every turn of a loop in it is counted: `ast` puts the counter into the loops that
//! the macros (`all`, `exists`, `map`, `filter`) stand for.

mod ast;
mod value;

use cel::{Context, ExecutionError, parser::Parser};
use haft_core::{suggest::nearest, text::one_line};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// The longest condition, in bytes.
pub const MOST_BYTES: usize = 1024;
/// How deep brackets may nest.
pub const MOST_NESTING: usize = 16;
/// How deep operators may, without any bracket: `a + b + c` is two.
const MOST_DEPTH: usize = 64;
/// Turns of loops, over all of them.
const MOST_TURNS: u32 = 50_000;
/// Bytes of stack: reserved, and used only as far as something nests.
const STACK: usize = 32 << 20;
/// How long an evaluation may take.
pub const LONGEST: Duration = Duration::from_secs(1);
/// The name under which loops count. It cannot be written in CEL.
const TURN: &str = "@turn";

/// The functions there are, beside the macros.
const FUNCTIONS: [&str; 13] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];
const MACROS: [&str; 6] = ["all", "exists", "exists_one", "filter", "has", "map"];
/// Names of types, which stand where variables do.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "uint"];

/// A condition that compiles.
///
/// ```
/// use haft_flow::Condition;
/// use serde_json::json;
/// let condition = Condition::compile("count.output.total > 3 && input.publish").unwrap();
/// assert_eq!(condition.names().collect::<Vec<_>>(), ["count", "input"]);
/// let holds = condition.holds(&json!({"count": {"output": {"total": 5}}, "input": {"publish": true}}));
/// assert_eq!(holds, Ok(true));
/// ```
#[derive(Clone, Debug)]
pub struct Condition {
    text: Arc<str>,
    expression: Arc<cel::IdedExpr>,
    paths: Vec<NamePath>,
}

/// A name that a condition looks at, with the fields that it selects of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamePath {
    /// The name.
    pub name: String,
    /// The fields, as far as they are plain names.
    pub fields: Vec<String>,
    /// Whether it only asks whether the last one is there.
    pub is_test: bool,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct BadCondition {
    /// In one sentence without a full stop.
    pub problem: String,
    /// What to do, where that can be told.
    pub help: Option<String>,
    /// The byte of the text that it is about.
    pub offset: usize,
}

/// Why a condition gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It looked at more than it may.
    #[error("it runs away: it took more than {MOST_TURNS} turns, or longer than {} s", LONGEST.as_secs())]
    RanAway,
    /// It gave something else than yes or no.
    #[error("it is to give true or false, and gave {0}")]
    NotABool(String),
    /// It cannot be worked out with these values.
    #[error("{0}")]
    Failed(String),
}

impl Condition {
    /// Compiles a text.
    ///
    /// # Errors
    ///
    /// When it is too long or too deep, is not CEL, or calls a function that is not there.
    ///
    /// ```
    /// use haft_flow::Condition;
    /// let bad = Condition::compile("input.x >").unwrap_err();
    /// assert!(bad.problem.starts_with("this is not CEL"), "{bad}");
    /// assert!(Condition::compile(&"(".repeat(17)).unwrap_err().problem.contains("at most 16"));
    /// ```
    pub fn compile(text: &str) -> Result<Self, BadCondition> {
        let bad = |offset, problem: String| BadCondition { problem, help: None, offset };
        if text.len() > MOST_BYTES {
            let problem =
                format!("a condition has at most {MOST_BYTES} bytes, and this one has {}", text.len());
            return Err(BadCondition {
                help: Some("let a tool decide instead".to_owned()),
                ..bad(0, problem)
            });
        }
        if text.trim().is_empty() {
            let help = Some("write what has to hold, such as `input.count > 0`, or remove it".to_owned());
            return Err(BadCondition { help, ..bad(0, "the condition is empty".to_owned()) });
        }
        if let Some(offset) = too_deep(text) {
            return Err(bad(offset, format!("brackets nest at most {MOST_NESTING} levels deep")));
        }
        let too_deep = || bad(0, format!("operators nest at most {MOST_DEPTH} levels deep"));
        let depth = u16::try_from(MOST_DEPTH).unwrap_or(u16::MAX);
        let parse = || {
            let parsed = Parser::new().max_recursion_depth(depth).parse(text);
            parsed.map_err(|errors| not_cel(text, &errors))
        };
        let parsed = with_stack(parse);
        let mut expression = parsed.unwrap_or_else(|| Err(bad(0, "this is not CEL".to_owned())))?;
        let mut seen = ast::Seen::default();
        if !seen.look(&expression, MOST_DEPTH) {
            return Err(too_deep());
        }
        if let Some(wrong) = seen.functions.iter().find(|name| !FUNCTIONS.contains(&name.as_str())) {
            return Err(unknown_function(text, wrong));
        }
        ast::count_turns(&mut expression);
        let paths = seen.paths.into_iter().filter(|path| !TYPES.contains(&path.name.as_str()));
        Ok(Condition { text: text.into(), expression: Arc::new(expression), paths: paths.collect() })
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it looks at.
    #[must_use]
    pub fn paths(&self) -> &[NamePath] {
        &self.paths
    }

    /// The names that it looks at, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        let names = self.paths.iter().map(|path| path.name.as_str());
        names.filter(move |name| last.replace(*name) != Some(*name))
    }

    /// Whether it holds for these variables. It may take up to [`LONGEST`]: not on a thread that others wait for.
    ///
    /// # Errors
    ///
    /// When it cannot be worked out, takes too long, or gives something else than true or false.
    pub fn holds(&self, variables: &Value) -> Result<bool, NoAnswer> {
        with_stack(|| self.evaluate(variables))
            .unwrap_or_else(|| Err(NoAnswer::Failed("the interpreter gave up on it".to_owned())))
    }

    fn evaluate(&self, variables: &Value) -> Result<bool, NoAnswer> {
        let failed = |problem: &dyn std::fmt::Display| NoAnswer::Failed(one_line(&problem.to_string(), 300));
        let mut context = Context::default();
        for (name, variable) in variables.as_object().into_iter().flatten() {
            // What it does not look at need not be made.
            if self.paths.iter().any(|path| path.name == *name) {
                context.add_variable_from_value(name.as_str(), value::from_json(variable));
            }
        }
        let (turns, until) = (Arc::new(AtomicU32::new(0)), Instant::now() + LONGEST);
        let counted = Arc::clone(&turns);
        let turn = move || -> Result<bool, ExecutionError> {
            let count = counted.fetch_add(1, Ordering::Relaxed);
            if count >= MOST_TURNS || (count.is_multiple_of(64) && Instant::now() >= until) {
                counted.store(MOST_TURNS, Ordering::Relaxed);
                return Err(ExecutionError::function_error(TURN, "it runs away"));
            }
            Ok(true)
        };
        context.add_function(TURN, turn).map_err(|error| failed(&error))?;
        let answer = cel::Value::resolve(&self.expression, &context);
        if turns.load(Ordering::Relaxed) >= MOST_TURNS {
            // Whatever came of it then: an error inside `||` is not heard.
            return Err(NoAnswer::RanAway);
        }
        match answer {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(NoAnswer::NotABool(value::kind(&other).to_owned())),
            Err(error) => Err(failed(&words(&error))),
        }
    }
}

/// Runs the parser or the interpreter on a thread with room for what nests as deep as it may. `None` where it panics:
/// they come from outside, and neither a file nor an output may end the program.
fn with_stack<T: Send>(code: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("condition".to_owned()).stack_size(STACK);
        thread.spawn_scoped(scope, code).ok()?.join().ok()
    })
}

/// What went wrong, without the values: they may be long, and are shown to nobody who has not seen them.
fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no `{key}`; ask for it with has(…) first"),
        ExecutionError::UndeclaredReference(name) => format!("there is no `{name}`"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "it divides by zero".to_owned()
        }
        ExecutionError::Overflow(operator, ..) => format!("a number is too large for `{operator}`"),
        ExecutionError::IndexOutOfBounds(_) => "a list has no such place".to_owned(),
        ExecutionError::NoSuchOverload(overload) => overload.to_string(),
        ExecutionError::UnexpectedType { got, want } => {
            format!("it wants a value of the type {want}, and got {got}")
        }
        ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
        _ => "it cannot be worked out with these values".to_owned(),
    }
}

/// The byte at which brackets nest too deep. What stands in quotes is no bracket.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (offset, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => {
                depth += 1;
                if depth > MOST_NESTING {
                    return Some(offset);
                }
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

fn not_cel(text: &str, errors: &cel::ParseErrors) -> BadCondition {
    let Some(first) = errors.errors.first() else {
        return BadCondition { problem: "this is not CEL".to_owned(), help: None, offset: 0 };
    };
    let said = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    // What could stand there instead is a long list of names that only the parser knows.
    let said = said.lines().next().unwrap_or_default();
    let said = said.split(" expecting ").next().unwrap_or_default().replace("'<EOF>'", "the end");
    let said = one_line(&said, 160);
    let is_deep = said.contains("recursion") || said == "UNKNOWN";
    let problem = match is_deep {
        true => format!("this is not CEL, or its operators nest more than {MOST_DEPTH} levels deep"),
        false => format!("this is not CEL: {said}"),
    };
    let (line, column) =
        (usize::try_from(first.pos.0).unwrap_or(0), usize::try_from(first.pos.1).unwrap_or(0));
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let inside = text[start..].char_indices().nth(column.saturating_sub(1)).map_or(0, |(offset, _)| offset);
    let is_single =
        text.contains('=') && !text.contains("==") && !text.contains("<=") && !text.contains(">=");
    let help = is_single.then(|| "two are equal where `==` stands between them".to_owned());
    BadCondition { problem, help, offset: start + inside }
}

fn unknown_function(text: &str, name: &str) -> BadCondition {
    let known = || FUNCTIONS.into_iter().chain(MACROS);
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    };
    let offset = text.find(name).unwrap_or(0);
    let problem = format!("there is no function `{}`", one_line(name, 80));
    BadCondition { problem, help: Some(help), offset }
}

#[cfg(test)]
mod tests;
