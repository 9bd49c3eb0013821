//! Coordinator of the robots, on the main thread: starts the workers, ends the phases and reports to the parent.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_measurement::adapted::Adapted;
use assay_measurement::doubt::Reason;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::health::Baseline;
use assay_measurement::interval::RobotInterval;
use assay_measurement::measured::Measured;
use assay_measurement::waits::WaitReport;
use assay_protocol::message::{Command, Event, PhaseEvent};
use assay_workload::{Freeze, ScheduleError, Slice, Stream, Timeline};
use strum::VariantArray;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use super::RobotsError;
use super::control::{LEAD_NS, RunControl};
use super::goal;
use super::load_controller::{LAST_NS, LoadController, LoadRequest, ProposedChange};
use super::log::{XactLogQueue, XactLogWriter};
use super::network::Network;
use super::recorder::{EXAMPLES, RobotReport};
use super::sampling::{SAMPLE_NS, SampleMerger, WorkerSample};
use super::schedule::LaunchSchedule;
use super::setup::RobotSetup;
use super::wait_joiner::WaitJoiner;
use super::worker::Worker;
use crate::monitor::{self, Identity, SelfCheck, ThreadMonitor};
use crate::spec::{RobotsSpec, Timing};
use crate::tally::ideal::IdealFeed;
use crate::tally::merge::{MergedInterval, SnapshotMerger, WorkerSnapshot};
use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::sockets::Sockets;
use assay_net::timer::Timer;
use assay_net::worker::{CpuPlacement, Worker as WorkerThread, Yielder, cpu_of};
use assay_protocol::clock::RunClock;
use assay_protocol::stdio::{Commands, StdioError};

/// Interval between checks of goals.
const TICK: Duration = Duration::from_millis(10);

/// Times from the announcement of a load change to its effect. If one is too short, because a thread was kept waiting,
/// the next is tried.
const LEADS_NS: [u64; 4] = [100_000_000, 200_000_000, 400_000_000, 1_000_000_000];
/// Time from a phase's script to the beginning of the phase.
const PREPARE_NS: u64 = 200_000_000;

pub type Emit<'a> = &'a mut dyn FnMut(&Event) -> Result<(), StdioError>;

/// The workers, before they know when the run starts.
#[derive(Debug)]
pub struct WorkerPool {
    setup: Arc<RobotSetup>,
    controller: Option<LoadController>,
    workers: Vec<WorkerThread<Result<(), RobotsError>>>,
    starts: Vec<oneshot::Sender<Arc<RunControl>>>,
    reports: UnboundedReceiver<RobotReport>,
    log: Option<XactLogWriter>,
    ideal: IdealFeed,
    baselines: Vec<Baseline>,
}

/// A run, from its start on.
struct RunLoop {
    setup: Arc<RobotSetup>,
    control: Arc<RunControl>,
    merger: SnapshotMerger,
    /// None: the target's waits are not watched.
    wait_joiner: Option<WaitJoiner>,
    /// None: no load adapts.
    controller: Option<LoadController>,
    samples: SampleMerger,
    workers: usize,
    /// The phase that is on by the coordinator's clock, and when it began.
    phase: u16,
    phase_start_ns: u64,
    begun: bool,
    /// Xacts and errors of that phase, for its error goal.
    ended: u64,
    errors: u64,
    examples: [u8; ErrorKind::VARIANTS.len()],
    next_progress_ns: u64,
}

