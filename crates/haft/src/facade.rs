//! An engine with everything wired.

use crate::{Builder, Engine, Error, Shutdown, config::Config, guards::policy_set, wiring};
use haft_core::Violation;
use haft_files::TakenBack;
use haft_guard::{Licensing, LivePolicy, PolicySet};
use haft_tools::commands::BackgroundCommands;
use std::{ops::Deref, path::PathBuf, sync::Arc};

/// The engine that runs calls, with everything it stands on. Cheap to clone.
///
/// It is an [`Engine`], so everything that an engine can be asked is a method of it.
///
/// ```
/// use haft::prelude::*;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let haft = Haft::builder().build()?;
/// let call = ToolCall::new("validate_content", json!({"content": "{\"a\": 1,}"}));
/// let result = haft.execute(call).await;
/// assert!(result.text().starts_with("invalid JSON: 1 problem"));
/// # Ok::<(), haft::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Haft {
    pub(crate) engine: Engine,
    pub(crate) taken_back: Arc<[TakenBack]>,
    pub(crate) missing_roots: Arc<[PathBuf]>,
    pub(crate) quarantined: Arc<[Violation]>,
    pub(crate) unsettled: Arc<[Unsettled]>,
    pub(crate) background: BackgroundCommands,
    #[cfg(feature = "mcp")]
    pub(crate) upstreams: haft_mcp::client::Upstreams,
    pub(crate) policy: Option<Arc<LivePolicy>>,
    pub(crate) licensing: Arc<Licensing>,
}

impl Haft {
    /// Puts one together. Without further words it has the built-in tools, keeps its records in memory, asks nobody
    /// (what needs approval does not run) and goes by the default [`ListPolicy`](crate::ListPolicy).
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Changes of files that an earlier process was making when it was killed, and that were taken back now.
    pub fn taken_back(&self) -> &[TakenBack] {
        &self.taken_back
    }

    /// Folders that the configuration allows and that were not there when this was built. Tools do not reach them.
    pub fn missing_roots(&self) -> &[PathBuf] {
        &self.missing_roots
    }

    /// Files that a program of a killed haft left to be run later, which were taken out of the way when this was built.
    pub fn quarantined(&self) -> &[Violation] {
        &self.quarantined
    }

    /// What staged commands changed and nobody applied or discarded; nothing where no command can be staged.
    pub fn change_sets(&self) -> Option<Arc<dyn haft_core::port::ChangeSets>> {
        self.engine.change_sets()
    }

    /// Staged commands of a killed haft, and whether what they changed was applied.
    pub fn unsettled(&self) -> &[Unsettled] {
        &self.unsettled
    }

    /// The commands that run in the background: [`end_session`](BackgroundCommands::end_session) ends those of a
    /// session. All of them end when the last clone of this is dropped.
    pub fn background_commands(&self) -> &BackgroundCommands {
        &self.background
    }

    /// The MCP servers that tools come from. Each is begun when one of its tools is first called; all of them end with
    /// a shutdown, and when the last clone of this is dropped.
    #[cfg(feature = "mcp")]
    pub fn upstreams(&self) -> &haft_mcp::client::Upstreams {
        &self.upstreams
    }

