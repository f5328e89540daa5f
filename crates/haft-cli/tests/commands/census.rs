//! How many questions a person gets: commands as agents send them, under each profile.

use crate::world::World;
use haft::{
    ApprovalRequest, BatchRequest, ChangesState, Decision, Preview, Request, ToolCall, ToolResult, ask_with,
};
use libtest_mimic::Trial;
use serde_json::json;
use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 2] = [
        ("census::coding_asks_before_no_contained_command_and_careful_before_each", census),
        ("census::coding_asks_only_about_protected_names_when_commands_have_run", effects),
    ];
    crate::world::trials(tests)
}

/// Lines as coding agents send them while they look around, build, test, change files and use git.
const COMMANDS: &[&str] = &[
    "ls",
    "ls -la",
    "pwd",
    "cat README.md",
    "head -50 src/main.rs",
    "tail -n 20 build.log",
    "wc -l src/*.rs",
    "find . -name '*.rs' | head",
    "grep -rn TODO src",
    "rg 'fn main' -n",
    "sed -n '1,80p' src/lib.rs",
    "tree -L 2",
    "file a.bin",
    "du -sh .",
    "stat Cargo.toml",
    "diff a.txt b.txt",
    "sort names.txt | uniq -c",
    "env | sort",
    "which python3",
    "uname -a",
    "git status",
    "git diff",
    "git diff --stat HEAD~1",
    "git log --oneline -5",
    "git show HEAD",
    "git branch -a",
    "git add -A",
    "git add src/main.rs",
    "git commit -m 'Fix the parser'",
    "git commit --amend --no-edit",
    "git checkout -b fix/parser",
    "git switch main",
    "git merge fix/parser",
    "git rebase main",
    "git stash",
    "git stash pop",
    "git reset --hard HEAD",
    "git restore src/main.rs",
    "git rm old.rs",
    "git mv a.rs b.rs",
    "git tag v1",
    "git init",
    "git blame src/lib.rs",
    "git grep parse",
    "cargo build",
    "cargo test",
    "cargo test parser -- --nocapture",
    "cargo check 2>&1 | tail -20",
    "cargo fmt",
    "cargo clippy --all-targets",
    "cargo run -- --help",
    "cargo clean",
    "rustc --version",
    "make",
    "make test",
    "make -j4 all",
    "cmake -B build",
    "ninja -C build",
    "gcc -o a a.c && ./a",
    "./configure --prefix=$PWD/out",
    "npm test",
    "npm run build",
    "npm run lint -- --fix",
    "npx tsc --noEmit",
    "node script.js",
    "node -e 'console.log(1)'",
    "yarn build",
    "pnpm test",
    "python3 script.py",
    "python3 -c 'print(1)'",
    "python3 -m pytest -x",
    "pytest tests/test_a.py -k parse",
    "python3 -m venv .venv",
    "python3 -m black .",
    "ruff check --fix",
    "mypy src",
    "tox -e py312",
    "go build ./...",
    "go test ./...",
    "gofmt -w .",
    "mvn -o test",
    "./gradlew test --offline",
    "mkdir -p src/new",
    "touch src/new/mod.rs",
    "cp a.txt b.txt",
    "mv a.txt c.txt",
    "rm b.txt",
    "rm -rf build",
    "chmod +x run.sh",
    "sed -i 's/foo/bar/g' src/lib.rs",
    "echo 'x = 1' >> config.toml",
    "cat > notes.md <<'EOF'\nhello\nEOF",
    "patch -p1 < fix.patch",
    "tar xzf vendor.tar.gz",
    "unzip data.zip",
    "jq .version package.json",
    "sqlite3 app.db 'select 1'",
    "bash run.sh",
    "sh -c 'for f in *.txt; do mv $f ${f%.txt}.md; done'",
    "timeout 60 ./slow-test.sh",
];

