//! Policy: what runs, what is asked, what is denied.
//!
//! [`ListPolicy`] has the lists and the mode, [`Rule`]s say more, [`Grant`](crate::Grant)s remember what a person
//! agreed to. A [`PolicySet`] takes all of them and decides in one order; [`PolicySet::explain`] shows how.

mod beside;
mod conditions;
mod explain;
mod file;
mod index;
mod lists;
mod live;
mod paths;
mod rule;
mod set;

pub use conditions::{Access, ArgumentPattern, Conditions};
pub(crate) use conditions::{command_text, host_allowed};
pub use explain::{Considered, Explanation, RuleOutcome};
pub use file::{PolicyProblem, PolicyProblems, read_policy_section, read_rules};
pub use lists::{ListChanges, ListPolicy};
pub use live::LivePolicy;
pub use rule::{Effect, ExampleCount, Rule};
pub use set::PolicySet;
