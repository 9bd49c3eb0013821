//! Waiting until the machine is quiet enough for a run.
//!
//! A second is quiet if no processor was used or stolen for more than a tenth of it, and if programs waited for a processor for
//! no more than a twentieth of it. The machine is quiet after three such seconds in a row. [`QuietWait`] decides by the
//! [`Activity`] of each second, which [`ActivityMonitor`] reads from the kernel.
//!
//! *Does not:* know who uses the processors, or judge a run ([`crate::verdict`] does).

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::metrics::machine::{MachineCounters, MachineFiles};
use crate::metrics::proc_file::{self, ProcFile, ReadBuffer};

/// Upper bound on the share of use of a processor in a quiet second. System services stay below it.
pub const MAX_CPU_SHARE: f64 = 0.1;
/// Upper bound on the share of a quiet second in which any program waits for a processor.
pub const MAX_PRESSURE_SHARE: f64 = 0.05;
/// Number of consecutive quiet seconds before a start. A single one may lie between two steps of a compiler.
pub const QUIET_SECONDS: u32 = 3;

/// Pressure stall information, which not every kernel has.
const PRESSURE: &str = "/proc/pressure/cpu";

/// Load of the machine in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Activity {
    /// The most used processor.
    pub cpu: u32,
    /// Share of the time in which `cpu` was busy or stolen.
    pub used: f64,
    /// Share of the time in which any program waited for a processor; none if the kernel does not count it.
    pub waited: Option<f64>,
}

impl Activity {
    pub fn is_quiet(&self) -> bool {
        self.used <= MAX_CPU_SHARE && self.waited.unwrap_or(0.0) <= MAX_PRESSURE_SHARE
    }

    /// Description for messages.
    pub fn describe(&self) -> String {
        let mut text = format!("processor {} is used for {:.0} % of the time", self.cpu, self.used * 100.0);
        if let Some(waited) = self.waited {
            // Writing to a string cannot fail.
            let _ = write!(text, ", and programs wait for one for {:.0} %", waited * 100.0);
        }
        text
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Wait for another second.
    Wait,
    /// The machine is quiet.
    Start,
    /// The machine is not quiet, and the time is over.
    StartAnyway,
}

/// A wait for a quiet machine, with a time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietWait {
    limit: Duration,
    quiet_seconds: u32,
}

impl QuietWait {
    pub fn new(limit: Duration) -> Self {
        Self { limit, quiet_seconds: 0 }
    }

    /// Decides after a second, `waited` after the beginning. The time is over only after a whole second that began within it,
    /// so that a quiet machine is found to be quiet however short the limit is.
    pub fn decide(&mut self, waited: Duration, activity: &Activity) -> Decision {
        self.quiet_seconds = if activity.is_quiet() { self.quiet_seconds + 1 } else { 0 };
        match self.quiet_seconds {
            QUIET_SECONDS.. => Decision::Start,
            // After a quiet second, wait for those that complete the row.
            1.. if waited < self.limit + Duration::from_secs(u64::from(QUIET_SECONDS)) => Decision::Wait,
            _ if waited < self.limit => Decision::Wait,
            _ => Decision::StartAnyway,
        }
    }
}

/// Reads the load of the machine from the kernel.
#[derive(Debug)]
pub struct ActivityMonitor {
    files: MachineFiles,
    pressure: Option<ProcFile>,
    buffer: ReadBuffer,
    cpus: Vec<u32>,
    before: Reading,
}

/// A reading of the kernel's counters.
#[derive(Debug)]
struct Reading {
    at: Instant,
    machine: MachineCounters,
    /// Time, in microseconds, in which any program waited for a processor.
    pressure_us: Option<u64>,
}

impl ActivityMonitor {
    /// Starts to monitor these processors.
    pub fn start(cpus: &[u32]) -> Self {
        let (files, pressure, mut buffer) =
            (MachineFiles::open(), ProcFile::open(PRESSURE), ReadBuffer::default());
        let before = reading(&files, pressure.as_ref(), &mut buffer);
        Self { files, pressure, buffer, cpus: cpus.to_vec(), before }
    }

    /// Load since the last sample.
    pub fn sample(&mut self) -> Activity {
        let now = reading(&self.files, self.pressure.as_ref(), &mut self.buffer);
        let length_us = (now.at - self.before.at).as_micros().max(1) as f64;
        let length_ms = (length_us / 1e3) as u64;
        let each = now.machine.processors_since(&self.before.machine, 0, length_ms).into_iter();
        let used = each
            .filter(|processor| self.cpus.contains(&processor.cpu))
            .map(|processor| (processor.cpu, (processor.busy_us + processor.steal_us) as f64 / length_us))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let (cpu, used) = used.unwrap_or_default();
        let pressure = now.pressure_us.zip(self.before.pressure_us);
        let waited = pressure.map(|(now, before)| now.saturating_sub(before) as f64 / length_us);
        self.before = now;
        Activity { cpu, used, waited }
    }
}

fn reading(files: &MachineFiles, pressure: Option<&ProcFile>, buffer: &mut ReadBuffer) -> Reading {
    let machine = files.now(buffer);
    let pressure_us = proc_file::read(pressure, buffer).and_then(|text| parse_pressure_us(text.as_ref()));
    Reading { at: Instant::now(), machine, pressure_us }
}

/// `total` in the line of `some`: microseconds in which at least one program waited.
fn parse_pressure_us(pressure: &str) -> Option<u64> {
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
        let mut quiet_wait = QuietWait::new(Duration::from_secs(longest_s));
        let all = (1..).zip(seconds.iter().cycle());
        let mut decided = all.map(|(at, second)| (at, quiet_wait.decide(Duration::from_secs(at), second)));
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
            BUSY.describe(),
            "processor 1 is used for 97 % of the time, and programs wait for one for 90 %"
        );
        assert_eq!(Activity { waited: None, ..QUIET }.describe(), "processor 0 is used for 3 % of the time");
    }

    #[test]
    fn the_kernels_account_of_waits_is_read() {
        let text = "some avg10=95.17 avg60=93.36 avg300=80.72 total=21293\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure_us(text), Some(21_293));
        assert_eq!(parse_pressure_us("full total=7"), None);
        assert_eq!(parse_pressure_us("some total=x"), None);
    }

    #[test]
    fn only_the_processors_that_matter_are_watched() {
        let none = ActivityMonitor::start(&[]).sample();
        assert_eq!((none.cpu, none.used), (0, 0.0));
    }
}
