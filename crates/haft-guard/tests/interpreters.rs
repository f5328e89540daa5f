//! Interpreters that a rule allows: what they run is in a file that the line names, or haft asks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use haft_guard::command::{Shell, line};
use proptest::prelude::*;

mod judge;
use judge::{Judge, holds};

const PROGRAMS: &str = "'cat', 'python3', 'python', 'pypy3', 'node', 'nodejs', 'ruby', 'php', 'lua', 'luajit', \
    'tsx', 'julia', 'pytest', 'pip3', 'pip3.11', 'ruff', 'coverage'";

/// Lines that ran unasked once, or would with a smaller list, each beside one that stays allowed.
#[test]
fn code_is_in_a_file_that_the_line_names() {
    let table = include!("command_lines/interpreters.in");
    assert!(table.len() >= 150, "{}", table.len());
    holds(&Judge::allowing(PROGRAMS), &table);
}

/// A file above the folder is outside; one above the folder that the shell went to may be in it.
#[test]
fn a_file_outside_of_the_folder_asks() {
    let judge = Judge::allowing(PROGRAMS);
    holds(
        &judge,
        &[
            ("python3 ../x.py", "ask"),
            ("python3 -u ../x.py", "ask"),
            ("node sub/../../x.js", "ask"),
            ("cd sub && python3 ../x.py", "allow"),
            ("cd sub && python3 ../../x.py", "ask"),
            ("python3 sub/../x.py", "allow"),
            ("python3 /opt/x.py", "allow"),
        ],
    );
}

/// A makefile and a project outside are others than those that a rule was made for.
#[test]
fn what_is_built_outside_of_the_folder_asks() {
    holds(
        &Judge::allowing("'make', 'cargo'"),
        &[
            ("make -C sub test", "allow"),
            ("make --directory=sub", "allow"),
            ("make -C /w/sub", "allow"),
            ("make -j4 test", "allow"),
            ("cd sub && make -C ..", "allow"),
            ("make -C .. test", "ask"),
            ("make -C..", "ask"),
            ("make -kC ..", "ask"),
            ("make --directory=/tmp/x", "ask"),
            ("make --direc /tmp/x", "ask"),
            ("make test -C /tmp/x", "ask"),
            ("cd sub && make -C ../..", "ask"),
            ("cargo test --manifest-path sub/Cargo.toml", "allow"),
            ("cargo test --manifest-path=/w/sub/Cargo.toml", "allow"),
            ("cargo run -- --manifest-path=/tmp/x", "allow"),
            ("cargo test --manifest-path ../x/Cargo.toml", "ask"),
            ("cargo test --manifest-path=/tmp/x/Cargo.toml", "ask"),
        ],
    );
}

/// A program, options of it that take nothing, and options with their values.
type Known = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// All of these are known.
const KNOWN: &[Known] = &[
    ("python3", &["-u", "-B", "-Iu", "-v"], &[("-W", "ignore"), ("-X", "dev"), ("-uW", "error")]),
    (
        "node",
        &["--no-warnings", "--trace_warnings"],
        &[("--title", "x"), ("-C", "x"), ("--test-timeout", "5")],
    ),
    ("ruby", &["-w", "-W0"], &[("-E", "UTF-8")]),
    ("php", &["-n"], &[]),
    ("lua", &["-E"], &[]),
];

/// What may stand in the place of the script, or behind it.
const ENDS: &[&[&str]] = &[
    &[],
    &["x.py"],
    &["x.py", "a"],
    &["x.py", "-c", "1"],
    &["-"],
    &["/dev/stdin"],
    &["/./dev/stdin", "x.py"],
    &["-e", "1"],
    &["-c", "1"],
    &["-i", "x.py"],
    &["-m", "pytest"],
    &["-mtimeit", "1"],
    &["../../dev/stdin"],
    &["--", "x.py"],
];

/// A program, and its words with the place of each value.
fn command() -> impl Strategy<Value = (Vec<String>, Vec<usize>, usize)> {
    let program = prop::sample::select(KNOWN.to_vec());
    (program, prop::collection::vec(any::<prop::sample::Index>(), 0..4), prop::sample::select(ENDS.to_vec()))
        .prop_map(|((program, flags, values), chosen, end)| {
            let mut words = vec![program.to_owned()];
            let mut places = Vec::new();
            for index in chosen {
                let at = index.index(flags.len() + values.len());
                match flags.get(at) {
                    Some(flag) => words.push((*flag).to_owned()),
                    None => {
                        let (option, value) = values[at - flags.len()];
                        words.extend([option.to_owned(), value.to_owned()]);
                        places.push(words.len() - 1);
                    }
                }
            }
            let options = words.len();
            words.extend(end.iter().map(|word| (*word).to_owned()));
            (words, places, options)
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2048,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(31),
        max_global_rejects: 16_384,
        ..ProptestConfig::default()
    })]

    /// A line that asks does not run without a value of an option.
    #[test]
    fn without_a_value_nothing_runs_that_asked((words, values, _) in command(), which in any::<prop::sample::Index>()) {
        prop_assume!(!values.is_empty());
        let judge = Judge::allowing(PROGRAMS);
        let mut without = words.clone();
        without.remove(values[which.index(values.len())]);
        prop_assert!(judge.strictness(&without.join(" ")) >= judge.strictness(&words.join(" ")), "{without:?}");
    }

    /// With an option that is not known before the script every line asks; behind the script it changes nothing.
    #[test]
    fn an_option_that_is_not_known_never_makes_it_run(
        (words, _, options) in command(),
        at in any::<prop::sample::Index>(),
        unknown in "--[a-z_]{1,9}zq(=[a-z]{1,5})?|-[abdgjluB]{0,3}[yYkQ]",
    ) {
        let judge = Judge::allowing(PROGRAMS);
        let before = judge.strictness(&words.join(" "));
        let place = 1 + at.index(words.len());
        let mut with = words.clone();
        with.insert(place, unknown);
        let after = judge.strictness(&with.join(" "));
        prop_assert!(after >= before, "{with:?}: {:?}", line(&with.join(" "), Shell::Posix));
        prop_assert!(place > options || after == 1, "{with:?}");
    }
}
