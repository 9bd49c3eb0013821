//! One thread of the switch: it accepts connections, serves them, and obeys messages from the thread that steers.

mod away;
mod client;
mod exchange;
mod group;
mod layer4;
mod pipes;
mod probe;
mod queue;
mod runtime;
mod server;
mod setup;
mod shared;
mod slot;
mod socket;
mod spliced;
mod stream;
mod tunnel;
mod upload;
mod way;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::rc::Rc;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::ServerId;
use tokio::sync::{Notify, mpsc};

use crate::access_log::LogWriter;
use crate::plan::{NewsSender, Plan, Word};
use crate::tally::{LiveCounts, ServerNow, Snapshot, add};
use assay_net::connection::Resources;
use assay_net::limits::{SPARED, room_of};
use assay_net::watch::{Awaits, SOON_NS, TICK_NS, Wait};
use exchange::keeper_of;
use runtime::{Started, spawn};
use server::Server;
use setup::{Registry, Setup};
use shared::{Shared, moment};
use socket::Listener;

/// How often idle connections to servers are looked through, and the log is written.
const SWEEP_NS: u64 = 1_000_000_000;
/// Above so many quarters of the requests that a server may have, those go first whose client does not send or take.
const CROWDED_QUARTERS: u32 = 3;
/// So many of them at a time.
const ENDED_AT_ONCE: u32 = 4;
/// How long no connection is accepted when no descriptor is left: others end, and then there are some again.
const OUT_OF_DESCRIPTORS_TICKS: u32 = 1;

/// What a worker starts with.
pub struct Start {
    pub worker: usize,
    /// What it goes by at first.
    pub plan: Plan,
    /// Where it accepts connections.
    pub listeners: Vec<StdListener>,
    /// What it is told.
    pub words: mpsc::UnboundedReceiver<Word>,
    pub news: NewsSender,
}

/// Works until it is told to stop and the last response is sent. An error: it could not even begin.
pub fn work(start: Start) -> std::io::Result<()> {
    runtime::run(serve(start))?
}

async fn serve(start: Start) -> std::io::Result<()> {
    let Start { worker, plan, listeners, mut words, news } = start;
    let registry = Registry::default();
    runtime::may_rest(plan.config.longest_rest);
    let setup = Rc::new(Setup::new(&plan, None, &registry, worker, moment()));
    let shared = Rc::new(Shared {
        resources: Resources::new(),
        pipes: Rc::default(),
        queue: Rc::default(),
        log: RefCell::new(open_log(&setup)),
        setup: RefCell::new(setup),
        registry,
        counts: LiveCounts::default(),
        longest: RefCell::default(),
        date: RefCell::default(),
        news,
        is_stopping: Cell::new(false),
        changed: Notify::new(),
        worker,
    });
    spawn(tick(Rc::clone(&shared)));
    let mut accepting = Accepting::default();
    accepting.add(listeners, &shared)?;
    while let Some(word) = words.recv().await {
        match word {
            Word::Plan(plan, listeners, done) => {
                adopt(&shared, &plan);
                accepting.keep_only(&plan.listen, &shared);
                // One that cannot be had is lost to this worker only; the thread that steers has bound it.
                let _ = accepting.add(listeners, &shared);
                let _ = done.send(());
            }
            Word::Standing(server, weight) => stand(&shared, server, weight),
            Word::Snapshot(response) => {
                let _ = response.send(snapshot(&shared));
            }
            Word::Stop => {
                shared.is_stopping.set(true);
                accepting.keep_only(&[], &shared);
                shared.resources.watch.dismiss_idle();
                break;
            }
            Word::End => return Ok(()),
        }
    }
    while shared.counts.clients.get() > 0 {
        tokio::select! {
            () = shared.changed.notified() => {}
            word = words.recv() => match word {
                Some(Word::Snapshot(response)) => drop(response.send(snapshot(&shared))),
                Some(Word::End) | None => break,
                Some(Word::Standing(server, weight)) => stand(&shared, server, weight),
                Some(Word::Plan(..) | Word::Stop) => {}
            }
        }
    }
    shared.flush_log();
    Ok(())
}

/// Looks after deadlines, idle connections and the log.
async fn tick(shared: Rc<Shared>) {
    let (mut requested_ns, mut swept_ns, mut next_ns) = (0, 0, TICK_NS);
    loop {
        runtime::tick(next_ns).await;
        let now_ns = monotonic_ns();
        next_ns = shared.resources.watch.tick(now_ns);
        shared.changed.notify_waiters();
        if shared.is_stopping.get() {
            shared.resources.watch.dismiss_idle();
        }
        let setup = shared.setup();
        let are_crowded = setup.servers.values().filter(|server| !make_room(server, &shared)).count() > 0;
        next_ns = if are_crowded { SOON_NS } else { next_ns };
        if let Some(every) = setup.config.state.interval
            && now_ns.saturating_sub(requested_ns) >= every.as_nanos() as u64
        {
            requested_ns = now_ns;
            probe::probe_all(&shared);
        }
        if now_ns.saturating_sub(swept_ns) >= SWEEP_NS {
            swept_ns = now_ns;
            let longest_ns = setup.config.timeouts.server_idle.as_nanos() as u64;
            setup.servers.values().for_each(|server| server.sweep(now_ns, longest_ns));
            shared.flush_log();
        }
    }
}

