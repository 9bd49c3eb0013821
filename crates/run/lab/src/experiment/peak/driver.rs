//! Driver of a search for the peak. Turns the events of a run into commands to the robots: settle, measure, rest, try the next rate.
//! Time is what the robots' intervals say; nothing here waits.

use crate::search::Search;
use assay_measurement::adapted::Decided;
use assay_measurement::belief::StepResult;
use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, PhaseEvent};
use assay_record::dir::RunDir;
use assay_record::event::{RunEvent, Stage};
use assay_record::peak::{Peak, Step, StepOutcome};
use assay_record::run::RunInfo;
use tokio::sync::mpsc;

use super::backlog;
use super::step::{RecentMeasurements, StepEvidence, step};
use super::{PeakEvent, PeakPlan, PromiseJudge, SEARCH_PHASE, load_command};

/// After a change of rate, this passes before anything counts.
const SETTLE_MS: u64 = 1500;
/// The last of that; the rate is what it will be, and what waits later does not wait yet.
const BEFORE_MS: u64 = 1000;
/// Near the limit, a step is so many times as long: what is little too much must have time to pile up.
const NEAR_TIMES: u64 = 3;
/// Time after the end of a second within which all reports on it come.
const GRACE_MS: u64 = 1000;
/// While the target recovers, it gets this share of the rate that it keeps …
const REST_SHARE: f64 = 0.5;
/// … or, as long as no rate is known that it keeps, this share of the one that it did not.
const FIRST_REST_SHARE: f64 = 0.1;
/// Seconds in a row without waiting requests after which a target has recovered …
const CALM_SECONDS: u32 = 2;
/// … but no longer than this.
const REST_MS: u64 = 60_000;
/// A second is calm when no more responses come in it than requests come due: nothing old is left. Chance is allowed for.
const CALM_SHARE: f64 = 1.2;
const CALM_CHANCE: f64 = 5.0;
/// Fewer requests in a step show nothing: a 99th percentile would be the slowest of them.
const FEWEST_REQUESTS: f64 = 100.0;
/// No search needs more steps, unless what it measures has no limit.
const MOST_STEPS: usize = 100;
/// An undecided step is repeated so often.
const MOST_REPEATS: u32 = 1;

/// Reason why a search ends that found no rate.
const NOTHING_KEPT: &str = "no rate was kept, down to where a step has hardly a hundred requests in it: it is not load that breaks \
                            this promise; promise what the target keeps when it is idle (of hits alone, say: `p99(hit)`)";

/// Addition to that where it is not decided whether the limit moved.
const MAY_HAVE_MOVED: &str =
    "the limit may have moved meanwhile, for which too few steps speak to tell from where";

/// Reason why a search ends that found the limit of something else.
const OWN_LIMIT: &str = "above, Assay or this machine was late, and may have been the reason that steps were not kept: the target may \
                         do more";

/// Reason why a search ends that found the limit.
const SETTLED: &str = "the limit was come to from above and from below until it was known within 4.5 %";

/// State of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
enum DriverState {
    Warming,
    /// A rate was ordered and has not taken effect.
    Ordered {
        rate_per_s: f64,
        then_rests: bool,
    },
    Measuring {
        rate_per_s: f64,
        from_ms: u64,
        to_ms: u64,
    },
    Resting {
        from_ms: u64,
        calm: u32,
    },
    Done,
}

pub(super) struct Driver {
    search: Search,
    first_per_s: f64,
    load_per_rate: f64,
    step_ms: u64,
    most_ms: u64,
    judge: PromiseJudge,
    events: mpsc::UnboundedSender<PeakEvent>,
    state: DriverState,
    recent: RecentMeasurements,
    info: RunInfo,
    run_dir: Option<std::path::PathBuf>,
    steps: Vec<Step>,
    /// Number of repetitions of the last step.
    repeats: u32,
    /// A step that is to be repeated: the rate that was ordered, and the one that was offered.
    again: Option<(f64, f64)>,
    ended: String,
}

