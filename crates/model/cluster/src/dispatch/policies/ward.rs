//! WARD: the few documents that everyone wants are served by all, each of the others by one.
//!
//! The *core*, a small set of the most requested documents, is in every node's memory, and its requests take turns over all
//! servers. Every other document belongs to one server (by consistent hashing here), so memory holds as many different ones
//! as possible. How large the core should be is computed beforehand from the site's own frequencies and sizes and the
//! cluster's costs ([`super::ward_analysis`]); nothing is learnt while running. Source: L. Cherkasova and M. Karlsson,
//! "Scalable Web Server Cluster Design with Workload-Aware Request Distribution Strategy WARD", WECWIS 2001
//! (HP Laboratories HPL-2001-30).

use std::collections::HashSet;

use crate::dispatch::members::{Cursor, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Policy, Request, ServerId};
use crate::dispatch::ring::Ring;

#[derive(Debug, Clone)]
pub struct Ward {
    core: HashSet<u64>,
    members: Members,
    turn: Cursor,
    ring: Ring,
}

impl Ward {
    pub fn new(core: impl IntoIterator<Item = u64>) -> Self {
        let core = core.into_iter().collect();
        Self { core, members: Members::default(), turn: Cursor::default(), ring: Ring::default() }
    }
}

impl Policy for Ward {
    fn name(&self) -> &'static str {
        "ward"
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
        match self.core.contains(&request.document) {
            true => self.members.take_turn(&mut self.turn),
            false => self.ring.from(request.document).next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{document, names, up};
    use super::*;

    #[test]
    fn the_core_is_everyones_and_other_documents_have_one_server() {
        let mut policy = Ward::new([1, 2]);
        up(&mut policy, 4);
        assert_eq!(names(&mut policy, &document(1), 4), [0, 1, 2, 3]);
        assert_eq!(names(&mut policy, &document(2), 2), [0, 1]);
        let owner = names(&mut policy, &document(3), 1)[0];
        assert_eq!(names(&mut policy, &document(3), 5), [owner; 5]);
        policy.server_gone(ServerId(owner), Moment::START);
        assert_ne!(names(&mut policy, &document(3), 1), [owner]);
    }
}
