//! Programs: what the configuration grants them, and the jail that holds them.

use crate::{
    config::{CommandsConfig, Config, exposed_links},
    wiring::{self, Folders},
};
use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, Limits, ToolError, Violation,
    port::{BoxFuture, Guest, GuestSpec, Jail, Preset, Sandbox, StageSpec, Unavailable, Unstageable, Writes},
};
use haft_guard::names::{DEFAULT_DENIES, ProtectedNames};
use haft_jail::guest::{self, Auto};
use haft_tools::commands::DeniedVariables;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// How long a program may tidy up when it is to end.
const GRACE: Duration = Duration::from_millis(1500);

/// Jails of this machine, made when the first is needed: most runs of haft need none.
pub struct LazyJail {
    folders: Folders,
    per_process_limits_do: bool,
    unix_sockets: bool,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "jails are made on Linux only"))]
    cache_bytes: u64,
    /// The only jail that is used, where one is named.
    only: Option<&'static str>,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "jails are made on Linux only"))]
    names: Result<Arc<ProtectedNames>, String>,
    /// Folders that programs may write.
    writable: Vec<std::path::PathBuf>,
    /// All folders that programs may reach.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "jails are made on Linux only"))]
    roots: Vec<std::path::PathBuf>,
    /// The folder in which jails make theirs, where one is configured.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "jails are made on Linux only"))]
    base: Option<std::path::PathBuf>,
    made: OnceLock<Result<Auto, Unavailable>>,
}

impl LazyJail {
    /// The jails that this configuration asks for, in these folders. Makes none yet.
    pub fn new(config: &Config, folders: &Folders) -> Self {
        let commands = &config.tools.commands;
        let roots = wiring::roots(config, folders);
        let real = |root: &haft_files::RootSpec| root.path.canonicalize().ok();
        LazyJail {
            folders: folders.clone(),
            per_process_limits_do: commands.per_process_limits,
            unix_sockets: commands.unix_sockets,
            cache_bytes: commands.cache_bytes,
            only: commands.isolation_technology.jail(),
            names: wiring::protected_names(config).map_err(|error| error.to_string()),
            writable: roots.iter().filter(|root| !root.read_only).filter_map(real).collect(),
            roots: roots.iter().filter_map(real).collect(),
            base: (!commands.sandbox_base_dir.is_empty()).then(|| (&commands.sandbox_base_dir).into()),
            made: OnceLock::new(),
        }
    }

    /// The jails, or why there are none.
    pub fn jails(&self) -> Result<&Auto, Unavailable> {
        let made = || {
            let jails = self.make()?;
            Ok(match self.only {
                Some(name) => jails.only(name),
                None => jails,
            })
        };
        self.made.get_or_init(made).as_ref().map_err(Clone::clone)
    }

    #[cfg(target_os = "linux")]
    fn make(&self) -> Result<Auto, Unavailable> {
        let Folders { state, private, home, .. } = &self.folders;
        // A jail hides what a link leads to; the link itself could be made to lead elsewhere.
        if let Some(link) = exposed_links(private, &self.writable).first() {
            return Err(Unavailable {
                reason: format!(
                    "{} is a link to a file of haft's own, in a folder that programs write",
                    link.display()
                ),
                fix: "name the file that it leads to (--config, HAFT_CONFIG), or move the link elsewhere"
                    .into(),
            });
        }
        let options = guest::JailOptions {
            base: self.base()?,
            protected: private.clone(),
            names: self.names.clone().map_err(|reason| Unavailable {
                reason,
                fix: "correct tools.files.protected_names and unprotected_names".into(),
            })?,
            per_process_limits_do: self.per_process_limits_do,
            unix_sockets: self.unix_sockets,
            cache_bytes: self.cache_bytes,
            gate: Some(Arc::new(guest::HostGate::new())),
            ..guest::JailOptions::new(state, home.clone().unwrap_or_else(|| "/nonexistent".into()))
        };
        let host = guest::JailHost::new(options).map_err(|error| Unavailable {
            reason: format!("jails cannot be made: {error}"),
            fix: format!("make {} writable for you alone", state.display()),
        })?;
        Ok(Auto::new(&host))
    }