impl Driver {
    pub(super) fn new(
        peak_plan: &PeakPlan,
        first_per_s: f64,
        load_per_rate: f64,
        judge: PromiseJudge,
        events: mpsc::UnboundedSender<PeakEvent>,
    ) -> Self {
        let step_ms = (peak_plan.step.as_millis() as u64).max(1000);
        let lowest_per_s = FEWEST_REQUESTS / (step_ms as f64 / 1000.0);
        Self {
            search: Search::new(first_per_s, lowest_per_s),
            first_per_s,
            load_per_rate,
            step_ms,
            most_ms: peak_plan.most.as_millis() as u64,
            judge,
            events,
            state: DriverState::Warming,
            recent: RecentMeasurements::default(),
            info: RunInfo::default(),
            run_dir: None,
            steps: Vec::new(),
            repeats: 0,
            again: None,
            ended: String::new(),
        }
    }

    /// Takes what the lab tells; gives what is to be done.
    pub(super) fn on_event(&mut self, event: RunEvent) -> Vec<Command> {
        if let RunEvent::Measured(measured) = &event {
            self.recent.keep(measured);
        }
        match event {
            RunEvent::Stage(Stage::Planned { run_dir }) => self.run_dir = Some(run_dir),
            RunEvent::Phase(PhaseEvent::Began { phase: 0, .. }) => {
                self.notify(PeakEvent::Warming { rate_per_s: self.first_per_s });
            }
            RunEvent::Phase(PhaseEvent::Began { phase: SEARCH_PHASE, at_ms }) => {
                // Who runs where is known by now.
                let dir = self.run_dir.as_ref().and_then(|path| RunDir::open(path).ok());
                self.info = dir.and_then(|dir| dir.read_info().ok()).unwrap_or_default();
                return self.next(at_ms);
            }
            RunEvent::Measured(Measured::Adapted(adapted)) if adapted.what == Decided::Load => {
                self.rate_applied(adapted.at_ms);
            }
            RunEvent::Measured(Measured::Robots(interval)) if interval.phase == SEARCH_PHASE => {
                return self.end_of_second(&interval);
            }
            _ => {}
        }
        Vec::new()
    }

    fn rate_applied(&mut self, at_ms: u64) {
        let DriverState::Ordered { rate_per_s, then_rests } = self.state else { return };
        self.state = if then_rests {
            DriverState::Resting { from_ms: at_ms, calm: 0 }
        } else {
            let from_ms = (at_ms + SETTLE_MS).next_multiple_of(1000);
            let times = if self.search.is_near() { NEAR_TIMES } else { 1 };
            DriverState::Measuring { rate_per_s, from_ms, to_ms: from_ms + times * self.step_ms }
        };
    }

    /// A second of the robots is over.
    fn end_of_second(&mut self, interval: &assay_measurement::interval::RobotInterval) -> Vec<Command> {
        let now_ms = interval.start_ms + interval.length_ms;
        match self.state {
            DriverState::Measuring { rate_per_s, from_ms, to_ms } if now_ms >= to_ms + GRACE_MS => {
                self.measured(rate_per_s, from_ms, to_ms, now_ms)
            }
            DriverState::Resting { from_ms, .. } if now_ms >= from_ms + REST_MS => self.next(now_ms),
            DriverState::Resting { from_ms, calm } if interval.start_ms >= from_ms => {
                let counts = &interval.counts;
                let old = counts.completed as f64 > counts.due as f64 * CALM_SHARE + CALM_CHANCE;
                let calm = if interval.levels.waiting == 0 && !old { calm + 1 } else { 0 };
                self.state = DriverState::Resting { from_ms, calm };
                if calm >= CALM_SECONDS { self.next(now_ms) } else { Vec::new() }
            }
            _ => Vec::new(),
        }
    }

