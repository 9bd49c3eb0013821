//! Connections of a worker's robots: idle ones, and busy ones that may be given more requests.
//!
//! Two lists for each robot, linked through the connections themselves: nothing is allocated, and a connection is in one
//! of them at most.

use std::ops::{Index, IndexMut};
use std::time::Duration;

use slotmap::SlotMap;

use super::connection::{ConnectionKey, ConnectionList, ListEnds, ListLink, RobotConnection};
use super::worker::{Robot, RobotKey, Robots, Worker};
use super::xact::XactKey;
use assay_base::clock::monotonic_ns;

/// Connections of all robots of a worker, open or being opened.
#[derive(Debug, Default)]
pub struct Connections {
    connections: SlotMap<ConnectionKey, RobotConnection>,
}

impl Connections {
    #[inline]
    pub fn insert(&mut self, connection: RobotConnection) -> ConnectionKey {
        self.connections.insert(connection)
    }

    /// False: it was closed.
    #[inline]
    pub fn is_open(&self, key: ConnectionKey) -> bool {
        self.connections.contains_key(key)
    }

    /// None: it was closed.
    #[inline]
    pub fn get(&self, key: ConnectionKey) -> Option<&RobotConnection> {
        self.connections.get(key)
    }

    /// None: it was closed.
    #[inline]
    pub fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut RobotConnection> {
        self.connections.get_mut(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ConnectionKey, &RobotConnection)> {
        self.connections.iter()
    }

    /// Takes a connection out, and out of its robot's lists.
    #[inline]
    pub fn remove(&mut self, key: ConnectionKey, robots: &mut Robots) -> Option<RobotConnection> {
        if self.connections.contains_key(key) {
            self.unlink(key, robots);
        }
        self.remove_unlinked(key)
    }

    /// Takes out a connection that is in no list.
    #[inline]
    pub fn remove_unlinked(&mut self, key: ConnectionKey) -> Option<RobotConnection> {
        self.connections.remove(key)
    }

    /// Connections of a list, from `first` on.
    pub fn list(
        &self,
        first: Option<ConnectionKey>,
    ) -> impl Iterator<Item = (ConnectionKey, &RobotConnection)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let key = next?;
            let connection = &self.connections[key];
            next = connection.link.next;
            Some((key, connection))
        })
    }

    /// Puts a connection into a list, and takes it out of the one it is in.
    pub fn link(&mut self, key: ConnectionKey, of: ConnectionList, robots: &mut Robots) {
        if self.connections[key].link.list.is_some() {
            self.unlink(key, robots);
        }
        let connection = &mut self.connections[key];
        let list = robots[connection.robot].list(of);
        let next = list.first.replace(key);
        connection.link = ListLink { list: Some(of), next, previous: None };
        match next {
            None => list.last = Some(key),
            Some(next) => self.connections[next].link.previous = Some(key),
        }
    }

    /// Takes a connection out of the list it is in, if any.
    pub fn unlink(&mut self, key: ConnectionKey, robots: &mut Robots) {
        let connection = &mut self.connections[key];
        let ListLink { list: Some(of), next, previous } = std::mem::take(&mut connection.link) else {
            return;
        };
        let list = robots[connection.robot].list(of);
        match previous {
            None => list.first = next,
            Some(previous) => self.connections[previous].link.next = next,
        }
        match next {
            None => list.last = previous,
            Some(next) => self.connections[next].link.previous = previous,
        }
    }
}

impl Index<ConnectionKey> for Connections {
    type Output = RobotConnection;

    #[inline]
    fn index(&self, key: ConnectionKey) -> &RobotConnection {
        &self.connections[key]
    }
}

impl IndexMut<ConnectionKey> for Connections {
    #[inline]
    fn index_mut(&mut self, key: ConnectionKey) -> &mut RobotConnection {
        &mut self.connections[key]
    }
}

impl Robot {
    fn list(&mut self, of: ConnectionList) -> &mut ListEnds {
        match of {
            ConnectionList::Idle => &mut self.idle,
            ConnectionList::Pipelining => &mut self.pipelining,
        }
    }
}

impl Worker {
    /// Idle connection of a robot to a destination, the one that was used last.
    pub fn idle_connection_to(&self, robot: RobotKey, destination: u16) -> Option<ConnectionKey> {
        let mut idle = self.connections.list(self.robots[robot].idle.first);
        idle.find(|(_, connection)| connection.destination == destination).map(|(key, _)| key)
    }

