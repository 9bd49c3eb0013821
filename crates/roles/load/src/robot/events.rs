//! Timer events of a worker: launches, ends of intervals, and ticks.
//!
//! The timer wakes it for those, sockets wake it when bytes have come; either way one `&mut Worker` does all there is to do
//! ([`EventHandler`]), and nothing waits inside.

use std::sync::atomic::Ordering::Relaxed;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::coalesce::LowQuantile;
use assay_net::sockets::Readiness;
use assay_net::timer::{EventHandler, TimerKey};
use assay_workload::model::RobotIndex;
use slotmap::KeyData;

use super::backlog::InFlightBaseline;
use super::connection::ConnectionKey;
use super::recorder::RobotReport;
use super::schedule::{LaunchSchedule, ScheduleStep};
use super::worker::{BestEffort, RobotTimerEvent, Trigger, Worker};
use crate::monitor::{self, TICK_NS};
use crate::tally::merge::IntervalEnd;

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

/// Position of a worker in the schedule.
#[derive(Debug)]
pub struct ScheduleState {
    launches: LaunchSchedule,
    phase: u16,
    /// Share of best-effort robots alive; none: as the phase says.
    alive: Option<f64>,
    /// Instant at which what is under way is given up; none: the schedule is not over.
    drain_until_ns: Option<u64>,
    /// The last interval has ended.
    finished: bool,
    /// The timer that is set for the next launch or end of an interval.
    next: Option<TimerKey>,
    /// The first launches were made.
    begun: bool,
    ticks: u32,
    in_flight_baseline: InFlightBaseline,
}

impl ScheduleState {
    pub fn new(mut launches: LaunchSchedule, start_ns: u64) -> Self {
        launches.start_at(start_ns);
        Self {
            launches,
            phase: 0,
            alive: None,
            drain_until_ns: None,
            finished: false,
            next: None,
            begun: false,
            ticks: 0,
            in_flight_baseline: InFlightBaseline::default(),
        }
    }

    pub fn launches(&self) -> &LaunchSchedule {
        &self.launches
    }

    pub fn phase(&self) -> u16 {
        self.phase
    }

    /// Share of best-effort robots alive; none: as the phase says.
    pub fn alive(&self) -> Option<f64> {
        self.alive
    }

    /// True once nothing new is launched.
    pub fn is_draining(&self) -> bool {
        self.drain_until_ns.is_some()
    }
}

impl Worker {
    /// Sets the first timers. Call once, before the start.
    pub fn start_timers(&mut self) {
        self.wake_at(self.control.clock.start_ns);
        self.network.schedule(self.control.clock.start_ns, RobotTimerEvent::Tick);
    }

    /// Sets the timer for the next launch or end of an interval; there is only one.
    fn wake_at(&mut self, at_ns: u64) {
        let key = self.network.schedule(at_ns, RobotTimerEvent::Schedule);
        if let Some(earlier) = self.schedule.next.replace(key) {
            self.network.cancel(earlier);
        }
    }

