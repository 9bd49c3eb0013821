//! Request bodies that wait for 100 (`Expect: 100-continue`). They are sent when it comes, or when nothing has come in time.
//!
//! A response that comes in the place of 100 is the response, and the body is not sent: the connection cannot be used again,
//! since the other side may still wait for it. After 417 the request is sent once more, without `Expect` (RFC 9110, 10.1.1).

use super::connection::ConnectionKey;
use super::request::write_body;
use super::worker::{RobotTimerEvent, Trigger, Worker};
use super::xact::XactKey;
use assay_base::clock::monotonic_ns;

impl Worker {
    /// Sets the timer for a request whose head is on its way, and whose body waits.
    pub fn await_continue(&mut self, connection_key: ConnectionKey, xact_key: XactKey) {
        if let Some(until_ns) = self.continue_wait_ns(xact_key) {
            self.network.schedule(until_ns, RobotTimerEvent::ContinueTimeout(connection_key));
        }
    }

    /// Sends the body after 100.
    pub fn on_continue(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        if self.xacts[xact_key].cancel_continue_wait() {
            self.recorder.counts(self.xacts[xact_key].phase).invited += 1;
            self.send_body(connection_key, xact_key, trigger);
        }
    }

    /// Sends the body without 100, which has not come in time, if this is still the request that the timer was set for.
    pub fn on_continue_timeout(&mut self, connection_key: ConnectionKey) {
        let Some(xact_key) = self.connections.get(connection_key).and_then(|connection| connection.xact)
        else {
            return;
        };
        let is_late = self.continue_wait_ns(xact_key).is_some_and(|until_ns| until_ns <= monotonic_ns());
        if is_late && self.xacts[xact_key].cancel_continue_wait() {
            self.recorder.counts(self.xacts[xact_key].phase).impatient += 1;
            self.send_body(connection_key, xact_key, &Trigger::UNDELAYED);
        }
    }

    fn continue_wait_ns(&self, xact_key: XactKey) -> Option<u64> {
        self.xacts[xact_key].features.as_ref()?.continue_until_ns
    }

    fn send_body(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        let (xact, universe) = (&self.xacts[xact_key], &self.setup.universe);
        let Some(object) = xact.post_body.map(|id| universe.object(id)) else { return };
        let phase = xact.phase;
        let mut output = self.network.take_output();
        write_body(universe, &object, &mut output);
        self.write_bytes(connection_key, phase, &output, trigger);
        self.network.put_output(output);
    }
}
