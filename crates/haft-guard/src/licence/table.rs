//! Every limit of every tier, in one table, and the one check.

use haft_core::{IsolationLevel, RoleSupport, SchemaValidation, SearchFilter, Tier};
use std::{fmt, time::Duration};

const TIERS: [Tier; 4] = Tier::ALL;
const MIB: u64 = 1 << 20;

/// Something that a licence must include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// A batch of so many calls.
    Batch(usize),
    /// So many calls at the same time.
    Parallel(usize),
    /// Progress and output as events, not only changes of state.
    FullProgress,
    /// A tool that comes with haft.
    BuiltIn(&'a str),
    /// So many tools of one's own.
    CustomTools(usize),
    /// Schemas checked so thoroughly.
    Schema(SchemaValidation),
    /// Isolation of this level.
    Isolation(IsolationLevel),
    /// A jail of one's own making.
    CustomSandbox,
    /// So much memory for a call, in bytes.
    Memory(u64),
    /// So much time on a core for a call.
    CpuTime(Duration),
    /// Rules of one's own about what a sandbox may.
    SecurityPolicies,
    /// Search by this.
    Search(SearchFilter),
    /// Records of side effects.
    SideEffects,
    /// Results that are kept for so long.
    Retention(Duration),
    /// The whole of an output that was cut.
    FullOutput,
    /// Roles.
    Roles(RoleSupport),
}

/// What a tier includes of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// At most so much.
    Most(u64),
    /// As much as there is.
    Unlimited,
    /// Not at all.
    No,
}

impl Allowance {
    fn includes(self, amount: u64) -> bool {
        match self {
            Allowance::Most(most) => amount <= most,
            Allowance::Unlimited => true,
            Allowance::No => amount == 0,
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowance::Most(most) => write!(f, "{most}"),
            Allowance::Unlimited => f.write_str("unlimited"),
            Allowance::No => f.write_str("no"),
        }
    }
}

/// One limit, for the four tiers in their order.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow {
    /// What it limits, for people.
    pub name: &'static str,
    /// What happens beyond it.
    pub acts: &'static str,
    /// Core, WriterPro, Teams, Enterprise.
    pub tiers: [Allowance; 4],
}

use Allowance::{Most, No, Unlimited};

const fn most(number: Option<usize>) -> Allowance {
    match number {
        Some(0) => No,
        Some(number) => Most(number as u64),
        None => Unlimited,
    }
}

const fn retention(tier: Tier) -> Allowance {
    match tier.longest_retention() {
        Some(Duration::ZERO) => No,
        Some(longest) => Most(longest.as_secs()),
        None => Unlimited,
    }
}

const fn yes_if(included: bool) -> Allowance {
    if included { Unlimited } else { No }
}

/// One row: the same question to each tier.
macro_rules! limit {
    ($name:literal, $acts:literal, |$tier:ident| $of:expr) => {
        LimitRow {
            name: $name,
            acts: $acts,
            tiers: {
                let mut tiers = [No; 4];
                let mut place = 0;
                while place < tiers.len() {
                    let $tier = TIERS[place];
                    tiers[place] = $of;
                    place += 1;
                }
                tiers
            },
        }
    };
}

