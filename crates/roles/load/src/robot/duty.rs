//! What a worker does when: the next launch, the next cut, the next tick.
//!
//! The timer wakes it for those, sockets wake it when bytes have come; either way one `&mut Crew` does all there is to do
//! ([`Duty`]), and nothing waits inside.

use std::sync::atomic::Ordering::Relaxed;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::arrival::Arrivals;
use assay_net::gather::Quick;
use assay_net::sockets::Readiness;
use assay_net::timer::Duty;
use assay_workload::model::RobotIndex;

use super::agenda::Step;
use super::crew::{Alarm, Crew, Report, Robot};
use crate::tally::merge::{Cut, Handover};
use crate::watch::{self, TICK_NS};

/// Every so many ticks, connections are looked through for time-outs.
const TICKS_PER_SCAN: u32 = 5;
/// Launches handled in a row before connections get their turn.
const LAUNCHES_IN_A_ROW: u32 = 64;
/// How long launches that are late already give way to them.
const BREATH_NS: u64 = 20_000;
/// Longest wait for what is under way after the last phase.
const LONGEST_DRAIN_NS: u64 = 10 * SECOND_NS;
/// The same after a stop.
const DRAIN_AFTER_STOP_NS: u64 = 2 * SECOND_NS;
impl Crew {
    /// Sets the first alarms. Call once, before the start.
    pub fn wind_up(&mut self) {
        self.wake_at(self.control.clock.start_ns);
        self.timer.schedule(self.control.clock.start_ns, Alarm::Tick);
    }

    /// Sets the alarm for the next launch or cut; there is only one.
    fn wake_at(&mut self, at_ns: u64) {
        let ticket = self.timer.schedule(at_ns, Alarm::Next);
        if let Some(earlier) = self.clockwork.next.replace(ticket) {
            self.timer.cancel(earlier);
        }
    }

    /// Makes all cuts and launches that are due, in order.
    fn catch_up(&mut self) {
        if !self.clockwork.begun {
            self.clockwork.begun = true;
            self.launch_in_windows();
            self.launch_all_closed();
        }
        let mut handled = 0;
        while !self.clockwork.finished {
            let now_ns = monotonic_ns();
            self.hear_changes();
            match self.agenda.step(now_ns, self.phase_end_ns()) {
                Step::Wait(until_ns) => return self.wake_at(until_ns),
                Step::Cut(at_ns) => self.cut(at_ns),
                Step::Launch(launch, due_ns) => {
                    self.launch(&launch, due_ns);
                    handled += 1;
                    if handled == LAUNCHES_IN_A_ROW {
                        return self.wake_at(now_ns + BREATH_NS);
                    }
                }
            }
        }
    }

    /// Takes in the changes of load that were announced since; true if there are any. To be called after the clock
    /// was read, and before anything is done with that.
    fn hear_changes(&mut self) -> bool {
        let Some(seen) = self.agenda.announced() else { return false };
        let changes = self.control.changes_after(seen);
        let are_any = !changes.is_empty();
        changes.into_iter().for_each(|change| self.agenda.announce(change));
        are_any
    }

    /// When the phase that is on ends; none, once nothing new is launched.
    fn phase_end_ns(&self) -> Option<u64> {
        (!self.is_draining()).then(|| self.control.end_ns(self.phase()))
    }

    /// Ends the interval, and the phase if it ends here.
    fn cut(&mut self, at_ns: u64) {
        let phase = self.phase();
        let ends_phase = !self.is_draining() && at_ns >= self.control.end_ns(phase);
        if !ends_phase {
            self.hand_over(at_ns, false, Vec::new(), false);
            return;
        }
        self.cancel_phase(phase, at_ns);
        let launched = self.take_launched();
        if self.control.is_over(phase, at_ns) {
            let longest_ns = if self.control.is_stopping() { DRAIN_AFTER_STOP_NS } else { LONGEST_DRAIN_NS };
            let drain_ns = longest_ns.min(self.setup.timeout.as_nanos() as u64);
            self.clockwork.drain_until_ns = Some(at_ns.max(monotonic_ns()) + drain_ns);
            self.hand_over(at_ns, true, launched, false);
            self.finish_if_drained();
            return;
        }
        self.hand_over(at_ns, true, launched, false);
        self.clockwork.phase += 1;
        self.enter_phase();
        self.launch_all_closed();
    }

