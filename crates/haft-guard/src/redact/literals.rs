//! Finding literals: one pass that looks at three bytes at a time.
//!
//! An automaton over some three hundred literals does not fit the nearest cache, and each of its steps waits for the
//! one before: tried on a busy machine, it was slower than this. Here every place is looked up on its own, in a table
//! of eight kilobytes, and only the few that are in it are compared.

use foldhash::HashMap;

/// Literals in lower case, found in either case, at every place.
pub(super) struct Literals {
    /// One bit for each key that some literal begins with.
    begins: Box<[u64; 1024]>,
    by_key: HashMap<u16, Vec<usize>>,
    texts: Vec<&'static str>,
    /// Literals of a single byte.
    single: Vec<(u8, usize)>,
}

/// A key of three bytes, in which upper and lower case are one.
fn key(a: u8, b: u8, c: u8) -> u16 {
    let fold = |byte: u8| u16::from(byte | 0x20);
    (fold(a) << 9) ^ (fold(b) << 4) ^ fold(c).rotate_left(13) ^ fold(c)
}

impl Literals {
    pub(super) fn new(texts: Vec<&'static str>) -> Literals {
        let mut begins = Box::new([0_u64; 1024]);
        let mut by_key: HashMap<u16, Vec<usize>> = HashMap::default();
        let mut single = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let mut file = |key: u16| {
                begins[usize::from(key >> 6)] |= 1 << (key & 63);
                let filed = by_key.entry(key).or_default();
                if filed.last() != Some(&index) {
                    filed.push(index);
                }
            };
            match *text.as_bytes() {
                [] => {}
                [only] => single.push((only, index)),
                [a, b] => (0..=255).for_each(|c| file(key(a, b, c))),
                [a, b, c, ..] => file(key(a, b, c)),
            }
        }
        Literals { begins, by_key, texts, single }
    }

    /// Tells every literal in a text, as its index, where it begins and where it ends. In no order. One of two bytes at
    /// the very end is not told: nothing can follow it.
    pub(super) fn find(&self, bytes: &[u8], mut found: impl FnMut(usize, usize, usize)) {
        for (place, window) in bytes.windows(3).enumerate() {
            let key = key(window[0], window[1], window[2]);
            if self.begins[usize::from(key >> 6)] >> (key & 63) & 1 == 1 {
                self.at(bytes, place, key, &mut found);
            }
        }
        for &(byte, index) in &self.single {
            memchr::memchr_iter(byte, bytes).for_each(|place| found(index, place, place + 1));
        }
    }

    #[inline(never)]
    fn at(&self, bytes: &[u8], place: usize, key: u16, found: &mut impl FnMut(usize, usize, usize)) {
        for &index in self.by_key.get(&key).into_iter().flatten() {
            let text = self.texts[index].as_bytes();
            let end = place + text.len();
            if bytes.get(place..end).is_some_and(|here| here.eq_ignore_ascii_case(text)) {
                found(index, place, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(3), ..ProptestConfig::default() })]

        #[test]
        fn everything_is_found(text in "[ABab|%_.]{0,40}") {
            let texts = vec!["ab", "abb", "b_a", "|", "a.b%", "aab", "bb"];
            let mut found = Vec::new();
            Literals::new(texts.clone()).find(text.as_bytes(), |index, start, end| found.push((start, end, index)));
            found.sort_unstable();
            let lower = text.to_ascii_lowercase();
            let mut expected = Vec::new();
            for (index, literal) in texts.iter().enumerate() {
                let places = (0..lower.len()).filter(|place| lower[*place..].starts_with(literal));
                let end_of_text = |end: usize| literal.len() == 2 && end == lower.len();
                expected.extend(places.map(|place| (place, place + literal.len(), index)).filter(|hit| !end_of_text(hit.1)));
            }
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
