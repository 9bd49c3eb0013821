//! `assay simulate`, as people use it.

use serde_json::Value;

use crate::support::Assay;

#[test]
fn bundled_clusters_are_listed_and_shown() {
    let assay = Assay::new();
    let listed = assay.run(&["simulate"]).exits(0).stdout;
    for name in ["appendix-d", "figure-5", "locality", "beyond-ten", "uneven"] {
        assert!(listed.contains(name), "{name} is not in: {listed}");
        assert!(assay.run(&["simulate", name, "--show"]).exits(0).stdout.contains("title = "));
    }
}

#[test]
fn a_figure_is_simulated_beside_what_was_measured_and_threads_change_nothing() {
    let assay = Assay::new();
    let short = ["simulate", "figure-8", "--measure", "20s", "--repetitions", "2"];
    let table = assay.run(&short).exits(0).stdout;
    assert!(table.contains("over rand") && table.contains("10 points were measured"), "{table}");
    let json = |threads| {
        let more = ["--json", "--threads", threads];
        assay.run(&[&short[..], &more[..]].concat()).exits(0).stdout
    };
    let one = json("1");
    assert_eq!(one, json("3"));
    let document: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(document["schema"], "assay-cluster/1");
    let points = document["points"].as_array().expect("points");
    assert_eq!(points.len(), 10);
    for point in points {
        let (simulated, measured) = (point["answered_per_s"].as_f64(), point["reference_per_s"].as_f64());
        let off = simulated.expect("a rate") / measured.expect("a rate") - 1.0;
        assert!(off.abs() < 0.2, "{point}");
        assert!(point["response_us"]["p99"].as_u64() > point["response_us"]["p50"].as_u64());
    }
}

#[test]
fn a_cluster_of_ones_own_may_extend_a_bundled_one_and_mistakes_end_with_2() {
    let assay = Assay::new();
    let own = "extends = \"figure-8\"\nclients = [1]\npolicies = [\"lc\"]\nmeasure = \"5s\"\n";
    let said = assay.run(&["simulate", assay.file("own.toml", own)]).exits(2);
    assert!(said.stderr.contains("a file that is extended may not extend another"), "{}", said.stderr);
    let own = "extends = \"appendix-d\"\nclients = [1]\npolicies = [\"lc\"]\nmeasure = \"5s\"\n";
    assay.run(&["simulate", assay.file("own.toml", own)]).exits(0);
    let said = assay.run(&["simulate", assay.file("bad.toml", "clinets = 1\n")]).exits(2);
    assert!(said.stderr.contains("bad.toml:1: unknown field `clinets`"), "{}", said.stderr);
    assay.run(&["simulate", "nowhere.toml"]).exits(2);
}

#[test]
fn the_ward_analysis_of_a_site_finds_a_core() {
    let assay = Assay::new();
    let said = assay.run(&["simulate", "locality", "--ward-analysis"]).exits(0).stdout;
    assert!(said.contains("best core") && said.contains("no core"), "{said}");
    let json = assay.run(&["simulate", "locality", "--ward-analysis", "--json"]).exits(0).stdout;
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert!(document["analyses"][0]["best"]["core_documents"].as_u64() > Some(0), "{document}");
}
