//! Results of a cluster behind a switch, simulated or measured: responses a second by policy and load, response times, and
//! how evenly its nodes were used.
//!
//! [`Tally`] adds up one repetition, [`PointSum`] the repetitions of a combination, and [`ClusterResult`] is what is
//! written, compared and reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use assay_measurement::declared::{Described, Value};
use assay_measurement::histogram::Histogram;
pub use assay_measurement::nodes::NodeUse;
use schemars::JsonSchema;

use crate::cluster_parts::{Histograms, Part};

/// Share of failed requests up to which a result stands.
const FEW: f64 = 0.01;

/// Version of the document.
pub const SCHEMA: &str = "assay-cluster/1";

/// The load of a node, as it reports it over HTTP. Shares are of the time since the last report, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// Share of its processors that was busy.
    pub processor: f64,
    /// Share of its disks that was busy.
    pub disk: f64,
    /// Share of its network that was busy.
    pub network: f64,
    /// Requests in flight.
    pub in_flight: u32,
    /// Response time that the node expects of a new request.
    pub latency_us: Option<u64>,
    /// Busy time since the start, for readers with intervals of their own; none: not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<NodeTime>,
}

/// Time in which the resources of a node were busy since it started; of several processors or disks, on average.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeTime {
    /// Time since the start.
    pub at_s: f64,
    /// Processors.
    pub processor_s: f64,
    /// Disks.
    pub disk_s: f64,
    /// Its link, if it has one.
    pub network_s: f64,
}

/// State that is read of a node; a server that is not Assay's may report no more than this.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct NodeUsed {
    /// Busy time since the start.
    pub used: NodeTime,
    /// Requests in flight.
    #[serde(default)]
    pub in_flight: u32,
}

impl NodeTime {
    /// Use since an earlier reading, with the requests in flight now; none: the node was started again between them.
    pub fn since(&self, earlier: &Self, in_flight: u32) -> Option<NodeUse> {
        let passed_s = self.at_s - earlier.at_s;
        let share = |now: f64, before: f64| ((now - before) / passed_s).clamp(0.0, 1.0);
        (passed_s > 0.0).then(|| NodeUse {
            processor: share(self.processor_s, earlier.processor_s),
            disk: share(self.disk_s, earlier.disk_s),
            network: share(self.network_s, earlier.network_s),
            in_flight: f64::from(in_flight),
        })
    }
}

/// Where results come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A simulation.
    Simulated,
    /// Requests over a network.
    Measured,
}

/// Results of all combinations of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterResult {
    /// [`SCHEMA`].
    pub schema: String,
    /// Simulated or measured.
    pub origin: Origin,
    /// Name of the experiment's file.
    pub name: String,
    pub title: String,
    /// File that the experiment's file extends: a path, or that it is a bundled one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Part of a measurement; none: the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Seed of all that is random.
    pub seed: u64,
    /// Runs of each combination.
    pub repetitions: u32,
    /// Time before anything was counted.
    pub warm_up_s: f64,
    /// Time in which everything was counted.
    pub measure_s: f64,
    /// One for each combination.
    pub points: Vec<ClusterPoint>,
}

/// The series of one node: the values of each second, by the name of the measurement ([`NodeUse`]).
pub type NodeSeries = BTreeMap<String, Vec<f64>>;

/// A combination, with all of its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPoint {
    /// Label of the requested documents.
    pub mix: String,
    /// Label of the nodes.
    pub cluster: String,
    /// Label of the policy.
    pub policy: String,
    /// Clients in a closed loop, if it was one.
    pub clients: Option<u32>,
    /// Requests offered in a second, if it was an open loop.
    pub rate_per_s: Option<f64>,
    /// Responses a second, by repetition.
    pub responses_per_s_by_repetition: Vec<f64>,
    /// Requests that failed for good, in all repetitions.
    pub failed: u64,
    /// Bytes of responses, in all repetitions.
    pub bytes: u64,
    /// Response times of all.
    pub response_us: Times,
    /// Response times of each service that was requested.
    pub services: Vec<ServiceTimes>,
    /// How unequal nodes were, on average.
    pub balance: Balance,
    /// How unequal they were second by second, averaged over repetitions.
    #[serde(default)]
    pub balance_by_second: Vec<Balance>,
    /// How each was used, on average.
    #[serde(default)]
    #[schemars(with = "Vec<BTreeMap<String, f64>>")]
    pub nodes: Vec<NodeUse>,
    /// Each node second by second, in the first repetition: the values of each measurement, rounded to four places. Empty if the
    /// nodes do not say how busy they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_series: Vec<NodeSeries>,
    /// What somebody else measured there.
    pub reference_per_s: Option<f64>,
    /// What somebody else measured of single nodes there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference_nodes: Vec<NodeReference>,
    /// Of a part: its response times, to be added to those of other parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<Histograms>,
}

