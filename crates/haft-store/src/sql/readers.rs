//! Threads that read, and that do other slow things that the writer should not wait for.

use super::{
    value::{Fault, FaultKind, Sql},
    writer::Connect,
};
use haft_core::port::StoreError;
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};
use tokio::sync::oneshot;

type Errand = Box<dyn FnOnce(&mut ReaderThread) + Send>;

/// One thread's place: its connection, made when it is first needed.
pub(crate) struct ReaderThread {
    connect: Box<dyn Connect>,
    sql: Option<Box<dyn Sql + Send>>,
}

impl ReaderThread {
    fn read<T>(&mut self, read: impl FnOnce(&mut dyn Sql) -> Result<T, Fault>) -> Result<T, Fault> {
        let sql = match &mut self.sql {
            Some(sql) => sql,
            none => none.insert(self.connect.connect()?),
        };
        let answer = read(sql.as_mut());
        if answer.as_ref().is_err_and(|fault| fault.kind != FaultKind::Refused) {
            self.sql = None;
        }
        answer
    }
}

/// The threads.
pub(crate) struct Readers {
    errands: Option<mpsc::Sender<Errand>>,
}

impl Readers {
    /// One thread for each way to connect.
    pub(crate) fn start(desks: Vec<Box<dyn Connect>>) -> Result<Self, Fault> {
        let (errands, waiting) = mpsc::channel::<Errand>();
        let waiting = Arc::new(Mutex::new(waiting));
        for connect in desks {
            let waiting = Arc::clone(&waiting);
            let mut desk = ReaderThread { connect, sql: None };
            let run = move || {
                loop {
                    let errand = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    match errand {
                        Ok(errand) => errand(&mut desk),
                        // Nobody can ask any more.
                        Err(mpsc::RecvError) => return,
                    }
                }
            };
            thread::Builder::new()
                .name("haft-reader".to_owned())
                .spawn(run)
                .map_err(|error| Fault::new(FaultKind::Other, format!("no thread for the store: {error}")))?;
        }
        Ok(Readers { errands: Some(errands) })
    }

    /// Reads something.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Sql) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |desk| {
            // The caller may have gone away.
            let _ = reply.send(desk.read(read));
        }));
        answer.await.map_err(|_| gone())?.map_err(StoreError::from)
    }

    /// Reads as above, for code that cannot await.
    pub(crate) fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Sql) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = mpsc::channel();
        self.send(Box::new(move |desk| {
            let _ = reply.send(desk.read(read));
        }));
        answer.recv().map_err(|_| gone())?.map_err(StoreError::from)
    }

    /// Does something slow that needs no database.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |_| {
            let _ = reply.send(compute());
        }));
        answer.await.map_err(|_| gone())
    }

    fn send(&self, errand: Errand) {
        if let Some(errands) = &self.errands {
            // Where no thread is left the errand is dropped, and the waiting caller learns that.
            let _ = errands.send(errand);
        }
    }
}

fn gone() -> StoreError {
    StoreError("the store ended before it answered".to_owned())
}
