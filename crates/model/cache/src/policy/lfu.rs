//! Policies that evict by a count of requests: LFU and LFUDA. Objects with the same count form a list in the order of their last
//! requests, so no heap is needed.

use super::EvictionPolicy;
use super::lists::{Links, List};
use super::online::OnlinePolicy;

/// Evicts the object with the lowest count; among equal counts, the least recently requested. A count is the number of requests since
/// the object was stored; with `AGES`, plus the count of the object that was evicted last before the latest of these requests.
#[derive(Debug)]
pub struct LfuOrder<const AGES: bool> {
    /// Count of an object, and its requests.
    links: Links<(u32, u32)>,
    /// Objects by their count.
    lists: Vec<List>,
    /// Lower bound of all counts.
    lowest: usize,
    age: u32,
}

pub type Lfu = LfuOrder<false>;
/// LFU with dynamic ageing.
pub type Lfuda = LfuOrder<true>;

impl<const AGES: bool> LfuOrder<AGES> {
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, (0, 0)), lists: Vec::new(), lowest: 0, age: 0 }
    }

    #[inline]
    fn push(&mut self, object: u32, requests: u32) {
        // Counts grow by one for each request, of which there are fewer than 2^32.
        let count = if AGES { self.age.saturating_add(requests) } else { requests };
        *self.links.data_mut(object) = (count, requests);
        let count = count as usize;
        if count >= self.lists.len() {
            self.lists.resize(count + 1, List::EMPTY);
        }
        self.lists[count].push(&mut self.links, object);
        self.lowest = self.lowest.min(count);
    }
}

impl<const AGES: bool> EvictionPolicy for LfuOrder<AGES> {
    #[inline]
    fn hit(&mut self, object: u32) {
        let (count, requests) = self.links.data(object);
        self.lists[count as usize].remove(&mut self.links, object);
        self.push(object, requests.saturating_add(1));
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        self.push(object, 1);
    }

    fn victim(&mut self) -> Option<u32> {
        let above = self.lists.get(self.lowest..)?.iter().position(|list| !list.is_empty())?;
        self.lowest += above;
        self.lists[self.lowest].oldest()
    }

    fn evict(&mut self) -> Option<u32> {
        self.victim()?;
        let object = self.lists[self.lowest].pop(&mut self.links)?;
        if AGES {
            self.age = self.lowest as u32;
        }
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        let (count, _) = self.links.data(object);
        self.lists[count as usize].remove(&mut self.links, object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.links.prefetch(object)
    }
}

impl<const AGES: bool> OnlinePolicy for LfuOrder<AGES> {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, (0, 0));
    }
}
