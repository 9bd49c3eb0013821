//! Event loop of the simulation: clients send requests, the switch chooses nodes, nodes serve, links transmit, clients receive
//! responses.

use crate::dispatch::node::{BusyTime, Node};
use crate::dispatch::{ClassId, Completion, Moment, Policy, Request, RequestOutcome, ServerId};
use assay_base::random::Rng;
use assay_workload::Purpose;
use slotmap::{SlotMap, new_key_type};

use crate::simulate::event_queue::{Event, EventQueue};
use crate::simulate::experiment::{Cell, Cluster, Experiment, NodeFailure, OfferedLoad, SwitchSpec};
use crate::simulate::links::{LinkId, Links};
use crate::simulate::policies::{document_demands, policy_config};
use crate::simulate::stream::{ClientId, RequestStream, SimulatedRequest};
use crate::simulate::switch::Switch;

/// Pause of a client after a failed request, in seconds.
pub const PAUSE_AFTER_FAILURE_S: f64 = 0.1;
/// Interval at which nodes are sampled, in seconds of the model's time.
pub const SAMPLE_EVERY_S: f64 = 1.0;

/// A request that was completed while everything is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedRequest {
    /// Index of the service.
    pub service: usize,
    pub class: ClassId,
    /// The node that responded.
    pub server: ServerId,
    /// Nanoseconds from due to the last byte at the client.
    pub response_nanos: u64,
    /// Bytes of the response.
    pub bytes: u64,
}

/// State of a node at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeSample {
    /// Requests in flight.
    pub in_flight: u32,
    /// Busy share of its processors since the last sample.
    pub processor: f64,
    /// Busy share of its disks.
    pub disk: f64,
    /// Busy share of its link; 0 if it has none.
    pub network: f64,
}

/// Receiver of results; only of those after warm-up.
pub trait Recorder {
    fn record_response(&mut self, request: &CompletedRequest);
    /// The request failed on every server that was tried, or no server was up.
    fn record_failure(&mut self);
    /// All nodes, at each sample.
    fn record_sample(&mut self, nodes: &[NodeSample]);
}

new_key_type! {
    /// Key of a request under way.
    pub(crate) struct XactKey;
}

#[derive(Debug, Clone)]
struct Xact {
    requested: SimulatedRequest,
    /// None in an open loop.
    client: Option<ClientId>,
    due: Moment,
    server: Option<ServerId>,
    started: Moment,
    /// Links that still transmit the response.
    links_left: u8,
    tried: Vec<ServerId>,
}

impl Xact {
    fn request(&self) -> Request {
        Request { class: self.requested.class, document: self.requested.document }
    }
}

#[derive(Debug)]
struct SimulatedNode {
    node: Node<XactKey>,
    alive: bool,
    planned: Option<Moment>,
    sampled: (Moment, BusyTime),
    /// Busy time of its link at the last sample.
    sampled_link_s: f64,
    reported: (Moment, BusyTime),
    /// Bytes sent since the last report.
    sent: u64,
}

struct Kernel<'a> {
    spec: SwitchSpec,
    experiment: &'a Experiment,
    cluster: &'a Cluster,
    load: OfferedLoad,
    stream: RequestStream,
    recorder: &'a mut dyn Recorder,
    policy: Box<dyn Policy>,
    events: EventQueue,
    switch: Switch,
    links: Links<XactKey>,
    members: Vec<SimulatedNode>,
    xacts: SlotMap<XactKey, Xact>,
    /// Numbers of requests so far, by client.
    client_requests: Vec<u64>,
    /// Number of requests so far in an open loop.
    arrival_count: u64,
    arrivals: Rng,
    counting: bool,
    /// Memory for the jobs that an event completes.
    done: Vec<XactKey>,
}

