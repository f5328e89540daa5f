//! `haft tools export`: definitions for `haft tools add`, or in the dialect of a model's provider.

use super::{
    super::{
        console::Console,
        failure::Failure,
        setup::{Setup, now},
    },
    args::ExportArgs,
    find,
};
use haft::ToolDefinition;
use haft_dialect::{ExportOptions, export_with};
use serde_json::json;
use std::sync::Arc;

pub(super) fn run(args: &ExportArgs, setup: &Setup, console: &mut Console) -> Result<(), Failure> {
    let haft = &setup.haft;
    if args.names.is_empty() {
        haft.tools().bring_all()?;
    }
    let chosen: Vec<Arc<ToolDefinition>> = if args.names.is_empty() && args.dialect.is_some() {
        // For a model: no more than it is to be listed.
        let (listed, all) = now(async {
            let tools = haft.tools();
            (tools.listed(&setup.owner).await, tools.available(&setup.owner).await.len())
        })?;
        if listed.len() < all {
            console.say(format!(
                "note: {} of {all} tools are listed, because tools.max_listed is lower; a model finds the others with \
                 `search_tools` and calls them with `call_tool`",
                listed.len()
            ));
        }
        listed
    } else if args.names.is_empty() {
        let enabled = haft.tools().all().into_iter().filter(|registration| registration.enabled);
        enabled.map(|registration| registration.definition).collect()
    } else {
        args.names.iter().map(|name| Ok(find(haft, name)?.definition)).collect::<Result<_, Failure>>()?
    };
    let definitions = chosen.iter().map(|definition| &**definition);
    let Some(dialect) = args.dialect else {
        let definitions: Vec<&ToolDefinition> = definitions.collect();
        return match definitions.as_slice() {
            [one] => console.print_json(one),
            many => console.print_json(&json!({"tools": many})),
        };
    };
    let export = export_with(dialect, &ExportOptions { strict: args.strict }, definitions);
    for remark in &export.remarks {
        console.say(format!("note: {remark}"));
    }
    console.print_json(&export.to_value())
}
