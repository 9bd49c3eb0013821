//! Samples of a tenth of a second, for thermostats and scripts; other runs take none.

use std::collections::BTreeMap;

use assay_measurement::outcome::Outcome;
use assay_workload::model::{Method, RequestType};
use assay_workload::script::{ResponseClass, Sample};

use super::features::ResponseKind;
use super::xact::Xact;
use crate::tally::RobotRecorder;
use assay_base::clock::SECOND_NS;

/// Length of a worker's sample: scripts notice events that late at most.
pub const SAMPLE_NS: u64 = SECOND_NS / 10;

/// Measurements of a worker in the current phase, since its last sample.
#[derive(Debug, Default)]
pub struct WorkerSampler {
    sample: Sample,
    /// Number of the sample that is being measured: whole samples since the start of the run.
    sample_number: u64,
    /// Counts of the recorder that are in samples already: sent, completed, errors, retries.
    taken: [u64; 4],
}

/// A piece of one worker.
#[derive(Debug)]
pub struct WorkerSample {
    /// Number of the sample.
    pub number: u64,
    /// The phase that it is of.
    pub phase: u16,
    pub sample: Sample,
}

impl WorkerSampler {
    /// Adds what a recorder has counted since this was last called.
    pub fn take_counts(&mut self, recorder: &RobotRecorder) {
        let counts = &recorder.counts;
        let now = [counts.sent, counts.completed, recorder.error_total(), counts.retries];
        let [sent, completed, errors, retries] = std::array::from_fn(|at| now[at] - self.taken[at]);
        self.taken = now;
        self.sample.requests += sent;
        self.sample.ok += completed;
        self.sample.errors += errors;
        self.sample.retries += retries;
    }

    /// Sums up an xact that completed.
    pub fn complete(
        &mut self,
        xact: &Xact,
        kind: ResponseKind,
        outcome: Option<Outcome>,
        bytes: u64,
        now_ns: u64,
    ) {
        let time_s = now_ns.saturating_sub(xact.due_ns) as f64 / 1e9;
        let mut record = |class| self.sample.class_mut(class).record(time_s, bytes);
        record(ResponseClass::Rep);
        record(if xact.object.cachable { ResponseClass::CachableYes } else { ResponseClass::CachableNo });
        if xact.basic && kind.is_object() {
            record(ResponseClass::Basic);
            let is_hit = xact.revisit && xact.object.cachable;
            record(if is_hit { ResponseClass::OfferedHit } else { ResponseClass::OfferedMiss });
            let was_hit = matches!(outcome, Some(Outcome::Hit | Outcome::Collapsed));
            record(if was_hit { ResponseClass::RealHit } else { ResponseClass::RealMiss });
            if !xact.revisit && xact.object.cachable {
                record(ResponseClass::Fill);
            }
        }
        match xact.request_type {
            RequestType::Ims200 | RequestType::Ims304 => record(ResponseClass::Ims),
            RequestType::Reload => record(ResponseClass::Reload),
            RequestType::Range => record(ResponseClass::Range),
            RequestType::Basic | RequestType::Upload => {}
        }
        match xact.method {
            Method::Head => record(ResponseClass::Head),
            Method::Post => record(ResponseClass::Post),
            Method::Put => record(ResponseClass::Put),
            Method::Get => {}
        }
        if xact.features.as_ref().is_some_and(|features| features.steps > 0) {
            record(ResponseClass::RedirectedRequest);
            record(ResponseClass::ResponseToRedirect);
        }
        if matches!(kind, ResponseKind::OriginAborted | ResponseKind::ClientAborted) {
            record(ResponseClass::Abort);
        }
    }

    /// Sums up a page that is complete.
    pub fn complete_page(&mut self, time_s: f64) {
        self.sample.class_mut(ResponseClass::Page).record(time_s, 0);
    }

    /// Takes the samples before this number, all of this phase. A worker that stood still has measured nothing that belongs
    /// to the later ones.
    pub fn take_samples(&mut self, before: u64, phase: u16) -> Vec<WorkerSample> {
        let mut samples = Vec::new();
        while self.sample_number < before {
            let sample = std::mem::take(&mut self.sample);
            samples.push(WorkerSample { number: self.sample_number, phase, sample });
            self.sample_number += 1;
        }
        samples
    }

    /// Begins anew with a recorder, as the last one was sent.
    pub fn reset_counts(&mut self) {
        self.taken = [0; 4];
    }

    /// Begins another phase: what was measured of the one before is of no use.
    pub fn reset(&mut self) {
        (self.sample, self.taken) = (Sample::default(), [0; 4]);
    }
}

/// Puts the workers' samples together.
#[derive(Debug, Default)]
pub struct SampleMerger {
    pending: BTreeMap<(u64, u16), (usize, Sample)>,
}

impl SampleMerger {
    /// Adds a worker's sample; returns its number and the sum of all workers' once that is complete.
    pub fn add(&mut self, sample_number: &WorkerSample, workers: usize) -> Option<(u64, Sample)> {
        let key = (sample_number.number, sample_number.phase);
        let (workers_reported, sample) = self.pending.entry(key).or_default();
        *workers_reported += 1;
        sample.add(&sample_number.sample);
        if *workers_reported < workers {
            return None;
        }
        let complete = self.pending.remove(&key).map(|(_, sample)| (sample_number.number, sample));
        // Where a phase ends, workers differ in what they say of the sample; that one is not waited for.
        self.pending.retain(|(number, _), _| number + 100 > sample_number.number);
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_number(number: u64, phase: u16, requests: u64) -> WorkerSample {
        let mut sample = Sample::default();
        sample.requests = requests;
        WorkerSample { number, phase, sample }
    }

    #[test]
    fn a_piece_is_complete_when_all_workers_have_handed_it_over() {
        let mut samples = SampleMerger::default();
        assert_eq!(samples.add(&sample_number(3, 1, 5), 2), None);
        assert_eq!(samples.add(&sample_number(4, 1, 1), 2), None);
        let (number, sample) = samples.add(&sample_number(3, 1, 7), 2).expect("both are here");
        assert_eq!((number, sample.requests), (3, 12));
    }

    #[test]
    fn pieces_that_workers_disagree_on_are_forgotten() {
        let mut samples = SampleMerger::default();
        assert_eq!(samples.add(&sample_number(3, 1, 5), 2), None);
        assert_eq!(samples.add(&sample_number(3, 2, 5), 2), None, "another phase");
        for number in 4..200 {
            samples.add(&sample_number(number, 2, 1), 2);
            samples.add(&sample_number(number, 2, 1), 2);
        }
        assert!(samples.pending.is_empty());
    }

    #[test]
    fn counts_are_taken_once() {
        let (mut sampler, mut recorder) = (WorkerSampler::default(), RobotRecorder::default());
        (recorder.counts.sent, recorder.counts.completed) = (5, 3);
        sampler.take_counts(&recorder);
        recorder.counts.sent = 7;
        sampler.take_counts(&recorder);
        assert_eq!((sampler.sample.requests, sampler.sample.ok), (7, 3));
    }
}
