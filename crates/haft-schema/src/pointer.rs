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
