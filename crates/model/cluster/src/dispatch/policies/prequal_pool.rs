//! The pool of the last probes. Prequal's pool: a few responses, each used a few times, the oldest and worst thrown away.

use std::collections::VecDeque;

use crate::dispatch::moment::Moment;
use crate::dispatch::policy::ServerId;

/// Requests in flight of so many recent responses decide what counts as hot.
const RECENT: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) server: ServerId,
    pub(super) in_flight: u32,
    pub(super) latency_nanos: u64,
    at: Moment,
    uses_left: u32,
}

/// Responses, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    probes: VecDeque<Probe>,
    recent: VecDeque<u32>,
    remove_worst_next: bool,
}

impl Pool {
    pub(super) fn len(&self) -> usize {
        self.probes.len()
    }

    pub(super) fn add(
        &mut self,
        (server, in_flight): (ServerId, u32),
        latency_nanos: u64,
        (now, uses): (Moment, u32),
        most: usize,
    ) {
        self.probes.push_back(Probe { server, in_flight, latency_nanos, at: now, uses_left: uses.max(1) });
        if self.probes.len() > most {
            self.probes.pop_front();
        }
        self.recent.push_back(in_flight);
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

    /// Above how many requests in flight a server is hot.
    pub(super) fn hot_above(&self, quantile: f64) -> u32 {
        let mut sorted: Vec<u32> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        // A quantile is in 0..=1, so the place is one of them.
        let place = libm::floor(quantile * last as f64) as usize;
        sorted.get(place.min(last)).copied().unwrap_or(0)
    }

    /// The best response, which is used up once; its server has one request more from now on.
    pub(super) fn take_best(&mut self, hot_above: u32) -> Option<ServerId> {
        let cold = |probe: &Probe| probe.in_flight <= hot_above;
        let key = |probe: &Probe| match cold(probe) {
            true => (0, probe.latency_nanos, u64::from(probe.in_flight)),
            false => (1, u64::from(probe.in_flight), probe.latency_nanos),
        };
        let place = (0..self.probes.len()).min_by_key(|place| key(&self.probes[*place]))?;
        let server = self.probes[place].server;
        self.probes[place].uses_left -= 1;
        if self.probes[place].uses_left == 0 {
            self.probes.remove(place);
        }
        for probe in self.probes.iter_mut().filter(|probe| probe.server == server) {
            probe.in_flight += 1;
        }
        Some(server)
    }

    /// Throws one away: the oldest and the worst by turns, so that neither age nor a bad choice stays.
    pub(super) fn remove_one(&mut self, hot_above: u32) {
        self.remove_worst_next = !self.remove_worst_next;
        if self.remove_worst_next {
            self.probes.pop_front();
            return;
        }
        let hot = |probe: &Probe| probe.in_flight > hot_above;
        let any_hot = self.probes.iter().any(hot);
        let badness = |probe: &Probe| match any_hot {
            true => (hot(probe), u64::from(probe.in_flight)),
            false => (false, probe.latency_nanos),
        };
        if let Some(worst) = (0..self.probes.len()).max_by_key(|place| badness(&self.probes[*place])) {
            self.probes.remove(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(responses: &[(u32, u32, u64)]) -> Pool {
        let mut pool = Pool::default();
        for (server, in_flight, latency) in responses {
            pool.add((ServerId(*server), *in_flight), *latency, (Moment::START, 1), 16);
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
