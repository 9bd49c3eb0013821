//! Request bodies that wait for 100 (`Expect: 100-continue`). They are sent when it comes, or when nothing has come in time.
//!
//! A response that comes in the place of 100 is the response, and the body is not sent: the connection cannot be used again,
//! since the other side may still wait for it. After 417 the request is sent once more, without `Expect` (RFC 9110, 10.1.1).

use assay_measurement::counts::RobotCounts;

use super::crew::{Alarm, Crew};
use super::extras::Pause;
use super::request::write_body;
use assay_base::clock::monotonic_ns;

impl Crew {
    /// The head of a connection's request is on its way, and its body waits.
    pub fn await_invitation(&mut self, slot: u32) {
        let id = self.connections[slot as usize].id;
        if let Pause::Waiting { until_ns } = self.pause(slot) {
            self.timer.schedule(until_ns, Alarm::Body(slot, id));
        }
    }

    /// The body of a connection's request may come.
    pub fn accept_invitation(&mut self, slot: u32) {
        if self.stop_waiting(slot) {
            self.counts_of(slot).invited += 1;
            self.send_body(slot);
        }
    }

    /// 100 has not come in time, if this is still the request that the alarm was set for.
    pub fn wait_no_longer(&mut self, slot: u32, id: u64) {
        let is_late = |pause| matches!(pause, Pause::Waiting { until_ns } if until_ns <= monotonic_ns());
        if self.is_open((slot, id)) && is_late(self.pause(slot)) && self.stop_waiting(slot) {
            self.counts_of(slot).impatient += 1;
            self.send_body(slot);
        }
    }

    /// The body of a connection's request waits no more; false: it did not.
    pub fn stop_waiting(&mut self, slot: u32) -> bool {
        let place = self.connections[slot as usize].xact;
        let extras = self.xacts.get_mut(place as usize).and_then(|xact| xact.extras.as_mut());
        extras.is_some_and(|extras| std::mem::take(&mut extras.pause) != Pause::None)
    }

    fn pause(&self, slot: u32) -> Pause {
        let xact = self.xacts.get(self.connections[slot as usize].xact as usize);
        xact.and_then(|xact| xact.extras.as_ref()).map_or(Pause::None, |extras| extras.pause)
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
