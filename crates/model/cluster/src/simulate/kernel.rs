//! Event loop of the simulation: clients send requests, the switch chooses nodes, nodes serve, links transmit, clients receive
//! responses.

use crate::dispatch::node::{BusyTime, JobId, Node};
use crate::dispatch::{ClassId, Completion, Moment, Policy, Request, RequestOutcome, ServerId};
use assay_base::random::Rng;
use assay_workload::Purpose;

use crate::simulate::event_queue::{Event, EventQueue};
use crate::simulate::experiment::{Cell, Cluster, Experiment, OfferedLoad, SwitchSpec};
use crate::simulate::links::Links;
use crate::simulate::policies::{document_demands, policy_config};
use crate::simulate::stream::{RequestStream, SimulatedRequest};
use crate::simulate::switch::Switch;

/// Pause of a client after a failed request, in seconds.
pub const PAUSE_AFTER_FAILURE_S: f64 = 0.1;
/// Interval at which nodes are sampled, in seconds of the model's time.
pub const SAMPLE_EVERY_S: f64 = 1.0;
/// Client number of requests in an open loop, in the stream.
pub const NOBODY: u64 = u64::MAX;

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

#[derive(Debug, Clone)]
struct Xact {
    requested: SimulatedRequest,
    client: Option<u32>,
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
    node: Node,
    alive: bool,
    planned: Option<Moment>,
    sampled: (Moment, BusyTime),
    /// Busy time of its link at the last sample.
    sampled_link_s: f64,
    reported: (Moment, BusyTime),
    /// Bytes sent since the last report.
    sent: u64,
}

struct Kernel<'a, R> {
    spec: SwitchSpec,
    experiment: &'a Experiment,
    cluster: &'a Cluster,
    load: OfferedLoad,
    stream: RequestStream,
    recorder: &'a mut R,
    policy: Box<dyn Policy>,
    events: EventQueue,
    switch: Switch,
    links: Links,
    members: Vec<SimulatedNode>,
    xacts: Vec<Xact>,
    free: Vec<u32>,
    /// Requests sent so far by each client (or by none).
    numbers: Vec<u64>,
    arrivals: Rng,
    counting: bool,
    done: Vec<JobId>,
}

