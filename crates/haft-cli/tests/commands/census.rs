//! How many questions a person gets: commands as agents send them, under each profile.

use crate::world::World;
use haft::{BatchRequest, Preview, ToolCall};
use libtest_mimic::Trial;
use serde_json::json;

pub fn trials() -> Vec<Trial> {
    let tests: [crate::world::Test; 1] =
        [("census::coding_asks_before_no_contained_command_and_careful_before_each", census)];
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
