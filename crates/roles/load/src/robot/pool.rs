//! Connections of a robot: its idle ones, and the busy ones that may be given more requests.
//!
//! Two lists for each robot, linked through the connections themselves: nothing is allocated, and a connection is in one
//! of them at most.

use std::time::Duration;

use super::connection::{ConnectionList, ListEnds, ListLink};
use super::worker::{Robot, Worker};
use super::xact::NONE;
use assay_base::clock::monotonic_ns;

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
    pub fn idle_connection_to(&self, robot: u32, destination: u16) -> Option<u32> {
        let mut slot = self.robots[robot as usize].idle.first;
        while slot != NONE {
            let connection = &self.connections[slot as usize];
            if connection.destination == destination {
                return Some(slot);
            }
            slot = connection.link.next;
        }
        None
    }

    /// Idle connection to a destination that stands for that of an xact, if this one may take it.
    pub fn idle_connection_to_substitute(&self, place: u32) -> Option<u32> {
        let xact = &self.xacts[place as usize];
        let others = &self.setup.substitutes[usize::from(xact.object.id.origin)];
        let mut found = others.iter().filter_map(|other| self.idle_connection_to(xact.robot, *other));
        found.next().filter(|_| self.is_for_substitutes(place))
    }

    /// True if a connection to a destination that is not its own may carry an xact.
    pub fn may_use_destination(&self, place: u32, destination: u16) -> bool {
        let origin = self.xacts[place as usize].object.id.origin;
        self.setup.substitutes[usize::from(origin)].contains(&destination) && self.is_for_substitutes(place)
    }

    /// Counts an xact that goes out on a connection to a destination that is not its own.
    pub fn count_substituted(&mut self, place: u32) {
        let phase = self.xacts[place as usize].phase;
        self.recorder(phase).counts.substituted += 1;
    }

    fn is_for_substitutes(&self, place: u32) -> bool {
        let xact = &self.xacts[place as usize];
        let group = self.robots[xact.robot as usize].group;
        self.setup.takes_substitutes(group, xact.id)
    }

    /// Connection of a robot to a destination that has room for one more request, the one with the fewest under way.
    pub fn pipeline_to(&self, robot: u32, destination: u16) -> Option<u32> {
        let mut slot = self.robots[robot as usize].pipelining.first;
        let mut found = None;
        while slot != NONE {
            let connection = &self.connections[slot as usize];
            let load = connection.pipeline.load;
            if connection.destination == destination
                && found.is_none_or(|(_, least)| load < least)
                && self.has_room(slot)
            {
                found = Some((slot, load));
            }
            slot = connection.link.next;
        }
        found.map(|(slot, _)| slot)
    }

    /// Lists a connection that carries nothing any more as idle.
    pub fn link_idle(&mut self, slot: u32) {
        self.connections[slot as usize].since_ns = monotonic_ns();
        self.link(slot, ConnectionList::Idle);
    }

    /// Puts a connection into a list, and takes it out of the one it is in.
    pub fn link(&mut self, slot: u32, of: ConnectionList) {
        self.unlink(slot);
        let connection = &mut self.connections[slot as usize];
        let list = self.robots[connection.robot as usize].list(of);
        let next = std::mem::replace(&mut list.first, slot);
        connection.link = ListLink { list: Some(of), next, previous: NONE };
        match next {
            NONE => list.last = slot,
            next => self.connections[next as usize].link.previous = slot,
        }
    }

    /// Takes a connection out of the list it is in, if any.
    pub fn unlink(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let ListLink { list: Some(of), next, previous } =
            std::mem::replace(&mut connection.link, ListLink::FREE)
        else {
            return;
        };
        let list = self.robots[connection.robot as usize].list(of);
        match previous {
            NONE => list.first = next,
            previous => self.connections[previous as usize].link.next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.connections[next as usize].link.previous = previous,
        }
    }

    /// Looks through all connections for responses that take too long, and for those that were idle for too long.
    pub fn scan(&mut self, now_ns: u64) {
        if self.setup.has_sessions {
            self.check_sessions(now_ns);
        }
        let is_past = |since_ns: u64, patience: Duration| now_ns > since_ns + patience.as_nanos() as u64;
        // Collected first: closing a connection changes the slab.
        let (mut late, mut idle_too_long) = (Vec::new(), Vec::new());
        let mut multiplexed = Vec::new();
        for (slot, connection) in &self.connections {
            if connection.streams.as_ref().is_some_and(|streams| streams.load > 0) {
                multiplexed.push((slot as u32, connection.id));
                continue;
            }
            if connection.xact != NONE {
                if is_past(self.xacts[connection.xact as usize].sent_ns, self.setup.timeout) {
                    late.push((slot as u32, connection.id));
                }
                continue;
            }
            let group = usize::from(self.robots[connection.robot as usize].group);
            let patience = self.setup.groups[group].idle_timeout;
            if patience.is_some_and(|patience| is_past(connection.since_ns, patience)) {
                idle_too_long.push(slot as u32);
            }
        }
        for slot in idle_too_long {
            self.close(slot);
        }
        let timeout = self.setup.timeout;
        for (slot, id) in multiplexed {
            if !self.is_open(slot, id) {
                continue;
            }
            if let Some(streams) = &mut self.connections[slot as usize].streams {
                streams.refill(now_ns);
            }
            let is_late = |worker: &Self, place: u32| is_past(worker.xacts[place as usize].sent_ns, timeout);
            self.time_out_streams(slot, is_late, now_ns);
        }
        for (slot, id) in late {
            // One that is given up may have taken another with it.
            if self.is_open(slot, id) {
                self.time_out(slot, now_ns);
            }
        }
    }

    /// Gives up all xacts that are under way.
    pub fn time_out_all(&mut self, now_ns: u64) {
        let busy = self.connections.iter().filter(|(_, connection)| connection.xact != NONE);
        let busy: Vec<(u32, u64)> = busy.map(|(slot, connection)| (slot as u32, connection.id)).collect();
        for (slot, id) in busy {
            if self.is_open(slot, id) {
                self.time_out_pipeline(slot, now_ns);
            }
        }
        let multiplexed: Vec<u32> = self.connections.iter().map(|(slot, _)| slot as u32).collect();
        for slot in multiplexed {
            if self.connections.get(slot as usize).is_some_and(|connection| connection.streams.is_some()) {
                self.time_out_streams(slot, |_, _| true, now_ns);
            }
        }
    }

    pub fn close_all(&mut self) {
        let all: Vec<u32> = self.connections.iter().map(|(slot, _)| slot as u32).collect();
        for slot in all {
            self.close(slot);
        }
    }
}
