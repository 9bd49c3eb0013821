//! Consistent hashing with bounded loads: the document's own server, unless that one has more than its share.
//!
//! Servers stand on a circle; a document belongs to the first one after its hash, so equal documents meet the same
//! server's memory, and a server that comes or goes moves few documents. No server may have more than c times the average
//! (rounded up); what would exceed it goes on to the next on the circle. Shares follow weights. Source: V. Mirrokni,
//! M. Thorup and M. Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA 2018 (arXiv 1608.01350).

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::Members;
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};
use crate::dispatch::ring::Ring;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedHashSettings {
    /// Most requests of a server, in multiples of the average; above 1.
    pub bound: f64,
}

impl Default for BoundedHashSettings {
    /// A quarter more than the average, as HAProxy and Vimeo use it.
    fn default() -> Self {
        Self { bound: 1.25 }
    }
}

#[derive(Debug, Clone)]
pub struct BoundedHash {
    settings: BoundedHashSettings,
    members: Members,
    in_flight: InFlight,
    ring: Ring,
}

impl BoundedHash {
    /// A bound of 1 or less counts as 1: exactly even.
    pub fn new(settings: BoundedHashSettings) -> Self {
        let settings = BoundedHashSettings { bound: settings.bound.max(1.0) };
        let (members, in_flight) = (Members::default(), InFlight::default());
        Self { settings, members, in_flight, ring: Ring::default() }
    }

    /// Upper bound on the requests of a server of weight 1, including the current one.
    fn limit_for_weight_one(&self) -> f64 {
        let servers = self.members.servers();
        let requests: f64 = servers.iter().map(|server| f64::from(self.in_flight.count(*server))).sum();
        let weights: f64 = self.members.weights().iter().sum();
        self.settings.bound * (requests + 1.0) / weights
    }
}

impl Policy for BoundedHash {
    fn name(&self) -> &'static str {
        "bounded-hash"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.members.insert(server, weight);
        if let Some(weight) = self.members.weight_of(server) {
            self.ring.insert(server, weight);
        }
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.members.remove(server);
        self.ring.remove(server);
    }

    fn choose(&mut self, request: &Request, _now: Moment) -> Option<ServerId> {
        let limit = self.limit_for_weight_one();
        let has_room = |server: &ServerId| {
            let weight = self.members.weight_of(*server).unwrap_or(1.0);
            f64::from(self.in_flight.count(*server)) + 1.0 <= libm::ceil(limit * weight)
        };
        // Limits add up to more than all requests, so some server has room.
        self.ring.from(request.document).find(has_room)
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
    use proptest::prelude::*;

    use super::super::testing::{document, finish, send, up};
    use super::*;

    #[test]
    fn a_document_stays_with_its_server_while_that_one_has_room() {
        let mut policy = BoundedHash::new(BoundedHashSettings::default());
        up(&mut policy, 8);
        for number in 0..100 {
            let first = send(&mut policy, &document(number), Moment::START);
            finish(&mut policy, first, 1, Moment::START);
            assert_eq!(send(&mut policy, &document(number), Moment::START), first);
            finish(&mut policy, first, 1, Moment::START);
        }
    }

    proptest! {
        #[test]
        fn no_server_ever_has_more_than_its_bound(
            servers in 1u32..20, bound in 1.0f64..2.0,
            steps in proptest::collection::vec((0u64..5, any::<bool>()), 1..300),
        ) {
            let mut policy = BoundedHash::new(BoundedHashSettings { bound });
            up(&mut policy, servers);
            let mut under_way = Vec::new();
            for (number, ends) in steps {
                if ends && let Some(server) = under_way.pop() {
                    finish(&mut policy, server, 1, Moment::START);
                    continue;
                }
                let server = send(&mut policy, &document(number), Moment::START);
                under_way.push(server);
                let most = (bound * under_way.len() as f64 / f64::from(servers)).ceil();
                prop_assert!(f64::from(policy.in_flight.count(ServerId(server))) <= most);
            }
        }
    }
}
