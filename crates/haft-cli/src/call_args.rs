//! The arguments of `haft call`.

use super::{args::Way, timing::Timing};
use clap::{Args, ValueEnum};
use haft::IsolationLevel;
use haft_core::IsolationTechnology;
use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Isolation {
    None,
    Standard,
    Strict,
    Restricted,
}

impl From<Isolation> for IsolationLevel {
    fn from(isolation: Isolation) -> Self {
        match isolation {
            Isolation::None => IsolationLevel::None,
            Isolation::Standard => IsolationLevel::Standard,
            Isolation::Strict => IsolationLevel::Strict,
            Isolation::Restricted => IsolationLevel::Restricted,
        }
    }
}

fn technology(text: &str) -> Result<IsolationTechnology, String> {
    let known = serde_json::from_value(text.into());
    known.map_err(|_| "the jails are auto, process, namespace, runc and gvisor".to_owned())
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    match haft_core::json::parse(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("it must be a JSON object, such as {\"trace\": 7}".to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool's name or one of its aliases
    pub(super) tool: String,
    /// Arguments of the tool. KEY=VALUE is read as the type that the tool declares; KEY:=JSON is always JSON;
    /// KEY=@FILE reads a file, KEY=@- standard input
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub(super) pairs: Vec<String>,
    /// All arguments as one JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(super) args: Option<String>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) timing: Timing,
    /// Print the block of text for a model's context, with at most CHARS characters of content
    #[arg(long, value_name = "CHARS", num_args = 0..=1, require_equals = true, conflicts_with = "json")]
    #[arg(default_missing_value = "4000")]
    pub(super) for_model: Option<usize>,
    /// Your own id for the call; the result has it, too
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,
    /// A JSON object for the tool beside its arguments; programs find it in HAFT_CALL_METADATA
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    pub(super) metadata: Option<Map<String, Value>>,
    /// Idempotency key: calls with the same key have their effect once
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// The lowest isolation level of the sandbox
    #[arg(long, value_name = "LEVEL")]
    pub(super) isolation: Option<Isolation>,
    /// The jail that holds its programs: process, namespace, runc or gvisor
    #[arg(long, value_name = "JAIL", value_parser = technology)]
    pub(super) jail: Option<IsolationTechnology>,
    /// Refuse "5" where the tool declares a number, instead of converting it
    #[arg(long)]
    pub(super) no_coerce: bool,
    /// Print a task id and return; a worker runs the call, `haft runs watch ID` waits for it
    #[cfg(unix)]
    #[arg(long, conflicts_with_all = ["dry_run", "events"])]
    pub(super) detach: bool,
    #[command(flatten)]
    pub(super) way: Way,
}
