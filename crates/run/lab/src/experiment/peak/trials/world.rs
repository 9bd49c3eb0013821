//! A run in virtual time: robots that send to a simulated target at the rate that was ordered, late now and then, and tell the
//! search what they saw second by second.

use std::collections::VecDeque;

use assay_base::random::Rng;
use assay_measurement::adapted::{Adapted, Decided};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::health::Stall;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::RobotInterval;
use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, PhaseEvent};
use assay_record::event::RunEvent;

use super::super::SEARCH_PHASE;
use super::super::driver::Driver;
use super::between;
use super::target::SimulatedTarget;

/// Lateness of Assay itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// Mean lateness of a request, in seconds.
    pub usual_s: f64,
    /// Standstills of robots per second …
    pub stalls_per_s: f64,
    /// … and for how long at most.
    pub stall_s: f64,
    /// Every so many seconds, something disturbs Assay for so many: it stands still [`BUSY_STALLS_PER_S`] times a second then.
    pub bouts: Option<(f64, f64)>,
}

/// Standstills of robots per second while something disturbs them.
const BUSY_STALLS_PER_S: f64 = 2.0;

impl Lateness {
    /// Whether robots stand still at a moment at which they would if they were disturbed all the time.
    fn stalls(&self, at_s: f64, chance: &mut Rng) -> bool {
        self.bouts.is_none_or(|(every_s, length_s)| {
            at_s % every_s < length_s || chance.unit() < self.stalls_per_s / BUSY_STALLS_PER_S
        })
    }

    /// Chances of a standstill per second.
    fn looks_per_s(&self) -> f64 {
        if self.bouts.is_some() { BUSY_STALLS_PER_S } else { self.stalls_per_s }
    }
}

/// Events of a second.
#[derive(Default)]
struct SimulatedSecond {
    due: u64,
    sent: u64,
    refused: u64,
    response_us: Vec<u64>,
    late_us: Vec<u64>,
}

pub struct SimulatedRun {
    pub target: SimulatedTarget,
    pub lateness: Lateness,
    pub chance: Rng,
    now_s: f64,
    rate_per_s: f64,
    /// Seconds that are not told of yet, from `told` on.
    seconds: VecDeque<SimulatedSecond>,
    told: u64,
    /// Requests that were sent and have no response.
    open: u64,
    last_sent_s: f64,
    stalled_until_s: f64,
    next_stall_s: f64,
}

/// More requests than this wait for a connection.
const CONNECTIONS: u64 = 500;
/// Second in which rates begin to be tried, and the last one of a search.
const FIRST_S: u64 = 3;
const LAST_S: u64 = 20_000;
/// Time that an order takes to arrive.
const ORDER_S: f64 = 0.1;

impl SimulatedRun {
    pub fn new(target: SimulatedTarget, lateness: Lateness, rate_per_s: f64, mut chance: Rng) -> Self {
        let next_stall_s = FIRST_S as f64 + chance.exponential() / lateness.looks_per_s().max(1e-9);
        Self {
            target,
            lateness,
            chance,
            now_s: FIRST_S as f64,
            rate_per_s,
            seconds: VecDeque::new(),
            told: FIRST_S,
            open: 0,
            last_sent_s: 0.0,
            stalled_until_s: 0.0,
            next_stall_s,
        }
    }

