//! What is looked at before the parser sees a line: so much that it cannot be made to run long, deep, or astray.
//!
//! The parser calls itself for every level of nesting, and a stack that is used up ends the process. So the signs that
//! open a level are counted first, wherever they stand. In a build without optimisation one level takes up to 20 kB of
//! stack, and a thread has 2 MB.

use super::{Unread, simple::LONGEST};

/// The most signs and words that can open a level.
const DEEPEST: usize = 32;

/// The most signs and words whose inside the parser reads more than once where the line is none: `(` where a command
/// can begin, and `case`. The time doubles with each of them, and fourfold with two.
const MOST_TRIED_TWICE: usize = 10;

/// Why a line is not given to the parser, where it is not.
pub(super) fn problem(text: &str) -> Option<Unread> {
    if text.len() > LONGEST {
        return Some(Unread::TooLong);
    }
    if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        return Some(Unread::Control);
    }
    if text.chars().any(is_misleading) {
        return Some(Unread::Invisible);
    }
    if has_long_descriptor(text) {
        return Some(Unread::Syntax);
    }
    let is_too_deep = openers(text) > DEEPEST || tried_twice(text) > MOST_TRIED_TWICE;
    is_too_deep.then_some(Unread::TooDeep)
}

/// Letters that are seen as a blank or not at all, or that change the order of others.
fn is_misleading(letter: char) -> bool {
    let is_blank = letter.is_whitespace() && !matches!(letter, ' ' | '\n' | '\t');
    is_blank
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a document has anything but the plain form: `<<NAME`, its end on a line of its own, and no substitution
/// before it. Where the name is missing, or the end, or both stand in a substitution, the parser may look for the end for
/// ever and take all memory. A `<<` between quotes counts, too: the line then asks, which is no harm.
pub(super) fn has_odd_document(text: &str) -> bool {
    let substitutes = |text: &str| ["$(", "`", "<(", ">("].iter().any(|opener| text.contains(opener));
    text.match_indices("<<").any(|(at, sign)| {
        let rest = &text[at + sign.len()..];
        // A text in one line, `<<<`, is no document; `\\<<<` is one.
        let behind = text[..at].trim_end_matches('<');
        let signs = text[behind.len()..].bytes().take_while(|byte| *byte == b'<').count();
        if signs == 3 && !behind.ends_with('\\') {
            return false;
        }
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let has_tabs = line.starts_with('-');
        let line = line.strip_prefix('-').unwrap_or(line).trim_start_matches([' ', '\t']);
        let quote = line.chars().next().filter(|letter| matches!(letter, '\'' | '"'));
        let word = line.trim_start_matches(['\'', '"', '\\']);
        let length = word.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, behind) = word.split_at(length);
        let quoted_as = quote.map_or(0, char::len_utf8) + usize::from(line.starts_with('\\'));
        let is_plain = !name.is_empty() && line.len() - word.len() == quoted_as;
        let behind = quote.map_or(Some(behind), |quote| behind.strip_prefix(quote));
        let ends = behind.is_some_and(|behind| {
            behind.is_empty() || behind.starts_with([' ', '\t', ';', '&', '|', ')', '<', '>'])
        });
        let ends_below =
            below.lines().any(|line| (if has_tabs { line.trim_start_matches('\t') } else { line }) == name);
        !(is_plain && ends && ends_below)
            || substitutes(&text[..at])
            || substitutes(rest.lines().next().unwrap_or(""))
    })
}

/// Whether a redirection names a descriptor by more digits than the parser can count: it would panic.
fn has_long_descriptor(text: &str) -> bool {
    text.match_indices(['<', '>']).any(|(at, _)| {
        text.as_bytes()[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count() > 9
    })
}

fn tried_twice(text: &str) -> usize {
    let before = std::iter::once(b' ').chain(text.bytes());
    let groups = before.zip(text.bytes()).filter(|(before, byte)| {
        *byte == b'('
            && (before.is_ascii_whitespace()
                || matches!(before, b';' | b'&' | b'|' | b'(' | b'!' | b'{' | b')'))
    });
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    groups.count() + words.filter(|word| *word == "case").count()
}

fn openers(text: &str) -> usize {
    const WORDS: [&str; 8] = ["if", "elif", "while", "until", "for", "case", "select", "function"];
    let signs = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'`')).count();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    signs + words.filter(|word| WORDS.contains(word)).count()
}

#[cfg(test)]
mod tests {
    use crate::command::{Shell, line};
    use std::{
        sync::mpsc,
        thread,
        time::{Duration, Instant},
    };

    #[test]
    fn a_descriptor_that_nobody_has_is_not_read() {
        for digits in [10, 11, 40] {
            let text = format!("echo x {}>f", "4".repeat(digits));
            assert_eq!(super::problem(&text), Some(crate::command::Unread::Syntax), "{text}");
        }
        assert_eq!(super::problem("cargo test 2>&1 >out.txt 3<in"), None);
    }

    #[test]
    fn a_document_of_an_odd_form_is_not_read() {
        for text in [
            "$(d<<a\n\"x` r)$ y",
            "echo $(cat <<E\nx\n)",
            "`cat <<E`",
            "diff <(cat <<E) x",
            "x $(y) <<E\nz\nE",
            "cat <<%xa$(  x \n",
            "cat <<''",
            "cat <<'E\nx\nE",
            "cat <<E'\nx\nE",
            "cat <<E\"\"\nx\nE",
            "cat <<E",
            "cat <<E\nx",
            "cat <<E $(x)\nx\nE",
            "cat <<\nE\nE",
            "cat <<E\nx\n\tE",
            "a \\<<<$(  x",
            "a <<<<E\nE",
        ] {
            assert!(super::has_odd_document(text), "{text}");
            assert!(!line(text, Shell::Posix).is_read(), "{text}");
        }
        for text in [
            "cat <<E\n$(x)\nE",
            "echo $(cat <<<x)",
            "cat <<E\nx\nE",
            "cat <<'E'\nx\nE\n",
            "cat <<\"E_1\" >f\nx\nE_1",
            "cat <<\\E\nx\nE",
            "cat <<-E | sort\nx\n\tE",
            "cat << E; ls\nE",
            "echo $((1<2))",
        ] {
            assert!(!super::has_odd_document(text), "{text}");
        }
    }

    /// Whatever opens a level, as often as it may or oftener, and whatever stands inside: an answer comes at once.
    /// Where the time doubled with each level it would not come at all.
    #[test]
    fn no_nesting_takes_long() {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            for opener in [
                "(",
                "( ",
                "((",
                "$(",
                "$((",
                "`",
                "{ ",
                "{",
                "${",
                "<(",
                "if ",
                "while ",
                "case x in x) ",
                "[[ ",
            ] {
                for inside in ["", " l 2 ^", "x", " x", "1+1", "'", "<<E", ")"] {
                    for count in [1, 2, 5, 8, 16, 31, 32, 40] {
                        let begun = Instant::now();
                        let _ = line(&format!("a;{}{inside}", opener.repeat(count)), Shell::Posix);
                        let _ =
                            done.send((format!("{count} of {opener:?} before {inside:?}"), begun.elapsed()));
                    }
                }
            }
        });
        let mut last = String::new();
        loop {
            match is_done.recv_timeout(Duration::from_secs(20)) {
                Ok((what, time)) if time < Duration::from_secs(10) => last = what,
                Ok((what, time)) => panic!("{what} took {time:?}"),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("what follows {last} does not end"),
            }
        }
    }
}
