//! Timer events of a worker: launches, ends of intervals, and ticks.
//!
//! The timer wakes it for those, sockets wake it when bytes have come; either way one `&mut Worker` does all there is to do
//! ([`EventHandler`]), and nothing waits inside.

use std::sync::atomic::Ordering::Relaxed;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::coalesce::LowQuantile;
use assay_net::rx_timestamps::ClockOffset;
use assay_net::sockets::Readiness;
use assay_net::timer::EventHandler;
use assay_workload::model::RobotIndex;

use super::schedule::ScheduleStep;
use super::worker::{Robot, RobotReport, RobotTimerEvent, Worker};
use crate::monitor::{self, TICK_NS};
use crate::tally::merge::{IntervalEnd, WorkerSnapshot};

/// Ticks from one scan of the connections for time-outs to the next.
const TICKS_PER_SCAN: u32 = 5;
/// Launches handled in a row before connections get their turn.
const LAUNCHES_IN_A_ROW: u32 = 64;
/// Pause between two rows of late launches, in which connections get their turn.
const BREATH_NS: u64 = 20_000;
/// Longest wait for what is under way after the last phase.
const LONGEST_DRAIN_NS: u64 = 10 * SECOND_NS;
/// Longest wait after a stop.
const DRAIN_AFTER_STOP_NS: u64 = 2 * SECOND_NS;
impl Worker {
    /// Sets the first timers. Call once, before the start.
    pub fn start_timers(&mut self) {
        self.wake_at(self.control.clock.start_ns);
        self.timer.schedule(self.control.clock.start_ns, RobotTimerEvent::Tick);
    }

    /// Sets the timer for the next launch or end of an interval; there is only one.
    fn wake_at(&mut self, at_ns: u64) {
        let ticket = self.timer.schedule(at_ns, RobotTimerEvent::Schedule);
        if let Some(earlier) = self.schedule_state.next.replace(ticket) {
            self.timer.cancel(earlier);
        }
    }

    /// Ends all intervals, and makes all launches, that are due, in order.
    fn run_due(&mut self) {
        if !self.schedule_state.begun {
            self.schedule_state.begun = true;
            self.launch_in_windows();
            self.launch_all_best_effort();
        }
        let mut handled = 0;
        while !self.schedule_state.finished {
            let now_ns = monotonic_ns();
            self.apply_load_changes();
            match self.schedule.step(now_ns, self.phase_end_ns()) {
                ScheduleStep::Wait(until_ns) => return self.wake_at(until_ns),
                ScheduleStep::EndInterval(at_ns) => self.end_interval(at_ns),
                ScheduleStep::Launch(launch, due_ns) => {
                    self.launch(&launch, due_ns);
                    handled += 1;
                    if handled == LAUNCHES_IN_A_ROW {
                        return self.wake_at(now_ns + BREATH_NS);
                    }
                }
            }
        }
    }

    /// Applies the load changes that were announced since; true if there are any. To be called after the clock
    /// was read, and before anything is done with that.
    fn apply_load_changes(&mut self) -> bool {
        let Some(known) = self.schedule.announced() else { return false };
        let changes = self.control.changes_after(known);
        let are_any = !changes.is_empty();
        changes.into_iter().for_each(|change| self.schedule.announce(change));
        are_any
    }

    /// End of the current phase; none, once nothing new is launched.
    fn phase_end_ns(&self) -> Option<u64> {
        (!self.is_draining()).then(|| self.control.end_ns(self.phase()))
    }

    /// Ends the interval, and the phase if it ends here.
    fn end_interval(&mut self, at_ns: u64) {
        let phase = self.phase();
        let ends_phase = !self.is_draining() && at_ns >= self.control.end_ns(phase);
        if !ends_phase {
            self.send_snapshot(at_ns, false, Vec::new(), false);
            return;
        }
        // Before the snapshot: what is cancelled counts for the phase that ends.
        self.cancel_phase(phase, at_ns);
        let launched = self.take_launch_counts();
        if self.control.is_over(phase, at_ns) {
            let longest_ns = if self.control.is_stopping() { DRAIN_AFTER_STOP_NS } else { LONGEST_DRAIN_NS };
            let drain_ns = longest_ns.min(self.setup.timeout.as_nanos() as u64);
            self.schedule_state.drain_until_ns = Some(at_ns.max(monotonic_ns()) + drain_ns);
            self.send_snapshot(at_ns, true, launched, false);
            self.finish_if_drained();
            return;
        }
        self.send_snapshot(at_ns, true, launched, false);
        self.schedule_state.phase += 1;
        self.enter_phase();
        self.launch_all_best_effort();
    }

