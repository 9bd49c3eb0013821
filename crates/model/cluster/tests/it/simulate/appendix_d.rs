//! One set of parameters gives the figures of Jones's study.

use std::collections::BTreeMap;

use assay_cluster::simulate::{Experiment, OfferedLoad, cells};

use crate::simulate::support::{bundled, run};

/// The averages of the study's own appendix D.
const MEASURED: &str = include_str!("../../data/appendix-d.csv");

/// What the study measured in a figure: by nodes, processors of each, policy and clients.
fn measured(figure: &str) -> BTreeMap<(u32, u32, String, u32), f64> {
    let mut found = BTreeMap::new();
    for line in MEASURED.lines().skip(1) {
        let [number, _, nodes, processors, policy, clients, per_s] = line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        if format!("figure-{number}") == figure {
            // Figure 9 does not say its policy, and figure 10 calls CAP "CAP (RR)".
            let policy = match policy {
                "not stated" | "CAP (RR)" => "cap".to_owned(),
                policy => policy.to_lowercase(),
            };
            let number = |text: &str| text.parse::<u32>().expect("a number");
            let key = (number(nodes), number(processors), policy, number(clients));
            assert!(found.insert(key, per_s.parse().expect("a rate")).is_none(), "{line} is there twice");
        }
    }
    found
}

#[test]
fn every_point_of_appendix_d_is_in_the_figures_and_no_other() {
    for figure in ["figure-2", "figure-3", "figure-4", "figure-5", "figure-8", "figure-9", "figure-10"] {
        let experiment = bundled(figure);
        let mut found = BTreeMap::new();
        for cell in cells(&experiment).iter().filter(|cell| cell.repetition == 0) {
            let Some(per_s) = experiment.reference(cell) else { continue };
            let OfferedLoad::Clients(clients) = experiment.loads[cell.load] else { panic!("{figure}") };
            let cluster = &experiment.clusters[cell.cluster];
            let nodes = cluster.nodes().count() as u32;
            let processors = cluster.nodes().next().expect("a node").node.processors;
            let policy = experiment.policies[cell.policy].label.clone();
            found.insert((nodes, processors, policy, clients), per_s);
        }
        assert_eq!(found, measured(figure), "{figure}");
    }
}

#[test]
fn nodes_are_as_fast_as_figure_7_found_each_of_them() {
    let alone = [149.67, 150.0, 168.67, 166.0];
    let mean = alone.iter().sum::<f64>() / 4.0;
    for figure in ["figure-2", "figure-3", "figure-4", "figure-5", "figure-9", "figure-10"] {
        let experiment = bundled(figure);
        let four =
            experiment.clusters.iter().find(|cluster| cluster.nodes().count() == 4).expect("four nodes");
        for (group, alone) in four.nodes().zip(alone) {
            assert!((group.node.speed - alone / mean).abs() < 0.000_5, "{figure}: {}", group.node.speed);
        }
    }
}

/// Every point of a figure: its name, what the study measured, and the simulation's responses in a second.
fn points(name: &str, measure_s: f64) -> Vec<(String, f64, f64)> {
    let experiment = Experiment { repetitions: 1, measure_s, ..bundled(name) };
    let mut points = Vec::new();
    for cell in cells(&experiment) {
        let Some(measured) = experiment.reference(&cell) else { continue };
        let OfferedLoad::Clients(clients) = experiment.loads[cell.load] else { continue };
        let (cluster, policy) =
            (&experiment.clusters[cell.cluster].label, &experiment.policies[cell.policy].label);
        let per_s = run(&experiment, &cell).responded as f64 / measure_s;
        points.push((format!("{name}: {cluster}, {policy}, {clients} clients"), measured, per_s));
    }
    assert!(!points.is_empty());
    points
}

fn all_within(points: &[(String, f64, f64)], part: f64) {
    for (point, measured, simulated) in points {
        let off = simulated / measured - 1.0;
        assert!(off.abs() <= part, "{point}: {simulated:.1} instead of {measured}, {:+.1} %", off * 100.0);
    }
}

/// The responses of a policy in a second with so many clients.
fn at(name: &str, policy: &str, clients: u32) -> f64 {
    let loads = vec![OfferedLoad::Clients(clients)];
    let experiment = Experiment { repetitions: 1, measure_s: 300.0, loads, ..bundled(name) };
    let all = cells(&experiment);
    let is_it = |cell: &&assay_cluster::simulate::Cell| experiment.policies[cell.policy].label == policy;
    run(&experiment, all.iter().find(is_it).expect("such a cell")).responded as f64
}

#[test]
fn figure_9_is_met_within_10_percent_at_every_point() {
    all_within(&points("figure-9", 200.0), 0.10);
}

/// Gains of CAP over RAND in percentage points: clients, simulated, measured.
fn gains(figure: &str, points: Vec<(String, f64, f64)>) -> Vec<(u32, f64, f64)> {
    let simulated: BTreeMap<String, f64> =
        points.into_iter().map(|(point, _, per_s)| (point, per_s)).collect();
    let studied = measured(figure);
    let mut found = Vec::new();
    for ((nodes, _, policy, clients), cap) in &studied {
        let Some(rand) = studied.get(&(*nodes, 2, "rand".to_owned(), *clients)).filter(|_| policy == "cap")
        else {
            continue;
        };
        let at = |policy: &str| simulated[&format!("{figure}: {nodes} nodes, {policy}, {clients} clients")];
        found.push((*clients, (at("cap") / at("rand") - 1.0) * 100.0, (cap / rand - 1.0) * 100.0));
    }
    assert!(!found.is_empty());
    found
}