    /// Hands over what was counted since the last cut.
    fn hand_over(&mut self, at_ns: u64, ends_phase: bool, launched: Vec<(RobotIndex, u32)>, last: bool) {
        self.sample_counts(true);
        let clock = self.control.clock;
        let cut = Cut {
            from_us: clock.since_start_us(self.agenda.last_cut_ns()),
            to_us: clock.since_start_us(at_ns),
            phase: self.phase(),
            ends_phase,
        };
        if let Some(log) = &mut self.log {
            let dropped = log.flush();
            if dropped > 0 {
                self.recorder(cut.phase).counts.dropped_samples += dropped;
            }
        }
        let handover = Handover {
            number: self.clockwork.cut_number,
            cut,
            phases: self.recorders.take(),
            levels: self.levels,
            notes: std::mem::take(&mut self.notes),
            launched,
            last,
        };
        self.clockwork.cut_number += 1;
        self.agenda.cut_made(at_ns);
        // First: with the last handover, everything has been said.
        self.hand_over_health(monotonic_ns());
        self.report(Report::Handover(Box::new(handover)));
    }

    /// Looks at itself, at the shared numbers, and now and then for what has timed out.
    fn tick(&mut self, at_ns: u64) {
        if self.clockwork.finished {
            return;
        }
        let now_ns = monotonic_ns();
        self.look_at_itself(now_ns);
        self.arrivals = Arrivals::measure();
        let next_ns = watch::next_tick_ns(at_ns, now_ns) + TICK_NS;
        self.control.aftermath.look(now_ns, next_ns, self.levels.in_flight, &mut self.usual);
        self.timer.schedule(watch::next_tick_ns(at_ns, now_ns), Alarm::Tick);
        // The end of a phase may have become known since the alarm for the next cut was set.
        let changes = self.hear_changes();
        let end_ns = self.phase_end_ns();
        if changes || self.agenda.next_cut_ns(end_ns) <= now_ns + 2 * TICK_NS {
            let next_ns = self.agenda.next_ns(now_ns, end_ns);
            self.wake_at(next_ns);
        }
        self.hand_over_sample(now_ns);
        let alive = self.control.alive();
        if alive != self.alive {
            self.alive = alive;
            self.launch_all_closed();
        }
        if self.control.is_frozen() {
            self.freeze();
        }
        self.clockwork.ticks += 1;
        if self.clockwork.ticks.is_multiple_of(TICKS_PER_SCAN) {
            self.scan(now_ns);
        }
        self.finish_if_drained();
    }

    /// The working set of best-effort robots stops growing. Repeating it changes nothing.
    fn freeze(&mut self) {
        for closed in self.robots.iter_mut().filter_map(|robot| robot.closed.as_mut()) {
            closed.stream.freeze();
        }
    }

    /// After the schedule: makes the last cut once nothing is under way any more, or that has lasted too long.
    fn finish_if_drained(&mut self) {
        let Some(until_ns) = self.clockwork.drain_until_ns else { return };
        let now_ns = monotonic_ns();
        if self.clockwork.finished || (self.levels.in_flight > 0 && now_ns < until_ns) {
            return;
        }
        self.time_out_all(now_ns);
        self.close_all();
        self.clockwork.finished = true;
        self.hand_over(now_ns, false, Vec::new(), true);
    }

    fn enter_phase(&mut self) {
        let phase = self.phase();
        self.progress(|progress| {
            progress.ended.store(0, Relaxed);
            progress.fill_bytes.store(0, Relaxed);
            progress.phase.store(u64::from(phase), Relaxed);
        });
        self.sample_anew();
        let universe = self.setup.universe.clone();
        for closed in self.robots.iter_mut().filter_map(|robot| robot.closed.as_mut()) {
            closed.stream.enter_phase(&universe, phase);
        }
    }

    /// Requests that each best-effort robot launched in the phase that ends.
    fn take_launched(&mut self) -> Vec<(RobotIndex, u32)> {
        let closed = |robot: &mut Robot| {
            let index = robot.index;
            robot.closed.as_mut().map(|closed| (index, std::mem::take(&mut closed.launched)))
        };
        self.robots.iter_mut().filter_map(closed).collect()
    }
}

impl Duty<Alarm> for Crew {
    fn ring(&mut self, at_ns: u64, alarm: Alarm) {
        match alarm {
            Alarm::Next => self.catch_up(),
            Alarm::Tick => self.tick(at_ns),
            Alarm::Robot(place) => self.launch_closed(place),
            Alarm::Body(slot, id) => self.wait_no_longer(slot, id),
            Alarm::Expiry(place) => self.expire(place),
        }
    }

    #[inline]
    fn ready(&mut self, key: u64, readiness: Readiness) -> u32 {
        self.responses_on_streams = 0;
        self.serve_socket(key, readiness);
        self.responses_on_streams.max(1)
    }

    fn under_way(&self) -> u64 {
        self.levels.in_flight
    }

    fn quick(&self) -> Quick {
        self.quick
    }

    fn is_over(&self) -> bool {
        self.clockwork.finished
    }
}
