//! Policies that give every object a rank, and evict the one with the lowest: GDS and GDSF.

use super::Order;
use super::online::Online;

/// How an object's rank follows from its requests and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// The inverse of its size, plus the age of the store (Greedy-Dual-Size with a cost of one: the hits count, not the bytes).
    InverseSize,
    /// Its requests since it was stored over its size, plus the age (Greedy-Dual-Size-Frequency).
    FrequencyBySize,
}

/// Sizes count in millions of bytes, so that ranks of usual objects are not tiny beside the age.
const MILLION: f64 = 1e6;

/// A policy of ranks. Among equal ranks, the object that was requested longest ago goes. The age of the store is the rank of
/// the object that was evicted last.
///
/// A new object of Greedy-Dual-Size-Frequency gets its rank before room is made, and competes with the stored ones: one that has the
/// lowest rank is not stored. That is so in its publication, and in libCacheSim. There is one difference to the publication:
/// where several objects would have to go and the new one is among them, those before it go here (and in libCacheSim), and stay there.
#[derive(Debug)]
pub struct Ranked {
    rank: Rank,
    heap: Heap,
    /// Requests since it was stored, and size, by object.
    objects: Vec<(u32, u64)>,
    age: f64,
    now: u64,
    /// By object, the share of its bytes that counts as its size; empty: all of them.
    shares: Vec<f32>,
}

impl Ranked {
    /// For objects numbered below `objects`.
    pub fn new(rank: Rank, objects: usize) -> Self {
        Self {
            rank,
            heap: Heap::new(objects),
            objects: vec![(0, 0); objects],
            age: 0.0,
            now: 0,
            shares: Vec::new(),
        }
    }

    /// The same where objects are ranked by these shares of their bytes: in the simulation of a sample, the room of an object is more than
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
            Rank::InverseSize => self.age + MILLION / size,
            Rank::FrequencyBySize => self.age + f64::from(requests) * MILLION / size,
        }
    }
}

impl Order for Ranked {
    fn hit(&mut self, object: u32) {
        let (requests, _) = &mut self.objects[object as usize];
        *requests = requests.saturating_add(1);
        let key = self.key(object);
        self.heap.change(object, key);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.objects[object as usize] = (1, self.size(object, bytes));
        let key = self.key(object);
        self.heap.push(object, key);
    }

    fn next(&mut self) -> Option<u32> {
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
        self.rank == Rank::FrequencyBySize
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.objects.get(object as usize).map_or(0, |(requests, _)| u64::from(*requests))
    }
}

/// What objects are ordered by: the rank, then when it was given.
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
const NOWHERE: u32 = u32::MAX;

/// A heap with the lowest key on top, in which an object can be found by its number.
#[derive(Debug)]
struct Heap {
    nodes: Vec<(Key, u32)>,
    /// Where each object is in `nodes`.
    places: Vec<u32>,
}

impl Heap {
    fn new(objects: usize) -> Self {
        Self { nodes: Vec::new(), places: vec![NOWHERE; objects] }
    }

    fn push(&mut self, object: u32, key: Key) {
        self.nodes.push((key, object));
        self.rise(self.nodes.len() - 1);
    }

    fn change(&mut self, object: u32, key: Key) {
        let at = self.places[object as usize] as usize;
        let before = std::mem::replace(&mut self.nodes[at].0, key);
        if key.is_below(before) { self.rise(at) } else { self.sink(at) }
    }

    fn pop(&mut self) -> Option<(Key, u32)> {
        let lowest = *self.nodes.first()?;
        self.remove(lowest.1);
        Some(lowest)
    }

    fn remove(&mut self, object: u32) {
        let at = std::mem::replace(&mut self.places[object as usize], NOWHERE) as usize;
        let removed = self.nodes.swap_remove(at).0;
        if let Some(&(moved, _)) = self.nodes.get(at) {
            if moved.is_below(removed) { self.rise(at) } else { self.sink(at) }
        }
    }

    fn rise(&mut self, mut at: usize) {
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

    fn sink(&mut self, mut at: usize) {
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
        self.places[node.1 as usize] = at as u32;
        self.nodes[at] = node;
    }
}

impl Online for Ranked {
    fn grow(&mut self, objects: usize) {
        self.objects.resize(objects, (0, 0));
        self.heap.places.resize(objects, NOWHERE);
    }

    fn makes_way_for(&mut self, bytes: u64) -> bool {
        let rank = self.rank(1, bytes);
        // Of equal ranks, the older one goes.
        let makes_way = !self.competes() || self.heap.nodes.first().is_none_or(|next| next.0.rank <= rank);
        if !makes_way {
            // As if it had been stored and evicted.
            self.age = rank;
        }
        makes_way
    }

    fn bytes_per_object(&self) -> u64 {
        (size_of::<(Key, u32)>() + size_of::<u32>() + size_of::<(u32, u64)>()) as u64
    }
}
