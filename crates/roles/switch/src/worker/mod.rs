//! Worker threads: each accepts connections, serves them, and follows messages of the control thread.

mod client;
mod context;
mod direction;
mod exchange;
mod group;
mod layer4;
mod pipes;
mod probe;
mod queue;
mod runtime;
mod server;
mod setup;
mod slot;
mod socket;
mod splice;
mod transport;
mod tunnel;
mod upload;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::ServerId;
use tokio::sync::{Notify, mpsc};

use crate::access_log::AccessLogWriter;
use crate::messages::{ControlMessage, ReportSender, WorkerConfig};
use crate::tally::{LiveCounts, ServerStatus, SwitchSnapshot, add};
use assay_net::connection::Resources;
use assay_net::deadlines::{PeerWait, SHORT_TICK_NS, TICK_NS, WaitReason};
use assay_net::limits::{EVICTION_GRACE, eviction_reserve};
use assay_net::listen::own_limit;
use context::{WorkerContext, moment};
use exchange::slot_key;
use runtime::{TaskHandle, spawn};
use server::Server;
use setup::{Registry, WorkerSetup};
use socket::WorkerListener;

/// Interval at which idle server connections are checked and the log is written.
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;
const DISMISSED_PER_TICK: u32 = 4;
/// Pause in accepting when no descriptor is left: others end meanwhile.
const OUT_OF_DESCRIPTORS_TICKS: u32 = 1;

pub struct WorkerStart {
    pub worker: usize,
    pub config: WorkerConfig,
    pub listeners: Vec<StdListener>,
    pub messages: mpsc::UnboundedReceiver<ControlMessage>,
    pub reports: ReportSender,
}

/// Runs a worker until it is stopped and the last response is sent. An error: it could not start.
pub fn run_worker(start: WorkerStart) -> std::io::Result<()> {
    runtime::run(serve(start))?
}

async fn serve(start: WorkerStart) -> std::io::Result<()> {
    let WorkerStart { worker, config, listeners, mut messages, reports } = start;
    let registry = Registry::default();
    runtime::set_max_pause(config.config.max_pause);
    let setup = Rc::new(WorkerSetup::new(&config, None, &registry, worker, moment()));
    let shared = Rc::new(WorkerContext {
        resources: Resources::new(),
        pipes: Rc::default(),
        queue: Rc::default(),
        log: RefCell::new(open_log(&setup)),
        setup: RefCell::new(setup),
        registry,
        counts: LiveCounts::default(),
        longest_waits: RefCell::default(),
        date: RefCell::default(),
        reports,
        is_stopping: Cell::new(false),
        changed: Notify::new(),
        worker,
    });
    spawn(tick(Rc::clone(&shared)));
    let mut acceptors = Acceptors::default();
    acceptors.add(listeners, &shared)?;
    while let Some(message) = messages.recv().await {
        match message {
            ControlMessage::Reload(config, listeners, done) => {
                reload(&shared, &config);
                acceptors.keep_only(&config.listen, &shared);
                // A socket that cannot be used is missing in this worker only: the control thread has bound the address.
                let _ = acceptors.add(listeners, &shared);
                let _ = done.send(());
            }
            ControlMessage::Availability(server, weight) => set_weight(&shared, server, weight),
            ControlMessage::Snapshot(response) => {
                let _ = response.send(snapshot(&shared));
            }
            ControlMessage::Stop => {
                shared.is_stopping.set(true);
                acceptors.keep_only(&[], &shared);
                shared.resources.deadlines.close_idle();
                break;
            }
            ControlMessage::End => return Ok(()),
        }
    }
    while shared.counts.clients.get() > 0 {
        tokio::select! {
            () = shared.changed.notified() => {}
            message = messages.recv() => match message {
                Some(ControlMessage::Snapshot(response)) => drop(response.send(snapshot(&shared))),
                Some(ControlMessage::End) | None => break,
                Some(ControlMessage::Availability(server, weight)) => set_weight(&shared, server, weight),
                Some(ControlMessage::Reload(..) | ControlMessage::Stop) => {}
            }
        }
    }
    shared.flush_log();
    Ok(())
}

