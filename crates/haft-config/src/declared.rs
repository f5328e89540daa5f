//! Reading `[[tools.definitions]]`: the one key whose entries have fields of their own.

use std::collections::HashSet;

use haft_core::suggest::nearest;
use toml::de::{DeArray, DeTable, DeValue};

use super::keys::Key;
use super::problem::{EntryFault, Problem};
use super::read::{Offset, Reader};
use super::toml_text::{described, integer, joined};
use super::value::{DeclaredTool, Value};

const FIELDS: [&str; 3] = ["name", "description", "parameters"];

impl Reader<'_> {
    pub(super) fn tools(&mut self, key: &'static Key, items: &DeArray<'_>, offset: Offset) {
        let mut tools: Vec<DeclaredTool> = Vec::new();
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let start = item.span().start;
            let DeValue::Table(table) = item.get_ref() else {
                self.wrong_type(key, described(item.get_ref()).to_owned(), Some(start));
                continue;
            };
            let path = format!("{}[{index}]", key.path());
            let Some(tool) = self.tool(&path, table, start) else {
                continue;
            };
            for broken in tool.definition().check() {
                let key = format!("{path}.{}", broken.place);
                let (what, fix, place) = (broken.problem, broken.fix, self.place.clone());
                self.problems.push((Some(start), Problem::BadDefinition { key, what, fix, place }));
            }
            if seen.insert(tool.name.clone()) {
                tools.push(tool);
            } else {
                self.bad_entry(key.path(), &tool.name, EntryFault::Repeated, Some(start));
            }
        }
        self.keep(key, Value::Tools(tools), offset);
    }

    /// The tool, unless something is missing in it; every problem is pushed.
    fn tool(&mut self, path: &str, table: &DeTable<'_>, start: usize) -> Option<DeclaredTool> {
        let (mut name, mut description) = (None, None);
        let mut parameters = serde_json::json!({ "type": "object" });
        for (field, value) in table {
            let offset = Some(value.span().start);
            match (field.get_ref().as_ref(), value.get_ref()) {
                ("name", DeValue::String(text)) => name = Some(text.to_string()),
                ("description", DeValue::String(text)) => description = Some(text.to_string()),
                ("parameters", DeValue::Table(_)) => match json(value.get_ref()) {
                    Some(schema) => parameters = schema,
                    None => self.bad_entry(path, "parameters", EntryFault::NotJson, offset),
                },
                (field @ ("name" | "description"), other) => {
                    let example = format!("{field} = \"…\"");
                    self.mismatch(format!("{path}.{field}"), "a string", described(other), example, offset);
                }
                ("parameters", other) => {
                    let example = "parameters = { type = \"object\" }".to_owned();
                    self.mismatch(format!("{path}.parameters"), "a table", described(other), example, offset);
                }
                (other, _) => {
                    let suggestions = nearest(other, FIELDS).map(|near| format!("{path}.{near}"));
                    let (key, suggestions) = (joined(path, other), suggestions.into_iter().collect());
                    let problem = Problem::UnknownKey { key, suggestions, place: self.place.clone() };
                    self.problems.push((Some(field.span().start), problem));
                }
            }
        }
        for field in ["name", "description"].into_iter().filter(|field| !table.contains_key(*field)) {
            let (tool, place) = (path.to_owned(), self.place.clone());
            self.problems.push((Some(start), Problem::MissingField { tool, field, place }));
        }
        Some(DeclaredTool { name: name?, description: description?, parameters })
    }
}

/// The value as JSON, or `None` where JSON has no form for it. The TOML reader bounds the depth.
pub(super) fn json(value: &DeValue<'_>) -> Option<serde_json::Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::try_from(integer(number)?).ok()?.into(),
        DeValue::Float(number) => serde_json::Number::from_f64(number.as_str().parse().ok()?)?.into(),
        DeValue::Boolean(on) => (*on).into(),
        DeValue::Datetime(_) => return None,
        DeValue::Array(items) => {
            items.iter().map(|item| json(item.get_ref())).collect::<Option<Vec<_>>>()?.into()
        }
        DeValue::Table(table) => {
            let fields =
                table.iter().map(|(name, value)| Some((name.get_ref().to_string(), json(value.get_ref())?)));
            serde_json::Value::Object(fields.collect::<Option<_>>()?)
        }
    })
}
