//! From text to a flow.

use crate::{Condition, Flow, Node, Path, Shape, Step, Template, graph, problem::Problems, schema::Outline};
use haft_core::{Parameters, Retry, iso_duration, suggest::nearest, text::one_line};
use haft_definition::{Document, Format, ReadErrors};
use haft_schema::Checker;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::LazyLock, time::Duration};

/// The JSON Schema of a flow's file, for editors.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(haft_flow::FILE_SCHEMA).unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["name", "description", "nodes"]));
/// ```
pub const FILE_SCHEMA: &str = include_str!("../flow.schema.json");

/// It is part of the program, and tests show that it compiles.
static CHECKER: LazyLock<Option<Checker>> =
    LazyLock::new(|| Checker::new(&serde_json::from_str(FILE_SCHEMA).ok()?).ok());

/// Nodes that a flow may have where nobody says otherwise.
pub const MOST_NODES: usize = 100;
/// Bytes that a flow's file may have.
const MOST_BYTES: usize = 1 << 20;
/// Calls at once where the flow does not say.
const AT_ONCE: usize = 4;

/// What a reference to a node may begin with.
pub(crate) const FIELDS: [&str; 4] = ["output", "text", "status", "error"];

/// Words that a condition could not use as a name.
const RESERVED: [&str; 32] = [
    "input",
    "previous",
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "string",
    "uint",
];

/// Reads a flow of at most [`MOST_NODES`] nodes.
///
/// # Errors
///
/// Everything that is wrong, with its line and column: see [`read_within`].
///
/// ```
/// use haft_definition::Format;
/// let text = "name = 'a'\ndescription = 'A'\n[[nodes]]\nname = 'x'\ntool = 'ping'\nafter = ['y']";
/// let errors = haft_flow::read(text, Format::Toml).unwrap_err();
/// assert_eq!(errors.errors()[0].problem, "there is no node `y`");
/// assert_eq!(errors.errors()[0].position.line, 6);
/// ```
pub fn read(text: &str, format: Format) -> Result<Flow, ReadErrors> {
    read_within(text, format, MOST_NODES)
}

/// Reads a flow of at most so many nodes.
///
/// # Errors
///
/// It is not JSON or TOML, has a field that is not known, is missing one, has a value of another kind, too many nodes,
/// two of one name, a name or a reference that leads nowhere, a condition that does not compile, or nodes that wait for
/// each other.
pub fn read_within(text: &str, format: Format, most_nodes: usize) -> Result<Flow, ReadErrors> {
    if text.len() > MOST_BYTES {
        let mut problems = Problems::default();
        let said = format!("a flow has at most {MOST_BYTES} bytes, and this one has {}", text.len());
        problems.at(haft_definition::Position { line: 1, column: 1 }, said, "make several flows of it");
        return Err(problems.into_errors());
    }
    let document = Document::parse(text, format)?;
    let value = document.value();
    let shape = CHECKER.as_ref().map(|checker| document.shape(checker)).unwrap_or_default();
    if !shape.is_empty() {
        return Err(ReadErrors::new(shape));
    }
    let mut reader =
        Reader { document: &document, value: &value, problems: Problems::default(), names: BTreeMap::new() };
    let flow = reader.flow(most_nodes);
    let problems = reader.problems;
    match flow {
        Some(parts) if problems.is_empty() => Ok(parts.into_flow(document)),
        _ => Err(problems.into_errors()),
    }
}

struct Reader<'d> {
    document: &'d Document,
    value: &'d Value,
    problems: Problems,
    names: BTreeMap<String, usize>,
}

/// What a flow is made of, while it is read.
struct Parts {
    value: Map<String, Value>,
    parameters: Parameters,
    output: Option<Template>,
    timeout: Option<Duration>,
    nodes: Vec<Node>,
}

