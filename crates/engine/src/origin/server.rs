//! How does a worker of the origins spend its life?

use std::cell::Cell;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::OriginIndex;
use rustix::io::Errno;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::spawn_local;

use super::connection::Connection;
use super::local::{Due, Local};
use super::site::World;
use super::tally::Handover;
use crate::clock::RunClock;

/// How long nothing is accepted after a connection could not be.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// To a worker.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// The run starts (or will).
    Start(RunClock),
    /// Report, and end.
    Stop,
}

/// From a worker.
#[derive(Debug)]
pub enum Report {
    /// It accepts connections.
    Ready,
    /// What was counted up to a cut.
    Handover(Handover),
    /// Assay is at a limit.
    Fault(String),
    /// It will say nothing more; before its last handover: something is wrong.
    Ended,
}

/// What a worker is started with.
#[derive(Debug)]
pub struct Duty {
    /// The universe and the origins.
    pub world: Arc<World>,
    /// Where it accepts connections, for which origin.
    pub listeners: Vec<(OriginIndex, TcpListener)>,
    /// What it is told.
    pub orders: UnboundedReceiver<Order>,
    /// Whom it tells.
    pub reports: UnboundedSender<Report>,
}

/// Says that the worker has ended, however it ends.
struct Farewell(UnboundedSender<Report>);

impl Drop for Farewell {
    fn drop(&mut self) {
        // A parent that is gone needs no word.
        let _ = self.0.send(Report::Ended);
    }
}

/// Serves until it is told to stop, or nobody is there to tell it.
pub async fn work(duty: Duty) -> io::Result<()> {
    let Duty { world, listeners, mut orders, reports } = duty;
    let _farewell = Farewell(reports.clone());
    let local = Rc::new(Local::new(world)?);
    let faults = Rc::new(Faults { reports: reports.clone(), told: Cell::new(false) });
    for (origin, listener) in listeners {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        spawn_local(accept(Rc::clone(&local), origin, listener, Rc::clone(&faults)));
    }
    spawn_local(dispatch(Rc::clone(&local), reports.clone()));
    if reports.send(Report::Ready).is_err() {
        return Ok(());
    }
    while let Some(order) = orders.recv().await {
        match order {
            Order::Start(clock) => local.start(clock),
            Order::Stop => {
                // Nobody left to tell is no error.
                let _ = reports.send(Report::Handover(local.last_cut()));
                break;
            }
        }
    }
    Ok(())
}

async fn dispatch(local: Rc<Local>, reports: UnboundedSender<Report>) {
    let ended = local
        .timer
        .dispatch(|_, due| match due {
            Due::Think(alarm) => alarm.ring_think(),
            Due::Idle(alarm) => alarm.ring_idle(),
            Due::Cut => {
                let _ = reports.send(Report::Handover(local.cut()));
            }
        })
        .await;
    if let Err(error) = ended {
        let _ = reports
            .send(Report::Fault(format!("the origins' timer failed: {error}; think times cannot be kept")));
    }
}

/// Tells of a limit once: what follows from it would be more of the same.
struct Faults {
    reports: UnboundedSender<Report>,
    told: Cell<bool>,
}

impl Faults {
    fn tell(&self, message: String) {
        if !self.told.replace(true) {
            let _ = self.reports.send(Report::Fault(message));
        }
    }
}

async fn accept(
    local: Rc<Local>,
    origin: OriginIndex,
    listener: tokio::net::TcpListener,
    faults: Rc<Faults>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                spawn_local(Connection::new(Rc::clone(&local), stream, origin).serve());
            }
            Err(error) if is_own_limit(&error) => {
                faults.tell(format!(
                    "an origin could not accept a connection: {error}; raise the limit on open files (ulimit -n)"
                ));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            // The client was gone before it was accepted.
            Err(_) => {}
        }
    }
}

fn is_own_limit(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
