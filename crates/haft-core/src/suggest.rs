//! "Did you mean …?"

/// How many characters of a name are looked at, and how many candidates: hostile input must cost nothing.
const LETTERS: usize = 64;
const CANDIDATES: usize = 1000;

/// The candidate that was probably meant, if any is near enough.
///
/// Distance counts single-letter edits, with a swap of neighbours as one. Case and punctuation do not matter.
///
/// ```
/// use haft_core::suggest::nearest;
/// assert_eq!(nearest("validate_contnet", ["get_metrics", "validate_content"]), Some("validate_content"));
/// assert_eq!(nearest("maxLength", ["max_length"]), Some("max_length"));
/// assert_eq!(nearest("weather", ["get_metrics", "validate_content"]), None);
/// ```
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(LETTERS).collect()
    };
    let typed = plain(typed);
    let allowed = (typed.len() / 3).min(3);
    candidates
        .into_iter()
        .take(CANDIDATES)
        .map(|candidate| (plain(candidate), candidate))
        .filter(|(plain, _)| plain.len().abs_diff(typed.len()) <= allowed)
        .map(|(plain, candidate)| (distance(&typed, &plain), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits from one to the other: insert, delete, replace, or swap two neighbours.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut best = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}
