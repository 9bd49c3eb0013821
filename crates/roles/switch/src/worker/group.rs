//! Server groups: a balancing policy and the servers that it selects from.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use assay_cluster::dispatch::{Moment, Policy, PolicyConfig, Request, ServerId};

use super::server::Server;

/// A policy and the weights reported to it. Kept over a reload that does not change the policy.
pub struct PolicyState {
    /// Settings that the policy was built from.
    pub policy_config: PolicyConfig,
    policy: RefCell<Box<dyn Policy>>,
    /// Weights that the policy knows, by server number.
    reported: RefCell<Vec<Option<f64>>>,
}

/// Classes that share a policy.
pub struct Group {
    pub state: Rc<PolicyState>,
    /// Servers by number.
    by_id: Vec<Option<Rc<Server>>>,
    /// Requests queued for one of the servers.
    pub waiting: Cell<u32>,
    /// The policy wants servers to be probed for their state.
    pub wants_probes: bool,
    /// The policy uses load reports of servers.
    pub wants_reports: bool,
}

/// Result of selecting a server.
pub enum Selection {
    Server(Rc<Server>),
    /// All available servers are at their limits.
    AllFull,
    /// No server is available, or all have been tried.
    NoneAvailable,
}

impl Group {
    /// Creates a group; `former` is the state of its policy before a reload.
    pub fn new(
        policy_config: PolicyConfig,
        seed: u64,
        servers: &[Rc<Server>],
        former: Option<Rc<PolicyState>>,
        now: Moment,
    ) -> Self {
        let state = former.filter(|former| former.policy_config == policy_config).unwrap_or_else(|| {
            let policy = RefCell::new(policy_config.build(seed));
            Rc::new(PolicyState { policy_config, policy, reported: RefCell::default() })
        });
        let most = servers.iter().map(|server| server.id.0 as usize + 1).max().unwrap_or(0);
        let mut by_id: Vec<Option<Rc<Server>>> = vec![None; most];
        for server in servers {
            by_id[server.id.0 as usize] = Some(Rc::clone(server));
        }
        let wants_probes = matches!(state.policy_config, PolicyConfig::Prequal(_));
        let wants_reports = wants_probes || state.policy_config.wants_reports();
        let group = Self { state, by_id, waiting: Cell::new(0), wants_probes, wants_reports };
        group.report_weights(now);
        group
    }

    pub fn has(&self, server: ServerId) -> bool {
        self.server(server).is_some()
    }

    pub fn server(&self, server: ServerId) -> Option<&Rc<Server>> {
        self.by_id.get(server.0 as usize)?.as_ref()
    }

    pub fn servers(&self) -> impl Iterator<Item = &Rc<Server>> {
        self.by_id.iter().flatten()
    }

    /// Reports changed weights to the policy. Backups are reported only while no other server is available.
    pub fn report_weights(&self, now: Moment) {
        let is_up = |server: &Rc<Server>| server.weight.get().is_some();
        let without_backups = self.servers().any(|server| !server.is_backup.get() && is_up(server));
        let mut reported = self.state.reported.borrow_mut();
        let mut policy = self.state.policy.borrow_mut();
        let most = reported.len().max(self.by_id.len());
        reported.resize(most, None);
        for (number, known) in reported.iter_mut().enumerate() {
            let id = ServerId(number as u32);
            let weight = self
                .server(id)
                .filter(|server| !(without_backups && server.is_backup.get()))
                .and_then(|server| server.weight.get());
            if *known == weight {
                continue;
            }
            match weight {
                Some(weight) => policy.server_up(id, weight, now),
                None => policy.server_gone(id, now),
            }
            *known = weight;
        }
    }

    /// Lets the policy choose a server with room that is not among `tried`.
    pub fn choose(&self, request: &Request, tried: &[ServerId], now: Moment) -> Selection {
        let mut policy = self.state.policy.borrow_mut();
        let chosen_id = match tried {
            [] => policy.choose(request, now),
            tried => policy.choose_again(request, tried, now),
        };
        let Some(server) = chosen_id.and_then(|id| self.server(id)) else { return Selection::NoneAvailable };
        if server.has_room() {
            return Selection::Server(Rc::clone(server));
        }
        // Full servers are skipped like failed ones.
        let mut excluded: Vec<ServerId> = tried.to_vec();
        excluded.push(server.id);
        while let Some(server) = policy.choose_again(request, &excluded, now).and_then(|id| self.server(id)) {
            if server.has_room() {
                return Selection::Server(Rc::clone(server));
            }
            excluded.push(server.id);
        }
        Selection::AllFull
    }

    pub fn policy(&self) -> std::cell::RefMut<'_, Box<dyn Policy>> {
        self.state.policy.borrow_mut()
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
            server.weight.set(Some(1.0));
            server.max_requests.set(1);
            Rc::new(server)
        };
        (0..count).map(one).collect()
    }

    fn chosen(group: &Group, tried: &[ServerId]) -> Option<u32> {
        match group.choose(&REQUESTED, tried, NOW) {
            Selection::Server(server) => Some(server.id.0),
            Selection::AllFull | Selection::NoneAvailable => None,
        }
    }

    #[test]
    fn a_backup_is_only_named_when_nobody_else_is_there() {
        let all = servers(3);
        all[2].is_backup.set(true);
        let group = Group::new(PolicyConfig::RoundRobin, 1, &all, None, NOW);
        assert_eq!(
            [chosen(&group, &[]), chosen(&group, &[]), chosen(&group, &[])],
            [Some(0), Some(1), Some(0)]
        );
        all[0].weight.set(None);
        all[1].weight.set(None);
        group.report_weights(NOW);
        assert_eq!(chosen(&group, &[]), Some(2));
        all[1].weight.set(Some(1.0));
        group.report_weights(NOW);
        assert_eq!([chosen(&group, &[]), chosen(&group, &[])], [Some(1), Some(1)]);
    }

    #[test]
    fn full_and_tried_servers_are_passed_over_and_told_apart_from_none() {
        for policy_config in PolicyConfig::all() {
            let all = servers(3);
            let group = Group::new(policy_config, 1, &all, None, NOW);
            all[0].in_flight.set(1);
            all[1].in_flight.set(1);
            assert_eq!(chosen(&group, &[]), Some(2), "{}", group.state.policy_config.name());
            assert!(matches!(group.choose(&REQUESTED, &[ServerId(2)], NOW), Selection::AllFull));
            all[2].in_flight.set(1);
            assert!(matches!(group.choose(&REQUESTED, &[], NOW), Selection::AllFull));
            let tried = [ServerId(0), ServerId(1), ServerId(2)];
            assert!(matches!(group.choose(&REQUESTED, &tried, NOW), Selection::NoneAvailable));
        }
    }

    #[test]
    fn a_reload_keeps_a_policy_that_stays_the_same_and_takes_servers_out_of_it() {
        let all = servers(3);
        let group = Group::new(PolicyConfig::RoundRobin, 1, &all, None, NOW);
        assert_eq!(chosen(&group, &[]), Some(0));
        let later = Group::new(PolicyConfig::RoundRobin, 1, &all[1..], Some(Rc::clone(&group.state)), NOW);
        assert!(Rc::ptr_eq(&group.state, &later.state) && !later.has(ServerId(0)));
        assert_eq!([chosen(&later, &[]), chosen(&later, &[])], [Some(1), Some(2)]);
        let other = Group::new(PolicyConfig::Random, 1, &all, Some(Rc::clone(&group.state)), NOW);
        assert!(!Rc::ptr_eq(&group.state, &other.state));
    }
}
