//! How long each request takes at its virtual node. All nodes of a process, as `dispatch` models them, in real time.
//!
//! The model knows the exact moment of everything that happens; a timer calls when one has come. If the process is late, the
//! model is not: it catches up moment by moment, and only the response leaves late.

use std::cell::RefCell;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::node::{Busy, Node, NodeSpec, Refused, Work};
use assay_cluster::dispatch::{Moment, ServerState};
use assay_cluster::simulate::{Group, Links};
use assay_measurement::histogram::Histogram;
use assay_net::timer::{Ticket, Timer};
use assay_record::cluster::{NodeTime, NodeUse};
use slab::Slab;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::node::pace::Pace;

/// A state that was told less than this ago is told again: a share of no time means nothing.
const FRESH_S: f64 = 0.1;

/// What the timer calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Node(usize),
    Link(u32),
}

/// A request at a node.
#[derive(Debug)]
struct Job {
    node: usize,
    bytes: u64,
    /// Links that still carry its response.
    carriers: u8,
    worked: Option<Sender<()>>,
    left: Option<Sender<()>>,
}

/// What a request waits for: first the node's work, then the links.
#[derive(Debug)]
pub(crate) struct Waits {
    /// The node is done.
    pub(crate) worked: Receiver<()>,
    /// All of the response could have left.
    pub(crate) left: Receiver<()>,
}

#[derive(Debug)]
struct Member {
    node: Node,
    spec: NodeSpec,
    planned: Option<(Moment, Ticket)>,
    sampled: (Moment, Busy),
    /// How long its link had been busy when it was sampled.
    sampled_link_s: f64,
    reported: (Moment, Busy),
    /// The last report, and when it was made.
    told: (Moment, ServerState),
    /// Bytes sent since the last report.
    sent: u64,
}

#[derive(Debug)]
struct State {
    members: Vec<Member>,
    links: Links,
    link_tickets: Vec<Option<Ticket>>,
    jobs: Slab<Job>,
}

/// The virtual nodes of one process.
#[derive(Debug)]
pub(crate) struct House {
    pace: Pace,
    timer: Timer<Due>,
    state: RefCell<State>,
    /// How late the timer called, in microseconds of real time.
    late: RefCell<Histogram>,
}

impl House {
    /// Idle nodes; `link` is that of the switch, which all responses share. Needs a runtime.
    pub(crate) fn new(groups: &[Group], link: Option<f64>, pace: Pace) -> std::io::Result<Self> {
        let now = pace.now();
        let member = |group: &Group| Member {
            node: Node::new(group.node),
            spec: group.node,
            planned: None,
            sampled: (now, Busy::default()),
            sampled_link_s: 0.0,
            reported: (now, Busy::default()),
            told: (Moment::START, ServerState::default()),
            sent: 0,
        };
        let state = State {
            members: groups.iter().map(member).collect(),
            links: Links::new(link, groups.iter().map(|group| group.link_bits_per_s)),
            link_tickets: (0..=groups.len()).map(|_| None).collect(),
            jobs: Slab::new(),
        };
        Ok(Self { pace, timer: Timer::new(0)?, state: RefCell::new(state), late: RefCell::default() })
    }

    /// Puts documents into all memories; the last is the one that was used last.
    pub(crate) fn remember(&self, documents: &[(u64, u64)]) {
        for member in &mut self.state.borrow_mut().members {
            documents.iter().for_each(|(document, bytes)| member.node.remember(*document, *bytes));
        }
    }

    /// A request comes to a node.
    pub(crate) fn arrive(&self, node: usize, work: Work, bytes: u64) -> Result<Waits, Refused> {
        let now = self.pace.now();
        let ((worked, after_work), (left, after_links)) = (oneshot::channel(), oneshot::channel());
        let mut state = self.state.borrow_mut();
        let job = Job { node, bytes, carriers: 0, worked: Some(worked), left: Some(left) };
        let id = state.jobs.insert(job);
        let mut done = Vec::new();
        let taken = state.members[node].node.arrive(id as u64, work, now, &mut done);
        state.finish(&done, now);
        self.plan(&mut state, node);
        if let Err(refused) = taken {
            state.jobs.remove(id);
            return Err(refused);
        }
        Ok(Waits { worked: after_work, left: after_links })
    }

