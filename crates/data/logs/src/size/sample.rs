//! Sampling by object: an object is in the sample, with all of its requests, if the hash of its key is below a threshold
//! (Waldspurger et al., SHARDS, FAST 2015). In the simulation it takes the room of those it stands for ([`crate::size::sample_part`]).
//!
//! What is counted without an object stays exact: all requests, their bytes, and those that no cache may serve. Only the misses of
//! objects are estimated: those of the sample over the rate. Hits are the rest. Popular objects miss seldom, so whether one of them
//! happens to be in the sample matters little. Large objects matter much, and all of them are in the sample ([`crate::size::large`]).
//!
//! *Does not:* compute the error; that comes from simulations of halves of the sample ([`HALVES`], [`crate::size::sample_part`], [`crate::size::confidence`]).

use assay_base::random::{fold, hash};

use crate::size::counter::HitCounts;
use crate::size::ids::Ids;
use crate::size::request::TraceRequest;

/// Parts of a sample, by hash.
pub const GROUPS: usize = 12;
/// Halves of a sample, of which everything is simulated once more: half of the groups each. What the half with an even number does not have, the next
/// one has.
pub const HALVES: usize = 2 * (GROUPS - 1);
/// A sample of fewer objects says nothing.
pub const FEWEST_OBJECTS: usize = 500;
/// The groups of the first half; those of each next pair are turned on by one place, and the last group stays (Plackett and Burman, Biometrika
/// 33, 1946). Halves of different pairs have half of their groups in common.
const FIRST_HALF: [bool; GROUPS - 1] =
    [true, true, false, true, true, true, false, false, false, true, false];
/// Sampling begins above so many requests, or objects, if it was not wanted before: what the requests of an input may take of memory.
const MAX_EXACT: Limits = Limits { requests: 1 << 25, objects: 1 << 23 };
/// The size of a sample that was not asked for.
const DEFAULT_SAMPLE: Limits = Limits { requests: 1 << 20, objects: 1 << 20 };
/// Factor, at most, by which the threshold of a sample that is too large is lowered.
const THRESHOLD_STEP: f64 = 0.875;
/// Thresholds are of so many places.
const HASH_RANGE: f64 = 4_294_967_296.0;
/// Maximum number of positions, evenly spaced, at which counts are kept: a warm-up ends at one of these.
const MAX_MARKS: usize = 1 << 15;
const PURPOSE: u64 = 0x5eed_5a4d;
/// The group of an object that is in the sample for its size.
pub(crate) const NOT_DRAWN: u8 = u8::MAX;

/// Size of the sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum SampleSize {
    /// All of it, or a sample if it is too large.
    #[default]
    All,
    /// Share of the objects, above 0 and at most 1.
    Share(f64),
    /// At most so many objects.
    Objects(usize),
}

/// Choice of a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampling {
    pub take: SampleSize,
    /// Another seed draws other objects.
    pub seed: u64,
}

/// Counts of all requests, in the sample or not. Requests that are in no figure are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTotals {
    pub requests: u64,
    /// Bytes of their responses.
    pub bytes: u64,
    /// Requests that no cache may serve.
    pub uncachable: u64,
    /// Bytes of their responses.
    pub uncachable_bytes: u64,
}

impl RequestTotals {
    fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            bytes: self.bytes - before.bytes,
            uncachable: self.uncachable - before.uncachable,
            uncachable_bytes: self.uncachable_bytes - before.uncachable_bytes,
        }
    }

    /// The figures of a cache on all requests, from those of the drawn objects and of the large ones.
    pub fn estimate(&self, [drawn, large]: &[HitCounts; 2], rate: f64) -> HitCounts {
        let whole =
            |of: fn(&HitCounts) -> u64| of(large).saturating_add((of(drawn) as f64 / rate).round() as u64);
        let misses = self.uncachable.saturating_add(whole(|counts| counts.requests - counts.hits));
        let miss_bytes =
            self.uncachable_bytes.saturating_add(whole(|counts| counts.bytes - counts.hit_bytes));
        HitCounts {
            requests: self.requests,
            bytes: self.bytes,
            hits: self.requests.saturating_sub(misses),
            hit_bytes: self.bytes.saturating_sub(miss_bytes),
            validated: whole(|counts| counts.validated),
            collapsible: whole(|counts| counts.collapsible),
        }
    }
}

