//! Replacement policies of real caches, by name.

use super::ghosts::{Arc, TwoQ};
use super::greedy_dual::{GreedyDual, RankFunction};
use super::lfu::{Lfu, Lfuda};
use super::online::OnlinePolicy;
use super::queues::{Clock, Fifo, Lru, Sieve};
use super::random::Random;
use super::segments::{S3Fifo, Slru};
use super::w_tinylfu::WTinyLfu;

/// Seed of random replacement.
const RANDOM_SEED: u64 = 1;

/// A replacement policy that needs no knowledge of the future.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Replacement {
    #[default]
    Lru,
    /// First in, first out.
    Fifo,
    /// [`Clock`].
    Clock,
    /// [`Sieve`].
    Sieve,
    /// [`Slru`].
    Slru,
    /// [`S3Fifo`].
    S3Fifo,
    /// [`TwoQ`].
    TwoQ,
    /// [`Arc`].
    Arc,
    /// [`WTinyLfu`].
    WTinyLfu,
    Lfu,
    /// LFU with dynamic ageing.
    Lfuda,
    /// Greedy-Dual-Size.
    Gds,
    /// Greedy-Dual-Size-Frequency.
    Gdsf,
    /// [`Random`].
    Random,
}

impl Replacement {
    /// All policies with their names.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Lru, "lru"),
        (Self::Fifo, "fifo"),
        (Self::Clock, "clock"),
        (Self::Sieve, "sieve"),
        (Self::Slru, "slru"),
        (Self::S3Fifo, "s3-fifo"),
        (Self::TwoQ, "2q"),
        (Self::Arc, "arc"),
        (Self::WTinyLfu, "w-tinylfu"),
        (Self::Lfu, "lfu"),
        (Self::Lfuda, "lfuda"),
        (Self::Gds, "gds"),
        (Self::Gdsf, "gdsf"),
        (Self::Random, "random"),
    ];

    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].1;
            at += 1;
        }
        names
    };

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(policy, _)| policy)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(policy, _)| *policy == self).map_or("", |(_, name)| name)
    }

    /// Name for use in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Fifo => "FIFO",
            Self::Clock => "Clock",
            Self::Sieve => "SIEVE",
            Self::Slru => "SLRU",
            Self::S3Fifo => "S3-FIFO",
            Self::TwoQ => "2Q",
            Self::Arc => "ARC",
            Self::WTinyLfu => "W-TinyLFU",
            Self::Lfu => "LFU",
            Self::Lfuda => "LFUDA",
            Self::Gds => "GDS",
            Self::Gdsf => "GDSF",
            Self::Random => "random replacement",
        }
    }

    /// The policy for objects numbered below `objects` in a simulation, where they keep their numbers.
    pub fn order(self, capacity_bytes: u64, objects: usize) -> Box<dyn OnlinePolicy> {
        match self {
            Self::Lru => Box::new(Lru::new(objects)),
            Self::Fifo => Box::new(Fifo::new(objects)),
            Self::Clock => Box::new(Clock::new(objects)),
            Self::Sieve => Box::new(Sieve::new(objects)),
            Self::Slru => Box::new(Slru::new(capacity_bytes, objects)),
            Self::S3Fifo => Box::new(S3Fifo::new(capacity_bytes, objects)),
            Self::TwoQ => Box::new(TwoQ::new(capacity_bytes, objects)),
            Self::Arc => Box::new(Arc::new(capacity_bytes, objects)),
            Self::WTinyLfu => Box::new(WTinyLfu::new(capacity_bytes, objects)),
            Self::Lfu => Box::new(Lfu::new(objects)),
            Self::Lfuda => Box::new(Lfuda::new(objects)),
            Self::Gds => Box::new(GreedyDual::new(RankFunction::InverseSize, objects)),
            Self::Gdsf => Box::new(GreedyDual::new(RankFunction::FrequencyBySize, objects)),
            Self::Random => Box::new(Random::new(RANDOM_SEED, objects)),
        }
    }

    /// The policy in the simulation of a sample, where an object's size is this share of its room; empty: room is size.
    pub fn order_by_shares(
        self,
        capacity_bytes: u64,
        objects: usize,
        shares: Vec<f32>,
    ) -> Box<dyn OnlinePolicy> {
        let ranked = |rank| Box::new(GreedyDual::new(rank, objects).with_shares(shares));
        match self {
            Self::Gds => ranked(RankFunction::InverseSize),
            Self::Gdsf => ranked(RankFunction::FrequencyBySize),
            _ => self.order(capacity_bytes, objects),
        }
    }

    /// The policy without any objects yet, in a cache that holds about this many objects.
    pub fn order_by_hash(self, capacity_bytes: u64, objects: u64) -> Box<dyn OnlinePolicy> {
        match self {
            Self::WTinyLfu => Box::new(WTinyLfu::by_hash(capacity_bytes, objects)),
            _ => self.order(capacity_bytes, 0),
        }
    }
}
