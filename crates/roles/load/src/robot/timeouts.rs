//! Time-outs of xacts. An xact fails when its lifetime is over, wherever it is by then: waiting for a connection, on its
//! way, or receiving its response.
//!
//! One behind others on its connection (see [`super::pipeline`]) is given up when its turn comes: those before it are not
//! to suffer.

use assay_measurement::error_kind::ErrorKind;

use super::streams::Streams;
use super::worker::{RobotTimerEvent, Worker};
use super::xact::NONE;
use assay_base::clock::monotonic_ns;

/// Pause before an expired xact behind others is looked at again.
const AGAIN_NS: u64 = 10_000_000;

impl Worker {
    /// Sets the timer for the end of an xact's lifetime, if its group has one.
    pub fn set_expiry(&mut self, place: u32) {
        let features = self.xacts[place as usize].features.as_ref();
        if let Some(expires_ns) = features.and_then(|features| features.expires_ns)
            && expires_ns < u64::MAX
        {
            self.timer.schedule(expires_ns, RobotTimerEvent::Expiry(place));
        }
    }

    /// Fails the xact at this place if its lifetime is over. Another one may be there by now.
    pub fn expire(&mut self, place: u32) {
        let now_ns = monotonic_ns();
        // Timers are not cancelled when xacts end: the place may be free, or have another xact.
        let Some(xact) = self.xacts.get(place as usize) else { return };
        let expires_ns = xact.features.as_ref().and_then(|features| features.expires_ns);
        if expires_ns.is_none_or(|expires_ns| expires_ns > now_ns) {
            return;
        }
        let (robot, is_sent) = (xact.robot, xact.sent_ns != 0);
        let lived_ms = now_ns.saturating_sub(xact.due_ns) / 1_000_000;
        let detail = format!("given up {lived_ms} ms after it was due, when its lifetime was over");
        if !is_sent {
            self.remove_waiting(robot, place);
            return self.fail(place, ErrorKind::TimedOut, &detail, (0, None), now_ns);
        }
        if let Some((slot, robot)) = self.connection_by_stream(place) {
            self.time_out_streams(slot, |_, other| other == place, now_ns);
            return self.fill_slots(robot);
        }
        let carrier = self.connections.iter().find(|(_, connection)| connection.xact == place);
        let Some((slot, connection)) = carrier.map(|(slot, connection)| (slot as u32, connection)) else {
            self.timer.schedule(now_ns + AGAIN_NS, RobotTimerEvent::Expiry(place));
            return;
        };
        let body_bytes = connection.response.body_bytes();
        let status = connection.response.start().map(|start| start.status);
        self.close_and_resend_pipelined(slot);
        self.fail(place, ErrorKind::TimedOut, &detail, (body_bytes, status), now_ns);
        self.fill_slots(robot);
    }

    /// Finds the HTTP/2 connection that carries an xact, and its robot.
    fn connection_by_stream(&self, place: u32) -> Option<(u32, u32)> {
        let carries = |streams: &Streams| streams.iter().any(|exchange| exchange.xact == place);
        let mut all = self.connections.iter();
        let found = all.find(|(_, connection)| connection.streams.as_deref().is_some_and(carries));
        found.map(|(slot, connection)| (slot as u32, connection.robot))
    }

    /// Takes an xact out of its robot's queue.
    fn remove_waiting(&mut self, robot: u32, place: u32) {
        let state = &mut self.robots[robot as usize];
        let (mut before, mut at) = (NONE, state.waiting_first);
        while at != NONE && at != place {
            (before, at) = (at, self.xacts[at as usize].next);
        }
        if at == NONE {
            return;
        }
        let next = std::mem::replace(&mut self.xacts[place as usize].next, NONE);
        match before {
            NONE => state.waiting_first = next,
            before => self.xacts[before as usize].next = next,
        }
        if next == NONE {
            state.waiting_last = before;
        }
        state.waiting -= 1;
        self.levels.waiting -= 1;
    }
}
