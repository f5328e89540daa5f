//! What holds a call in: the level that it needs, and the sandbox around it.

use super::call::CallState;
use crate::{ports::Ports, registry::Registered};
use haft_core::{
    ErrorCode, Footprint, IsolationLevel, IsolationTechnology, Limits, ParentGrant, Resource, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Writes, covers_host},
};
use haft_sdk::{PassedOn, capability::Commands};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// What holds the programs of a call in, as it was planned. Each attempt at the call has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Containment {
    /// The level, at the least.
    pub(crate) level: IsolationLevel,
    /// The tool says that it changes nothing, and is held to it.
    changes_nothing: bool,
    /// What its program writes is kept apart from the files.
    pub(crate) is_staged: bool,
}

impl Containment {
    pub(crate) fn new(level: IsolationLevel, registered: &Registered, is_staged: bool) -> Self {
        Containment { level, changes_nothing: !registered.definition.has_side_effects(), is_staged }
    }

    /// A program as the call may run it: at its level, within its limits and those of the sandbox around it.
    pub(crate) fn fit(
        self,
        call: &CallState,
        timeout: Duration,
        mut spec: GuestSpec,
    ) -> Result<GuestSpec, ToolError> {
        let commands = &call.reach().commands;
        let template = commands.template();
        let mut limits = match &call.options.limits {
            Some(asked) => {
                let most = spec.limits.most(&template.limits, &commands.ceiling());
                asked.check_ceiling(&most)?;
                asked.or(&spec.limits)
            }
            None => spec.limits.clone(),
        };
        spec.technology = technology(call)?;
        let around = call.sandbox.get().map_or(IsolationLevel::None, |sandbox| sandbox.level);
        spec.level = spec.level.max(self.level).max(around);
        // Nothing to write to, and no way outward.
        if self.changes_nothing {
            let writable = std::mem::take(&mut spec.writable);
            spec.readable.extend(writable);
            spec.hosts.clear();
        }
        // The strictest level means no files and no network, whatever is granted to others.
        if spec.level == IsolationLevel::Restricted {
            spec.readable.clear();
            spec.writable.clear();
            spec.presets.clear();
            spec.hosts.clear();
            spec.working_dir = None;
        }
        limits = limits.within(&call.parent_limits());
        if let Some(parent) = &call.context.parent {
            // Where nobody chose the folder, the first one that is granted does.
            if spec.working_dir == template.working_dir && !grants(parent, spec.working_dir.as_deref()) {
                spec.working_dir = None;
            }
            narrow(&mut spec, parent)?;
        }
        limits = limits.within(&call.context.tier.limits());
        limits.wall_time = limits.wall_time.or(Some(timeout));
        spec.limits = limits;
        // Room for writes that are kept apart is made when it starts, if at all.
        spec.writes = Writes::Live;
        // By which a program tells whether it did this very thing before.
        spec.environment.insert("HAFT_EFFECT_ID".to_owned(), call.id.to_string());
        // Only what was really handed on is there under these names.
        PassedOn::VARIABLES.iter().for_each(|name| drop(spec.environment.remove(*name)));
        spec.environment.extend(PassedOn::new(&call.tool_call, &call.context).variables()?);
        Ok(spec)
    }
}

/// The level of a call, where it can be had; and whether what it touches is within the grant of its sandbox.
pub(crate) fn contain(
    ports: &Ports,
    call: &CallState,
    registered: &Registered,
    footprint: &Footprint,
) -> Result<IsolationLevel, ToolError> {
    if let Some(parent) = &call.context.parent {
        within(footprint, parent)?;
    }
    let required = registered.definition.constraints.required_isolation;
    // A program is held by its jail, whatever it touches. Code in haft's own process is held by what it says.
    let mut touched = footprint.reads.iter().chain(&footprint.writes);
    if call.sandbox.get().is_some()
        && registered.is_own_code()
        && touched.any(|resource| *resource == Resource::Anything)
    {
        let text =
            format!("`{}` does not say what it touches, so it cannot be held to a sandbox", registered.name);
        return Err(ToolError::new(ErrorCode::FilesystemPolicyViolation, text));
    }
    let works_in_jail = registered.tool.works_in_jail();
    let mut level = call.options.isolation.map_or(required, |asked| asked.max(required));
    if let (Some(sandbox), true) = (call.sandbox.get(), works_in_jail || !registered.is_own_code()) {
        level = level.max(sandbox.level);
    }
    if level == IsolationLevel::None {
        level = level_of_limits(call, registered)?;
    }
    // Decided when it is called, not kept with the definition: a stricter installation and a better licence count at
    // once.
    if registered.definition.is_program() {
        let usual = call.reach().commands.template().level.max(IsolationLevel::Standard);
        level = level.max(usual.min(call.context.tier.max_isolation()));
    }
    if works_in_jail && level == IsolationLevel::Restricted {
        let text = format!(
            "`{}` needs files, and Restricted isolation has none: ask for Strict, or call it outside of the sandbox",
            registered.name
        );
        return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
    }
    if required == IsolationLevel::None && level > required && !works_in_jail {
        let text = format!(
            "`{}` needs {level:?} isolation, which cannot be had: it runs in haft's own process; call it without",
            registered.name
        );
        return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
    }
    let technology = technology(call)?;
    let offered = || match technology.is_auto() {
        true => ports.jail.offers(level),
        // Any program: it is not run.
        false => ports.jail.holds(&GuestSpec { level, technology, ..GuestSpec::command(["/bin/sh"]) }),
    };
    if level > IsolationLevel::None
        && let Err(unavailable) = offered()
    {
        let text =
            format!("`{}` needs {level:?} isolation, which cannot be had: {unavailable}", registered.name);
        return Err(ToolError::new(ErrorCode::SandboxCreationFailed, text));
    }
    Ok(level)
}

