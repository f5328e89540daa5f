//! Whether a flow fits the tools that are there.

use crate::{
    Flow, Node, Path, Step, Template,
    problem::Problems,
    reference::{Alternative, below},
    schema::{Outline, in_words},
};
use haft_core::{Source, ToolDefinition, text::one_line};
use haft_definition::{Position, ReadErrors};
use haft_schema::{Checker, words::SchemaProblem};
use serde_json::{Map, Value};
use std::{collections::BTreeSet, sync::Arc};

/// The tools that a flow may call.
pub trait Tools {
    /// What a tool says about itself, by name or alias.
    fn definition(&self, name: &str) -> Option<Arc<ToolDefinition>>;

    /// The name that was probably meant.
    fn nearest(&self, name: &str) -> Option<String>;
}

/// How deep flows may call flows.
pub const MOST_LEVELS: usize = 8;

/// Checks a flow against the tools that it calls: that they are there, that references lead to something that they
/// give, that arguments fit as far as they are known, and that no flow calls itself. Nothing runs.
///
/// # Errors
///
/// Everything that does not fit, with its place in the file.
pub fn check(flow: &Flow, tools: &dyn Tools) -> Result<(), ReadErrors> {
    let found: Vec<Option<Arc<ToolDefinition>>> =
        flow.nodes.iter().map(|node| tools.definition(&node.tool)).collect();
    let mut checker = Checks { flow, found: &found, problems: Problems::default() };
    for (place, node) in flow.nodes.iter().enumerate() {
        let pointer = format!("/nodes/{place}");
        match &found[place] {
            Some(definition) => checker.node(node, definition, &pointer, tools),
            None if *node.tool == *flow.name => {
                let at = flow.document.value_at(&format!("{pointer}/tool"));
                let problem = format!("the flow would call itself: {0} → {0}", flow.name);
                checker.problems.at(at, problem, "call a tool that does not lead back here");
            }
            None => {
                let at = flow.document.value_at(&format!("{pointer}/tool"));
                let help = match tools.nearest(&node.tool) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "see `haft tools list`".to_owned(),
                };
                checker.problems.at(at, format!("there is no tool `{}`", one_line(&node.tool, 80)), help);
            }
        }
    }
    if let Some(output) = &flow.output {
        checker.references(output, "/output");
    }
    match checker.problems.is_empty() {
        true => Ok(()),
        false => Err(checker.problems.into_errors()),
    }
}

struct Checks<'c> {
    flow: &'c Flow,
    found: &'c [Option<Arc<ToolDefinition>>],
    problems: Problems,
}

