//! A robot's own cache. Embedded objects that it requested before and need not request again.
//!
//! A bounded number of keys; the one that was put in first makes room. An object is in from the instant at which its page
//! comes due, whatever becomes of the request: so what a robot requests does not depend on the target.

use std::collections::{HashSet, VecDeque};

/// The cache of one robot.
#[derive(Debug, Default)]
pub struct BrowserCache {
    capacity: usize,
    held: HashSet<u64>,
    order: VecDeque<u64>,
}

impl BrowserCache {
    /// Creates a cache for this number of objects; nothing is allocated before it is used.
    pub fn new(capacity: u32) -> Self {
        Self { capacity: capacity as usize, ..Self::default() }
    }

    /// An embedded object is wanted: true when it is in; puts it in otherwise, if it may be kept at all.
    pub fn has(&mut self, key: u64, cachable: bool) -> bool {
        if self.held.contains(&key) {
            return true;
        }
        if cachable && self.capacity > 0 {
            if self.order.len() >= self.capacity
                && let Some(first) = self.order.pop_front()
            {
                self.held.remove(&first);
            }
            self.held.insert(key);
            self.order.push_back(key);
        }
        false
    }

    pub fn clear(&mut self) {
        self.held.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_that_was_put_in_makes_room() {
        let mut browser = BrowserCache::new(2);
        assert!(!browser.has(1, true) && !browser.has(2, true) && browser.has(1, true));
        assert!(!browser.has(3, true) && !browser.has(1, true) && browser.has(3, true));
        browser.clear();
        assert!(!browser.has(3, true));
        assert!(!browser.has(9, false) && !browser.has(9, false), "what may not be kept is not");
    }

    proptest! {
        #[test]
        fn it_holds_no_more_than_it_has_room_for(
            capacity in 0u32..5,
            wanted in prop::collection::vec((0u64..9, any::<bool>()), 0..60),
        ) {
            let mut browser = BrowserCache::new(capacity);
            for (key, cachable) in wanted {
                browser.has(key, cachable);
                prop_assert!(browser.held.len() <= capacity as usize);
                prop_assert_eq!(browser.held.len(), browser.order.len());
            }
        }
    }
}