    /// Ends all intervals, and makes all launches, that are due, in order.
    fn run_due(&mut self) {
        if !self.schedule.begun {
            self.schedule.begun = true;
            self.launch_in_windows();
            self.launch_all_best_effort();
        }
        let mut handled = 0;
        while !self.schedule.finished {
            let now_ns = monotonic_ns();
            self.apply_load_changes();
            match self.schedule.launches.step(now_ns, self.phase_end_ns()) {
                ScheduleStep::Wait(until_ns) => return self.wake_at(until_ns),
                ScheduleStep::EndInterval(at_ns) => self.end_interval(at_ns),
                ScheduleStep::Launch(launch, due_ns) => {
                    self.launch(&launch, due_ns, &Trigger::UNDELAYED);
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
        let Some(known) = self.schedule.launches.announced() else { return false };
        let changes = self.control.changes_after(known);
        let are_any = !changes.is_empty();
        changes.into_iter().for_each(|change| self.schedule.launches.announce(change));
        are_any
    }

    /// End of the current phase; none, once nothing new is launched.
    fn phase_end_ns(&self) -> Option<u64> {
        (!self.schedule.is_draining()).then(|| self.control.end_ns(self.phase()))
    }

    /// Ends the interval, and the phase if it ends here.
    fn end_interval(&mut self, at_ns: u64) {
        let phase = self.phase();
        let ends_phase = !self.schedule.is_draining() && at_ns >= self.control.end_ns(phase);
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
            self.schedule.drain_until_ns = Some(at_ns.max(monotonic_ns()) + drain_ns);
            self.send_snapshot(at_ns, true, launched, false);
            self.finish_if_drained();
            return;
        }
        self.send_snapshot(at_ns, true, launched, false);
        self.schedule.phase += 1;
        self.enter_phase();
        self.launch_all_best_effort();
    }

    /// Sends what was counted in the interval. `launched`: the requests that each best-effort robot launched in a phase
    /// that ends with it.
    fn send_snapshot(&mut self, at_ns: u64, ends_phase: bool, launched: Vec<(RobotIndex, u32)>, last: bool) {
        let clock = self.control.clock;
        let interval_end = IntervalEnd {
            from_us: clock.since_start_us(self.schedule.launches.last_interval_end_ns()),
            to_us: clock.since_start_us(at_ns),
            phase: self.phase(),
            ends_phase,
        };
        self.schedule.launches.begin_interval(at_ns);
        let thread = self.network.end_interval(monotonic_ns(), interval_end.phase);
        self.recorder.send_snapshot(interval_end, launched, thread, last);
    }

    /// Looks at itself, at the shared numbers, and now and then for what has timed out.
    fn tick(&mut self, at_ns: u64) {
        if self.schedule.finished {
            return;
        }
        let now_ns = monotonic_ns();
        for stall in self.network.stalls(now_ns) {
            self.recorder.report(RobotReport::Measured(stall));
        }
        self.network.measure_clock_offset();
        let next_ns = monitor::next_tick_ns(at_ns, now_ns) + TICK_NS;
        let in_flight = self.recorder.levels.in_flight;
        self.control.backlog.update(now_ns, next_ns, in_flight, &mut self.schedule.in_flight_baseline);
        self.network.schedule(monitor::next_tick_ns(at_ns, now_ns), RobotTimerEvent::Tick);
        // The end of a phase may have become known since the timer for the next end of an interval was set.
        let changes = self.apply_load_changes();
        let end_ns = self.phase_end_ns();
        if changes || self.schedule.launches.next_interval_end_ns(end_ns) <= now_ns + 2 * TICK_NS {
            let next_ns = self.schedule.launches.next_ns(now_ns, end_ns);
            self.wake_at(next_ns);
        }
        self.recorder.report_samples(self.schedule.phase, now_ns);
        let alive = self.control.alive();
        if alive != self.schedule.alive {
            self.schedule.alive = alive;
            self.launch_all_best_effort();
        }
        if self.control.is_frozen() {
            self.freeze();
        }
        self.schedule.ticks += 1;
        if self.schedule.ticks.is_multiple_of(TICKS_PER_SCAN) {
            self.scan(now_ns);
        }
        self.finish_if_drained();
    }

    /// Stops the growth of best-effort robots' working set. Repeating it changes nothing.
    fn freeze(&mut self) {
        self.robots.best_effort_mut().for_each(|(_, best_effort)| best_effort.stream.freeze());
    }

    /// Ends the last interval, after the schedule, once nothing is under way any more, or that has lasted too long.
    fn finish_if_drained(&mut self) {
        let Some(until_ns) = self.schedule.drain_until_ns else { return };
        let now_ns = monotonic_ns();
        if self.schedule.finished || (self.recorder.levels.in_flight > 0 && now_ns < until_ns) {
            return;
        }
        // Before connections are closed: what is under way counts as timed out.
        self.time_out_all(now_ns);
        self.close_all();
        self.schedule.finished = true;
        self.send_snapshot(now_ns, false, Vec::new(), true);
    }

    fn enter_phase(&mut self) {
        let phase = self.phase();
        let progress = self.progress();
        progress.ended.store(0, Relaxed);
        progress.fill_bytes.store(0, Relaxed);
        progress.phase.store(u64::from(phase), Relaxed);
        self.recorder.reset_sampler();
        for (_, best_effort) in self.robots.best_effort_mut() {
            best_effort.stream.enter_phase(&self.setup.universe, phase);
        }
    }

    /// Requests that each best-effort robot launched in the phase that ends.
    fn take_launch_counts(&mut self) -> Vec<(RobotIndex, u32)> {
        let take =
            |(index, best_effort): (_, &mut BestEffort)| (index, std::mem::take(&mut best_effort.launched));
        self.robots.best_effort_mut().map(take).collect()
    }
}

impl EventHandler<RobotTimerEvent> for Worker {
    fn on_timer(&mut self, at_ns: u64, event: RobotTimerEvent) {
        match event {
            RobotTimerEvent::Schedule => self.run_due(),
            RobotTimerEvent::Tick => self.tick(at_ns),
            RobotTimerEvent::BestEffort(robot) => self.launch_best_effort(robot, &Trigger::UNDELAYED),
            RobotTimerEvent::ContinueTimeout(connection_key) => self.on_continue_timeout(connection_key),
            RobotTimerEvent::Expiry(xact_key) => self.expire(xact_key),
        }
    }

    #[inline]
    fn on_ready(&mut self, key: u64, readiness: Readiness) -> u32 {
        self.serve_socket(ConnectionKey::from(KeyData::from_ffi(key)), readiness).max(1)
    }

    fn in_flight(&self) -> u64 {
        self.recorder.levels.in_flight
    }

    fn low_response_time(&self) -> LowQuantile {
        self.recorder.low_response_time
    }

    fn is_finished(&self) -> bool {
        self.schedule.finished
    }
}
