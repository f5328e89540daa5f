//! The five stages: plan, approve, schedule, run, finish, and the executor that walks a call through them.
//!
//! Start reading at `executor.rs`: it is the picture of the architecture page, in code.

mod approve;
mod attempt;
mod builder;
mod contained;
mod containment;
mod engine;
mod event_log;
mod examine;
mod executions;
mod executor;
mod finish;
mod flow;
mod follow;
mod frame;
mod journal;
mod metrics;
mod parked;
mod plan;
mod ports;
mod preview;
mod recheck;
mod redaction;
mod registry;
mod request;
mod run;
mod sandboxes;
mod schedule;
mod schema;
mod settings;
mod spool;
mod stats;
mod tasks;
mod telemetry;
mod tools;

pub use builder::EngineBuilder;
pub use engine::{Engine, Shutdown, Target, WeakEngine};
pub use event_log::Observer;
pub use flow::{FlowError, FlowRequest, FlowResult, FlowStatus, FlowSummary, FlowTool, NodeResult};
pub use parked::{PendingCall, SubmitError};
pub use preview::{Plan, PlanDecision, Preview};
pub use registry::{RegisterError, ToolQuery};
pub use request::{BatchRequest, Request};
pub use sandboxes::{SandboxSpec, SandboxStatus, Sandboxes};
pub use schedule::{
    adaptive::AdaptiveTimeout,
    breaker::{Breaker, BreakerStats},
    cache::{CacheStats, ResultCache},
    lanes::{LaneStats, Lanes, TenantStats},
    quota::{Quota, Quotas},
    rate::{RateLimit, RateScope},
    repeat::RepeatGuard,
    statistics::EngineStats,
};
pub use settings::Settings;
pub use tasks::{TaskOptions, TaskSettings, Tasks};
pub use tools::{Registration, Tools, ToolsEvent};
