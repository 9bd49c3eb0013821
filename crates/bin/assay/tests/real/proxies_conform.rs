//! Conformance of real caches that work together: a case goes in at the first and comes out behind the last.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::helpers::has;

/// Two caches, requests that neither is to keep, and one that shows who has had the response.
const CASES: &str = r#"
topic = "own"

[[case]]
name = "through-both"
level = "MUST"
section = "policy"
rule = "A response has passed the shield and the edge, and comes from a store the second time."
steps = [
  { expect = { status = 200, served = "origin", fields = ["Server ~ nginx", "Via ~ varnish"], forwarded = ["X-Varnish"] } },
  { expect = { served = "store", from = 1 } },
]
"#;

fn conform(directory: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    let command = command.current_dir(directory).args(["conform", "--json", "--dir", "kept"]);
    command.args(more).output().expect("the program starts")
}

fn document(said: &Output) -> Value {
    let errors = String::from_utf8_lossy(&said.stderr);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {errors}"))
}

/// Results that are not what they should be, of those that bind; and how many bind.
fn missed(document: &Value) -> (Vec<String>, usize) {
    let results = document["results"].as_array().expect("there are results");
    let bind: Vec<&Value> = results.iter().filter(|one| one["level"] == "MUST").collect();
    let missed = bind.iter().filter(|one| one["verdict"] != "pass");
    (missed.map(|one| format!("{}: {} {}", one["case"], one["verdict"], one["reason"])).collect(), bind.len())
}

#[test]
fn nginx_in_front_of_varnish_is_one_target_from_the_edge_to_the_origin() {
    if !has("nginx", "nginx") || !has("varnishd", "varnish") {
        return;
    }
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let here = |name: &str| directory.path().join(name);
    std::fs::create_dir(here("cases")).expect("it is writable");
    std::fs::write(here("cases/own.toml"), CASES).expect("it is writable");
    let pair = "[[cache]]\nname = \"edge\"\nproxy = \"nginx\"\nparents = [\"shield\"]\nprotocol = \"hash\"\nnever-direct = true\n\
        [[cache]]\nname = \"shield\"\nproxy = \"varnish\"\n";
    std::fs::write(here("pair.toml"), pair).expect("it is writable");
    let said = conform(directory.path(), &["--topology", "pair.toml", "--cases", "cases"]);
    let (missed_own, own) = missed(&document(&said));
    assert_eq!((missed_own, own, said.status.code()), (vec![], 1, Some(0)));
    std::fs::remove_dir_all(here("kept")).expect("it was kept");
    let chosen = ["--topology", "pair.toml", "--case", "no-store-response", "--case", "private"];
    let said = conform(directory.path(), &chosen);
    let document = document(&said);
    let software = document["targets"][0]["software"].as_str().unwrap_or_default();
    assert!(software.contains("edge: nginx") && software.contains("shield: Varnish"), "{software}");
    let (missed, count) = missed(&document);
    assert!(missed.is_empty() && count > 10, "{missed:#?} of {count}");
    for log in ["edge", "shield"] {
        assert!(here("kept/pair").join(log).is_dir(), "the logs of {log} are kept");
    }
}

#[test]
fn a_cache_of_several_that_cannot_start_is_named() {
    if !has("nginx", "nginx") {
        return;
    }
    let directory = tempfile::tempdir().expect("the temp directory is writable");
    let pair = "[[cache]]\nname = \"edge\"\nproxy = \"builtin\"\nparents = [\"shield\"]\nprotocol = \"hash\"\n\
        [[cache]]\nname = \"shield\"\nproxy = \"broken.toml\"\n";
    std::fs::write(directory.path().join("pair.toml"), pair).expect("it is writable");
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../proxies/nginx.toml");
    let nginx = std::fs::read_to_string(bundled).expect("it is there");
    let broken = nginx.replacen("worker_connections", "no_such_directive", 1);
    assert_ne!(nginx, broken);
    std::fs::write(directory.path().join("broken.toml"), broken).expect("it is writable");
    // What the message names stays there, in the directory that is kept or in one for temporary files.
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    let command = command.current_dir(directory.path()).env("TMPDIR", directory.path());
    let said = command.args(["conform", "--topology", "pair.toml", "--case", "stores"]).output();
    let said = said.expect("the program starts");
    let words = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{words}");
    assert!(words.contains("the cache `shield` of the topology: nginx did not start"), "{words}");
    assert!(words.contains("no_such_directive"), "{words}");
    let kept =
        words.split("Its configuration and output are in ").nth(1).and_then(|rest| rest.split_once(".\n"));
    let kept = kept.map(|(path, _)| Path::new(path)).unwrap_or_else(|| panic!("{words}"));
    assert!(kept.is_dir(), "{} is still there", kept.display());
}
