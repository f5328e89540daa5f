//! A request's body as a whole: bounded in bytes, in time, and over all requests.
//!
//! A body comes in pieces, and a piece of one byte can keep a whole read buffer alive. So pieces are copied into one
//! buffer and let go, and nothing is kept that was not sent.

use crate::slots::{Full, Slot, Slots};
use bytes::{Buf as _, Bytes};
use http_body::Body;
use http_body_util::BodyExt as _;
use std::{fmt::Display, hash::Hash, pin::pin, time::Duration};
use tokio::time::Instant;

/// Bounds of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes of one.
    pub bytes: usize,
    /// Bytes of all that one holder sends at once.
    pub bytes_of_holder: usize,
    /// Bytes of all bodies together, from all senders.
    pub bytes_of_all: usize,
    /// How long one may stay silent.
    pub silence: Duration,
    /// How long one may take, whatever has come.
    pub grace: Duration,
    /// Bytes a second that it must have come to once the grace is over: each so many that came are worth one second
    /// more.
    pub least_rate: usize,
}

impl BodyLimits {
    /// How long the next piece is waited for; `None` where the body has had its time. So no body takes longer than its
    /// grace and its bytes at the least rate.
    ///
    /// ```
    /// use std::time::Duration;
    /// let limits = haft_http::BodyLimits::default();
    /// let (seconds, kib) = (Duration::from_secs, 1024);
    /// assert_eq!(limits.wait(0, seconds(0)), Some(limits.grace));
    /// assert_eq!(limits.wait(100, limits.grace), None);
    /// assert_eq!(limits.wait(160 * kib, seconds(20)), Some(seconds(5)));
    /// assert_eq!(limits.wait(4096 * kib, seconds(20)), Some(limits.silence));
    /// ```
    pub fn wait(&self, received: usize, elapsed: Duration) -> Option<Duration> {
        let earned = received / self.least_rate.max(1);
        let time = self.grace.saturating_add(Duration::from_secs(earned as u64));
        let left = time.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        Some(left.min(self.silence))
    }
}

impl Default for BodyLimits {
    fn default() -> Self {
        BodyLimits {
            bytes: 4 << 20,
            bytes_of_holder: 64 << 20,
            bytes_of_all: 256 << 20,
            silence: Duration::from_secs(15),
            grace: Duration::from_secs(15),
            least_rate: 16 << 10,
        }
    }
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum BodyProblem {
    /// It is longer than one may be.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It did not come in its time.
    #[error("the body did not come in its time")]
    TooSlow,
    /// There is no room now.
    #[error("there is no room for the body now: {0}")]
    NoRoom(Full),
    /// It ended too early, or was not HTTP.
    #[error("the body could not be read: {0}")]
    Broken(String),
}

/// Reads bodies, and keeps to what all of them may have together.
#[derive(Clone, Debug)]
pub struct Bodies<K: Eq + Hash> {
    limits: BodyLimits,
    room: Slots<K>,
}

/// Room is taken in pieces of so many bytes, so that a body of single bytes does not count a million times.
const PIECE: usize = 4 << 10;

/// A body, with the room that it takes. The room is free again when this is dropped.
#[derive(Debug)]
pub struct WholeBody<K: Eq + Hash> {
    /// What was sent.
    pub bytes: Bytes,
    /// The room of the body, for code that uses the bytes for longer.
    pub room: Slot<K>,
}

impl<K: Eq + Hash + Clone> Bodies<K> {
    /// With these bounds.
    pub fn new(limits: BodyLimits) -> Self {
        let pieces = |bytes: usize| bytes.div_ceil(PIECE).max(1);
        Bodies { limits, room: Slots::new(pieces(limits.bytes_of_holder), pieces(limits.bytes_of_all)) }
    }

