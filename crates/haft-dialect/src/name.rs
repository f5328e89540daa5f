//! Names: made to fit a dialect, and made to fit haft.

use crate::dialect::NameRule;

/// Words that haft keeps for itself.
const RESERVED: [&str; 4] = ["execute", "run", "call", "invoke"];
const LONGEST: usize = 64;
/// What a fingerprint takes: an underscore and eight digits.
const FINGERPRINT: usize = 9;

impl NameRule {
    pub(crate) fn allows(self, name: &str) -> bool {
        let bytes = name.as_bytes();
        name.len() <= self.longest
            && bytes.first().is_some_and(|first| (self.first)(*first))
            && bytes.iter().all(|byte| (self.rest)(*byte))
    }

    /// The name as it may stand in the dialect; `None` where it may stay.
    ///
    /// What changes ends with a fingerprint of the whole name, so that the result depends on the name alone and two
    /// names do not meet.
    pub(crate) fn fit(self, name: &str) -> Option<String> {
        if self.allows(name) {
            return None;
        }
        let mut fitting: String = name
            .chars()
            .take(self.longest)
            .map(|c| match u8::try_from(c) {
                Ok(byte) if c.is_ascii() && (self.rest)(byte) => c,
                _ => '_',
            })
            .collect();
        if !fitting.as_bytes().first().is_some_and(|first| (self.first)(*first)) {
            fitting.insert(0, '_');
        }
        fitting.truncate(self.longest.saturating_sub(FINGERPRINT));
        Some(fitting + &fingerprint(name))
    }
}

/// The name as haft has it: lower case letters, digits and underscores, with a letter first, at most 64.
///
/// `getUser`, `get-user` and `get.user` are `get_user`. Where letters are lost (other scripts, too many) a fingerprint
/// of the whole name follows.
pub(crate) fn snake_case(name: &str) -> String {
    let mut out = String::new();
    let mut lossy = false;
    let mut before: Option<char> = None;
    let mut letters = name.chars().peekable();
    while let Some(c) = letters.next() {
        if out.len() > LONGEST {
            lossy = true;
            break;
        }
        match c {
            'A'..='Z' => {
                let hump = match before {
                    Some(b) if b.is_ascii_lowercase() || b.is_ascii_digit() => true,
                    // The last capital of `HTTPServer` begins the next word.
                    Some(b) => b.is_ascii_uppercase() && letters.peek().is_some_and(char::is_ascii_lowercase),
                    None => false,
                };
                if hump && !out.ends_with('_') {
                    out.push('_');
                }
                out.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => out.push(c),
            _ => {
                lossy |= !matches!(c, '_' | '-' | '.' | '/' | ':' | ' ');
                if !out.is_empty() && !out.ends_with('_') {
                    out.push('_');
                }
            }
        }
        before = Some(c);
    }
    let trimmed = out.trim_end_matches('_');
    let mut out = match trimmed.as_bytes().first() {
        Some(first) if first.is_ascii_lowercase() => trimmed.to_owned(),
        Some(_) => format!("tool_{trimmed}"),
        None => "tool".to_owned(),
    };
    if lossy || out.len() > LONGEST {
        out.truncate(LONGEST - FINGERPRINT);
        out.truncate(out.trim_end_matches('_').len());
        out.push_str(&fingerprint(name));
    }
    if RESERVED.contains(&out.as_str()) {
        out.push_str("_tool");
    }
    out
}

/// Whether haft takes it as it is.
pub(crate) fn is_haft_name(name: &str) -> bool {
    name.len() <= LONGEST
        && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !RESERVED.contains(&name)
}

/// Whether haft takes it as another name for the tool with that name. Names are taken in any case.
pub(crate) fn is_alias(alias: &str, name: &str) -> bool {
    !alias.is_empty()
        && alias.len() <= LONGEST
        && alias.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !alias.eq_ignore_ascii_case(name)
        && !RESERVED.contains(&alias.to_ascii_lowercase().as_str())
}

/// An underscore and eight digits (FNV-1a). Tells names apart; keeps nobody out.
fn fingerprint(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("_{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    #[test]
    fn names_become_snake_case() {
        for (name, expected) in [
            ("getUser", "get_user"),
            ("get-user", "get_user"),
            ("get.user", "get_user"),
            ("admin.tools/list", "admin_tools_list"),
            ("HTTPServer", "http_server"),
            ("parseJSON", "parse_json"),
            ("DATA_EXPORT_v2", "data_export_v2"),
            ("2fa", "tool_2fa"),
            ("run", "run_tool"),
            ("Run", "run_tool"),
            ("__x__", "x"),
            ("_", "tool"),
            ("", "tool"),
            ("天気", "tool_35ab27fe"),
        ] {
            let made = snake_case(name);
            assert_eq!(made, expected, "{name}");
            assert!(is_haft_name(&made), "{name} gave {made}");
        }
        assert_ne!(snake_case("天気"), snake_case("気天"));
    }

    #[test]
    fn what_fits_stays() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.limits().name.fit("read_file"), None);
            assert_eq!(dialect.limits().name.fit(&"a".repeat(64)), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_made_to() {
        for dialect in Dialect::ALL {
            let rule = dialect.limits().name;
            for name in ["", "a b", "天気", "1st", "-", ".a", &"x".repeat(1_000_000), "a/b", "a\u{0}b"] {
                let fitting = rule.fit(name).unwrap_or_else(|| name.to_owned());
                assert!(rule.allows(&fitting), "{dialect}: {fitting}");
            }
            assert_ne!(rule.fit("a b"), rule.fit("a/b"), "{dialect}");
            assert_ne!(rule.fit(&"x".repeat(200)), rule.fit(&"x".repeat(201)), "{dialect}");
        }
    }
}
