//! Origins: simulated servers that respond to the requests that reach them.
//!
//! `assay role origins` is [`run`]: it listens as its spec says, serves every object of the universe with bytes of the
//! static pool ([`head`]), and counts by the phase that requests name ([`tally`]). A worker ([`server`]) owns one
//! listening socket per origin; a connection is a task ([`connection`], [`http2`]) that holds no buffer while it is idle.
//! Nothing is allocated per xact, and workers share only what never changes ([`config`]).
//!
//! Where a workload has more than plain requests for objects, a request has a special part ([`request::SpecialRequest`]);
//! its response is decided in one place ([`special`]), with its own fields ([`fields`]) and segments of bodies
//! ([`response_body`]). Request bodies are compared with those that their robots send ([`upload`]), clients are
//! authenticated ([`authentication`]), and an injected fault is met once ([`recent_requests`]). None of it costs a plain request
//! more than a look at a flag.
//!
//! A request without our mark (a fetch that a proxy makes on its own, or one whose mark it dropped) gets a response with
//! the mark of nobody ([`assay_workload::XactId::NOBODY`]), which no robot takes for its own. `/assay/health` responds
//! with `ok` and its name to every client and is not counted.
//!
//! # Bodies and responses
//!
//! *Bodies* are of a kind (`BodySource`). A page's body is text that contains its links as markup, each ending at its
//! `link_end`; a page is at least as long as its links. With `unique` below 1, objects share a body: its key is then the
//! content type's, and the object's own key is still in `X-Assay`. A coded body (gzip) is made by the origin from the
//! same bytes; robots decode and compare.
//!
//! *Responses of an origin* are decided in this order: an injected fault, 401, 417, 406, 302, 304, 416, then 200 or 206.
//! A `Location` is a path without a host, so it has the same meaning through every kind of proxy, and a 302 must not be
//! stored. Parts use the identity coding; if only gzip is acceptable, the whole object is sent. A second attempt at a
//! request that met a fault, within ten seconds, gets the regular response. PUT is handled like POST.

mod accept_request;
mod authentication;
mod body_pacer;
mod config;
mod connection;
#[cfg(test)]
mod fault_tests;
mod fields;
mod head;
mod http2;
mod lingering_close;
mod listen;
mod recent_requests;
mod request;
mod response;
mod response_body;
mod server;
mod special;
#[cfg(test)]
mod special_tests;
mod tally;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod upload;
mod worker_state;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use assay_measurement::measured::Measured;
use assay_protocol::message::{Command, Event};
use assay_workload::model::{OriginIndex, Workload};
use assay_workload::{Universe, UniverseError, UniverseOptions};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::config::SharedOrigins;
pub use self::listen::ListenError;
use self::server::{OriginCommand, OriginReport, OriginWorkerSpec, Reports, run_worker};
use self::tally::OriginMerger;
use crate::files::{WorkloadFileError, read_files};
use crate::monitor::{BASELINE_LEAD_NS, Identity};
use crate::spec::{OriginsSpec, UniverseSpec};
use assay_base::clock::monotonic_ns;
use assay_net::tls::server::TlsServer;
use assay_net::tls::setup::{self, TlsSetupError};
use assay_net::worker::{
    CpuPlacement, Worker as WorkerThread, WorkerError, cpu_of, pin, raise_descriptor_limit,
};
use assay_protocol::clock::RunClock;
use assay_protocol::stdio::{Commands, StdioError, emit};

