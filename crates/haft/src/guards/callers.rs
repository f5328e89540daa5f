//! Who calls, and what they may.

use crate::{CallContext, Error, config::Config};
use haft_guard::{Permissions, Role};

/// The roles of a configuration, besides those that come with haft.
pub(crate) fn permissions(config: &Config) -> Result<Permissions, Error> {
    let permissions = Permissions::default();
    for text in &config.permissions.roles {
        let (tenant, name, role) = Role::read(text)
            .map_err(|problem| Error::Permissions(format!("permissions.roles: {problem}")))?;
        match tenant {
            Some(tenant) => permissions.define(tenant, name, role),
            None => permissions.define_for_all(name, role),
        }
    }
    Ok(permissions)
}

/// The user who runs haft on their own machine: with every permission, unless the configuration names roles.
pub fn local(config: &Config, owner: &CallContext) -> CallContext {
    let roles = &config.permissions.local_roles;
    match roles.is_empty() {
        true => owner.clone(),
        false => CallContext { roles: roles.clone(), permissions: Vec::new(), ..owner.clone() },
    }
}
