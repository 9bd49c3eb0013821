//! Clusters that run: `assay cluster` and `assay webstone`, as people use them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::samples::CLUSTER;
use crate::support::{Assay, Said, read, root, send, wait_for};
use assay_testbed::python;

/// Nodes that end with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts nodes, and whatever is in front of them: their addresses in order.
fn start(assay: &Assay, arguments: &[&str]) -> (Running, Vec<String>) {
    let mut command = assay.command(&[&["cluster"], arguments].concat());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let running = Running(child);
    let count = if arguments.contains(&"--switch") { 3 } else { 2 };
    let lines = out.lines().take(count).map(|line| line.expect("text"));
    let addresses = lines.map(|line| line.rsplit_once("http://").expect("an address").1.to_owned());
    (running, addresses.collect())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn webstones_files_are_requested_and_the_report_is_made_again() {
    let assay = Assay::new();
    let (_running, nodes) = start(&assay, &[assay.file("small.toml", CLUSTER)]);
    let list =
        "# a list\n/file5k.html 350 #5125\n/file500.html 10 #500\n/cgi-bin/cpu_light.cgi 40 # a program\n";
    let testbed = "ITERATIONS=\"2\"\nMINCLIENTS=\"1\"\nMAXCLIENTS=\"3\"\nCLIENTINCR=\"2\"\nTIMEPERRUN=\"5\"\nRCP=/bin/rcp\n";
    assay.file("testbed", testbed);
    let run = [
        "webstone",
        assay.file("filelist", list),
        "--testbed",
        "testbed",
        "--to",
        &nodes[0],
        "--time",
        "400ms",
    ];
    let said = assay.run(&[&run[..], &["--json", "-o", "w.json", "--label", "node"]].concat()).ends_well();
    assert!(
        said.stderr.contains("passed over: RCP") && said.stderr.contains("2/2: 3 clients"),
        "{}",
        said.stderr
    );
    let document = json(&std::fs::read_to_string(assay.path("w.json")).expect("written"));
    assert_eq!(
        (document["schema"].as_str(), document["origin"].as_str()),
        (Some("assay-cluster/1"), Some("measured"))
    );
    let points = document["points"].as_array().expect("points");
    assert_eq!(points.iter().map(|point| point["clients"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(3)]);
    for point in points {
        assert_eq!(point["failed"], 0, "{point}");
        assert_eq!(point["responses_per_s_by_repetition"].as_array().map(Vec::len), Some(2));
        assert!(point["response_us"]["p50"].as_u64() > Some(900), "a file needs a millisecond: {point}");
    }
    let shown = assay.run(&["policies", "w.json", "--html", "w.html", "--against", "w.json"]).exits(0).stdout;
    assert!(shown.contains("WebStone: filelist") && shown.contains("2 points: off by 0.0 %"), "{shown}");
    let page = std::fs::read_to_string(assay.path("w.html")).expect("written");
    assert!(page.contains("data-chart=\"throughput-0\"") && page.contains("</html>"));
}

#[test]
fn parts_of_several_client_machines_are_merged_into_one_result() {
    let assay = Assay::new();
    let (_running, nodes) = start(&assay, &[assay.file("small.toml", CLUSTER)]);
    assay.file("list", "/file5k.html 350 #5125\n/file500.html 10 #500\n");
    assay.file("testbed", "ITERATIONS=2\nMINCLIENTS=1\nMAXCLIENTS=5\nCLIENTINCR=4\nCLIENTS=\"web1 web2\"\n");
    let start_at =
        (std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs() + 3)
            .to_string();
    let part = |name: &'static str| {
        let (assay, to, start_at) = (&assay, nodes[0].as_str(), start_at.as_str());
        move || {
            let file = format!("{name}.json");
            let run =
                ["webstone", "list", "--testbed", "testbed", "--to", to, "--time", "300ms", "--part", name];
            assay.run(&[&run[..], &["--start-at", start_at, "--json", "-o", &file]].concat()).ends_well();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(part("web1"));
        scope.spawn(part("web2"));
    });
    let read = |file: &str| json(&std::fs::read_to_string(assay.path(file)).expect("written"));
    let said = assay.run(&["merge", "web1.json", "web2.json", "-o", "all.json"]).exits(0).stdout;
    assert!(said.contains("shortest ms") && said.contains("5 clients"), "{said}");
    let (one, two, all) = (read("web1.json"), read("web2.json"), read("all.json"));
    assert_eq!((one["part"]["number"].as_u64(), two["part"]["of"].as_u64()), (Some(1), Some(2)));
    assert!(all.get("part").is_none() && all["points"][0].get("histograms").is_none());
    for place in 0..2 {
        let count =
            |document: &Value| document["points"][place]["response_us"]["count"].as_u64().expect("a number");
        let least = |document: &Value| document["points"][place]["response_us"]["min"].as_u64();
        assert_eq!(count(&all), count(&one) + count(&two));
        assert_eq!(least(&all), [least(&one), least(&two)].into_iter().flatten().min());
    }
    // One client is on the first machine; of five, each has some.
    let count = |document: &Value, place: usize| document["points"][place]["response_us"]["count"].as_u64();
    assert_eq!(count(&two, 0), Some(0));
    assert!(count(&one, 0) > Some(0) && count(&one, 1) > Some(0) && count(&two, 1) > Some(0));
    for (wrong, why) in [
        (vec!["merge", "web1.json", "all.json", "-o", "x.json"], "all.json is not a part"),
        (vec!["merge", "web1.json", "web1.json", "-o", "x.json"], "is part 1, and so is another"),
        (
            vec![
                "webstone",
                "list",
                "--testbed",
                "testbed",
                "--to",
                &nodes[0],
                "--part",
                "web3",
                "--start-at",
                "+9s",
            ],
            "not among CLIENTS: web1, web2",
        ),
    ] {
        let said = assay.run(&wrong).exits(2);
        assert!(said.stderr.contains(why), "{}", said.stderr);
    }
}

#[test]
fn a_cluster_is_measured_as_it_is_simulated() {
    let assay = Assay::new();
    let small = assay.file("small.toml", CLUSTER);
    assay.run(&["simulate", small, "--json", "-o", "sim.json", "--html", "sim.html"]).exits(0);
    for front in [&["--without-switch"][..], &["--keep-alive"][..]] {
        let run = ["cluster", small, "--run", "--against", "sim.json", "--json"];
        let document = json(&assay.run(&[&run[..], front].concat()).ends_well().stdout);
        let points = document["points"].as_array().expect("points");
        assert_eq!(points.len(), 4);
        for point in points {
            assert_eq!(point["failed"], 0, "{front:?}: {point}");
            assert!(point["responses_per_s"].as_f64() > Some(0.0), "{point}");
            assert_eq!(point["nodes"].as_array().map(Vec::len), Some(0), "no whole second was looked at");
        }
        // How far they are apart depends on what else the machine does: never above, unless by chance of a short run.
        assert_eq!(document["against"]["points"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn servers_that_are_already_running_are_watched_if_all_of_them_say_how_busy_they_are() {
    let assay = Assay::new();
    let small = assay.file("small.toml", CLUSTER);
    let (_running, nodes) = start(&assay, &[small]);
    let Some(python) = python() else { return };
    let script = root().join("contrib/node-state.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args(["--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("Python");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("an address");
    let _machine = Running(child);
    let machine = line.trim().strip_prefix("http://").expect("an address").to_owned();
    let run = |addresses: &[&str]| {
        let nodes = addresses.join(",");
        let (load, time) =
            (["--clients", "2", "--policy", "rand"], ["--measure", "2200ms", "--csv", "nodes.csv"]);
        assay.run(
            &[&["cluster", small, "--run", "--json", "--nodes", &nodes][..], &load[..], &time[..]].concat(),
        )
    };
    let both = run(&[&nodes[0], &nodes[1]]).ends_well();
    let series = json(&both.stdout)["points"][0]["node_series"].clone();
    assert_eq!(series.as_array().map(Vec::len), Some(2), "{series}");
    let busy = |node: usize| series[node]["processor"].as_array().expect("seconds").clone();
    assert!(busy(0).len() >= 2 && busy(0)[1].as_f64() > Some(0.1), "{series}");
    assert!(
        read(&assay.path("nodes.csv")).contains("80/20,two,rand,2,,1,1,"),
        "{}",
        read(&assay.path("nodes.csv"))
    );
    // The other fails what it does not serve, and still says how its machine is.
    let machine_too = json(&run(&[&nodes[0], &machine]).stdout);
    let share = machine_too["points"][0]["node_series"][1]["processor"][0].as_f64();
    assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{machine_too}");
}

#[test]
fn a_switch_stands_in_front_when_it_is_wanted() {
    let assay = Assay::new();
    let small = assay.file("small.toml", CLUSTER);
    let (_running, all) = start(&assay, &[small, "--switch", "--policy", "cap"]);
    assay.file("list", "/file5k-3.html 3 #5125\n/cgi-bin/cpu_light.cgi 1 #10\n");
    let said = assay.run(&[
        "webstone",
        "list",
        "--to",
        &all[2],
        "--clients",
        "2",
        "--iterations",
        "1",
        "--time",
        "400ms",
        "--json",
    ]);
    let document = json(&said.ends_well().stdout);
    assert_eq!(document["points"][0]["failed"], 0, "{document}");
    assert!(document["points"][0]["response_us"]["count"].as_u64() > Some(2), "{document}");
}

#[test]
fn a_service_without_a_response_in_the_time_measured_has_no_figures() {
    let assay = Assay::new();
    let one = CLUSTER.replace("nodes = 2", "nodes = 1");
    let run =
        ["cluster", assay.file("one.toml", &one), "--calibrate", "--measure", "2ms", "--warm-up", "1ms"];
    assay.run(&run).exits(1).complains("was complete within");
}

#[test]
fn a_node_is_calibrated_service_by_service() {
    let assay = Assay::new();
    let one = CLUSTER.replace("nodes = 2", "nodes = 1\nprocessors = 2");
    let run =
        ["cluster", assay.file("one.toml", &one), "--calibrate", "--measure", "2s", "--warm-up", "20ms"];
    let text = assay.run(&run).exits(0).stdout;
    assert!(text.contains("cpu-light") && text.contains("for a cluster file"), "{text}");
    let document = json(&assay.run(&[&run[..], &["--json"]].concat()).exits(0).stdout);
    let services = document["nodes"][0]["services"].as_array().expect("services");
    let alone =
        services.iter().map(|service| service["alone_us"].as_f64().expect("a time")).collect::<Vec<_>>();
    assert!(alone[0] >= 1_000.0 && alone[1] >= 10_000.0, "{alone:?}");
}

/// Starts something, interrupts it once it has said `words`, and gives what it said then.
fn interrupted(assay: &Assay, arguments: &[&str], words: &str) -> Said {
    let mut command = assay.command(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    wait_for(&mut lines, words);
    send(&child, libc::SIGINT);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().expect("it ends");
    Said { stderr: rest.join("\n"), ..Said::from(output) }
}

#[test]
fn an_interrupt_keeps_the_runs_that_were_complete_and_nothing_of_a_calibration() {
    let assay = Assay::new();
    let small = assay.file("small.toml", CLUSTER);
    let run = ["cluster", small, "--run", "--repetitions", "1000", "--policy", "rand"];
    let said = interrupted(&assay, &run, "1/2000: ");
    assert_eq!(said.code, Some(105), "{said:?}");
    assert!(said.stderr.contains("runs that were complete are told"), "{said:?}");
    assert!(said.stdout.contains("rand"), "{said:?}");
    let said = interrupted(&assay, &["cluster", small, "--calibrate"], "file5k");
    assert_eq!(said.code, Some(105), "{said:?}");
    assert!(said.stdout.is_empty() && said.stderr.contains("nothing is kept of the calibration"), "{said:?}");
    let (_running, nodes) = start(&assay, &[small]);
    assay.file("list", "/file5k.html 1 #5125\n");
    let requested =
        ["webstone", "list", "--to", &nodes[0], "--time", "100ms", "--clients", "1", "--iterations", "1000"];
    let said = interrupted(&assay, &requested, "1/1000: ");
    assert_eq!(said.code, Some(105), "{said:?}");
    assert!(said.stdout.contains("1 clients"), "{said:?}");
}
