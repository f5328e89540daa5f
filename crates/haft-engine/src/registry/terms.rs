//! What a tool is about, as words with weights; and how well that fits a question.
//!
//! Ranking is BM25 over name, title, description and parameters. There is no index: each tool carries its words in
//! order, and a search looks them up in all of them. For ten thousand tools that takes a millisecond, and nothing has
//! to be kept in step when tools come and go.

use haft_core::{Parameters, ToolDefinition};
use serde_json::Value;

/// The words of one tool, each with how much it counts. In order of the words' hashes.
pub(crate) struct Terms {
    words: Box<[(u32, f32)]>,
    length: f32,
}

const NAME: f32 = 4.0;
const TITLE: f32 = 3.0;
const DESCRIPTION: f32 = 1.0;
const PARAMETER: f32 = 0.7;
/// What the beginning of a word counts, against the word itself: "valid" finds "validate".
const BEGINNING: f32 = 0.3;
/// Letters of such a beginning.
const LETTERS: usize = 5;

impl Terms {
    pub(crate) fn of(definition: &ToolDefinition) -> Self {
        let mut weighted = Vec::new();
        let mut add = |text: &str, weight: f32| {
            for word in words(text) {
                if let Some(beginning) = beginning(&word) {
                    weighted.push((hash(beginning) ^ 1, weight * BEGINNING));
                }
                weighted.push((hash(&word), weight));
            }
        };
        add(&definition.name, NAME);
        definition.aliases.iter().for_each(|alias| add(alias, NAME));
        add(definition.title.as_deref().unwrap_or_default(), TITLE);
        add(&definition.description, DESCRIPTION);
        match &definition.parameters {
            Parameters::List(list) => list.iter().for_each(|parameter| {
                add(&parameter.name, PARAMETER);
                add(&parameter.description, PARAMETER);
            }),
            Parameters::Schema(schema) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    add(name, PARAMETER);
                    add(property.get("description").and_then(Value::as_str).unwrap_or_default(), PARAMETER);
                }
            }
        }
        weighted.sort_by_key(|(word, _)| *word);
        let length = weighted.iter().map(|(_, weight)| weight).sum();
        let mut words: Vec<(u32, f32)> = Vec::with_capacity(weighted.len());
        for (word, weight) in weighted {
            match words.last_mut() {
                Some((last, sum)) if *last == word => *sum += weight,
                _ => words.push((word, weight)),
            }
        }
        Terms { words: words.into_boxed_slice(), length }
    }

    fn weight(&self, word: u32) -> f32 {
        self.words.binary_search_by_key(&word, |(word, _)| *word).map_or(0.0, |place| self.words[place].1)
    }
}

/// The best of `all`, with their scores, best first. Those that share no word with the question are left out.
pub(crate) fn rank<'a, T>(
    question: &str,
    all: &'a [T],
    terms: impl Fn(&T) -> &Terms,
    most: usize,
) -> Vec<(f32, &'a T)> {
    // How fast a word's further mentions count less, and how much a long description counts against a tool.
    const K: f32 = 1.2;
    const B: f32 = 0.5;
    let mut wanted: Vec<u32> = Vec::new();
    for word in words(question).take(32) {
        wanted.push(hash(&word));
        wanted.extend(beginning(&word).map(|beginning| hash(beginning) ^ 1));
        // A whole question word may be the beginning of a longer one.
        if word.chars().count() == LETTERS {
            wanted.push(hash(&word) ^ 1);
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() || all.is_empty() {
        return Vec::new();
    }
    let mean = all.iter().map(|one| terms(one).length).sum::<f32>() / all.len() as f32;
    let mut scores = vec![0.0_f32; all.len()];
    for word in wanted {
        let found: Vec<(usize, f32)> = all
            .iter()
            .enumerate()
            .map(|(place, one)| (place, terms(one).weight(word)))
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        let (n, holders) = (all.len() as f32, found.len() as f32);
        let rarity = ((n - holders + 0.5) / (holders + 0.5) + 1.0).ln();
        for (place, weight) in found {
            let length = terms(&all[place]).length / mean.max(f32::MIN_POSITIVE);
            scores[place] += rarity * weight * (K + 1.0) / (weight + K * (1.0 - B + B * length));
        }
    }
    let mut best: Vec<(f32, &T)> = scores.into_iter().zip(all).filter(|(score, _)| *score > 0.0).collect();
    // `all` is in the order of names, and the sort keeps it among equals.
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    best.truncate(most);
    best
}

/// The words of a text: letters and digits, lower case, `camelCase` and `snake_case` taken apart, plurals made
/// singular.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_alphanumeric)?;
        rest = &rest[start..];
        let mut last_lower = false;
        let end = rest
            .char_indices()
            .find(|(place, c)| {
                let cut = !c.is_alphanumeric() || (*place > 0 && last_lower && c.is_uppercase());
                last_lower = c.is_lowercase() || c.is_numeric();
                cut
            })
            .map_or(rest.len(), |(place, _)| place);
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(singular(word.chars().take(40).flat_map(char::to_lowercase).collect()))
    })
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.is_ascii() && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

fn beginning(word: &str) -> Option<&str> {
    word.char_indices().nth(LETTERS).map(|(end, _)| &word[..end])
}

/// FNV-1a, in 31 bits; the lowest is free to tell beginnings from words.
fn hash(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked<'a>(question: &str, tools: &'a [(ToolDefinition, Terms)]) -> Vec<&'a str> {
        rank(question, tools, |(_, terms)| terms, 3).iter().map(|(_, (tool, _))| tool.name.as_str()).collect()
    }

    #[test]
    fn words_are_taken_apart() {
        let all: Vec<String> = words("readFile read_files HTTPServer2 – Größe").collect();
        assert_eq!(all, ["read", "file", "read", "file", "httpserver2", "größe"]);
    }

    #[test]
    fn the_tool_that_was_meant_comes_first() {
        let tools: Vec<(ToolDefinition, Terms)> = [
            ("read_file", "Read the contents of a file"),
            ("write_file", "Write or append to a file"),
            ("web_fetch", "Fetch a page from the web"),
            ("send_message", "Send a message to another agent"),
            ("validate_content", "Validate JSON against a schema"),
        ]
        .map(|(name, description)| ToolDefinition::new(name, description))
        .map(|tool| {
            let terms = Terms::of(&tool);
            (tool, terms)
        })
        .into();
        for (question, first) in [
            ("read a file", "read_file"),
            ("fetch web page", "web_fetch"),
            ("messages", "send_message"),
            ("is this json valid?", "validate_content"),
            ("append", "write_file"),
            ("validation", "validate_content"),
        ] {
            assert_eq!(ranked(question, &tools).first(), Some(&first), "{question}");
        }
        assert!(ranked("weather in Paris", &tools).is_empty());
        assert!(ranked("", &tools).is_empty());
    }
}