impl Checks<'_> {
    fn node(&mut self, node: &Node, definition: &ToolDefinition, pointer: &str, tools: &dyn Tools) {
        let document = &self.flow.document;
        let at = document.value_at(&format!("{pointer}/tool"));
        if let Some(way) = calls_itself(&self.flow.name, definition, tools) {
            let problem = format!("the flow would call itself: {}", one_line(&way.join(" → "), 400));
            self.problems.at(at, problem, "call a tool that does not lead back here");
        }
        let longest = definition.constraints.max_execution_time;
        if node.timeout.is_some_and(|timeout| timeout > longest) {
            let at = document.value_at(&format!("{pointer}/timeout"));
            let problem = format!("`{}` may take at most {} s", definition.name, longest.as_secs());
            self.problems.at(at, problem, "name a shorter time");
        }
        let may_repeat = definition.idempotent || !definition.has_side_effects();
        if node.retry.as_ref().is_some_and(|retry| retry.max_retries > 0) && !may_repeat {
            let at = document.key_at(&format!("{pointer}/retry"));
            let problem = format!(
                "`{}` changes something and does not say that twice is the same as once, so it is never tried again",
                definition.name
            );
            self.problems.at(at, problem, "remove `retry`");
        }
        let at = format!("{pointer}/arguments");
        self.references(&node.arguments, &at);
        self.arguments(node, definition, &at);
        if let Some(when) = &node.when {
            for path in when.paths().iter().filter(|path| path.name != "input") {
                let mut steps: Vec<Step> = path.fields.iter().cloned().map(Step::Name).collect();
                if path.is_test {
                    steps.pop();
                }
                let pointer = format!("{pointer}/when");
                let offset = when.text().find(&path.name).unwrap_or(0);
                let at = self.flow.document.inside(&pointer, when.text(), offset);
                self.path(&Path { root: path.name.clone(), steps }, at);
            }
        }
    }

    fn references(&mut self, template: &Template, pointer: &str) {
        for (below, path) in template.paths() {
            let at = self.flow.document.value_at(&format!("{pointer}{below}"));
            self.path(path, at);
        }
    }

    /// What is known about what a path leads to; nothing where nothing is.
    fn outline(&self, path: &Path) -> Option<Outline<'_>> {
        let place = self.flow.place(&path.root)?;
        let schema = self.found[place].as_ref()?.output_schema.as_ref()?;
        let (first, rest) = path.steps.split_first()?;
        (*first == Step::Name("output".to_owned())).then(|| Outline::of(schema).follow(rest).ok()).flatten()
    }

    fn path(&mut self, path: &Path, at: Position) {
        let Some(place) = self.flow.place(&path.root) else { return };
        let Some(definition) = &self.found[place] else { return };
        let (Some(Step::Name(first)), Some(schema)) = (path.steps.first(), &definition.output_schema) else {
            return;
        };
        if first != "output" {
            return;
        }
        if let Err(wrong) = Outline::of(schema).follow(&path.steps[1..]) {
            let problem =
                format!("`{path}`: {}", wrong.problem(&format!("what `{}` gives", definition.name)));
            let help = wrong.help(&format!("see `haft tools show {}`", definition.name));
            self.problems.at(at, problem, help);
        }
    }

    /// Checks the arguments as far as they are known: what is referred to is a hole, and what depends on a hole is not
    /// judged, but for its type.
    fn arguments(&mut self, node: &Node, definition: &ToolDefinition, pointer: &str) {
        let schema = definition.parameters.to_schema();
        let Ok(checker) = Checker::new(&schema) else { return };
        let mut holes = Vec::new();
        let value = with_holes(&node.arguments, &mut String::new(), &mut holes);
        let Ok(checked) = checker.check(&value) else { return };
        let document = &self.flow.document;
        let parameters = Outline::of(&schema);
        for problem in checked.problems.iter().filter(|problem| !is_about_a_hole(problem, &holes)) {
            let at = match problem.rule.as_str() {
                "additionalProperties" => document.key_at(&format!("{pointer}{}", problem.pointer)),
                _ => document.value_at(&format!("{pointer}{}", problem.pointer)),
            };
            let said = format!("the arguments of `{}`: {problem}", definition.name);
            self.problems.add(at, said, problem.hint.clone());
        }
        for hole in &holes {
            let at = document.value_at(&format!("{pointer}{}", hole.pointer));
            let Ok(wanted) = parameters.follow(&hole.steps) else { continue };
            let Some(wanted) = wanted.types() else { continue };
            let given = match hole.whole {
                None => Some(BTreeSet::from(["string"])),
                Some(path) => self.types(path),
            };
            let Some(given) = given.filter(|given| given.is_disjoint(&wanted)) else { continue };
            let list = |types: &BTreeSet<&str>| {
                types.iter().map(|kind| in_words(kind)).collect::<Vec<_>>().join(" or ")
            };
            let what = hole
                .whole
                .map_or_else(|| "a text with references in it".to_owned(), |path| format!("`{path}`"));
            let problem = format!(
                "the arguments of `{}`: {} takes {}, and {what} is {}",
                definition.name,
                hole.pointer,
                list(&wanted),
                list(&given)
            );
            self.problems.at(at, problem, "refer to something of that type");
        }
    }

    /// The types of what a path leads to, where they are known.
    fn types(&self, path: &Path) -> Option<BTreeSet<&str>> {
        if path.root == "input" {
            // What the flow takes is checked when it is called, and its schema does not live here.
            return None;
        }
        match path.steps.as_slice() {
            [Step::Name(field)] if field == "text" || field == "status" => Some(BTreeSet::from(["string"])),
            _ => self.outline(path)?.types(),
        }
    }
}

