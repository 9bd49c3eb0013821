//! What a worker measures in an interval, and its reports to the coordinator.

use std::fmt::Display;
use std::sync::Arc;

use assay_base::clock::monotonic_ns;
use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::interval::RobotLevels;
use assay_measurement::measured::Measured;
use assay_measurement::outcome::Outcome;
use assay_measurement::planned_fault::PlannedFault;
use assay_measurement::xact::XactRow;
use assay_net::coalesce::LowQuantile;
use assay_protocol::clock::RunClock;
use assay_workload::Fault;
use assay_workload::model::RobotIndex;
use strum::VariantArray;
use tokio::sync::mpsc::UnboundedSender;

use super::features::ResponseKind;
use super::log::XactLogQueue;
use super::sampling::{SAMPLE_NS, WorkerSample, WorkerSampler};
use super::setup::RobotSetup;
use super::xact::Xact;
use crate::tally::ideal::IdealEvent;
use crate::tally::merge::{IntervalEnd, WorkerSnapshot};
use crate::tally::recorders::Recorders;
use crate::tally::{self, RobotRecorder};

/// Examples kept of each kind of error.
pub const EXAMPLES: u8 = 5;

/// Message of a worker to the coordinator.
#[derive(Debug)]
pub enum RobotReport {
    /// Counts of an interval.
    Snapshot(Box<WorkerSnapshot>),
    /// One of the first errors of its kind.
    Example(ErrorExample),
    /// Measurements of the worker's own thread.
    Measured(Measured),
    /// Measurements of a tenth of a second, where load adapts.
    Sample(Box<WorkerSample>),
}

/// Columns of the log that the xact itself does not hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct XactEnd {
    pub last_byte_ns: Option<u64>,
    pub outcome: Option<Outcome>,
    pub error: Option<ErrorKind>,
    pub received: Received,
    pub fault_met: bool,
}

/// What has come of a response when its xact ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// None: no head has come.
    pub status: Option<u16>,
    pub body_bytes: u64,
}

impl Received {
    pub const NOTHING: Received = Received { status: None, body_bytes: 0 };
}

#[derive(Debug)]
pub struct Recorder {
    setup: Arc<RobotSetup>,
    clock: RunClock,
    /// Counts of each phase in the current interval.
    phases: Recorders,
    pub levels: RobotLevels,
    /// Events for the ideal cache in the current interval.
    pub ideal_events: Vec<IdealEvent>,
    /// Number of the current interval.
    interval_number: u64,
    /// Measurements for load that adapts.
    sampler: Option<WorkerSampler>,
    /// The xact log, when there is one.
    log: Option<XactLogQueue>,
    /// Examples sent of each kind.
    examples: [u8; ErrorKind::VARIANTS.len()],
    /// Time within which the quickest responses come.
    pub low_response_time: LowQuantile,
    reports: UnboundedSender<RobotReport>,
}

impl Recorder {
    pub fn new(
        setup: Arc<RobotSetup>,
        clock: RunClock,
        log: Option<XactLogQueue>,
        reports: UnboundedSender<RobotReport>,
    ) -> Self {
        Self {
            phases: Recorders::new(setup.timeline.phases().len()),
            levels: RobotLevels::default(),
            ideal_events: Vec::new(),
            interval_number: 0,
            sampler: setup.adapts.then(WorkerSampler::default),
            log,
            examples: [0; ErrorKind::VARIANTS.len()],
            low_response_time: LowQuantile::default(),
            reports,
            setup,
            clock,
        }
    }

    /// Counts of a phase in the current interval.
    #[inline]
    pub fn phase(&mut self, phase: u16) -> &mut RobotRecorder {
        self.phases.recorder(phase)
    }

    #[inline]
    pub fn counts(&mut self, phase: u16) -> &mut RobotCounts {
        &mut self.phase(phase).counts
    }

    /// Ends the interval, and sends what was counted in it. `launched`: the requests that each best-effort robot
    /// launched in a phase that ends here. Nothing follows the `last` snapshot.
    pub fn send_snapshot(
        &mut self,
        interval_end: IntervalEnd,
        launched: Vec<(RobotIndex, u32)>,
        thread: Option<Measured>,
        last: bool,
    ) {
        self.sample_counts(interval_end.phase);
        if let Some(sampler) = &mut self.sampler {
            sampler.reset_counts();
        }
        // Before the recorders are taken: rows that are dropped count in this interval.
        if let Some(log) = &mut self.log {
            let dropped = log.flush();
            if dropped > 0 {
                self.counts(interval_end.phase).dropped_samples += dropped;
            }
        }
        let snapshot = WorkerSnapshot {
            number: self.interval_number,
            interval_end,
            phases: self.phases.take(),
            levels: self.levels,
            ideal_events: std::mem::take(&mut self.ideal_events),
            launched,
            last,
        };
        self.interval_number += 1;
        // First: nothing is read after the last snapshot.
        thread.into_iter().for_each(|thread| self.report(RobotReport::Measured(thread)));
        self.report(RobotReport::Snapshot(Box::new(snapshot)));
    }

