use assay_record::cluster::{ClusterResult, Labels, NodeReference, NodeUse, Origin, PointSum, SCHEMA, Tally};

use super::*;
use assay_testbed::violations;

/// Two policies at two loads; the second responses more by these parts.
fn result(name: &str, ahead: [f64; 2]) -> ClusterResult {
    let mut points = Vec::new();
    for (clients, more) in [(2, ahead[0]), (8, ahead[1])] {
        for policy in ["rand", "cap"] {
            let mut sum = PointSum::default();
            for repetition in 0..3 {
                let count = f64::from(clients) * 100.0 + f64::from(repetition);
                let count = if policy == "cap" { count * more } else { count };
                let mut tally = Tally::default();
                (0..count as u64).for_each(|_| tally.responded(0, 5_000, 10));
                for busy in [0.4, 0.8] {
                    let node = |processor| NodeUse { processor, disk: 0.0, network: 0.1, in_flight: 1.0 };
                    tally.sampled(vec![node(busy), node(0.6)]);
                }
                sum.add(&tally, 10.0);
            }
            let text = |text: &str| text.to_owned();
            let labels = Labels {
                mix: text("60/40"),
                cluster: text("4 <nodes>"),
                policy: text(policy),
                clients: Some(clients),
                rate_per_s: None,
                reference_per_s: (clients == 8).then_some(if policy == "cap" { 88.0 } else { 80.0 }),
                reference_nodes: (clients == 8 && policy == "cap")
                    .then_some(NodeReference { node: 1, processor: Some(0.55), disk: None })
                    .into_iter()
                    .collect(),
            };
            points.push(sum.point(labels, &[text("page")]));
        }
    }
    ClusterResult {
        schema: SCHEMA.into(),
        origin: Origin::Simulated,
        name: name.into(),
        title: "Two policies".into(),
        extends: None,
        part: None,
        seed: 1,
        repetitions: 3,
        warm_up_s: 0.0,
        measure_s: 10.0,
        points,
    }
}

#[test]
fn a_gain_is_over_the_first_policy_under_the_same_load() {
    let result = result("r", [1.1, 1.3]);
    let gains: Vec<_> = result.points.iter().map(|point| gain(&result, point)).collect();
    assert_eq!((gains[0], gains[2]), (None, None));
    let (small, large) = (gains[1].unwrap(), gains[3].unwrap());
    assert!((small.mean - 1.1).abs() < 0.01 && (large.mean - 1.3).abs() < 0.01, "{small:?} {large:?}");
    assert!(large.half_width.unwrap() < 0.02, "repetitions are paired: {large:?}");
}