/// Checks deadlines, and maintains idle connections and the log.
async fn tick(shared: Rc<WorkerContext>) {
    let (mut probed_ns, mut swept_ns, mut next_ns) = (0, 0, TICK_NS);
    loop {
        runtime::tick(next_ns).await;
        let now_ns = monotonic_ns();
        next_ns = shared.resources.deadlines.tick(now_ns);
        shared.changed.notify_waiters();
        if shared.is_stopping.get() {
            shared.resources.deadlines.close_idle();
        }
        let setup = shared.setup();
        let are_crowded =
            setup.servers.values().filter(|server| !dismiss_stalled(server, &shared)).count() > 0;
        next_ns = if are_crowded { SHORT_TICK_NS } else { next_ns };
        if let Some(every) = setup.config.state.interval
            && now_ns.saturating_sub(probed_ns) >= every.as_nanos() as u64
        {
            probed_ns = now_ns;
            probe::probe_all(&shared);
        }
        if now_ns.saturating_sub(swept_ns) >= SWEEP_INTERVAL_NS {
            swept_ns = now_ns;
            let longest_ns = setup.config.timeouts.server_idle.as_nanos() as u64;
            setup.servers.values().for_each(|server| server.sweep(now_ns, longest_ns));
            shared.flush_log();
        }
    }
}

/// Ends a few requests with stalled clients at a server that has more than three quarters of its limit. Returns false if there may be
/// more.
fn dismiss_stalled(server: &Server, shared: &WorkerContext) -> bool {
    let limit = server.max_requests.get();
    let beyond = server.in_flight.get().saturating_sub((limit - limit.div_ceil(4)).max(1));
    if beyond == 0 {
        return true;
    }
    let own_slot = slot_key(server.id);
    let is_candidate = move |wait: PeerWait| wait.reason == WaitReason::Peer && wait.held_slot == own_slot;
    let mut longest_waits = server.longest_waits.borrow_mut();
    !(0..beyond.min(DISMISSED_PER_TICK))
        .all(|_| longest_waits.dismiss(&shared.resources.deadlines, EVICTION_GRACE, is_candidate))
        || beyond < DISMISSED_PER_TICK
}

/// Replaces the configuration. Requests under way keep theirs.
fn reload(shared: &Rc<WorkerContext>, config: &WorkerConfig) {
    let former = shared.setup();
    runtime::set_max_pause(config.config.max_pause);
    let setup = Rc::new(WorkerSetup::new(config, Some(&former), &shared.registry, shared.worker, moment()));
    for (id, server) in &former.servers {
        if !setup.servers.contains_key(id) {
            server.weight.set(None);
            server.close_idle();
        }
    }
    shared.flush_log();
    *shared.log.borrow_mut() = open_log(&setup);
    *shared.setup.borrow_mut() = setup;
    shared.queue.notify_all();
    shared.changed.notify_waiters();
}

/// Opens the log. Failures were reported when the configuration was checked.
fn open_log(setup: &WorkerSetup) -> Option<AccessLogWriter> {
    setup.config.access_log.as_ref().and_then(|log| AccessLogWriter::open(log).ok())
}

/// Sets the weight of a server; `None` takes it out.
fn set_weight(shared: &WorkerContext, server: ServerId, weight: Option<f64>) {
    let setup = shared.setup();
    let Some(server) = setup.servers.get(&server) else { return };
    server.weight.set(weight);
    if weight.is_none() {
        server.close_idle();
    }
    let now = moment();
    setup.groups.iter().filter(|group| group.has(server.id)).for_each(|group| group.report_weights(now));
    shared.queue.notify_all();
}