    /// A body as a whole, counted for that holder.
    pub async fn whole<B>(&self, body: B, holder: K) -> Result<WholeBody<K>, BodyProblem>
    where
        B: Body,
        B::Error: Display,
    {
        let mut body = pin!(body);
        let begun = Instant::now();
        let mut room = self.room.take(holder, 0).map_err(BodyProblem::NoRoom)?;
        let (mut bytes, mut pieces) = (Vec::new(), 0);
        loop {
            let wait = self.limits.wait(bytes.len(), begun.elapsed()).ok_or(BodyProblem::TooSlow)?;
            let frame = tokio::time::timeout(wait, body.frame()).await.map_err(|_| BodyProblem::TooSlow)?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| BodyProblem::Broken(error.to_string()))?;
            // What comes after the body is nothing that anybody here reads.
            let Ok(mut data) = frame.into_data() else { continue };
            let length = bytes.len().saturating_add(data.remaining());
            if length > self.limits.bytes {
                return Err(BodyProblem::TooLong(self.limits.bytes));
            }
            let needed = length.div_ceil(PIECE);
            room.more(needed - pieces).map_err(BodyProblem::NoRoom)?;
            pieces = needed;
            while data.has_remaining() {
                let chunk = data.chunk();
                bytes.extend_from_slice(chunk);
                let taken = chunk.len();
                data.advance(taken);
            }
        }
        bytes.shrink_to_fit();
        Ok(WholeBody { bytes: bytes.into(), room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::{Full as FullBody, StreamBody};
    use std::convert::Infallible;

    fn limits() -> BodyLimits {
        BodyLimits {
            bytes: 10_000,
            bytes_of_holder: 16 << 10,
            bytes_of_all: 20 << 10,
            ..BodyLimits::default()
        }
    }

    /// A body of single bytes, one each so often.
    fn dripping(count: usize, pause: Duration) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(stream::iter(0..count).then(move |_| async move {
            // Even no time at all is a tick of the clock.
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Ok(Frame::data(Bytes::from_static(b"x")))
        }))
    }

    fn large() -> FullBody<Bytes> {
        FullBody::from(vec![0; 9_000])
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_whole_or_says_why_not() {
        let bodies = Bodies::new(limits());
        let long = bodies.whole(dripping(10_001, Duration::ZERO), "bob").await.unwrap_err();
        assert!(matches!(long, BodyProblem::TooLong(10_000)), "{long}");
        let whole = bodies.whole(dripping(10_000, Duration::ZERO), "ada").await.unwrap();
        assert_eq!(whole.bytes.len(), 10_000);
        let second = bodies.whole(large(), "ada").await.unwrap_err();
        assert!(matches!(second, BodyProblem::NoRoom(Full::Own)), "{second}");
        let other = bodies.whole(large(), "bob").await.unwrap_err();
        assert!(matches!(other, BodyProblem::NoRoom(Full::All)), "{other}");
        drop(whole);
        assert!(bodies.whole(large(), "ada").await.is_ok());
        assert_eq!(bodies.room.taken(), 0);
    }

    #[test]
    fn every_body_has_its_time() {
        let limits = BodyLimits::default();
        // At whatever pace, the time that is left is never more than what is bounded by all of its bytes.
        let longest = limits.grace + Duration::from_secs((limits.bytes / limits.least_rate) as u64);
        for received in [0, 1, 100, limits.least_rate, limits.bytes] {
            assert_eq!(limits.wait(received, longest), None, "{received}");
        }
        assert_eq!(limits.wait(usize::MAX, Duration::ZERO), Some(limits.silence));
        let odd = BodyLimits { least_rate: 0, ..limits };
        assert!(odd.wait(usize::MAX, Duration::ZERO).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_drips_and_one_who_says_nothing_are_left() {
        let bodies = Bodies::new(limits());
        for (pause, most) in [(1, 16), (10, 16), (14, 16), (3600, 16)] {
            let begun = Instant::now();
            let slow = bodies.whole(dripping(10_000, Duration::from_secs(pause)), "ada").await.unwrap_err();
            assert!(matches!(slow, BodyProblem::TooSlow), "{slow}");
            assert!(begun.elapsed() <= Duration::from_secs(most), "{pause}: {:?}", begun.elapsed());
        }
        assert_eq!(bodies.room.taken(), 0);
    }
}
