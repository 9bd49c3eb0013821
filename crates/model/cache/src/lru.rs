//! A store with an exact bound in bytes that evicts the least recently used entry; every operation in constant time.
//!
//! The list of uses runs through a slab: no allocation per use, no pointer outside the slab. The store's own overhead for an
//! entry counts towards the bound ([`Lru::ENTRY_OVERHEAD`]). Room can be reserved for objects that are still arriving; it is taken
//! from stored ones, and counts like them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use thiserror::Error;

/// Object that can never fit into the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{wanted} bytes do not fit: the store holds {bound}, of which {reserved} are reserved")]
pub struct TooLarge {
    /// Bytes requested, overhead included.
    pub wanted: u64,
    /// Bound of the store.
    pub bound: u64,
    /// Bytes reserved for objects that are still arriving.
    pub reserved: u64,
}

/// A store of values with a weight in bytes, the least recently used of which go first.
#[derive(Debug)]
pub struct Lru<K, V, S = RandomState> {
    /// Slot of each key in the slab.
    index: HashMap<K, usize, S>,
    slots: Vec<Slot<K, V>>,
    /// First free slot of the slab.
    free: Option<usize>,
    newest: Option<usize>,
    oldest: Option<usize>,
    bound: u64,
    used: u64,
    reserved: u64,
    evictions: u64,
    /// Bytes that every entry counts for beside its own.
    overhead: u64,
}

