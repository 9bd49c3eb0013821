//! Parts of one run as processes of their own.

use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_record::dir::RunDir;

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

fn start(assay: &Assay, arguments: &[&str]) -> Child {
    let mut command = assay.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

#[test]
fn two_halves_of_the_robots_request_what_all_of_them_do() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", include_str!("special.pg"));
    let whole = assay.run(&["run", workload, "--direct", "--run-dir", "whole", "--no-report"]);
    assert!(matches!(whole.code, Some(0 | 96)), "{whole:?}");
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
        assert!(matches!(said.code, Some(0 | 96)), "{said:?}");
    }
    let (all, one, other) = (due(&assay, "whole"), due(&assay, "0-19"), due(&assay, "20-39"));
    assert!(one.0 > 200 && other.0 > 200, "{one:?} {other:?}");
    assert_eq!((one.0 + other.0, one.1.wrapping_add(other.1)), (all.0, all.1));
    assert_eq!((one.2, other.2), (0, 0), "every response was checked");
    let dir = RunDir::open(&assay.path("o")).expect("a run directory");
    let responded: u64 =
        dir.read_series().expect("what was measured").origins.iter().map(|o| o.counts.responses).sum();
    assert!(responded >= one.0 + other.0 - 100, "{responded}");
}

#[test]
fn parts_that_cannot_be_are_refused_before_anything_starts() {
    let assay = Assay::new();
    let workload = assay.file("special.pg", include_str!("special.pg"));
    let robots = |more: &[&str]| assay.run(&[&["robots", workload][..], more].concat());
    robots(&["--start-at", "+5s", "--robots", "0-40", "--proxy", "127.0.0.1:1"])
        .exits(2)
        .complains("40 robots");
    robots(&["--start-at", "+5s"]).exits(2).complains("--origin gives 0 addresses for 2 origins");
    robots(&["--start-at", "5", "--proxy", "127.0.0.1:1"]).exits(2).complains("has passed");
    robots(&["--start-at", "+5s", "--origin", "8.8.8.8:80-81"]).exits(2).complains("--i-own-this-target");
    let origins =
        |more: &[&str]| assay.run(&[&["origins", workload, "--start-at", "+5s"][..], more].concat());
    origins(&["--listen", "127.0.0.1:9000"]).exits(2).complains("--listen gives 1 addresses for 2 origins");
    origins(&["--origins", "1-2", "--listen", "127.0.0.1:9000"]).exits(2).complains("2 origins");
}
