//! How a call or a batch is to be carried out.

use crate::{
    CommandWrites, ErrorCode, ExecutionId, IsolationLevel, IsolationTechnology, Limits, ModelBudget,
    iso_duration,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often haft retries a call, after which errors, and how long it waits before.
///
/// ```
/// assert_eq!(haft_core::Retry::default().max_retries, 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts after the first one; 0 stops retries.
    pub max_retries: u32,
    /// The first wait; it doubles with each retry, with full jitter.
    #[serde(with = "iso_duration")]
    #[schemars(with = "String")]
    pub base: Duration,
    /// After these errors and no others, also where the error table does not call them retryable; where empty, after
    /// those that it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<ErrorCode>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { max_retries: 2, base: Duration::from_secs(1), on: Vec::new() }
    }
}

/// Whether a stored result may answer a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CacheUse {
    /// Where the tool says that it may.
    #[default]
    Allowed,
    /// Never read, but written.
    Refresh,
    /// Neither read nor written.
    Off,
}

/// How one call is to be carried out. The default asks for nothing special.
///
/// ```
/// use haft_core::CallOptions;
/// use std::time::Duration;
/// let options = CallOptions { timeout: Some(Duration::from_secs(5)), ..CallOptions::default() };
/// assert_eq!(serde_json::to_string(&options).unwrap(), r#"{"timeout":"PT5S"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CallOptions {
    /// The id to use; made up where absent. For a batch it names the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The deadline of the call, with all its attempts and the waits between them. Where absent: the tool's
    /// `defaultTimeout`, else the `maxExecutionTime` that it states, else the default. Above the tool's maximum it is
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_duration::option")]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Duration>,
    /// Whether a person sits in front of the call and ends it when they like: then it has no deadline but `timeout`, and
    /// the maximum of its tool does not count. Only a program that embeds haft can say so; it is no part of the JSON.
    #[serde(skip)]
    pub attended: bool,
    /// How long one attempt may take. An attempt that takes longer is stopped, and retried while the deadline allows.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_duration::option")]
    #[schemars(with = "Option<String>")]
    pub attempt_timeout: Option<Duration>,
    /// How long a tool may stay silent; progress and output restart it, the deadline stays.
    #[serde(skip_serializing_if = "Option::is_none", with = "iso_duration::option")]
    #[schemars(with = "Option<String>")]
    pub idle_timeout: Option<Duration>,
    /// Ask a person even where the tool and the policy do not.
    #[serde(skip_serializing_if = "is_false")]
    pub require_confirmation: bool,
    /// At least this much containment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationLevel>,
    /// The jail that holds its programs, and no other; it has to deliver the level.
    #[serde(skip_serializing_if = "IsolationTechnology::is_auto")]
    pub isolation_technology: IsolationTechnology,
    /// Where its command writes. Where absent, as it is configured; `live` in place of a configured `staged` is asked
    /// about before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<CommandWrites>,
    /// Limits for this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<Limits>>,
    /// Other retries than the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// 1 (last) to 10 (first); 5 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Whether a stored result may answer.
    #[serde(skip_serializing_if = "is_default")]
    pub cache: CacheUse,
    /// Return at once with a task id and go on without the caller.
    #[serde(skip_serializing_if = "is_false")]
    pub detached: bool,
    /// Whether `"5"` becomes `5` where the schema wants an integer and nothing is lost; the result says so. Where absent, as
    /// it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coerce: Option<bool>,
    /// Whether a model reads the result, and how much of it it can take.
    #[serde(skip_serializing_if = "is_default")]
    pub model: ModelBudget,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How the calls of a batch follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// One after the other, in call order.
    #[default]
    Sequential,
    /// All at once.
    Parallel,
    /// All at once, but for calls that touch what another one changes.
    Smart,
}

/// Where a batch comes from, which decides by what its size is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchOrigin {
    /// One answer of a model: calls over the limit are refused one by one.
    Model,
    /// A person or a program: over the licence tier's limit the whole batch is refused.
    #[default]
    Client,
}

/// How a batch is to be carried out.
///
/// ```
/// use haft_core::{BatchOptions, Strategy};
/// let options = BatchOptions::default();
/// assert!(options.continue_on_failure);
/// assert_eq!(options.strategy, Strategy::Sequential);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BatchOptions {
    /// The options of every call in it. An execution id there names the batch.
    pub call: CallOptions,
    /// How the calls follow each other.
    pub strategy: Strategy,
    /// Whether the rest runs after a call that did not succeed.
    pub continue_on_failure: bool,
    /// Calls at once, where the strategy overlaps any.
    pub max_parallelism: usize,
    /// Where it comes from.
    pub origin: BatchOrigin,
}

impl BatchOptions {
    /// Calls at once where nobody says how many.
    pub const USUALLY_AT_ONCE: usize = 5;
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            call: CallOptions::default(),
            strategy: Strategy::Sequential,
            continue_on_failure: true,
            max_parallelism: BatchOptions::USUALLY_AT_ONCE,
            origin: BatchOrigin::Client,
        }
    }
}