/// The whole table. The numbers come from [`Tier`] itself, by which the engine goes, so that there is one number for
/// each.
///
/// Where the sources disagree: `Strict` from Teams on and `Restricted` in Enterprise, as the definition of levels has
/// it; rules for sandboxes from Teams on, as the table of tiers has it.
pub const LIMITS: &[LimitRow] = &[
    limit!("calls in a batch", "a larger batch or flow is refused whole", |tier| most(tier.max_batch())),
    limit!("calls at the same time", "batches and flows run with fewer at once, and say so", |tier| most(
        tier.max_parallelism()
    )),
    limit!("progress and output as events", "only changes of state are told", |tier| yes_if(
        tier.full_progress()
    )),
    limit!("tools of one's own", "one more is not added", |tier| most(tier.max_custom_tools())),
    limit!(
        "schemas of one's own tools (basic 0, advanced 1, custom 2)",
        "a tool whose schemas use more is not added; keywords of one's own do not exist, so `custom` allows no more than `advanced`",
        |tier| Most(tier.schema_validation() as u64)
    ),
    limit!(
        "isolation (none 0, standard 1, strict 2, restricted 3)",
        "a call that needs more is refused",
        |tier| Most(tier.max_isolation() as u64)
    ),
    limit!(
        "jails of one's own",
        "a call that would be held by a jail that a program brought is refused",
        |tier| yes_if(tier.allows_own_jails())
    ),
    LimitRow {
        name: "memory of a call, in bytes",
        acts: "a call that asks for more is refused; others are held to it",
        tiers: [Most(64 * MIB), Most(128 * MIB), Most(256 * MIB), Most(1024 * MIB)],
    },
    LimitRow {
        name: "time on a core of a call, in seconds",
        acts: "a call that asks for more is refused; others are held to it",
        tiers: [Most(30), Most(60), Most(300), Most(1800)],
    },
    limit!(
        "rules for sandboxes",
        "a sandbox with limits, paths and hosts of one's own is not made",
        |tier| yes_if(tier.allows_sandboxes())
    ),
    limit!(
        "search (by category 0, name 1, everything 2, custom 3)",
        "a search by more is refused; a filter of one's own is a program's, so `custom` allows no more than `everything`",
        |tier| Most(tier.search_filter() as u64)
    ),
    limit!("records of side effects", "results do not name what was changed", |tier| yes_if(
        tier.records_side_effects()
    )),
    limit!(
        "keeping of results beyond the session, in seconds",
        "older results are not shown any more, and go",
        |tier| retention(tier)
    ),
    limit!("the whole of an output that was cut", "what was cut is not kept", |tier| yes_if(
        tier.keeps_whole_outputs()
    )),
    limit!(
        "roles (basic 0, full 1, attributes 2)",
        "a role of one's own below full grants nothing; a rule that allows by agent or tenant is passed over",
        |tier| Most(tier.role_support() as u64)
    ),
];

/// The lowest tier that has a built-in. Those that are not named in a licence are in every tier, apart from those that
/// run programs: they need `Strict` isolation, which begins with Teams.
///
/// ```
/// use haft_core::Tier;
/// use haft_guard::built_in_tier;
/// assert_eq!(built_in_tier("read_file"), Tier::Core);
/// assert_eq!(built_in_tier("send_message"), Tier::Teams);
/// ```
pub fn built_in_tier(name: &str) -> Tier {
    match name {
        "send_message" | "create_entity" | "validate_content" => Tier::Teams,
        "run_command" | "start_command" | "execute_code" => Tier::Teams,
        _ => Tier::Core,
    }
}

/// What would be needed, in words for the caller who was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LicenceRefusal {
    /// What was asked for.
    pub what: String,
    /// The lowest tier that has it, where one has.
    pub needed: Option<Tier>,
    /// The tier that the caller has.
    pub has: Tier,
    /// What that includes of it.
    pub included: String,
}

impl fmt::Display for LicenceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LicenceRefusal { what, needed, has, included } = self;
        match needed {
            Some(needed) => {
                write!(
                    f,
                    "{what} needs the {needed:?} tier, and this licence is {has:?}, which includes {included}"
                )
            }
            None => write!(
                f,
                "{what} is more than any tier has; this licence is {has:?}, which includes {included}"
            ),
        }
    }
}

impl std::error::Error for LicenceRefusal {}

impl Need<'_> {
    /// The limit that it is about; none for built-ins, which have a tier of their own.
    pub fn limit(self) -> Option<&'static LimitRow> {
        row_of(self).and_then(|(row, _)| LIMITS.get(row))
    }
}

/// The row of the table that a need is about, and how much of it is needed.
fn row_of(need: Need<'_>) -> Option<(usize, u64)> {
    let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Some(match need {
        Need::Batch(calls) => (0, number(calls)),
        Need::Parallel(calls) => (1, number(calls)),
        Need::FullProgress => (2, 1),
        Need::BuiltIn(_) => return None,
        Need::CustomTools(tools) => (3, number(tools)),
        Need::Schema(level) => (4, level as u64),
        Need::Isolation(level) => (5, level as u64),
        Need::CustomSandbox => (6, 1),
        Need::Memory(bytes) => (7, bytes),
        Need::CpuTime(time) => (8, time.as_secs() + u64::from(time.subsec_nanos() > 0)),
        Need::SecurityPolicies => (9, 1),
        Need::Search(filter) => (10, filter as u64),
        Need::SideEffects => (11, 1),
        Need::Retention(time) => (12, time.as_secs()),
        Need::FullOutput => (13, 1),
        Need::Roles(roles) => (14, roles as u64),
    })
}

