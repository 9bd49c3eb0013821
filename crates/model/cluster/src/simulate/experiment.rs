//! Experiment of a cluster file: services, mixes, clusters, policies and loads, and all their combinations.

use crate::dispatch::node::NodeSpec;
use crate::dispatch::{ClassId, PolicyConfig, ServerId};

#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    pub title: String,
    /// Seed of everything random; repetition r has this plus r − 1.
    pub seed: u64,
    /// Runs of each combination.
    pub repetitions: u32,
    /// Warm-up, before anything is counted.
    pub warm_up_s: f64,
    /// Time in which everything is counted.
    pub measure_s: f64,
    /// Nodes have the most popular documents in memory from the beginning.
    pub warm_memory: bool,
    /// The switch, and the network around it.
    pub switch: SwitchSpec,
    /// Names of classes, by number.
    pub classes: Vec<String>,
    pub services: Vec<Service>,
    pub mixes: Vec<ServiceMix>,
    pub clusters: Vec<Cluster>,
    /// Ways in which the switch can forward requests.
    pub forwarding_methods: Vec<ForwardingMethod>,
    /// Policies that are compared; gains are relative to the first.
    pub policies: Vec<NamedPolicy>,
    pub loads: Vec<OfferedLoad>,
    pub failures: Vec<NodeFailure>,
    /// Measurements of others, for comparison.
    pub references: Vec<ReferenceCurve>,
    /// Name of the file that this one extends.
    pub extends: Option<String>,
}

/// The switch, and the network around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchSpec {
    /// Requests that the switch works on at a time.
    pub processors: u32,
    /// Time of the switch for a request.
    pub per_request_s: f64,
    /// Time of the switch for each byte of a response that it forwards.
    pub per_byte_s: f64,
    /// The switch sees requests when it chooses (layer 7).
    pub sees_requests: bool,
    /// Direct server return: responses bypass the switch's processors and its link.
    pub direct_return: bool,
    /// Round-trip time between client and node, for a response of no size.
    pub network_s: f64,
    /// Link over which all responses leave; none: infinitely fast.
    pub link_bits_per_s: Option<f64>,
    /// Retries at other servers.
    pub retries: u32,
    /// Time until the policy learns that a node is down or up.
    pub notices_after_s: f64,
    /// Interval of nodes' reports to policies that use them.
    pub reports_every_s: f64,
}

/// Method by which the switch forwards requests to nodes, and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct ForwardingMethod {
    pub name: String,
    /// Time of the switch for a request.
    pub per_request_s: f64,
    /// Time of the switch for each byte of a response.
    pub per_byte_s: f64,
    /// The switch sees requests (layer 7).
    pub sees_requests: bool,
    /// Direct server return: responses bypass the switch.
    pub direct_return: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    pub name: String,
    /// Path over HTTP; of several documents the first.
    pub path: String,
    pub class: ClassId,
    /// Processor time at a node of speed 1.
    pub processor_s: f64,
    /// Disk time that memory does not save.
    pub disk_s: f64,
    pub law: ServiceTimeLaw,
    pub bytes: u64,
    /// Number of documents, all of that size; 0: a program, which reads none.
    pub documents: u64,
    /// Zipf exponent of the documents' popularity; 0: uniform.
    pub zipf: f64,
}

/// Distribution of a service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceTimeLaw {
    Constant,
    Exponential,
}

/// Popularity of services.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceMix {
    pub label: String,
    /// Weights by service, in any unit.
    pub weights: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub label: String,
    pub groups: Vec<NodeGroup>,
}

/// Nodes of one configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeGroup {
    pub count: u32,
    pub node: NodeSpec,
    /// Weight, for policies that use weights.
    pub weight: f64,
    /// Bandwidth of each node's link; none: infinitely fast.
    pub link_bits_per_s: Option<f64>,
}

impl Cluster {
    /// Nodes in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeGroup> {
        self.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.count as usize))
    }

    pub fn size(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }
}

