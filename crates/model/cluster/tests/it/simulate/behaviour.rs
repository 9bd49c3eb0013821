//! The same twice, nothing lost, and policies as their papers say they are.

use std::path::Path;

use assay_cluster::dispatch::node::DOCUMENT_OVERHEAD_BYTES;
use assay_cluster::simulate::{BaseFile, Experiment, PolicySpec, cells};

use crate::simulate::support::{Seen, bundled, cluster, run};

/// What each policy of a bundled cluster did under its load number `load`.
fn by_policy(experiment: &Experiment, load: usize) -> Vec<(String, Seen)> {
    let all = cells(experiment);
    let these = all.iter().filter(|cell| cell.load == load && cell.repetition == 0);
    these.map(|cell| (experiment.policies[cell.policy].label.clone(), run(experiment, cell))).collect()
}

#[test]
fn a_seed_decides_everything_and_another_seed_decides_otherwise() {
    let experiment = Experiment { measure_s: 20.0, ..bundled("uneven") };
    for cell in cells(&experiment).iter().filter(|cell| cell.load == 0) {
        let once = run(&experiment, cell);
        assert_eq!(once, run(&experiment, cell));
        let other = Experiment { seed: 77, ..experiment.clone() };
        assert_ne!(once, run(&other, cell));
    }
}

#[test]
fn lard_is_ahead_of_cap_on_files_that_do_not_fit_one_nodes_memory() {
    let experiment = Experiment { warm_up_s: 60.0, measure_s: 60.0, ..bundled("locality") };
    let seen = by_policy(&experiment, 1);
    let of = |name: &str| seen.iter().find(|(label, _)| label == name).map_or(0, |(_, seen)| seen.responded);
    assert!(of("lard") > of("cap") * 5 / 4, "lard {}, cap {}", of("lard"), of("cap"));
    assert!(of("lard-r") > of("cap"), "lard-r {}, cap {}", of("lard-r"), of("cap"));
    assert!(of("ward") > of("cap"), "ward {}, cap {}", of("ward"), of("cap"));
}

#[test]
fn a_node_that_fails_costs_no_request_when_another_can_be_tried() {
    let experiment = Experiment { warm_up_s: 5.0, measure_s: 75.0, ..bundled("uneven") };
    for (policy, seen) in by_policy(&experiment, 0) {
        assert_eq!(seen.failed, 0, "{policy}");
        assert!(seen.responded > 120 * 75 * 9 / 10, "{policy} answered {}", seen.responded);
    }
}

#[test]
fn without_retries_what_the_dead_node_had_is_lost_until_it_is_noticed() {
    let mut experiment = Experiment { warm_up_s: 5.0, measure_s: 75.0, ..bundled("uneven") };
    experiment.switch.retries = 0;
    let seen = by_policy(&experiment, 0);
    let (_, rand) = seen.iter().find(|(label, _)| label == "rand").expect("rand");
    // An eighth of 120 a second for one second, and what was under way.
    assert!((5..60).contains(&rand.failed), "{}", rand.failed);
}

#[test]
fn server_state_makes_cap_cope_with_slow_nodes() {
    let mut experiment = Experiment { measure_s: 60.0, failures: Vec::new(), ..bundled("uneven") };
    experiment.clusters[0].groups.iter_mut().for_each(|group| group.weight = 1.0);
    experiment.loads = vec![assay_cluster::simulate::OfferedLoad::Rate(260.0)];
    let seen = by_policy(&experiment, 0);
    let mean =
        |name: &str| seen.iter().find(|(label, _)| label == name).map_or(0.0, |(_, seen)| seen.mean_s());
    assert!(mean("cap-state") < mean("cap") * 0.8, "{} and {}", mean("cap-state"), mean("cap"));
}

#[test]
fn thousands_of_nodes_are_no_trouble() {
    let text = "policies = [\"p2c\"]\nrates = [\"20000/s\"]\nrepetitions = 1\nwarm-up = \"1s\"\nmeasure = \"5s\"\n\
                [[cluster]]\nnodes = 5000\n[[service]]\nname = \"work\"\nprocessor = \"100ms\"\n";
    let seen = crate::simulate::support::only(text);
    assert!((95_000..105_000).contains(&seen.responded), "{}", seen.responded);
}

fn mistake(text: &str) -> String {
    let read =
        assay_cluster::simulate::read("x.toml", text, &|name| Err(format!("cannot read {name}").into()));
    read.expect_err("a mistake").to_string()
}

