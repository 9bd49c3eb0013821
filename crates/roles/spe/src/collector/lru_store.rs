//! Bounded LRU store with held entries.
//!
//! Pure. An exact bound in bytes, some of them reserved for data that is arriving. Entries that are not held are evicted first,
//! least recently used first. Held entries are evicted only if their owner agrees, again in that order; every operation takes
//! constant time.

use std::borrow::Borrow;
use std::hash::Hash;

use assay_cache::lru::Lru;

#[derive(Debug)]
pub struct LruStore<K, V> {
    free: Lru<K, V>,
    held: Lru<K, V>,
    bound_bytes: u64,
    reserved_bytes: u64,
    evictions: u64,
}

impl<K: Hash + Eq + Clone, V> LruStore<K, V> {
    /// Memory of an entry in addition to its stated weight.
    pub const ENTRY_OVERHEAD: u64 = Lru::<K, V>::ENTRY_OVERHEAD;

    pub fn new(bound_bytes: u64) -> Self {
        // Each list alone is unbounded; the sum of both is bounded here.
        let list = || Lru::new(u64::MAX);
        Self { free: list(), held: list(), bound_bytes, reserved_bytes: 0, evictions: 0 }
    }

    pub fn bound_bytes(&self) -> u64 {
        self.bound_bytes
    }

    /// Bytes used by entries, or reserved.
    pub fn taken_bytes(&self) -> u64 {
        self.free.used_bytes() + self.held.used_bytes() + self.reserved_bytes
    }

    pub fn len(&self) -> usize {
        self.free.len() + self.held.len()
    }

    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Whether so many more bytes fit.
    pub fn fits(&self, bytes: u64) -> bool {
        self.taken_bytes().checked_add(bytes).is_some_and(|taken| taken <= self.bound_bytes)
    }

    /// Whether so many bytes would fit if all entries were evicted.
    pub fn could_fit(&self, bytes: u64) -> bool {
        bytes <= self.bound_bytes.saturating_sub(self.reserved_bytes)
    }

    /// Looks up a key, and makes it the most recently used.
    pub fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match self.free.get(key) {
            Some(found) => Some(found),
            None => self.held.get(key),
        }
    }

    /// Looks up a key without changing its position.
    pub fn peek<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.free.peek(key).or_else(|| self.held.peek(key))
    }

    /// Whether the entry of a key was inserted as held.
    pub fn is_held<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.held.peek(key).is_some()
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.free.remove(key).or_else(|| self.held.remove(key))
    }

    /// Inserts an entry as the most recently used; returns it if it does not fit.
    pub fn insert(&mut self, key: K, value: V, bytes: u64, is_held: bool) -> Result<(), V> {
        if !self.fits(bytes.saturating_add(Self::ENTRY_OVERHEAD)) {
            return Err(value);
        }
        self.remove(&key);
        let list = if is_held { &mut self.held } else { &mut self.free };
        // The list is unbounded, so this cannot fail.
        let _ = list.insert(key, value, bytes);
        Ok(())
    }

    /// Evicts the next entry; `None` if there is none that may be evicted.
    pub fn pop(&mut self, may_be_evicted: impl Fn(&V) -> bool) -> Option<(K, V)> {
        let gone = match self.free.pop_oldest() {
            Some(gone) => Some(gone),
            None if self.held.peek_oldest().is_some_and(may_be_evicted) => self.held.pop_oldest(),
            None => None,
        };
        self.evictions += u64::from(gone.is_some());
        gone
    }

    /// Reserves memory for arriving bytes, if there is so much.
    pub fn reserve(&mut self, bytes: u64) -> bool {
        let fits = self.fits(bytes);
        if fits {
            self.reserved_bytes += bytes;
        }
        fits
    }

    /// Releases reserved memory.
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.reserved_bytes, "more released than reserved");
        self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OVERHEAD: u64 = LruStore::<u32, bool>::ENTRY_OVERHEAD;

    /// The same, plainly: the least recently used first.
    #[derive(Default)]
    struct Model {
        /// Key, may go though it is held, bytes, is held.
        entries: Vec<(u32, bool, u64, bool)>,
        reserved: u64,
    }

    impl Model {
        fn taken(&self) -> u64 {
            self.entries.iter().map(|entry| entry.2).sum::<u64>() + self.reserved
        }

        fn take(&mut self, key: u32) -> Option<(u32, bool, u64, bool)> {
            let at = self.entries.iter().position(|entry| entry.0 == key)?;
            Some(self.entries.remove(at))
        }

        /// The oldest that is not held; else the oldest of all, if that may go.
        fn pop(&mut self) -> Option<u32> {
            let free = self.entries.iter().position(|entry| !entry.3);
            let at = free.or_else(|| self.entries.first().filter(|entry| entry.1).map(|_| 0))?;
            Some(self.entries.remove(at).0)
        }
    }

    #[derive(Debug, Clone)]
    enum Op {
        Insert { key: u32, may_be_evicted: bool, bytes: u64, is_held: bool },
        Get(u32),
        Remove(u32),
        Pop,
        Reserve(u64),
        Release,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0u32..12, any::<bool>(), 0u64..900, any::<bool>()).prop_map(
                |(key, may_be_evicted, bytes, is_held)| Op::Insert { key, may_be_evicted, bytes, is_held }
            ),
            3 => (0u32..12).prop_map(Op::Get),
            1 => (0u32..12).prop_map(Op::Remove),
            4 => Just(Op::Pop),
            1 => (0u64..900).prop_map(Op::Reserve),
            1 => Just(Op::Release),
        ]
    }

    proptest! {
        #[test]
        fn entries_go_as_the_model_says_and_the_bound_holds(
            ops in prop::collection::vec(op(), 0..120), bound in 0u64..8000,
        ) {
            let (mut stock, mut model) = (LruStore::<u32, bool>::new(bound), Model::default());
            for op in ops {
                match op {
                    Op::Insert { key, may_be_evicted, bytes, is_held } => {
                        let is_in = stock.insert(key, may_be_evicted, bytes, is_held).is_ok();
                        prop_assert_eq!(is_in, model.taken() + bytes + OVERHEAD <= bound);
                        if is_in {
                            model.take(key);
                            model.entries.push((key, may_be_evicted, bytes + OVERHEAD, is_held));
                        }
                    }
                    Op::Get(key) => {
                        let found = model.take(key);
                        model.entries.extend(found);
                        prop_assert_eq!(stock.get(&key).copied(), found.map(|entry| entry.1));
                    }
                    Op::Remove(key) => {
                        prop_assert_eq!(stock.remove(&key), model.take(key).map(|entry| entry.1));
                    }
                    Op::Pop => {
                        let gone = stock.pop(|may_be_evicted| *may_be_evicted).map(|(key, _)| key);
                        prop_assert_eq!(gone, model.pop());
                    }
                    Op::Reserve(bytes) => {
                        let fits = model.taken() + bytes <= bound;
                        prop_assert_eq!(stock.reserve(bytes), fits);
                        model.reserved += if fits { bytes } else { 0 };
                    }
                    Op::Release => {
                        stock.release(model.reserved);
                        model.reserved = 0;
                    }
                }
                prop_assert_eq!(stock.taken_bytes(), model.taken());
                prop_assert!(stock.taken_bytes() <= bound);
                for key in 0..12 {
                    let known = model.entries.iter().find(|entry| entry.0 == key);
                    prop_assert_eq!(stock.peek(&key).copied(), known.map(|entry| entry.1));
                    prop_assert_eq!(stock.is_held(&key), known.is_some_and(|entry| entry.3));
                }
            }
        }
    }
}
