//! What a worker goes by. A configuration with everything that it needs ready at hand; replaced as a whole by a reload.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use assay_cluster::dispatch::policies::cap::CapSettings;
use assay_cluster::dispatch::{Choice, ClassId, Moment, ServerId};

use super::group::Group;
use super::server::Server;
use crate::classes::Classes;
use crate::config::Config;
use crate::plan::{Plan, part_of};
use crate::secure::Secure;
use crate::tally::LiveTally;

/// A configuration at work.
pub struct Setup {
    pub config: Arc<Config>,
    /// Certificates for clients, and what servers are verified by.
    pub secure: Arc<Secure>,
    /// Where clients speak TLS.
    pub secured: Arc<Vec<SocketAddr>>,
    pub classes: Classes,
    /// The servers, by number.
    pub servers: HashMap<ServerId, Rc<Server>>,
    /// The groups of the settings.
    pub groups: Vec<Rc<Group>>,
    /// This worker's part of the connections of clients.
    pub most_clients: u32,
    /// This worker's part of the queue.
    pub most_waiting: u32,
    /// Tallies of classes, by class and server number; the first of each is for responses of the switch itself.
    tallies: Vec<Vec<Rc<LiveTally>>>,
    /// Whether anything must be known of fields that only the log tells.
    pub logs: bool,
}

/// All tallies that there ever were, so that counters never go back.
#[derive(Default)]
pub struct Registry(RefCell<HashMap<Key, Rc<LiveTally>>>);

/// Names of a class, and of a server if there is one.
type Key = (String, Option<String>);

impl Registry {
    fn tally(&self, class: &str, server: Option<&str>) -> Rc<LiveTally> {
        let key = (class.to_owned(), server.map(str::to_owned));
        Rc::clone(self.0.borrow_mut().entry(key).or_default())
    }

    /// Looks at all of them.
    pub fn for_each(&self, mut look: impl FnMut(&str, Option<&str>, &LiveTally)) {
        for ((class, server), tally) in self.0.borrow().iter() {
            look(class, server.as_deref(), tally);
        }
    }
}

impl Setup {
    /// Of a plan. What stays the same as in `former` is taken over.
    pub fn new(plan: &Plan, former: Option<&Setup>, registry: &Registry, worker: usize, now: Moment) -> Self {
        let config = Arc::clone(&plan.config);
        let part = |whole: u32| part_of(whole, worker, config.workers);
        let by_place: Vec<Rc<Server>> = config
            .servers
            .iter()
            .zip(plan.numbers.iter())
            .zip(&plan.secure.servers)
            .map(|((spec, id), tls)| {
                let known = former.and_then(|former| former.servers.get(id)).map(Rc::clone);
                let server =
                    known.unwrap_or_else(|| Rc::new(Server::new(*id, spec.name.clone(), spec.address)));
                server.most.set(part(spec.connections).max(1));
                server.is_backup.set(spec.is_backup);
                server.speaks_http2.set(spec.speaks_http2);
                *server.tls.borrow_mut() = tls.clone().map(Rc::new);
                server.standing.set(plan.standings.get(id).copied());
                server
            })
            .collect();
        let groups: Vec<Rc<Group>> = config
            .groups
            .iter()
            .enumerate()
            .map(|(number, spec)| {
                let choice = with_numbers(&spec.choice, &plan.numbers);
                let own: Vec<Rc<Server>> = spec.servers.iter().map(|at| Rc::clone(&by_place[*at])).collect();
                let former = former.and_then(|former| former.groups.get(number));
                // Workers must not draw alike, or they would all go to the same server.
                let seed = config.seed.wrapping_add((worker as u64) << 32).wrapping_add(number as u64);
                Rc::new(Group::new(choice, seed, &own, former.map(|group| Rc::clone(&group.shared)), now))
            })
            .collect();
        let most = plan.numbers.iter().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let tallies = config.classes.iter().map(|class| {
            let mut all = vec![registry.tally(&class.name, None)];
            all.resize_with(most + 1, Rc::default);
            for server in &by_place {
                all[server.id.0 as usize + 1] = registry.tally(&class.name, Some(&server.name));
            }
            all
        });
        Self {
            secure: Arc::clone(&plan.secure),
            secured: Arc::clone(&plan.secured),
            classes: Classes::new(config.classes.iter().map(|class| class.conditions.clone()).collect()),
            groups,
            most_clients: part(config.limits.connections).max(1),
            most_waiting: part(config.limits.queue),
            tallies: tallies.collect(),
            logs: config.access_log.is_some(),
            servers: by_place.into_iter().map(|server| (server.id, server)).collect(),
            config,
        }
    }

    /// The group that serves a class.
    pub fn group(&self, class: ClassId) -> &Rc<Group> {
        &self.groups[self.config.classes[usize::from(class.0)].group]
    }

    /// What a class is called.
    pub fn class_name(&self, class: ClassId) -> &str {
        &self.config.classes[usize::from(class.0)].name
    }

    /// The class of this name, or the last one.
    pub fn class_named(&self, name: &str) -> ClassId {
        let last = self.config.classes.len() - 1;
        let place = self.config.classes.iter().position(|class| class.name == name).unwrap_or(last);
        ClassId(place as u16)
    }

    /// Counts of a class at a server.
    pub fn tally(&self, class: ClassId, server: Option<ServerId>) -> &LiveTally {
        &self.tallies[usize::from(class.0)][server.map_or(0, |id| id.0 as usize + 1)]
    }
}

/// Lists of places become lists of numbers.
fn with_numbers(choice: &Choice, numbers: &[ServerId]) -> Choice {
    let Choice::Cap(settings) = choice else { return choice.clone() };
    let numbered = |list: &Vec<ServerId>| list.iter().map(|place| numbers[place.0 as usize]).collect();
    let lists = settings.lists.iter().map(|list| list.as_ref().map(numbered)).collect();
    Choice::Cap(CapSettings { lists })
}
