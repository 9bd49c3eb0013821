//! A configuration prepared for use by a worker; replaced as a whole by a reload.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use assay_cluster::dispatch::policies::cap::CapSettings;
use assay_cluster::dispatch::{ClassId, Moment, PolicyConfig, ServerId};

use super::group::Group;
use super::server::Server;
use crate::classes::Classes;
use crate::config::Config;
use crate::messages::{WorkerConfig, worker_share};
use crate::tally::LiveServerTally;
use crate::tls::TlsContext;

pub struct WorkerSetup {
    pub config: Arc<Config>,
    pub tls_context: Arc<TlsContext>,
    /// Listening addresses with TLS.
    pub tls_addresses: Arc<Vec<SocketAddr>>,
    pub classes: Classes,
    pub servers: HashMap<ServerId, Rc<Server>>,
    pub groups: Vec<Rc<Group>>,
    /// Share of the limit on client connections.
    pub max_clients: u32,
    /// Share of the limit on queued requests.
    pub max_waiting: u32,
    /// By class, then by server number + 1; index 0 is for responses of the switch itself.
    tallies: Vec<Vec<Rc<LiveServerTally>>>,
    /// Whether fields that only the log needs must be recorded.
    pub logs: bool,
}

/// All counters that ever existed, so that totals never decrease.
#[derive(Default)]
pub struct Registry(RefCell<HashMap<Key, Rc<LiveServerTally>>>);

/// Names of a class, and of a server if there is one.
type Key = (String, Option<String>);

impl Registry {
    fn tally(&self, class: &str, server: Option<&str>) -> Rc<LiveServerTally> {
        let key = (class.to_owned(), server.map(str::to_owned));
        Rc::clone(self.0.borrow_mut().entry(key).or_default())
    }

    pub fn for_each(&self, mut look: impl FnMut(&str, Option<&str>, &LiveServerTally)) {
        for ((class, server), tally) in self.0.borrow().iter() {
            look(class, server.as_deref(), tally);
        }
    }
}

impl WorkerSetup {
    /// Prepares a configuration. Servers and policies that stay the same are taken from `former`.
    pub fn new(
        worker_config: &WorkerConfig,
        former: Option<&WorkerSetup>,
        registry: &Registry,
        worker: usize,
        now: Moment,
    ) -> Self {
        let config = Arc::clone(&worker_config.config);
        let part = |whole: u32| worker_share(whole, worker, config.workers);
        let by_index: Vec<Rc<Server>> = config
            .servers
            .iter()
            .zip(worker_config.server_ids.iter())
            .zip(&worker_config.tls_context.servers)
            .map(|((spec, id), tls)| {
                let known = former.and_then(|former| former.servers.get(id)).map(Rc::clone);
                let server =
                    known.unwrap_or_else(|| Rc::new(Server::new(*id, spec.name.clone(), spec.address)));
                server.max_requests.set(part(spec.connections).max(1));
                server.is_backup.set(spec.is_backup);
                server.speaks_http2.set(spec.speaks_http2);
                *server.tls.borrow_mut() = tls.clone().map(Rc::new);
                server.weight.set(worker_config.weights.get(id).copied());
                server
            })
            .collect();
        let groups: Vec<Rc<Group>> = config
            .groups
            .iter()
            .enumerate()
            .map(|(number, spec)| {
                let policy_config = with_ids(&spec.policy, &worker_config.server_ids);
                let own: Vec<Rc<Server>> =
                    spec.servers.iter().map(|index| Rc::clone(&by_index[*index])).collect();
                let former = former.and_then(|former| former.groups.get(number));
                // With equal seeds all workers would choose the same server at the same time.
                let seed = config.seed.wrapping_add((worker as u64) << 32).wrapping_add(number as u64);
                Rc::new(Group::new(
                    policy_config,
                    seed,
                    &own,
                    former.map(|group| Rc::clone(&group.state)),
                    now,
                ))
            })
            .collect();
        let most = worker_config.server_ids.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let tallies = config.classes.iter().map(|class| {
            let mut all = vec![registry.tally(&class.name, None)];
            all.resize_with(most + 1, Rc::default);
            for server in &by_index {
                all[server.id.0 as usize + 1] = registry.tally(&class.name, Some(&server.name));
            }
            all
        });
        Self {
            tls_context: Arc::clone(&worker_config.tls_context),
            tls_addresses: Arc::clone(&worker_config.tls_addresses),
            classes: Classes::new(config.classes.iter().map(|class| class.conditions.clone()).collect()),
            groups,
            max_clients: part(config.limits.connections).max(1),
            max_waiting: part(config.limits.queue),
            tallies: tallies.collect(),
            logs: config.access_log.is_some(),
            servers: by_index.into_iter().map(|server| (server.id, server)).collect(),
            config,
        }
    }

    pub fn group(&self, class: ClassId) -> &Rc<Group> {
        &self.groups[self.config.classes[usize::from(class.0)].group]
    }

    pub fn class_name(&self, class: ClassId) -> &str {
        &self.config.classes[usize::from(class.0)].name
    }

    /// Class of this name, or the last one if a reload has removed it.
    pub fn class_named(&self, name: &str) -> ClassId {
        let last = self.config.classes.len() - 1;
        let index = self.config.classes.iter().position(|class| class.name == name).unwrap_or(last);
        ClassId(index as u16)
    }

    pub fn tally(&self, class: ClassId, server: Option<ServerId>) -> &LiveServerTally {
        &self.tallies[usize::from(class.0)][server.map_or(0, |id| id.0 as usize + 1)]
    }
}

/// Replaces indices of servers by their numbers.
fn with_ids(policy_config: &PolicyConfig, ids: &[ServerId]) -> PolicyConfig {
    let PolicyConfig::Cap(settings) = policy_config else { return policy_config.clone() };
    let numbered = |list: &Vec<ServerId>| list.iter().map(|index| ids[index.0 as usize]).collect();
    let lists = settings.lists.iter().map(|list| list.as_ref().map(numbered)).collect();
    PolicyConfig::Cap(CapSettings { lists })
}
