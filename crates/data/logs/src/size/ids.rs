//! Numbers for keys: each 64-bit key gets the next number when it is first seen. A table with open addressing, 12 bytes for
//! each of its places, of which at most three quarters are taken.

/// No key has this number.
const FREE: u32 = u32::MAX;
/// Places of a new table; a power of two, as all of them are.
const INITIAL_SLOTS: usize = 1 << 10;

/// The numbers of keys, from 0 without gaps.
#[derive(Debug)]
pub struct Ids {
    keys: Vec<u64>,
    numbers: Vec<u32>,
    taken: usize,
}

impl Default for Ids {
    fn default() -> Self {
        Self { keys: vec![0; INITIAL_SLOTS], numbers: vec![FREE; INITIAL_SLOTS], taken: 0 }
    }
}

impl Ids {
    /// The number of a key; none: there are 2^32 − 1 keys already.
    #[inline]
    pub fn number(&mut self, key: u64) -> Option<u32> {
        let mut at = self.slot(key);
        if self.numbers[at] != FREE {
            return Some(self.numbers[at]);
        }
        let number = u32::try_from(self.taken).ok().filter(|number| *number != FREE)?;
        if (self.taken + 1) * 4 > self.keys.len() * 3 {
            self.grow();
            at = self.slot(key);
        }
        (self.keys[at], self.numbers[at]) = (key, number);
        self.taken += 1;
        Some(number)
    }

    /// The number of a key, if it has one.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        Some(self.numbers[self.slot(key)]).filter(|number| *number != FREE)
    }

    /// The keys by their numbers.
    pub fn keys(&self) -> Vec<u64> {
        let mut keys = vec![0; self.taken];
        for (key, number) in self.keys.iter().zip(&self.numbers) {
            if let Some(slot) = keys.get_mut(*number as usize) {
                *slot = *key;
            }
        }
        keys
    }

    pub fn len(&self) -> usize {
        self.taken
    }

    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Slot of a key, or the free one where it belongs.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        // Multiplication by 2^64 over the golden ratio scatters keys that are counted up; its upper bits depend on all others.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.numbers[at] != FREE && self.keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let slots = self.keys.len() * 2;
        let keys = std::mem::replace(&mut self.keys, vec![0; slots]);
        let numbers = std::mem::replace(&mut self.numbers, vec![FREE; slots]);
        for (key, number) in keys.into_iter().zip(numbers).filter(|(_, number)| *number != FREE) {
            let at = self.slot(key);
            (self.keys[at], self.numbers[at]) = (key, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    proptest::proptest! {
        #[test]
        fn keys_are_numbered_in_the_order_in_which_they_are_first_seen(
            keys in proptest::collection::vec(proptest::prop_oneof![0u64..50, proptest::num::u64::ANY], 0..800)
        ) {
            let (mut ids, mut expected) = (Ids::default(), HashMap::new());
            for key in keys {
                let next = expected.len() as u32;
                proptest::prop_assert_eq!(ids.find(key), expected.get(&key).copied());
                let number = *expected.entry(key).or_insert(next);
                proptest::prop_assert_eq!(ids.number(key), Some(number));
            }
            proptest::prop_assert!(ids.keys().iter().enumerate().all(|(number, key)| expected[key] == number as u32));
            proptest::prop_assert_eq!((ids.len(), ids.is_empty()), (expected.len(), expected.is_empty()));
        }
    }
}
