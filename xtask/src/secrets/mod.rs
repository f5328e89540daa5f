//! `cargo xtask secrets`: writes the table of the shapes of secrets from the rules of gitleaks.
//!
//! Most of those rules are written by a program, in two forms: a token at a word boundary, and a value that is assigned
//! to a name. Both become a line of the table. The few others are lines in `by_hand.txt`; a rule that is neither is an
//! error, so that a newer collection cannot lose one quietly.

use std::fs;
use std::path::PathBuf;

use crate::error::Error;
use crate::workspace::Workspace;

/// Lines of the table for rules that cannot be turned into one.
const BY_HAND: &str = include_str!("by_hand.txt");

/// Rules that the table does not have: their shapes are in `framed.rs` and `scan.rs`, or there is none, and a test says
/// why.
const ELSEWHERE: &[&str] = &[
    "curl-auth-header",
    "curl-auth-user",
    "freemius-secret-key",
    "generic-api-key",
    "hashicorp-tf-password",
    "kubernetes-secret-yaml",
    "nuget-config-password",
    "pkcs12-file",
    "private-key",
    "sidekiq-sensitive-url",
];

/// What stands in place of secrets, where it is not the rule's own name.
const KINDS: &[(&str, &str)] = &[
    ("anthropic-", "anthropic-key"),
    ("aws-", "aws-key"),
    ("github-", "github-token"),
    ("gitlab-", "gitlab-token"),
    ("jwt", "jwt"),
    ("slack-webhook", "slack-webhook"),
    ("slack-", "slack-token"),
    ("openai-", "openai-key"),
    ("stripe-", "stripe-key"),
];

const HEAD: &str = "\
//! The shapes of secrets. Written by `cargo xtask secrets`; change `xtask/src/secrets`, not this file.
//!
//! What tokens look like is public knowledge that [gitleaks](https://github.com/gitleaks/gitleaks) collects (MIT licence,
//! copyright 2019 Zachary Rice): which letters a token begins with, which it consists of, how many. Those facts are
//! restated here in a form of our own. A shape is anchored: it is only tried where one of its beginnings was found, so a long
//! text costs one pass. Where a rule there looks for a name anywhere near, here the name must be assigned a value.

use super::shape::{End, Shape};

/// Tokens that are known by their own look, wherever they stand.
#[rustfmt::skip]
pub(super) const TOKENS: &[Shape] = &[
";

const MIDDLE: &str = "\
];

/// Values that are known by the name they are assigned to. Letters count in either case.
#[rustfmt::skip]
pub(super) const ASSIGNED: &[Shape] = &[
";

/// What the forms of the collection begin with, have in the middle, and end with.
const ASSIGNED_FORMS: [(&str, &str); 2] = [
    (
        r"(?i)[\w.-]{0,50}?(?:",
        r#")(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}("#,
    ),
    (
        r"[\w.-]{0,50}?(?i:[\w.-]{0,50}?(?:",
        r#")(?:[ \t\w.-]{0,20})[\s'"]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}("#,
    ),
];
const STRICT_END: &str = r#")(?:[\x60'"\s;]|\\[nr]|$)"#;

/// What is read of a rule.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    id: String,
    regex: String,
    keywords: Vec<String>,
    /// As it is written.
    entropy: String,
}

pub(crate) fn secrets(workspace: &Workspace, rules: Option<&str>) -> Result<(), Error> {
    let usual = workspace.root().join("../shared/data/gitleaks/gitleaks.toml");
    let path = rules.map_or(usual, PathBuf::from);
    let text = fs::read_to_string(&path).map_err(|source| Error::File { action: "read", path, source })?;
    let table = table(&read(&text)).map_err(Error::NoShape)?;
    let path = workspace.root().join("crates/haft-guard/src/redact/table.rs");
    let before = fs::read_to_string(&path).unwrap_or_default();
    if before == table {
        println!("{} is up to date", path.display());
        return Ok(());
    }
    fs::write(&path, table).map_err(|source| Error::File { action: "write", path, source })?;
    println!(
        "the table has changed; now run: cargo nextest run -p haft-guard --test redaction --test kinds --test false_alarms"
    );
    Ok(())
}

/// The rules in the collection's file, of which only the keys that matter are read.
fn read(text: &str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut in_keywords = false;
    // Only what stands directly in a rule: its lists of exceptions are tables of their own.
    let mut in_rule = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') && !in_keywords {
            in_rule = line == "[[rules]]";
            if in_rule {
                rules.push(Rule::default());
            }
            continue;
        }
        let Some(rule) = rules.last_mut().filter(|_| in_rule) else { continue };
        if in_keywords {
            rule.keywords.extend(quoted(line));
            in_keywords = !line.ends_with(']');
        } else if let Some(id) = line.strip_prefix("id = ") {
            rule.id = id.trim_matches('"').to_owned();
        } else if let Some(regex) = line.strip_prefix("regex = '''") {
            rule.regex = regex.trim_end_matches("'''").to_owned();
        } else if let Some(entropy) = line.strip_prefix("entropy = ") {
            rule.entropy = entropy.to_owned();
        } else if let Some(keywords) = line.strip_prefix("keywords = [") {
            rule.keywords.extend(quoted(keywords));
            in_keywords = !keywords.ends_with(']');
        }
    }
    rules
}

fn quoted(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split('"').skip(1).step_by(2).map(str::to_lowercase)
}