impl Parts {
    fn into_flow(self, document: Document) -> Flow {
        let Parts { value, parameters, output, timeout, nodes } = self;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let at_once = value.get("max_parallelism").and_then(Value::as_u64);
        Flow {
            name: text("name").unwrap_or_default(),
            title: text("title"),
            description: text("description").unwrap_or_default(),
            version: text("version"),
            parameters,
            output_schema: value.get("output_schema").cloned(),
            output,
            timeout,
            max_parallelism: at_once.map_or(AT_ONCE, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            stop_on_failure: is_on(&value, "stop_on_failure"),
            nodes,
            document,
        }
    }
}

fn is_on(table: &Map<String, Value>, name: &str) -> bool {
    table.get(name).and_then(Value::as_bool).unwrap_or(false)
}

impl Reader<'_> {
    /// `None` where it makes no sense to go on.
    fn flow(&mut self, most_nodes: usize) -> Option<Parts> {
        let table = self.value.as_object()?;
        let listed = table.get("nodes").and_then(Value::as_array)?;
        if listed.is_empty() {
            let at = self.document.value_at("/nodes");
            self.problems.at(at, "a flow has at least one node", "add one, with a name and a tool");
            return None;
        }
        if let Some(first) = (listed.len() > most_nodes).then_some(most_nodes) {
            let at = self.document.value_at(&format!("/nodes/{first}"));
            let problem = format!("a flow has at most {most_nodes} nodes, and this one has {}", listed.len());
            self.problems.at(at, problem, "make several flows of it, or raise tools.flows.max_nodes");
            return None;
        }
        let shape = match table.get("shape").and_then(Value::as_str) {
            Some("chain") => Shape::Chain,
            Some("parallel") => Shape::Parallel,
            _ => Shape::Dag,
        };
        self.take_names(listed);
        let parameters: Parameters = match table.get("parameters") {
            Some(listed) => serde_json::from_value(listed.clone()).unwrap_or_default(),
            None => Parameters::default(),
        };
        let schema = parameters.to_schema();
        let timeout = self.duration(table, "timeout", "/timeout");
        let mut nodes: Vec<Node> = Vec::with_capacity(listed.len());
        for (place, listed) in listed.iter().enumerate() {
            nodes.push(self.node(listed.as_object()?, place, shape, &schema));
        }
        let output = table.get("output").and_then(|output| {
            let template = self.template(output, "/output")?;
            self.references(&template, "/output", &schema);
            Some(template)
        });
        let mut parts = Parts { value: table.clone(), parameters, output, timeout, nodes };
        self.definition(&parts);
        if self.problems.is_empty() {
            self.cycle(&parts.nodes);
        }
        for node in &mut parts.nodes {
            node.depends_on.sort_unstable();
            node.depends_on.dedup();
        }
        Some(parts)
    }