fn snapshot(shared: &WorkerContext) -> SwitchSnapshot {
    let setup = shared.setup();
    let counts = &shared.counts;
    let mut all = SwitchSnapshot {
        clients: u64::from(counts.clients.get()),
        in_flight: u64::from(counts.in_flight.get()),
        waiting: shared.queue.len() as u64,
        accepted: counts.accepted.get(),
        refused: counts.refused_with(&shared.resources.refusals),
        no_server: counts.no_server.each_ref().map(Cell::get),
        left: counts.left.get(),
        connects: counts.connects.get(),
        slow: shared.resources.deadlines.counts().slow,
        dismissed: shared.resources.deadlines.counts().dismissed,
        log_lost: counts.log_lost.get(),
        ..SwitchSnapshot::default()
    };
    shared.registry.for_each(|class, server, tally| {
        let tally = tally.copy();
        // Combinations that never occurred are left out.
        if tally.requests() + tally.connections + tally.failed > 0 {
            all.tallies.push((class.to_owned(), server.map(str::to_owned), tally));
        }
    });
    let mut servers: Vec<&Rc<Server>> = setup.servers.values().collect();
    servers.sort_by_key(|server| server.id);
    all.servers = servers
        .into_iter()
        .map(|server| ServerStatus {
            name: server.name.clone(),
            up: server.weight.get().is_some(),
            weight: server.weight.get().unwrap_or(0.0),
            in_flight: u64::from(server.in_flight.get()),
            idle: server.idle() as u64,
        })
        .collect();
    all
}

/// Listening sockets of a worker, and the tasks that accept on them.
#[derive(Default)]
struct Acceptors {
    all: HashMap<SocketAddr, (Rc<RefCell<WorkerListener>>, TaskHandle)>,
}

impl Acceptors {
    fn add(&mut self, listeners: Vec<StdListener>, shared: &Rc<WorkerContext>) -> std::io::Result<()> {
        for listener in listeners {
            let address = listener.local_addr()?;
            let listener = Rc::new(RefCell::new(WorkerListener::new(listener)));
            let task = spawn(accept(Rc::clone(&listener), address, Rc::clone(shared)));
            self.all.insert(address, (listener, task));
        }
        Ok(())
    }

    /// Closes sockets at all other addresses, after accepting the connections that are waiting there.
    fn keep_only(&mut self, addresses: &[SocketAddr], shared: &Rc<WorkerContext>) {
        let closing: Vec<SocketAddr> =
            self.all.keys().filter(|address| !addresses.contains(address)).copied().collect();
        for address in closing {
            if let Some((listener, task)) = self.all.remove(&address) {
                task.abort();
                while let Ok((stream, peer)) = listener.borrow().try_accept() {
                    add(&shared.counts.accepted);
                    client::start(stream, peer, address, shared);
                }
            }
        }
    }
}

/// Accepts connections while the limit permits, for ever.
async fn accept(listener: Rc<RefCell<WorkerListener>>, address: SocketAddr, shared: Rc<WorkerContext>) {
    let mut pause_ticks = 0;
    loop {
        let max_clients = shared.setup.borrow().max_clients as usize;
        let free_slots = max_clients.saturating_sub(shared.counts.clients.get() as usize);
        let is_full = free_slots == 0;
        if free_slots <= eviction_reserve(max_clients) {
            // Close to the limit, the connection that has been idle for longest is closed.
            shared
                .longest_waits
                .borrow_mut()
                .dismiss(&shared.resources.deadlines, EVICTION_GRACE, |wait| !wait.is_stream);
        }
        if pause_ticks > 0 || is_full {
            listener.borrow_mut().pause();
            shared.changed.notified().await;
            pause_ticks = u32::saturating_sub(pause_ticks, 1);
            continue;
        }
        match poll_fn(|cx| listener.borrow_mut().poll_accept(cx)).await {
            Ok((stream, peer)) => {
                add(&shared.counts.accepted);
                client::start(stream, peer, address, &shared);
            }
            Err(error) if own_limit(&error).is_none() => {}
            Err(_) => pause_ticks = OUT_OF_DESCRIPTORS_TICKS,
        }
    }
}
