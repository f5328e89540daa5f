//! Which words of a command are options, which are values of those, and which are operands: `-` is an operand, and so
//! is everything behind `--`.

use super::word::Word;

/// The options of a program that are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// Letters that take nothing.
    pub(super) letters: &'static str,
    /// Letters with a value: the rest of the word, or the next word.
    pub(super) values: &'static str,
    /// Long options that take nothing.
    pub(super) longs: &'static [&'static str],
    /// Long options with a value, behind `=` or in the next word.
    pub(super) long_values: &'static [&'static str],
}

/// The operands of a command; `None` where an option is not known, or a word is known to the shell alone.
pub(super) fn operands<'a>(words: &'a [Word], known: &Known) -> Option<Vec<&'a str>> {
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let word = word.exact()?;
        if word == "--" {
            for word in words.by_ref() {
                operands.push(word.exact()?);
            }
        } else if !word.starts_with('-') || word == "-" {
            operands.push(word);
        } else if known.takes_next(word)? {
            words.next()?.exact()?;
        }
    }
    Some(operands)
}

impl Known {
    /// Whether the value of an option is the next word; `None` where the option is not known.
    fn takes_next(&self, option: &str) -> Option<bool> {
        if option.starts_with("--") {
            let (name, has_value) = option.split_once('=').map_or((option, false), |(name, _)| (name, true));
            return match () {
                () if self.long_values.contains(&name) => Some(!has_value),
                () if self.longs.contains(&name) && !has_value => Some(false),
                () => None,
            };
        }
        let letters = option.strip_prefix('-')?;
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.letters.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_told_from_options() {
        let known = Known { letters: "cd", values: "f", longs: &["--count"], long_values: &["--skip"] };
        let cases: [(&str, Option<&[&str]>); 12] = [
            ("a b", Some(&["a", "b"])),
            ("-c a", Some(&["a"])),
            ("-cd - b", Some(&["-", "b"])),
            ("-- -in out", Some(&["-in", "out"])),
            ("a -- --", Some(&["a", "--"])),
            ("-f 1 a", Some(&["a"])),
            ("-cf1 a", Some(&["a"])),
            ("--skip 1 a --count", Some(&["a"])),
            ("--skip=1 a", Some(&["a"])),
            ("-x a", None),
            ("--count=1 a", None),
            ("a -f", None),
        ];
        for (text, expected) in cases {
            let words: Vec<Word> = text.split(' ').map(|word| Word::Exact(word.to_owned())).collect();
            assert_eq!(operands(&words, &known).as_deref(), expected, "{text}");
        }
        assert_eq!(operands(&[Word::Any], &known), None);
    }
}
