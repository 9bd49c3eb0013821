//! Robots: simulated users that request objects and check the responses.
//!
//! `assay role robots` is [`run`]. The main thread ([`coordinator`]) reads the spec ([`setup`]), starts the workers and
//! merges their snapshots. A worker owns a slice of the robots ([`worker`]). Its timer launches the requests of the
//! stream ([`schedule`], [`events`], [`launching`]). Each goes to a connection of its robot or waits for one
//! ([`connecting`], [`pool`], [`securing`], [`pipeline`], [`multiplex`]); requests are written and responses judged as
//! they come ([`exchange`], [`request`], [`response`], [`judge`]), and every xact is counted at its end ([`completion`],
//! [`recorder`]). The state of a robot between its requests is its [`memory`] ([`login`], [`session`]). A worker also
//! monitors its own thread ([`network`]). Workers share what never changes, and a few numbers about phases
//! ([`control`]). Where load adapts, workers send samples to the coordinator ([`sampling`], [`recorder`]), which decides
//! for all ([`load_controller`]). Where the parent watches the target, the times of xacts are joined with its waits for
//! processors before they are reported ([`wait_joiner`]).
//!
//! *Counting.* An xact belongs to the phase it was due in. Due = sent + unsent + not reached + errors of requests that
//! never got a connection (a full queue, no descriptor, no port, a lifetime that was over), and sent = completed + errors
//! of those that were sent, once nothing is under way.
//!
//! # Special requests and identity
//!
//! An xact has `RequestFeatures` if it may need special handling (determined in advance by flags of its group, content
//! type and origin); plain ones execute none of that code. Features that are not implemented yet are marked in `pgl`'s
//! schema, and nowhere else.
//!
//! *Identity of robots.* The state of a robot between requests is its `RobotMemory`, which is created when it is first
//! needed. After a 401 or 407, the xact continues with a further step that uses the better of the schemes offered; from
//! then on every request to that origin (or through that target) carries the credentials. A rejected password is not sent
//! again: the robot is refused, which is not an error. Cookies are kept for each origin, up to the robot's limit (and
//! 50), for 256 origins. A request with `Expect` waits a second for 100 before sending its body; after 417 it is sent
//! without `Expect`. When a session ends, the robot forgets which servers required credentials, its session cookies and
//! its own cache, closes idle connections, and cancels requests that wait for one (*unsent*). An embedded object is in a
//! robot's own cache from the instant at which its page is due, whatever the outcome of the request, so the due requests
//! are the same for all targets; an object that is found there is never due.
//!
//! *Basic* keeps its meaning: a GET of type Basic that was neither redirected, refused, aborted on purpose, nor met an
//! injected fault. Those are counted in separate classes, and are not errors: the proxy's handling of them is a result.

mod backlog;
mod completion;
mod connecting;
mod connection;
mod control;
mod coordinator;
mod events;
mod exchange;
mod expect_continue;
mod expected_body;
mod features;
mod goal;
mod ideal_events;
mod judge;
mod launching;
mod load_controller;
mod log;
mod login;
mod memory;
mod multiplex;
mod network;
mod pipeline;
mod pool;
mod recorder;
mod request;
mod response;
mod response_error;
mod sampling;
mod schedule;
mod securing;
mod session;
mod setup;
mod special;
mod streams;
mod timeouts;
mod wait_joiner;
mod worker;
mod xact;

use std::sync::Arc;

use assay_protocol::message::Event;
use thiserror::Error;

use self::coordinator::WorkerPool;
pub use self::log::XactLogError;
use self::setup::RobotSetup;
pub use self::setup::SetupError;
use crate::spec::RobotsSpec;
use assay_net::worker::{WorkerError, pin, raise_descriptor_limit};
use assay_protocol::stdio::{Commands, StdioError, emit};

/// Failure of the robots' process.
#[derive(Debug, Error)]
pub enum RobotsError {
    /// The spec or the workload cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There is no xact log.
    #[error(transparent)]
    Log(#[from] XactLogError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The runtime of the main thread, or of a worker, failed.
    #[error("the robots' runtime failed: {0}")]
    Runtime(std::io::Error),
    /// Load cannot be adapted.
    #[error("the load cannot be adapted: {0}")]
    Adapting(assay_workload::ScheduleError),
    /// The parent cannot be understood or reached.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// A worker ended before its last snapshot.
    #[error("a worker of the robots ended early: this is a bug of Assay")]
    EndedEarly,
}

/// Runs the process of `assay role robots`: obeys standard input, reports on standard output. Ends after the schedule,
/// after a stop, or at end of input.
pub fn run(spec: RobotsSpec) -> Result<(), RobotsError> {
    pin(&spec.cpus)?;
    raise_descriptor_limit();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RobotsError::Runtime)?;
    runtime.block_on(async {
        let pool = WorkerPool::start(&spec, Arc::new(RobotSetup::read(&spec)?)).await?;
        let mut commands = Commands::from_stdin().map_err(RobotsError::Runtime)?;
        pool.run(&mut commands, &mut |event| emit(event)).await
    })
}

/// Runs with commands and events of the caller's; neither pins the calling thread nor raises limits.
pub async fn run_with(
    spec: &RobotsSpec,
    commands: &mut Commands,
    emit: &mut dyn FnMut(&Event) -> Result<(), StdioError>,
) -> Result<(), RobotsError> {
    WorkerPool::start(spec, Arc::new(RobotSetup::read(spec)?)).await?.run(commands, emit).await
}
