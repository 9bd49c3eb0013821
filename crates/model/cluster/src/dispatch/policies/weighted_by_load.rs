//! Weighted RR by load: turns in proportion to weights that follow what each server has left.
//!
//! Servers report now and then how busy processor, disk and network were. A server's weight is its own times what it has left of
//! the busiest of them, and requests of all classes take smooth turns by these weights. What is left follows reports slowly and never
//! falls to nothing; a report that is old counts no more. Source: R. M. Jones (2002) calls RR with weights relative to each
//! server's current load WRR; here `wrr` has constant weights. The rule for weights is that of `cap-state`, without its classes.

use super::server_states::ServerStates;
use super::weighted_round_robin::WeightedRoundRobin;
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId, ServerState};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedByLoadSettings {
    /// Weight of a new report in the smoothed state.
    pub trust: f64,
    /// Least headroom of a server, however busy.
    pub least_headroom: f64,
    /// Age in seconds above which a report is ignored.
    pub stale_after_s: f64,
}

impl Default for WeightedByLoadSettings {
    fn default() -> Self {
        Self { trust: 0.3, least_headroom: 0.05, stale_after_s: 10.0 }
    }
}

#[derive(Debug, Clone)]
pub struct WeightedByLoad {
    settings: WeightedByLoadSettings,
    turns: WeightedRoundRobin,
    states: ServerStates,
}

impl WeightedByLoad {
    pub fn new(settings: WeightedByLoadSettings) -> Self {
        Self { settings, turns: WeightedRoundRobin::new(), states: ServerStates::default() }
    }
}

impl Policy for WeightedByLoad {
    fn name(&self) -> &'static str {
        "wrr-load"
    }

    fn servers(&self) -> &[ServerId] {
        self.turns.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, now: Moment) {
        self.turns.server_up(server, weight, now);
    }

    fn server_gone(&mut self, server: ServerId, now: Moment) {
        self.turns.server_gone(server, now);
        self.states.forget(server);
    }

    fn choose(&mut self, _request: &Request, now: Moment) -> Option<ServerId> {
        let (states, settings) = (&self.states, &self.settings);
        self.turns.select(|server| {
            let state = states.fresh(server, settings.stale_after_s, now).unwrap_or_default();
            let busiest = state.processor.max(state.disk).max(state.network);
            (1.0 - busiest).clamp(settings.least_headroom, 1.0)
        })
    }

    fn reported(&mut self, server: ServerId, state: &ServerState, now: Moment) {
        if self.turns.has(server) {
            self.states.report(server, state, self.settings.trust, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, names, up};
    use super::*;

    fn policy() -> WeightedByLoad {
        let mut policy = WeightedByLoad::new(WeightedByLoadSettings::default());
        up(&mut policy, 2);
        policy
    }

    fn share_of_first(policy: &mut WeightedByLoad) -> usize {
        names(policy, &ANY, 50).iter().filter(|server| **server == 0).count()
    }

    #[test]
    fn without_reports_it_is_weighted_round_robin() {
        let mut policy = policy();
        assert_eq!(names(&mut policy, &ANY, 4), [0, 1, 0, 1]);
        policy.server_up(ServerId(0), 4.0, Moment::START);
        assert_eq!(share_of_first(&mut policy), 40);
    }

    #[test]
    fn turns_follow_the_busiest_part_of_each_server() {
        let mut policy = policy();
        let busy = ServerState { processor: 0.2, disk: 0.75, ..ServerState::default() };
        policy.reported(ServerId(0), &busy, Moment::START);
        assert_eq!(share_of_first(&mut policy), 10);
        let idle = ServerState::default();
        (0..100).for_each(|_| policy.reported(ServerId(0), &idle, Moment::START));
        assert!((24..=26).contains(&share_of_first(&mut policy)), "it has recovered");
    }

    #[test]
    fn a_server_that_is_full_keeps_a_small_share_and_one_that_comes_back_begins_anew() {
        let mut policy = policy();
        let full = ServerState { processor: 1.0, ..ServerState::default() };
        policy.reported(ServerId(0), &full, Moment::START);
        assert!((1..=3).contains(&share_of_first(&mut policy)));
        policy.server_gone(ServerId(0), Moment::START);
        policy.server_up(ServerId(0), 1.0, Moment::START);
        assert_eq!(share_of_first(&mut policy), 25);
    }
}
