//! Reuse distances in bytes: how many bytes of different objects were requested since an object was last requested. An LRU
//! cache of C bytes hits exactly the requests whose distance, with the object itself, is at most C (Mattson et al. 1970), so
//! one pass gives the hits at every size.
//!
//! Every object lies at the position of its last request on a line. Sums over blocks of eight positions, blocks of eight
//! such blocks, and so on, make the bytes behind a position a sum of a few terms for each level; two positions that are near
//! each other share their upper blocks, which are then not touched. When the line is full, objects move up.

/// Positions in a block: as many sums as fit into a line of a processor's cache.
const BLOCK: usize = 8;
/// Requests that are looked up together before they are made.
pub const BATCH: usize = 32;
const NEVER: u32 = u32::MAX;

/// Objects by their last request.
#[derive(Debug)]
pub struct Distances {
    /// Bytes at each position, and above it the sums of its blocks.
    levels: Vec<Vec<u64>>,
    /// Position by object.
    last: Vec<u32>,
    /// Object by position; it has left all but its last position, which are not cleared.
    objects: Vec<u32>,
    next: usize,
}

impl Distances {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        // Twice as many positions as objects: at least half the line is free after objects have moved up.
        let positions = (2 * objects).next_multiple_of(BLOCK).max(BLOCK);
        let mut levels = vec![vec![0; positions]];
        let mut nodes = positions;
        while nodes > BLOCK {
            nodes = nodes.div_ceil(BLOCK).next_multiple_of(BLOCK);
            levels.push(vec![0; nodes]);
        }
        Self { levels, last: vec![NEVER; objects], objects: vec![NEVER; positions], next: 0 }
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
        Some(bytes + self.shift(from as usize, to, bytes))
    }

    /// Reads what at most [`BATCH`] coming requests will need, and returns a number without a meaning. Each of these places is
    /// likely to be in no cache of the processor; read together, they are waited for once and not one after the other.
    #[inline]
    pub fn warm(&self, objects: impl Iterator<Item = u32>) -> u64 {
        let mut positions = [NEVER; BATCH];
        for (position, object) in positions.iter_mut().zip(objects) {
            *position = self.last.get(object as usize).copied().unwrap_or(NEVER);
        }
        let read = |level: usize, at: usize| self.levels.get(level).and_then(|sums| sums.get(at)).copied();
        let sums = positions.iter().filter(|position| **position != NEVER).flat_map(|position| {
            let at = *position as usize;
            [read(0, at), read(1, at / BLOCK)]
        });
        sums.flatten().fold(0, u64::wrapping_add)
    }

    /// Moves bytes from one position to the newest one, and returns the bytes between the two.
    #[inline]
    fn shift(&mut self, mut from: usize, mut to: usize, bytes: u64) -> u64 {
        let mut between = 0;
        for level in &mut self.levels {
            let end = from | (BLOCK - 1);
            let is_common = to <= end;
            let last = if is_common { to } else { end };
            between += level[from + 1..=last].iter().sum::<u64>();
            level[from] -= bytes;
            level[to] += bytes;
            if is_common {
                // The sum of the common block, and of all above it, stays what it is.
                break;
            }
            (from, to) = (from / BLOCK, to / BLOCK);
        }
        between
    }

    fn add(&mut self, mut at: usize, bytes: u64) {
        for level in &mut self.levels {
            level[at] += bytes;
            at /= BLOCK;
        }
    }

    /// Moves all objects to the first positions, in their order.
    fn move_up(&mut self) {
        let sizes = std::mem::take(&mut self.levels[0]);
        self.levels[0] = vec![0; sizes.len()];
        for level in &mut self.levels[1..] {
            level.fill(0);
        }
        let mut to = 0;
        for (from, size) in sizes.into_iter().enumerate() {
            let object = self.objects[from];
            if self.last[object as usize] == from as u32 {
                self.objects[to] = object;
                self.last[object as usize] = to as u32;
                self.add(to, size);
                to += 1;
            }
        }
        self.next = to;
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

    proptest::proptest! {
        #[test]
        fn distances_are_the_bytes_of_the_different_objects_since_the_last_request(
            objects in 1u32..400, draws in proptest::collection::vec(0u32..400, 1..900)
        ) {
            let trace: Vec<_> = draws.iter().map(|draw| (draw % objects, u64::from(draw % objects % 7))).collect();
            let mut distances = Distances::new(objects as usize);
            let found: Vec<_> = trace.iter().map(|(object, bytes)| distances.request(*object, *bytes)).collect();
            proptest::prop_assert_eq!(found, plain(&trace));
        }
    }
}
