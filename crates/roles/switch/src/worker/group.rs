//! The server that gets a request, and the queue when all have enough. A policy, told what happens, with the servers that it
//! chooses from.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use assay_cluster::dispatch::{Choice, Moment, Policy, Request, ServerId};

use super::server::Server;

/// A policy that outlives a reload which leaves it as it is, and what it was told of each server.
pub struct Shared {
    /// What it was built from.
    pub choice: Choice,
    policy: RefCell<Box<dyn Policy>>,
    /// Weights that it was told, by server number.
    told: RefCell<Vec<Option<f64>>>,
}

/// Classes that share a policy.
pub struct Group {
    pub shared: Rc<Shared>,
    /// Its servers, by number.
    by_id: Vec<Option<Rc<Server>>>,
    /// Requests that wait for one of its servers.
    pub waiting: Cell<u32>,
    /// The policy wants servers probed for their state.
    pub probes: bool,
    /// The policy heeds what servers say of themselves.
    pub listens: bool,
}

/// The result of a choice of a server.
pub enum Chosen {
    /// This one, which has room.
    Server(Rc<Server>),
    /// There are servers, and all have as many requests as they may have.
    Full,
    /// There is none, or all have been tried.
    Nobody,
}

impl Group {
    /// With these servers. `former` is the policy's state before a reload.
    pub fn new(
        choice: Choice,
        seed: u64,
        servers: &[Rc<Server>],
        former: Option<Rc<Shared>>,
        now: Moment,
    ) -> Self {
        let shared = former.filter(|former| former.choice == choice).unwrap_or_else(|| {
            let policy = RefCell::new(choice.build(seed));
            Rc::new(Shared { choice, policy, told: RefCell::default() })
        });
        let most = servers.iter().map(|server| server.id.0 as usize + 1).max().unwrap_or(0);
        let mut by_id: Vec<Option<Rc<Server>>> = vec![None; most];
        for server in servers {
            by_id[server.id.0 as usize] = Some(Rc::clone(server));
        }
        let probes = matches!(shared.choice, Choice::Prequal(_));
        let listens = probes || shared.choice.wants_reports();
        let group = Self { shared, by_id, waiting: Cell::new(0), probes, listens };
        group.tell_standings(now);
        group
    }

    /// Whether a server is one of its own.
    pub fn has(&self, server: ServerId) -> bool {
        self.server(server).is_some()
    }

    /// One of its servers.
    pub fn server(&self, server: ServerId) -> Option<&Rc<Server>> {
        self.by_id.get(server.0 as usize)?.as_ref()
    }

    pub fn servers(&self) -> impl Iterator<Item = &Rc<Server>> {
        self.by_id.iter().flatten()
    }

    /// Tells the policy which servers can be named, and with which weight, as far as it does not know. Backups only can when
    /// no other can.
    pub fn tell_standings(&self, now: Moment) {
        let is_up = |server: &Rc<Server>| server.standing.get().is_some();
        let without_backups = self.servers().any(|server| !server.is_backup.get() && is_up(server));
        let mut told = self.shared.told.borrow_mut();
        let mut policy = self.shared.policy.borrow_mut();
        let most = told.len().max(self.by_id.len());
        told.resize(most, None);
        for (number, known) in told.iter_mut().enumerate() {
            let id = ServerId(number as u32);
            let standing = self
                .server(id)
                .filter(|server| !(without_backups && server.is_backup.get()))
                .and_then(|server| server.standing.get());
            if *known == standing {
                continue;
            }
            match standing {
                Some(weight) => policy.server_up(id, weight, now),
                None => policy.server_gone(id, now),
            }
            *known = standing;
        }
    }