/// How many of them ask, run and are denied before they run.
fn count(world: &World) -> (usize, usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let calls: Vec<ToolCall> =
        COMMANDS.iter().map(|command| ToolCall::new("run_command", json!({"command": command}))).collect();
    let (mut asked, mut runs, mut denied) = (0, 0, 0);
    for call in calls {
        let previews = runtime.block_on(world.haft.plan(BatchRequest::from(vec![call.clone()])));
        match previews.into_iter().next().unwrap() {
            Preview::NeedsApproval { .. } => asked += 1,
            Preview::Ready { .. } => runs += 1,
            Preview::Refused(_) => denied += 1,
            Preview::Pending { .. } => panic!("{call:?}"),
        }
    }
    (asked, runs, denied)
}

#[allow(clippy::print_stdout, reason = "the numbers are what a census is for")]
fn census(name: &str) {
    assert_eq!(COMMANDS.len(), 100);
    let of = |profile: &str, more: &str| World::with(&format!("[policy]\nprofile = '{profile}'\n{more}"));
    let coding = of("coding", "");
    if let Err(reason) = coding.jail_at_hand() {
        haft_testkit::not_run(&format!("commands::{name}"), &reason);
        return;
    }
    let hosts = "[tools.commands]\nhosts = ['crates.io']\n";
    let counted = [
        ("locked", count(&of("locked", ""))),
        ("read-only", count(&of("read-only", ""))),
        ("careful", count(&of("careful", ""))),
        ("coding", count(&coding)),
        ("coding with network", count(&of("coding", hosts))),
    ];
    for (profile, (asked, runs, denied)) in counted {
        println!(
            "{profile}: of 100 commands {asked} ask before they run, {runs} run unasked, {denied} are denied"
        );
    }
    let all = COMMANDS.len();
    let expected = [(0, 0, all), (0, 0, all), (all, 0, 0), (0, all, 0), (all, 0, 0)];
    assert_eq!(counted.map(|(_, counts)| counts), expected);
}

/// Beside the hundred: what is asked about, with a word of the reason.
const ASK: &[(&str, &str)] = &[
    ("echo 'layout node' > .envrc", ".envrc"),
    ("git config core.fsmonitor ./watch", ".git/config"),
    ("echo 'exit 1' > .git/hooks/pre-commit", ".git/hooks"),
    ("mkdir inner && cd inner && git init", "inner/.git"),
];

