//! What a server is made of.

use super::{
    approval::{Approvals, CHANNEL},
    callers::Callers,
    changes::{Change, Changes},
    extension::{Extension, Nothing},
    round::Seals,
    session::Session,
    tasks::Tasks,
    tools::Shown,
};
use haft_engine::Engine;
use std::{sync::Arc, time::Duration};

/// How many entries a page has, unless somebody says otherwise.
const PAGE: usize = 100;
/// How long a person may take to answer through a client.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// An engine, offered as an MCP server. Cheap to clone; each connection gets a [`session`](Self::session).
#[derive(Clone)]
pub struct McpServer(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) engine: Engine,
    pub(super) callers: Callers,
    pub(super) approvals: Approvals,
    pub(super) patience: Duration,
    pub(super) page: usize,
    pub(super) instructions: Option<String>,
    pub(super) extension: Arc<dyn Extension>,
    /// Whether the folders of clients are not asked for.
    pub(super) ignores_roots: bool,
    pub(super) tasks: Option<Arc<dyn Tasks>>,
    pub(super) seals: Seals,
    pub(super) changes: Changes,
    pub(super) shown: Shown,
}

impl McpServer {
    /// Puts one together.
    pub fn builder(engine: Engine, callers: Callers) -> Builder {
        Builder {
            engine,
            callers,
            approvals: Approvals::default(),
            patience: PATIENCE,
            page: PAGE,
            instructions: None,
            extension: Arc::new(Nothing),
            ignores_roots: false,
            tasks: None,
        }
    }

    /// One connection.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// Tells clients that something has changed which the engine does not know of. Changes of tools are told without
    /// it.
    pub fn notify(&self, change: Change) {
        self.0.changes.tell(change);
    }

    /// Whether answers of people through MCP count at all.
    pub(super) fn takes_answers(&self) -> bool {
        self.0.engine.settings().accept_answers.counts(CHANNEL)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }
}

/// Puts an [`McpServer`] together.
#[must_use]
pub struct Builder {
    engine: Engine,
    callers: Callers,
    approvals: Approvals,
    patience: Duration,
    page: usize,
    instructions: Option<String>,
    extension: Arc<dyn Extension>,
    ignores_roots: bool,
    tasks: Option<Arc<dyn Tasks>>,
}

impl Builder {
    /// Who approves what needs it. Where the engine takes no [answers](haft_engine::Settings::accept_answers) from
    /// `mcp`, or the [caller](super::Caller) may give none, it is the engine's own approver.
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals;
        self
    }

    /// How long a person may take to answer through a client. Then the question stays open, and nothing runs.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How many entries a page of a list has, at least one.
    pub fn page(mut self, entries: usize) -> Self {
        self.page = entries.max(1);
        self
    }

    /// What a model is told about the server as a whole, after what haft says itself.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// What is offered besides tools.
    pub fn extension(mut self, extension: impl Extension + 'static) -> Self {
        self.extension = Arc::new(extension);
        self
    }

    /// Asks no client for the folders that it works in. Only for tools that reach no files: calls of a client that says
    /// that it works in some folders are then not kept to them.
    pub fn without_roots(mut self) -> Self {
        self.ignores_roots = true;
        self
    }

    /// Makes tasks of long calls, for clients that know tasks. Without it there are none.
    pub fn tasks(mut self, tasks: Arc<dyn Tasks>) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// The server.
    pub fn build(self) -> McpServer {
        McpServer(Arc::new(Inner {
            engine: self.engine,
            callers: self.callers,
            approvals: self.approvals,
            patience: self.patience,
            page: self.page,
            instructions: self.instructions,
            extension: self.extension,
            ignores_roots: self.ignores_roots,
            tasks: self.tasks,
            seals: Seals::new(),
            changes: Changes::new(),
            shown: Shown::default(),
        }))
    }
}
