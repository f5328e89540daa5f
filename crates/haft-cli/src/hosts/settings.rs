//! What haft writes into the settings of a host, and takes out of them again: pure functions on their text.

use super::json_edit::{self, Unfit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml_edit::{DocumentMut, Item};

/// How a file of settings is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// JSON, maybe with comments.
    Json,
    /// TOML.
    Toml,
}

/// One thing that haft adds to settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// A member, by the names that lead to it.
    Member { path: Vec<String>, value: Value },
    /// An element of a list.
    Element { path: Vec<String>, value: Value },
}

impl Change {
    pub(super) fn member(path: &[&str], value: Value) -> Self {
        Change::Member { path: path.iter().map(|key| (*key).to_owned()).collect(), value }
    }

    pub(super) fn element(path: &[&str], value: Value) -> Self {
        Change::Element { path: path.iter().map(|key| (*key).to_owned()).collect(), value }
    }

    pub(super) fn path(&self) -> &[String] {
        match self {
            Change::Member { path, .. } | Change::Element { path, .. } => path,
        }
    }
}

/// The text with all of the changes.
pub(super) fn apply(form: Form, text: &str, changes: &[Change]) -> Result<String, Unfit> {
    changes.iter().try_fold(text.to_owned(), |text, change| match (form, change) {
        (Form::Json, Change::Member { path, value }) => json_edit::set(&text, path, value),
        (Form::Json, Change::Element { path, value }) => json_edit::push(&text, path, value),
        (Form::Toml, Change::Member { path, value }) => toml_set(&text, path, value),
        (Form::Toml, Change::Element { path, .. }) => Err(Unfit::WrongKind(path.join("."))),
    })
}

/// Whether the text has that change.
pub(super) fn has(form: Form, text: &str, change: &Change) -> bool {
    let found = match form {
        Form::Json => json_edit::get(text, change.path()),
        Form::Toml => toml_get(text, change.path()),
    };
    match change {
        Change::Member { value, .. } => found.as_ref() == Some(value),
        Change::Element { value, .. } => {
            found.as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(value))
        }
    }
}

/// A change that was made, with what was in its place before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) change: Change,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<Value>,
}

/// The changes with what each would replace in the text.
pub(super) fn with_old(form: Form, text: &str, changes: &[Change]) -> Vec<Made> {
    let old = |change: &Change| match (change, form) {
        (Change::Element { .. }, _) => None,
        (Change::Member { path, .. }, Form::Json) => json_edit::get(text, path),
        (Change::Member { path, .. }, Form::Toml) => toml_get(text, path),
    };
    changes.iter().map(|change| Made { old: old(change), change: change.clone() }).collect()
}

/// The text without the changes that it still has, and how many it has no more. What was in their place before is there
/// again. What was made on the way to them and is empty now goes, too; `made` are those.
pub(super) fn take_out(
    form: Form,
    text: &str,
    changes: &[Made],
    made: &[Vec<String>],
) -> Result<(String, usize), Unfit> {
    let mut text = text.to_owned();
    let mut gone = 0;
    for Made { change, old } in changes {
        if let (Some(old), true) = (old, has(form, &text, change)) {
            let before = [Change::Member { path: change.path().to_vec(), value: old.clone() }];
            text = apply(form, &text, &before)?;
            continue;
        }
        let without = match (form, change) {
            _ if old.is_some() => None,
            (Form::Json, Change::Member { path, value }) => json_edit::unset(&text, path, value)?,
            (Form::Json, Change::Element { path, value }) => json_edit::pull(&text, path, value)?,
            (Form::Toml, Change::Member { path, value }) => toml_unset(&text, path, value)?,
            (Form::Toml, Change::Element { .. }) => None,
        };
        match without {
            Some(without) => text = without,
            None => gone += 1,
        }
    }
    // The innermost first: only then is the outer one empty.
    let mut made = made.to_vec();
    made.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in &made {
        for empty in [Value::Array(Vec::new()), Value::Object(serde_json::Map::new())] {
            let without = match form {
                Form::Json => json_edit::unset(&text, path, &empty)?,
                Form::Toml => toml_unset(&text, path, &empty)?,
            };
            text = without.unwrap_or(text);
        }
    }
    Ok((text, gone))
}

/// The objects and lists that those changes would have to make in the text.
pub(super) fn to_make(form: Form, text: &str, changes: &[Change]) -> Vec<Vec<String>> {
    let mut made = Vec::new();
    for change in changes {
        let path = change.path();
        let longest = match change {
            Change::Member { .. } => path.len().saturating_sub(1),
            Change::Element { .. } => path.len(),
        };
        for length in 1..=longest {
            let above = path[..length].to_vec();
            let is_there = match form {
                Form::Json => json_edit::get(text, &above).is_some(),
                Form::Toml => toml_get(text, &above).is_some(),
            };
            if !is_there && !made.contains(&above) {
                made.push(above);
            }
        }
    }
    made
}

fn document(text: &str) -> Result<DocumentMut, Unfit> {
    text.parse().map_err(|_| Unfit::NotJson)
}

fn toml_get(text: &str, path: &[String]) -> Option<Value> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let whole = serde_json::to_value(table).ok()?;
    path.iter().try_fold(&whole, |value, key| value.as_object()?.get(key)).cloned()
}

