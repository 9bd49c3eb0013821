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
        let (simulated, measured) = (point["responses_per_s"].as_f64(), point["reference_per_s"].as_f64());
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
fn a_node_that_cannot_fail_is_told() {
    let assay = Assay::new();
    let all = "clients = [1]\npolicies = [\"lc\"]\nmeasure = \"20s\"\n[[cluster]]\nnodes = 4\n[[service]]\nname = \"a\"\n\
        processor = \"1ms\"\n[[failure]]\n";
    let file = assay.file("none.toml", &format!("{all}node = 9\nat = \"15s\"\n"));
    for typed in [&["simulate", file][..], &["cluster", file, "--run"]] {
        assay.run(typed).exits(2).complains("none.toml:10: node: there is no node 9");
    }
    let file = assay.file("late.toml", &format!("{all}node = 3\nat = \"40s\"\n"));
    assay.run(&["simulate", file]).exits(2).complains("late.toml:11: at: the simulation has ended by then");
    // The file is right, and the command line leaves no time for it.
    let file = assay.file("right.toml", &format!("{all}node = 3\nat = \"15s\"\n"));
    let said = assay.run(&["simulate", file, "--measure", "2s"]).exits(0);
    assert!(said.stderr.contains("note: node 3 does not fail: "), "{}", said.stderr);
    assert!(!assay.run(&["simulate", file]).exits(0).stderr.contains("does not fail"));
}

#[test]
fn what_a_file_extends_is_named_and_a_file_that_was_passed_over_too() {
    let assay = Assay::new();
    let own = "extends = \"appendix-d\"\nclients = [1]\npolicies = [\"lc\"]\nmeasure = \"5s\"\n";
    let own = assay.file("own.toml", own);
    let alone = assay.run(&["simulate", own]).exits(0);
    assert!(alone.stdout.contains("\nextends the bundled appendix-d\n"), "{}", alone.stdout);
    assert!(!alone.stderr.contains("passed over"), "nothing was: {}", alone.stderr);
    // A file beside it may be called like the bundled one.
    let base = "title = \"beside\"\n[[cluster]]\nnodes = 2\n[[service]]\nname = \"a\"\nprocessor = \"1ms\"\n";
    assay.file("appendix-d.toml", base);
    let said = assay.run(&["simulate", own]).exits(0);
    assert_eq!(said.stdout, alone.stdout, "the bundled one is read as before");
    for part in
        ["the bundled appendix-d was read", "appendix-d.toml passed over", "extends = \"./appendix-d.toml\""]
    {
        assert!(said.stderr.contains(part), "{part} is not in: {}", said.stderr);
    }
    let there = "extends = \"./appendix-d.toml\"\nclients = [1]\npolicies = [\"lc\"]\nmeasure = \"5s\"\n";
    let said = assay.run(&["simulate", assay.file("there.toml", there), "--json"]).exits(0);
    assert!(!said.stderr.contains("passed over"), "{}", said.stderr);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["title"], &document["extends"]), (&"beside".into(), &"./appendix-d.toml".into()));
    // A bundled file extends a bundled one, whatever lies about.
    let figure = assay.run(&["simulate", "figure-8", "--measure", "5s", "--repetitions", "1"]).exits(0);
    assert!(!figure.stderr.contains("passed over"), "{}", figure.stderr);
}

#[test]
fn each_node_is_written_second_by_second_beside_what_was_measured_of_it() {
    let assay = Assay::new();
    let run = ["simulate", "figure-6", "--measure", "20s", "--csv", "nodes.csv", "--html", "page.html"];
    let table = assay.run(&run).exits(0).stdout;
    assert!(
        table.contains("node 0, cap with 14 clients: processors ") && table.contains("62.4 % measured"),
        "{table}"
    );
    let csv = std::fs::read_to_string(assay.path("nodes.csv")).expect("the values");
    let mut lines = csv.lines();
    let head = lines.next().expect("a head");
    assert_eq!(head, "mix,cluster,policy,clients,rate_per_s,node,second,processor,disk,network,in_flight");
    // Two loads, four nodes, 19 or 20 whole seconds.
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!((2 * 4 * 19..=2 * 4 * 20).contains(&rows.len()), "{}", rows.len());
    let column = |row: &[&str], place: usize| row[place].parse::<f64>().expect("a number");
    for place in 7..10 {
        let all: Vec<f64> = rows.iter().map(|row| column(row, place)).collect();
        assert!(all.iter().all(|share| (0.0..=1.0).contains(share)), "column {place}");
        assert!(all.iter().sum::<f64>() > 0.0, "column {place} is of something that is used");
    }
    // The document has the same, and its averages are those of the seconds.
    let json = assay.run(&["simulate", "figure-6", "--measure", "20s", "--json"]).exits(0).stdout;
    let document: Value = serde_json::from_str(&json).expect("JSON");
    for point in document["points"].as_array().expect("points") {
        for (node, series) in point["node_series"].as_array().expect("nodes").iter().enumerate() {
            for (name, values) in series.as_object().expect("measurements") {
                let values: Vec<f64> =
                    values.as_array().expect("seconds").iter().filter_map(Value::as_f64).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let stated = point["nodes"][node][name].as_f64().expect("an average");
                assert!((mean - stated).abs() < 1e-4, "{name} of node {node}: {mean} and {stated}");
            }
        }
    }
    let page = std::fs::read_to_string(assay.path("page.html")).expect("the page");
    for chart in ["processor", "disk", "network"] {
        for point in 0..2 {
            assert!(page.contains(&format!("data-chart=\"nodes-{chart}-0-{point}\"")), "{chart} {point}");
        }
    }
}

