//! Parts of one run as processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_measurement::histogram::SparseHistogram;
use assay_record::dir::RunDir;

use crate::samples::SPECIAL;
use crate::support::{Assay, Said};

/// What robots of a run directory were due to request: how many requests, and their digest; and how many errors there were.
fn due(assay: &Assay, run_dir: &str) -> (u64, u64, u64) {
    let dir = RunDir::open(&assay.path(run_dir)).expect("a run directory");
    let robots = dir.read_series().expect("what was measured").robots;
    let counts = robots.iter().map(|interval| &interval.counts);
    counts.fold((0, 0, 0), |(due, digest, errors), counts| {
        (due + counts.due, digest.wrapping_add(counts.due_digest), errors + counts.error_total())
    })
}

/// Something that responds to every request, and is neither Assay's origin nor a cache.
fn responder() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut out = stream.try_clone().expect("a socket");
                for _ in BufReader::new(stream).lines().map_while(Result::ok).filter(String::is_empty) {
                    if out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn start(assay: &Assay, arguments: &[&str]) -> Child {
    let mut command = assay.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

#[test]
fn two_halves_of_the_robots_request_what_all_of_them_do() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", SPECIAL);
    let whole = assay.run(&["run", workload, "--direct", "--run-dir", "whole", "--no-report"]);
    assert!(whole.went_well(), "{whole:?}");
    let at = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + 10;
    let at = at.to_string();
    // Loopback addresses of this process's own.
    let id = std::process::id();
    let host = format!("127.250.{}.{}:9100-9101", id >> 8 & 255, (id & 255).max(1));
    let common = [workload, "--start-at", &at, "--no-report"];
    let part = |command: &str, more: &[&str]| start(&assay, &[&[command][..], &common, more].concat());
    let origins = part("origins", &["--listen", &host, "--linger", "3s", "--run-dir", "o"]);
    let halves = ["0-19", "20-39"].map(|robots| {
        part("robots", &["--robots", robots, "--origin", &host, "--run-dir", robots, "--threads", "2"])
    });
    for process in halves.into_iter().chain([origins]) {
        let said: Said = process.wait_with_output().expect("ends").into();
        assert!(said.went_well(), "{said:?}");
    }
    let (all, one, other) = (due(&assay, "whole"), due(&assay, "0-19"), due(&assay, "20-39"));
    assert!(one.0 > 200 && other.0 > 200, "{one:?} {other:?}");
    assert_eq!((one.0 + other.0, one.1.wrapping_add(other.1)), (all.0, all.1));
    assert_eq!((one.2, other.2), (0, 0), "every response was checked");
    let said = assay.run(&["report", "0-19", "--no-report"]).exits(0).stdout;
    assert!(said.contains("20 robots sent") && said.contains("robots 0 to 19 of 40"), "{said}");
    let dir = RunDir::open(&assay.path("o")).expect("a run directory");
    let responded: u64 =
        dir.read_series().expect("what was measured").origins.iter().map(|o| o.counts.responses).sum();
    assert!(responded >= one.0 + other.0 - 100, "{responded}");
    joined_parts_are_one_run(&assay, ["0-19", "20-39", "o"]);
    other_parts_are_told_apart(&assay, ["0-19", "20-39", "o"]);
}

/// All values of a histogram of the robots, over the whole run.
fn merged(assay: &Assay, run_dir: &str, metric: &str, class: &str) -> SparseHistogram {
    let dir = RunDir::open(&assay.path(run_dir)).expect("a run directory");
    let mut all = SparseHistogram::default();
    for interval in dir.read_series().expect("what was measured").robots {
        let values = interval.times.histograms().filter(|(of, whose, _)| *of == metric && *whose == class);
        values.for_each(|(_, _, values)| all.merge(values));
    }
    all
}

/// Two parts of robots and one of origins, joined.
fn joined_parts_are_one_run(assay: &Assay, parts: [&str; 3]) {
    let [one, other, origins] = parts;
    assay.run(&["merge", one, other, origins, "-o", "all", "--no-report"]).exits(0);
    let (whole, all) = (due(assay, "whole"), due(assay, "all"));
    assert_eq!((whole.0, whole.1), (all.0, all.1), "the same requests came due");
    for (metric, class) in [("response", "miss"), ("ttfb", "miss"), ("lateness", "all")] {
        let mut sum = merged(assay, one, metric, class);
        sum.merge(&merged(assay, other, metric, class));
        assert!(!sum.buckets.is_empty() && merged(assay, "all", metric, class) == sum, "{metric} {class}");
    }
    let said = assay.run(&["report", "all", "--json", "--no-report"]).exits(0).stdout;
    let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(document["workload_info"]["robots"], 40);
    assert!(document["total"]["offload"]["requests"].is_number(), "{:#}", document["total"]["offload"]);
    assert!(document["total"]["dhr"]["ideal"].is_null(), "{:#}", document["total"]["dhr"]);
    assert!(said.contains("3 parts on one machine") && !said.contains("this is one part"), "{said}");
    assay.run(&["compare", "whole", "all"]).exits(0);
}

/// Parts of which some are missing, and parts that do not belong together.
fn other_parts_are_told_apart(assay: &Assay, parts: [&str; 3]) {
    let [one, other, origins] = parts;
    let said = assay.run(&["merge", one, origins, "-o", "most", "--no-report"]).exits(0).stdout;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("robots 0 to 19 of 40; with origins 0 to 1 of 2"), "{said}");
    assert!(!said.contains("origins were spared"), "{said}");
    assay.run(&["merge", "most", other, "-o", "again", "--no-report"]).exits(0);
    assert_eq!(due(assay, "again"), due(assay, "all"), "it can be completed later");
    assay.run(&["merge", one, one, "-o", "x"]).exits(2).complains("both have robots 0 to 19");
    assay.run(&["merge", "whole", one, "-o", "x"]).exits(2).complains("not a part of a run");
    assay.run(&["merge", one, other, "-o", "all"]).exits(2).complains("is not empty");
    let path = assay.path(other).join("run.json");
    let head = std::fs::read_to_string(&path).expect("a head");
    std::fs::write(&path, head.replace("\"seed\": 1,", "\"seed\": 2,")).expect("a head");
    assay.run(&["merge", one, other, "-o", "x"]).exits(2).complains("the seed is 1 there and 2 here");
    assert!(!assay.path("x").exists(), "something was made");
}

