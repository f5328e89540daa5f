//! `validate_content` as a tool. What it does is in [`validate_content`](crate::validate_content).

use crate::{
    harmless,
    validate_content::{Args, Report, validate},
    worded::Worded,
};
use haft_core::{Footprint, Tier, ToolDefinition, ToolError};
use haft_sdk::{ToolCtx, TypedTool};

/// Says whether a text is valid JSON or TOML, and whether it fits a JSON Schema.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use haft_sdk::{testing::TestHost, typed};
/// let tool = typed(haft_tools::ValidateContent);
/// let arguments = serde_json::json!({"content": "a = 1", "format": "toml"});
/// let output = TestHost::new().call(&tool, arguments).await.unwrap();
/// assert_eq!(output.text.as_deref(), Some("valid TOML"));
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidateContent;

impl TypedTool for ValidateContent {
    const NAME: &'static str = "validate_content";
    type Args = Args;
    type Output = Worded<Report>;

    fn define(&self, definition: &mut ToolDefinition) {
        harmless(
            definition,
            "Validate content",
            "Says whether a text is valid JSON or TOML and, where a JSON Schema is given, whether it fits it. Lists \
             each problem with line, column, what was expected and how to correct it. Nothing is read from files or \
             the network.",
        );
        definition.tier = Tier::Teams;
    }

    fn footprint(&self, _args: &Args) -> Option<Footprint> {
        Some(Footprint::default())
    }

    fn summary(&self, args: &Args) -> Option<String> {
        let against = if args.schema.is_some() { " against a schema" } else { "" };
        // As it is: the engine writes control characters out, and nothing of them may be lost before.
        let content = args.content.trim();
        let begin: String = match content.char_indices().nth(60) {
            None => content.to_owned(),
            Some(_) => content.chars().take(59).chain(['…']).collect(),
        };
        Some(format!("validate {} bytes of {}{against}: {begin}", args.content.len(), args.format))
    }

    async fn call(&self, args: Args, _cx: ToolCtx) -> Result<Worded<Report>, ToolError> {
        let report = validate(&args).map_err(|problem| ToolError::bad_args(problem.to_string()))?;
        Ok(Worded { text: report.to_string(), value: report })
    }
}
