//! "Did you mean": the nearest known word to one that was mistyped.

/// The candidate that `given` is most likely a mistyping of.
pub(crate) fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Forgetting the dashes of an option is no misspelling.
    let given = given.trim_start_matches('-');
    // One slip in three letters still looks like the word; more is another word.
    let tolerated = (given.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(given, candidate.trim_start_matches('-')), candidate))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("run", "run", 0),
            ("", "run", 3),
            ("tset", "test", 1),
            ("tes", "test", 1),
            ("fizz", "fuzz", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn suggests_what_is_near_and_nothing_else() {
        let commands = ["run", "test", "bench", "fuzz"];
        for (given, expected) in [
            ("tset", Some("test")),
            ("tests", Some("test")),
            ("rnu", Some("run")),
            ("benhc", Some("bench")),
            ("fuz", Some("fuzz")),
            ("deploy", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(given, commands), expected, "{given}");
        }
    }
}