    /// Sends what was counted in the interval.
    fn send_snapshot(&mut self, at_ns: u64, ends_phase: bool, launched: Vec<(RobotIndex, u32)>, last: bool) {
        self.sample_counts(true);
        let clock = self.control.clock;
        let interval_end = IntervalEnd {
            from_us: clock.since_start_us(self.schedule.last_interval_end_ns()),
            to_us: clock.since_start_us(at_ns),
            phase: self.phase(),
            ends_phase,
        };
        // Before the recorders are taken: rows that are dropped count in this interval.
        if let Some(log) = &mut self.log {
            let dropped = log.flush();
            if dropped > 0 {
                self.recorder(interval_end.phase).counts.dropped_samples += dropped;
            }
        }
        let snapshot = WorkerSnapshot {
            number: self.schedule_state.interval_number,
            interval_end,
            phases: self.recorders.take(),
            levels: self.levels,
            ideal_events: std::mem::take(&mut self.ideal_events),
            launched,
            last,
        };
        self.schedule_state.interval_number += 1;
        self.schedule.begin_interval(at_ns);
        // First: with the last snapshot, everything has been said.
        self.report_thread_interval(monotonic_ns());
        self.report(RobotReport::Snapshot(Box::new(snapshot)));
    }

    /// Looks at itself, at the shared numbers, and now and then for what has timed out.
    fn tick(&mut self, at_ns: u64) {
        if self.schedule_state.finished {
            return;
        }
        let now_ns = monotonic_ns();
        self.check_self(now_ns);
        // The kernel stamps by the wall clock, which may be slewed: its offset is measured again and again.
        self.arrivals = ClockOffset::measure();
        let next_ns = monitor::next_tick_ns(at_ns, now_ns) + TICK_NS;
        self.control.backlog.update(now_ns, next_ns, self.levels.in_flight, &mut self.in_flight_baseline);
        self.timer.schedule(monitor::next_tick_ns(at_ns, now_ns), RobotTimerEvent::Tick);
        // The end of a phase may have become known since the timer for the next end of an interval was set.
        let changes = self.apply_load_changes();
        let end_ns = self.phase_end_ns();
        if changes || self.schedule.next_interval_end_ns(end_ns) <= now_ns + 2 * TICK_NS {
            let next_ns = self.schedule.next_ns(now_ns, end_ns);
            self.wake_at(next_ns);
        }
        self.report_samples(now_ns);
        let alive = self.control.alive();
        if alive != self.alive {
            self.alive = alive;
            self.launch_all_best_effort();
        }
        if self.control.is_frozen() {
            self.freeze();
        }
        self.schedule_state.ticks += 1;
        if self.schedule_state.ticks.is_multiple_of(TICKS_PER_SCAN) {
            self.scan(now_ns);
        }
        self.finish_if_drained();
    }

    /// Stops the growth of best-effort robots' working set. Repeating it changes nothing.
    fn freeze(&mut self) {
        for best_effort in self.robots.iter_mut().filter_map(|robot| robot.best_effort.as_mut()) {
            best_effort.stream.freeze();
        }
    }

    /// Ends the last interval, after the schedule, once nothing is under way any more, or that has lasted too long.
    fn finish_if_drained(&mut self) {
        let Some(until_ns) = self.schedule_state.drain_until_ns else { return };
        let now_ns = monotonic_ns();
        if self.schedule_state.finished || (self.levels.in_flight > 0 && now_ns < until_ns) {
            return;
        }
        // Before connections are closed: what is under way counts as timed out.
        self.time_out_all(now_ns);
        self.close_all();
        self.schedule_state.finished = true;
        self.send_snapshot(now_ns, false, Vec::new(), true);
    }

    fn enter_phase(&mut self) {
        let phase = self.phase();
        self.progress(|progress| {
            progress.ended.store(0, Relaxed);
            progress.fill_bytes.store(0, Relaxed);
            progress.phase.store(u64::from(phase), Relaxed);
        });
        self.reset_sampler();
        let universe = self.setup.universe.clone();
        for best_effort in self.robots.iter_mut().filter_map(|robot| robot.best_effort.as_mut()) {
            best_effort.stream.enter_phase(&universe, phase);
        }
    }

    /// Requests that each best-effort robot launched in the phase that ends.
    fn take_launch_counts(&mut self) -> Vec<(RobotIndex, u32)> {
        let best_effort = |robot: &mut Robot| {
            let index = robot.index;
            robot.best_effort.as_mut().map(|best_effort| (index, std::mem::take(&mut best_effort.launched)))
        };
        self.robots.iter_mut().filter_map(best_effort).collect()
    }
}

impl EventHandler<RobotTimerEvent> for Worker {
    fn on_timer(&mut self, at_ns: u64, alarm: RobotTimerEvent) {
        match alarm {
            RobotTimerEvent::Schedule => self.run_due(),
            RobotTimerEvent::Tick => self.tick(at_ns),
            RobotTimerEvent::BestEffort(place) => self.launch_best_effort(place),
            RobotTimerEvent::ContinueTimeout(slot, id) => self.on_continue_timeout(slot, id),
            RobotTimerEvent::Expiry(place) => self.expire(place),
        }
    }

    #[inline]
    fn on_ready(&mut self, key: u64, readiness: Readiness) -> u32 {
        self.responses_on_streams = 0;
        self.serve_socket(key, readiness);
        self.responses_on_streams.max(1)
    }

    fn in_flight(&self) -> u64 {
        self.levels.in_flight
    }

    fn low_response_time(&self) -> LowQuantile {
        self.quick
    }

    fn is_finished(&self) -> bool {
        self.schedule_state.finished
    }
}
