//! `haft policy`: why a call is decided as it is, what the rules are, and whether their examples hold.

use super::{
    args::{PolicyCommand, PolicyExplainArgs},
    console::{BAD, Console, GOOD, STRONG, UNSURE},
    failure::Failure,
    input::Input,
    pairs,
    setup::{CliContext, Setup},
    watch, words,
};
use haft::{
    Arguments, BatchRequest, ErrorCode, Explanation, PolicySet, Preview, Request, Rule, ToolCall, ToolError,
    config::Profile,
};
use haft_core::text::{one_line, people_text};
use haft_guard::policy::{Effect, PolicyProblems, read_policy_section, read_rules};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn run(command: &PolicyCommand, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    match command {
        PolicyCommand::Explain(args) => explain(args, ground, console),
        PolicyCommand::Test { file: Some(file), json } => {
            test_file(file, *json, &ground.surroundings.working_folder, console)
        }
        PolicyCommand::Test { file: None, json } => {
            // Reading the configuration checks every example in it.
            let configured = ground.configured(console)?;
            tested(&configured.resolved.config.policy.rules, *json, console)
        }
        PolicyCommand::Use { profile } => choose(profile, &ground, console),
        PolicyCommand::Show { json } => {
            let setup = ground.setup(console)?;
            let policy = setup.haft.policy().ok_or(Failure::NoPolicy)?;
            if !json {
                let profile = setup.resolved.config.policy.profile;
                console.print(format!("profile: {profile} ({})\n\n", profile.means()))?;
            }
            show(&policy, *json, console)
        }
    }
}

/// Chooses what holds in this folder where no key says otherwise, and remembers who chose what, and when.
fn choose(profile: &str, ground: &CliContext, console: &mut Console) -> Result<u8, Failure> {
    let profile: Profile =
        profile.parse().map_err(|text: String| Failure::Changes(Box::new(ToolError::bad_args(text))))?;
    let store = ground.surroundings.trust_store()?;
    let folder =
        store.choose_profile(&ground.surroundings.working_folder, profile, jiff::Timestamp::now())?;
    console.print(format!("{}: {profile}: {}\n", words::path(&folder), profile.means()))?;
    for (key, value) in profile.sets() {
        console.print(format!("  {} = {value}\n", key.path()))?;
    }
    Ok(0)
}

fn explain(args: &PolicyExplainArgs, ground: CliContext, console: &mut Console) -> Result<u8, Failure> {
    let working_folder = ground.surroundings.working_folder.clone();
    let setup = ground.setup(console)?;
    let policy = setup.haft.policy().ok_or(Failure::NoPolicy)?;
    let call = the_call(args, &setup, &working_folder)?;
    if setup.haft.definition(&call.name).is_none() {
        let near = setup.haft.nearest(&call.name);
        return Err(Failure::NoTool { name: call.name.to_string(), near });
    }
    let context = setup.caller(args.conversation.as_deref());
    let request = Request::new(call.clone()).context(std::sync::Arc::clone(&context));
    let explained = setup.haft.explain(request, |subject| policy.explain(subject));
    let before = before_policy(&setup, call.clone(), context)?;
    if args.json {
        let error = |error: &ToolError| json!({"code": error.code, "message": error.message});
        let mut shown = match &explained {
            Ok(explanation) => json!({"tool": call.name, "decision": explanation}),
            Err(problem) => json!({"tool": call.name, "error": error(problem)}),
        };
        if let Some(refusal) = &before {
            shown["refusedBeforePolicy"] = error(refusal);
        }
        console.print_json(&shown)?;
    } else {
        if let Some(refusal) = &before {
            let (code, text) = (refusal.code, people_text(&refusal.message));
            console.print(format!("{BAD}refused{BAD:#} before policy, by {code}\n  why: {text}\n\n"))?;
        }
        if let Ok(explanation) = &explained {
            console.print(coloured(explanation))?;
        }
    }
    Ok(match (before, explained) {
        (Some(refusal), _) | (None, Err(refusal)) => refusal.code.exit(),
        (None, Ok(explanation)) => match explanation.effect {
            Effect::Allow => 0,
            Effect::Ask => ErrorCode::ConfirmationRequired.exit(),
            Effect::Deny => ErrorCode::ToolDenied.exit(),
        },
    })
}

/// The call as it was typed. `command=…` of one tool means nothing to another, so the tool's own schema is asked.
fn the_call(args: &PolicyExplainArgs, setup: &Setup, working_folder: &Path) -> Result<ToolCall, Failure> {
    let mut input = Input::default();
    let arguments = match args.args.as_deref() {
        Some("-") => Arguments::from_text(input.stdin()?),
        Some(text) => Arguments::from_text(text),
        None => {
            let definition = setup.haft.definition(&args.tool);
            let schema = definition.map(|definition| definition.parameters.to_schema());
            pairs::arguments(&args.pairs, schema.as_ref(), |path| input.text(path, working_folder))?
        }
    };
    Ok(ToolCall::new(args.tool.as_str(), arguments))
}

/// What refuses the call before policy speaks: a mode, a licence, a permission, arguments that do not fit.
fn before_policy(
    setup: &Setup,
    call: ToolCall,
    context: std::sync::Arc<haft::CallContext>,
) -> Result<Option<ToolError>, Failure> {
    let runtime = watch::runtime()?;
    let previews = runtime.block_on(setup.haft.plan(BatchRequest::from(vec![call]).context(context)));
    runtime.shutdown_background();
    Ok(previews.into_iter().next().and_then(|preview| match preview {
        Preview::Refused(error) if error.code != ErrorCode::ToolDenied => Some(error),
        _ => None,
    }))
}

