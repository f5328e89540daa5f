//! Which rules are worth a look: with thousands of them nearly all are about something else.
//!
//! Each rule is filed under one of its conditions, the one by which most calls are told apart. A rule that could hold,
//! or of which it could be unclear whether it holds, is always among the candidates; the conditions themselves decide.

use super::{
    Rule,
    conditions::{Compiled, Looked, Step, split_port},
    paths::PathPatterns,
};
use crate::command::{Part, Word, program_name};
use foldhash::HashMap;
use haft_core::Resource;
use std::collections::BTreeSet;

type Filed = HashMap<String, Vec<usize>>;

/// Rules, by what they are about.
#[derive(Default)]
pub(super) struct Index {
    /// In lower case.
    tools: Names,
    tenants: Names,
    agents: Names,
    /// By the program that a command starts with, in lower case.
    programs: Filed,
    /// All rules about commands, for a command that cannot be read.
    commands: Vec<usize>,
    /// Those of them that allow: what is harmless beside a command concerns them all.
    allowing: Vec<usize>,
    /// By host, in lower case and without a port; what is below `*.example.com` by `.example.com`.
    hosts: Filed,
    /// All rules about paths or hosts, for a call that does not say what it touches.
    touching: Vec<usize>,
    /// By pattern: the rule that it belongs to.
    patterns: Vec<usize>,
    /// The folder that the matches of a pattern are in, and its rule; sorted.
    folders: Vec<(String, usize)>,
    /// All others.
    general: Vec<usize>,
}

/// Rules by names in which wildcards may stand.
#[derive(Default)]
struct Names {
    exact: Filed,
    /// By what stands before the first wildcard.
    starts: Filed,
    /// How long those are; ascending.
    lengths: BTreeSet<usize>,
}

/// What stands before the first wildcard, and whether there is one.
fn start(pattern: &str) -> (&str, bool) {
    pattern.find(['*', '?']).map_or((pattern, false), |wild| (&pattern[..wild], true))
}

/// Whether names tell calls apart: every one of them says how it begins.
fn tell_apart(patterns: &[String]) -> bool {
    !patterns.is_empty() && patterns.iter().all(|pattern| !start(pattern).0.is_empty())
}

impl Names {
    fn file(&mut self, patterns: impl Iterator<Item = String>, rule: usize) {
        for pattern in patterns {
            match start(&pattern) {
                (name, false) => self.exact.entry(name.to_owned()).or_default().push(rule),
                (start, true) => {
                    self.lengths.insert(start.len());
                    self.starts.entry(start.to_owned()).or_default().push(rule);
                }
            }
        }
    }

    fn add(&self, name: &str, found: &mut Vec<usize>) {
        found.extend(self.exact.get(name).into_iter().flatten());
        for start in self.lengths.iter().filter_map(|length| name.get(..*length)) {
            found.extend(self.starts.get(start).into_iter().flatten());
        }
    }
}

fn file(filed: &mut Filed, keys: impl Iterator<Item = String>, rule: usize) {
    for key in keys {
        filed.entry(key).or_default().push(rule);
    }
}

impl Index {
    /// Files rules. `fixed` is what each pattern says without a wildcard.
    pub(super) fn of(rules: &[Rule], compiled: &[Compiled], fixed: &[String]) -> Index {
        let mut index = Index::default();
        for (place, (rule, compiled)) in rules.iter().zip(compiled).enumerate() {
            let when = &rule.when;
            index.patterns.extend(compiled.patterns.clone().map(|_| place));
            if tell_apart(&when.tools) {
                index.tools.file(when.tools.iter().map(|tool| tool.to_ascii_lowercase()), place);
            } else if tell_apart(&when.tenants) {
                index.tenants.file(when.tenants.iter().cloned(), place);
            } else if tell_apart(&when.agents) {
                index.agents.file(when.agents.iter().cloned(), place);
            } else if !when.commands.is_empty() {
                let programs = when.commands.iter().filter_map(|words| words.first());
                file(
                    &mut index.programs,
                    programs.map(|word| program_name(word).to_ascii_lowercase()),
                    place,
                );
                index.commands.push(place);
                index.allowing.extend(compiled.allows.then_some(place));
            } else if !when.paths.is_empty() || !when.hosts.is_empty() {
                if when.hosts.iter().any(|host| split_port(host).0 == "*") {
                    index.general.push(place);
                    continue;
                }
                let host = |host: &String| split_port(host).0.trim_start_matches('*').to_ascii_lowercase();
                file(&mut index.hosts, when.hosts.iter().map(host), place);
                index.touching.push(place);
                index
                    .folders
                    .extend(fixed[compiled.patterns.clone()].iter().map(|fixed| (fixed.clone(), place)));
            } else {
                index.general.push(place);
            }
        }
        index.folders.sort_unstable();
        index.folders.dedup();
        index
    }

