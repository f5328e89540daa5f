//! Who asks, and with which means.

use crate::{IsolationLevel, IsolationTechnology, Limits, checks::is_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

/// A licence tier. Each includes those before it.
///
/// ```
/// use haft_core::Tier;
/// assert!(Tier::Core < Tier::Enterprise);
/// assert_eq!(Tier::Core.max_batch(), Some(5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tier {
    /// The free one.
    #[default]
    Core,
    /// One author.
    WriterPro,
    /// A team.
    Teams,
    /// Without limits.
    Enterprise,
}

impl Tier {
    /// How many calls a batch may have; `None` for any number.
    pub const fn max_batch(self) -> Option<usize> {
        match self {
            Tier::Core => Some(5),
            Tier::WriterPro => Some(20),
            Tier::Teams => Some(50),
            Tier::Enterprise => None,
        }
    }

    /// How many tools may be added; `None` for any number.
    pub const fn max_custom_tools(self) -> Option<usize> {
        match self {
            Tier::Core => Some(0),
            Tier::WriterPro => Some(10),
            Tier::Teams => Some(50),
            Tier::Enterprise => None,
        }
    }

    /// How many calls of a batch may run at once; `None` for any number. One means that batches are sequential.
    ///
    /// ```
    /// use haft_core::Tier;
    /// assert_eq!(Tier::WriterPro.max_parallelism(), Some(1));
    /// assert_eq!(Tier::Teams.max_parallelism(), Some(10));
    /// ```
    pub const fn max_parallelism(self) -> Option<usize> {
        match self {
            Tier::Core | Tier::WriterPro => Some(1),
            Tier::Teams => Some(10),
            Tier::Enterprise => None,
        }
    }

    /// The strictest isolation that it includes.
    ///
    /// ```
    /// use haft_core::{IsolationLevel, Tier};
    /// assert_eq!(Tier::Core.max_isolation(), IsolationLevel::Standard);
    /// ```
    pub const fn max_isolation(self) -> IsolationLevel {
        match self {
            Tier::Core | Tier::WriterPro => IsolationLevel::Standard,
            Tier::Teams => IsolationLevel::Strict,
            Tier::Enterprise => IsolationLevel::Restricted,
        }
    }

    /// Memory and time on a core that a call may have. The highest tier, which the owner of a machine has without any
    /// licence, is held to the configuration alone.
    ///
    /// ```
    /// use haft_core::Tier;
    /// assert_eq!(Tier::Core.limits().memory_bytes, Some(64 << 20));
    /// assert_eq!(Tier::Enterprise.limits().memory_bytes, None);
    /// ```
    pub fn limits(self) -> Limits {
        let limits = |mebibytes: u64, seconds: u64| Limits {
            memory_bytes: Some(mebibytes << 20),
            cpu_time: Some(Duration::from_secs(seconds)),
            ..Limits::default()
        };
        match self {
            Tier::Core => limits(64, 30),
            Tier::WriterPro => limits(128, 60),
            Tier::Teams => limits(256, 300),
            Tier::Enterprise => Limits::default(),
        }
    }

    /// Whether results name what was changed.
    pub const fn records_side_effects(self) -> bool {
        !matches!(self, Tier::Core)
    }

    /// Whether results are kept beyond the session.
    pub const fn keeps_results(self) -> bool {
        !matches!(self, Tier::Core)
    }

    /// Whether the whole of an output that was cut can be read.
    pub const fn keeps_whole_outputs(self) -> bool {
        matches!(self, Tier::Enterprise)
    }

    /// Whether progress and output are part of the events, or only changes of state.
    pub const fn full_progress(self) -> bool {
        matches!(self, Tier::Teams | Tier::Enterprise)
    }
}

/// What the sandbox around a call grants: nothing inside it may have more.
///
/// ```
/// use haft_core::ParentGrant;
/// let grant: ParentGrant = serde_json::from_str(r#"{"sandboxId": "sb-1", "hosts": ["example.com"]}"#).unwrap();
/// assert_eq!(grant.hosts, ["example.com"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParentGrant {
    /// The sandbox around the call.
    pub sandbox_id: String,
    /// The sandbox's limits.
    #[serde(default)]
    pub limits: Limits,
    /// Paths that it may reach.
    #[serde(default)]
    pub mounts: Vec<String>,
    /// Hosts that it may reach.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The jail of the programs in it, where one was chosen.
    #[serde(default, skip_serializing_if = "IsolationTechnology::is_auto")]
    pub isolation_technology: IsolationTechnology,
}

/// Who makes a call: tenant, agent, session, user and what they may do.
///
/// ```
/// use haft_core::{CallContext, Tier};
/// let owner = CallContext::owner();
/// assert_eq!((&*owner.tenant, owner.tier), ("local", Tier::Enterprise));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallContext {
    /// Whose data it is about. No tenant ever sees another's.
    pub tenant: Arc<str>,
    /// The agent that calls: a DID or any other text.
    pub agent: Arc<str>,
    /// One run of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The conversation, within which files that were read are remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Arc<str>>,
    /// The person behind the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Roles of that person or agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Permissions beyond those of the roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// The sandbox around the call, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentGrant>,
    /// Folders that the call keeps to, of those that are granted: absolute paths. `None` is all of them; an empty list
    /// is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
    /// The licence tier.
    #[serde(default)]
    pub tier: Tier,
    /// Ties calls of one request together across systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// Anything else, passed through to the tool.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl CallContext {
    /// A caller of that tenant and agent, without roles or permissions, on the lowest tier.
    pub fn new(tenant: impl Into<Arc<str>>, agent: impl Into<Arc<str>>) -> Self {
        CallContext {
            tenant: tenant.into(),
            agent: agent.into(),
            session: None,
            conversation: None,
            user: None,
            roles: Vec::new(),
            permissions: Vec::new(),
            parent: None,
            roots: None,
            tier: Tier::Core,
            correlation_id: None,
            extra: Map::new(),
        }
    }

    /// The person whose machine this is: local use, every permission, no licence limit.
    pub fn owner() -> Arc<Self> {
        static OWNER: LazyLock<Arc<CallContext>> = LazyLock::new(|| {
            Arc::new(CallContext {
                permissions: vec!["*".to_owned()],
                tier: Tier::Enterprise,
                ..CallContext::new("local", "owner")
            })
        });
        Arc::clone(&OWNER)
    }

    /// What is wrong with it, if anything: the first check of every plan.
    ///
    /// ```
    /// use haft_core::CallContext;
    /// assert!(CallContext::new("acme", "did:agent:7").check().is_ok());
    /// assert_eq!(CallContext::new("", "a").check(), Err("the context names no tenant"));
    /// ```
    pub fn check(&self) -> Result<(), &'static str> {
        if self.tenant.is_empty() {
            Err("the context names no tenant")
        } else if self.agent.is_empty() {
            Err("the context names no agent")
        } else if ![Some(&self.tenant), Some(&self.agent), self.user.as_ref()]
            .into_iter()
            .flatten()
            .all(|name| is_name(name))
        {
            Err("tenant, agent and user must be 1 to 255 characters, none of which controls anything")
        } else if self.parent.as_ref().is_some_and(|parent| parent.sandbox_id.is_empty()) {
            Err("the context has a parent without a sandbox id")
        } else {
            Ok(())
        }
    }
}