/// Counts at the time when `kept` requests were in the sample.
#[derive(Debug, Clone, Copy)]
struct Mark {
    kept: usize,
    read: u64,
    totals: RequestTotals,
}

/// Sample, and the counts of its population.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// Share of the objects that are in it.
    pub rate: f64,
    /// Nobody asked for a sample: the input is too large for a simulation of all requests.
    pub is_forced: bool,
    /// All requests of the input.
    pub read: u64,
    pub(crate) all: RequestTotals,
    marks: Vec<Mark>,
    /// Group by object, or [`NOT_DRAWN`].
    pub(crate) groups: Vec<u8>,
    salt: u64,
    /// A byte of room in the simulation is so many ([`crate::size::sample_part`]).
    pub(crate) unit: u64,
}

/// End of a warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// So many requests of the sample are in it.
    pub kept: usize,
    /// So many requests of the input.
    pub read: u64,
    /// All requests after it.
    pub after: RequestTotals,
}

impl Sampled {
    /// The warm-up with this share of all requests, rounded down to where the counts are known.
    pub fn warm_up(&self, share: f64) -> WarmUp {
        let until = (self.read as f64 * share) as u64;
        match self.marks.partition_point(|mark| mark.read <= until).checked_sub(1) {
            Some(last) => {
                let mark = &self.marks[last];
                WarmUp { kept: mark.kept, read: mark.read, after: self.all.since(&mark.totals) }
            }
            None => WarmUp { kept: 0, read: 0, after: self.all },
        }
    }

    /// Sample of a part, without what its simulation does not need.
    pub(crate) fn part(&self, rate: f64, unit: u64) -> Self {
        Self { rate, unit, marks: Vec::new(), groups: Vec::new(), ..*self }
    }

    /// Objects that are in the sample by chance.
    pub(crate) fn drawn_objects(&self) -> usize {
        self.groups.iter().filter(|group| **group != NOT_DRAWN).count()
    }

    /// The object is in the sample by chance, or is none.
    pub(crate) fn is_drawn(&self, object: u32) -> bool {
        self.groups.get(object as usize) != Some(&NOT_DRAWN)
    }

    /// The part of the sample that a request is in; none of them, if its object is there for its size.
    pub fn group(&self, request: &TraceRequest) -> usize {
        match self.groups.get(request.object as usize) {
            Some(group) => usize::from(*group),
            None => group(self.salt, request.bytes),
        }
    }
}

fn group(salt: u64, key: u64) -> usize {
    // The threshold looks at the upper half of the hash, the groups at the lower one.
    (((fold(salt, key) & 0xffff_ffff) * GROUPS as u64) >> 32) as usize
}

/// The group is in this half.
pub(crate) fn is_in_half(half: usize, group: usize) -> bool {
    let is_first = group + 1 < GROUPS && FIRST_HALF[(group + half / 2) % (GROUPS - 1)];
    is_first == half.is_multiple_of(2)
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    requests: usize,
    objects: usize,
}

impl Limits {
    /// The share that a list of so many requests and objects may keep; none: all of it.
    fn excess(&self, requests: usize, objects: usize) -> Option<f64> {
        let share = |most: usize, now: usize| most as f64 / now.max(1) as f64;
        let least = share(self.requests, requests).min(share(self.objects, objects));
        (least < 1.0).then_some(least)
    }
}

