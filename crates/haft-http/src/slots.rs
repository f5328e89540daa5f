//! How much each of many may have at once, and all together.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// The caller has as many as it may have.
    #[error("one may have no more at once")]
    Own,
    /// All are taken, by whomever.
    #[error("all are taken")]
    All,
}

/// Counts what each holder has, and what all have together. Cheap to clone.
///
/// ```
/// use haft_http::{Full, Slots};
/// let slots = Slots::new(2, 3);
/// let (_one, two) = (slots.take("ada", 1).unwrap(), slots.take("ada", 1).unwrap());
/// assert_eq!(slots.take("ada", 1).unwrap_err(), Full::Own);
/// let _three = slots.take("bob", 1).unwrap();
/// assert_eq!(slots.take("eve", 1).unwrap_err(), Full::All);
/// drop(two);
/// assert!(slots.take("ada", 1).is_ok());
/// ```
#[derive(Debug)]
pub struct Slots<K: Eq + Hash>(Arc<Inner<K>>);

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

impl<K: Eq + Hash> Clone for Slots<K> {
    fn clone(&self) -> Self {
        Slots(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash> Inner<K> {
    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> Slots<K> {
    /// At most `each` for one holder, and `all` together.
    pub fn new(each: usize, all: usize) -> Self {
        let taken = Mutex::new(Taken { all: 0, by: HashMap::new() });
        Slots(Arc::new(Inner { each, all, taken }))
    }

    /// So many for that holder, until the slot is dropped.
    pub fn take(&self, who: K, count: usize) -> Result<Slot<K>, Full> {
        let mut slot = Slot { slots: self.clone(), who, count: 0 };
        slot.more(count)?;
        Ok(slot)
    }

    /// How many are taken, by all.
    pub fn taken(&self) -> usize {
        self.0.taken().all
    }
}

/// What one holder has. Dropping it gives it back.
#[derive(Debug)]
pub struct Slot<K: Eq + Hash> {
    slots: Slots<K>,
    who: K,
    count: usize,
}

impl<K: Eq + Hash + Clone> Slot<K> {
    /// Takes so many more. Where that is refused, it has what it had.
    pub fn more(&mut self, count: usize) -> Result<(), Full> {
        let inner = &self.slots.0;
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

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut taken = self.slots.0.taken();
        taken.all = taken.all.saturating_sub(self.count);
        let left = taken.by.get_mut(&self.who).map(|own| {
            *own = own.saturating_sub(self.count);
            *own
        });
        // A holder of nothing is not remembered: names of holders must not add up.
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
        let slots = Slots::new(10, 15);
        let mut ada = slots.take("ada", 8).unwrap();
        assert_eq!(ada.more(3), Err(Full::Own));
        assert_eq!(slots.taken(), 8);
        let bob = slots.take("bob", 7).unwrap();
        assert_eq!(ada.more(1), Err(Full::All));
        assert_eq!(slots.take("ada", 3).unwrap_err(), Full::Own, "its own bound is said first");
        drop(bob);
        assert_eq!(ada.more(2), Ok(()));
        drop(ada);
        assert_eq!(slots.taken(), 0);
        for name in 0..1000 {
            drop(Slots::take(&Slots::new(1, 1), name, 1));
        }
        assert!(slots.0.taken().by.is_empty());
    }
}
