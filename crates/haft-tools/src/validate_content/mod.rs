//! `validate_content`: whether a text is well-formed JSON or TOML, and whether it matches a JSON Schema.
//!
//! The whole is a pure function of its arguments, [`validate`]. What is wrong with the *content* is a [`Report`],
//! each problem with its place; what is wrong with the *schema* is an error of the call, [`BadSchema`].
//!
//! | file | what |
//! |---|---|
//! | `json` | a strict reader of JSON that knows where everything stands |
//! | `toml` | the same for TOML, on top of the `toml` crate |
//! | `spans` | places by JSON pointer |
//! | `problem` | problems and the report |
//!
//! Schemas, and the words for what they find, come from `haft-schema`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod json;
mod problem;
mod spans;
mod toml;

#[cfg(test)]
mod tests;

pub use haft_schema::BadSchema;
pub use problem::{Problem, Report};

use haft_schema::{
    Checker,
    words::{Place, SchemaProblem},
};
use problem::{Findings, Found, Lines, MAX_LISTED};
use spans::Node;

/// How many problems are listed when the call does not say.
const DEFAULT_LISTED: u32 = 20;

/// What to validate.
///
/// ```
/// use haft_tools::validate_content::{Args, Format, validate};
/// use serde_json::{from_value, json};
///
/// let args: Args = from_value(json!({
///     "content": "[server]\nport = \"80\"\n",
///     "format": "toml",
///     "schema": {"properties": {"server": {"properties": {"port": {"type": "integer"}}}}},
/// }))?;
/// assert_eq!(args.format, Format::Toml);
/// assert_eq!(
///     validate(&args)?.to_string(),
///     "invalid TOML: 1 problem\n\
///      line 2, column 8: /server/port: expected an integer, got the string \"80\"\n  hint: write 80 without quotes"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The text to validate.
    pub content: String,
    /// What the text is: `json` or `toml`.
    #[serde(default)]
    pub format: Format,
    /// JSON Schema (2020-12) that the content has to match: an object, or true or false. References to other
    /// documents are not fetched.
    #[serde(default)]
    #[schemars(extend("type" = ["object", "boolean", "null"]))]
    pub schema: Option<Value>,
    /// How many problems to list; 20 when left out. The total is given in any case.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub max_problems: Option<u32>,
}

impl Args {
    /// Arguments that validate `content` as JSON, without a schema.
    ///
    /// ```
    /// use haft_tools::validate_content::{Args, validate};
    ///
    /// assert!(validate(&Args::json("[1, 2]"))?.valid);
    /// # Ok::<(), haft_tools::validate_content::BadSchema>(())
    /// ```
    pub fn json(content: impl Into<String>) -> Self {
        Self { content: content.into(), format: Format::Json, schema: None, max_problems: None }
    }

    /// Arguments that validate `content` as TOML, without a schema.
    ///
    /// ```
    /// use haft_tools::validate_content::{Args, validate};
    ///
    /// assert!(validate(&Args::toml("a = 1"))?.valid);
    /// # Ok::<(), haft_tools::validate_content::BadSchema>(())
    /// ```
    pub fn toml(content: impl Into<String>) -> Self {
        Self { format: Format::Toml, ..Self::json(content) }
    }
}

/// A format of content.
///
/// ```
/// use haft_tools::validate_content::Format;
///
/// assert_eq!(Format::default().to_string(), "JSON");
/// assert_eq!(serde_json::to_string(&Format::Toml)?, "\"toml\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON as in RFC 8259.
    #[default]
    Json,
    /// TOML 1.0 and 1.1.
    Toml,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
        })
    }
}

/// Validates content.
///
/// # Errors
///
/// When the *schema* cannot be used. Content that cannot is a report.
///
/// ```
/// use haft_tools::validate_content::{Args, validate};
/// use serde_json::json;
///
/// let args = Args { schema: Some(json!({"required": ["name"]})), ..Args::json("{\n  \"nmae\": \"x\"\n}") };
/// let report = validate(&args)?;
/// assert_eq!(
///     report.to_string(),
///     "invalid JSON: 1 problem\n\
///      line 1, column 1: missing required property \"name\"\n  hint: rename \"nmae\" to \"name\""
/// );
/// # Ok::<(), haft_tools::validate_content::BadSchema>(())
/// ```
pub fn validate(args: &Args) -> Result<Report, BadSchema> {
    let checker = args.schema.as_ref().map(Checker::new).transpose()?;
    let lines = Lines::new(&args.content);
    let mut findings = Findings::default();
    let (value, places) = match args.format {
        Format::Json => {
            let scan = json::scan(&args.content, &lines, &mut findings);
            (scan.value, scan.places)
        }
        Format::Toml => {
            let scan = toml::scan(&args.content, &lines, &mut findings);
            (scan.value, Some(scan.places))
        }
    };
    if let (Some(checker), Some(value), Some(places)) = (checker, value, places) {
        let checked = checker.check(&value)?;
        findings.count_unlisted(checked.total - checked.problems.len());
        for problem in checked.problems {
            findings.push(place(problem, &places));
        }
    }
    let listed = args.max_problems.unwrap_or(DEFAULT_LISTED);
    let listed = usize::try_from(listed).map_or(MAX_LISTED, |listed| listed.clamp(1, MAX_LISTED));
    Ok(findings.into_report(args.format, &lines, listed))
}

/// Finds where in the content a problem is.
fn place(problem: SchemaProblem, places: &Node) -> Found {
    let key = match problem.place {
        Place::Key => places.key_at(&problem.pointer),
        Place::Value => None,
    };
    let offset = key.map_or_else(|| places.nearest_to(&problem.pointer).span.start, |key| key.start);
    Found {
        offset,
        pointer: Some(problem.pointer),
        rule: problem.rule,
        message: problem.message,
        hint: problem.hint,
    }
}
