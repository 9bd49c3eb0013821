//! One role that is divided among machines: what its parts say, put together into what one would have said.
//!
//! Counts add up and histograms merge, so intervals of several parts are exactly the interval of all their robots (or origins),
//! but for the ideal hit ratio: that is left unknown.
//! Threads are numbered through. A phase has begun when the first part says so, and ended when the last does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::roles::RoleEvent;
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_protocol::message::{Event, PhaseEvent};

/// An interval is passed on incomplete once a complete one that began so much later was: a part that is late, or had nothing to
/// say of it, holds up nothing. Its own share of the interval follows by itself.
const HELD_UP_MS: u64 = 5000;

/// Start of an interval, and its phase.
type IntervalKey = (u64, u16);

/// The parts of one role.
#[derive(Debug)]
pub struct RoleMerger {
    /// The number of the first thread of each part.
    first_threads: Vec<u32>,
    listening: Vec<Option<Vec<SocketAddr>>>,
    done: BTreeSet<usize>,
    robots: BTreeMap<IntervalKey, (BTreeSet<usize>, Box<RobotInterval>)>,
    origins: BTreeMap<IntervalKey, (BTreeSet<usize>, Box<OriginInterval>)>,
    begun: BTreeSet<u16>,
    /// End of each phase by part, with what its best-effort robots had launched in it.
    ended: BTreeMap<u16, BTreeMap<usize, (u64, Vec<u32>)>>,
    progress: BTreeMap<u16, Vec<f64>>,
}

impl RoleMerger {
    /// For parts that may have so many threads each.
    pub fn new(threads: &[u32]) -> Self {
        let first_threads = threads.iter().scan(0, |next, threads| {
            let first = *next;
            *next += threads;
            Some(first)
        });
        Self {
            first_threads: first_threads.collect(),
            listening: vec![None; threads.len()],
            done: BTreeSet::new(),
            robots: BTreeMap::new(),
            origins: BTreeMap::new(),
            begun: BTreeSet::new(),
            ended: BTreeMap::new(),
            progress: BTreeMap::new(),
        }
    }

    fn parts(&self) -> usize {
        self.listening.len()
    }

    /// Takes what a part said; gives what all of them have said together by now.
    pub fn take(&mut self, part: usize, said: RoleEvent) -> Vec<RoleEvent> {
        match said {
            RoleEvent::Event(event) => {
                let events = self.take_event(part, *event);
                events.into_iter().map(|event| RoleEvent::Event(Box::new(event))).collect()
            }
            RoleEvent::Ended if self.done.contains(&part) => Vec::new(),
            said => vec![said],
        }
    }

    fn take_event(&mut self, part: usize, event: Event) -> Vec<Event> {
        match event {
            Event::Ready { listening } => {
                self.listening[part] = Some(listening);
                let all: Option<Vec<_>> = self.listening.iter().cloned().collect();
                all.map(|all| Event::Ready { listening: all.concat() }).into_iter().collect()
            }
            Event::Measured(measured) => {
                self.take_measured(part, measured).into_iter().map(Event::Measured).collect()
            }
            Event::Phase(event) => self.take_phase(part, event).map(Event::Phase).into_iter().collect(),
            Event::Done => {
                self.done.insert(part);
                if self.done.len() < self.parts() {
                    return Vec::new();
                }
                let mut last: Vec<Event> = self.held_back().into_iter().map(Event::Measured).collect();
                last.push(Event::Done);
                last
            }
            other => vec![other],
        }
    }

    fn take_measured(&mut self, part: usize, measured: Measured) -> Vec<Measured> {
        let first_thread = self.first_threads[part];
        let parts = self.parts();
        match measured {
            Measured::Robots(mut interval) => {
                if parts > 1 {
                    forget_ideal(&mut interval);
                }
                let place = (interval.start_ms, interval.phase);
                let sum = merge(&mut self.robots, place, part, interval, |sum, more| sum.merge(more));
                complete(&mut self.robots, parts, sum).into_iter().map(Measured::Robots).collect()
            }
            Measured::Origins(interval) => {
                let place = (interval.start_ms, interval.phase);
                let sum = merge(&mut self.origins, place, part, interval, |sum, more| sum.merge(more));
                complete(&mut self.origins, parts, sum).into_iter().map(Measured::Origins).collect()
            }
            Measured::Thread(mut thread) => {
                thread.thread = thread.thread.saturating_add(first_thread);
                vec![Measured::Thread(thread)]
            }
            Measured::Stall(mut stall) => {
                stall.thread = stall.thread.saturating_add(first_thread);
                vec![Measured::Stall(stall)]
            }
            Measured::Baseline(mut baseline) => {
                baseline.thread = baseline.thread.saturating_add(first_thread);
                vec![Measured::Baseline(baseline)]
            }
            // Every part decides the same.
            Measured::Adapted(_) if part > 0 => Vec::new(),
            other => vec![other],
        }
    }

