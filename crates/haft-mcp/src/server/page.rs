//! Lists, page by page.
//!
//! A cursor is the last name of the page before. So nothing is remembered between two pages, and what comes or goes in
//! between neither repeats nor hides another entry.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::{ErrorData, model::PaginatedRequestParams};

/// The entries after the cursor, and the cursor of the next page. The list is in the order of its names.
pub(super) fn page<T>(
    entries: Vec<T>,
    name: impl Fn(&T) -> &str,
    request: Option<PaginatedRequestParams>,
    size: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let after = after(request)?;
    let first = after.map_or(0, |after| entries.partition_point(|entry| name(entry) <= after.as_str()));
    let (page, last) = cut(entries.into_iter().skip(first), &name, size);
    Ok((page, last.map(|last| encode(&last))))
}

/// The name that the page before ended with; `None` for the first page.
pub(super) fn after(request: Option<PaginatedRequestParams>) -> Result<Option<String>, ErrorData> {
    let Some(cursor) = request.and_then(|request| request.cursor) else { return Ok(None) };
    let wrong = || ErrorData::invalid_params("the cursor is not one of this list", None);
    decode(&cursor).map(Some).ok_or_else(wrong)
}

/// As many entries as a page has, and the last name where more follow.
pub(super) fn cut<T>(
    entries: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
    size: usize,
) -> (Vec<T>, Option<String>) {
    let mut page: Vec<T> = entries.take(size.saturating_add(1)).collect();
    let more = page.len() > size;
    page.truncate(size);
    let last = page.last().filter(|_| more).map(|last| name(last).to_owned());
    (page, last)
}

const MARK: &str = "after:";

pub(super) fn encode(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MARK}{name}"))
}

fn decode(cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(MARK).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cursor: Option<String>) -> Option<PaginatedRequestParams> {
        Some(PaginatedRequestParams::default().with_cursor(cursor))
    }

    #[test]
    fn every_entry_is_on_one_page() {
        let names: Vec<String> = (0..25).map(|number| format!("tool_{number:02}")).collect();
        for size in [1, 2, 7, 24, 25, 26, 1000] {
            let mut seen = Vec::new();
            let mut cursor = None;
            loop {
                let (entries, next) = page(names.clone(), |name| name, at(cursor), size).unwrap();
                assert!(entries.len() <= size);
                seen.extend(entries);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(seen, names, "{size}");
        }
    }

    #[test]
    fn what_goes_in_between_hides_nothing() {
        let names =
            |skip: &str| ["a", "b", "c", "d"].into_iter().filter(|name| *name != skip).collect::<Vec<_>>();
        let (_, next) = page(names(""), |name| name, None, 2).unwrap();
        let (entries, next) = page(names("b"), |name| name, at(next), 2).unwrap();
        assert_eq!((entries, next), (vec!["c", "d"], None));
    }

    #[test]
    fn a_cursor_of_something_else_is_refused() {
        for cursor in ["", "x", "!!", "YWZ0ZXI", &URL_SAFE_NO_PAD.encode("before:a"), &"A".repeat(100_000)] {
            assert!(page(vec!["a"], |name| name, at(Some(cursor.to_owned())), 2).is_err(), "{cursor}");
        }
    }

    #[test]
    fn an_empty_list_is_one_page() {
        assert_eq!(page(Vec::<String>::new(), |name| name, None, 5).unwrap(), (Vec::new(), None));
    }
}