    /// The folder in which jails make theirs, looked at: nobody else can change it, and no program reaches it.
    #[cfg(target_os = "linux")]
    fn base(&self) -> Result<Option<std::path::PathBuf>, Unavailable> {
        let Some(base) = &self.base else { return Ok(None) };
        let refused = |reason: String| Unavailable {
            reason: format!("tools.commands.sandbox_base_dir: {reason}"),
            fix: format!(
                "name a folder that is yours alone and outside of your workspaces, such as one that \
                 `install -d -m 700 {}` makes, or leave the key out",
                base.display()
            ),
        };
        let real = guest::check_base(base).map_err(refused)?;
        match self.roots.iter().find(|root| real.starts_with(root) || root.starts_with(&real)) {
            Some(root) if real.starts_with(root) => Err(refused(format!(
                "{} is inside of {}, which programs reach",
                base.display(),
                root.display()
            ))),
            Some(root) => {
                Err(refused(format!("{} is around {}, which programs reach", base.display(), root.display())))
            }
            None => Ok(Some(real)),
        }
    }

    #[cfg(windows)]
    fn make(&self) -> Result<Auto, Unavailable> {
        Ok(Auto::of_windows())
    }

    #[cfg(not(any(target_os = "linux", windows)))]
    fn make(&self) -> Result<Auto, Unavailable> {
        Err(Unavailable {
            reason: "this system has no jail that haft knows".into(),
            fix: "run haft on Linux, or in a Linux virtual machine".into(),
        })
    }
}

impl Jail for LazyJail {
    fn name(&self) -> &str {
        "auto"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        self.jails()?.offers(level)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.jails()?.holds(spec)
    }

    fn can_stage(&self, spec: &GuestSpec) -> Result<(), Unstageable> {
        match self.jails() {
            Ok(jails) => jails.can_stage(spec),
            Err(Unavailable { reason, fix }) => Err(Unstageable { path: None, reason, fix }),
        }
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        // Without jails there never was one; and asking makes none.
        self.made
            .get()
            .map_or(Some(false), |made| made.as_ref().map_or(Some(false), |jails| jails.has_sandbox(id)))
    }

    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        match self.jails() {
            Ok(jails) => jails.open_sandbox(limits),
            Err(unavailable) => {
                Err(ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string()))
            }
        }
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        match self.jails() {
            Ok(jails) => jails.start(spec),
            Err(unavailable) => Box::pin(async move {
                Err(ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string()))
            }),
        }
    }
}

/// Whether what commands write in these folders can be kept apart, or what is in the way.
pub fn can_stage(config: &Config, folders: &Folders, jail: &dyn Jail) -> Result<(), Unstageable> {
    let broken = |reason: String| Unstageable { path: None, reason, fix: "correct the configuration".into() };
    let template = template(config, folders).map_err(broken)?;
    let stage = StageSpec { layers: folders.state.join("staged"), ..StageSpec::default() };
    // Any program: it is not run.
    let argv = vec!["/bin/sh".to_owned()];
    jail.can_stage(&GuestSpec { argv, writes: Writes::Staged(stage), ..template })
}

/// Takes away what programs of a killed haft left that would run later, and says what that was.
pub fn recover(config: &Config, folders: &Folders) -> Result<Vec<Violation>, String> {
    let names = crate::wiring::protected_names(config).map_err(|error| error.to_string())?;
    #[cfg(target_os = "linux")]
    return Ok(guest::recover_quarantine(&folders.state, &names));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (names, folders);
        Ok(Vec::new())
    }
}

/// Deletes build caches that no command used for so long, and those of workspaces that are gone. Gives how many.
pub fn sweep_caches(state: &std::path::Path, unused_for: Duration) -> std::io::Result<u64> {
    #[cfg(target_os = "linux")]
    return guest::sweep_caches(state, unused_for);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (state, unused_for);
        Ok(0)
    }
}

