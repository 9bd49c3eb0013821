//! Nodes: how they come up, and what they tell. A thread that serves all of them, each on an address of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use assay_cluster::dispatch::Moment;
use assay_cluster::simulate::{Cluster, Experiment, Failure, Group, Mix, SAMPLE_EVERY_S, Service, site};
use assay_measurement::histogram::Histogram;
use assay_net::listen::listen;
use assay_record::cluster::NodeUse;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_local;

use crate::node::error::NodeError;
use crate::node::house::House;
use crate::node::pace::{Alarm, Pace};
use crate::node::real::RealNode;
use crate::node::serve::{Machine, Server, Shared, serve};

/// How nodes do their work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// As the model says.
    Virtual,
    /// On this machine, each with a directory of its own in this one.
    Real(PathBuf),
}

/// What nodes there are, and what they serve.
#[derive(Debug, Clone)]
pub struct NodesSpec {
    /// The services that can be requested.
    pub services: Vec<Service>,
    /// One for each node.
    pub nodes: Vec<Group>,
    /// The switch's link, which all responses share; none: as fast as anything.
    pub link_bits_per_s: Option<f64>,
    /// Documents that all have in memory, with their sizes; the last is the one that was used last.
    pub remembered: Vec<(u64, u64)>,
    /// Nodes that fail, and come back.
    pub failures: Vec<Failure>,
    /// Where the first listens; the others on the ports after that. Port 0: the system chooses for each.
    pub listen: SocketAddr,
    pub kind: Kind,
    pub pace: Pace,
}

impl NodesSpec {
    /// The nodes of one of an experiment's clusters; memory is warm for `mix` if the experiment wants that.
    pub fn of(
        experiment: &Experiment,
        cluster: &Cluster,
        mix: &Mix,
        (listen, kind, pace): (SocketAddr, Kind, Pace),
    ) -> Self {
        let mut documents = if experiment.warm_memory { site(experiment, mix) } else { Vec::new() };
        documents.retain(|requested| requested.requests > 0.0);
        documents.sort_by(|one, other| one.requests.total_cmp(&other.requests));
        Self {
            services: experiment.services.clone(),
            nodes: cluster.nodes().copied().collect(),
            link_bits_per_s: experiment.switch.link_bits_per_s,
            remembered: documents.iter().map(|requested| (requested.document, requested.bytes)).collect(),
            failures: experiment.failures.clone(),
            listen,
            kind,
            pace,
        }
    }
}

/// A look at all nodes.
#[derive(Debug, Clone)]
pub struct Look {
    pub at: Moment,
    pub nodes: Vec<NodeUse>,
    /// How late virtual nodes responded since the look before, in microseconds of real time: what this machine added.
    pub late_us: Histogram,
}

type Samples = Arc<Mutex<Vec<Look>>>;

/// Nodes that serve until this is dropped.
#[derive(Debug)]
pub struct Nodes {
    addresses: Vec<SocketAddr>,
    samples: Samples,
    /// Dropped to end them.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Nodes {
    /// Starts nodes; all of them listen when this returns.
    pub fn start(spec: NodesSpec) -> Result<Self, NodeError> {
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let samples = Samples::default();
        let own = Arc::clone(&samples);
        let work =
            move || match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
                Err(cause) => {
                    let _ = ready.send(Err(NodeError::Start { what: "the nodes' runtime", cause }));
                }
                Ok(runtime) => runtime.block_on(live(spec, &own, &ready, stopped)),
            };
        let thread = std::thread::Builder::new()
            .name("nodes".into())
            .spawn(work)
            .map_err(NodeError::start("the nodes"))?;
        match is_ready.recv() {
            Ok(Ok(addresses)) => Ok(Self { addresses, samples, stop: Some(stop), thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(NodeError::Panicked { what: "the nodes" }),
        }
    }

    /// Where they are, in the order of their numbers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The state of all nodes, second by second, since the last call.
    pub fn samples(&self) -> Vec<Look> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic was told on standard error already.
            let _ = thread.join();
        }
    }
}

type Ready = mpsc::Sender<Result<Vec<SocketAddr>, NodeError>>;

