//! JSON values that fit: how long one is when it is written, and the same value with its long texts cut.

use crate::text;
use serde_json::Value;
use std::io;

/// No text is cut to less: what is left would say nothing.
const SHORTEST: usize = 128;

/// How many bytes a value has when it is written without spaces.
///
/// ```
/// assert_eq!(haft_core::json_fit::size(&serde_json::json!({"a": "b"})), 9);
/// ```
pub fn size(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // A value can always be written. Should it not be so, it fits nowhere.
        Err(_) => usize::MAX,
    }
}

/// The value with its longest texts cut, each with a note of what is missing, and after that its lists shortened, so
/// that it has at most `room` bytes. Kinds and names stay as they are, so that it still looks like what a schema
/// describes. `None` where even that is too long.
///
/// ```
/// use haft_core::json_fit::{fit, size};
/// let value = serde_json::json!({"exit": 0, "stdout": "x".repeat(5000)});
/// let short = fit(&value, 1000).unwrap();
/// assert!(size(&short) <= 1000 && short["exit"] == 0);
/// assert!(short["stdout"].as_str().unwrap().contains("output truncated"));
/// ```
pub fn fit(value: &Value, room: usize) -> Option<Value> {
    if size(value) <= room {
        return Some(value.clone());
    }
    // Nothing that is longer than the room fits: the rest works on less.
    let value = cut(value, room.max(SHORTEST), usize::MAX);
    most(SHORTEST, room, |texts| Some(cut(&value, texts, usize::MAX)).filter(|value| size(value) <= room))
        .or_else(|| {
            most(0, room, |items| Some(cut(&value, SHORTEST, items)).filter(|value| size(value) <= room))
        })
}

/// What the largest number gives that gives anything; a larger one never gives more.
fn most(least: usize, largest: usize, try_it: impl Fn(usize) -> Option<Value>) -> Option<Value> {
    let mut best = try_it(least)?;
    let (mut low, mut high) = (least, largest.max(least));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match try_it(middle) {
            Some(value) => (best, low) = (value, middle),
            None => high = middle - 1,
        }
    }
    Some(best)
}

/// Texts of at most so many bytes, lists of at most so many items.
fn cut(value: &Value, texts: usize, items: usize) -> Value {
    match value {
        Value::String(said) => Value::String(text::truncate(said, texts, None).text.into_owned()),
        Value::Array(list) => list.iter().take(items).map(|item| cut(item, texts, items)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), cut(value, texts, items))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut_at_its_longest() {
        let value = json!({"short": "kept", "one": "a".repeat(3000), "other": ["b".repeat(3000), 5, null]});
        assert_eq!(fit(&value, 100_000).unwrap(), value);
        for room in [400, 700, 2000, 5999] {
            let cut = fit(&value, room).unwrap();
            assert!(size(&cut) <= room, "{} in {room}", size(&cut));
            assert_eq!((&cut["short"], &cut["other"][1]), (&json!("kept"), &json!(5)));
            assert!(size(&cut) + 200 > room, "{} in {room}: more would fit", size(&cut));
        }
    }

    #[test]
    fn texts_of_quotes_and_controls_are_measured_as_they_are_written() {
        let value = json!({"a": "\"\u{1}\n".repeat(1000)});
        let cut = fit(&value, 1000).unwrap();
        assert!(size(&cut) <= 1000 && size(&cut) == cut.to_string().len());
    }

    #[test]
    fn lists_lose_their_ends_when_texts_are_short_already() {
        let value = json!({"items": (0..10_000).collect::<Vec<_>>()});
        let cut = fit(&value, 1000).unwrap();
        assert!(size(&cut) <= 1000);
        assert_eq!(cut["items"][3], 3);
    }

    #[test]
    fn names_alone_that_are_too_long_fit_nowhere() {
        let value: Value =
            (0..100).map(|n| (format!("name{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(fit(&value, 300), None);
    }
}