/// How busy a node was where somebody else measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReference {
    /// Number of the node.
    pub node: u32,
    /// Share of its processors that was busy, on average.
    pub processor: Option<f64>,
    /// The same of its disks.
    pub disk: Option<f64>,
}

/// Response times of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTimes {
    /// Which one.
    pub name: String,
    /// How long its responses took.
    pub response_us: Times,
}

/// Times in microseconds, from a merged histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// How many there are.
    pub count: u64,
    /// The shortest.
    #[serde(default)]
    pub min: Option<u64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// Half of them took no longer.
    pub p50: Option<u64>,
    /// Nine in ten.
    pub p90: Option<u64>,
    /// Nineteen in twenty.
    pub p95: Option<u64>,
    /// All but one in a hundred.
    pub p99: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}

impl Times {
    pub fn of(histogram: &Histogram) -> Self {
        let at = |quantile| histogram.quantile_us(quantile);
        Self {
            count: histogram.count(),
            min: histogram.min_us(),
            mean: histogram.mean_us(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: histogram.max_us(),
        }
    }
}

/// How unequal nodes are in the use of a resource: standard deviation over mean; 0 is perfect balance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    /// Processors.
    pub processor: f64,
    /// Disks.
    pub disk: f64,
    /// Requests that they have.
    pub in_flight: f64,
}

impl Balance {
    /// Imbalance between these nodes.
    pub fn of(nodes: &[NodeUse]) -> Self {
        let of = |value: fn(&NodeUse) -> f64| spread(nodes.iter().map(value));
        Self {
            processor: of(|node| node.processor),
            disk: of(|node| node.disk),
            in_flight: of(|node| node.in_flight),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            processor: self.processor + other.processor,
            disk: self.disk + other.disk,
            in_flight: self.in_flight + other.in_flight,
        }
    }

    fn over(self, count: f64) -> Self {
        let by = 1.0 / count.max(1.0);
        Self { processor: self.processor * by, disk: self.disk * by, in_flight: self.in_flight * by }
    }
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

/// Counts and times of one repetition.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    responded: u64,
    failed: u64,
    bytes: u64,
    all: Histogram,
    by_service: BTreeMap<usize, Histogram>,
    /// All nodes, second by second.
    seconds: Vec<Vec<NodeUse>>,
}

impl Tally {
    /// Counts a response of the service at this index.
    pub fn responded(&mut self, service: usize, response_us: u64, bytes: u64) {
        self.responded += 1;
        self.bytes += bytes;
        self.all.record(response_us);
        self.by_service.entry(service).or_default().record(response_us);
    }

    /// Counts a request that failed for good.
    pub fn failed(&mut self) {
        self.failed += 1;
    }

    /// Adds the use of all nodes, once a second.
    pub fn sampled(&mut self, nodes: Vec<NodeUse>) {
        self.seconds.push(nodes);
    }

    /// Requests with a response.
    pub fn count(&self) -> u64 {
        self.responded
    }

    /// Requests that failed for good.
    pub fn failures(&self) -> u64 {
        self.failed
    }

    /// Whether more requests failed than can be an accident.
    pub fn has_fault(&self) -> bool {
        self.failed as f64 > (self.responded + self.failed) as f64 * FEW
    }

    /// Body bytes of the responses.
    pub fn body_bytes(&self) -> u64 {
        self.bytes
    }

    /// Response times of all.
    pub fn times(&self) -> Times {
        Times::of(&self.all)
    }
}

