//! `auto`: the cheapest jail that delivers what is asked for.

use haft_core::{
    Enforcement, ErrorCode, IsolationLevel, IsolationTechnology, Limits, ToolError,
    port::{BoxFuture, Guest, GuestSpec, Jail, Sandbox, Unavailable, Unstageable, Writes},
};
use std::sync::Arc;

/// Several jails as one. Each guest goes into the first that can hold it, in the order that its level asks for.
///
/// ```no_run
/// use haft_core::port::Jail;
/// use haft_jail::guest::{Auto, JailHost, JailOptions};
/// let host = JailHost::new(JailOptions::new("/var/lib/haft", "/home/me")).unwrap();
/// let jail = Auto::new(&host);
/// println!("{:?}", jail.offers(haft_core::IsolationLevel::Strict));
/// ```
#[derive(Clone)]
pub struct Auto {
    jails: Vec<Arc<dyn Jail>>,
}

/// The order in which jails are tried: by cost, but a level's own before those that only nearly deliver it.
fn order(level: IsolationLevel) -> &'static [&'static str] {
    match level {
        IsolationLevel::None | IsolationLevel::Standard => &["process", "namespace", "runc", "gvisor", "job"],
        IsolationLevel::Strict => &["namespace", "process", "runc", "gvisor"],
        // The strongest there is.
        IsolationLevel::Restricted => &["gvisor", "namespace", "runc"],
    }
}

impl Auto {
    /// One of these jails.
    pub fn of(jails: Vec<Arc<dyn Jail>>) -> Self {
        Auto { jails }
    }

    /// All jails that this host can make.
    #[cfg(target_os = "linux")]
    pub fn new(host: &super::JailHost) -> Self {
        Auto::of(vec![
            Arc::new(super::Process::new(host)),
            Arc::new(super::Namespace::new(host)),
            Arc::new(super::Runc::new(host)),
            Arc::new(super::Gvisor::new(host)),
        ])
    }

    /// What there is on Windows.
    #[cfg(windows)]
    pub fn of_windows() -> Self {
        Auto::of(vec![Arc::new(super::Job::new())])
    }

    /// The same without all jails but that of this name. Nothing else is taken in its place: what it cannot hold is
    /// refused.
    #[must_use]
    pub fn only(mut self, name: &str) -> Self {
        self.jails.retain(|jail| jail.name() == name);
        self
    }

    /// The jails among which it chooses.
    pub fn jails(&self) -> &[Arc<dyn Jail>] {
        &self.jails
    }

    fn first<T>(
        &self,
        level: IsolationLevel,
        technology: IsolationTechnology,
        try_one: impl Fn(&Arc<dyn Jail>) -> Result<T, Unavailable>,
    ) -> Result<(Arc<dyn Jail>, T), Unavailable> {
        let mut refusals = Vec::new();
        for name in order(level) {
            let is_meant = |jail: &&Arc<dyn Jail>| {
                jail.name() == *name && technology.jail().is_none_or(|chosen| chosen == *name)
            };
            for jail in self.jails.iter().filter(is_meant) {
                match try_one(jail) {
                    Ok(offer) => return Ok((Arc::clone(jail), offer)),
                    Err(refusal) => refusals.push((name, refusal)),
                }
            }
        }
        if refusals.is_empty() {
            return Err(Unavailable {
                reason: match technology.jail() {
                    Some(chosen) => format!("the jail `{chosen}` is not there for {level:?}"),
                    None => format!("no jail knows {level:?}"),
                },
                fix: "wire one in".into(),
            });
        }
        let mut reasons: Vec<String> =
            refusals.iter().map(|(name, refusal)| format!("{name}: {}", refusal.reason)).collect();
        // What is the same for all of them is said once.
        if let [(_, first), others @ ..] = &refusals[..]
            && !others.is_empty()
            && others.iter().all(|(_, other)| other == first)
        {
            reasons = vec![first.reason.clone()];
        }
        let fix = refusals.into_iter().next().map(|(_, refusal)| refusal.fix).unwrap_or_default();
        Err(Unavailable { reason: reasons.join("; "), fix })
    }
}

impl Jail for Auto {
    fn name(&self) -> &str {
        "auto"
    }

    fn offers(&self, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
        self.first(level, IsolationTechnology::Auto, |jail| jail.offers(level)).map(|(_, offer)| offer)
    }

    fn holds(&self, spec: &GuestSpec) -> Result<Enforcement, Unavailable> {
        self.first(spec.level, spec.technology, |jail| jail.holds(spec)).map(|(_, offer)| offer)
    }

    /// Whether one of those that a level allows can. The reason is that of a jail that could elsewhere.
    fn can_stage(&self, spec: &GuestSpec) -> Result<(), Unstageable> {
        let mut refusals = Vec::new();
        for name in order(spec.level) {
            for jail in self.jails.iter().filter(|jail| jail.name() == *name) {
                match jail.can_stage(spec) {
                    Ok(()) => return Ok(()),
                    Err(why) => refusals.push((why == Unstageable::by(name), why)),
                }
            }
        }
        refusals.sort_by_key(|(never, _)| *never);
        Err(refusals.into_iter().next().map_or_else(|| Unstageable::by("auto"), |(_, why)| why))
    }

    fn has_sandbox(&self, id: &str) -> Option<bool> {
        let answers = self.jails.iter().filter_map(|jail| jail.has_sandbox(id));
        answers.reduce(|one, other| one || other)
    }

    /// They share what makes them, so that a sandbox of one holds guests of all.
    fn open_sandbox(&self, limits: &Limits) -> Result<Arc<dyn Sandbox>, ToolError> {
        let none =
            || ToolError::new(ErrorCode::SandboxCreationFailed, "there is no jail to make a sandbox of");
        let mut failed = None;
        for jail in &self.jails {
            match jail.open_sandbox(limits) {
                Ok(sandbox) => return Ok(sandbox),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(none))
    }

    fn start<'a>(&'a self, spec: GuestSpec) -> BoxFuture<'a, Result<Box<dyn Guest>, ToolError>> {
        Box::pin(async move {
            let chosen = self.first(spec.level, spec.technology, |jail| jail.holds(&spec));
            let (jail, _) = chosen.map_err(|unavailable| match self.can_stage(&spec) {
                Err(why) if spec.writes != Writes::Live => why.error(),
                _ => ToolError::new(ErrorCode::SandboxCreationFailed, unavailable.to_string()),
            })?;
            jail.start(spec).await
        })
    }
}
