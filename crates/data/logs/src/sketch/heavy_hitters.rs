//! The texts that come most often, weigh most, and miss most. A table of a fixed size, after Space-Saving (Metwally, Agrawal
//! and El Abbadi, 2005) and Lossy Counting (Manku and Motwani, 2002).
//!
//! An entry holds exact sums since it came in, and the most that can have been missed before. When the table is full, the
//! lightest half goes; what any of those can have weighed is the *floor*. A text that weighs more than the floor is in the
//! table, and its true weight lies between its sum and its sum plus what it can have missed. Until the table was full for
//! the first time the floor is 0 and everything is exact.

use super::prehashed_map::PrehashedMap;

/// Counts of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weights {
    pub requests: u64,
    /// Bytes of responses.
    pub bytes: u64,
    /// Requests that were no hit.
    pub misses: u64,
}

impl std::ops::AddAssign for Weights {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.bytes += more.bytes;
        self.misses += more.misses;
    }
}

/// One text, and what else is counted of it since it came in.
#[derive(Debug, Clone, Default)]
pub struct Entry<X = ()> {
    /// The text, cut when it is long.
    pub text: Vec<u8>,
    /// Sums since it came in.
    pub sums: Weights,
    /// Counts that can be missing from the sums.
    pub missed: Weights,
    /// Further counts since the text came in.
    pub more: X,
}

/// The heaviest texts of a stream.
#[derive(Debug)]
pub struct HeavyHitters<X = ()> {
    capacity: usize,
    indices: PrehashedMap<u32>,
    entries: Vec<Entry<X>>,
    /// Entries that are not in use; their buffers are.
    free: Vec<u32>,
    floor: Weights,
}

/// Bytes of a text that are kept.
const TEXT_BYTES: usize = 400;

