//! What to do about a call that did not succeed. The result says what happened, in words for a model too; this adds
//! the next step for the person at the terminal, with the file and the key that it is about.

use super::setup::Setup;
use haft::{
    ApprovalMode, ErrorCode, ToolResult, ToolsMode,
    config::{Origin, Place, Resolved},
};

/// The next step after a result. A call that waits for a person names the question.
pub(super) fn for_result(setup: &Setup, result: &ToolResult) -> Option<String> {
    let error = result.error.as_ref()?;
    // A tool that calls another one passes on that one's error, which names its tool.
    let tool = error.data.as_ref().and_then(|data| data["tool"].as_str()).unwrap_or(&result.tool);
    let step = next_step(setup, error.code, tool);
    let question = error.data.as_ref().and_then(|data| data["approvalId"].as_str());
    if error.data.as_ref().is_some_and(|data| data.get("accept").is_some()) {
        let tool = &result.tool;
        return Some(format!(
            "`haft tools accept {tool} --show` shows the new definition, `haft tools accept {tool}` accepts it"
        ));
    }
    match (error.code, question) {
        (ErrorCode::ConfirmationRequired, Some(id)) if setup.remembers() => {
            let approve = format!("run `haft approvals approve {id}`, then send the same call again");
            Some(step.map_or_else(|| approve.clone(), |step| format!("{approve}\n{step}")))
        }
        _ => step,
    }
}

/// The next step, where there is one to name. `tool` is the canonical name, or what was typed.
pub(super) fn next_step(setup: &Setup, code: ErrorCode, tool: &str) -> Option<String> {
    let tools = &setup.resolved.config.tools;
    let own = &setup.own_file;
    Some(match code {
        ErrorCode::ToolNotFound => "`haft tools list` shows every tool".to_owned(),
        ErrorCode::ToolDisabled if tools.mode != ToolsMode::Enabled => {
            format!("tools.mode is \"disabled\"{}", set_in(&setup.resolved, "tools.mode"))
        }
        ErrorCode::ToolDisabled if !tools.approval.enabled => {
            format!("tools.approval.enabled is false{}", set_in(&setup.resolved, "tools.approval.enabled"))
        }
        ErrorCode::ToolDisabled if is_disabled(setup, tool) => {
            format!("`haft tools enable {tool}` enables it again")
        }
        ErrorCode::ToolDisabled => {
            "with tools.mode = \"parse_only\" a program that embeds haft supplies its results".to_owned()
        }
        ErrorCode::ToolDenied if tools.approval.mode == ApprovalMode::Deny && !is_denylisted(setup, tool) => {
            format!(
                "tools.approval.mode is \"deny\"{}; to allow this tool, add it to allowlist under \
                 [tools.approval] in {own}",
                set_in(&setup.resolved, "tools.approval.mode")
            )
        }
        ErrorCode::ToolDenied if !is_denylisted(setup, tool) => {
            format!("`haft policy explain {tool} KEY=VALUE…` shows the rule, and what would change it")
        }
        ErrorCode::ToolDenied => {
            let key = "tools.approval.denylist";
            match setup.resolved.origins(key).iter().any(|origin| matches!(origin, Origin::Set(_))) {
                true => format!("to allow it, remove it from {key}{}", set_in(&setup.resolved, key)),
                false => allow_by_default(setup, tool),
            }
        }
        ErrorCode::LicenseRequired => super::failure::LICENCE.to_owned(),
        ErrorCode::PermissionDenied if !setup.resolved.config.permissions.local_roles.is_empty() => format!(
            "your roles are permissions.local_roles{}",
            set_in(&setup.resolved, "permissions.local_roles")
        ),
        ErrorCode::ConfirmationRequired if always_asks(setup, tool) => {
            "haft asks about this tool every time; call it in a terminal, or add `--wait 10m`".to_owned()
        }
        ErrorCode::ConfirmationRequired => {
            format!(
                "to run it without being asked, add \"{tool}\" to allowlist under [tools.approval] in {own}"
            )
        }
        ErrorCode::ValidationFailed if setup.haft.definition(tool).is_some() => {
            format!("`haft tools show {tool}` shows its parameters")
        }
        ErrorCode::LimitExceeded => format!("raise the limit under [tools] in {own}"),
        ErrorCode::Timeout => "add --timeout 2m to `haft call`, or raise [tools.timeouts]".to_owned(),
        ErrorCode::DuplicateCallId => "give each call an id of its own, or none".to_owned(),
        ErrorCode::Cancelled if tools.mode == ToolsMode::ParseOnly => format!(
            "tools.mode is \"parse_only\"{}: calls are only checked, and a program that embeds haft supplies their \
             results",
            set_in(&setup.resolved, "tools.mode")
        ),
        // What happened is all there is to say.
        _ => return None,
    })
}

/// How to take a tool from the list of those that are denied where nobody set one.
fn allow_by_default(setup: &Setup, tool: &str) -> String {
    let listed = &setup.resolved.config.tools.approval.denylist;
    let definition = setup.haft.definition(tool);
    let is_it = |entry: &str| {
        let aliases = definition.iter().flat_map(|definition| &definition.aliases).map(String::as_str);
        aliases.chain([tool]).any(|name| entry.eq_ignore_ascii_case(name))
    };
    let left: Vec<String> =
        listed.iter().filter(|entry| !is_it(entry)).map(|entry| format!("\"{entry}\"")).collect();
    format!(
        "it is denied by default; to allow it, set denylist = [{}] under [tools.approval] in {} \
         (`haft init --user` makes that file)",
        left.join(", "),
        setup.own_file
    )
}

fn is_denylisted(setup: &Setup, tool: &str) -> bool {
    let listed = &setup.resolved.config.tools.approval.denylist;
    let definition = setup.haft.definition(tool);
    let aliases = definition.iter().flat_map(|definition| &definition.aliases);
    aliases
        .map(String::as_str)
        .chain([tool])
        .any(|name| listed.iter().any(|entry| entry.eq_ignore_ascii_case(name)))
}

fn is_disabled(setup: &Setup, tool: &str) -> bool {
    setup.haft.tools().get(tool).is_some_and(|registration| !registration.enabled)
}

fn always_asks(setup: &Setup, tool: &str) -> bool {
    setup.haft.definition(tool).is_some_and(|definition| definition.requires_confirmation)
}

/// `, set in haft.toml:2:8`.
fn set_in(resolved: &Resolved, key: &str) -> String {
    let places: Vec<String> = resolved
        .origins(key)
        .iter()
        .filter_map(|origin| match origin {
            Origin::Set(place @ Place::Flag { .. }) => Some(format!("on {place}")),
            Origin::Set(place) => Some(format!("in {place}")),
            Origin::Default => None,
        })
        .collect();
    if places.is_empty() { " by default".to_owned() } else { format!(", set {}", places.join(" and ")) }
}
