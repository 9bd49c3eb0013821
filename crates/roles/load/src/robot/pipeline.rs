//! Pipelining: several requests on one connection at once, in order; none is lost when the connection ends early.
//!
//! A connection draws its depth (`pipeline_depth`) when it is opened: the number of requests that may be under way on it.
//! Only embedded objects are pipelined behind other requests. A request that is due takes, in this order: an idle
//! connection to its destination, or to a substitute where the workload says so; a busy one with room, the one with the
//! fewest requests under way; a new one, if the robot may open it; the place of an idle one to another destination; the
//! end of the robot's queue. A busy connection has room when
//!
//! - it is established, its depth and its use limit allow one more, and all requests given to it have been written;
//! - the target has not announced that it will close it, and
//! - what is under way can be repeated: nothing is pipelined behind a POST.
//!
//! Robots that speak HTTP/1.0 do not pipeline. A request is *sent* when it is written, so its service time includes the
//! responses before it: that is the cost of pipelining.
//!
//! When a connection ends early, only the request whose turn it is may be an error. Those behind it are sent again on a
//! new connection and count as retries, each when the one before it has its response, since one of them may be why the
//! first connection ended (RFC 9112, 9.3.2). As they were sent, the end of a phase does not cancel them.

use assay_measurement::error_kind::ErrorKind;

use super::connection::{ConnectionList, ConnectionPipeline, ConnectionStage};
use super::response::ResponseReader;
use super::worker::Worker;
use super::xact::NONE;
use assay_base::clock::monotonic_ns;

impl Worker {
    /// True if a busy connection may be given one more request.
    pub fn has_room(&self, slot: u32) -> bool {
        let connection = &self.connections[slot as usize];
        let ConnectionPipeline { depth, load, is_unwritten, .. } = connection.pipeline;
        connection.xact != NONE
            && load < depth
            && !is_unwritten
            && connection.uses_left > 0
            && connection.is_established()
            && connection.is_written()
            && connection.response.start().is_none_or(|start| start.persists)
            // What is pipelined must be repeatable, if the request before it ends the connection (RFC 9112,
            // 9.3.2).
            && !self.xacts[connection.xact as usize].method.has_body()
    }

    /// Puts a request behind those that a connection carries.
    pub fn pipeline(&mut self, slot: u32, place: u32) {
        self.mark_sent(place, monotonic_ns());
        let connection = &mut self.connections[slot as usize];
        self.xacts[place as usize].connection = Some(connection.serial);
        let pipeline = &mut connection.pipeline;
        pipeline.load += 1;
        match std::mem::replace(&mut pipeline.last, place) {
            NONE => pipeline.first = place,
            last => self.xacts[last as usize].next = place,
        }
        self.write_request(slot, place);
    }

    /// Gives the first requests of a robot's queue to a connection that may have room, as long as they can be
    /// pipelined.
    pub fn fill_pipeline(&mut self, slot: u32) {
        let Some(connection) = self.connections.get(slot as usize) else { return };
        let (id, robot, destination) = (connection.id, connection.robot, connection.destination);
        while self.is_open(slot, id) {
            let head = self.robots[robot as usize].waiting_first;
            if head == NONE {
                return;
            }
            let xact = &self.xacts[head as usize];
            let fits = xact.is_embedded()
                && self.setup.route(xact.id.robot, xact.object.id.origin).destination == destination;
            if !fits || !self.has_room(slot) || self.pop_waiting(robot).is_none() {
                return;
            }
            self.make_ready(head);
            self.pipeline(slot, head);
        }
    }

    /// Goes on to the next request of a pipeline, after the response to the first.
    pub fn advance(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let pipeline = &mut connection.pipeline;
        let place = pipeline.first;
        let is_unwritten = pipeline.is_unwritten;
        let xact = &mut self.xacts[place as usize];
        pipeline.first = std::mem::replace(&mut xact.next, NONE);
        if pipeline.is_empty() {
            pipeline.last = NONE;
            pipeline.is_unwritten = false;
        }
        connection.xact = place;
        connection.response = ResponseReader::default();
        connection.is_fresh = false;
        // One at a time: one of them may be why the connection before ended (RFC 9112, 9.3.2).
        if is_unwritten {
            xact.connection = Some(connection.serial);
            self.write_request(slot, place);
        } else {
            pipeline.load -= 1;
        }
        self.fill_pipeline(slot);
    }

    /// Takes those behind off a connection that ends before their turn. The first of them; [`NONE`]: there are none.
    pub fn detach_pipelined(&mut self, slot: u32) -> u32 {
        let pipeline = &mut self.connections[slot as usize].pipeline;
        let first = std::mem::replace(&mut pipeline.first, NONE);
        pipeline.last = NONE;
        // Those that have not been written since were counted when they were cut off first.
        if !pipeline.is_unwritten {
            let mut place = first;
            while place != NONE {
                let (phase, next) = (self.xacts[place as usize].phase, self.xacts[place as usize].next);
                self.recorder(phase).counts.retries += 1;
                place = next;
            }
        }
        first
    }

    /// Sends those that were cut off again, on a connection of their own. Its slot must be free.
    pub fn reopen_for(&mut self, rest: u32) {
        if rest != NONE {
            let behind = std::mem::replace(&mut self.xacts[rest as usize].next, NONE);
            self.open(rest, behind);
        }
    }

    /// Closes a connection, and sends what was behind the request whose turn it was again. That one is the caller's.
    pub fn close_and_resend_pipelined(&mut self, slot: u32) {
        let rest = self.detach_pipelined(slot);
        self.close(slot);
        self.reopen_for(rest);
    }

    /// Times out the request whose turn it is.
    pub fn time_out(&mut self, slot: u32, now_ns: u64) {
        let connection = &self.connections[slot as usize];
        let (place, robot, body_bytes) =
            (connection.xact, connection.robot, connection.response.body_bytes());
        let status = connection.response.start().map(|start| start.status);
        let waited_ms = now_ns.saturating_sub(self.xacts[place as usize].sent_ns) / 1_000_000;
        let detail = match (connection.stage != ConnectionStage::Connecting, status) {
            (false, _) => format!("no connection after {waited_ms} ms"),
            (true, None) => format!("no response after {waited_ms} ms"),
            (true, Some(_)) => format!("{body_bytes} body bytes after {waited_ms} ms"),
        };
        self.close_and_resend_pipelined(slot);
        self.fail(place, ErrorKind::TimedOut, &detail, (body_bytes, status), now_ns);
        self.fill_slots(robot);
    }

    /// Times out everything that a connection carries; nothing is sent again.
    pub fn time_out_pipeline(&mut self, slot: u32, now_ns: u64) {
        let mut behind = std::mem::replace(&mut self.connections[slot as usize].pipeline.first, NONE);
        self.time_out(slot, now_ns);
        while behind != NONE {
            let place = behind;
            behind = std::mem::replace(&mut self.xacts[place as usize].next, NONE);
            let waited_ms = now_ns.saturating_sub(self.xacts[place as usize].sent_ns) / 1_000_000;
            let detail = format!("still behind another request after {waited_ms} ms");
            self.fail(place, ErrorKind::TimedOut, &detail, (0, None), now_ns);
        }
    }

    /// Lists a connection that carries a request among those that may be given more, if its depth allows.
    pub fn link_busy(&mut self, slot: u32) {
        match self.connections[slot as usize].pipeline.depth {
            0 | 1 => self.unlink(slot),
            _ => self.link(slot, ConnectionList::Pipelining),
        }
    }
}
