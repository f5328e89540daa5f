//! Permissions as strings.

use haft_core::{
    CallContext, ToolDefinition,
    port::{Authorisation, Authoriser, BoxFuture, GuardError},
};
use std::future::ready;

/// The permissions on the call's context, as strings such as `tool.filesystem.read`. A `*` at the end stands for
/// everything below: `tool.*`. What is not there is denied.
///
/// ```
/// use haft_guard::PermissionStrings;
/// assert!(PermissionStrings::covers("tool.filesystem.*", "tool.filesystem.read"));
/// assert!(!PermissionStrings::covers("tool.filesystem.*", "tool.filesystems"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PermissionStrings;

impl PermissionStrings {
    /// Whether one permission includes another.
    pub fn covers(held: &str, required: &str) -> bool {
        match held.strip_suffix('*') {
            Some("") => true,
            Some(prefix) if prefix.ends_with('.') => required.starts_with(prefix),
            // `tool.fi*` would be a trap: it reads like a folder and matches by letters.
            Some(_) => false,
            None => held == required,
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