    fn take_names(&mut self, nodes: &[Value]) {
        for (place, node) in nodes.iter().enumerate() {
            let name = node.get("name").and_then(Value::as_str).unwrap_or_default();
            let pointer = format!("/nodes/{place}/name");
            let at = self.document.value_at(&pointer);
            let is_fine = name.len() <= 64
                && name.starts_with(|first: char| first.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if !is_fine {
                let problem = format!("`{}` cannot be the name of a node", one_line(name, 80));
                self.problems.at(at, problem, "use lower case letters, digits and `_`, with a letter first");
            } else if RESERVED.contains(&name) {
                self.problems.at(at, format!("`{name}` is a reserved word"), "say what the node does");
            } else if let Some(&first) = self.names.get(name) {
                let there = self.document.value_at(&format!("/nodes/{first}/name"));
                let problem = format!("there are two nodes of the name `{name}`: the first is at {there}");
                self.problems.at(at, problem, "give each node a name of its own");
            } else {
                self.names.insert(name.to_owned(), place);
            }
        }
    }

    fn node(&mut self, table: &Map<String, Value>, place: usize, shape: Shape, schema: &Value) -> Node {
        let pointer = format!("/nodes/{place}");
        let text = |name: &str| table.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut depends_on = Vec::new();
        let after = table.get("after").and_then(Value::as_array);
        for (index, name) in after.into_iter().flatten().filter_map(Value::as_str).enumerate() {
            let at = self.document.value_at(&format!("{pointer}/after/{index}"));
            depends_on.extend(self.named(name, at));
        }
        if shape == Shape::Chain && place > 0 {
            depends_on.push(place - 1);
        }
        let nothing = Value::Object(Map::new());
        let at = format!("{pointer}/arguments");
        let arguments = self.template(table.get("arguments").unwrap_or(&nothing), &at);
        if let Some(arguments) = &arguments {
            depends_on.extend(self.references(arguments, &at, schema));
        }
        let when = table.get("when").and_then(Value::as_str).and_then(|when| {
            let (condition, looks_at) = self.condition(when, &format!("{pointer}/when"), schema)?;
            depends_on.extend(looks_at);
            Some(condition)
        });
        let waits_for = depends_on.iter().find(|_| shape == Shape::Parallel).copied();
        if let Some(&other) = waits_for.as_ref() {
            let named = self.names.iter().find(|(_, place)| **place == other).map_or("", |(name, _)| name);
            let problem = format!("nodes of a parallel flow wait for none, and this one waits for `{named}`");
            let at = self.document.value_at(&pointer);
            self.problems.at(at, problem, "use `shape = \"dag\"`, or leave `shape` out");
        }
        let name = text("name");
        let tool = text("tool");
        if tool.is_empty() {
            let at = self.document.value_at(&format!("{pointer}/tool"));
            self.problems.at(at, "the name of a tool is empty", "see `haft tools list`");
        }
        Node {
            name: name.into(),
            tool: tool.into(),
            arguments: arguments.unwrap_or(Template::Constant(nothing)),
            when,
            timeout: self.duration(table, "timeout", &format!("{pointer}/timeout")),
            retry: self.retry(table, &pointer),
            continue_on_failure: is_on(table, "continue_on_failure"),
            depends_on,
        }
    }

    /// The place of a node that something names.
    fn named(&mut self, name: &str, at: haft_definition::Position) -> Option<usize> {
        let found = self.names.get(name).copied();
        if found.is_none() {
            let help = match nearest(name, self.names.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", self.all_names()),
            };
            self.problems.at(at, format!("there is no node `{}`", one_line(name, 80)), help);
        }
        found
    }

    fn all_names(&self) -> String {
        one_line(&self.names.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "), 200)
    }

    fn template(&mut self, value: &Value, pointer: &str) -> Option<Template> {
        match Template::read(value) {
            Ok(template) => Some(template),
            Err(bad) => {
                for bad in bad {
                    let at =
                        self.document.inside(&format!("{pointer}{}", bad.pointer), &bad.text, bad.offset);
                    self.problems.add(at, bad.problem, None);
                }
                None
            }
        }
    }

    /// The nodes that a template refers to.
    fn references(&mut self, template: &Template, pointer: &str, schema: &Value) -> Vec<usize> {
        let mut places = Vec::new();
        for (below, reference) in template.references() {
            let pointer = format!("{pointer}{below}");
            let written = self.value.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
            let at = self.document.inside(&pointer, written, reference.offset);
            for path in reference.paths() {
                places.extend(self.path(path, at, schema));
            }
        }
        places
    }

    /// The node that a path begins at; `None` where that is the input, or nothing.
    fn path(&mut self, path: &Path, at: haft_definition::Position, schema: &Value) -> Option<usize> {
        if path.root == "input" {
            if let Err(wrong) = Outline::of(schema).follow(&path.steps) {
                let problem = format!("`{path}`: {}", wrong.problem("the flow's input"));
                self.problems.at(at, problem, wrong.help("add it to `parameters`"));
            }
            return None;
        }
        if !self.names.contains_key(&path.root) {
            let all = self.names.keys().map(String::as_str).chain(["input"]);
            let help = match nearest(&path.root, all) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are `input`, {}", self.all_names()),
            };
            let problem = format!("`{path}`: there is no node `{}`", one_line(&path.root, 80));
            self.problems.at(at, problem, help);
            return None;
        }
        let first = match path.steps.first() {
            Some(Step::Name(name)) => name.as_str(),
            Some(Step::Index(_)) | None => "",
        };
        if !FIELDS.contains(&first) {
            let help = match nearest(first, FIELDS) {
                Some(near) => format!("did you mean `{}.{near}`?", path.root),
                None => format!("begin with `{0}.output`, or use `{0}.text`, `{0}.status`", path.root),
            };
            let problem = format!("`{path}`: a node has `output`, `text`, `status` and `error`");
            self.problems.at(at, problem, help);
            return None;
        }
        self.names.get(&path.root).copied()
    }

    fn condition(&mut self, text: &str, pointer: &str, schema: &Value) -> Option<(Condition, Vec<usize>)> {
        let condition = match Condition::compile(text) {
            Ok(condition) => condition,
            Err(bad) => {
                let at = self.document.inside(pointer, text, bad.offset);
                self.problems.add(at, bad.problem, bad.help);
                return None;
            }
        };
        let mut places = Vec::new();
        for path in condition.paths() {
            let offset = text.find(&path.name).unwrap_or(0);
            let at = self.document.inside(pointer, text, offset);
            let mut steps: Vec<Step> = path.fields.iter().cloned().map(Step::Name).collect();
            let is_node = path.name != "input";
            // `has(a.b)` asks whether it is there, and a node as a whole may be looked at.
            if path.is_test {
                steps.pop();
            }
            if is_node && steps.is_empty() {
                places.extend(self.named(&path.name, at));
                continue;
            }
            places.extend(self.path(&Path { root: path.name.clone(), steps }, at, schema));
        }
        Some((condition, places))
    }

    fn retry(&mut self, table: &Map<String, Value>, pointer: &str) -> Option<Retry> {
        let retry = table.get("retry")?.as_object()?;
        let base = self.duration(retry, "base", &format!("{pointer}/retry/base"));
        let most = retry.get("max_retries").and_then(Value::as_u64).unwrap_or(0);
        let usual = Retry::default();
        Some(Retry {
            max_retries: u32::try_from(most).unwrap_or(u32::MAX),
            base: base.unwrap_or(usual.base),
            on: usual.on,
        })
    }

    fn duration(&mut self, table: &Map<String, Value>, name: &str, pointer: &str) -> Option<Duration> {
        let written = table.get(name)?.as_str()?;
        match iso_duration::parse(written) {
            Ok(duration) if !duration.is_zero() => Some(duration),
            _ => {
                let at = self.document.value_at(pointer);
                let problem = format!("`{}` is not a length of time", one_line(written, 80));
                self.problems.at(at, problem, "write it like \"PT30S\", \"PT1M30S\" or \"PT2H\"");
                None
            }
        }
    }

    /// The rules that every definition of a tool keeps: a flow can be one.
    fn definition(&mut self, parts: &Parts) {
        let text = |name: &str| parts.value.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut definition = haft_core::ToolDefinition::new(text("name"), text("description"));
        definition.title = parts.value.get("title").and_then(Value::as_str).map(str::to_owned);
        definition.version = parts.value.get("version").and_then(Value::as_str).map(str::to_owned);
        definition.parameters = parts.parameters.clone();
        definition.output_schema = parts.value.get("output_schema").cloned();
        for found in haft_definition::check(&definition) {
            let place = found.place.replace("outputSchema", "output_schema");
            let at = self.document.locate(&place);
            self.problems.at(at, format!("`{place}`: {}", found.problem), found.fix);
        }
    }

    fn cycle(&mut self, nodes: &[Node]) {
        let depends_on: Vec<&[usize]> = nodes.iter().map(|node| &*node.depends_on).collect();
        let Some(cycle) = graph::cycle(&depends_on) else { return };
        let first = cycle.first().copied().unwrap_or(0);
        let names: Vec<&str> = cycle.iter().chain([&first]).map(|&place| &*nodes[place].name).collect();
        let at = self.document.value_at(&format!("/nodes/{first}/name"));
        let problem = match cycle.len() {
            1 => format!("`{}` waits for itself", names[0]),
            _ => format!("these nodes wait for each other: {}", one_line(&names.join(" → "), 400)),
        };
        self.problems.at(at, problem, "take one of the references, conditions or `after` away");
    }
}