    /// Lets time pass, for ever.
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        self.timer
            .dispatch(|at_ns, due| {
                self.late.borrow_mut().record(monotonic_ns().saturating_sub(at_ns) / 1_000);
                let now = self.pace.now();
                let mut state = self.state.borrow_mut();
                match due {
                    Due::Node(node) => {
                        state.members[node].planned = None;
                        let mut done = Vec::new();
                        state.members[node].node.advance(now, &mut done);
                        state.finish(&done, now);
                        self.plan(&mut state, node);
                    }
                    Due::Link(link) => {
                        state.link_tickets[link as usize] = None;
                        state.links.rang(link);
                        while let Some(job) = state.links.take(link, now) {
                            state.carried(job);
                        }
                    }
                }
                self.plan_links(&mut state);
            })
            .await
    }

    /// The state of a node.
    pub(crate) fn report(&self, node: usize) -> ServerState {
        let now = self.pace.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let member = &mut state.members[node];
        // What is due by now has happened, whether the timer has called or not; tasks that wait for it go on when it does.
        let (since, before) = member.reported;
        let mut told = member.node.state(now, since, before);
        if now.secs_since(since) < FRESH_S {
            let shares = member.told.1;
            told = ServerState {
                processor: shares.processor,
                disk: shares.disk,
                network: shares.network,
                ..told
            };
            return told;
        }
        if let Some(bits_per_s) = state.links.node_rate(node as u32) {
            told.network = (member.sent as f64 * 8.0 / (bits_per_s * now.secs_since(since))).min(1.0);
        }
        member.reported = (now, member.node.busy(now));
        member.told = (now, told);
        member.sent = 0;
        told
    }

    /// What a node has used since it started.
    pub(crate) fn used(&self, node: usize) -> NodeTime {
        let now = self.pace.now();
        let state = self.state.borrow();
        let member = &state.members[node];
        let (busy, spec) = (member.node.busy(now), member.spec);
        NodeTime {
            at_s: now.secs_since(Moment::START),
            processor_s: busy.processor_s / f64::from(spec.processors.max(1)),
            disk_s: busy.disk_s / f64::from(spec.disks.max(1)),
            network_s: state.links.busy_s(node as u32, now),
        }
    }

    /// How all nodes are, since somebody looked last.
    pub(crate) fn sample(&self) -> Vec<NodeUse> {
        let now = self.pace.now();
        let mut state = self.state.borrow_mut();
        let State { members, links, .. } = &mut *state;
        let look = |(node, member): (usize, &mut Member)| {
            let (since, before) = member.sampled;
            let state = member.node.state(now, since, before);
            let link_s = links.busy_s(node as u32, now);
            let network = (link_s - member.sampled_link_s) / now.secs_since(since).max(f64::MIN_POSITIVE);
            (member.sampled, member.sampled_link_s) = ((now, member.node.busy(now)), link_s);
            let in_flight = f64::from(state.in_flight);
            let network = network.clamp(0.0, 1.0);
            NodeUse { processor: state.processor, disk: state.disk, network, in_flight }
        };
        members.iter_mut().enumerate().map(look).collect()
    }

    /// How late it was called, since the last reading, in microseconds of real time.
    pub(crate) fn take_lateness(&self) -> Histogram {
        self.late.take()
    }

    /// A node fails: what it has is lost, and its memory is empty.
    pub(crate) fn fail(&self, node: usize) {
        let now = self.pace.now();
        let mut state = self.state.borrow_mut();
        for id in state.members[node].node.fail(now) {
            state.jobs.try_remove(id as usize);
        }
        self.plan(&mut state, node);
    }

    /// Sees to it that the timer calls for what happens next.
    fn plan(&self, state: &mut State, node: usize) {
        let member = &mut state.members[node];
        let next = member.node.next();
        let planned = member.planned.as_ref().map(|(at, _)| *at);
        if next != planned {
            if let Some((_, ticket)) = member.planned.take() {
                self.timer.cancel(ticket);
            }
            member.planned = next.map(|at| (at, self.timer.schedule(self.pace.at_ns(at), Due::Node(node))));
        }
        self.plan_links(state);
    }

    fn plan_links(&self, state: &mut State) {
        for link in 0..state.link_tickets.len() as u32 {
            if let Some(at) = state.links.plan(link) {
                let ticket = self.timer.schedule(self.pace.at_ns(at), Due::Link(link));
                if let Some(old) = state.link_tickets[link as usize].replace(ticket) {
                    self.timer.cancel(old);
                }
            }
        }
    }
}

impl State {
    /// Nodes are done with these; their responses go on the links.
    fn finish(&mut self, done: &[u64], now: Moment) {
        for id in done {
            let Some(job) = self.jobs.get_mut(*id as usize) else { continue };
            if let Some(waiting) = job.worked.take() {
                // The client may be gone.
                let _ = waiting.send(());
            }
            let (node, bytes) = (job.node, job.bytes);
            let on = self.links.send(*id as u32, bytes, node as u32, now);
            self.members[node].sent += bytes;
            match (on, self.jobs.get_mut(*id as usize)) {
                (0, _) | (_, None) => self.leaves(*id as usize),
                (on, Some(job)) => job.carriers = on,
            }
        }
    }

    fn carried(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(id as usize) else { return };
        job.carriers = job.carriers.saturating_sub(1);
        if job.carriers == 0 {
            self.leaves(id as usize);
        }
    }

    fn leaves(&mut self, id: usize) {
        if let Some(waiting) = self.jobs.try_remove(id).and_then(|job| job.left) {
            let _ = waiting.send(());
        }
    }
}
