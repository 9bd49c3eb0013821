//! A run from start to end: the order in which roles are started, the handling of their events, and the end of all of them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use assay_host::metrics::Meter;
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, Event, PhaseEvent, ProxyCounters};
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PlacementInfo, RunInfo};
use assay_record::series::SeriesWriter;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::caches;
use crate::conformance::ConformanceRun;
use crate::counter_reader::CounterReadError;
use crate::error::{LabError, PartialRunError};
use crate::instant::StartInstant;
use crate::network::{EmulatedNetwork, PacketAudit};
use crate::plan::{RunOutcome, RunPart, RunPlan, TargetChoice};
use crate::prepare::{Prepared, prepare};
use crate::remote::resume;
use crate::roles::{RoleEvent, RoleKind};
use crate::running_roles::RunningRoles;
use crate::tls::RunTls;
use crate::topology::Cache;

use crate::run_findings::RunFindings;

/// Time that a role may take to be ready.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Time that origins and the built-in proxy may take for their last report.
const LAST_REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which robots count as dead; they report every second.
const SILENCE: Duration = Duration::from_secs(30);

/// Age from which on a report of a resumed run counts as stored before.
const OLD_MS: u64 = 3000;

/// Interval at which robots get the waits of the target: their intervals are held until these are known.
const WAITS_EVERY: Duration = Duration::from_millis(100);

/// Runs a plan. `stop` turning true drains the run and ends it early, marked partial; dropping the future
/// kills everything that was started. Call it on a runtime whose threads outlive the run.
pub async fn run(
    plan: RunPlan,
    events: mpsc::UnboundedSender<RunEvent>,
    stop: watch::Receiver<bool>,
) -> Result<RunOutcome, LabError> {
    run_with_commands(plan, events, stop, None).await
}

/// Runs a plan while `commands` are passed on to the robots. They end the run when they are told to stop, and it is complete then.
pub async fn run_with_commands(
    mut plan: RunPlan,
    events: mpsc::UnboundedSender<RunEvent>,
    stop: watch::Receiver<bool>,
    commands: Option<mpsc::UnboundedReceiver<Command>>,
) -> Result<RunOutcome, LabError> {
    plan.apply_settings()?;
    let prepared = if plan.is_resumed() { resume::prepare(&plan)? } else { prepare(&plan)? };
    let mut session = Session::new(plan, prepared, events, stop)?;
    session.commands = commands;
    session.notify(RunEvent::Stage(Stage::Planned { run_dir: session.run_dir() }));
    let mut running = RunningRoles::default();
    let result = session.drive(&mut running).await;
    session.finish(running, result).await
}

/// Input to a run that goes on.
#[derive(Debug)]
pub(crate) enum SessionInput {
    /// An event of a role.
    Role(RoleKind, RoleEvent),
    /// The user ends the run.
    Stop,
}

/// A run in progress.
pub(crate) struct Session {
    pub(crate) plan: RunPlan,
    pub(crate) prepared: Prepared,
    /// Keys, certificates and settings of TLS.
    pub(crate) secured: RunTls,
    pub(crate) info: RunInfo,
    pub(crate) findings: RunFindings,
    writer: SeriesWriter,
    events: mpsc::UnboundedSender<RunEvent>,
    stop: watch::Receiver<bool>,
    /// Commands to robots on the way; none: the schedule says everything.
    commands: Option<mpsc::UnboundedReceiver<Command>>,
    pub(crate) role_events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
    inbox: mpsc::UnboundedReceiver<(RoleKind, RoleEvent)>,
    packet_audit: PacketAudit,
    started: Option<StartInstant>,
    /// Last counters of each cache.
    cache_counters: BTreeMap<u16, ProxyCounters>,
    /// Roles that have said everything.
    done: Vec<RoleKind>,
    partial: bool,
    /// The end of the last interval of robots, in milliseconds since the start.
    measured_ms: u64,
    /// Cases that are tried beside the load.
    pub(crate) conformance: Option<ConformanceRun>,
    /// The sender of the stop signal is gone.
    unstoppable: bool,
}

