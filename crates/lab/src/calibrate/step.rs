//! What did one short run at a steady load show? Listens to its events, and puts the flat phase into figures.

use std::time::Duration;

use assay_record::doubt::{Doubt, Reason};
use assay_record::health::CalibrationStep;
use assay_record::histogram::Histogram;
use assay_record::interval::{HostInterval, RobotInterval};
use assay_record::run::Verdict;

use super::flat::FLAT_PHASE;
use crate::event::LabEvent;

/// A load counts as carried when so much of what came due was completed.
const COMPLETED_SHARE: f64 = 0.99;
/// A role that had so much of its processors was the limit of robots that ask as fast as they are answered.
const BUSY_SHARE: f64 = 0.9;
/// What a step is limited by when it is nothing of Assay's or the machine's.
pub const WORKLOAD: &str = "workload";

/// Everything that was heard of the flat phase.
#[derive(Debug, Default)]
pub struct Heard {
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
pub struct Figures {
    /// Requests that could be asked for, per second.
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
}

/// Why a load was not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// A name of [`Reason`], or [`WORKLOAD`].
    pub name: String,
    /// What was seen.
    pub seen: String,
    /// It is the machine's own restlessness, and another attempt may go better.
    pub is_noise: bool,
}

impl Heard {
    /// Takes what the lab tells.
    pub fn take(&mut self, event: LabEvent) {
        match event {
            LabEvent::Robots(interval) if interval.phase == FLAT_PHASE => self.robots(&interval),
            LabEvent::Host(interval) => self.host.push(*interval),
            LabEvent::PhaseBegan { phase: FLAT_PHASE, at_ms } => self.began_ms = Some(at_ms),
            LabEvent::PhaseEnded { phase: FLAT_PHASE, at_ms } => self.ended_ms = Some(at_ms),
            _ => {}
        }
    }

    fn robots(&mut self, interval: &RobotInterval) {
        self.due += interval.counts.due;
        self.not_reached += interval.counts.not_reached;
        self.completed += interval.counts.completed;
        self.body_bytes += interval.counts.body_bytes_in;
        self.lateness.merge_sparse(&interval.lateness);
    }

    /// The figures; none when there was no flat phase.
    pub fn figures(&self) -> Option<Figures> {
        let (began_ms, ended_ms) = (self.began_ms?, self.ended_ms?);
        let length_s = Duration::from_millis(ended_ms.checked_sub(began_ms)?).as_secs_f64();
        if length_s <= 0.0 {
            return None;
        }
        // What no page led to was never asked for: pages that came last are at fault, not those who fetch.
        let offered = self.due.saturating_sub(self.not_reached);
        Some(Figures {
            offered_per_s: offered as f64 / length_s,
            completed_per_s: self.completed as f64 / length_s,
            body_bytes_per_s: self.body_bytes as f64 / length_s,
            lateness_p99_us: self.lateness.quantile_us(0.99).unwrap_or(0),
            robots_cpus: self.cpus("robots", began_ms, ended_ms),
            origins_cpus: self.cpus("origins", began_ms, ended_ms),
        })
    }

    /// Processors used by a role in the intervals that lie within the phase, or touch it if none does.
    fn cpus(&self, role: &str, began_ms: u64, ended_ms: u64) -> f64 {
        let of_role =
            || self.host.iter().filter(move |interval| interval.role == role && interval.length_ms > 0);
        let end = |interval: &HostInterval| interval.start_ms + interval.length_ms;
        let within = of_role().filter(|i| i.start_ms + 100 >= began_ms && end(i) <= ended_ms + 100);
        let touching = of_role().filter(|i| i.start_ms < ended_ms && end(i) > began_ms);
        let sum =
            |(cpu_us, length_ms): (u64, u64), i: &HostInterval| (cpu_us + i.cpu_us, length_ms + i.length_ms);
        let (cpu_us, length_ms) = match within.fold((0, 0), sum) {
            (_, 0) => touching.fold((0, 0), sum),
            found => found,
        };
        if length_ms == 0 { 0.0 } else { cpu_us as f64 / (length_ms as f64 * 1e3) }
    }
}

/// The worst doubt that touches the flat phase and makes it invalid.
fn worst(verdict: &Verdict) -> Option<&Doubt> {
    let touches = |doubt: &&Doubt| doubt.phases.is_empty() || doubt.phases.contains(&FLAT_PHASE);
    verdict.doubts.iter().filter(|doubt| doubt.invalidates).find(touches)
}

/// Why a load was not carried; none: it was.
pub fn limit(verdict: &Verdict, figures: &Figures) -> Option<Limit> {
    if let Some(doubt) = worst(verdict) {
        let is_noise = matches!(doubt.reason, Reason::Stolen | Reason::Unquiet);
        return Some(Limit { name: doubt.reason.name().into(), seen: doubt.seen.clone(), is_noise });
    }
    let share =
        if figures.offered_per_s > 0.0 { figures.completed_per_s / figures.offered_per_s } else { 0.0 };
    (share < COMPLETED_SHARE).then(|| Limit {
        name: WORKLOAD.into(),
        seen: format!(
            "{:.1} % of what was due was completed in time: robots had no more connections to ask with (open_conn_lmt), \
             or answers take long by themselves (think times)",
            share * 100.0
        ),
        is_noise: false,
    })
}

