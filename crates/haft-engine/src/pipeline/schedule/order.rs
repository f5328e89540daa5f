//! Which calls of a batch must wait for which. Decisions only; nothing runs here.

use haft_core::{Footprint, Resource, Strategy, Tier};

/// What is known of a call when the order is made.
pub(crate) enum Step<'a> {
    /// It runs, and touches that.
    Runs { footprint: &'a Footprint, has_side_effects: bool },
    /// It runs nothing, but waits for the call at that place.
    Follows(usize),
    /// It runs nothing.
    Idle,
}

/// For each call, the earlier calls that must have ended before it starts.
pub(crate) fn dependencies(strategy: Strategy, steps: &[Step<'_>]) -> Vec<Vec<usize>> {
    let mut writers: Vec<(usize, Touch<'_>)> = Vec::new();
    let mut readers: Vec<(usize, Touch<'_>)> = Vec::new();
    let mut all = Vec::with_capacity(steps.len());
    for (place, step) in steps.iter().enumerate() {
        let mut waits_for = Vec::new();
        match step {
            Step::Idle => {}
            Step::Follows(leader) => waits_for.push(*leader),
            Step::Runs { .. } if strategy != Strategy::Smart => {}
            Step::Runs { footprint, has_side_effects } => {
                let mine = Touch::of(footprint, *has_side_effects);
                let conflicting = |(_, other): &&(usize, Touch<'_>)| mine.conflicts_with(other);
                waits_for.extend(writers.iter().filter(conflicting).map(|(place, _)| *place));
                // Two that only read never conflict, and most calls only read.
                if mine.writes() {
                    waits_for.extend(readers.iter().filter(conflicting).map(|(place, _)| *place));
                    writers.push((place, mine));
                } else {
                    readers.push((place, mine));
                }
            }
        }
        all.push(waits_for);
    }
    all
}

/// Whether two calls must not run at the same time; each with what it touches and whether it has side effects.
pub(crate) fn conflict(one: (&Footprint, bool), other: (&Footprint, bool)) -> bool {
    Touch::of(one.0, one.1).conflicts_with(&Touch::of(other.0, other.1))
}

/// What a call touches, as the order sees it.
enum Touch<'a> {
    /// Nobody knows what it changes: it runs alone.
    All,
    These(&'a Footprint),
}

impl<'a> Touch<'a> {
    fn of(footprint: &'a Footprint, has_side_effects: bool) -> Self {
        let says_nothing = footprint.reads.is_empty() && footprint.writes.is_empty();
        let writes_anything = footprint.writes.contains(&Resource::Anything);
        match writes_anything || (has_side_effects && says_nothing) {
            true => Touch::All,
            false => Touch::These(footprint),
        }
    }

    fn writes(&self) -> bool {
        match self {
            Touch::All => true,
            Touch::These(footprint) => !footprint.writes.is_empty(),
        }
    }

    fn conflicts_with(&self, other: &Touch<'_>) -> bool {
        match (self, other) {
            (Touch::All, _) | (_, Touch::All) => true,
            (Touch::These(mine), Touch::These(theirs)) => mine.conflicts_with(theirs),
        }
    }
}

/// How a batch is carried out in the end, with a note where that is less than was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BatchPlan {
    pub(crate) strategy: Strategy,
    pub(crate) at_once: usize,
    pub(crate) note: Option<String>,
}

/// What was asked for, within what the licence and the configuration allow: whether calls may overlap at all, and the
/// narrowest lane with its name.
pub(crate) fn batch_plan(
    asked: Strategy,
    at_once: usize,
    tier: Tier,
    may_overlap: bool,
    lane: Option<(usize, &'static str)>,
) -> BatchPlan {
    let one_by_one = |note| BatchPlan { strategy: Strategy::Sequential, at_once: 1, note };
    if asked == Strategy::Sequential {
        return one_by_one(None);
    }
    if !may_overlap {
        return one_by_one(Some(
            "Calls run one after the other: the configuration does not allow parallel calls".to_owned(),
        ));
    }
    let of_tier = tier.max_parallelism().unwrap_or(usize::MAX);
    if of_tier == 1 {
        let text =
            format!("Calls run one after the other: the {tier:?} tier does not include parallel calls");
        return one_by_one(Some(text));
    }
    let (of_lane, lane) = lane.unwrap_or((usize::MAX, ""));
    let most = of_tier.min(of_lane);
    let note = (at_once > most).then(|| match of_tier <= of_lane {
        true => format!("At most {most} calls run at once: that is what the {tier:?} tier includes"),
        false => format!("At most {most} run at once, not {at_once}: scheduling.lanes.{lane} is {of_lane}"),
    });
    match at_once.min(most) <= 1 {
        true => one_by_one(note),
        false => BatchPlan { strategy: asked, at_once: at_once.min(most), note },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(path: &str) -> Footprint {
        Footprint::reads([Resource::path(path)])
    }

    fn writes(path: &str) -> Footprint {
        Footprint::writes([Resource::path(path)])
    }

    fn of(strategy: Strategy, calls: &[(&Footprint, bool)]) -> Vec<Vec<usize>> {
        let steps: Vec<_> = calls
            .iter()
            .map(|(footprint, has_side_effects)| Step::Runs {
                footprint,
                has_side_effects: *has_side_effects,
            })
            .collect();
        dependencies(strategy, &steps)
    }

    #[test]
    fn a_call_waits_for_the_earlier_calls_that_it_conflicts_with() {
        let (a, b, under_a) = (reads("/a"), reads("/b"), writes("/a/x"));
        let got =
            of(Strategy::Smart, &[(&a, false), (&b, false), (&under_a, true), (&a, false), (&b, false)]);
        assert_eq!(got, [vec![], vec![], vec![0], vec![2], vec![]]);
    }

    #[test]
    fn a_tool_with_side_effects_that_says_nothing_waits_for_all_and_all_wait_for_it() {
        let (nothing, anything) = (Footprint::default(), Footprint::undeclared(true));
        let got = of(Strategy::Smart, &[(&nothing, false), (&nothing, true), (&nothing, false)]);
        assert_eq!(got, [vec![], vec![0], vec![1]]);
        let got = of(Strategy::Smart, &[(&nothing, false), (&anything, true), (&nothing, false)]);
        assert_eq!(got, [vec![], vec![0], vec![1]]);
    }

    #[test]
    fn parallel_waits_for_nobody_but_a_leader() {
        let write = writes("/a");
        assert_eq!(of(Strategy::Parallel, &[(&write, true), (&write, true)]), [vec![], Vec::<usize>::new()]);
        let steps = [Step::Runs { footprint: &write, has_side_effects: true }, Step::Follows(0), Step::Idle];
        assert_eq!(dependencies(Strategy::Parallel, &steps), [vec![], vec![0], vec![]]);
    }

    #[test]
    fn tiers_bound_what_runs_at_once() {
        let cases = [
            (Strategy::Sequential, 4, Tier::Enterprise, true, Strategy::Sequential, 1, false),
            (Strategy::Smart, 4, Tier::Core, true, Strategy::Sequential, 1, true),
            (Strategy::Parallel, 4, Tier::WriterPro, true, Strategy::Sequential, 1, true),
            (Strategy::Parallel, 4, Tier::Teams, true, Strategy::Parallel, 4, false),
            (Strategy::Smart, 64, Tier::Teams, true, Strategy::Smart, 10, true),
            (Strategy::Smart, 64, Tier::Enterprise, true, Strategy::Smart, 64, false),
            (Strategy::Smart, 0, Tier::Enterprise, true, Strategy::Sequential, 1, false),
            (Strategy::Smart, 64, Tier::Enterprise, false, Strategy::Sequential, 1, true),
        ];
        for (asked, at_once, tier, allowed, strategy, most, has_note) in cases {
            let got = batch_plan(asked, at_once, tier, allowed, None);
            assert_eq!(
                (got.strategy, got.at_once, got.note.is_some()),
                (strategy, most, has_note),
                "{tier:?}"
            );
        }
    }

    #[test]
    fn a_lane_that_is_narrower_than_what_was_asked_for_is_named() {
        let of = |at_once, lane| batch_plan(Strategy::Smart, at_once, Tier::Teams, true, Some(lane));
        let plan = of(8, (4, "per_agent"));
        assert_eq!((plan.strategy, plan.at_once), (Strategy::Smart, 4));
        assert_eq!(plan.note.unwrap(), "At most 4 run at once, not 8: scheduling.lanes.per_agent is 4");
        assert_eq!(of(4, (4, "per_agent")).note, None);
        let plan = of(2, (1, "global"));
        assert_eq!((plan.strategy, plan.at_once, plan.note.is_some()), (Strategy::Sequential, 1, true));
        assert!(of(64, (12, "per_agent")).note.unwrap().contains("Teams tier"));
    }
}
