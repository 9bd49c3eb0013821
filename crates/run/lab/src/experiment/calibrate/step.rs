//! Figures of one short run at a steady load. Listens to its events, and puts the flat phase into figures.

use std::time::Duration;

use crate::checks::machines::MachineLoad;
use crate::placement::Placement;
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::health::CalibrationStep;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;
use assay_record::event::RunEvent;
use assay_record::run::RunVerdict;

use super::flat::FLAT_PHASE;

/// A load counts as carried when so much of what came due was completed.
const COMPLETED_SHARE: f64 = 0.99;
/// A role that had so much of its processors was the limit of best-effort robots.
const BUSY_SHARE: f64 = 0.9;
/// Name of the limit of a step that is nothing of Assay's or the machine's.
pub const WORKLOAD: &str = "workload";

/// Everything that was heard of the flat phase.
#[derive(Debug, Default)]
pub struct StepObserver {
    pub processors: Processors,
    began_ms: Option<u64>,
    ended_ms: Option<u64>,
    due: u64,
    not_reached: u64,
    completed: u64,
    body_bytes: u64,
    lateness: Histogram,
    host: Vec<HostInterval>,
}

/// The figures of the flat phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepFigures {
    /// Requests that could be sent, per second.
    pub offered_per_s: f64,
    /// Requests completed per second.
    pub completed_per_s: f64,
    /// Body bytes received per second.
    pub body_bytes_per_s: f64,
    /// 99th percentile of lateness, in microseconds.
    pub lateness_p99_us: u64,
    /// Processors that robots used.
    pub robots_cpus: f64,
    /// Processors that origins used.
    pub origins_cpus: f64,
    /// Processors that robots and origins used, or were ready to use and did not get.
    pub wanted_cpus: f64,
}

/// Reason why a load was not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadLimit {
    /// A name of [`Reason`], or [`WORKLOAD`].
    pub name: String,
    pub seen: String,
    /// Whether it is the machine's own restlessness, and another attempt may go better.
    pub is_noise: bool,
}

impl StepFigures {
    /// The same in the long run, where `rate` comes due: in a short phase, what its last pages led to is missing.
    pub fn at_rate(&self, rate: f64) -> Self {
        let carried = if self.offered_per_s > 0.0 { self.completed_per_s / self.offered_per_s } else { 0.0 };
        let completed_per_s = rate * carried.min(1.0);
        let factor = if self.completed_per_s > 0.0 { completed_per_s / self.completed_per_s } else { 0.0 };
        Self {
            offered_per_s: rate,
            completed_per_s,
            body_bytes_per_s: self.body_bytes_per_s * factor,
            robots_cpus: self.robots_cpus * factor,
            origins_cpus: self.origins_cpus * factor,
            wanted_cpus: self.wanted_cpus * factor,
            lateness_p99_us: self.lateness_p99_us,
        }
    }
}

impl StepObserver {
    /// Of a run on these.
    pub fn of(processors: Processors) -> Self {
        Self { processors, ..Self::default() }
    }

    /// Takes what the lab tells.
    pub fn take(&mut self, event: RunEvent) {
        match event {
            RunEvent::Measured(Measured::Robots(interval)) if interval.phase == FLAT_PHASE => {
                self.robots(&interval)
            }
            RunEvent::Measured(Measured::Host(interval)) => self.host.push(*interval),
            RunEvent::Phase(PhaseEvent::Began { phase: FLAT_PHASE, at_ms }) => self.began_ms = Some(at_ms),
            RunEvent::Phase(PhaseEvent::Ended { phase: FLAT_PHASE, at_ms, .. }) => {
                self.ended_ms = Some(at_ms)
            }
            _ => {}
        }
    }

    fn robots(&mut self, interval: &RobotInterval) {
        self.due += interval.counts.due;
        self.not_reached += interval.counts.not_reached;
        self.completed += interval.counts.completed;
        self.body_bytes += interval.counts.body_bytes_in;
        self.lateness.merge_sparse(&interval.times.lateness);
    }