fn coloured(explanation: &Explanation) -> String {
    let style = match explanation.effect {
        Effect::Allow => GOOD,
        Effect::Ask => UNSURE,
        Effect::Deny => BAD,
    };
    let effect = explanation.effect.to_string();
    people_text(&explanation.to_string()).replacen(&effect, &format!("{style}{effect}{style:#}"), 1)
}

fn test_file(file: &Path, json: bool, working_folder: &Path, console: &mut Console) -> Result<u8, Failure> {
    let text = Input::default().text(file, working_folder)?;
    let base = working_folder.to_string_lossy();
    let has_section = toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("policy"));
    let read = if has_section { read_policy_section(&text, &base) } else { read_rules(&text, &base) };
    let name = if file.as_os_str() == "-" { "standard input".to_owned() } else { words::path(file) };
    match read {
        Ok(rules) => tested(&rules, json, console),
        Err(problems) if json => {
            console.print_json(&json!({"ok": false, "problems": listed(&problems)}))?;
            Ok(super::failure::USAGE)
        }
        Err(problems) => Err(Failure::BadPolicy { name, problems: one_by_one(&problems) }),
    }
}

fn listed(problems: &PolicyProblems) -> Vec<Value> {
    let each = |problem: &haft_guard::policy::PolicyProblem| json!({"line": problem.line, "rule": problem.rule, "problem": problem.message});
    problems.0.iter().map(each).collect()
}

fn one_by_one(problems: &PolicyProblems) -> String {
    let lines = problems.0.iter().map(|problem| format!("  {}", one_line(&problem.to_string(), 1000)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The rules with their examples, all of which hold.
fn tested(rules: &[Rule], json: bool, console: &mut Console) -> Result<u8, Failure> {
    let examples = |rule: &Rule| rule.examples.matching + rule.examples.not_matching;
    if json {
        let each = rules.iter().map(|rule| json!({"name": rule.name, "examples": rule.examples}));
        console.print_json(&json!({"ok": true, "rules": each.collect::<Vec<_>>()}))?;
        return Ok(0);
    }
    if rules.is_empty() {
        console.print("there are no rules; docs/policy.md shows how to write one\n")?;
        return Ok(0);
    }
    let all: usize = rules.iter().map(examples).sum();
    for rule in rules {
        let (style, note) = match rule.effect {
            Effect::Allow if rule.examples.not_matching == 0 => {
                (UNSURE, "; write one that must not match: it catches a rule that allows too much")
            }
            _ => (GOOD, ""),
        };
        let count = words::count(examples(rule), "example");
        console.print(format!(
            "{style}ok{style:#} {STRONG}{}{STRONG:#}: {count}{note}\n",
            words::name(&rule.name)
        ))?;
    }
    let hold = if all == 1 { "holds" } else { "hold" };
    let (rules, examples) = (words::count(rules.len(), "rule"), words::count(all, "example"));
    console.print(format!("{rules}, {examples}: all {hold}\n"))?;
    Ok(0)
}

fn show(policy: &PolicySet, json: bool, console: &mut Console) -> Result<u8, Failure> {
    let lists = policy.lists();
    let mode = format!("{:?}", lists.mode).to_lowercase();
    let placed = |rule: &Rule| {
        let mut shown = json!(rule);
        for (key, value) in [("file", json!(rule.file)), ("line", json!(rule.line))] {
            if !value.is_null() {
                shown[key] = value;
            }
        }
        if rule.only_tightens {
            shown["onlyTightens"] = json!(true);
        }
        shown
    };
    if json {
        console.print_json(&json!({
            "enabled": lists.enabled,
            "mode": mode,
            "promptSideEffects": lists.prompt_side_effects,
            "allowlist": lists.allowlist,
            "denylist": lists.denylist,
            "rules": policy.rules().iter().map(placed).collect::<Vec<_>>(),
        }))?;
        return Ok(0);
    }
    let names = |names: &std::collections::BTreeSet<String>| match names.is_empty() {
        true => "nothing".to_owned(),
        false => one_line(&names.iter().cloned().collect::<Vec<_>>().join(", "), 4096),
    };
    let asks = if lists.prompt_side_effects { "asked about" } else { "not asked about" };
    let enabled = if lists.enabled { "" } else { "nothing runs: tools.approval.enabled is false\n" };
    console.print(format!(
        "{enabled}{STRONG}denied{STRONG:#}   {}\n{STRONG}allowed{STRONG:#}  {}\n{STRONG}else{STRONG:#}     mode {mode}, \
         side effects are {asks}\n",
        names(&lists.denylist),
        names(&lists.allowlist),
    ))?;
    for rule in policy.rules() {
        let style = match rule.effect {
            Effect::Allow => GOOD,
            Effect::Ask => UNSURE,
            Effect::Deny => BAD,
        };
        let text = serde_json::to_value(rule).unwrap_or_default();
        let keys = text.as_object().into_iter().flatten();
        let conditions = keys.filter(|(key, _)| !["name", "effect"].contains(&key.as_str()));
        let conditions: Vec<String> = conditions.map(|(key, value)| format!("{key} = {value}")).collect();
        let (name, place) = (words::name(&rule.name), one_line(&rule.place(), 300));
        console.print(format!(
            "\n{style}{}{style:#} {STRONG}{name}{STRONG:#} ({place})\n  {}\n",
            rule.effect,
            one_line(&conditions.join(", "), 4096)
        ))?;
    }
    if policy.rules().is_empty() {
        console.print("\nThere are no rules. docs/policy.md shows how to write one.\n")?;
    }
    Ok(0)
}
