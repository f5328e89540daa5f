//! The way back: from the arguments that a model sends to those that the tool takes.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What an export changed about the arguments of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Back {
    /// From the exported name to the tool's.
    pub(crate) renamed: BTreeMap<String, String>,
    /// Members that may be absent, and that a model in strict mode sends as null instead.
    pub(crate) optional: BTreeSet<String>,
    /// What is further down, by exported name.
    pub(crate) members: BTreeMap<String, Back>,
    /// What is in each item of a list.
    pub(crate) items: Option<Box<Back>>,
}

impl Back {
    pub(crate) fn is_empty(&self) -> bool {
        self.renamed.is_empty() && self.optional.is_empty() && self.members.is_empty() && self.items.is_none()
    }

    /// Keeps what is there only where it says something.
    pub(crate) fn member(&mut self, name: &str, back: Back) {
        if !back.is_empty() {
            self.members.insert(name.to_owned(), back);
        }
    }

    pub(crate) fn object(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
            .into_iter()
            .filter(|(name, value)| !(value.is_null() && self.optional.contains(name)))
            .map(|(name, value)| {
                let value = match self.members.get(&name) {
                    Some(back) => back.value(value),
                    None => value,
                };
                (self.renamed.get(&name).cloned().unwrap_or(name), value)
            })
            .collect()
    }

    fn value(&self, value: Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(self.object(members)),
            Value::Array(items) => match &self.items {
                Some(back) => items.into_iter().map(|item| back.value(item)).collect(),
                None => Value::Array(items),
            },
            plain => plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nulls_that_mean_absent_go_and_names_return() {
        let inner = Back { optional: BTreeSet::from(["b".to_owned()]), ..Back::default() };
        let list = Back { items: Some(Box::new(inner.clone())), ..Back::default() };
        let back = Back {
            renamed: BTreeMap::from([("user_id_1".to_owned(), "user id".to_owned())]),
            optional: BTreeSet::from(["a".to_owned()]),
            members: BTreeMap::from([("o".to_owned(), inner), ("l".to_owned(), list)]),
            items: None,
        };
        let sent = json!({
            "a": null, "n": null, "user_id_1": 5, "o": {"b": null, "c": null}, "l": [{"b": null}, {"b": 1}, 7],
        });
        let Value::Object(sent) = sent else { panic!("an object") };
        assert_eq!(
            Value::Object(back.object(sent)),
            json!({"n": null, "user id": 5, "o": {"c": null}, "l": [{}, {"b": 1}, 7]}),
        );
    }
}
