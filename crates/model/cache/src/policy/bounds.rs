//! Bounds on the optimal hits of a trace with objects of several sizes.
//!
//! A hit needs its object to be kept since the request before. Such a *reuse interval* takes the object's size for as many slots as
//! there are requests until the next one; a cache of C bytes has C bytes in each slot. The optimum chooses the most intervals that
//! fit, which is hard to compute (Berger, Beckmann and Harchol-Balter, SIGMETRICS 2018). Two values enclose it:
//!
//! - [`upper_bound`] is their PFOO-L: all slots together have room for C times their number, and the intervals with the smallest
//!   product of size and length are taken until that is used up. No schedule of any cache can have more hits.
//! - [`lower_bound`] takes the intervals in the same order, each if there is room for it in all of its slots. A cache that knows the
//!   future, and need not store what it fetches, can carry this out. (Their PFOO-U solves flow problems on parts of the trace
//!   instead, and is tighter.)
//!
//! Cost: sorting the intervals; for the lower value also a walk through a tree of slots for each of them.

use std::ops::Range;

/// Two requests for an object and the slots between them: a cache that keeps the object in all of them has a hit at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReuseInterval {
    /// The first slot: the number of the request after which it begins.
    pub from: u32,
    /// The slot behind the last: the number of the request that would be a hit.
    pub until: u32,
    /// Size of the object.
    pub bytes: u64,
    /// Bytes of the response to the request that would be a hit.
    pub sent_bytes: u64,
    /// In a sample of objects: the object stands only for itself; others stand for those that the sample leaves out, and take their room.
    pub is_large: bool,
}

impl ReuseInterval {
    /// Bytes times slots.
    fn cost(&self) -> u128 {
        u128::from(self.bytes) * u128::from(self.until - self.from)
    }

    /// Cost of a hit, where every object that is not large stands for one over `rate` objects.
    fn cost_of_hit(&self, rate: f64) -> f64 {
        self.cost() as f64 * if self.is_large { 1.0 } else { rate }
    }
}

/// Bound on hits and on bytes of hits. Each is optimised by itself: one schedule need not reach both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitBound {
    pub hits: u64,
    /// Bytes of their responses.
    pub hit_bytes: u64,
}

/// Upper bound (PFOO-L) for a cache of this capacity on a trace of `slots` requests. The caller leaves out objects above the capacity.
/// The second bound is that of large objects, which only a sample with this rate has.
pub fn upper_bound(
    intervals: &mut [ReuseInterval],
    slots: u64,
    capacity_bytes: u64,
    rate: Option<f64>,
) -> [HitBound; 2] {
    let room = u128::from(capacity_bytes) * u128::from(slots);
    let mut bounds = [HitBound::default(); 2];
    by_cost(intervals, rate);
    let mut left = room;
    for interval in intervals.iter() {
        let Some(rest) = left.checked_sub(interval.cost()) else { break };
        left = rest;
        bounds[usize::from(interval.is_large)].hits += 1;
    }
    by_cost_of_byte(intervals, rate);
    let mut left = room;
    for interval in intervals.iter() {
        let cost = interval.cost();
        let hit_bytes = &mut bounds[usize::from(interval.is_large)].hit_bytes;
        if cost > left {
            // A part of the first interval that does not fit: the best of all fractional choices.
            let part = left as f64 / cost as f64 * interval.sent_bytes as f64;
            *hit_bytes = hit_bytes.saturating_add((part.ceil() as u64).min(interval.sent_bytes));
            break;
        }
        left -= cost;
        *hit_bytes = hit_bytes.saturating_add(interval.sent_bytes);
    }
    bounds
}

/// Lower bound: hits that a cache of this capacity reaches if it knows the future; the second bound as in [`upper_bound`].
pub fn lower_bound(
    intervals: &mut [ReuseInterval],
    slots: u64,
    capacity_bytes: u64,
    rate: Option<f64>,
) -> [HitBound; 2] {
    let fits = |slots: &mut Slots, interval: &ReuseInterval| {
        let is_free = slots.highest(interval) <= capacity_bytes.saturating_sub(interval.bytes);
        let fits = is_free && interval.bytes <= capacity_bytes;
        if fits {
            slots.add(interval);
        }
        fits
    };
    let mut bounds = [HitBound::default(); 2];
    by_cost(intervals, rate);
    let mut taken = Slots::new(slots);
    for interval in intervals.iter().filter(|interval| fits(&mut taken, interval)) {
        bounds[usize::from(interval.is_large)].hits += 1;
    }
    by_cost_of_byte(intervals, rate);
    let mut taken = Slots::new(slots);
    for interval in intervals.iter().filter(|interval| fits(&mut taken, interval)) {
        bounds[usize::from(interval.is_large)].hit_bytes += interval.sent_bytes;
    }
    bounds
}

fn by_cost(intervals: &mut [ReuseInterval], rate: Option<f64>) {
    match rate {
        None => intervals.sort_unstable_by_key(|interval| (interval.cost(), interval.from)),
        Some(rate) => intervals.sort_unstable_by(|a, b| {
            a.cost_of_hit(rate).total_cmp(&b.cost_of_hit(rate)).then(a.from.cmp(&b.from))
        }),
    }
}

fn by_cost_of_byte(intervals: &mut [ReuseInterval], rate: Option<f64>) {
    let rate = rate.unwrap_or(1.0);
    intervals.sort_unstable_by(|a, b| {
        // A response without bytes is worth nothing, and comes last.
        let each = |i: &ReuseInterval| {
            if i.sent_bytes == 0 { f64::INFINITY } else { i.cost_of_hit(rate) / i.sent_bytes as f64 }
        };
        each(a).total_cmp(&each(b)).then(a.from.cmp(&b.from))
    });
}

