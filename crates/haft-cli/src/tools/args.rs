//! What can be typed after `haft tools`.

use super::super::examples;
use clap::{ArgGroup, Args, Subcommand, ValueHint};
use haft::Category;
use haft_core::port::Preset;
use haft_dialect::Dialect;
use serde::Deserialize as _;
use serde::de::{IntoDeserializer, value::StrDeserializer};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List every tool
    #[command(after_help = examples::TOOLS_LIST)]
    List(ListArgs),
    /// Show what a tool takes and may do
    #[command(after_help = examples::TOOLS_SHOW)]
    Show {
        /// The tool's name or one of its aliases
        name: String,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Find the tools that can do something, best first
    #[command(after_help = examples::TOOLS_SEARCH)]
    Search {
        /// What you want to do, in a few words
        #[arg(required = true)]
        words: Vec<String>,
        /// Length of the list
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Add tools from a file or an MCP server
    #[command(after_help = examples::TOOLS_ADD)]
    Add(AddArgs),
    /// Remove a tool that was added
    #[command(after_help = examples::TOOLS_REMOVE)]
    Remove {
        /// The tool's name or one of its aliases
        #[arg(required_unless_present = "mcp")]
        name: Option<String>,
        /// Remove every tool of an MCP server
        #[arg(long, value_name = "SERVER", conflicts_with = "name")]
        mcp: Option<String>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Enable a tool again
    #[command(after_help = examples::TOOLS_ENABLE)]
    Enable {
        /// The tool's name or one of its aliases
        name: String,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Disable a tool: it stays, and its calls are refused
    #[command(after_help = examples::TOOLS_DISABLE)]
    Disable {
        /// The tool's name or one of its aliases
        name: String,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Show or change the settings of a tool
    #[command(after_help = examples::TOOLS_CONFIG)]
    Config(ConfigArgs),
    /// Check files with tool definitions
    #[command(after_help = examples::TOOLS_CHECK)]
    Check {
        /// Definitions, as JSON or TOML; - reads standard input
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Sign a file with tool definitions
    #[command(after_help = examples::TOOLS_SIGN)]
    Sign {
        /// Definitions, as JSON or TOML
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The signing key [default: the one of `haft keys generate`]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        key: Option<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Verify the signatures of files
    #[command(after_help = examples::TOOLS_VERIFY)]
    Verify {
        /// Files with definitions; the signature is beside each, as FILE.sig
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Accept a changed or new tool definition that waits for you
    #[command(after_help = examples::TOOLS_ACCEPT)]
    Accept {
        /// The tool's name
        #[arg(required_unless_present = "mcp")]
        name: Option<String>,
        /// Accept every waiting definition of an MCP server
        #[arg(long, value_name = "SERVER", conflicts_with = "name")]
        mcp: Option<String>,
        /// Show the definition, and accept nothing
        #[arg(long)]
        show: bool,
        /// Print one JSON document only
        #[arg(long)]
        json: bool,
    },
    /// Print definitions as JSON, for haft or for a model provider
    #[command(after_help = examples::TOOLS_EXPORT)]
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A file with definitions, as JSON or TOML; - reads standard input
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath, required_unless_present = "mcp")]
    pub(super) file: Option<PathBuf>,
    /// Replace added tools of the same name
    #[arg(long)]
    pub(super) replace: bool,
    /// The file has the tool list format of OpenAI, Anthropic, Gemini or MCP
    #[arg(long)]
    pub(super) import: bool,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

/// An MCP server, and how it is reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "MCP servers")]
pub(crate) struct ServerArgs {
    /// Add the tools of an MCP server under this name: they are called NAME__TOOL
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "import"])]
    pub(super) mcp: Option<String>,
    /// URL of the server, if it speaks HTTP
    #[arg(long, value_name = "URL", requires = "mcp", conflicts_with = "command")]
    pub(super) url: Option<String>,
    /// A header of every request, as `Name: value`; the value `env:NAME` or `file:PATH` is read from there
    #[arg(long = "header", value_name = "HEADER", requires = "url")]
    pub(super) headers: Vec<String>,
    /// An environment variable that the program gets
    #[arg(long = "env", value_name = "NAME", requires = "command")]
    pub(super) env: Vec<String>,
    /// A host of tools.commands.hosts that the program may reach
    #[arg(long = "host", value_name = "HOST", requires = "command")]
    pub(super) hosts: Vec<String>,
    /// A toolchain of tools.commands.presets that the program uses: rust, node, python or git
    #[arg(long = "preset", value_name = "PRESET", requires = "command", value_parser = preset)]
    pub(super) presets: Vec<Preset>,
    /// Another file or folder that the program may read
    #[arg(long = "file", value_name = "PATH", requires = "command", value_hint = ValueHint::AnyPath)]
    pub(super) files: Vec<PathBuf>,
    /// The program and its arguments, if the server speaks over standard input and output
    #[arg(last = true, value_name = "PROGRAM", requires = "mcp")]
    pub(super) command: Vec<String>,
}

fn preset(typed: &str) -> Result<Preset, String> {
    let text: StrDeserializer<'_, serde::de::value::Error> = typed.into_deserializer();
    Preset::deserialize(text).map_err(|_| "use one of rust, node, python, git".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only tools of this category
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    pub(super) category: Option<Category>,
    /// Only tools that you may call now
    #[arg(long)]
    pub(super) available: bool,
    /// Print one JSON document only
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The tools [default: every enabled tool]
    pub(super) names: Vec<String>,
    /// The provider's format: openai-chat, openai-responses, anthropic, gemini or mcp
    #[arg(long, value_name = "DIALECT")]
    pub(super) dialect: Option<Dialect>,
    /// Use OpenAI's strict mode, where the parameters allow it
    #[arg(long, requires = "dialect")]
    pub(super) strict: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").args(["pairs", "json", "clear"]))]
pub(crate) struct ConfigArgs {
    /// The tool's name or one of its aliases
    pub(super) name: String,
    /// Settings to change: a value is JSON if it parses as JSON, else text; KEY:=JSON is always JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(super) pairs: Vec<String>,
    /// Replace all settings with one JSON object
    #[arg(long, value_name = "JSON")]
    pub(super) json: Option<String>,
    /// Remove all settings
    #[arg(long)]
    pub(super) clear: bool,
}

const CATEGORIES: [&str; 8] = [
    "FileSystem",
    "Network",
    "Database",
    "CodeExecution",
    "ExternalApi",
    "Knowledge",
    "Communication",
    "System",
];

/// A category in any case, with or without separators between its words.
fn category(typed: &str) -> Result<Category, String> {
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_ascii_lowercase();
    let known = CATEGORIES.into_iter().find(|known| plain(known) == plain(typed));
    let parsed = known.and_then(|known| {
        let text: StrDeserializer<'_, serde::de::value::Error> = known.into_deserializer();
        Category::deserialize(text).ok()
    });
    parsed.ok_or_else(|| match haft_core::suggest::nearest(typed, CATEGORIES) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("use one of {}", CATEGORIES.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_typed_in_any_case() {
        for (typed, expected) in [
            ("FileSystem", Category::FileSystem),
            ("file-system", Category::FileSystem),
            ("system", Category::System),
        ] {
            assert_eq!(category(typed), Ok(expected));
        }
        assert_eq!(category("Netwrok"), Err("did you mean Network?".to_owned()));
        assert!(CATEGORIES.iter().all(|known| category(known).is_ok()));
    }
}