fn toml_set(text: &str, path: &[String], value: &Value) -> Result<String, Unfit> {
    if toml_get(text, path).as_ref() == Some(value) {
        return Ok(text.to_owned());
    }
    let mut document = document(text)?;
    let Some((last, above)) = path.split_last() else { return Err(Unfit::NotJson) };
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for key in above {
        let item = table.entry(key).or_insert_with(|| {
            let mut made = toml_edit::Table::new();
            made.set_implicit(true);
            Item::Table(made)
        });
        table = item.as_table_like_mut().ok_or_else(|| Unfit::WrongKind(key.clone()))?;
    }
    let mut item = toml_item(value).ok_or_else(|| Unfit::WrongKind(path.join(".")))?;
    // A comment behind the old value stays.
    if let (Some(old), Some(new)) = (table.get(last).and_then(Item::as_value), item.as_value_mut()) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(last, item);
    let after = document.to_string();
    // What would be written is read again: if it were not exactly what was meant, nothing is.
    match toml_get(&after, path).as_ref() == Some(value) {
        true => Ok(after),
        false => Err(Unfit::NotJson),
    }
}

fn toml_unset(text: &str, path: &[String], value: &Value) -> Result<Option<String>, Unfit> {
    if toml_get(text, path).as_ref() != Some(value) {
        return Ok(None);
    }
    let mut document = document(text)?;
    let Some((last, above)) = path.split_last() else { return Ok(None) };
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for key in above {
        let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) else { return Ok(None) };
        table = inner;
    }
    table.remove(last);
    Ok(Some(document.to_string()))
}

/// A value as TOML has it: an object is a table of its own.
fn toml_item(value: &Value) -> Option<Item> {
    if let Value::Object(members) = value {
        let mut table = toml_edit::Table::new();
        for (key, value) in members {
            table.insert(key, toml_item(value)?);
        }
        return Some(Item::Table(table));
    }
    // The JSON of a string, a number, a truth value and a list of those is TOML, too.
    value.to_string().parse::<toml_edit::Value>().ok().map(Item::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn toml_keeps_its_comments_and_gets_one_table() {
        let entry = json!({"command": "/bin/ha\"ft", "args": ["mcp", "--approvals", "host"]});
        let changes = [
            Change::member(&["mcp_servers", "haft"], entry.clone()),
            Change::member(&["features", "shell_tool"], json!(false)),
        ];
        for before in [
            "",
            "# mine\nmodel = 'x' # yes\n",
            "[features] # f\nweb = true\n\n[mcp_servers.other]\ncommand = 'o'\n",
        ] {
            let made = to_make(Form::Toml, before, &changes);
            let written = with_old(Form::Toml, before, &changes);
            let after = apply(Form::Toml, before, &changes).unwrap();
            assert!(before.lines().all(|line| after.contains(line)), "{after}");
            assert!(changes.iter().all(|change| has(Form::Toml, &after, change)), "{after}");
            assert_eq!(apply(Form::Toml, &after, &changes).unwrap(), after, "twice is once");
            let (taken, gone) = take_out(Form::Toml, &after, &written, &made).unwrap();
            assert_eq!((taken.trim_end(), gone), (before.trim_end(), 0), "{after}");
        }
        assert!(apply(Form::Toml, "= not toml", &changes).is_err());
        assert!(apply(Form::Toml, "mcp_servers = 3", &changes).is_err());
    }

    #[test]
    fn what_was_made_on_the_way_goes_when_it_is_empty() {
        let changes = [
            Change::element(&["hooks", "PreToolUse"], json!({"matcher": "*"})),
            Change::member(&["mcpServers", "haft"], json!({})),
        ];
        for before in [
            "{}",
            "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      1\n    ]\n  },\n  \"mcpServers\": {}\n}\n",
        ] {
            let (made, written) =
                (to_make(Form::Json, before, &changes), with_old(Form::Json, before, &changes));
            let after = apply(Form::Json, before, &changes).unwrap();
            let (taken, gone) = take_out(Form::Json, &after, &written, &made).unwrap();
            assert_eq!(gone, 0);
            assert_eq!(
                super::super::json_text::read(&taken),
                super::super::json_text::read(before),
                "{taken}"
            );
        }
    }

    #[test]
    fn what_others_put_beside_it_stays() {
        let changes = [Change::element(&["hooks", "PreToolUse"], json!("haft"))];
        let (made, written) = (to_make(Form::Json, "{}", &changes), with_old(Form::Json, "{}", &changes));
        let after = apply(Form::Json, "{}", &changes).unwrap();
        let theirs =
            apply(Form::Json, &after, &[Change::element(&["hooks", "PreToolUse"], json!("theirs"))]).unwrap();
        let (taken, _) = take_out(Form::Json, &theirs, &written, &made).unwrap();
        assert_eq!(super::super::json_text::read(&taken), Some(json!({"hooks": {"PreToolUse": ["theirs"]}})));
        let (same, gone) = take_out(Form::Json, &taken, &written, &made).unwrap();
        assert_eq!((same, gone), (taken, 1));
    }

    #[test]
    fn what_was_in_its_place_before_is_there_again() {
        for (form, before) in
            [(Form::Json, "{\"web\": \"live\", \"b\": 1}"), (Form::Toml, "web = \"live\" # mine\nb = 1\n")]
        {
            let changes = [Change::member(&["web"], json!("disabled"))];
            let written = with_old(form, before, &changes);
            let after = apply(form, before, &changes).unwrap();
            assert!(after.contains("disabled"), "{after}");
            assert_eq!(take_out(form, &after, &written, &[]).unwrap(), (before.to_owned(), 0));
            // Somebody chose another value since: that stays.
            let theirs = after.replace("disabled", "cached");
            assert_eq!(take_out(form, &theirs, &written, &[]).unwrap(), (theirs.clone(), 1));
        }
    }
}