/// Runs one cell. Everything follows from its repetition's seed.
pub fn simulate(experiment: &Experiment, cell: &Cell, recorder: &mut dyn Recorder) {
    let (mix, cluster) = (&experiment.mixes[cell.mix], &experiment.clusters[cell.cluster]);
    let chosen = &experiment.policies[cell.policy].choice;
    let seed = experiment.seed.wrapping_add(u64::from(cell.repetition));
    let member = |group: &crate::simulate::experiment::NodeGroup| SimulatedNode {
        node: Node::new(group.node),
        alive: true,
        planned: None,
        sampled: (Moment::START, BusyTime::default()),
        sampled_link_s: 0.0,
        reported: (Moment::START, BusyTime::default()),
        sent: 0,
    };
    let spec = experiment.switch_under(&experiment.policies[cell.policy]);
    let load = experiment.loads[cell.load];
    let clients = if let OfferedLoad::Clients(clients) = load { clients as usize } else { 0 };
    let mut kernel = Kernel {
        spec,
        experiment,
        cluster,
        load,
        stream: RequestStream::new(&experiment.services, &mix.weights, seed),
        recorder,
        policy: policy_config(experiment, mix, cluster, chosen).build(seed),
        events: EventQueue::default(),
        switch: Switch::new(spec.processors, spec.per_request_s),
        links: Links::new(spec.link_bits_per_s, cluster.nodes().map(|group| group.link_bits_per_s)),
        members: cluster.nodes().map(member).collect(),
        xacts: SlotMap::with_key(),
        client_requests: vec![0; clients],
        arrival_count: 0,
        arrivals: Rng::of(Purpose::Arrival, &[seed]),
        counting: false,
        done: Vec::new(),
    };
    if experiment.warm_memory {
        let mut documents = document_demands(experiment, mix);
        documents.retain(|requested| requested.requests > 0.0);
        documents.sort_by(|one, other| one.requests.total_cmp(&other.requests));
        for member in &mut kernel.members {
            documents.iter().for_each(|requested| member.node.preload(requested.document, requested.bytes));
        }
    }
    kernel.begin(chosen.wants_reports());
    kernel.run();
}