#[derive(Debug)]
enum Slot<K, V> {
    Occupied(Node<K, V>),
    Free { next: Option<usize> },
}

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    bytes: u64,
    newer: Option<usize>,
    older: Option<usize>,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub fn new(bound_bytes: u64) -> Self {
        Self::with_hasher(bound_bytes, RandomState::new())
    }
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher> Lru<K, V, S> {
    /// Bytes that an entry costs beside its own: its slot and its bucket in the table, twice, because both grow by doubling.
    pub const ENTRY_OVERHEAD: u64 = 2 * (size_of::<Slot<K, V>>() + size_of::<(K, usize)>() + 1) as u64;

    /// An empty store with a hasher of the caller's choice.
    pub fn with_hasher(bound_bytes: u64, hasher: S) -> Self {
        Self {
            index: HashMap::with_hasher(hasher),
            slots: Vec::new(),
            free: None,
            newest: None,
            oldest: None,
            bound: bound_bytes,
            used: 0,
            reserved: 0,
            evictions: 0,
            overhead: Self::ENTRY_OVERHEAD,
        }
    }

    /// Sets the overhead of an entry: 0 for the model of a cache, which has room for bodies and nothing else.
    pub fn with_overhead(mut self, overhead_bytes: u64) -> Self {
        self.overhead = overhead_bytes;
        self
    }

    /// Changes the bound, and evicts entries that no longer fit.
    pub fn set_bound(&mut self, bound_bytes: u64) {
        self.bound = bound_bytes.max(self.reserved);
        self.make_room(0);
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The bound in bytes.
    pub fn bound_bytes(&self) -> u64 {
        self.bound
    }

    /// Bytes of the entries, overhead included. With the reserved ones never more than the bound.
    pub fn used_bytes(&self) -> u64 {
        self.used
    }

    /// Bytes reserved.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved
    }

    /// Entries dropped to make room, since the beginning.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The value under a key, which becomes the most recently used.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = *self.index.get(key)?;
        if self.newest != Some(at) {
            self.unlink(at);
            self.link_newest(at);
        }
        self.node(at).map(|node| &node.value)
    }

    /// The value under a key; the order of uses stays.
    pub fn peek<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.index.get(key).and_then(|&at| self.node(at)).map(|node| &node.value)
    }

    /// Stores a value as the most recently used, in place of the one under its key, and evicts others until it fits. If it can
    /// never fit, nothing changes.
    pub fn insert(&mut self, key: K, value: V, bytes: u64) -> Result<(), TooLarge> {
        let bytes = bytes.saturating_add(self.overhead);
        self.check_fits(bytes)?;
        self.remove(&key);
        self.make_room(bytes);
        let node = Node { key: key.clone(), value, bytes, newer: None, older: None };
        let at = self.occupy(node);
        self.index.insert(key, at);
        self.link_newest(at);
        self.used += bytes;
        Ok(())
    }

    /// Removes what is under a key.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.index.remove(key)?;
        self.vacate(at).map(|node| node.value)
    }

    /// The least recently used value.
    pub fn peek_oldest(&self) -> Option<&V> {
        self.node(self.oldest?).map(|node| &node.value)
    }

    /// Evicts the least recently used entry.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let node = self.vacate(self.oldest?)?;
        self.index.remove(&node.key);
        self.evictions += 1;
        Some((node.key, node.value))
    }

    /// Reserves room for an object that is arriving, and evicts entries for it. The room is given back with [`Lru::release`].
    pub fn reserve(&mut self, bytes: u64) -> Result<(), TooLarge> {
        self.check_fits(bytes)?;
        self.make_room(bytes);
        self.reserved += bytes;
        Ok(())
    }

    pub fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.reserved, "more released than reserved");
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Keys and values, most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        std::iter::successors(self.newest.and_then(|at| self.node(at)), |node| {
            node.older.and_then(|at| self.node(at))
        })
        .map(|node| (&node.key, &node.value))
    }

    fn check_fits(&self, wanted: u64) -> Result<(), TooLarge> {
        if wanted > self.bound - self.reserved {
            return Err(TooLarge { wanted, bound: self.bound, reserved: self.reserved });
        }
        Ok(())
    }

    fn make_room(&mut self, bytes: u64) {
        while self.used + self.reserved + bytes > self.bound {
            if self.pop_oldest().is_none() {
                return;
            }
        }
    }

    fn node(&self, at: usize) -> Option<&Node<K, V>> {
        match &self.slots[at] {
            Slot::Occupied(node) => Some(node),
            Slot::Free { .. } => None,
        }
    }

    fn node_mut(&mut self, at: Option<usize>) -> Option<&mut Node<K, V>> {
        match at.map(|at| &mut self.slots[at]) {
            Some(Slot::Occupied(node)) => Some(node),
            _ => None,
        }
    }

    /// Puts a node into a free slot, or a new one.
    fn occupy(&mut self, node: Node<K, V>) -> usize {
        let Some(at) = self.free else {
            self.slots.push(Slot::Occupied(node));
            return self.slots.len() - 1;
        };
        if let Slot::Free { next } = std::mem::replace(&mut self.slots[at], Slot::Occupied(node)) {
            self.free = next;
        }
        at
    }

    /// Takes a node out of the list and the slab.
    fn vacate(&mut self, at: usize) -> Option<Node<K, V>> {
        self.unlink(at);
        match std::mem::replace(&mut self.slots[at], Slot::Free { next: self.free }) {
            Slot::Occupied(node) => {
                self.free = Some(at);
                self.used -= node.bytes;
                Some(node)
            }
            Slot::Free { next } => {
                self.slots[at] = Slot::Free { next };
                None
            }
        }
    }

    fn unlink(&mut self, at: usize) {
        let Some(node) = self.node(at) else { return };
        let (newer, older) = (node.newer, node.older);
        match self.node_mut(newer) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.node_mut(older) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, at: usize) {
        let second = self.newest.replace(at);
        if let Some(node) = self.node_mut(Some(at)) {
            (node.newer, node.older) = (None, second);
        }
        match self.node_mut(second) {
            Some(node) => node.newer = Some(at),
            None => self.oldest = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OVERHEAD: u64 = Lru::<u32, u32>::ENTRY_OVERHEAD;

    fn keys(lru: &Lru<u32, u32>) -> Vec<u32> {
        lru.iter().map(|(&k, _)| k).collect()
    }

    #[test]
    fn the_oldest_can_be_taken_out_and_given_room_elsewhere() {
        let mut lru = Lru::new(1000 * OVERHEAD);
        (0..3).for_each(|key| lru.insert(key, 10 * key, 10).unwrap());
        lru.get(&0);
        assert_eq!(lru.peek_oldest(), Some(&10));
        assert_eq!((lru.pop_oldest(), lru.evictions()), (Some((1, 10)), 1));
        assert_eq!((keys(&lru), lru.used_bytes()), (vec![0, 2], 2 * (10 + OVERHEAD)));
        assert_eq!(Lru::<u32, u32>::new(10).pop_oldest(), None);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut lru = Lru::new(3 * (10 + OVERHEAD));
        for key in 0..3 {
            lru.insert(key, key, 10).unwrap();
        }
        assert_eq!(lru.get(&0), Some(&0));
        lru.insert(3, 3, 10).unwrap();
        assert_eq!(keys(&lru), [3, 0, 2]);
        assert_eq!(lru.evictions(), 1);
        assert_eq!(lru.used_bytes(), lru.bound_bytes());
    }

    #[test]
    fn a_peek_does_not_count_as_use() {
        let mut lru = Lru::new(2 * (1 + OVERHEAD));
        lru.insert(0, 0, 1).unwrap();
        lru.insert(1, 1, 1).unwrap();
        assert_eq!(lru.peek(&0), Some(&0));
        lru.insert(2, 2, 1).unwrap();
        assert_eq!(keys(&lru), [2, 1]);
    }

    #[test]
    fn what_can_never_fit_is_refused_and_nothing_changes() {
        let mut lru = Lru::new(10 + OVERHEAD);
        lru.insert(0, 0, 10).unwrap();
        assert!(lru.insert(0, 1, 11).is_err());
        assert!(lru.insert(1, 1, u64::MAX).is_err());
        assert_eq!(lru.peek(&0), Some(&0));
    }

    #[test]
    fn reserved_room_is_taken_from_entries_and_given_back() {
        let mut lru = Lru::new(2 * (10 + OVERHEAD));
        lru.insert(0, 0, 10).unwrap();
        lru.insert(1, 1, 10).unwrap();
        lru.reserve(5).unwrap();
        assert_eq!(keys(&lru), [1]);
        assert!(lru.reserve(lru.bound_bytes()).is_err());
        lru.release(5);
        lru.insert(2, 2, 10).unwrap();
        assert_eq!(keys(&lru), [2, 1]);
    }

    #[test]
    fn a_smaller_bound_drops_what_has_no_room_and_overhead_can_be_left_out() {
        let mut lru = Lru::new(30).with_overhead(0);
        for key in 0..3 {
            lru.insert(key, key, 10).unwrap();
        }
        assert_eq!(lru.used_bytes(), 30);
        lru.set_bound(15);
        assert_eq!((keys(&lru), lru.bound_bytes()), (vec![2], 15));
    }

    /// The same store, written so that it is plainly right: newest first in a vector.
    struct Model {
        entries: Vec<(u32, u32, u64)>,
        bound: u64,
        reserved: u64,
        evictions: u64,
    }

    impl Model {
        fn used(&self) -> u64 {
            self.entries.iter().map(|e| e.2).sum()
        }

        fn make_room(&mut self, bytes: u64) {
            while self.used() + self.reserved + bytes > self.bound && self.entries.pop().is_some() {
                self.evictions += 1;
            }
        }

        fn take(&mut self, key: u32) -> Option<(u32, u32, u64)> {
            let at = self.entries.iter().position(|e| e.0 == key)?;
            Some(self.entries.remove(at))
        }

        fn insert(&mut self, key: u32, value: u32, bytes: u64) -> bool {
            let bytes = bytes + OVERHEAD;
            if bytes + self.reserved > self.bound {
                return false;
            }
            self.take(key);
            self.make_room(bytes);
            self.entries.insert(0, (key, value, bytes));
            true
        }
    }

    #[derive(Debug, Clone)]
    enum Op {
        Insert(u32, u32, u64),
        Get(u32),
        Remove(u32),
        Reserve(u64),
        ReleaseAll,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0u32..24, any::<u32>(), 0u64..900).prop_map(|(k, v, b)| Op::Insert(k, v, b)),
            6 => (0u32..24).prop_map(Op::Get),
            2 => (0u32..24).prop_map(Op::Remove),
            1 => (0u64..1200).prop_map(Op::Reserve),
            1 => Just(Op::ReleaseAll),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_the_naive_model_does_and_never_exceeds_its_bound(
            bound in 0u64..6000, ops in proptest::collection::vec(op(), 1..200),
        ) {
            let mut lru = Lru::new(bound);
            let mut model = Model { entries: Vec::new(), bound, reserved: 0, evictions: 0 };
            for op in ops {
                match op {
                    Op::Insert(key, value, bytes) => {
                        let expected = model.insert(key, value, bytes);
                        prop_assert_eq!(lru.insert(key, value, bytes).is_ok(), expected);
                    }
                    Op::Get(key) => {
                        let expected = model.take(key).map(|entry| {
                            model.entries.insert(0, entry);
                            entry.1
                        });
                        prop_assert_eq!(lru.get(&key).copied(), expected);
                    }
                    Op::Remove(key) => prop_assert_eq!(lru.remove(&key), model.take(key).map(|e| e.1)),
                    Op::Reserve(bytes) => {
                        let fits = bytes + model.reserved <= bound;
                        prop_assert_eq!(lru.reserve(bytes).is_ok(), fits);
                        if fits {
                            model.make_room(bytes);
                            model.reserved += bytes;
                        }
                    }
                    Op::ReleaseAll => {
                        lru.release(model.reserved);
                        model.reserved = 0;
                    }
                }
                let order: Vec<_> = model.entries.iter().map(|e| (e.0, e.1)).collect();
                let own: Vec<_> = lru.iter().map(|(&k, &v)| (k, v)).collect();
                prop_assert_eq!(own, order);
                prop_assert_eq!(lru.len(), model.entries.len());
                prop_assert_eq!(lru.used_bytes(), model.used());
                prop_assert_eq!(lru.evictions(), model.evictions);
                prop_assert!(lru.used_bytes() + lru.reserved_bytes() <= bound);
            }
        }
    }
}
