//! What a schema can cost at worst for one value, found without running it.
//!
//! A value is checked against its schema, against all that this one refers to, and against each part of `allOf`,
//! `anyOf` and their like. References make that a graph: a few lines can unfold into millions of checks, or into
//! a chain so long that following it exhausts the stack. Both can be counted beforehand, as long as no path leads
//! back to where it came from; a schema where one does says nothing about the value there, and is refused.
//!
//! What a check costs over several levels of a content is not counted here; see [`crate::metered`].

use std::collections::HashMap;

use serde_json::Value;

use crate::documents::Document;
use crate::keywords::{PART_ONE, PART_SEVERAL, REFERENCES, SAME_LIST, SAME_MAP, SAME_ONE};
use crate::place::{NO_ID, Place, children, decode, join};

/// The name under which schemas with a `$recursiveAnchor` are noted.
const RECURSIVE: &str = "#";
/// How often schemas may refer to each other. One dynamic reference leads to each anchor of its name.
const MAX_EDGES: usize = 200_000;
/// Where the meta-schemas are, which every validator knows.
const PUBLISHED: [&str; 2] = ["https://json-schema.org/draft/", "http://json-schema.org/draft-"];

/// The worst that a schema can do to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Checks of one value.
    pub(crate) steps: u64,
    /// Schemas that wait for each other while one value is checked.
    pub(crate) chain: usize,
    /// How deep the schema's own JSON is.
    pub(crate) depth: usize,
}

/// Why a schema cannot be measured, with the pointer of the place in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unmeasured {
    /// It applies itself to the same value again.
    Endless { pointer: String },
    /// It has too many schemas that refer to each other.
    TooMany,
    /// It refers to what is not in it.
    Nowhere { pointer: String, reference: String, other_document: bool },
}

/// Measures `schema`, with the documents that it may refer to.
pub(crate) fn measure<'s>(
    schema: &'s Value,
    documents: impl IntoIterator<Item = &'s Document>,
) -> Result<Shape, Unmeasured> {
    let mut graph =
        Graph { ids: HashMap::new(), names: HashMap::new(), nodes: Vec::new(), seen: HashMap::new() };
    let root = Place::root(schema);
    let mut depth = graph.index(NO_ID, root.clone());
    for document in documents {
        depth = depth.max(graph.index(document.address(), document.place()));
    }
    graph.visit(root)?;
    let (steps, chain) = graph.unfold()?;
    Ok(Shape { steps, chain, depth })
}

struct Node {
    pointer: String,
    /// The schemas that apply to the same value.
    same: Vec<usize>,
    /// Whether it asks which parts of the value the others have looked at, which makes them run again.
    unevaluated: bool,
}

struct Graph<'s> {
    /// By absolute address.
    ids: HashMap<String, Place<'s>>,
    /// By the name of an anchor, wherever it is: a dynamic one can be anywhere.
    names: HashMap<&'s str, Vec<Place<'s>>>,
    nodes: Vec<Node>,
    /// By the place in memory.
    seen: HashMap<usize, usize>,
}

impl<'s> Graph<'s> {
    /// Notes all addresses and anchors in a document; gives its depth.
    fn index(&mut self, address: &str, root: Place<'s>) -> usize {
        self.ids.entry(address.to_owned()).or_insert_with(|| root.clone());
        let mut deepest = 0;
        let mut open = vec![(root, 1)];
        while let Some((place, depth)) = open.pop() {
            deepest = deepest.max(depth);
            if let Value::Object(object) = place.schema {
                self.ids.entry(place.address()).or_insert_with(|| place.clone());
                let text = |keyword| object.get(keyword).and_then(Value::as_str);
                let old_anchor = text(place.dialect.id).and_then(|id| id.strip_prefix('#'));
                let recursive = object.get("$recursiveAnchor").map(|_| RECURSIVE);
                for name in
                    [text("$anchor"), text("$dynamicAnchor"), old_anchor, recursive].into_iter().flatten()
                {
                    self.names.entry(name).or_default().push(place.clone());
                }
            }
            open.extend(children(&place).map(|child| (child, depth + 1)));
        }
        deepest
    }

