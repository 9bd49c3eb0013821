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
use rustix::io::Errno;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;

use super::connection::Connection;
use super::local::{Due, Local};
use super::multiplex::Multiplex;
use super::site::World;
use super::tally::Handover;
use crate::monitor::{self, Identity, SelfCheck, ThreadMonitor};
use crate::spec::Timing;
use assay_base::clock::monotonic_ns;
use assay_net::arrival::Arrivals;
use assay_net::worker::Breather;
use assay_protocol::clock::RunClock;

/// How long nothing is accepted after a connection could not be.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// The run starts (or will).
    Start(RunClock),
    /// Report, and end.
    Stop,
}

#[derive(Debug)]
pub enum Report {
    /// It accepts connections; how quiet its processor was, if that was to be measured.
    Ready(Option<Box<Baseline>>),
    /// What was counted up to a cut.
    Handover(Handover),
    /// Assay is at a limit.
    Fault(Reason, String),
    /// What it saw of itself.
    Measured(Measured),
    /// It will say nothing more; before its last handover: something is wrong.
    Ended,
}

/// What a worker is started with.
#[derive(Debug)]
pub struct Duty {
    /// Which worker it is.
    pub identity: Identity,
    /// How closely it keeps time.
    pub timing: Timing,
    /// When all workers begin to measure how quiet it is.
    pub baseline_ns: u64,
    /// The universe and the origins.
    pub world: Arc<World>,
    /// Where it accepts connections, for which origin.
    pub listeners: Vec<(OriginIndex, TcpListener)>,
    /// What it is told.
    pub orders: UnboundedReceiver<Order>,
    pub reports: Reports,
}

/// The way to the main thread. Says that the worker has ended, however it ends.
#[derive(Debug)]
pub struct Reports(pub UnboundedSender<Report>);

impl Reports {
    fn send(&self, report: Report) {
        // A parent that is gone needs no report.
        let _ = self.0.send(report);
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.send(Report::Ended);
    }
}

/// Serves until it is told to stop, or the sender of orders is gone.
pub async fn work(duty: Duty) -> io::Result<()> {
    let Duty { identity, timing, baseline_ns, world, listeners, orders, reports } = duty;
    let baseline = match timing.baseline_ms {
        0 => None,
        ms => Some(Box::new(monitor::measure(identity, baseline_ns, ms)?)),
    };
    let local = Rc::new(Local::new(world, timing.spin_us.saturating_mul(1_000))?);
    let faults = Rc::new(Faults { reports: reports.0.clone(), told: Cell::new(false) });
    let mut sockets = Vec::with_capacity(listeners.len());
    for (origin, listener) in listeners {
        let listener = Rc::new(tokio::net::TcpListener::from_std(listener)?);
        sockets.push(Rc::clone(&listener));
        spawn_local(accept(Rc::clone(&local), origin, listener, Rc::clone(&faults)));
    }
    reports.send(Report::Ready(baseline));
    let worker = Worker { identity, timing, sockets, reports, local };
    let self_check = SelfCheck { monitor: None, breather: Breather::new(timing.realtime) };
    worker.serve(orders, self_check).await
}

/// A worker that is ready.
struct Worker {
    identity: Identity,
    timing: Timing,
    sockets: Vec<Rc<tokio::net::TcpListener>>,
    reports: Reports,
    local: Rc<Local>,
}