impl WorkerPool {
    /// Starts the workers; they make ready and wait.
    pub async fn start(spec: &RobotsSpec, setup: Arc<RobotSetup>) -> Result<Self, RobotsError> {
        // A worker without robots would be of no use.
        let robots = setup.robots.clone();
        let count = spec.threads.clamp(1, (robots.len() as u32).max(1));
        let (universe, planned) = (&setup.universe, setup.timeline.clone());
        let controller = LoadController::new(universe.workload().clone(), setup.options, planned);
        let timeline = controller.as_ref().map(LoadController::first_timeline).transpose();
        let timeline = timeline.map_err(RobotsError::Adapting)?.unwrap_or_else(|| setup.timeline.clone());
        let (log, mut queues) = match &spec.xact_log {
            Some(path) => {
                let (writer, queues) = XactLogWriter::start(path, count as usize)?;
                (Some(writer), queues)
            }
            None => (None, Vec::new()),
        };
        let (report, reports) = unbounded_channel();
        let (ready, mut all_ready) = unbounded_channel();
        let (mut workers, mut starts) = (Vec::new(), Vec::new());
        let baseline_ns = monotonic_ns() + monitor::BASELINE_LEAD_NS;
        for index in 0..count {
            let (start, started) = oneshot::channel();
            let cpu = cpu_of(&spec.cpus, index as usize);
            let assignment = WorkerAssignment {
                identity: Identity { role: "robots", thread: index, cpu },
                timing: spec.timing,
                baseline_ns,
                setup: setup.clone(),
                timeline: timeline.clone(),
                slice: Slice::of_range(robots.clone(), index, count),
                log: queues.pop(),
                ready: ready.clone(),
                started,
                reports: report.clone(),
            };
            let seat = CpuPlacement { cpu, realtime: spec.timing.realtime };
            workers.push(WorkerThread::start(format!("robots-{index}"), seat, move || assignment.run())?);
            starts.push(start);
        }
        // Only workers have senders now: the channel closes if all of them have ended.
        drop(ready);
        let ideal = IdealFeed::new(spec.behaviour);
        let mut pool =
            Self { setup, controller, workers, starts, reports, log, ideal, baselines: Vec::new() };
        for _ in 0..count {
            let Some(baseline) = all_ready.recv().await else {
                pool.join()?;
                return Err(RobotsError::EndedEarly);
            };
            pool.baselines.extend(baseline);
        }
        Ok(pool)
    }

    /// Obeys until the schedule is over, a stop was obeyed, or the parent is gone.
    pub async fn run(mut self, commands: &mut Commands, emit: Emit<'_>) -> Result<(), RobotsError> {
        for baseline in self.baselines.drain(..) {
            emit(&Event::Measured(Measured::Baseline(baseline.into())))?;
        }
        emit(&Event::Ready { listening: Vec::new() })?;
        let clock = loop {
            match commands.next().await? {
                None => return Ok(()),
                // Known before the start where origins are told of it first.
                Some(Command::Clock { error_us }) => self.setup.clocks.raise_to_us(error_us),
                // Of no meaning before the start.
                Some(Command::Load { .. } | Command::Waits(_)) => {}
                Some(Command::Start { at_monotonic_ns: start_ns, at_unix_s: start_unix_s }) => {
                    break Some(RunClock { start_ns, start_unix_s });
                }
                Some(Command::Stop) => break None,
            }
        };
        let Some(clock) = clock else {
            self.starts.clear();
            self.finish(emit)?;
            return Ok(emit(&Event::Done)?);
        };
        let control = Arc::new(RunControl::new(clock, &self.ends_ns(), self.workers.len()));
        for start in self.starts.drain(..) {
            // A worker that is gone is found below.
            let _ = start.send(control.clone());
        }
        let ideal = std::mem::replace(&mut self.ideal, IdealFeed::new(Default::default()));
        let mut run_loop =
            RunLoop::new(self.setup.clone(), control, SnapshotMerger::new(self.workers.len(), ideal));
        run_loop.controller = self.controller.take();
        run_loop.workers = self.workers.len();
        let mut ticks = tokio::time::interval(TICK);
        // A tick looks at the clock: those that were missed have nothing to add.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !run_loop.merger.is_done() {
            tokio::select! {
                command = commands.next() => match command? {
                    Some(Command::Stop) => run_loop.control.stop(monotonic_ns() + LEAD_NS),
                    Some(Command::Load { factor }) => run_loop.apply_request(&LoadRequest::load(factor), emit)?,
                    Some(Command::Clock { error_us }) => self.setup.clocks.raise_to_us(error_us),
                    Some(Command::Waits(report)) => run_loop.on_waits(&report, emit)?,
                    Some(Command::Start { .. }) => {}
                    // The parent is gone, and with it any reason to go on.
                    None => return Ok(()),
                },
                // Workers that have handed over for the last time say nothing more.
                report = self.reports.recv(), if run_loop.finished_workers() < run_loop.workers => match report {
                    Some(report) => run_loop.take(report, emit)?,
                    None => return self.join().and(Err(RobotsError::EndedEarly)),
                },
                _ = ticks.tick() => {
                    run_loop.tick(emit)?;
                    let finished = self.workers.iter().filter(|worker| worker.is_finished()).count();
                    if finished > run_loop.finished_workers() && self.reports.is_empty() {
                        return self.join().and(Err(RobotsError::EndedEarly));
                    }
                }
            }
        }
        self.finish(emit)?;
        Ok(emit(&Event::Done)?)
    }

    /// End of each phase, in nanoseconds since the start, as far as it is known.
    fn ends_ns(&self) -> Vec<Option<u64>> {
        let planned =
            || self.setup.timeline.phases().iter().map(|span| span.end.map(|end| end.as_nanos() as u64));
        self.controller.as_ref().map_or_else(|| planned().collect(), LoadController::first_ends_ns)
    }

    /// Ends the workers, and the log.
    fn finish(mut self, emit: Emit<'_>) -> Result<(), RobotsError> {
        let log = self.log.take();
        self.join()?;
        if let Some(Err(error)) = log.map(XactLogWriter::finish) {
            emit(&Event::Fault { reason: Reason::RoleFailed, message: error.to_string() })?;
        }
        Ok(())
    }

    fn join(self) -> Result<(), RobotsError> {
        drop(self.starts);
        self.workers.into_iter().try_for_each(|worker| worker.join()?)
    }
}