impl Session {
    fn new(
        plan: RunPlan,
        prepared: Prepared,
        events: mpsc::UnboundedSender<RunEvent>,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, LabError> {
        let info = resume::initial_info(&plan, &prepared)?;
        let dir = &prepared.dir;
        let writer = SeriesWriter::create(dir).map_err(LabError::plan)?;
        let run_dir = std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned());
        let secured = RunTls::make(&plan, &run_dir, &prepared.origin_listen, prepared.target)?;
        let (role_events, inbox) = mpsc::unbounded_channel();
        let packet_audit = prepared.network.as_ref().map(EmulatedNetwork::packet_audit).unwrap_or_default();
        Ok(Self {
            packet_audit,
            secured,
            plan,
            prepared,
            info,
            findings: RunFindings::default(),
            writer,
            events,
            stop,
            commands: None,
            role_events,
            inbox,
            started: None,
            cache_counters: BTreeMap::new(),
            done: Vec::new(),
            partial: false,
            measured_ms: 0,
            conformance: None,
            unstoppable: false,
        })
    }

    /// The run directory, absolute: roles have another working directory.
    pub(crate) fn run_dir(&self) -> PathBuf {
        let path = self.prepared.dir.path();
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }

    pub(crate) fn notify(&self, event: RunEvent) {
        // Nobody looks: the record is what counts.
        let _ = self.events.send(event);
    }

    pub(crate) fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Waits for the next event of a role, or for the stop, which comes once.
    pub(crate) async fn next_input(&mut self) -> SessionInput {
        loop {
            let stop_matters = !self.partial && !self.unstoppable;
            tokio::select! {
                Some((kind, event)) = self.inbox.recv() => return SessionInput::Role(kind, event),
                changed = self.stop.changed(), if stop_matters => match changed {
                    Ok(()) if *self.stop.borrow() => {
                        self.partial = true;
                        return SessionInput::Stop;
                    }
                    Ok(()) => {}
                    // Whoever could have stopped the run is gone; it goes on to its end.
                    Err(_) => self.unstoppable = true,
                },
            }
        }
    }

    async fn drive(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        if *self.stop.borrow() {
            return Err(LabError::Interrupted);
        }
        let start =
            if self.plan.is_resumed() { self.resume(running).await? } else { self.begin(running).await? };
        self.set_start(start);
        self.announce_start();
        self.begin_conformance();
        match self.plan.part {
            RunPart::Origins { linger, .. } => self.serve_origins(running, linger).await?,
            RunPart::Whole | RunPart::Robots { .. } => self.follow_schedule(running).await?,
        }
        self.end_conformance().await;
        self.last_reports(running).await?;
        // A stop is how a schedule without an end ends: nothing is cut short.
        let phase = self.info.phases.last();
        self.partial &=
            !(self.prepared.timeline.is_endless() && phase.is_some_and(|last| last.start_ms.is_some()));
        Ok(())
    }

    pub(crate) fn set_start(&mut self, start: StartInstant) {
        self.started = Some(start);
        self.info.started_unix_ms = start.unix_s * 1000;
        self.info.started_monotonic_ns = start.monotonic_ns;
    }

