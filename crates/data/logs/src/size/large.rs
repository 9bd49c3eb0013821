//! The largest objects of an input, all of which are in its sample, beside those that are drawn.
//!
//! A few objects may have most of the bytes, and whether one of them happens to be drawn would decide the figures. So every object from
//! a size on is taken, with its own weight, and only smaller ones are drawn. The size is raised as the input is read: those that are taken
//! for their size alone are at most half as many as those that are drawn, and have at most as many requests.

use crate::size::request::{TraceRequest, UNCACHABLE};

/// So many objects and requests are not too many, however few are drawn.
const ALWAYS_ALLOWED: LargeCounts = LargeCounts { objects: 64, requests: 1024 };

/// Objects that are in the sample for their size alone, and their requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LargeCounts {
    pub(crate) objects: usize,
    pub(crate) requests: usize,
}

/// From which size on objects are taken, and those that were.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Large {
    pub(crate) from_bytes: u64,
    pub(crate) taken: LargeCounts,
}

impl Default for Large {
    fn default() -> Self {
        Self { from_bytes: 1, taken: LargeCounts::default() }
    }
}

impl Large {
    /// No object is large: there are no sizes.
    pub(crate) const NONE: Self =
        Self { from_bytes: u64::MAX, taken: LargeCounts { objects: 0, requests: 0 } };

    #[inline]
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        bytes >= self.from_bytes
    }

    /// True if large objects are too many beside the drawn ones.
    pub(crate) fn is_excess(&self, objects: usize, requests: usize) -> bool {
        let limits = limits(objects - self.taken.objects, requests - self.taken.requests);
        self.taken.objects > limits.objects || self.taken.requests > limits.requests
    }

    /// Raises the size until they are not too many. `known` are the sizes of objects, `is_drawn` says which are drawn.
    pub(crate) fn raise(&mut self, list: &[TraceRequest], known: &[u64], is_drawn: &[bool]) {
        let mut requests = vec![0usize; known.len()];
        let mut drawn = LargeCounts::default();
        for request in list.iter().filter(|request| request.object != UNCACHABLE) {
            if is_drawn[request.object as usize] {
                drawn.requests += 1;
            } else if self.takes(request.bytes) {
                requests[request.object as usize] += 1;
            }
        }
        drawn.objects = is_drawn.iter().filter(|is_drawn| **is_drawn).count();
        let limits = limits(drawn.objects, drawn.requests);
        // Not up to the limit, or the next one would be too many again.
        let limits = LargeCounts { objects: limits.objects * 3 / 4, requests: limits.requests * 3 / 4 };
        let mut large: Vec<(u64, usize)> = (0..known.len())
            .filter(|object| !is_drawn[*object] && self.takes(known[*object]))
            .map(|object| (known[object], requests[object]))
            .collect();
        large.sort_unstable_by(|a, b| b.cmp(a));
        self.taken = LargeCounts::default();
        for same in large.chunk_by(|a, b| a.0 == b.0) {
            let objects = self.taken.objects + same.len();
            let requests = self.taken.requests + same.iter().map(|(_, requests)| requests).sum::<usize>();
            if objects > limits.objects || requests > limits.requests {
                self.from_bytes = same[0].0 + 1;
                return;
            }
            self.taken = LargeCounts { objects, requests };
        }
    }
}

fn limits(objects: usize, requests: usize) -> LargeCounts {
    LargeCounts {
        objects: (objects / 2).max(ALWAYS_ALLOWED.objects),
        requests: requests.max(ALWAYS_ALLOWED.requests),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(objects: &[u32], known: &[u64]) -> Vec<TraceRequest> {
        let of = |object: &u32| {
            let bytes = known[*object as usize];
            TraceRequest { bytes, sent_bytes: bytes, object: *object, at_s: 0 }
        };
        objects.iter().map(of).collect()
    }

    #[test]
    fn the_size_rises_until_few_enough_are_taken_and_objects_of_one_size_are_taken_together() {
        // 300 objects, of which every third is drawn; sizes from 1 to 100, three of each.
        let known: Vec<u64> = (0..300).map(|object| 1 + object / 3).collect();
        let is_drawn: Vec<bool> = (0..300).map(|object| object % 3 == 0).collect();
        let list = requests(&(0..300).collect::<Vec<_>>(), &known);
        let mut large = Large::default();
        large.raise(&list, &known, &is_drawn);
        // At most 48 of 64, two for each size.
        assert_eq!((large.taken.objects, large.from_bytes), (48, 77));
        assert!(large.takes(77) && !large.takes(76) && !large.is_excess(148, 148));
        let equal = vec![5; 300];
        let mut large = Large::default();
        large.raise(&requests(&(0..300).collect::<Vec<_>>(), &equal), &equal, &is_drawn);
        assert_eq!((large.taken.objects, large.from_bytes), (0, 6));
    }

    #[test]
    fn an_object_with_too_many_requests_is_not_taken_for_its_size() {
        let known = [10, 50, 20, 30];
        let often: Vec<u32> = (0..4000).map(|number| if number % 2 == 0 { 1 } else { number % 4 }).collect();
        let mut large = Large::default();
        large.raise(&requests(&often, &known), &known, &[true, false, false, true]);
        assert_eq!((large.taken.objects, large.from_bytes), (0, 51));
        let mut large = Large::default();
        large.raise(&requests(&[0, 1, 2, 3, 1], &known), &known, &[true, false, false, true]);
        assert_eq!((large.taken.objects, large.taken.requests, large.from_bytes), (2, 3, 1));
    }
}
