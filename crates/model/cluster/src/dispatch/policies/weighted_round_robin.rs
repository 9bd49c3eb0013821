//! Weighted RR, smooth: turns in proportion to weights, spread as evenly as they can be.
//!
//! Each server has a credit. At every choice all credits grow by their weights; the server with the most credit is
//! named and pays the sum of all weights. Weights 5, 1, 1 give a a b a c a a, not a a a a a b c: the strong server is
//! never flooded. A choice looks at every server. Source: nginx (I. Sysoev and M. Dounin, "Upstream: smooth weighted
//! round-robin balancing", 2012).

use crate::dispatch::members::{MemberIndex, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId};

/// Smooth weighted round robin, for this and other policies.
#[derive(Debug, Clone, Default)]
pub(crate) struct SmoothRoundRobin {
    credits: Vec<f64>,
}

impl SmoothRoundRobin {
    pub(crate) fn new(members: usize) -> Self {
        Self { credits: vec![0.0; members] }
    }

    pub(crate) fn inserted(&mut self, index: MemberIndex) {
        self.credits.insert(index.0, 0.0);
    }

    pub(crate) fn removed(&mut self, index: MemberIndex) {
        self.credits.remove(index.0);
    }

    /// Index of the next server for these weights; none without servers.
    pub(crate) fn select(&mut self, weight: impl Fn(MemberIndex) -> f64) -> Option<MemberIndex> {
        let mut total = 0.0;
        let mut best: Option<MemberIndex> = None;
        for member in (0..self.credits.len()).map(MemberIndex) {
            let grows = weight(member);
            total += grows;
            self.credits[member.0] += grows;
            if best.is_none_or(|best| self.credits[member.0] > self.credits[best.0]) {
                best = Some(member);
            }
        }
        self.credits[best?.0] -= total;
        best
    }
}

#[derive(Debug, Clone, Default)]
pub struct WeightedRoundRobin {
    members: Members,
    turns: SmoothRoundRobin,
}

impl WeightedRoundRobin {
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn has(&self, server: ServerId) -> bool {
        self.members.contains(server)
    }

    /// The next server, where each has this share of its weight; none without servers.
    pub(crate) fn select(&mut self, share: impl Fn(ServerId) -> f64) -> Option<ServerId> {
        let members = &self.members;
        let member = self.turns.select(|member| members.weight(member) * share(members.at(member)))?;
        Some(members.at(member))
    }
}

impl Policy for WeightedRoundRobin {
    fn name(&self) -> &'static str {
        "wrr"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        if let Some(index) = self.members.insert(server, weight) {
            self.turns.inserted(index);
        }
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        if let Some(index) = self.members.remove(server) {
            self.turns.removed(index);
        }
    }

    fn choose(&mut self, _request: &Request, _now: Moment) -> Option<ServerId> {
        self.select(|_| 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, names};
    use super::*;

    fn with(weights: &[f64]) -> WeightedRoundRobin {
        let mut policy = WeightedRoundRobin::new();
        for (number, weight) in weights.iter().enumerate() {
            policy.server_up(ServerId(number as u32), *weight, Moment::START);
        }
        policy
    }

    #[test]
    fn the_published_sequence_comes_out() {
        assert_eq!(names(&mut with(&[5.0, 1.0, 1.0]), &ANY, 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn equal_weights_are_plain_turns() {
        assert_eq!(names(&mut with(&[2.0, 2.0, 2.0]), &ANY, 6), [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn every_round_is_in_exact_proportion() {
        let mut policy = with(&[4.0, 3.0, 2.0]);
        for _ in 0..5 {
            let round = names(&mut policy, &ANY, 9);
            let counts = [0, 1, 2].map(|server| round.iter().filter(|name| **name == server).count());
            assert_eq!(counts, [4, 3, 2]);
        }
    }
}