/// Ends requests whose clients neither send nor take, where a server has not much room left for others: a few at a time. False: there may
/// be more.
fn make_room(server: &Server, shared: &Shared) -> bool {
    let most = server.most.get() / 4 * CROWDED_QUARTERS;
    let beyond = server.in_flight.get().saturating_sub(most.max(1));
    if beyond == 0 {
        return true;
    }
    let own = keeper_of(server.id);
    let chosen = move |wait: Wait| wait.awaits == Awaits::Peer && wait.keeps == own;
    let mut longest = server.longest.borrow_mut();
    !(0..beyond.min(ENDED_AT_ONCE)).all(|_| longest.dismiss(&shared.resources.watch, SPARED, chosen))
        || beyond < ENDED_AT_ONCE
}

/// Takes on another configuration. Requests that are under way go on with the one that they began with.
fn adopt(shared: &Rc<Shared>, plan: &Plan) {
    let former = shared.setup();
    runtime::may_rest(plan.config.longest_rest);
    let setup = Rc::new(Setup::new(plan, Some(&former), &shared.registry, shared.worker, moment()));
    for (id, server) in &former.servers {
        if !setup.servers.contains_key(id) {
            server.standing.set(None);
            server.close_idle();
        }
    }
    shared.flush_log();
    *shared.log.borrow_mut() = open_log(&setup);
    *shared.setup.borrow_mut() = setup;
    shared.queue.call_all();
    shared.changed.notify_waiters();
}

/// A log that cannot be opened was complained of when the configuration was read.
fn open_log(setup: &Setup) -> Option<LogWriter> {
    setup.config.access_log.as_ref().and_then(|log| LogWriter::open(log).ok())
}

/// A server may get requests from now on with this weight, or none at all.
fn stand(shared: &Shared, server: ServerId, weight: Option<f64>) {
    let setup = shared.setup();
    let Some(server) = setup.servers.get(&server) else { return };
    server.standing.set(weight);
    if weight.is_none() {
        server.close_idle();
    }
    let now = moment();
    setup.groups.iter().filter(|group| group.has(server.id)).for_each(|group| group.tell_standings(now));
    shared.queue.call_all();
}

fn snapshot(shared: &Shared) -> Snapshot {
    let setup = shared.setup();
    let counts = &shared.counts;
    let mut all = Snapshot {
        clients: u64::from(counts.clients.get()),
        in_flight: u64::from(counts.in_flight.get()),
        waiting: shared.queue.len() as u64,
        accepted: counts.accepted.get(),
        refused: counts.refused_with(&shared.resources.refused),
        no_server: counts.no_server.each_ref().map(Cell::get),
        left: counts.left.get(),
        connects: counts.connects.get(),
        slow: shared.resources.watch.ended().slow,
        dismissed: shared.resources.watch.ended().dismissed,
        log_lost: counts.log_lost.get(),
        ..Snapshot::default()
    };
    shared.registry.for_each(|class, server, tally| {
        let tally = tally.copy();
        // What never was needs no line.
        if tally.requests() + tally.connections + tally.failed > 0 {
            all.tallies.push((class.to_owned(), server.map(str::to_owned), tally));
        }
    });
    let mut servers: Vec<&Rc<Server>> = setup.servers.values().collect();
    servers.sort_by_key(|server| server.id);
    all.servers = servers
        .into_iter()
        .map(|server| ServerNow {
            name: server.name.clone(),
            up: server.standing.get().is_some(),
            weight: server.standing.get().unwrap_or(0.0),
            in_flight: u64::from(server.in_flight.get()),
            idle: server.idle() as u64,
        })
        .collect();
    all
}

/// The listening sockets of a worker, and the tasks that accept on them.
#[derive(Default)]
struct Accepting {
    all: HashMap<SocketAddr, (Rc<RefCell<Listener>>, Started)>,
}

impl Accepting {
    fn add(&mut self, listeners: Vec<StdListener>, shared: &Rc<Shared>) -> std::io::Result<()> {
        for listener in listeners {
            let address = listener.local_addr()?;
            let listener = Rc::new(RefCell::new(Listener::new(listener)));
            let task = spawn(accept(Rc::clone(&listener), address, Rc::clone(shared)));
            self.all.insert(address, (listener, task));
        }
        Ok(())
    }

    /// Closes what is not listened at any more. What waits there already is accepted.
    fn keep_only(&mut self, addresses: &[SocketAddr], shared: &Rc<Shared>) {
        let closing: Vec<SocketAddr> =
            self.all.keys().filter(|address| !addresses.contains(address)).copied().collect();
        for address in closing {
            if let Some((listener, task)) = self.all.remove(&address) {
                task.end();
                while let Ok((stream, peer)) = listener.borrow().try_accept() {
                    add(&shared.counts.accepted);
                    client::start(stream, peer, address, shared);
                }
            }
        }
    }
}

/// Accepts connections as long as there may be more, for ever.
async fn accept(listener: Rc<RefCell<Listener>>, address: SocketAddr, shared: Rc<Shared>) {
    let mut pause_ticks = 0;
    loop {
        let most = shared.setup.borrow().most_clients as usize;
        let room = most.saturating_sub(shared.counts.clients.get() as usize);
        let is_full = room == 0;
        if room <= room_of(most) {
            // The one that its client has kept without a use for longest goes.
            shared.longest.borrow_mut().dismiss(&shared.resources.watch, SPARED, |wait| !wait.is_stream);
        }
        if pause_ticks > 0 || is_full {
            listener.borrow_mut().rest();
            shared.changed.notified().await;
            pause_ticks = u32::saturating_sub(pause_ticks, 1);
            continue;
        }
        match poll_fn(|cx| listener.borrow_mut().poll_accept(cx)).await {
            Ok((stream, peer)) => {
                add(&shared.counts.accepted);
                client::start(stream, peer, address, &shared);
            }
            Err(_) => pause_ticks = OUT_OF_DESCRIPTORS_TICKS,
        }
    }
}
