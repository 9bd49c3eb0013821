//! Nodes: a thread that serves all of them, each on an address of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use assay_cluster::dispatch::{Moment, ServerId};
use assay_cluster::simulate::{
    Cluster, Experiment, NodeFailure, NodeGroup, SAMPLE_EVERY_S, Service, ServiceMix, document_demands,
};
use assay_measurement::histogram::Histogram;
use assay_net::listen::listen;
use assay_record::cluster::NodeUse;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_local;

use crate::node::NodeError;
use crate::node::model_clock::{ModelClock, ModelTimer};
use crate::node::real::RealNode;
use crate::node::serve::{Machine, NodeServer, ServerResources, serve};
use crate::node::virtual_nodes::VirtualNodes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// Nodes of the model.
    Virtual,
    /// On this machine, each with a directory of its own in this one.
    Real(PathBuf),
}

/// Nodes, and the services that they offer.
#[derive(Debug, Clone)]
pub struct NodesSpec {
    /// The services that can be requested.
    pub services: Vec<Service>,
    /// One for each node.
    pub nodes: Vec<NodeGroup>,
    /// The switch's link, which all responses share; none: as fast as anything.
    pub link_bits_per_s: Option<f64>,
    /// Documents that all have in memory, with their sizes; the last is the one that was used last.
    pub remembered: Vec<(u64, u64)>,
    /// Nodes that fail, and come back.
    pub failures: Vec<NodeFailure>,
    /// Address of the first; the others listen on the ports after that. Port 0: the system chooses for each.
    pub listen: SocketAddr,
    pub kind: NodeKind,
    pub clock: ModelClock,
}

impl NodesSpec {
    /// Spec for one of an experiment's clusters; memory is warm for `mix` if the experiment wants that.
    pub fn new(
        experiment: &Experiment,
        cluster: &Cluster,
        mix: &ServiceMix,
        listen: SocketAddr,
        kind: NodeKind,
        clock: ModelClock,
    ) -> Self {
        let mut documents =
            if experiment.warm_memory { document_demands(experiment, mix) } else { Vec::new() };
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
            clock,
        }
    }
}

/// A look at all nodes.
#[derive(Debug, Clone)]
pub struct NodesSample {
    pub at: Moment,
    pub nodes: Vec<NodeUse>,
    /// Lateness of virtual nodes' responses since the sample before, in microseconds of real time: what this machine
    /// added.
    pub late_us: Histogram,
}

