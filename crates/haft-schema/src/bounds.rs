//! What a schema may cost, and a check with it.

use serde_json::{Map, Value};

use crate::trouble::BadSchema;

/// How deep a schema or a value may be.
pub(crate) const MAX_DEPTH: usize = 128;
/// How many checks one value may take at worst.
pub(crate) const MAX_STEPS: u64 = 1_000_000;
/// How many checks all values together may take at worst.
pub(crate) const MAX_ALL_STEPS: u64 = 50_000_000;
/// How often a check may look at a value: so often in any case, so often more for each value, and never more than.
pub(crate) const LOOKS: u64 = 2_000_000;
pub(crate) const LOOKS_PER_VALUE: u64 = 500;
pub(crate) const MAX_LOOKS: u64 = 30_000_000;
/// How many problems are put into words; more are counted.
pub(crate) const MAX_PROBLEMS: usize = 1000;
/// Stack that the library takes for one schema in a chain, measured without optimisation and doubled.
pub(crate) const STACK_PER_SCHEMA: usize = 5 << 10;
/// Stack that it takes for one level of the schema's own JSON while compiling, the same.
pub(crate) const STACK_PER_LEVEL: usize = 12 << 10;
/// Stack that it takes in any case.
const STACK_BASE: usize = 512 << 10;
/// Stack that a caller is taken to have left. Work that may take more gets a thread with a stack of its own.
const STACK_AT_HAND: usize = 768 << 10;
/// How many schemas may wait for each other, over all levels of a value. Besides the stack it bounds errors: inside
/// nested unions each of them holds the whole way to it.
pub(crate) const MAX_CHAIN: usize = 4000;
/// Steps back that a pattern with look-around or back-references may take on one string.
pub(crate) const MAX_BACKTRACKS: usize = 10_000;
/// Bytes that a compiled pattern may take, and all of them together.
pub(crate) const MAX_PATTERN_BYTES: usize = 10 << 20;
pub(crate) const MAX_ALL_PATTERN_BYTES: usize = 32 << 20;

/// How many levels a value has, and how many values are in it.
pub(crate) fn depth_and_size(value: &Value) -> (usize, u64) {
    let (mut deepest, mut size) = (0, 0);
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        size += 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, depth + 1))),
            _ => continue,
        }
        deepest = deepest.max(depth);
    }
    (deepest, size)
}

/// How many patterns are in a schema.
pub(crate) fn count_patterns(schema: &Value) -> usize {
    let mut patterns = 0;
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => {
                patterns += usize::from(object.get("pattern").is_some_and(Value::is_string));
                patterns += object.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
                open.extend(object.values());
            }
            _ => {}
        }
    }
    patterns
}

/// Runs `work`, which takes `stack` bytes of stack on top of the usual.
pub(crate) fn with_stack<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> Result<T, BadSchema> {
    let stack = STACK_BASE + stack;
    if stack <= STACK_AT_HAND {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
        let thread =
            thread.map_err(|error| BadSchema::new("", format!("no thread to check it on: {error}")))?;
        match thread.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