    /// Lets the policy choose a server with room that is not among `tried`.
    pub fn choose(&self, request: &Request, tried: &[ServerId], now: Moment) -> Chosen {
        let mut policy = self.shared.policy.borrow_mut();
        let named = match tried {
            [] => policy.choose(request, now),
            tried => policy.choose_again(request, tried, now),
        };
        let Some(server) = named.and_then(|id| self.server(id)) else { return Chosen::Nobody };
        if server.has_room() {
            return Chosen::Server(Rc::clone(server));
        }
        // Full ones are passed over like those that have failed.
        let mut passed: Vec<ServerId> = tried.to_vec();
        passed.push(server.id);
        while let Some(server) = policy.choose_again(request, &passed, now).and_then(|id| self.server(id)) {
            if server.has_room() {
                return Chosen::Server(Rc::clone(server));
            }
            passed.push(server.id);
        }
        Chosen::Full
    }

    /// The policy, to be told something.
    pub fn policy(&self) -> std::cell::RefMut<'_, Box<dyn Policy>> {
        self.shared.policy.borrow_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::START;
    const REQUESTED: Request = Request { class: assay_cluster::dispatch::ClassId(0), document: 1 };

    fn servers(count: u32) -> Vec<Rc<Server>> {
        let one = |number: u32| {
            let address = ([127, 0, 0, 1], 9000 + number as u16).into();
            let server = Server::new(ServerId(number), format!("s{number}"), address);
            server.standing.set(Some(1.0));
            server.most.set(1);
            Rc::new(server)
        };
        (0..count).map(one).collect()
    }

    fn chosen(group: &Group, tried: &[ServerId]) -> Option<u32> {
        match group.choose(&REQUESTED, tried, NOW) {
            Chosen::Server(server) => Some(server.id.0),
            Chosen::Full | Chosen::Nobody => None,
        }
    }

    #[test]
    fn a_backup_is_only_named_when_nobody_else_is_there() {
        let all = servers(3);
        all[2].is_backup.set(true);
        let group = Group::new(Choice::RoundRobin, 1, &all, None, NOW);
        assert_eq!(
            [chosen(&group, &[]), chosen(&group, &[]), chosen(&group, &[])],
            [Some(0), Some(1), Some(0)]
        );
        all[0].standing.set(None);
        all[1].standing.set(None);
        group.tell_standings(NOW);
        assert_eq!(chosen(&group, &[]), Some(2));
        all[1].standing.set(Some(1.0));
        group.tell_standings(NOW);
        assert_eq!([chosen(&group, &[]), chosen(&group, &[])], [Some(1), Some(1)]);
    }

    #[test]
    fn full_and_tried_servers_are_passed_over_and_told_apart_from_none() {
        for choice in Choice::all() {
            let all = servers(3);
            let group = Group::new(choice, 1, &all, None, NOW);
            all[0].in_flight.set(1);
            all[1].in_flight.set(1);
            assert_eq!(chosen(&group, &[]), Some(2), "{}", group.shared.choice.name());
            assert!(matches!(group.choose(&REQUESTED, &[ServerId(2)], NOW), Chosen::Full));
            all[2].in_flight.set(1);
            assert!(matches!(group.choose(&REQUESTED, &[], NOW), Chosen::Full));
            let tried = [ServerId(0), ServerId(1), ServerId(2)];
            assert!(matches!(group.choose(&REQUESTED, &tried, NOW), Chosen::Nobody));
        }
    }

    #[test]
    fn a_reload_keeps_a_policy_that_stays_the_same_and_takes_servers_out_of_it() {
        let all = servers(3);
        let group = Group::new(Choice::RoundRobin, 1, &all, None, NOW);
        assert_eq!(chosen(&group, &[]), Some(0));
        let later = Group::new(Choice::RoundRobin, 1, &all[1..], Some(Rc::clone(&group.shared)), NOW);
        assert!(Rc::ptr_eq(&group.shared, &later.shared) && !later.has(ServerId(0)));
        assert_eq!([chosen(&later, &[]), chosen(&later, &[])], [Some(1), Some(2)]);
        let other = Group::new(Choice::Random, 1, &all, Some(Rc::clone(&group.shared)), NOW);
        assert!(!Rc::ptr_eq(&group.shared, &other.shared));
    }
}