impl<X: Default> HeavyHitters<X> {
    /// Creates an empty table for this number of texts.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(16);
        Self {
            capacity,
            indices: PrehashedMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            floor: Weights::default(),
        }
    }

    /// Looks where a text's place would be, and does nothing with it: see [`HeavyHitters::prefetch_entry`].
    #[inline]
    pub fn prefetch_slot(&self, hash: u64) -> u64 {
        self.indices.prefetch(hash)
    }

    /// Looks at a text's entry and does nothing with it, so that it is in a processor cache when it is used.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) -> u64 {
        self.indices.get(hash).map_or(0, |at| self.entries[at as usize].sums.requests)
    }

    /// The entry of a text that is in the table.
    #[inline]
    pub fn find(&mut self, hash: u64) -> Option<&mut Entry<X>> {
        let at = self.indices.get(hash)?;
        Some(&mut self.entries[at as usize])
    }

    /// A new entry for a text that is not in the table; `text` writes it.
    pub fn add(&mut self, hash: u64, text: impl FnOnce(&mut Vec<u8>)) -> &mut Entry<X> {
        if self.indices.len() >= self.capacity {
            self.purge();
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            self.entries.len() as u32 - 1
        });
        self.indices.insert(hash, at);
        let entry = &mut self.entries[at as usize];
        // The buffer of an entry that was dropped is used again.
        let mut buffer = std::mem::take(&mut entry.text);
        buffer.clear();
        text(&mut buffer);
        if buffer.len() > TEXT_BYTES {
            buffer.truncate(TEXT_BYTES - 3);
            buffer.extend_from_slice("…".as_bytes());
        }
        // Whatever was dropped before, perhaps this text too, weighed no more than the floor.
        *entry = Entry { text: buffer, missed: self.floor, ..Entry::default() };
        entry
    }

    /// Everything in the table.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<X>> {
        self.indices.values().map(|at| &self.entries[at as usize])
    }

    /// All entries, to change what else is counted of them.
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry<X>> {
        self.entries.iter_mut()
    }

    /// Texts in the table: all there were, while the floor is 0.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.indices.len() == 0
    }

    /// Largest weight of a text that is not in the table.
    pub fn floor(&self) -> Weights {
        self.floor
    }

    /// True while nothing has been dropped.
    pub fn is_exact(&self) -> bool {
        self.floor == Weights::default()
    }

    /// Drops the lightest: those that are light in all three ways.
    fn purge(&mut self) {
        for share in [0.6, 0.75, 0.85, 0.92, 0.96] {
            // The floor never sinks: what is dropped is light in all ways, and at most three quarters stay.
            self.floor = Weights {
                requests: self.quantile(share, |w| w.requests),
                bytes: self.quantile(share, |w| w.bytes),
                misses: self.quantile(share, |w| w.misses),
            };
            let floor = self.floor;
            let light = |entry: &Entry<X>| {
                entry.sums.requests + entry.missed.requests <= floor.requests
                    && entry.sums.bytes + entry.missed.bytes <= floor.bytes
                    && entry.sums.misses + entry.missed.misses <= floor.misses
            };
            let (entries, free) = (&mut self.entries, &mut self.free);
            self.indices.retain(|_, at| {
                let entry = &mut entries[at as usize];
                let drop = light(entry);
                if drop {
                    entry.more = X::default();
                    free.push(at);
                }
                !drop
            });
            // A quarter that is free lets so many texts come before the next purge.
            if self.indices.len() <= self.capacity * 3 / 4 {
                return;
            }
        }
        self.purge_by_requests();
    }

    /// Weights that exclude each other in every entry: those with the fewest requests go.
    fn purge_by_requests(&mut self) {
        let half = self.quantile(0.5, |w| w.requests);
        let (entries, free, floor) = (&mut self.entries, &mut self.free, &mut self.floor);
        let mut left = self.capacity / 2;
        self.indices.retain(|_, at| {
            let entry = &mut entries[at as usize];
            if left == 0 || entry.sums.requests + entry.missed.requests > half {
                return true;
            }
            left -= 1;
            floor.requests = floor.requests.max(entry.sums.requests + entry.missed.requests);
            floor.bytes = floor.bytes.max(entry.sums.bytes + entry.missed.bytes);
            floor.misses = floor.misses.max(entry.sums.misses + entry.missed.misses);
            entry.more = X::default();
            free.push(at);
            false
        });
    }

    fn quantile(&self, share: f64, of: impl Fn(&Weights) -> u64) -> u64 {
        let mut values: Vec<u64> = self.entries().map(|entry| of(&entry.sums) + of(&entry.missed)).collect();
        let at = ((values.len() as f64 * share) as usize).min(values.len() - 1);
        *values.select_nth_unstable(at).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn count(table: &mut HeavyHitters, name: u64, bytes: u64, misses: u64) {
        let key = hash(&name.to_le_bytes());
        if table.find(key).is_none() {
            table.add(key, |text| text.extend_from_slice(name.to_string().as_bytes()));
        }
        let entry = table.find(key).unwrap();
        entry.sums.requests += 1;
        entry.sums.bytes += bytes;
        entry.sums.misses += misses;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn sums_are_within_their_bounds_and_nothing_above_the_floor_is_missing(
            stream in proptest::collection::vec((0u64..400, 0u64..1000, 0u64..2), 1..3000),
        ) {
            let mut table = HeavyHitters::new(64);
            let mut truth: HashMap<u64, Weights> = HashMap::new();
            for (name, bytes, misses) in stream {
                count(&mut table, name, bytes, misses);
                let exact = truth.entry(name).or_default();
                *exact = Weights { requests: exact.requests + 1, bytes: exact.bytes + bytes, misses: exact.misses + misses };
                prop_assert!(table.len() <= 64);
            }
            let found: HashMap<u64, &Entry> = table.entries()
                .map(|entry| (std::str::from_utf8(&entry.text).unwrap().parse().unwrap(), entry)).collect();
            let floor = table.floor();
            for (name, exact) in truth {
                for of in [|w: &Weights| w.requests, |w: &Weights| w.bytes, |w: &Weights| w.misses] {
                    match found.get(&name) {
                        Some(entry) => {
                            prop_assert!(of(&entry.sums) <= of(&exact));
                            prop_assert!(of(&exact) <= of(&entry.sums) + of(&entry.missed));
                        }
                        None => prop_assert!(of(&exact) <= of(&floor)),
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_that_dominates_is_counted_exactly_in_a_stream_of_others() {
        let mut table = HeavyHitters::new(128);
        for other in 0..100_000 {
            count(&mut table, 1_000_000, 10, 1);
            count(&mut table, other, 10, 1);
        }
        let heaviest = table.entries().max_by_key(|entry| entry.sums.requests).unwrap();
        assert_eq!((heaviest.text.as_slice(), heaviest.sums.requests), (b"1000000".as_slice(), 100_000));
        assert!(table.floor().requests < 5000, "{:?}", table.floor());
    }
}
