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

use super::connection::{ConnectionKey, ConnectionList, ConnectionStage, RobotConnection};
use super::recorder::Received;
use super::response::ResponseReader;
use super::worker::{Trigger, Worker};
use super::xact::{XactKey, XactQueue};
use assay_base::clock::monotonic_ns;

impl Worker {
    /// True if a busy connection may be given one more request.
    pub fn has_room(&self, connection: &RobotConnection) -> bool {
        let Some(xact_key) = connection.xact else { return false };
        let pipeline = &connection.pipeline;
        pipeline.load() < u32::from(pipeline.depth)
            && !pipeline.is_unwritten
            && connection.uses_left > 0
            && connection.is_established()
            && connection.is_written()
            && connection.response.start().is_none_or(|start| start.persists)
            // What is pipelined must be repeatable, if the request before it ends the connection (RFC 9112,
            // 9.3.2).
            && !self.xacts[xact_key].method.has_body()
    }

    /// Puts a request behind those that a connection carries.
    pub fn pipeline(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        self.mark_sent(xact_key, monotonic_ns(), trigger);
        let connection = &mut self.connections[connection_key];
        self.xacts[xact_key].connection = Some(connection.serial);
        connection.pipeline.behind.push(xact_key, &mut self.xacts);
        self.write_request(connection_key, xact_key, trigger);
    }

    /// Gives the first requests of a robot's queue to a connection that may have room, as long as they can be
    /// pipelined.
    pub fn fill_pipeline(&mut self, connection_key: ConnectionKey, trigger: &Trigger) {
        while let Some(connection) = self.connections.get(connection_key) {
            let robot = connection.robot;
            let Some(first) = self.robots[robot].waiting.first() else { return };
            let xact = &self.xacts[first];
            let fits = xact.is_embedded()
                && self.setup.route(xact.id.robot, xact.object.id.origin).destination
                    == connection.destination;
            if !fits || !self.has_room(connection) {
                return;
            }
            let Some(xact_key) = self.pop_waiting(robot) else { return };
            self.xacts[xact_key].make_ready(monotonic_ns(), trigger.released);
            self.pipeline(connection_key, xact_key, trigger);
        }
    }

    /// Goes on to the next request of a pipeline, after the response to the first.
    pub fn advance(&mut self, connection_key: ConnectionKey, trigger: &Trigger) {
        let connection = &mut self.connections[connection_key];
        let Some(xact_key) = connection.pipeline.behind.pop(&mut self.xacts) else { return };
        connection.xact = Some(xact_key);
        connection.response = ResponseReader::default();
        connection.is_fresh = false;
        // One at a time: one of them may be why the connection before ended (RFC 9112, 9.3.2).
        if connection.pipeline.is_unwritten {
            connection.pipeline.is_unwritten = !connection.pipeline.behind.is_empty();
            self.xacts[xact_key].connection = Some(connection.serial);
            self.write_request(connection_key, xact_key, trigger);
        }
        self.fill_pipeline(connection_key, trigger);
    }

    /// Takes those behind off a connection that ends before their turn.
    pub fn detach_pipelined(&mut self, connection_key: ConnectionKey) -> XactQueue {
        let pipeline = &mut self.connections[connection_key].pipeline;
        let behind = std::mem::take(&mut pipeline.behind);
        // Those that have not been written since were counted when they were cut off first.
        if !pipeline.is_unwritten {
            for xact in behind.iter(&self.xacts) {
                self.recorder.counts(xact.phase).retries += 1;
            }
        }
        behind
    }

    /// Sends those that were cut off again, on a connection of their own, for which there must be room.
    pub fn reopen_for(&mut self, mut rest: XactQueue, trigger: &Trigger) {
        if let Some(first) = rest.pop(&mut self.xacts) {
            self.open(first, rest, trigger);
        }
    }

    /// Closes a connection, and sends what was behind the request whose turn it was again. That one is the caller's.
    pub fn close_and_resend_pipelined(&mut self, connection_key: ConnectionKey, trigger: &Trigger) {
        let rest = self.detach_pipelined(connection_key);
        self.close(connection_key);
        self.reopen_for(rest, trigger);
    }

    /// Times out the request whose turn it is.
    pub fn time_out(&mut self, connection_key: ConnectionKey, now_ns: u64) {
        let connection = &self.connections[connection_key];
        let Some(xact_key) = connection.xact else { return };
        let (robot, received) = (connection.robot, connection.response.received());
        let waited_ms = self.xacts[xact_key].waited_ms(now_ns);
        let detail = match (connection.stage, received.status) {
            (ConnectionStage::Connecting, _) => format!("no connection after {waited_ms} ms"),
            (_, None) => format!("no response after {waited_ms} ms"),
            (_, Some(_)) => format!("{} body bytes after {waited_ms} ms", received.body_bytes),
        };
        self.close_and_resend_pipelined(connection_key, &Trigger::UNDELAYED);
        self.fail(xact_key, ErrorKind::TimedOut, &detail, received, now_ns, &Trigger::UNDELAYED);
        self.fill_slots(robot, &Trigger::UNDELAYED);
    }

    /// Times out everything that a connection carries; nothing is sent again.
    pub fn time_out_pipeline(&mut self, connection_key: ConnectionKey, now_ns: u64) {
        let mut behind = std::mem::take(&mut self.connections[connection_key].pipeline.behind);
        self.time_out(connection_key, now_ns);
        while let Some(xact_key) = behind.pop(&mut self.xacts) {
            let waited_ms = self.xacts[xact_key].waited_ms(now_ns);
            let detail = format!("still behind another request after {waited_ms} ms");
            let received = Received::NOTHING;
            self.fail(xact_key, ErrorKind::TimedOut, &detail, received, now_ns, &Trigger::UNDELAYED);
        }
    }

    /// Lists a connection that carries a request among those that may be given more, if its depth allows.
    pub fn link_busy(&mut self, connection_key: ConnectionKey) {
        let Self { connections, robots, .. } = self;
        match connections[connection_key].pipeline.depth {
            0 | 1 => connections.unlink(connection_key, robots),
            _ => connections.link(connection_key, ConnectionList::Pipelining, robots),
        }
    }
}
