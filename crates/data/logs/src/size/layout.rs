//! The room that a proxy needs for an object: its body, what it keeps beside that, the unit in which it takes room, and the share of its
//! size that it fills.

use crate::size::requests::{Requests, UNCACHABLE};

/// Room that a proxy allocates for objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes beside the body.
    pub overhead_bytes: u64,
    /// Room is taken in multiples of this; at least 1.
    pub unit_bytes: u64,
    /// The share of its size, in percent, that it fills before it evicts; from 1 to 100. Objects are as much larger as the cache would be
    /// smaller, so that sizes remain those that it is given.
    pub filled_percent: u64,
}

impl Layout {
    pub const BODIES: Self = Self { overhead_bytes: 0, unit_bytes: 1, filled_percent: 100 };

    /// Memory that an object of this size in bytes needs.
    pub fn room(&self, bytes: u64) -> u64 {
        let taken = bytes
            .saturating_add(self.overhead_bytes)
            .checked_next_multiple_of(self.unit_bytes.max(1))
            .unwrap_or(u64::MAX);
        match self.filled_percent {
            1..100 => taken.saturating_mul(100).div_ceil(self.filled_percent),
            _ => taken,
        }
    }
}

impl Requests {
    /// Makes every object need the room that it has in a proxy. Nothing changes without sizes.
    pub fn lay_out(&mut self, layout: Layout) {
        if !self.has_sizes {
            return;
        }
        for request in self.list.iter_mut().filter(|request| request.object != UNCACHABLE) {
            request.bytes = layout.room(request.bytes);
        }
        self.largest_bytes = if self.objects == 0 { 0 } else { layout.room(self.largest_bytes) };
        self.footprint_bytes = self.held_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::requests::{RequestCollector, Sizes};
    use crate::size::sample::Sampling;

    #[test]
    fn room_is_the_body_and_the_overhead_in_whole_units() {
        let layout = Layout { overhead_bytes: 100, unit_bytes: 64, ..Layout::BODIES };
        assert_eq!([0, 28, 29, u64::MAX].map(|bytes| layout.room(bytes)), [128, 128, 192, u64::MAX]);
        assert_eq!(Layout::BODIES.room(77), 77);
        let filled = |filled_percent| Layout { filled_percent, ..layout }.room(28);
        assert_eq!([filled(100), filled(50), filled(90)], [128, 256, 143]);
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        for (key, bytes) in [(1, 28), (2, 29), (1, 60)] {
            collector.add_whole(key, bytes, None);
        }
        collector.add_uncachable(9, None);
        let mut requests = collector.finish();
        requests.lay_out(layout);
        let rooms: Vec<_> = requests.list.iter().map(|request| (request.bytes, request.sent_bytes)).collect();
        assert_eq!(rooms, [(128, 28), (192, 29), (192, 60), (0, 9)]);
        assert_eq!((requests.footprint_bytes, requests.largest_bytes), (384, 192));
    }
}
