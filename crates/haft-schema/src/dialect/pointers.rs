//! Where a place of an older schema is after the conversion: keywords that hold schemas have new names.

use super::Draft;
use crate::keywords::{Holds, holds};
use crate::place::decode;
use crate::pointer::{encoded, push_segment};

/// What a step of a pointer is in.
enum Inside {
    Schema,
    /// A map or a list of schemas.
    Several,
    /// What is no schema.
    Other,
}

/// A pointer after the conversion, and whether it leads to a schema.
pub(super) struct Moved {
    pub(super) pointer: String,
    pub(super) to_schema: bool,
}

/// Where the pointer `source` leads after the conversion.
pub(super) fn moved(source: &str, draft: Draft) -> Moved {
    let mut pointer = String::new();
    let mut inside = Inside::Schema;
    let mut steps =
        source.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).peekable();
    while let Some(step) = steps.next() {
        let numbered = |next: &String| !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit());
        let (name, next) = match inside {
            Inside::Other => (step.as_str(), Inside::Other),
            Inside::Several => (step.as_str(), Inside::Schema),
            Inside::Schema => match step.as_str() {
                "definitions" => ("$defs", Inside::Several),
                "items" if steps.peek().is_some_and(numbered) => ("prefixItems", Inside::Several),
                "items" | "additionalItems" => ("items", Inside::Schema),
                "dependencies" if draft <= Draft::Seven => ("dependentSchemas", Inside::Several),
                keyword => match holds(keyword) {
                    Some(Holds::One) => (keyword, Inside::Schema),
                    Some(Holds::Several) => (keyword, Inside::Several),
                    None => (keyword, Inside::Other),
                },
            },
        };
        push_segment(&mut pointer, name);
        inside = next;
    }
    Moved { pointer, to_schema: matches!(inside, Inside::Schema) }
}

/// A reference, with its pointer as a plain text: the address, and the fragment.
pub(super) fn split(reference: &str) -> (&str, String) {
    match reference.split_once('#') {
        Some((address, fragment)) => (address, decode(fragment)),
        None => (reference, String::new()),
    }
}

/// A reference to `pointer` in the document at `address`.
pub(super) fn join(address: &str, pointer: &str) -> String {
    format!("{address}#{}", encoded(pointer))
}
