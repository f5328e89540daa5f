//! Who is told that a list has changed.

use super::{builder::McpServer, resources::tool_uri};
use haft_engine::ToolsEvent;
use rmcp::{
    Peer, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{SubscriptionContext, SubscriptionSendError},
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

/// How long more changes are waited for before anybody is told: they come in swarms.
const SWARM: Duration = Duration::from_millis(20);
/// How many resources one connection may watch.
const MOST_WATCHED: usize = 1000;

/// Something that clients know has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// What is behind an address.
    Resource(Arc<str>),
}

/// Changes that the engine does not know of.
pub(super) struct Changes(broadcast::Sender<Change>);

impl Changes {
    pub(super) fn new() -> Self {
        Changes(broadcast::channel(256).0)
    }

    pub(super) fn tell(&self, change: Change) {
        // An error only says that nobody listens.
        let _ = self.0.send(change);
    }
}

/// What changes from now on, the engine's tools included.
pub(super) struct Listener {
    tools: broadcast::Receiver<ToolsEvent>,
    others: broadcast::Receiver<Change>,
}

impl Listener {
    pub(super) fn new(server: &McpServer) -> Self {
        Listener { tools: server.0.engine.tools().events(), others: server.0.changes.0.subscribe() }
    }

    /// The next swarm of changes; `None` when there can be no more.
    async fn next(&mut self) -> Option<BTreeSet<Change>> {
        let mut changes = BTreeSet::new();
        self.one(&mut changes).await?;
        let until = tokio::time::Instant::now() + SWARM;
        while let Ok(Some(())) = tokio::time::timeout_at(until, self.one(&mut changes)).await {}
        Some(changes)
    }

    async fn one(&mut self, changes: &mut BTreeSet<Change>) -> Option<()> {
        tokio::select! {
            event = self.tools.recv() => match event {
                Ok(ToolsEvent::Configured { .. }) => {}
                Ok(ToolsEvent::Replaced { name }) => {
                    changes.insert(Change::Tools);
                    changes.insert(Change::Resource(tool_uri(&name).into()));
                }
                Ok(ToolsEvent::Registered { .. } | ToolsEvent::Unregistered { .. })
                | Ok(ToolsEvent::Enabled { .. } | ToolsEvent::Disabled { .. })
                // A listener that was too slow knows only that something changed.
                | Err(RecvError::Lagged(_)) => {
                    changes.insert(Change::Tools);
                    changes.insert(Change::Resources);
                }
                Err(RecvError::Closed) => return None,
            },
            change = self.others.recv() => match change {
                Ok(change) => {
                    changes.insert(change);
                }
                Err(RecvError::Lagged(_)) => {
                    changes.extend([Change::Tools, Change::Prompts, Change::Resources]);
                }
                Err(RecvError::Closed) => return None,
            },
        }
        Some(())
    }
}

/// The resources that a connection watches, before 2026-07-28.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Mutex<BTreeSet<String>>>);

impl Watched {
    /// Watches it, too; false where there are too many.
    pub(super) fn add(&self, uri: String) -> bool {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (watched.len() < MOST_WATCHED || watched.contains(&uri)) && {
            watched.insert(uri);
            true
        }
    }

    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    fn has(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }
}

/// Tells a connection with a handshake, until it has ended.
pub(super) async fn tell(
    mut listener: Listener,
    peer: Peer<RoleServer>,
    watched: Watched,
    has_prompts: bool,
    ended: CancellationToken,
) {
    loop {
        let changes = tokio::select! {
            changes = listener.next() => changes,
            () = ended.cancelled() => return,
        };
        let Some(changes) = changes else { return };
        for change in changes {
            let told = match change {
                Change::Tools => peer.notify_tool_list_changed().await,
                Change::Resources => peer.notify_resource_list_changed().await,
                Change::Prompts if has_prompts => peer.notify_prompt_list_changed().await,
                Change::Resource(uri) if watched.has(&uri) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(&*uri)).await
                }
                Change::Prompts | Change::Resource(_) => Ok(()),
            };
            if told.is_err() {
                return;
            }
        }
    }
}

/// What may be subscribed to: all of it, but for more addresses than anybody needs.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.truncate(MOST_WATCHED);
    }
    accepted
}

/// Serves one subscription, until its client ends it.
pub(super) async fn listen(mut listener: Listener, subscription: &SubscriptionContext) {
    let sink = subscription.sink();
    loop {
        let changes = tokio::select! {
            changes = listener.next() => changes,
            () = subscription.cancelled() => return,
        };
        let Some(changes) = changes else { return };
        for change in changes {
            let told = match change {
                Change::Tools => sink.notify_tool_list_changed().await,
                Change::Prompts => sink.notify_prompt_list_changed().await,
                Change::Resources => sink.notify_resource_list_changed().await,
                Change::Resource(uri) => sink.notify_resource_updated(&*uri).await,
            };
            if matches!(
                told,
                Err(SubscriptionSendError::SubscriptionClosed | SubscriptionSendError::Service(_))
            ) {
                return;
            }
        }
    }
}