    /// Lets a search go on until it stops; says how long it took, in seconds.
    pub fn run(&mut self, driver: &mut Driver, load_per_rate: f64) -> f64 {
        let at_ms = FIRST_S * 1000;
        let mut orders = driver.on_event(RunEvent::Phase(PhaseEvent::Began { phase: SEARCH_PHASE, at_ms }));
        for second in FIRST_S..LAST_S {
            if orders.contains(&Command::Stop) {
                return second as f64;
            }
            for order in std::mem::take(&mut orders) {
                let Command::Load { factor } = order else { continue };
                self.request_until(second as f64 + ORDER_S);
                self.rate_per_s = factor / load_per_rate;
                let at_ms = second * 1000 + (ORDER_S * 1e3) as u64;
                let adapted =
                    Adapted { at_ms, what: Decided::Load, phase: SEARCH_PHASE, ..Adapted::default() };
                orders.extend(driver.on_event(RunEvent::Measured(Measured::Adapted(Box::new(adapted)))));
            }
            for stall in self.request_until((second + 1) as f64) {
                orders.extend(driver.on_event(RunEvent::Measured(Measured::Stall(stall.into()))));
            }
            let interval = self.report(second);
            orders.extend(driver.on_event(RunEvent::Measured(Measured::Robots(Box::new(interval)))));
        }
        panic!("the search did not end");
    }

    fn request_until(&mut self, until_s: f64) -> Vec<Stall> {
        let mut all = Vec::new();
        loop {
            let due_s = self.now_s + self.chance.exponential() / self.rate_per_s;
            if due_s >= until_s {
                // What comes next does not depend on how long nothing came.
                self.now_s = until_s;
                return all;
            }
            self.now_s = due_s;
            if due_s >= self.next_stall_s {
                let stalls = self.lateness.stalls(due_s, &mut self.chance);
                let length_s = between(&mut self.chance, 0.01, self.lateness.stall_s);
                self.next_stall_s = due_s + self.chance.exponential() / self.lateness.looks_per_s();
                if stalls {
                    self.stalled_until_s = due_s + length_s;
                    all.push(Stall {
                        role: "robots".into(),
                        at_ms: (due_s * 1e3) as u64,
                        length_us: (length_s * 1e6) as u64,
                        ..Stall::default()
                    });
                }
            }
            self.request(due_s);
        }
    }

    fn request(&mut self, due_s: f64) {
        let late_s = self.lateness.usual_s * self.chance.exponential();
        let sent_s = (due_s + late_s).max(self.stalled_until_s).max(self.last_sent_s);
        self.last_sent_s = sent_s;
        let response = self.target.response(sent_s, &mut self.chance);
        let due = self.second(due_s);
        due.due += 1;
        let sent = self.second(sent_s);
        sent.sent += 1;
        sent.late_us.push(((sent_s - due_s) * 1e6) as u64);
        let responded = self.second(response.at_s);
        if response.is_good {
            responded.response_us.push(((response.at_s - due_s) * 1e6) as u64);
        } else {
            responded.refused += 1;
        }
    }

    /// The second in which something happens.
    fn second(&mut self, at_s: f64) -> &mut SimulatedSecond {
        let index = (at_s as u64 - self.told) as usize;
        while self.seconds.len() <= index {
            self.seconds.push_back(SimulatedSecond::default());
        }
        &mut self.seconds[index]
    }

    /// Report of the robots on a second that is over.
    fn report(&mut self, second: u64) -> RobotInterval {
        let was = self.seconds.pop_front().unwrap_or_default();
        self.told = second + 1;
        let mut interval = RobotInterval {
            start_ms: second * 1000,
            length_ms: 1000,
            phase: SEARCH_PHASE,
            ..RobotInterval::default()
        };
        let times = |all: &[u64]| {
            let mut times = Histogram::new();
            all.iter().for_each(|us| times.record(*us));
            times.to_sparse()
        };
        interval.counts.due = was.due;
        interval.counts.sent = was.sent;
        interval.counts.completed = was.response_us.len() as u64;
        if was.refused > 0 {
            interval.counts.errors.insert(ErrorKind::ErrorStatus, was.refused);
        }
        interval.times.miss.response = times(&was.response_us);
        interval.times.lateness = times(&was.late_us);
        self.open = (self.open + was.due).saturating_sub(interval.counts.completed + was.refused);
        interval.levels.in_flight = self.open.min(CONNECTIONS);
        interval.levels.waiting = self.open.saturating_sub(CONNECTIONS);
        interval
    }
}
