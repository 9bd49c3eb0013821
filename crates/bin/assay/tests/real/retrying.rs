//! `--retries`: a run whose result is undecided is repeated, and says so.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::helpers::{assert_nothing_left, freeze, process_of, thaw, wait_for_second};
use crate::support::{Assay, Said, read};

#[test]
fn an_undecided_run_is_repeated_with_the_same_requests_and_says_so() {
    let assay = Assay::new();
    let load = ["run", "demo", "--direct", "--duration", "8s", "--rate", "100", "--run-dir", "r"];
    let require = ["--require", "p90 < 1s", "--retries", "3", "--no-live", "--json"];
    let mut command = assay.command(&[&load[..], &require[..]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    // Origins stand still for four seconds of eight: one response in ten is delayed by Assay for more than 1.6 s. Nothing else that a
    // busy machine does to a run keeps so many for a second.
    let second = wait_for_second(&mut lines, 1);
    let origins = process_of(&assay.path("r"), "origins.json");
    freeze(origins);
    wait_for_second(&mut lines, second + 4);
    thaw(origins);
    let words: String = lines.map_while(Result::ok).collect::<Vec<_>>().join("\n");
    let said = Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(0), "{words}");
    assert!(words.contains("try 1 is undecided: p90 < 1s; it is kept in "), "{words}");
    assert!(words.contains("the run is repeated, with an empty cache (try 2 of at most 4)"), "{words}");
    let info = |dir: &str| -> Value {
        serde_json::from_str(&read(&assay.path(dir).join("run.json"))).expect("JSON")
    };
    let (first, last) = (info("r-try-1"), info("r"));
    assert_eq!((&first["tries"], last["tries"].as_u64() > Some(1)), (&Value::from(1), true), "{last:#}");
    assert_eq!(first["stream_digest"], last["stream_digest"], "the same requests");
    assert_ne!(first["world"], last["world"], "for other URLs");
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert!(document["warnings"].to_string().contains("1 is undecided: p90"), "{:#}", document["warnings"]);
    assert_nothing_left(&assay.path("r"));
}
