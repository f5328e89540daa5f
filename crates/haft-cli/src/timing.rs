//! How long calls may take and how often they are retried, as one says it on the command line.

use super::{setup::Setup, words};
use clap::Args;
use haft::{CallOptions, Retry};
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub(super) struct Timing {
    /// Timeout of a call with all its attempts, such as 5s, 2m or PT5S [default: the tool's]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(super) timeout: Option<Duration>,
    /// Timeout of a single attempt; one that takes longer is retried
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(super) attempt_timeout: Option<Duration>,
    /// Retries of a call that fails and may run again; 0 stops them [default: scheduling.retry]
    #[arg(long, value_name = "N", value_parser = words::retries)]
    pub(super) retries: Option<u32>,
}

impl Timing {
    /// These options, with what was said about time.
    pub(super) fn options(&self, setup: &Setup, options: CallOptions) -> CallOptions {
        let base = Duration::from_millis(setup.resolved.config.scheduling.retry.base_ms);
        CallOptions {
            timeout: self.timeout,
            attempt_timeout: self.attempt_timeout,
            retry: self.retries.map(|retries| Retry::times(retries, base)),
            ..options
        }
    }
}