    /// The rules that may be about one thing that a call does. Some may come twice.
    pub(super) fn candidates(&self, looked: &Looked<'_>, step: &Step, patterns: &PathPatterns) -> Vec<usize> {
        let subject = looked.subject;
        let mut found = self.general.clone();
        let names = std::iter::once(&subject.definition.name).chain(&subject.definition.aliases);
        for name in names {
            match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                true => self.tools.add(&name.to_ascii_lowercase(), &mut found),
                false => self.tools.add(name, &mut found),
            }
        }
        self.tenants.add(&subject.context.tenant, &mut found);
        self.agents.add(&subject.context.agent, &mut found);
        if !self.commands.is_empty() {
            match step {
                Step::NoCommand => {}
                Step::Part(Part::Command(words)) => self.named(words, &mut found),
                // What is harmless is allowed by any rule that allows commands, and else goes by its name.
                Step::Part(Part::Harmless(words)) => {
                    found.extend(&self.allowing);
                    self.named(words, &mut found);
                }
                Step::Part(Part::Aside(_)) => found.extend(&self.allowing),
                // Any rule about commands has something to say about what is not known.
                Step::Hidden | Step::Part(Part::Unread(_)) => found.extend(&self.commands),
            }
        }
        if !self.touching.is_empty() {
            self.touched(looked, patterns, &mut found);
            if let Step::Part(Part::Aside(_)) = step {
                found.extend(&self.touching);
            }
        }
        found
    }

    /// Rules about the program of a command; all about commands where that cannot be known.
    fn named(&self, words: &[Word], found: &mut Vec<usize>) {
        match words.first().and_then(Word::exact) {
            Some(program) => {
                let program = program_name(program).to_ascii_lowercase();
                found.extend(self.programs.get(&program).into_iter().flatten());
            }
            None => found.extend(&self.commands),
        }
    }

    fn touched(&self, looked: &Looked<'_>, patterns: &PathPatterns, found: &mut Vec<usize>) {
        let footprint = looked.subject.footprint;
        for resource in footprint.reads.iter().chain(&footprint.writes) {
            match resource {
                Resource::Anything => found.extend(&self.touching),
                Resource::Host(host) => self.host(host, found),
                Resource::Path(_) | Resource::Named(_) => {}
            }
        }
        for touched in looked.paths(patterns) {
            found.extend(touched.matched.iter().filter_map(|pattern| self.patterns.get(*pattern)));
            // Folders that are in this one, or are it: they stand together in the sorted list.
            let folder = touched.path.trim_end_matches('/');
            let from = self.folders.partition_point(|(fixed, _)| fixed.as_str() < folder);
            let inside = self.folders[from..].iter().take_while(|(fixed, _)| fixed.starts_with(folder));
            found.extend(inside.map(|(_, rule)| rule));
        }
    }

    /// A host by its own name, and as one below each of its parents.
    fn host(&self, host: &str, found: &mut Vec<usize>) {
        let name = split_port(host).0.trim_end_matches('.').to_ascii_lowercase();
        found.extend(self.hosts.get(&name).into_iter().flatten());
        for (dot, _) in name.match_indices('.') {
            found.extend(self.hosts.get(&name[dot..]).into_iter().flatten());
        }
    }
}
