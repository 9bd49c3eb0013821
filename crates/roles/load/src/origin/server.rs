//! A worker of the origins, from its start to its end.

use std::cell::Cell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use assay_measurement::doubt::Reason;
use assay_measurement::health::Baseline;
use assay_measurement::measured::Measured;
use assay_workload::model::{HttpVersion, OriginIndex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;

use super::config::SharedOrigins;
use super::connection::Http1Connection;
use super::http2::Http2Connection;
use super::tally::OriginSnapshot;
use super::worker_state::{OriginTimerEvent, WorkerState};
use crate::monitor::{self, Identity, SelfCheck, ThreadMonitor};
use crate::spec::Timing;
use assay_base::clock::monotonic_ns;
use assay_net::listen::own_limit;
use assay_net::rx_timestamps::ClockOffset;
use assay_net::worker::Yielder;
use assay_protocol::clock::RunClock;

/// Pause in accepting after a connection could not be accepted.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

#[derive(Debug, Clone, Copy)]
pub enum OriginCommand {
    /// The run starts (or will).
    Start(RunClock),
    /// Report, and end.
    Stop,
}

#[derive(Debug)]
pub enum OriginReport {
    /// Connections are accepted; with the baseline of the worker's processor, if that was to be measured.
    Ready(Option<Box<Baseline>>),
    /// Counts of a second.
    Snapshot(OriginSnapshot),
    /// Assay is at a limit.
    Fault(Reason, String),
    /// Measurements of the worker's own thread.
    Measured(Measured),
    /// Nothing more comes. Before the last snapshot: something is wrong.
    Ended,
}

/// Everything that a worker is started with.
#[derive(Debug)]
pub struct OriginWorkerSpec {
    pub identity: Identity,
    pub timing: Timing,
    /// Instant at which all workers begin to measure their baselines.
    pub baseline_ns: u64,
    /// The universe and the origins.
    pub shared: Arc<SharedOrigins>,
    /// Listeners, with their origins.
    pub listeners: Vec<(OriginIndex, TcpListener)>,
    pub worker_commands: UnboundedReceiver<OriginCommand>,
    pub reports: Reports,
}

/// The way to the main thread. Says that the worker has ended, however it ends.
#[derive(Debug)]
pub struct Reports(pub UnboundedSender<OriginReport>);

impl Reports {
    fn send(&self, report: OriginReport) {
        // A parent that is gone needs no report.
        let _ = self.0.send(report);
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.send(OriginReport::Ended);
    }
}

/// Serves until a stop, or until the sender of commands is gone.
pub async fn run_worker(worker_spec: OriginWorkerSpec) -> io::Result<()> {
    let OriginWorkerSpec { identity, timing, baseline_ns, shared, listeners, worker_commands, reports } =
        worker_spec;
    let baseline = match timing.baseline_ms {
        0 => None,
        ms => Some(Box::new(monitor::measure(identity, baseline_ns, ms)?)),
    };
    let worker = Rc::new(WorkerState::new(shared, timing.spin_us.saturating_mul(1_000))?);
    let limit_reporter = Rc::new(LimitReporter { reports: reports.0.clone(), is_reported: Cell::new(false) });
    let mut sockets = Vec::with_capacity(listeners.len());
    for (origin, listener) in listeners {
        let listener = Rc::new(tokio::net::TcpListener::from_std(listener)?);
        sockets.push(Rc::clone(&listener));
        spawn_local(accept(Rc::clone(&worker), origin, listener, Rc::clone(&limit_reporter)));
    }
    reports.send(OriginReport::Ready(baseline));
    let origin_worker = OriginWorker { identity, timing, sockets, reports, worker };
    let self_check = SelfCheck { monitor: None, breather: Yielder::new(timing.realtime) };
    origin_worker.serve(worker_commands, self_check).await
}

/// A worker that is ready.
struct OriginWorker {
    identity: Identity,
    timing: Timing,
    sockets: Vec<Rc<tokio::net::TcpListener>>,
    reports: Reports,
    worker: Rc<WorkerState>,
}

impl OriginWorker {
    /// Obeys, and does what comes due. The dispatcher comes first whenever the thread wakes up: what is due goes
    /// before what has arrived.
    async fn serve(
        self,
        mut worker_commands: UnboundedReceiver<OriginCommand>,
        self_check: SelfCheck,
    ) -> io::Result<()> {
        let self_check = std::cell::RefCell::new(self_check);
        let dispatch =
            self.worker.timer.dispatch(|at_ns, due| self.ring(at_ns, due, &mut self_check.borrow_mut()));
        let serve_commands = async {
            while let Some(command) = worker_commands.recv().await {
                match command {
                    OriginCommand::Start(clock) => {
                        self.report_late_start(monotonic_ns(), clock);
                        self.worker.start(clock);
                        self_check.borrow_mut().monitor = self.watch(clock);
                    }
                    OriginCommand::Stop => {
                        self.send_snapshot(self.worker.end_run(), &mut self_check.borrow_mut());
                        break;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            ended = dispatch => ended,
            () = serve_commands => Ok(()),
        }
    }

    /// Reports a late start: until it learns of the start, a thread dates responses by another clock, and does not
    /// count them.
    fn report_late_start(&self, now_ns: u64, clock: RunClock) {
        let late_ns = now_ns.saturating_sub(clock.start_ns);
        if late_ns > 0 {
            let message = format!(
                "a thread of the origins stood still and learned of the start {:.0} ms after it; what it sent until then was dated \
                 by another clock and is in no number; run again, with less else on this machine",
                late_ns as f64 / 1e6
            );
            self.reports.send(OriginReport::Fault(Reason::Stalled, message));
        }
    }

    fn watch(&self, clock: RunClock) -> Option<ThreadMonitor> {
        if !self.timing.unwatched || self.timing.realtime {
            self.worker.timer.schedule(clock.start_ns, OriginTimerEvent::Tick);
        }
        let mut account = self.worker.timer.lag_recorder();
        (!self.timing.unwatched)
            .then(|| ThreadMonitor::begin(self.identity, clock, &mut account).listeners(self.sockets.clone()))
    }

    /// Does what was due at `at_ns`.
    fn ring(&self, at_ns: u64, due: OriginTimerEvent, self_check: &mut SelfCheck) {
        match due {
            OriginTimerEvent::Think(alarm) => alarm.fire_think(),
            OriginTimerEvent::Idle(alarm) => alarm.fire_idle(),
            OriginTimerEvent::SecondEnd => self.send_snapshot(self.worker.end_second(), self_check),
            OriginTimerEvent::Tick => {
                let now_ns = monotonic_ns();
                self.worker.arrivals.set(ClockOffset::measure());
                self.worker.timer.schedule(monitor::next_tick_ns(at_ns, now_ns), OriginTimerEvent::Tick);
                self_check.breather.yield_if_due(now_ns);
                let Some(monitor) = &mut self_check.monitor else { return };
                for stall in monitor.tick(now_ns, &mut self.worker.timer.lag_recorder()) {
                    self.reports.send(OriginReport::Measured(Measured::Stall(stall.into())));
                }
            }
        }
    }

    /// Sends the measurements of the thread first: with the last snapshot, everything has been said.
    fn send_snapshot(&self, snapshot: OriginSnapshot, self_check: &mut SelfCheck) {
        let account = &mut self.worker.timer.lag_recorder();
        // Origins are matched to phases by time.
        let interval =
            self_check.monitor.as_mut().and_then(|monitor| monitor.end_interval(monotonic_ns(), 0, account));
        if let Some(interval) = interval {
            self.reports.send(OriginReport::Measured(Measured::Thread(interval.into())));
        }
        self.reports.send(OriginReport::Snapshot(snapshot));
    }
}

/// Tells of a limit once: what follows from it would be more of the same.
struct LimitReporter {
    reports: UnboundedSender<OriginReport>,
    is_reported: Cell<bool>,
}

impl LimitReporter {
    fn report(&self, reason: Reason, message: String) {
        if !self.is_reported.replace(true) {
            let _ = self.reports.send(OriginReport::Fault(reason, message));
        }
    }
}

async fn accept(
    worker: Rc<WorkerState>,
    origin: OriginIndex,
    listener: Rc<tokio::net::TcpListener>,
    limit_reporter: Rc<LimitReporter>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => match (worker.shared.accept(socket, origin), worker.shared.version(origin)) {
                (Ok(stream), HttpVersion::Http2) => {
                    spawn_local(Http2Connection::new(Rc::clone(&worker), stream, origin).serve());
                }
                (Ok(stream), _) => {
                    spawn_local(Http1Connection::new(Rc::clone(&worker), stream, origin).serve());
                }
                (Err(error), _) => {
                    limit_reporter
                        .report(Reason::RoleFailed, format!("an origin could not begin TLS ({error})"));
                }
            },
            Err(error) => {
                let Some(reason) = own_limit(&error) else { continue };
                limit_reporter.report(reason, format!("an origin could not accept a connection ({error})"));
                worker.sleep_until(monotonic_ns() + ACCEPT_PAUSE_NS).await;
            }
        }
    }
}
