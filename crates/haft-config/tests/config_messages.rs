//! What a person reads when a configuration is wrong: every message, with its place and its help.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test may panic: that is how it fails.

use haft_config::{
    FolderSource, Inputs, MAX_FILE_BYTES, MAX_PROBLEMS, Note, Problem, SourceText, parse, resolve, template,
};
use std::time::{Duration, Instant};

fn error(text: impl AsRef<[u8]>) -> String {
    let user = Some(SourceText::new("haft.toml", text.as_ref()));
    let error = resolve(&Inputs { user, ..Inputs::default() }).expect_err("it is wrong");
    format!("error: {error}")
}

fn variable_error(name: &str, value: &str) -> String {
    let env = vec![(name.to_owned(), value.to_owned())];
    format!("error: {}", resolve(&Inputs { env, ..Inputs::default() }).expect_err("it is wrong"))
}

fn flag_error(key: &str, value: &str) -> String {
    let flags = vec![(key.to_owned(), value.to_owned())];
    format!("error: {}", resolve(&Inputs { flags, ..Inputs::default() }).expect_err("it is wrong"))
}

#[test]
fn an_unknown_key_says_where_and_what_was_meant() {
    assert_eq!(
        error("# mine\n[tools]\n\n\n\n[tools.approval]\ndenlist = []\n"),
        "error: unknown key `tools.approval.denlist` in haft.toml:7:1\n  \
         help: did you mean `tools.approval.denylist`?"
    );
}

#[test]
fn suggestions() {
    for (text, key, meant) in [
        ("[tool]\nmode = 1", "tool", "tools"),
        ("[tools]\nMode = 1", "tools.Mode", "tools.mode"),
        ("[tools]\nallow-parallel = 1", "tools.allow-parallel", "tools.allow_parallel"),
        ("[tools]\nmax_calls_per_batch = 1", "tools.max_calls_per_batch", "tools.max_tool_calls_per_batch"),
        ("[tools.fils]\nx = 1", "tools.fils", "tools.files"),
        ("[approval]\nx = 1", "approval", "tools.approval"),
        (
            "[tools]\nprompt_side_effects = 1",
            "tools.prompt_side_effects",
            "tools.approval.prompt_side_effects",
        ),
        ("[tools]\nmax_patch_bytes = 1", "tools.max_patch_bytes", "tools.apply_patch.max_patch_bytes"),
        // Names that the limits go by elsewhere.
        (
            "[tools]\nmax_apply_patch_bytes = 1",
            "tools.max_apply_patch_bytes",
            "tools.apply_patch.max_patch_bytes",
        ),
        (
            "[tools]\nmax_read_file_scan_bytes = 1",
            "tools.max_read_file_scan_bytes",
            "tools.read_file.max_scan_bytes",
        ),
        (
            "[tools]\ndenylist = 1",
            "tools.denylist",
            "tools.environment.denylist` or `tools.approval.denylist",
        ),
        ("'tools.mode' = 1", "\"tools.mode\"", "tools.mode"),
        (
            "[[tools.definitions]]\nname = 'a'\ndescription = 'A'\nparams = {}",
            "tools.definitions[0].params",
            "",
        ),
        (
            "[[tools.definitions]]\nname = 'a'\ndescription = 'A'\nparameter = {}",
            "tools.definitions[0].parameter",
            "tools.definitions[0].parameters",
        ),
        ("[weather]\nx = 1", "weather", ""),
    ] {
        let message = error(text);
        let (first, help) = message.split_once("\n  help: ").unwrap();
        assert!(first.starts_with(&format!("error: unknown key `{key}` in haft.toml:")), "{message}");
        if meant.is_empty() {
            assert_eq!(help, "remove it; `haft init` writes a file with every key", "{text}");
        } else {
            assert_eq!(help, format!("did you mean `{meant}`?"), "{text}");
        }
    }
}

