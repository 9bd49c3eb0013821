//! What a worker tells the conductor beside its counts: what it saw of itself, and what it measured where load adapts.

use assay_base::clock::monotonic_ns;
use assay_measurement::measured::Measured;
use assay_measurement::outcome::Outcome;

use super::crew::{Crew, Report};
use super::extras::Ending;
use super::sampling::PIECE_NS;
use super::xact::Xact;

impl Crew {
    /// Looks at itself, and tells of stalls.
    pub fn look_at_itself(&mut self, now_ns: u64) {
        self.health.breather.breathe(now_ns);
        let Some(watch) = &mut self.health.watch else { return };
        let stalls = watch.tick(now_ns, &mut self.timer.account());
        for stall in stalls {
            self.report(Report::Measured(Measured::Stall(stall.into())));
        }
    }

    /// Tells what it saw of itself since the last cut.
    pub fn hand_over_health(&mut self, now_ns: u64) {
        let phase = self.phase();
        let Some(watch) = &mut self.health.watch else { return };
        let interval = watch.cut(now_ns, phase, &mut self.timer.account());
        if let Some(interval) = interval {
            self.report(Report::Measured(Measured::Thread(interval.into())));
        }
    }

    /// Takes note of an xact that completed, where somebody wants to know.
    pub fn sample(&mut self, xact: &Xact, ending: Ending, outcome: Option<Outcome>, bytes: u64, now_ns: u64) {
        let phase = self.phase();
        if let Some(sampler) = self.sampler.as_mut().filter(|_| xact.phase == phase) {
            sampler.complete(xact, ending, outcome, bytes, now_ns);
        }
    }

    /// Takes note of a page that was due at `due_ns` and is complete.
    pub fn sample_page(&mut self, phase: u16, due_ns: u64) {
        let is_on = phase == self.phase();
        if let Some(sampler) = self.sampler.as_mut().filter(|_| is_on) {
            sampler.complete_page(monotonic_ns().saturating_sub(due_ns) as f64 / 1e9);
        }
    }

    /// Hands over the pieces that have ended by now.
    pub fn hand_over_sample(&mut self, now_ns: u64) {
        self.sample_counts(false);
        let (phase, now) = (self.phase(), self.control.clock.since_start_ns(now_ns) / PIECE_NS);
        let Some(sampler) = &mut self.sampler else { return };
        for piece in sampler.take_pieces(now, phase) {
            self.report(Report::Piece(Box::new(piece)));
        }
    }

    /// Adds what the recorder of the phase has counted. `last`: it is handed over after this, and begins anew.
    pub fn sample_counts(&mut self, last: bool) {
        let phase = self.phase();
        let Some(sampler) = &mut self.sampler else { return };
        if let Some(recorder) = self.recorders.get(phase) {
            sampler.take_counts(recorder);
        }
        if last {
            sampler.forget_counts();
        }
    }

    /// Another phase begins: what was measured of the one before is of no use.
    pub fn sample_anew(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.begin_anew();
        }
    }
}