/// The one check: whether a tier includes something, and otherwise which one does.
///
/// ```
/// use haft_core::Tier;
/// use haft_guard::{Need, check_licence};
/// assert!(check_licence(Tier::Core, Need::Batch(5)).is_ok());
/// assert_eq!(
///     check_licence(Tier::Core, Need::Batch(6)).unwrap_err().to_string(),
///     "calls in a batch (6) needs the WriterPro tier, and this licence is Core, which includes 5"
/// );
/// ```
pub fn check_licence(tier: Tier, need: Need<'_>) -> Result<(), LicenceRefusal> {
    let Some((row, amount)) = row_of(need) else {
        let Need::BuiltIn(name) = need else { return Ok(()) };
        let needed = built_in_tier(name);
        let included = "it not".to_owned();
        return match needed <= tier {
            true => Ok(()),
            false => {
                Err(LicenceRefusal { what: format!("`{name}`"), needed: Some(needed), has: tier, included })
            }
        };
    };
    let row =
        LIMITS.get(row).copied().unwrap_or(LimitRow { name: "what is unknown", acts: "", tiers: [No; 4] });
    let of = |tier: Tier| row.tiers[tier as usize];
    if of(tier).includes(amount) {
        return Ok(());
    }
    let needed = TIERS.into_iter().find(|tier| of(*tier).includes(amount));
    let what = match of(Tier::Enterprise) {
        Unlimited if amount == 1 => row.name.to_owned(),
        _ => format!("{} ({amount})", row.name),
    };
    Err(LicenceRefusal { what, needed, has: tier, included: of(tier).to_string() })
}