/// The whole file, or the rules that have no line.
fn table(rules: &[Rule]) -> Result<String, Vec<String>> {
    let (mut tokens, mut assigned, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut file = |line: String| match line.starts_with("Shape::token") {
        true => tokens.push(line),
        false => assigned.push(line),
    };
    for rule in rules.iter().filter(|rule| !ELSEWHERE.contains(&rule.id.as_str())) {
        let named = format!("(\"{}\"", rule.id);
        let by_hand: Vec<&str> = BY_HAND.lines().filter(|line| line.contains(&named)).collect();
        match (by_hand.is_empty(), shape(rule)) {
            (false, _) => by_hand.into_iter().for_each(|line| file(line.to_owned())),
            (true, Some(line)) => file(line),
            (true, None) => missing.push(rule.id.clone()),
        }
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    tokens.sort();
    assigned.sort();
    let lines =
        |lines: Vec<String>| lines.into_iter().map(|line| format!("    {line}\n")).collect::<String>();
    Ok(format!("{HEAD}{}{MIDDLE}{}];\n", lines(tokens), lines(assigned)))
}

/// The line for a rule, where it has one of the two forms.
fn shape(rule: &Rule) -> Option<String> {
    let id = &rule.id;
    let keywords = rule.keywords.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    for (begin, middle) in ASSIGNED_FORMS {
        let Some(rest) = rule.regex.strip_prefix(begin) else { continue };
        let mut parts = rest.split(middle);
        let (Some(_), Some(value), None) = (parts.next(), parts.next(), parts.next()) else { continue };
        let value = value.strip_suffix(STRICT_END)?;
        let entropy = match rule.entropy.as_str() {
            "" => String::new(),
            whole if !whole.contains('.') => format!(".entropy({whole}.0)"),
            other => format!(".entropy({other})"),
        };
        return (!value.contains('"'))
            .then(|| format!("Shape::assigned(\"{id}\", &[{keywords}], r\"{value}\"){entropy},"));
    }
    let mut value = rule.regex.as_str();
    let any_case = if value.starts_with(r"(?i)\b") { "(?i)" } else { "" };
    value = value.strip_prefix(any_case).unwrap_or(value);
    let boundary = match value.strip_prefix(r"\b") {
        Some(rest) => {
            value = rest;
            ".at_boundary()"
        }
        None => "",
    };
    let strict = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(STRICT_END));
    let (value, end) = match (strict, value.strip_suffix(r"\b")) {
        (Some(inner), _) => (inner, "Word"),
        (None, Some(inner)) => (inner, "Word"),
        (None, None) => (value, "Free"),
    };
    let value = format!("{any_case}{}", without_group(value));
    let kind = KINDS.iter().find(|(begin, _)| id.starts_with(begin)).map_or(id.as_str(), |(_, kind)| kind);
    (!value.is_empty() && !value.contains('"')).then(|| {
        format!("Shape::token(\"{id}\", \"{kind}\", &[{keywords}], r\"{value}\", End::{end}){boundary},")
    })
}

/// The expression without a group around the whole.
fn without_group(value: &str) -> &str {
    let Some(inner) = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return value };
    if inner.starts_with('?') {
        return value;
    }
    let (mut level, mut in_class, mut escaped) = (0_i32, false, false);
    for letter in inner.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if !in_class => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => level += 1,
            ')' if !in_class => level -= 1,
            _ => {}
        }
        if level < 0 {
            return value;
        }
    }
    inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_become_a_line() {
        let text = r#"
[[rules]]
id = "acme-pat"
description = "Acme"
regex = '''\b(acme_[a-z]{9})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 3
keywords = ["ACME_"]

[[rules]]
id = "beta-key"
regex = '''(?i)[\w.-]{0,50}?(?:beta)(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}([a-f]{32})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 2
keywords = [
    "beta",
    "betas",
]
[[rules.allowlists]]
regex = '''no'''

[[rules]]
id = "odd"
regex = '''"[a-z]"'''
"#;
        let rules = read(text);
        assert_eq!(rules.len(), 3);
        assert_eq!(
            shape(&rules[0]).unwrap(),
            r#"Shape::token("acme-pat", "acme-pat", &["acme_"], r"acme_[a-z]{9}", End::Word).at_boundary(),"#
        );
        assert_eq!(
            shape(&rules[1]).unwrap(),
            r#"Shape::assigned("beta-key", &["beta", "betas"], r"[a-f]{32}").entropy(2.0),"#
        );
        assert_eq!(table(&rules), Err(vec!["odd".to_owned()]), "a rule without a line is told");
    }

    fn rules_in(folder: Option<PathBuf>) -> Option<Vec<Rule>> {
        fs::read_to_string(folder?.join("gitleaks/gitleaks.toml")).ok().map(|text| read(&text))
    }

    /// The rules that the table was written from give all of it. Those that a package carries are older: they give a
    /// part of it, but for the rule that has changed since.
    #[test]
    fn the_table_is_what_the_rules_give() {
        const CHANGED: &str = "sonar-api-token";
        let workspace = Workspace::of_this_program();
        let written =
            fs::read_to_string(workspace.root().join("crates/haft-guard/src/redact/table.rs")).unwrap();
        let named =
            |variable| std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let beside = named("HAFT_TEST_DATA").unwrap_or_else(|| workspace.root().join("../shared/data"));
        if let Some(rules) = rules_in(Some(beside)) {
            assert!(written == table(&rules).unwrap(), "run `cargo xtask secrets`");
        }
        if let Some(mut rules) = rules_in(named(crate::data_kit::VARIABLE)) {
            rules.retain(|rule| rule.id != CHANGED);
            assert!(rules.len() > 200, "{}", rules.len());
            for line in table(&rules).unwrap().lines() {
                assert!(written.lines().any(|written| written == line), "the table has no line\n{line}");
            }
        }
    }
}
