//! Which tools there are. Reading never waits for a writer: a change makes a new snapshot.

use crate::{
    schema::{ArgumentSchema, OutputSchema},
    stats::Stats,
};
use arc_swap::ArcSwap;
use haft_core::{DefinitionProblem, ErrorCode, ToolDefinition, suggest};
use haft_sdk::Tool;
use std::{collections::HashMap, sync::Arc};

/// Why a tool was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The definition breaks rules.
    #[error("the definition of `{name}` is not valid: {}", list(problems))]
    BadDefinition {
        /// The tool.
        name: String,
        /// Each rule that it breaks.
        problems: Vec<DefinitionProblem>,
    },
    /// A tool has that name or alias already.
    #[error("`{name}` is registered already; choose another name, or remove the other tool first")]
    Duplicate {
        /// The name or alias.
        name: String,
    },
}

impl RegisterError {
    /// The row of the error table.
    pub fn code(&self) -> ErrorCode {
        match self {
            RegisterError::BadDefinition { .. } => ErrorCode::BadDefinition,
            RegisterError::Duplicate { .. } => ErrorCode::DuplicateTool,
        }
    }
}

fn list(problems: &[DefinitionProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A tool with everything that can be known about it before it is called.
pub(crate) struct Registered {
    pub(crate) tool: Box<dyn Tool>,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) name: Arc<str>,
    pub(crate) arguments: ArgumentSchema,
    pub(crate) output: Option<OutputSchema>,
    pub(crate) stats: Stats,
}

type Hashing = foldhash::fast::RandomState;

#[derive(Default)]
struct Snapshot {
    /// By canonical name or alias, in lower case.
    by_name: HashMap<Box<str>, Arc<Registered>, Hashing>,
    /// In the order of their names.
    sorted: Vec<Arc<Registered>>,
}

/// The tools of an engine.
#[derive(Default)]
pub(crate) struct Registry {
    current: ArcSwap<Snapshot>,
}

impl Registry {
    /// Adds a tool.
    pub(crate) fn register(&self, tool: Box<dyn Tool>) -> Result<(), RegisterError> {
        let definition = Arc::new(tool.definition().clone());
        let name: Arc<str> = definition.name.as_str().into();
        let mut problems = definition.check();
        let (arguments, output) = (ArgumentSchema::new(&definition), OutputSchema::new(&definition));
        problems.extend(arguments.as_ref().err().cloned());
        problems.extend(output.as_ref().err().cloned());
        let (Ok(arguments), Ok(output), true) = (arguments, output, problems.is_empty()) else {
            return Err(RegisterError::BadDefinition { name: definition.name.clone(), problems });
        };
        let registered =
            Arc::new(Registered { tool, name, arguments, output, stats: Stats::default(), definition });
        let mut clash = None;
        self.current.rcu(|old| {
            let (next, found) = old.with(&registered);
            clash = found;
            match clash {
                None => Arc::new(next),
                Some(_) => Arc::clone(old),
            }
        });
        clash.map_or(Ok(()), |name| Err(RegisterError::Duplicate { name }))
    }

    /// The tool of that name or alias, in any case.
    pub(crate) fn lookup(&self, name: &str) -> Option<Arc<Registered>> {
        let current = self.current.load();
        if let Some(found) = current.by_name.get(name) {
            return Some(Arc::clone(found));
        }
        if name.len() <= 64 && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return current.by_name.get(name.to_ascii_lowercase().as_str()).cloned();
        }
        None
    }

    /// All tools, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Registered>> {
        self.current.load().sorted.clone()
    }

    /// The name that was probably meant.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
        let current = self.current.load();
        suggest::nearest(name, current.by_name.keys().map(|key| &**key))
            .and_then(|key| current.by_name.get(key))
            .map(|registered| registered.definition.name.clone())
    }
}

impl Snapshot {
    fn with(&self, registered: &Arc<Registered>) -> (Snapshot, Option<String>) {
        let mut next = Snapshot { by_name: self.by_name.clone(), sorted: self.sorted.clone() };
        let definition = &registered.definition;
        for name in std::iter::once(&definition.name).chain(&definition.aliases) {
            let key = name.to_ascii_lowercase().into_boxed_str();
            if next.by_name.insert(key, Arc::clone(registered)).is_some() {
                return (next, Some(name.clone()));
            }
        }
        let place = next.sorted.partition_point(|other| other.name < registered.name);
        next.sorted.insert(place, Arc::clone(registered));
        (next, None)
    }
}
