//! What may run, who may, and what must not be seen: through the real program and its files.

use crate::support::{Place, Said};
use haft::{Licence, Tier, jiff::Timestamp};
use haft_guard::SecretKey;
use serde_json::{Value, json};

/// Runs, or says why nothing here can hold a program.
fn contained(name: &str, said: &Said) -> bool {
    let result = said.json();
    if result["error"]["code"] == json!("SANDBOX_CREATION_FAILED") {
        haft_testkit::not_run(name, result["error"]["message"].as_str().unwrap());
        return false;
    }
    true
}

const RULES: &str = "\
[tools.approval]
mode = 'auto'

[[policy.rules]]
name = 'no secrets'
effect = 'deny'
reason = 'keys stay where they are'
path = 'secrets/**'
category = 'FileSystem'
examples = { match = ['secrets/a'], no_match = ['src/a'] }
";

#[test]
fn a_rule_denies_and_says_so_everywhere() {
    let place = Place::new();
    place.own_config(RULES);
    std::fs::create_dir(place.work().join("secrets")).unwrap();
    place.write("secrets/a", "x");
    place.write("b", "fine\n");
    assert_eq!(place.haft(&["call", "read_file", "path=b"]).stdout, "fine\n");
    // By its own name, by an alias, through a folder around it.
    for (tool, path) in [("read_file", "secrets/a"), ("Read", "./secrets/a")] {
        let said = place.haft(&["call", tool, &format!("path={path}"), "--json"]);
        let result = said.json();
        assert_eq!((said.code, &result["error"]["code"]), (3, &json!("TOOL_DENIED")), "{said:?}");
        assert_eq!(result["error"]["data"]["rule"], json!("no secrets"));
        let text = result["error"]["message"].as_str().unwrap();
        assert!(text.contains("keys stay where they are") && text.contains("another way"), "{text}");
    }
    let audit = place.haft(&["audit", "query", "--json"]).stdout;
    assert!(audit.contains("no secrets"), "the record names the rule: {audit}");
    let said = place.haft(&["call", "read_file", "path=secrets/a"]);
    assert!(said.stderr.contains("haft policy explain read_file"), "{said:?}");
}

#[test]
fn explaining_names_every_rule_and_runs_nothing() {
    let place = Place::new();
    place.own_config(RULES);
    let said = place.haft(&["policy", "explain", "write_file", "path=secrets/a", "content=x", "--json"]);
    let decision = said.json()["decision"].clone();
    assert_eq!(
        (said.code, &decision["effect"], &decision["rule"]),
        (3, &json!("deny"), &json!("no secrets"))
    );
    let considered = decision["considered"].as_array().unwrap();
    let rule = considered.iter().find(|one| one["name"] == "no secrets").unwrap();
    assert_eq!((&rule["outcome"], &rule["line"]), (&json!("holds"), &json!(4)), "{rule}");
    assert!(rule["file"].as_str().unwrap().ends_with("haft.toml"));
    assert!(decision["wouldChange"][0].as_str().unwrap().contains("the rule `no secrets`"));
    assert!(!place.work().join("secrets").exists());

    let said = place.haft(&["policy", "explain", "write_file", "path=b", "content=x"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.starts_with("allow, by `mode`\n"), "{said:?}");
    // What is denied by name alone is explained, too; what does not fit is said before.
    let said = place.haft(&["policy", "explain", "run_command", "command=ls"]);
    assert!(said.code == 3 && said.stdout.starts_with("deny, by `denylist`\n"), "{said:?}");
    let said = place.haft(&["policy", "explain", "read_file"]);
    assert!(said.code == 4 && said.stdout.starts_with("refused before policy, by VALIDATION_FAILED"));
    let said = place.haft(&["policy", "explain", "raed_file"]);
    assert!(said.code == 1 && said.stderr.contains("did you mean `read_file`?"), "{said:?}");
    let said =
        place.haft(&["policy", "explain", "run_command", "command=ls", "--set", "tools.mode=disabled"]);
    assert!(said.stdout.contains("by TOOL_DISABLED"), "{said:?}");
}

#[test]
fn examples_are_tested_and_a_broken_file_is_refused_with_its_line() {
    let place = Place::new();
    place.own_config(RULES);
    let said = place.haft(&["policy", "test"]);
    assert_eq!(said.stdout, "ok no secrets: 2 examples\n1 rule, 2 examples: all hold\n");
    let shown = place.haft(&["policy", "show", "--json"]).json();
    assert_eq!(shown["rules"][0]["name"], json!("no secrets"));
    assert_eq!(shown["denylist"], json!(["execute_code", "run_command", "start_command"]));

    place.own_config(&RULES.replace("['src/a']", "['secrets/b']"));
    for command in [vec!["policy", "test"], vec!["call", "get_metrics"]] {
        let said = place.haft(&command);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.stderr.contains("the example `secrets/b` must not match, and does"), "{said:?}");
        assert!(said.stderr.contains("haft.toml:10:1"), "{said:?}");
    }
    place.own_config("");
    place.write(
        "rules.toml",
        "[[rules]]\nname = 'r'\neffect = 'allow'\ntool = 'x'\nexamples = { match = ['y'] }\n",
    );
    let said = place.haft(&["policy", "test", "rules.toml"]);
    assert!(
        said.code == 2 && said.stderr.contains("line 5: rule `r`: the example `y` must match"),
        "{said:?}"
    );
    let said = place.haft(&["policy", "test", "rules.toml", "--json"]);
    assert_eq!((said.code, &said.json()["problems"][0]["line"]), (2, &json!(5)));
    let said = place.haft_with(&["policy", "test", "-"], RULES);
    assert!(said.code == 0 && said.stdout.contains("1 rule, 2 examples"), "{said:?}");
}