    /// Idle connection to a destination that stands for that of an xact, if this one may take it.
    pub fn idle_connection_to_substitute(&self, xact_key: XactKey) -> Option<ConnectionKey> {
        let xact = &self.xacts[xact_key];
        let others = &self.setup.substitutes[usize::from(xact.object.id.origin)];
        let mut found = others.iter().filter_map(|other| self.idle_connection_to(xact.robot, *other));
        found.next().filter(|_| self.is_for_substitutes(xact_key))
    }

    /// True if a connection to a destination that is not its own may carry an xact.
    pub fn may_use_destination(&self, xact_key: XactKey, destination: u16) -> bool {
        let origin = self.xacts[xact_key].object.id.origin;
        self.setup.substitutes[usize::from(origin)].contains(&destination)
            && self.is_for_substitutes(xact_key)
    }

    /// Counts an xact that goes out on a connection to a destination that is not its own.
    pub fn count_substituted(&mut self, xact_key: XactKey) {
        self.recorder.counts(self.xacts[xact_key].phase).substituted += 1;
    }

    fn is_for_substitutes(&self, xact_key: XactKey) -> bool {
        let xact = &self.xacts[xact_key];
        self.setup.takes_substitutes(self.robots[xact.robot].group, xact.id)
    }

    /// Connection of a robot to a destination that has room for one more request, the one with the fewest under way.
    pub fn pipeline_to(&self, robot: RobotKey, destination: u16) -> Option<ConnectionKey> {
        let busy = self.connections.list(self.robots[robot].pipelining.first);
        busy.filter(|(_, connection)| connection.destination == destination && self.has_room(connection))
            .min_by_key(|(_, connection)| connection.pipeline.load())
            .map(|(key, _)| key)
    }

    /// Lists a connection that carries nothing any more as idle.
    pub fn link_idle(&mut self, connection_key: ConnectionKey) {
        self.connections[connection_key].since_ns = monotonic_ns();
        self.connections.link(connection_key, ConnectionList::Idle, &mut self.robots);
    }

    /// Looks through all connections for responses that take too long, and for those that were idle for too long.
    pub fn scan(&mut self, now_ns: u64) {
        if self.setup.has_sessions {
            self.check_sessions(now_ns);
        }
        let is_past = |since_ns: u64, limit: Duration| now_ns > since_ns + limit.as_nanos() as u64;
        // Collected first: closing one connection can close others and open new ones.
        let (mut late, mut idle_too_long) = (Vec::new(), Vec::new());
        let mut multiplexed = Vec::new();
        for (key, connection) in self.connections.iter() {
            if connection.streams.as_ref().is_some_and(|streams| streams.load > 0) {
                multiplexed.push(key);
                continue;
            }
            if let Some(xact) = connection.xact {
                if self.xacts[xact].sent_ns.is_some_and(|sent_ns| is_past(sent_ns, self.setup.timeout)) {
                    late.push(key);
                }
                continue;
            }
            let group = usize::from(self.robots[connection.robot].group);
            let timeout = self.setup.groups[group].idle_timeout;
            if timeout.is_some_and(|timeout| is_past(connection.since_ns, timeout)) {
                idle_too_long.push(key);
            }
        }
        for key in idle_too_long {
            self.close(key);
        }
        let timeout = self.setup.timeout;
        for key in multiplexed {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if let Some(streams) = &mut connection.streams {
                streams.refill(now_ns);
            }
            let is_late = |worker: &Self, xact_key: XactKey| {
                worker.xacts[xact_key].sent_ns.is_some_and(|sent_ns| is_past(sent_ns, timeout))
            };
            self.time_out_streams(key, is_late, now_ns);
        }
        for key in late {
            // One that is given up may have taken another with it.
            if self.connections.is_open(key) {
                self.time_out(key, now_ns);
            }
        }
    }

    /// Gives up all xacts that are under way.
    pub fn time_out_all(&mut self, now_ns: u64) {
        let busy = self.connections.iter().filter(|(_, connection)| connection.xact.is_some());
        let busy: Vec<ConnectionKey> = busy.map(|(key, _)| key).collect();
        for key in busy {
            if self.connections.is_open(key) {
                self.time_out_pipeline(key, now_ns);
            }
        }
        for key in self.all_connections() {
            if self.connections.get(key).is_some_and(|connection| connection.streams.is_some()) {
                self.time_out_streams(key, |_, _| true, now_ns);
            }
        }
    }

    pub fn close_all(&mut self) {
        self.all_connections().into_iter().for_each(|key| self.close(key));
    }

    fn all_connections(&self) -> Vec<ConnectionKey> {
        self.connections.iter().map(|(key, _)| key).collect()
    }
}
