//! What a key takes, and which change of it is tighter.
//!
//! Everything here is a pure function of two values. [`tighten`](Rule::tighten) is the door that an untrusted
//! folder has to pass; [`compare`](Rule::compare) says which way a change goes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::value::Value;
use haft_guard::policy::{Effect as RuleEffect, Rule as PolicyRule};

/// What a key takes and which change of it is tighter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What it takes.
    pub kind: Kind,
    /// Which change is tighter.
    pub tighter: Tighter,
    /// What a configured value does to the one below it.
    pub configured: Configured,
}

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number in this range, both ends included.
    Count {
        /// The lowest that makes sense.
        min: u64,
        /// The highest that is accepted.
        max: u64,
    },
    /// One of these, strictest first.
    Level(&'static [&'static str]),
    /// Text.
    Text,
    /// A list of names or patterns.
    Names,
    /// A list of folders, at least one.
    Folders,
    /// A list of declared tools.
    Tools,
    /// A list of rules of policy.
    Rules,
    /// A list of agents.
    Agents,
}

/// Which change of a value is tighter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tighter {
    /// A lower number.
    Lower,
    /// A higher number.
    Higher,
    /// `false`.
    Off,
    /// `true`.
    On,
    /// A choice that comes earlier in the key's list.
    Earlier,
    /// More entries: it lists what is denied.
    More,
    /// Fewer entries: it lists what is allowed.
    Fewer,
    /// More rules that ask or deny.
    Stricter,
    /// No change: a folder has no say in it.
    Nothing,
}

/// What a value does to the one from the layer below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Configured {
    /// It takes its place.
    Replaces,
    /// It is added to it, in every layer.
    Adds,
}

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing changes.
    Same,
    /// Less is allowed, and nothing more.
    Tighter,
    /// Something is allowed that was not.
    Looser,
}

/// What is left of a proposed value when only its tightening part counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tightened {
    /// The value in effect afterwards.
    pub(super) value: Value,
    /// Whether some of what was proposed did not count.
    pub(super) ignored: bool,
}

/// How folders are compared: where relative ones start, and what a path really is once links are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct FolderComparison<'a> {
    pub(super) working_folder: &'a Path,
    pub(super) real_path: fn(&Path) -> Option<PathBuf>,
}

impl FolderComparison<'_> {
    fn real(&self, folder: &Path) -> Option<PathBuf> {
        (self.real_path)(&self.working_folder.join(folder))
    }
}

pub(super) const fn switch_off() -> Rule {
    replacing(Kind::Switch, Tighter::Off)
}

pub(super) const fn switch_on() -> Rule {
    replacing(Kind::Switch, Tighter::On)
}

pub(super) const fn at_most(min: u64, max: u64) -> Rule {
    replacing(Kind::Count { min, max }, Tighter::Lower)
}

pub(super) const fn level(choices: &'static [&'static str]) -> Rule {
    replacing(Kind::Level(choices), Tighter::Earlier)
}

pub(super) const fn deny_list() -> Rule {
    replacing(Kind::Names, Tighter::More)
}

pub(super) const fn added_deny_list() -> Rule {
    Rule { configured: Configured::Adds, ..deny_list() }
}

pub(super) const fn allow_list() -> Rule {
    replacing(Kind::Names, Tighter::Fewer)
}

/// Where things are remembered is the user's own affair: a folder could only lead it astray, or make it forget. So is
/// what all folders share, and which folders tools reach: there "fewer" is not "less". A root inside another one takes
/// its patterns, its read-only parts and its repository's protection away; one less read-only root is one more that can
/// be written.
pub(super) const fn own(kind: Kind) -> Rule {
    replacing(kind, Tighter::Nothing)
}

/// The rule for a list that each layer adds to: a folder that could add to what is taken out of results would choose
/// what a model gets to see.
pub(super) const fn own_added_list() -> Rule {
    Rule { configured: Configured::Adds, ..own(Kind::Names) }
}

/// Declaring a tool runs nothing, but it puts words of the file's author before a model: it counts as
/// loosening.
pub(super) const fn declared_tools() -> Rule {
    replacing(Kind::Tools, Tighter::Fewer)
}

/// Rules are only ever added: nobody's are emptied by somebody else's file.
pub(super) const fn policy_rules() -> Rule {
    Rule { configured: Configured::Adds, ..replacing(Kind::Rules, Tighter::Stricter) }
}

const fn replacing(kind: Kind, tighter: Tighter) -> Rule {
    Rule { kind, tighter, configured: Configured::Replaces }
}

impl Rule {
    /// Which way the change from `old` to `new` goes. A change that tightens in one part and loosens in
    /// another loosens. Values that are not of this rule's kind count as loosening.
    pub(super) fn compare(&self, old: &Value, new: &Value, ground: &FolderComparison<'_>) -> Effect {
        if old == new {
            return Effect::Same;
        }
        let tightened = self.tighten(old, new, ground);
        if tightened.ignored {
            Effect::Looser
        } else if tightened.value == *old {
            Effect::Same
        } else {
            Effect::Tighter
        }
    }

