//! haft runs the tools that an AI agent asks for: it checks a call, asks a person where policy says so, contains
//! it, runs it, and answers it exactly once.
//!
//! A tool is a struct for its arguments and an async function; a call is its name with arguments as JSON:
//!
//! ```
//! use haft::prelude::*;
//!
//! /// Counts the words of a text.
//! #[derive(Deserialize, JsonSchema)]
//! struct WordCount {
//!     /// The text.
//!     text: String,
//! }
//!
//! async fn word_count(args: WordCount, _cx: ToolCtx) -> Result<u64, ToolError> {
//!     Ok(args.text.split_whitespace().count() as u64)
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let haft = Haft::builder().tool(tool_fn("word_count", word_count).read_only()).build()?;
//! let result = haft.execute(ToolCall::new("word_count", json!({"text": "to be or not"}))).await;
//! assert_eq!(result.output, Some(json!(4)));
//!
//! // What is wrong comes back as a result, in words that a model can act on.
//! let result = haft.execute(ToolCall::new("word_count", json!({"txt": "to be"}))).await;
//! assert_eq!(result.status, Status::ValidationError);
//! # Ok::<(), haft::Error>(())
//! # }).unwrap();
//! ```
//!
//! # What is where
//!
//! - [`Haft`]: an engine with everything wired. It is an [`Engine`]: [`execute`](Engine::execute),
//!   [`execute_batch`](Engine::execute_batch), [`plan`](Engine::plan), [`observe`](Engine::observe),
//!   [`cancel`](Engine::cancel), [`shutdown`](Engine::shutdown).
//! - [`ask_with`] and [`ask_with_async`]: a function of one's own that is asked before a call with side effects runs.
//! - [`config`]: `haft.toml`, for programs that want the same files as the command line.
//! - the crate `haft-cli`: the command line, for programs that add tools of their own to it.
//!
//! # The derives
//!
//! `#[derive(Deserialize)]` needs `serde` among a program's own dependencies, or `#[serde(crate = "haft::serde")]` on
//! the type. `#[derive(JsonSchema)]` finds [`schemars`] through the [`prelude`]; without it, the program depends on
//! `schemars` 1 itself or writes `#[schemars(crate = "haft::schemars")]`.

mod admission;
mod approver;
pub mod assembly;
mod builder;
#[cfg(target_os = "linux")]
mod change_sets;
mod commands;
pub mod doctor;
mod error;
mod facade;
mod file_worker;
mod grants;
mod guards;
#[cfg(feature = "durable")]
mod lazy_store;
#[cfg(test)]
mod only_tightens;
#[cfg(feature = "otlp")]
mod otlp;
pub mod prelude;
mod wiring;
mod workspace;

pub use approver::{AskWith, AskWithAsync, ask_with, ask_with_async};
pub use builder::Builder;
pub use error::Error;
pub use facade::{Haft, Unsettled};
pub use file_worker::init;
pub use grants::StoredGrants;
pub use haft_files::TakenBack;
#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError, OtlpOptions};
pub use wiring::{DeclaredTool, Folders};

pub use haft_config as config;

pub use guards::{PolicyReload, Reloaded};
pub use haft_core::{
    ApprovalId, ApprovalMode, ApprovalRequest, Arguments, AskCommands, Asker, AttemptRecord, BatchId,
    BatchOptions, BatchOrigin, BatchSummary, CacheUse, CallContext, CallOptions, Category, ChangeSummary,
    ChangesState, Channel, CommandInput, CommandOutput, CommandSource, CommandWrites, Constraints,
    ContentPart, Decision, DefinitionProblem, ErrorCode, ErrorInfo, Event, EventPayload, ExecutionId,
    FailedTry, Footprint, FromCache, GrantOffer, IsolationLevel, LONGEST_TTL, Limits, McpSource, Metrics,
    ModelBudget, OutputStream, ParentGrant, Problem, Resource, ResultMetadata, Retry, Risk, Scheduling,
    SettledChanges, SideEffect, SideEffectKind, Source, Status, Strategy, Task, TaskId, TaskKey, TaskPage,
    TaskProgress, TaskQuery, TaskState, Tier, ToolCall, ToolDefinition, ToolError, ToolOutput, ToolResult,
    ToolsMode, port, text,
};
pub use haft_engine::{
    AdaptiveTimeout, Answered, ApprovalError, Approvals, BatchRequest, Breaker, BreakerStats, CacheStats,
    Engine, EngineStats, FlowError, FlowRequest, FlowResult, FlowStatus, FlowSummary, FlowTool, GrantTime,
    LaneStats, Lanes, NodeResult, Observer, OpenApprovals, PendingCall, Plan, PlanDecision, Preview, Quota,
    Quotas, RateLimit, RateScope, RegisterError, Registration, Remember, RepeatGuard, Reply, Request,
    ResultCache, SandboxSpec, SandboxStatus, Sandboxes, Settings, Shutdown, SubmitError, Target, TaskOptions,
    TaskSettings, Tasks, TenantStats, ToolQuery, Tools, ToolsEvent, ToolsPart, WeakEngine, WhichOffer,
};
pub use haft_flow as flow;
pub use haft_guard::{
    GrantSource, KnownSecrets, Licence, Licensing, ListPolicy, MemoryGrants, PermissionStrings, Permissions,
    PolicySet, PublicKey, Role, Secrets, TrustedKeys,
    policy::{Explanation, Rule, read_rules},
};
pub use haft_sdk::{
    Args, CancelReason, FnTool, IntoToolOutput, Json, Prepared, Tool, ToolCtx, ToolFuture, Typed, TypedTool,
    capability, testing, tool_fn, typed,
};
#[cfg(feature = "postgres")]
pub use haft_store::PostgresPlace;
#[cfg(feature = "durable")]
pub use haft_store::{
    Archived, AuditHead, Bad, Durability, DurableStore, ExportFormat, Gone, HeadSink, Keep,
    Options as StoreOptions, RetentionRule, Verified,
};
pub use haft_store::{FileRegistrations, MemoryStore, Retention};
pub use haft_tools::{
    CommandTool, CommandToolSettings, builtin as builtin_tools,
    commands::{BackgroundCommands, DeniedVariables, Variables},
};

pub use jiff;
pub use schemars;
pub use serde;
pub use serde_json;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
