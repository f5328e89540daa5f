//! The names that agent platforms have for the arguments of haft's own tools.

use haft_core::{Arguments, Parameters, Source, ToolDefinition};
use serde_json::Value;

/// Theirs and ours.
const NAMES: [(&str, &str); 4] =
    [("file_path", "path"), ("old_string", "old_text"), ("new_string", "new_text"), ("replace_all", "all")];

/// The arguments in haft's own names: for built-in tools that have ours and not theirs. Where both are given, the call
/// is refused as it is, with the one that the tool does not know.
pub(super) fn own(tool: &ToolDefinition, parameters: Arguments) -> Arguments {
    let Parameters::Schema(schema) = &tool.parameters else { return parameters };
    let takes = |name: &str| schema.pointer(&format!("/properties/{name}")).is_some();
    if tool.source != Source::BuiltIn || !NAMES.iter().any(|(theirs, ours)| takes(ours) && !takes(theirs)) {
        return parameters;
    }
    // What cannot be read is refused with its reason later.
    let Ok(mut given) = parameters.parse() else { return parameters };
    let mut is_changed = false;
    for (theirs, ours) in NAMES {
        if takes(ours)
            && !takes(theirs)
            && !given.contains_key(ours)
            && let Some(value) = given.remove(theirs)
        {
            given.insert(ours.to_owned(), value);
            is_changed = true;
        }
    }
    if is_changed { Arguments::from(Value::Object(given)) } else { parameters }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_platforms_are_those_of_hafts_own_tools() {
        let schema = json!({"type": "object", "properties": {"path": {}, "old_text": {}, "new_text": {}}});
        let mut tool = ToolDefinition::new("edit_file", "Edits");
        tool.parameters = Parameters::Schema(schema);
        let told =
            |tool: &ToolDefinition, given: Value| own(tool, given.into()).parse().map(Value::Object).ok();
        let theirs = json!({"file_path": "a", "old_string": "b", "new_string": "c"});
        assert_eq!(told(&tool, theirs.clone()), Some(json!({"path": "a", "old_text": "b", "new_text": "c"})));
        let both = json!({"file_path": "a", "path": "b"});
        assert_eq!(told(&tool, both.clone()), Some(both), "it is not haft that chooses");
        let all = json!({"replace_all": true});
        assert_eq!(told(&tool, all.clone()), Some(all), "the tool has no such argument");
        assert_eq!(own(&tool, Arguments::from_text("{no")).as_str(), "{no");
        tool.source = Source::Command;
        assert_eq!(told(&tool, theirs.clone()), Some(theirs), "others name their own");
    }
}