    fn measured(&mut self, rate_per_s: f64, from_ms: u64, to_ms: u64, now_ms: u64) -> Vec<Command> {
        let mut run = self.info.clone();
        run.verdict.doubts = self.recent.doubts(&self.info, from_ms, to_ms);
        let (in_time, late_us) = self.recent.in_time(&run, from_ms, to_ms);
        let measured = StepEvidence {
            rate_per_s,
            from_ms,
            all: self.recent.window(&run, from_ms, to_ms),
            with_before: self.recent.window(&run, from_ms - BEFORE_MS, to_ms),
            in_time,
            late_us,
            most_late_us: self.recent.late_us(from_ms - BEFORE_MS, to_ms),
            doubts: &run.verdict.doubts,
            repeats: self.repeats,
        };
        let leaves_queue = backlog::leaves_queue(&measured.all);
        let step = step(&measured, &mut self.judge);
        // Chance moves what comes in a step; what came is what the target was given.
        let given_per_s = if step.offered_per_s > 0.0 { step.offered_per_s } else { rate_per_s };
        let outcome = step.outcome;
        match outcome {
            StepOutcome::Undecided if self.repeats < MOST_REPEATS => {
                self.again = Some((rate_per_s, given_per_s))
            }
            StepOutcome::Undecided => self.step_showed(given_per_s, StepResult::Doubtful),
            StepOutcome::Kept => self.step_showed(given_per_s, StepResult::Kept),
            StepOutcome::Broken => self.step_showed(given_per_s, StepResult::Broken),
        }
        self.steps.push(step.clone());
        self.notify(PeakEvent::Tried(step));
        // A queue that is left would make the next step look worse, and a queue that grows hides among those that wait already.
        let is_last = self.again.is_none() && self.search.next().is_none();
        if outcome == StepOutcome::Kept && !leaves_queue || is_last {
            return self.next(now_ms);
        }
        let kept = self.search.bracket().kept.map(|kept| REST_SHARE * kept.min(rate_per_s));
        let rest = kept.unwrap_or(FIRST_REST_SHARE * rate_per_s);
        self.state = DriverState::Ordered { rate_per_s: rest, then_rests: true };
        self.notify(PeakEvent::Resting { rate_per_s: rest });
        vec![load_command(rest, self.load_per_rate)]
    }

    /// A step and its repetitions have shown something.
    fn step_showed(&mut self, given_per_s: f64, result: StepResult) {
        self.search.observe(given_per_s, result);
        self.repeats = 0;
    }

    /// Tries the next rate, or the last one again, or ends.
    fn next(&mut self, now_ms: u64) -> Vec<Command> {
        self.recent.forget();
        let is_over = now_ms > self.most_ms || self.steps.len() >= MOST_STEPS;
        if let Some((rate_per_s, given_per_s)) = self.again.take() {
            if !is_over {
                self.repeats += 1;
                return self.order_rate(rate_per_s);
            }
            // There is no time to repeat it.
            self.step_showed(given_per_s, StepResult::Doubtful);
        }
        let next = match self.search.next() {
            _ if now_ms > self.most_ms => {
                self.ended = "the time was over".into();
                None
            }
            _ if self.steps.len() >= MOST_STEPS => {
                self.ended = format!("{MOST_STEPS} steps did not settle it");
                None
            }
            None => {
                self.ended = match self.search.bracket().kept {
                    _ if self.search.is_own_limit() => OWN_LIMIT.into(),
                    None => NOTHING_KEPT.into(),
                    Some(_) => SETTLED.into(),
                };
                None
            }
            rate => rate,
        };
        let Some(rate_per_s) = next else {
            self.state = DriverState::Done;
            return vec![Command::Stop];
        };
        self.order_rate(rate_per_s)
    }

    fn order_rate(&mut self, rate_per_s: f64) -> Vec<Command> {
        self.state = DriverState::Ordered { rate_per_s, then_rests: false };
        self.notify(PeakEvent::Trying { rate_per_s });
        vec![load_command(rate_per_s, self.load_per_rate)]
    }

    pub(super) fn result(self, stopped: bool) -> Peak {
        let bracket = self.search.bracket();
        // With results of one kind only, one of its ends says no more than where the search was willing to look.
        let is_own_limit = self.search.is_own_limit();
        let has_both = bracket.kept.is_some() && (bracket.broken.is_some() || is_own_limit);
        let range = has_both.then(|| self.search.range());
        let mut ended = match stopped && self.state != DriverState::Done {
            true => "it was stopped".into(),
            false if self.ended.is_empty() => "the run ended early".into(),
            false => self.ended,
        };
        if self.search.may_have_moved() {
            ended = format!("{ended}; {MAY_HAVE_MOVED}");
        }
        Peak {
            peak_per_s: bracket.kept,
            broken_per_s: bracket.broken,
            low_per_s: range.map(|(low, _)| low),
            high_per_s: range.map(|(_, high)| high).filter(|_| !is_own_limit),
            is_confirmed: self.search.is_confirmed() && !is_own_limit,
            is_own_limit,
            shift: self.search.shift(),
            ended,
            steps: self.steps,
            ..Peak::default()
        }
    }

