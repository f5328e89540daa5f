//! `haft tools`: adding, switching, configuring, finding and checking, over the end of a process.

use crate::support::{Place, Said};
use serde_json::{Value, json};
use std::path::PathBuf;

const TOML: &str = "\
name = 'ask_colleague'
title = 'Ask a colleague'
description = 'Asks the colleague at the next desk a question. Takes a while.'
category = 'Communication'
aliases = ['AskColleague']

[[parameters]]
name = 'question'
description = 'What to ask.'
type = 'String'
required = true

[constraints]
requiredIsolation = 'None'
allowSideEffects = false

[settingsSchema]
type = 'object'
additionalProperties = true
";

fn definition(name: &str) -> String {
    json!({"name": name, "description": "Does something"}).to_string()
}

impl Place {
    pub(crate) fn ok(&self, args: &[&str]) -> Said {
        let said = self.haft(args);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{args:?}: {said:?}");
        said
    }

    fn names(&self) -> Vec<String> {
        let list = self.ok(&["tools", "list", "--json"]).json();
        list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Where an earlier haft kept what is registered.
    fn registrations(&self) -> PathBuf {
        self.home().join(".local/state/haft/registrations.json")
    }

    /// Changes what is registered past haft.
    pub(crate) fn change_database(&self, sql: &str) {
        let database = rusqlite::Connection::open(self.home().join(".local/state/haft/haft.db")).unwrap();
        assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    }

    fn with_colleague() -> Place {
        let place = Place::new();
        place.write("ask.toml", TOML);
        place.ok(&["tools", "add", "ask.toml"]);
        place
    }

    /// What haft said, with this place and this day taken out.
    fn steady(&self, said: &Said) -> String {
        let today = haft::jiff::Timestamp::now().to_string();
        said.shown().replace(self.home().to_str().unwrap(), "~").replace(&today[..10], "[day]")
    }
}

#[test]
fn a_tool_lasts_until_it_is_removed() {
    let place = Place::new();
    place.write("ask.toml", TOML);
    assert!(place.ok(&["tools", "add", "ask.toml"]).stdout.starts_with("added `ask_colleague`\n"));
    assert!(place.names().contains(&"ask_colleague".to_owned()), "another process sees it");

    let said = place.haft(&["call", "AskColleague", "question=why"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.stderr.starts_with("error: `ask_colleague` is only declared, and there is nothing here"),
        "{said:?}"
    );
    assert!(said.stderr.contains("\n  help: with tools.mode = \"parse_only\" "), "{said:?}");

    assert_eq!(place.ok(&["tools", "disable", "ASK_COLLEAGUE"]).stdout, "disabled `ask_colleague`\n");
    assert_eq!(
        place.ok(&["tools", "disable", "ask_colleague"]).stdout,
        "`ask_colleague` is disabled already\n"
    );
    let said = place.haft(&["call", "ask_colleague", "question=why", "--json"]);
    assert_eq!((said.code, &said.json()["error"]["code"]), (3, &json!("TOOL_DISABLED")));
    let said = place.haft(&["call", "ask_colleague", "question=why"]);
    assert!(
        said.stderr.contains("\n  help: `haft tools enable ask_colleague` enables it again\n"),
        "{said:?}"
    );

    assert_eq!(place.ok(&["tools", "enable", "ask_colleague"]).stdout, "enabled `ask_colleague`\n");
    assert_eq!(place.ok(&["tools", "remove", "AskColleague"]).stdout, "removed `ask_colleague`\n");
    assert!(!place.names().contains(&"ask_colleague".to_owned()));
    assert_eq!(place.haft(&["tools", "remove", "ask_colleague"]).code, 1);
}

#[test]
fn every_change_has_one_document_for_a_program() {
    let place = Place::with_colleague();
    for (args, expected) in [
        (["tools", "disable", "AskColleague", "--json"], json!({"name": "ask_colleague", "enabled": false})),
        (["tools", "enable", "AskColleague", "--json"], json!({"name": "ask_colleague", "enabled": true})),
        (["tools", "remove", "AskColleague", "--json"], json!({"removed": "ask_colleague"})),
    ] {
        assert_eq!(place.ok(&args).json(), expected);
    }
}

#[test]
fn what_is_built_in_can_only_be_disabled() {
    let place = Place::new();
    place.write("mine.json", definition("get_metrics"));
    for args in [
        &["tools", "remove", "get_metrics"][..],
        &["tools", "add", "mine.json"],
        &["tools", "add", "mine.json", "--replace"],
    ] {
        let said = place.haft(args);
        assert_eq!(
            (said.code, said.stderr.as_str()),
            (
                3,
                "error: `get_metrics` is built in, so it cannot be changed or removed; it can be disabled\n  help: \
                 `haft tools disable get_metrics` switches it off\n"
            ),
            "{args:?}"
        );
    }
    place.ok(&["tools", "disable", "get_metrics"]);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 3);
    assert_eq!(place.haft(&["call", "call_tool", "name=get_metrics"]).code, 3, "nor by a way around");
    place.ok(&["tools", "enable", "get_metrics"]);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
}

#[test]
fn a_name_that_is_taken_says_how_to_replace() {
    let place = Place::with_colleague();
    place.ok(&["tools", "disable", "ask_colleague"]);
    place.ok(&["tools", "config", "ask_colleague", "desk=3"]);
    let said = place.haft(&["tools", "add", "ask.toml"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.stderr.contains("there is already a tool named `ask_colleague`\n  help: add --replace"),
        "{said:?}"
    );
    place.write("new.toml", TOML.replace("Takes a while.", "Is quick."));
    assert_eq!(place.haft(&["tools", "add", "new.toml", "--replace"]).code, 2, "it is not what it was");
    assert!(
        place.ok(&["tools", "accept", "ask_colleague"]).stdout.starts_with("accepted `ask_colleague`:\n")
    );
    let shown = place.ok(&["tools", "show", "ask_colleague", "--json"]).json();
    assert!(shown["description"].as_str().unwrap().ends_with("Is quick."), "{shown}");
    assert_eq!(
        (&shown["registration"]["enabled"], &shown["registration"]["settings"]),
        (&json!(false), &json!({"desk": 3})),
        "switch and settings stay"
    );
    place.write(
        "alias.json",
        json!({"name": "other", "description": "x", "aliases": ["askcolleague"]}).to_string(),
    );
    let said = place.haft(&["tools", "add", "alias.json"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("`ask_colleague` has it\n  help: choose another name"), "{said:?}");
}

#[test]
fn many_are_added_together_or_not_at_all() {
    let place = Place::new();
    let many = json!({"tools": [
        {"name": "one_tool", "description": "x"},
        {"name": "two_tool", "description": "x", "source": "command"},
    ]});
    let said = place.haft_with(&["tools", "add", "-", "--json"], many.to_string());
    assert_eq!(said.json(), json!({"added": ["one_tool", "two_tool"], "replaced": []}), "{said:?}");
    let said = place.haft(&["call", "two_tool"]);
    assert!(
        said.stderr.contains("`two_tool` is a program that its definition does not name in a table `command`, and there is nothing"),
        "{said:?}"
    );

    let clash = json!([{"name": "three_tool", "description": "x"}, {"name": "one_tool", "description": "x"}]);
    assert_eq!(place.haft_with(&["tools", "add", "-"], clash.to_string()).code, 2);
    assert!(!place.names().contains(&"three_tool".to_owned()));
}

#[test]
fn what_is_exported_can_be_added() {
    let place = Place::with_colleague();
    let exported = place.ok(&["tools", "export", "ask_colleague"]).stdout;
    let said = place.haft_with(&["tools", "add", "-", "--replace"], &exported);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.ok(&["tools", "export", "ask_colleague"]).stdout, exported);
    let all = place.ok(&["tools", "export"]).stdout;
    assert_eq!(place.haft_with(&["tools", "check", "-"], &all).code, 0);
}

#[test]
fn settings() {
    let place = Place::with_colleague();
    let config = |args: &[&str]| place.ok(&[&["tools", "config", "ask_colleague"], args].concat()).stdout;
    assert_eq!(config(&[]), "`ask_colleague` has no settings\n");
    assert_eq!(config(&["desk=3", "name=Ada"]), "desk = 3\nname = \"Ada\"\n");
    assert_eq!(config(&["desk=4"]), "desk = 4\nname = \"Ada\"\n");
    assert_eq!(config(&["--json", "{\"only\": [1]}"]), "only = [1]\n");
    assert_eq!(config(&[]), "only = [1]\n");
    assert_eq!(config(&["--clear"]), "`ask_colleague` has no settings\n");
    for (args, code) in [(&["desk"][..], 2), (&["--json", "["], 2), (&["a=1", "--clear"], 2)] {
        assert_eq!(
            place.haft(&[&["tools", "config", "ask_colleague"], args].concat()).code,
            code,
            "{args:?}"
        );
    }
}

#[test]
fn a_list_that_denies_an_alias_means_an_added_tool_too() {
    let place = Place::with_colleague();
    let deny = "tools.approval.denylist=AskColleague";
    let said = place.haft(&["--set", deny, "call", "ask_colleague", "question=why"]);
    assert!(said.stderr.starts_with("error: `ask_colleague` is on the denylist"), "{said:?}");
}

#[test]
fn two_at_once_lose_nothing() {
    let place = Place::new();
    let names: Vec<String> = (0..8).map(|index| format!("tool_{index}")).collect();
    for name in &names {
        place.write(&format!("{name}.json"), definition(name));
    }
    let children: Vec<_> = names
        .iter()
        .map(|name| place.program(&["tools", "add", &format!("{name}.json")]).spawn().unwrap())
        .collect();
    for child in children {
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
    }
    let there = place.names();
    assert!(names.iter().all(|name| there.contains(name)), "{there:?}");
}

#[test]
fn a_record_that_cannot_be_read_stops_everything_and_says_the_way_out() {
    let place = Place::with_colleague();
    place.ok(&["tools", "disable", "get_metrics"]);
    std::fs::write(place.registrations(), "{\"version\": 1, \"tools\": [").unwrap();
    for args in [&["call", "get_metrics"][..], &["tools", "list"], &["tools", "add", "ask.toml"]] {
        let said = place.haft(args);
        assert_eq!(said.code, 1, "a tool that was disabled must not run: {said:?}");
    }
    insta::assert_snapshot!(place.steady(&place.haft(&["tools", "list"])));
    let path = place.registrations();
    std::fs::rename(&path, path.with_extension("json.bad")).unwrap();
    assert_eq!(place.ok(&["tools", "list"]).code, 0, "as it said");
}

#[test]
fn a_row_that_cannot_be_read_lets_no_tool_run() {
    let place = Place::with_colleague();
    place.ok(&["tools", "disable", "get_metrics"]);
    place
        .change_database("UPDATE tool_registrations SET settings_json = '{' WHERE tool_name = 'get_metrics'");
    for args in [&["call", "get_metrics"][..], &["call", "get_state"], &["tools", "list"]] {
        let said = place.haft(args);
        assert_ne!(said.code, 0, "a tool that was disabled must not run: {said:?}");
    }
}

#[test]
fn what_an_earlier_haft_registered_in_a_file_is_taken_over_once() {
    let place = Place::new();
    let file = place.registrations();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(file.parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    let text = json!({"version": 1, "tools": [
        {"name": "get_metrics", "enabled": false},
        {"name": "said", "definition": {"name": "said", "description": "Says it", "aliases": ["Sagt"]},
         "settings": {"maxOutputSize": 100}, "registeredBy": "ada", "registeredAt": "2026-01-02T03:04:05Z"},
    ]})
    .to_string();
    std::fs::write(&file, &text).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();

    // The first command that needs tools, whichever it is.
    let refused = place.haft(&["call", "get_metrics", "--json"]);
    assert_eq!(refused.json()["error"]["code"], json!("TOOL_DISABLED"), "{refused:?}");
    assert!(!file.exists());
    let kept = file.with_extension("json.imported");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text, "kept as it was");
    let shown = place.ok(&["tools", "show", "sagt", "--json"]).json();
    assert_eq!(shown["registration"]["settings"], json!({"maxOutputSize": 100}));
    assert_eq!(shown["registration"]["registeredBy"], json!("ada"));
    assert_eq!(shown["registration"]["registeredAt"], json!("2026-01-02T03:04:05Z"));

    // What a haft of before writes later is taken over, too, and loosens nothing.
    place.ok(&["tools", "disable", "said"]);
    let later = json!({"version": 1, "tools": [
        {"name": "said", "definition": {"name": "said", "description": "Says more"}},
        {"name": "get_state", "enabled": false},
    ]});
    std::fs::write(&file, later.to_string()).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let listed = place.haft(&["tools", "list", "--json"]);
    assert!(listed.stderr.contains("the database has other entries for said"), "{listed:?}");
    assert!(!file.exists() && file.with_extension("json.imported-2").exists());
    let enabled = |name: &str| {
        let list = listed.json();
        let tool = list.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
        (tool["registration"]["enabled"].clone(), tool["description"].clone())
    };
    assert_eq!(enabled("said"), (json!(false), json!("Says it")), "as it was here");
    assert_eq!(enabled("get_state").0, json!(false));
    assert_eq!(enabled("get_metrics").0, json!(false));
}

#[test]
fn what_cannot_be_brought_back_is_said_once_and_kept() {
    let place = Place::with_colleague();
    place.change_database(
        "UPDATE tool_registrations SET definition_json = replace(definition_json, '\"AskColleague\"', '\"GetMetrics\"')",
    );
    let said = place.haft(&["tools", "list"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.stderr.matches("warning:").count(), 1, "{said:?}");
    assert!(said.stderr.contains("`ask_colleague`: `GetMetrics` is already registered"), "{said:?}");
    let again = place.haft(&["tools", "list"]);
    assert_eq!(again.stderr, said.stderr, "it stays remembered");
    let said = place.haft(&["tools", "remove", "ask_colleague"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "removed `ask_colleague`\n"), "as it said");
    assert_eq!(place.ok(&["tools", "list"]).code, 0);
}

/// What is refused here is that it is quadratic again: twice as many may take four times as long only where each of
/// them costs twice as much.
#[test]
fn twice_as_many_tools_are_added_in_twice_the_time_and_slow_no_call() {
    let list = |count: usize| {
        let tools: Vec<Value> = (0..count)
            .map(|number| json!({"name": format!("tool_{number:05}"), "description": "Does something"}))
            .collect();
        Value::from(tools).to_string()
    };
    let time = |place: &Place, args: &[&str]| {
        let begun = std::time::Instant::now();
        place.ok(args);
        begun.elapsed().as_secs_f64()
    };
    let (few, many, none) = (Place::new(), Place::new(), Place::new());
    few.write("tools.json", list(1000));
    many.write("tools.json", list(2000));
    let (one, two) =
        (time(&few, &["tools", "add", "tools.json"]), time(&many, &["tools", "add", "tools.json"]));
    assert!(two < 3.2 * one + 0.5, "1,000 tools took {one} s and 2,000 {two} s");
    assert!(two < 20.0, "{two} s");
    // The best of some calls: others work here, too.
    let call = |place: &Place| {
        let times = (0..7).map(|_| time(place, &["call", "get_state"]));
        times.fold(f64::INFINITY, f64::min)
    };
    let (without, with) = (call(&none), call(&many));
    assert!(with < 2.0 * without + 0.05, "a call took {without} s without tools and {with} s with 2,000");
    let listed = |place: &Place| time(place, &["tools", "list"]);
    let (one, two) = (listed(&few), listed(&many));
    assert!(two < 3.2 * one + 0.5, "listing 1,000 took {one} s and 2,000 {two} s");
}

#[test]
fn without_a_folder_nothing_is_promised() {
    let place = Place::new();
    place.write("ask.toml", TOML);
    let said = Said::of(place.program(&["tools", "add", "ask.toml"]).env_remove("HOME").output().unwrap());
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (
            2,
            "error: there is no state folder\n  help: set HAFT_STATE_DIR or HOME to a folder that you can write\n"
        )
    );
}

#[test]
fn the_pages() {
    let place = Place::with_colleague();
    place.ok(&["tools", "disable", "ask_colleague"]);
    place.ok(&["tools", "config", "ask_colleague", "desk=3"]);
    let mut text = String::new();
    for args in [
        &["tools", "list"][..],
        &["tools", "list", "--category", "communication"],
        &["tools", "list", "--category", "communication", "--available"],
        &["tools", "list", "--category", "comunication"],
        &["tools", "show", "ask_colleague"],
        &["tools", "enable", "ask_coleague"],
    ] {
        text.push_str(&format!("$ haft {}\n{}\n", args.join(" "), place.steady(&place.haft(args))));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn searching() {
    let place = Place::with_colleague();
    let found = place.ok(&["tools", "search", "is", "this", "json", "valid", "--json"]).json();
    assert_eq!(found["tools"][0]["name"], "validate_content", "{found}");
    let scores: Vec<f64> =
        found["tools"].as_array().unwrap().iter().map(|tool| tool["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let mut text = String::new();
    for args in [
        &["tools", "search", "is this json valid"][..],
        &["tools", "search", "question", "for", "somebody", "--limit", "1"],
        &["tools", "search", "zebra"],
    ] {
        text.push_str(&format!("$ haft {}\n{}\n", args.join(" "), place.ok(args).shown()));
    }
    insta::assert_snapshot!(text);
    place.ok(&["tools", "disable", "validate_content"]);
    let found = place.ok(&["tools", "search", "is this json valid", "--json"]).json();
    let is_there = |tool: &Value| tool["name"] == "validate_content";
    assert!(!found["tools"].as_array().unwrap().iter().any(is_there), "{found}");
}

#[test]
fn every_problem_of_every_file() {
    let place = Place::new();
    place.write("good.toml", TOML);
    place.write("syntax.json", "{\n  \"name\": \"a_tool\",\n  \"description\": \"x\",\n}\n");
    place.write(
        "broken.toml",
        "naem = 'ask'\ndescription = 3\ncategory = 'Comunication'\n[[parameters]]\nname = 'x'\n",
    );
    place.write(
        "rules.json",
        json!([
            {"name": "Ask Me", "description": "", "version": "one"},
            {"name": "ask", "description": "x", "parameters": [{"name": "n", "description": "x", "type": "Integer", "default": "1"}]},
        ])
        .to_string(),
    );
    let mut text = String::new();
    for args in [
        &["tools", "check", "good.toml", "syntax.json", "broken.toml", "rules.json"][..],
        &["tools", "check", "good.toml"],
        &["tools", "check", "syntax.json", "--json"],
        &["tools", "check", "nothing.json"],
        &["tools", "add", "rules.json"],
    ] {
        text.push_str(&format!("$ haft {}\n{}\n", args.join(" "), place.haft(args).shown()));
    }
    insta::assert_snapshot!(text);
    assert_eq!(place.haft(&["tools", "check", "good.toml", "syntax.json"]).code, 2);
    assert!(place.names().iter().all(|name| name != "ask" && name != "good"), "nothing was added");
}

#[test]
fn every_member_of_a_definition_is_documented() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md")).unwrap();
    let form: Value = serde_json::from_str(haft_definition::FILE_SCHEMA).unwrap();
    for pointer in ["/properties", "/$defs/parameter/properties"] {
        for member in form.pointer(pointer).unwrap().as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{member}`")), "docs/tools.md does not mention `{member}`");
        }
    }
}

/// FR-VAL-01a: one dialect for all tools. What names an older draft is converted, and a person is told.
#[test]
fn a_schema_of_an_older_draft_is_read_as_2020_12_and_that_is_said() {
    let place = Place::new();
    let with = |draft: &str| {
        let schema = json!({"$schema": draft, "type": "object", "properties": {"at": {"items": [{"type": "integer"}]}}});
        json!({"name": "mark", "description": "Marks a place", "parameters": schema}).to_string()
    };
    place.write("mark.tool.json", with("http://json-schema.org/draft-07/schema#"));
    let said = place.haft(&["tools", "add", "mark.tool.json"]);
    let note = "parameters: written in JSON Schema draft-07, read as 2020-12";
    assert_eq!((said.code, said.stderr.as_str()), (0, format!("note: mark: {note}\n").as_str()), "{said:?}");
    assert!(place.ok(&["tools", "show", "mark"]).stdout.contains(note));
    // The definition is as it came.
    let shown = place.ok(&["tools", "show", "mark", "--json"]).json();
    assert_eq!(shown["parameters"]["$schema"], "http://json-schema.org/draft-07/schema#");
    place.write("mark.tool.json", with("http://json-schema.org/draft-03/schema#"));
    let refused = place.haft(&["tools", "add", "mark.tool.json", "--replace"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("write the schema in 2020-12"), "{refused:?}");
}
