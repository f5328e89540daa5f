//! Help, version and completions.

use crate::support::Place;
use std::collections::VecDeque;

/// Every command with the page of its help, found by reading the pages, in their order: a new command
/// is tried without anybody listing it.
fn pages(place: &Place) -> Vec<(Vec<String>, String)> {
    let (mut found, mut next) = (Vec::new(), VecDeque::from([Vec::<String>::new()]));
    while let Some(path) = next.pop_front() {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let page = place.haft(&args).stdout;
        // The first page has groups in place of one list.
        let list = match path.is_empty() {
            true => page.split("<COMMAND>").nth(1).and_then(|after| after.split("\nOptions:").next()),
            false => page.split("\nCommands:\n").nth(1).and_then(|after| after.split("\n\n").next()),
        };
        let names = list.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("  "));
        let names = names.filter_map(|line| line.split(' ').next());
        for name in names.filter(|name| !name.is_empty() && *name != "help") {
            next.push_back(path.iter().cloned().chain([name.to_owned()]).collect());
        }
        found.push((path, page));
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

#[test]
fn every_help_has_an_example() {
    let place = Place::new();
    for (command, _) in pages(&place) {
        for flag in ["--help", "-h"] {
            let args: Vec<&str> = command.iter().map(String::as_str).chain([flag]).collect();
            let said = place.haft(&args);
            assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{command:?}");
            assert!(said.stdout.contains("\nExamples:\n  haft "), "{command:?}: {}", said.stdout);
        }
    }
}

#[test]
fn every_example_of_the_help_can_be_typed() {
    let place = Place::new();
    place.write("haft.toml", "");
    place.write("data.json", "[1]");
    place.write("tool.toml", "name = 'ask_colleague'\ndescription = 'Asks'\n");
    place.write(
        "openai-tools.json",
        r#"[{"type": "function", "function": {"name": "ask", "description": "Asks"}}]"#,
    );
    place.write("schema.json", "true");
    place.write("rules.toml", "");
    place.write("calls.json", "[]");
    place.haft(&["call", "get_metrics"]);
    place.haft(&["keys", "generate", "--out", "release.key"]);
    place.write("head.json", place.haft(&["audit", "verify", "--json"]).stdout);
    place.write("calls.jsonl", "{\"name\": \"get_metrics\"}");
    place.write(
        "report.flow.toml",
        "name = 'report'\ndescription = 'Reports'\n[[nodes]]\nname = 'a'\ntool = 'get_metrics'\n",
    );
    let mut seen = 0;
    for (_, help) in pages(&place) {
        let examples = help.split("\nExamples:\n").nth(1).expect("examples");
        for line in examples.lines().take_while(|line| line.starts_with("  ")).map(str::trim) {
            // `haft init    explanation`, and pipes: only what haft itself would get.
            let line = line.rsplit_once("| ").map_or(line, |(_, after)| after);
            let line = line.split(" > ").next().unwrap().split("    ").next().unwrap();
            let words = shell_words(line);
            let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            // What serves or watches does not end, what is revoked has to be there, a hook blocks what no host said, and
            // a shell would expand the star.
            let is_left_out = matches!(
                args[..],
                ["serve" | "mcp" | "worker" | "hook", ..]
                    | ["approvals", "watch", ..]
                    | ["keys", "revoke", ..]
            );
            if is_left_out || line.contains('*') || words[0] != "haft" {
                continue;
            }
            let input = match () {
                () if line.ends_with("batch -") => "[]",
                () if line.ends_with("check -") => "{\"name\": \"a_tool\", \"description\": \"x\"}",
                () => "{}",
            };
            let said = place.haft_with(&args, input);
            let is_taken = ["there is already a tool named", "already exists"]
                .iter()
                .any(|taken| said.stderr.contains(taken));
            let is_usage = said.code == 2
                && !is_taken
                && !matches!(args[0], "init" | "trust")
                && args.get(1) != Some(&"verify");
            assert!(!is_usage, "{line}: {said:?}");
            seen += 1;
        }
    }
    assert!(seen >= 80, "{seen}");
}

/// A line as a shell reads it, as far as the examples need it.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn completions_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = place.haft(&["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{shell}");
        assert!(said.stdout.contains("completions") && said.stdout.contains("stop-on-failure"), "{shell}");
    }
    assert_eq!(place.haft(&["completions", "tcsh"]).code, 2);
}

#[test]
fn version() {
    let said = Place::new().haft(&["--version"]);
    assert_eq!(said.stdout, format!("haft {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_colour_in_a_pipe_and_always_when_asked_for() {
    let place = Place::new();
    assert!(!place.haft(&["tools", "list"]).stdout.contains('\u{1b}'));
    assert!(place.haft(&["--color", "always", "tools", "list"]).stdout.contains('\u{1b}'));
    assert!(!place.haft(&["--color", "never", "call", "zzz"]).stderr.contains('\u{1b}'));
}
