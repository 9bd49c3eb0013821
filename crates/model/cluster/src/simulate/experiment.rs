//! What is to be simulated. Services, mixes, clusters, policies and loads, and all their combinations.

use crate::dispatch::node::NodeSpec;
use crate::dispatch::{Choice, ClassId, ServerId};

/// What a cluster file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What it is about.
    pub title: String,
    /// Seed of all that is random; repetition r has this plus r − 1.
    pub seed: u64,
    /// How often each combination is run.
    pub repetitions: u32,
    /// Time before anything is counted.
    pub warm_up_s: f64,
    /// Time in which everything is counted.
    pub measure_s: f64,
    /// Nodes have the most popular documents in memory from the beginning.
    pub warm_memory: bool,
    /// The switch, and the network around it.
    pub switch: SwitchSpec,
    /// Names of classes; their numbers are their places.
    pub classes: Vec<String>,
    /// The services that can be requested.
    pub services: Vec<Service>,
    /// How often each is requested.
    pub mixes: Vec<Mix>,
    pub clusters: Vec<Cluster>,
    /// Ways in which a request reaches a node.
    pub ways: Vec<Way>,
    /// Policies that are compared; gains are over the first.
    pub policies: Vec<NamedPolicy>,
    /// How many requests there are.
    pub loads: Vec<Load>,
    /// Nodes that fail and come back.
    pub failures: Vec<Failure>,
    /// What somebody measured, to hold results against.
    pub references: Vec<Reference>,
    /// Which file this one extends.
    pub extends: Option<String>,
}

/// The switch, and the network around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchSpec {
    /// Requests that it works on at a time.
    pub processors: u32,
    /// What it needs for each.
    pub per_request_s: f64,
    /// What it needs for each byte of a response that it passes on.
    pub per_byte_s: f64,
    /// It knows what is requested when it chooses (layer 7).
    pub sees_requests: bool,
    /// Responses go past it: neither its processors nor its link have anything to do with them.
    pub is_passed: bool,
    /// Time on the way from client to node and back, for a response of no size.
    pub network_s: f64,
    /// The link over which all responses leave; none: as fast as anything.
    pub link_bits_per_s: Option<f64>,
    /// Servers that are tried after the first.
    pub retries: u32,
    /// Time until the policy learns that a node is gone or back.
    pub notices_after_s: f64,
    /// Nodes report their state so often to policies that want it.
    pub reports_every_s: f64,
}

/// A way in which a request reaches a node, and what it costs the switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// What it is called.
    pub name: String,
    /// What the switch needs for a request.
    pub per_request_s: f64,
    /// What it needs for each byte of a response.
    pub per_byte_s: f64,
    /// It knows what is requested.
    pub sees_requests: bool,
    /// Responses go past the switch.
    pub is_passed: bool,
}

/// Something that can be requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// What it is called.
    pub name: String,
    /// Where it is requested over HTTP; of several documents the first.
    pub path: String,
    pub class: ClassId,
    /// Processor time at a node of speed 1.
    pub processor_s: f64,
    /// Disk time that no memory spares.
    pub disk_s: f64,
    pub law: Law,
    /// Bytes of a response.
    pub bytes: u64,
    /// Different documents, all of that size; 0: a program, which reads none.
    pub documents: u64,
    /// Exponent of the documents' popularity; 0: all alike.
    pub zipf: f64,
}

/// How a time varies around its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Not at all.
    Constant,
    Exponential,
}

/// How often each service is requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// What it is called.
    pub label: String,
    /// By service, in any unit.
    pub weights: Vec<f64>,
}

/// Nodes behind the switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// What it is called.
    pub label: String,
    /// Nodes of each kind.
    pub groups: Vec<Group>,
}

/// Nodes of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    pub count: u32,
    pub node: NodeSpec,
    /// Its weight, for policies that have weights.
    pub weight: f64,
    /// Its link; none: as fast as anything.
    pub link_bits_per_s: Option<f64>,
}

impl Cluster {
    /// All nodes, in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.count as usize))
    }

    pub fn size(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }
}

/// A policy under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPolicy {
    /// What it is called in tables.
    pub label: String,
    /// Which one it is.
    pub choice: PolicyChoice,
    /// Place of the way in which its requests reach nodes; none: as `[switch]` says.
    pub way: Option<usize>,
}