#[test]
fn a_mistake_names_its_line_what_was_read_and_what_is_expected() {
    let good = "policies = [\"cap\"]\nclients = [2]\n[[cluster]]\nnodes = 2\n[[service]]\nname = \"a\"\nprocessor = \"1ms\"\n";
    assert!(matches!(cluster(good).policies[0].choice, PolicySpec::Plain(_)));
    for (from, to, words) in [
        ("\"cap\"", "\"capp\"", "x.toml:1: policies: there is no policy `capp`; did you mean `cap`?"),
        ("nodes = 2", "nodse = 2", "x.toml:4: unknown field `nodse`; did you mean `nodes`?"),
        ("nodes = 2", "nodes = 0", "x.toml:4: nodes: `0` is not an integer from 1"),
        ("\"1ms\"", "\"1\"", "x.toml:7: processor: `1` has no unit"),
        ("clients = [2]\n", "", "nobody asks: say clients"),
        ("[[service]]\nname = \"a\"\nprocessor = \"1ms\"\n", "", "it has no service"),
        ("policies = [\"cap\"]", "extends = \"other\"", "x.toml:1: extends: cannot read other"),
        ("name = \"a\"\n", "name = \"a\"\nclass = \"b\"\n", "there is no class `b`; there are: all"),
        ("policies = [\"cap\"]", "policies = \"cap", "x.toml:1: "),
        ("[[cluster]]", "[[policy]]\nname = \"lc\"\nbound = 2\n[[cluster]]", "unknown field `bound`"),
        ("[[cluster]]", "[node]\ncrowd = 0.1\n[[cluster]]", "x.toml:4: unknown field `crowd`"),
        ("nodes = 2", "[[cluster.group]]\nnodes = 2\ncrowd = 0.1", "x.toml:6: unknown field `crowd`"),
    ] {
        assert!(good.contains(from), "{from}");
        let seen = mistake(&good.replacen(from, to, 1));
        assert!(seen.contains(words), "{words} is not in: {seen}");
    }
}

#[test]
fn a_node_that_fails_exists_and_fails_while_it_is_simulated() {
    let all = "policies = [\"cap\"]\nclients = [2]\nwarm-up = \"5s\"\nmeasure = \"10s\"\n[[service]]\nname = \"a\"\n\
        processor = \"1ms\"\n[[cluster]]\nnodes = 2\n[[cluster]]\n[[cluster.group]]\nnodes = 3\n[[cluster.group]]\nnodes = 1\n";
    let failing = |node: u32, at: &str| format!("{all}[[failure]]\nnode = {node}\nat = \"{at}\"\n");
    assert_eq!(cluster(&failing(3, "14999ms")).failures.len(), 1, "the larger cluster has it");
    let seen = mistake(&failing(4, "1s"));
    assert!(
        seen.starts_with("x.toml:16: node: there is no node 4; the last node of the largest cluster is 3"),
        "{seen}"
    );
    for late in ["15s", "999h"] {
        let seen = mistake(&failing(0, late));
        assert!(seen.starts_with("x.toml:17: at: the simulation has ended by then"), "{seen}");
        assert!(seen.contains("are 15s together"), "{seen}");
    }
}

#[test]
fn a_failure_of_the_file_that_is_extended_is_held_against_both_and_can_be_replaced() {
    let base = "clients = [2]\n[[cluster]]\nnodes = 2\n[[service]]\nname = \"a\"\nprocessor = \"1ms\"\n\
        [[failure]]\nnode = 1\nat = \"40s\"\n";
    let read = |own: &str| {
        let found = |name: &str| Ok(BaseFile { name: format!("shelf/{name}"), text: base.to_owned() });
        let text = format!("extends = \"base\"\npolicies = [\"rand\"]\n{own}");
        assay_cluster::simulate::read("x.toml", &text, &found).map_err(|mistake| mistake.to_string())
    };
    assert_eq!(read("").expect("it fails in time").failures.len(), 1);
    let seen = read("measure = \"20s\"\n").expect_err("it is over by then");
    assert!(seen.starts_with("shelf/base:9: at: "), "{seen}");
    let own = read("measure = \"20s\"\n[[failure]]\nnode = 1\nat = \"15s\"\n").expect("it fails in time");
    assert_eq!(own.failures[0].at_s, 15.0);
    let seen = read("cluster = [{ nodes = 1 }]\n").expect_err("there is one node");
    assert!(seen.starts_with("shelf/base:8: node: there is no node 1; "), "{seen}");
}

