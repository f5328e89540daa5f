//! A flow on its way: what is next, what is blocked, what is skipped. Decisions only; nothing runs here.

use crate::{Condition, Flow, NoAnswer, Path, Step};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// Its call succeeded.
    Success,
    /// Its call did not.
    Failed,
    /// It was not made, because of a node that did not succeed.
    Blocked,
    /// It was not made, because its condition does not hold, or what it refers to was skipped.
    Skipped,
    /// It was not made, or not to its end, because the flow was stopped.
    Cancelled,
}

impl NodeStatus {
    /// As conditions and references see it.
    ///
    /// ```
    /// assert_eq!(haft_flow::NodeStatus::Success.as_str(), "success");
    /// ```
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Success => "success",
            NodeStatus::Failed => "failed",
            NodeStatus::Blocked => "blocked",
            NodeStatus::Skipped => "skipped",
            NodeStatus::Cancelled => "cancelled",
        }
    }
}

/// What a node gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// How it ended.
    pub status: NodeStatus,
    /// Its structured output.
    pub output: Option<Value>,
    /// Its text, where all of it is there.
    pub text: Option<String>,
    /// Its text was too long, and only a part of it is known: nothing may be made of that.
    pub is_cut: bool,
    /// Why it did not succeed: the code and the words.
    pub error: Option<(String, String)>,
}

impl Given {
    /// A node that gave nothing.
    #[must_use]
    pub fn nothing(status: NodeStatus) -> Self {
        Given { status, output: None, text: None, is_cut: false, error: None }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"status": self.status.as_str()});
        if let Some(output) = &self.output {
            value["output"] = output.clone();
        }
        if let Some(text) = &self.text {
            value["text"] = json!(text);
        }
        if let Some((code, message)) = &self.error {
            value["error"] = json!({"code": code, "message": message});
        }
        value
    }
}

/// What to do about a node whose turn has come.
#[derive(Clone, Debug)]
pub enum Next {
    /// Find out whether its condition holds for these variables, and say so to [`Walk::after_condition`].
    Ask(Condition, Value),
    /// Call the tool with these arguments.
    Call(Map<String, Value>),
    /// It is blocked, for this reason.
    Block(String),
    /// It does not start any more, because the flow stops after a failure.
    Stop(String),
    /// It is skipped, for this reason.
    Skip(String),
    /// It has failed without a call, for this reason.
    Fail(String),
}

/// A path leads to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Missing {
    node: Option<usize>,
    reason: String,
}

/// A flow on its way. Each node is handed out by [`ready`](Walk::ready) once, when those that it depends on have ended.
///
/// ```
/// use haft_flow::{Given, Next, NodeStatus, Walk};
/// let text = r#"{"name": "a", "description": "A", "nodes": [
///     {"name": "x", "tool": "t"}, {"name": "y", "tool": "t", "arguments": {"v": "${x.text}"}}]}"#;
/// let flow = std::sync::Arc::new(haft_flow::read(text, haft_definition::Format::Json)?);
/// let mut walk = Walk::new(flow, serde_json::Map::new());
/// assert_eq!(walk.ready(), [0]);
/// walk.end(0, Given { text: Some("hello".into()), ..Given::nothing(NodeStatus::Success) });
/// assert_eq!(walk.ready(), [1]);
/// assert!(matches!(walk.next(1), Next::Call(arguments) if arguments["v"] == "hello"));
/// # Ok::<(), haft_definition::ReadErrors>(())
/// ```
#[derive(Debug)]
pub struct Walk {
    flow: Arc<Flow>,
    input: Value,
    given: Vec<Option<Given>>,
    handed_out: Vec<bool>,
    /// The first node after which nothing starts any more.
    stopped_by: Option<usize>,
}

impl Walk {
    /// At the start, with what the flow takes.
    #[must_use]
    pub fn new(flow: Arc<Flow>, input: Map<String, Value>) -> Self {
        let count = flow.nodes.len();
        Walk {
            flow,
            input: Value::Object(input),
            given: vec![None; count],
            handed_out: vec![false; count],
            stopped_by: None,
        }
    }

    /// The nodes whose turn has come, in the order of the file; each once.
    pub fn ready(&mut self) -> Vec<usize> {
        let mut ready = Vec::new();
        for (place, node) in self.flow.nodes.iter().enumerate() {
            let is_ready = !self.handed_out[place]
                && node.depends_on.iter().all(|&earlier| self.given[earlier].is_some());
            if is_ready {
                self.handed_out[place] = true;
                ready.push(place);
            }
        }
        ready
    }

    /// What to do about a node that is ready.
    #[must_use]
    pub fn next(&self, place: usize) -> Next {
        let node = &self.flow.nodes[place];
        if let Some(failed) = self.stopped_by {
            let name = &self.flow.nodes[failed].name;
            return Next::Stop(format!(
                "Not started, because the flow stops after a failure, and `{name}` failed"
            ));
        }
        // One that failed says more than one that was only blocked by it.
        let mut blocking: Vec<usize> =
            node.depends_on.iter().copied().filter(|&earlier| !self.has_passed(earlier)).collect();
        blocking.sort_by_key(|&earlier| self.status(earlier) == Some(NodeStatus::Blocked));
        if let Some(&earlier) = blocking.first() {
            let name = &self.flow.nodes[earlier].name;
            let how = match self.status(earlier) {
                Some(NodeStatus::Blocked) => "is blocked itself".to_owned(),
                Some(NodeStatus::Cancelled) => "was cancelled".to_owned(),
                _ => match self.given[earlier].as_ref().and_then(|given| given.error.as_ref()) {
                    Some((code, _)) => format!("did not succeed ({code})"),
                    None => "did not succeed".to_owned(),
                },
            };
            return Next::Block(format!("Not started, because it depends on `{name}`, which {how}"));
        }
        match &node.when {
            Some(condition) => Next::Ask(condition.clone(), self.variables(condition)),
            None => self.call(place),
        }
    }