/// A policy, or how its settings are found.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyChoice {
    Plain(Choice),
    /// WARD, whose core the ward-analysis finds for each mix and cluster; a request that is handed over costs so much.
    Ward {
        /// Cost of handing a request over.
        hand_over_s: f64,
    },
    /// CAP with server state, whose profiles are what the services of each class need.
    CapWithState,
}

impl PolicyChoice {
    /// It chooses by what is requested.
    pub fn needs_request(&self) -> bool {
        match self {
            Self::CapWithState | Self::Ward { .. } => true,
            Self::Plain(choice) => choice.needs_request(),
        }
    }

    /// It goes by what servers report of themselves.
    pub fn wants_reports(&self) -> bool {
        match self {
            Self::CapWithState => true,
            Self::Ward { .. } => false,
            Self::Plain(choice) => choice.wants_reports(),
        }
    }
}

/// How many requests there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// So many clients, each of which sends the next request as soon as it has its response: a closed loop.
    Clients(u32),
    /// So many requests a second, whatever becomes of them, at random moments: an open loop.
    Rate(f64),
}

/// A node that fails, and comes back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// Which one, in every cluster that has so many.
    pub node: ServerId,
    pub at_s: f64,
    /// How long it is gone; none: for good.
    pub lasts_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Labels of mix, cluster and policy that it is about.
    pub mix: String,
    pub cluster: String,
    pub policy: String,
    /// Clients, and requests completed in a second.
    pub points: Vec<(u32, f64)>,
    /// How busy a node was with so many clients.
    pub nodes: Vec<(u32, ReferenceNode)>,
}

/// How busy somebody found a node, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceNode {
    pub node: u32,
    /// Share of its processors that was busy.
    pub processor: Option<f64>,
    /// The same of its disks.
    pub disk: Option<f64>,
}

/// One combination: places of mix, cluster, policy and load, and a repetition from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Place of the mix.
    pub mix: usize,
    /// Place of the cluster.
    pub cluster: usize,
    /// Place of the load.
    pub load: usize,
    /// Place of the policy.
    pub policy: usize,
    pub repetition: u32,
}

/// All combinations, in the order in which they are told.
pub fn cells(experiment: &Experiment) -> Vec<Cell> {
    let mut all = Vec::new();
    for mix in 0..experiment.mixes.len() {
        for cluster in 0..experiment.clusters.len() {
            for load in 0..experiment.loads.len() {
                for policy in 0..experiment.policies.len() {
                    let cell = |repetition| Cell { mix, cluster, load, policy, repetition };
                    all.extend((0..experiment.repetitions).map(cell));
                }
            }
        }
    }
    all
}

impl Experiment {
    /// The switch as it is under a policy, with the way in which its requests reach nodes.
    pub fn switch_under(&self, policy: &NamedPolicy) -> SwitchSpec {
        let Some(way) = policy.way.and_then(|way| self.ways.get(way)) else { return self.switch };
        SwitchSpec {
            per_request_s: way.per_request_s,
            per_byte_s: way.per_byte_s,
            sees_requests: way.sees_requests,
            is_passed: way.is_passed,
            ..self.switch
        }
    }

    /// Failures that begin after the end of a simulation that is shorter than the file says: they change nothing.
    pub fn failures_after_the_end(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(|failure| failure.at_s >= self.warm_up_s + self.measure_s)
    }

    /// What was measured where this cell is.
    pub fn reference(&self, cell: &Cell) -> Option<f64> {
        let Load::Clients(clients) = self.loads[cell.load] else { return None };
        let mut points = self.about(cell).flat_map(|reference| &reference.points);
        points.find(|(at, _)| *at == clients).map(|(_, per_s)| *per_s)
    }

    /// The nodes that were measured where this cell is.
    pub fn reference_nodes(&self, cell: &Cell) -> impl Iterator<Item = &ReferenceNode> {
        let clients = if let Load::Clients(clients) = self.loads[cell.load] { clients } else { 0 };
        let nodes = self.about(cell).flat_map(|reference| &reference.nodes);
        nodes.filter(move |(at, _)| *at == clients).map(|(_, node)| node)
    }

    /// What was measured with the mix, cluster and policy of a cell.
    fn about(&self, cell: &Cell) -> impl Iterator<Item = &Reference> {
        let labels = (
            &self.mixes[cell.mix].label,
            &self.clusters[cell.cluster].label,
            &self.policies[cell.policy].label,
        );
        self.references
            .iter()
            .filter(move |reference| (&reference.mix, &reference.cluster, &reference.policy) == labels)
    }
}
