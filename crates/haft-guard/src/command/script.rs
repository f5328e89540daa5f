//! Scripts of `sed`: which of them only print.

use super::word::Word;

/// Whether `sed` with these arguments writes nothing but its output, and runs nothing.
pub(super) fn is_tame_sed(words: &[Word]) -> bool {
    let Some(words) = words.iter().map(Word::exact).collect::<Option<Vec<&str>>>() else {
        return is_tame_with_files(words);
    };
    is_tame(&words).unwrap_or(false)
}

/// Files that only the shell knows may stand behind a script, where none of them can be an option.
fn is_tame_with_files(words: &[Word]) -> bool {
    let place = words.iter().position(|word| word.exact().is_none()).unwrap_or(words.len());
    let (known, files) = words.split_at(place);
    let known: Vec<&str> = known.iter().filter_map(Word::exact).collect();
    let has_script = known.iter().any(|word| !word.starts_with('-'));
    let are_files = files.iter().all(|word| match word {
        Word::Exact(text) => !text.starts_with('-'),
        Word::Glob(pattern) => {
            pattern.starts_with(|letter: char| letter.is_alphanumeric() || "./_".contains(letter))
        }
        Word::Any => false,
    });
    has_script && are_files && is_tame(&known).unwrap_or(false)
}

/// `None` where it cannot be read.
fn is_tame(words: &[&str]) -> Option<bool> {
    const FLAGS: [&str; 11] = [
        "--quiet",
        "--silent",
        "--regexp-extended",
        "--null-data",
        "--zero-terminated",
        "--separate",
        "--unbuffered",
        "--posix",
        "--sandbox",
        "--version",
        "--help",
    ];
    let mut scripts: Vec<&str> = Vec::new();
    let mut others: Vec<&str> = Vec::new();
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                _ if long.is_empty() => others.extend(rest.by_ref()),
                _ if FLAGS.contains(&word) => {}
                Some(("expression", script)) => scripts.push(script),
                None if long == "expression" => scripts.push(rest.next()?),
                _ => return None,
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            others.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                'e' => {
                    let glued = &letters[at + 1..];
                    scripts.push(if glued.is_empty() { rest.next()? } else { glued });
                    break;
                }
                // `-i`, `-f`, and whatever else there is.
                _ => return None,
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(others.first());
    }
    // They are one script, line by line: one may end in the middle of what the next one goes on with.
    Some(only_prints(&scripts.join("\n")))
}

/// Whether a script has only commands that are known to print, and nothing that is not understood.
fn only_prints(script: &str) -> bool {
    let mut letters = script.chars().peekable();
    reads(&mut letters).is_some()
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads a script to its end, or gives up.
fn reads(letters: &mut Letters<'_>) -> Option<()> {
    loop {
        while letters.next_if(|letter| letter.is_whitespace() || *letter == ';').is_some() {}
        address(letters)?;
        let Some(command) = letters.next() else { return Some(()) };
        match command {
            '{' | '}' | 'p' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'P' | '=' => {}
            'q' | 'Q' | 'l' => {
                while letters.next_if(|letter| letter.is_ascii_digit() || *letter == ' ').is_some() {}
            }
            's' | 'y' => {
                let end = letters.next().filter(|end| !end.is_whitespace() && *end != '\\')?;
                delimited(letters, end)?;
                delimited(letters, end)?;
                // `e` runs what was put together, `w` writes it.
                while command == 's' && letters.next_if(|flag| "gpiIMm0123456789".contains(*flag)).is_some() {
                }
            }
            '#' => while letters.next_if(|letter| *letter != '\n').is_some() {},
            // `a`, `b`, `c`, `e`, `i`, `r`, `t`, `w`, `:` and what comes later.
            _ => return None,
        }
        // A command ends here, or it is none of those that are known.
        while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some() {}
        if !matches!((command, letters.peek()), (_, None | Some(';' | '\n' | '}' | '#')) | ('{', _)) {
            return None;
        }
    }
}

/// Addresses: lines, `$`, `/…/`, and from one to another.
fn address(letters: &mut Letters<'_>) -> Option<()> {
    loop {
        match letters.peek().copied() {
            Some(letter) if letter.is_ascii_digit() || "$,+~! \t".contains(letter) => drop(letters.next()),
            Some('/') => {
                letters.next();
                delimited(letters, '/')?;
                while letters.next_if(|flag| matches!(flag, 'I' | 'M')).is_some() {}
            }
            _ => return Some(()),
        }
    }
}

/// What stands before the next delimiter. Sets of letters, in which a delimiter is a letter to some, are not read.
fn delimited(letters: &mut Letters<'_>, end: char) -> Option<()> {
    let mut is_set = false;
    loop {
        match letters.next()? {
            letter if letter == end && is_set => return None,
            letter if letter == end => return Some(()),
            '\\' if is_set => return None,
            '\\' => drop(letters.next()?),
            // `[[:space:]]`: a class does not end the set.
            '[' if is_set => {
                letters.next_if_eq(&':')?;
                while letters.next_if(char::is_ascii_alphabetic).is_some() {}
                letters.next_if_eq(&':')?;
                letters.next_if_eq(&']')?;
            }
            '[' => {
                is_set = true;
                letters.next_if_eq(&'^');
                // The first one is a letter of the set.
                if letters.peek() == Some(&']') {
                    return None;
                }
            }
            ']' => is_set = false,
            '\n' => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_only_print() {
        let tame = [
            "10,20p",
            "$p",
            "/a/p",
            "/a/,/b/p",
            "1~2p",
            "s/a/b/",
            "s/a/b/gp;s|x|y|",
            "1d;$d",
            "/x/!d",
            "/a/{p;q}",
            "s/[a-z]*/x/",
            "s/[[:space:]]*$//",
            "s/a\\/b/c/",
            "y/ab/cd/",
            "1q",
            "q5",
            "p # note",
            "s/a/b/ ; p",
            "/a\\/w x/p",
        ];
        for script in tame {
            assert!(only_prints(script), "{script}");
        }
        let more = [
            "e",
            "1e rm x",
            "w out",
            "1w out",
            "/x/w out",
            "W out",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/ge",
            "s,a,b,e",
            "p;e",
            "p\nw out",
            "{e\n}",
            "$!e id",
            "\\xaxe",
            "s/[/]/b/e",
            "a\\\nx\ne id",
            "r /etc/passwd",
            "1,2 w x",
            "s/a/b/;w x",
            "p}e id",
            "s/a/b",
            "sxaxbxe",
            "b;e",
            ":a;e",
            "s/a/[/e",
            "s/[]/]p/w x/",
            "s/[[:a:]/]/w x/",
            "s/[^]/]p/w x/",
            "I",
            "1!w x",
            "0,/a/Iw x",
            "{p;w x\n}",
            "}w x",
            "y/a/b/w x",
        ];
        for script in more {
            assert!(!only_prints(script), "{script}");
        }
    }
}
