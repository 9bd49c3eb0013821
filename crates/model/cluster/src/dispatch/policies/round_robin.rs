//! RR: the servers take turns.
//!
//! Each request goes to the server after the one before, in a circle, whatever it requests. It needs one number of
//! state. Servers get evenly spaced requests (Erlang instead of exponential gaps when arrivals are Poisson), so it is
//! never worse than RAND for equal servers and requests. A server that comes or goes does not disturb the turns of
//! the others. Source: as old as time sharing; here as in Jones's switch (2002), whose RR is CAP with one class.

use crate::dispatch::members::{Cursor, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId};

#[derive(Debug, Clone, Default)]
pub struct RoundRobin {
    members: Members,
    turn: Cursor,
}

impl RoundRobin {
    /// The first server has the first turn.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "rr"
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
        self.members.take_turn(&mut self.turn)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ANY, names, up};
    use super::*;

    #[test]
    fn servers_take_turns_whatever_the_class() {
        let mut policy = RoundRobin::new();
        up(&mut policy, 3);
        assert_eq!(names(&mut policy, &ANY, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn who_comes_and_goes_does_not_disturb_the_others_turns() {
        let mut policy = RoundRobin::new();
        up(&mut policy, 4);
        assert_eq!(names(&mut policy, &ANY, 2), [0, 1]);
        policy.server_gone(ServerId(0), Moment::START);
        assert_eq!(names(&mut policy, &ANY, 3), [2, 3, 1]);
        policy.server_up(ServerId(0), 1.0, Moment::START);
        assert_eq!(names(&mut policy, &ANY, 4), [2, 3, 0, 1]);
    }
}
