//! Reports of a worker to the coordinator beside its counts: about its own thread, and samples where load adapts.

use assay_base::clock::monotonic_ns;
use assay_measurement::measured::Measured;
use assay_measurement::outcome::Outcome;

use super::features::ResponseKind;
use super::sampling::SAMPLE_NS;
use super::worker::{RobotReport, Worker};
use super::xact::Xact;

impl Worker {
    /// Checks the thread for stalls, and reports them.
    pub fn check_self(&mut self, now_ns: u64) {
        self.self_check.breather.yield_if_due(now_ns);
        let Some(monitor) = &mut self.self_check.monitor else { return };
        let stalls = monitor.tick(now_ns, &mut self.timer.lag_recorder());
        for stall in stalls {
            self.report(RobotReport::Measured(Measured::Stall(stall.into())));
        }
    }

    /// Reports on the worker's own thread in the interval.
    pub fn report_thread_interval(&mut self, now_ns: u64) {
        let phase = self.phase();
        let Some(monitor) = &mut self.self_check.monitor else { return };
        let interval = monitor.end_interval(now_ns, phase, &mut self.timer.lag_recorder());
        if let Some(interval) = interval {
            self.report(RobotReport::Measured(Measured::Thread(interval.into())));
        }
    }

    /// Adds a completed xact to the sample, where load adapts.
    pub fn sample(
        &mut self,
        xact: &Xact,
        kind: ResponseKind,
        outcome: Option<Outcome>,
        bytes: u64,
        now_ns: u64,
    ) {
        let phase = self.phase();
        if let Some(sampler) = self.sampler.as_mut().filter(|_| xact.phase == phase) {
            sampler.complete(xact, kind, outcome, bytes, now_ns);
        }
    }

    /// Adds a page that was due at `due_ns` and is complete to the sample.
    pub fn sample_page(&mut self, phase: u16, due_ns: u64) {
        let is_on = phase == self.phase();
        if let Some(sampler) = self.sampler.as_mut().filter(|_| is_on) {
            sampler.complete_page(monotonic_ns().saturating_sub(due_ns) as f64 / 1e9);
        }
    }

    /// Sends the samples that have ended by now.
    pub fn report_samples(&mut self, now_ns: u64) {
        self.sample_counts(false);
        let (phase, now) = (self.phase(), self.control.clock.since_start_ns(now_ns) / SAMPLE_NS);
        let Some(sampler) = &mut self.sampler else { return };
        for sample in sampler.take_samples(now, phase) {
            self.report(RobotReport::Sample(Box::new(sample)));
        }
    }

    /// Adds the counts of the phase's recorder to the sample. `last`: the recorder is sent after this, and begins anew.
    pub fn sample_counts(&mut self, last: bool) {
        let phase = self.phase();
        let Some(sampler) = &mut self.sampler else { return };
        if let Some(recorder) = self.recorders.get(phase) {
            sampler.take_counts(recorder);
        }
        if last {
            sampler.reset_counts();
        }
    }

    /// Begins another phase: what was measured of the one before is of no use.
    pub fn reset_sampler(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.reset();
        }
    }
}
