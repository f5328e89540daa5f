//! How much each of many may have at once, and all together.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Why there is no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Whoever asks has as many as one may have.
    #[error("one may have no more at once")]
    Own,
    /// All are taken, by whomever.
    #[error("all are taken")]
    All,
}

/// Counts what each holder has, and what all have together. Cheap to clone.
///
/// ```
/// use haft_http::{Full, Seats};
/// let seats = Seats::new(2, 3);
/// let (_one, two) = (seats.take("ada", 1).unwrap(), seats.take("ada", 1).unwrap());
/// assert_eq!(seats.take("ada", 1).unwrap_err(), Full::Own);
/// let _three = seats.take("bob", 1).unwrap();
/// assert_eq!(seats.take("eve", 1).unwrap_err(), Full::All);
/// drop(two);
/// assert!(seats.take("ada", 1).is_ok());
/// ```
#[derive(Debug)]
pub struct Seats<K: Eq + Hash>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K: Eq + Hash> {
    each: usize,
    all: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    by: HashMap<K, usize>,
}

impl<K: Eq + Hash> Clone for Seats<K> {
    fn clone(&self) -> Self {
        Seats(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash> Inner<K> {
    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> Seats<K> {
    /// At most `each` for one holder, and `all` together.
    pub fn new(each: usize, all: usize) -> Self {
        let taken = Mutex::new(Taken { all: 0, by: HashMap::new() });
        Seats(Arc::new(Inner { each, all, taken }))
    }

    /// So many for that holder, until the seat is dropped.
    pub fn take(&self, who: K, count: usize) -> Result<Seat<K>, Full> {
        let mut seat = Seat { seats: self.clone(), who, count: 0 };
        seat.more(count)?;
        Ok(seat)
    }

    /// How many are taken, by all.
    pub fn taken(&self) -> usize {
        self.0.taken().all
    }
}

/// What one holder has. Dropping it gives it back.
#[derive(Debug)]
pub struct Seat<K: Eq + Hash> {
    seats: Seats<K>,
    who: K,
    count: usize,
}

impl<K: Eq + Hash + Clone> Seat<K> {
    /// Takes so many more. Where that is refused, it has what it had.
    pub fn more(&mut self, count: usize) -> Result<(), Full> {
        let inner = &self.seats.0;
        let mut taken = inner.taken();
        let own = taken.by.get(&self.who).copied().unwrap_or(0).saturating_add(count);
        let all = taken.all.saturating_add(count);
        if own > inner.each {
            return Err(Full::Own);
        }
        if all > inner.all {
            return Err(Full::All);
        }
        if count > 0 {
            taken.all = all;
            taken.by.insert(self.who.clone(), own);
            self.count += count;
        }
        Ok(())
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut taken = self.seats.0.taken();
        taken.all = taken.all.saturating_sub(self.count);
        let left = taken.by.get_mut(&self.who).map(|own| {
            *own = own.saturating_sub(self.count);
            *own
        });
        // Whoever has nothing is not remembered: names of holders must not add up.
        if left == Some(0) {
            taken.by.remove(&self.who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_takes_nothing_and_nobody_is_remembered() {
        let seats = Seats::new(10, 15);
        let mut ada = seats.take("ada", 8).unwrap();
        assert_eq!(ada.more(3), Err(Full::Own));
        assert_eq!(seats.taken(), 8);
        let bob = seats.take("bob", 7).unwrap();
        assert_eq!(ada.more(1), Err(Full::All));
        assert_eq!(seats.take("ada", 3).unwrap_err(), Full::Own, "its own bound is said first");
        drop(bob);
        assert_eq!(ada.more(2), Ok(()));
        drop(ada);
        assert_eq!(seats.taken(), 0);
        for name in 0..1000 {
            drop(Seats::take(&Seats::new(1, 1), name, 1));
        }
        assert!(seats.0.taken().by.is_empty());
    }
}
