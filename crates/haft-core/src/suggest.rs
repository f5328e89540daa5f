//! "Did you mean …?"

/// The candidate that is nearest to what was typed, if any is near enough to be meant.
///
/// Distance counts single-letter edits, with a swap of neighbours as one; letters' case does not matter.
///
/// ```
/// use haft_core::suggest::nearest;
/// assert_eq!(nearest("validate_contnet", ["get_metrics", "validate_content"]), Some("validate_content"));
/// assert_eq!(nearest("weather", ["get_metrics", "validate_content"]), None);
/// ```
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short; cutting what is long keeps hostile input from costing anything.
    let typed: Vec<char> = typed.chars().take(64).flat_map(char::to_lowercase).collect();
    let limit = (typed.len() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            let letters: Vec<char> = candidate.chars().take(64).flat_map(char::to_lowercase).collect();
            (distance(&typed, &letters), candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits from `a` to `b`: insert, delete, replace, or swap two neighbours.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
