//! A program behind a tool: how it is started, what it is given, what it gives back.

use crate::{Limits, port::Preset};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a program gets its arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandInput {
    /// As one JSON object on its standard input.
    #[default]
    Stdin,
    /// As `--name value` on its command line.
    Flags,
}

/// What a program puts out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutput {
    /// Words.
    #[default]
    Text,
    /// One JSON value, which the output schema describes.
    Json,
}

/// The program behind a tool whose source is `command`.
///
/// ```
/// use haft_core::{CommandInput, CommandSource};
/// let command: CommandSource = serde_json::from_str(r#"{"program": "wc", "args": ["-w"]}"#).unwrap();
/// assert_eq!(command, CommandSource { args: vec!["-w".into()], ..CommandSource::new("wc") });
/// assert_eq!(command.input, CommandInput::Stdin);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandSource {
    /// The program. Without a slash it is looked for in `PATH`; else it is a path, and absolute once the tool is added.
    pub program: String,
    /// What stands before the arguments of a call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// How it gets the arguments of a call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub input: CommandInput,
    /// Flags that are not `--` and the parameter's name with dashes, by parameter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flags: BTreeMap<String, String>,
    /// Parameters whose values stand after `--`, in this order, rather than behind a flag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positional: Vec<String>,
    /// What it puts out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: CommandOutput,
    /// Variables of haft's own environment that it gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Hosts that it may reach, of those that are configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Toolchains that it uses, of those that are configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<Preset>,
    /// Files and folders that it reads besides its own program and what every command may read. Relative ones stand
    /// beside the definition, and are absolute once the tool is added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Where it starts, relative to the working folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// What it may use, where that is less than every command may.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// What it reads: parameters that hold paths, paths that begin with `.` or `/`, or names with a colon such as
    /// `git-index:`. Where neither this nor `writes` is there, it may touch anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Vec<String>>,
    /// What it writes, in the same form. It is held to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Vec<String>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl CommandSource {
    /// That program, with the defaults for the rest.
    pub fn new(program: impl Into<String>) -> Self {
        CommandSource { program: program.into(), ..CommandSource::default() }
    }
}

/// Something that a command tool says it touches.
///
/// ```
/// use haft_core::Touched;
/// assert_eq!(Touched::read("path"), Touched::Parameter("path"));
/// assert_eq!(Touched::read("./build"), Touched::Path("./build"));
/// assert_eq!(Touched::read("git-index:"), Touched::Named("git-index:"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched<'a> {
    /// The paths that are the value of a parameter.
    Parameter(&'a str),
    /// That path.
    Path(&'a str),
    /// Anything else that has a name.
    Named(&'a str),
}

impl<'a> Touched<'a> {
    /// What an entry of `reads` or `writes` means.
    pub fn read(entry: &'a str) -> Self {
        if entry.starts_with(['.', '/']) {
            Touched::Path(entry)
        } else if entry.contains(':') {
            Touched::Named(entry)
        } else {
            Touched::Parameter(entry)
        }
    }
}
