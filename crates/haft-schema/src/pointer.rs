//! JSON pointers.

/// Appends one step to a JSON pointer.
///
/// ```
/// let mut pointer = String::from("/paths");
/// haft_schema::pointer::push_segment(&mut pointer, "a/b");
/// assert_eq!(pointer, "/paths/a~1b");
/// ```
pub fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// A pointer as the fragment of an address.
pub(crate) fn encoded(pointer: &str) -> String {
    let mut encoded = String::new();
    for byte in pointer.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'~' | b'-' | b'.' | b'_' | b'$' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