/// A repository that brings its own rules can forbid, and cannot allow.
#[test]
fn a_folder_tightens_and_loosens_only_when_it_is_trusted() {
    let place = Place::new();
    let rules = "\
[[policy.rules]]
name = 'stays as it is'
effect = 'deny'
tool = 'edit_file'
[[policy.rules]]
name = 'opens'
effect = 'allow'
tool = 'write_file'
";
    place.write("haft.toml", rules);
    place.write("a", "x");
    let write = || place.haft(&["call", "write_file", "path=new", "content=x", "--json"]);
    let said = write();
    assert_eq!((said.code, &said.json()["error"]["code"]), (5, &json!("CONFIRMATION_REQUIRED")), "{said:?}");
    assert!(said.stderr.contains("policy.rules: `opens` (line 5) allows something"), "{said:?}");
    let edit = place.haft(&["policy", "explain", "edit_file", "path=a", "old_text=x", "new_text=y"]);
    assert!(edit.stdout.starts_with("deny, by `stays as it is`"), "{edit:?}");
    let trusted = place.haft(&["trust", "--yes"]);
    assert!(trusted.stdout.contains("opens"), "{trusted:?}");
    assert_eq!(write().code, 0);
    // Changed, it is what it was before it was trusted.
    place.write("haft.toml", rules.replace("tool = 'write_file'", "tool = 'write_*'"));
    std::fs::remove_file(place.work().join("new")).unwrap();
    assert_eq!(write().code, 5);
}

