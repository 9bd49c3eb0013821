//! Counting what caches make of requests: as a whole, in parts, and by label.

use assay_cache::policy::Admission;

use crate::size::requests::{Requests, TraceRequest};

/// Requests and hits, and the bytes of the responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HitCounts {
    pub requests: u64,
    /// Bytes of their responses.
    pub bytes: u64,
    /// Requests that the cache served.
    pub hits: u64,
    /// Bytes of their responses.
    pub hit_bytes: u64,
    /// Requests whose copy had expired, and was confirmed by the origin: no hits, but no bodies were fetched either.
    pub validated: u64,
    /// Requests that came while the response to another one for their object was on its way: hits of a cache that collapses requests,
    /// misses of others.
    pub collapsible: u64,
}

/// Further properties of an outcome, beside hit or miss.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutcomeFlags {
    pub(crate) is_validated: bool,
    pub(crate) is_collapsible: bool,
}

impl HitCounts {
    #[inline]
    pub(crate) fn count(&mut self, request: &TraceRequest, is_hit: bool) {
        self.requests += 1;
        self.bytes += request.sent_bytes;
        if is_hit {
            self.hits += 1;
            self.hit_bytes += request.sent_bytes;
        }
    }

    #[inline]
    fn add_flags(&mut self, flags: OutcomeFlags) {
        self.validated += u64::from(flags.is_validated);
        self.collapsible += u64::from(flags.is_collapsible);
    }

    /// Adds what another cache, or another part of the requests, has.
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.hit_bytes += other.hit_bytes;
        self.validated += other.validated;
        self.collapsible += other.collapsible;
    }

    /// The figures of all requests, if these are of a sample with this rate and nothing else is known.
    pub(crate) fn over(&self, rate: f64) -> Self {
        let whole = |part: u64| (part as f64 / rate).round() as u64;
        Self {
            requests: whole(self.requests),
            bytes: whole(self.bytes),
            hits: whole(self.hits),
            hit_bytes: whole(self.hit_bytes),
            validated: whole(self.validated),
            collapsible: whole(self.collapsible),
        }
    }

    /// Hits over requests; none: there are no requests.
    pub fn dhr(&self) -> Option<f64> {
        assay_measurement::ratios::ratio(self.hits, self.requests)
    }

    /// Bytes of hits over bytes; none: there are no bytes.
    pub fn bhr(&self) -> Option<f64> {
        assay_measurement::ratios::ratio(self.hit_bytes, self.bytes)
    }
}

/// Rules of all simulated caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationRules {
    /// So many requests fill the cache and are not counted.
    pub warm_up: usize,
    pub admission: Admission,
    /// The requests after the warm-up are counted in so many parts of the same length, one after the other; at least 1.
    pub parts: usize,
}

impl Default for SimulationRules {
    fn default() -> Self {
        Self { warm_up: 0, admission: Admission::All, parts: 1 }
    }
}

impl From<usize> for SimulationRules {
    fn from(warm_up: usize) -> Self {
        Self { warm_up, ..Self::default() }
    }
}

/// Figures of a cache, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulationTally {
    /// The parts of [`SimulationRules::parts`], one after the other; one, where they are not known apart. Of a sample with large objects:
    /// those that were drawn, and the large ones.
    pub parts: Vec<HitCounts>,
    /// The same by the labels of requests; empty: they have none, or it is known as a whole only. Of a sample with large objects, the
    /// labels once more for these.
    pub by: Vec<HitCounts>,
}

impl SimulationTally {
    pub fn total(&self) -> HitCounts {
        let mut total = HitCounts::default();
        self.parts.iter().for_each(|part| total.add(part));
        total
    }

    /// Of a sample: the objects that were drawn, and the large ones.
    pub(crate) fn drawn_and_large(&self) -> [HitCounts; 2] {
        [0, 1].map(|part| self.parts.get(part).copied().unwrap_or_default())
    }

    /// The figures of all requests by label, if these are of a sample.
    pub(crate) fn by_over(&self, labels: usize, rate: f64) -> Vec<HitCounts> {
        let label = |(number, drawn): (usize, &HitCounts)| {
            let mut all = drawn.over(rate);
            all.add(&self.by.get(labels + number).copied().unwrap_or_default());
            all
        };
        self.by.iter().take(labels).enumerate().map(label).collect()
    }
}

