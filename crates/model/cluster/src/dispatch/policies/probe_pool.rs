//! Prequal's pool of probe responses: a few, each used a few times; the oldest and the worst are removed.

use std::collections::VecDeque;

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::ServerId;

/// Recent responses whose requests in flight define the quantile above which a server is hot.
const RECENT: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) server: ServerId,
    pub(super) in_flight: u32,
    pub(super) latency_nanos: u64,
    pub(super) at: Moment,
    /// At least 1.
    pub(super) uses_left: u32,
}

/// Responses, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct ProbePool {
    probes: VecDeque<Probe>,
    recent: VecDeque<u32>,
    remove_worst_next: bool,
}

impl ProbePool {
    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    /// Adds a response, in place of the oldest one if there are `capacity` already.
    pub(super) fn add(&mut self, probe: Probe, capacity: usize) {
        self.recent.push_back(probe.in_flight);
        self.probes.push_back(probe);
        if self.probes.len() > capacity {
            self.probes.pop_front();
        }
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    pub(super) fn forget(&mut self, server: ServerId) {
        self.probes.retain(|probe| probe.server != server);
    }

    pub(super) fn drop_older_than(&mut self, age_s: f64, now: Moment) {
        while self.probes.front().is_some_and(|probe| now.secs_since(probe.at) > age_s) {
            self.probes.pop_front();
        }
    }

    /// Requests in flight above which a server is hot.
    pub(super) fn hot_above(&self, quantile: f64) -> u32 {
        let mut sorted: Vec<u32> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        // A quantile is in 0..=1, so the index exists.
        let index = libm::floor(quantile * last as f64) as usize;
        sorted.get(index.min(last)).copied().unwrap_or(0)
    }

    /// Server of the best response, which is used once more; the server counts as having one request more from now on.
    pub(super) fn take_best(&mut self, hot_above: u32) -> Option<ServerId> {
        let cold = |probe: &Probe| probe.in_flight <= hot_above;
        let key = |probe: &Probe| match cold(probe) {
            true => (0, probe.latency_nanos, u64::from(probe.in_flight)),
            false => (1, u64::from(probe.in_flight), probe.latency_nanos),
        };
        let index = (0..self.probes.len()).min_by_key(|index| key(&self.probes[*index]))?;
        let server = self.probes[index].server;
        self.probes[index].uses_left -= 1;
        if self.probes[index].uses_left == 0 {
            self.probes.remove(index);
        }
        for probe in self.probes.iter_mut().filter(|probe| probe.server == server) {
            probe.in_flight += 1;
        }
        Some(server)
    }

    /// Removes the oldest and the worst response in turn, so that neither old nor bad ones accumulate.
    pub(super) fn remove_one(&mut self, hot_above: u32) {
        self.remove_worst_next = !self.remove_worst_next;
        if self.remove_worst_next {
            self.probes.pop_front();
            return;
        }
        let hot = |probe: &Probe| probe.in_flight > hot_above;
        let any_hot = self.probes.iter().any(hot);
        let cost = |probe: &Probe| match any_hot {
            true => (hot(probe), u64::from(probe.in_flight)),
            false => (false, probe.latency_nanos),
        };
        if let Some(worst) = (0..self.probes.len()).max_by_key(|index| cost(&self.probes[*index])) {
            self.probes.remove(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(responses: &[(u32, u32, u64)]) -> ProbePool {
        let mut pool = ProbePool::default();
        for (server, in_flight, latency) in responses {
            let probe = Probe {
                server: ServerId(*server),
                in_flight: *in_flight,
                latency_nanos: *latency,
                at: Moment::START,
                uses_left: 1,
            };
            pool.add(probe, 16);
        }
        pool
    }

    #[test]
    fn cold_servers_come_first_by_latency_and_hot_ones_by_what_they_have() {
        let mut pool = pool(&[(0, 9, 1), (1, 2, 30), (2, 3, 20), (3, 8, 1)]);
        let order: Vec<_> = std::iter::from_fn(|| pool.take_best(5)).map(|server| server.0).collect();
        assert_eq!(order, [2, 1, 3, 0]);
    }

    #[test]
    fn what_is_thrown_away_is_the_oldest_then_the_worst() {
        let mut pool = pool(&[(0, 1, 1), (1, 2, 30), (2, 9, 20), (3, 8, 1)]);
        pool.remove_one(5);
        pool.remove_one(5);
        let left: Vec<_> = pool.probes.iter().map(|probe| probe.server.0).collect();
        assert_eq!(left, [1, 3]);
    }
}
