//! What starts agents where a scheduler gives machines (`contrib/fleet`): the arguments in all manifests.

use std::path::PathBuf;

use crate::support::{Assay, read, root};

fn contrib(name: &str) -> PathBuf {
    root().join("contrib/fleet").join(name)
}

/// Lists of arguments in a manifest: they are written as JSON is.
fn lists(text: &str) -> Vec<Vec<String>> {
    let starts = text.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("command: ").or_else(|| line.strip_prefix("args: "))
    });
    starts.map(|list| serde_json::from_str(list).expect("a list of strings")).collect()
}

#[test]
fn arguments_in_manifests_are_those_that_the_program_takes() {
    let assay = Assay::new();
    let mut tried = 0;
    for name in ["compose.yaml", "kubernetes/agents.yaml"] {
        for list in lists(&read(&contrib(name))) {
            if list[0] == "-c" {
                continue;
            }
            let list: Vec<&str> = list.iter().map(String::as_str).chain(["--help"]).collect();
            assay.run(&list).exits(0);
            tried += 1;
        }
    }
    assert_eq!(tried, 4 + 3, "services of compose, and deployments");
    let job = read(&contrib("kubernetes/run.yaml"));
    let run = job.lines().find_map(|line| line.split_once("ASSAY_RUN, value: \"")).expect("what it runs").1;
    let run = run.split_once('"').expect("an end").0;
    assay.run(&run.split(' ').chain(["--help"]).collect::<Vec<_>>()).exits(0);
    assay.run(&["agent", "--no-such-flag", "--help"]).exits(2);
}