    /// The sandboxes: several calls that share limits, paths and hosts, and one end for everything in them. They end
    /// when their time is over, at a shutdown, and when the last clone of this is dropped.
    ///
    /// ```no_run
    /// use haft::{Limits, Request, SandboxSpec, prelude::*};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// haft::init(); // first in `main`, as everywhere where programs are run
    /// let haft = Haft::builder().files(haft::Folders::new("/work/project", "/var/lib/haft")).build()?;
    /// let sandboxes = haft.sandboxes();
    /// let limits = Limits { memory_bytes: Some(512 << 20), ..Limits::default() };
    /// let spec = SandboxSpec { limits, mounts: vec!["src".into()], ..SandboxSpec::default() };
    /// let sandbox = sandboxes.create(&haft::CallContext::owner(), spec).await?;
    ///
    /// let inside = sandboxes.enter(&haft::CallContext::owner(), &sandbox.id)?;
    /// for command in ["make", "make test"] {
    ///     let call = ToolCall::new("run_command", json!({"command": command}));
    ///     haft.execute(Request::new(call).context(inside.clone())).await;
    /// }
    /// println!("{:?}", sandboxes.status("local", &sandbox.id)?.used);
    /// sandboxes.destroy("local", &sandbox.id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sandboxes(&self) -> crate::Sandboxes<'_> {
        self.engine.sandboxes()
    }

    /// The policy that holds now; `None` where somebody brought one of another kind.
    pub fn policy(&self) -> Option<Arc<PolicySet>> {
        self.policy.as_ref().map(|policy| policy.now())
    }

    /// Lets the lists and rules of another configuration hold from the next call on; grants stay. Where they cannot be
    /// used, or somebody brought a policy of another kind, nothing changes. [`PolicyReload`](crate::PolicyReload) does
    /// this when the files change.
    pub fn reload_policy(&self, config: &Config) -> Result<(), Error> {
        let fixed = || Error::Policy("the policy of this program is not from a configuration".to_owned());
        let live = self.policy.as_ref().ok_or_else(fixed)?;
        let definitions = self.engine.definitions();
        let definitions = definitions.iter().map(|definition| &**definition);
        let set = policy_set(wiring::policy(config), config.policy.rules.clone(), definitions);
        live.replace(set.map_err(|problems| Error::Policy(problems.to_string()))?);
        Ok(())
    }

    /// How licence tiers are given here.
    pub fn licensing(&self) -> &Licensing {
        &self.licensing
    }

    /// The licence tier of a tenant now: for the contexts of its calls.
    ///
    /// ```
    /// assert_eq!(haft::Haft::builder().build()?.tier("local"), haft::Tier::Enterprise);
    /// # Ok::<(), haft::Error>(())
    /// ```
    pub fn tier(&self, tenant: &str) -> crate::Tier {
        self.licensing.tier(jiff::Timestamp::now(), tenant).0
    }

    /// A caller of that tenant and agent, without roles or permissions, on the [tier](Haft::tier) of its tenant.
    /// `CallContext::new` is on the lowest tier, Core, which keeps programs out that are not licensed to run them.
    ///
    /// ```
    /// let haft = haft::Haft::builder().build()?;
    /// assert_eq!(haft.caller("acme", "did:agent:7").tier, haft::Tier::Enterprise); // no licence authority
    /// assert_eq!(haft::CallContext::new("acme", "did:agent:7").tier, haft::Tier::Core);
    /// # Ok::<(), haft::Error>(())
    /// ```
    pub fn caller(&self, tenant: &str, agent: &str) -> crate::CallContext {
        crate::CallContext { tier: self.tier(tenant), ..crate::CallContext::new(tenant, agent) }
    }

    /// Ends in order, as [`Engine::shutdown`] does (sandboxes end with it), and then ends the commands in the
    /// background and the MCP servers.
    pub async fn shutdown(&self) -> Shutdown {
        let done = self.engine.shutdown().await;
        self.end_programs().await;
        done
    }

    /// Ends what runs beside the calls: commands in the background, and MCP servers.
    pub(crate) async fn end_programs(&self) {
        self.background.end_all().await;
        #[cfg(feature = "mcp")]
        self.upstreams.end_all().await;
    }

    /// Shuts down as `shutdown` does, without letting running calls end first.
    pub async fn shutdown_now(&self) -> Shutdown {
        let done = self.engine.shutdown_now().await;
        self.end_programs().await;
        done
    }

    /// The engine, for whatever wants to own one.
    pub fn into_engine(self) -> Engine {
        self.engine
    }
}

impl Deref for Haft {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl std::fmt::Debug for Haft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Haft").field("running", &self.engine.running()).finish_non_exhaustive()
    }
}

/// What became of the changes of a staged command whose haft was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Its call.
    pub execution_id: haft_core::ExecutionId,
    /// What the call did.
    pub summary: String,
    /// Whether its changes were applied: the whole set, or nothing of it.
    pub applied: bool,
}