/// What every program is granted unless it asks for less.
pub(crate) fn template(config: &Config, folders: &Folders) -> Result<GuestSpec, String> {
    let (commands, files) = (&config.tools.commands, &config.tools.files);
    let real = |path: &std::path::PathBuf| folders.working.join(path).canonicalize().ok();
    // What is in both lists is read-only, as it is for the file tools.
    let readable: Vec<_> = files.read_only_roots.iter().filter_map(real).collect();
    // A repository's own parts are left to the jail: git must work, and only hooks and settings are out of reach.
    let defaults: &[&str] = if files.include_default_denies { DEFAULT_DENIES } else { &[] };
    let denied = defaults.iter().copied().filter(|pattern| *pattern != "**/.git/**").map(str::to_owned);
    // A denied variable is never passed on, even where somebody lists it.
    let never = DeniedVariables::new(config.tools.environment.denylist.iter().cloned());
    let passed = |name: &String| {
        never.allow(name).ok()?;
        std::env::var(name).ok().map(|value| (name.clone(), value))
    };
    Ok(GuestSpec {
        level: commands.isolation,
        environment: guest::environment(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
            commands.pass_environment.iter().filter_map(passed),
        ),
        writable: files
            .allowed_roots
            .iter()
            .filter_map(real)
            .filter(|root| !readable.contains(root))
            .collect(),
        readable,
        working_dir: real(&".".into()),
        denied: denied.chain(files.denied_patterns.iter().cloned()).collect(),
        presets: commands.presets.iter().map(|name| preset(name)).collect::<Result<_, _>>()?,
        hosts: commands.hosts.clone(),
        limits: limits(commands),
        grace: GRACE,
        ..GuestSpec::default()
    })
}

/// Open files of one process, where a call asks for no other number.
const OPEN_FILES: u64 = 1024;

/// What the programs of a call may use that asks for nothing else.
fn limits(commands: &CommandsConfig) -> Limits {
    Limits {
        memory_bytes: Some(commands.memory_bytes),
        cpu_millicores: share(commands),
        cpu_time: Some(Duration::from_secs(commands.cpu_seconds)),
        // The deadline of the call is that.
        wall_time: None,
        processes: count(commands.processes),
        open_files: count(OPEN_FILES),
        file_bytes: None,
        scratch_bytes: Some(commands.scratch_bytes),
        output_bytes: None,
        // No jail holds these.
        read_bytes: None,
        written_bytes: None,
        io_operations: None,
        io_bytes_per_second: None,
    }
}

/// The most that a call may ask for: never less than what it has without asking.
pub(crate) fn ceiling(commands: &CommandsConfig) -> Limits {
    Limits {
        memory_bytes: Some(commands.max_memory_bytes.max(commands.memory_bytes)),
        cpu_time: Some(Duration::from_secs(commands.max_cpu_seconds.max(commands.cpu_seconds))),
        processes: count(commands.max_processes.max(commands.processes)),
        open_files: count(commands.max_open_files.max(OPEN_FILES)),
        scratch_bytes: Some(commands.max_scratch_bytes.max(commands.scratch_bytes)),
        ..limits(commands)
    }
}

fn count(count: u64) -> Option<u32> {
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The share of the cores, where it is limited. Without a limit of haft's, one that a caller sets can only take away.
fn share(commands: &CommandsConfig) -> Option<u32> {
    let share = u32::try_from(commands.cpu_millicores).unwrap_or(u32::MAX);
    (share < Limits::MOST_MILLICORES).then_some(share)
}

fn preset(name: &str) -> Result<Preset, String> {
    Ok(match name {
        "rust" => Preset::Rust,
        "node" => Preset::Node,
        "python" => Preset::Python,
        "git" => Preset::Git,
        other => {
            return Err(format!(
                "tools.commands.presets: there is no preset `{other}`; there are rust, node, python, git"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_share_of_the_cores_is_what_is_configured() {
        let mut commands = CommandsConfig::default();
        assert_eq!(limits(&commands).cpu_millicores, None);
        commands.cpu_millicores = 500;
        assert_eq!(
            (limits(&commands).cpu_millicores, ceiling(&commands).cpu_millicores),
            (Some(500), Some(500))
        );
    }
}
