//! Secrets made from the expressions of the collection of rules, with a text around each.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use fastrand::Rng;
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Collection {
    pub(crate) rules: Vec<Fact>,
}

#[derive(Deserialize)]
pub(crate) struct Fact {
    pub(crate) id: String,
    pub(crate) regex: Option<String>,
    #[serde(default)]
    entropy: f64,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default, rename = "secretGroup")]
    secret_group: usize,
}

/// A text that an expression matches, by chance.
fn sample(hir: &Hir, rng: &mut Rng, out: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.extend_from_slice(&literal.0),
        HirKind::Class(Class::Bytes(class)) => {
            // Printable where there is a choice: that is what secrets are made of.
            let all: Vec<u8> = class.ranges().iter().flat_map(|range| range.start()..=range.end()).collect();
            let plain: Vec<u8> = all.iter().copied().filter(u8::is_ascii_graphic).collect();
            let from = if plain.is_empty() { &all } else { &plain };
            // Any character at all is often a dot that somebody did not escape.
            let is_dot = all.len() > 200 && rng.bool();
            out.push(if is_dot { b'.' } else { from[rng.usize(..from.len())] });
        }
        HirKind::Class(Class::Unicode(class)) => {
            let all: Vec<char> =
                class.ranges().iter().flat_map(|range| range.start()..=range.end()).take(4000).collect();
            let plain: Vec<char> = all.iter().copied().filter(char::is_ascii_graphic).collect();
            let from = if plain.is_empty() { &all } else { &plain };
            let letter = from[rng.usize(..from.len())];
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min + 6).min(repetition.min + 60);
            for _ in 0..rng.u32(repetition.min..=most) {
                sample(&repetition.sub, rng, out);
            }
        }
        HirKind::Capture(capture) => sample(&capture.sub, rng, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| sample(part, rng, out)),
        HirKind::Alternation(parts) => sample(&parts[rng.usize(..parts.len())], rng, out),
    }
}

pub(crate) fn parse(regex: &str) -> Hir {
    regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(regex).unwrap()
}

pub(crate) fn compile(regex: &str) -> Regex {
    RegexBuilder::new(regex).unicode(false).build().unwrap()
}

fn entropy(bytes: &[u8]) -> f64 {
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count() as f64;
    (0..=255)
        .map(count)
        .filter(|count| *count > 0.0)
        .map(|count| count / bytes.len() as f64)
        .map(|p| -p * p.log2())
        .sum()
}

/// The secret in a text, as the fact has it, and the text around it.
pub(crate) fn seeded(fact: &Fact, hir: &Hir, regex: &Regex, rng: &mut Rng) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut made = Vec::new();
    sample(hir, rng, &mut made);
    let lower = made.to_ascii_lowercase();
    let has_keyword = fact.keywords.iter().any(|word| contains(&lower, word.as_bytes()));
    if !has_keyword && !NAMED_ELSEWHERE.contains(&&*fact.id) {
        return None;
    }
    // What is a secret only near a name gets that name.
    let name = if has_keyword { String::new() } else { format!("{} is at work\n", fact.keywords.first()?) };
    let text = [b"It said: ", name.as_bytes(), &made, b"\nand then no more.\n"].concat();
    let found = regex.captures(&text)?;
    let group = match fact.secret_group {
        0 => {
            let groups = (1..found.len()).filter_map(|group| found.get(group));
            groups.into_iter().find(|group| group.len() >= 8).or_else(|| found.get(0))?
        }
        group => found.get(group)?,
    };
    let secret = group.as_bytes();
    let is_secret = entropy(secret) > fact.entropy && secret.len() >= 8;
    is_secret.then(|| (text.clone(), secret.to_vec()))
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Rules whose keyword is not a part of what they match.
const NAMED_ELSEWHERE: &[&str] =
    &["airtable-personnal-access-token", "facebook-access-token", "sidekiq-sensitive-url"];

/// Rules of the collection without a shape here, and why.
pub(crate) const NOT_COVERED: &[(&str, &str)] = &[
    ("pkcs12-file", "it is about the name of a file"),
    ("kubernetes-secret-yaml", "a value of base64 is a secret only by what stands lines before or after it"),
    ("hashicorp-tf-password", "its values are those of the name `password`, which has a shape of its own"),
];

/// Rules whose shapes need a frame, so that a text made from the expression alone may be outside of it.
pub(crate) const FRAMED: &[&str] = &["curl-auth-user", "curl-auth-header", "generic-api-key"];

/// Chance for one rule, the same in every run and whatever other rules there are: editions of the collection differ.
pub(crate) fn chance_for(id: &str) -> Rng {
    // FNV-1a.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Rng::with_seed(id.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// The collection, where the test data is.
pub(crate) fn collection() -> Option<Collection> {
    let folder = haft_testkit::shared_data("gitleaks")?;
    let text = std::fs::read_to_string(folder.join("gitleaks.toml")).unwrap();
    Some(toml::from_str(&text).unwrap())
}