impl Kernel<'_> {
    fn begin(&mut self, wants_reports: bool) {
        let start = Moment::START;
        for (node, group) in (0..).map(ServerId).zip(self.cluster.nodes()) {
            self.policy.server_up(node, group.weight, start);
        }
        match self.load {
            OfferedLoad::Clients(clients) => {
                let clients = (0..clients).map(ClientId);
                clients.for_each(|client| self.events.push(start, Event::Request(Some(client))));
            }
            OfferedLoad::Rate(_) => self.plan_arrival(start),
        }
        self.events.push(Moment::from_secs(self.experiment.warm_up_s), Event::Measure);
        if wants_reports {
            self.events.push(start.plus_secs(self.spec.reports_every_s), Event::Reports);
        }
        for &NodeFailure { node, at_s, lasts_s } in &self.experiment.failures {
            if node.index() >= self.members.len() {
                continue;
            }
            let at = Moment::from_secs(at_s);
            self.events.push(at, Event::Fail(node));
            self.events.push(at.plus_secs(self.spec.notices_after_s), Event::FailureDetected(node));
            if let Some(lasts_s) = lasts_s {
                let back = at.plus_secs(lasts_s);
                self.events.push(back, Event::Recover(node));
                self.events.push(back.plus_secs(self.spec.notices_after_s), Event::RecoveryDetected(node));
            }
        }
    }

    fn run(&mut self) {
        let end = Moment::from_secs(self.experiment.warm_up_s + self.experiment.measure_s);
        while let Some((now, event)) = self.events.pop().filter(|(now, _)| *now < end) {
            self.handle(event, now);
        }
    }

    fn handle(&mut self, event: Event, now: Moment) {
        match event {
            Event::Request(client) => self.request(client, now),
            Event::AtSwitch(xact) => self.events.push(self.switch.read(now), Event::Dispatch(xact)),
            Event::Dispatch(xact) => self.dispatch(xact, now),
            Event::Forwarded(xact) => self.carry(xact, now),
            Event::Node(node) => self.on_node_timer(node, now),
            Event::Link(link) => self.on_link_timer(link, now),
            Event::Response(xact) => self.respond(xact, now),
            Event::Probe(node) => self.report(node, now),
            Event::Reports => {
                (0..self.members.len() as u32).map(ServerId).for_each(|node| self.report(node, now));
                self.events.push(now.plus_secs(self.spec.reports_every_s), Event::Reports);
            }
            Event::Sample => self.sample(now),
            Event::Measure => {
                self.counting = true;
                for (node, member) in (0..).map(ServerId).zip(&mut self.members) {
                    member.sampled = (now, member.node.busy(now));
                    member.sampled_link_s = self.links.busy_s(LinkId::of_node(node), now);
                }
                self.events.push(now.plus_secs(SAMPLE_EVERY_S), Event::Sample);
            }
            Event::Fail(node) => self.fail(node, now),
            Event::Recover(node) => self.members[node.index()].alive = true,
            Event::FailureDetected(node) => self.policy.server_gone(node, now),
            Event::RecoveryDetected(node) => {
                let weight = self.cluster.nodes().nth(node.index()).map_or(1.0, |group| group.weight);
                self.policy.server_up(node, weight, now);
            }
        }
    }

    fn plan_arrival(&mut self, now: Moment) {
        if let OfferedLoad::Rate(per_s) = self.load {
            let gap_s = self.arrivals.exponential() / per_s;
            self.events.push(now.plus_secs(gap_s), Event::Request(None));
        }
    }

    fn request(&mut self, client: Option<ClientId>, now: Moment) {
        let number = match client {
            Some(client) => &mut self.client_requests[client.0 as usize],
            None => {
                self.plan_arrival(now);
                &mut self.arrival_count
            }
        };
        let requested = self.stream.request(client, *number);
        *number += 1;
        let xact = self.xacts.insert(Xact {
            requested,
            client,
            due: now,
            server: None,
            started: now,
            links_left: 0,
            tried: Vec::new(),
        });
        self.events.push(now.plus_secs(self.spec.network_s / 2.0), Event::AtSwitch(xact));
    }

    fn dispatch(&mut self, key: XactKey, now: Moment) {
        let mut probes = Vec::new();
        self.policy.probes(now, &mut probes);
        for server in probes {
            self.events.push(now.plus_secs(self.spec.network_s), Event::Probe(server));
        }
        let xact = &mut self.xacts[key];
        let request = xact.request();
        let named = match xact.tried.is_empty() {
            true => self.policy.choose(&request, now),
            false => self.policy.choose_again(&request, &xact.tried, now),
        };
        let Some(server) = named else {
            self.give_up(key, now);
            return;
        };
        (xact.server, xact.started) = (Some(server), now);
        let work = xact.requested.work;
        self.policy.started(server, &request, now);
        let member = &mut self.members[server.index()];
        let mut done = std::mem::take(&mut self.done);
        let taken = member.alive && member.node.arrive(key, work, now, &mut done).is_ok();
        self.finish_all(done, now);
        if taken {
            self.plan_node(server);
        } else {
            self.retry(key, now);
        }
    }

    /// Records a failure at a server, and retries or gives up.
    fn retry(&mut self, key: XactKey, now: Moment) {
        let xact = &mut self.xacts[key];
        let Some(server) = xact.server.take() else { return };
        xact.tried.push(server);
        let completion =
            Completion { took_nanos: now.nanos_since(xact.started), outcome: RequestOutcome::Failed };
        let (request, tried) = (xact.request(), xact.tried.len());
        self.policy.finished(server, &request, &completion, now);
        if tried <= self.spec.retries as usize {
            // The refusal takes the way back and the request the way to the next node.
            self.events.push(now.plus_secs(self.spec.network_s), Event::Dispatch(key));
        } else {
            self.give_up(key, now);
        }
    }

    fn give_up(&mut self, key: XactKey, now: Moment) {
        if self.counting {
            self.recorder.record_failure();
        }
        if let Some(client) = self.xacts.remove(key).and_then(|xact| xact.client) {
            self.events.push(now.plus_secs(PAUSE_AFTER_FAILURE_S), Event::Request(Some(client)));
        }
    }

    fn fail(&mut self, server: ServerId, now: Moment) {
        let member = &mut self.members[server.index()];
        member.alive = false;
        let lost = member.node.fail(now);
        self.plan_node(server);
        for key in lost {
            self.retry(key, now);
        }
    }

    fn plan_node(&mut self, node: ServerId) {
        let member = &mut self.members[node.index()];
        let next = member.node.next_event();
        if next != member.planned {
            member.planned = next;
            if let Some(next) = next {
                self.events.push(next, Event::Node(node));
            }
        }
    }

    fn on_node_timer(&mut self, node: ServerId, now: Moment) {
        let member = &mut self.members[node.index()];
        if member.planned != Some(now) {
            // The node's state has changed since, and another moment is planned.
            return;
        }
        member.planned = None;
        let mut done = std::mem::take(&mut self.done);
        member.node.advance(now, &mut done);
        self.finish_all(done, now);
        self.plan_node(node);
    }

    /// Starts to forward the responses of completed jobs.
    fn finish_all(&mut self, mut done: Vec<XactKey>, now: Moment) {
        for key in done.drain(..) {
            let xact = &mut self.xacts[key];
            let Some(server) = xact.server else { continue };
            let bytes = xact.requested.bytes;
            self.policy.first_byte(server, &xact.request(), now.nanos_since(xact.started), now);
            self.members[server.index()].sent += bytes;
            let work_s = bytes as f64 * self.spec.per_byte_s;
            if work_s > 0.0 {
                let at = self.switch.work(now, work_s);
                self.events.push(at, Event::Forwarded(key));
            } else {
                self.carry(key, now);
            }
        }
        self.done = done;
    }

    /// Puts a response on its links.
    fn carry(&mut self, key: XactKey, now: Moment) {
        let xact = &mut self.xacts[key];
        let Some(server) = xact.server else { return };
        let links: &[LinkId] = match self.spec.direct_return {
            true => &[LinkId::of_node(server)],
            false => &[LinkId::SWITCH, LinkId::of_node(server)],
        };
        xact.links_left = self.links.send(key, xact.requested.bytes, links, now);
        match xact.links_left {
            0 => self.leave_switch(key, now),
            _ => links.iter().for_each(|link| self.plan_link(*link)),
        }
    }

    fn plan_link(&mut self, link: LinkId) {
        if let Some(next) = self.links.plan(link) {
            self.events.push(next, Event::Link(link));
        }
    }

    fn on_link_timer(&mut self, link: LinkId, now: Moment) {
        if !self.links.due(link, now) {
            return;
        }
        while let Some(key) = self.links.take(link, now) {
            let xact = &mut self.xacts[key];
            xact.links_left -= 1;
            if xact.links_left == 0 {
                self.leave_switch(key, now);
            }
        }
        self.plan_link(link);
    }

    /// Ends a request at the switch, whose links have sent the whole response.
    fn leave_switch(&mut self, key: XactKey, now: Moment) {
        let xact = &self.xacts[key];
        if let Some(server) = xact.server {
            let completion =
                Completion { took_nanos: now.nanos_since(xact.started), outcome: RequestOutcome::Responded };
            self.policy.finished(server, &xact.request(), &completion, now);
        }
        self.events.push(now.plus_secs(self.spec.network_s / 2.0), Event::Response(key));
    }

    fn respond(&mut self, key: XactKey, now: Moment) {
        let Some(xact) = self.xacts.remove(key) else { return };
        if let (true, Some(server)) = (self.counting, xact.server) {
            self.recorder.record_response(&CompletedRequest {
                service: xact.requested.service as usize,
                class: xact.requested.class,
                server,
                response_nanos: now.nanos_since(xact.due),
                bytes: xact.requested.bytes,
            });
        }
        if xact.client.is_some() {
            self.request(xact.client, now);
        }
    }

    /// Sends a node's report to the policy.
    fn report(&mut self, node: ServerId, now: Moment) {
        let member = &mut self.members[node.index()];
        if !member.alive {
            return;
        }
        let (since, before) = member.reported;
        let mut state = member.node.state(now, since, before);
        if let Some(bits_per_s) = self.links.bits_per_s(LinkId::of_node(node)) {
            let possible = bits_per_s * now.secs_since(since);
            state.network = if possible > 0.0 { (member.sent as f64 * 8.0 / possible).min(1.0) } else { 0.0 };
        }
        member.reported = (now, member.node.busy(now));
        member.sent = 0;
        self.policy.reported(node, &state, now);
    }

    fn sample(&mut self, now: Moment) {
        let links = &self.links;
        let look = |(node, member): (ServerId, &mut SimulatedNode)| {
            let (since, before) = member.sampled;
            let state = member.node.state(now, since, before);
            let link_s = links.busy_s(LinkId::of_node(node), now);
            let network = (link_s - member.sampled_link_s) / now.secs_since(since).max(f64::MIN_POSITIVE);
            (member.sampled, member.sampled_link_s) = ((now, member.node.busy(now)), link_s);
            let network = network.clamp(0.0, 1.0);
            NodeSample { in_flight: state.in_flight, processor: state.processor, disk: state.disk, network }
        };
        let nodes: Vec<NodeSample> = (0..).map(ServerId).zip(&mut self.members).map(look).collect();
        self.recorder.record_sample(&nodes);
        self.events.push(now.plus_secs(SAMPLE_EVERY_S), Event::Sample);
    }
}