/// The two traps: a section without a list must not empty it, and a list of variables must not replace the defaults.
#[test]
fn what_is_not_mentioned_stays_denied() {
    let place = Place::new();
    place.own_config(
        "[tools.approval]\nmode = 'auto'\n[tools.environment]\ndenylist = ['COMPANY_*']\n\
         [[policy.rules]]\nname = 'all commands'\neffect = 'allow'\nconfirms = true\ncommand = 'printenv'\n",
    );
    let said = place.haft(&["call", "run_command", "command=printenv", "--json"]);
    assert_eq!(
        said.json()["error"]["data"]["rule"],
        json!("denylist"),
        "a rule overrides no denylist: {said:?}"
    );

    place.own_config(
        "[tools.approval]\nmode = 'auto'\ndenylist = []\n[tools.environment]\ndenylist = ['COMPANY_*']\n\
         [tools.commands]\npass_environment = ['*']\n\
         [[policy.rules]]\nname = 'look'\neffect = 'allow'\nconfirms = true\ncommand = 'printenv'\n",
    );
    let mut program = place.program(&["call", "run_command", "command=printenv", "--json"]);
    let variables = [
        ("PATH", "/usr/bin:/bin"),
        ("PLAIN", "plain-value-1"),
        ("COMPANY_ID", "company-value-2"),
        ("GITHUB_TOKEN", "token-value-3"),
        ("AWS_REGION", "region-value-4"),
    ];
    let said = Said::of(program.envs(variables).output().unwrap());
    if !contained("guard::what_is_not_mentioned_stays_denied", &said) {
        return;
    }
    let text = said.json()["content"][0]["text"].as_str().unwrap().to_owned();
    for hidden in ["COMPANY_ID", "GITHUB_TOKEN", "AWS_REGION", "company-value", "token-value", "region-value"]
    {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    assert!(text.contains("PATH="), "{text}");
}

#[test]
fn roles_say_who_may_what() {
    let place = Place::new();
    place.write("a", "hello\n");
    let with = |roles: &str, tool: &str, args: &[&str]| {
        place.own_config(&format!(
            "[tools.approval]\nmode = 'auto'\n[permissions]\nlocal_roles = [{roles}]\n\
             roles = ['careful: tool.* !tool.filesystem.write', 'local/viewer: tool.nothing', 'nobody: x']\n"
        ));
        let mut all = vec!["call", tool];
        all.extend(args);
        place.haft(&all)
    };
    assert_eq!(with("'contributor'", "read_file", &["path=a"]).code, 0);
    assert_eq!(with("'contributor'", "write_file", &["path=b", "content=x"]).code, 0);
    assert_eq!(with("'careful'", "read_file", &["path=a"]).code, 0);
    let said = with("'careful', 'admin'", "write_file", &["path=c", "content=x"]);
    assert!(
        said.code == 3 && said.stderr.contains("the role `careful` denies it"),
        "deny beats allow: {said:?}"
    );
    assert!(said.stderr.contains("permissions.local_roles"), "{said:?}");
    let said = with("'viewer'", "read_file", &["path=a"]);
    assert_eq!(said.code, 3, "this tenant's own role of that name: {said:?}");
    let said = with("'ghost'", "read_file", &["path=a"]);
    assert!(said.stderr.contains("there is no role `ghost` here"), "{said:?}");
    assert_eq!(with("", "read_file", &["path=a"]).code, 0, "the owner may everything");
    place.own_config("[permissions]\nroles = ['auditor']\n");
    let said = place.haft(&["call", "get_metrics"]);
    assert!(said.code == 2 && said.stderr.contains("`auditor` is no role"), "{said:?}");
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn licence(tier: Tier) -> Licence {
    Licence { id: "L-7".into(), holder: "ACME".into(), tier, valid_from: at(0), expires: None, tenant: None }
}

/// A place with an authority, and this in its licence's file.
fn licensed(text: Option<&str>) -> Place {
    let place = Place::new();
    let authority = SecretKey::from_seed([5; 32]).public();
    place.own_config(&format!("[tools.approval]\nmode = 'auto'\n[license]\nauthority = '{authority}'\n"));
    if let Some(text) = text {
        std::fs::write(place.home().join(".config/haft/license.json"), text).unwrap();
    }
    place
}

#[test]
fn a_licence_is_issued_and_counts() {
    let place = Place::new();
    let public = place.haft(&["keys", "generate", "--json"]).json()["publicKey"].as_str().unwrap().to_owned();
    let issue = ["license", "issue", "--tier", "teams", "--holder", "ACME", "--id", "L-9"];
    let issued = place.haft(&issue);
    assert!(issued.code == 0 && issued.stderr.contains(&public), "{issued:?}");
    place.own_config(&format!("[license]\nauthority = '{public}'\n"));
    let tier = || place.haft(&["license", "show", "--json"]).json()["tier"].clone();
    assert_eq!(tier(), json!("Core"), "the control");
    std::fs::write(place.home().join(".config/haft/license.json"), &issued.stdout).unwrap();
    assert_eq!(tier(), json!("Teams"));
    let past = place.haft(&[&issue[..], &["--expires", "2020-01-01T00:00:00Z"]].concat());
    assert!(past.code == 2 && past.stdout.is_empty() && past.stderr.contains("is over"), "{past:?}");
    let odd = place.haft(&["license", "issue", "--tier", "gold", "--holder", "ACME"]);
    assert!(odd.code == 2 && odd.stderr.contains("write Core, WriterPro, Teams or Enterprise"), "{odd:?}");
}

/// A tool of one's own runs in the tier that may add it: held as strictly as the tier includes.
#[test]
fn own_tools_run_in_every_tier_that_may_add_them() {
    let key = SecretKey::from_seed([5; 32]);
    for tier in [Tier::WriterPro, Tier::Teams, Tier::Enterprise] {
        let place = licensed(Some(&licence(tier).sign(&key).unwrap()));
        place.write(
            "hello.json",
            json!({"name": "hello", "description": "Says hello", "source": "command",
                "command": {"program": "/bin/echo", "args": ["hello"]}})
            .to_string(),
        );
        assert_eq!(place.haft(&["tools", "add", "hello.json"]).code, 0, "{tier:?}");
        let said = place.haft(&["call", "hello", "--json"]).json();
        assert_eq!(
            (&said["status"], &said["content"][0]["text"]),
            (&json!("Success"), &json!("hello\n")),
            "{tier:?}: {said}"
        );
    }
}

/// An administrator tightens any tool, and loosens none.
#[test]
fn settings_tighten_built_in_tools() {
    let place = Place::new();
    let config = |pair: &str| place.haft(&["tools", "config", "get_metrics", pair]);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0, "the control");
    assert_eq!(config("requiresConfirmation=true").code, 0);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 5, "it is asked about");
    let shown = place.haft(&["tools", "show", "get_metrics", "--json"]).json();
    assert_eq!(shown["requiresConfirmation"], json!(true), "{shown}");
    assert_eq!(place.haft(&["tools", "config", "get_metrics", "--clear"]).code, 0);
    assert_eq!(place.haft(&["call", "get_metrics"]).code, 0);
    for (pair, words) in [
        ("depth=3", "it has no setting `depth`"),
        ("maxExecutionTime=PT24H", "which the tool itself allows"),
        ("requiredIsolation=Strict", "haft's own process"),
        ("tier=Gold", "Core, WriterPro, Teams or Enterprise"),
    ] {
        let said = config(pair);
        assert!(said.code == 4 && said.stderr.contains(words), "{pair}: {said:?}");
    }
    let place = licensed(Some(&licence(Tier::WriterPro).sign(&SecretKey::from_seed([5; 32])).unwrap()));
    assert_eq!(place.haft(&["tools", "config", "get_metrics", "tier=Teams"]).code, 0);
    let said = place.haft(&["call", "get_metrics"]);
    assert!(said.code == 3 && said.stderr.contains("needs the Teams tier"), "{said:?}");
}

