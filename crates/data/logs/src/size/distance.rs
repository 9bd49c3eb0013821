//! Reuse distances in bytes: how many bytes of different objects were requested since an object was last requested. An LRU
//! cache of C bytes hits exactly the requests whose distance, with the object itself, is at most C (Mattson et al. 1970), so
//! one pass gives the hits at every size.
//!
//! Every object lies at the position of its last request on a line, and a request moves it to the end. What lies behind a position
//! is what lies behind it in its block of sizes, plus the sums of the blocks behind that one, plus the sums of groups of eight blocks
//! behind those, and so on: a few terms for each level, of which two positions near each other need only the lowest. A block of sizes, and
//! a group of sums, is a line of a processor's cache, of which all is read and what does not count is masked: a loop of another length
//! for each request would be predicted wrongly every time. When the line is full, objects move up.

/// Bytes of a line of a processor's cache.
const LINE: usize = 64;
/// Sums in a group.
const GROUP: usize = LINE / size_of::<u64>();
/// Positions for each object: at least two thirds of the line are free after objects have moved up.
const POSITIONS: usize = 3;
/// Requests that are looked up together before they are made.
pub const BATCH: usize = 32;
const NEVER: u32 = u32::MAX;

/// The size of an object as it is stored at a position: 32 bits where all sizes fit.
pub trait StoredSize: Copy + Default + PartialEq {
    /// Sizes in a block.
    const BLOCK: usize = LINE / size_of::<Self>();

    /// From bytes; all sizes fit.
    fn from_bytes(bytes: u64) -> Self;

    /// In bytes.
    fn bytes(self) -> u64;

    /// The bytes at and behind a place of a block.
    fn at_and_behind(block: &[Self], place: usize) -> u64;
}

/// For each place, which places of a line are at or behind it: a window of this, from `LANES - place` on.
const LANES: usize = LINE / size_of::<u32>();
const BEHIND_32: [u32; 2 * LANES] = {
    let mut mask = [0; 2 * LANES];
    let mut lane = LANES;
    while lane < 2 * LANES {
        mask[lane] = u32::MAX;
        lane += 1;
    }
    mask
};
const BEHIND_64: [u64; 2 * GROUP] = {
    let mut mask = [0; 2 * GROUP];
    let mut lane = GROUP;
    while lane < 2 * GROUP {
        mask[lane] = u64::MAX;
        lane += 1;
    }
    mask
};

impl StoredSize for u32 {
    #[inline]
    fn from_bytes(bytes: u64) -> Self {
        bytes as u32
    }

    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self)
    }

    #[inline]
    fn at_and_behind(block: &[Self], place: usize) -> u64 {
        let mask = &BEHIND_32[LANES - place..][..LANES];
        block.iter().zip(mask).map(|(size, mask)| u64::from(size & mask)).sum()
    }
}

impl StoredSize for u64 {
    #[inline]
    fn from_bytes(bytes: u64) -> Self {
        bytes
    }

    #[inline]
    fn bytes(self) -> u64 {
        self
    }

    #[inline]
    fn at_and_behind(block: &[Self], place: usize) -> u64 {
        let mask = &BEHIND_64[GROUP - place..][..GROUP];
        block.iter().zip(mask).map(|(size, mask)| size & mask).sum()
    }
}

/// Objects by their last request.
#[derive(Debug)]
pub struct ReuseDistances<S> {
    /// Bytes at each position.
    sizes: Vec<S>,
    /// Sums of its blocks, of groups of these, and so on.
    levels: Vec<Vec<u64>>,
    last: Vec<u32>,
    /// Object by position; it has left all but its last position, which are not cleared.
    objects: Vec<u32>,
    /// Some object has no bytes: then a position without bytes may be taken.
    has_empty: bool,
    next: usize,
}

