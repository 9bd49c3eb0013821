//! LARD/R: LARD in which a document that is requested very often may have several servers.
//!
//! Each document has a set of servers, at first the least loaded one; its requests go to the least loaded of the set. When
//! that one has too much (LARD's own rule), the least loaded of all servers joins. A set that has not changed for K seconds
//! gives up its most loaded server, so what was popular does not stay everywhere. Source: as LARD, section 2.5 of the same
//! paper; K is 20 seconds there.

use assay_cache::lru::Lru;

use super::lard::{LardSettings, ServerLoads};
use crate::dispatch::moment::Moment;
use crate::dispatch::policy::{Completion, Policy, Request, ServerId};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LardReplicatedSettings {
    /// As for LARD.
    pub lard: LardSettings,
    /// After so many seconds without change, a set of several servers loses one.
    pub shrink_after_s: f64,
}

impl Default for LardReplicatedSettings {
    fn default() -> Self {
        Self { lard: LardSettings::default(), shrink_after_s: 20.0 }
    }
}

#[derive(Debug, Clone, Default)]
struct Replicas {
    servers: Vec<ServerId>,
    changed: Moment,
}

#[derive(Debug)]
pub struct LardReplicated {
    shrink_after_s: f64,
    loads: ServerLoads,
    sets: Lru<u64, Replicas>,
}

impl LardReplicated {
    pub fn new(settings: LardReplicatedSettings) -> Self {
        let sets = Lru::new(settings.lard.table_bytes);
        Self { shrink_after_s: settings.shrink_after_s, loads: ServerLoads::new(settings.lard), sets }
    }
}

impl Policy for LardReplicated {
    fn name(&self) -> &'static str {
        "lard-r"
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

    fn choose(&mut self, request: &Request, now: Moment) -> Option<ServerId> {
        let mut set = self.sets.get(&request.document).cloned().unwrap_or_default();
        let before = set.servers.len();
        set.servers.retain(|server| self.loads.members.contains(*server));
        let mut changed = set.servers.len() != before;

        let load = |loads: &ServerLoads, server: &ServerId| loads.requests(*server);
        let least = set.servers.iter().min_by_key(|server| load(&self.loads, server)).copied();
        let most = set.servers.iter().max_by_key(|server| load(&self.loads, server)).copied();
        let named = match least {
            Some(least) if !self.loads.is_overloaded(self.loads.requests(least)) => least,
            _ => {
                let joins = self.loads.least()?;
                if !set.servers.contains(&joins) {
                    set.servers.push(joins);
                    changed = true;
                }
                joins
            }
        };
        if set.servers.len() > 1 && now.secs_since(set.changed) > self.shrink_after_s && !changed {
            set.servers.retain(|server| Some(*server) != most);
            changed = true;
        }
        if changed {
            set.changed = now;
            let bytes = size_of_val(set.servers.as_slice()) as u64;
            // A table without room for a single document means that every request is a first one.
            let _ = self.sets.insert(request.document, set, bytes);
        }
        Some(named)
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

    fn policy() -> LardReplicated {
        let lard = LardSettings { t_low: 2, t_high: 3, table_bytes: 1 << 20 };
        let mut policy = LardReplicated::new(LardReplicatedSettings { lard, shrink_after_s: 20.0 });
        up(&mut policy, 3);
        policy
    }

    fn set(policy: &LardReplicated, document: u64) -> Vec<u32> {
        policy.sets.peek(&document).map(|set| set.servers.iter().map(|s| s.0).collect()).unwrap_or_default()
    }

    #[test]
    fn a_popular_document_gets_more_servers_and_the_least_loaded_of_them_serves() {
        let mut policy = policy();
        let sent: Vec<_> = (0..7).map(|_| send(&mut policy, &document(1), NOW)).collect();
        assert_eq!(sent, [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(set(&policy, 1), [0, 1]);
        finish(&mut policy, 0, 1, NOW);
        finish(&mut policy, 0, 1, NOW);
        assert_eq!(send(&mut policy, &document(1), NOW), 0);
    }

    #[test]
    fn after_k_seconds_of_rest_the_most_loaded_server_leaves_the_set() {
        let mut policy = policy();
        (0..5).for_each(|_| assert!(send(&mut policy, &document(1), NOW) < 3));
        assert_eq!(set(&policy, 1), [0, 1]);
        (0..3).for_each(|_| finish(&mut policy, 0, 1, NOW));
        policy.started(ServerId(1), &document(1), NOW);
        send(&mut policy, &document(1), Moment::from_secs(19.0));
        assert_eq!(set(&policy, 1), [0, 1]);
        send(&mut policy, &document(1), Moment::from_secs(21.0));
        assert_eq!(set(&policy, 1).len(), 1);
    }
}
