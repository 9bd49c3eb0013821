//! Where the thing is that has a hash. A table with open addressing: a look at it touches one line of memory, most of the
//! time, and [`PrehashedMap::prefetch`] lets many of them come at once.

/// Values by hash. Two texts of one hash are taken for the same.
#[derive(Debug, Clone)]
pub(crate) struct PrehashedMap<V> {
    /// Hash and value; hash 0: nothing is here.
    slots: Vec<(u64, V)>,
    len: usize,
}

const FEWEST: usize = 16;

impl<V: Copy + Default> Default for PrehashedMap<V> {
    fn default() -> Self {
        Self { slots: vec![(0, V::default()); FEWEST], len: 0 }
    }
}

/// A hash that is no mark of an empty slot.
#[inline]
fn marked(hash: u64) -> u64 {
    hash.max(1)
}

impl<V: Copy + Default> PrehashedMap<V> {
    #[inline]
    fn mask(&self) -> usize {
        self.slots.len() - 1
    }

    /// Slot of a hash, or the free one where it belongs.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        let mut at = hash as usize & self.mask();
        while self.slots[at].0 != hash && self.slots[at].0 != 0 {
            at = (at + 1) & self.mask();
        }
        at
    }

    /// Looks where a hash would be and does nothing with it, so that its line of memory is in a processor cache when it is used.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) -> u64 {
        self.slots[hash as usize & self.mask()].0
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64) -> Option<V> {
        let (found, value) = self.slots[self.slot(marked(hash))];
        (found != 0).then_some(value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, hash: u64) -> Option<&mut V> {
        let at = self.slot(marked(hash));
        let (found, value) = &mut self.slots[at];
        (*found != 0).then_some(value)
    }

    /// Puts a value there; true when there was none.
    pub(crate) fn insert(&mut self, hash: u64, value: V) -> bool {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let wider = self.slots.len() * 2;
            self.rebuild(wider, |_, _| true);
        }
        let at = self.slot(marked(hash));
        let new = self.slots[at].0 == 0;
        self.len += usize::from(new);
        self.slots[at] = (marked(hash), value);
        new
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        self.slots.iter().filter(|(hash, _)| *hash != 0).map(|(_, value)| *value)
    }

    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().filter(|(hash, _)| *hash != 0).map(|(hash, _)| *hash)
    }

    /// Keeps those that `keep` says.
    pub(crate) fn retain(&mut self, keep: impl FnMut(u64, V) -> bool) {
        self.rebuild(self.slots.len(), keep);
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill((0, V::default()));
        self.len = 0;
    }

    fn rebuild(&mut self, slots: usize, mut keep: impl FnMut(u64, V) -> bool) {
        let old = std::mem::replace(&mut self.slots, vec![(0, V::default()); slots]);
        self.len = 0;
        for (hash, value) in old {
            if hash != 0 && keep(hash, value) {
                let at = self.slot(hash);
                self.slots[at] = (hash, value);
                self.len += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(
            steps in proptest::collection::vec((0u64..200, any::<u32>(), 0u8..20), 1..600),
        ) {
            // Hashes that differ in few bits, and many of them in the same slot.
            let hash = |key: u64| (key % 13) | (key / 13) << 40;
            let (mut places, mut map) = (PrehashedMap::default(), HashMap::new());
            for (key, value, what) in steps {
                match what {
                    0 => {
                        places.retain(|_, value: u32| !value.is_multiple_of(3));
                        map.retain(|_, value: &mut u32| !value.is_multiple_of(3));
                    }
                    1..10 => {
                        prop_assert_eq!(places.insert(hash(key), value), map.insert(hash(key).max(1), value).is_none());
                    }
                    _ => prop_assert_eq!(places.get(hash(key)), map.get(&hash(key).max(1)).copied()),
                }
                prop_assert_eq!(places.len(), map.len());
            }
            prop_assert!(places.hashes().all(|hash| map.contains_key(&hash)));
            prop_assert_eq!(places.values().count(), map.len());
        }
    }
}