    fn notify(&self, event: PeakEvent) {
        // Nobody looks: the result is what counts.
        let _ = self.events.send(event);
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::adapted::Adapted;
    use assay_measurement::histogram::Histogram;
    use assay_measurement::interval::RobotInterval;
    use assay_record::peak::Check;

    use super::super::MeasurementWindow;
    use super::*;

    /// A run at loads as they are ordered, against a target that queues what is more than its limit. Gives the result.
    fn simulate(limit_per_s: f64) -> (Peak, Vec<PeakEvent>) {
        let judge: PromiseJudge = Box::new(|window: &MeasurementWindow<'_>| {
            let longest =
                window.robots.iter().map(|interval| interval.times.miss.response.max_us).max().unwrap_or(0);
            let outcome = if longest < 50_000 { StepOutcome::Kept } else { StepOutcome::Broken };
            let seen = format!("{longest} µs");
            vec![Check { text: "max < 50ms".into(), seen, outcome, ..Check::default() }]
        });
        let (events, mut seen) = mpsc::unbounded_channel();
        let mut driver = Driver::new(&super::super::tests::peak_plan(), 200.0, 0.01, judge, events);
        let (mut rate, mut waiting, mut at_ms) = (200.0, 0.0_f64, 3000);
        let mut orders = driver.on_event(RunEvent::Phase(PhaseEvent::Began { phase: SEARCH_PHASE, at_ms }));
        while !orders.contains(&Command::Stop) && at_ms < 3_000_000 {
            for order in std::mem::take(&mut orders) {
                let Command::Load { factor } = order else { continue };
                rate = factor / 0.01;
                let adapted =
                    Adapted { at_ms: at_ms + 100, what: Decided::Load, phase: 1, ..Adapted::default() };
                orders.extend(driver.on_event(RunEvent::Measured(Measured::Adapted(Box::new(adapted)))));
            }
            let mut interval = RobotInterval {
                start_ms: at_ms,
                length_ms: 1000,
                phase: SEARCH_PHASE,
                ..RobotInterval::default()
            };
            let completed = (waiting + rate).min(limit_per_s);
            waiting += rate - completed;
            (interval.counts.due, interval.counts.completed) = (rate as u64, completed as u64);
            interval.levels.waiting = waiting as u64;
            let mut times = Histogram::new();
            times.record(1000 + (waiting / limit_per_s * 1e6) as u64);
            interval.times.miss.response = times.to_sparse();
            at_ms += 1000;
            orders.extend(driver.on_event(RunEvent::Measured(Measured::Robots(Box::new(interval)))));
        }
        let mut all = Vec::new();
        while let Ok(event) = seen.try_recv() {
            all.push(event);
        }
        (driver.result(false), all)
    }

    #[test]
    fn a_target_that_queues_is_found_and_left_to_recover_between_steps() {
        for limit in [370.0, 2000.0, 12_340.0, 900_000.0] {
            let (peak, events) = simulate(limit);
            let found = peak.peak_per_s.unwrap();
            assert!((found / limit - 1.0).abs() < 0.03, "{found} for {limit}");
            assert!(peak.is_confirmed && peak.broken_per_s.unwrap() >= found, "{peak:?}");
            let rests = events.iter().filter(|event| matches!(event, PeakEvent::Resting { .. })).count();
            let broken = peak.steps.iter().filter(|step| step.outcome == StepOutcome::Broken).count();
            assert!(rests >= broken - 1 && broken >= 3, "{rests} rests after {broken} broken steps");
            assert_eq!(peak.ended, SETTLED);
        }
    }

    #[test]
    fn a_promise_that_no_load_breaks_is_given_up_soon_and_said_to_be_one() {
        let (peak, _) = simulate(0.9);
        assert_eq!((peak.peak_per_s, peak.ended.as_str()), (None, NOTHING_KEPT));
        let tried: Vec<f64> = peak.steps.iter().map(|step| step.rate_per_s).collect();
        assert_eq!(tried, [200.0, 100.0, 50.0, 50.0], "once, something else may have been the reason");
    }

    #[test]
    fn a_search_that_is_cut_short_says_what_is_known() {
        let (events, _seen) = mpsc::unbounded_channel();
        let judge: PromiseJudge = Box::new(|_| Vec::new());
        let driver = Driver::new(&super::super::tests::peak_plan(), 200.0, 0.01, judge, events);
        let peak = driver.result(true);
        assert_eq!(
            (peak.peak_per_s, peak.is_confirmed, peak.ended.as_str()),
            (None, false, "it was stopped")
        );
    }
}
