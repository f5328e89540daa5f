//! What can be typed after `haft flow`.

use super::super::{args::Way, examples};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Run a flow: each node is a call through every check
    #[command(after_help = examples::FLOW_RUN)]
    Run(RunArgs),
    /// Say what is wrong with a flow, with its line and column; nothing runs
    #[command(after_help = examples::FLOW_CHECK)]
    Check {
        /// The flows; - reads standard input
        #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Print what was found as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Draw a flow
    #[command(after_help = examples::FLOW_GRAPH)]
    Graph {
        /// The flow; - reads standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// In letters for a terminal, or in the language of Mermaid
        #[arg(long, value_name = "FORM", default_value = "text", conflicts_with = "json")]
        format: Form,
        /// Print nodes, what they depend on, and both pictures as one JSON document and nothing else
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The flow, as TOML or JSON; - reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// What the flow takes: a value is read as the type that the flow wants. KEY:=JSON is JSON whatever it wants;
    /// KEY=@FILE is what is in the file
    #[arg(value_name = "KEY=VALUE", conflicts_with = "input")]
    pub(super) pairs: Vec<String>,
    /// All of it as one JSON object; - reads it from standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(super) input: Option<String>,
    /// Print the result as one JSON document and nothing else
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