#[test]
fn every_tier_acts_where_its_limits_do() {
    let key = SecretKey::from_seed([5; 32]);
    let tiers = [Tier::Core, Tier::WriterPro, Tier::Teams, Tier::Enterprise];
    for (tier, batch, adds, validates) in [
        (tiers[0], Some(5), false, false),
        (tiers[1], Some(20), true, false),
        (tiers[2], Some(50), true, true),
        (tiers[3], None, true, true),
    ] {
        let file = licence(tier).sign(&key).unwrap();
        let place = licensed(Some(&file));
        let shown = place.haft(&["license", "show", "--json"]).json();
        assert_eq!((&shown["tier"], &shown["why"]), (&json!(tier), &json!("by the licence L-7")), "{shown}");
        let calls = |count: usize| {
            let one = json!({"name": "get_metrics", "arguments": {}});
            Value::from(vec![one; count]).to_string()
        };
        let most = batch.unwrap_or(60);
        for (count, fits) in [(most, true), (most + 1, batch.is_none())] {
            let said = place.haft_with(&["batch", "-", "--json"], calls(count));
            assert_eq!(said.code == 0, fits, "{tier:?} {count}: {}", said.stderr);
            if !fits {
                assert_eq!(said.json()["results"][0]["error"]["code"], json!("LIMIT_EXCEEDED"));
            }
        }
        place.write("one.json", json!({"name": "own_tool", "description": "One"}).to_string());
        assert_eq!(place.haft(&["tools", "add", "one.json"]).code == 0, adds, "{tier:?}");
        let schema = json!({"properties": {"n": {"type": "integer", "minimum": 1}}});
        place.write(
            "two.json",
            json!({"name": "two", "description": "Two", "parameters": schema}).to_string(),
        );
        let said = place.haft(&["tools", "add", "two.json"]);
        assert_eq!(said.code == 0, tier >= Tier::Teams, "{tier:?}: {said:?}");
        if tier == Tier::WriterPro {
            let words =
                "`minimum` in the parameters of `two` needs the Teams tier, and this caller has WriterPro";
            assert!(said.code == 3 && said.stderr.contains(words), "{said:?}");
            assert!(said.stderr.contains("haft license show"), "{said:?}");
        }
        // In words: by the command, and by the tool that models have for it.
        let searches = tier >= Tier::WriterPro;
        let said = place.haft(&["tools", "search", "read a file"]);
        assert_eq!(said.code, if searches { 0 } else { 3 }, "{tier:?}: {said:?}");
        let words = "Looking for tools in words needs the WriterPro tier, and this caller has Core";
        assert!(searches || said.stderr.contains(words), "{said:?}");
        let said = place.haft(&["call", "search_tools", "query=read a file", "--json"]);
        assert_eq!(said.code, if searches { 0 } else { 3 }, "{tier:?}: {said:?}");
        assert!(searches || said.json()["error"]["code"] == json!("LICENSE_REQUIRED"), "{said:?}");
        for (role, from) in [("viewer", Tier::Core), ("admin", Tier::Core), ("own", Tier::Teams)] {
            let roles = format!("permissions.local_roles={role}");
            let defined = "permissions.roles=own: tool.*";
            let said =
                place.haft(&["--set", &roles, "--set", defined, "call", "glob", "pattern=*", "--json"]);
            assert_eq!(said.code, if tier >= from { 0 } else { 3 }, "{tier:?} {role}: {said:?}");
            if tier < from {
                let error = &said.json()["error"];
                assert_eq!(
                    (&error["code"], &error["data"]["needed"]),
                    (&json!("LICENSE_REQUIRED"), &json!(from))
                );
            }
        }
        let said = place.haft(&["call", "validate_content", "content=[1]", "--json"]);
        assert_eq!(said.code == 0, validates, "{tier:?}: {said:?}");
        if !validates {
            let error = said.json()["error"].clone();
            assert_eq!(
                (&error["code"], &error["data"]["needed"]),
                (&json!("LICENSE_REQUIRED"), &json!("Teams"))
            );
            let said = place.haft(&["call", "validate_content", "content=[1]"]);
            assert!(
                said.stderr.contains("needs the Teams tier") && said.stderr.contains("haft license show")
            );
        }
    }
}