/// A place in the arguments that is not known before others have run.
struct Hole<'t> {
    pointer: String,
    steps: Vec<Step>,
    /// The only thing that it can be; `None` where it is a text with references in it.
    whole: Option<&'t Path>,
}

fn with_holes<'t>(template: &'t Template, pointer: &mut String, holes: &mut Vec<Hole<'t>>) -> Value {
    let hole = |pointer: &str, whole| {
        let unescape = |step: &str| step.replace("~1", "/").replace("~0", "~");
        let step = |step: String| step.parse().map_or_else(|_| Step::Name(step), Step::Index);
        let steps = pointer.split('/').skip(1).map(|name| step(unescape(name)));
        Hole { pointer: pointer.to_owned(), steps: steps.collect(), whole }
    };
    match template {
        Template::Constant(value) => value.clone(),
        Template::Text(_) => {
            holes.push(hole(pointer, None));
            Value::String(String::new())
        }
        Template::Whole(reference) => {
            let whole = match reference.alternatives.as_slice() {
                [Alternative::Path(path)] => Some(path),
                // Which of several it will be is not known, and nothing is said about its type.
                _ => {
                    static ANY: Path = Path { root: String::new(), steps: Vec::new() };
                    Some(&ANY)
                }
            };
            holes.push(hole(pointer, whole));
            Value::Null
        }
        Template::List(items) => {
            let items = items.iter().enumerate().map(|(index, item)| {
                below(pointer, &index.to_string(), |pointer| with_holes(item, pointer, holes))
            });
            Value::Array(items.collect())
        }
        Template::Table(members) => {
            let members = members.iter().map(|(name, member)| {
                (name.clone(), below(pointer, name, |pointer| with_holes(member, pointer, holes)))
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// Whether a problem could go away with what comes into a hole. Names that are missing or not known stay.
fn is_about_a_hole(problem: &SchemaProblem, holes: &[Hole<'_>]) -> bool {
    let is_below = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_name = matches!(problem.rule.as_str(), "required" | "additionalProperties");
    holes.iter().any(|hole| {
        is_below(&problem.pointer, &hole.pointer) || (!is_name && is_below(&hole.pointer, &problem.pointer))
    })
}

/// The way from a tool back to the flow of that name, where there is one. A flow that calls flows too deeply counts,
/// too.
fn calls_itself(flow: &str, definition: &ToolDefinition, tools: &dyn Tools) -> Option<Vec<String>> {
    let mut way = vec![flow.to_owned()];
    let mut seen = BTreeSet::new();
    leads_back(flow, definition, tools, &mut way, &mut seen).then_some(way)
}

fn leads_back(
    flow: &str,
    definition: &ToolDefinition,
    tools: &dyn Tools,
    way: &mut Vec<String>,
    seen: &mut BTreeSet<String>,
) -> bool {
    way.push(definition.name.clone());
    if definition.name == flow || way.len() > MOST_LEVELS + 1 {
        return true;
    }
    let inside = definition.flow.as_ref().filter(|_| definition.source == Source::Flow);
    let nodes = inside.and_then(|inside| inside.get("nodes")?.as_array());
    if seen.insert(definition.name.clone()) {
        let names = nodes.into_iter().flatten().filter_map(|node| node.get("tool")?.as_str());
        for name in names {
            if tools.definition(name).is_some_and(|next| leads_back(flow, &next, tools, way, seen)) {
                return true;
            }
        }
    }
    way.pop();
    false
}
