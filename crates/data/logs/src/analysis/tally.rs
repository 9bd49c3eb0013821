//! What is counted of every group of requests.

use crate::class::{Class, REQUEST_CLASSES};
use crate::hash::hash;
use crate::sketch::durations::DurationHistogram;
use crate::sketch::prehashed_map::PrehashedMap;

/// Counts of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupTally {
    pub by_class: [u64; REQUEST_CLASSES],
    pub bytes: u64,
    pub hit_bytes: u64,
    /// Bytes of requests whose outcome is not known.
    pub unknown_bytes: u64,
    pub times: Option<Box<DurationHistogram>>,
}

/// Outcome, size and duration of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestSample {
    pub class: Class,
    pub bytes: u64,
    pub duration_us: Option<u64>,
    /// Bytes of a hit, and of a request without a known outcome: computed once, for all groups of the request.
    hit_bytes: u64,
    unknown_bytes: u64,
}

impl RequestSample {
    #[inline]
    pub(crate) fn new(class: Class, bytes: u64, duration_us: Option<u64>) -> Self {
        let if_is = |is: bool| if is { bytes } else { 0 };
        Self {
            class,
            bytes,
            duration_us,
            hit_bytes: if_is(class.is_hit()),
            unknown_bytes: if_is(class == Class::Unknown),
        }
    }

    /// The same without its duration.
    #[inline]
    pub(crate) fn without_duration(self) -> Self {
        Self { duration_us: None, ..self }
    }
}

impl GroupTally {
    #[inline]
    pub(crate) fn count(&mut self, counted: RequestSample) {
        self.by_class[counted.class as usize] += 1;
        self.bytes += counted.bytes;
        self.hit_bytes += counted.hit_bytes;
        self.unknown_bytes += counted.unknown_bytes;
        if let Some(us) = counted.duration_us {
            self.times.get_or_insert_default().record(us);
        }
    }

    /// Counts many of one class.
    pub(crate) fn add(&mut self, class: Class, requests: u64, bytes: u64, times: Option<&DurationHistogram>) {
        self.by_class[class as usize] += requests;
        self.bytes += bytes;
        if class.is_hit() {
            self.hit_bytes += bytes;
        } else if class == Class::Unknown {
            self.unknown_bytes += bytes;
        }
        if let Some(times) = times {
            self.times.get_or_insert_default().merge(times);
        }
    }

    pub(crate) fn merge(&mut self, other: &GroupTally) {
        for (into, from) in self.by_class.iter_mut().zip(other.by_class) {
            *into += from;
        }
        self.bytes += other.bytes;
        self.hit_bytes += other.hit_bytes;
        self.unknown_bytes += other.unknown_bytes;
        if let Some(times) = &other.times {
            self.times.get_or_insert_default().merge(times);
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.by_class.iter().sum()
    }

    fn count_classes(&self, is_counted: impl Fn(Class) -> bool) -> u64 {
        Class::REQUESTS
            .iter()
            .filter(|class| is_counted(**class))
            .map(|class| self.by_class[*class as usize])
            .sum()
    }

    pub(crate) fn hits(&self) -> u64 {
        self.count_classes(Class::is_hit)
    }

    pub(crate) fn local_hits(&self) -> u64 {
        self.count_classes(Class::is_local_hit)
    }

    pub(crate) fn class(&self, class: Class) -> u64 {
        self.by_class[class as usize]
    }
}

/// Groups by a text of which there are few: content types, methods, peers.
#[derive(Debug)]
pub(crate) struct Groups<T> {
    limit: usize,
    places: PrehashedMap<u32>,
    pub names: Vec<Vec<u8>>,
    pub tallies: Vec<GroupTally>,
    /// Parsed form of each name.
    pub parsed: Vec<T>,
}

/// Group of all names beyond the limit.
const OTHERS: &[u8] = b"(others)";

impl<T: Copy> Groups<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            places: PrehashedMap::default(),
            names: Vec::new(),
            tallies: Vec::new(),
            parsed: Vec::new(),
        }
    }

    /// The place of a name; `parse` says what is known of a new one.
    #[inline]
    pub(crate) fn index_of(&mut self, name: &[u8], parse: impl FnOnce(&[u8]) -> T) -> usize {
        let hash = hash(name);
        match self.places.get(hash) {
            Some(at) => at as usize,
            None => self.add(hash, name, parse),
        }
    }

    fn add(&mut self, hash: u64, name: &[u8], parse: impl FnOnce(&[u8]) -> T) -> usize {
        let full = self.names.len() + 1 >= self.limit;
        let (hash, name) = if full { (crate::hash::hash(OTHERS), OTHERS) } else { (hash, name) };
        if let Some(at) = self.places.get(hash) {
            return at as usize;
        }
        let at = self.names.len();
        self.places.insert(hash, at as u32);
        self.names.push(name[..name.len().min(200)].to_vec());
        self.tallies.push(GroupTally::default());
        self.parsed.push(parse(name));
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut groups: Groups<()> = Groups::new(4);
        let one = RequestSample::new(Class::Miss, 2, Some(5));
        for name in ["a", "b", "a", "c", "d", "e", "a"] {
            let at = groups.index_of(name.as_bytes(), |_| ());
            groups.tallies[at].count(one);
        }
        let counts: Vec<_> = groups
            .names
            .iter()
            .zip(&groups.tallies)
            .map(|(name, tally)| (String::from_utf8_lossy(name).into_owned(), tally.requests()))
            .collect();
        assert_eq!(counts, [("a".into(), 3), ("b".into(), 1), ("c".into(), 1), ("(others)".to_owned(), 2)]);
    }
}