#[test]
fn wrong_types_and_values() {
    let text = "\
tools.mode = 'enabeld'
tools.allow_parallel = 'yes'
tools.max_tool_calls_per_batch = 0
tools.max_tool_args_bytes = -1
tools.output.max_bytes = 99999999999999999999999
tools.timeouts.default_seconds = 1.5
tools.files.allowed_roots = '.'
tools.files.denied_patterns = ['a', 3]
tools.approval.mode = 1
tools.approval.allowlist = { a = 1 }
";
    assert_eq!(
        error(text),
        r#"error: `tools.mode` cannot be "enabeld" in haft.toml:1:14
  help: did you mean "enabled"? It can be "disabled", "parse_only" or "enabled"
error: `tools.allow_parallel` must be true or false, not a string, in haft.toml:2:24
  help: write it like this: `allow_parallel = false`
error: `tools.max_tool_calls_per_batch` must be from 1 to 10000, not 0, in haft.toml:3:34
  help: choose a whole number from 1 to 10000
error: `tools.max_tool_args_bytes` must be from 2 to 1073741824, not -1, in haft.toml:4:29
  help: choose a whole number from 2 to 1073741824
error: `tools.output.max_bytes` must be from 256 to 1073741824, not 99999999999999999999999, in haft.toml:5:26
  help: choose a whole number from 256 to 1073741824
error: `tools.timeouts.default_seconds` must be a whole number, not a fraction, in haft.toml:6:34
  help: write it like this: `default_seconds = 30`
error: `tools.files.allowed_roots` must be a list of folders, not a string, in haft.toml:7:29
  help: write it like this: `allowed_roots = ["."]`
error: `tools.files.denied_patterns` must be a list of strings, not a list with other things in it, in haft.toml:8:31
  help: write it like this: `denied_patterns = []`
error: `tools.approval.mode` must be "deny", "prompt" or "auto", not a number, in haft.toml:9:23
  help: write it like this: `mode = "prompt"`
error: `tools.approval.allowlist` must be a list of strings, not a table, in haft.toml:10:28
  help: write it like this: `allowlist = ["read_file", "list_directory", "glob", "search_files"]`"#
    );
    assert_eq!(
        error("tools = 3\n"),
        "error: `tools` must be a section, not a number, in haft.toml:1:9\n  help: write it like this: `[tools]`"
    );
    assert_eq!(
        error("[[tools.files]]\n"),
        "error: `tools.files` must be a section, not a list, in haft.toml:1:1\n  \
         help: write it like this: `[tools.files]`"
    );
}