/// What the study measured in figure 4, by policy and clients, from the project's copy of its appendix D.
fn figure_4() -> std::collections::BTreeMap<(String, u64), f64> {
    let rows = include_str!("../../../../model/cluster/tests/data/appendix-d.csv").lines();
    let figure = rows.filter_map(|row| row.strip_prefix("4,80/20,4,2,"));
    let point = |row: &str| {
        let [policy, clients, per_s] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let clients = clients.parse().expect("a number");
        ((policy.to_lowercase(), clients), per_s.parse().expect("a rate"))
    };
    figure.map(point).collect()
}

#[test]
fn gains_stand_beside_those_of_the_study_with_their_errors() {
    let assay = Assay::new();
    let short = ["simulate", "figure-4", "--measure", "20s", "--repetitions", "2"];
    let json = assay.run(&[&short[..], &["--json", "-o", "figure.json"]].concat()).exits(0);
    assert_eq!(json.stdout, "");
    let text = std::fs::read_to_string(assay.path("figure.json")).expect("the document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let points = document["points"].as_array().expect("points");
    let measured = figure_4();
    let found = |policy: &str, clients: u64| {
        let is_it = |point: &&Value| point["policy"] == policy && point["clients"] == clients;
        points.iter().find(is_it).expect("such a point")
    };
    let per_s = |policy: &str, clients| found(policy, clients)["responses_per_s"].as_f64().expect("a rate");
    let mut offs = Vec::new();
    for point in points {
        let (policy, clients) =
            (point["policy"].as_str().expect("a name"), point["clients"].as_u64().expect("a number"));
        let both =
            measured.get(&(policy.to_owned(), clients)).zip(measured.get(&("rand".to_owned(), clients)));
        let Some((own, first)) = both.filter(|_| policy != "rand") else {
            assert!(point["reference_gain"].is_null() && point["gain_off"].is_null(), "{point}");
            continue;
        };
        let off = per_s(policy, clients) / per_s("rand", clients) - own / first;
        assert!((point["reference_gain"].as_f64().expect("a gain") - own / first).abs() < 1e-9, "{point}");
        assert!((point["gain_off"].as_f64().expect("a part") - off).abs() < 1e-9, "{off} is not in {point}");
        offs.push((off.abs() * 100.0, policy, clients));
    }
    // CAP has eleven points beside RAND, RR ten: with 22 and 24 clients RAND was not measured, with 25 RR was not.
    assert_eq!(offs.len(), 21);
    let most = offs.iter().max_by(|one, other| one.0.total_cmp(&other.0)).expect("some");
    let average = offs.iter().map(|off| off.0).sum::<f64>() / 21.0;
    let said = format!(
        "21 gains over rand were measured: off by {average:.1} points on average, {:.1} at most ({} with {} clients:",
        most.0, most.1, most.2
    );
    // The same from a simulation, and from its document.
    let table = assay.run(&short).exits(0).stdout;
    assert!(table.contains(&said), "{said} is not in: {table}");
    assert!(assay.run(&["policies", "figure.json"]).exits(0).stdout.contains(&said));
}

#[test]
fn the_ward_analysis_of_a_site_finds_a_core() {
    let assay = Assay::new();
    let said = assay.run(&["simulate", "locality", "--ward-analysis"]).exits(0).stdout;
    assert!(said.contains("best core") && said.contains("no core"), "{said}");
    let json = assay.run(&["simulate", "locality", "--ward-analysis", "--json"]).exits(0).stdout;
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert!(document["analyses"][0]["best"]["core_documents"].as_u64() > Some(0), "{document}");
    // What is of a simulation there is none of.
    for (flag, file) in [("--csv", "nodes.csv"), ("--html", "page.html"), ("--against", "other.json")] {
        let typed = ["simulate", "locality", "--ward-analysis", flag, file];
        assay.run(&typed).exits(2).complains(&format!("cannot be used with '{flag}"));
        assert!(!assay.path(file).exists());
    }
}