    /// Intervals that some part had nothing to say of.
    fn held_back(&mut self) -> Vec<Measured> {
        let robots =
            std::mem::take(&mut self.robots).into_values().map(|(_, interval)| Measured::Robots(interval));
        let origins =
            std::mem::take(&mut self.origins).into_values().map(|(_, interval)| Measured::Origins(interval));
        robots.chain(origins).collect()
    }

    fn take_phase(&mut self, part: usize, event: PhaseEvent) -> Option<PhaseEvent> {
        match event {
            PhaseEvent::Began { phase, at_ms } => {
                self.begun.insert(phase).then_some(PhaseEvent::Began { phase, at_ms })
            }
            PhaseEvent::Ended { phase, at_ms, launched } => {
                let parts = self.ended.entry(phase).or_default();
                parts.insert(part, (at_ms, launched));
                if parts.len() < self.listening.len() {
                    return None;
                }
                let parts = std::mem::take(parts);
                let at_ms = parts.values().map(|(at_ms, _)| *at_ms).max().unwrap_or(at_ms);
                // Parts have consecutive robots, in their order.
                let launched = parts.into_values().flat_map(|(_, launched)| launched).collect();
                Some(PhaseEvent::Ended { phase, at_ms, launched })
            }
            PhaseEvent::Progress { phase, done } => {
                let parts = self.listening.len();
                let all = self.progress.entry(phase).or_insert_with(|| vec![0.0; parts]);
                all[part] = done;
                Some(PhaseEvent::Progress { phase, done: all.iter().copied().fold(f64::INFINITY, f64::min) })
            }
        }
    }
}

/// The ideal cache of each part knows the requests of its own robots only. What one cache would have hit of the requests of all
/// of them is not known.
fn forget_ideal(interval: &mut RobotInterval) {
    let counts = &mut interval.counts;
    (counts.ideal_basic, counts.ideal_hits) = (0, 0);
    (counts.ideal_basic_bytes, counts.ideal_hit_bytes) = (0, 0);
}

fn merge<T>(
    all: &mut BTreeMap<IntervalKey, (BTreeSet<usize>, Box<T>)>,
    place: IntervalKey,
    part: usize,
    interval: Box<T>,
    merge: impl Fn(&mut T, &T),
) -> IntervalKey {
    match all.get_mut(&place) {
        Some((parts, sum)) => {
            parts.insert(part);
            merge(sum, &interval);
        }
        None => drop(all.insert(place, (BTreeSet::from([part]), interval))),
    }
    place
}

/// The interval at a place if every part has told its share, after those that have waited for too long.
fn complete<T>(
    all: &mut BTreeMap<IntervalKey, (BTreeSet<usize>, Box<T>)>,
    parts: usize,
    place: IntervalKey,
) -> Vec<Box<T>> {
    if all.get(&place).is_none_or(|(told, _)| told.len() < parts) {
        return Vec::new();
    }
    let late = |other: &IntervalKey| other.0.saturating_add(HELD_UP_MS) <= place.0;
    let places: Vec<IntervalKey> =
        all.keys().copied().filter(|other| late(other) || *other == place).collect();
    places.into_iter().filter_map(|place| all.remove(&place)).map(|(_, interval)| interval).collect()
}

#[cfg(test)]
mod tests {
    use assay_measurement::health::ThreadInterval;
    use assay_measurement::histogram::Histogram;

    use super::*;

    fn event(event: Event) -> RoleEvent {
        RoleEvent::Event(Box::new(event))
    }

    fn events(said: Vec<RoleEvent>) -> Vec<Event> {
        let event = |said| match said {
            RoleEvent::Event(event) => *event,
            other => panic!("no event: {other:?}"),
        };
        said.into_iter().map(event).collect()
    }

    fn interval(start_ms: u64, due: u64, response_us: u64) -> RobotInterval {
        let mut interval = RobotInterval { start_ms, length_ms: 1000, ..RobotInterval::default() };
        interval.counts.due = due;
        let mut response = Histogram::new();
        response.record(response_us);
        interval.times.hit.response = response.to_sparse();
        interval
    }

