//! The conductor: it starts the workers, ends the phases and tells the parent. The main thread of the robots.

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
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

use super::RobotsError;
use super::agenda::Agenda;
use super::control::{Control, LEAD_NS};
use super::crew::{Crew, EXAMPLES, Health, Report};
use super::goal;
use super::joining::Joining;
use super::log::{LogQueue, LogWriter};
use super::sampling::{PIECE_NS, Piece, Pieces};
use super::setup::Setup;
use super::steering::{LAST_NS, Proposal, Steering, Wishes};
use crate::spec::{RobotsSpec, Timing};
use crate::tally::ideal::IdealFeed;
use crate::tally::merge::{Complete, Handover, Merger};
use crate::watch::{self, Identity, Watch};
use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::sockets::Sockets;
use assay_net::timer::Timer;
use assay_net::worker::{Breather, Seat, Worker, cpu_of};
use assay_protocol::clock::RunClock;
use assay_protocol::stdio::{Commands, StdioError};

/// How often goals are looked at.
const TICK: Duration = Duration::from_millis(10);

/// How far ahead of their moment changes of load are announced. Where that turns out to be too little, because a thread
/// was kept waiting, it is tried again with the next.
const LEADS_NS: [u64; 4] = [100_000_000, 200_000_000, 400_000_000, 1_000_000_000];
/// How long before a phase begins its script runs.
const PREPARE_NS: u64 = 200_000_000;

pub type Emit<'a> = &'a mut dyn FnMut(&Event) -> Result<(), StdioError>;

/// The workers, before they know when the run starts.
#[derive(Debug)]
pub struct Ensemble {
    setup: Arc<Setup>,
    steering: Option<Steering>,
    workers: Vec<Worker<Result<(), RobotsError>>>,
    starts: Vec<oneshot::Sender<Arc<Control>>>,
    reports: UnboundedReceiver<Report>,
    log: Option<LogWriter>,
    ideal: IdealFeed,
    baselines: Vec<Baseline>,
}

/// A run, from its start on.
struct Performance {
    setup: Arc<Setup>,
    control: Arc<Control>,
    merger: Merger,
    /// None: the target's waits are not watched.
    joining: Option<Joining>,
    /// None: no load adapts.
    steering: Option<Steering>,
    pieces: Pieces,
    workers: usize,
    /// The phase that is on by the conductor's clock, and when it began.
    phase: u16,
    phase_start_ns: u64,
    begun: bool,
    /// Xacts and errors of that phase, for its error goal.
    ended: u64,
    errors: u64,
    examples: [u8; ErrorKind::ALL.len()],
    next_progress_ns: u64,
}

impl Ensemble {
    /// Starts the workers; they make ready and wait.
    pub async fn gather(spec: &RobotsSpec, setup: Arc<Setup>) -> Result<Self, RobotsError> {
        // A worker without robots would be of no use.
        let robots = setup.robots.clone();
        let count = spec.threads.clamp(1, (robots.len() as u32).max(1));
        let (universe, planned) = (&setup.universe, setup.timeline.clone());
        let steering = Steering::new(universe.workload().clone(), setup.options, planned);
        let timeline = steering.as_ref().map(Steering::first_timeline).transpose();
        let timeline = timeline.map_err(RobotsError::Adapting)?.unwrap_or_else(|| setup.timeline.clone());
        let (log, mut queues) = match &spec.xact_log {
            Some(path) => {
                let (writer, queues) = LogWriter::start(path, count as usize)?;
                (Some(writer), queues)
            }
            None => (None, Vec::new()),
        };
        let (report, reports) = unbounded_channel();
        let (ready, mut all_ready) = unbounded_channel();
        let (mut workers, mut starts) = (Vec::new(), Vec::new());
        let baseline_ns = monotonic_ns() + watch::BASELINE_LEAD_NS;
        for index in 0..count {
            let (start, started) = oneshot::channel();
            let cpu = cpu_of(&spec.cpus, index as usize);
            let assignment = Assignment {
                identity: Identity { role: "robots", thread: index, cpu },
                timing: spec.timing,
                baseline_ns,
                setup: setup.clone(),
                timeline: timeline.clone(),
                slice: Slice::of(robots.clone(), index, count),
                log: queues.pop(),
                ready: ready.clone(),
                started,
                reports: report.clone(),
            };
            let seat = Seat { cpu, realtime: spec.timing.realtime };
            workers.push(Worker::start(format!("robots-{index}"), seat, move || assignment.perform())?);
            starts.push(start);
        }
        drop(ready);
        let ideal = IdealFeed::new(spec.behaviour);
        let mut ensemble =
            Self { setup, steering, workers, starts, reports, log, ideal, baselines: Vec::new() };
        for _ in 0..count {
            let Some(baseline) = all_ready.recv().await else {
                ensemble.join()?;
                return Err(RobotsError::EndedEarly);
            };
            ensemble.baselines.extend(baseline);
        }
        Ok(ensemble)
    }

