//! What the requests of a sample say of all requests of the input: how many of them each stands for, and sums over objects.

use crate::size::requests::{Requests, TraceRequest};
use crate::size::sample::Sampled;

impl Requests {
    /// Share of the objects that these requests are for.
    pub fn rate(&self) -> f64 {
        self.sampled.as_ref().map_or(1.0, |sampled| sampled.rate)
    }

    /// Scales a number of drawn requests or objects to the input.
    pub(crate) fn drawn_scaled(&self, part: u64) -> u64 {
        (part as f64 / self.rate()).round() as u64
    }

    /// Requests of the input that a request stands for.
    pub(crate) fn weight(&self, number: usize) -> f64 {
        if self.is_large(number) { 1.0 } else { 1.0 / self.rate() }
    }

    /// A sum over the objects of the input, each with its last request.
    fn sum_of_objects(&self, value: impl Fn(&TraceRequest) -> u64) -> u64 {
        let mut is_seen = vec![false; self.objects];
        let mut sum = 0.0;
        let mut exact = 0u64;
        for (number, request) in self.list.iter().enumerate().rev() {
            let Some(is_seen) = is_seen.get_mut(request.object as usize) else { continue };
            if !std::mem::replace(is_seen, true) {
                match &self.sampled {
                    None => exact = exact.saturating_add(value(request)),
                    Some(_) => sum += value(request) as f64 * self.weight(number),
                }
            }
        }
        exact.saturating_add(sum.round() as u64)
    }

    /// Different objects of the input.
    pub fn all_objects(&self) -> u64 {
        self.sum_of_objects(|_| 1)
    }

    /// Bytes of the different objects of the input, each with its last size.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.sum_of_objects(|request| request.bytes)
    }

    /// Objects of the sample that are in it by chance.
    pub fn drawn_objects(&self) -> usize {
        self.sampled.as_ref().map_or(self.objects, Sampled::drawn_objects)
    }

    /// Objects that are requested once, of which none is ever a hit, and their bytes.
    pub fn requested_once(&self) -> (u64, u64) {
        let mut times = vec![0u8; self.objects];
        for request in &self.list {
            if let Some(times) = times.get_mut(request.object as usize) {
                *times = times.saturating_add(1);
            }
        }
        let once = self.list.iter().enumerate();
        let once = once.filter(|(_, request)| times.get(request.object as usize) == Some(&1));
        let [objects, bytes] = once.fold([0.0; 2], |[objects, bytes], (number, request)| {
            let weight = self.weight(number);
            [objects + weight, bytes + request.bytes as f64 * weight]
        });
        (objects.round() as u64, bytes.round() as u64)
    }
}