    /// The figures; none when there was no flat phase.
    pub fn figures(&self) -> Option<StepFigures> {
        let (began_ms, ended_ms) = (self.began_ms?, self.ended_ms?);
        let length_s = Duration::from_millis(ended_ms.checked_sub(began_ms)?).as_secs_f64();
        if length_s <= 0.0 {
            return None;
        }
        // Objects that no page led to were never requested: late pages are at fault, not the clients.
        let offered = self.due.saturating_sub(self.not_reached);
        let MachineCounts { robots, origins } = self.processors.machines;
        let cpus = |role, machines: usize, of| self.cpus(role, began_ms, ended_ms, of) * machines as f64;
        Some(StepFigures {
            offered_per_s: offered as f64 / length_s,
            completed_per_s: self.completed as f64 / length_s,
            body_bytes_per_s: self.body_bytes as f64 / length_s,
            lateness_p99_us: self.lateness.quantile_us(0.99).unwrap_or(0),
            robots_cpus: cpus("robots", robots, |i| i.cpu_us),
            origins_cpus: cpus("origins", origins, |i| i.cpu_us),
            wanted_cpus: [("robots", robots), ("origins", origins)]
                .map(|(role, machines)| cpus(role, machines, |i| i.cpu_us + i.run_delay_us))
                .iter()
                .sum(),
        })
    }

    /// Processors used by a role on each of its machines, on average, in the intervals that lie within the phase, or touch it if none does.
    fn cpus(&self, role: &str, began_ms: u64, ended_ms: u64, of: fn(&HostInterval) -> u64) -> f64 {
        let of_role =
            || self.host.iter().filter(move |interval| interval.role == role && interval.length_ms > 0);
        let end = |interval: &HostInterval| interval.start_ms + interval.length_ms;
        let within = of_role().filter(|i| i.start_ms + 100 >= began_ms && end(i) <= ended_ms + 100);
        let touching = of_role().filter(|i| i.start_ms < ended_ms && end(i) > began_ms);
        let sum =
            |(cpu_us, length_ms): (u64, u64), i: &HostInterval| (cpu_us + of(i), length_ms + i.length_ms);
        let (cpu_us, length_ms) = match within.fold((0, 0), sum) {
            (_, 0) => touching.fold((0, 0), sum),
            found => found,
        };
        if length_ms == 0 { 0.0 } else { cpu_us as f64 / (length_ms as f64 * 1e3) }
    }
}

/// The worst doubt that touches the flat phase and says that the load was too high. What is only worth knowing is
/// mostly the machine's and not the load's. But lateness is what a target with fast responses would be judged by, however
/// long these origins think; unless a bare timer was no better.
fn worst(verdict: &RunVerdict) -> Option<&Doubt> {
    let touches = |doubt: &&Doubt| doubt.phases.is_empty() || doubt.phases.contains(&FLAT_PHASE);
    let unquiet = verdict.doubts.iter().any(|doubt| doubt.reason == Reason::Unquiet);
    let counts = |doubt: &&Doubt| doubt.serious || (doubt.reason == Reason::Late && !unquiet);
    verdict.doubts.iter().filter(counts).find(touches)
}

/// Processors of robots and origins.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Processors {
    pub robots: usize,
    pub origins: usize,
    /// Whether they are the same ones.
    pub shared: bool,
    /// Of how many machines they are.
    pub machines: MachineCounts,
}

/// Number of machines with robots, and of those with origins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineCounts {
    pub robots: usize,
    pub origins: usize,
}

impl Default for MachineCounts {
    fn default() -> Self {
        Self { robots: 1, origins: 1 }
    }
}

impl Processors {
    /// Processors of this machine that a placement gives.
    pub fn here(placement: &Placement, available: &[u32]) -> Self {
        let on = |cpus: &[u32]| if cpus.is_empty() { available.len() } else { cpus.len() };
        let Placement { robots, origins, .. } = placement;
        Self {
            robots: on(robots),
            origins: on(origins),
            shared: robots == origins,
            machines: MachineCounts::default(),
        }
    }

    /// Processors of machines of a fleet.
    pub fn of(carriers: &[MachineLoad]) -> Self {
        let sum = |part: fn(&&MachineLoad) -> bool| {
            let cpus = carriers.iter().filter(part).map(|carrier| carrier.supply.shared_cpus);
            cpus.fold((0, 0), |(machines, sum), cpus| {
                (machines + 1, sum + usize::try_from(cpus).unwrap_or(0))
            })
        };
        let (with_robots, robots) = sum(|carrier| carrier.robots.is_some());
        let (with_origins, origins) = sum(|carrier| carrier.origins.is_some());
        let shared = carriers.iter().all(|carrier| carrier.robots.is_some() == carrier.origins.is_some());
        Self {
            robots,
            origins,
            shared,
            machines: MachineCounts { robots: with_robots, origins: with_origins },
        }
    }

