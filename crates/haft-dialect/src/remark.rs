//! What became of a definition on its way, where it could not stay as it was.

use haft_core::text;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of change was made.
///
/// ```
/// use haft_dialect::Change;
/// assert!(!Change::Rewritten.matters());
/// assert!(Change::Loosened.matters());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Says the same in other words.
    Rewritten,
    /// A hint is gone that restricted nothing: a default, an example, a setting of the other side.
    Dropped,
    /// Has another name; [`Export::name_back`](crate::Export::name_back) leads back.
    Renamed,
    /// A text was cut.
    Shortened,
    /// The dialect cannot say a rule, so a model may send more than the tool takes. haft still checks.
    Loosened,
    /// The dialect cannot say all that the tool takes, so a model will send less.
    Tightened,
    /// The tool is not in the result at all.
    LeftOut,
    /// Nothing was changed, although the dialect has a limit.
    OverLimit,
}

impl Change {
    /// Whether it changes which arguments a model may send, or which tools it has.
    pub const fn matters(self) -> bool {
        match self {
            Change::Rewritten | Change::Dropped | Change::Renamed | Change::Shortened => false,
            Change::Loosened | Change::Tightened | Change::LeftOut | Change::OverLimit => true,
        }
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Change::Rewritten => "rewritten",
            Change::Dropped => "dropped",
            Change::Renamed => "renamed",
            Change::Shortened => "shortened",
            Change::Loosened => "loosened",
            Change::Tightened => "tightened",
            Change::LeftOut => "left out",
            Change::OverLimit => "over the limit",
        }
    }
}

/// One change: of which tool, where, what, and why.
///
/// ```
/// use haft_core::ToolDefinition;
/// use haft_dialect::{Dialect, export};
/// let mut definition = ToolDefinition::new("pick", "Picks one");
/// definition.parameters = haft_core::Parameters::Schema(serde_json::json!({
///     "type": "object",
///     "properties": {"mode": {"const": "fast"}},
/// }));
/// let export = export(Dialect::Gemini, [&definition]);
/// assert_eq!(
///     export.remarks[0].to_string(),
///     "pick at /parameters/properties/mode/const: rewritten: it is an `enum` with one value (Gemini has no `const`)",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The name of the tool as its definition has it; empty where the whole list is meant.
    pub tool: String,
    /// A JSON pointer into the definition (its parameters as a JSON Schema), or into the imported tool.
    pub pointer: String,
    /// What kind of change it is.
    pub change: Change,
    /// What became of it.
    pub what: String,
    /// Why it could not stay.
    pub why: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tool.as_str() {
            "" => f.write_str("the list")?,
            tool => f.write_str(&text::one_line(tool, 80))?,
        }
        if !self.pointer.is_empty() {
            write!(f, " at {}", text::one_line(&self.pointer, 200))?;
        }
        write!(f, ": {}: {} ({})", self.change.name(), self.what, self.why)
    }
}

/// The most remarks that one tool gets; the rest is counted.
const MOST_REMARKS: usize = 100;

/// How many parts of a schema are looked at: references that multiply must cost nothing.
const MOST_NODES: usize = 20_000;

/// Collects the remarks of one tool, and bounds what it may cost.
pub(crate) struct Notes {
    tool: String,
    remarks: Vec<Remark>,
    unsaid: usize,
    nodes: usize,
    inlined: bool,
}

impl Notes {
    pub(crate) fn new(tool: &str) -> Self {
        Notes { tool: tool.to_owned(), remarks: Vec::new(), unsaid: 0, nodes: MOST_NODES, inlined: false }
    }

    pub(crate) fn add(&mut self, at: &str, change: Change, what: impl Into<String>, why: impl Into<String>) {
        if self.remarks.len() >= MOST_REMARKS && change != Change::LeftOut {
            self.unsaid += 1;
            return;
        }
        let (what, why) = (what.into(), why.into());
        let said = |remark: &Remark| remark.pointer == at && remark.change == change && remark.what == what;
        if !self.remarks.iter().any(said) {
            let tool = self.tool.clone();
            self.remarks.push(Remark { tool, pointer: at.to_owned(), change, what, why });
        }
    }

    /// Says once for a tool that references were put in place.
    pub(crate) fn inlined(&mut self, at: &str, reference: &str, why: &str) {
        if !self.inlined {
            self.inlined = true;
            let what = format!("what `{}` points to stands in its place", text::one_line(reference, 80));
            self.add(&child(at, "$ref"), Change::Rewritten, what, why);
        }
    }

    /// Counts one part of a schema; false when there were too many.
    pub(crate) fn spend(&mut self) -> bool {
        self.nodes = self.nodes.saturating_sub(1);
        self.nodes > 0
    }

    /// Takes over what was collected elsewhere.
    pub(crate) fn take(&mut self, mut other: Notes) {
        self.remarks.append(&mut other.remarks);
        self.unsaid += other.unsaid;
    }

    pub(crate) fn finish(mut self, into: &mut Vec<Remark>) {
        if self.unsaid > 0 {
            into.append(&mut self.remarks);
            into.push(Remark {
                tool: self.tool,
                pointer: "/parameters".to_owned(),
                change: Change::Loosened,
                what: format!("{} more changes are not listed", self.unsaid),
                why: format!("a tool gets at most {MOST_REMARKS} remarks"),
            });
        } else {
            into.append(&mut self.remarks);
        }
    }
}

/// The pointer to a member.
pub(crate) fn child(at: &str, key: &str) -> String {
    let mut pointer = String::with_capacity(at.len() + key.len() + 1);
    pointer.push_str(at);
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
    pointer
}