/// Failure of the origins' process. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum OriginError {
    /// The workload cannot be read.
    #[error("cannot read the workload {path}: {cause}")]
    Read { path: PathBuf, cause: std::io::Error },
    /// The workload is not one.
    #[error("{path} is not a compiled workload: {cause}")]
    Parse { path: PathBuf, cause: serde_json::Error },
    /// The workload cannot be run.
    #[error("the workload cannot be run: {0}")]
    Universe(UniverseError),
    /// A file of the workload cannot be read.
    #[error(transparent)]
    Files(#[from] WorkloadFileError),
    /// More addresses than origins, or none.
    #[error(
        "the workload has {origins} origins, but there are {addresses} addresses to listen on from origin {first} on"
    )]
    Addresses {
        /// Origins of the workload.
        origins: usize,
        /// The first that is to listen.
        first: u16,
        addresses: usize,
    },
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Origins cannot speak TLS as they were told.
    #[error("origins cannot speak TLS: {0}")]
    Tls(#[from] TlsSetupError),
    #[error(transparent)]
    WorkerThread(#[from] WorkerError),
    /// The runtime of the main thread, or of a worker, failed.
    #[error("the origins' runtime failed: {0}")]
    Runtime(std::io::Error),
    /// The parent cannot be understood or reached.
    #[error(transparent)]
    Stdio(#[from] StdioError),
    /// A worker ended though it was not told to.
    #[error("a worker of the origins ended early: this is a bug of Assay")]
    EndedEarly,
}

/// Runs the process of `assay role origins`: obeys standard input, reports on standard output, and ends at end of
/// input.
pub fn run(spec: OriginsSpec) -> Result<(), OriginError> {
    pin(&spec.cpus)?;
    raise_descriptor_limit();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(OriginError::Runtime)?;
    let mut origins = Origins::from_spec(&spec)?;
    let ended = runtime.block_on(async {
        let mut commands = Commands::from_stdin().map_err(OriginError::Runtime)?;
        origins.serve_commands(&mut commands, &mut |event| emit(event)).await
    });
    // What a worker died of says more than that it is dead.
    origins.join().and(ended)
}

/// Runs with commands and events of the caller's; neither pins the calling thread nor raises limits.
pub async fn run_with(
    spec: &OriginsSpec,
    commands: &mut Commands,
    emit: &mut dyn FnMut(&Event) -> Result<(), StdioError>,
) -> Result<(), OriginError> {
    let mut origins = Origins::from_spec(spec)?;
    let ended = origins.serve_commands(commands, &mut |event| emit(event)).await;
    origins.join().and(ended)
}

/// The workers of the origins, seen from the main thread.
#[derive(Debug)]
struct Origins {
    listening: Vec<SocketAddr>,
    workers: Vec<WorkerThread<std::io::Result<()>>>,
    worker_commands: Vec<UnboundedSender<OriginCommand>>,
    reports: UnboundedReceiver<OriginReport>,
}

impl Origins {
    fn from_spec(spec: &OriginsSpec) -> Result<Self, OriginError> {
        let tls = spec.tls.as_ref().map(setup::server).transpose()?;
        Self::start(spec, load(&spec.universe)?, tls)
    }

    /// Listens, and starts the workers.
    fn start(spec: &OriginsSpec, universe: Universe, tls: Option<TlsServer>) -> Result<Self, OriginError> {
        let (first, addresses, timing) = (spec.first, &spec.listen[..], spec.timing);
        let origins = universe.workload().origins.len();
        if addresses.is_empty() != (origins == 0) || usize::from(first) + addresses.len() > origins {
            return Err(OriginError::Addresses { origins, first, addresses: addresses.len() });
        }
        let threads = spec.threads.max(1) as usize;
        let mut listening = Vec::with_capacity(origins);
        let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::with_capacity(origins)).collect();
        for (index, address) in (usize::from(first)..).zip(addresses) {
            let listeners = listen::listen(index, *address, threads)?;
            listening.push(listeners[0].local_addr().map_err(|cause| ListenError {
                origin: index,
                address: *address,
                cause,
            })?);
            // Origins are numbered in 16 bits; the universe has checked it.
            for (share, listener) in shares.iter_mut().zip(listeners) {
                share.push((index as OriginIndex, listener));
            }
        }
        // Those that listen elsewhere are known by their names alone.
        let mut known = vec![SocketAddr::from(([0; 4], 0)); usize::from(first)];
        known.extend(&listening);
        let shared = Arc::new(SharedOrigins::new(universe, &known).with_tls(tls));
        let (reports_in, reports) = unbounded_channel();
        let (mut workers, mut worker_commands) = (Vec::new(), Vec::new());
        let baseline_ns = monotonic_ns() + BASELINE_LEAD_NS;
        for (index, listeners) in shares.into_iter().enumerate() {
            let (orders_in, orders_out) = unbounded_channel();
            worker_commands.push(orders_in);
            let cpu = cpu_of(&spec.cpus, index);
            let worker_spec = OriginWorkerSpec {
                identity: Identity { role: "origins", thread: index as u32, cpu },
                timing,
                baseline_ns,
                shared: Arc::clone(&shared),
                listeners,
                worker_commands: orders_out,
                reports: Reports(reports_in.clone()),
            };
            let seat = CpuPlacement { cpu, realtime: timing.realtime };
            workers.push(WorkerThread::start(format!("origins-{index}"), seat, move || {
                run_worker(worker_spec)
            })?);
        }
        Ok(Self { listening, workers, worker_commands, reports })
    }

    fn broadcast(&self, command: OriginCommand) {
        for worker_commands in &self.worker_commands {
            // A worker that has ended says so itself.
            let _ = worker_commands.send(command);
        }
    }

    /// Passes commands to the workers and their reports to the parent, until it is told to stop and all is reported, or
    /// the parent is gone.
    async fn serve_commands(
        &mut self,
        commands: &mut Commands,
        out: &mut impl FnMut(&Event) -> Result<(), StdioError>,
    ) -> Result<(), OriginError> {
        let mut merger = OriginMerger::new(self.workers.len());
        let mut unready = self.workers.len();
        while !merger.is_done() {
            tokio::select! {
                command = commands.next() => match command? {
                    None => return Ok(()),
                    Some(Command::Stop) => self.broadcast(OriginCommand::Stop),
                    Some(Command::Start { at_monotonic_ns: start_ns, at_unix_s: start_unix_s }) => {
                        self.broadcast(OriginCommand::Start(RunClock { start_ns, start_unix_s }));
                    }
                    Some(Command::Load { .. } | Command::Clock { .. } | Command::Waits(_)) => {}
                },
                report = self.reports.recv() => match report {
                    Some(OriginReport::Ready(baseline)) => {
                        if let Some(baseline) = baseline {
                            out(&Event::Measured(Measured::Baseline(baseline)))?;
                        }
                        unready -= 1;
                        if unready == 0 {
                            out(&Event::Ready { listening: self.listening.clone() })?;
                        }
                    }
                    Some(OriginReport::Snapshot(mut snapshot)) => {
                        for example in std::mem::take(&mut snapshot.examples) {
                            out(&Event::Measured(Measured::Example(example.into())))?;
                        }
                        for interval in merger.add(snapshot) {
                            out(&Event::Measured(Measured::Origins(interval.into())))?;
                        }
                    }
                    Some(OriginReport::Measured(measured)) => out(&Event::Measured(measured))?,
                    Some(OriginReport::Fault(reason, message)) => out(&Event::Fault { reason, message })?,
                    // One that was told to stop has handed over before; then its farewell is no surprise.
                    Some(OriginReport::Ended) if merger.has_ended() => {}
                    Some(OriginReport::Ended) | None => return Err(OriginError::EndedEarly),
                },
            }
        }
        out(&Event::Done)?;
        Ok(())
    }

    /// Ends the workers, which are told nothing more, and waits for them.
    fn join(self) -> Result<(), OriginError> {
        drop(self.worker_commands);
        for worker in self.workers {
            worker.join()?.map_err(OriginError::Runtime)?;
        }
        Ok(())
    }
}

fn load(spec: &UniverseSpec) -> Result<Universe, OriginError> {
    let path = || spec.workload.clone();
    let text = assay_base::files::bytes(&spec.workload, assay_base::files::DOCUMENT_MAX)
        .map_err(|cause| OriginError::Read { path: path(), cause })?;
    let workload: Workload =
        serde_json::from_slice(&text).map_err(|cause| OriginError::Parse { path: path(), cause })?;
    let options = UniverseOptions { private_as_public: spec.private_as_public };
    let files = read_files(&workload)?;
    Universe::with_files(Arc::new(workload), spec.seed, spec.world, options, &files)
        .map_err(OriginError::Universe)
}
