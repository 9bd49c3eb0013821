//! Least connections: the server that has the fewest requests now.
//!
//! The switch counts what it has sent to each server and what has come back; a server that is slow, or that has got
//! heavy requests, keeps its requests longer and so gets fewer. Of equal ones each has its turn, or the first would get
//! everything of a quiet hour. A choice looks at every server. Source: the Linux Virtual Server's `lc` scheduler
//! (W. Zhang, "Linux Virtual Server for Scalable Network Services", Ottawa Linux Symposium 2000).

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::{Cursor, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};

#[derive(Debug, Clone, Default)]
pub struct LeastConnections {
    members: Members,
    in_flight: InFlight,
    turn: Cursor,
}

impl LeastConnections {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Policy for LeastConnections {
    fn name(&self) -> &'static str {
        "lc"
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
        self.in_flight.least(&self.members, &mut self.turn)
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
    use super::super::testing::{ANY, finish, send, up};
    use super::*;

    #[test]
    fn the_server_with_the_fewest_requests_is_named_and_equal_ones_take_turns() {
        let mut policy = LeastConnections::new();
        up(&mut policy, 3);
        let sent: Vec<_> = (0..5).map(|_| send(&mut policy, &ANY, Moment::START)).collect();
        assert_eq!(sent, [0, 1, 2, 0, 1]);
        finish(&mut policy, 0, 1, Moment::START);
        finish(&mut policy, 0, 1, Moment::START);
        assert_eq!(send(&mut policy, &ANY, Moment::START), 0);
    }

    #[test]
    fn equal_servers_keep_their_turns_when_others_come_and_go() {
        let mut policy = LeastConnections::new();
        up(&mut policy, 4);
        let send_alone = |policy: &mut LeastConnections| {
            let server = send(policy, &ANY, Moment::START);
            finish(policy, server, 1, Moment::START);
            server
        };
        assert_eq!([0; 2].map(|_| send_alone(&mut policy)), [0, 1]);
        policy.server_gone(ServerId(0), Moment::START);
        assert_eq!(send_alone(&mut policy), 2);
        policy.server_up(ServerId(0), 1.0, Moment::START);
        assert_eq!([0; 2].map(|_| send_alone(&mut policy)), [3, 0]);
    }

    #[test]
    fn a_server_that_comes_back_still_has_what_it_had() {
        let mut policy = LeastConnections::new();
        up(&mut policy, 2);
        (0..4).for_each(|_| assert!(send(&mut policy, &ANY, Moment::START) < 2));
        policy.server_gone(ServerId(0), Moment::START);
        finish(&mut policy, 1, 1, Moment::START);
        policy.server_up(ServerId(0), 1.0, Moment::START);
        assert_eq!(send(&mut policy, &ANY, Moment::START), 1);
    }
}
