//! Virtual nodes: all nodes of a process, as `dispatch` models them, in real time.
//!
//! The model knows the exact moment of everything that happens; a timer calls when one has come. If the process is late, the
//! model is not: it catches up moment by moment, and only the response leaves late.

use std::cell::RefCell;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::node::{BusyTime, Node, NodeSpec, QueueFull, Work};
use assay_cluster::dispatch::{Moment, ServerId, ServerState};
use assay_cluster::simulate::{LinkId, Links, NodeGroup};
use assay_measurement::histogram::Histogram;
use assay_net::timer::{Timer, TimerKey};
use assay_record::cluster::{NodeTime, NodeUse};
use slotmap::{SlotMap, new_key_type};
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::node::model_clock::ModelClock;

/// Shortest time between two states: a share of no time means nothing, so the last one is given again until then.
const FRESH_S: f64 = 0.1;

/// Event of the nodes' timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeTimerEvent {
    Node(ServerId),
    Link(LinkId),
}

new_key_type! {
    /// Key of a request at a node, until its response has left.
    struct JobKey;
}

/// A request at a node.
#[derive(Debug)]
struct NodeJob {
    node: ServerId,
    bytes: u64,
    /// Links that still carry its response.
    carriers: u8,
    worked: Option<Sender<()>>,
    left: Option<Sender<()>>,
}

/// Waits of a request: first for the node's work, then for the links.
#[derive(Debug)]
pub(crate) struct ResponseWaits {
    /// The node is done.
    pub(crate) worked: Receiver<()>,
    /// All of the response could have left.
    pub(crate) left: Receiver<()>,
}

#[derive(Debug)]
struct VirtualNode {
    node: Node<JobKey>,
    spec: NodeSpec,
    scheduled: Option<(Moment, TimerKey)>,
    sampled: (Moment, BusyTime),
    /// Busy time of its link at the last sample.
    sampled_link_s: f64,
    reported: (Moment, BusyTime),
    /// The last report, and when it was made.
    last_report: (Moment, ServerState),
    /// Bytes sent since the last report.
    sent: u64,
}

#[derive(Debug)]
struct NodesState {
    nodes: Vec<VirtualNode>,
    links: Links<JobKey>,
    /// Scheduled event of each link.
    link_tickets: Vec<Option<TimerKey>>,
    jobs: SlotMap<JobKey, NodeJob>,
}

/// The virtual nodes of one process.
#[derive(Debug)]
pub(crate) struct VirtualNodes {
    clock: ModelClock,
    timer: Timer<NodeTimerEvent>,
    state: RefCell<NodesState>,
    /// Lateness of the timer, in microseconds of real time.
    lateness: RefCell<Histogram>,
}

impl VirtualNodes {
    /// Idle nodes; `link` is that of the switch, which all responses share. Needs a runtime.
    pub(crate) fn new(groups: &[NodeGroup], link: Option<f64>, clock: ModelClock) -> std::io::Result<Self> {
        let now = clock.now();
        let node_state = |group: &NodeGroup| VirtualNode {
            node: Node::new(group.node),
            spec: group.node,
            scheduled: None,
            sampled: (now, BusyTime::default()),
            sampled_link_s: 0.0,
            reported: (now, BusyTime::default()),
            last_report: (Moment::START, ServerState::default()),
            sent: 0,
        };
        let state = NodesState {
            nodes: groups.iter().map(node_state).collect(),
            links: Links::new(link, groups.iter().map(|group| group.link_bits_per_s)),
            link_tickets: (0..=groups.len()).map(|_| None).collect(),
            jobs: SlotMap::with_key(),
        };
        Ok(Self { clock, timer: Timer::new(0)?, state: RefCell::new(state), lateness: RefCell::default() })
    }

    /// Puts documents into all memories; the last is the one that was used last.
    pub(crate) fn warm_memory(&self, documents: &[(u64, u64)]) {
        for node_state in &mut self.state.borrow_mut().nodes {
            documents.iter().for_each(|(document, bytes)| node_state.node.preload(*document, *bytes));
        }
    }

    /// Begins a request at a node.
    pub(crate) fn arrive(&self, node: ServerId, work: Work, bytes: u64) -> Result<ResponseWaits, QueueFull> {
        let now = self.clock.now();
        let ((worked, after_work), (left, after_links)) = (oneshot::channel(), oneshot::channel());
        let mut state = self.state.borrow_mut();
        let job = NodeJob { node, bytes, carriers: 0, worked: Some(worked), left: Some(left) };
        let key = state.jobs.insert(job);
        let mut done = Vec::new();
        let taken = state.nodes[node.index()].node.arrive(key, work, now, &mut done);
        // Time passes at the node before the request comes: what is done by now makes room for it.
        state.finish(&done, now);
        self.set_timer(&mut state, node);
        if let Err(refused) = taken {
            state.jobs.remove(key);
            return Err(refused);
        }
        Ok(ResponseWaits { worked: after_work, left: after_links })
    }