    /// Adds a schema and all that it can lead to.
    fn visit(&mut self, root: Place<'s>) -> Result<(), Unmeasured> {
        let mut open = Vec::new();
        let mut edges = 0;
        self.number(root, &mut open);
        while let Some((index, place)) = open.pop() {
            let Value::Object(object) = place.schema else {
                continue;
            };
            let base = place.address();
            let at = |keyword: &str| place.below(keyword, &object[keyword], base.clone());
            let has = |keyword: &&&str| object.contains_key(**keyword);
            let mut same: Vec<Place<'s>> = SAME_ONE.iter().filter(has).map(|keyword| at(keyword)).collect();
            for keyword in SAME_LIST.iter().chain(&SAME_MAP).filter(has) {
                same.extend(children(&at(keyword)));
            }
            for keyword in REFERENCES.iter().filter(has) {
                if let Value::String(reference) = &object[*keyword] {
                    let found =
                        self.resolve(keyword, reference, &base).ok_or_else(|| Unmeasured::Nowhere {
                            pointer: at(keyword).pointer,
                            reference: reference.clone(),
                            other_document: !self.ids.contains_key(&join(&base, reference)),
                        })?;
                    same.extend(found);
                    if *keyword == "$recursiveRef" {
                        same.extend(self.names.get(RECURSIVE).cloned().unwrap_or_default());
                    }
                }
            }
            edges += same.len();
            if edges > MAX_EDGES {
                return Err(Unmeasured::TooMany);
            }
            let same = same.into_iter().map(|place| self.number(place, &mut open)).collect();
            let mut parts: Vec<Place<'s>> = PART_ONE.iter().filter(has).map(|keyword| at(keyword)).collect();
            for keyword in PART_SEVERAL.iter().filter(has) {
                // In old drafts `items` may be a list; that it is one schema was dealt with.
                if *keyword != "items" || object["items"].is_array() {
                    parts.extend(children(&at(keyword)));
                }
            }
            for part in parts {
                self.number(part, &mut open);
            }
            self.nodes[index].same = same;
            self.nodes[index].unevaluated =
                object.contains_key("unevaluatedProperties") || object.contains_key("unevaluatedItems");
        }
        Ok(())
    }

    fn number(&mut self, place: Place<'s>, open: &mut Vec<(usize, Place<'s>)>) -> usize {
        let next = self.nodes.len();
        let index = *self.seen.entry(std::ptr::from_ref(place.schema).addr()).or_insert(next);
        if index == next {
            self.nodes.push(Node { pointer: place.pointer.clone(), same: Vec::new(), unevaluated: false });
            open.push((index, place));
        }
        index
    }

    /// What `reference` may lead to; nothing to follow where that is a published meta-schema.
    fn resolve(&self, keyword: &str, reference: &str, base: &str) -> Option<Vec<Place<'s>>> {
        let fragment = decode(reference.split_once('#').map_or("", |(_, fragment)| fragment));
        let address = join(base, reference);
        let Some(start) = self.ids.get(&address) else {
            return PUBLISHED.iter().any(|start| address.starts_with(start)).then(Vec::new);
        };
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let named = self.names.get(fragment.as_str())?;
            let here = || named.iter().filter(|place| place.address() == address).cloned();
            // A dynamic reference may lead to the same name anywhere else.
            return Some(if keyword == "$ref" && here().next().is_some() {
                here().collect()
            } else {
                named.clone()
            });
        }
        let found = fragment.split('/').skip(1).try_fold(start.clone(), |place, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            let schema = match place.schema {
                Value::Object(object) => object.get(&step)?,
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
            Some(place.below(&step, schema, place.address()))
        });
        found.map(|place| vec![place])
    }

    /// The most checks, and the longest chain of them, that any schema unfolds into.
    fn unfold(&self) -> Result<(u64, usize), Unmeasured> {
        let mut done: Vec<Option<Unfolded>> = vec![None; self.nodes.len()];
        let mut waiting = vec![false; self.nodes.len()];
        for first in 0..self.nodes.len() {
            let mut open = vec![first];
            while let Some(index) = open.last().copied() {
                let node = &self.nodes[index];
                if done[index].is_some() {
                    open.pop();
                } else if waiting[index] {
                    let mut all = Unfolded { checks: 1, repeats: 0, chain: 0 };
                    for part in node.same.iter().filter_map(|next| done[*next]) {
                        all.checks = all.checks.saturating_add(part.checks);
                        all.repeats = all.repeats.saturating_add(part.repeats);
                        all.chain = all.chain.max(part.chain);
                    }
                    if node.unevaluated {
                        all.repeats = all.repeats.saturating_add(all.checks.saturating_mul(all.checks));
                    }
                    all.chain += 1;
                    done[index] = Some(all);
                } else {
                    waiting[index] = true;
                    for next in node.same.iter().copied().filter(|next| done[*next].is_none()) {
                        if waiting[next] {
                            return Err(Unmeasured::Endless { pointer: self.nodes[next].pointer.clone() });
                        }
                        open.push(next);
                    }
                }
            }
        }
        let steps = done.iter().flatten().map(|all| all.checks.saturating_add(all.repeats)).max();
        let chain = done.iter().flatten().map(|all| all.chain).max();
        Ok((steps.unwrap_or(0), chain.unwrap_or(0)))
    }
}

/// What one schema unfolds into.
#[derive(Clone, Copy)]
struct Unfolded {
    checks: u64,
    /// Checks that run again to find out which parts of the value were looked at: each may run all others.
    repeats: u64,
    chain: usize,
}

#[cfg(test)]
mod tests;
