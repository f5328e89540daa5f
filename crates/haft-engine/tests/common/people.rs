//! People who can be asked.

use haft_core::{
    ApprovalRequest, Decision,
    port::{Approver, BoxFuture, GuardError},
};
use std::{
    future::ready,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

type Decide = dyn Fn(&ApprovalRequest) -> Decision + Send + Sync;

/// Somebody who answers every question at once, and remembers what was asked together.
pub(crate) struct Answers {
    decide: Box<Decide>,
    asked: Mutex<Vec<Vec<ApprovalRequest>>>,
}

impl Answers {
    pub(crate) fn by(decide: impl Fn(&ApprovalRequest) -> Decision + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Answers { decide: Box::new(decide), asked: Mutex::default() })
    }

    pub(crate) fn yes() -> Arc<Self> {
        Answers::by(|_| Decision::Approve)
    }

    /// Each time somebody was asked: all questions of that time.
    pub(crate) fn asked(&self) -> Vec<Vec<ApprovalRequest>> {
        self.asked.lock().unwrap().clone()
    }

    /// What was asked so far; it is then forgotten.
    pub(crate) fn take_asked(&self) -> Vec<Vec<ApprovalRequest>> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Approver for Answers {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        self.asked.lock().unwrap().push(requests.to_vec());
        Box::pin(ready(Ok(requests.iter().map(|request| (self.decide)(request)).collect())))
    }
}

/// Somebody behind a door: the questions wait until it is opened, and are then all answered with yes.
pub(crate) struct Door {
    open: watch::Sender<bool>,
    asked: Mutex<usize>,
}

impl Door {
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Door { open: watch::channel(false).0, asked: Mutex::new(0) })
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// How many questions were put through the door.
    pub(crate) fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

impl Approver for Door {
    fn ask<'a>(
        &'a self,
        requests: &'a [ApprovalRequest],
    ) -> BoxFuture<'a, Result<Vec<Decision>, GuardError>> {
        *self.asked.lock().unwrap() += requests.len();
        Box::pin(async move {
            let _ = self.open.subscribe().wait_for(|open| *open).await;
            Ok(vec![Decision::Approve; requests.len()])
        })
    }
}
