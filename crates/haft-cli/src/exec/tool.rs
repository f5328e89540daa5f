//! The tool behind `haft exec`: a program that is connected to the terminal of the person who typed its name.

use super::attach::Attached;
use haft::{
    Category, IsolationLevel, Source, ToolCtx, ToolDefinition, ToolError, TypedTool, port::GuestStdin,
    schemars, serde,
};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// A program and its arguments.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, crate = "haft::serde")]
#[schemars(crate = "haft::schemars")]
pub(super) struct ProgramArgs {
    /// The program and its arguments.
    argv: Vec<String>,
}

/// Runs a program that reads from and writes to the terminal of this process.
pub(super) struct ExecProgram {
    /// Where it reads and writes.
    pub(super) attached: Arc<Attached>,
    /// Variables that it gets by the wish of the person who typed it. They are in no record.
    pub(super) environment: BTreeMap<String, String>,
    /// What it has to read in order to start.
    pub(super) readable: Vec<PathBuf>,
    /// Where it starts, where that is not the working folder.
    pub(super) starts_in: Option<PathBuf>,
    /// The least containment.
    pub(super) isolation: IsolationLevel,
}

impl TypedTool for ExecProgram {
    const NAME: &'static str = "exec_program";
    type Args = ProgramArgs;
    type Output = String;

    fn define(&self, definition: &mut ToolDefinition) {
        definition.title = Some("Run a program in a jail".to_owned());
        definition.description = "Runs a program in a jail, connected to a terminal.".to_owned();
        definition.category = Category::CodeExecution;
        definition.constraints.allow_side_effects = true;
        definition.constraints.required_isolation = self.isolation;
        definition.source = Source::BuiltIn;
    }

    fn stages(&self, _args: &ProgramArgs) -> bool {
        true
    }

    fn summary(&self, args: &ProgramArgs) -> Option<String> {
        Some(format!("Run program: {}", args.argv.join(" ")))
    }

    async fn call(&self, args: ProgramArgs, cx: ToolCtx) -> Result<String, ToolError> {
        let mut spec = cx.commands().template().clone();
        spec.argv = args.argv;
        spec.environment.extend(self.environment.clone());
        spec.readable.extend(self.readable.iter().cloned());
        spec.working_dir = self.starts_in.clone().or(spec.working_dir);
        spec.stdin = GuestStdin::Stream;
        spec.terminal = self.attached.size();
        let mut guest = cx.start(spec).await?;
        let (sandbox, by, control) =
            (guest.sandbox_id().to_owned(), guest.enforcement().clone(), guest.control());
        let connection = self.attached.connect(Arc::clone(&control))?;
        let mut ending = guest.wait(self.attached.sink());
        let end = tokio::select! {
            biased;
            end = &mut ending => end,
            _ = cx.cancelled() => {
                control.stop();
                ending.await
            }
        };
        // Before anything is said: the terminal is the person's again.
        drop(connection);
        let end = end?;
        cx.note_end(&sandbox, &by, &end);
        end.error().map_or(Ok(String::new()), Err)
    }
}
