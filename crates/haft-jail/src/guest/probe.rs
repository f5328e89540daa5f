//! Whether walls stand here: found out by putting a guest behind them and letting it try.

use super::{
    host::Inner,
    plan::{self, Walls},
};
use haft_core::{Enforcement, IsolationLevel, port::Unavailable};
use std::sync::Arc;

pub(super) fn checked(host: &Arc<Inner>, walls: Walls, level: IsolationLevel) -> Result<Enforcement, Unavailable> {
    plan::enforcement(level, walls, &host.facts)
}
