//! The policy that runs in a cell. Some have settings that follow from the services and the cluster.

use crate::dispatch::Choice;
use crate::dispatch::policies::cap_with_state::{CapWithStateSettings, Profile};
use crate::dispatch::policies::ward_analysis::{Costs, Requested, analyse};

use crate::simulate::experiment::{Cluster, Experiment, Mix, PolicyChoice};
use crate::simulate::stream::{document_of, popularity};

/// A site is requested so many requests in an analysis.
const REQUESTS: f64 = 1e6;

/// Every document of a mix, and how often it is requested.
pub fn site(experiment: &Experiment, mix: &Mix) -> Vec<Requested> {
    let total: f64 = mix.weights.iter().sum();
    let mut all = Vec::new();
    for (place, service) in experiment.services.iter().enumerate() {
        let share = mix.weights[place] / total;
        let ranks = |number| popularity(number, service.zipf);
        let sum: f64 = (0..service.documents).map(ranks).sum();
        all.extend((0..service.documents).map(|number| Requested {
            document: document_of(place, number),
            bytes: service.bytes,
            requests: REQUESTS * share * ranks(number) / sum,
        }));
    }
    all
}

/// What a cluster's nodes cost in a ward-analysis: those of the first group stand for all.
pub fn ward_costs(cluster: &Cluster, hand_over_s: f64) -> Option<Costs> {
    let first = cluster.groups.first()?;
    Some(Costs {
        nodes: cluster.groups.iter().map(|group| group.count).sum(),
        node_memory_bytes: first.node.memory_bytes,
        hand_over_s,
        disk_seek_s: first.node.disk_seek_s,
        disk_bytes_per_s: first.node.disk_bytes_per_s,
    })
}

/// The policy of a cell, with its settings.
pub fn choice(experiment: &Experiment, mix: &Mix, cluster: &Cluster, chosen: &PolicyChoice) -> Choice {
    match chosen {
        PolicyChoice::Plain(choice) => choice.clone(),
        PolicyChoice::Ward { hand_over_s } => {
            let costs = ward_costs(cluster, *hand_over_s);
            Choice::Ward(costs.map(|costs| analyse(&site(experiment, mix), &costs).core).unwrap_or_default())
        }
        PolicyChoice::CapWithState => {
            let profiles =
                (0..experiment.classes.len()).map(|class| profile(experiment, mix, class)).collect();
            Choice::CapWithState(CapWithStateSettings { profiles, ..CapWithStateSettings::default() })
        }
    }
}

/// What the services of a class need, on average.
fn profile(experiment: &Experiment, mix: &Mix, class: usize) -> Profile {
    let mut profile = Profile { processor: 0.0, disk: 0.0, network: 0.0 };
    for (service, weight) in experiment.services.iter().zip(&mix.weights) {
        if usize::from(service.class.0) == class {
            profile.processor += weight * service.processor_s;
            profile.disk += weight * service.disk_s;
        }
    }
    profile
}
