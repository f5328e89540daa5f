//! Lines of shell as policy decides about them: what agents run all day, what attackers try, and what always holds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_core::{
    ApprovalMode, CallContext, Category, Footprint, Tier, ToolDefinition,
    port::{Policy, Subject, Verdict},
};
use haft_guard::{
    ListPolicy, PolicySet,
    command::{Part, Shell, Word, line},
    policy::read_rules,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::process::Command;

const RULES: &str = "
[[rules]]
name = 'everyday'
effect = 'allow'
confirms = true
tool = 'run_command'
command = ['cargo', 'git', 'ls', 'cat', 'tail', 'head', 'wc', 'grep', 'rg', 'sed -n', 'npm test', 'npm run', 'find', 'sort', 'python3 -m pytest', 'diff', 'sed', 'tar', 'fd', 'man', 'rsync', 'curl', 'vim', 'zip', 'less', 'uniq', 'go']

[[rules]]
name = 'never'
effect = 'deny'
command = ['rm', 'git push', 'sudo', 'dd', 'shutdown']

[[rules]]
name = 'careful'
effect = 'ask'
command = ['git reset']
";

fn policy() -> PolicySet {
    let lists = ListPolicy { mode: ApprovalMode::Prompt, denylist: [].into(), ..ListPolicy::default() };
    PolicySet::new(lists, read_rules(RULES, "/work").unwrap()).unwrap().for_shell(Shell::Posix)
}

fn verdict(policy: &PolicySet, arguments: &Value) -> Verdict {
    let context = CallContext { tier: Tier::Enterprise, ..CallContext::new("acme", "did:agent:7") };
    let mut definition = ToolDefinition::new("run_command", "Runs a command");
    definition.category = Category::CodeExecution;
    definition.requires_confirmation = true;
    let footprint = Footprint::undeclared(true);
    let subject = Subject {
        context: &context,
        definition: &definition,
        arguments: arguments.as_object().unwrap(),
        footprint: &footprint,
        folder: "/w",
        confirm: None,
        accepts: haft_core::port::AcceptAnswers::from_any(),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    policy.decide(&subject).unwrap()
}

/// 0 runs, 1 asks, 2 is denied.
fn strictness(policy: &PolicySet, text: &str) -> u8 {
    match verdict(policy, &json!({"command": text})) {
        Verdict::Allow { .. } => 0,
        Verdict::Ask { .. } => 1,
        Verdict::Deny { .. } => 2,
    }
}

const NAMES: [&str; 3] = ["allow", "ask", "deny"];

fn holds(table: &[(&str, &str)]) {
    holds_with(&policy(), table);
}

fn holds_with(policy: &PolicySet, table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(text, expected)| {
            let found = NAMES[usize::from(strictness(policy, text))];
            (found != *expected)
                .then(|| format!("{text:?}: {found}, not {expected}: {:?}", line(text, Shell::Posix)))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What agents run all day.
#[test]
fn everyday_lines() {
    let table = include!("command_lines/everyday.in");
    assert!(table.len() >= 73, "{}", table.len());
    holds(&table);
}

/// What somebody would try who wants a line to look like another one.
#[test]
fn adversarial_lines() {
    let table = include!("command_lines/adversarial.in");
    assert!(table.len() >= 100, "{}", table.len());
    holds(&table);
}

/// Options and subcommands with which a program that is allowed runs another one, or writes a file.
#[test]
fn lines_with_options_that_do_more() {
    let table = include!("command_lines/options.in");
    assert!(table.len() >= 150, "{}", table.len());
    holds(&table);
}

/// Interpreters and package managers, allowed as a whole: text does not become code, and no other program runs,
/// unasked.
#[test]
fn programs_that_run_text_or_others() {
    let rules = "[[rules]]\nname = 'tools'\neffect = 'allow'\nconfirms = true\n\
                 command = ['ls', 'python3', 'node', 'uv', 'pnpm', 'npm', 'rustup', 'gcc']\n\
                 [[rules]]\nname = 'never'\neffect = 'deny'\ncommand = ['rm']\n";
    let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(rules, "/work").unwrap()).unwrap().for_shell(Shell::Posix);
    holds_with(&policy, &include!("command_lines/runners.in"));
}

/// A rule that names the subcommand says nothing about its options either.
#[test]
fn an_option_that_writes_is_not_what_a_subcommand_was_allowed_for() {
    let rules = "[[rules]]\nname = 'look'\neffect = 'allow'\nconfirms = true\n\
                 command = ['git log', 'git config --get', 'make test', './check.sh', 'python3', 'node']\n";
    let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(rules, "/work").unwrap()).unwrap().for_shell(Shell::Posix);
    let cases = [
        ("git log -5", 0),
        ("git log --output=F", 1),
        ("git log --outp=F", 1),
        ("git log --output F", 1),
        ("git config --get user.name", 0),
        ("make test", 0),
        ("make test -j4", 0),
        ("make test SHELL=./x", 1),
        ("make test --eval='$(shell id)'", 1),
        ("make test -f x.mk", 1),
        ("make test $X", 1),
        ("python3 x.py -c y", 0),
        ("python3 -m pytest -c setup.cfg", 0),
        ("python3 -u x.py", 0),
        ("python3 --version", 0),
        ("python3 -c 'print(1)'", 1),
        ("python3 -Ic 'print(1)'", 1),
        ("python3 -X dev -c 1", 1),
        ("echo 'print(1)' | python3", 1),
        ("python3 -", 1),
        ("python3 $X", 1),
        ("python3 -v -c 1", 1),
        ("python3 -W ignore -c 1", 1),
        ("python3 -W ignore x.py", 0),
        ("python3 -u -m http.server", 0),
        ("node --title x -e 1", 1),
        ("node --test x.js", 0),
        ("node -v", 0),
        ("node x.js -e y", 0),
        ("node -e 1", 1),
        ("node -pe 1", 1),
        ("node --ev=1", 1),
        ("node --require ./x y.js", 1),
        ("node --import=./x y.js", 1),
        // Relative programs are those of the folder that the rule was made for.
        ("./check.sh", 0),
        ("./check.sh && cd sub && echo done", 0),
        ("cd . && ./check.sh", 0),
        ("(cd sub && echo x); ./check.sh", 0),
        ("cd sub && ./check.sh", 1),
        ("cd sub; ./check.sh", 1),
        ("cd sub\n./check.sh", 1),
        ("{ cd sub; }; ./check.sh", 1),
        ("(cd sub && ./check.sh)", 1),
        ("if cd sub; then ./check.sh; fi", 1),
        ("while ./check.sh; do cd sub; done", 1),
        ("until ./check.sh; do cd sub; done", 1),
        ("for f in a b; do ./check.sh; cd sub; done", 1),
        ("cd sub && timeout 5 ./check.sh", 1),
        ("cd sub && nice ./check.sh", 1),
        ("cd sub && ls | xargs ./check.sh", 1),
        ("cd sub && cd sub2 && ./check.sh", 1),
    ];
    for (text, expected) in cases {
        assert_eq!(strictness(&policy, text), expected, "{text:?}: {:?}", line(text, Shell::Posix));
    }
    let policy = policy.for_shell(Shell::Windows);
    for (text, expected) in [("git log -5", 0), ("git log --output=F", 1), ("git.exe log --output=F", 1)] {
        assert_eq!(strictness(&policy, text), expected, "{text:?} on Windows");
    }
}

#[test]
fn variables_beside_the_line_ask() {
    let policy = policy();
    let allowed = |arguments: Value| matches!(verdict(&policy, &arguments), Verdict::Allow { .. });
    assert!(allowed(json!({"command": "git status"})));
    assert!(allowed(json!({"command": "git status", "env": {}})));
    for env in [json!({"GIT_CONFIG_COUNT": "1"}), json!({"PATH": "./bin"}), json!("odd"), json!([1])] {
        assert!(!allowed(json!({"command": "git status", "env": env})), "{env}");
    }
}

/// One list for both: what a line may set for its command may stand beside it, and nothing else may.
#[test]
fn a_variable_asks_beside_the_line_where_it_asks_in_the_line() {
    let policy = policy();
    let allowed = |arguments: Value| matches!(verdict(&policy, &arguments), Verdict::Allow { .. });
    let mut both = [0, 0];
    for (name, value) in [
        ("RUST_BACKTRACE", "1"),
        ("RUST_BACKTRACE", "full"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "always"),
        ("RUST_LOG", "haft=debug,info"),
        ("RUST_LOG", "/x"),
        ("TZ", "UTC"),
        ("TZ", ":x"),
        ("TERM", "../x"),
        ("LC_ALL", "C.UTF-8"),
        ("LC_ALL", "zh_CN.GBK"),
        ("PATH", "bin"),
        ("LD_PRELOAD", "x.so"),
        ("GIT_PAGER", "cat"),
        ("RUSTC_WRAPPER", "x"),
        ("RUSTFLAGS", "x"),
        ("CARGO_BUILD_RUSTC", "x"),
        ("BASH_ENV", "x"),
        ("no_color", "1"),
    ] {
        let in_line = allowed(json!({"command": format!("{name}={value} cargo test")}));
        let beside = allowed(json!({"command": "cargo test", "env": {name: value}}));
        assert_eq!(beside, in_line, "{name}={value}");
        both[usize::from(beside)] += 1;
        let with_another = json!({"command": "cargo test", "env": {name: value, "PATH": "./bin"}});
        assert!(!allowed(with_another), "{name}={value}");
    }
    assert!(both[0] > 8 && both[1] > 6, "{both:?}");
}

#[test]
fn a_question_says_which_command_it_is_about() {
    let Verdict::Ask { reason, .. } = verdict(&policy(), &json!({"command": "cargo test && make install"}))
    else {
        panic!("it asks")
    };
    assert!(reason.ends_with("no rule allows `make install`"), "{reason}");
}

#[test]
fn a_file_that_a_line_writes_to_is_denied_by_its_path() {
    let rules = "[[rules]]\nname = 'sealed'\neffect = 'deny'\npath = 'sealed/**'\n\
                 [[rules]]\nname = 'cat'\neffect = 'allow'\nconfirms = true\ncommand = 'cat'\n";
    let lists = ListPolicy { denylist: [].into(), ..ListPolicy::default() };
    let policy = PolicySet::new(lists, read_rules(rules, "/work").unwrap()).unwrap().for_shell(Shell::Posix);
    assert_eq!(strictness(&policy, "cat a > /work/sealed/x"), 2);
    assert_eq!(strictness(&policy, "cat a >> /work/./b/../sealed/x"), 2);
    assert_eq!(strictness(&policy, "cat a > /work/open/x"), 1);
    assert_eq!(strictness(&policy, "cat a > sealed/x"), 1, "where it is, only the shell knows");
}

#[test]
fn rules_can_deny_what_runs_others_and_not_allow_it() {
    assert!(
        read_rules("[[rules]]\neffect = 'deny'\ncommand = ['sudo', 'sh', 'xargs rm']\n", "/work").is_ok()
    );
    for command in ["sudo", "sh", "env", "xargs", "timeout 5 ls"] {
        let rules = format!("[[rules]]\neffect = 'allow'\ncommand = '{command}'\n");
        assert!(read_rules(&rules, "/work").is_err(), "{command}");
    }
}

/// However deep, long or odd: an answer, soon, on the stack that a thread has.
#[test]
fn no_line_is_too_much() {
    let units = [
        ("(", ")"),
        ("( ", " )"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("`", "`"),
        ("{ ", "; }"),
        ("${x:-", "}"),
        ("if ", "; then a; fi"),
        ("while ", "; do a; done"),
        ("for f in a; do ", "; done"),
        ("case a in b) ", ";; esac"),
        ("f() { ", "; }"),
        ("sh -c '", "'"),
        ("a;", ""),
        ("a|", ""),
        ("a&&", ""),
        ("! ", ""),
        ("<<A ", ""),
        ("\\\n", ""),
        ("'", "'"),
        ("\"", "\""),
        ("$((", "))"),
        ("[[ ( ", " ) ]]"),
        ("<(", ")"),
        ("a=(", ")"),
        ("timeout 1 ", ""),
        ("env ", ""),
        ("#", "\n"),
        ("é", ""),
        ("*", ""),
        ("{a,", "}"),
    ];
    let policy = policy();
    let started = std::time::Instant::now();
    for (open, close) in units {
        for many in [1, 5, 31, 32, 33, 200, 5_000] {
            let text = format!("{}ls{}", open.repeat(many), close.repeat(many));
            let one = std::time::Instant::now();
            let _ = strictness(&policy, &text);
            assert!(one.elapsed().as_secs() < 2, "{open:?} {many}: {:?}", one.elapsed());
        }
    }
    println!("{} hostile lines in {:?}", units.len() * 7, started.elapsed());
}

/// Pieces of lines: commands that are allowed, asked about and denied, with everything that stands between them.
fn piece() -> impl Strategy<Value = String> {
    let commands = prop::sample::select(vec![
        "git status",
        "cargo test",
        "ls *.rs",
        "rm -rf x",
        "sudo ls",
        "make",
        "git reset --hard",
        "echo hi",
        "cd src",
        "true",
        "cat größe.txt",
        "X=1 ls",
        "ls > out",
        "ls 2>&1",
        "ls $HOME",
        "cat $(rm x)",
        "timeout 5 ls",
        "timeout 5 rm x",
        "xargs rm",
        "sh -c 'rm x'",
        "( ls )",
        "{ ls; }",
        "git push",
        "git -C . push",
        "cat <<A\nx\nA",
        "# rm x",
        "find . -name '*.rs'",
        "find . -exec rm {} ';'",
        "ls \\\n -l",
        "'git' status",
        "\"ls\"",
        "ls 'a;b'",
        "if ls; then cat x; fi",
        "for f in a b; do cat $f; done",
        "eval ls",
        "[[ -f x ]]",
        "ls &",
        "! ls",
        "time ls",
        "git log --format=%H",
    ]);
    prop_oneof![4 => commands.prop_map(str::to_owned), 1 => "[a-z '\"$;&|()<>{}*#\\\\=-]{1,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(14), max_global_rejects: 16_384, ..ProptestConfig::default() })]

    /// Two lines together are never decided more leniently than the stricter of both.
    #[test]
    fn together_is_never_looser(a in piece(), b in piece(), join in prop::sample::select(vec![" && ", " || ", "; ", " | ", " & ", "\n"])) {
        let policy = policy();
        let strictest = strictness(&policy, &a).max(strictness(&policy, &b));
        // What is no line by itself may become a harmless one with what follows: a quote that is closed, a comment.
        let whole = |text: &str| line(text, Shell::Posix).is_read();
        prop_assume!(whole(&a) && whole(&b) && !a.contains('#') && !b.contains('#'));
        let both = format!("{a}{join}{b}");
        // `a & && b` is no shell: nothing of it runs, and it asks.
        let least = if whole(&both) { strictest } else { 1 };
        prop_assert!(strictness(&policy, &both) >= least, "{both:?}");
    }

    #[test]
    fn nothing_makes_it_panic(text in "\\PC*|[ -~\n\t]*|[ a-z'\"$;&|()<>{}*#`\\\\\n=!-]{0,80}") {
        let read = line(&text, Shell::Posix);
        prop_assert!(!read.parts.is_empty());
    }
}

fn shells() -> Vec<&'static str> {
    ["/bin/bash", "/bin/dash"].into_iter().filter(|shell| std::path::Path::new(shell).exists()).collect()
}

/// The words of commands that are read are those that a real shell makes of them.
#[test]
fn words_are_those_of_real_shells() {
    let shells = shells();
    if shells.is_empty() {
        haft_testkit::not_run("words_are_those_of_real_shells", "neither bash nor dash is here");
        return;
    }
    let letters = [
        "a", "ö", "'", "\"", "\\", " ", "\t", "b c", "=", "#", "%", "-", ",", "'x y'", "\"x y\"", "\\ ",
        "\\\n", "!", "^", ":", "$ ", "@",
    ];
    let mut random = fastrand::Rng::with_seed(14);
    let (mut compared, mut tried) = (0, 0);
    while compared < 300 && tried < 20_000 {
        tried += 1;
        let text: String = (0..random.usize(1..9)).map(|_| letters[random.usize(..letters.len())]).collect();
        let read = line(&format!("f {text}"), Shell::Posix);
        let [Part::Command(words)] = &read.parts[..] else { continue };
        let Some(words) = words.iter().map(Word::exact).collect::<Option<Vec<_>>>() else { continue };
        compared += 1;
        for shell in &shells {
            let script = format!("f() {{ printf '%s\\0' \"$@\"; }}\nf {text}");
            let output = Command::new(shell).args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            let expected: String = words[1..].iter().map(|word| format!("{word}\0")).collect();
            // Without words `printf` still prints its format once.
            let expected = if words.len() == 1 { "\0".to_owned() } else { expected };
            assert_eq!(seen, expected, "{shell}: {text:?}");
        }
    }
    assert_eq!(compared, 300, "of {tried}");
}

/// What a shell tries to start, where it finds no program at all.
fn started(shell: &str, text: &str, folder: &std::path::Path) -> Vec<String> {
    let output = Command::new(shell)
        .args(["-c", text])
        .env_clear()
        .env("PATH", "/nonexistent")
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    // `bash: line 1: qa: command not found`, `dash: 1: qa: not found`
    let rows = errors.lines().filter(|row| row.contains("not found"));
    rows.map(|row| row.rsplit(": ").nth(1).unwrap_or_default().to_owned()).collect()
}

/// Every command that a real shell tries to start is one that was read.
#[test]
fn commands_are_those_of_real_shells() {
    let shells = shells();
    if shells.is_empty() {
        haft_testkit::not_run("commands_are_those_of_real_shells", "neither bash nor dash is here");
        return;
    }
    let pieces = [
        "qa",
        "qb x",
        "qc 'qd; qe'",
        "qf \"qg | qh\"",
        ";",
        "; ",
        "|",
        " || ",
        "&",
        " & ",
        "\n",
        " # qi",
        "(",
        ")",
        "{ ",
        "; }",
        "\\\n",
        " 2>&1",
        " >/dev/null",
        "</dev/null",
        "! ",
        "\\",
        "'",
        "\"",
        " ",
        "#",
        "qj=1 ",
        "$x",
        "*",
        "if qk; then ql; fi",
        ">&2",
        "&>/dev/null",
        "time ",
        "while qm; do qn; done",
        "[ qo ]",
        "[[ qp ]]",
        "((",
        "))",
        "<(qq)",
        "`qr`",
        "$(qs)",
        "{qt,qu}",
        "function qv { qw; }",
    ];
    let folder = std::env::temp_dir().join(format!("haft-shells-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut random = fastrand::Rng::with_seed(41);
    let (mut compared, mut tried) = (0, 0);
    while compared < 600 && tried < 40_000 {
        tried += 1;
        let text: String = (0..random.usize(1..9)).map(|_| pieces[random.usize(..pieces.len())]).collect();
        let read = line(&text, Shell::Posix);
        if !read.is_read() {
            continue;
        }
        compared += 1;
        let known: Vec<&str> =
            read.parts.iter().filter_map(Part::words).filter_map(|words| words[0].exact()).collect();
        for shell in &shells {
            let mut unknown = started(shell, &text, &folder);
            unknown.retain(|name| !known.contains(&name.as_str()));
            // Commands in the background write at the same time, and their words get mixed up now and then. What was
            // really started is there every time.
            for _ in 0..3 {
                if unknown.is_empty() {
                    break;
                }
                let again = started(shell, &text, &folder);
                unknown.retain(|name| again.contains(name));
            }
            assert!(unknown.is_empty(), "{shell} starts {unknown:?} of {text:?}, known are {known:?}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(compared >= 200, "{compared} of {tried}");
    println!("{compared} lines of {tried} are read");
}