    /// Sends to the coordinator; if it is gone, so will this process be.
    pub fn report(&self, report: RobotReport) {
        let _ = self.reports.send(report);
    }

    /// Keeps the first errors of each kind; `name` gives the texts of the xact and its request.
    pub fn keep_example(
        &mut self,
        kind: ErrorKind,
        phase: u16,
        detail: &dyn Display,
        now_ns: u64,
        name: impl FnOnce(&RobotSetup) -> (String, String),
    ) {
        if self.examples[kind as usize] >= EXAMPLES {
            return;
        }
        self.examples[kind as usize] += 1;
        let (xact, request) = name(&self.setup);
        let example = ErrorExample {
            kind,
            at_ms: self.clock.since_start_us(now_ns) / 1_000,
            phase: self.setup.timeline.phases()[usize::from(phase)].name.clone(),
            xact,
            request,
            detail: detail.to_string(),
        };
        self.report(RobotReport::Example(example));
    }

    /// Writes an xact that has ended to the log, if there is one.
    pub fn log(&mut self, xact: &Xact, end: XactEnd) {
        let Some(log) = &mut self.log else { return };
        let clock = self.clock;
        let instant = |ns: Option<u64>| ns.map(|ns| clock.offset_us(ns));
        let dropped = log.push(XactRow {
            robot: xact.id.robot,
            number: xact.id.number,
            place: xact.id.place,
            phase: xact.phase,
            method: tally::method_name(xact.method),
            request_type: tally::type_name(xact.request_type),
            object: xact.object.key,
            content: xact.object.id.content,
            cachable: xact.object.cachable,
            revisit: xact.revisit,
            due_us: clock.offset_us(xact.due_ns),
            ready_us: instant(xact.sent_ns.map(|_| xact.ready_ns)),
            sent_us: instant(xact.sent_ns),
            connected_us: instant(xact.connected_ns),
            secured_us: instant(xact.secured_ns),
            first_byte_us: instant(xact.first_byte_ns),
            last_byte_us: instant(end.last_byte_ns),
            outcome: end.outcome,
            error: end.error,
            status: end.received.status,
            body_bytes: end.received.body_bytes,
            connection: xact.connection,
            fault: xact.fault().map(planned_fault),
            fault_met: end.fault_met,
        });
        if dropped > 0 {
            self.counts(xact.phase).dropped_samples += dropped;
        }
    }

    /// Adds an xact of the current phase to the sample, where load adapts.
    #[inline]
    pub fn sample(
        &mut self,
        phase: u16,
        xact: &Xact,
        kind: ResponseKind,
        outcome: Option<Outcome>,
        body_bytes: u64,
        now_ns: u64,
    ) {
        if let Some(sampler) = self.sampler.as_mut().filter(|_| xact.phase == phase) {
            sampler.complete(xact, kind, outcome, body_bytes, now_ns);
        }
    }

    /// Adds a page that was due at `due_ns` and is complete to the sample.
    pub fn sample_page(&mut self, due_ns: u64) {
        if let Some(sampler) = &mut self.sampler {
            sampler.complete_page(monotonic_ns().saturating_sub(due_ns) as f64 / 1e9);
        }
    }

    /// Sends the samples of this phase that have ended by now.
    pub fn report_samples(&mut self, phase: u16, now_ns: u64) {
        self.sample_counts(phase);
        let now = self.clock.since_start_ns(now_ns) / SAMPLE_NS;
        let Some(sampler) = &mut self.sampler else { return };
        for sample in sampler.take_samples(now, phase) {
            self.report(RobotReport::Sample(Box::new(sample)));
        }
    }

    /// Adds the counts of the phase's recorder to the sample.
    fn sample_counts(&mut self, phase: u16) {
        let Some(sampler) = &mut self.sampler else { return };
        if let Some(recorder) = self.phases.get(phase) {
            sampler.take_counts(recorder);
        }
    }

    /// Begins another phase: what was measured of the one before is of no use.
    pub fn reset_sampler(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.reset();
        }
    }
}

/// Class under which records name an injected fault.
fn planned_fault(fault: Fault) -> PlannedFault {
    match fault {
        Fault::Status(_) => PlannedFault::Status,
        Fault::Reset => PlannedFault::Reset,
        Fault::Expired(_) => PlannedFault::Expired,
        Fault::SlowStart(_) => PlannedFault::SlowStart,
        Fault::SlowBody { .. } => PlannedFault::SlowBody,
    }
}
