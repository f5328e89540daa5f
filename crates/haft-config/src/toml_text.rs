//! Small questions about TOML text and its values.

use toml::de::{DeInteger, DeValue};

use super::place::{Place, Position};
use super::problem::EntryFault;
use super::visible;

/// The place with the line and column of an offset, where it is a file.
pub(super) fn at(place: &Place, text: &str, offset: usize) -> Place {
    let Place::File { path, owner, .. } = place else {
        return place.clone();
    };
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let position = Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    };
    Place::File { path: path.clone(), owner: *owner, position: Some(position) }
}

pub(super) fn joined(path: &str, name: &str) -> String {
    let name = if is_bare(name) { name.to_owned() } else { visible::quoted(name) };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

pub(super) fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

pub(super) fn entry_fault(item: &str) -> Option<EntryFault> {
    if item.trim().is_empty() {
        Some(EntryFault::Empty)
    } else if item.chars().any(char::is_control) {
        Some(EntryFault::Control)
    } else if item.trim() != item {
        Some(EntryFault::Padded)
    } else {
        None
    }
}

pub(super) fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

pub(super) fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
