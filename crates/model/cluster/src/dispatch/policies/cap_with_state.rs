//! CAP with server state: turns for every class, weighted by how much of what the class needs each server has left.
//!
//! Every class has a profile: which part of its work is processor, disk or network time. Servers report now and then how busy
//! each of these was. A server's weight for a class is its own weight times the headroom of what that class needs, and the
//! class takes smooth turns by these weights: a server with a busy disk gets fewer disk requests, and as many of the others
//! as before. Headroom follows reports slowly and never falls to nothing, so one report does not send all requests elsewhere;
//! a report that is old counts no more. Source: the future work that R. M. Jones proposes (2002): CAP combined with weighted
//! RR, fed by a daemon on each server that samples processor, disk and network; the rule for weights is ours.

use super::server_states::ServerStates;
use super::weighted_round_robin::SmoothRoundRobin;
use crate::dispatch::members::Members;
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{ClassId, Policy, Request, ServerId, ServerState};

/// Resource demands of a class: shares of its work, which need not add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassProfile {
    pub processor: f64,
    pub disk: f64,
    pub network: f64,
}

impl Default for ClassProfile {
    fn default() -> Self {
        Self { processor: 1.0, disk: 0.0, network: 0.0 }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct CapWithStateSettings {
    /// Demands by class.
    pub profiles: Vec<ClassProfile>,
    /// Weight of a new report in the smoothed state.
    pub trust: f64,
    /// Least headroom of a server, however busy.
    pub least_headroom: f64,
    /// Age in seconds above which a report is ignored.
    pub stale_after_s: f64,
}

impl Default for CapWithStateSettings {
    fn default() -> Self {
        Self { profiles: Vec::new(), trust: 0.3, least_headroom: 0.05, stale_after_s: 10.0 }
    }
}

impl CapWithStateSettings {
    fn headroom(&self, states: &ServerStates, class: ClassId, server: ServerId, now: Moment) -> f64 {
        let profile = self.profiles.get(class.index()).copied().unwrap_or_default();
        let needs = profile.processor + profile.disk + profile.network;
        let state = states.fresh(server, self.stale_after_s, now);
        let Some(state) = state.filter(|_| needs > 0.0) else { return 1.0 };
        let ServerState { processor, disk, network, .. } = state;
        let busy = profile.processor * processor + profile.disk * disk + profile.network * network;
        (1.0 - busy / needs).clamp(self.least_headroom, 1.0)
    }
}

#[derive(Debug, Clone)]
pub struct CapWithState {
    settings: CapWithStateSettings,
    members: Members,
    states: ServerStates,
    turns: Vec<SmoothRoundRobin>,
}

impl CapWithState {
    pub fn new(settings: CapWithStateSettings) -> Self {
        Self { settings, members: Members::default(), states: ServerStates::default(), turns: Vec::new() }
    }
}

impl Policy for CapWithState {
    fn name(&self) -> &'static str {
        "cap-state"
    }

    fn servers(&self) -> &[ServerId] {
        self.members.servers()
    }

    fn server_up(&mut self, server: ServerId, weight: f64, _now: Moment) {
        if let Some(index) = self.members.insert(server, weight) {
            self.turns.iter_mut().for_each(|turns| turns.inserted(index));
        }
    }

    fn server_gone(&mut self, server: ServerId, _now: Moment) {
        if let Some(index) = self.members.remove(server) {
            self.turns.iter_mut().for_each(|turns| turns.removed(index));
        }
        self.states.forget(server);
    }

    fn choose(&mut self, request: &Request, now: Moment) -> Option<ServerId> {
        let Self { settings, members, states, turns } = self;
        let class = request.class;
        if turns.len() <= class.index() {
            turns.resize(class.index() + 1, SmoothRoundRobin::new(members.len()));
        }
        let weight =
            |member| members.weight(member) * settings.headroom(states, class, members.at(member), now);
        let member = turns[class.index()].select(weight)?;
        Some(members.at(member))
    }

    fn reported(&mut self, server: ServerId, state: &ServerState, now: Moment) {
        if self.members.contains(server) {
            self.states.report(server, state, self.settings.trust, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{class, names, up};
    use super::*;

    fn policy() -> CapWithState {
        let disk = ClassProfile { processor: 0.0, disk: 1.0, network: 0.0 };
        let profiles = vec![ClassProfile::default(), disk];
        let mut policy =
            CapWithState::new(CapWithStateSettings { profiles, ..CapWithStateSettings::default() });
        up(&mut policy, 2);
        policy
    }

    #[test]
    fn without_reports_every_class_takes_plain_turns() {
        let mut policy = policy();
        assert_eq!(names(&mut policy, &class(0), 4), [0, 1, 0, 1]);
        assert_eq!(names(&mut policy, &class(1), 4), [0, 1, 0, 1]);
    }

    #[test]
    fn a_busy_disk_keeps_disk_requests_away_and_no_others() {
        let mut policy = policy();
        let busy = ServerState { disk: 0.75, ..ServerState::default() };
        policy.reported(ServerId(0), &busy, Moment::START);
        let disk = names(&mut policy, &class(1), 50);
        assert_eq!(disk.iter().filter(|server| **server == 0).count(), 10);
        assert_eq!(names(&mut policy, &class(0), 4), [0, 1, 0, 1]);
    }

    #[test]
    fn an_old_report_counts_no_more() {
        let mut policy = policy();
        let busy = ServerState { processor: 1.0, ..ServerState::default() };
        policy.reported(ServerId(0), &busy, Moment::START);
        let headroom = |at_s| {
            let now = Moment::from_secs(at_s);
            policy.settings.headroom(&policy.states, ClassId(0), ServerId(0), now)
        };
        assert_eq!((headroom(9.0), headroom(11.0)), (0.05, 1.0));
    }
}
