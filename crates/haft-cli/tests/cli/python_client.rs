//! The Python client, by its own tests: against a server of this program, on loopback.
#![cfg(unix)]

use crate::support::Place;
use std::path::Path;

/// Why a test was skipped, as pytest says it: `SKIPPED [1] tests/conftest.py:150: no jail on this machine`.
fn skipped(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix("SKIPPED")).map(str::trim)
}

/// Runs the tests of the client with those words for pytest.
fn client_tests(name: &str, words: &[&str]) {
    let Some(kit) = haft_testkit::http_kit() else {
        return haft_testkit::not_run(name, "pytest and the SDKs of models are not installed");
    };
    let place = Place::new();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python").canonicalize().unwrap();
    let mut tests = place.command(&kit.python);
    tests.current_dir(&package).args(["-m", "pytest", "--color=no"]).args(words);
    tests.arg("--basetemp").arg(place.home().join("tests"));
    tests.env("HAFT_BIN", env!("CARGO_BIN_EXE_haft")).env("HAFT_WHEELS", &kit.wheels);
    tests
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", "/usr/bin:/bin");
    let output = tests.output().expect("it starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // Where there is nothing to run, pytest ends with an error, too.
    assert!(output.status.success(), "{}\n{said}", output.status);
    if let Some(reason) = skipped(&said) {
        haft_testkit::not_run(name, &format!("a part of it: {reason}"));
    }
}

#[test]
fn the_python_client_calls_batches_streams_and_answers() {
    client_tests(
        "the_python_client_calls_batches_streams_and_answers",
        &["tests", "--ignore=tests/test_package.py"],
    );
}

#[test]
fn the_python_client_is_typed_and_tidy_and_its_wheel_installs() {
    client_tests("the_python_client_is_typed_and_tidy_and_its_wheel_installs", &["tests/test_package.py"]);
}
