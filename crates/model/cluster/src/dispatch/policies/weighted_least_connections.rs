//! Weighted least connections: the server that has the fewest requests for its weight.
//!
//! As least connections, with each server's count divided by its weight, so that a server of weight 2 has two
//! requests where one of weight 1 has one. Of equal ones the heavier comes first, then each has its turn. A choice looks
//! at every server. Source: the Linux Virtual Server's `wlc` scheduler, its default (W. Zhang, Ottawa Linux Symposium
//! 2000).

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::{Cursor, MemberIndex, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};

#[derive(Debug, Clone, Default)]
pub struct WeightedLeastConnections {
    members: Members,
    in_flight: InFlight,
    turn: Cursor,
}

impl WeightedLeastConnections {
    pub fn new() -> Self {
        Self::default()
    }

    fn load(&self, member: MemberIndex) -> f64 {
        self.in_flight.per_weight(&self.members, member)
    }
}

impl Policy for WeightedLeastConnections {
    fn name(&self) -> &'static str {
        "wlc"
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
        let best = self.members.from(self.turn).min_by(|one, other| {
            let heavier_first = || self.members.weight(*other).total_cmp(&self.members.weight(*one));
            self.load(*one).total_cmp(&self.load(*other)).then_with(heavier_first)
        })?;
        let best = self.members.at(best);
        self.turn = Cursor::after(best);
        Some(best)
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
    use super::super::testing::{ANY, send};
    use super::*;

    #[test]
    fn requests_in_flight_follow_weights() {
        let mut policy = WeightedLeastConnections::new();
        for (number, weight) in [3.0, 1.0, 2.0].into_iter().enumerate() {
            policy.server_up(ServerId(number as u32), weight, Moment::START);
        }
        let sent: Vec<_> = (0..60).map(|_| send(&mut policy, &ANY, Moment::START)).collect();
        assert_eq!(sent[0], 0, "the heaviest first");
        let counts = [0, 1, 2].map(|server| sent.iter().filter(|name| **name == server).count());
        assert_eq!(counts, [30, 10, 20]);
    }
}