/// Decides which requests are kept, and counts all of them.
#[derive(Debug)]
pub(crate) struct Sampler {
    salt: u64,
    /// Keys whose place is below this are in the sample.
    threshold: u64,
    take: SampleSize,
    limits: Limits,
    totals: RequestTotals,
    read: u64,
    marks: Vec<Mark>,
    /// Requests from one mark to the next one.
    mark_step: u64,
    next_mark: u64,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        let (threshold, limits) = match sampling.take {
            SampleSize::All => (HASH_RANGE, MAX_EXACT),
            SampleSize::Share(share) => ((share.clamp(0.0, 1.0) * HASH_RANGE).max(1.0), MAX_EXACT),
            SampleSize::Objects(objects) => {
                (HASH_RANGE, Limits { objects: objects.min(MAX_EXACT.objects), ..MAX_EXACT })
            }
        };
        Self {
            salt: hash(PURPOSE, &[sampling.seed]),
            threshold: threshold as u64,
            take: sampling.take,
            limits,
            totals: RequestTotals::default(),
            read: 0,
            marks: Vec::new(),
            mark_step: 1,
            next_mark: 0,
        }
    }

    /// Some requests are left out.
    pub(crate) fn is_on(&self) -> bool {
        (self.threshold as f64) < HASH_RANGE
    }

    /// Requests that were counted.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// An object with this key is in the sample.
    #[inline]
    pub(crate) fn takes(&self, key: u64) -> bool {
        fold(self.salt, key) >> 32 < self.threshold
    }

    /// Counts a request that is in the figures, before it is kept; `kept` are there already.
    pub(crate) fn count(&mut self, sent_bytes: u64, is_uncachable: bool, kept: usize) {
        if self.read == self.next_mark {
            self.mark(kept);
        }
        self.read += 1;
        self.totals.requests += 1;
        self.totals.bytes = self.totals.bytes.saturating_add(sent_bytes);
        if is_uncachable {
            self.totals.uncachable += 1;
            self.totals.uncachable_bytes = self.totals.uncachable_bytes.saturating_add(sent_bytes);
        }
    }

    fn mark(&mut self, kept: usize) {
        // Every other mark goes, so that their number is bounded and the rest are evenly spaced.
        if self.marks.len() == MAX_MARKS {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.mark_step *= 2;
        }
        if self.read.is_multiple_of(self.mark_step) {
            self.marks.push(Mark { kept, read: self.read, totals: self.totals });
        }
        self.next_mark = (self.read / self.mark_step + 1) * self.mark_step;
    }

    /// The request that was counted last is in no figure.
    pub(crate) fn uncount(&mut self, sent_bytes: u64, is_uncachable: bool) {
        self.totals.requests -= 1;
        self.totals.bytes = self.totals.bytes.saturating_sub(sent_bytes);
        if is_uncachable {
            self.totals.uncachable -= 1;
            self.totals.uncachable_bytes = self.totals.uncachable_bytes.saturating_sub(sent_bytes);
        }
    }

    /// Lowers the threshold if so many requests and objects are too many; true: those that are no longer taken must go.
    pub(crate) fn is_lowered(&mut self, requests: usize, objects: usize) -> bool {
        let Some(mut share) = self.limits.excess(requests, objects) else { return false };
        // Nothing is drawn any more: what is left is there for its size, and goes no further.
        if self.threshold == 1 {
            return false;
        }
        // A sample that nobody asked for has the default size.
        if self.take == SampleSize::All && !self.is_on() {
            self.limits = DEFAULT_SAMPLE;
            share = DEFAULT_SAMPLE.excess(requests, objects).unwrap_or(share);
        }
        self.threshold = ((self.threshold as f64 * share.min(THRESHOLD_STEP)) as u64).max(1);
        true
    }

    /// Requests went: so many are kept of the first ones, by how many there were.
    pub(crate) fn renumber(&mut self, kept: impl Fn(usize) -> usize) {
        for mark in &mut self.marks {
            mark.kept = kept(mark.kept);
        }
    }

    /// The sample; none: nothing was left out. `ids` are the numbers of its objects.
    pub(crate) fn finish(self, ids: &Ids) -> Option<Sampled> {
        let group = |key| if self.takes(key) { group(self.salt, key) as u8 } else { NOT_DRAWN };
        let groups = ids.keys().into_iter().map(group).collect();
        self.is_on().then(|| Sampled {
            rate: self.threshold as f64 / HASH_RANGE,
            is_forced: self.take == SampleSize::All,
            read: self.read,
            all: self.totals,
            marks: self.marks,
            groups,
            salt: self.salt,
            unit: 1,
        })
    }
}

impl Sampled {
    /// Every response counts 1: the input has no sizes.
    pub(crate) fn count_objects(&mut self) {
        let all = std::iter::once(&mut self.all).chain(self.marks.iter_mut().map(|mark| &mut mark.totals));
        for totals in all {
            (totals.bytes, totals.uncachable_bytes) = (totals.requests, totals.uncachable);
        }
    }
}