    /// Obeys until the schedule is over, a stop was obeyed, or the parent is gone.
    pub async fn play(mut self, commands: &mut Commands, emit: Emit<'_>) -> Result<(), RobotsError> {
        for baseline in self.baselines.drain(..) {
            emit(&Event::Measured(Measured::Baseline(baseline.into())))?;
        }
        emit(&Event::Ready { listening: Vec::new() })?;
        let clock = loop {
            match commands.next().await? {
                None => return Ok(()),
                // Known before the start where origins are told of it first.
                Some(Command::Clock { error_us }) => self.setup.clocks.differ_by_us(error_us),
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
        let control = Arc::new(Control::new(clock, &self.ends_ns(), self.workers.len()));
        for start in self.starts.drain(..) {
            // A worker that is gone is found below.
            let _ = start.send(control.clone());
        }
        let ideal = std::mem::replace(&mut self.ideal, IdealFeed::new(Default::default()));
        let mut performance =
            Performance::new(self.setup.clone(), control, Merger::new(self.workers.len(), ideal));
        performance.steering = self.steering.take();
        performance.workers = self.workers.len();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !performance.merger.is_done() {
            tokio::select! {
                command = commands.next() => match command? {
                    Some(Command::Stop) => performance.control.stop(monotonic_ns() + LEAD_NS),
                    Some(Command::Load { factor }) => performance.grant(&Wishes::load(factor), emit)?,
                    Some(Command::Clock { error_us }) => self.setup.clocks.differ_by_us(error_us),
                    Some(Command::Waits(report)) => performance.take_waits(&report, emit)?,
                    Some(Command::Start { .. }) => {}
                    // The parent is gone, and with it any reason to go on.
                    None => return Ok(()),
                },
                // Workers that have handed over for the last time say nothing more.
                report = self.reports.recv(), if performance.ended() < performance.workers => match report {
                    Some(report) => performance.take(report, emit)?,
                    None => return self.join().and(Err(RobotsError::EndedEarly)),
                },
                _ = ticks.tick() => {
                    performance.tick(emit)?;
                    let finished = self.workers.iter().filter(|worker| worker.is_finished()).count();
                    if finished > performance.ended() && self.reports.is_empty() {
                        return self.join().and(Err(RobotsError::EndedEarly));
                    }
                }
            }
        }
        self.finish(emit)?;
        Ok(emit(&Event::Done)?)
    }

    /// When each phase ends, in nanoseconds since the start, as far as it is known.
    fn ends_ns(&self) -> Vec<Option<u64>> {
        let planned =
            || self.setup.timeline.phases().iter().map(|span| span.end.map(|end| end.as_nanos() as u64));
        self.steering.as_ref().map_or_else(|| planned().collect(), Steering::first_ends_ns)
    }

    /// Ends the workers, and the log.
    fn finish(mut self, emit: Emit<'_>) -> Result<(), RobotsError> {
        let log = self.log.take();
        self.join()?;
        if let Some(Err(error)) = log.map(LogWriter::finish) {
            emit(&Event::Fault { reason: Reason::RoleFailed, message: error.to_string() })?;
        }
        Ok(())
    }

    fn join(self) -> Result<(), RobotsError> {
        drop(self.starts);
        self.workers.into_iter().try_for_each(|worker| worker.join()?)
    }
}

impl Performance {
    fn new(setup: Arc<Setup>, control: Arc<Control>, merger: Merger) -> Self {
        let start_ns = control.clock.start_ns;
        let joining = setup.joins_waits.then(|| Joining::new(setup.timeout));
        Self {
            setup,
            control,
            merger,
            joining,
            steering: None,
            pieces: Pieces::default(),
            workers: 0,
            phase: 0,
            phase_start_ns: start_ns,
            begun: false,
            ended: 0,
            errors: 0,
            examples: [0; ErrorKind::ALL.len()],
            next_progress_ns: start_ns + SECOND_NS,
        }
    }

    /// Tells the parent what a worker has to say.
    fn take(&mut self, report: Report, emit: Emit<'_>) -> Result<(), RobotsError> {
        match report {
            Report::Example(example) => self.show(example, emit)?,
            Report::Measured(measured) => emit(&Event::Measured(measured))?,
            Report::Piece(piece) => self.take_piece(&piece, emit)?,
            Report::Handover(handover) => match &mut self.joining {
                None => self.merge(*handover, emit)?,
                Some(joining) => {
                    joining.hold(handover, monotonic_ns());
                    self.merge_joined(emit)?;
                }
            },
        }
        Ok(())
    }

    /// Adds to what is known of the target's waits, and reports what can be joined now.
    fn take_waits(&mut self, report: &WaitReport, emit: Emit<'_>) -> Result<(), StdioError> {
        let Some(joining) = &mut self.joining else { return Ok(()) };
        joining.add(report);
        self.merge_joined(emit)
    }

    /// Merges the handovers that are joined, and those that were held for too long.
    fn merge_joined(&mut self, emit: Emit<'_>) -> Result<(), StdioError> {
        while let Some(handover) =
            self.joining.as_mut().and_then(|joining| joining.next_joined(monotonic_ns()))
        {
            self.merge(handover, emit)?;
        }
        Ok(())
    }

    fn merge(&mut self, handover: Handover, emit: Emit<'_>) -> Result<(), StdioError> {
        self.merger.take(handover).into_iter().try_for_each(|complete| self.publish(complete, emit))
    }

    /// How many workers have handed over for the last time.
    fn ended(&self) -> usize {
        self.merger.ended() + self.joining.as_ref().map_or(0, Joining::last_held)
    }

    fn show(&mut self, example: ErrorExample, emit: Emit<'_>) -> Result<(), StdioError> {
        let seen = &mut self.examples[example.kind as usize];
        *seen = seen.saturating_add(1);
        if *seen > EXAMPLES {
            return Ok(());
        }
        emit(&Event::Measured(Measured::Example(example.into())))
    }

    fn publish(&mut self, complete: Complete, emit: Emit<'_>) -> Result<(), StdioError> {
        let Complete { cut, intervals, launched } = complete;
        for interval in intervals {
            self.watch_errors(&interval);
            emit(&Event::Measured(Measured::Robots(interval.into())))?;
        }
        if cut.ends_phase {
            let at_ms = cut.to_us / 1_000;
            emit(&Event::Phase(PhaseEvent::Ended { phase: cut.phase, at_ms, launched }))?;
            if !self.control.is_over(cut.phase, self.control.end_ns(cut.phase)) {
                emit(&Event::Phase(PhaseEvent::Began { phase: cut.phase + 1, at_ms }))?;
            }
        }
        Ok(())
    }

    /// Stops the run once a phase has had as many errors as its goal allows.
    fn watch_errors(&mut self, interval: &RobotInterval) {
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
        self.follow(now_ns);
        self.watch_freeze(now_ns);
        Ok(self.watch_goal(now_ns, emit)?)
    }

    /// Begins phases and ends those with load that adapts.
    fn steer(&mut self, now_ns: u64, emit: Emit<'_>) -> Result<(), RobotsError> {
        let start_ns = self.control.clock.start_ns;
        let Some(steering) = &mut self.steering else { return Ok(()) };
        let next = steering.next_phase();
        let begin_ns = next.checked_sub(1).map_or(start_ns, |last| self.control.end_ns(last));
        let is_last = usize::from(next) >= self.setup.timeline.phases().len();
        if !is_last && !self.control.is_stopping() && begin_ns <= now_ns + PREPARE_NS {
            let wishes = steering.begin(next, begin_ns - start_ns);
            self.control.reset_alive();
            self.grant(&wishes, emit)?;
        }
        let Some(steering) = &self.steering else { return Ok(()) };
        if steering.end_ns().is_some_and(|end_ns| start_ns + end_ns <= now_ns + LAST_NS) {
            self.announce(emit, Steering::propose_end)?;
        }
        Ok(())
    }

    /// Tells thermostats and scripts what was measured.
    fn take_piece(&mut self, piece: &Piece, emit: Emit<'_>) -> Result<(), RobotsError> {
        let Some((number, sample)) = self.pieces.take(piece, self.workers) else { return Ok(()) };
        let Some(steering) = &mut self.steering else { return Ok(()) };
        let wishes = steering.tell(piece.phase, sample, (number + 1) * PIECE_NS);
        self.grant(&wishes, emit)
    }

    /// Does what thermostats, scripts and the parent want.
    fn grant(&mut self, wishes: &Wishes, emit: Emit<'_>) -> Result<(), RobotsError> {
        let Some(steering) = &self.steering else { return Ok(()) };
        let now_ns = monotonic_ns();
        for line in steering.lines(wishes, self.control.clock.since_start_ns(now_ns)) {
            emit(&Event::Measured(Measured::Adapted(line.into())))?;
        }
        if !wishes.is_change() || self.control.is_stopping() {
            return Ok(());
        }
        if let Some(share) = wishes.population {
            self.control.set_alive(share);
        }
        let phase = steering.next_phase().saturating_sub(1);
        if wishes.end && !steering.steers(phase) && self.control.is_open(phase) {
            self.control.end_phase(phase, now_ns + LEAD_NS);
        }
        self.announce(emit, |steering, at_ns| steering.propose(wishes, at_ns))
    }

    /// Makes a proposal that all workers still hear in time.
    fn announce(
        &mut self,
        emit: Emit<'_>,
        propose: impl Fn(&Steering, u64) -> Result<Option<Proposal>, ScheduleError>,
    ) -> Result<(), RobotsError> {
        let Some(steering) = &mut self.steering else { return Ok(()) };
        let start_ns = self.control.clock.start_ns;
        for lead_ns in LEADS_NS {
            // Before the start, everything begins with it.
            let at_ns = (monotonic_ns() + lead_ns).saturating_sub(start_ns);
            let Some(proposal) = propose(steering, at_ns).map_err(RobotsError::Adapting)? else {
                return Ok(());
            };
            if self.control.announce(proposal.change.clone()) {
                let notes: Vec<Adapted> = steering.settle(proposal);
                return Ok(notes
                    .into_iter()
                    .try_for_each(|note| emit(&Event::Measured(Measured::Adapted(note.into()))))?);
            }
        }
        Ok(())
    }

    /// Goes on to the phase that is on now.
    fn follow(&mut self, now_ns: u64) {
        let end_ns = self.control.end_ns(self.phase);
        if now_ns >= end_ns && !self.control.is_over(self.phase, end_ns) {
            self.phase += 1;
            self.phase_start_ns = end_ns;
            (self.ended, self.errors) = (0, 0);
        }
    }

    fn watch_freeze(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns - self.control.clock.start_ns;
        let frozen = match self.setup.timeline.freeze() {
            Freeze::Never => false,
            Freeze::At(at) => {
                let schedule_ns = self.steering.as_ref().map(|steering| steering.schedule_ns(elapsed_ns));
                schedule_ns.unwrap_or(elapsed_ns) >= at.as_nanos() as u64
            }
            Freeze::Live { fill_objects } => self.control.totals(self.phase).fill_objects >= fill_objects,
        };
        if frozen {
            self.control.freeze();
        }
    }

    /// Ends a phase that ends at a count, once that is reached.
    fn watch_goal(&mut self, now_ns: u64, emit: Emit<'_>) -> Result<(), StdioError> {
        if self.steering.as_ref().is_some_and(|steering| steering.steers(self.phase)) {
            return Ok(());
        }
        if !self.control.is_open(self.phase) || self.control.is_stopping() || now_ns < self.phase_start_ns {
            return Ok(());
        }
        let phase = &self.setup.universe.workload().schedule.phases[usize::from(self.phase)];
        // A decision takes effect a moment from now; time is looked at as it will be then.
        let elapsed = Duration::from_nanos(now_ns + LEAD_NS - self.phase_start_ns);
        let mut done = goal::done(&phase.goal, &self.control.totals(self.phase), elapsed);
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

/// What a worker needs.
struct Assignment {
    identity: Identity,
    timing: Timing,
    /// When all workers begin to measure how quiet it is.
    baseline_ns: u64,
    setup: Arc<Setup>,
    timeline: Arc<Timeline>,
    slice: Slice,
    log: Option<LogQueue>,
    ready: UnboundedSender<Option<Baseline>>,
    started: oneshot::Receiver<Arc<Control>>,
    reports: UnboundedSender<Report>,
}

impl Assignment {
    /// A worker from its beginning to its end.
    async fn perform(self) -> Result<(), RobotsError> {
        let Self { identity, timing, setup, timeline, slice, .. } = self;
        let baseline = match timing.baseline_ms {
            0 => None,
            ms => Some(watch::measure(identity, self.baseline_ns, ms).map_err(RobotsError::Runtime)?),
        };
        let timer = Rc::new(Timer::new(timing.spin_us.saturating_mul(1_000)).map_err(RobotsError::Runtime)?);
        let agenda = Agenda::new(Stream::new(setup.universe.clone(), timeline, slice), setup.adapts);
        let _ = self.ready.send(baseline);
        // Once all have sent theirs or ended, no more are waited for.
        drop(self.ready);
        let Ok(control) = self.started.await else { return Ok(()) };
        let watch = (!timing.unwatched).then(|| Watch::begin(identity, control.clock, &mut timer.account()));
        let health = Health { watch, breather: Breather::new(timing.realtime) };
        let sockets = Rc::new(Sockets::new().map_err(RobotsError::Runtime)?);
        let tools = (timer.clone(), sockets.clone(), health);
        let mut crew = Crew::new(setup, control, (slice, agenda), self.log, self.reports, tools);
        crew.wind_up();
        // The thread has nothing else to do until the end.
        timer.drive(&sockets, &mut crew).map_err(RobotsError::Runtime)
    }
}