    /// Usage of them by role, and the largest share.
    fn used(self, figures: &StepFigures) -> (String, f64) {
        let share = |used: f64, cpus: usize| used / cpus.max(1) as f64;
        if self.shared {
            let both = share(figures.robots_cpus + figures.origins_cpus, self.robots);
            let words =
                format!("robots and origins used {:.0} % of the processors that they share", both * 100.0);
            return (words, both);
        }
        let robots = share(figures.robots_cpus, self.robots);
        let origins = share(figures.origins_cpus, self.origins);
        let (of_robots, of_origins) = (robots * 100.0, origins * 100.0);
        (
            format!("robots used {of_robots:.0} % and origins {of_origins:.0} % of their processors"),
            robots.max(origins),
        )
    }

    fn wanted(self, figures: &StepFigures) -> f64 {
        let all = if self.shared { self.robots } else { self.robots + self.origins };
        figures.wanted_cpus / all.max(1) as f64
    }

    /// Limit where no doubt names it: processors that were used up, processors that others had, or neither.
    fn limit(self, figures: &StepFigures, otherwise: &str) -> LoadLimit {
        let (words, used) = self.used(figures);
        let (name, seen) = if used >= BUSY_SHARE {
            (Reason::Saturated.name(), words)
        } else if self.wanted(figures) >= BUSY_SHARE {
            (Reason::Starved.name(), format!("{words}, and waited for the rest: others had it"))
        } else {
            (WORKLOAD, format!("{words}: {otherwise}"))
        };
        LoadLimit { name: name.into(), seen, is_noise: false }
    }
}

/// Reason why a load was not carried; none: it was.
pub fn limit(verdict: &RunVerdict, figures: &StepFigures, processors: Processors) -> Option<LoadLimit> {
    if let Some(doubt) = worst(verdict) {
        return Some(of_doubt(doubt));
    }
    let share =
        if figures.offered_per_s > 0.0 { figures.completed_per_s / figures.offered_per_s } else { 0.0 };
    (share < COMPLETED_SHARE).then(|| {
        let otherwise =
            "robots had no more connections to send requests on (open_conn_lmt), or think times are long";
        let LoadLimit { name, seen, is_noise } = processors.limit(figures, otherwise);
        let seen = format!("{:.1} % of what was due was completed in time; {seen}", share * 100.0);
        LoadLimit { name, seen, is_noise }
    })
}

/// Limit that kept best-effort robots from a higher rate.
pub fn best_effort_limit(verdict: &RunVerdict, figures: &StepFigures, processors: Processors) -> LoadLimit {
    match worst(verdict) {
        Some(doubt) => of_doubt(doubt),
        None => processors.limit(figures, "there are too few robots, or connections of theirs, to use more"),
    }
}

fn of_doubt(doubt: &Doubt) -> LoadLimit {
    let is_noise = matches!(doubt.reason, Reason::Stolen | Reason::Unquiet);
    let mut seen = doubt.seen.clone();
    if !doubt.serious {
        seen += "; where responses are fast, 1 ms is too much";
    }
    LoadLimit { name: doubt.reason.name().into(), seen, is_noise }
}

