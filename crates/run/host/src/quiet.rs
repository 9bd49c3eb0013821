//! Whether the machine is quiet enough for a run to begin, and how long to wait for that.
//!
//! A second is quiet when no processor was used or taken by the hypervisor for more than a tenth of it, and when programs waited
//! for a processor for no more than a twentieth of it. The machine is quiet after three such seconds in a row. [`Patience`]
//! decides, from what [`Activity`] says of each second; [`Watch`] reads that from the kernel.
//!
//! *Does not:* know who uses the processors, or judge a run: what disturbs one while it goes on is in [`crate::verdict`].

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::metrics::kept::{self, Kept, Room};
use crate::metrics::machine::{Files, Machine};

/// A processor that others use for a larger share is busy. The system's own services stay below it.
pub const MOST_USED: f64 = 0.1;
/// A machine on which programs wait for a processor for a larger share of the time is busy.
pub const MOST_WAITED: f64 = 0.05;
/// Quiet seconds in a row. A single one may lie between two steps of a compiler.
pub const IN_A_ROW: u32 = 3;

/// The kernel's account of time in which programs waited for a processor. Not every kernel keeps one.
const PRESSURE: &str = "/proc/pressure/cpu";

/// What a second of this machine was like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Activity {
    /// The processor that was used most.
    pub cpu: u32,
    /// For which share of the time it was used, or taken by the hypervisor.
    pub used: f64,
    /// For which share of the time some program waited for a processor; none: the kernel does not tell.
    pub waited: Option<f64>,
}

impl Activity {
    /// Nothing in it would disturb a run.
    pub fn is_quiet(&self) -> bool {
        self.used <= MOST_USED && self.waited.unwrap_or(0.0) <= MOST_WAITED
    }

    /// What there was, for a message.
    pub fn words(&self) -> String {
        let mut words = format!("processor {} is used for {:.0} % of the time", self.cpu, self.used * 100.0);
        if let Some(waited) = self.waited {
            // Writing to a string cannot fail.
            let _ = write!(words, ", and programs wait for one for {:.0} %", waited * 100.0);
        }
        words
    }
}

/// What to do after a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Look at another second.
    Wait,
    /// The machine is quiet.
    Start,
    /// It is not, and the time is over.
    StartAnyway,
}

/// How long to wait, and for how many quiet seconds that has been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    longest: Duration,
    in_a_row: u32,
}

impl Patience {
    /// Waits for `longest` at most.
    pub fn new(longest: Duration) -> Self {
        Self { longest, in_a_row: 0 }
    }

    /// What to do after a second like this, `waited` after the beginning. The time is over only after a whole second that
    /// began within it, so a quiet machine is found to be quiet however short the time is.
    pub fn decide(&mut self, waited: Duration, activity: &Activity) -> Decision {
        self.in_a_row = if activity.is_quiet() { self.in_a_row + 1 } else { 0 };
        match self.in_a_row {
            IN_A_ROW.. => Decision::Start,
            // It may just have become quiet.
            1.. if waited < self.longest + Duration::from_secs(u64::from(IN_A_ROW)) => Decision::Wait,
            _ if waited < self.longest => Decision::Wait,
            _ => Decision::StartAnyway,
        }
    }
}

/// Reads what the machine does.
#[derive(Debug)]
pub struct Watch {
    files: Files,
    pressure: Option<Kept>,
    room: Room,
    cpus: Vec<u32>,
    before: Reading,
}

/// When it was made, what processors did until then, and for how many microseconds programs waited for one.
type Reading = (Instant, Machine, Option<u64>);

impl Watch {
    /// Begins to watch these processors.
    pub fn begin(cpus: &[u32]) -> Self {
        let (files, pressure, mut room) = (Files::open(), Kept::open(PRESSURE), Room::default());
        let before = read(&files, pressure.as_ref(), &mut room);
        Self { files, pressure, room, cpus: cpus.to_vec(), before }
    }