impl From<HitCounts> for SimulationTally {
    fn from(counts: HitCounts) -> Self {
        Self { parts: vec![counts], by: Vec::new() }
    }
}

/// Counts requests in their order, part by part.
pub(crate) struct Counter<'a> {
    parts: Vec<HitCounts>,
    current: HitCounts,
    part: usize,
    /// For each part, the number of the first request after it.
    ends: Vec<usize>,
    by: Vec<HitCounts>,
    labels: &'a [u16],
    /// By request, whether it is for a large object; empty: none is.
    large: &'a [bool],
    /// Number of labels.
    names: usize,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(requests: &'a Requests, rules: SimulationRules) -> Self {
        let labels = requests.labels.as_ref();
        let names = labels.map_or(0, |labels| labels.names.len());
        let strata = if requests.large.is_empty() { 1 } else { 2 };
        Self {
            parts: vec![HitCounts::default(); if strata > 1 { strata } else { rules.parts.max(1) }],
            current: HitCounts::default(),
            part: 0,
            ends: if strata > 1 { Vec::new() } else { ends(requests, rules) },
            by: vec![HitCounts::default(); names * strata],
            labels: labels.map_or(&[], |labels| labels.of.as_slice()),
            large: &requests.large,
            names,
        }
    }

    /// Number of parts, and of rows of labels.
    pub(crate) fn rows(&self) -> [usize; 2] {
        [self.parts.len(), self.by.len()]
    }

    /// The next request has this number.
    #[inline]
    pub(crate) fn enter(&mut self, number: usize) {
        if let Some(is_large) = self.large.get(number) {
            let part = usize::from(*is_large);
            if part != self.part {
                self.parts[self.part] = self.current;
                (self.part, self.current) = (part, self.parts[part]);
            }
            return;
        }
        while number >= self.ends[self.part] && self.part + 1 < self.parts.len() {
            self.parts[self.part] = std::mem::take(&mut self.current);
            self.part += 1;
        }
    }

    /// The part that the request is in which was entered last.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// The row of a request's label; none: requests have no labels.
    #[inline]
    pub(crate) fn row(&self, number: usize) -> Option<usize> {
        let label = usize::from(*self.labels.get(number)?);
        let is_large = self.large.get(number).copied().unwrap_or(false);
        Some(if is_large { label + self.names } else { label })
    }

    /// Counts a request that is in the figures.
    #[inline]
    pub(crate) fn count(&mut self, number: usize, request: &TraceRequest, is_hit: bool, flags: OutcomeFlags) {
        self.current.count(request, is_hit);
        self.current.add_flags(flags);
        if let Some(row) = self.row(number) {
            let own = &mut self.by[row];
            own.count(request, is_hit);
            own.add_flags(flags);
        }
    }

    pub(crate) fn finish(mut self) -> SimulationTally {
        self.parts[self.part] = self.current;
        SimulationTally { parts: self.parts, by: self.by }
    }
}

/// Ends of parts that have the same number of counted requests, as nearly as possible.
fn ends(requests: &Requests, rules: SimulationRules) -> Vec<usize> {
    let (all, parts) = (requests.list.len(), rules.parts.max(1));
    let is_counted = |number: &usize| requests.is_counted(*number);
    let numbers = || rules.warm_up.min(all)..all;
    let counted =
        if requests.http.is_some() { numbers().filter(is_counted).count() } else { numbers().len() };
    // Behind this many counted requests.
    let behind = |part: usize| (counted as u128 * (part as u128 + 1) / parts as u128) as usize;
    if requests.http.is_none() {
        return (0..parts).map(|part| numbers().start + behind(part)).collect();
    }
    let mut ends = Vec::with_capacity(parts);
    for (seen, number) in numbers().filter(is_counted).enumerate() {
        while ends.len() < parts && seen >= behind(ends.len()) {
            ends.push(number);
        }
    }
    ends.resize(parts, all);
    ends
}
