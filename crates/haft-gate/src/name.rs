//! Host names, and everything that only looks like one.

use std::fmt;

/// A host name: ASCII, lower case, without a dot at its end. Never an address, in no spelling.
///
/// ```
/// use haft_gate::HostName;
/// assert_eq!(HostName::parse("Example.COM.").unwrap().as_str(), "example.com");
/// assert!(HostName::parse("0x7f.1").is_err(), "an address in disguise");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is not a host name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHostName {
    /// Nothing is there.
    #[error("it is empty")]
    Empty,
    /// Longer than the 253 characters of DNS.
    #[error("it is longer than 253 characters")]
    TooLong,
    /// An address, however it is spelt.
    #[error("it is an address, and only names are allowed")]
    Address,
    /// A character that names do not have.
    #[error("names do not have the character {0:?} (write international names in their `xn--` form)")]
    Character(char),
    /// A part between dots that is empty, too long, or begins or ends with a hyphen.
    #[error("a part between its dots is empty, longer than 63 characters, or begins or ends with a hyphen")]
    Label,
}

impl HostName {
    /// Reads a name as it stands in a request, a TLS greeting or a list.
    ///
    /// Whatever some resolver would read as an address is refused here: a name whose last part is a number (decimal,
    /// octal or hexadecimal) is one of the spellings that `inet_aton` takes, and no top-level domain is a number.
    pub fn parse(text: &str) -> Result<Self, BadHostName> {
        // `example.com.` is the same name, said to be complete; a second dot is an empty label.
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(if text.is_empty() { BadHostName::Empty } else { BadHostName::Label });
        }
        if name.len() > 253 {
            return Err(BadHostName::TooLong);
        }
        if name.contains([':', '[', ']']) {
            return Err(BadHostName::Address);
        }
        let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
        if let Some(char) = name.chars().find(|char| !allowed(*char)) {
            return Err(BadHostName::Character(char));
        }
        let well_formed = |label: &str| {
            !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
        };
        if !name.split('.').all(well_formed) {
            return Err(BadHostName::Label);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(BadHostName::Address);
        }
        Ok(HostName(name.to_ascii_lowercase()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a name below `parent`; no name is below itself.
    ///
    /// ```
    /// use haft_gate::HostName;
    /// let name = |text| HostName::parse(text).unwrap();
    /// assert!(name("a.example.com").is_below(&name("example.com")));
    /// assert!(!name("badexample.com").is_below(&name("example.com")));
    /// ```
    pub fn is_below(&self, parent: &HostName) -> bool {
        self.0.strip_suffix(&parent.0).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether it names this machine by definition (RFC 6761), whatever a resolver says.
    pub(crate) fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `127`, `0177`, `0x7f` and, as some parsers take it for zero, `0x`.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Splits `host:port` at its last colon. The port is decimal digits alone; the host is not judged.
pub(crate) fn split_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let digits = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = if digits { port.parse().ok()? } else { return None };
    (port != 0).then_some((host, port))
}
