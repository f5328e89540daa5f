//! What is wrong with a flow, while it is collected.

use haft_definition::{Position, ReadError, ReadErrors};

#[derive(Default)]
pub(crate) struct Problems(Vec<ReadError>);

impl Problems {
    pub(crate) fn at(&mut self, position: Position, problem: impl Into<String>, help: impl Into<String>) {
        self.add(position, problem.into(), Some(help.into()));
    }

    pub(crate) fn add(&mut self, position: Position, problem: String, help: Option<String>) {
        self.0.push(ReadError { position, problem, help });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_errors(self) -> ReadErrors {
        ReadErrors::new(self.0)
    }
}