/// The level of a call in haft's own process for which nobody asked for isolation, by its limits: a tool that can work in
/// a jail does so where nothing else holds them. Limits of others are refused, where the call itself asks for them.
fn level_of_limits(call: &CallState, registered: &Registered) -> Result<IsolationLevel, ToolError> {
    let asked = call.options.limits.as_deref().and_then(Limits::for_jails_only);
    if registered.tool.works_in_jail() {
        let held_in = |name: Option<&str>| name.map_or(IsolationLevel::None, |_| IsolationLevel::Standard);
        return Ok(held_in(asked.or_else(|| call.parent_limits().for_jails_only())));
    }
    match asked {
        Some(name) if !registered.tool.only_calls() => {
            let text = format!(
                "`{name}` cannot be held for `{}`: it runs in haft's own process. Call it without that limit; it holds \
                 for programs and for the tools that work with files",
                registered.name
            );
            Err(ToolError::new(ErrorCode::ResourceLimitExceeded, text))
        }
        _ => Ok(IsolationLevel::None),
    }
}

/// The jail that the call and the sandbox around it chose.
pub(crate) fn technology(call: &CallState) -> Result<IsolationTechnology, ToolError> {
    let around = call.context.parent.as_ref().map(|parent| parent.isolation_technology).unwrap_or_default();
    let around = call.sandbox.get().map_or(around, |sandbox| sandbox.grant.isolation_technology);
    let asked = call.options.isolation_technology;
    asked.and(around).ok_or_else(|| {
        let text = format!("The call asks for the jail {asked:?}, and the sandbox around it has {around:?}");
        ToolError::new(ErrorCode::ValidationFailed, text)
    })
}

/// What programs of a call reach at most, as an approval covers it: without the values of variables.
pub(crate) fn reach(call: &CallState) -> Value {
    let template = call.reach().commands.template();
    // Without `..`: what a template gains is covered, or left out on purpose.
    let GuestSpec {
        level,
        argv,
        environment,
        working_dir: _, // it is the folder
        stdin: _,       // of a call, not of the template
        terminal: _,
        readable,
        writable,
        denied,
        presets,
        hosts,
        limits,
        technology: _, // chosen by the call and its sandbox, and covered on its own
        parent: _,     // the sandbox is covered on its own
        grace: _,
        writes: _,
    } = &template;
    let names = |paths: &[PathBuf]| paths.iter().map(|path| path_name(path)).collect::<Vec<_>>();
    json!({
        "folder": folder(call),
        "level": level,
        "argv": argv,
        "readable": names(readable),
        "writable": names(writable),
        "denied": denied,
        "presets": presets,
        "hosts": hosts,
        "limits": limits,
        "variables": environment.keys().collect::<Vec<_>>(),
    })
}

/// What of it a person is shown: where programs start, what they reach. Only the folder, where no jail
/// holds them.
pub(crate) fn shown_reach(reach: &Value, level: IsolationLevel) -> Value {
    let shown: &[&str] = match level {
        IsolationLevel::None => &["folder"],
        IsolationLevel::Standard | IsolationLevel::Strict => {
            &["folder", "hosts", "presets", "readable", "writable"]
        }
        // No files and no network.
        IsolationLevel::Restricted => &[],
    };
    shown.iter().map(|&name| (name.to_owned(), reach[name].clone())).collect()
}

/// The folder in which the programs of a call start, where they choose no other; empty where there is none.
pub(crate) fn folder(call: &CallState) -> String {
    start(call.reach().commands.template(), call.context.parent.as_ref())
}