#[test]
fn entries_that_would_match_nothing() {
    let text = "\
[tools.approval]
denylist = ['', ' run_command', \"a\\u001Bb\"]
[tools.files]
allowed_roots = []
";
    assert_eq!(
        error(text),
        r#"error: `tools.approval.denylist` has the entry "", which is empty, in haft.toml:2:13
  help: remove the entry; an empty list is `[]`
error: `tools.approval.denylist` has the entry " run_command", which begins or ends with a space, in haft.toml:2:17
  help: remove the space: as it is, the entry would match nothing
error: `tools.approval.denylist` has the entry "a\u001Bb", which has a control character, in haft.toml:2:33
  help: remove the control character
error: `tools.files.allowed_roots` needs at least one folder in haft.toml:4:17
  help: remove the line to allow the working folder only"#
    );
    assert_eq!(
        error("tools.files.allowed_roots = ['~/notes']"),
        "error: `tools.files.allowed_roots` has the entry \"~/notes\", which starts at the home folder, which is \
         not known, in haft.toml:1:30\n  help: write the whole path"
    );
}

#[test]
fn declared_tools() {
    let text = "\
[[tools.definitions]]
name = 'Ask Me'
description = 'Asks'

[[tools.definitions]]
name = 7
parameters = 'none'

[[tools.definitions]]
name = 'run'
description = ''
parameters = { since = 2026-01-01 }

[[tools.definitions]]
name = 'twice'
description = 'Once'

[[tools.definitions]]
name = 'twice'
description = 'Twice'
";
    assert_eq!(
        error(text),
        r#"error: `tools.definitions[0].name`: `Ask Me` is not a valid name, in haft.toml:1:1
  help: use only a-z, 0-9 and _, and begin with a letter, such as `ask_me`
error: `tools.definitions[1]` has no `description` in haft.toml:5:1
  help: add a line `description = …` to it
error: `tools.definitions[1].name` must be a string, not a number, in haft.toml:6:8
  help: write it like this: `name = "…"`
error: `tools.definitions[1].parameters` must be a table, not a string, in haft.toml:7:14
  help: write it like this: `parameters = { type = "object" }`
error: `tools.definitions[2].name`: `run` is a reserved word, in haft.toml:9:1
  help: say what it works on, such as `run_report`
error: `tools.definitions[2].description`: it is empty, in haft.toml:9:1
  help: say what the tool does, in one sentence
error: `tools.definitions[2]` has the entry "parameters", which cannot be written as JSON, in haft.toml:12:14
  help: write it as a string
error: `tools.definitions` has the entry "twice", which is there twice, in haft.toml:18:1
  help: keep one of the two"#
    );
}

#[test]
fn syntax() {
    assert_eq!(
        error("[tools]\nmode = enabled\n"),
        "error: string values must be quoted, expected literal string in haft.toml:2:8\n  \
         help: a line is `name = value` under its `[section]`; text goes in double quotes"
    );
    assert_eq!(
        error("[tools]\nmode = 'enabled'\nmode = 'disabled'\n"),
        "error: duplicate key in haft.toml:3:1\n  help: keep one of the two"
    );
}

#[test]
fn a_bad_variable_or_flag_names_itself() {
    assert_eq!(
        variable_error("HAFT_TOOLS_MODE", "off"),
        "error: `tools.mode` cannot be \"off\" in HAFT_TOOLS_MODE\n  \
         help: it can be \"disabled\", \"parse_only\" or \"enabled\""
    );
    assert_eq!(
        variable_error("HAFT_TOOLS_ALLOW_PARALLEL", "1"),
        "error: `tools.allow_parallel` must be true or false, not \"1\", in HAFT_TOOLS_ALLOW_PARALLEL\n  \
         help: write it like this: `allow_parallel = false`"
    );
    assert_eq!(
        variable_error("HAFT_TOOLS_OUTPUT_MAX_BYTES", "10 KB"),
        "error: `tools.output.max_bytes` must be a whole number, not \"10 KB\", in HAFT_TOOLS_OUTPUT_MAX_BYTES\n  \
         help: write it like this: `max_bytes = 102400`"
    );
    assert_eq!(
        variable_error("HAFT_TOOLS_OUTPUT_MAX_BYTES", "-5"),
        "error: `tools.output.max_bytes` must be from 256 to 1073741824, not -5, in HAFT_TOOLS_OUTPUT_MAX_BYTES\n  \
         help: choose a whole number from 256 to 1073741824"
    );
    assert_eq!(
        variable_error("HAFT_TOOLS_APPROVAL_DENYLIST", "['a'"),
        "error: unclosed array, expected `]` in HAFT_TOOLS_APPROVAL_DENYLIST\n  \
         help: a line is `name = value` under its `[section]`; text goes in double quotes"
    );
    assert_eq!(
        flag_error("tools.mod", "disabled"),
        "error: unknown key `tools.mod` on the command line\n  help: did you mean `tools.mode`?"
    );
    assert_eq!(
        flag_error("tools.files.allowed_roots", ""),
        "error: `tools.files.allowed_roots` needs at least one folder on the command line\n  \
         help: remove the line to allow the working folder only"
    );
}

#[test]
fn an_unknown_variable_is_a_note() {
    let env = [
        "HAFT_TOOLS_MOD",
        "HAFT_TOOLS_FILES_WALLS",
        "HAFT_DENYLIST",
        // None of these looks like a key.
        "HAFT_LOG",
        "HAFT_STATE_DIR",
        "HAFT_CONFIG",
        "HAFT_TEST_DATA",
        "HAFT_NOT_RUN",
        "HAFT_EFFECT_ID",
        "HAFT_CALL_ID",
        "HAFT_CALL_METADATA",
        "HAFT_CALL_CONTEXT",
        "HAFT_WEATHER",
        "HAFT_",
        "TOOLS_MODE",
        "PATH",
    ];
    let env = env.map(|name| (name.to_owned(), "x".to_owned())).to_vec();
    let notes = resolve(&Inputs { env, ..Inputs::default() }).unwrap().notes;
    let notes: Vec<String> = notes.iter().map(Note::to_string).collect();
    assert_eq!(
        notes,
        [
            "the environment variable `HAFT_TOOLS_MOD` sets no key\n  help: did you mean `HAFT_TOOLS_MODE`?",
            "the environment variable `HAFT_TOOLS_FILES_WALLS` sets no key\n  \
             help: `haft init` writes a file with every key; a variable is named after its key",
            "the environment variable `HAFT_DENYLIST` sets no key\n  \
             help: did you mean `HAFT_TOOLS_ENVIRONMENT_DENYLIST` or `HAFT_TOOLS_APPROVAL_DENYLIST`?",
        ]
    );
}

#[test]
fn a_wrong_file_in_the_folder_names_the_way_out() {
    let source = SourceText::new("/repo/haft.toml", "[tools]\nmodee = 1\n");
    let user = SourceText::new("/home/ada/.config/haft/haft.toml", "oops = 1\n");
    let inputs = Inputs {
        user: Some(user),
        folder: Some(FolderSource { source, pinned: false }),
        working_folder: "/repo/src".into(),
        ..Inputs::default()
    };
    assert_eq!(
        resolve(&inputs).unwrap_err().to_string(),
        "unknown key `oops` in /home/ada/.config/haft/haft.toml:1:1\n  \
         help: remove it; `haft init` writes a file with every key\n\
         error: unknown key `modee` in /repo/haft.toml:2:1\n"
            .replace("`modee`", "`tools.modee`")
            + "  help: did you mean `tools.mode`?\n  \
               help: to go on without the file in this folder, add `--no-folder-config`"
    );
}

#[test]
fn ten_problems_are_told_and_the_rest_counted() {
    // The keys are told in the order of the file, not of the alphabet.
    let text: String = (0..25).rev().map(|number| format!("key_{number} = 1\n")).collect();
    let error = parse(&text).unwrap_err();
    assert_eq!(error.problems().len(), MAX_PROBLEMS);
    assert_eq!(error.left_out(), 15);
    let Problem::UnknownKey { key, .. } = &error.problems()[0] else { panic!("{error}") };
    assert_eq!(key, "key_24");
    assert!(error.to_string().ends_with("\nerror: and 15 more"), "{error}");
}

#[test]
fn nothing_from_a_file_reaches_the_terminal_raw() {
    let hostile = "\\u001B[2J\\u202E\\u200B\\u0007";
    for text in [
        format!("\"{hostile}\" = 1"),
        format!("[tools]\nmode = \"{hostile}\""),
        format!("[tools.approval]\ndenylist = [\" {hostile}\"]"),
        format!("[[tools.definitions]]\nname = \"{hostile}\"\ndescription = \"{hostile}\""),
        format!("[[tools.definitions]]\n\"{hostile}\" = 1"),
        "\u{1b}]0;title\u{7} = 1".to_owned(),
    ] {
        let message = error(&text);
        assert!(!message.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}']), "{message:?}");
    }
    let text = format!("[tools.approval]\nallowlist = [\"{}\"]\n", "\\u202E".repeat(500));
    let source = SourceText::new("/repo/ha\u{1b}[31mft.toml", text);
    let folder = Some(FolderSource { source, pinned: false });
    let note = resolve(&Inputs { folder, ..Inputs::default() }).unwrap().notes[0].to_string();
    assert!(!note.contains(['\u{1b}', '\u{202e}']), "{note:?}");
    assert!(note.lines().all(|line| line.chars().count() < 400), "long values are cut: {note}");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let text = format!("\u{FEFF}{}", template().replace('\n', "\r\n"));
    assert_eq!(parse(&text).unwrap(), haft_config::Config::default());
    assert_eq!(
        error("\u{FEFF}tols = 1\r\n\r\nmore = 1\r\n").lines().step_by(2).collect::<Vec<_>>(),
        ["error: unknown key `tols` in haft.toml:1:1", "error: unknown key `more` in haft.toml:3:1"]
    );
}

#[test]
fn columns_count_characters() {
    assert!(error("[tools]\nmode = { \"é𝄞\" = 1, zé = 2 }").contains("haft.toml:2:"));
    assert!(
        error("[tools]\nallow_parallel = [ 'é𝄞' ]\n'é𝄞' = 1").contains("`tools.\"é𝄞\"` in haft.toml:3:1")
    );
    assert!(error("tools.approval.denylist = ['é𝄞', '']").contains("haft.toml:1:34"));
}

#[test]
fn what_is_not_text_is_refused() {
    assert_eq!(
        error(b"[tools]\nmode = '\xFF'\n"),
        "error: haft.toml:2:9 is not UTF-8 text\n  help: save the file as UTF-8"
    );
    assert!(error(b"\xFF\xFE[\0t\0").contains("haft.toml:1:1 is not UTF-8 text"));
    assert!(error(b"\x7fELF\x02\x01\x01\0\0\0").starts_with("error: "));
    assert!(error("\0".repeat(1000)).starts_with("error: "));
    assert!(error("a\0b = 1").starts_with("error: "));
}

#[test]
fn a_file_is_at_most_a_mebibyte() {
    let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
    assert!(parse(&"#".repeat(limit)).is_ok());
    assert_eq!(
        error("#".repeat(limit + 1)),
        "error: haft.toml is larger than 1048576 bytes\n  \
         help: check that this is the right file; a configuration is a few lines"
    );
}

/// A file in a folder may be made to keep haft busy, or to overflow its stack.
#[test]
fn hostile_files_are_refused_soon() {
    let limit = usize::try_from(MAX_FILE_BYTES).unwrap() - 64;
    let fill = |piece: &str| piece.repeat(limit / piece.len());
    let numbered = |before: &str, after: &str| {
        let numbers =
            (0..limit / (before.len() + after.len() + 6)).map(|number| format!("{before}{number}{after}"));
        numbers.collect::<String>()
    };
    let cases = [
        ("open arrays", format!("a = {}", fill("["))),
        ("nested arrays", format!("a = {}{}", "[".repeat(limit / 2), "]".repeat(limit / 2))),
        ("open tables", format!("a = {}", fill("{a="))),
        ("a long dotted key", format!("{}a = 1", fill("a."))),
        ("a long dotted header", format!("[{}a]", fill("a."))),
        ("one key again and again", fill("a = 1\n")),
        ("one header again and again", fill("[tools]\n")),
        ("many unknown keys", numbered("k", " = 1\n")),
        ("many unknown keys on one line", format!("tools = {{ {}z = 1 }}", numbered("k", "=1,"))),
        ("many bad entries on one line", format!("tools.approval.denylist = [{}]", fill("'',"))),
        ("many bad tools", fill("[[tools.definitions]]\nname = 'A'\n")),
        ("many broken lines", fill("]\n")),
        ("one long key", format!("{} = 1", fill("k"))),
    ];
    for (name, text) in cases {
        let start = Instant::now();
        assert!(parse(&text).is_err(), "{name}");
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
    }
    // Large, but right.
    let entries = numbered("'tool_", "',");
    assert!(parse(&format!("tools.approval.denylist = [{entries}]")).is_ok());
}