#[test]
fn the_interval_of_three_is_students() {
    let estimate = MeanEstimate::from_values(&[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(estimate.mean, 2.0);
    // t(0.975, 2) = 4.3027, deviation 1.
    assert!((estimate.half_width.unwrap() - 4.302_652_7 / 3f64.sqrt()).abs() < 1e-5);
    assert_eq!(estimate.deviation, Some(1.0));
    assert_eq!(
        MeanEstimate::from_values(&[5.0]),
        Some(MeanEstimate { mean: 5.0, half_width: None, deviation: None })
    );
    assert_eq!(MeanEstimate::from_values(&[]), None);
    assert_eq!(MeanEstimate::from_values(&[f64::NAN, 1.0]), None);
}

#[test]
fn two_results_are_held_against_each_other_where_both_have_a_point() {
    let (here, mut there) = (result("here", [1.1, 1.3]), result("there", [1.0, 1.3]));
    there.points.remove(2);
    let off = difference(&here, &there);
    assert_eq!(off.points.len(), 3);
    assert!((off.most.unwrap() - 0.1).abs() < 0.01, "{off:?}");
    let text = difference_text(&off);
    assert!(text.contains("3 points: off by") && text.contains("+10."), "{text}");
    there.points.clear();
    assert!(difference_text(&difference(&here, &there)).contains("no point in common"));
}

#[test]
fn the_table_has_a_line_for_each_point_and_says_how_far_it_is_from_what_was_measured() {
    let text = terminal_text(&result("r", [1.1, 1.3]));
    for part in ["60/40, 4 <nodes>", "over rand", " 8 clients  cap", "+30.", "2 points were measured"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn the_gain_that_was_measured_stands_beside_the_gain_that_was_found() {
    // 104.13 and 80.1 responses a second with 8 clients, of which 88 and 80 were measured: 30 % ahead, 10 % measured.
    let result = result("r", [1.1, 1.3]);
    let mean = |values: [f64; 3]| values.iter().sum::<f64>() / 30.0;
    let (cap, rand) = (mean([1040.0, 1041.0, 1042.0]), mean([800.0, 801.0, 802.0]));
    let off = (cap / rand - 1.0) - (88.0 / 80.0 - 1.0);
    let found: Vec<_> = result.points.iter().map(|point| measured_gain(&result, point)).collect();
    assert_eq!(
        [found[0], found[1], found[2]],
        [None, None, None],
        "nothing was measured, or it is the first policy"
    );
    assert!((found[3].unwrap().off() - off).abs() < 1e-12, "{found:?} is not {off}");
    let text = terminal_text(&result);
    let said = "1 gains over rand were measured: off by 20.0 points on average, 20.0 at most (cap with 8 clients: +30.0 % \
                here, +10.0 % measured)";
    assert!(text.contains(said) && text.contains("+10.0 %  +20.0 pt"), "{text}");
    let value = serde_json::to_value(document(&result, None)).unwrap();
    assert_eq!(value["points"][3]["gain_off"].as_f64(), Some(found[3].unwrap().off()));
    assert!((value["points"][3]["reference_gain"].as_f64().unwrap() - 1.1).abs() < 1e-12);
    assert!(page(&result, None).unwrap().contains("gain off, points"));
}

#[test]
fn files_are_told_one_by_one_with_their_percentiles() {
    let text = services_text(&result("r", [1.1, 1.3]));
    assert!(text.contains("page") && text.contains("longest ms"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" all ")).count(), 4);
}

#[test]
fn the_page_has_all_charts_and_nothing_that_breaks_out_of_it() {
    let (result, other) = (result("r", [1.1, 1.3]), result("other", [1.0, 1.2]));
    let html = page(&result, Some(&other)).unwrap();
    for chart in
        ["throughput-0", "gain-0", "p50-0", "p99-0", "uneven-0", "balance-processor-0", "nodes-processor-0-0"]
    {
        assert!(html.contains(&format!("data-chart=\"{chart}\"")), "{chart}");
    }
    assert!(!html.contains("data-chart=\"nodes-disk-0-0\""), "no disk was used");
    assert!(html.contains("node 1, cap with 8 clients: processors 60.0 % busy, 55.0 % measured."), "nodes");
    assert!(html.contains("cap is furthest ahead of rand with 8 clients, by 30."), "the response");
    assert!(html.contains("4 &lt;nodes&gt;") && !html.contains("4 <nodes>"));
    assert!(html.contains("Against other") && html.contains("4 points in common"));
}

#[test]
fn the_document_can_be_read_as_the_result_it_came_from() {
    let result = result("r", [1.1, 1.3]);
    let text = serde_json::to_string(&document(&result, Some(&result))).unwrap();
    let read: ClusterResult = serde_json::from_str(&text).unwrap();
    assert_eq!(read, result);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["against"]["most"], 0.0);
    assert!(value["points"][3]["gain"].as_f64().unwrap() > 1.29);
}

#[test]
fn nodes_are_written_second_by_second_with_the_names_of_their_measurements() {
    let csv = nodes_csv(&result("r", [1.1, 1.3]));
    let mut lines = csv.lines();
    let head = "mix,cluster,policy,clients,rate_per_s,node,second,processor,disk,network,in_flight";
    assert_eq!(lines.next(), Some(head));
    assert_eq!(lines.next(), Some("60/40,4 <nodes>,rand,2,,0,0,0.4,0,0.1,1"));
    assert_eq!(lines.next(), Some("60/40,4 <nodes>,rand,2,,0,1,0.8,0,0.1,1"));
    assert_eq!(lines.count(), 4 * 2 * 2 - 2, "points, nodes, seconds");
}

#[test]
fn nodes_that_were_measured_elsewhere_stand_beside_those_here() {
    let text = terminal_text(&result("r", [1.1, 1.3]));
    assert!(
        text.ends_with("\nnode 1, cap with 8 clients: processors 60.0 % busy, 55.0 % measured\n"),
        "{text}"
    );
}

#[test]
fn the_document_is_true_to_its_schema() {
    let schema = json_schema();
    let (result, other) = (result("r", [1.1, 1.3]), result("other", [1.0, 1.2]));
    let value = serde_json::to_value(document(&result, Some(&other))).unwrap();
    assert_eq!(violations(&schema, &value), [""; 0]);
    let mut false_one = value;
    false_one["points"][0]["node_series"][0]["processor"] = "much".into();
    assert!(!violations(&schema, &false_one).is_empty());
}

#[test]
fn nodes_that_nobody_has_looked_at_are_not_in_perfect_balance() {
    let mut seen = result("r", [1.1, 1.3]);
    assert!(terminal_text(&seen).contains("0.17"), "{}", terminal_text(&seen));
    for point in &mut seen.points {
        (point.nodes, point.balance, point.balance_by_second) = Default::default();
    }
    let unseen = terminal_text(&seen);
    assert!(!unseen.contains("0.17") && !unseen.contains(" 0.00"), "{unseen}");
    assert_eq!(unseen.matches('–').count(), 4, "{unseen}");
}