    fn measured(interval: RobotInterval) -> RoleEvent {
        event(Event::Measured(Measured::Robots(interval.into())))
    }

    #[test]
    fn intervals_of_two_machines_are_one_of_all_robots() {
        let mut gather = RoleMerger::new(&[2, 2]);
        assert!(gather.take(0, measured(interval(0, 3, 10))).is_empty());
        let both = events(gather.take(1, measured(interval(0, 4, 20))));
        let mut sum = interval(0, 3, 10);
        sum.merge(&interval(0, 4, 20));
        assert_eq!(both, [Event::Measured(Measured::Robots(sum.into()))]);
    }

    #[test]
    fn ideal_hits_are_known_of_all_robots_on_one_machine_and_not_of_parts_of_them() {
        let ideal = || {
            let mut interval = interval(0, 3, 10);
            let counts = &mut interval.counts;
            (counts.ideal_basic, counts.ideal_hits) = (2, 1);
            (counts.ideal_basic_bytes, counts.ideal_hit_bytes) = (20, 10);
            interval
        };
        let alone = events(RoleMerger::new(&[1]).take(0, measured(ideal())));
        assert_eq!(alone, [Event::Measured(Measured::Robots(ideal().into()))]);
        let mut gather = RoleMerger::new(&[1, 1]);
        assert!(gather.take(0, measured(ideal())).is_empty());
        let both = events(gather.take(1, measured(ideal())));
        let mut sum = interval(0, 3, 10);
        sum.merge(&interval(0, 3, 10));
        assert_eq!(both, [Event::Measured(Measured::Robots(sum.into()))]);
    }

    #[test]
    fn nothing_is_lost_of_an_interval_that_one_machine_has_nothing_to_say_of() {
        let mut gather = RoleMerger::new(&[1, 1]);
        assert!(gather.take(0, measured(interval(0, 3, 10))).is_empty());
        assert!(gather.take(0, measured(interval(6000, 1, 10))).is_empty());
        // The first is late by now; it comes before the one that is complete.
        assert_eq!(gather.take(1, measured(interval(6000, 1, 10))).len(), 2);
        assert!(gather.take(1, measured(interval(7000, 9, 10))).is_empty());
        assert!(gather.take(0, event(Event::Done)).is_empty());
        let last = events(gather.take(1, event(Event::Done)));
        assert!(
            matches!(&last[..], [Event::Measured(Measured::Robots(held)), Event::Done] if held.counts.due == 9)
        );
        // Their processes end now, which is no news.
        assert!(gather.take(0, RoleEvent::Ended).is_empty());
    }

    #[test]
    fn all_are_ready_when_the_last_is_and_listen_in_order() {
        let mut gather = RoleMerger::new(&[1, 1]);
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        assert!(gather.take(1, event(Event::Ready { listening: vec![address(2)] })).is_empty());
        let ready = events(gather.take(0, event(Event::Ready { listening: vec![address(1)] })));
        assert_eq!(ready, [Event::Ready { listening: vec![address(1), address(2)] }]);
    }

    #[test]
    fn a_phase_begins_with_the_first_and_ends_with_the_last() {
        let mut gather = RoleMerger::new(&[1, 1]);
        let began = |at_ms| event(Event::Phase(PhaseEvent::Began { phase: 0, at_ms }));
        assert_eq!(gather.take(0, began(5)).len(), 1);
        assert!(gather.take(1, began(6)).is_empty());
        let ended = |at_ms, launched| event(Event::Phase(PhaseEvent::Ended { phase: 0, at_ms, launched }));
        assert!(gather.take(0, ended(1000, vec![4])).is_empty());
        let all = events(gather.take(1, ended(1001, vec![7, 2])));
        assert_eq!(all, [Event::Phase(PhaseEvent::Ended { phase: 0, at_ms: 1001, launched: vec![4, 7, 2] })]);
    }

    #[test]
    fn threads_are_numbered_through_and_an_early_end_is_told_at_once() {
        let mut gather = RoleMerger::new(&[4, 2]);
        let thread = ThreadInterval { thread: 1, ..ThreadInterval::default() };
        let told = events(gather.take(1, event(Event::Measured(Measured::Thread(thread.into())))));
        assert!(matches!(&told[..], [Event::Measured(Measured::Thread(thread))] if thread.thread == 5));
        assert_eq!(gather.take(0, RoleEvent::Ended).len(), 1);
    }
}