    /// Origins alone: they respond until some time after the schedule's end, or until they are stopped.
    async fn serve_origins(&mut self, running: &mut RunningRoles, linger: Duration) -> Result<(), LabError> {
        let begin = Instant::now() + Duration::from_millis(self.until_start_ms());
        let total = self.prepared.timeline.total();
        let end = total.map(|total| begin + total + linger);
        let mut ticker = tokio::time::interval_at(begin, Duration::from_secs(1));
        let mut meter: Option<Meter> = None;
        loop {
            let over = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                input = self.next_input() => match input {
                    SessionInput::Role(kind, event) => self.handle(running, kind, event).await?,
                    SessionInput::Stop => break,
                },
                _ = ticker.tick() => match &mut meter {
                    None => meter = Some(Meter::new(running.accounts(), None, None)),
                    Some(meter) => self.keep_host(meter)?,
                },
                () = over => break,
            }
        }
        if let Some(meter) = &mut meter {
            self.keep_host(meter)?;
        }
        // Once the schedule is over, or where nobody knows when that is, stopping them cuts nothing short.
        self.partial &= total.is_some_and(|total| Instant::now() < begin + total);
        // They do not know of phases; these are as planned.
        let now_ms = self.now_ms();
        for phase in &mut self.info.phases {
            phase.start_ms = phase.planned_start_ms.filter(|start_ms| *start_ms < now_ms);
            phase.end_ms = phase.start_ms.and(phase.planned_end_ms).map(|end_ms| end_ms.min(now_ms));
        }
        Ok(())
    }

    /// The schedule: keeps what is reported until robots have said everything.
    async fn follow_schedule(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        let begin = Instant::now() + Duration::from_millis(self.until_start_ms());
        let mut ticker = tokio::time::interval_at(begin, Duration::from_secs(1));
        let mut waits_due = tokio::time::interval_at(begin, WAITS_EVERY);
        waits_due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut meter: Option<Meter> = None;
        let mut trace = self.trace_disk(running);
        let mut last_heard = begin;
        let mut commands = self.commands.take();
        while !self.done.contains(&RoleKind::Robots) {
            let silent = tokio::time::sleep_until(last_heard + SILENCE);
            tokio::select! {
                input = self.next_input() => match input {
                    SessionInput::Role(kind, event) => {
                        if kind == RoleKind::Robots {
                            last_heard = Instant::now();
                        }
                        self.handle(running, kind, event).await?;
                    }
                    SessionInput::Stop => {
                        self.notify(RunEvent::Stage(Stage::Draining));
                        running.send(RoleKind::Robots, Command::Stop).await?;
                    }
                },
                Some(command) = next_command(&mut commands) => running.send(RoleKind::Robots, command).await?,
                Some(reading) = running.counters() => self.record_counters(reading.cache, reading.at_ms, reading.counters)?,
                // The machines of a fleet are measured by their agents.
                _ = ticker.tick(), if self.plan.remote.is_none() => match &mut meter {
                    None => meter = Some(Meter::new(self.accounts(running), self.store(running), trace.take())),
                    Some(meter) => {
                        self.keep_host(meter)?;
                        self.check_watched();
                        if let Some(words) = running.proxy_exit_message() {
                            return Err(LabError::target(words));
                        }
                    }
                },
                _ = waits_due.tick(), if self.watches_target() => {
                    if let Some(waits) = meter.as_ref().and_then(Meter::waits) {
                        // This fails only where robots have ended, which is noticed elsewhere.
                        let _ = running.send(RoleKind::Robots, Command::Waits(waits)).await;
                    }
                }
                () = silent => return Err(LabError::assay(format!(
                    "robots have reported nothing for {SILENCE:?}; they are stopped; their own words are in roles/robots.log"
                ))),
            }
        }
        if let Some(meter) = &mut meter {
            self.keep_host(meter)?;
        }
        Ok(())
    }

    /// Origins and the built-in proxy still have their last interval to tell.
    async fn last_reports(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        let first = std::iter::once(RoleKind::Origins);
        let all = first.chain(running.proxy_roles()).chain([RoleKind::Links]);
        let waiting: Vec<RoleKind> =
            all.collect::<Vec<_>>().into_iter().filter(|kind| running.has(*kind)).collect();
        // Of a run that was taken up, some may have said everything long ago.
        for kind in waiting.iter().filter(|kind| !self.done.contains(kind)) {
            running.send(*kind, Command::Stop).await?;
        }
        let deadline = Instant::now() + LAST_REPORT_TIMEOUT;
        while !waiting.iter().all(|kind| self.done.contains(kind)) {
            match tokio::time::timeout_at(deadline, self.next_input()).await {
                Ok(SessionInput::Role(kind, event)) => self.handle(running, kind, event).await?,
                Ok(SessionInput::Stop) => {}
                Err(_) => {
                    let missing = waiting.iter().filter(|kind| !self.done.contains(kind));
                    let missing: Vec<&str> = missing.map(|kind| kind.name()).collect();
                    let message =
                        format!("the last report of {} did not come in time", missing.join(" and "));
                    self.doubt(Doubt::serious(Reason::RoleFailed, message));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn handle(
        &mut self,
        running: &mut RunningRoles,
        kind: RoleKind,
        event: RoleEvent,
    ) -> Result<(), LabError> {
        match event {
            RoleEvent::Event(event) => self.handle_event(kind, *event),
            RoleEvent::Malformed(words) => {
                let seen = format!("{} said something that is no event: {words}", kind.name());
                self.doubt(Doubt::serious(Reason::RoleFailed, seen));
                Ok(())
            }
            RoleEvent::Ended if self.done.contains(&kind) => Ok(()),
            RoleEvent::Ended => Err(LabError::assay(running.exit_summary(kind).await)),
        }
    }

    pub(crate) fn handle_event(&mut self, kind: RoleKind, event: Event) -> Result<(), LabError> {
        match event {
            Event::Measured(measured) => self.record(measured)?,
            Event::Phase(event) => self.handle_phase(event)?,
            Event::Proxy(counters) => {
                let place = if let RoleKind::Proxy(place) = kind { place } else { 0 };
                return self.record_counters(place, self.counters_read_ms(), Ok(*counters));
            }
            Event::Fault { reason, message } => {
                let role = kind.name().to_owned();
                self.doubt(Doubt { role, ..Doubt::serious(reason, message) });
            }
            Event::Done => self.done.push(kind),
            // A second one says nothing new; the others are messages of roles that no run has.
            Event::Ready { .. } | Event::Collector(_) | Event::Multiplier(_) => {}
        }
        Ok(())
    }

    /// Writes a measurement into the record, into what the run is judged by, and to whoever looks.
    pub(crate) fn record(&mut self, measured: Measured) -> Result<(), LabError> {
        self.writer.keep(&measured).map_err(LabError::run)?;
        match &measured {
            Measured::Robots(interval) => {
                self.measured_ms = self.measured_ms.max(interval.start_ms + interval.length_ms);
                self.findings.robots(interval);
            }
            Measured::Origins(interval) => self.findings.origins(interval),
            // A link that does not keep its plan ends the run: nothing after it is what was requested.
            Measured::Link(interval) => self.packet_audit.record(interval).map_err(LabError::run)?,
            _ => {}
        }
        self.notify(RunEvent::Measured(measured));
        Ok(())
    }

    fn handle_phase(&mut self, event: PhaseEvent) -> Result<(), LabError> {
        match &event {
            PhaseEvent::Began { phase, at_ms } => {
                if let Some(info) = self.info.phases.get_mut(usize::from(*phase)) {
                    info.start_ms = Some(*at_ms);
                }
                // At each change: a run that is killed still knows its phases.
                self.write_info()?;
            }
            PhaseEvent::Ended { phase, at_ms, launched } => {
                if let Some(info) = self.info.phases.get_mut(usize::from(*phase)) {
                    info.end_ms = Some(*at_ms);
                }
                self.record_boundaries(*phase, launched);
                self.write_info()?;
            }
            PhaseEvent::Progress { .. } => {}
        }
        self.notify(RunEvent::Phase(event));
        Ok(())
    }

    fn record_counters(
        &mut self,
        cache: u16,
        at_ms: u64,
        read: Result<ProxyCounters, CounterReadError>,
    ) -> Result<(), LabError> {
        match read {
            Ok(counters) => {
                let name = self.info.target.caches.get(usize::from(cache)).map_or("", |cache| &cache.name);
                self.record(Measured::Proxy(counters.sample(name, at_ms).into()))?;
                self.cache_counters.insert(cache, counters);
                let mut counters = ProxyCounters::default();
                self.cache_counters.values().for_each(|one| counters.merge(one));
                self.findings.proxy(&counters);
            }
            Err(e) => self.findings.warn(format!("the proxy's own counters could not be read: {e}")),
        }
        Ok(())
    }

    fn record_boundaries(&mut self, phase: u16, launched: &[u32]) {
        if launched.is_empty() {
            return;
        }
        let phase = usize::from(phase);
        if self.info.boundaries.len() <= phase {
            self.info.boundaries.resize(phase + 1, Vec::new());
        }
        self.info.boundaries[phase] = launched.to_vec();
    }

    fn doubt(&mut self, doubt: Doubt) {
        let Some(doubt) = self.findings.record_role_doubt(doubt) else { return };
        // In the record at once: what is wrong with a run that is killed later is known, too. The next change of the
        // record tries again if this cannot be written.
        self.info.verdict.doubts.push(doubt.clone());
        let _ = self.write_info();
        self.notify(RunEvent::Doubt(Box::new(doubt)));
    }

    pub(crate) fn record_placement(&mut self, placed: PlacementInfo) {
        self.info.placement.push(placed);
    }

    pub(crate) fn write_info(&self) -> Result<(), LabError> {
        self.prepared.dir.write_info(&self.info).map_err(LabError::run)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.started.map_or(0, |started| started.elapsed_ms())
    }

    /// Time at which counters were read that came just now. In a run that was taken up they may have been stored for long: then, when the
    /// intervals were measured that were stored beside them.
    fn counters_read_ms(&self) -> u64 {
        let now_ms = self.now_ms();
        let is_old = self.plan.is_resumed() && self.measured_ms + OLD_MS < now_ms;
        if is_old { self.measured_ms } else { now_ms }
    }

    pub(crate) fn until_start_ms(&self) -> u64 {
        self.started.map_or(0, |started| started.remaining_ms())
    }

    /// Stops everything, writes everything, judges.
    async fn finish(
        mut self,
        running: RunningRoles,
        result: Result<(), LabError>,
    ) -> Result<RunOutcome, LabError> {
        self.notify(RunEvent::Stage(Stage::Collecting));
        let run_dir = self.run_dir();
        let mut report = running.stop_all().await;
        self.collect_remote_files().await;
        std::mem::take(&mut report.warnings).into_iter().for_each(|warning| self.findings.warn(warning));
        self.info.limits = report.limits.take().or(self.info.limits.take());
        self.warn_of_limits();
        for (place, counters) in std::mem::take(&mut report.counters) {
            // The result of the run is not lost for a last counter that cannot be written.
            let kept = self.record_counters(place, self.now_ms(), Ok(counters));
            kept.err().into_iter().for_each(|e| self.findings.warn(e.to_string()));
        }
        if let Err(error) = &result {
            self.partial = true;
            // The caller gets the error itself; here it goes into the record.
            match error {
                LabError::Interrupted => {}
                LabError::Target(cause) => self.findings.warn(cause.to_string()),
                LabError::Assay(cause) => {
                    self.findings.doubt(Doubt::serious(Reason::RoleFailed, cause.to_string()));
                }
                other => self.findings.doubt(Doubt::serious(Reason::LabFailed, other.to_string())),
            }
        }
        for phase in self.info.phases.iter_mut().filter(|phase| phase.start_ms.is_some()) {
            // A phase that the end of the run cut off ends there.
            phase.end_ms = phase.end_ms.or(self.started.map(|started| started.elapsed_ms()));
        }
        self.conclude_links();
        self.warn_of_placement();
        let cache_bytes = self.capacity_bytes();
        let findings = std::mem::take(&mut self.findings);
        findings.conclude(&self.prepared.dir, &mut self.info, self.partial, cache_bytes);
        self.info.verdict.warnings.append(&mut self.plan.warnings);
        let written = self.writer.finish().map_err(LabError::run);
        let unread = caches::keep(&self.plan, &self.prepared.dir, &self.info);
        self.info.verdict.warnings.extend(unread);
        self.info.finished = written.is_ok();
        let informed = self.prepared.dir.write_info(&self.info).map_err(LabError::run);
        // Beside all this, the files of proxies were removed.
        report.wait_removed().await;
        // The receiver may be gone; that is no failure of the run.
        let _ = self.events.send(RunEvent::Finished);
        let partial = |cause| PartialRunError { cause, run_dir };
        result.map_err(|error| match error {
            LabError::Target(cause) => LabError::target(partial(cause)),
            LabError::Assay(cause) => LabError::assay(partial(cause)),
            other => other,
        })?;
        written?;
        informed?;
        Ok(RunOutcome { run_dir: self.prepared.dir.path().to_owned(), verdict: self.info.verdict })
    }

    /// Writes the totals of links into the record, and doubts them.
    fn conclude_links(&mut self) {
        let (Some(network), Some(info)) = (&self.prepared.network, &mut self.info.bed) else { return };
        self.packet_audit.write(info);
        for doubt in self.packet_audit.doubts(network.device_drops()) {
            self.findings.doubt(doubt);
        }
    }

    fn warn_of_placement(&mut self) {
        let shares = match &self.info.fleet {
            Some(fleet) => fleet
                .machines
                .iter()
                .any(|machine| machine.roles.len() > 1 && machine.roles.iter().any(|role| role == "proxy")),
            None => self.prepared.placement.proxy.is_empty(),
        };
        if self.plan.target.is_started() && shares {
            self.findings.warn(
                "the proxy shares its processors with robots and origins: what it could do is this machine's limit, \
                 not the proxy's",
            );
        }
    }

    fn warn_of_limits(&mut self) {
        let killed = self.info.limits.as_ref().and_then(|limits| limits.killed_for_memory).unwrap_or(0);
        if killed > 0 {
            let words =
                format!("the kernel ended {killed} processes of the proxy: it went over its memory limit");
            self.findings.warn(words);
        }
    }

    fn capacity_bytes(&self) -> Option<u64> {
        let (memory, disk) = (self.plan.memory_bytes, self.plan.disk_bytes);
        match &self.plan.target {
            TargetChoice::Builtin(_) => Some(memory),
            TargetChoice::Described(description, _) => Some(description.capacity_bytes(memory, disk)),
            TargetChoice::Topology(topology) => Some(topology.caches.iter().map(Cache::capacity_bytes).sum()),
            TargetChoice::Direct | TargetChoice::Running { .. } => None,
        }
    }
}

/// The next order; where nobody gives any (more), never.
async fn next_command(commands: &mut Option<mpsc::UnboundedReceiver<Command>>) -> Option<Command> {
    let next = match commands {
        Some(given) => given.recv().await,
        None => std::future::pending().await,
    };
    if next.is_none() {
        *commands = None;
    }
    next
}
