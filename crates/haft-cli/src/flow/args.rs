//! What can be typed after `haft flow`.

use super::super::{args::Way, examples};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Run a flow; haft checks every node like a single call
    #[command(after_help = examples::FLOW_RUN)]
    Run(RunArgs),
    /// Check flows and print every problem with its line; nothing runs
    #[command(after_help = examples::FLOW_CHECK)]
    Check {
        /// The flow files; - reads standard input
        #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Draw a flow as text or Mermaid
    #[command(after_help = examples::FLOW_GRAPH)]
    Graph {
        /// The flow file; - reads standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Text for a terminal, or a Mermaid diagram
        #[arg(long, value_name = "FORM", default_value = "text", conflicts_with = "json")]
        format: Form,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The flow file, as TOML or JSON; - reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// Inputs of the flow. KEY=VALUE is read as the type that the flow declares; KEY:=JSON is always JSON;
    /// KEY=@FILE reads a file
    #[arg(value_name = "KEY=VALUE", conflicts_with = "input")]
    pub(super) pairs: Vec<String>,
    /// All inputs as one JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(super) input: Option<String>,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Text,
    Mermaid,
}