/// A workspace in which most of the commands have something to do.
const FILES: &[(&str, &str)] = &[
    ("README.md", "# A project\n"),
    ("Cargo.toml", "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    ("src/main.rs", "fn main() { println!(\"foo\"); } // TODO parse\n"),
    ("src/lib.rs", "pub fn parse() -> u8 { 1 } // foo\n#[test]\nfn parser() { assert_eq!(parse(), 1); }\n"),
    ("build.log", "one\ntwo\n"),
    ("a.bin", "\u{1}\u{2}"),
    ("a.txt", "a\n"),
    ("b.txt", "b\n"),
    ("names.txt", "b\na\nb\n"),
    ("old.rs", "// old\n"),
    ("a.rs", "// a\n"),
    ("a.c", "#include <stdio.h>\nint main(void) { puts(\"a\"); return 0; }\n"),
    ("Makefile", "all:\n\techo built > out.txt\ntest: all\n\tgrep -q built out.txt\n"),
    ("configure", "#!/bin/sh\necho configured > config.status\n"),
    ("run.sh", "echo run > run.log\n"),
    ("slow-test.sh", "#!/bin/sh\necho slow > slow.log\n"),
    (
        "package.json",
        "{\"name\": \"p\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node script.js\", \
         \"build\": \"node script.js\", \"lint\": \"node script.js\"}}\n",
    ),
    ("script.js", "require('fs').writeFileSync('made.js', '1')\n"),
    ("script.py", "open('made.py', 'w').write('1')\n"),
    ("tests/test_a.py", "def test_parse():\n    assert True\n"),
    ("fix.patch", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+fixed\n"),
    ("config.toml", "y = 2\n"),
    ("build/old.o", "o\n"),
    ("vendor/v.txt", "v\n"),
];

/// Two commits, a branch beside them, something staged, something not, and something stashed.
const REPOSITORY: &str = "\
git init -q -b main . && git config user.name a && git config user.email a@b
git add -A && git commit -qm one && echo two >> build.log && git commit -qam two
git checkout -qb fix/parser && echo p > p.rs && git add p.rs && git commit -qm parser && git checkout -q main
echo stashed >> README.md && git stash -q
echo '// more' >> src/lib.rs && git add src/lib.rs && echo '// more' >> src/main.rs
tar czf vendor.tar.gz vendor && rm -r vendor
python3 -c \"import zipfile; zipfile.ZipFile('data.zip', 'w').writestr('data/x', 'x')\" || true
chmod +x configure slow-test.sh";

/// Puts a folder into the state of a prepared one.
fn renew(folder: &Path, prepared: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let mut copy = Command::new("cp");
    assert!(copy.arg("-a").arg(prepared.join(".")).arg(folder).status().unwrap().success());
}

fn prepare(folder: &Path) {
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut shell = Command::new("sh");
    shell.args(["-ec", REPOSITORY]).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Runs one, and gives what people were asked.
async fn run(world: &World, command: &str) -> (ToolResult, Vec<ApprovalRequest>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let approver = ask_with(move |requests| {
        heard.lock().unwrap().extend(requests.iter().cloned());
        requests.iter().map(|_| Decision::Unanswered).collect()
    });
    let call = ToolCall::new("run_command", json!({"command": command}));
    let result = world.haft.execute(Request::new(call).approver(Arc::new(approver))).await;
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    (result, asked)
}

/// Whether it did its work: its programs are there, and it ended well.
fn is_missing(result: &ToolResult) -> bool {
    let said = format!("{:?} {:?}", result.content, result.error);
    ["exit code 127", "exit code 126", "No module named", "not found"].iter().any(|word| said.contains(word))
}

#[allow(clippy::print_stdout, reason = "the numbers are what a census is for")]
fn effects(name: &str) {
    // The toolchain that this was built with, which is not among the programs of the system on every machine.
    let toolchain = Path::new(env!("CARGO")).parent().and_then(Path::parent).unwrap();
    let world = World::with(&format!(
        "[policy]\nprofile = 'coding'\n[tools.files]\nread_only_roots = ['{}']\n",
        toolchain.display()
    ));
    if let Err(reason) = world.jail_at_hand() {
        return haft_testkit::not_run(&format!("commands::{name}"), &reason);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let can = runtime.block_on(run(&world, "true")).0;
    if can.metadata.changes.is_none() {
        return haft_testkit::not_run(&format!("commands::{name}"), &format!("{:?}", can.error));
    }
    let prepared = tempfile::tempdir().unwrap();
    prepare(prepared.path());
    renew(&world.work(), prepared.path());
    let (mut changed, mut nothing, mut missing, mut ask) = (0, 0, Vec::new(), Vec::new());
    for command in COMMANDS.iter().chain(ASK.iter().map(|(command, _)| command)) {
        let line = format!("PATH={}:$PATH; export PATH; {command}", toolchain.join("bin").display());
        let (result, asked) = runtime.block_on(run(&world, &line));
        assert!(
            asked.iter().all(|request| request.preview.is_some()),
            "asked before it ran: {command}: {asked:?}"
        );
        let Some(changes) = &result.metadata.changes else { panic!("{command}: {result:?}") };
        match (changes.state, &asked[..]) {
            (_, [request]) => ask.push((*command, request.reason.clone())),
            (ChangesState::Applied, []) => {
                changed += 1;
                renew(&world.work(), prepared.path());
            }
            (ChangesState::Nothing, []) if is_missing(&result) => missing.push(*command),
            (ChangesState::Nothing, []) => nothing += 1,
            other => panic!("{command}: {other:?} {result:?}"),
        }
    }
    println!(
        "coding: of 100 commands {changed} changed files and were applied unasked, {nothing} changed nothing, \
         {} asked about what they changed, {} have no program here: {missing:?}",
        ask.len().saturating_sub(ASK.len()),
        missing.len()
    );
    assert_eq!(ask.len(), ASK.len(), "{ask:?}");
    for ((command, reason), (expected, word)) in ask.iter().zip(ASK) {
        assert_eq!(command, expected, "{reason}");
        assert!(reason.contains(word) && reason.contains("is protected"), "{command}: {reason}");
    }
    assert!(changed >= 30 && changed + nothing >= 70, "too few ran: {missing:?}");
}