/// Where a program of that template starts, in a sandbox that grants that.
pub(crate) fn start(template: &GuestSpec, parent: Option<&ParentGrant>) -> String {
    let mut template = Cow::Borrowed(template);
    if let Some(parent) = parent {
        let template = template.to_mut();
        if !grants(parent, template.working_dir.as_deref()) {
            template.working_dir = None;
        }
        if narrow(template, parent).is_err() {
            return String::new();
        }
    }
    let GuestSpec { working_dir, writable, readable, .. } = &*template;
    let chosen = working_dir.as_ref().or_else(|| writable.first()).or_else(|| readable.first());
    chosen.map(|path| path_name(path)).unwrap_or_default()
}

/// A path as text; two paths have never the same.
fn path_name(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}

/// Finds the sandbox around a call. One that is not there grants nothing.
pub(crate) fn enter(ports: &Ports, call: &CallState) -> Result<(), ToolError> {
    if let Some(sandbox) = ports.sandboxes.around(&*ports.jail, &call.context)? {
        let _ = call.sandbox.set(sandbox);
    }
    Ok(())
}

/// Hosts and paths that a call says it touches must be granted to the sandbox around it.
pub(crate) fn within(footprint: &Footprint, parent: &ParentGrant) -> Result<(), ToolError> {
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
fn grants(parent: &ParentGrant, folder: Option<&Path>) -> bool {
    folder.is_none_or(|folder| parent.mounts.iter().any(|mount| folder.starts_with(mount)))
}

/// A program in a sandbox gets what both grant.
fn narrow(spec: &mut GuestSpec, parent: &ParentGrant) -> Result<(), ToolError> {
    let granted = |path: &Path| parent.mounts.iter().any(|mount| path.starts_with(mount));
    // A mount below a path that would be given is what is left of it, and as it is there: the deepest path around it
    // says whether it may be written to.
    let deepest = |paths: &[PathBuf], mount: &Path| {
        paths.iter().filter(|path| mount.starts_with(path)).map(|path| path.components().count()).max()
    };
    let (mut readable, mut writable) = (Vec::new(), Vec::new());
    for mount in parent.mounts.iter().map(PathBuf::from) {
        match (deepest(&spec.readable, &mount), deepest(&spec.writable, &mount)) {
            (None, None) => {}
            (Some(reads), Some(writes)) if reads < writes => writable.push(mount),
            (None, Some(_)) => writable.push(mount),
            (Some(_), _) => readable.push(mount),
        }
    }
    for (paths, narrower) in [(&mut spec.readable, readable), (&mut spec.writable, writable)] {
        paths.retain(|path| granted(path));
        paths.extend(narrower);
        paths.sort();
        paths.dedup();
    }
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
    fn template(&self) -> &GuestSpec {
        &self.template
    }

    /// The limits of the template: nobody named others.
    fn ceiling(&self) -> Limits {
        self.template.limits.clone()
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
        assert_eq!(spec.writable, [PathBuf::from("/work/a")]);
        assert_eq!(spec.hosts, ["api.example.com"]);
        spec.working_dir = Some("/work".into());
        assert_eq!(narrow(&mut spec, &parent()).unwrap_err().code, ErrorCode::FilesystemPolicyViolation);
    }

    #[test]
    fn what_may_only_be_read_stays_so_in_a_sandbox() {
        // The roots of a configuration: a folder that may be written to, a part of it that may not, and a part of that
        // that may.
        let roots = || GuestSpec {
            writable: vec!["/work".into(), "/work/vendor/own".into()],
            readable: vec!["/work/vendor".into(), "/lib".into()],
            ..GuestSpec::default()
        };
        // A mount; what can be written, and what can only be read.
        let cases: [(&str, &[&str], &[&str]); 8] = [
            ("/work", &["/work", "/work/vendor/own"], &["/work/vendor"]),
            ("/work/src", &["/work/src"], &[]),
            ("/work/vendor", &["/work/vendor/own"], &["/work/vendor"]),
            ("/work/vendor/other", &[], &["/work/vendor/other"]),
            ("/work/vendor/own", &["/work/vendor/own"], &[]),
            ("/work/vendor/own/deep", &["/work/vendor/own/deep"], &[]),
            ("/lib/x", &[], &["/lib/x"]),
            ("/elsewhere", &[], &[]),
        ];
        for (mount, writable, readable) in cases {
            let mut spec = roots();
            let parent = ParentGrant { mounts: vec![mount.to_owned()], ..parent() };
            narrow(&mut spec, &parent).unwrap();
            let shown = |paths: &[PathBuf]| -> Vec<String> {
                paths.iter().map(|path| path.display().to_string()).collect()
            };
            assert_eq!(
                (shown(&spec.writable), shown(&spec.readable)),
                (
                    writable.iter().map(|path| (*path).to_owned()).collect(),
                    readable.iter().map(|path| (*path).to_owned()).collect(),
                ),
                "{mount}"
            );
        }
    }
}