/// A policy with its label.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPolicy {
    pub label: String,
    pub choice: PolicySpec,
    /// Index of the forwarding method; none: that of `[switch]`.
    pub forwarding: Option<usize>,
}

/// A policy, or a rule by which its settings are computed.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicySpec {
    Plain(PolicyConfig),
    /// WARD with a core computed by the ward-analysis for each mix and cluster.
    Ward {
        /// Cost of handing a request over to another node.
        hand_over_s: f64,
    },
    /// CAP with server state; the demands of a class are the mean ones of its services.
    CapWithState,
}

impl PolicySpec {
    /// True if the policy chooses by the request.
    pub fn needs_request(&self) -> bool {
        match self {
            Self::CapWithState | Self::Ward { .. } => true,
            Self::Plain(choice) => choice.needs_request(),
        }
    }

    /// True if the policy uses reports of servers.
    pub fn wants_reports(&self) -> bool {
        match self {
            Self::CapWithState => true,
            Self::Ward { .. } => false,
            Self::Plain(choice) => choice.wants_reports(),
        }
    }
}

/// Load on a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OfferedLoad {
    /// Closed loop: this many clients, each of which sends its next request as soon as it has a response.
    Clients(u32),
    /// Open loop: Poisson arrivals at this rate per second.
    Rate(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeFailure {
    /// Number of the node, in every cluster that has one of this number.
    pub node: ServerId,
    pub at_s: f64,
    /// Length of the outage; none: for good.
    pub lasts_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceCurve {
    /// Labels of the mix, cluster and policy that were measured.
    pub mix: String,
    pub cluster: String,
    pub policy: String,
    /// Clients, and requests completed per second.
    pub points: Vec<(u32, f64)>,
    /// Utilisation of a node with this many clients.
    pub nodes: Vec<(u32, ReferenceNode)>,
}

/// Measured mean utilisation of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceNode {
    pub node: ServerId,
    /// Utilisation of its processors.
    pub processor: Option<f64>,
    /// Utilisation of its disks.
    pub disk: Option<f64>,
}

/// One combination: indices of mix, cluster, load and policy, and a repetition from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub mix: usize,
    pub cluster: usize,
    pub load: usize,
    pub policy: usize,
    pub repetition: u32,
}

/// All combinations, in the order of results.
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
    /// The switch under a policy, with the policy's forwarding method.
    pub fn switch_under(&self, policy: &NamedPolicy) -> SwitchSpec {
        let Some(method) = policy.forwarding.and_then(|index| self.forwarding_methods.get(index)) else {
            return self.switch;
        };
        SwitchSpec {
            per_request_s: method.per_request_s,
            per_byte_s: method.per_byte_s,
            sees_requests: method.sees_requests,
            direct_return: method.direct_return,
            ..self.switch
        }
    }

    /// Failures after the end of a simulation that was made shorter than the file says: they have no effect.
    pub fn failures_after_the_end(&self) -> impl Iterator<Item = &NodeFailure> {
        self.failures.iter().filter(|failure| failure.at_s >= self.warm_up_s + self.measure_s)
    }

    /// Reference rate for this cell.
    pub fn reference(&self, cell: &Cell) -> Option<f64> {
        let OfferedLoad::Clients(clients) = self.loads[cell.load] else { return None };
        let mut points = self.references_for(cell).flat_map(|reference| &reference.points);
        points.find(|(at, _)| *at == clients).map(|(_, per_s)| *per_s)
    }

    /// Reference utilisations for this cell.
    pub fn reference_nodes(&self, cell: &Cell) -> impl Iterator<Item = &ReferenceNode> {
        let clients = if let OfferedLoad::Clients(clients) = self.loads[cell.load] { clients } else { 0 };
        let nodes = self.references_for(cell).flat_map(|reference| &reference.nodes);
        nodes.filter(move |(at, _)| *at == clients).map(|(_, node)| node)
    }

    /// References for the mix, cluster and policy of a cell.
    fn references_for(&self, cell: &Cell) -> impl Iterator<Item = &ReferenceCurve> {
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