impl<S: StoredSize> ReuseDistances<S> {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        // More positions than objects: they are moved up only once all have been used.
        let positions = (POSITIONS * objects).next_multiple_of(S::BLOCK).max(S::BLOCK);
        let mut levels = Vec::new();
        let mut nodes = positions / S::BLOCK;
        loop {
            nodes = nodes.next_multiple_of(GROUP);
            levels.push(vec![0; nodes]);
            if nodes == GROUP {
                break;
            }
            nodes /= GROUP;
        }
        Self {
            sizes: vec![S::default(); positions],
            levels,
            last: vec![NEVER; objects],
            objects: vec![NEVER; positions],
            has_empty: false,
            next: 0,
        }
    }

    /// A request for an object: the bytes of the objects that were requested since it was last requested, with its own; none:
    /// it is requested for the first time. An object has the same size whenever it is requested.
    #[inline]
    pub fn request(&mut self, object: u32, bytes: u64) -> Option<u64> {
        if self.next == self.objects.len() {
            self.move_up();
        }
        let to = self.next;
        self.next += 1;
        self.objects[to] = object;
        let from = std::mem::replace(&mut self.last[object as usize], to as u32);
        if from == NEVER {
            self.add(to, bytes);
            return None;
        }
        Some(self.shift(from as usize, to, bytes))
    }

    /// Reads what at most [`BATCH`] coming requests will need, and returns a number without a meaning. Each of these places is
    /// likely to be in no cache of the processor; read together, they are waited for once and not one after the other.
    #[inline]
    pub fn prefetch(&self, objects: impl Iterator<Item = u32>) -> u64 {
        // All positions first, so that the reads that depend on them do not wait for one another.
        let mut positions = [NEVER; BATCH];
        for (position, object) in positions.iter_mut().zip(objects) {
            *position = self.last.get(object as usize).copied().unwrap_or(NEVER);
        }
        let sums = &self.levels[0];
        let read = |position: &u32| {
            let at = *position as usize;
            let size = self.sizes.get(at).map_or(0, |size| size.bytes());
            size.wrapping_add(sums.get(at / S::BLOCK).copied().unwrap_or(0))
        };
        positions.iter().map(read).fold(0, u64::wrapping_add)
    }

    /// Moves bytes from one position to the newest one, and returns the bytes at and behind the old one.
    #[inline]
    fn shift(&mut self, from: usize, to: usize, bytes: u64) -> u64 {
        let block = &mut self.sizes[from / S::BLOCK * S::BLOCK..][..S::BLOCK];
        let mut behind = S::at_and_behind(block, from % S::BLOCK);
        block[from % S::BLOCK] = S::default();
        self.sizes[to] = S::from_bytes(bytes);
        let (mut from, mut to) = (from / S::BLOCK, to / S::BLOCK);
        if from == to {
            return behind;
        }
        for level in &mut self.levels {
            let group = &mut level[from / GROUP * GROUP..][..GROUP];
            // Itself is masked, and what is behind it is not.
            behind += u64::at_and_behind(group, from % GROUP + 1);
            group[from % GROUP] -= bytes;
            level[to] += bytes;
            (from, to) = (from / GROUP, to / GROUP);
            if from == to {
                // The sum of the common group, and of all above it, stays what it is.
                break;
            }
        }
        behind
    }

    fn add(&mut self, at: usize, bytes: u64) {
        self.has_empty |= bytes == 0;
        self.sizes[at] = S::from_bytes(bytes);
        let mut at = at / S::BLOCK;
        for level in &mut self.levels {
            level[at] += bytes;
            at /= GROUP;
        }
    }

    /// Moves all objects to the first positions, in their order.
    fn move_up(&mut self) {
        let mut to = 0;
        for from in 0..self.sizes.len() {
            let size = self.sizes[from];
            if size == S::default() && !self.has_empty {
                continue;
            }
            let object = self.objects[from];
            if size == S::default() && self.last[object as usize] != from as u32 {
                continue;
            }
            self.last[object as usize] = to as u32;
            (self.sizes[to], self.objects[to]) = (size, object);
            to += 1;
        }
        self.sizes[to..].fill(S::default());
        self.next = to;
        self.sum_up();
    }

    /// Sums all levels anew.
    fn sum_up(&mut self) {
        let [lowest, upper @ ..] = self.levels.as_mut_slice() else { return };
        for (sum, block) in lowest.iter_mut().zip(self.sizes.chunks_exact(S::BLOCK)) {
            *sum = block.iter().map(|size| size.bytes()).sum();
        }
        let mut below = &*lowest;
        for level in upper {
            for (sum, group) in level.iter_mut().zip(below.chunks_exact(GROUP)) {
                *sum = group.iter().sum();
            }
            below = level;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by walking back.
    fn plain(trace: &[(u32, u64)]) -> Vec<Option<u64>> {
        let distance = |at: usize| {
            let before = trace[..at].iter().rposition(|(object, _)| *object == trace[at].0)?;
            let mut between: Vec<_> = trace[before..at].to_vec();
            between.sort_unstable();
            between.dedup();
            Some(between.iter().map(|(_, bytes)| bytes).sum())
        };
        (0..trace.len()).map(distance).collect()
    }

    fn distances<S: StoredSize>(objects: u32, trace: &[(u32, u64)]) -> Vec<Option<u64>> {
        let mut distances = ReuseDistances::<S>::new(objects as usize);
        trace.iter().map(|(object, bytes)| distances.request(*object, *bytes)).collect()
    }

    proptest::proptest! {
        #[test]
        fn distances_are_the_bytes_of_the_different_objects_since_the_last_request(
            objects in 1u32..300, draws in proptest::collection::vec(0u32..400, 1..600), least in 0u32..2
        ) {
            let trace: Vec<_> =
                draws.iter().map(|draw| (draw % objects, u64::from(draw % objects % 7 + least))).collect();
            let [narrow, wide] = [distances::<u32>(objects, &trace), distances::<u64>(objects, &trace)];
            proptest::prop_assert_eq!(&narrow, &plain(&trace));
            proptest::prop_assert_eq!(narrow, wide);
        }
    }
}