/// What kept robots that ask as fast as they are answered from asking more.
pub fn best_effort_limit(verdict: &Verdict, figures: &Figures, cpus: (usize, usize), shared: bool) -> Limit {
    if let Some(doubt) = worst(verdict) {
        return Limit { name: doubt.reason.name().into(), seen: doubt.seen.clone(), is_noise: false };
    }
    let used = |used: f64, cpus: usize| used / cpus.max(1) as f64;
    let (robots, origins) = if shared {
        let both = used(figures.robots_cpus + figures.origins_cpus, cpus.0);
        (both, both)
    } else {
        (used(figures.robots_cpus, cpus.0), used(figures.origins_cpus, cpus.1))
    };
    let words = if shared {
        format!("robots and origins used {:.0} % of the processors that they share", robots * 100.0)
    } else {
        format!(
            "robots used {:.0} % and origins {:.0} % of their processors",
            robots * 100.0,
            origins * 100.0
        )
    };
    let (name, seen) = if robots.max(origins) >= BUSY_SHARE {
        (Reason::Saturated.name(), words)
    } else {
        (WORKLOAD, format!("{words}; there are too few robots (or connections of theirs) to use more"))
    };
    Limit { name: name.into(), seen, is_noise: false }
}

/// A line of the protocol.
pub fn line(load: f64, figures: &Figures, limit: Option<&Limit>) -> CalibrationStep {
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
    use assay_record::counts::RobotCounts;

    use super::*;

    fn robots(phase: u16, due: u64, completed: u64, not_reached: u64) -> LabEvent {
        let counts = RobotCounts {
            due,
            completed,
            not_reached,
            body_bytes_in: completed * 10,
            ..RobotCounts::default()
        };
        LabEvent::Robots(Box::new(RobotInterval { phase, counts, ..RobotInterval::default() }))
    }

    fn host(role: &str, start_ms: u64, cpu_us: u64) -> LabEvent {
        LabEvent::Host(Box::new(HostInterval {
            role: role.into(),
            start_ms,
            length_ms: 1000,
            cpu_us,
            ..HostInterval::default()
        }))
    }

    fn heard(events: Vec<LabEvent>) -> Figures {
        let mut heard = Heard::default();
        heard.take(LabEvent::PhaseBegan { phase: FLAT_PHASE, at_ms: 1000 });
        events.into_iter().for_each(|event| heard.take(event));
        heard.take(LabEvent::PhaseEnded { phase: FLAT_PHASE, at_ms: 3000 });
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
        assert_eq!(Heard::default().figures(), None);
    }

    #[test]
    fn a_load_is_carried_when_nothing_invalid_touches_it_and_all_was_completed() {
        let figures = heard(vec![robots(FLAT_PHASE, 1000, 995, 0)]);
        let doubt = |phases: Vec<u16>| Doubt { phases, ..Doubt::invalid(Reason::Starved, "x") };
        let verdict = |doubts: Vec<Doubt>| Verdict { doubts, ..Verdict::default() };
        assert_eq!(limit(&verdict(vec![]), &figures), None);
        assert_eq!(limit(&verdict(vec![doubt(vec![0])]), &figures), None, "the rise does not count");
        assert_eq!(limit(&verdict(vec![Doubt::worth_knowing(Reason::Late, "x")]), &figures), None);
        for phases in [vec![], vec![FLAT_PHASE]] {
            assert_eq!(limit(&verdict(vec![doubt(phases)]), &figures).unwrap().name, "starved");
        }
        assert!(limit(&verdict(vec![Doubt::invalid(Reason::Stolen, "x")]), &figures).unwrap().is_noise);
        let slow = heard(vec![robots(FLAT_PHASE, 1000, 900, 0)]);
        assert_eq!(limit(&verdict(vec![]), &slow).unwrap().name, WORKLOAD);
    }

    #[test]
    fn best_effort_robots_are_limited_by_processors_or_by_their_number() {
        let figures = Figures { robots_cpus: 0.95, origins_cpus: 0.5, ..Figures::default() };
        let name = |cpus, shared| best_effort_limit(&Verdict::default(), &figures, cpus, shared).name;
        assert_eq!(name((1, 1), false), "saturated");
        assert_eq!(name((2, 2), false), WORKLOAD);
        assert_eq!(name((1, 1), true), "saturated");
        assert_eq!(name((2, 2), true), WORKLOAD);
    }

    #[test]
    fn a_step_says_why_it_was_not_kept() {
        let limit = Limit { name: "late".into(), seen: "5 ms".into(), is_noise: false };
        assert_eq!(line(2.0, &Figures::default(), Some(&limit)).why, "late: 5 ms");
        assert!(line(2.0, &Figures::default(), None).kept);
    }
}
