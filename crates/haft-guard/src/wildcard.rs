//! Names with wildcards.

/// Whether a text matches a pattern in which `*` stands for any text and `?` for any one character. Everything else
/// stands for itself. Takes time in proportion to both lengths at most, never more.
///
/// ```
/// use haft_guard::wildcard;
/// assert!(wildcard("did:agent:*", "did:agent:7"));
/// assert!(!wildcard("did:agent:*", "did:user:7"));
/// assert!(wildcard("*", ""));
/// ```
pub fn wildcard(pattern: &str, text: &str) -> bool {
    matches(pattern, text, |a, b| a == b)
}

/// Whether a pattern matches, with ASCII letters in either case.
pub(crate) fn wildcard_any_case(pattern: &str, text: &str) -> bool {
    matches(pattern, text, |a, b| a.eq_ignore_ascii_case(&b))
}

/// On every mismatch only the last star moves on, so there is no exponential case.
fn matches(pattern: &str, text: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern_rest, mut text_rest) = (pattern.chars(), text.chars());
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let after_text = text_rest.clone();
        match (pattern_rest.next(), text_rest.next()) {
            (Some('*'), _) => {
                text_rest = after_text;
                retry = Some((pattern_rest.clone(), text_rest.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if same(wanted, found) => {}
            (None, None) => return true,
            _ => {
                let Some((star, mut from)) = retry.take() else { return false };
                if from.next().is_none() {
                    return false;
                }
                pattern_rest = star.clone();
                text_rest = from.clone();
                retry = Some((star, from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "b", false),
            ("*", "anything", true),
            ("a*c", "abbbc", true),
            ("a*c", "ac", true),
            ("a*c", "acd", false),
            ("*.rs", "main.rs", true),
            ("*.rs", "main.rsx", false),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("*a*b*c*", "xxcxxbxxaxx", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("**", "x", true),
            ("ä*", "äö", true),
            ("?", "ö", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(wildcard(pattern, text), expected, "{pattern} {text}");
        }
        assert!(wildcard_any_case("GIT*", "github"));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = "*a".repeat(60) + "b";
        assert!(!wildcard(&pattern, &"a".repeat(5_000)));
    }
}