#[test]
fn a_licence_that_does_not_count_is_core_with_the_reason() {
    let key = SecretKey::from_seed([5; 32]);
    let good = licence(Tier::Enterprise).sign(&key).unwrap();
    let expired = Licence { expires: Some(at(100)), ..licence(Tier::Teams) }.sign(&key).unwrap();
    let later = Licence { valid_from: at(32_503_680_000), ..licence(Tier::Teams) }.sign(&key).unwrap();
    let theirs = Licence { tenant: Some("other".into()), ..licence(Tier::Teams) }.sign(&key).unwrap();
    let stranger = licence(Tier::Enterprise).sign(&SecretKey::from_seed([6; 32])).unwrap();
    let tampered = good.replace("\"licence\": \"", "\"licence\": \"AAAA");
    for (text, reason) in [
        (None, "there is no licence"),
        (Some(expired), "expired on 1970"),
        (Some(later), "begins on 3000"),
        (Some(theirs), "for another tenant"),
        (Some(stranger), "not among the trusted ones"),
        (Some(tampered), "the licence"),
        (Some("nonsense".to_owned()), "cannot be read"),
    ] {
        let place = licensed(text.as_deref());
        let said = place.haft(&["license", "show"]);
        assert!(said.stdout.starts_with("Core: ") && said.stdout.contains(reason), "{reason}: {said:?}");
    }
    // Without an authority a file says nothing.
    let place = licensed(Some(&good));
    place.own_config("");
    assert!(place.haft(&["license", "show"]).stdout.starts_with("Enterprise: license.authority is not set"));
    place.own_config("[license]\nauthority = 'nonsense'\n");
    let said = place.haft(&["call", "get_metrics"]);
    assert!(said.code == 2 && said.stderr.contains("license.authority"), "{said:?}");
}

