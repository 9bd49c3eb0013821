//! Estimate of the response time of a request that arrives now, from recent requests that found as many others in the node.

/// Longest queue that is distinguished.
const MAX_QUEUE_LENGTH: usize = 256;
/// Weight of a new value in the moving average.
const SMOOTHING: f64 = 0.25;

/// Moving averages of response times, by the number of requests found on arrival.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies {
    by_queue_length: Vec<Option<f64>>,
}

impl Latencies {
    pub(super) fn record(&mut self, queue_length: u32, took_nanos: u64) {
        let index = (queue_length as usize).min(MAX_QUEUE_LENGTH);
        if self.by_queue_length.len() <= index {
            self.by_queue_length.resize(index + 1, None);
        }
        let new = took_nanos as f64;
        let slot = &mut self.by_queue_length[index];
        *slot = Some(slot.map_or(new, |old| old + SMOOTHING * (new - old)));
    }

    /// Estimate for `queue_length` requests, from the nearest queue length with a value.
    pub(super) fn estimate(&self, queue_length: u32) -> Option<u64> {
        let wanted = (queue_length as usize).min(MAX_QUEUE_LENGTH);
        let known =
            self.by_queue_length.iter().enumerate().filter_map(|(length, nanos)| Some((length, (*nanos)?)));
        let nearest = known.min_by_key(|(length, _)| length.abs_diff(wanted));
        nearest.map(|(_, nanos)| nanos as u64)
    }
}