/// How many calls may run at the same time. Below Teams parallel work falls back to one after the other, without an
/// error.
///
/// ```
/// use haft_core::Tier;
/// use haft_guard::allowed_parallelism;
/// assert_eq!(allowed_parallelism(Tier::Core, 4), 1);
/// assert_eq!(allowed_parallelism(Tier::Teams, 40), 10);
/// ```
pub fn allowed_parallelism(tier: Tier, asked: usize) -> usize {
    match LIMITS[1].tiers[tier as usize] {
        Most(most) => asked.min(usize::try_from(most).unwrap_or(usize::MAX)),
        Unlimited => asked,
        No => 1,
    }
    .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    /// Every tier × every limit: the most that is included, and what is not.
    #[test]
    fn every_limit_of_every_tier() {
        use IsolationLevel::{None as NoIsolation, Restricted, Standard, Strict};
        let day = |days: u64| Duration::from_secs(days * DAY);
        let secs = Duration::from_secs;
        // Each need with the lowest tier that has it; `None`: no tier has it.
        let (core, pro, teams, all) =
            (Some(Tier::Core), Some(Tier::WriterPro), Some(Tier::Teams), Some(Tier::Enterprise));
        let cases = [
            (Need::Batch(1), core),
            (Need::Batch(5), core),
            (Need::Batch(6), pro),
            (Need::Batch(20), pro),
            (Need::Batch(21), teams),
            (Need::Batch(50), teams),
            (Need::Batch(51), all),
            (Need::Batch(100_000), all),
            (Need::Parallel(1), core),
            (Need::Parallel(2), teams),
            (Need::Parallel(10), teams),
            (Need::Parallel(11), all),
            (Need::FullProgress, teams),
            (Need::CustomTools(0), core),
            (Need::CustomTools(1), pro),
            (Need::CustomTools(10), pro),
            (Need::CustomTools(11), teams),
            (Need::CustomTools(50), teams),
            (Need::CustomTools(51), all),
            (Need::Schema(SchemaValidation::Basic), core),
            (Need::Schema(SchemaValidation::Advanced), teams),
            (Need::Schema(SchemaValidation::Custom), all),
            (Need::Isolation(NoIsolation), core),
            (Need::Isolation(Standard), core),
            (Need::Isolation(Strict), teams),
            (Need::Isolation(Restricted), all),
            (Need::CustomSandbox, all),
            (Need::Memory(64 * MIB), core),
            (Need::Memory(64 * MIB + 1), pro),
            (Need::Memory(128 * MIB), pro),
            (Need::Memory(128 * MIB + 1), teams),
            (Need::Memory(256 * MIB), teams),
            (Need::Memory(256 * MIB + 1), all),
            (Need::Memory(1024 * MIB), all),
            (Need::Memory(1024 * MIB + 1), None),
            (Need::CpuTime(secs(30)), core),
            (Need::CpuTime(Duration::from_millis(30_001)), pro),
            (Need::CpuTime(secs(60)), pro),
            (Need::CpuTime(secs(61)), teams),
            (Need::CpuTime(secs(300)), teams),
            (Need::CpuTime(secs(301)), all),
            (Need::CpuTime(secs(1800)), all),
            (Need::CpuTime(secs(1801)), None),
            (Need::SecurityPolicies, teams),
            (Need::Search(SearchFilter::Category), core),
            (Need::Search(SearchFilter::Name), pro),
            (Need::Search(SearchFilter::Full), teams),
            (Need::Search(SearchFilter::Custom), all),
            (Need::SideEffects, pro),
            (Need::Retention(Duration::ZERO), core),
            (Need::Retention(day(7)), pro),
            (Need::Retention(day(8)), teams),
            (Need::Retention(day(30)), teams),
            (Need::Retention(day(31)), all),
            (Need::Retention(day(3650)), all),
            (Need::FullOutput, all),
            (Need::Roles(RoleSupport::Basic), core),
            (Need::Roles(RoleSupport::Full), teams),
            (Need::Roles(RoleSupport::Attributes), all),
        ];
        let mut rows_seen = vec![0; LIMITS.len()];
        for (need, lowest) in cases {
            rows_seen[row_of(need).unwrap().0] += 1;
            for tier in TIERS {
                let included = lowest.is_some_and(|lowest| tier >= lowest);
                let answer = check_licence(tier, need);
                assert_eq!(answer.is_ok(), included, "{tier:?} {need:?}");
                if let Err(refusal) = answer {
                    assert_eq!((refusal.needed, refusal.has), (lowest, tier), "{need:?}");
                }
            }
        }
        assert!(rows_seen.iter().all(|seen| *seen > 0), "a limit without a case: {rows_seen:?}");
    }

    /// The engine goes by the tier itself where it limits a program.
    #[test]
    fn the_engine_and_the_table_have_the_same_numbers() {
        for tier in [Tier::Core, Tier::WriterPro, Tier::Teams] {
            let limits = tier.limits();
            let (memory, time) = (limits.memory_bytes.unwrap(), limits.cpu_time.unwrap());
            assert!(check_licence(tier, Need::Memory(memory)).is_ok());
            assert!(check_licence(tier, Need::Memory(memory + 1)).is_err());
            assert!(check_licence(tier, Need::CpuTime(time)).is_ok());
            assert!(check_licence(tier, Need::CpuTime(time + Duration::from_secs(1))).is_err());
        }
    }

    #[test]
    fn built_ins_by_tier() {
        let core = ["read_file", "write_file", "search_knowledge", "web_fetch", "execute_ckvs_query"];
        let teams = ["send_message", "create_entity", "validate_content"];
        for tier in TIERS {
            for name in core {
                assert!(check_licence(tier, Need::BuiltIn(name)).is_ok(), "{tier:?} {name}");
            }
            for name in teams {
                assert_eq!(
                    check_licence(tier, Need::BuiltIn(name)).is_ok(),
                    tier >= Tier::Teams,
                    "{tier:?} {name}"
                );
            }
        }
        assert_eq!(
            check_licence(Tier::Core, Need::BuiltIn("send_message")).unwrap_err().to_string(),
            "`send_message` needs the Teams tier, and this licence is Core, which includes it not"
        );
    }

    #[test]
    fn parallel_work_falls_back() {
        let expected = [(Tier::Core, 1), (Tier::WriterPro, 1), (Tier::Teams, 10), (Tier::Enterprise, 64)];
        for (tier, expected) in expected {
            assert_eq!(allowed_parallelism(tier, 64), expected);
            assert_eq!(allowed_parallelism(tier, 0), 1);
        }
    }
}
