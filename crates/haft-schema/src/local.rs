//! Following a schema by hand, for coercion and defaults: what surely holds, without running it.

use serde_json::{Map, Value};

use crate::dialect::OURS;
use crate::keywords::each_schema;
use crate::place::decode;

/// A schema in 2020-12.
#[derive(Clone, Copy)]
pub(crate) struct Local<'s> {
    root: &'s Value,
    /// Whether `#/…` always means a place in this schema: not where a part of it has an address of its own.
    follows: bool,
}

impl<'s> Local<'s> {
    /// None where the schema, or a part of it, is in another draft: its words could mean anything.
    pub(crate) fn of(root: &'s Value) -> Option<Self> {
        if root
            .get("$schema")
            .is_some_and(|draft| draft.as_str().map(|draft| draft.trim_end_matches('#')) != Some(OURS))
        {
            return None;
        }
        let (mut parts_with_address, mut parts_in_other_drafts) = (false, false);
        each_schema(root, &mut |pointer, part| {
            let has = |keyword: &str| !pointer.is_empty() && part.get(keyword).is_some();
            parts_with_address |= has("$id");
            parts_in_other_drafts |= has("$schema");
        });
        (!parts_in_other_drafts).then_some(Self { root, follows: !parts_with_address })
    }

    /// What a schema's `$ref` leads to, where that is a place in this schema, given by a pointer.
    pub(crate) fn target(&self, schema: &Map<String, Value>) -> Option<&'s Value> {
        let fragment = schema.get("$ref")?.as_str()?.strip_prefix('#').filter(|_| self.follows)?;
        self.root.pointer(&decode(fragment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_followed_only_within_the_schema() {
        let follow = |mut root: Value, reference: &str| {
            root["probe"] = json!({"$ref": reference});
            let probe = root["probe"].as_object().unwrap().clone();
            Local::of(&root).and_then(|local| local.target(&probe)).cloned()
        };
        let root = json!({"$defs": {"a/b": {"type": "null"}, "c": {"$anchor": "c"}}});
        assert_eq!(follow(root.clone(), "#/$defs/a~1b"), Some(json!({"type": "null"})));
        assert_eq!(follow(root.clone(), "#/%24defs/a~1b"), Some(json!({"type": "null"})));
        for elsewhere in ["#c", "#/$defs/none", "other.json", "other.json#/$defs/a~1b", ""] {
            assert_eq!(follow(root.clone(), elsewhere), None, "{elsewhere}");
        }
        let with_address = json!({"$defs": {"a": {"$id": "other"}}});
        assert_eq!(follow(with_address, "#/$defs/a"), None, "it may be a place in `other`");
    }

    #[test]
    fn unknown_drafts_say_nothing() {
        let known = |draft: &str| Local::of(&json!({"$schema": draft})).is_some();
        assert!(known("https://json-schema.org/draft/2020-12/schema"));
        assert!(!known("http://json-schema.org/draft-07/schema#"), "it is converted before");
        assert!(!known("https://example.com/my-draft"));
        assert!(
            Local::of(&json!({"items": {"$schema": "http://json-schema.org/draft-07/schema#"}})).is_none()
        );
    }
}
