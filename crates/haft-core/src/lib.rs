//! The vocabulary of haft.
//!
//! Everything that two rooms of the house talk about is defined here once: tool [definitions](ToolDefinition),
//! [calls](ToolCall), [contexts](CallContext), [options](CallOptions), [results](ToolResult), the
//! [error table](ErrorCode), [events](Event), [limits](Limits), [footprints](Footprint), and the
//! [ports](port) behind which stores, jails, policies and people stand.
//!
//! Pure data and pure functions: no I/O, no async runtime, no clock of its own.

mod agent;
mod approval;
mod approval_view;
mod batch_summary;
mod call;
mod change_summary;
mod checks;
mod command_source;
mod context;
mod definition;
mod definition_check;
mod error;
mod event;
mod footprint;
mod http_source;
pub mod id_prefix;
mod ids;
pub mod iso_duration;
pub mod json;
pub mod json_fit;
mod licence;
mod limits;
mod mcp_source;
mod modes;
mod options;
mod output;
mod parameters;
pub mod port;
mod rates;
mod result;
pub mod suggest;
mod task;
pub mod text;
mod tightening;

pub use agent::AgentDefinition;
pub use approval::{ApprovalRequest, Asker, Decision, GrantOffer};
pub use approval_view::{ApprovalDetail, ApprovalView, ViewKind, ViewLine};
pub use batch_summary::BatchSummary;
pub use call::{Arguments, ToolCall};
pub use change_summary::{ChangeSummary, ChangedEntry, ChangesState, EntryChange, EntryKind, SettledChanges};
pub use checks::{BadOption, COUNTABLE, LONGEST_NAME, LONGEST_REASON, check_name, check_reason};
pub use command_source::{CommandInput, CommandOutput, CommandSource, Touched};
pub use context::{CallContext, ParentGrant, Tier};
pub use definition::{
    Annotations, Category, Constraints, IsolationLevel, IsolationTechnology, Risk, Source, ToolDefinition,
};
pub use definition_check::DefinitionProblem;
pub use error::{ErrorCode, Problem, Status, ToolError};
pub use event::{Event, EventPayload, OutputStream};
pub use footprint::{Footprint, Resource};
pub use http_source::{HttpBody, HttpMethod, HttpSource};
pub use ids::{ApprovalId, BatchId, ExecutionId, OutputHandle, TaskId};
pub use licence::{RoleSupport, SchemaValidation, SearchFilter};
pub use limits::{Limits, ModelBudget, TokenEstimate, UNKNOWN_BUDGET_BYTES};
pub use mcp_source::McpSource;
pub use modes::{ApprovalMode, AskCommands, Channel, CommandWrites, ToolsMode, UnknownChannel};
pub use options::{BatchOptions, BatchOrigin, CacheUse, CallOptions, Retry, Strategy};
pub use output::{ContentPart, SideEffect, SideEffectKind, ToolOutput};
pub use parameters::{Parameter, ParameterType, Parameters};
pub use rates::{Quota, RateLimit, RateScope};
pub use result::{
    AttemptRecord, Enforcement, ErrorInfo, FailedTry, FromCache, Metrics, ResultMetadata, Scheduling,
    ToolResult, Violation,
};
pub use task::{LONGEST_TTL, Task, TaskKey, TaskPage, TaskProgress, TaskQuery, TaskState};
pub use tightening::Tightening;
