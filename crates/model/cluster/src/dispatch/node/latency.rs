//! An estimate of how long a request will take that comes now. What requests took lately that found as many before them.

/// More requests than this count as this many.
const MOST: usize = 256;
/// Part of a new value in what is remembered.
const TRUST: f64 = 0.25;

/// Moving averages of response times, by the number of requests found on arrival.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies {
    by_found: Vec<Option<f64>>,
}

impl Latencies {
    pub(super) fn learn(&mut self, found: u32, took_nanos: u64) {
        let place = (found as usize).min(MOST);
        if self.by_found.len() <= place {
            self.by_found.resize(place + 1, None);
        }
        let new = took_nanos as f64;
        let slot = &mut self.by_found[place];
        *slot = Some(slot.map_or(new, |old| old + TRUST * (new - old)));
    }

    /// From the number that is nearest to this one.
    pub(super) fn estimate(&self, found: u32) -> Option<u64> {
        let wanted = (found as usize).min(MOST);
        let known = self.by_found.iter().enumerate().filter_map(|(place, nanos)| Some((place, (*nanos)?)));
        let nearest = known.min_by_key(|(place, _)| place.abs_diff(wanted));
        nearest.map(|(_, nanos)| nanos as u64)
    }
}
