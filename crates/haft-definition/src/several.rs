//! Files with several definitions.

use crate::error::{Position, ReadError, ReadErrors};
use crate::tree::{Kind, Node};
use crate::{Format, check, read, spelling};
use haft_core::ToolDefinition;

/// Reads and checks one definition, a list of them, or `tools` with a list: everything that is wrong with any of them,
/// with its place in the text.
///
/// # Errors
///
/// Those of [`read_checked`](crate::read_checked), for all definitions together; and names that are there twice.
///
/// ```
/// use haft_definition::{Format, read_all_checked};
/// let text = "[[tools]]\nname = 'ping'\ndescription = 'Answers'\n[[tools]]\nname = 'pong'\ndescription = 'Too'";
/// assert_eq!(read_all_checked(text, Format::Toml)?.len(), 2);
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
pub fn read_all_checked(text: &str, format: Format) -> Result<Vec<ToolDefinition>, ReadErrors> {
    let mut definitions: Vec<ToolDefinition> = Vec::new();
    let mut errors = Vec::new();
    for mut tree in several(read::parse(text, format)?) {
        errors.extend(spelling::unify(&mut tree, text));
        match check::checked(&tree, text, format) {
            Ok(definition) => {
                if definitions.iter().any(|other| other.name == definition.name) {
                    errors.push(ReadError {
                        position: Position::of(text, tree.value_at(&["name".to_owned()])),
                        problem: format!("`{}` is there twice", definition.name),
                        help: Some("rename or remove one".to_owned()),
                    });
                }
                definitions.push(definition);
            }
            Err(found) => errors.extend_from_slice(found.errors()),
        }
    }
    if errors.is_empty() { Ok(definitions) } else { Err(ReadErrors::new(errors)) }
}

/// The definitions in a tree. One that is neither a list nor has `tools` is a definition itself, or should be.
fn several(tree: Node) -> Vec<Node> {
    match tree.kind {
        Kind::List(items) => items,
        Kind::Table(mut members) if !members.iter().any(|(key, _)| key.name == "name") => {
            let list = members
                .iter()
                .position(|(key, value)| key.name == "tools" && matches!(value.kind, Kind::List(_)));
            match list.map(|place| members.swap_remove(place).1.kind) {
                Some(Kind::List(items)) => items,
                _ => vec![Node { at: tree.at, kind: Kind::Table(members) }],
            }
        }
        kind => vec![Node { at: tree.at, kind }],
    }
}
