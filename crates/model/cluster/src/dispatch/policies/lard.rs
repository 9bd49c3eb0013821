//! LARD: a document's requests go to one server, until that one has too much and another too little.
//!
//! The first request for a document gives it to the server with the fewest requests; later ones follow, so each server
//! needs only its own documents in memory and the cluster's memory is the sum of its nodes'. A document moves to the least
//! loaded server when its own has more than T_high requests while another has fewer than T_low, or when its own has twice
//! T_high. Least recently requested documents are forgotten when the table is full. The paper also admits at most
//! (n − 1)·T_high + T_low − 1 requests at a time ([`Lard::admits`]), which is the switch's to keep. Source: V. Pai,
//! M. Aron, G. Banga, M. Svendsen, P. Druschel, W. Zwaenepoel and E. Nahum, "Locality-Aware Request Distribution in
//! Cluster-based Network Servers", ASPLOS VIII (1998); thresholds 25 and 65 are its own.

use assay_cache::lru::Lru;

use crate::dispatch::in_flight::InFlight;
use crate::dispatch::members::{Cursor, Members};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LardSettings {
    /// A server with fewer requests is lightly loaded.
    pub t_low: u32,
    /// A server with more requests is overloaded, if another is lightly loaded.
    pub t_high: u32,
    /// Memory for the table of documents.
    pub table_bytes: u64,
}

impl Default for LardSettings {
    fn default() -> Self {
        Self { t_low: 25, t_high: 65, table_bytes: 256 << 20 }
    }
}

/// State that LARD shares with and without replication: members, their requests, and the rule of overload.
#[derive(Debug, Clone)]
pub(super) struct ServerLoads {
    pub(super) settings: LardSettings,
    pub(super) members: Members,
    in_flight: InFlight,
    turn: Cursor,
}

impl ServerLoads {
    pub(super) fn new(settings: LardSettings) -> Self {
        let (members, in_flight) = (Members::default(), InFlight::default());
        Self { settings, members, in_flight, turn: Cursor::default() }
    }

    pub(super) fn requests(&self, server: ServerId) -> u32 {
        self.in_flight.count(server)
    }

    /// The server with the fewest requests; equal ones in turn, or one would get all documents of a quiet hour.
    pub(super) fn least(&mut self) -> Option<ServerId> {
        self.in_flight.least(&self.members, &mut self.turn)
    }

    /// Whether a server with this many requests must give a document away.
    pub(super) fn is_overloaded(&self, requests: u32) -> bool {
        let LardSettings { t_low, t_high, .. } = self.settings;
        let room_elsewhere = || self.members.servers().iter().any(|server| self.requests(*server) < t_low);
        (requests > t_high && room_elsewhere()) || requests >= t_high.saturating_mul(2)
    }

    pub(super) fn started(&mut self, server: ServerId) {
        self.in_flight.started(server);
    }

    pub(super) fn finished(&mut self, server: ServerId) {
        self.in_flight.finished(server);
    }
}

#[derive(Debug)]
pub struct Lard {
    loads: ServerLoads,
    owners: Lru<u64, ServerId>,
}

impl Lard {
    pub fn new(settings: LardSettings) -> Self {
        Self { owners: Lru::new(settings.table_bytes), loads: ServerLoads::new(settings) }
    }

    /// Upper bound on the concurrent requests that the paper's switch admits.
    pub fn admits(&self) -> u64 {
        let servers = self.loads.members.len() as u64;
        let LardSettings { t_low, t_high, .. } = self.loads.settings;
        (servers.saturating_sub(1) * u64::from(t_high) + u64::from(t_low)).saturating_sub(1)
    }
}

impl Policy for Lard {
    fn name(&self) -> &'static str {
        "lard"
    }

    fn servers(&self) -> &[ServerId] {
        self.loads.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        self.loads.members.insert(server, weight);
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        self.loads.members.remove(server);
    }

    fn choose(&mut self, request: &Request, _now: Moment) -> Option<ServerId> {
        let owner = self.owners.get(&request.document).copied();
        let stays = owner.filter(|owner| self.loads.members.contains(*owner));
        if let Some(owner) = stays.filter(|owner| !self.loads.is_overloaded(self.loads.requests(*owner))) {
            return Some(owner);
        }
        let owner = self.loads.least()?;
        // A table without room for a single document means that every request is a first one.
        let _ = self.owners.insert(request.document, owner, 0);
        Some(owner)
    }

    fn started(&mut self, server: ServerId, _request: &Request, _now: Moment) {
        self.loads.started(server);
    }

    fn finished(&mut self, server: ServerId, _request: &Request, _completion: &Completion, _now: Moment) {
        self.loads.finished(server);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{document, finish, send, up};
    use super::*;

    const NOW: Moment = Moment::START;

    fn lard(servers: u32) -> Lard {
        let mut policy = Lard::new(LardSettings { t_low: 2, t_high: 5, table_bytes: 1 << 20 });
        up(&mut policy, servers);
        policy
    }

    #[test]
    fn a_document_stays_with_one_server_and_new_ones_go_where_there_is_least() {
        let mut policy = lard(3);
        let owners = [10, 11, 12].map(|number| send(&mut policy, &document(number), NOW));
        assert_eq!(owners, [0, 1, 2]);
        assert!((0..3).all(|_| send(&mut policy, &document(11), NOW) == 1));
    }

    #[test]
    fn above_t_high_it_moves_only_if_another_is_below_t_low() {
        let mut policy = lard(2);
        // Six requests for one document: more than T_high on server 0.
        (0..6).for_each(|_| assert_eq!(send(&mut policy, &document(1), NOW), 0));
        assert_eq!(send(&mut policy, &document(1), NOW), 1, "server 1 has none");
        // Server 1 now has T_low; document 2 is server 0's and stays.
        send(&mut policy, &document(3), NOW);
        policy.owners.insert(2, ServerId(0), 0).unwrap();
        assert_eq!(send(&mut policy, &document(2), NOW), 0);
    }

    #[test]
    fn at_twice_t_high_it_moves_anyway() {
        let mut policy = lard(2);
        (0..10).for_each(|_| policy.started(ServerId(0), &document(1), NOW));
        (0..9).for_each(|_| policy.started(ServerId(1), &document(1), NOW));
        policy.owners.insert(1, ServerId(0), 0).unwrap();
        assert_eq!(send(&mut policy, &document(1), NOW), 1);
    }

    #[test]
    fn documents_of_a_server_that_is_gone_find_another() {
        let mut policy = lard(2);
        assert_eq!(send(&mut policy, &document(1), NOW), 0);
        finish(&mut policy, 0, 1, NOW);
        policy.server_gone(ServerId(0), NOW);
        assert_eq!(send(&mut policy, &document(1), NOW), 1);
    }

    #[test]
    fn the_published_limit_of_admission() {
        let mut policy = Lard::new(LardSettings::default());
        up(&mut policy, 8);
        assert_eq!(policy.admits(), 7 * 65 + 25 - 1);
    }
}
