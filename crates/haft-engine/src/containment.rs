//! What holds a call in: the level that it needs, and the sandbox around it.

use crate::{frame::Frame, ports::Ports, registry::Registered};
use haft_core::{
    ErrorCode, Footprint, IsolationLevel, ParentGrant, Resource, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, covers_host},
};
use haft_sdk::capability::Commands;
use std::{path::Path, sync::Arc};

/// The level of a call, where it can be had; and whether what it touches is within the grant of its sandbox.
pub(crate) fn contain(
    ports: &Ports,
    frame: &Frame,
    registered: &Registered,
    footprint: &Footprint,
) -> Result<IsolationLevel, ToolError> {
    if let Some(parent) = &frame.context.parent {
        within(footprint, parent)?;
    }
    let required = registered.definition.constraints.required_isolation;
    // A program is held by its jail, whatever it touches. Code in haft's own process is held by what it says.
    let mut touched = footprint.reads.iter().chain(&footprint.writes);
    if frame.sandbox.get().is_some()
        && required == IsolationLevel::None
        && touched.any(|resource| *resource == Resource::Anything)
    {
        let text =
            format!("`{}` does not say what it touches, so it cannot be held to a sandbox", registered.name);
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    let mut level = frame.options.isolation.map_or(required, |asked| asked.max(required));
    if let (Some(sandbox), true) = (frame.sandbox.get(), required > IsolationLevel::None) {
        level = level.max(sandbox.level);
    }
    if required == IsolationLevel::None && level > required {
        let text = format!(
            "`{}` needs {level:?} isolation, which cannot be had: it runs in haft's own process; call it without",
            registered.name
        );
        return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
    }
    if level > IsolationLevel::None
        && let Err(unavailable) = ports.jail.offers(level)
    {
        let text =
            format!("`{}` needs {level:?} isolation, which cannot be had: {unavailable}", registered.name);
        return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
    }
    Ok(level)
}

/// Finds the sandbox around a call. One that is not there grants nothing.
pub(crate) fn enter(ports: &Ports, frame: &Frame) -> Result<(), ToolError> {
    if let Some(sandbox) = ports.sandboxes.around(ports, &frame.context)? {
        let _ = frame.sandbox.set(sandbox);
    }
    Ok(())
}

/// Hosts and paths that a call says it touches must be granted to the sandbox around it.
fn within(footprint: &Footprint, parent: &ParentGrant) -> Result<(), ToolError> {
    for resource in footprint.reads.iter().chain(&footprint.writes) {
        match resource {
            Resource::Host(host) if !parent.hosts.iter().any(|granted| covers_host(granted, host)) => {
                let text = format!("The sandbox around the call does not grant the host `{host}`");
                return Err(ToolError::new(ErrorCode::NetworkPolicyViolation, text));
            }
            Resource::Path(path)
                if !parent.mounts.iter().any(|granted| Path::new(path).starts_with(granted)) =>
            {
                let text = format!("The sandbox around the call does not grant `{path}`");
                return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a folder is within the paths of a sandbox.
pub(crate) fn grants(parent: &ParentGrant, folder: Option<&Path>) -> bool {
    folder.is_none_or(|folder| parent.mounts.iter().any(|mount| folder.starts_with(mount)))
}

/// A program in a sandbox gets what both grant.
pub(crate) fn narrow(spec: &mut GuestSpec, parent: &ParentGrant) -> Result<(), ToolError> {
    let granted = |path: &Path| parent.mounts.iter().any(|mount| path.starts_with(mount));
    let inside = |paths: &mut Vec<std::path::PathBuf>| {
        // A grant below a path that would be given is what is left of it.
        let narrower: Vec<_> = parent
            .mounts
            .iter()
            .map(std::path::PathBuf::from)
            .filter(|mount| paths.iter().any(|path| mount.starts_with(path)))
            .collect();
        paths.retain(|path| granted(path));
        paths.extend(narrower);
        paths.sort();
        paths.dedup();
    };
    inside(&mut spec.readable);
    inside(&mut spec.writable);
    spec.hosts.retain(|host| parent.hosts.iter().any(|granted| covers_host(granted, host)));
    if let Some(dir) = &spec.working_dir
        && !granted(dir)
    {
        let text = format!("The sandbox around the call does not grant `{}`", dir.display());
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    spec.parent = Some(parent.sandbox_id.clone());
    Ok(())
}

/// Programs, in the engine's jail.
pub(crate) struct Jailed {
    pub(crate) jail: Arc<dyn Jail>,
    pub(crate) template: GuestSpec,
}

impl Commands for Jailed {
    fn template(&self) -> GuestSpec {
        self.template.clone()
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        self.jail.start(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent() -> ParentGrant {
        ParentGrant {
            sandbox_id: "s".into(),
            mounts: vec!["/work/a".into()],
            hosts: vec!["*.example.com".into(), "host:8080".into()],
            ..ParentGrant::default()
        }
    }

    #[test]
    fn what_a_call_touches_must_be_granted() {
        let path = |path: &str| Footprint::writes([Resource::path(path)]);
        let host = |host: &str| Footprint::reads([Resource::Host(host.into())]);
        assert!(within(&path("/work/a/b"), &parent()).is_ok());
        assert_eq!(
            within(&path("/work/ab"), &parent()).unwrap_err().code,
            ErrorCode::FilesystemPolicyViolation
        );
        assert!(within(&host("api.EXAMPLE.com"), &parent()).is_ok());
        for other in ["example.com", "evil-example.com", "host"] {
            let error = within(&host(other), &parent()).unwrap_err();
            assert_eq!(error.code, ErrorCode::NetworkPolicyViolation, "{other}");
        }
    }

    #[test]
    fn a_program_gets_what_both_grant() {
        let mut spec = GuestSpec {
            writable: vec!["/work".into(), "/other".into()],
            hosts: vec!["api.example.com".into(), "example.org".into()],
            ..GuestSpec::default()
        };
        narrow(&mut spec, &parent()).unwrap();
        assert_eq!(spec.writable, [std::path::PathBuf::from("/work/a")]);
        assert_eq!(spec.hosts, ["api.example.com"]);
        spec.working_dir = Some("/work".into());
        assert_eq!(narrow(&mut spec, &parent()).unwrap_err().code, ErrorCode::FilesystemPolicyViolation);
    }
}
