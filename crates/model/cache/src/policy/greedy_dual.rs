//! Greedy-Dual policies, which give every object a rank and evict the one with the lowest: GDS and GDSF.

use super::EvictionPolicy;
use super::online::OnlinePolicy;

/// Rank of an object as a function of its requests and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankFunction {
    /// Inverse of the size, plus the age of the store (Greedy-Dual-Size with a cost of one: it optimises hits, not bytes).
    InverseSize,
    /// Requests since the object was stored over its size, plus the age (Greedy-Dual-Size-Frequency).
    FrequencyBySize,
}

/// Unit of sizes in ranks, so that ranks of usual objects are not tiny beside the age.
const MILLION: f64 = 1e6;

/// Evicts by rank; among equal ranks, the least recently requested object. The age of the store is the rank of the object that was
/// evicted last.
///
/// With Greedy-Dual-Size-Frequency, a new object gets its rank before room is made, and competes with the stored ones: if its rank is the
/// lowest, it is not stored, as in the publication and in libCacheSim. There is one difference to the publication: where several objects
/// would be evicted and the new one is among them, those before it are evicted here (and in libCacheSim), but stay there.
#[derive(Debug)]
pub struct GreedyDual {
    rank: RankFunction,
    heap: Heap,
    /// Requests since an object was stored, and its size.
    objects: Vec<(u32, u64)>,
    age: f64,
    now: u64,
    /// Share of its bytes that counts as the size of each object; empty: all bytes.
    shares: Vec<f32>,
}

impl GreedyDual {
    pub fn new(rank: RankFunction, objects: usize) -> Self {
        Self {
            rank,
            heap: Heap::new(objects),
            objects: vec![(0, 0); objects],
            age: 0.0,
            now: 0,
            shares: Vec::new(),
        }
    }

    /// Sets the share of its bytes that counts as the size of each object: in the simulation of a sample, an object takes more room than
    /// its size.
    #[must_use]
    pub fn with_shares(self, shares: Vec<f32>) -> Self {
        Self { shares, ..self }
    }

    fn size(&self, object: u32, bytes: u64) -> u64 {
        self.shares.get(object as usize).map_or(bytes, |share| (bytes as f64 * f64::from(*share)) as u64)
    }

    fn key(&mut self, object: u32) -> Key {
        self.now += 1;
        let (requests, bytes) = self.objects[object as usize];
        Key { rank: self.rank(requests, bytes), stamp: self.now }
    }

    fn rank(&self, requests: u32, bytes: u64) -> f64 {
        // An object of no bytes costs nothing to keep: it has the rank of one byte.
        let size = bytes.max(1) as f64;
        match self.rank {
            RankFunction::InverseSize => self.age + MILLION / size,
            RankFunction::FrequencyBySize => self.age + f64::from(requests) * MILLION / size,
        }
    }
}

impl EvictionPolicy for GreedyDual {
    fn hit(&mut self, object: u32) {
        let (requests, _) = &mut self.objects[object as usize];
        *requests = requests.saturating_add(1);
        let key = self.key(object);
        self.heap.update(object, key);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.objects[object as usize] = (1, self.size(object, bytes));
        let key = self.key(object);
        self.heap.push(object, key);
    }

    fn victim(&mut self) -> Option<u32> {
        self.heap.nodes.first().map(|(_, object)| *object)
    }

    fn evict(&mut self) -> Option<u32> {
        let (key, object) = self.heap.pop()?;
        self.age = key.rank;
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.heap.remove(object);
    }

    fn competes(&self) -> bool {
        self.rank == RankFunction::FrequencyBySize
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.objects.get(object as usize).map_or(0, |(requests, _)| u64::from(*requests))
    }
}

/// Key of the heap: the rank, then the time at which it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Key {
    rank: f64,
    stamp: u64,
}

impl Key {
    #[inline]
    fn is_below(self, other: Self) -> bool {
        self.rank < other.rank || (self.rank == other.rank && self.stamp < other.stamp)
    }
}

/// Children of a node of the heap: four keep a node's children within one line or two of the processor's cache.
const CHILDREN: usize = 4;
const ABSENT: u32 = u32::MAX;

/// A heap with the lowest key on top, in which an object can be found by its number.
#[derive(Debug)]
struct Heap {
    nodes: Vec<(Key, u32)>,
    /// Index of each object in `nodes`.
    positions: Vec<u32>,
}

impl Heap {
    fn new(objects: usize) -> Self {
        Self { nodes: Vec::new(), positions: vec![ABSENT; objects] }
    }

    fn push(&mut self, object: u32, key: Key) {
        self.nodes.push((key, object));
        self.sift_up(self.nodes.len() - 1);
    }

    fn update(&mut self, object: u32, key: Key) {
        let at = self.positions[object as usize] as usize;
        let before = std::mem::replace(&mut self.nodes[at].0, key);
        if key.is_below(before) { self.sift_up(at) } else { self.sift_down(at) }
    }

    fn pop(&mut self) -> Option<(Key, u32)> {
        let lowest = *self.nodes.first()?;
        self.remove(lowest.1);
        Some(lowest)
    }

    fn remove(&mut self, object: u32) {
        let at = std::mem::replace(&mut self.positions[object as usize], ABSENT) as usize;
        let removed = self.nodes.swap_remove(at).0;
        if let Some(&(moved, _)) = self.nodes.get(at) {
            if moved.is_below(removed) { self.sift_up(at) } else { self.sift_down(at) }
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        let node = self.nodes[at];
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if !node.0.is_below(self.nodes[parent].0) {
                break;
            }
            self.put(at, self.nodes[parent]);
            at = parent;
        }
        self.put(at, node);
    }

    fn sift_down(&mut self, mut at: usize) {
        let node = self.nodes[at];
        loop {
            let first = at * CHILDREN + 1;
            let last = (first + CHILDREN).min(self.nodes.len());
            let lower = |a: usize, b: usize| if self.nodes[b].0.is_below(self.nodes[a].0) { b } else { a };
            let Some(child) = (first..last).reduce(lower) else { break };
            if !self.nodes[child].0.is_below(node.0) {
                break;
            }
            self.put(at, self.nodes[child]);
            at = child;
        }
        self.put(at, node);
    }

    fn put(&mut self, at: usize, node: (Key, u32)) {
        self.positions[node.1 as usize] = at as u32;
        self.nodes[at] = node;
    }
}

impl OnlinePolicy for GreedyDual {
    fn grow(&mut self, objects: usize) {
        self.objects.resize(objects, (0, 0));
        self.heap.positions.resize(objects, ABSENT);
    }

    fn admits_size(&mut self, bytes: u64) -> bool {
        let rank = self.rank(1, bytes);
        // Of equal ranks, the older one goes.
        let makes_way = !self.competes() || self.heap.nodes.first().is_none_or(|next| next.0.rank <= rank);
        if !makes_way {
            // As if the object had been stored and evicted.
            self.age = rank;
        }
        makes_way
    }

    fn bytes_per_object(&self) -> u64 {
        (size_of::<(Key, u32)>() + size_of::<u32>() + size_of::<(u32, u64)>()) as u64
    }
}