/// Every file below a folder that holds a text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(bytes) = std::fs::read(entry.path())
                && bytes.windows(text.len()).any(|window| window == text.as_bytes())
            {
                found.push(entry.path());
            }
        }
    }
    found
}

/// A token in what a tool reads and in what it is told, a value of a variable, and a password by its name.
#[test]
fn secrets_are_in_no_result_event_log_or_record() {
    let place = Place::new();
    place.own_config("[tools.approval]\nmode = 'auto'\n[store]\naudit_input = true\n");
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let known = "value-of-a-variable-7";
    place.write("notes.txt", format!("use {token} and {known}\npassword = \"hunter2-hunter2\"\n"));
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--log", "--json"]);
        let mut program = place.program(&all);
        Said::of(program.env("DEPLOY_KEY", known).output().unwrap())
    };
    let said = run(&["call", "read_file", "path=notes.txt", "--events"]);
    let text = said.json()["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(
        text, "use [redacted:github-token] and [redacted:DEPLOY_KEY]\npassword = \"hunter2-hunter2\"\n",
        "a model needs the code as it is, but for what has a look of its own"
    );
    let written = run(&["call", "write_file", "path=b.txt", &format!("content={token} {known}"), "--events"]);
    assert_eq!(written.code, 0, "{written:?}");
    let wrote = std::fs::read_to_string(place.work().join("b.txt")).unwrap();
    assert_eq!(wrote, format!("{token} {known}"), "the tool gets the true value");
    run(&["call", "read_file", &format!("path={token}"), "--events"]);
    for secret in [token.as_str(), known] {
        for said in [&said, &written] {
            assert!(!said.stdout.contains(secret) && !said.stderr.contains(secret), "{secret}: {said:?}");
        }
        let left: Vec<_> = files_with(&place.home(), secret);
        // What can be undone is kept as it was: that is a copy of the user's own file, in a folder of their own.
        let left: Vec<_> =
            left.into_iter().filter(|path| !path.to_string_lossy().contains("/changes/")).collect();
        assert!(left.is_empty(), "{secret} in {left:?}");
    }
    let runs = place.haft(&["runs", "list", "--json"]).json();
    let id = runs["runs"].as_array().or(runs.as_array()).unwrap().last().unwrap()["executionId"].clone();
    let kept = place.haft(&["runs", "show", id.as_str().unwrap(), "--json"]).stdout;
    assert!(kept.contains("[redacted:github-token]"), "{kept}");
    assert!(!kept.contains("hunter2"), "what is kept has no password by its name: {kept}");

    // As they are, on request; what is kept is not.
    let said = run(&["call", "read_file", "path=notes.txt", "--set", "tools.output.redact_results=false"]);
    assert!(said.stdout.contains(&token) && !said.stderr.contains(&token), "{said:?}");
    assert!(
        files_with(&place.home(), &token).iter().all(|path| path.to_string_lossy().contains("/changes/"))
    );
}

/// A user who meets the default denylist has set nothing: the next step names the file and what to write.
#[test]
fn a_denial_by_default_says_how_to_allow_it() {
    let place = crate::support::Place::new();
    let said = place.haft(&["call", "run_command", "command=true"]);
    assert_eq!(said.code, 3, "{said:?}");
    let line = said.stderr.lines().find(|line| line.contains("denylist = [")).unwrap();
    assert!(line.contains("haft.toml") && line.contains("haft init --user"), "{said:?}");
    assert!(!line.contains("\"run_command\""), "{said:?}");
    // As it says.
    let (_, rest) = line.split_once("denylist = [").unwrap();
    let (list, _) = rest.split_once(']').unwrap();
    place.own_config(&format!("[tools.approval]\ndenylist = [{list}]\n"));
    let said = place.haft(&["call", "run_command", "command=true"]);
    assert_eq!(said.code, 5, "it asks: {said:?}");
}

