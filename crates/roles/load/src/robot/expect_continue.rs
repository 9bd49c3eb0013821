//! Request bodies that wait for 100 (`Expect: 100-continue`). They are sent when it comes, or when nothing has come in time.
//!
//! A response that comes in the place of 100 is the response, and the body is not sent: the connection cannot be used again,
//! since the other side may still wait for it. After 417 the request is sent once more, without `Expect` (RFC 9110, 10.1.1).

use assay_measurement::counts::RobotCounts;

use super::features::ContinueWait;
use super::request::write_body;
use super::worker::{RobotTimerEvent, Worker};
use assay_base::clock::monotonic_ns;

impl Worker {
    /// Sets the timer for a request whose head is on its way, and whose body waits.
    pub fn await_continue(&mut self, slot: u32) {
        let id = self.connections[slot as usize].id;
        if let ContinueWait::Waiting { until_ns } = self.continue_wait(slot) {
            self.timer.schedule(until_ns, RobotTimerEvent::ContinueTimeout(slot, id));
        }
    }

    /// Sends the body after 100.
    pub fn on_continue(&mut self, slot: u32) {
        if self.cancel_continue_wait(slot) {
            self.counts_of(slot).invited += 1;
            self.send_body(slot);
        }
    }

    /// Sends the body without 100, which has not come in time, if this is still the request that the timer was set for.
    pub fn on_continue_timeout(&mut self, slot: u32, id: u64) {
        let is_late = |continue_wait| matches!(continue_wait, ContinueWait::Waiting { until_ns } if until_ns <= monotonic_ns());
        if self.is_open(slot, id) && is_late(self.continue_wait(slot)) && self.cancel_continue_wait(slot) {
            self.counts_of(slot).impatient += 1;
            self.send_body(slot);
        }
    }

    /// Ends the wait of a request body; false: it did not wait.
    pub fn cancel_continue_wait(&mut self, slot: u32) -> bool {
        let place = self.connections[slot as usize].xact;
        let features = self.xacts.get_mut(place as usize).and_then(|xact| xact.features.as_mut());
        features.is_some_and(|features| std::mem::take(&mut features.continue_wait) != ContinueWait::None)
    }

    fn continue_wait(&self, slot: u32) -> ContinueWait {
        let xact = self.xacts.get(self.connections[slot as usize].xact as usize);
        xact.and_then(|xact| xact.features.as_ref())
            .map_or(ContinueWait::None, |features| features.continue_wait)
    }

    fn counts_of(&mut self, slot: u32) -> &mut RobotCounts {
        let phase = self.xacts[self.connections[slot as usize].xact as usize].phase;
        &mut self.recorder(phase).counts
    }

    fn send_body(&mut self, slot: u32) {
        let xact = &self.xacts[self.connections[slot as usize].xact as usize];
        let (phase, universe) = (xact.phase, self.setup.universe.clone());
        let Some(object) = xact.post_body.map(|id| universe.object(id)) else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        write_body(&universe, &object, &mut scratch);
        self.write_bytes(slot, phase, &scratch);
        self.scratch = scratch;
    }
}