    /// Decides about a node once its condition is known.
    #[must_use]
    pub fn after_condition(&self, place: usize, answer: Result<bool, NoAnswer>) -> Next {
        let when = self.flow.nodes[place].when.as_ref().map_or("", Condition::text);
        match answer {
            Ok(true) => self.call(place),
            Ok(false) => Next::Skip(format!("its condition does not hold: {when}")),
            Err(problem) => {
                let at = self.flow.document.value_at(&format!("/nodes/{place}/when"));
                Next::Fail(format!("Its condition gives no answer: {problem} ({at}: {when})"))
            }
        }
    }

    fn call(&self, place: usize) -> Next {
        match self.flow.nodes[place].arguments.fill(&mut |path| self.find(path)) {
            Ok(Value::Object(arguments)) => Next::Call(arguments),
            Ok(_) => Next::Call(Map::new()),
            Err(Missing { node: Some(node), .. }) if self.status(node) == Some(NodeStatus::Skipped) => {
                let name = &self.flow.nodes[node].name;
                Next::Skip(format!("it takes something from `{name}`, which was skipped"))
            }
            Err(Missing { reason, .. }) => Next::Block(format!("Not started, because {reason}")),
        }
    }

    /// A node has ended.
    pub fn end(&mut self, place: usize, given: Given) {
        let has_failed = matches!(given.status, NodeStatus::Failed | NodeStatus::Cancelled);
        if has_failed && self.flow.stop_on_failure && !self.flow.nodes[place].continue_on_failure {
            self.stopped_by = self.stopped_by.or(Some(place));
        }
        self.given[place] = Some(given);
    }

    /// The node after whose failure nothing starts any more.
    #[must_use]
    pub fn stopped_by(&self) -> Option<usize> {
        self.stopped_by
    }

    /// Whether every node has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.given.iter().all(Option::is_some)
    }

    /// What a node gave, once it has ended.
    #[must_use]
    pub fn given(&self, place: usize) -> Option<&Given> {
        self.given[place].as_ref()
    }

    fn status(&self, place: usize) -> Option<NodeStatus> {
        self.given[place].as_ref().map(|given| given.status)
    }

    /// Whether what depends on a node may go on.
    fn has_passed(&self, place: usize) -> bool {
        match self.status(place) {
            Some(NodeStatus::Success | NodeStatus::Skipped) => true,
            // A stopped flow starts nothing of what comes after, either.
            Some(NodeStatus::Cancelled) | None => false,
            Some(NodeStatus::Failed | NodeStatus::Blocked) => self.flow.nodes[place].continue_on_failure,
        }
    }

    /// What a condition looks at.
    fn variables(&self, condition: &Condition) -> Value {
        let mut variables = Map::new();
        for name in condition.names() {
            if name == "input" {
                variables.insert(name.to_owned(), self.input.clone());
            } else if let Some(given) = self.flow.place(name).and_then(|place| self.given[place].as_ref()) {
                variables.insert(name.to_owned(), given.to_value());
            }
        }
        Value::Object(variables)
    }

    /// What a path leads to.
    fn find(&self, path: &Path) -> Result<Value, Missing> {
        if path.root == "input" {
            let found = Path::follow(&path.steps, &self.input).cloned();
            return found.ok_or_else(|| Missing { node: None, reason: format!("there is no `{path}`") });
        }
        let node = self.flow.place(&path.root);
        let given = node.and_then(|place| self.given[place].as_ref());
        let found = given.and_then(|given| match path.steps.split_first() {
            // Not copied as a whole: an output may be long.
            Some((Step::Name(first), rest)) if first == "output" => {
                Path::follow(rest, given.output.as_ref()?).cloned()
            }
            Some((Step::Name(first), [])) if first == "text" => given.text.clone().map(Value::String),
            _ => Path::follow(&path.steps, &given.to_value()).cloned(),
        });
        found.ok_or_else(|| {
            let has_none = given.is_some_and(|given| given.output.is_none())
                && path.steps.first() == Some(&Step::Name("output".to_owned()));
            let is_text = path.steps == [Step::Name("text".to_owned())];
            let reason = match has_none {
                true => format!("there is no `{path}`: `{}` gave no structured output", path.root),
                false if is_text && given.is_some_and(|given| given.is_cut) => {
                    format!("the text of `{}` is too long to be passed on whole", path.root)
                }
                false => format!("there is no `{path}`"),
            };
            Missing { node, reason }
        })
    }

    /// What the flow gives: what it says, else what its last nodes gave, by their names. One last node alone gives what
    /// it gave.
    ///
    /// # Errors
    ///
    /// Why what it says cannot be put together.
    pub fn output(&self) -> Result<Value, String> {
        if let Some(output) = &self.flow.output {
            let filled = output.fill(&mut |path| self.find(path));
            return filled
                .map_err(|missing| format!("The flow's output cannot be put together: {}", missing.reason));
        }
        let one = |place: usize| {
            let given = self.given[place].as_ref()?;
            given.output.clone().or_else(|| given.text.clone().map(Value::String))
        };
        match self.flow.last_nodes().as_slice() {
            [only] => Ok(one(*only).unwrap_or(Value::Null)),
            last => {
                let named = last.iter().map(|&place| {
                    (self.flow.nodes[place].name.to_string(), one(place).unwrap_or(Value::Null))
                });
                Ok(Value::Object(named.collect()))
            }
        }
    }
}
