//! What is simulated of a sample: which requests, and how much room their objects take.
//!
//! An object that was drawn stands for others like it: in the simulation it takes their room too, its own over the rate, and its misses are
//! counted apart ([`crate::size::counter`]), over the rate as well. A large object stands for itself. So what lies between two requests takes, on
//! average, the room that it takes among all requests, and caches have their real size. Ranks by size, and what is admitted by its size, go by the size itself
//! ([`Requests::shares`]).

use assay_cache::policy::Admission;

use crate::size::group_by::RequestLabels;
use crate::size::http::Http;
use crate::size::requests::{Requests, TraceRequest, UNCACHABLE};
use crate::size::sample::{Sampled, is_in_half};

/// Parts of a byte in which memory is counted where the total is below [`MAX_FRACTIONAL_BYTES`]: sizes of objects are rounded to them.
const BYTE_FRACTIONS: u64 = 1024;
const MAX_FRACTIONAL_BYTES: u64 = 1 << 48;
/// Objects that a simulated cache of a sample cannot hold may have this share of the requests.
const MAX_UNCACHED_SHARE: f64 = 0.001;
/// Drawn objects of any size for which a simulated cache has room, and half as many in the simulation of a half. In a smaller one, the
/// differences among halves are those of whole objects.
const MIN_DRAWN_OBJECTS: f64 = 10.0;

/// Part of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePart {
    /// One of its halves; none: all of it.
    pub half: Option<usize>,
    /// Large objects that were not drawn are left out too.
    pub only_drawn: bool,
}

impl Requests {
    /// A part of a sample, and how many of its requests are in the warm-up if the first `warm_up` of these are. Large objects are in
    /// no group: they are no matter of chance.
    pub fn part_of_sample(&self, sampled: &Sampled, part: SamplePart, warm_up: usize) -> (Self, usize) {
        let is_in =
            |request: &TraceRequest| part.half.is_none_or(|half| is_in_half(half, sampled.group(request)));
        let is_kept = |number: usize| {
            let request = &self.list[number];
            if part.only_drawn {
                return sampled.is_drawn(request.object) && is_in(request);
            }
            self.is_large(number) || is_in(request)
        };
        let kept: Vec<usize> = (0..self.list.len()).filter(|number| is_kept(*number)).collect();
        let http = self.http.as_ref().map(|http| {
            let semantics = kept.iter().map(|number| http.semantics[*number]).collect();
            Http { semantics, behaviour: http.behaviour, response_ms: http.response_ms }
        });
        let labels = self.labels.as_ref().map(|labels| {
            let of = kept.iter().map(|number| labels.of[*number]).collect();
            RequestLabels { by: labels.by, names: labels.names.clone(), of }
        });
        let rate = part.half.map_or(sampled.rate, |_| sampled.rate / 2.0);
        let unit = if self.footprint_bytes < MAX_FRACTIONAL_BYTES { BYTE_FRACTIONS } else { 1 };
        let is_apart = !part.only_drawn && !self.large.is_empty();
        let rest = Self {
            list: kept.iter().map(|number| self.list[*number]).collect(),
            http,
            labels,
            sampled: Some(sampled.part(rate, unit)),
            clients: kept.iter().filter_map(|number| self.clients.get(*number).copied()).collect(),
            large: if is_apart {
                kept.iter().map(|number| self.large[*number]).collect()
            } else {
                Vec::new()
            },
            ..*self
        };
        (rest, kept.iter().take_while(|number| **number < warm_up).count())
    }

    /// By how much the room of an object is multiplied in the simulation.
    pub(crate) fn factor(&self, number: usize) -> f64 {
        match &self.sampled {
            None => 1.0,
            Some(sampled) if self.is_large(number) => sampled.unit as f64,
            Some(_) => self.factor_of_drawn(),
        }
    }

    /// The same of an object that was drawn.
    fn factor_of_drawn(&self) -> f64 {
        self.sampled.as_ref().map_or(1.0, |sampled| sampled.unit as f64 / sampled.rate)
    }

    /// Admission in rooms of the simulation, which must all be in the same proportion to sizes
    /// ([`SamplePart::only_drawn`]).
    pub(crate) fn admission_of(&self, admission: Admission) -> Admission {
        match admission {
            Admission::UpTo(bytes) => Admission::UpTo(room(bytes, self.factor_of_drawn())),
            other => other,
        }
    }

    /// The size of a simulated cache.
    pub(crate) fn room_of(&self, size: u64) -> u64 {
        size.saturating_mul(self.sampled.as_ref().map_or(1, |sampled| sampled.unit))
    }

    /// The same requests, whose objects have the room that they take in the simulation.
    pub(crate) fn with_rooms(mut self) -> Self {
        for number in 0..self.list.len() {
            if self.list[number].object != UNCACHABLE {
                self.list[number].bytes = room(self.list[number].bytes, self.factor(number));
            }
        }
        self
    }

    /// Of requests with rooms: the size of a request's object.
    pub(crate) fn size_of(&self, number: usize, room: u64) -> u64 {
        match self.factor(number) {
            1.0 => room,
            factor => (room as f64 / factor).round() as u64,
        }
    }

    /// Of requests with rooms: the share of its room that an object's size is, by object; empty: the same for all.
    pub(crate) fn shares(&self) -> Vec<f32> {
        if self.large.is_empty() {
            return Vec::new();
        }
        let mut shares = vec![self.rate() as f32; self.objects];
        for (request, is_large) in self.list.iter().zip(&self.large) {
            if *is_large {
                shares[request.object as usize] = 1.0;
            }
        }
        shares
    }

    /// The smallest sizes of caches that this sample says something of: for documents and for bytes. What takes more room than the
    /// simulated cache has is no hit there. So a cache has room for [`MIN_DRAWN_OBJECTS`] drawn objects of any size, except sizes that
    /// only [`MAX_UNCACHED_SHARE`] of the requests, or of their bytes, exceed. What is not admitted for its size needs no room; where sizes decide, large
    /// objects are drawn like all others ([`SamplePart::only_drawn`]).
    pub fn smallest_known(&self, admission: Admission) -> (u64, u64) {
        let Some(sampled) = &self.sampled else { return (0, 0) };
        let takes_room = |(number, request): &(usize, &TraceRequest)| match admission {
            Admission::UpTo(bytes) => request.bytes <= bytes && sampled.is_drawn(request.object),
            _ => !self.is_large(*number),
        };
        let is_drawn = |numbered: &(usize, &TraceRequest)| {
            numbered.1.object != UNCACHABLE && self.is_counted(numbered.0) && takes_room(numbered)
        };
        let drawn = self.list.iter().enumerate().filter(is_drawn);
        let mut sizes: Vec<(u64, u64)> =
            drawn.map(|(_, request)| (request.bytes, request.sent_bytes)).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let smallest = |worth: fn(u64) -> u64, all: u64| {
            let most = all as f64 * sampled.rate * MAX_UNCACHED_SHARE;
            let mut above = 0.0;
            let first = sizes.iter().find(|(_, sent_bytes)| {
                above += worth(*sent_bytes) as f64;
                above > most
            });
            first.map_or(0, |(bytes, _)| (MIN_DRAWN_OBJECTS * *bytes as f64 / sampled.rate).ceil() as u64)
        };
        (smallest(|_| 1, sampled.all.requests), smallest(|sent_bytes| sent_bytes, sampled.all.bytes))
    }
}

/// So many bytes as room in the simulation.
pub(crate) fn room(bytes: u64, factor: f64) -> u64 {
    if factor == 1.0 { bytes } else { (bytes as f64 * factor).round() as u64 }
}