/// Document 003 §8, IAgentDefinition.
#[test]
fn an_agent_has_the_tools_permissions_and_limits_that_are_listed_and_no_more() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let config = |more: &str| {
        place.own_config(&format!("[tools.approval]\nmode = 'auto'\ndenylist = []\n{more}"));
    };
    config("");
    let free = place.haft(&["call", "glob", "pattern=*"]);
    assert_eq!(free.code, 0, "the control: {free:?}");
    config(
        "[[agents]]\nname = 'owner'\ntools = ['read_file', 'run_command']\nlimits = { wall_time = '2s' }\n",
    );
    assert_eq!(place.haft(&["call", "read_file", "path=a.txt"]).code, 0);
    let other = place.haft(&["call", "glob", "pattern=*"]);
    assert!(other.code != 0 && other.stderr.contains("The agent `owner` may not call `glob`"), "{other:?}");
    let long = place.haft(&["call", "run_command", "command=sleep 60", "--timeout", "30s"]);
    assert!(long.stderr.contains("above the PT2S"), "{long:?}");
    config("[[agents]]\nname = 'owner'\ntools = ['read_file']\npermissions = ['tool.web.*']\n");
    let denied = place.haft(&["call", "read_file", "path=a.txt"]);
    assert!(denied.stderr.contains("the definition of the agent `owner` does not list it"), "{denied:?}");
    config("[[agents]]\nname = 'somebody else'\ntools = []\n");
    assert_eq!(
        place.haft(&["call", "glob", "pattern=*"]).code,
        0,
        "agents without a definition are as before"
    );
    config("[[agents]]\nname = 'a'\ntolls = []\n");
    let typo = place.haft(&["call", "glob", "pattern=*"]);
    assert!(typo.code == 2 && typo.stderr.contains("agents[0]") && typo.stderr.contains("tolls"), "{typo:?}");
    // A folder defines no agents: it could take tools away from others, and names itself.
    config("");
    place.write("haft.toml", "[[agents]]\nname = 'owner'\ntools = []\n");
    assert_eq!(place.haft(&["call", "glob", "pattern=*"]).code, 0);
}

/// Document 002, IsolationTechnology: of a configuration, a sandbox and a call.
#[test]
fn a_call_chooses_its_jail_and_gets_no_other() {
    let place = Place::new();
    let usual = "[tools.approval]\nmode = 'auto'\ndenylist = []\n[tools.commands]\nask = 'never'\n";
    place.own_config(usual);
    let only_process = format!("{usual}isolation_technology = 'process'\n");
    let run = |more: &[&str]| {
        let mut args = vec!["call", "run_command", "command=true", "--json"];
        args.extend(more);
        place.haft(&args)
    };
    let usual = run(&[]);
    if !contained("a_call_chooses_its_jail_and_gets_no_other", &usual) {
        return;
    }
    assert_eq!(usual.code, 0, "{usual:?}");
    for jail in ["namespace", "process", "runc", "gvisor"] {
        let said = run(&["--jail", jail]);
        let result = said.json();
        match result["error"]["code"].as_str() {
            None => assert_eq!(result["metadata"]["enforcement"]["jail"], jail, "{said:?}"),
            Some(code) => assert_eq!(code, "SANDBOX_CREATION_FAILED", "no other takes its place: {said:?}"),
        }
        // The one that is taken anyway can be named.
        if usual.json()["metadata"]["enforcement"]["jail"] == jail {
            assert_eq!(said.code, 0, "{said:?}");
        }
    }
    place.own_config(&only_process);
    let other = run(&["--jail", "namespace"]);
    assert_eq!(other.json()["error"]["code"], "SANDBOX_CREATION_FAILED", "{other:?}");
    let typo = run(&["--jail", "docker"]);
    assert!(typo.code == 2 && typo.stderr.contains("gvisor"), "{typo:?}");
}
