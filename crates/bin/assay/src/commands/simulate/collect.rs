//! The results of one combination of a simulation. A simulation's words, told to the counts that a measurement keeps too.

use assay_cluster::simulate::{
    Cell, CompletedRequest, Experiment, NodeSample, OfferedLoad, Recorder, ReferenceNode,
};
use assay_record::cluster::{ClusterResult, Labels, NodeReference, NodeUse, Origin, PointSum, SCHEMA, Tally};

/// Nanoseconds of a microsecond, in which histograms count.
const NANOS: u64 = 1_000;

/// Result of one repetition.
#[derive(Debug, Default)]
pub struct RepetitionResult(pub Tally);

impl Recorder for RepetitionResult {
    fn record_response(&mut self, request: &CompletedRequest) {
        self.0.responded(request.service, request.response_nanos / NANOS, request.bytes);
    }

    fn record_failure(&mut self) {
        self.0.failed();
    }

    fn record_sample(&mut self, nodes: &[NodeSample]) {
        let seen = |node: &NodeSample| NodeUse {
            processor: node.processor,
            disk: node.disk,
            network: node.network,
            in_flight: f64::from(node.in_flight),
        };
        self.0.sampled(nodes.iter().map(seen).collect());
    }
}

/// A node that somebody else measured, as results have it.
fn measured(there: &ReferenceNode) -> NodeReference {
    NodeReference { node: there.node.0, processor: there.processor, disk: there.disk }
}

/// Labels of a cell.
pub fn labels(experiment: &Experiment, cell: &Cell) -> Labels {
    let load = experiment.loads[cell.load];
    Labels {
        mix: experiment.mixes[cell.mix].label.clone(),
        cluster: experiment.clusters[cell.cluster].label.clone(),
        policy: experiment.policies[cell.policy].label.clone(),
        clients: if let OfferedLoad::Clients(clients) = load { Some(clients) } else { None },
        rate_per_s: if let OfferedLoad::Rate(per_s) = load { Some(per_s) } else { None },
        reference_per_s: experiment.reference(cell),
        reference_nodes: experiment.reference_nodes(cell).map(measured).collect(),
    }
}

/// Cells in the order in which they are told, each with what it brought, as a result.
pub fn result(name: &str, experiment: &Experiment, origin: Origin, taken: &[(Cell, Tally)]) -> ClusterResult {
    let services: Vec<String> = experiment.services.iter().map(|service| service.name.clone()).collect();
    let mut sums: Vec<(Cell, PointSum)> = Vec::new();
    for (cell, tally) in taken {
        let is_it =
            |(other, _): &&mut (Cell, PointSum)| Cell { repetition: other.repetition, ..*cell } == *other;
        match sums.iter_mut().find(is_it) {
            Some((_, sum)) => sum.add(tally, experiment.measure_s),
            None => {
                let mut sum = PointSum::default();
                sum.add(tally, experiment.measure_s);
                sums.push((*cell, sum));
            }
        }
    }
    let points = sums.iter().map(|(cell, sum)| sum.point(labels(experiment, cell), &services)).collect();
    ClusterResult {
        schema: SCHEMA.into(),
        origin,
        name: name.to_owned(),
        title: experiment.title.clone(),
        extends: experiment.extends.clone(),
        part: None,
        seed: experiment.seed,
        repetitions: experiment.repetitions,
        warm_up_s: experiment.warm_up_s,
        measure_s: experiment.measure_s,
        points,
    }
}
