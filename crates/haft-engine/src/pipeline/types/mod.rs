//! What travels through the stages: data, and small methods that decide nothing for a stage.

mod attempt;
mod batch;
mod call;
mod cancelled;
pub(crate) mod containment;
mod facts;
mod planned;
mod record;

pub(crate) use attempt::Attempt;
pub(crate) use batch::Batch;
pub(crate) use call::{Arrival, CallState, OutputClaim, TaskOrigin, principal};
pub(crate) use cancelled::{cancelled, cancelled_with, shutting_down, unless_cancelled};
pub(crate) use containment::Containment;
pub(crate) use facts::{AttemptFacts, Bounds, Facts, StagedRun, StagingFacts};
pub(crate) use planned::{
    AttemptOutcome, Decided, EarlyExit, NeedsApproval, Planned, Ready, RunOutcome, Start,
};
pub(crate) use record::CallRecord;