#[test]
fn robots_alone_report_nothing_that_only_the_whole_run_knows() {
    let assay = Assay::new();
    let address = responder().to_string();
    let workload = assay.file("special.pg", SPECIAL);
    // How long a busy machine takes to get them ready is not known: the start is put off until they are.
    let robots = |run_dir: &str, more: &[&str]| {
        let begin = |seconds: u32| {
            let start = format!("+{seconds}s");
            let run_dir = format!("{run_dir}-{seconds}");
            let part = ["robots", workload, "--robots", "0-3", "--proxy", &address, "--start-at", &start];
            let first_look = ["--duration", "1s", "--no-report", "--run-dir", &run_dir];
            (assay.run(&[&part[..], &first_look, more].concat()), run_dir)
        };
        let mut tries = [2, 8, 32].into_iter().map(begin);
        tries
            .find(|(said, _)| !said.stderr.contains("ready too late"))
            .expect("they are ready in half a minute")
    };
    let (said, part) = robots("part", &["--json"]);
    // The responder is no origin of ours: for these robots, it served nothing.
    assert_eq!(said.code, Some(1), "{said:?}");
    let document: serde_json::Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("one JSON document: {said:?}"));
    assert!(document["total"]["requests"].as_u64() > Some(0), "{document:#}");
    assert_eq!(document["workload_info"]["robots"], 4);
    assert!(document["total"]["offload"]["requests"].is_null(), "{:#}", document["total"]["offload"]);
    assert!(document["total"]["offload"]["bytes"].is_null(), "{:#}", document["total"]["offload"]);
    let words = assay.run(&["report", &part, "--no-report"]).exits(0).stdout;
    // Lines are folded.
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("4 robots sent") && !words.contains("origins were spared"), "{words}");
    assert!(words.contains("what they were spared is not known here"), "{words}");
    let (said, _) = robots("required", &["--require", "offload > 0.5"]);
    assert!(!said.stdout.contains("offload > 0.5 holds"), "{said:?}");
    assert_ne!(said.code, Some(0), "a requirement that was not measured did not hold: {said:?}");
}
