//! The parser, and small questions about what it gives.

use super::{constant, line::Unread, screen};
use brush_parser::{Parser, ParserOptions, SourceInfo, ast::Program};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the parser makes of a text, and whether `cat` runs in it on a document that stands there.
pub(super) fn parse(text: &str) -> Result<(Program, bool), Unread> {
    if let Some(why) = screen::problem(text) {
        return Err(why);
    }
    let plain = constant::without_documents(text);
    let text = plain.as_deref().unwrap_or(text);
    if screen::has_odd_document(text) {
        return Err(Unread::Syntax);
    }
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    let source = SourceInfo::default();
    // Its nesting is bounded above; should it give up on something else, that is no reason to end the process.
    let parsed =
        catch_unwind(AssertUnwindSafe(|| Parser::new(text.as_bytes(), &options, &source).parse_program()));
    match parsed {
        Ok(Ok(program)) => Ok((program, plain.is_some())),
        Ok(Err(_)) | Err(_) => Err(Unread::Syntax),
    }
}

pub(super) fn is_descriptor(raw: &str) -> bool {
    let digits = raw.strip_suffix('-').unwrap_or(raw);
    !raw.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_sink(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr")
}

/// The lines in `$(…)` and between backquotes, as well as they can be seen. They only make a decision stricter.
pub(super) fn substituted(raw: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = raw[from..].find("$(").map(|at| from + at + 2) {
        let mut level = 1_usize;
        let end = raw[start..].char_indices().find_map(|(at, letter)| {
            match letter {
                '(' => level += 1,
                ')' => level -= 1,
                _ => {}
            }
            (level == 0).then_some(start + at)
        });
        let end = end.unwrap_or(raw.len());
        found.push(&raw[start..end]);
        from = end;
    }
    let mut between = raw.split('`').skip(1);
    while let Some(line) = between.next() {
        found.push(line);
        between.next();
    }
    found
}