#[test]
fn all_clusters_that_come_with_assay_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../clusters");
    for file in std::fs::read_dir(directory).expect("clusters") {
        let path = file.expect("a file").path();
        let experiment = bundled(&path.file_stem().expect("a name").to_string_lossy());
        assert_eq!(experiment.failures_after_the_end().count(), 0, "{}", path.display());
    }
}

#[test]
fn an_experiment_names_the_file_that_it_extends_and_mistakes_there_name_it_too() {
    let base = "clients = [2]\n[[cluster]]\nnodes = 2\n[[service]]\nname = \"a\"\nprocessor = \"1ms\"\n";
    let read = |base: String| {
        let found = move |name: &str| Ok(BaseFile { name: format!("shelf/{name}"), text: base.clone() });
        assay_cluster::simulate::read("x.toml", "extends = \"base\"\npolicies = [\"rand\"]\n", &found)
    };
    let experiment = read(base.to_owned()).expect("both are right");
    assert_eq!(experiment.extends.as_deref(), Some("shelf/base"));
    assert_eq!(cluster(&format!("policies = [\"rand\"]\n{base}")).extends, None);
    let mistake = read(base.replace("nodes = 2", "nodes = 0")).expect_err("a mistake").to_string();
    assert!(mistake.starts_with("shelf/base:3: "), "{mistake}");
}

#[test]
fn the_manual_says_how_much_memory_a_document_needs_beside_its_own_bytes() {
    let page = include_str!("../../../../../../docs/reference/simulate.md");
    let said = format!("{DOCUMENT_OVERHEAD_BYTES} bytes");
    let row = page.lines().find(|line| line.starts_with("| `memory`")).expect("a row");
    assert!(row.contains(&said), "{said} is not in: {row}");
}

/// Two nodes that are no limit behind a switch, with one way to them.
fn behind(way: &str, bytes: u32) -> Seen {
    let text = format!(
        "clients = [16]\nrepetitions = 1\nwarm-up = \"1s\"\nmeasure = \"20s\"\n[switch]\nnetwork = \"1ms\"\nlink = \"1Gbit/s\"\n\
         [[forwarding]]\nname = \"w\"\n{way}\n[[policy]]\nname = \"rr\"\nforwarding = \"w\"\n[[cluster]]\nnodes = 2\n\
         [[service]]\nname = \"a\"\nprocessor = \"0.001ms\"\nbytes = {bytes}\n"
    );
    crate::simulate::support::only(&text)
}

#[test]
fn a_way_costs_the_switch_what_it_says_for_each_request_and_each_byte() {
    let near = |seen: &Seen, per_s: f64| {
        let off = seen.responded as f64 / 20.0 / per_s - 1.0;
        assert!(off.abs() < 0.02, "{} responses, and not {per_s} a second", seen.responded);
    };
    near(&behind("per-request = \"2ms\"", 1000), 500.0);
    near(&behind("per-request = \"1ms\"\nper-megabyte = \"10ms\"", 100_000), 500.0);
    // The link carries 1,250 of 100,000 bytes a second, unless they go past it.
    near(&behind("per-request = \"0.1ms\"", 100_000), 1250.0);
    near(&behind("per-request = \"0.5ms\"\nresponses = \"past\"", 100_000), 2000.0);
}

#[test]
fn a_policy_that_needs_a_request_is_refused_on_layer_4_by_name() {
    let head = "clients = [1]\n[[cluster]]\nnodes = 2\n[[service]]\nname = \"a\"\n[[forwarding]]\nname = \"w\"\nlayer = 4\n";
    for (policy, refused) in
        [("cap", true), ("lard", true), ("ward", true), ("cap-state", true), ("lc", false)]
    {
        let text = format!("{head}[[policy]]\nname = \"{policy}\"\nforwarding = \"w\"\n");
        let read = assay_cluster::simulate::read("x.toml", &text, &|_| Err("".into()));
        assert_eq!(read.is_err(), refused, "{policy}");
        if let Err(seen) = read {
            assert!(seen.to_string().contains("`w` (layer 4) does not see it"), "{seen}");
        }
    }
    let seen = mistake(&format!("{head}[[policy]]\nname = \"rr\"\nforwarding = \"ww\"\n"));
    assert!(seen.contains("there is no forwarding `ww`; there are: w"), "{seen}");
    assert!(mistake(&head.replace("4", "3")).contains("it is 4 (connections) or 7 (requests)"));
}
