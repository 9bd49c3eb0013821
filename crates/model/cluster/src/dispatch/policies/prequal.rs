//! Prequal: probes a few servers ahead of need, and avoids those with many requests, then the slow ones.
//!
//! With every request a few servers at random are probed; responses (requests in flight, expected latency) wait in a pool of
//! 16. A server is *hot* when it has more requests than most recent responses told. A request goes to the cold server of the
//! lowest latency, or, when all are hot, to the one with the fewest requests. Responses age out after a second, are used a
//! limited number of times, and the oldest or the worst is removed with each request. Unlike balancing by load it does not
//! try to make servers equal, only to keep latency low. Source: B. Wydrowski, R. Kleinberg, S. Rumble and A. Archer, "Load is
//! not what you should balance: Introducing Prequal", NSDI 2024; the numbers are its own.

use super::probe_pool::{Probe, ProbePool};
use assay_base::random::{Rng, mix};

use crate::dispatch::members::Members;
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId, ServerState};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrequalSettings {
    /// Probes for each request.
    pub probes: f64,
    /// Responses removed with each request.
    pub removals: f64,
    /// Responses that are kept.
    pub pool: usize,
    /// Age in seconds above which a response is dropped.
    pub age_s: f64,
    /// A server is hot above this quantile of requests in flight.
    pub hot_quantile: f64,
    /// Margin by which responses may be reused more often than replacement requires.
    pub reuse_margin: f64,
}

impl Default for PrequalSettings {
    fn default() -> Self {
        // 2^-0.25, the paper's choice.
        Self { probes: 3.0, removals: 1.0, pool: 16, age_s: 1.0, hot_quantile: 0.841, reuse_margin: 1.0 }
    }
}

/// With fewer responses than these, chance decides.
const LEAST_RESPONSES: usize = 2;

#[derive(Debug, Clone)]
pub struct Prequal {
    settings: PrequalSettings,
    members: Members,
    pool: ProbePool,
    draws: Rng,
    probes_owed: f64,
    removals_owed: f64,
}

impl Prequal {
    /// Draws follow from the seed.
    pub fn new(settings: PrequalSettings, seed: u64) -> Self {
        Self {
            settings,
            members: Members::default(),
            pool: ProbePool::default(),
            draws: Rng::new(mix(seed)),
            probes_owed: 0.0,
            removals_owed: 0.0,
        }
    }

    /// Most uses of a response, so that the pool neither runs dry nor grows stale.
    fn max_uses(&self) -> u32 {
        let PrequalSettings { probes, removals, pool, reuse_margin, .. } = self.settings;
        let others = 1.0 - pool as f64 / self.members.len().max(1) as f64;
        let gained = others * probes - removals;
        if gained <= 0.0 {
            // Few servers: the pool knows all of them, and age alone ends a response.
            return u32::MAX;
        }
        libm::ceil(((1.0 + reuse_margin) / gained).clamp(1.0, 1e6)) as u32
    }
}

impl Policy for Prequal {
    fn name(&self) -> &'static str {
        "prequal"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.members.insert(server, weight);
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
        self.pool.forget(server);
    }

    fn choose(&mut self, _request: &Request, now: Moment) -> Option<ServerId> {
        self.pool.drop_older_than(self.settings.age_s, now);
        let hot_above = self.pool.hot_above(self.settings.hot_quantile);
        let chosen = match self.pool.len() < LEAST_RESPONSES {
            true => None,
            false => self.pool.take_best(hot_above),
        };
        self.removals_owed += self.settings.removals;
        while self.removals_owed >= 1.0 {
            self.removals_owed -= 1.0;
            self.pool.remove_one(hot_above);
        }
        // Drawn in either case, so that the next draws do not depend on the pool.
        let drawn = self.members.draw(&mut self.draws);
        chosen.or(drawn)
    }

    fn reported(&mut self, server: ServerId, state: &ServerState, now: Moment) {
        if self.members.contains(server) {
            let probe = Probe {
                server,
                in_flight: state.in_flight,
                latency_nanos: state.latency_nanos.unwrap_or(0),
                at: now,
                uses_left: self.max_uses(),
            };
            self.pool.add(probe, self.settings.pool);
        }
    }

    fn probes(&mut self, _now: Moment, wanted: &mut Vec<ServerId>) {
        self.probes_owed += self.settings.probes;
        let first = wanted.len();
        while self.probes_owed >= 1.0 {
            self.probes_owed -= 1.0;
            if wanted.len() - first >= self.members.len() {
                continue;
            }
            // Without replacement; there are few, so a second draw is cheap.
            while let Some(server) = self.members.draw(&mut self.draws) {
                if !wanted[first..].contains(&server) {
                    wanted.push(server);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, up};
    use super::*;

    fn state(in_flight: u32, latency_nanos: u64) -> ServerState {
        ServerState { in_flight, latency_nanos: Some(latency_nanos), ..ServerState::default() }
    }

    #[test]
    fn the_cold_server_of_the_lowest_latency_is_named_even_if_it_has_more_requests() {
        let mut policy = Prequal::new(PrequalSettings { removals: 0.0, ..PrequalSettings::default() }, 1);
        up(&mut policy, 100);
        for (server, in_flight, latency) in [(0, 1, 900), (1, 2, 100), (2, 3, 500), (3, 40, 10), (4, 50, 10)]
        {
            policy.reported(ServerId(server), &state(in_flight, latency), Moment::START);
        }
        // The quantile is the fourth of five, 40 requests: of those not above it the fastest is server 3.
        assert_eq!(policy.choose(&ANY, Moment::START), Some(ServerId(3)));
    }

    #[test]
    fn a_response_older_than_a_second_says_nothing() {
        let mut policy = Prequal::new(PrequalSettings::default(), 1);
        up(&mut policy, 50);
        (0..4).for_each(|server| policy.reported(ServerId(server), &state(0, 1), Moment::START));
        policy.choose(&ANY, Moment::from_secs(1.1));
        assert_eq!(policy.pool.len(), 0);
    }

    #[test]
    fn each_request_probes_three_different_servers() {
        let mut policy = Prequal::new(PrequalSettings::default(), 1);
        up(&mut policy, 5);
        for _ in 0..100 {
            let mut wanted = Vec::new();
            policy.probes(Moment::START, &mut wanted);
            wanted.sort_unstable();
            wanted.dedup();
            assert_eq!(wanted.len(), 3);
        }
    }

    #[test]
    fn responses_are_used_as_often_as_the_paper_says() {
        let mut policy = Prequal::new(PrequalSettings::default(), 1);
        up(&mut policy, 160);
        // (1 + 1) / ((1 − 16/160) · 3 − 1) = 1.18
        assert_eq!(policy.max_uses(), 2);
    }
}
