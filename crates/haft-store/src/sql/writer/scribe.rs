//! The thread that writes.

use super::*;

/// The thread itself.
pub(super) struct Scribe {
    pub(super) shared: Arc<Shared>,
    /// Absent after a failure, until it is made again.
    pub(super) sql: Option<Box<dyn Sql + Send>>,
    pub(super) connect: Box<dyn Connect>,
    pub(super) instance: String,
    pub(super) lives: Arc<dyn Lives>,
    pub(super) options: Options,
    pub(super) chain_id: String,
    /// Records that could not be written yet, oldest first.
    pub(super) kept: Vec<Box<dyn Job>>,
    /// When the end of the chain was last told.
    pub(super) told: Option<Instant>,
    /// The end of the chain that nobody was told of yet.
    pub(super) untold: Option<(i64, Bytes32)>,
    /// Records that the table of executions is behind.
    pub(super) lag: usize,
    /// Something was written since the house was last put in order.
    pub(super) is_untidy: bool,
}

/// What to do next.
enum Next {
    Write(Vec<Box<dyn Job>>),
    Tidy,
    End,
}

impl Scribe {
    pub(super) fn run(&mut self) {
        loop {
            match self.next() {
                Next::Write(jobs) => self.write(jobs),
                Next::Tidy => self.tidy(),
                Next::End => break,
            }
        }
        self.tidy();
        self.tell_head(true);
    }

    /// Waits for work: at once for what somebody waits for, a moment for company otherwise.
    fn next(&self) -> Next {
        let shared = &self.shared;
        let mut state = shared.state();
        loop {
            if state.urgent > 0 || state.jobs.len() >= GROUP || (state.closing && !state.jobs.is_empty()) {
                break;
            }
            if state.closing {
                return Next::End;
            }
            let wait = match state.since {
                Some(since) if !state.jobs.is_empty() => match shared.window.checked_sub(since.elapsed()) {
                    Some(left) if !left.is_zero() => left,
                    _ => break,
                },
                _ if !self.kept.is_empty() => RETRY,
                _ if self.lag > 0 || self.untold.is_some() => shared.window,
                _ if self.is_untidy => TIDY,
                _ => Duration::from_secs(60),
            };
            state.is_asleep = true;
            let (back, timeout) =
                shared.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.is_asleep = false;
            if timeout.timed_out() && state.jobs.is_empty() {
                return Next::Tidy;
            }
        }
        let count = state.jobs.len().min(GROUP);
        let jobs: Vec<_> = state.jobs.drain(..count).collect();
        if state.jobs.is_empty() {
            (state.urgent, state.since) = (0, None);
        } else {
            // What is left is taken next; whether somebody waits for it is not worth counting.
            state.since = Some(Instant::now());
        }
        drop(state);
        shared.room.notify_waiters();
        Next::Write(jobs)
    }

    fn write(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        // What was kept back goes first: the order in which things happened stays.
        let mut group = std::mem::take(&mut self.kept);
        group.append(&mut jobs);
        let written = self.transaction(&mut group);
        match written {
            Ok(()) => self.written(group),
            Err(fault) if group.len() > 1 && fault.kind == FaultKind::Refused => {
                for job in group {
                    self.write_alone(job);
                }
            }
            Err(fault) => self.failed(group, &fault),
        }
        if self.lag >= projection::PIECE as usize / 4 {
            self.project();
        }
        self.tell_head(false);
    }

    fn write_alone(&mut self, job: Box<dyn Job>) {
        let mut one = vec![job];
        match self.transaction(&mut one) {
            Ok(()) => self.written(one),
            Err(fault) => self.failed(one, &fault),
        }
    }

    fn written(&mut self, group: Vec<Box<dyn Job>>) {
        self.shared.state().failing = None;
        for mut job in group {
            failpoint::hit(job.name(), "written");
            job.tell(Ok(()));
            failpoint::hit(job.name(), "told");
        }
    }

    /// Tells everybody. Records that must not be lost are kept, unless they are themselves what cannot be done.
    fn failed(&mut self, group: Vec<Box<dyn Job>>, fault: &Fault) {
        let is_one_jobs_fault = fault.kind == FaultKind::Refused;
        if !is_one_jobs_fault {
            // Before anybody is told: a caller that hears of it and hands over the next record is told about that one, too.
            self.shared.state().failing = Some(fault.clone());
        }
        for mut job in group {
            job.tell(Err(fault));
            if job.must_stay() && !is_one_jobs_fault {
                self.kept.push(job);
            }
        }
        if !is_one_jobs_fault {
            if matches!(fault.kind, FaultKind::Io | FaultKind::Corrupt | FaultKind::Lost | FaultKind::Other) {
                // After a failed sync nobody knows what the connection still believes.
                self.sql = None;
            }
            // Bounded. The newest go: those were told to their callers as not recorded, the oldest perhaps not.
            self.kept.truncate(self.options.queue.saturating_mul(2));
        }
    }

    fn transaction(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        let sql = match &mut self.sql {
            Some(sql) => sql,
            none => none.insert(self.connect.connect()?),
        };
        self.is_untidy = true;
        let sealed = {
            let mut work = Work::new(sql.as_mut(), &self.instance, &*self.lives, &self.options);
            work.sql.begin()?;
            let before = if group.is_empty() { 0 } else { group.len() };
            let mut apply = || {
                for job in group.iter_mut() {
                    job.apply(&mut work)?;
                    failpoint::hit(job.name(), "applied");
                }
                // In a large group the table of executions can as well come along: it saves a sync of its own.
                if before >= 32 {
                    projection::project(&mut work, projection::PIECE)?;
                }
                let sealed = work.seal()?;
                work.sql.commit()?;
                Ok(sealed)
            };
            let done: Result<_, Fault> = apply();
            if done.is_err() {
                work.sql.roll_back();
            }
            done?
        };
        if let Some(head) = sealed {
            self.untold = Some(head);
            self.lag = if group.len() >= 32 { 0 } else { self.lag + group.len() };
        }
        Ok(())
    }

    /// Brings the table of executions up to date.
    fn project(&mut self) {
        struct Project(bool);
        impl Job for Project {
            fn name(&self) -> &'static str {
                "project"
            }
            fn apply(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
                self.0 = projection::project(work, projection::PIECE)?;
                Ok(())
            }
            fn tell(&mut self, _done: Result<(), &Fault>) {}
            fn must_stay(&self) -> bool {
                false
            }
        }
        // Where it fails, the next reader tries again and is told why.
        let mut group: [Box<dyn Job>; 1] = [Box::new(Project(false))];
        if self.transaction(&mut group).is_ok() {
            failpoint::hit("project", "written");
        }
        self.lag = 0;
    }

    /// Nobody wants anything: what was kept back is tried again, and the house is put in order.
    fn tidy(&mut self) {
        if !self.kept.is_empty() {
            self.write(Vec::new());
        }
        if self.lag > 0 {
            self.project();
        }
        self.tell_head(false);
        if let Some(sql) = &mut self.sql {
            self.is_untidy = false;
            sql.tidy();
        }
    }

    fn tell_head(&mut self, at_once: bool) {
        let Some(sink) = &self.options.sink else {
            self.untold = None;
            return;
        };
        if !at_once && self.told.is_some_and(|told| told.elapsed() < HEADS) {
            return;
        }
        if let Some((seq, mac)) = self.untold.take() {
            let at = self.options.clock.now();
            sink.head(&AuditHead { chain: self.chain_id.clone(), seq, mac: chain::hex(&mac), at });
            self.told = Some(Instant::now());
        }
    }
}
