//! Lines with `cd` and with documents, as real shells take them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test fails by panicking"
)]

use fastrand::Rng;
use haft_guard::command::{Folder, Part, Shell, Unread, Word, line, line_in};
use std::process::Command;

fn shells() -> Vec<&'static str> {
    ["/bin/bash", "/bin/dash"].into_iter().filter(|shell| std::path::Path::new(shell).exists()).collect()
}

/// A line, by chance. `q` tells where it runs.
fn made(random: &mut Rng, root: &str, depth: usize) -> String {
    let part = |random: &mut Rng| made(random, root, depth.saturating_sub(1));
    match if depth == 0 { random.u8(..6) } else { random.u8(..20) } {
        0 | 1 => "q".to_owned(),
        2 | 3 => {
            let inside = format!("{root}/a");
            let folders =
                ["a", "b", "a/b", "..", "..", "../..", "../a", "no", "../no", ".", &inside, root, "/"];
            format!("cd {}", folders[random.usize(..folders.len())])
        }
        4 => ["true", "false", "true &>/dev/null", "false &>/dev/null"][random.usize(..4)].to_owned(),
        5 => ["continue", "break", "continue 2"][random.usize(..3)].to_owned(),
        6..=9 => format!("{} && {}", part(random), part(random)),
        10 => format!("{} || {}", part(random), part(random)),
        11 | 12 => format!("{}; {}", part(random), part(random)),
        13 => format!("( {} )", part(random)),
        14 => format!(
            "{{ {}; }}{}",
            part(random),
            ["", " </dev/null", " </no", " &>/dev/null"][random.usize(..4)]
        ),
        15 => format!("if {}; then {}; else {}; fi", part(random), part(random), part(random)),
        16 => format!("if {}; then {}; fi", part(random), part(random)),
        17 => format!("for i in 1 2 3; do {}; done", part(random)),
        18 => format!("{} | {}", part(random), part(random)),
        _ => format!("{{ {} & }} && wait && cd a &>/dev/null && {}", part(random), part(random)),
    }
}

/// Where `q` runs, with this text.
fn places(shell: &str, text: &str, folder: &str) -> Vec<String> {
    let script = format!("q() {{ pwd -P; }}\n{text}");
    let output =
        Command::new(shell).args(["-c", &script]).current_dir(folder).env_remove("CDPATH").output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// In a line that stays in its folder as it is read here, every program starts in it, whatever fails on the way.
#[test]
fn lines_that_stay_in_their_folder_do_so_in_real_shells() {
    let shells = shells();
    if shells.is_empty() {
        let why = "neither bash nor dash is here";
        return haft_testkit::not_run("lines_that_stay_in_their_folder_do_so_in_real_shells", why);
    }
    let around = std::env::temp_dir().join(format!("haft-places-{}", std::process::id()));
    let folder = around.join("w");
    std::fs::create_dir_all(folder.join("a/b")).unwrap();
    let folder = folder.canonicalize().unwrap();
    let root = folder.to_str().unwrap();
    let mut random = Rng::with_seed(6);
    let (mut stay, mut below, mut leave, mut left) = (0, 0, 0, 0);
    while stay < 600 || leave < 150 {
        let text = made(&mut random, root, 4);
        let read = line_in(&text, Shell::Posix, Folder { path: root, is_start: true });
        let unread: Vec<&Part> = read.parts.iter().filter(|part| matches!(part, Part::Unread(_))).collect();
        let stays = match &unread[..] {
            [] => true,
            [Part::Unread(Unread::Outside)] => false,
            // To the parser, `( ( q ) )` is arithmetic.
            _ => continue,
        };
        if !text.contains("cd") || !text.contains('q') || (if stays { stay >= 600 } else { leave >= 150 }) {
            continue;
        }
        for shell in &shells {
            for seen in places(shell, &text, root) {
                let is_inside = seen.starts_with(root);
                assert!(is_inside || !stays, "{shell}: {text:?} runs in {seen}");
                below += usize::from(is_inside && stays && seen != root);
                left += usize::from(!is_inside);
            }
        }
        *(if stays { &mut stay } else { &mut leave }) += 1;
    }
    std::fs::remove_dir_all(&around).unwrap();
    println!("{stay} lines stay, {below} programs below; of {leave} that may leave, {left} programs did");
    assert!(below >= 50, "{below}");
    assert!(left >= 50, "those that ask do leave: {left}");
}

/// The text of a document that `cat` reads is the word that a real shell makes of it.
#[test]
fn documents_are_those_of_real_shells() {
    let shells = shells();
    if shells.is_empty() {
        let why = "neither bash nor dash is here";
        return haft_testkit::not_run("documents_are_those_of_real_shells", why);
    }
    let pieces = [
        "a", "don't", "\"", "'", "`", "$(qa)", "$x", "${", "(", ")", ":)", "\\", "\\\n", "\n", "\n\n", "E",
        "\nE", " E\n", "\t", " ", "#", "<<'F'", "|", ";", "&", "E)", "é", "-",
    ];
    let mut random = fastrand::Rng::with_seed(61);
    let (mut compared, mut tried) = (0, 0);
    while compared < 300 && tried < 40_000 {
        tried += 1;
        let body: String = (0..random.usize(0..9)).map(|_| pieces[random.usize(..pieces.len())]).collect();
        let text = format!("f -m \"x$(cat <<'E'\n{body}\nE\n)y\" z");
        let read = line(&text, Shell::Posix);
        let Some(Part::Command(words)) = read.parts.first().filter(|_| read.is_read()) else { continue };
        let words: Vec<&str> = words.iter().filter_map(Word::exact).collect();
        let [_, _, word, "z"] = words[..] else { panic!("{text:?}: {words:?}") };
        compared += 1;
        for shell in &shells {
            let script = format!("f() {{ printf '%s\\0' \"$@\"; }}\n{text}");
            let output = Command::new(shell).args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().unwrap();
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(seen, format!("-m\0{word}\0z\0"), "{shell}: {text:?}");
        }
    }
    assert_eq!(compared, 300, "of {tried}");
}