/// Runs one cell. Everything follows from its repetition's seed.
pub fn simulate<R: Recorder>(experiment: &Experiment, cell: &Cell, recorder: &mut R) {
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
    let clients = if let OfferedLoad::Clients(clients) = load { clients as usize } else { 1 };
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
        xacts: Vec::new(),
        free: Vec::new(),
        numbers: vec![0; clients],
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

impl<R: Recorder> Kernel<'_, R> {
    fn begin(&mut self, wants_reports: bool) {
        let start = Moment::START;
        for (number, group) in self.cluster.nodes().enumerate() {
            self.policy.server_up(ServerId(number as u32), group.weight, start);
        }
        match self.load {
            OfferedLoad::Clients(clients) => {
                (0..clients).for_each(|client| self.events.push(start, Event::Request(Some(client))));
            }
            OfferedLoad::Rate(_) => self.plan_arrival(start),
        }
        self.events.push(Moment::from_secs(self.experiment.warm_up_s), Event::Measure);
        if wants_reports {
            self.events.push(start.plus_secs(self.spec.reports_every_s), Event::Reports);
        }
        for (number, failure) in self.experiment.failures.iter().enumerate() {
            if failure.node.0 as usize >= self.members.len() {
                continue;
            }
            let (number, at) = (number as u32, Moment::from_secs(failure.at_s));
            self.events.push(at, Event::Fail(number));
            self.events.push(at.plus_secs(self.spec.notices_after_s), Event::FailureDetected(number));
            if let Some(lasts_s) = failure.lasts_s {
                let back = at.plus_secs(lasts_s);
                self.events.push(back, Event::Recover(number));
                self.events.push(back.plus_secs(self.spec.notices_after_s), Event::RecoveryDetected(number));
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
                (0..self.members.len() as u32).for_each(|node| self.report(node, now));
                self.events.push(now.plus_secs(self.spec.reports_every_s), Event::Reports);
            }
            Event::Sample => self.sample(now),
            Event::Measure => {
                self.counting = true;
                for (node, member) in self.members.iter_mut().enumerate() {
                    member.sampled = (now, member.node.busy(now));
                    member.sampled_link_s = self.links.busy_s(node as u32, now);
                }
                self.events.push(now.plus_secs(SAMPLE_EVERY_S), Event::Sample);
            }
            Event::Fail(failure) => self.fail(self.failed_node(failure), now),
            Event::Recover(failure) => {
                let node = self.failed_node(failure);
                self.members[node.0 as usize].alive = true;
            }
            Event::FailureDetected(failure) => self.policy.server_gone(self.failed_node(failure), now),
            Event::RecoveryDetected(failure) => {
                let node = self.failed_node(failure);
                let weight = self.cluster.nodes().nth(node.0 as usize).map_or(1.0, |group| group.weight);
                self.policy.server_up(node, weight, now);
            }
        }
    }

    fn failed_node(&self, failure: u32) -> ServerId {
        self.experiment.failures[failure as usize].node
    }

    fn plan_arrival(&mut self, now: Moment) {
        if let OfferedLoad::Rate(per_s) = self.load {
            let gap_s = self.arrivals.exponential() / per_s;
            self.events.push(now.plus_secs(gap_s), Event::Request(None));
        }
    }

    fn request(&mut self, client: Option<u32>, now: Moment) {
        if client.is_none() {
            self.plan_arrival(now);
        }
        let number = &mut self.numbers[client.unwrap_or(0) as usize];
        let requested = self.stream.request(client.map_or(NOBODY, u64::from), *number);
        *number += 1;
        let xact = Xact {
            requested,
            client,
            due: now,
            server: None,
            started: now,
            links_left: 0,
            tried: Vec::new(),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.xacts[slot as usize] = xact;
                slot
            }
            None => {
                self.xacts.push(xact);
                self.xacts.len() as u32 - 1
            }
        };
        self.events.push(now.plus_secs(self.spec.network_s / 2.0), Event::AtSwitch(slot));
    }

    fn dispatch(&mut self, slot: u32, now: Moment) {
        let mut probes = Vec::new();
        self.policy.probes(now, &mut probes);
        for server in probes {
            self.events.push(now.plus_secs(self.spec.network_s), Event::Probe(server.0));
        }
        let xact = &mut self.xacts[slot as usize];
        let request = xact.request();
        let named = match xact.tried.is_empty() {
            true => self.policy.choose(&request, now),
            false => self.policy.choose_again(&request, &xact.tried, now),
        };
        let Some(server) = named else {
            self.give_up(slot, now);
            return;
        };
        (xact.server, xact.started) = (Some(server), now);
        let work = xact.requested.work;
        self.policy.started(server, &request, now);
        let member = &mut self.members[server.0 as usize];
        let mut done = std::mem::take(&mut self.done);
        let taken = member.alive && member.node.arrive(u64::from(slot), work, now, &mut done).is_ok();
        self.finish_all(done, now);
        if taken {
            self.plan_node(server.0);
        } else {
            self.retry(slot, now);
        }
    }

    /// Records a failure at a server, and retries or gives up.
    fn retry(&mut self, slot: u32, now: Moment) {
        let xact = &mut self.xacts[slot as usize];
        let Some(server) = xact.server.take() else { return };
        xact.tried.push(server);
        let completion =
            Completion { took_nanos: now.nanos_since(xact.started), outcome: RequestOutcome::Failed };
        let (request, tried) = (xact.request(), xact.tried.len());
        self.policy.finished(server, &request, &completion, now);
        if tried <= self.spec.retries as usize {
            // The refusal takes the way back and the request the way to the next node.
            self.events.push(now.plus_secs(self.spec.network_s), Event::Dispatch(slot));
        } else {
            self.give_up(slot, now);
        }
    }

    fn give_up(&mut self, slot: u32, now: Moment) {
        if self.counting {
            self.recorder.record_failure();
        }
        let client = self.xacts[slot as usize].client;
        self.free.push(slot);
        if client.is_some() {
            self.events.push(now.plus_secs(PAUSE_AFTER_FAILURE_S), Event::Request(client));
        }
    }

    fn fail(&mut self, server: ServerId, now: Moment) {
        let member = &mut self.members[server.0 as usize];
        member.alive = false;
        let lost = member.node.fail(now);
        self.plan_node(server.0);
        for slot in lost {
            self.retry(slot as u32, now);
        }
    }

    fn plan_node(&mut self, node: u32) {
        let member = &mut self.members[node as usize];
        let next = member.node.next_event();
        if next != member.planned {
            member.planned = next;
            if let Some(next) = next {
                self.events.push(next, Event::Node(node));
            }
        }
    }

    fn on_node_timer(&mut self, node: u32, now: Moment) {
        let member = &mut self.members[node as usize];
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
    fn finish_all(&mut self, mut done: Vec<JobId>, now: Moment) {
        for job in done.drain(..) {
            let slot = job as u32;
            let xact = &mut self.xacts[slot as usize];
            let Some(server) = xact.server else { continue };
            let bytes = xact.requested.bytes;
            self.policy.first_byte(server, &xact.request(), now.nanos_since(xact.started), now);
            self.members[server.0 as usize].sent += bytes;
            let work_s = bytes as f64 * self.spec.per_byte_s;
            if work_s > 0.0 {
                let at = self.switch.work(now, work_s);
                self.events.push(at, Event::Forwarded(slot));
            } else {
                self.carry(slot, now);
            }
        }
        self.done = done;
    }

    /// Puts a response on its links.
    fn carry(&mut self, slot: u32, now: Moment) {
        let xact = &self.xacts[slot as usize];
        let Some(server) = xact.server else { return };
        let bytes = xact.requested.bytes;
        let on = match self.spec.direct_return {
            true => self.links.send_direct(slot, bytes, server.0, now),
            false => self.links.send(slot, bytes, server.0, now),
        };
        self.xacts[slot as usize].links_left = on;
        match on {
            0 => self.leave_switch(slot, now),
            _ => [0, server.0 + 1].into_iter().for_each(|link| self.plan_link(link)),
        }
    }

    fn plan_link(&mut self, link: u32) {
        if let Some(next) = self.links.plan(link) {
            self.events.push(next, Event::Link(link));
        }
    }

    fn on_link_timer(&mut self, link: u32, now: Moment) {
        if !self.links.due(link, now) {
            return;
        }
        while let Some(slot) = self.links.take(link, now) {
            let xact = &mut self.xacts[slot as usize];
            xact.links_left -= 1;
            if xact.links_left == 0 {
                self.leave_switch(slot, now);
            }
        }
        self.plan_link(link);
    }

    /// Ends a request at the switch, whose links have sent the whole response.
    fn leave_switch(&mut self, slot: u32, now: Moment) {
        let xact = &self.xacts[slot as usize];
        if let Some(server) = xact.server {
            let completion =
                Completion { took_nanos: now.nanos_since(xact.started), outcome: RequestOutcome::Responded };
            self.policy.finished(server, &xact.request(), &completion, now);
        }
        self.events.push(now.plus_secs(self.spec.network_s / 2.0), Event::Response(slot));
    }

    fn respond(&mut self, slot: u32, now: Moment) {
        let xact = &self.xacts[slot as usize];
        if let (true, Some(server)) = (self.counting, xact.server) {
            self.recorder.record_response(&CompletedRequest {
                service: xact.requested.service as usize,
                class: xact.requested.class,
                server,
                response_nanos: now.nanos_since(xact.due),
                bytes: xact.requested.bytes,
            });
        }
        let client = xact.client;
        self.free.push(slot);
        if client.is_some() {
            self.request(client, now);
        }
    }

    /// Sends a node's report to the policy.
    fn report(&mut self, node: u32, now: Moment) {
        let member = &mut self.members[node as usize];
        if !member.alive {
            return;
        }
        let (since, before) = member.reported;
        let mut state = member.node.state(now, since, before);
        if let Some(bits_per_s) = self.links.node_rate(node) {
            let possible = bits_per_s * now.secs_since(since);
            state.network = if possible > 0.0 { (member.sent as f64 * 8.0 / possible).min(1.0) } else { 0.0 };
        }
        member.reported = (now, member.node.busy(now));
        member.sent = 0;
        self.policy.reported(ServerId(node), &state, now);
    }

    fn sample(&mut self, now: Moment) {
        let links = &self.links;
        let look = |(node, member): (usize, &mut SimulatedNode)| {
            let (since, before) = member.sampled;
            let state = member.node.state(now, since, before);
            let link_s = links.busy_s(node as u32, now);
            let network = (link_s - member.sampled_link_s) / now.secs_since(since).max(f64::MIN_POSITIVE);
            (member.sampled, member.sampled_link_s) = ((now, member.node.busy(now)), link_s);
            let network = network.clamp(0.0, 1.0);
            NodeSample { in_flight: state.in_flight, processor: state.processor, disk: state.disk, network }
        };
        let nodes: Vec<NodeSample> = self.members.iter_mut().enumerate().map(look).collect();
        self.recorder.record_sample(&nodes);
        self.events.push(now.plus_secs(SAMPLE_EVERY_S), Event::Sample);
    }
}