/// All that happens in the nodes' thread.
async fn live(spec: NodesSpec, samples: &Samples, ready: &Ready, stopped: oneshot::Receiver<()>) {
    let up = match bring_up(&spec) {
        Ok(up) => up,
        Err(error) => {
            // The caller waits for it.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let shared = Rc::new(Shared::new());
    shared.resources.keep_deadlines();
    for (listener, server) in up.listeners.into_iter().zip(&up.servers) {
        spawn_local(serve(listener, Rc::clone(server), Rc::clone(&shared)));
    }
    let _ = ready.send(Ok(up.addresses));
    let alarm = Rc::new(up.alarm);
    spawn_local({
        let alarm = Rc::clone(&alarm);
        async move { drop(alarm.run().await) }
    });
    if let Some(house) = up.house.clone() {
        spawn_local(async move { drop(house.run().await) });
    }
    for failure in spec.failures.iter().filter(|failure| (failure.node.0 as usize) < spec.nodes.len()) {
        let word = Rc::clone(&up.words[failure.node.0 as usize]);
        spawn_local(fails(*failure, Rc::clone(&alarm), word, up.house.clone()));
    }
    tokio::select! {
        () = look(&spec, &alarm, &up.servers, up.house.as_deref(), samples) => {}
        _ = stopped => {}
    }
}

/// Everything that can fail at the start.
struct Up {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    servers: Vec<Rc<Server>>,
    words: Vec<Rc<watch::Sender<bool>>>,
    house: Option<Rc<House>>,
    alarm: Alarm,
}

fn bring_up(spec: &NodesSpec) -> Result<Up, NodeError> {
    let house = match spec.kind {
        Kind::Virtual => {
            let house = House::new(&spec.nodes, spec.link_bits_per_s, spec.pace)
                .map_err(NodeError::start("the nodes' timer"))?;
            house.remember(&spec.remembered);
            Some(Rc::new(house))
        }
        Kind::Real(_) => None,
    };
    let services = Rc::new(spec.services.clone());
    let alarm = Alarm::new(spec.pace).map_err(NodeError::start("a timer"))?;
    let (mut listeners, mut addresses, mut servers, mut words) = (vec![], vec![], vec![], vec![]);
    for (number, group) in spec.nodes.iter().enumerate() {
        let address = address_of(spec, number)?;
        let refused = |cause| NodeError::Listen { node: number, address, cause };
        let listener = listen(address).map_err(refused)?;
        addresses.push(listener.local_addr().map_err(refused)?);
        listeners.push(listener);
        let (word, up) = watch::channel(true);
        words.push(Rc::new(word));
        let machine = match (&house, &spec.kind) {
            (Some(house), _) => Machine::Virtual(Rc::clone(house)),
            (None, Kind::Real(directory)) => Machine::Real(real(group, directory, number, spec.pace)?),
            (None, Kind::Virtual) => continue,
        };
        let services = Rc::clone(&services);
        servers.push(Rc::new(Server { number, services, machine, up }));
    }
    Ok(Up { listeners, addresses, servers, words, house, alarm })
}

fn real(group: &Group, directory: &Path, number: usize, pace: Pace) -> Result<Rc<RealNode>, NodeError> {
    Ok(Rc::new(RealNode::new(group, &directory.join(format!("node-{number}")), pace)?))
}

fn address_of(spec: &NodesSpec, number: usize) -> Result<SocketAddr, NodeError> {
    let mut address = spec.listen;
    if address.port() > 0 {
        let port = u16::try_from(number).ok().and_then(|number| spec.listen.port().checked_add(number));
        let missing = || NodeError::Ports { nodes: spec.nodes.len(), port: spec.listen.port() };
        address.set_port(port.ok_or_else(missing)?);
    }
    Ok(address)
}

/// A node fails when it is time, and comes back.
async fn fails(failure: Failure, alarm: Rc<Alarm>, up: Rc<watch::Sender<bool>>, house: Option<Rc<House>>) {
    alarm.until(Moment::from_secs(failure.at_s)).await;
    if let Some(house) = house {
        house.fail(failure.node.0 as usize);
    }
    up.send_replace(false);
    if let Some(lasts_s) = failure.lasts_s {
        alarm.until(Moment::from_secs(failure.at_s + lasts_s)).await;
        up.send_replace(true);
    }
}

/// Looks at all nodes once a second, for ever.
async fn look(
    spec: &NodesSpec,
    alarm: &Alarm,
    servers: &[Rc<Server>],
    house: Option<&House>,
    samples: &Samples,
) {
    let mut next = spec.pace.now();
    loop {
        next = next.plus_secs(SAMPLE_EVERY_S);
        alarm.until(next).await;
        let nodes = match house {
            Some(house) => house.sample(),
            None => servers.iter().map(|server| server.sample()).collect(),
        };
        let late_us = house.map(House::take_lateness).unwrap_or_default();
        let look = Look { at: spec.pace.now(), nodes, late_us };
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(look);
    }
}