/// Combines each declared value of two nodes.
fn joined(one: &NodeUse, other: &NodeUse, join: impl Fn(f64, f64) -> f64) -> NodeUse {
    let mut both = NodeUse::default();
    for field in NodeUse::FIELDS {
        if let (Value::Float(one), Value::Float(other)) = ((field.get)(one), (field.get)(other)) {
            (field.set)(&mut both, Value::Float(join(one, other)));
        }
    }
    both
}

/// Decimal places of series: a hundredth of a per cent.
const PLACES: f64 = 1e4;

/// Series of each node from samples of all nodes, one a second.
fn series(seconds: &[Vec<NodeUse>]) -> Vec<NodeSeries> {
    let nodes = seconds.iter().map(Vec::len).max().unwrap_or(0);
    let value = |second: &Vec<NodeUse>, node: usize, field: usize| {
        let used = second.get(node).copied().unwrap_or_default();
        match (NodeUse::FIELDS[field].get)(&used) {
            Value::Float(value) => (value * PLACES).round() / PLACES,
            _ => 0.0,
        }
    };
    let of = |node: usize| {
        let one = |(field, declared): (usize, &assay_measurement::declared::DeclaredField<NodeUse>)| {
            let values = seconds.iter().map(|second| value(second, node, field)).collect();
            (declared.name.to_owned(), values)
        };
        NodeUse::FIELDS.iter().enumerate().map(one).collect()
    };
    (0..nodes).map(of).collect()
}

/// Labels of a combination.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels {
    /// Label of the requested documents.
    pub mix: String,
    /// Label of the nodes.
    pub cluster: String,
    /// Label of the policy.
    pub policy: String,
    /// Clients in a closed loop, if it is one.
    pub clients: Option<u32>,
    /// Requests offered in a second, if it is an open loop.
    pub rate_per_s: Option<f64>,
    /// What somebody else measured there.
    pub reference_per_s: Option<f64>,
    /// What somebody else measured of single nodes there.
    pub reference_nodes: Vec<NodeReference>,
}

/// The repetitions of a combination, added up.
#[derive(Debug, Clone, Default)]
pub struct PointSum {
    per_s: Vec<f64>,
    sum: Tally,
    balance: Balance,
    looks: f64,
    /// By second: the sum over repetitions, and how many there are.
    by_second: Vec<(Balance, f64)>,
    nodes: Vec<NodeUse>,
    /// Of the first repetition.
    series: Vec<NodeSeries>,
}

impl PointSum {
    /// Whether no repetition has been added.
    pub fn is_empty(&self) -> bool {
        self.per_s.is_empty()
    }

    /// Adds a repetition in which `measure_s` seconds were counted.
    pub fn add(&mut self, tally: &Tally, measure_s: f64) {
        if self.is_empty() {
            self.series = series(&tally.seconds);
        }
        self.per_s.push(tally.responded as f64 / measure_s);
        self.sum.failed += tally.failed;
        self.sum.bytes += tally.bytes;
        self.sum.all.merge(&tally.all);
        for (service, times) in &tally.by_service {
            self.sum.by_service.entry(*service).or_default().merge(times);
        }
        self.by_second.resize(self.by_second.len().max(tally.seconds.len()), (Balance::default(), 0.0));
        for (second, nodes) in tally.seconds.iter().enumerate() {
            let balance = Balance::of(nodes);
            self.balance = self.balance.plus(balance);
            self.looks += 1.0;
            let (sum, count) = self.by_second[second];
            self.by_second[second] = (sum.plus(balance), count + 1.0);
            self.nodes.resize(self.nodes.len().max(nodes.len()), NodeUse::default());
            for (sum, node) in self.nodes.iter_mut().zip(nodes) {
                *sum = joined(sum, node, |sum, more| sum + more);
            }
        }
    }

    /// Result as it is written; `services` are the names of all services.
    pub fn point(&self, labels: Labels, services: &[String]) -> ClusterPoint {
        let service = |(place, times): (&usize, &Histogram)| {
            let name = services.get(*place)?.clone();
            Some(ServiceTimes { name, response_us: Times::of(times) })
        };
        let looks = self.looks.max(1.0);
        let average = |node: &NodeUse| joined(node, node, |sum, _| sum / looks);
        ClusterPoint {
            mix: labels.mix,
            cluster: labels.cluster,
            policy: labels.policy,
            clients: labels.clients,
            rate_per_s: labels.rate_per_s,
            responses_per_s_by_repetition: self.per_s.clone(),
            failed: self.sum.failed,
            bytes: self.sum.bytes,
            response_us: Times::of(&self.sum.all),
            services: self.sum.by_service.iter().filter_map(service).collect(),
            balance: self.balance.over(self.looks),
            balance_by_second: self.by_second.iter().map(|(sum, count)| sum.over(*count)).collect(),
            nodes: self.nodes.iter().map(average).collect(),
            node_series: self.series.clone(),
            reference_per_s: labels.reference_per_s,
            reference_nodes: labels.reference_nodes,
            histograms: None,
        }
    }