    /// Lets time pass, for ever.
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        self.timer
            .dispatch(|at_ns, due| {
                self.lateness.borrow_mut().record(monotonic_ns().saturating_sub(at_ns) / 1_000);
                let now = self.clock.now();
                let mut state = self.state.borrow_mut();
                match due {
                    NodeTimerEvent::Node(node) => {
                        let mut done = Vec::new();
                        let node_state = &mut state.nodes[node.index()];
                        node_state.scheduled = None;
                        node_state.node.advance(now, &mut done);
                        state.finish(&done, now);
                        self.set_timer(&mut state, node);
                    }
                    NodeTimerEvent::Link(link) => {
                        state.link_tickets[link.index()] = None;
                        state.links.clear_planned(link);
                        while let Some(job) = state.links.take(link, now) {
                            state.finish_link(job);
                        }
                    }
                }
                self.set_link_timers(&mut state);
            })
            .await
    }

    pub(crate) fn report(&self, node: ServerId) -> ServerState {
        let now = self.clock.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let node_state = &mut state.nodes[node.index()];
        // What is due by now has happened, whether the timer has called or not; tasks that wait for it go on when it does.
        let (since, before) = node_state.reported;
        let mut report = node_state.node.state(now, since, before);
        if now.secs_since(since) < FRESH_S {
            let shares = node_state.last_report.1;
            report = ServerState {
                processor: shares.processor,
                disk: shares.disk,
                network: shares.network,
                ..report
            };
            return report;
        }
        if let Some(bits_per_s) = state.links.bits_per_s(LinkId::of_node(node)) {
            report.network = (node_state.sent as f64 * 8.0 / (bits_per_s * now.secs_since(since))).min(1.0);
        }
        node_state.reported = (now, node_state.node.busy(now));
        node_state.last_report = (now, report);
        node_state.sent = 0;
        report
    }

    /// Time that a node has used since it started.
    pub(crate) fn used(&self, node: ServerId) -> NodeTime {
        let now = self.clock.now();
        let state = self.state.borrow();
        let node_state = &state.nodes[node.index()];
        let (busy, spec) = (node_state.node.busy(now), node_state.spec);
        NodeTime {
            at_s: now.secs_since(Moment::START),
            processor_s: busy.processor_s / f64::from(spec.processors.max(1)),
            disk_s: busy.disk_s / f64::from(spec.disks.max(1)),
            network_s: state.links.busy_s(LinkId::of_node(node), now),
        }
    }

    /// Utilisation of all nodes since the last sample.
    pub(crate) fn sample(&self) -> Vec<NodeUse> {
        let now = self.clock.now();
        let mut state = self.state.borrow_mut();
        let NodesState { nodes, links, .. } = &mut *state;
        let look = |(node, node_state): (ServerId, &mut VirtualNode)| {
            let (since, before) = node_state.sampled;
            let state = node_state.node.state(now, since, before);
            let link_s = links.busy_s(LinkId::of_node(node), now);
            let network = (link_s - node_state.sampled_link_s) / now.secs_since(since).max(f64::MIN_POSITIVE);
            (node_state.sampled, node_state.sampled_link_s) = ((now, node_state.node.busy(now)), link_s);
            let in_flight = f64::from(state.in_flight);
            let network = network.clamp(0.0, 1.0);
            NodeUse { processor: state.processor, disk: state.disk, network, in_flight }
        };
        (0..).map(ServerId).zip(nodes).map(look).collect()
    }

    /// Takes the lateness of the timer since the last reading, in microseconds of real time.
    pub(crate) fn take_lateness(&self) -> Histogram {
        self.lateness.take()
    }

    /// Fails a node: its requests are lost, and its memory is empty.
    pub(crate) fn fail(&self, node: ServerId) {
        let now = self.clock.now();
        let mut state = self.state.borrow_mut();
        for job in state.nodes[node.index()].node.fail(now) {
            state.jobs.remove(job);
        }
        self.set_timer(&mut state, node);
    }

    /// Sets the timer for the next event of a node.
    fn set_timer(&self, state: &mut NodesState, node: ServerId) {
        let node_state = &mut state.nodes[node.index()];
        let next = node_state.node.next_event();
        let scheduled = node_state.scheduled.as_ref().map(|(at, _)| *at);
        if next != scheduled {
            if let Some((_, ticket)) = node_state.scheduled.take() {
                self.timer.cancel(ticket);
            }
            node_state.scheduled =
                next.map(|at| (at, self.timer.schedule(self.clock.at_ns(at), NodeTimerEvent::Node(node))));
        }
        self.set_link_timers(state);
    }

    fn set_link_timers(&self, state: &mut NodesState) {
        for link in state.links.ids() {
            if let Some(at) = state.links.plan(link) {
                let ticket = self.timer.schedule(self.clock.at_ns(at), NodeTimerEvent::Link(link));
                if let Some(old) = state.link_tickets[link.index()].replace(ticket) {
                    self.timer.cancel(old);
                }
            }
        }
    }
}

impl NodesState {
    /// Nodes are done with these; their responses go on the links.
    fn finish(&mut self, done: &[JobKey], now: Moment) {
        for key in done {
            let Some(job) = self.jobs.get_mut(*key) else { continue };
            if let Some(waiting) = job.worked.take() {
                // The client may be gone.
                let _ = waiting.send(());
            }
            let links = [LinkId::SWITCH, LinkId::of_node(job.node)];
            job.carriers = self.links.send(*key, job.bytes, &links, now);
            self.nodes[job.node.index()].sent += job.bytes;
            if job.carriers == 0 {
                self.finish_job(*key);
            }
        }
    }

    fn finish_link(&mut self, key: JobKey) {
        let Some(job) = self.jobs.get_mut(key) else { return };
        job.carriers -= 1;
        if job.carriers == 0 {
            self.finish_job(key);
        }
    }

    fn finish_job(&mut self, key: JobKey) {
        if let Some(waiting) = self.jobs.remove(key).and_then(|job| job.left) {
            let _ = waiting.send(());
        }
    }
}
