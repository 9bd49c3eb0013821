//! Schedule of a worker: launches of the stream and ends of intervals, in the order of their instants. Pure: time is an
//! argument, and being late changes nothing but when a step is made.
//!
//! Where load adapts, changes are announced ahead. No more is then taken from the stream than comes due soon, so that
//! no launch has been taken that a change could still move.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use assay_workload::{AdaptiveClock, Launch, Stream, Timeline};

use assay_base::clock::SECOND_NS;

/// Time by which launches are taken from the stream before they are due, where load adapts. Changes are announced
/// further ahead than that.
pub const LOOKAHEAD_NS: u64 = 30_000_000;
/// Pause before the stream is read again where it had nothing though it should.
const AGAIN_NS: u64 = 1_000_000;
/// Time ahead within which a moment of the schedule is certain where load adapts: changes are announced that far ahead.
const CERTAIN_NS: u64 = 100_000_000;

/// Next action of a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScheduleStep {
    /// A launch that came due at this instant.
    Launch(Launch, u64),
    /// An interval ended at this instant.
    EndInterval(u64),
    /// Nothing, until this instant.
    Wait(u64),
}

/// A change of the load, the same for all workers. Times are nanoseconds since the start of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadChange {
    /// Instant from which the change holds.
    pub at_ns: u64,
    /// Clock of the schedule; up to this change as before.
    pub clock: AdaptiveClock,
    /// The schedule, up to this change as before; none: it stays as it is.
    pub timeline: Option<Arc<Timeline>>,
    /// End of each phase; none: not known yet.
    pub ends_ns: Vec<Option<u64>>,
}

/// Position of a worker in its stream and among its intervals.
#[derive(Debug)]
pub struct LaunchSchedule {
    stream: Stream,
    /// The next launch, once it has been drawn from the stream.
    next: Option<Launch>,
    start_ns: u64,
    /// End of the last interval (the start, before the first).
    last_interval_end_ns: u64,
    /// Some phase has load that adapts.
    pace: Option<AdaptivePace>,
}

/// Clock of the schedule, and the changes to come.
#[derive(Debug)]
struct AdaptivePace {
    clock: AdaptiveClock,
    ends_ns: Vec<Option<u64>>,
    changes: VecDeque<Arc<LoadChange>>,
    /// Changes announced so far.
    announced: usize,
}

impl LaunchSchedule {
    /// For a run whose start is not known yet. Where load `adapts`, changes may be announced.
    pub fn new(stream: Stream, adapts: bool) -> Self {
        let pace = adapts.then(|| AdaptivePace {
            clock: AdaptiveClock::new(),
            ends_ns: Vec::new(),
            changes: VecDeque::new(),
            announced: 0,
        });
        let mut schedule = Self { stream, next: None, start_ns: 0, last_interval_end_ns: 0, pace };
        // The first launch costs more than the others: it is found before the start, unless it could still change.
        if !adapts {
            schedule.next = schedule.stream.next();
        }
        schedule
    }

    pub fn start_at(&mut self, start_ns: u64) {
        (self.start_ns, self.last_interval_end_ns) = (start_ns, start_ns);
    }

    /// True while the working set grows: a launch that is due then, in the time of the schedule, may add an object to it.
    pub fn working_set_grows_at(&self, due: Duration) -> bool {
        self.stream.grows_at(due)
    }

    /// Number of changes announced; none: there will be no changes.
    pub fn announced(&self) -> Option<usize> {
        self.pace.as_ref().map(|pace| pace.announced)
    }

    /// Moment of the schedule, in nanoseconds, at an instant that is not later than the announced changes reach.
    pub fn schedule_ns(&self, now_ns: u64) -> u64 {
        let real_ns = now_ns.saturating_sub(self.start_ns);
        self.clock().map_or(real_ns, |clock| clock.schedule_ns(real_ns))
    }

    /// Instant at which to look whether the schedule has reached a moment, or sooner where a change of load could still
    /// move it.
    pub fn recheck_ns(&self, schedule_ns: u64, now_ns: u64) -> u64 {
        let Some(clock) = self.clock() else { return self.start_ns.saturating_add(schedule_ns) };
        let at_ns = clock.real_ns(schedule_ns).map_or(u64::MAX, |at_ns| self.start_ns.saturating_add(at_ns));
        at_ns.min(now_ns.saturating_add(CERTAIN_NS))
    }

    /// Clock of the schedule with all announced changes; none: schedule time is real time.
    fn clock(&self) -> Option<&AdaptiveClock> {
        let pace = self.pace.as_ref()?;
        Some(pace.changes.back().map_or(&pace.clock, |change| &change.clock))
    }