impl RunLoop {
    fn new(setup: Arc<RobotSetup>, control: Arc<RunControl>, merger: SnapshotMerger) -> Self {
        let start_ns = control.clock.start_ns;
        let wait_joiner = setup.joins_waits.then(|| WaitJoiner::new(setup.timeout));
        Self {
            setup,
            control,
            merger,
            wait_joiner,
            controller: None,
            samples: SampleMerger::default(),
            workers: 0,
            phase: 0,
            phase_start_ns: start_ns,
            begun: false,
            ended: 0,
            errors: 0,
            examples: [0; ErrorKind::VARIANTS.len()],
            next_progress_ns: start_ns + SECOND_NS,
        }
    }

    /// Tells the parent what a worker has to say.
    fn take(&mut self, report: RobotReport, emit: Emit<'_>) -> Result<(), RobotsError> {
        match report {
            RobotReport::Example(example) => self.emit_example(example, emit)?,
            RobotReport::Measured(measured) => emit(&Event::Measured(measured))?,
            RobotReport::Sample(sample) => self.on_sample(&sample, emit)?,
            RobotReport::Snapshot(snapshot) => match &mut self.wait_joiner {
                None => self.merge(*snapshot, emit)?,
                Some(wait_joiner) => {
                    wait_joiner.hold(snapshot, monotonic_ns());
                    self.merge_joined(emit)?;
                }
            },
        }
        Ok(())
    }

    /// Adds to what is known of the target's waits, and reports what can be joined now.
    fn on_waits(&mut self, report: &WaitReport, emit: Emit<'_>) -> Result<(), StdioError> {
        let Some(wait_joiner) = &mut self.wait_joiner else { return Ok(()) };
        wait_joiner.add(report);
        self.merge_joined(emit)
    }

    /// Merges the snapshots that are joined, and those that were held for too long.
    fn merge_joined(&mut self, emit: Emit<'_>) -> Result<(), StdioError> {
        while let Some(snapshot) =
            self.wait_joiner.as_mut().and_then(|wait_joiner| wait_joiner.next_joined(monotonic_ns()))
        {
            self.merge(snapshot, emit)?;
        }
        Ok(())
    }

    fn merge(&mut self, snapshot: WorkerSnapshot, emit: Emit<'_>) -> Result<(), StdioError> {
        self.merger.add(snapshot).into_iter().try_for_each(|complete| self.emit_merged(complete, emit))
    }

    /// Number of workers that have sent their last snapshot.
    fn finished_workers(&self) -> usize {
        self.merger.finished_workers() + self.wait_joiner.as_ref().map_or(0, WaitJoiner::last_held)
    }

    fn emit_example(&mut self, example: ErrorExample, emit: Emit<'_>) -> Result<(), StdioError> {
        let count = &mut self.examples[example.kind as usize];
        *count = count.saturating_add(1);
        if *count > EXAMPLES {
            return Ok(());
        }
        emit(&Event::Measured(Measured::Example(example.into())))
    }

    fn emit_merged(&mut self, complete: MergedInterval, emit: Emit<'_>) -> Result<(), StdioError> {
        let MergedInterval { interval_end, intervals, launched } = complete;
        for interval in intervals {
            self.check_error_goal(&interval);
            emit(&Event::Measured(Measured::Robots(interval.into())))?;
        }
        if interval_end.ends_phase {
            let at_ms = interval_end.to_us / 1_000;
            emit(&Event::Phase(PhaseEvent::Ended { phase: interval_end.phase, at_ms, launched }))?;
            if !self.control.is_over(interval_end.phase, self.control.end_ns(interval_end.phase)) {
                emit(&Event::Phase(PhaseEvent::Began { phase: interval_end.phase + 1, at_ms }))?;
            }
        }
        Ok(())
    }