    /// What the machine did since the last look.
    pub fn look(&mut self) -> Activity {
        let now = read(&self.files, self.pressure.as_ref(), &mut self.room);
        let length_us = (now.0 - self.before.0).as_micros().max(1) as f64;
        let length_ms = (length_us / 1e3) as u64;
        let each = now.1.processors_since(&self.before.1, 0, length_ms).into_iter();
        let used = each
            .filter(|processor| self.cpus.contains(&processor.cpu))
            .map(|processor| (processor.cpu, (processor.busy_us + processor.steal_us) as f64 / length_us))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let (cpu, used) = used.unwrap_or_default();
        let since = |(now, before): (u64, u64)| now.saturating_sub(before) as f64 / length_us;
        let waited = now.2.zip(self.before.2).map(since);
        self.before = now;
        Activity { cpu, used, waited }
    }
}

fn read(files: &Files, pressure: Option<&Kept>, room: &mut Room) -> Reading {
    let machine = files.now(room);
    let waited = kept::read(pressure, room).and_then(|text| waited_us(text.as_ref()));
    (Instant::now(), machine, waited)
}

/// `total` in the line of `some`: microseconds in which at least one program waited.
fn waited_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Activity = Activity { cpu: 0, used: 0.03, waited: Some(0.01) };
    const BUSY: Activity = Activity { cpu: 1, used: 0.97, waited: Some(0.9) };

    /// When it starts, in seconds, and whether the machine is quiet then; `seconds` are repeated for ever.
    fn started(longest_s: u64, seconds: &[Activity]) -> (u64, Decision) {
        let mut patience = Patience::new(Duration::from_secs(longest_s));
        let all = (1..).zip(seconds.iter().cycle());
        let mut decided = all.map(|(at, second)| (at, patience.decide(Duration::from_secs(at), second)));
        decided.find(|(_, decision)| *decision != Decision::Wait).unwrap()
    }

    #[test]
    fn a_quiet_machine_starts_after_three_seconds_and_a_busy_one_when_the_time_is_over() {
        assert_eq!(started(60, &[QUIET]), (3, Decision::Start));
        assert_eq!(started(60, &[BUSY, BUSY, QUIET, BUSY, QUIET, QUIET, QUIET]), (7, Decision::Start));
        assert_eq!(started(60, &[BUSY]), (60, Decision::StartAnyway));
        assert_eq!(started(60, &[QUIET, QUIET, BUSY]), (60, Decision::StartAnyway));
    }

    #[test]
    fn three_seconds_are_looked_at_if_the_first_are_quiet_however_short_the_time_is() {
        assert_eq!(started(1, &[QUIET]), (3, Decision::Start));
        assert_eq!(started(1, &[BUSY]), (1, Decision::StartAnyway));
        assert_eq!(started(1, &[QUIET, BUSY]), (2, Decision::StartAnyway));
        assert_eq!(started(5, &[BUSY, BUSY, BUSY, BUSY, QUIET, QUIET, QUIET]), (7, Decision::Start));
    }

    #[test]
    fn use_and_waits_each_make_a_second_busy() {
        assert!(QUIET.is_quiet() && !BUSY.is_quiet());
        assert!(!Activity { used: 0.11, ..QUIET }.is_quiet());
        assert!(!Activity { waited: Some(0.06), ..QUIET }.is_quiet());
        assert!(Activity { waited: None, ..QUIET }.is_quiet(), "not every kernel tells of waits");
        assert_eq!(
            BUSY.words(),
            "processor 1 is used for 97 % of the time, and programs wait for one for 90 %"
        );
        assert_eq!(Activity { waited: None, ..QUIET }.words(), "processor 0 is used for 3 % of the time");
    }

    #[test]
    fn the_kernels_account_of_waits_is_read() {
        let text = "some avg10=95.17 avg60=93.36 avg300=80.72 total=21293\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited_us(text), Some(21_293));
        assert_eq!(waited_us("full total=7"), None);
        assert_eq!(waited_us("some total=x"), None);
    }

    #[test]
    fn only_the_processors_that_matter_are_watched() {
        let none = Watch::begin(&[]).look();
        assert_eq!((none.cpu, none.used), (0, 0.0));
    }
}