type Samples = Arc<Mutex<Vec<NodesSample>>>;

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
                    let _ = ready.send(Err(NodeError::Start { component: "the nodes' runtime", cause }));
                }
                Ok(runtime) => runtime.block_on(run_nodes(spec, &own, &ready, stopped)),
            };
        let thread = std::thread::Builder::new()
            .name("nodes".into())
            .spawn(work)
            .map_err(NodeError::start("the nodes"))?;
        match is_ready.recv() {
            Ok(Ok(addresses)) => Ok(Self { addresses, samples, stop: Some(stop), thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(NodeError::Panicked { component: "the nodes" }),
        }
    }

    /// Addresses in the order of the nodes' numbers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes the states of all nodes, second by second, since the last call.
    pub fn samples(&self) -> Vec<NodesSample> {
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

type NodesReady = mpsc::Sender<Result<Vec<SocketAddr>, NodeError>>;

/// Runs in the nodes' thread from start to end.
async fn run_nodes(spec: NodesSpec, samples: &Samples, ready: &NodesReady, stopped: oneshot::Receiver<()>) {
    let up = match bind_nodes(&spec) {
        Ok(up) => up,
        Err(error) => {
            // The caller waits for it.
            let _ = ready.send(Err(error));
            return;
        }
    };
    let shared = Rc::new(ServerResources::new());
    shared.resources.run_deadlines();
    for (listener, server) in up.listeners.into_iter().zip(&up.servers) {
        spawn_local(serve(listener, Rc::clone(server), Rc::clone(&shared)));
    }
    let _ = ready.send(Ok(up.addresses));
    let timer = Rc::new(up.timer);
    spawn_local({
        let timer = Rc::clone(&timer);
        async move { drop(timer.run().await) }
    });
    if let Some(virtual_nodes) = up.virtual_nodes.clone() {
        spawn_local(async move { drop(virtual_nodes.run().await) });
    }
    for failure in spec.failures.iter().filter(|failure| failure.node.index() < spec.nodes.len()) {
        let up_sender = Rc::clone(&up.up_senders[failure.node.index()]);
        spawn_local(run_failure(*failure, Rc::clone(&timer), up_sender, up.virtual_nodes.clone()));
    }
    tokio::select! {
        () = sample_nodes(&spec, &timer, &up.servers, up.virtual_nodes.as_deref(), samples) => {}
        _ = stopped => {}
    }
}

/// Everything that can fail at the start.
struct BoundNodes {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    servers: Vec<Rc<NodeServer>>,
    up_senders: Vec<Rc<watch::Sender<bool>>>,
    virtual_nodes: Option<Rc<VirtualNodes>>,
    timer: ModelTimer,
}

fn bind_nodes(spec: &NodesSpec) -> Result<BoundNodes, NodeError> {
    let virtual_nodes = match spec.kind {
        NodeKind::Virtual => {
            let virtual_nodes = VirtualNodes::new(&spec.nodes, spec.link_bits_per_s, spec.clock)
                .map_err(NodeError::start("the nodes' timer"))?;
            virtual_nodes.warm_memory(&spec.remembered);
            Some(Rc::new(virtual_nodes))
        }
        NodeKind::Real(_) => None,
    };
    let services = Rc::new(spec.services.clone());
    let timer = ModelTimer::new(spec.clock).map_err(NodeError::start("a timer"))?;
    let (mut listeners, mut addresses, mut servers, mut up_senders) = (vec![], vec![], vec![], vec![]);
    for (id, group) in (0..).map(ServerId).zip(&spec.nodes) {
        let address = address_of(spec, id)?;
        let refused = |cause| NodeError::Listen { node: id, address, cause };
        let listener = listen(address).map_err(refused)?;
        addresses.push(listener.local_addr().map_err(refused)?);
        listeners.push(listener);
        let (up_sender, up) = watch::channel(true);
        up_senders.push(Rc::new(up_sender));
        let machine = match (&virtual_nodes, &spec.kind) {
            (Some(virtual_nodes), _) => Machine::Virtual(Rc::clone(virtual_nodes)),
            (None, NodeKind::Real(directory)) => {
                let own = directory.join(format!("node-{}", id.0));
                Machine::Real(Rc::new(RealNode::new(group, &own, spec.clock)?))
            }
            (None, NodeKind::Virtual) => continue,
        };
        let services = Rc::clone(&services);
        servers.push(Rc::new(NodeServer { id, services, machine, up }));
    }
    Ok(BoundNodes { listeners, addresses, servers, up_senders, virtual_nodes, timer })
}

fn address_of(spec: &NodesSpec, id: ServerId) -> Result<SocketAddr, NodeError> {
    let mut address = spec.listen;
    if address.port() > 0 {
        let port = u16::try_from(id.0).ok().and_then(|number| spec.listen.port().checked_add(number));
        let missing = || NodeError::Ports { nodes: spec.nodes.len(), port: spec.listen.port() };
        address.set_port(port.ok_or_else(missing)?);
    }
    Ok(address)
}

/// Fails a node when it is time, and brings it back.
async fn run_failure(
    failure: NodeFailure,
    timer: Rc<ModelTimer>,
    up: Rc<watch::Sender<bool>>,
    virtual_nodes: Option<Rc<VirtualNodes>>,
) {
    timer.until(Moment::from_secs(failure.at_s)).await;
    if let Some(virtual_nodes) = virtual_nodes {
        virtual_nodes.fail(failure.node);
    }
    up.send_replace(false);
    if let Some(lasts_s) = failure.lasts_s {
        timer.until(Moment::from_secs(failure.at_s + lasts_s)).await;
        up.send_replace(true);
    }
}

/// Looks at all nodes once a second, for ever.
async fn sample_nodes(
    spec: &NodesSpec,
    timer: &ModelTimer,
    servers: &[Rc<NodeServer>],
    virtual_nodes: Option<&VirtualNodes>,
    samples: &Samples,
) {
    let mut next = spec.clock.now();
    loop {
        next = next.plus_secs(SAMPLE_EVERY_S);
        timer.until(next).await;
        let nodes = match virtual_nodes {
            Some(virtual_nodes) => virtual_nodes.sample(),
            None => servers.iter().map(|server| server.sample()).collect(),
        };
        let late_us = virtual_nodes.map(VirtualNodes::take_lateness).unwrap_or_default();
        let sample = NodesSample { at: spec.clock.now(), nodes, late_us };
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }
}