/// A line of the protocol.
pub fn line(load: f64, figures: &StepFigures, limit: Option<&LoadLimit>) -> CalibrationStep {
    CalibrationStep {
        load,
        offered_per_s: figures.offered_per_s,
        completed_per_s: figures.completed_per_s,
        lateness_p99_us: figures.lateness_p99_us,
        kept: limit.is_none(),
        why: limit.map(|limit| format!("{}: {}", limit.name, limit.seen)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::counts::RobotCounts;

    use super::*;

    const APART: Processors = Processors {
        robots: 1,
        origins: 1,
        shared: false,
        machines: MachineCounts { robots: 1, origins: 1 },
    };

    fn robots(phase: u16, due: u64, completed: u64, not_reached: u64) -> RunEvent {
        let counts = RobotCounts {
            due,
            completed,
            not_reached,
            body_bytes_in: completed * 10,
            ..RobotCounts::default()
        };
        RunEvent::Measured(Measured::Robots(Box::new(RobotInterval {
            phase,
            counts,
            ..RobotInterval::default()
        })))
    }

    fn host(role: &str, start_ms: u64, cpu_us: u64) -> RunEvent {
        RunEvent::Measured(Measured::Host(Box::new(HostInterval {
            role: role.into(),
            start_ms,
            length_ms: 1000,
            cpu_us,
            ..HostInterval::default()
        })))
    }

    fn heard(events: Vec<RunEvent>) -> StepFigures {
        let mut heard = StepObserver::default();
        heard.take(RunEvent::Phase(PhaseEvent::Began { phase: FLAT_PHASE, at_ms: 1000 }));
        events.into_iter().for_each(|event| heard.take(event));
        heard.take(RunEvent::Phase(PhaseEvent::Ended {
            phase: FLAT_PHASE,
            at_ms: 3000,
            launched: Vec::new(),
        }));
        heard.figures().unwrap()
    }

    #[test]
    fn only_the_flat_phase_counts() {
        let figures = heard(vec![
            robots(0, 999, 999, 0),
            robots(FLAT_PHASE, 220, 200, 20),
            host("robots", 0, 999_999),
            host("robots", 1010, 300_000),
            host("robots", 2010, 500_000),
            host("origins", 1010, 100_000),
        ]);
        assert_eq!((figures.offered_per_s, figures.completed_per_s), (100.0, 100.0));
        assert_eq!((figures.body_bytes_per_s, figures.robots_cpus, figures.origins_cpus), (1000.0, 0.4, 0.1));
        assert_eq!(StepObserver::default().figures(), None);
    }

    #[test]
    fn a_load_is_carried_when_nothing_serious_touches_it_and_all_was_completed() {
        let figures = heard(vec![robots(FLAT_PHASE, 1000, 995, 0)]);
        let doubt = |phases: Vec<u16>| Doubt { phases, ..Doubt::serious(Reason::Starved, "x") };
        let verdict = |doubts: Vec<Doubt>| RunVerdict { doubts, ..RunVerdict::default() };
        let limit = |verdict: &RunVerdict, figures: &StepFigures| limit(verdict, figures, APART);
        assert_eq!(limit(&verdict(vec![]), &figures), None);
        assert_eq!(limit(&verdict(vec![doubt(vec![0])]), &figures), None, "the rise does not count");
        let known = |reason| limit(&verdict(vec![Doubt::worth_knowing(reason, "x")]), &figures);
        assert_eq!((known(Reason::Stolen), known(Reason::NearLimit)), (None, None));
        assert_eq!(known(Reason::Late).unwrap().name, "late", "fast responses would be judged by it");
        let unquiet = [Reason::Late, Reason::Unquiet].map(|reason| Doubt::worth_knowing(reason, "x"));
        assert_eq!(limit(&verdict(unquiet.to_vec()), &figures), None, "a bare timer was as late");
        for phases in [vec![], vec![FLAT_PHASE]] {
            assert_eq!(limit(&verdict(vec![doubt(phases)]), &figures).unwrap().name, "starved");
        }
        assert!(limit(&verdict(vec![Doubt::serious(Reason::Stolen, "x")]), &figures).unwrap().is_noise);
        let slow = heard(vec![robots(FLAT_PHASE, 1000, 900, 0)]);
        assert_eq!(limit(&verdict(vec![]), &slow).unwrap().name, WORKLOAD);
    }

    #[test]
    fn best_effort_robots_are_limited_by_processors_or_by_their_number() {
        let figures = StepFigures { robots_cpus: 0.95, origins_cpus: 0.5, ..StepFigures::default() };
        let name = |cpus, shared| {
            let processors = Processors { robots: cpus, origins: cpus, shared, ..APART };
            best_effort_limit(&RunVerdict::default(), &figures, processors).name
        };
        assert_eq!((name(1, false), name(2, false)), ("saturated".into(), WORKLOAD.into()));
        assert_eq!((name(1, true), name(2, true)), ("saturated".into(), WORKLOAD.into()));
    }

    #[test]
    fn a_load_that_others_left_no_processor_for_is_not_called_the_workloads() {
        let figures = StepFigures {
            offered_per_s: 100.0,
            completed_per_s: 50.0,
            robots_cpus: 0.3,
            origins_cpus: 0.2,
            wanted_cpus: 1.9,
            ..StepFigures::default()
        };
        let found = limit(&RunVerdict::default(), &figures, APART).unwrap();
        assert_eq!(found.name, "starved");
        assert!(found.seen.starts_with("50.0 % of what was due was completed"), "{found:?}");
    }

    #[test]
    fn what_a_short_phase_misses_does_not_count() {
        let short = heard(vec![robots(FLAT_PHASE, 200, 160, 40), host("robots", 1010, 80_000)]);
        let long = short.at_rate(100.0);
        assert_eq!((short.completed_per_s, long.completed_per_s), (80.0, 100.0));
        assert_eq!((long.body_bytes_per_s, long.robots_cpus), (1000.0, 0.1));
        assert_eq!(StepFigures::default().at_rate(5.0).completed_per_s, 0.0);
    }

    #[test]
    fn a_step_says_why_it_was_not_kept() {
        let limit = LoadLimit { name: "late".into(), seen: "5 ms".into(), is_noise: false };
        assert_eq!(line(2.0, &StepFigures::default(), Some(&limit)).why, "late: 5 ms");
        assert!(line(2.0, &StepFigures::default(), None).kept);
    }
}