/// A node of the segment tree: the most bytes in a slot below it, without those that are added at this node or above.
#[derive(Clone, Copy, Default)]
struct SlotNode {
    highest: u64,
    /// Bytes added to all slots below the node.
    added: u64,
}

/// Bytes taken in each slot, as a segment tree.
struct Slots {
    nodes: Vec<SlotNode>,
    leaves: usize,
}

impl Slots {
    fn new(slots: u64) -> Self {
        let leaves = (slots.max(1) as usize).next_power_of_two();
        Self { nodes: vec![SlotNode::default(); 2 * leaves], leaves }
    }

    fn highest(&self, interval: &ReuseInterval) -> u64 {
        self.highest_below(1, 0..self.leaves, &(interval.from as usize..interval.until as usize))
    }

    /// Largest number of bytes in a slot of `slots`, among those that the node covers.
    fn highest_below(&self, node: usize, covered: Range<usize>, slots: &Range<usize>) -> u64 {
        if slots.start >= covered.end || slots.end <= covered.start {
            return 0;
        }
        let SlotNode { highest, added } = self.nodes[node];
        if slots.start <= covered.start && slots.end >= covered.end {
            return highest + added;
        }
        let middle = (covered.start + covered.end) / 2;
        let left = self.highest_below(2 * node, covered.start..middle, slots);
        left.max(self.highest_below(2 * node + 1, middle..covered.end, slots)) + added
    }

    fn add(&mut self, interval: &ReuseInterval) {
        let slots = interval.from as usize..interval.until as usize;
        self.add_below(1, 0..self.leaves, &slots, interval.bytes);
    }

    fn add_below(&mut self, node: usize, covered: Range<usize>, slots: &Range<usize>, bytes: u64) {
        if slots.start >= covered.end || slots.end <= covered.start {
            return;
        }
        if slots.start <= covered.start && slots.end >= covered.end {
            self.nodes[node].added += bytes;
            return;
        }
        let middle = (covered.start + covered.end) / 2;
        self.add_below(2 * node, covered.start..middle, slots, bytes);
        self.add_below(2 * node + 1, middle..covered.end, slots, bytes);
        let below = |node: usize| self.nodes[node].highest + self.nodes[node].added;
        self.nodes[node].highest = below(2 * node).max(below(2 * node + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Intervals of a trace: objects by request, each with its size.
    fn intervals(trace: &[usize], sizes: &[u64], capacity: u64) -> Vec<ReuseInterval> {
        let mut list = Vec::new();
        for (until, object) in trace.iter().enumerate() {
            let before = trace[..until].iter().rposition(|other| other == object);
            if let Some(from) = before.filter(|_| sizes[*object] <= capacity) {
                let (from, until, bytes) = (from as u32, until as u32, sizes[*object]);
                list.push(ReuseInterval { from, until, bytes, sent_bytes: bytes, is_large: false });
            }
        }
        list
    }

    /// The optimum by trying all contents after every request; a cache may leave out what it fetches. `worth` is of a hit.
    fn best(trace: &[usize], sizes: &[u64], capacity: u64, worth: &dyn Fn(usize) -> u64) -> u64 {
        let room = |set: usize| {
            sizes.iter().enumerate().filter(|(o, _)| set >> o & 1 == 1).map(|(_, s)| s).sum::<u64>()
        };
        let sets: Vec<usize> = (0..1 << sizes.len()).filter(|set| room(*set) <= capacity).collect();
        let mut best: Vec<Option<u64>> = vec![None; 1 << sizes.len()];
        best[0] = Some(0);
        for object in trace {
            let mut next = vec![None; best.len()];
            for set in &sets {
                let Some(hits) = best[*set] else { continue };
                let hits = hits + if set >> object & 1 == 1 { worth(*object) } else { 0 };
                for kept in &sets {
                    if kept & !(set | 1 << object) == 0 {
                        next[*kept] = next[*kept].max(Some(hits));
                    }
                }
            }
            best = next;
        }
        best.into_iter().flatten().max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_optimum_lies_between_the_bounds(
            trace in proptest::collection::vec(0usize..5, 1..30), sizes in proptest::collection::vec(1u64..6, 5), capacity in 0u64..14
        ) {
            let mut list = intervals(&trace, &sizes, capacity);
            let slots = trace.len() as u64;
            let [low, _] = lower_bound(&mut list, slots, capacity, None);
            let [high, _] = upper_bound(&mut list, slots, capacity, None);
            let hits = best(&trace, &sizes, capacity, &|_| 1);
            let bytes = best(&trace, &sizes, capacity, &|object| sizes[object]);
            prop_assert!(low.hits <= hits && hits <= high.hits, "{low:?} {hits} {high:?}");
            prop_assert!(low.hit_bytes <= bytes && bytes <= high.hit_bytes, "{low:?} {bytes} {high:?}");
        }
    }

    #[test]
    fn where_everything_fits_both_bounds_are_all_intervals() {
        let trace = [0, 1, 2, 0, 1, 2, 2];
        let mut list = intervals(&trace, &[3, 4, 5], 12);
        let all = HitBound { hits: 4, hit_bytes: 3 + 4 + 5 + 5 };
        let found = [lower_bound(&mut list, 7, 12, None)[0], upper_bound(&mut list, 7, 12, None)[0]];
        assert_eq!(found, [all; 2]);
    }
}
