//! What holds for any text: parsers do not panic, line ends stay, a diff leads there and back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod support;

use haft_patch::{diff, parse};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::{Tree, run};

/// The same cases every time, so that a run tells about the code and not about luck. With `PROPTEST_CASES` as many
/// other ones as that says.
fn config() -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: wanted.unwrap_or(400),
        rng_seed: wanted.map_or(RngSeed::Fixed(2026), |_| RngSeed::Random),
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..ProptestConfig::default()
    }
}

/// A line as patches have them, whole or broken.
fn patch_line() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "LP1",
            "END",
            "F a",
            "F \"b c\"",
            "F",
            "R",
            "R 2",
            "I 1",
            "P",
            "E",
            "T",
            "B",
            "N +",
            "N -",
            ".",
            "..",
            "#",
            "*** Begin Patch",
            "*** End Patch",
            "*** Add File: a",
            "*** Delete File: a",
            "*** Update File: a",
            "*** Move to: b",
            "*** End of File",
            "@@",
            "@@ a",
            "--- a/a",
            "+++ b/a",
            "--- /dev/null",
            "+++ /dev/null",
            "diff --git a/a b/a",
            "diff --git a/a b/b",
            "rename from a",
            "rename to b",
            "new file mode 100644",
            "deleted file mode 100644",
            "old mode 100644",
            "new mode 100755",
            "@@ -1 +1 @@",
            "@@ -1,2 +1,2 @@",
            "@@ -0,0 +1 @@",
            "@@ -1 +0,0 @@",
            "\\ No newline at end of file",
            " a",
            "-a",
            "+a",
            "+b",
            " b",
            "-b",
            "a",
            "b",
            "",
            "\r",
            "--- \"a/\\303",
            "index 1..2",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,12}",
    ]
}

fn patch_text() -> impl Strategy<Value = String> {
    prop_oneof![
        (prop::collection::vec(patch_line(), 0..24), prop::sample::select(vec!["\n", "\r\n"]))
            .prop_map(|(lines, end)| lines.join(end)),
        prop::collection::vec(any::<char>(), 0..80).prop_map(String::from_iter),
    ]
}

/// Texts of few different lines, so that they have much in common, with any line ends.
fn file_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a", "b", "c", "", "-- x", "++ y", "@@ -1 +1 @@", "a\rb", " ", "é"]);
    let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r\n", "\r"]);
    (prop::collection::vec((line, end), 0..24), any::<bool>()).prop_map(|(lines, final_newline)| {
        let mut text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
        if !final_newline && text.ends_with('\n') {
            text.pop();
        }
        text
    })
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "dir/b.txt",
        "with space/a b",
        "qu\"ote\\",
        "tab\tname",
        "é/ü",
        "/abs/x",
        " lead",
        "b/b",
    ])
    .prop_map(str::to_owned)
}

