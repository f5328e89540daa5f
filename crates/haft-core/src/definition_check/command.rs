//! The rules for the program behind a tool.

use super::{Found, names::shown_name};
use crate::{CommandInput, CommandSource, Source, ToolDefinition, Touched};
use serde_json::Value;

pub(super) fn check(definition: &ToolDefinition, found: &mut Found) {
    let Some(command) = &definition.command else { return };
    if definition.source != Source::Command {
        found.add(
            "command",
            "only a tool that is a program has one",
            "set source to `command`, or remove it",
        );
    }
    if command.program.trim().is_empty() {
        found.add("command.program", "it is empty", "name a program, such as `./word_count.py`");
    }
    let texts = [("program", std::slice::from_ref(&command.program)), ("args", &command.args)];
    for (name, texts) in texts {
        if texts.iter().any(|text| text.contains('\0')) {
            found.add(format!("command.{name}"), "it has a NUL character", "remove it");
        }
    }
    flags(command, found);
    for (index, name) in command.env.iter().enumerate() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let problem = format!("`{}` is not the name of a variable", shown_name(name));
            found.add(format!("command.env[{index}]"), problem, "use the name alone, such as `CI`");
        }
    }
    if !definition.has_side_effects() {
        let fix = "set constraints.allowSideEffects to true, or remove it";
        if !command.hosts.is_empty() {
            let problem = "a tool without side effects has no way outward";
            found.add("command.hosts", problem, fix);
        }
        if command.writes.as_ref().is_some_and(|writes| !writes.is_empty()) {
            found.add("command.writes", "a tool without side effects writes nothing", fix);
        }
    }
    parameters(definition, command, found);
}

fn flags(command: &CommandSource, found: &mut Found) {
    if command.input == CommandInput::Stdin {
        let fix = "set command.input to `flags`, or remove it";
        let problem = "arguments on standard input have no place on the command line";
        if !command.flags.is_empty() {
            found.add("command.flags", problem, fix);
        }
        if !command.positional.is_empty() {
            found.add("command.positional", problem, fix);
        }
    }
    for (name, flag) in &command.flags {
        let is_flag = flag.len() > 1
            && flag.starts_with('-')
            && flag != "--"
            && !flag.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control());
        if !is_flag {
            let problem = format!("`{}` is not a flag", shown_name(flag));
            found.add(
                format!("command.flags.{}", shown_name(name)),
                problem,
                "write it like `--max` or `-m`",
            );
        }
    }
}

/// What is named as a parameter must be one.
fn parameters(definition: &ToolDefinition, command: &CommandSource, found: &mut Found) {
    let schema = definition.parameters.to_schema();
    let known = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    let mut unknown = |place: String, name: &str, fix: &str| {
        if !is_known(name) {
            found.add(place, format!("there is no parameter `{}`", shown_name(name)), fix);
        }
    };
    let fix = "name a parameter of this tool";
    for name in command.flags.keys() {
        unknown(format!("command.flags.{}", shown_name(name)), name, fix);
    }
    for (index, name) in command.positional.iter().enumerate() {
        unknown(format!("command.positional[{index}]"), name, fix);
    }
    let fix = "name a parameter, a path that begins with `./` or `/`, or a resource such as `git-index:`";
    for (list, entries) in [("reads", &command.reads), ("writes", &command.writes)] {
        for (index, entry) in entries.iter().flatten().enumerate() {
            if let Touched::Parameter(name) = Touched::read(entry) {
                unknown(format!("command.{list}[{index}]"), name, fix);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use serde_json::json;

    fn places(change: impl FnOnce(&mut ToolDefinition, &mut CommandSource)) -> Vec<String> {
        let mut definition = ToolDefinition::new("mine", "Does something");
        definition.source = Source::Command;
        definition.parameters = Parameters::Schema(json!({"properties": {"path": {}, "all": {}}}));
        let mut command = CommandSource::new("x");
        change(&mut definition, &mut command);
        definition.command = Some(Box::new(command));
        let mut found = Found::default();
        check(&definition, &mut found);
        found.0.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn each_rule_has_its_place() {
        let none: [&str; 0] = [];
        assert_eq!(places(|_, _| {}), none);
        assert_eq!(places(|definition, _| definition.source = Source::Http), ["command"]);
        assert_eq!(places(|_, command| command.program = " ".into()), ["command.program"]);
        assert_eq!(places(|_, command| command.args = vec!["a\0b".into()]), ["command.args"]);
        assert_eq!(places(|_, command| command.env = vec!["A".into(), "A=b".into()]), ["command.env[1]"]);
        assert_eq!(places(|_, command| command.positional = vec!["path".into()]), ["command.positional"]);
        let with_flags = |flag: &str, name: &str| {
            places(|_, command| {
                command.input = CommandInput::Flags;
                command.flags = [(name.to_owned(), flag.to_owned())].into();
            })
        };
        for flag in ["-p", "--path", "-path"] {
            assert_eq!(with_flags(flag, "path"), none, "{flag}");
        }
        for flag in ["path", "-", "--", "--a=b", "--a b"] {
            assert_eq!(with_flags(flag, "path"), ["command.flags.path"], "{flag}");
        }
        assert_eq!(with_flags("-x", "other"), ["command.flags.other"]);
        let touched = vec!["path".into(), "./lib".into(), "git-index:".into(), "other".into()];
        assert_eq!(places(|_, command| command.reads = Some(touched.clone())), ["command.reads[3]"]);
        let without_effects = places(|definition, command| {
            definition.constraints.allow_side_effects = false;
            command.hosts = vec!["example.com".into()];
            command.writes = Some(vec!["path".into()]);
        });
        assert_eq!(without_effects, ["command.hosts", "command.writes"]);
    }
}
