//! The five stages: plan, approve, schedule, run, finish, and the executor that takes a call through them.
//!
//! Start reading at `pipeline/executor.rs`: it is the picture of the architecture page, in code. A module imports only
//! what is lower in the list of `tests/arrows.rs`.

mod adaptive;
mod approvals;
mod engine;
mod events;
mod flows;
mod inner;
mod live_calls;
mod metrics;
mod panic_guard;
mod pipeline;
mod ports;
mod redaction;
mod registry;
mod request;
mod sandboxes;
mod schema;
mod settings;
mod stats;
mod task_table;
mod tasks;
mod telemetry;
mod view;

pub use adaptive::AdaptiveTimeout;
pub use approvals::{
    Answered, ApprovalError, Approvals, GrantTime, LONGEST_GRANT, OpenApprovals, Remember, Reply, WhichOffer,
    standing,
};
pub use engine::{
    Engine, EngineBuilder, EngineStats, Executing, Registration, Sandboxes, Shutdown, Tools, ToolsPart,
    WeakEngine,
};
pub use events::{EventPosition, EventStream, NoPosition, Observer};
pub use flows::{FlowError, FlowRequest, FlowResult, FlowStatus, FlowSummary, FlowTool, NodeResult};
pub use haft_core::{Quota, RateLimit, RateScope};
pub use inner::Target;
pub use live_calls::{PendingCall, SubmitError};
pub use pipeline::{
    preview::{Plan, PlanDecision, Preview},
    schedule::{
        breaker::{Breaker, BreakerStats},
        cache::{CacheStats, ResultCache},
        lanes::{LaneStats, Lanes, TenantStats},
        quota::Quotas,
        repeat::RepeatGuard,
    },
};
pub use registry::{RegisterError, ToolQuery, ToolsEvent};
pub use request::{BatchRequest, Request};
pub use sandboxes::{SandboxSpec, SandboxStatus};
pub use settings::{Settings, TaskSettings};
pub use tasks::{TaskOptions, Tasks};