fn tree(path: &str, text: Option<&str>) -> Tree {
    text.map(|text| (path.to_owned(), text.as_bytes().to_vec())).into_iter().collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_text_makes_a_parser_panic(text in patch_text(), file in file_text()) {
        let _ = haft_patch::lp1::parse(&text);
        let _ = haft_patch::envelope::parse(&text);
        let _ = haft_patch::unified::parse(&text);
        // `run` also checks that what is applied can be undone.
        let tree = Tree::from([("a".to_owned(), file.into_bytes())]);
        let _ = run(&tree, &text);
    }

    #[test]
    fn a_diff_leads_there_and_back(
        before in prop::option::of(file_text()),
        after in prop::option::of(file_text()),
        old_path in path(),
        new_path in path(),
    ) {
        let old_path = if before.is_none() { new_path.clone() } else { old_path };
        let new_path = if after.is_none() { old_path.clone() } else { new_path };
        let (old, new) = (before.as_deref(), after.as_deref());
        for (from, to, from_path, to_path) in [(old, new, &old_path, &new_path), (new, old, &new_path, &old_path)] {
            let text = diff(from.map(str::as_bytes), to.map(str::as_bytes), from_path, to_path);
            let (start, end) = (tree(from_path, from), tree(to_path, to));
            if text.is_empty() {
                prop_assert_eq!(start, end);
                continue;
            }
            let result = run(&start, &text);
            prop_assert!(result.is_ok(), "{}\n{}", result.unwrap_err(), text);
            prop_assert_eq!(result.unwrap(), end, "{}", text);
        }
    }

    #[test]
    fn lp1_keeps_line_ends(
        lines in prop::collection::vec("[a-c]{0,2}", 1..12),
        crlf in any::<bool>(),
        final_newline in any::<bool>(),
        at in any::<prop::sample::Index>(),
        new in prop::collection::vec("[x-z]{1,2}", 0..4),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| {
            let last = if final_newline && !lines.is_empty() { end } else { "" };
            format!("{}{last}", lines.join(end))
        };
        // An empty last line without a newline is no line.
        prop_assume!(final_newline || lines.last().is_some_and(|line| !line.is_empty()));
        // Where no line is ended, nothing tells what would end it.
        prop_assume!(final_newline || lines.len() > 1 || !crlf);
        let index = at.index(lines.len());
        let occurrence = lines[..=index].iter().filter(|line| **line == lines[index]).count();
        let patch = format!(
            "LP1\nF f\nR {occurrence}\n{}\n.\n{}.\nEND\n",
            lines[index],
            new.iter().map(|line| format!("{line}\n")).collect::<String>()
        );
        let after = run(&tree("f", Some(&text(&lines))), &patch).unwrap();
        let mut expected = lines.clone();
        expected.splice(index..=index, new);
        prop_assert_eq!(std::str::from_utf8(&after["f"]).unwrap(), text(&expected));
    }

    #[test]
    fn the_envelope_keeps_every_line_end(file in file_text(), new in "[X-Z]{1,3}") {
        // The first line that occurs once, as both kinds of lines see it.
        let lines: Vec<&str> = file.split(['\n', '\r']).collect();
        let once = lines.iter().find(|line| !line.is_empty() && lines.iter().filter(|other| other == line).count() == 1);
        prop_assume!(once.is_some());
        let once = once.unwrap();
        let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n {once}\n+{new}\n*** End Patch\n");
        let after = run(&tree("f", Some(&file)), &patch).unwrap();
        let after = std::str::from_utf8(&after["f"]).unwrap();
        // Without the new line and one line end, it is the file as it was.
        let at = after.find(&new).unwrap();
        let (above, below) = (&after[..at], &after[at + new.len()..]);
        let ends = ["\r\n", "\n", "\r"];
        let restored = ends.iter().any(|end| {
            below.strip_prefix(end).is_some_and(|below| format!("{above}{below}") == file)
                || above.strip_suffix(end).is_some_and(|above| format!("{above}{below}") == file)
        });
        prop_assert!(restored, "{file:?} became {after:?}");
    }

    #[test]
    fn the_nearest_lines_are_in_the_text(file in file_text(), needle in file_text()) {
        if let Some(near) = haft_patch::nearest(&file, &needle) {
            let lines: Vec<&str> = file.lines().collect();
            let shown: Vec<&str> = near.text.split('\n').collect();
            prop_assert_eq!(&lines[near.line - 1..near.line - 1 + shown.len()], &shown[..]);
            prop_assert!(!near.to_string().is_empty());
        }
    }
}

#[test]
fn many_sections_on_a_file_of_one_long_line_are_refused_in_time() {
    let file = "a".repeat(4_000_000);
    let section = "*** Update File: f\n@@\n+b\n";
    let patch = parse(&format!("*** Begin Patch\n{}*** End Patch\n", section.repeat(10_000))).unwrap();
    let error = haft_patch::apply(&patch, &mut |_: &str| Ok::<_, String>(Some(file.clone().into_bytes())))
        .unwrap_err();
    assert!(error.to_string().contains("too many operations"), "{error}");
}

/// The operations are those that cost least here; what counts is how many lines each may have to look at.
#[test]
fn a_patch_of_many_operations_on_a_long_file_is_refused() {
    let file = "a\n".repeat(400_000);
    let patch = parse(&format!("LP1\nF f\n{}END\n", "E 1\n.\n".repeat(1_000))).unwrap();
    let error = haft_patch::apply(&patch, &mut |_: &str| Ok::<_, String>(Some(file.clone().into_bytes())))
        .unwrap_err();
    assert!(error.to_string().contains("too many operations"), "{error}");
}
