//! Timeouts of xacts. An xact fails when its lifetime is over, wherever it is by then: waiting for a connection, on its
//! way, or receiving its response.
//!
//! One behind others on its connection (see [`super::pipeline`]) is given up when its turn comes: those before it are not
//! to suffer.

use assay_measurement::error_kind::ErrorKind;

use super::connection::ConnectionKey;
use super::recorder::Received;
use super::worker::{RobotTimerEvent, Trigger, Worker};
use super::xact::XactKey;
use assay_base::clock::monotonic_ns;

/// Pause before an expired xact behind others is looked at again.
const AGAIN_NS: u64 = 10_000_000;

impl Worker {
    /// Sets the timer for the end of an xact's lifetime, if its group has one.
    pub fn set_expiry(&mut self, xact_key: XactKey) {
        let features = self.xacts[xact_key].features.as_ref();
        if let Some(expires_ns) = features.and_then(|features| features.expires_ns)
            && expires_ns < u64::MAX
        {
            self.network.schedule(expires_ns, RobotTimerEvent::Expiry(xact_key));
        }
    }

    /// Fails an xact whose lifetime is over. Timers are not cancelled when xacts end: it may have ended before.
    pub fn expire(&mut self, xact_key: XactKey) {
        let now_ns = monotonic_ns();
        let Some(xact) = self.xacts.get(xact_key) else { return };
        let (robot, is_sent) = (xact.robot, xact.sent_ns.is_some());
        let lived_ms = now_ns.saturating_sub(xact.due_ns) / 1_000_000;
        let detail = format!("given up {lived_ms} ms after it was due, when its lifetime was over");
        let (kind, trigger) = (ErrorKind::TimedOut, &Trigger::UNDELAYED);
        if !is_sent {
            if self.robots[robot].waiting.remove(xact_key, &mut self.xacts) {
                self.recorder.levels.waiting -= 1;
            }
            return self.fail(xact_key, kind, &detail, Received::NOTHING, now_ns, trigger);
        }
        if let Some(connection_key) = self.connection_by_stream(xact_key) {
            self.time_out_streams(connection_key, |_, other| other == xact_key, now_ns);
            return self.fill_slots(robot, trigger);
        }
        let carrier = self.connections.iter().find(|(_, connection)| connection.xact == Some(xact_key));
        let Some((connection_key, connection)) = carrier else {
            self.network.schedule(now_ns + AGAIN_NS, RobotTimerEvent::Expiry(xact_key));
            return;
        };
        let received = connection.response.received();
        self.close_and_resend_pipelined(connection_key, trigger);
        self.fail(xact_key, kind, &detail, received, now_ns, trigger);
        self.fill_slots(robot, trigger);
    }

    /// Finds the HTTP/2 connection that carries an xact.
    fn connection_by_stream(&self, xact_key: XactKey) -> Option<ConnectionKey> {
        let (key, _) = self
            .connections
            .iter()
            .find(|(_, connection)| connection.xacts_on_streams().any(|other| other == xact_key))?;
        Some(key)
    }
}