    /// Response times, for a part; `services` are the names of all services.
    pub fn histograms(&self, services: &[String]) -> Histograms {
        let service =
            |(place, times): (&usize, &Histogram)| Some((services.get(*place)?.clone(), times.to_sparse()));
        Histograms {
            all: self.sum.all.to_sparse(),
            services: self.sum.by_service.iter().filter_map(service).collect(),
        }
    }
}

impl ClusterPoint {
    /// Responses a second, over all repetitions.
    pub fn mean_per_s(&self) -> f64 {
        let all = &self.responses_per_s_by_repetition;
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    /// The load, as a number: clients, or requests a second.
    pub fn load(&self) -> f64 {
        self.clients.map_or(self.rate_per_s.unwrap_or(0.0), f64::from)
    }

    /// True when another is the same mix, cluster and load.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.mix == other.mix
            && self.cluster == other.cluster
            && self.clients == other.clients
            && self.rate_per_s == other.rate_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        let text = |text: &str| text.to_owned();
        Labels {
            mix: text("m"),
            cluster: text("c"),
            policy: text("p"),
            clients: Some(2),
            rate_per_s: None,
            reference_per_s: None,
            reference_nodes: Vec::new(),
        }
    }

    #[test]
    fn repetitions_are_added_up_and_balance_is_between_nodes() {
        let mut sum = PointSum::default();
        for (count, busy) in [(10, 1.0), (30, 0.5)] {
            let mut tally = Tally::default();
            (0..count).for_each(|_| tally.responded(1, 1000, 7));
            tally.failed();
            let node = |processor| NodeUse { processor, disk: 0.0, network: 0.25, in_flight: 2.0 };
            tally.sampled(vec![node(busy), node(0.5)]);
            sum.add(&tally, 10.0);
        }
        let point = sum.point(labels(), &["a".into(), "b".into()]);
        assert_eq!(point.responses_per_s_by_repetition, [1.0, 3.0]);
        assert_eq!((point.mean_per_s(), point.failed, point.bytes), (2.0, 2, 280));
        assert_eq!((point.services.len(), point.services[0].name.as_str()), (1, "b"));
        assert_eq!(point.services[0].response_us.count, 40);
        // 1 and 0.5: mean 0.75, deviation 0.25. The other repetition was in balance.
        assert!((point.balance.processor - 1.0 / 6.0).abs() < 1e-12, "{:?}", point.balance);
        assert_eq!((point.balance.in_flight, point.balance_by_second.len()), (0.0, 1));
        assert_eq!((point.nodes[0].processor, point.nodes[0].network), (0.75, 0.25));
        // The series are those of the first repetition: an average of several would hide how a node's use varies.
        assert_eq!(point.node_series[0]["processor"], [1.0]);
        assert_eq!((point.node_series.len(), &point.node_series[1]["in_flight"]), (2, &vec![2.0]));
    }

    #[test]
    fn a_result_is_read_back_as_it_was_written() {
        let mut sum = PointSum::default();
        let mut tally = Tally::default();
        tally.responded(0, 1234, 1);
        sum.add(&tally, 3.0);
        let result = ClusterResult {
            schema: SCHEMA.into(),
            origin: Origin::Measured,
            name: "n".into(),
            title: "t".into(),
            extends: Some("base.toml".into()),
            part: None,
            seed: 1,
            repetitions: 1,
            warm_up_s: 0.0,
            measure_s: 3.0,
            points: vec![sum.point(labels(), &["a".into()])],
        };
        let text = serde_json::to_string(&result).expect("is JSON");
        assert_eq!(serde_json::from_str::<ClusterResult>(&text).expect("is a result"), result);
    }
}
