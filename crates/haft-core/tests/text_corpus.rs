//! Terminal recordings and naughty strings of public projects, through the doors of `haft_core::text`.

use std::fs;
use std::path::{Path, PathBuf};

use haft_core::text::{ModelText, PeopleText, model_str, model_text, people_text};
use haft_testkit::{not_run, shared_data};

/// What the two streaming filters have in common.
trait Filter: Clone + Default + PartialEq {
    fn push(&mut self, bytes: &[u8], out: &mut String);
    fn finish(&mut self, out: &mut String);
}

impl Filter for ModelText {
    fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.push(bytes, out);
    }
    fn finish(&mut self, out: &mut String) {
        self.finish(out);
    }
}

impl Filter for PeopleText {
    fn push(&mut self, bytes: &[u8], out: &mut String) {
        self.push(bytes, out);
    }
    fn finish(&mut self, out: &mut String) {
        self.finish(out);
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files_below(&path, found)? } else { found.push(path) }
    }
    Ok(())
}

/// Every file with its name, and one more: a list of escapes in which `<ESC>` and the like stand for the
/// bytes.
fn corpus(folder: &Path) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut paths = Vec::new();
    files_below(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        files.push((path.display().to_string(), fs::read(path)?));
    }
    let notation = [
        ("<ESC>", "\x1b"),
        ("<BEL>", "\x07"),
        ("<DEL>", "\x7f"),
        ("<LF>", "\n"),
        ("<CR>", "\r"),
        ("<TAB>", "\t"),
        ("<BS>", "\x08"),
        ("<FF>", "\x0c"),
        ("<VT>", "\x0b"),
        ("<CAN>", "\x18"),
        ("<SUB>", "\x1a"),
        ("<NUL>", "\0"),
    ];
    let list = fs::read_to_string(folder.join("vt-push-parser-escapes.txt"))?;
    let list = notation.iter().fold(list, |list, (name, byte)| list.replace(name, byte));
    files.push(("vt-push-parser-escapes.txt, decoded".to_owned(), list.into_bytes()));
    Ok(files)
}

/// Cuts `raw` in two at every byte, and checks that the outcome is `whole`.
///
/// To run each of these pairs from end to end is quadratic, a thousand million bytes for a file of 30 KB.
/// That is done for small files, and for all where the optimiser helps. Otherwise the pair `[..cut]`,
/// `[cut..]` is run from the state that byte-by-byte pushing had at `cut`, and only until its state and its
/// output are again those of the byte-by-byte run at the same place. From there on both are the same value
/// and get the same bytes, so they cannot part any more; and the byte-by-byte run itself is compared with
/// `whole` to its end.
fn check_every_cut<F: Filter + std::fmt::Debug>(name: &str, raw: &[u8], whole: &str) {
    const AHEAD: usize = 48;
    let end_to_end = raw.len() <= 400 || !cfg!(debug_assertions);

    let (mut filter, mut out) = (F::default(), String::new());
    let mut states = vec![(filter.clone(), 0)];
    for byte in raw {
        filter.push(std::slice::from_ref(byte), &mut out);
        states.push((filter.clone(), out.len()));
    }
    filter.finish(&mut out);
    assert_eq!(out, whole, "{name} byte by byte");

    for (cut, (at_cut, written)) in states.iter().enumerate() {
        let again = raw.len().min(cut + AHEAD);
        let (mut filter, mut out) = (at_cut.clone(), String::new());
        filter.push(&raw[cut..again], &mut out);
        let (expected, expected_end) = &states[again];
        assert_eq!(&filter, expected, "{name} cut at {cut}: the state at {again}");
        assert_eq!(out, whole[*written..*expected_end], "{name} cut at {cut}: the text up to {again}");
        if end_to_end {
            let (mut filter, mut out) = (F::default(), String::new());
            filter.push(&raw[..cut], &mut out);
            filter.push(&raw[cut..], &mut out);
            filter.finish(&mut out);
            assert!(out == whole, "{name} cut at {cut}");
        }
    }
}

fn is_safe(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
}

#[test]
fn t_out_02_every_recording_cut_at_every_byte() {
    let Some(folder) = shared_data("terminal") else {
        return not_run(
            "t_out_02_every_recording_cut_at_every_byte",
            "the folder terminal is not in the test data",
        );
    };
    let files = corpus(&folder).unwrap();
    assert!(files.len() > 160, "only {} files", files.len());
    for (name, raw) in files {
        let model = model_text(&raw);
        assert!(is_safe(&model), "{name}");
        check_every_cut::<ModelText>(&name, &raw, &model);
        let people = people_text(&model);
        assert!(is_safe(&people), "{name}");
        check_every_cut::<PeopleText>(&name, &raw, &people);
    }
}

#[test]
fn t_out_02_recorded_sessions_keep_their_words() {
    let Some(folder) = shared_data("terminal/xtermjs/test/fixtures/escape_sequence_files") else {
        return not_run(
            "t_out_02_recorded_sessions_keep_their_words",
            "no terminal recordings in the test data",
        );
    };
    let cases = [
        // A prompt that sets the window's title
        ("t0501-bash_ls.in", "directory\nmark@mark-desktop:~/vt100-to-html/scripts$ ls\nbash.script\n"),
        // A coloured listing
        ("t0504-vim.in", "\r\ninput                     t0017-SD.in            t0051-IL.in\r\n"),
    ];
    for (name, words) in cases {
        let raw = fs::read(folder.join(name)).unwrap();
        let text = model_text(&raw);
        assert!(
            !raw.windows(words.len()).any(|window| window == words.as_bytes()),
            "{name} has sequences there"
        );
        assert!(text.contains(words), "{name}: {text}");
    }
}

#[test]
fn naughty_strings_that_can_be_printed_survive() {
    let Some(path) = shared_data("terminal/blns/blns.json") else {
        return not_run("naughty_strings_that_can_be_printed_survive", "no naughty strings in the test data");
    };
    let strings: Vec<String> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(strings.len() > 480, "only {}", strings.len());
    let mut with_controls = 0;
    for string in strings {
        let text = model_str(&string);
        if is_safe(&string) {
            assert_eq!(text, string);
        } else {
            with_controls += 1;
            assert!(is_safe(&text), "{string:?}");
        }
        let shown = people_text(&string);
        assert_eq!(people_text(&shown), shown, "{string:?}");
    }
    // The list grows; its older editions have three.
    assert!(with_controls >= 3, "{with_controls}");
    assert_eq!(
        model_str("Roses are \x1b[0;31mred\x1b[0m, violets are \x1b[0;34mblue. Hope you enjoy terminal hue"),
        "Roses are red, violets are blue. Hope you enjoy terminal hue"
    );
}
