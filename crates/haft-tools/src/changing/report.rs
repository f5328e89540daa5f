//! What a tool that changes files gives back.

use haft_core::{ToolError, ToolOutput};
use haft_sdk::{
    IntoToolOutput, Json,
    files::{Changed, FileOutcome},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is new.
    Created,
    /// Its bytes are others.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Moved,
}

/// One file that is different now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedFile {
    /// Where it is, or was.
    pub path: String,
    /// What happened to it.
    pub action: Action,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// How many bytes it has, or had.
    pub bytes: u64,
    /// SHA-256 of its bytes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-256 of its bytes before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_sha256: Option<String>,
}

/// Everything that a call changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangeReport {
    /// Each file that is different now.
    pub files: Vec<ChangedFile>,
    /// By which it is undone.
    pub execution_id: String,
}

/// The report with words, and with each change as a side effect of the call.
pub struct Reported {
    pub(super) text: String,
    pub(super) changed: Vec<Changed>,
    pub(super) execution_id: String,
}

impl Reported {
    fn report(&self) -> ChangeReport {
        let files = self.changed.iter().map(|changed| {
            let (action, moved_from) = match &changed.outcome {
                FileOutcome::Created => (Action::Created, None),
                FileOutcome::Modified => (Action::Modified, None),
                FileOutcome::Deleted => (Action::Deleted, None),
                FileOutcome::Moved { from } => (Action::Moved, Some(from.shown.clone())),
            };
            ChangedFile {
                path: changed.place.shown.clone(),
                action,
                moved_from,
                bytes: changed.bytes,
                sha256: changed.after.clone(),
                previous_sha256: changed.before.clone(),
            }
        });
        ChangeReport { files: files.collect(), execution_id: self.execution_id.clone() }
    }
}

impl IntoToolOutput for Reported {
    fn output_schema() -> Option<Value> {
        <Json<ChangeReport> as IntoToolOutput>::output_schema()
    }

    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = Json(self.report()).into_tool_output()?;
        let now = jiff::Timestamp::now();
        output.side_effects = self.changed.iter().map(|changed| changed.side_effect(now)).collect();
        output.text = Some(self.text);
        Ok(output)
    }
}

/// One line for each file: what happened to it.
pub(super) fn lines(changed: &[Changed]) -> String {
    let line = |changed: &Changed| match &changed.outcome {
        FileOutcome::Created => format!("created: {}", changed.place.shown),
        FileOutcome::Modified => format!("modified: {}", changed.place.shown),
        FileOutcome::Deleted => format!("deleted: {}", changed.place.shown),
        FileOutcome::Moved { from } => format!("moved: {} -> {}", from.shown, changed.place.shown),
    };
    match changed {
        [] => "No changes applied.".to_owned(),
        changed => changed.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}