    /// Stops the run once a phase has had as many errors as its goal allows.
    fn check_error_goal(&mut self, interval: &RobotInterval) {
        if interval.phase != self.phase {
            return;
        }
        let errors = interval.counts.error_total();
        self.errors += errors;
        self.ended += interval.counts.completed + errors;
        let goal = &self.setup.universe.workload().schedule.phases[usize::from(self.phase)].goal;
        if goal::too_many_errors(goal, self.errors, self.ended) {
            self.control.stop(monotonic_ns() + LEAD_NS);
        }
    }

    /// Looks where the run is, and ends what has reached its goal.
    fn tick(&mut self, emit: Emit<'_>) -> Result<(), RobotsError> {
        let now_ns = monotonic_ns();
        self.merge_joined(emit)?;
        self.steer(now_ns, emit)?;
        if now_ns < self.control.clock.start_ns {
            return Ok(());
        }
        if !self.begun {
            self.begun = true;
            emit(&Event::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }))?;
        }
        self.enter_next_phase(now_ns);
        self.check_freeze(now_ns);
        Ok(self.check_goal(now_ns, emit)?)
    }

    /// Begins phases and ends those with load that adapts.
    fn steer(&mut self, now_ns: u64, emit: Emit<'_>) -> Result<(), RobotsError> {
        let start_ns = self.control.clock.start_ns;
        let Some(controller) = &mut self.controller else { return Ok(()) };
        let next = controller.next_phase();
        let begin_ns = next.checked_sub(1).map_or(start_ns, |last| self.control.end_ns(last));
        let is_last = usize::from(next) >= self.setup.timeline.phases().len();
        if !is_last && !self.control.is_stopping() && begin_ns <= now_ns + PREPARE_NS {
            let request = controller.begin(next, begin_ns - start_ns);
            self.control.reset_alive();
            self.apply_request(&request, emit)?;
        }
        let Some(controller) = &self.controller else { return Ok(()) };
        if controller.end_ns().is_some_and(|end_ns| start_ns + end_ns <= now_ns + LAST_NS) {
            self.announce(emit, LoadController::propose_end)?;
        }
        Ok(())
    }

    /// Tells thermostats and scripts what was measured.
    fn on_sample(&mut self, sample: &WorkerSample, emit: Emit<'_>) -> Result<(), RobotsError> {
        let Some((number, merged)) = self.samples.add(sample, self.workers) else { return Ok(()) };
        let Some(controller) = &mut self.controller else { return Ok(()) };
        let request = controller.observe(sample.phase, merged, (number + 1) * SAMPLE_NS);
        self.apply_request(&request, emit)
    }

    /// Does what thermostats, scripts and the parent want.
    fn apply_request(&mut self, request: &LoadRequest, emit: Emit<'_>) -> Result<(), RobotsError> {
        let Some(controller) = &self.controller else { return Ok(()) };
        let now_ns = monotonic_ns();
        for line in controller.lines(request, self.control.clock.since_start_ns(now_ns)) {
            emit(&Event::Measured(Measured::Adapted(line.into())))?;
        }
        if !request.is_change() || self.control.is_stopping() {
            return Ok(());
        }
        if let Some(share) = request.population {
            self.control.set_alive(share);
        }
        let phase = controller.next_phase().saturating_sub(1);
        if request.end && !controller.controls(phase) && self.control.is_open(phase) {
            self.control.end_phase(phase, now_ns + LEAD_NS);
        }
        self.announce(emit, |controller, at_ns| controller.propose(request, at_ns))
    }

    /// Makes a proposal that all workers still hear in time.
    fn announce(
        &mut self,
        emit: Emit<'_>,
        propose: impl Fn(&LoadController, u64) -> Result<Option<ProposedChange>, ScheduleError>,
    ) -> Result<(), RobotsError> {
        let Some(controller) = &mut self.controller else { return Ok(()) };
        let start_ns = self.control.clock.start_ns;
        for lead_ns in LEADS_NS {
            // Before the start, everything begins with it.
            let at_ns = (monotonic_ns() + lead_ns).saturating_sub(start_ns);
            let Some(proposal) = propose(controller, at_ns).map_err(RobotsError::Adapting)? else {
                return Ok(());
            };
            if self.control.announce(proposal.change.clone()) {
                let notes: Vec<Adapted> = controller.commit(proposal);
                return Ok(notes
                    .into_iter()
                    .try_for_each(|note| emit(&Event::Measured(Measured::Adapted(note.into()))))?);
            }
        }
        Ok(())
    }

    /// Goes on to the phase that is on now.
    fn enter_next_phase(&mut self, now_ns: u64) {
        let end_ns = self.control.end_ns(self.phase);
        if now_ns >= end_ns && !self.control.is_over(self.phase, end_ns) {
            self.phase += 1;
            self.phase_start_ns = end_ns;
            (self.ended, self.errors) = (0, 0);
        }
    }

    fn check_freeze(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns - self.control.clock.start_ns;
        let frozen = match self.setup.timeline.freeze() {
            Freeze::Never => false,
            Freeze::At(at) => {
                let schedule_ns =
                    self.controller.as_ref().map(|controller| controller.schedule_ns(elapsed_ns));
                schedule_ns.unwrap_or(elapsed_ns) >= at.as_nanos() as u64
            }
            Freeze::Live { fill_objects } => self.control.totals(self.phase).fill_objects >= fill_objects,
        };
        if frozen {
            self.control.freeze();
        }
    }

    /// Ends a phase that ends at a count, once that is reached.
    fn check_goal(&mut self, now_ns: u64, emit: Emit<'_>) -> Result<(), StdioError> {
        if self.controller.as_ref().is_some_and(|controller| controller.controls(self.phase)) {
            return Ok(());
        }
        if !self.control.is_open(self.phase) || self.control.is_stopping() || now_ns < self.phase_start_ns {
            return Ok(());
        }
        let phase = &self.setup.universe.workload().schedule.phases[usize::from(self.phase)];
        // A decision takes effect a moment from now; time is looked at as it will be then.
        let elapsed = Duration::from_nanos(now_ns + LEAD_NS - self.phase_start_ns);
        let mut done = goal::done(&phase.goal, &self.control.totals(self.phase), elapsed);
        // A goal that is reached waits for the working set to stop growing.
        if phase.wait_for_freeze && !self.control.is_frozen() {
            done = done.min(0.99);
        }
        if done >= 1.0 {
            self.control.end_phase(self.phase, now_ns + LEAD_NS);
        }
        if now_ns >= self.next_progress_ns {
            self.next_progress_ns = now_ns + SECOND_NS;
            emit(&Event::Phase(PhaseEvent::Progress { phase: self.phase, done }))?;
        }
        Ok(())
    }
}

