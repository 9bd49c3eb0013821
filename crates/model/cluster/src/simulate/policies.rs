//! Policy of a cell. The settings of some follow from the services and the cluster.

use crate::dispatch::PolicyConfig;
use crate::dispatch::policies::cap_with_state::{CapWithStateSettings, ClassProfile};
use crate::dispatch::policies::ward_analysis::{ClusterCosts, DocumentDemand, analyse};

use crate::simulate::experiment::{Cluster, Experiment, PolicySpec, ServiceMix};
use crate::simulate::stream::{document_of, popularity};

/// Requests of a ward-analysis.
const REQUESTS: f64 = 1e6;

/// Documents of a mix with their numbers of requests.
pub fn document_demands(experiment: &Experiment, mix: &ServiceMix) -> Vec<DocumentDemand> {
    let total: f64 = mix.weights.iter().sum();
    let mut all = Vec::new();
    for (index, service) in experiment.services.iter().enumerate() {
        let share = mix.weights[index] / total;
        let ranks = |number| popularity(number, service.zipf);
        let sum: f64 = (0..service.documents).map(ranks).sum();
        all.extend((0..service.documents).map(|number| DocumentDemand {
            document: document_of(index, number),
            bytes: service.bytes,
            requests: REQUESTS * share * ranks(number) / sum,
        }));
    }
    all
}

/// Costs for a ward-analysis; the nodes of the first group stand for all.
pub fn ward_costs(cluster: &Cluster, hand_over_s: f64) -> Option<ClusterCosts> {
    let first = cluster.groups.first()?;
    Some(ClusterCosts {
        nodes: cluster.groups.iter().map(|group| group.count).sum(),
        node_memory_bytes: first.node.memory_bytes,
        hand_over_s,
        disk_seek_s: first.node.disk_seek_s,
        disk_bytes_per_s: first.node.disk_bytes_per_s,
    })
}

/// Policy of a cell, with its settings.
pub fn policy_config(
    experiment: &Experiment,
    mix: &ServiceMix,
    cluster: &Cluster,
    chosen: &PolicySpec,
) -> PolicyConfig {
    match chosen {
        PolicySpec::Plain(choice) => choice.clone(),
        PolicySpec::Ward { hand_over_s } => {
            let costs = ward_costs(cluster, *hand_over_s);
            PolicyConfig::Ward(
                costs
                    .map(|costs| analyse(&document_demands(experiment, mix), &costs).core)
                    .unwrap_or_default(),
            )
        }
        PolicySpec::CapWithState => {
            let profiles =
                (0..experiment.classes.len()).map(|class| profile(experiment, mix, class)).collect();
            PolicyConfig::CapWithState(CapWithStateSettings { profiles, ..CapWithStateSettings::default() })
        }
    }
}

/// Mean demands of the services of a class.
fn profile(experiment: &Experiment, mix: &ServiceMix, class: usize) -> ClassProfile {
    let mut profile = ClassProfile { processor: 0.0, disk: 0.0, network: 0.0 };
    for (service, weight) in experiment.services.iter().zip(&mix.weights) {
        if usize::from(service.class.0) == class {
            profile.processor += weight * service.processor_s;
            profile.disk += weight * service.disk_s;
        }
    }
    profile
}