    /// Announces a change. It must lie further ahead than [`LOOKAHEAD_NS`], and behind those announced before.
    pub fn announce(&mut self, change: Arc<LoadChange>) {
        if let Some(pace) = &mut self.pace {
            pace.changes.push_back(change);
            pace.announced += 1;
        }
    }

    /// End of the last interval (the start, before the first).
    pub fn last_interval_end_ns(&self) -> u64 {
        self.last_interval_end_ns
    }

    /// Begins the next interval at the end of the last.
    pub fn begin_interval(&mut self, at_ns: u64) {
        self.last_interval_end_ns = at_ns;
    }

    /// End of the current interval: the next full second, or the end of the phase. None for `phase_end_ns`: the
    /// schedule is over.
    pub fn next_interval_end_ns(&self, phase_end_ns: Option<u64>) -> u64 {
        let (start_ns, last_ns) = (self.start_ns, self.last_interval_end_ns);
        let second_ns = start_ns + ((last_ns - start_ns) / SECOND_NS + 1) * SECOND_NS;
        phase_end_ns.map_or(second_ns, |end_ns| second_ns.min(end_ns.max(last_ns)))
    }

    /// Instant of the next action, as seen at `now_ns`. After the schedule nothing is launched.
    pub fn next_ns(&mut self, now_ns: u64, phase_end_ns: Option<u64>) -> u64 {
        self.next_interval_end_ns(phase_end_ns).min(self.next_launch_ns(now_ns, phase_end_ns))
    }

    /// Next action at `now_ns`: of all that has come due, the earliest. The end of an interval goes before a launch of
    /// the same instant, which belongs to the next interval.
    pub fn step(&mut self, now_ns: u64, phase_end_ns: Option<u64>) -> ScheduleStep {
        let cut_ns = self.next_interval_end_ns(phase_end_ns);
        let launch_ns = self.next_launch_ns(now_ns, phase_end_ns);
        let next_ns = cut_ns.min(launch_ns);
        if next_ns > now_ns {
            return ScheduleStep::Wait(next_ns);
        }
        match self.next.take_if(|_| launch_ns < cut_ns) {
            Some(launch) => ScheduleStep::Launch(launch, launch_ns),
            None => ScheduleStep::EndInterval(cut_ns),
        }
    }

    /// Due time of the next launch, or the instant at which to look for it again.
    #[inline]
    fn next_launch_ns(&mut self, now_ns: u64, phase_end_ns: Option<u64>) -> u64 {
        if phase_end_ns.is_none() {
            return u64::MAX;
        }
        if self.pace.is_some() {
            return self.next_adapted_ns(now_ns);
        }
        if self.next.is_none() {
            self.next = self.stream.next();
        }
        self.next.as_ref().map_or(u64::MAX, |launch| self.start_ns + nanoseconds(launch.due))
    }

    /// Due time of the next launch where load adapts.
    fn next_adapted_ns(&mut self, now_ns: u64) -> u64 {
        self.fill(now_ns);
        let Some(pace) = &self.pace else { return u64::MAX };
        if let Some(launch) = &self.next {
            // Where the clock stood still at the end of a phase, the next one's first moment was reached before.
            let begin_ns =
                usize::from(launch.phase).checked_sub(1).and_then(|last| *pace.ends_ns.get(last)?);
            let due_ns = pace.clock.real_ns(nanoseconds(launch.due)).unwrap_or(u64::MAX);
            return self.start_ns.saturating_add(due_ns.max(begin_ns.unwrap_or(0)));
        }
        // What comes next may be of another worker; by then it is looked for further.
        let due_ns = self.stream.due().and_then(|due| pace.clock.real_ns(nanoseconds(due)));
        let change_ns = pace.changes.front().map_or(u64::MAX, |change| change.at_ns);
        let wake_ns = self.start_ns.saturating_add(due_ns.unwrap_or(u64::MAX).min(change_ns));
        wake_ns.max(now_ns + AGAIN_NS)
    }

    /// Looks for the next launch as far ahead as may be, and makes the changes whose moment was reached.
    fn fill(&mut self, now_ns: u64) {
        while self.next.is_none() {
            let Some(pace) = &mut self.pace else { return };
            let now_ns = now_ns.saturating_sub(self.start_ns);
            let change_ns = pace.changes.front().map_or(u64::MAX, |change| change.at_ns);
            let until_ns = pace.clock.schedule_ns(change_ns.min(now_ns + LOOKAHEAD_NS));
            self.next = self.stream.next_before(Duration::from_nanos(until_ns));
            if self.next.is_some() || change_ns > now_ns {
                return;
            }
            let Some(change) = pace.changes.pop_front() else { return };
            pace.clock = change.clock.clone();
            pace.ends_ns.clone_from(&change.ends_ns);
            if let Some(timeline) = &change.timeline {
                self.stream.retime(timeline.clone());
            }
        }
    }
}

pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use assay_workload::model::{Goal, Pace, RobotAddress, Workload};
    use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

    use super::*;
    use crate::origin::testing;

    const START_NS: u64 = 77_000_000_123;

    /// Twenty robots that make 1,000 requests a second together, in two phases of so many seconds.
    fn thousand_a_second(seconds: [u64; 2], recurrence: f64) -> Workload {
        let mut workload = testing::workload();
        workload.servers[0].direct_access = assay_workload::model::Weighted::one(0);
        workload.origins.truncate(1);
        let robots = &mut workload.robots[0];
        robots.addresses = vec![RobotAddress { host: "127.0.0.1".into(), count: 20 }];
        robots.origins = assay_workload::model::Weighted::one(0);
        robots.pace = Pace::Rate { per_second: 50.0 };
        robots.recurrence = recurrence;
        for (phase, seconds) in workload.schedule.phases.iter_mut().zip(seconds) {
            phase.goal = Goal { duration: Some(Duration::from_secs(seconds)), ..Goal::default() };
        }
        workload
    }

    struct Schedule {
        universe: Arc<Universe>,
        timeline: Arc<Timeline>,
    }

    impl Schedule {
        fn new(workload: Workload) -> Self {
            let timeline = Timeline::new(&workload).expect("is valid");
            let universe = Universe::new(Arc::new(workload), 11, 1, UniverseOptions::default());
            Self { universe: Arc::new(universe.expect("is valid")), timeline: Arc::new(timeline) }
        }

        fn ends_ns(&self) -> Vec<u64> {
            let end = |end: Option<Duration>| START_NS + end.expect("is known").as_nanos() as u64;
            self.timeline.phases().iter().map(|span| end(span.end)).collect()
        }

        fn stream(&self, slice: Slice) -> Stream {
            Stream::new(self.universe.clone(), self.timeline.clone(), slice)
        }

        /// Launches of one worker in each phase, and the sum of who that was, when its clock jumps about: mostly it is
        /// a little late, now and then it stands still for a third of a second.
        fn walk(&self, slice: Slice) -> (Vec<u64>, u64) {
            let ends_ns = self.ends_ns();
            let mut schedule = LaunchSchedule::new(self.stream(slice), false);
            schedule.start_at(START_NS);
            let (mut now_ns, mut phase, mut wakings) = (START_NS, 0, 0u64);
            let (mut due, mut sum) = (vec![0; ends_ns.len()], 0u64);
            while phase < ends_ns.len() {
                match schedule.step(now_ns, Some(ends_ns[phase])) {
                    ScheduleStep::Wait(until_ns) => {
                        assert!(until_ns > now_ns);
                        wakings += 1;
                        let late_ns =
                            if wakings.is_multiple_of(5_003) { 333_000_000 } else { wakings % 180_000 };
                        now_ns = until_ns + late_ns;
                    }
                    ScheduleStep::Launch(launch, due_ns) => {
                        assert_eq!(usize::from(launch.phase), phase, "no launch is made in another phase");
                        assert!(due_ns <= now_ns, "never early");
                        due[phase] += 1;
                        sum = sum.wrapping_add(identity(&launch));
                    }
                    ScheduleStep::EndInterval(at_ns) => {
                        assert!(at_ns <= now_ns && at_ns > schedule.last_interval_end_ns());
                        schedule.begin_interval(at_ns);
                        phase += usize::from(at_ns == ends_ns[phase]);
                    }
                }
            }
            (due, sum)
        }

        /// Launches of so many workers together.
        fn walk_all(&self, count: u32) -> (Vec<u64>, u64) {
            let mut all = (vec![0; self.timeline.phases().len()], 0u64);
            for index in 0..count {
                let (due, sum) = self.walk(Slice::new(index, count));
                all.0.iter_mut().zip(due).for_each(|(all, due)| *all += due);
                all.1 = all.1.wrapping_add(sum);
            }
            all
        }
    }

    fn identity(launch: &Launch) -> u64 {
        let who = u64::from(launch.robot) << 40 | launch.number;
        (who ^ launch.object.serial.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn in_ten_minutes_at_a_thousand_a_second_the_requests_due_are_the_streams_to_the_request() {
        let schedule = Schedule::new(thousand_a_second([234, 366], 0.0));
        let mut expected = vec![0; 2];
        schedule.stream(Slice::ALL).for_each(|launch| expected[usize::from(launch.phase)] += 1);
        for (count, mean) in expected.iter().zip([234_000.0, 366_000.0]) {
            let deviations = (*count as f64 - mean) / f64::sqrt(mean);
            assert!(
                deviations.abs() < 4.75,
                "{count} requests are a Poisson count of mean {mean} by chance of 10^-6"
            );
        }
        let one = schedule.walk_all(1);
        assert_eq!(one.0, expected);
        for workers in [2, 7] {
            assert_eq!(schedule.walk_all(workers), one, "{workers} workers");
        }
    }

    #[test]
    fn revisits_come_due_as_the_stream_says_however_late_the_worker_is() {
        let schedule = Schedule::new(thousand_a_second([100, 50], 0.7));
        let mut expected = (vec![0; 2], 0u64);
        for launch in schedule.stream(Slice::ALL) {
            expected.0[usize::from(launch.phase)] += 1;
            expected.1 = expected.1.wrapping_add(identity(&launch));
        }
        assert!((148_000..152_000).contains(&expected.0.iter().sum::<u64>()), "{expected:?}");
        for workers in [1, 2, 7] {
            assert_eq!(schedule.walk_all(workers), expected, "{workers} workers");
        }
    }

    #[test]
    fn where_load_adapts_the_schedule_is_where_the_announced_changes_say() {
        let schedule = Schedule::new(thousand_a_second([10, 5], 0.0));
        let at = |real_ms: u64| START_NS + real_ms * 1_000_000;
        let ms = |schedule_ms: u64| schedule_ms * 1_000_000;
        let mut plain = LaunchSchedule::new(schedule.stream(Slice::ALL), false);
        let mut schedule = LaunchSchedule::new(schedule.stream(Slice::ALL), true);
        for schedule in [&mut plain, &mut schedule] {
            schedule.start_at(START_NS);
            assert_eq!((schedule.schedule_ns(at(700)), schedule.schedule_ns(0)), (ms(700), 0));
            assert_eq!(schedule.recheck_ns(ms(50), at(10)), at(50));
        }
        assert_eq!(
            (plain.recheck_ns(ms(4_000), at(10)), plain.recheck_ns(u64::MAX, at(10))),
            (at(4_000), u64::MAX)
        );
        assert_eq!(schedule.recheck_ns(ms(4_000), at(10)), at(110), "who knows what is decided until then");
        // Half the load from one second on, none from three seconds on.
        let mut clock = AdaptiveClock::new();
        for (at_ms, multiple) in [(1_000, 0.5), (3_000, 0.0)] {
            clock.change(ms(at_ms), multiple);
            let change =
                LoadChange { at_ns: ms(at_ms), clock: clock.clone(), timeline: None, ends_ns: vec![None; 2] };
            schedule.announce(Arc::new(change));
        }
        for is_made in [false, true] {
            for (real_ms, schedule_ms) in [(999, 999), (1_000, 1_000), (2_000, 1_500), (4_000, 2_000)] {
                assert_eq!(schedule.schedule_ns(at(real_ms)), ms(schedule_ms), "{real_ms} ms, {is_made}");
            }
            assert_eq!(schedule.recheck_ns(ms(1_500), at(1_950)), at(2_000));
            assert_eq!(schedule.recheck_ns(ms(2_500), at(3_500)), at(3_600), "never, as things are");
            while let ScheduleStep::Launch(..) = schedule.step(at(3_500), Some(u64::MAX)) {}
            schedule.begin_interval(at(3_000));
            while let ScheduleStep::Launch(..) = schedule.step(at(3_500), Some(u64::MAX)) {}
        }
    }

    #[test]
    fn after_the_schedule_there_are_cuts_only() {
        let schedule = Schedule::new(thousand_a_second([1, 1], 0.0));
        let mut schedule = LaunchSchedule::new(schedule.stream(Slice::ALL), false);
        schedule.start_at(START_NS);
        let now_ns = START_NS + SECOND_NS / 2;
        assert_eq!(schedule.step(now_ns, None), ScheduleStep::Wait(START_NS + SECOND_NS));
        assert_eq!(
            schedule.step(now_ns, Some(START_NS)),
            ScheduleStep::EndInterval(START_NS),
            "a phase may end where it began"
        );
        assert!(matches!(schedule.step(now_ns, Some(now_ns)), ScheduleStep::Launch(..)));
    }
}
