//! Who was not let in: counted, and told now and then.
//!
//! Anybody can be refused as often as they like. So what is kept of it is bounded: a handful of addresses with counts,
//! and one record a minute at the most.

use crate::backend::{Refused, ServerBackend};
use std::{
    collections::BTreeMap,
    mem,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The time between two records.
const PAUSE: Duration = Duration::from_secs(60);
/// How many addresses a record has. The rest is counted together.
const ADDRESSES: usize = 16;

/// The address at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// They offered nothing.
    Nothing,
    /// What they offered does not count.
    Unknown,
}

/// Counts since the last record.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    counts: Mutex<Counts>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    without: u64,
    unknown: u64,
    addresses: BTreeMap<IpAddr, u64>,
    others: u64,
}

impl Refusals {
    /// Counts one.
    pub(crate) fn count(&self, why: Why, peer: Option<Peer>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match why {
            Why::Nothing => counts.without += 1,
            Why::Unknown => counts.unknown += 1,
        }
        if let Some(Peer(address)) = peer {
            let is_known = counts.addresses.contains_key(&address);
            match is_known || counts.addresses.len() < ADDRESSES {
                true => *counts.addresses.entry(address).or_default() += 1,
                false => counts.others += 1,
            }
        }
        drop(counts);
        self.some.notify_one();
    }

    /// What was counted since the last time, if anything was.
    fn take(&self) -> Option<Refused> {
        let counts = mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let said = Refused {
            without: counts.without,
            unknown: counts.unknown,
            addresses: counts.addresses.into_iter().map(|(at, count)| (at.to_string(), count)).collect(),
            others: counts.others,
        };
        (said.without + said.unknown > 0).then_some(said)
    }

    /// Tells the host until the server stops: the first one at once, then one record a minute.
    pub(crate) async fn tell(self: Arc<Self>, backend: Arc<dyn ServerBackend>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.some.notified() => {}
                () = stop.cancelled() => {}
            }
            if let Some(refused) = self.take()
                && let Err(error) = backend.refused(refused).await
            {
                let why = error.diagnostics.as_deref().unwrap_or(&error.message);
                tracing::error!(why, "refusals could not be recorded");
            }
            if stop.is_cancelled() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.cancelled() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let refusals = Refusals::default();
        assert_eq!(refusals.take(), None);
        for place in 0..1000_u32 {
            let address = std::net::Ipv4Addr::from(place % 40).into();
            refusals.count(Why::Unknown, Some(Peer(address)));
        }
        refusals.count(Why::Nothing, None);
        let refused = refusals.take().unwrap();
        assert_eq!((refused.without, refused.unknown, refused.addresses.len()), (1, 1000, ADDRESSES));
        assert_eq!(refused.addresses.values().sum::<u64>() + refused.others, 1000);
        assert_eq!(refusals.take(), None, "it is told once");
    }
}