/// Everything that a worker's thread is started with.
struct WorkerAssignment {
    identity: Identity,
    timing: Timing,
    /// Instant at which all workers begin to measure their baselines.
    baseline_ns: u64,
    setup: Arc<RobotSetup>,
    timeline: Arc<Timeline>,
    slice: Slice,
    log: Option<XactLogQueue>,
    ready: UnboundedSender<Option<Baseline>>,
    started: oneshot::Receiver<Arc<RunControl>>,
    reports: UnboundedSender<RobotReport>,
}

impl WorkerAssignment {
    /// Runs a worker from its beginning to its end.
    async fn run(self) -> Result<(), RobotsError> {
        let Self { identity, timing, setup, timeline, slice, .. } = self;
        let baseline = match timing.baseline_ms {
            0 => None,
            ms => Some(monitor::measure(identity, self.baseline_ns, ms).map_err(RobotsError::Runtime)?),
        };
        let timer = Rc::new(Timer::new(timing.spin_us.saturating_mul(1_000)).map_err(RobotsError::Runtime)?);
        let schedule =
            LaunchSchedule::new(Stream::new(setup.universe.clone(), timeline, slice), setup.adapts);
        let _ = self.ready.send(baseline);
        // Once all have sent theirs or ended, no more are waited for.
        drop(self.ready);
        let Ok(control) = self.started.await else { return Ok(()) };
        let monitor = (!timing.unwatched)
            .then(|| ThreadMonitor::begin(identity, control.clock, &mut timer.lag_recorder()));
        let self_check = SelfCheck { monitor, breather: Yielder::new(timing.realtime) };
        let sockets = Rc::new(Sockets::new().map_err(RobotsError::Runtime)?);
        let network = Network::new(timer.clone(), sockets.clone(), self_check);
        let mut worker = Worker::new(setup, control, slice, schedule, self.log, self.reports, network);
        worker.start_timers();
        // The thread has nothing else to do until the end.
        timer.drive(&sockets, &mut worker).map_err(RobotsError::Runtime)
    }
}
