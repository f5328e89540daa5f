//! Permissions: strings with wildcards, on the call or by role.

mod agents;
mod roles;

pub use agents::AgentTools;
pub use roles::{Permissions, Role};

use haft_core::{
    CallContext, ToolDefinition,
    port::{Authorisation, Authoriser, BoxFuture, GuardError},
};
use std::future::ready;

/// The permissions on the call's context, as strings such as `tool.filesystem.read`. A `*` at the end stands for
/// everything below: `tool.*`; between dots it stands for one part: `tool.*.read`. What is not there is denied.
///
/// ```
/// use haft_guard::PermissionStrings;
/// assert!(PermissionStrings::covers("tool.filesystem.*", "tool.filesystem.read"));
/// assert!(PermissionStrings::covers("tool.*.read", "tool.filesystem.read"));
/// assert!(!PermissionStrings::covers("tool.filesystem.*", "tool.filesystems"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PermissionStrings;

impl PermissionStrings {
    /// Whether one permission includes another.
    pub fn covers(held: &str, required: &str) -> bool {
        let (mut held, mut required) = (held.split('.'), required.split('.'));
        loop {
            match (held.next(), required.next()) {
                (None, None) => return true,
                // At the end a star is everything below, and there must be something.
                (Some("*"), Some(_)) if held.clone().next().is_none() => return true,
                (Some("*"), Some(_)) => {}
                // `tool.fi*` would be a trap: it reads like a folder and matches by letters. So it is only itself.
                (Some(part), Some(wanted)) if part == wanted => {}
                _ => return false,
            }
        }
    }
}

impl Authoriser for PermissionStrings {
    fn authorise<'a>(
        &'a self,
        context: &'a CallContext,
        definition: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Authorisation, GuardError>> {
        let held = &context.permissions;
        let missing = definition
            .required_permissions
            .iter()
            .find(|required| !held.iter().any(|held| PermissionStrings::covers(held, required)));
        Box::pin(ready(Ok(match missing {
            None => Authorisation::Granted,
            Some(missing) => {
                Authorisation::Denied { missing: missing.clone(), reason: "nobody granted it".to_owned() }
            }
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_go_by_parts() {
        let cases = [
            ("*", "tool.read", true),
            ("*", "x", true),
            ("tool.*", "tool.a.b", true),
            ("tool.*", "tool", false),
            ("tool.*.read", "tool.a.read", true),
            ("tool.*.read", "tool.a.b.read", false),
            ("tool.*.read", "tool.a.write", false),
            ("tool.fi*", "tool.filesystem", false),
            ("tool", "tool", true),
            ("tool", "tool.read", false),
            ("Tool.read", "tool.read", false),
            ("", "tool", false),
        ];
        for (held, required, covered) in cases {
            assert_eq!(PermissionStrings::covers(held, required), covered, "{held} {required}");
        }
    }
}
