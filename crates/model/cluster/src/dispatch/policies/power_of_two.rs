//! Power of two choices: two servers at random, and the one of them that has fewer requests.
//!
//! Looking at two instead of one makes the longest queue exponentially shorter: with n servers at load λ, the share of
//! servers with at least i requests falls from λ^i to λ^(2^i − 1). Unlike least connections it costs the same for any
//! number of servers, and switches that do not know of each other do not all run to the same idle server. Counts are
//! taken for their weight. Source: M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", IEEE
//! Transactions on Parallel and Distributed Systems 12 (2001); Vvedenskaya, Dobrushin and Karpelevich (1996).

use assay_base::random::{Rng, mix};

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::{MemberIndex, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};

#[derive(Debug, Clone)]
pub struct PowerOfTwo {
    members: Members,
    in_flight: InFlight,
    draws: Rng,
}

impl PowerOfTwo {
    /// Draws follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self { members: Members::default(), in_flight: InFlight::default(), draws: Rng::new(mix(seed)) }
    }

    fn load(&self, member: MemberIndex) -> f64 {
        self.in_flight.per_weight(&self.members, member)
    }
}

impl Policy for PowerOfTwo {
    fn name(&self) -> &'static str {
        "p2c"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.members.insert(server, weight);
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
    }

    fn choose(&mut self, _request: &Request, _now: Moment) -> Option<ServerId> {
        let Some([one, other]) = self.members.draw_two(&mut self.draws) else {
            return self.members.servers().first().copied();
        };
        Some(self.members.at(if self.load(other) < self.load(one) { other } else { one }))
    }

    fn started(&mut self, server: ServerId, _request: &Request, _now: Moment) {
        self.in_flight.started(server);
    }

    fn finished(&mut self, server: ServerId, _request: &Request, _completion: &Completion, _now: Moment) {
        self.in_flight.finished(server);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, send, up};
    use super::*;

    #[test]
    fn the_busiest_of_all_is_never_named() {
        let mut policy = PowerOfTwo::new(3);
        up(&mut policy, 5);
        (0..3).for_each(|_| policy.started(ServerId(2), &ANY, Moment::START));
        for _ in 0..200 {
            let server = policy.choose(&ANY, Moment::START).unwrap();
            assert_ne!(server, ServerId(2), "whoever it is drawn with has fewer");
        }
    }

    #[test]
    fn balls_into_bins_stay_within_the_known_bound() {
        // log₂ log₂ n + O(1): about 4 for 10,000 balls into as many bins, where RAND has 7 or more.
        let mut policy = PowerOfTwo::new(4);
        up(&mut policy, 10_000);
        (0..10_000).for_each(|_| assert!(send(&mut policy, &ANY, Moment::START) < 10_000));
        let most = (0..10_000).map(|number| policy.in_flight.count(ServerId(number))).max();
        assert!(most <= Some(4), "{most:?}");
    }
}