    /// The part of `proposed` that tightens `current`.
    pub(super) fn tighten(
        &self,
        current: &Value,
        proposed: &Value,
        ground: &FolderComparison<'_>,
    ) -> Tightened {
        match (self.tighter, current, proposed) {
            (Tighter::Lower, Value::Count(old), Value::Count(new)) => stricter(current, proposed, new <= old),
            (Tighter::Higher, Value::Count(old), Value::Count(new)) => {
                stricter(current, proposed, new >= old)
            }
            (Tighter::Off, Value::Switch(old), Value::Switch(new)) => {
                stricter(current, proposed, !new || *old)
            }
            (Tighter::On, Value::Switch(old), Value::Switch(new)) => {
                stricter(current, proposed, *new || !old)
            }
            (Tighter::Earlier, Value::Level(old), Value::Level(new)) => {
                let earlier = self.place(new).zip(self.place(old)).is_some_and(|(new, old)| new <= old);
                stricter(current, proposed, earlier)
            }
            (Tighter::More, Value::Names(old), Value::Names(new)) => {
                let drops = self.configured == Configured::Replaces && !is_subset(old, new);
                Tightened { value: Value::Names(union(old, new)), ignored: drops }
            }
            (Tighter::Fewer, Value::Names(old), Value::Names(new)) => {
                let listed: HashSet<&String> = new.iter().collect();
                let kept = old.iter().filter(|name| listed.contains(name)).cloned().collect();
                Tightened { value: Value::Names(kept), ignored: !is_subset(new, old) }
            }
            (Tighter::Fewer, Value::Tools(old), Value::Tools(new)) => {
                let kept = old.iter().filter(|tool| new.contains(tool)).cloned().collect();
                let adds = new.iter().any(|tool| !old.contains(tool));
                Tightened { value: Value::Tools(kept), ignored: adds }
            }
            (Tighter::Stricter, Value::Rules(old), Value::Rules(new)) => {
                let new: Vec<&PolicyRule> = new.iter().filter(|rule| !old.contains(rule)).collect();
                let allows = |rule: &&PolicyRule| rule.effect == RuleEffect::Allow;
                let ignored = new.iter().any(allows);
                let stricter = new.into_iter().filter(|rule| !allows(rule));
                let stricter = stricter.map(|rule| PolicyRule { only_tightens: true, ..rule.clone() });
                Tightened { value: Value::Rules(with_rules(old, stricter)), ignored }
            }
            (Tighter::Nothing, Value::Folders(old), Value::Folders(new)) => {
                // The same folders, written as the folder's file has to write them.
                let real = |folders: &[PathBuf]| folders.iter().map(|folder| ground.real(folder)).collect();
                let same = matches!((real(old), real(new)), (Some::<Vec<_>>(old), Some(new)) if old == new);
                Tightened { value: current.clone(), ignored: old != new && !same }
            }
            (Tighter::Nothing, Value::Names(old), Value::Names(new))
                if self.configured == Configured::Adds =>
            {
                // What is there already would add nothing.
                Tightened { value: current.clone(), ignored: !is_subset(new, old) }
            }
            (Tighter::Nothing, old, new) => stricter(current, proposed, old == new),
            _ => Tightened { value: current.clone(), ignored: true },
        }
    }

    /// What the layers give together when `above` comes from someone who may loosen.
    pub(super) fn apply(&self, below: &Value, above: &Value) -> Value {
        match (self.configured, below, above) {
            (Configured::Adds, Value::Names(below), Value::Names(above)) => Value::Names(union(below, above)),
            (Configured::Adds, Value::Rules(below), Value::Rules(above)) => {
                Value::Rules(with_rules(below, above.iter().cloned()))
            }
            (Configured::Adds | Configured::Replaces, _, above) => above.clone(),
        }
    }

    /// What it takes, in words: `true or false`, `a whole number from 1 to 8`.
    #[must_use]
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Switch => "true or false".to_owned(),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Level(choices) => choices_in_words(choices),
            Kind::Text => "text".to_owned(),
            Kind::Names => "a list of strings".to_owned(),
            Kind::Folders => "a list of folders".to_owned(),
            Kind::Tools | Kind::Rules | Kind::Agents => "a list of tables".to_owned(),
        }
    }

    fn place(&self, level: &str) -> Option<usize> {
        match self.kind {
            Kind::Level(choices) => choices.iter().position(|choice| *choice == level),
            Kind::Switch
            | Kind::Count { .. }
            | Kind::Text
            | Kind::Names
            | Kind::Folders
            | Kind::Tools
            | Kind::Rules
            | Kind::Agents => None,
        }
    }
}

/// `"a", "b" or "c"`.
pub(super) fn choices_in_words(choices: &[&str]) -> String {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("\"{choice}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn stricter(current: &Value, proposed: &Value, counts: bool) -> Tightened {
    let value = if counts { proposed } else { current };
    Tightened { value: value.clone(), ignored: !counts }
}

// A file may list tens of thousands of names: these take time in proportion.

fn union(old: &[String], new: &[String]) -> Vec<String> {
    let known: HashSet<&String> = old.iter().collect();
    old.iter().chain(new.iter().filter(|name| !known.contains(name))).cloned().collect()
}

fn is_subset(part: &[String], whole: &[String]) -> bool {
    let whole: HashSet<&String> = whole.iter().collect();
    part.iter().all(|name| whole.contains(name))
}

/// Both, each with a name of its own: by it a record says which rule decided.
fn with_rules(old: &[PolicyRule], new: impl Iterator<Item = PolicyRule>) -> Vec<PolicyRule> {
    let mut names: HashSet<String> = old.iter().map(|rule| rule.name.clone()).collect();
    let mut all = old.to_vec();
    for mut rule in new {
        if names.contains(&rule.name) {
            let free = (2_u32..).map(|number| format!("{} ({number})", rule.name));
            rule.name = free.into_iter().find(|name| !names.contains(name)).unwrap_or_default();
        }
        names.insert(rule.name.clone());
        all.push(rule);
    }
    all
}