impl Worker {
    /// Obeys, and does what comes due. The dispatcher comes first whenever the thread wakes up: what is due goes
    /// before what has arrived.
    async fn serve(self, mut orders: UnboundedReceiver<Order>, self_check: SelfCheck) -> io::Result<()> {
        let self_check = std::cell::RefCell::new(self_check);
        let dispatch =
            self.local.timer.dispatch(|at_ns, due| self.ring(at_ns, due, &mut self_check.borrow_mut()));
        let obey = async {
            while let Some(order) = orders.recv().await {
                match order {
                    Order::Start(clock) => {
                        self.admit_lateness(monotonic_ns(), clock);
                        self.local.start(clock);
                        self_check.borrow_mut().monitor = self.watch(clock);
                    }
                    Order::Stop => {
                        self.hand_over(self.local.last_cut(), &mut self_check.borrow_mut());
                        break;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            ended = dispatch => ended,
            () = obey => Ok(()),
        }
    }

    /// A thread that learns of the start after it has dated responses by another clock, and has not counted them.
    fn admit_lateness(&self, now_ns: u64, clock: RunClock) {
        let late_ns = now_ns.saturating_sub(clock.start_ns);
        if late_ns > 0 {
            let message = format!(
                "a thread of the origins stood still and learned of the start {:.0} ms after it; what it sent until then was dated \
                 by another clock and is in no number; run again, with less else on this machine",
                late_ns as f64 / 1e6
            );
            self.reports.send(Report::Fault(Reason::Stalled, message));
        }
    }

    fn watch(&self, clock: RunClock) -> Option<ThreadMonitor> {
        if !self.timing.unwatched || self.timing.realtime {
            self.local.timer.schedule(clock.start_ns, Due::Tick);
        }
        let mut account = self.local.timer.account();
        (!self.timing.unwatched)
            .then(|| ThreadMonitor::begin(self.identity, clock, &mut account).listeners(self.sockets.clone()))
    }

    /// Does what was due at `at_ns`.
    fn ring(&self, at_ns: u64, due: Due, self_check: &mut SelfCheck) {
        match due {
            Due::Think(alarm) => alarm.ring_think(),
            Due::Idle(alarm) => alarm.ring_idle(),
            Due::Cut => self.hand_over(self.local.cut(), self_check),
            Due::Tick => {
                let now_ns = monotonic_ns();
                self.local.arrivals.set(Arrivals::measure());
                self.local.timer.schedule(monitor::next_tick_ns(at_ns, now_ns), Due::Tick);
                self_check.breather.breathe(now_ns);
                let Some(monitor) = &mut self_check.monitor else { return };
                for stall in monitor.tick(now_ns, &mut self.local.timer.account()) {
                    self.reports.send(Report::Measured(Measured::Stall(stall.into())));
                }
            }
        }
    }

    /// What it saw of itself goes first: with the last handover, everything has been said.
    fn hand_over(&self, handover: Handover, self_check: &mut SelfCheck) {
        let account = &mut self.local.timer.account();
        // Origins are matched to phases by time.
        let interval =
            self_check.monitor.as_mut().and_then(|monitor| monitor.end_interval(monotonic_ns(), 0, account));
        if let Some(interval) = interval {
            self.reports.send(Report::Measured(Measured::Thread(interval.into())));
        }
        self.reports.send(Report::Handover(handover));
    }
}

/// Tells of a limit once: what follows from it would be more of the same.
struct Faults {
    reports: UnboundedSender<Report>,
    told: Cell<bool>,
}

impl Faults {
    fn tell(&self, reason: Reason, message: String) {
        if !self.told.replace(true) {
            let _ = self.reports.send(Report::Fault(reason, message));
        }
    }
}

async fn accept(
    local: Rc<Local>,
    origin: OriginIndex,
    listener: Rc<tokio::net::TcpListener>,
    faults: Rc<Faults>,
) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => match (local.world.accept(socket, origin), local.world.version(origin)) {
                (Ok(stream), HttpVersion::Http2) => {
                    spawn_local(Multiplex::new(Rc::clone(&local), stream, origin).serve());
                }
                (Ok(stream), _) => {
                    spawn_local(Connection::new(Rc::clone(&local), stream, origin).serve());
                }
                (Err(error), _) => {
                    faults.tell(Reason::RoleFailed, format!("an origin could not begin TLS ({error})"));
                }
            },
            Err(error) => {
                // Otherwise the client was gone before it was accepted.
                let Some(reason) = own_limit(&error) else { continue };
                faults.tell(reason, format!("an origin could not accept a connection ({error})"));
                local.sleep_until(monotonic_ns() + ACCEPT_PAUSE_NS).await;
            }
        }
    }
}

/// Which limit of ours an error speaks of.
fn own_limit(error: &io::Error) -> Option<Reason> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(Reason::Descriptors),
        Errno::NOBUFS | Errno::NOMEM => Some(Reason::SocketMemory),
        _ => None,
    }
}