#[test]
fn figures_4_5_and_8_are_met_within_7_percent_and_caps_gain_in_them_within_7_points_but_with_25_clients_on_80_20()
 {
    // A run of 300 s has a standard error of 1 to 2 points in the gain; seeds are fixed.
    for figure in ["figure-4", "figure-5", "figure-8"] {
        let points = points(figure, 300.0);
        all_within(&points, 0.07);
        let all = gains(figure, points);
        for (clients, simulated, measured) in &all {
            let off = simulated - measured;
            // CAP lost 4 % of its throughput between 20 and 25 clients there, and does not here.
            let known = (figure, *clients) == ("figure-4", 25);
            assert!(
                off.abs() <= if known { 10.0 } else { 7.0 },
                "{figure}, {clients} clients: {off:+.1} points"
            );
            assert!(
                !known || off > 3.0,
                "this is met now: the manual says that it is not ({off:+.1} points)"
            );
        }
        let squares = all.iter().map(|(_, simulated, measured)| (simulated - measured).powi(2)).sum::<f64>();
        let typical = (squares / all.len() as f64).sqrt();
        assert!(typical < 3.5, "{figure}: {typical:.1} points");
    }
}

#[test]
fn figure_10_is_met_within_10_percent_with_its_own_programs() {
    all_within(&points("figure-10", 400.0), 0.10);
}

#[test]
fn caps_gain_is_the_documents_and_goes_where_it_went() {
    let gain = |name, clients| at(name, "cap", clients) / at(name, "rand", clients);
    let most = gain("figure-5", 8);
    assert!((1.22..=1.34).contains(&most), "60/40 at 8 clients: {most:.3}");
    let moderate = gain("figure-4", 10);
    assert!((1.15..=1.25).contains(&moderate), "80/20 at 10 clients: {moderate:.3}");
    let heavy = gain("figure-5", 24);
    assert!(heavy - 1.0 < (most - 1.0) * 0.6, "60/40 at 24 clients: {heavy:.3}");
    let flooded = gain("figure-5", 100);
    assert!(flooded < 1.06, "60/40 at 100 clients: {flooded:.3}");
    let still = gain("figure-3", 21);
    assert!((0.97..=1.03).contains(&still), "files alone at 21 clients: {still:.3}");
}

/// The study's figure 6: processors and disk of one node in per cent, at intervals of 15 s, with 10 and with 14 clients.
const FIGURE_6: [(u32, [[f64; 11]; 2]); 2] = [
    (
        10,
        [
            [64.93, 65.0, 67.5, 53.9, 69.37, 66.43, 66.4, 69.33, 66.53, 67.0, 67.57],
            [57.47, 66.53, 55.2, 86.53, 46.4, 52.33, 66.47, 53.73, 60.4, 57.47, 37.93],
        ],
    ),
    (
        14,
        [
            [64.57, 66.1, 60.13, 51.53, 50.63, 66.33, 65.57, 67.87, 63.2, 66.03, 64.87],
            [44.47, 48.4, 51.4, 47.07, 44.0, 62.47, 70.87, 55.27, 55.73, 46.93, 55.93],
        ],
    ),
];

#[test]
fn figure_6_has_the_averages_of_the_studys_own_values() {
    let experiment = bundled("figure-6");
    for cell in cells(&experiment) {
        let OfferedLoad::Clients(clients) = experiment.loads[cell.load] else { panic!("a closed loop") };
        let (_, [processor, disk]) =
            FIGURE_6.iter().find(|(count, _)| *count == clients).expect("a load of the study");
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64 / 100.0;
        let found: Vec<_> = experiment.reference_nodes(&cell).collect();
        let [node] = found[..] else { panic!("{found:?}") };
        assert_eq!(node.node.index(), 0, "node 40 is the first");
        assert!((node.processor.expect("a share") - mean(processor)).abs() < 1e-4, "{node:?}");
        assert!((node.disk.expect("a share") - mean(disk)).abs() < 1e-4, "{node:?}");
        assert_eq!(experiment.reference(&cell), None, "no rate was measured there");
    }
}

#[test]
fn figure_7_has_the_nodes_that_the_study_measured_alone_and_their_speeds_follow_from_it() {
    let measured =
        [(34, 122.33), (35, 122.67), (40, 149.67), (44, 117.33), (45, 150.0), (46, 168.67), (47, 166.0)];
    let mean = (149.67 + 150.0 + 168.67 + 166.0) / 4.0;
    let experiment = bundled("figure-7");
    assert_eq!(experiment.clusters.len(), measured.len());
    for (cell, (node, per_s)) in cells(&experiment).iter().filter(|cell| cell.repetition == 0).zip(measured) {
        let cluster = &experiment.clusters[cell.cluster];
        assert_eq!(cluster.label, format!("node {node}"));
        let speed = cluster.nodes().next().expect("a node").node.speed;
        assert!((speed - per_s / mean).abs() < 0.000_5, "{node}: {speed}");
        assert_eq!(experiment.reference(cell), Some(per_s));
    }
}

#[test]
fn figure_7_is_met_within_12_percent_with_light_programs_and_not_with_the_mix_that_it_names() {
    let all = points("figure-7", 60.0);
    let (light, named) = all.split_at(7);
    assert_eq!(named.len(), 7);
    for (point, measured, simulated) in light {
        assert!((simulated / measured - 1.0).abs() < 0.12, "{point}: {simulated:.1} instead of {measured}");
    }
    for (point, measured, simulated) in named {
        assert!(simulated / measured < 0.25, "{point}: this is met now, and the manual says that it is not");
    }
}
